#include "base/cancel.h"
#include "base/options.h"
#include "memory/buffer.h"
#include "memory/current.h"
#include "memory/device.h"
#include "memory/driver_error.h"
#include "memory/vmm.h"
#include "share/share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Where it sits, behind letters that begin no UUID of a version: what is left to tell devices of
 * one machine apart. Instances of one GPU have one place; the driver refuses memory of another one.
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
                              "device %d has no UUID, and no place on a PCI bus", device->ordinal);
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

/* `inner` has the memory. A wrapper of the user's gives away whole buffers or none. */
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
                       "is not exported without the rest",
                       resource->kind, inner->resource->kind);
    return GPUMEM_OK;
}

static gpumem_status check(const gpumem_buffer *buffer, const gpumem_buffer *inner) {
    const gpumem_resource *resource = buffer->resource;
    if (buffer->freed & GM_FREED)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "gpumem_export_create: the buffer was freed");
    if (resource == resource->device->import_resource)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "an imported buffer is exported by the process that allocated it");
    gpumem_status status = resource->properties.exportable ? check_inner(buffer, inner) : GPUMEM_OK;
    if (status != GPUMEM_OK || (resource->properties.exportable && inner->resource->chunks))
        return status;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                   "buffers of the %s resource cannot be exported by descriptor%s%s; use a virtual "
                   "resource with GPUMEM_HANDLE_POSIX_FD, or for a pool with ipc "
                   "gpumem_pool_export_buffer",
                   resource->kind, resource->properties.note[0] ? ": " : "",
                   resource->properties.note);
}

/* Exports of one buffer bear one name, by which an importer knows what it has already. */
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

/* What is complete is listed, for snapshots. */
static void list(gpumem_export *made) {
    gpumem_device *device = made->buffer->resource->device;
    pthread_mutex_lock(&device->lock);
    made->next = device->exports;
    made->link = &device->exports;
    if (made->next)
        made->next->link = &made->next;
    device->exports = made;
    pthread_mutex_unlock(&device->lock);
}

static void unlist(gpumem_export *made) {
    gpumem_device *device = made->buffer->resource->device;
    pthread_mutex_lock(&device->lock);
    if (made->link)
        *made->link = made->next;
    if (made->link && made->next)
        made->next->link = made->link;
    made->link = NULL;
    pthread_mutex_unlock(&device->lock);
}

/* Ends the export. The wrapper that holds the inner buffer may free it in the last line. */
static void let_go(gpumem_export *made) {
    gpumem_buffer *buffer = made->buffer, *inner = made->inner;
    unlist(made);
    for (size_t i = 0; i < made->count; i++)
        gm_kept_file_close(&made->files[i]);
    free(made->fds);
    free(made->files);
    free(made->description);
    gm_bury(made);
    if (inner != buffer) {
        gm_meter_subtract(&inner->resource->meter, GM_EXPORTS, 1);
        gm_buffer_unref(inner);
    }
    gm_meter_subtract(&buffer->resource->meter, GM_EXPORTS, 1);
    gm_buffer_unref(buffer);
}

/* The next descriptor, and what it is. */
static gpumem_status add_descriptor(gpumem_export *made, gpumem_device *device,
                                    CUmemGenericAllocationHandle handle) {
    int fd = -1;
    gpumem_status status = gm_vmm_export_fd(device, handle, &fd);
    if (status != GPUMEM_OK)
        return status;
    if (!gm_kept_file_set(fd, &made->files[made->count])) {
        int error = errno;
        close(fd);
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, error, "fstat", "cannot keep a descriptor");
    }
    made->fds[made->count++] = fd;
    return GPUMEM_OK;
}

