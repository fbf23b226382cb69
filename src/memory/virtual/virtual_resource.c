/* The virtual resource: each buffer is a range of addresses, reserved for its capacity, with chunks
 * of memory mapped from its start. */
#include "memory/virtual/virtual_resource.h"
#include "base/cancel.h"
#include "base/options.h"

#include "memory/core/describe.h"
#include "memory/core/driver_error.h"
#include "memory/core/stream_waits.h"
#include "memory/object/buffer.h"
#include "memory/object/resource.h"

#include <stdlib.h>
#include <string.h>

static size_t round_up(size_t bytes, size_t unit) {
    return bytes > SIZE_MAX - unit ? 0 : (bytes + unit - 1) / unit * unit;
}

/* ---- Chunk sizes ----------------------------------------------------------------------------- */

/* How much to add to `committed` when `needed` bytes are missing and `room` are left. */
static size_t wanted(const struct gm_virtual_resource *v, size_t committed, size_t needed,
                     size_t room) {
    size_t bytes = needed;
    if (committed && !v->options.exact_growth) {
        size_t share;
        if (__builtin_mul_overflow(committed / 100, v->options.growth_percent, &share))
            share = SIZE_MAX;
        share = share / v->granularity * v->granularity;
        if (share > v->options.maximum_chunk_bytes)
            share = v->options.maximum_chunk_bytes;
        if (share > bytes)
            bytes = share;
    }
    bytes = round_up(bytes, v->options.minimum_chunk_bytes);
    return bytes == 0 || bytes > room ? room : bytes;
}

/* Appends `bytes` in chunks of the maximum size and a remainder. */
static gpumem_status append(struct gm_virtual_resource *v, struct gm_extent *extent, size_t bytes) {
    size_t largest = v->options.maximum_chunk_bytes;
    size_t count = bytes / largest + (bytes % largest != 0);
    size_t few[16] = {0}, *sizes = few;
    if (count > sizeof few / sizeof few[0])
        sizes = calloc(count, sizeof *sizes);
    if (!sizes)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to plan %zu chunks", count);
    for (size_t i = 0, left = bytes; i < count; i++) {
        sizes[i] = left < largest ? left : largest;
        left -= sizes[i];
    }
    gpumem_status status = gm_extent_append(extent, &v->prop, sizes, count);
    if (sizes != few)
        free(sizes);
    return status;
}

