/* Imports: another process's memory, mapped once in this process however often it is received. */
#include "share/import.h"
#include "base/cancel.h"
#include "base/options.h"
#include "memory/core/current_context.h"
#include "memory/core/describe.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/object/buffer.h"
#include "memory/object/device.h"
#include "memory/object/resource.h"

#include <stdlib.h>
#include <string.h>

/* ---- The hidden resource that imported buffers belong to ------------------------------------- */

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    (void)user;
    (void)request;
    (void)allocation;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "imported memory is received, not allocated");
}

static void end_import(struct gm_import *import) {
    struct gm_meter *meter = import->extent.meter;
    gm_meter_subtract(meter, GM_RESERVED, import->extent.capacity);
    gm_meter_subtract(meter, GM_IMPORTED, import->extent.committed);
    gm_extent_destroy(&import->extent);
    gm_identity_destroy(&import->identity);
    free(import);
}

static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    gpumem_device *device = user;
    (void)stream; /* the memory is no longer in use: this resource is not stream-ordered */
    struct gm_import *import = allocation->cookie;
    struct gm_shared_lists *lists = gm_device_shared_lock(device);
    int last = --import->references == 0;
    for (struct gm_import **at = &lists->imports; last && *at; at = &(*at)->next) {
        if (*at == import) {
            *at = import->next;
            break;
        }
    }
    gm_device_shared_unlock(device);
    if (last)
        end_import(import);
}

static void properties(void *user, gpumem_resource_properties *out) {
    (void)user;
    out->device_accessible = 1;
}

static size_t chunks(const gpumem_allocation *allocation, const struct gm_chunk **out) {
    const struct gm_import *import = allocation->cookie;
    *out = import->extent.chunks;
    return import->extent.count;
}

static const gpumem_resource_ops ops = {
    .size = sizeof ops,
    .kind = "imported",
    .allocate = allocate,
    .deallocate = deallocate,
    .properties = properties,
};

/* The import does not change once made, and lives as long as a buffer of it. */
static void describe(const gpumem_buffer *buffer, struct gm_json *json) {
    const struct gm_import *import = buffer->allocation.cookie;
    if (!import->identity.peer.pid)
        return;
    gm_json_integer(json, "peer_pid", import->identity.peer.pid);
    gm_json_number(json, "peer_uid", import->identity.peer.uid);
}

static const struct gm_describe_ops description = {.buffer = describe};

static const struct gm_hidden_kind kind = {.ops = &ops, .chunks = chunks, .describe = &description};

/* ---- Buffers over imports -------------------------------------------------------------------- */

/* Adds a reference. */
static struct gm_import *find_locked(const struct gm_shared_lists *lists,
                                     const struct gm_identity *identity) {
    for (struct gm_import *i = lists->imports; i; i = i->next)
        if (gm_identity_equal(&i->identity, identity)) {
            i->references++;
            return i;
        }
    return NULL;
}

static struct gm_import *find(gpumem_device *device, const struct gm_identity *identity) {
    struct gm_import *found = find_locked(gm_device_shared_lock(device), identity);
    gm_device_shared_unlock(device);
    return found;
}

/* Adds a new import; or, if another thread was faster, destroys it and returns the other's. */
static struct gm_import *publish(gpumem_device *device, struct gm_import *import) {
    if (!import->identity.peer.pid)
        return import;
    struct gm_shared_lists *lists = gm_device_shared_lock(device);
    struct gm_import *known = find_locked(lists, &import->identity);
    if (!known) {
        import->next = lists->imports;
        lists->imports = import;
    }
    gm_device_shared_unlock(device);
    if (!known)
        return import;
    end_import(import);
    return known;
}

static void attach(gpumem_buffer *buffer, struct gm_import *import) {
    CUdeviceptr address = import->extent.address;
    const gpumem_allocation allocation = {
        .pointer = address,
        .host_pointer = import->host_accessible ? (void *)(uintptr_t)address : NULL,
        .bytes = (size_t)import->identity.bytes,
        .committed_bytes = import->extent.committed,
        .capacity = import->grows ? import->extent.capacity : (size_t)import->identity.bytes,
        .cookie = import,
    };
    gm_buffer_attach(buffer, &allocation);
}

/* A buffer of the hidden resource, without an import yet. */
static gpumem_status make_buffer(gpumem_device *device, gpumem_buffer **buffer) {
    gpumem_resource *resource;
    gpumem_status status = gm_resource_hidden(device, GM_HIDDEN_IMPORTED, &kind, &resource);
    return status == GPUMEM_OK ? gm_buffer_make(resource, NULL, buffer) : status;
}

/* ---- Mapping --------------------------------------------------------------------------------- */

/* Where the memory is, according to the driver and not to the other process. */
static gpumem_status ask_location(const gpumem_device *device, CUmemGenericAllocationHandle handle,
                                  CUmemLocation *location) {
    CUmemAllocationProp prop;
    gpumem_status status = gm_vmm_properties(device, handle, &prop);
    if (status == GPUMEM_OK)
        *location = prop.location;
    return status;
}

