/* Exports: the owner's side of sharing. */
#include "base/cancel.h"
#include "base/descriptor.h"
#include "base/growing_array.h"
#include "base/object.h"
#include "base/options.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/object/buffer.h"
#include "memory/object/closing.h"
#include "memory/object/device.h"
#include "memory/object/resource.h"
#include "memory/pool/pool.h"
#include "share/share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* The PCI address, after letters with which no UUID of a version begins: all that is left to tell
 * the devices of a machine apart. Instances of one GPU have the same address; the driver refuses
 * memory of another instance.
 */
static gpumem_status place_of(const gpumem_device *device, CUresult why, unsigned char uuid[16]) {
    static const unsigned char letters[4] = {'p', 'c', 'i', 0xff};
    static const CUdevice_attribute numbers[] = {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
                                                 CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
                                                 CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID};
    memcpy(uuid, letters, sizeof letters);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int number = gm_device_attribute(device, numbers[i], -1);
        if (number < 0)
            return gm_cu_fail(device->cu, why, "cuDeviceGetUuid",
                              "device %d has neither a UUID nor a PCI address", device->ordinal);
        memcpy(uuid + sizeof letters + i * sizeof number, &number, sizeof number);
    }
    return GPUMEM_OK;
}

gpumem_status gm_device_uuid(const gpumem_device *device, unsigned char uuid[16]) {
    CUuuid found = {{0}};
    CUresult result = device->cu->cuDeviceGetUuid_v2(&found, device->handle);
    if (result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_FOUND)
        return place_of(device, result, uuid);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(device->cu, result, "cuDeviceGetUuid", "device %d has no UUID",
                          device->ordinal);
    memcpy(uuid, found.bytes, 16);
    return GPUMEM_OK;
}

/* `inner` has the memory. A user's wrapper exports whole buffers or none. */
static gpumem_status check_inner(const gpumem_buffer *buffer, const gpumem_buffer *inner) {
    const gpumem_resource *resource = buffer->resource;
    if (!inner || inner->freed & GM_FREED)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "the %s resource does not name the buffer of its upstream that this one is "
                       "(gpumem_allocation.buffer)",
                       resource->kind);
    if (inner->allocation.pointer != buffer->allocation.pointer ||
        inner->allocation.bytes < buffer->allocation.bytes)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "a buffer of the %s resource is a part of a buffer of the %s resource, and "
                       "cannot be exported without the rest",
                       resource->kind, inner->resource->kind);
    return GPUMEM_OK;
}

static gpumem_status check_chunks(const gpumem_buffer *buffer, const gpumem_buffer *inner) {
    const gpumem_resource *resource = buffer->resource;
    gpumem_status status = gm_buffer_not_in_slab(buffer, "be exported");
    if (status == GPUMEM_OK && resource->properties.exportable)
        status = check_inner(buffer, inner);
    if (status != GPUMEM_OK || (resource->properties.exportable && inner->resource->chunks))
        return status;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                   "buffers of the %s resource cannot be exported%s%s; use a virtual resource with "
                   "GPUMEM_HANDLE_POSIX_FD, or a pool of the driver with ipc",
                   resource->kind, resource->properties.note[0] ? ": " : "",
                   resource->properties.note);
}

/* All exports of a buffer have the same name, by which an importer recognises what it already
 * has. */
static gpumem_status name_buffer(gpumem_buffer *buffer) {
    static const unsigned char unnamed[16];
    gpumem_status status = GPUMEM_OK;
    pthread_mutex_lock(&buffer->lock);
    if (memcmp(buffer->id, unnamed, sizeof unnamed) == 0 &&
        getrandom(buffer->id, sizeof buffer->id, 0) != (ssize_t)sizeof buffer->id)
        status = gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, "getrandom", "cannot name an export");
    pthread_mutex_unlock(&buffer->lock);
    return status;
}

