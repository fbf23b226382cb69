/* The caching resource's interface to the rest of the library. */
#include "cache/cache.h"

#include "base/cancel.h"
#include "base/object.h"
#include "base/options.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/core/stream_waits.h"
#include "memory/object/buffer.h"
#include "memory/object/resource.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_SEGMENT ((size_t)64 << 20)
#define DEFAULT_THREAD  ((size_t)32 << 20)
#define LEAST_SEGMENT   ((size_t)2 << 20)
#define DEFAULT_RATIO   1.05

/* ---- Buffers --------------------------------------------------------------------------------- */

static gpumem_buffer *hand_out(struct gm_block *block, size_t bytes, CUstream stream) {
    gpumem_buffer *buffer = &block->buffer;
    buffer->generation = buffer->resource->generation;
    buffer->allocation.bytes = buffer->allocation.capacity = bytes;
    buffer->freed = 0;
    buffer->home = 0;
    buffer->waits[0] = stream == GPUMEM_STREAM_PER_THREAD
                           ? gm_wait_for(buffer->resource->device, stream, 0)
                           : (struct gm_wait){.stream = stream};
    buffer->wait_count = stream != GPUMEM_STREAM_NONE;
    atomic_store_explicit(&buffer->references, 1, memory_order_relaxed);
    return buffer;
}

/* The canonical name of a stream with two names, as used by slots and lanes. */
static inline CUstream canonical(CUstream stream) {
    return stream == GPUMEM_STREAM_LEGACY ? NULL : stream;
}

static inline struct gm_block *at_hand(struct gm_cache *cache, size_t bytes, CUstream stream,
                                       int counted) {
    if (bytes - 1 >= cache->maximum_small_bytes)
        return NULL;
    /* Memory that the CPU writes has one lane for all streams, including captured ones. */
    if (cache->host && atomic_load_explicit(&cache->capturing, memory_order_relaxed))
        return NULL;
    return gm_magazine_pop(cache, bytes, stream, counted);
}

/* The case that needs only a magazine; NULL in every other case, including errors. */
static gpumem_buffer *try_allocate(gpumem_resource *resource, size_t bytes,
                                   const gpumem_buffer_options *given) {
    struct gm_cache *cache = resource->user;
    CUstream stream = NULL;
    if (given) {
        if (!gm_buffer_options_are_first(given) || given->alignment > GM_CLASS_UNIT ||
            (given->alignment & (given->alignment - 1)) || given->capacity)
            return NULL;
        stream = canonical(given->stream);
    }
    struct gm_block *block = at_hand(cache, bytes, stream, 1);
    return block ? hand_out(block, bytes, stream) : NULL;
}

static gpumem_status check_stream(const struct gm_cache *cache, CUstream stream) {
    GM_REQUIRE(cache->host || stream != GPUMEM_STREAM_NONE,
               "caching resource: device memory is handed out in stream order; name a stream");
    GM_REQUIRE(cache->host || stream != GPUMEM_STREAM_PER_THREAD,
               "caching resource: the per-thread default stream differs from thread to thread; "
               "name a stream");
    return GPUMEM_OK;
}

static gpumem_status allocate_buffer(gpumem_resource *resource, const gpumem_request *given,
                                     gpumem_buffer **buffer) {
    struct gm_cache *cache = resource->user;
    gpumem_request request = *given;
    request.stream = canonical(given->stream);
    gpumem_status status = check_stream(cache, request.stream);
    struct gm_block *block;
    if (status == GPUMEM_OK)
        status = gm_cache_take(cache, &request, &block);
    if (status != GPUMEM_OK)
        return status;
    gm_magazine_count(cache, request.bytes);
    *buffer = hand_out(block, request.bytes, request.stream);
    return GPUMEM_OK;
}

#ifdef GPUMEM_DEBUG
/* The block gets another object, and the one that the program has had is marked as destroyed: a
 * stale free would find it in use again. Without host memory it is reused all the same. */