static gpumem_status fill(gpumem_export *made, const struct gm_chunk *chunks, size_t count) {
    gpumem_buffer *buffer = made->inner;
    gpumem_device *device = buffer->resource->device;
    unsigned char uuid[16];
    if (count > GM_DESCRIPTION_MOST_CHUNKS)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "%zu handles are too many to export", count);
    gpumem_status status = name_buffer(buffer);
    if (status == GPUMEM_OK)
        status = gm_device_uuid(device, uuid);
    if (status != GPUMEM_OK)
        return status;
    made->bytes = made->buffer->allocation.bytes;
    made->description =
        gm_description_write(buffer, made->bytes, uuid, chunks, count, &made->description_bytes);
    made->fds = malloc(count * sizeof *made->fds);
    made->files = malloc(count * sizeof *made->files);
    if (!made->description || !made->fds || !made->files)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for an export");
    while (made->count < count && status == GPUMEM_OK)
        status = add_descriptor(made, device, chunks[made->count].handle);
    return status;
}

static gpumem_status check_open(const gpumem_export *exported, size_t index) {
    if (gm_kept_file_is_open(&exported->files[index]))
        return GPUMEM_OK;
    return gm_fail_system(GPUMEM_ERROR_SYSTEM, EBADF, "fstat",
                          "descriptor %d of the export was closed by somebody else",
                          exported->fds[index]);
}

gpumem_status gm_export_check_open(const gpumem_export *exported) {
    gpumem_status status = GPUMEM_OK;
    for (size_t i = 0; i < exported->count && status == GPUMEM_OK; i++)
        status = check_open(exported, i);
    return status;
}

/* Memory that others will map is all there, and no work of former users is left on it. */
static gpumem_status prepare_memory(const gpumem_buffer *inner) {
    const struct gm_mapped *mapped = inner->resource->mapped;
    const gpumem_allocation *allocation = &inner->allocation;
    if (!mapped)
        return GPUMEM_OK;
    GM_REQUIRE(mapped->is_whole(allocation, 0, allocation->bytes),
               "gpumem_export_create: a part of the buffer was decommitted: recommit it first");
    return mapped->share(allocation);
}

gpumem_status gpumem_export_create(gpumem_buffer *buffer, gpumem_export **exported) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, "gpumem_export_create");
    GM_REQUIRE(exported, "gpumem_export_create: exported is NULL");
    gpumem_buffer *inner = gm_buffer_innermost(buffer);
    gpumem_status status = check(buffer, inner);
    if (status != GPUMEM_OK)
        return status;
    gpumem_export *made = calloc(1, sizeof *made);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for an export");
    made->generation = buffer->generation;
    hold(made, buffer, inner);
    status = prepare_memory(inner);
    const struct gm_chunk *chunks = NULL;
    size_t count = inner->resource->chunks(&inner->allocation, &chunks);
    if (status == GPUMEM_OK)
        status = fill(made, chunks, count);
    if (status != GPUMEM_OK) {
        let_go(made);
        return status;
    }
    list(made);
    *exported = made;
    return GPUMEM_OK;
}

gpumem_status gpumem_export_destroy(gpumem_export *exported) {
    GM_UNCANCELLED;
    if (!exported)
        return GPUMEM_OK;
    GM_CHECK(exported, "gpumem_export_destroy");
    let_go(exported);
    return GPUMEM_OK;
}

size_t gpumem_export_size(const gpumem_export *exported) {
    return exported->bytes;
}

size_t gpumem_export_descriptor_count(const gpumem_export *exported) {
    return exported->count;
}

gpumem_status gpumem_export_get_description(const gpumem_export *exported, const void **description,
                                            size_t *bytes) {
    GM_UNCANCELLED;
    GM_CHECK(exported, "gpumem_export_get_description");
    GM_REQUIRE(description && bytes, "gpumem_export_get_description: an output is NULL");
    *description = exported->description;
    *bytes = exported->description_bytes;
    return GPUMEM_OK;
}

gpumem_status gpumem_export_get_descriptor(const gpumem_export *exported, size_t index, int *fd) {
    GM_UNCANCELLED;
    GM_CHECK(exported, "gpumem_export_get_descriptor");
    GM_REQUIRE(fd, "gpumem_export_get_descriptor: fd is NULL");
    GM_REQUIRE(index < exported->count,
               "gpumem_export_get_descriptor: there is no descriptor %zu of %zu", index,
               exported->count);
    gpumem_status status = check_open(exported, index);
    if (status == GPUMEM_OK)
        *fd = exported->fds[index];
    return status;
}