static gpumem_status commit(struct gm_virtual_resource *v, struct gm_extent *extent, size_t bytes) {
    if (bytes <= extent->committed)
        return GPUMEM_OK;
    size_t room = extent->capacity - extent->committed;
    size_t needed = round_up(bytes - extent->committed, v->granularity);
    size_t more = wanted(v, extent->committed, needed, room);
    gpumem_status status = append(v, extent, more);
    if (gm_virtual_is_short(status) && more > needed)
        status = append(v, extent, needed);
    return status;
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

void gm_virtual_enlist(struct gm_virtual_resource *v, struct gm_range *range) {
    pthread_mutex_lock(&v->lock);
    range->next = v->ranges;
    if (v->ranges)
        v->ranges->previous = range;
    v->ranges = range;
    pthread_mutex_unlock(&v->lock);
}

static void unlist(struct gm_virtual_resource *v, struct gm_range *range) {
    pthread_mutex_lock(&v->lock);
    if (range->next)
        range->next->previous = range->previous;
    if (range->previous)
        range->previous->next = range->next;
    else
        v->ranges = range->next;
    pthread_mutex_unlock(&v->lock);
}

/* Frees addresses and memory of a range that is in no list. */
static void end_range(struct gm_virtual_resource *v, struct gm_range *range) {
    gm_extent_destroy(&range->extent);
    if (range->host)
        v->maker->unmake(v->maker->user, range->host);
    free(range);
}

/* The CPU's mapping of a range that has no memory yet. */
static gpumem_status add_host(struct gm_virtual_resource *v, struct gm_range *range) {
    if (!v->maker || !v->maker->make)
        return GPUMEM_OK;
    gpumem_status status =
        v->maker->make(v->maker->user, &range->extent, &range->host, &range->host_pointer);
    return status == GPUMEM_OK ? gm_extent_add_mirror(&range->extent, range->host) : status;
}

/* Back to the driver, with its chunks. */
static void discard(void *user, struct gm_range *range) {
    struct gm_virtual_resource *v = user;
    unlist(v, range);
    gm_wait_drop(v->device, &range->last);
    range->extent.cache = NULL;
    end_range(v, range);
}

void gm_virtual_discard(struct gm_virtual_resource *v, struct gm_range *range) {
    discard(v, range);
}

static gpumem_status make_range(struct gm_virtual_resource *v, size_t bytes, size_t capacity,
                                size_t alignment, struct gm_range **made) {
    struct gm_range *range = calloc(1, sizeof *range);
    if (!range)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a virtual allocation");
    range->last.state = GM_WAIT_PASSED;
    struct gm_extent *extent = &range->extent;
    gm_extent_prepare(extent, v->device, &v->resource->meter);
    gm_extent_give(extent, v->access, v->access_count);
    extent->cache = v->cache.maximum ? &v->cache : NULL;
    atomic_init(&extent->shared, 0);
    gpumem_status status = gm_extent_init(extent, capacity, alignment, v->options.address_hint);
    if (status != GPUMEM_OK) {
        free(range);
        return status;
    }
    status = add_host(v, range);
    if (status == GPUMEM_OK)
        status = commit(v, extent, bytes);
    if (status != GPUMEM_OK) {
        struct gm_error_record saved;
        gm_error_save(&saved);
        end_range(v, range);
        gm_error_restore(&saved);
        return status;
    }
    gm_virtual_enlist(v, range);
    *made = range;
    return GPUMEM_OK;
}

/* A freed range, with the memory that a new one would get. */
static struct gm_range *find_range(struct gm_virtual_resource *v, const gpumem_request *request,
                                   size_t capacity, size_t alignment, struct gm_late *late) {
    if (!v->cache.maximum)
        return NULL;
    size_t needed = round_up(request->bytes, v->granularity);
    return gm_range_cache_take(&v->cache, capacity, wanted(v, 0, needed, capacity), alignment,
                               request->stream, late);
}

/* ---- The resource's functions ---------------------------------------------------------------- */

static gpumem_status allocate_range(struct gm_virtual_resource *v, const gpumem_request *request,
                                    struct gm_late *late, struct gm_range **range) {
    size_t asked = request->capacity ? request->capacity : v->options.capacity;
    if (asked < request->bytes)
        asked = request->bytes;
    size_t capacity = round_up(asked, v->granularity);
    if (!capacity)
        return gm_fail(GPUMEM_ERROR_OUT_OF_CAPACITY, "%zu bytes exceeds the address space", asked);
    size_t alignment = request->alignment > v->alignment ? request->alignment : v->alignment;
    *range = find_range(v, request, capacity, alignment, late);
    if (*range)
        return GPUMEM_OK;
    gpumem_status status = gm_late_enter(late);
    return status == GPUMEM_OK ? make_range(v, request->bytes, capacity, alignment, range) : status;
}

static void *host_pointer(const struct gm_virtual_resource *v, const struct gm_range *range) {
    if (range->host)
        return range->host_pointer;
    return v->host_accessible ? (void *)(uintptr_t)range->extent.address : NULL;
}

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    struct gm_virtual_resource *v = user;
    struct gm_range *range = NULL;
    struct gm_late late = {.device = v->device};
    pthread_rwlock_rdlock(&v->mapped.lock);
    gpumem_status status = allocate_range(v, request, &late, &range);
    if (status == GPUMEM_OK) {
        range->state = GM_RANGE_LIVE;
        range->handed = atomic_fetch_add(&v->handed, 1) + 1;
        range->buffer = gm_buffer_in_making;
        *allocation = (gpumem_allocation){
            .size = sizeof *allocation,
            .pointer = range->extent.address,
            .host_pointer = host_pointer(v, range),
            .bytes = request->bytes,
            .committed_bytes = range->extent.committed,
            .capacity = range->extent.capacity,
            .cookie = range,
        };
    }
    pthread_rwlock_unlock(&v->mapped.lock);
    gm_late_leave(&late);
    return status;
}