static struct gm_block *renewed(struct gm_block *block) {
    struct gm_block *made = malloc(sizeof *made);
    if (!made)
        return block;
    memcpy((void *)made, block, sizeof *made);
    gpumem_buffer *buffer = &made->buffer;
    if (buffer->waits == block->buffer.inline_waits)
        buffer->waits = buffer->inline_waits;
    else
        block->buffer.waits = block->buffer.inline_waits;
    pthread_mutex_init(&buffer->lock, NULL);
    buffer->allocation.cookie = made;
    gm_buffer_discard(&block->buffer);
    return made;
}
#else
static inline struct gm_block *renewed(struct gm_block *block) {
    return block;
}
#endif

static void take_back(gpumem_buffer *buffer) {
    struct gm_cache *cache = buffer->resource->user;
    gm_magazine_push(cache, renewed((struct gm_block *)(void *)buffer));
}

static void report(gpumem_resource *resource) {
    struct gm_cache *cache = resource->user;
    pthread_mutex_lock(&cache->lock);
    gm_threads_stop(cache);
    for (struct gm_thread_cache *thread = cache->threads; thread; thread = thread->next_of_cache)
        gm_thread_report(cache, thread);
    gm_threads_resume(cache);
    pthread_mutex_unlock(&cache->lock);
}

static void forget(gpumem_resource *resource, CUstream given);

static void settle(gpumem_resource *resource) {
    gm_cache_trim(resource->user, 0, 1);
}

/* The cache's lock is held. */
static const char *reason_to_stay(const struct gm_cache *cache) {
    if (cache->pools)
        return "it has capture pools; destroy them first";
    if (cache->pending)
        return gm_waits_reason(&cache->pending->buffer);
    if (cache->taken)
        return "a stream that used its memory is capturing, or the driver does not report whether "
               "queued work is done; try again";
    return NULL;
}

static gpumem_status may_end(gpumem_resource *resource) {
    struct gm_cache *cache = resource->user;
    gm_cache_trim(cache, 0, 1);
    pthread_mutex_lock(&cache->lock);
    const char *reason = reason_to_stay(cache);
    pthread_mutex_unlock(&cache->lock);
    if (!reason)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_BUSY, "the caching resource cannot be destroyed: %s", reason);
}

static int is_idle(gpumem_resource *resource) {
    struct gm_cache *cache = resource->user;
    gm_cache_trim(cache, 0, 0);
    pthread_mutex_lock(&cache->lock);
    int idle = !reason_to_stay(cache);
    pthread_mutex_unlock(&cache->lock);
    return idle;
}

static const struct gm_fast_ops fast = {
    .try_allocate = try_allocate,
    .allocate = allocate_buffer,
    .take_back = take_back,
    .report = report,
    .settle = settle,
    .may_end = may_end,
    .is_idle = is_idle,
    .forget = forget,
};

struct gm_cache *gm_cache_of(gpumem_resource *resource) {
    return resource->fast == &fast ? resource->user : NULL;
}

/* Of another resource, that of its slabs. */
static struct gm_cache *cache_or_slabs(gpumem_resource *resource) {
    gpumem_resource *slabs = atomic_load(&resource->slabs);
    return gm_cache_of(slabs ? slabs : resource);
}

/* ---- For wrappers around the cache ----------------------------------------------------------- */

static gpumem_status allocate(void *user, const gpumem_request *given,
                              gpumem_allocation *allocation) {
    struct gm_cache *cache = user;
    gpumem_request request = *given;
    request.stream = canonical(given->stream);
    gpumem_status status = check_stream(cache, request.stream);
    if (status != GPUMEM_OK)
        return status;
    struct gm_block *block = NULL;
    if (request.alignment <= GM_CLASS_UNIT)
        block = at_hand(cache, request.bytes, request.stream, 0);
    if (!block)
        status = gm_cache_take(cache, &request, &block);
    if (status != GPUMEM_OK)
        return status;
    *allocation = hand_out(block, request.bytes, request.stream)->allocation;
    return GPUMEM_OK;
}

