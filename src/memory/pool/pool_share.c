/* Pools and their buffers between processes: the owner exports, the other imports. */
#include "base/cancel.h"
#include "base/descriptor.h"
#include "base/options.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/object/buffer.h"
#include "memory/object/shortage.h"
#include "memory/pool/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const unsigned char nameless[16];

/* ---- The allocation handle ------------------------------------------------------------------- */

static gpumem_status refused(const struct gm_pool *p, CUresult result) {
    return gm_cu_fail(p->device->cu, result, "cuMemPoolExportToShareableHandle",
                      "the %s of device %d cannot be exported", p->resource->kind,
                      p->device->ordinal);
}

static gpumem_status export_descriptor(struct gm_pool *p) {
    int made = -1;
    CUresult result = p->device->cu->cuMemPoolExportToShareableHandle(
        &made, p->settings.pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result != CUDA_SUCCESS) {
        gpumem_status status = refused(p, result);
        if (made >= 0) /* it was created nevertheless */
            close(made);
        return status;
    }
    made = gm_fd_keep(made);
    if (made >= 0 && gm_kept_file_set(made, &p->descriptor))
        return GPUMEM_OK;
    int error = errno;
    if (made >= 0)
        close(made);
    return gm_fail_system(GPUMEM_ERROR_SYSTEM, error, "fcntl", "an exported descriptor");
}

static gpumem_status export_fabric(struct gm_pool *p) {
    CUresult result = p->device->cu->cuMemPoolExportToShareableHandle(&p->fabric, p->settings.pool,
                                                                      CU_MEM_HANDLE_TYPE_FABRIC, 0);
    return result == CUDA_SUCCESS ? GPUMEM_OK : refused(p, result);
}

/* The pool's lock is held, and the device's context current. */
static gpumem_status export_once(struct gm_pool *p) {
    if (p->exported)
        return GPUMEM_OK;
    gpumem_status status =
        p->settings.handle_type == GPUMEM_HANDLE_FABRIC ? export_fabric(p) : export_descriptor(p);
    p->exported = status == GPUMEM_OK;
    return status;
}

static gpumem_status may_export(const struct gm_pool *p) {
    if (p->settings.mapped)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "only its owner, another process, can export the pool");
    if (p->settings.handle_type == GPUMEM_HANDLE_NONE)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "the %s was not made for sharing; create it with ipc", p->resource->kind);
    return GPUMEM_OK;
}

static gpumem_status export_pool(struct gm_pool *p) {
    struct gm_current current;
    gpumem_status status = may_export(p);
    if (status == GPUMEM_OK)
        status = gm_current_enter(&current, p->device);
    if (status != GPUMEM_OK)
        return status;
    pthread_mutex_lock(&p->lock);
    status = export_once(p);
    pthread_mutex_unlock(&p->lock);
    gm_current_leave(&current);
    return status;
}

gpumem_status gpumem_pool_get_share_handle(gpumem_resource *resource,
                                           gpumem_pool_share_handle *handle) {
    GM_UNCANCELLED;
    struct gm_pool *p;
    gpumem_status status = gm_pool_find(resource, "gpumem_pool_get_share_handle", &p);
    if (status == GPUMEM_OK)
        status = export_pool(p);
    if (status != GPUMEM_OK)
        return status;
    const struct gm_pool_settings *s = &p->settings;
    gpumem_pool_share_handle filled = {
        .size = sizeof filled,
        .type = s->handle_type,
        .descriptor = p->descriptor.fd,
        .location = s->location,
        .numa_node = s->numa_node,
    };
    if (filled.descriptor >= 0 && !gm_kept_file_is_open(&p->descriptor))
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, EBADF, "fstat",
                              "descriptor %d of the pool was closed by other code",
                              filled.descriptor);
    memcpy(filled.fabric, p->fabric.data, sizeof filled.fabric);
    memcpy(filled.uuid, s->uuid, sizeof filled.uuid);
    return GM_RESULT_WRITE(gpumem_pool_share_handle, handle, &filled);
}

/* ---- Importing a pool ------------------------------------------------------------------------ */

