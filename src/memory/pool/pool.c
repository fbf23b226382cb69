#include "memory/pool/pool.h"

#include "base/cancel.h"
#include "base/options.h"
#include "memory/core/capture.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/host/pinning.h"
#include "memory/object/buffer.h"
#include "memory/object/device.h"
#include "memory/object/queued_frees.h"
#include "memory/object/resource.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Memory that the pool keeps is already pinned; the rest is checked first. */
static gpumem_status begin_pinning(const struct gm_pool *p, size_t bytes, size_t *pinned) {
    *pinned = 0;
    if (!p->settings.host)
        return GPUMEM_OK;
    uint64_t reserved = gm_pool_number(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    uint64_t used = gm_pool_number(p, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    uint64_t kept = reserved > used ? reserved - used : 0;
    if (bytes <= kept)
        return GPUMEM_OK;
    gpumem_status status = gm_pinning_begin(bytes - (size_t)kept);
    if (status == GPUMEM_OK)
        *pinned = bytes - (size_t)kept;
    return status;
}

/* The legacy stream is queried first: the driver would refuse, and invalidate the capture. */
static CUresult stream_allows(const struct gm_pool *p, CUstream stream) {
    return gm_is_legacy(stream) &&
                   gm_capture_state(p->device->cu, stream, NULL) == GM_CAPTURE_IMPLICIT
               ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
               : CUDA_SUCCESS;
}

gpumem_status gm_pool_stream(struct gm_pool *p, CUstream *stream) {
    const gpumem_driver_api *cu = p->device->cu;
    gpumem_status status = GPUMEM_OK;
    pthread_mutex_lock(&p->lock);
    if (!p->stream) {
        CUstream made = NULL;
        CUresult result = cu->cuStreamCreate(&made, CU_STREAM_NON_BLOCKING);
        if (result == CUDA_SUCCESS) {
            p->stream = made;
        } else {
            status = gm_cu_fail(cu, result, "cuStreamCreate", "cannot create a stream on device %d",
                                p->device->ordinal);
            if (made && cu->cuStreamDestroy_v2(made) != CUDA_SUCCESS)
                gm_meter_quarantine(&p->device->meter, 0);
        }
    }
    *stream = p->stream;
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* Graph memory is plain device memory, whatever pool it was requested from. */
static gpumem_status refuse_capture(const struct gm_pool *p, CUstream stream) {
    if (!p->settings.managed ||
        gm_capture_state(p->device->cu, stream, NULL) != GM_CAPTURE_UNDER_WAY)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                   "the stream is capturing, and the driver makes no graph nodes for managed "
                   "memory; allocate before the capture");
}

/* In order of the stream; for callers that name none the memory is usable when this returns. */
static gpumem_status take(struct gm_pool *p, size_t bytes, CUstream wanted, CUdeviceptr *base) {
    const gpumem_driver_api *cu = p->device->cu;
    CUstream stream = wanted;
    size_t pinning = 0;
    gpumem_status status = GPUMEM_OK;
    if (wanted == GPUMEM_STREAM_NONE)
        status = gm_pool_stream(p, &stream);
    if (status == GPUMEM_OK)
        status = refuse_capture(p, stream);
    if (status == GPUMEM_OK)
        status = begin_pinning(p, bytes, &pinning);
    if (status != GPUMEM_OK)
        return status;
    CUdeviceptr made = 0;
    const char *call = "cuMemAllocFromPoolAsync";
    CUresult result = stream_allows(p, stream);
    if (result == CUDA_SUCCESS)
        result = cu->cuMemAllocFromPoolAsync(&made, bytes, p->settings.pool, stream);
    if (pinning)
        gm_pinning_end(pinning);
    if (result == CUDA_SUCCESS && wanted == GPUMEM_STREAM_NONE) {
        call = "cuStreamSynchronize";
        result = cu->cuStreamSynchronize(stream);
    }
    if (result == CUDA_SUCCESS) {
        *base = made;
        return GPUMEM_OK;
    }
    status = gm_pool_refuse(p, result, call, bytes, stream);
    gm_pool_undo(p, made, bytes, stream);
    return status;
}

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    struct gm_pool *p = user;
    if (p->settings.mapped)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "only its owner, another process, can allocate from the pool; import its "
                       "buffers with gpumem_pool_import_buffer");
    size_t slack =
        request->alignment > GM_POOL_ALIGNMENT ? request->alignment - GM_POOL_ALIGNMENT : 0;
    if (request->bytes > SIZE_MAX - slack)
        return gm_fail(GPUMEM_ERROR_OUT_OF_MEMORY, "%zu bytes is too large for a pool",
                       request->bytes);
    size_t bytes = request->bytes + slack;
    CUdeviceptr base = 0;
    if (!gm_pool_has_room(p, bytes))
        return gm_pool_is_full(p, bytes);
    gpumem_status status = take(p, bytes, request->stream, &base);
    if (status != GPUMEM_OK) {
        gm_pool_give_room(p, bytes);
        return status;
    }
    CUdeviceptr pointer = (base + request->alignment - 1) & ~(CUdeviceptr)(request->alignment - 1);
    *allocation = (gpumem_allocation){
        .size = sizeof *allocation,
        .pointer = pointer,
        .host_pointer = gm_pool_is_for_cpu(p) ? (void *)(uintptr_t)pointer : NULL,
        .bytes = request->bytes,
        .committed_bytes = bytes,
        .capacity = request->bytes,
        .cookie = (void *)(uintptr_t)base,
    };
    if (p->settings.host)
        gm_meter_add(&p->resource->meter, GM_PINNED, bytes);
    struct gm_tally_cell *cell = gm_tally_cell_of(&p->resource->tally);
    if (cell)
        gm_free_was_reused(cell, gm_canonical(request->stream), bytes);
    return GPUMEM_OK;
}

