#include "memory/pool.h"

#include "base/cancel.h"
#include "base/options.h"
#include "memory/buffer.h"
#include "memory/capture.h"
#include "memory/current.h"
#include "memory/device.h"
#include "memory/driver_error.h"
#include "memory/pinning.h"
#include "memory/resource.h"
#include "memory/vmm.h"

#include <stdlib.h>

/* What the driver aligns allocations to. */
#define POOL_ALIGNMENT ((size_t)256)

struct pool_resource {
    gpumem_device *device;
    gpumem_resource *resource;
    struct gm_pool_settings settings;
};

static uint64_t attribute(const struct pool_resource *p, CUmemPool_attribute which) {
    cuuint64_t value = 0;
    CUresult result = p->device->cu->cuMemPoolGetAttribute(p->settings.pool, which, &value);
    return result == CUDA_SUCCESS ? value : 0;
}

/* What the pool keeps is pinned already; the rest is asked for. */
static gpumem_status begin_pinning(const struct pool_resource *p, size_t bytes, size_t *pinned) {
    *pinned = 0;
    if (!p->settings.host)
        return GPUMEM_OK;
    uint64_t reserved = attribute(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    uint64_t used = attribute(p, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    uint64_t kept = reserved > used ? reserved - used : 0;
    if (bytes <= kept)
        return GPUMEM_OK;
    gpumem_status status = gm_pinning_begin(bytes - (size_t)kept);
    if (status == GPUMEM_OK)
        *pinned = bytes - (size_t)kept;
    return status;
}

/* The driver says OUT_OF_MEMORY for both. */
static int is_over_maximum(const struct pool_resource *p, CUresult result, size_t bytes) {
    uint64_t maximum = p->settings.maximum;
    return result == CUDA_ERROR_OUT_OF_MEMORY && maximum &&
           (bytes > maximum || attribute(p, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) > maximum - bytes);
}

static gpumem_status refuse(const struct pool_resource *p, CUresult result, size_t bytes) {
    const gpumem_driver_api *cu = p->device->cu;
    const char *call = "cuMemAllocFromPoolAsync";
    if (is_over_maximum(p, result, bytes))
        return gm_cu_fail_as(GPUMEM_ERROR_OUT_OF_CAPACITY, cu, result, call,
                             "%zu bytes more would bring the %s over its maximum of %llu", bytes,
                             p->resource->kind, (unsigned long long)p->settings.maximum);
    if (p->settings.host)
        return gm_cu_fail_host(cu, result, call, "cannot get %zu bytes of pinned host memory",
                               bytes);
    return gm_cu_fail(cu, result, call, "cannot get %zu bytes from the %s of device %d", bytes,
                      p->resource->kind, p->device->ordinal);
}

/* The legacy stream is asked first: the driver would refuse, and spoil the capture for it. */
static CUresult stream_allows(const struct pool_resource *p, CUstream stream) {
    return gm_is_legacy(stream) &&
                   gm_capture_state(p->device->cu, stream, NULL) == GM_CAPTURE_IMPLICIT
               ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
               : CUDA_SUCCESS;
}

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    struct pool_resource *p = user;
    const gpumem_driver_api *cu = p->device->cu;
    size_t slack = request->alignment > POOL_ALIGNMENT ? request->alignment - POOL_ALIGNMENT : 0;
    if (request->bytes > SIZE_MAX - slack)
        return gm_fail(GPUMEM_ERROR_OUT_OF_MEMORY, "no pool has %zu bytes", request->bytes);
    size_t bytes = request->bytes + slack;
    CUdeviceptr base = 0;
    size_t pinning = 0;
    gpumem_status begun = begin_pinning(p, bytes, &pinning);
    if (begun != GPUMEM_OK)
        return begun;
    CUresult result = stream_allows(p, request->stream);
    if (result == CUDA_SUCCESS)
        result = cu->cuMemAllocFromPoolAsync(&base, bytes, p->settings.pool, request->stream);
    if (pinning)
        gm_pinning_end(pinning);
    if (result != CUDA_SUCCESS) {
        gpumem_status status = refuse(p, result, bytes);
        /* It may have taken effect: the driver reports earlier failures like this. */
        if (base && cu->cuMemFreeAsync(base, request->stream) != CUDA_SUCCESS)
            gm_meter_quarantine_memory(&p->resource->meter, bytes);
        return status;
    }
    CUdeviceptr pointer = (base + request->alignment - 1) & ~(CUdeviceptr)(request->alignment - 1);
    *allocation = (gpumem_allocation){
        .size = sizeof *allocation,
        .pointer = pointer,
        .host_pointer = p->settings.host ? (void *)(uintptr_t)pointer : NULL,
        .bytes = request->bytes,
        .committed_bytes = bytes,
        .capacity = request->bytes,
        .cookie = (void *)(uintptr_t)base,
    };
    if (p->settings.host)
        gm_meter_add(&p->resource->meter, GM_PINNED, bytes);
    return GPUMEM_OK;
}

/* Memory of a graph, which what is allocated during a capture is, belongs to no pool. */
static int is_of_a_pool(const gpumem_driver_api *cu, CUdeviceptr base) {
    CUmemoryPool pool = NULL;
    return cu->cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, base) ==
               CUDA_SUCCESS &&
           pool;
}