/* In the order of `stream`, or, for memory that the CPU writes, when it is no longer in use. */
static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    struct gm_cache *cache = user;
    struct gm_block *block = allocation->cookie;
    gpumem_buffer *buffer = &block->buffer;
    buffer->waits[0] = gm_wait_for(cache->device, canonical(stream), 0);
    buffer->wait_count = !cache->host;
    gm_magazine_return(cache, block);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

/* What was freed and is held back. */
struct held {
    size_t bytes, blocks;
};

static void add_chain(const struct gm_block *chain, struct held *held) {
    for (; chain; chain = chain->next) {
        held->bytes += chain->piece->bytes;
        held->blocks++;
    }
}

/* What a large block can have of it: a segment that is partly cut into classes, and one that is
 * partly used by a stream that is gone or by a graph, have nothing for one. */
static size_t largest_of(const struct gm_lane *lane, const struct gm_segment *segment) {
    const int others = segment->kind == GM_KIND_SMALL || lane->ended || lane->pool;
    if (others && (segment->area.used || segment->range)) /* in place, another takes it whole */
        return 0;
    const size_t bytes = gm_area_largest(&segment->area);
    if (segment->range && segment->kind == GM_KIND_LARGE && bytes >= GM_HUGE_BYTES)
        return GM_HUGE_BYTES - 1;
    return segment->kind == GM_KIND_HUGE && bytes < GM_HUGE_BYTES ? 0 : bytes;
}

static void add_lane(const struct gm_lane *lane, gpumem_caching_info *info, struct held *held) {
    add_chain(lane->held, held);
    for (const struct gm_segment *segment = lane->segments; segment; segment = segment->next) {
        info->segments += !segment->range || segment->allocation.committed_bytes > 0;
        info->segment_bytes +=
            segment->range ? segment->allocation.committed_bytes : segment->area.bytes;
        size_t largest = largest_of(lane, segment);
        if (largest > info->largest_free_bytes)
            info->largest_free_bytes = largest;
    }
    for (unsigned kind = 0; kind < GM_KINDS; kind++)
        info->free_bytes += lane->free[kind].bytes;
    for (unsigned class = 0; class < GM_CLASS_COUNT; class ++)
        for (const struct gm_block *parcel = lane->parcels[class]; parcel;
             parcel = parcel->next_parcel)
            info->parcel_bytes += parcel->count * gm_class_bytes(class);
}

/* The cache's lock is held. */
static struct held read_info(struct gm_cache *cache, gpumem_caching_info *info) {
    struct held held = {0};
    *info = (gpumem_caching_info){.size = sizeof *info};
    for (const struct gm_lane *lane = cache->lanes; lane; lane = lane->next) {
        info->streams += !lane->ended && lane->segments;
        add_lane(lane, info, &held);
    }
    if (cache->pages) {
        info->segment_bytes += cache->pages->loose_bytes;
        info->free_bytes += cache->pages->loose_bytes;
        info->pages_moved = cache->pages->moved;
        info->waits = cache->pages->waits;
        info->largest_movable_bytes = gm_pages_movable(cache);
    }
    if (info->largest_movable_bytes < info->largest_free_bytes)
        info->largest_movable_bytes = info->largest_free_bytes;
    for (const struct gm_block *batch = cache->pending; batch; batch = batch->next_parcel)
        add_chain(batch, &held);
    gm_threads_stop(cache);
    for (struct gm_thread_cache *thread = cache->threads; thread; thread = thread->next_of_cache) {
        struct held own = {0};
        for (unsigned i = 0; i < GM_SLOTS; i++) {
            add_chain(thread->holds[i].filling, &own);
            add_chain(thread->holds[i].marked, &own);
        }
        info->threads++;
        info->thread_bytes += thread->bytes - own.bytes;
        held.bytes += own.bytes;
        held.blocks += own.blocks;
    }
    gm_threads_resume(cache);
    info->pending_bytes = held.bytes;
    uint64_t kept = info->free_bytes + info->parcel_bytes + info->thread_bytes + held.bytes;
    info->used_bytes = info->segment_bytes - kept;
    return held;
}