static gpumem_status read_handle(const gpumem_pool_share_handle *given,
                                 gpumem_pool_share_handle *handle) {
    GM_REQUIRE(given && given->size, "gpumem_pool_from_share_handle: no handle is given");
    gpumem_status status = GM_OPTIONS_READ(gpumem_pool_share_handle, given, handle);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(handle->type == GPUMEM_HANDLE_POSIX_FD || handle->type == GPUMEM_HANDLE_FABRIC,
               "gpumem_pool_from_share_handle: a pool has no handle of type %d", (int)handle->type);
    GM_REQUIRE((unsigned)handle->location <= GPUMEM_LOCATION_HOST_NUMA,
               "gpumem_pool_from_share_handle: no pool is at location %d", (int)handle->location);
    GM_REQUIRE(handle->type == GPUMEM_HANDLE_FABRIC || handle->descriptor >= 0,
               "gpumem_pool_from_share_handle: %d is not a descriptor", handle->descriptor);
    return GPUMEM_OK;
}

static gpumem_status import_from(gpumem_device *device, void *handle,
                                 CUmemAllocationHandleType type, CUmemoryPool *pool) {
    CUmemoryPool made = NULL;
    CUresult result = device->cu->cuMemPoolImportFromShareableHandle(&made, handle, type, 0);
    if (result == CUDA_SUCCESS) {
        *pool = made;
        return GPUMEM_OK;
    }
    gpumem_status status =
        gm_cu_fail(device->cu, result, "cuMemPoolImportFromShareableHandle",
                   "device %d does not accept the handle as a pool", device->ordinal);
    gm_pool_discard(device, made);
    return status;
}

/* The driver gets a duplicate, because it may keep or close what it is given. One that it closed is
 * not closed a second time: the number may belong to other code by then. */
static gpumem_status import_descriptor(gpumem_device *device, int fd, CUmemoryPool *pool) {
    struct gm_kept_file file = GM_NO_KEPT_FILE;
    int own = gm_fd_duplicate(fd);
    if (own < 0 || !gm_kept_file_set(own, &file)) {
        int error = errno;
        if (own >= 0)
            close(own);
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, error, "fcntl",
                              "descriptor %d cannot be imported as a pool", fd);
    }
    gpumem_status status =
        import_from(device, (void *)(intptr_t)own, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, pool);
    gm_kept_file_close(&file);
    return status;
}

static gpumem_status import_pool(gpumem_device *device, const gpumem_pool_share_handle *handle,
                                 CUmemoryPool *pool) {
    if (handle->type != GPUMEM_HANDLE_FABRIC)
        return import_descriptor(device, handle->descriptor, pool);
    CUmemFabricHandle fabric;
    memcpy(fabric.data, handle->fabric, sizeof fabric.data);
    return import_from(device, &fabric, CU_MEM_HANDLE_TYPE_FABRIC, pool);
}

/* Errors about the request itself, in contrast to running out of memory, or a lost device. */
static int is_verdict(int code) {
    return code == CUDA_ERROR_INVALID_VALUE || code == CUDA_ERROR_INVALID_DEVICE ||
           code == CUDA_ERROR_NOT_SUPPORTED || code == CUDA_ERROR_NOT_PERMITTED;
}

/* Without access for the device the CPU can still use the memory. */
static gpumem_status open_import(gpumem_device *device, struct gm_pool_settings *settings) {
    if (!settings->host)
        return GPUMEM_OK;
    gpumem_status status = gm_pool_open_to_device(device, settings->pool);
    if (status == GPUMEM_OK || !is_verdict(gpumem_last_error()->driver_code))
        return status;
    settings->closed = 1;
    snprintf(settings->note, sizeof settings->note, "for the CPU alone: %s",
             gpumem_last_error()->message);
    return GPUMEM_OK;
}

/* The context is current. */
static gpumem_status make_mapped(gpumem_device *device, const gpumem_pool_share_handle *handle,
                                 int hidden, gpumem_resource **resource) {
    int host = handle->location != GPUMEM_LOCATION_DEVICE;
    struct gm_pool_settings settings = {
        .kind = host ? "pinned_pool" : "device_pool",
        .own = 1,
        .hidden = hidden,
        .host = host,
        .mapped = 1,
        .location = handle->location,
        .numa_node = host ? handle->numa_node : -1,
        .handle_type = handle->type,
        .has_uuid = memcmp(handle->uuid, nameless, sizeof nameless) != 0,
    };
    memcpy(settings.uuid, handle->uuid, sizeof settings.uuid);
    gpumem_status status = import_pool(device, handle, &settings.pool);
    if (status != GPUMEM_OK)
        return status;
    status = open_import(device, &settings);
    if (status == GPUMEM_OK)
        return gm_pool_resource(device, &settings, resource);
    gm_pool_discard(device, settings.pool);
    return status;
}