/* Memory received as one buffer has one location: access and a host pointer are for all of it. */
static gpumem_status one_location(const gpumem_device *device, const struct gm_chunk *chunk,
                                  size_t count, CUmemLocation *location) {
    gpumem_status status = ask_location(device, chunk[0].handle, location);
    for (size_t i = 1; i < count && status == GPUMEM_OK; i++) {
        CUmemLocation other = {0};
        status = ask_location(device, chunk[i].handle, &other);
        if (status == GPUMEM_OK && (other.type != location->type || other.id != location->id))
            status = gm_fail(GPUMEM_ERROR_DATA,
                             "handle %zu of %zu is memory of a different location than the first",
                             i, count);
    }
    return status;
}

static gpumem_status settle_access(struct gm_import *import) {
    gpumem_device *device = import->extent.device;
    CUmemLocation own = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->handle};
    CUmemAccess_flags flags = gm_vmm_access_flags(import->identity.access);
    import->access[0] = (CUmemAccessDesc){.location = own, .flags = flags};
    gm_extent_give(&import->extent, import->access, 1);
    if (import->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        if (import->location.id != device->handle)
            return gm_fail(GPUMEM_ERROR_NO_DEVICE, "the memory is on device %d, not on device %d",
                           import->location.id, device->handle);
        return GPUMEM_OK;
    }
    import->access[1] = (CUmemAccessDesc){.location = import->location, .flags = flags};
    gm_extent_give(&import->extent, import->access, 2);
    import->host_accessible = 1;
    return GPUMEM_OK;
}

/* The location of the first chunks decides the access; later chunks must have the same location. */
static gpumem_status check_place(struct gm_import *import, const struct gm_chunk *chunk,
                                 size_t count) {
    CUmemLocation location = {0};
    gpumem_status status = one_location(import->extent.device, chunk, count, &location);
    if (status != GPUMEM_OK)
        return status;
    if (!import->extent.count) {
        import->location = location;
        return settle_access(import);
    }
    if (location.type == import->location.type && location.id == import->location.id)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_DATA, "the added memory is of a different location than the rest");
}

void gm_import_release(struct gm_import *import, const struct gm_chunk *chunk, size_t count) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    while (count--)
        gm_vmm_release(import->extent.device, import->extent.meter, chunk[count].handle, 0);
    gm_error_restore(&saved);
}

gpumem_status gm_import_handles(struct gm_import *import, const struct gm_file *files, size_t count,
                                const int *fds, struct gm_chunk *out) {
    size_t i = 0;
    gpumem_status status = GPUMEM_OK;
    for (; i < count; i++) {
        out[i].bytes = (size_t)files[i].bytes;
        status =
            gm_vmm_import_fd(import->extent.device, import->extent.meter, fds[i], &out[i].handle);
        if (status != GPUMEM_OK)
            break;
    }
    if (status == GPUMEM_OK)
        status = check_place(import, out, count);
    if (status != GPUMEM_OK)
        gm_import_release(import, out, i);
    return status;
}

/* Growth may extend as far as the reserved addresses. */
static size_t reserve_for(const struct gm_import *import, size_t capacity) {
    size_t unit = import->extent.device->granularity, committed = import->identity.committed;
    if (capacity > SIZE_MAX - unit)
        return SIZE_MAX / unit * unit; /* which no driver has */
    capacity = (capacity + unit - 1) / unit * unit;
    return capacity > committed ? capacity : committed;
}

/* The import takes over the chunks; on failure they are given back. */
static gpumem_status map(struct gm_import *import, const struct gm_chunk *chunk, size_t count,
                         size_t capacity) {
    gpumem_status status = gm_extent_init(&import->extent, reserve_for(import, capacity),
                                          import->extent.device->granularity, 0);
    if (status == GPUMEM_OK) {
        status = gm_extent_adopt(&import->extent, chunk, count);
        if (status != GPUMEM_OK)
            gm_extent_destroy(&import->extent);
    }
    if (status != GPUMEM_OK) {
        gm_import_release(import, chunk, count);
        return status;
    }
    gm_meter_add(import->extent.meter, GM_RESERVED, import->extent.capacity);
    gm_meter_add(import->extent.meter, GM_IMPORTED, import->extent.committed);
    return GPUMEM_OK;
}

/*
 * Imports the descriptors, and maps them unless their memory is already mapped. The cache is
 * consulted after the import, never instead of it: it would otherwise vouch for unchecked
 * descriptors.
 */
static gpumem_status find_or_map(struct gm_import *import, const int *fds, size_t capacity,
                                 int *mapped, struct gm_import **out) {
    gpumem_device *device = import->extent.device;
    size_t count = import->identity.count;
    struct gm_chunk *chunk = calloc(count, sizeof *chunk);
    if (!chunk)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for %zu handles", count);
    gpumem_status status = gm_import_handles(import, import->identity.files, count, fds, chunk);
    struct gm_import *known = status == GPUMEM_OK ? find(device, &import->identity) : NULL;
    if (known) {
        gm_import_release(import, chunk, count);
        *out = known;
    } else if (status == GPUMEM_OK) {
        status = map(import, chunk, count, capacity);
        *mapped = status == GPUMEM_OK;
        if (*mapped)
            *out = publish(device, import);
    }
    free(chunk);
    return status;
}