/* Memory allocated during a capture is graph memory, which belongs to no pool. */
static int is_of_a_pool(const gpumem_driver_api *cu, CUdeviceptr base) {
    CUmemoryPool pool = NULL;
    return cu->cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, base) ==
               CUDA_SUCCESS &&
           pool;
}

/* The driver's address, with a flag in its lowest bit: deferred before. */
#define PUT_OFF_BIT ((uintptr_t)1)

static CUdeviceptr base_of(const gpumem_allocation *allocation) {
    return (CUdeviceptr)((uintptr_t)allocation->cookie & ~PUT_OFF_BIT);
}

static int put_off(struct gm_pool *p, const gpumem_allocation *allocation, CUstream stream) {
    gpumem_allocation marked = *allocation;
    marked.cookie = (void *)((uintptr_t)allocation->cookie | PUT_OFF_BIT);
    return gm_buffer_put_off(p->resource, &marked, stream);
}

/*
 * Handles a refusal. A capturing stream takes back only memory allocated in that capture: other
 * memory waits until the capture has ended. Memory of a graph that has not run, or was invalidated,
 * does not exist: it belongs to the graph, and nothing is lost.
 */
enum outcome { GIVEN_BACK, PUT_OFF, KEPT_BY_DRIVER };

static enum outcome outcome_of(struct gm_pool *p, const gpumem_allocation *allocation,
                               CUstream stream, CUresult result) {
    if (result == CUDA_SUCCESS)
        return GIVEN_BACK;
    if (result != CUDA_ERROR_INVALID_VALUE && result != CUDA_ERROR_STREAM_CAPTURE_INVALIDATED &&
        result != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return KEPT_BY_DRIVER;
    if (!is_of_a_pool(p->device->cu, base_of(allocation)))
        return GIVEN_BACK;
    /* Deferred even if no capture is seen: it may have ended since. Deferred memory is later freed
     * on a stream of ours, which never captures, so a second refusal is final. */
    int again = ((uintptr_t)allocation->cookie & PUT_OFF_BIT) != 0;
    return !again && put_off(p, allocation, stream) == 0 ? PUT_OFF : KEPT_BY_DRIVER;
}

/* On the pool's own stream nothing is queued. A stream that was taken to free idle memory comes
 * after the default stream, and has no work of its own. */
static void note_free(struct gm_pool *p, const gpumem_allocation *allocation, CUstream stream) {
    pthread_mutex_lock(&p->lock);
    int own = stream && stream == p->stream;
    pthread_mutex_unlock(&p->lock);
    if (own)
        return;
    gm_free_was_queued(p->resource, gm_is_helper(stream) ? NULL : stream,
                       allocation->committed_bytes);
}

static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    struct gm_pool *p = user;
    if (p->settings.mapped) {
        gm_pool_import_end(p, base_of(allocation));
        return;
    }
    if (stream == GPUMEM_STREAM_NONE) /* that of the allocation, which exists since then */
        stream = p->stream;
    CUresult result = stream_allows(p, stream);
    if (result == CUDA_SUCCESS)
        result = p->device->cu->cuMemFreeAsync(base_of(allocation), stream);
    if (result == CUDA_SUCCESS)
        note_free(p, allocation, stream);
    gm_pool_freed(p, allocation, stream, result);
}