/* Mapped memory that cannot be given back, because work may still use it, is left to the
 * process. */
static void lose(struct gm_virtual_resource *v, struct gm_range *range) {
    struct gm_meter *meter = &v->resource->meter;
    unlist(v, range);
    gm_wait_drop(v->device, &range->last);
    gm_meter_quarantine_memory(meter, range->extent.committed);
    gm_meter_add(meter, GM_RESERVED, range->extent.capacity);
    free(range->extent.chunks);
    free(range->extent.given);
    free(range);
}

/*
 * Holds back memory that queued work uses or may use, until a stream can be queried. Without host
 * memory to record that, the work is waited for; only what cannot be waited for is held for good.
 */
static void put_off(struct gm_virtual_resource *v, struct gm_range *range,
                    const gpumem_allocation *allocation, CUstream stream) {
    struct gm_wait last = range->last; /* once it is recorded, others may release the range */
    range->last = (struct gm_wait){.state = GM_WAIT_PASSED};
    if (gm_buffer_put_off(v->resource, allocation, stream) == 0) {
        gm_wait_drop(v->device, &last);
        return;
    }
    range->last = last;
    if (gm_wait_passed(v->device, &range->last, 1))
        discard(v, range);
    else
        lose(v, range);
}

/* What must pass before any stream may use the memory. */
static void mark(struct gm_virtual_resource *v, struct gm_range *range, CUstream stream) {
    gm_wait_drop(v->device, &range->last);
    range->last.state = GM_WAIT_PASSED;
    if (stream == GPUMEM_STREAM_NONE || !v->resource->properties.stream_ordered)
        return;
    range->last = gm_wait_for(v->device, stream, 0);
    gm_wait_is_shared(&range->last); /* the buffer may have come from another thread */
    (void)gm_wait_mark(v->device, &range->last);
    if (range->last.state == GM_WAIT_EVENT) /* the stream's identity, while it exists */
        range->last.id = gm_wait_for(v->device, stream, 1).id;
}

/* Where a stream is to be marked, the context is current. */
static void take_back(struct gm_virtual_resource *v, const gpumem_allocation *allocation,
                      CUstream stream, struct gm_late *late) {
    struct gm_range *range = allocation->cookie;
    range->buffer = NULL;
    range->state = GM_RANGE_ENDING;
    mark(v, range, stream);
    int passed = range->last.state == GM_WAIT_PASSED;
    /* Ranges partly with other rights or without memory are not reused. */
    const struct gm_extent *extent = &range->extent;
    int own =
        !atomic_load(&extent->shared) && !extent->given && !extent->holes && !extent->borrowed;
    if ((passed || range->last.state == GM_WAIT_EVENT) && own && v->cache.maximum &&
        gm_range_cache_give(&v->cache, range, late))
        return;
    if (passed && gm_late_enter(late) == GPUMEM_OK)
        discard(v, range);
    else
        put_off(v, range, allocation, stream);
}

/* Without a cache the memory is no longer in use; with one, it may be in use until `stream` has
 * reached this point, unless that is NONE. */
static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    struct gm_virtual_resource *v = user;
    struct gm_late late = {.device = v->device};
    pthread_rwlock_rdlock(&v->mapped.lock);
    take_back(v, allocation, stream, &late);
    pthread_rwlock_unlock(&v->mapped.lock);
    gm_late_leave(&late);
}

/* The chunks wholly beyond `bytes`. */
static size_t surplus(const struct gm_extent *extent, size_t bytes) {
    size_t count = 0, end = extent->committed;
    while (count < extent->count && end - extent->chunks[extent->count - 1 - count].bytes >= bytes)
        end -= extent->chunks[extent->count - 1 - count++].bytes;
    return count;
}