gpumem_status gm_pool_map(gpumem_device *device, const gpumem_pool_share_handle *given, int hidden,
                          gpumem_resource **resource) {
    gpumem_pool_share_handle handle;
    gpumem_status status = read_handle(given, &handle);
    struct gm_current current;
    if (status == GPUMEM_OK)
        status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    status = make_mapped(device, &handle, hidden, resource);
    gm_current_leave(&current);
    return status;
}

gpumem_status gpumem_pool_from_share_handle(gpumem_device *device,
                                            const gpumem_pool_share_handle *given,
                                            gpumem_resource **resource) {
    GM_UNCANCELLED;
    GM_CHECK(device, "gpumem_pool_from_share_handle");
    GM_REQUIRE(resource, "gpumem_pool_from_share_handle: resource is NULL");
    return gm_pool_map(device, given, 0, resource);
}

/* ---- Exporting a buffer ---------------------------------------------------------------------- */

/* A cache divides the pool's allocations; the library's wrappers pass them on unchanged. */
struct gm_pool *gm_pool_behind(const gpumem_buffer *buffer) {
    const gpumem_resource *resource = buffer->resource;
    while (resource->upstream && !resource->apart && !resource->fast)
        resource = resource->upstream;
    return gm_pool_of(resource);
}

static gpumem_status export_pointer(struct gm_pool *p, CUdeviceptr base,
                                    CUmemPoolPtrExportData *data) {
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, p->device);
    if (status != GPUMEM_OK)
        return status;
    CUresult result = p->device->cu->cuMemPoolExportPointer(data, base);
    if (result != CUDA_SUCCESS)
        status = gm_cu_fail(p->device->cu, result, "cuMemPoolExportPointer",
                            "a buffer of the %s cannot be exported", p->resource->kind);
    gm_current_leave(&current);
    return status;
}

gpumem_status gpumem_pool_export_buffer(gpumem_buffer *buffer, gpumem_pool_share_buffer *shared) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, "gpumem_pool_export_buffer");
    GM_REQUIRE(!(buffer->freed & GM_FREED), "gpumem_pool_export_buffer: the buffer was freed");
    const gpumem_buffer *inner = gm_buffer_innermost(buffer);
    struct gm_pool *p = inner ? gm_pool_behind(inner) : NULL;
    if (!p || inner->allocation.pointer != buffer->allocation.pointer)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "a buffer of the %s resource is not one of a pool of the driver",
                       buffer->resource->kind);
    CUdeviceptr base = (CUdeviceptr)(uintptr_t)inner->allocation.cookie;
    CUmemPoolPtrExportData data = {{0}};
    gpumem_status status = export_pool(p); /* which the driver requires first */
    if (status == GPUMEM_OK)
        status = export_pointer(p, base, &data);
    if (status != GPUMEM_OK)
        return status;
    gpumem_pool_share_buffer filled = {
        .size = sizeof filled,
        .bytes = buffer->allocation.bytes,
        .offset = buffer->allocation.pointer - base,
    };
    memcpy(filled.pool, p->settings.uuid, sizeof filled.pool);
    _Static_assert(sizeof filled.data == sizeof data, "the driver's 64 bytes");
    memcpy(filled.data, &data, sizeof filled.data);
    return GM_RESULT_WRITE(gpumem_pool_share_buffer, shared, &filled);
}

/* ---- Importing a buffer ---------------------------------------------------------------------- */

/* Its size is only the other process's claim, to be checked with the driver. */
static gpumem_status check_size(const struct gm_pool *p, CUdeviceptr base, uint64_t wanted) {
    const gpumem_driver_api *cu = p->device->cu;
    size_t bytes = 0;
    CUresult result = cu->cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, base);
    if (result != CUDA_SUCCESS && !is_verdict((int)result))
        return gm_cu_fail(cu, result, "cuPointerGetAttribute",
                          "cannot get the size of received memory");
    if (result != CUDA_SUCCESS || wanted <= bytes)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_DATA,
                   "the buffer should end at %llu bytes, but the received memory has %zu",
                   (unsigned long long)wanted, bytes);
}