gpumem_status gpumem_caching_get_info(gpumem_resource *resource, gpumem_caching_info *info) {
    GM_UNCANCELLED;
    GM_CHECK(resource, "gpumem_caching_get_info");
    struct gm_cache *cache = cache_or_slabs(resource);
    GM_REQUIRE(cache, "gpumem_caching_get_info: a %s resource is not a cache", resource->kind);
    gpumem_caching_info filled;
    pthread_mutex_lock(&cache->lock);
    (void)read_info(cache, &filled);
    pthread_mutex_unlock(&cache->lock);
    return GM_RESULT_WRITE(gpumem_caching_info, info, &filled);
}

/* Adds what the meter does not know. */
static void stats(void *user, gpumem_stats *out) {
    struct gm_cache *cache = user;
    gpumem_caching_info info;
    pthread_mutex_lock(&cache->lock);
    struct held held = read_info(cache, &info);
    pthread_mutex_unlock(&cache->lock);
    out->cached_bytes += info.free_bytes + info.parcel_bytes + info.thread_bytes;
    out->deferred_bytes += held.bytes;
    out->deferred_frees += held.blocks;
}

static void properties(void *user, gpumem_resource_properties *out) {
    const struct gm_cache *cache = user;
    const gpumem_resource_properties *up = &cache->upstream->properties;
    out->device_accessible = up->device_accessible;
    out->host_accessible = up->host_accessible;
    out->location = up->location;
    out->stream_ordered = !cache->host;
    out->granularity = GM_CLASS_UNIT;
    out->maximum_chunk_bytes = cache->segment_bytes;
}

/* ---- Trimming -------------------------------------------------------------------------------- */

void gm_cache_flush_lane(struct gm_cache *cache, const struct gm_lane *lane) {
    gm_threads_stop(cache);
    for (struct gm_thread_cache *thread = cache->threads; thread; thread = thread->next_of_cache)
        for (unsigned i = 0; i < GM_SLOTS; i++)
            if (thread->slots[i].lane == lane)
                gm_slot_flush(thread, &thread->slots[i]);
    gm_threads_resume(cache);
}

void gm_cache_trim(struct gm_cache *cache, size_t keep, int wait) {
    pthread_mutex_lock(&cache->lock);
    gm_threads_flush(cache);
    pthread_mutex_unlock(&cache->lock);
    if (wait)
        gm_pending_wait(cache);
    pthread_mutex_lock(&cache->lock);
    if (wait) /* other threads may have freed into their magazines meanwhile */
        gm_threads_flush(cache);
    (void)gm_pending_poll(cache, NULL);
    gm_lanes_join(cache);
    struct gm_segment *surplus = cache->pages ? NULL : gm_lanes_surplus(cache, keep, wait, NULL);
    pthread_mutex_unlock(&cache->lock);
    if (cache->pages)
        gm_pages_trim(cache, keep, wait);
    else
        gm_segments_release(cache, surplus);
    pthread_mutex_lock(&cache->lock);
    if (wait)
        gm_segments_wait(cache);
    gm_lanes_prune(cache);
    pthread_mutex_unlock(&cache->lock);
}

/* The upstream can trim memory freed in order of a stream once that stream has reached the free;
 * only allocations and frees are queued on it. */
static void trim(void *user, size_t keep_bytes) {
    struct gm_cache *cache = user;
    gm_cache_trim(cache, keep_bytes, 0);
    if (cache->stream)
        (void)cache->device->cu->cuStreamSynchronize(cache->stream);
}

static struct gm_lane *open_lane(const struct gm_cache *cache, CUstream stream) {
    struct gm_lane *lane = cache->host ? NULL : cache->lanes;
    while (lane && (lane->stream != stream || lane->ended || lane->pool))
        lane = lane->next;
    return lane;
}

static void retire_holds(struct gm_cache *cache, CUstream stream) {
    gm_threads_stop(cache);
    for (struct gm_thread_cache *thread = cache->threads; thread; thread = thread->next_of_cache)
        gm_holds_retire(cache, thread, stream);
    gm_threads_resume(cache);
}