static void hold(gpumem_export *made, gpumem_buffer *buffer, gpumem_buffer *inner) {
    made->buffer = buffer;
    made->inner = inner;
    gm_buffer_ref(buffer);
    gm_meter_add(&buffer->resource->meter, GM_EXPORTS, 1);
    if (inner == buffer)
        return;
    gm_buffer_ref(inner);
    gm_meter_add(&inner->resource->meter, GM_EXPORTS, 1);
}

/* Complete exports are listed, for snapshots. */
static void list(gpumem_export *made) {
    struct gm_shared_lists *lists = gm_device_shared_lock(made->device);
    made->next = lists->exports;
    made->link = &lists->exports;
    if (made->next)
        made->next->link = &made->next;
    lists->exports = made;
    gm_device_shared_unlock(made->device);
}

static void unlist(gpumem_export *made) {
    (void)gm_device_shared_lock(made->device);
    if (made->link)
        *made->link = made->next;
    if (made->link && made->next)
        made->next->link = made->link;
    made->link = NULL;
    gm_device_shared_unlock(made->device);
}

/* Releases the buffer and the descriptors. The last line may make a wrapper free the inner
 * buffer. */
static void let_go(gpumem_export *made) {
    gpumem_buffer *buffer = made->buffer, *inner = made->inner;
    unlist(made);
    for (size_t i = 0; i < made->count; i++)
        gm_kept_file_close(&made->files[i]);
    made->count = 0;
    made->buffer = made->inner = NULL;
    if (!buffer)
        return;
    if (inner != buffer) {
        gm_meter_subtract(&inner->resource->meter, GM_EXPORTS, 1);
        gm_buffer_unref(inner);
    }
    gm_meter_subtract(&buffer->resource->meter, GM_EXPORTS, 1);
    gm_buffer_unref(buffer);
}

static void end_export(gpumem_export *made) {
    let_go(made);
    free(made->fds);
    free(made->files);
    free(made->description);
    pthread_mutex_destroy(&made->lock);
    gm_bury(made);
}

static gpumem_status make_export(gpumem_device *device, gpumem_export **exported) {
    gpumem_export *made = calloc(1, sizeof *made);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for an export");
    made->generation = device->generation;
    made->device = device;
    pthread_mutex_init(&made->lock, NULL);
    *exported = made;
    return GPUMEM_OK;
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

static gpumem_status make_room(gpumem_export *made, size_t count) {
    size_t room = made->room; /* of both lists: it has grown when they have */
    if (!GM_RESERVE(made->fds, room, count) || !GM_RESERVE(made->files, made->room, count))
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for %zu descriptors", count);
    return GPUMEM_OK;
}

/* Adds a descriptor, which the export then owns; there is room. */
static gpumem_status keep(gpumem_export *made, int fd) {
    if (fd < 0 || !gm_kept_file_set(fd, &made->files[made->count])) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, error, "fstat", "cannot keep a descriptor");
    }
    made->fds[made->count++] = fd;
    return GPUMEM_OK;
}

static gpumem_status add_chunk(gpumem_export *made, CUmemGenericAllocationHandle handle) {
    int fd = -1;
    gpumem_status status = gm_vmm_export_fd(made->device, handle, &fd);
    return status == GPUMEM_OK ? keep(made, fd) : status;
}

/* Adds those from made->count on; on failure none are added. */
static gpumem_status add_chunks(gpumem_export *made, const struct gm_chunk *chunks, size_t count) {
    size_t before = made->count;
    gpumem_status status = make_room(made, count);
    while (made->count < count && status == GPUMEM_OK)
        status = add_chunk(made, chunks[made->count].handle);
    while (status != GPUMEM_OK && made->count > before)
        gm_kept_file_close(&made->files[--made->count]);
    return status;
}

static gpumem_status check_open(const gpumem_export *exported, size_t index) {
    if (gm_kept_file_is_open(&exported->files[index]))
        return GPUMEM_OK;
    return gm_fail_system(GPUMEM_ERROR_SYSTEM, EBADF, "fstat",
                          "descriptor %d of the export was closed by other code",
                          exported->fds[index]);
}