/* The driver's address, and in its lowest bit whether it was put off before. */
#define PUT_OFF_BIT ((uintptr_t)1)

static CUdeviceptr base_of(const gpumem_allocation *allocation) {
    return (CUdeviceptr)((uintptr_t)allocation->cookie & ~PUT_OFF_BIT);
}

static int put_off(struct pool_resource *p, const gpumem_allocation *allocation, CUstream stream) {
    gpumem_allocation marked = *allocation;
    marked.cookie = (void *)((uintptr_t)allocation->cookie | PUT_OFF_BIT);
    return gm_buffer_put_off(p->resource, &marked, stream);
}

/*
 * What a refusal means. A stream that captures takes back only what was allocated in that capture:
 * other memory waits until the capture has ended. Memory of a graph that has not run, or that was
 * spoilt, is not there: the graph has it, and nothing is lost.
 */
enum outcome { GIVEN_BACK, PUT_OFF, KEPT_BY_DRIVER };

static enum outcome outcome_of(struct pool_resource *p, const gpumem_allocation *allocation,
                               CUstream stream, CUresult result) {
    if (result == CUDA_SUCCESS)
        return GIVEN_BACK;
    if (result != CUDA_ERROR_INVALID_VALUE && result != CUDA_ERROR_STREAM_CAPTURE_INVALIDATED &&
        result != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return KEPT_BY_DRIVER;
    if (!is_of_a_pool(p->device->cu, base_of(allocation)))
        return GIVEN_BACK;
    /* Put off also where no capture is seen: it may have ended since. What comes back from there is
     * freed on a stream of ours, which never captures, so that a second refusal is final. */
    int again = ((uintptr_t)allocation->cookie & PUT_OFF_BIT) != 0;
    return !again && put_off(p, allocation, stream) == 0 ? PUT_OFF : KEPT_BY_DRIVER;
}

static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    struct pool_resource *p = user;
    CUresult result = stream_allows(p, stream);
    if (result == CUDA_SUCCESS)
        result = p->device->cu->cuMemFreeAsync(base_of(allocation), stream);
    enum outcome outcome = outcome_of(p, allocation, stream, result);
    if (outcome == PUT_OFF)
        return;
    if (outcome == KEPT_BY_DRIVER)
        gm_meter_quarantine_memory(&p->resource->meter, allocation->committed_bytes);
    if (p->settings.host)
        gm_meter_subtract(&p->resource->meter, GM_PINNED, allocation->committed_bytes);
}

static void properties(void *user, gpumem_resource_properties *out) {
    struct pool_resource *p = user;
    out->device_accessible = 1;
    out->host_accessible = p->settings.host;
    out->stream_ordered = 1;
    out->location = p->settings.location;
    out->handle_type = p->settings.handle_type;
}