/* An import that can grow is not shared, so its identity has no peer. */
static void note_growth(struct gm_import *import, const struct gm_description_head *head,
                        const struct gm_import_terms *terms) {
    import->grows = terms->capacity != 0;
    import->epoch = head->epoch;
    import->connection = terms->connection;
    if (terms->peer)
        import->peer = *terms->peer;
}

static gpumem_status make_import(gpumem_resource *resource, const struct gm_description_head *head,
                                 const unsigned char *sizes, const int *fds,
                                 const struct gm_import_terms *terms, struct gm_import **out) {
    struct gm_import *import = calloc(1, sizeof *import);
    if (!import)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for an import");
    gpumem_status status = gm_identity_init(&import->identity, head, sizes, fds, terms->access,
                                            terms->capacity ? NULL : terms->peer);
    if (status != GPUMEM_OK) {
        free(import);
        return status;
    }
    gm_extent_prepare(&import->extent, resource->device, &resource->meter);
    import->references = 1;
    note_growth(import, head, terms);
    int mapped = 0;
    status = find_or_map(import, fds, terms->capacity, &mapped, out);
    if (!mapped) {
        gm_identity_destroy(&import->identity);
        free(import);
    }
    return status;
}

gpumem_status gm_import_map(gpumem_device *device, const struct gm_description_head *head,
                            const unsigned char *sizes, const int *fds,
                            const struct gm_import_terms *terms, gpumem_buffer **buffer) {
    gpumem_buffer *made;
    gpumem_status status = make_buffer(device, &made);
    if (status != GPUMEM_OK)
        return status;
    struct gm_current current;
    struct gm_import *import = NULL;
    status = gm_current_enter(&current, device);
    if (status == GPUMEM_OK) {
        status = make_import(made->resource, head, sizes, fds, terms, &import);
        gm_current_leave(&current);
    }
    if (status != GPUMEM_OK) {
        gm_buffer_discard(made);
        return status;
    }
    attach(made, import);
    made->read_only = terms->access == GPUMEM_ACCESS_READ;
    *buffer = made;
    return GPUMEM_OK;
}

struct gm_import *gm_import_that_grows(const gpumem_buffer *buffer) {
    if (buffer->resource->ops.allocate != allocate) /* not of this kind */
        return NULL;
    struct gm_import *import = buffer->allocation.cookie;
    return import->grows ? import : NULL;
}

/* ---- The public door, without a socket ------------------------------------------------------- */

gpumem_status gm_share_options(const gpumem_device *device, const gpumem_share_options *given,
                               gpumem_share_options *options) {
    gpumem_status status = GM_OPTIONS_READ(gpumem_share_options, given, options);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(options->access == GPUMEM_ACCESS_READ_WRITE || options->access == GPUMEM_ACCESS_READ,
               "import: access must be READ_WRITE or READ");
    if (!options->timeout_ms)
        options->timeout_ms = GM_SHARE_TIMEOUT_MS;
    if (device && !options->maximum_bytes) {
        CUresult result = device->cu->cuDeviceTotalMem_v2(&options->maximum_bytes, device->handle);
        if (result != CUDA_SUCCESS)
            return gm_cu_fail(device->cu, result, "cuDeviceTotalMem", "device %d", device->ordinal);
    }
    return GPUMEM_OK;
}

gpumem_status gpumem_import_create(gpumem_device *device, const void *description,
                                   size_t description_bytes, const int *descriptors,
                                   size_t descriptor_count, const gpumem_share_options *given,
                                   gpumem_buffer **buffer) {
    GM_UNCANCELLED;
    gpumem_share_options options;
    struct gm_incoming incoming;
    GM_CHECK(device, "gpumem_import_create");
    GM_REQUIRE(description && descriptors && buffer, "gpumem_import_create: an argument is NULL");
    gpumem_status status = gm_share_options(device, given, &options);
    if (status == GPUMEM_OK)
        status = gm_incoming_read(device, description, description_bytes, options.maximum_bytes,
                                  &incoming);
    if (status != GPUMEM_OK)
        return status;
    size_t wanted = gm_incoming_descriptors(&incoming);
    if (descriptor_count != wanted)
        return gm_fail(GPUMEM_ERROR_DATA,
                       "the description needs %zu descriptors, but %zu are given", wanted,
                       descriptor_count);
    /* The exporter is not known here, so it is mapped separately. */
    const struct gm_import_terms terms = {.access = options.access, .capacity = options.capacity};
    gpumem_buffer *made;
    status = gm_incoming_map(device, &incoming, descriptors, &terms, &made);
    if (status == GPUMEM_OK)
        *buffer = made;
    return status;
}
