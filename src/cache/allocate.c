/* Where a block comes from when the calling thread has none cached. */
#include "cache/cache.h"

#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"

/* The most that a separate block, without a class, needs. */
static size_t direct_bytes(const gpumem_request *request) {
    size_t slack = request->alignment > GM_CLASS_UNIT ? request->alignment : 0;
    return request->bytes > SIZE_MAX - slack ? SIZE_MAX : request->bytes + slack;
}

static int is_small(const struct gm_cache *cache, const struct gm_lane *lane,
                    const gpumem_request *request) {
    return !lane->pool && request->bytes <= cache->maximum_small_bytes &&
           request->alignment <= GM_CLASS_UNIT;
}

static enum gm_kind kind_of(const struct gm_cache *cache, const struct gm_lane *lane,
                            const gpumem_request *request) {
    if (is_small(cache, lane, request))
        return GM_KIND_SMALL;
    return cache->pages && request->bytes >= GM_HUGE_BYTES ? GM_KIND_HUGE : GM_KIND_LARGE;
}

struct gm_block *gm_cache_from_lane(struct gm_cache *cache, struct gm_lane *lane,
                                    const gpumem_request *request) {
    const enum gm_kind kind = kind_of(cache, lane, request);
    if (kind != GM_KIND_SMALL)
        return gm_lane_cut(cache, lane, kind, request->bytes, request->alignment);
    unsigned class = gm_class_of(request->bytes);
    struct gm_block *chain = gm_lane_take(cache, lane, class, gm_magazine_size(class));
    if (chain && chain->next)
        gm_magazine_fill(cache, lane, chain->next);
    return chain;
}

/* The same, after memory whose streams have passed has come back, then after taking over free
 * segments of other streams, then after joining pieces: in order of cost. */
static struct gm_block *from_cache(struct gm_cache *cache, struct gm_lane *lane,
                                   const gpumem_request *request, struct gm_late *late) {
    const enum gm_kind kind = kind_of(cache, lane, request);
    int small = kind == GM_KIND_SMALL;
    struct gm_block *block = NULL;
    /* Memory that the CPU writes stays in holds until they are checked: done before more memory is
     * touched. Holds have small blocks only. */
    if (small && gm_holds_settle(cache, late))
        block = gm_magazine_pop_ready(cache, gm_class_of(request->bytes));
    if (!block)
        block = gm_cache_from_lane(cache, lane, request);
    if (!block && !small)
        (void)gm_holds_settle(cache, late);
    if (!block && gm_pending_poll(cache, late))
        block = gm_cache_from_lane(cache, lane, request);
    size_t need = small ? request->bytes : direct_bytes(request);
    if (!block && gm_lane_adopt(cache, lane, kind, need, late))
        block = gm_cache_from_lane(cache, lane, request);
    if (!block) {
        gm_lanes_join(cache);
        (void)gm_lane_adopt(cache, lane, kind, need, late);
        block = gm_cache_from_lane(cache, lane, request);
    }
    return block;
}

static struct gm_block *look_again(struct gm_cache *cache, struct gm_lane *lane,
                                   const gpumem_request *request) {
    pthread_mutex_lock(&cache->lock);
    struct gm_block *block = gm_cache_from_lane(cache, lane, request);
    pthread_mutex_unlock(&cache->lock);
    return block;
}

/* Addresses are chosen with the alignment in mind. */
static size_t paged_bytes(const gpumem_request *request, enum gm_kind kind) {
    return kind == GM_KIND_SMALL ? gm_class_bytes(gm_class_of(request->bytes)) : request->bytes;
}

/* Several threads may find the cache empty at once: the first requests more, the others look again.
 * The requesting thread takes its part before others see the rest. The lock is not held. */
static gpumem_status from_upstream(struct gm_cache *cache, struct gm_lane *lane,
                                   const gpumem_request *request, struct gm_late *late,
                                   struct gm_block **block) {
    const enum gm_kind kind = kind_of(cache, lane, request);
    size_t need =
        kind == GM_KIND_SMALL ? gm_class_bytes(gm_class_of(request->bytes)) : direct_bytes(request);
    gpumem_status status = GPUMEM_OK;
    struct gm_segment *segment = NULL;
    pthread_mutex_lock(&cache->grow);
    *block = look_again(cache, lane, request);
    if (!*block)
        status = gm_late_enter(late);
    if (!*block && status == GPUMEM_OK && cache->pages)
        status = gm_pages_grow(cache, lane, request, (int)kind, paged_bytes(request, kind), block);
    else if (!*block && status == GPUMEM_OK)
        status = gm_segment_take(cache, lane, kind, need, &segment);
    if (segment) {
        pthread_mutex_lock(&cache->lock);
        gm_lane_link(lane, segment);
        *block = gm_cache_from_lane(cache, lane, request);
        pthread_mutex_unlock(&cache->lock);
        if (!*block)
            status = gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record a block");
    }
    pthread_mutex_unlock(&cache->grow);
    return status;
}

/* Before more memory is taken, free segments beyond a limit are given back, so that slowly
 * increasing sizes do not each leave one unused. The bytes in use at the end of a burst say little
 * about the next. */
static void give_surplus_back(struct gm_cache *cache, struct gm_late *late) {
    if (gm_late_enter(late) != GPUMEM_OK)
        return;
    pthread_mutex_lock(&cache->lock);
    struct gm_segment *surplus = gm_lanes_surplus(cache, gm_lanes_keep(cache), 0, late);
    pthread_mutex_unlock(&cache->lock);
    gm_segments_release(cache, surplus);
}

static gpumem_status take(struct gm_cache *cache, const gpumem_request *request,
                          struct gm_late *late, struct gm_block **block) {
    *block = NULL;
    (void)gm_thread_cache_of(cache); /* where magazines will be filled */
    pthread_mutex_lock(&cache->lock);
    struct gm_lane *lane = gm_capture_lane(cache, request->stream);
    if (!lane)
        lane = gm_lane_of(cache, request->stream);
    if (lane)
        *block = from_cache(cache, lane, request, late);
    pthread_mutex_unlock(&cache->lock);
    if (!lane)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record a stream");
    if (*block)
        return GPUMEM_OK;
    if (!cache->pages)
        give_surplus_back(cache, late);
    return from_upstream(cache, lane, request, late, block);
}

gpumem_status gm_cache_take(struct gm_cache *cache, const gpumem_request *request,
                            struct gm_block **block) {
    struct gm_late late = {.device = cache->device};
    gpumem_status status = take(cache, request, &late, block);
    gm_late_leave(&late);
    return status;
}