static gpumem_status resize_range(struct gm_virtual_resource *v, gpumem_allocation *allocation,
                                  size_t bytes, struct gm_late *late) {
    struct gm_extent *extent = &((struct gm_range *)allocation->cookie)->extent;
    int grows = bytes >= allocation->bytes;
    size_t count = grows ? 0 : surplus(extent, bytes);
    gpumem_status status = GPUMEM_OK;
    if (grows ? bytes > extent->committed : count > 0)
        status = gm_late_enter(late);
    if (status == GPUMEM_OK)
        status = grows ? commit(v, extent, bytes) : gm_extent_drop(extent, count);
    /* Even after a failure: a driver that refuses everything does not map again what it unmapped,
     * and the size must not extend past the mappings. */
    allocation->committed_bytes = extent->committed - extent->holes;
    if (status == GPUMEM_OK)
        allocation->bytes = bytes;
    else if (allocation->bytes > extent->committed)
        allocation->bytes = extent->committed;
    return status;
}

static gpumem_status resize(void *user, gpumem_allocation *allocation, size_t bytes,
                            CUstream stream) {
    (void)stream;
    struct gm_virtual_resource *v = user;
    struct gm_late late = {.device = v->device};
    pthread_rwlock_rdlock(&v->mapped.lock);
    gpumem_status status = resize_range(v, allocation, bytes, &late);
    pthread_rwlock_unlock(&v->mapped.lock);
    gm_late_leave(&late);
    return status;
}

static size_t chunks(const gpumem_allocation *allocation, const struct gm_chunk **out) {
    const struct gm_extent *extent = allocation->cookie;
    *out = extent->chunks;
    return extent->count;
}

static void properties(void *user, gpumem_resource_properties *out) {
    struct gm_virtual_resource *v = user;
    out->device_accessible = v->options.self_access != GPUMEM_ACCESS_NONE || v->options.peer_count;
    out->host_accessible = v->host_accessible;
    out->can_resize = 1;
    /* Memory that the CPU writes is handed out again only when the work on it is done. */
    out->stream_ordered = v->options.cache_bytes && !v->host_accessible;
    out->exportable = v->handle_type == GPUMEM_HANDLE_POSIX_FD;
    out->location = v->options.location;
    out->handle_type = v->handle_type;
    out->granularity = v->granularity;
    out->maximum_chunk_bytes =
        v->options.maximum_chunk_bytes == SIZE_MAX / v->granularity * v->granularity
            ? 0
            : v->options.maximum_chunk_bytes;
    memcpy(out->note, v->note, sizeof out->note);
}

static gpumem_status share(const gpumem_allocation *allocation) {
    struct gm_range *range = allocation->cookie;
    struct gm_extent *extent = &range->extent;
    atomic_store(&extent->shared, 1);
    if (range->last.state == GM_WAIT_PASSED)
        return GPUMEM_OK;
    struct gm_late late = {.device = extent->device};
    gpumem_status status = gm_late_enter(&late);
    if (status == GPUMEM_OK && !gm_wait_passed(extent->device, &range->last, 1))
        status = gm_fail(
            GPUMEM_ERROR_DRIVER,
            "the driver does not report whether earlier work on this memory is done; try again");
    gm_late_leave(&late);
    return status;
}

static int is_whole(const gpumem_allocation *allocation, size_t offset, size_t bytes) {
    const struct gm_range *range = allocation->cookie;
    return gm_extent_is_whole(&range->extent, offset, bytes);
}

static int is_idle(void *user) {
    struct gm_virtual_resource *v = user;
    return gm_range_cache_is_idle(&v->cache);
}

static void settle(void *user) {
    struct gm_virtual_resource *v = user;
    gm_range_cache_settle(&v->cache, &v->mapped);
}