static void forget(gpumem_resource *resource, CUstream given) {
    struct gm_cache *cache = resource->user;
    CUstream stream = canonical(given);
    pthread_mutex_lock(&cache->lock);
    struct gm_lane *lane = open_lane(cache, stream);
    if (lane) {
        gm_cache_flush_lane(cache, lane);
        gm_lane_end(cache, lane);
    }
    if (cache->host)
        retire_holds(cache, stream);
    gm_pending_end_stream(cache, stream);
    gm_lanes_join(cache);
    gm_lanes_prune(cache);
    pthread_mutex_unlock(&cache->lock);
}

gpumem_status gpumem_caching_forget_stream(gpumem_resource *resource, CUstream stream) {
    GM_UNCANCELLED;
    GM_CHECK(resource, "gpumem_caching_forget_stream");
    struct gm_cache *cache = cache_or_slabs(resource);
    GM_REQUIRE(cache, "gpumem_caching_forget_stream: a %s resource is not a cache", resource->kind);
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, cache->device);
    if (status != GPUMEM_OK)
        return status;
    forget(cache->resource, stream);
    gm_current_leave(&current);
    return GPUMEM_OK;
}

/* ---- Making and ending ----------------------------------------------------------------------- */

static void free_blocks(struct gm_cache *cache) {
    struct gm_block *block;
    while ((block = cache->spare) != NULL) {
        cache->spare = block->next;
        gm_buffer_clear(&block->buffer);
        gm_bury(block);
    }
}

/* Memory that is still in a lane is in use by a device that no longer responds. */
static void free_lanes(struct gm_cache *cache) {
    struct gm_lane *lane;
    while ((lane = cache->lanes) != NULL) {
        cache->lanes = lane->next;
        gm_pages_drop_marks(cache, lane);
        for (struct gm_segment *segment = lane->segments, *next; segment; segment = next) {
            next = segment->next;
            gm_meter_quarantine(&cache->device->meter, segment->allocation.committed_bytes);
            gm_pages_abandon(cache, segment);
        }
        free(lane);
    }
}

/* The wrapped resource may be a cache too, and know the stream. */
static void end_own_stream(struct gm_cache *cache) {
    gm_stream_ends(cache->device, cache->stream);
    if (cache->device->cu->cuStreamDestroy_v2(cache->stream) != CUDA_SUCCESS)
        gm_meter_quarantine(&cache->device->meter, 0);
}

static void destroy_cache(struct gm_cache *cache) {
    free_lanes(cache);
    free_blocks(cache);
    gm_pages_end(cache);
    if (cache->stream)
        end_own_stream(cache);
    pthread_mutex_destroy(&cache->grow);
    pthread_mutex_destroy(&cache->lock);
    pthread_cond_destroy(&cache->home);
    free(cache);
}

static void destroy(void *user) {
    struct gm_cache *cache = user;
    gm_threads_end(cache);
    gm_cache_trim(cache, 0, 1);
    destroy_cache(cache);
}

static const gpumem_resource_ops ops = {
    .size = sizeof ops,
    .kind = "caching",
    .allocate = allocate,
    .deallocate = deallocate,
    .properties = properties,
    .stats = stats,
    .trim = trim,
    .destroy = destroy,
};

static gpumem_status check_options(const gpumem_caching_options *options) {
    GM_REQUIRE(!options->segment_bytes || (options->segment_bytes >= LEAST_SEGMENT &&
                                           options->segment_bytes <= SIZE_MAX / 4),
               "caching resource: segment_bytes is %zu; the minimum is 2 MiB",
               options->segment_bytes);
    GM_REQUIRE(options->maximum_small_bytes <= GM_CLASS_MOST,
               "caching resource: maximum_small_bytes is %zu; the maximum is 1 MiB",
               options->maximum_small_bytes);
    GM_REQUIRE(options->committed_ratio == 0 || options->committed_ratio >= 1,
               "caching resource: committed_ratio is %g; the minimum is 1",
               options->committed_ratio);
    GM_REQUIRE(!options->maximum_bytes || options->reserve_bytes <= options->maximum_bytes,
               "caching resource: reserve_bytes is %llu, above maximum_bytes, %llu",
               (unsigned long long)options->reserve_bytes,
               (unsigned long long)options->maximum_bytes);
    return GPUMEM_OK;
}