void gm_pool_freed(struct gm_pool *p, const gpumem_allocation *allocation, CUstream stream,
                   CUresult result) {
    enum outcome outcome = outcome_of(p, allocation, stream, result);
    if (outcome == PUT_OFF)
        return;
    if (outcome == KEPT_BY_DRIVER)
        gm_meter_quarantine_memory(&p->resource->meter, allocation->committed_bytes);
    else
        gm_pool_give_room(p, allocation->committed_bytes);
    if (p->settings.host)
        gm_meter_subtract(&p->resource->meter, GM_PINNED, allocation->committed_bytes);
}

/* Two buffers at one address of a mapped pool have different streams, and the driver's free ends
 * both: it comes after all of them, in the order of none. */
static void properties(void *user, gpumem_resource_properties *out) {
    struct gm_pool *p = user;
    out->device_accessible = !p->settings.closed;
    out->host_accessible = gm_pool_is_for_cpu(p);
    out->stream_ordered = !p->settings.mapped;
    out->exportable = p->settings.handle_type == GPUMEM_HANDLE_POSIX_FD && !p->settings.mapped;
    out->location = p->settings.location;
    out->handle_type = p->settings.handle_type;
    memcpy(out->note, p->settings.note, sizeof out->note);
}

uint64_t gm_pool_reserved_high(struct gm_pool *p) {
    struct gm_relaxed relaxed; /* called without a context entered */
    gm_relax(&relaxed, p->device->cu);
    uint64_t now = gm_pool_number(p, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
    gm_unrelax(&relaxed, p->device->cu);
    uint64_t seen = atomic_load(&p->reserved_high);
    while (now > seen && !atomic_compare_exchange_weak(&p->reserved_high, &seen, now))
        ;
    return now > seen ? now : seen;
}

static void reduce(uint64_t *value, uint64_t by) {
    *value -= by < *value ? by : *value;
}

/* Of what the pool does not use, `held` is what queued work may still use. Streams use again what
 * they freed, so it may be less than what was freed. */
static uint64_t held_of(const struct gm_pool *p, uint64_t unused, gpumem_stats *out) {
    uint64_t queued = atomic_load(&p->resource->queued_bytes);
    if (queued <= unused)
        return queued;
    reduce(&out->deferred_bytes, queued - unused);
    if (!unused)
        reduce(&out->deferred_frees, atomic_load(&p->resource->queued_frees));
    return unused;
}

/* What an own pool has is what the driver says, in one number: the meter was read at another
 * moment. It is unknown what part of a borrowed pool's cache is ours. */
static void stats(void *user, gpumem_stats *out) {
    struct gm_pool *p = user;
    if (p->settings.mapped)
        return;
    if (!p->settings.own) {
        out->committed_bytes += atomic_load(&p->resource->queued_bytes);
        return;
    }
    struct gm_relaxed relaxed;
    gm_relax(&relaxed, p->device->cu);
    uint64_t reserved = gm_pool_number(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    uint64_t used = gm_pool_number(p, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    gm_unrelax(&relaxed, p->device->cu);
    uint64_t unused = reserved > used ? reserved - used : 0;
    out->committed_bytes += reserved;
    out->cached_bytes += unused - held_of(p, unused, out);
    uint64_t high = gm_pool_reserved_high(p);
    if (out->committed_high < high)
        out->committed_high = high;
}

static gpumem_status trim_on_request(void *user, size_t keep_bytes) {
    struct gm_pool *p = user;
    if (p->settings.mapped)
        return GPUMEM_OK;
    /* The driver includes memory in use in what it keeps. */
    uint64_t used = gm_pool_number(p, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    size_t keep = keep_bytes > SIZE_MAX - used ? SIZE_MAX : keep_bytes + (size_t)used;
    CUresult result = p->device->cu->cuMemPoolTrimTo(p->settings.pool, keep);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    return gm_cu_fail(p->device->cu, result, "cuMemPoolTrimTo", "cannot trim the %s of device %d",
                      p->resource->kind, p->device->ordinal);
}

static void trim(void *user, size_t keep_bytes) {
    struct gm_pool *p = user;
    struct gm_error_record saved; /* what is tried when memory runs out is no failure of the call */
    gm_error_save(&saved);
    if (p->settings.own)
        (void)trim_on_request(p, keep_bytes);
    gm_error_restore(&saved);
}

static void end(struct gm_pool *p) {
    gm_kept_file_close(&p->descriptor);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static void destroy(void *user) {
    struct gm_pool *p = user;
    const gpumem_driver_api *cu = p->device->cu;
    gm_pool_unregister(p);
    if (p->settings.own && cu->cuMemPoolDestroy(p->settings.pool) != CUDA_SUCCESS)
        gm_meter_quarantine(&p->device->meter, 0);
    if (p->stream && cu->cuStreamDestroy_v2(p->stream) != CUDA_SUCCESS)
        gm_meter_quarantine(&p->device->meter, 0);
    end(p);
}

struct gm_pool *gm_pool_of(const gpumem_resource *resource) {
    return resource->ops.allocate == allocate ? resource->user : NULL;
}

gpumem_status gm_pool_find(gpumem_resource *resource, const char *call, struct gm_pool **pool) {
    GM_CHECK(resource, call);
    *pool = gm_pool_of(resource);
    if (*pool)
        return GPUMEM_OK;
    const char *note = resource->properties.note;
    if (strncmp(note, GM_NO_HOST_POOL, strlen(GM_NO_HOST_POOL)) == 0 ||
        strncmp(note, GM_NO_MANAGED_POOL, strlen(GM_NO_MANAGED_POOL)) == 0)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "%s: %s", call, note);
    return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "%s: a %s resource is not a pool of the driver",
                   call, resource->kind);
}

/* ---- Creation -------------------------------------------------------------------------------- */

static gpumem_status name_pool(struct gm_pool_settings *settings) {
    if (getrandom(settings->uuid, sizeof settings->uuid, 0) != (ssize_t)sizeof settings->uuid)
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, "getrandom", "cannot name a pool");
    settings->has_uuid = 1;
    return GPUMEM_OK;
}

void gm_pool_discard(gpumem_device *device, CUmemoryPool pool) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    if (pool && device->cu->cuMemPoolDestroy(pool) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->meter, 0);
    gm_error_restore(&saved);
}

static gpumem_status make(gpumem_device *device, const struct gm_pool_settings *settings,
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
    struct gm_pool *p = calloc(1, sizeof *p);
    if (!p)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    p->device = device;
    p->settings = *settings;
    p->bound.maximum = settings->maximum;
    p->descriptor = (struct gm_kept_file)GM_NO_KEPT_FILE;
    pthread_mutex_init(&p->lock, NULL);
    gpumem_status status = GPUMEM_OK;
    if (settings->handle_type != GPUMEM_HANDLE_NONE && !settings->mapped)
        status = name_pool(&p->settings);
    if (status == GPUMEM_OK)
        status = settings->hidden ? gm_resource_make_hidden(device, &ops, p, &p->resource)
                                  : gm_resource_make(device, &ops, p, NULL, &p->resource);
    if (status != GPUMEM_OK) {
        end(p);
        return status;
    }
    p->resource->imported = settings->mapped;
    p->resource->trim_on_request = trim_on_request;
    p->resource->own_stream = !settings->mapped;
    p->resource->tells_committed = settings->own && !settings->mapped;
    p->resource->access = &gm_pool_access;
    gm_pool_quicken(p);
    gm_pool_describe(p);
    *resource = p->resource;
    return GPUMEM_OK;
}

gpumem_status gm_pool_resource(gpumem_device *device, const struct gm_pool_settings *settings,
                               gpumem_resource **resource) {
    gpumem_status status = make(device, settings, resource);
    if (status != GPUMEM_OK && settings->own)
        gm_pool_discard(device, settings->pool);
    return status;
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
                             "device %d: cannot create a memory pool on NUMA node %d",
                             device->ordinal, props->location.id)
                : gm_cu_fail(cu, result, "cuMemPoolCreate",
                             "device %d: cannot create such a memory pool", device->ordinal);
        gm_pool_discard(device, made);
        return status;
    }
    cuuint64_t threshold = release_threshold;
    result = cu->cuMemPoolSetAttribute(made, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
    if (result != CUDA_SUCCESS) {
        gpumem_status status =
            gm_cu_fail(cu, result, "cuMemPoolSetAttribute", "cannot set the release threshold %llu",
                       (unsigned long long)release_threshold);
        gm_pool_discard(device, made);
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
               "device pool: the driver's default pool must not be changed; choose GPUMEM_POOL_OWN "
               "to set a threshold, a maximum or ipc");
    GM_REQUIRE((unsigned)options->handle_type <= GPUMEM_HANDLE_FABRIC,
               "device pool: unknown handle type %d", (int)options->handle_type);
    GM_REQUIRE(!options->ipc || options->handle_type != GPUMEM_HANDLE_NONE,
               "device pool: ipc is set, and the handle type is NONE");
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
    gpumem_status status = GM_OPTIONS_READ(gpumem_device_pool_options, given, &options);
    if (status != GPUMEM_OK)
        return status;
    struct gm_current current;
    status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    struct gm_pool_settings settings = {
        .kind = "device_pool", .handle_type = GPUMEM_HANDLE_NONE, .numa_node = -1};
    status = find_pool(device, &options, &settings);
    if (status == GPUMEM_OK)
        status = gm_pool_resource(device, &settings, resource);
    gm_current_leave(&current);
    return status;
}