/* ---- What is sent ---------------------------------------------------------------------------- */

static gpumem_status not_detached(const gpumem_export *exported) {
    if (!exported->detached)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                   "the export was detached: imports remain as they are; to share the buffer "
                   "again, export and import it again");
}

static gpumem_status copy_description(const gpumem_export *exported, size_t first,
                                      struct gm_outgoing *out) {
    if (first) {
        out->description =
            gm_description_tail(exported->description, first, &out->description_bytes);
    } else {
        out->description = malloc(exported->description_bytes);
        out->description_bytes = exported->description_bytes;
        if (out->description)
            memcpy(out->description, exported->description, exported->description_bytes);
    }
    if (out->description)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to send an export");
}

static gpumem_status copy_descriptors(const gpumem_export *exported, size_t first,
                                      struct gm_outgoing *out) {
    gpumem_status status = GPUMEM_OK;
    out->count = exported->count - first;
    out->fds = malloc((out->count + 1) * sizeof *out->fds);
    if (!out->fds)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to send an export");
    for (size_t i = 0; i < out->count && status == GPUMEM_OK; i++) {
        status = check_open(exported, first + i);
        out->fds[i] = exported->fds[first + i];
    }
    return status;
}

static void free_outgoing(struct gm_outgoing *out) {
    free(out->description);
    free(out->fds);
    *out = (struct gm_outgoing){.count = 0};
}

gpumem_status gm_export_take(gpumem_export *exported, size_t first, struct gm_outgoing *out) {
    *out = (struct gm_outgoing){.count = 0};
    pthread_mutex_lock(&exported->lock);
    gpumem_status status = not_detached(exported);
    if (status == GPUMEM_OK)
        status = copy_description(exported, first, out);
    if (status == GPUMEM_OK)
        status = copy_descriptors(exported, first, out);
    exported->sending += status == GPUMEM_OK;
    pthread_mutex_unlock(&exported->lock);
    if (status != GPUMEM_OK)
        free_outgoing(out);
    return status;
}

void gm_export_put(gpumem_export *exported, struct gm_outgoing *out) {
    pthread_mutex_lock(&exported->lock);
    exported->sending--;
    pthread_mutex_unlock(&exported->lock);
    free_outgoing(out);
}

/* ---- Memory in chunks ------------------------------------------------------------------------ */

/* Memory that others will map must be complete, with no work of former users left on it. */
static gpumem_status prepare_memory(const gpumem_buffer *inner) {
    const struct gm_mapped *mapped = inner->resource->mapped;
    const gpumem_allocation *allocation = &inner->allocation;
    if (!mapped)
        return GPUMEM_OK;
    GM_REQUIRE(mapped->is_whole(allocation, 0, allocation->bytes),
               "gpumem_export_create: a part of the buffer was decommitted: recommit it first");
    return mapped->share(allocation);
}

/* Makes or updates the export for the buffer as it is now. All or nothing. */
static gpumem_status take_in(gpumem_export *made) {
    gpumem_buffer *inner = made->inner;
    unsigned char uuid[16];
    const struct gm_chunk *chunks = NULL;
    gpumem_status status = prepare_memory(inner);
    size_t count = inner->resource->chunks(&inner->allocation, &chunks), bytes = 0;
    if (status == GPUMEM_OK && count > GM_DESCRIPTION_MOST_CHUNKS)
        status = gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "%zu handles are too many to export", count);
    if (status == GPUMEM_OK)
        status = gm_device_uuid(made->device, uuid);
    if (status != GPUMEM_OK)
        return status;
    size_t size = made->buffer->allocation.bytes;
    void *description = gm_description_write(inner, size, uuid, chunks, count, &bytes);
    if (!description)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for an export");
    status = add_chunks(made, chunks, count);
    if (status != GPUMEM_OK) {
        free(description);
        return status;
    }
    free(made->description);
    made->description = description;
    made->description_bytes = bytes;
    made->bytes = size;
    return GPUMEM_OK;
}