/* Of a pool of others we cannot say what part of its cache is ours. */
static void stats(void *user, gpumem_stats *out) {
    const struct pool_resource *p = user;
    if (!p->settings.own)
        return;
    struct gm_relaxed relaxed; /* these are called with nothing entered */
    gm_relax(&relaxed, p->device->cu);
    uint64_t reserved = attribute(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    uint64_t used = attribute(p, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    gm_unrelax(&relaxed, p->device->cu);
    if (reserved > used) {
        out->cached_bytes += reserved - used;
        out->committed_bytes += reserved - used;
        if (out->committed_high < out->committed_bytes)
            out->committed_high = out->committed_bytes;
    }
}

static void trim(void *user, size_t keep_bytes) {
    struct pool_resource *p = user;
    if (!p->settings.own)
        return;
    /* The driver counts what is in use into what it keeps. */
    uint64_t used = attribute(p, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    size_t keep = keep_bytes > SIZE_MAX - used ? SIZE_MAX : keep_bytes + (size_t)used;
    (void)p->device->cu->cuMemPoolTrimTo(p->settings.pool, keep);
}

static void destroy(void *user) {
    struct pool_resource *p = user;
    if (p->settings.own && p->device->cu->cuMemPoolDestroy(p->settings.pool) != CUDA_SUCCESS)
        gm_meter_quarantine(&p->device->meter, 0);
    free(p);
}

gpumem_status gm_pool_resource(gpumem_device *device, const struct gm_pool_settings *settings,
                               gpumem_resource **resource) {
    const gpumem_resource_ops ops = {
        .size = sizeof ops,
        .kind = settings->kind,
        .allocate = allocate,
        .deallocate = deallocate,
        .properties = properties,
        .stats = stats,
        .trim = trim,
        .destroy = destroy,
    };
    struct pool_resource *p = calloc(1, sizeof *p);
    gpumem_status status;
    if (p) {
        p->device = device;
        p->settings = *settings;
        status = gm_resource_make(device, &ops, p, NULL, &p->resource);
    } else {
        status = gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    }
    if (status == GPUMEM_OK) {
        *resource = p->resource;
        return GPUMEM_OK;
    }
    if (settings->own && device->cu->cuMemPoolDestroy(settings->pool) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->meter, 0);
    free(p);
    return status;
}

static void discard_pool(gpumem_device *device, CUmemoryPool pool) {
    if (pool && device->cu->cuMemPoolDestroy(pool) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->meter, 0);
}

gpumem_status gm_pool_create(gpumem_device *device, const CUmemPoolProps *props,
                             uint64_t release_threshold, CUmemoryPool *pool) {
    const gpumem_driver_api *cu = device->cu;
    CUmemoryPool made = NULL;
    CUresult result = cu->cuMemPoolCreate(&made, props);
    if (result != CUDA_SUCCESS) {
        gpumem_status status =
            props->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA
                ? gm_cu_fail(cu, result, "cuMemPoolCreate",
                             "device %d gives no memory pool on NUMA node %d", device->ordinal,
                             props->location.id)
                : gm_cu_fail(cu, result, "cuMemPoolCreate", "device %d gives no such memory pool",
                             device->ordinal);
        discard_pool(device, made);
        return status;
    }
    cuuint64_t threshold = release_threshold;
    result = cu->cuMemPoolSetAttribute(made, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
    if (result != CUDA_SUCCESS) {
        gpumem_status status =
            gm_cu_fail(cu, result, "cuMemPoolSetAttribute", "cannot set the release threshold %llu",
                       (unsigned long long)release_threshold);
        discard_pool(device, made);
        return status;
    }
    *pool = made;
    return GPUMEM_OK;
}

/* ---- The device pool ------------------------------------------------------------------------- */

static gpumem_status own_pool(gpumem_device *device, const gpumem_device_pool_options *options,
                              struct gm_pool_settings *settings) {
    settings->own = 1;
    settings->maximum = options->maximum_bytes;
    settings->handle_type = options->ipc ? options->handle_type : GPUMEM_HANDLE_NONE;
    CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes = gm_vmm_handle_type(settings->handle_type),
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->handle},
        .maxSize = options->maximum_bytes,
    };
    uint64_t threshold = options->release_threshold ? options->release_threshold : UINT64_MAX;
    return gm_pool_create(device, &props, threshold, &settings->pool);
}

static gpumem_status found_pool(gpumem_device *device, gpumem_pool_choice choice,
                                struct gm_pool_settings *settings) {
    const gpumem_driver_api *cu = device->cu;
    int current = choice == GPUMEM_POOL_CURRENT;
    CUresult result = current ? cu->cuDeviceGetMemPool(&settings->pool, device->handle)
                              : cu->cuDeviceGetDefaultMemPool(&settings->pool, device->handle);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    return gm_cu_fail(cu, result, current ? "cuDeviceGetMemPool" : "cuDeviceGetDefaultMemPool",
                      "device %d has no memory pool", device->ordinal);
}

static gpumem_status find_pool(gpumem_device *device, const gpumem_device_pool_options *options,
                               struct gm_pool_settings *settings) {
    int special = options->release_threshold || options->maximum_bytes || options->ipc;
    GM_REQUIRE((unsigned)options->pool <= GPUMEM_POOL_OWN, "device pool: unknown pool choice %d",
               (int)options->pool);
    GM_REQUIRE(!special || options->pool != GPUMEM_POOL_DEFAULT,
               "device pool: the driver's default pool is not ours to change; choose "
               "GPUMEM_POOL_OWN for a threshold, a maximum or ipc");
    GM_REQUIRE((unsigned)options->handle_type <= GPUMEM_HANDLE_FABRIC,
               "device pool: unknown handle type %d", (int)options->handle_type);
    if (!gm_device_attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0))
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "device %d has no memory pools (attribute MEMORY_POOLS_SUPPORTED is 0)",
                       device->ordinal);
    if (special || options->pool == GPUMEM_POOL_OWN)
        return own_pool(device, options, settings);
    return found_pool(device, options->pool, settings);
}

gpumem_status gpumem_device_pool_resource_create(gpumem_device *device,
                                                 const gpumem_device_pool_options *given,
                                                 gpumem_resource **resource) {
    GM_UNCANCELLED;
    gpumem_device_pool_options options;
    GM_CHECK(device, "gpumem_device_pool_resource_create");
    GM_REQUIRE(resource, "gpumem_device_pool_resource_create: resource is NULL");
    gpumem_status status =
        gm_options_read("gpumem_device_pool_options", given, &options, sizeof options);
    if (status != GPUMEM_OK)
        return status;
    struct gm_current current;
    status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    struct gm_pool_settings settings = {.kind = "device_pool", .handle_type = GPUMEM_HANDLE_NONE};
    status = find_pool(device, &options, &settings);
    if (status == GPUMEM_OK)
        status = gm_pool_resource(device, &settings, resource);
    gm_current_leave(&current);
    return status;
}