static void trim(void *user, size_t keep_bytes) {
    struct gm_virtual_resource *v = user;
    gm_virtual_mend(v);
    pthread_rwlock_rdlock(&v->mapped.lock);
    gm_range_cache_trim(&v->cache, keep_bytes);
    pthread_rwlock_unlock(&v->mapped.lock);
}

static void end(struct gm_virtual_resource *v) {
    pthread_rwlock_destroy(&v->mapped.lock);
    pthread_mutex_destroy(&v->lock);
    gm_range_cache_end(&v->cache);
    gm_virtual_free_lists(v);
    if (v->maker && v->resource)
        v->maker->end(v->maker->user);
    free(v);
}

static void destroy(void *user) {
    struct gm_virtual_resource *v = user;
    settle(v);
    trim(v, 0);
    while (v->ranges) /* whose work the driver does not report as done */
        lose(v, v->ranges);
    end(v);
}

static const gpumem_resource_ops ops = {
    .size = sizeof ops,
    .kind = "virtual",
    .allocate = allocate,
    .deallocate = deallocate,
    .resize = resize,
    .properties = properties,
    .trim = trim,
    .destroy = destroy,
};

static void describe(gpumem_resource *resource, struct gm_json *json,
                     const gpumem_snapshot_options *options) {
    (void)options;
    struct gm_virtual_resource *v = resource->user;
    gm_json_open(json, "freed", '{');
    gm_json_number(json, "maximum_bytes", v->cache.maximum);
    gm_range_cache_describe(&v->cache, json);
    gm_json_close(json, '}');
}

static const struct gm_describe_ops description = {.resource = describe};

struct gm_virtual_resource *gm_virtual_behind(const gpumem_resource *resource) {
    const gpumem_resource *root = resource->mapped ? resource->mapped->resource : NULL;
    return root ? root->user : NULL;
}

static struct gm_virtual_resource *begin(gpumem_device *device) {
    struct gm_virtual_resource *v = calloc(1, sizeof *v);
    if (!v)
        return NULL;
    v->device = v->cache.device = device;
    v->cache.discard = discard;
    v->cache.user = v;
    v->mapped.share = share;
    v->mapped.is_whole = is_whole;
    v->mapped.settle = settle;
    v->mapped.is_idle = is_idle;
    v->mapped.handle_taken = gm_virtual_handle_taken;
    pthread_mutex_init(&v->lock, NULL);
    gm_range_cache_init(&v->cache);
    /* Changes for all buffers are rare, and must not be starved by many allocations. */
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&v->mapped.lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    return v;
}

gpumem_status gm_virtual_make(gpumem_device *device, const gpumem_virtual_options *given,
                              const struct gm_host_maker *maker, gpumem_resource **resource) {
    struct gm_virtual_resource *v = begin(device);
    if (!v)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    gpumem_resource_ops own = ops;
    v->maker = maker;
    gpumem_status status = GM_OPTIONS_READ(gpumem_virtual_options, given, &v->options);
    if (status == GPUMEM_OK)
        status = gm_virtual_settle(v);
    v->options.peers = NULL; /* the caller's */
    if (maker) {
        v->host_accessible = 1;
        own.kind = maker->kind;
    }
    if (status == GPUMEM_OK)
        status = gm_resource_make_mapped(device, &own, v, &v->mapped, chunks, &v->resource);
    if (status != GPUMEM_OK) {
        end(v);
        return status;
    }
    v->resource->enters = 1;
    v->resource->access = &gm_virtual_access;
    v->cache.meter = &v->resource->meter;
    v->cache.maximum = v->options.cache_bytes;
    gm_describe_set(v->resource, &description);
    *resource = v->resource;
    return GPUMEM_OK;
}

gpumem_status gpumem_virtual_resource_create(gpumem_device *device,
                                             const gpumem_virtual_options *given,
                                             gpumem_resource **resource) {
    GM_UNCANCELLED;
    GM_CHECK(device, "gpumem_virtual_resource_create");
    GM_REQUIRE(resource, "gpumem_virtual_resource_create: resource is NULL");
    return gm_virtual_make(device, given, NULL, resource);
}