static gpumem_status fill_chunks(gpumem_export *made, gpumem_buffer *buffer, gpumem_buffer *inner) {
    gpumem_status status = check_chunks(buffer, inner);
    if (status != GPUMEM_OK)
        return status;
    hold(made, buffer, inner);
    made->grows = 1;
    status = name_buffer(inner);
    return status == GPUMEM_OK ? take_in(made) : status;
}

gpumem_status gpumem_export_update(gpumem_export *exported) {
    GM_UNCANCELLED;
    GM_CHECK(exported, "gpumem_export_update");
    if (!exported->grows)
        return GPUMEM_OK;
    pthread_mutex_lock(&exported->lock);
    gpumem_status status = not_detached(exported);
    if (status == GPUMEM_OK)
        status = take_in(exported);
    pthread_mutex_unlock(&exported->lock);
    return status;
}

/* ---- Memory of pools, and events ------------------------------------------------------------- */

static gpumem_status describe_pool(gpumem_export *made, struct gm_pool *pool,
                                   gpumem_pool_share_handle *handle) {
    unsigned char uuid[16];
    gpumem_pool_share_buffer shared = {.size = sizeof shared};
    gpumem_status status = gpumem_pool_get_share_handle(pool->resource, handle);
    if (status == GPUMEM_OK && handle->type != GPUMEM_HANDLE_POSIX_FD)
        status = gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                         "a fabric handle is not a descriptor: send the bytes of "
                         "gpumem_pool_share_handle and gpumem_pool_share_buffer");
    if (status == GPUMEM_OK)
        status = gpumem_pool_export_buffer(made->buffer, &shared);
    if (status == GPUMEM_OK)
        status = gm_device_uuid(made->device, uuid);
    if (status != GPUMEM_OK)
        return status;
    made->bytes = made->buffer->allocation.bytes;
    made->description = gm_pool_description_write(handle, &shared, uuid, &made->description_bytes);
    if (!made->description)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for an export");
    return GPUMEM_OK;
}

static gpumem_status fill_pool(gpumem_export *made, gpumem_buffer *buffer, gpumem_buffer *inner,
                               struct gm_pool *pool) {
    gpumem_pool_share_handle handle = {.size = sizeof handle};
    hold(made, buffer, inner);
    gpumem_status status = describe_pool(made, pool, &handle);
    if (status == GPUMEM_OK)
        status = make_room(made, 1);
    return status == GPUMEM_OK ? keep(made, gm_fd_duplicate(handle.descriptor)) : status;
}

static gpumem_status fill_event(gpumem_export *made, CUevent event) {
    gpumem_device *device = made->device;
    CUipcEventHandle handle = {{0}};
    unsigned char uuid[16];
    struct gm_current current;
    gpumem_status status = gm_device_uuid(device, uuid);
    if (status == GPUMEM_OK)
        status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    CUresult result = device->cu->cuIpcGetEventHandle(&handle, event);
    if (result != CUDA_SUCCESS)
        status = gm_cu_fail(device->cu, result, "cuIpcGetEventHandle",
                            "the event cannot be exported; make it with gpumem_event_create and "
                            "interprocess");
    gm_current_leave(&current);
    if (status != GPUMEM_OK)
        return status;
    _Static_assert(sizeof handle == 64, "the driver's 64 bytes");
    made->description =
        gm_event_description_write(uuid, (const unsigned char *)&handle, &made->description_bytes);
    if (!made->description)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for an export");
    return GPUMEM_OK;
}

/* ---- The public door ------------------------------------------------------------------------- */

static gpumem_status fill(gpumem_export *made, gpumem_buffer *buffer) {
    gpumem_buffer *inner = gm_buffer_innermost(buffer);
    struct gm_pool *pool = inner ? gm_pool_behind(inner) : NULL;
    if (pool && inner->allocation.pointer == buffer->allocation.pointer)
        return fill_pool(made, buffer, inner, pool);
    return fill_chunks(made, buffer, inner);
}