/* So is its location. */
static gpumem_status check_place(const struct gm_pool *p, CUdeviceptr base) {
    const gpumem_driver_api *cu = p->device->cu;
    unsigned type = 0;
    int ordinal = -1;
    CUresult result = cu->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, base);
    if (result == CUDA_SUCCESS && (type == CU_MEMORYTYPE_HOST) != (p->settings.host != 0))
        return gm_fail(GPUMEM_ERROR_DATA, "the pool was received as one of %s memory, but is not",
                       p->settings.host ? "host" : "device");
    if (result == CUDA_SUCCESS && !p->settings.host)
        result = cu->cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, base);
    if (result == CUDA_SUCCESS && ordinal >= 0 && ordinal != p->device->handle)
        return gm_fail(GPUMEM_ERROR_NO_DEVICE, "the memory is on device %d, not on device %d",
                       ordinal, p->device->handle);
    if (result == CUDA_SUCCESS || is_verdict((int)result))
        return GPUMEM_OK;
    return gm_cu_fail(cu, result, "cuPointerGetAttribute",
                      "cannot get the location of received memory");
}

/* The address is no longer in use, and nothing else is on the stream: there is no work to wait for.
 * Afterwards it is gone, so the same buffer can be imported again, and the other process may free
 * it. The pool's lock is held. */
static void give_back(struct gm_pool *p, CUdeviceptr base) {
    const gpumem_driver_api *cu = p->device->cu;
    if (cu->cuMemFreeAsync(base, p->stream) != CUDA_SUCCESS)
        gm_meter_quarantine(&p->resource->meter, 0);
    else
        (void)cu->cuStreamSynchronize(p->stream);
}

static gpumem_status import_pointer(struct gm_pool *p, const gpumem_pool_share_buffer *shared,
                                    CUdeviceptr *base) {
    const gpumem_driver_api *cu = p->device->cu;
    CUmemPoolPtrExportData data;
    memcpy(&data, shared->data, sizeof data);
    CUdeviceptr made = 0;
    CUresult result = cu->cuMemPoolImportPointer(&made, p->settings.pool, &data);
    if (result == CUDA_SUCCESS) {
        *base = made;
        return GPUMEM_OK;
    }
    /* An H200 imports a host pool's pointer only once, a device pool's any number of times. */
    struct gm_pool_import *same = result == CUDA_ERROR_ALREADY_MAPPED ? p->imports : NULL;
    while (same && memcmp(&same->data, &data, sizeof data) != 0)
        same = same->next;
    if (same) {
        *base = same->base;
        return GPUMEM_OK;
    }
    gpumem_status status = gm_cu_fail_as(
        result == CUDA_ERROR_INVALID_VALUE ? GPUMEM_ERROR_DATA : gm_status_of(result), cu, result,
        "cuMemPoolImportPointer", "the received data is not an exported buffer of this pool");
    /* If it took effect nevertheless, another buffer may be at the address. */
    struct gm_pool_import *known = p->imports;
    while (known && known->base != made)
        known = known->next;
    if (made && !known)
        give_back(p, made);
    return status;
}

/* Counts one more buffer at an imported address. The pool's lock is held; `fresh` becomes part of
 * the list or remains the caller's. */
static gpumem_status attach(struct gm_pool *p, const gpumem_pool_share_buffer *shared,
                            struct gm_pool_import **fresh, CUdeviceptr *base) {
    gpumem_status status = import_pointer(p, shared, base);
    if (status != GPUMEM_OK)
        return status;
    struct gm_pool_import *known = p->imports;
    while (known && known->base != *base)
        known = known->next;
    status = check_size(p, *base, shared->offset + shared->bytes);
    if (status == GPUMEM_OK && !known)
        status = check_place(p, *base);
    if (status != GPUMEM_OK) {
        if (!known)
            give_back(p, *base);
        return status;
    }
    if (known) {
        known->references++;
        return GPUMEM_OK;
    }
    struct gm_pool_import *import = *fresh;
    *fresh = NULL;
    *import = (struct gm_pool_import){.base = *base,
                                      .bytes = (size_t)(shared->offset + shared->bytes),
                                      .references = 1,
                                      .next = p->imports};
    memcpy(&import->data, shared->data, sizeof import->data);
    p->imports = import;
    gm_meter_add(&p->resource->meter, GM_IMPORTED, import->bytes);
    return GPUMEM_OK;
}