/* Before anybody else knows the resource. */
static gpumem_status reserve(struct gm_cache *cache, uint64_t bytes) {
    if (!bytes)
        return GPUMEM_OK;
    if (!cache->pages)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "caching resource: reserve_bytes needs memory that can move: a virtual "
                       "resource of device memory, and a committed_ratio that is finite");
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, cache->device);
    if (status != GPUMEM_OK)
        return status;
    status = gm_pages_reserve(cache, bytes);
    gm_current_leave(&current);
    return status;
}

static struct gm_cache *make_cache(gpumem_resource *upstream,
                                   const gpumem_caching_options *options) {
    static atomic_uint_fast64_t serials = 1;
    struct gm_cache *cache = calloc(1, sizeof *cache);
    struct gm_lane *shared = calloc(1, sizeof *shared);
    if (!cache || !shared) {
        free(cache);
        free(shared);
        return NULL;
    }
    size_t unit = upstream->properties.granularity;
    cache->device = upstream->device;
    cache->upstream = upstream;
    cache->serial = atomic_fetch_add(&serials, 1);
    cache->host = upstream->properties.host_accessible;
    cache->segment_bytes = options->segment_bytes ? options->segment_bytes : DEFAULT_SEGMENT;
    cache->maximum_small_bytes =
        options->maximum_small_bytes ? options->maximum_small_bytes : GM_CLASS_MOST;
    cache->thread_bytes = options->thread_bytes ? options->thread_bytes : DEFAULT_THREAD;
    cache->idle_bytes = options->idle_bytes;
    cache->granularity = unit > GM_CLASS_UNIT ? unit : GM_CLASS_UNIT;
    cache->maximum_bytes = options->maximum_bytes;
    cache->pending_end = &cache->pending;
    cache->lanes = shared; /* on the device: the default stream's */
    if (cache->host)
        cache->shared = shared;
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&cache->grow, &recursive);
    pthread_mutexattr_destroy(&recursive);
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->home, NULL);
    return cache;
}

gpumem_status gpumem_caching_resource_create(gpumem_resource *upstream,
                                             const gpumem_caching_options *given,
                                             gpumem_resource **resource) {
    GM_UNCANCELLED;
    gpumem_caching_options options;
    GM_CHECK(upstream, "gpumem_caching_resource_create");
    GM_REQUIRE(resource, "gpumem_caching_resource_create: resource is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_caching_options, given, &options);
    if (status == GPUMEM_OK)
        status = check_options(&options);
    if (status != GPUMEM_OK)
        return status;
    struct gm_cache *cache = make_cache(upstream, &options);
    if (!cache)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    status = gm_pages_begin(upstream,
                            options.committed_ratio > 0 ? options.committed_ratio : DEFAULT_RATIO,
                            options.never_waits, &cache->pages);
    if (status == GPUMEM_OK)
        status = gm_resource_make(upstream->device, &ops, cache, upstream, &cache->resource);
    if (status != GPUMEM_OK) {
        destroy_cache(cache);
        return status;
    }
    pthread_mutex_lock(&cache->device->lock); /* whoever visits all resources may find it already */
    cache->resource->chunks = NULL; /* blocks share handles: none can be exported separately */
    cache->resource->mapped = NULL;
    cache->resource->fast = &fast;
    cache->resource->enters = 1;
    pthread_mutex_unlock(&cache->device->lock);
    gm_meter_hand_out_pieces(&cache->resource->meter, &cache->device->meter);
    gm_cache_describe(cache);
    status = reserve(cache, options.reserve_bytes);
    if (status != GPUMEM_OK) {
        struct gm_error_record saved;
        gm_error_save(&saved);
        (void)gpumem_resource_destroy(cache->resource);
        gm_error_restore(&saved);
        return status;
    }
    *resource = cache->resource;
    return GPUMEM_OK;
}