gpumem_status gpumem_export_create(gpumem_buffer *buffer, gpumem_export **exported) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, "gpumem_export_create");
    GM_REQUIRE(exported, "gpumem_export_create: exported is NULL");
    GM_REQUIRE(!(buffer->freed & GM_FREED), "gpumem_export_create: the buffer was freed");
    if (gm_resource_is_imported(buffer->resource))
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "an imported buffer can only be exported by the process that allocated it");
    gpumem_export *made = NULL;
    gpumem_status status = make_export(buffer->resource->device, &made);
    if (status != GPUMEM_OK)
        return status;
    status = fill(made, buffer);
    if (status != GPUMEM_OK) {
        struct gm_error_record saved;
        gm_error_save(&saved);
        end_export(made);
        gm_error_restore(&saved);
        return status;
    }
    list(made);
    *exported = made;
    return GPUMEM_OK;
}

gpumem_status gpumem_export_create_event(gpumem_device *device, CUevent event,
                                         gpumem_export **exported) {
    GM_UNCANCELLED;
    GM_CHECK(device, "gpumem_export_create_event");
    GM_REQUIRE(event && exported, "gpumem_export_create_event: event or exported is NULL");
    gpumem_export *made = NULL;
    gpumem_status status = make_export(device, &made);
    if (status != GPUMEM_OK)
        return status;
    status = fill_event(made, event);
    if (status != GPUMEM_OK) {
        end_export(made);
        return status;
    }
    *exported = made;
    return GPUMEM_OK;
}

gpumem_status gpumem_export_detach(gpumem_export *exported) {
    GM_UNCANCELLED;
    GM_CHECK(exported, "gpumem_export_detach");
    if (!exported->grows)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "only mapped memory can be detached: events and memory of pools must exist "
                       "until their importers have let go");
    gpumem_status status = GPUMEM_OK;
    pthread_mutex_lock(&exported->lock);
    if (exported->sending)
        status = gm_fail(GPUMEM_ERROR_BUSY, "cannot detach: %u thread%s still sending the export",
                         exported->sending, exported->sending == 1 ? " is" : "s are");
    else
        exported->detached = 1;
    pthread_mutex_unlock(&exported->lock);
    if (status != GPUMEM_OK)
        return status;
    int entered = gm_closing_enter();
    let_go(exported); /* no new send can begin */
    gm_closing_leave(entered);
    return GPUMEM_OK;
}

gpumem_status gpumem_export_destroy(gpumem_export *exported) {
    GM_UNCANCELLED;
    if (!exported)
        return GPUMEM_OK;
    GM_CHECK(exported, "gpumem_export_destroy");
    int entered = gm_closing_enter();
    end_export(exported);
    gm_closing_leave(entered);
    return GPUMEM_OK;
}

static gpumem_status check_all_open(const gpumem_export *exported) {
    gpumem_status status = GPUMEM_OK;
    for (size_t i = 0; i < exported->count && status == GPUMEM_OK; i++)
        status = check_open(exported, i);
    return status;
}

gpumem_status gpumem_export_get_info(const gpumem_export *exported, gpumem_export_info *info) {
    GM_UNCANCELLED;
    GM_CHECK(exported, "gpumem_export_get_info");
    pthread_mutex_t *lock = &((gpumem_export *)(uintptr_t)exported)->lock;
    pthread_mutex_lock(lock); /* another thread may be updating it */
    gpumem_export_info filled = {.size = sizeof filled, .bytes = exported->bytes};
    gpumem_status status = check_all_open(exported);
    if (!exported->detached) {
        filled.description = exported->description;
        filled.description_bytes = exported->description_bytes;
        filled.descriptors = exported->fds;
        filled.descriptor_count = exported->count;
    }
    pthread_mutex_unlock(lock);
    return status == GPUMEM_OK ? GM_RESULT_WRITE(gpumem_export_info, info, &filled) : status;
}