void gm_pool_import_end(struct gm_pool *p, CUdeviceptr base) {
    pthread_mutex_lock(&p->lock);
    struct gm_pool_import **at = &p->imports, *import;
    while (*at && (*at)->base != base)
        at = &(*at)->next;
    import = *at;
    int last = import && --import->references == 0;
    if (last) {
        *at = import->next;
        gm_meter_subtract(&p->resource->meter, GM_IMPORTED, import->bytes);
        give_back(p, base);
    }
    pthread_mutex_unlock(&p->lock);
    if (last)
        free(import);
}

gpumem_status gm_pool_import(struct gm_pool *p, const gpumem_pool_share_buffer *shared,
                             CUdeviceptr *base) {
    struct gm_current current;
    struct gm_pool_import *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for an import");
    gpumem_status status = gm_current_enter(&current, p->device);
    if (status == GPUMEM_OK) {
        CUstream stream; /* on which it is given back */
        status = gm_pool_stream(p, &stream);
        if (status == GPUMEM_OK) {
            pthread_mutex_lock(&p->lock);
            status = attach(p, shared, &fresh, base);
            pthread_mutex_unlock(&p->lock);
        }
        gm_current_leave(&current);
    }
    free(fresh);
    return status;
}

/* A pool with an unknown UUID accepts all. */
static int is_other_pool(struct gm_pool *p, const unsigned char uuid[16]) {
    pthread_mutex_lock(&p->lock);
    int other = p->settings.has_uuid && memcmp(uuid, p->settings.uuid, 16) != 0;
    pthread_mutex_unlock(&p->lock);
    return other && memcmp(uuid, nameless, sizeof nameless) != 0;
}

static gpumem_status read_shared(struct gm_pool *p, const gpumem_pool_share_buffer *given,
                                 gpumem_pool_share_buffer *shared) {
    GM_REQUIRE(given && given->size, "gpumem_pool_import_buffer: nothing is given");
    gpumem_status status = GM_OPTIONS_READ(gpumem_pool_share_buffer, given, shared);
    if (status != GPUMEM_OK)
        return status;
    if (!shared->bytes || shared->bytes > SIZE_MAX / 2 || shared->offset > SIZE_MAX / 2)
        return gm_fail(GPUMEM_ERROR_DATA, "a buffer of %llu bytes at %llu is impossible",
                       (unsigned long long)shared->bytes, (unsigned long long)shared->offset);
    if (is_other_pool(p, shared->pool))
        return gm_fail(GPUMEM_ERROR_DATA,
                       "the buffer is of another pool (%02x%02x%02x%02x-...); ask "
                       "gpumem_pool_from_registry for it",
                       shared->pool[0], shared->pool[1], shared->pool[2], shared->pool[3]);
    return GPUMEM_OK;
}

gpumem_status gpumem_pool_import_buffer(gpumem_resource *resource,
                                        const gpumem_pool_share_buffer *given,
                                        gpumem_buffer **buffer) {
    GM_UNCANCELLED;
    struct gm_pool *p;
    gpumem_pool_share_buffer shared;
    gpumem_status status = gm_pool_find(resource, "gpumem_pool_import_buffer", &p);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(buffer, "gpumem_pool_import_buffer: buffer is NULL");
    GM_REQUIRE(p->settings.mapped, "gpumem_pool_import_buffer: the pool is not that of another "
                                   "process; import it with gpumem_pool_from_share_handle");
    status = read_shared(p, given, &shared);
    gpumem_buffer *made;
    if (status == GPUMEM_OK)
        status = gm_buffer_make(resource, GPUMEM_STREAM_NONE, &made);
    if (status != GPUMEM_OK)
        return status;
    CUdeviceptr base = 0;
    status = gm_pool_import(p, &shared, &base);
    if (status != GPUMEM_OK) {
        gm_buffer_discard(made);
        return gm_tell_shortage(p->device, resource, shared.bytes, status);
    }
    CUdeviceptr pointer = base + shared.offset;
    const gpumem_allocation allocation = {
        .pointer = pointer,
        .host_pointer = p->settings.host ? (void *)(uintptr_t)pointer : NULL,
        .bytes = (size_t)shared.bytes,
        .committed_bytes = (size_t)(shared.offset + shared.bytes),
        .capacity = (size_t)shared.bytes,
        .cookie = (void *)(uintptr_t)base,
    };
    gm_buffer_attach(made, &allocation);
    *buffer = made;
    return GPUMEM_OK;
}
