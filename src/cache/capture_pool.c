/* Memory of captures: the memory that a graph was captured with remains the graph's until its owner
 * is done. */
#include "cache/cache.h"

#include "base/cancel.h"
#include "base/object.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/core/stream_waits.h"
#include "memory/object/closing.h"
#include "memory/object/resource.h"

#include <stdlib.h>

/* Its memory is in separate lanes, one for each stream, in whose order it is reused: two streams of
 * one capture run concurrently. */
struct gpumem_capture_pool {
    unsigned generation;
    struct gm_cache *cache;
};

struct gm_lane *gm_capture_lane(struct gm_cache *cache, CUstream stream) {
    if (!atomic_load_explicit(&cache->capturing, memory_order_relaxed))
        return NULL;
    for (struct gm_lane *lane = cache->lanes; lane; lane = lane->next)
        if (lane->begun && lane->stream == stream)
            return lane;
    return NULL;
}

gpumem_status gpumem_capture_pool_create(gpumem_resource *resource, gpumem_capture_pool **pool) {
    GM_UNCANCELLED;
    GM_CHECK(resource, "gpumem_capture_pool_create");
    GM_REQUIRE(pool, "gpumem_capture_pool_create: pool is NULL");
    struct gm_cache *cache = gm_cache_of(resource);
    GM_REQUIRE(cache, "gpumem_capture_pool_create: a %s resource is not a cache", resource->kind);
    struct gpumem_capture_pool *made = calloc(1, sizeof *made);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a capture pool");
    made->generation = resource->generation;
    made->cache = cache;
    pthread_mutex_lock(&cache->lock);
    cache->pools++;
    pthread_mutex_unlock(&cache->lock);
    *pool = made;
    return GPUMEM_OK;
}

/* ---- Streams that are captured; the cache's lock is held ------------------------------------- */

static struct gm_lane *find_lane(const struct gpumem_capture_pool *pool, CUstream stream) {
    struct gm_lane *lane = pool->cache->lanes;
    while (lane && (lane->pool != pool || lane->stream != stream))
        lane = lane->next;
    return lane;
}

static struct gm_lane *make_lane(struct gpumem_capture_pool *pool, CUstream stream) {
    struct gm_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return NULL;
    lane->pool = pool;
    lane->stream = stream;
    lane->next = pool->cache->lanes;
    pool->cache->lanes = lane;
    return lane;
}

static gpumem_status add_stream(struct gpumem_capture_pool *pool, CUstream stream) {
    struct gm_cache *cache = pool->cache;
    GM_REQUIRE(!gm_capture_lane(cache, stream),
               "gpumem_capture_pool_begin: the stream already has a capture pool");
    struct gm_lane *own = find_lane(pool, stream);
    if (!own)
        own = make_lane(pool, stream);
    if (!own)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record a stream");
    /* No thread may find memory of the stream that does not belong to the capture. */
    for (struct gm_lane *lane = cache->lanes; lane; lane = lane->next)
        if (!cache->host && lane->stream == stream && !lane->ended && !lane->pool)
            gm_cache_flush_lane(cache, lane);
    own->begun = 1;
    atomic_fetch_add(&cache->capturing, 1);
    return GPUMEM_OK;
}

gpumem_status gpumem_capture_pool_begin(gpumem_capture_pool *pool, CUstream stream) {
    GM_UNCANCELLED;
    GM_CHECK(pool, "gpumem_capture_pool_begin");
    GM_REQUIRE(stream != GPUMEM_STREAM_NONE && stream != GPUMEM_STREAM_PER_THREAD,
               "gpumem_capture_pool_begin: name a stream");
    GM_REQUIRE(stream && stream != GPUMEM_STREAM_LEGACY,
               "gpumem_capture_pool_begin: the default stream cannot be captured");
    pthread_mutex_lock(&pool->cache->lock);
    gpumem_status status = add_stream(pool, stream);
    pthread_mutex_unlock(&pool->cache->lock);
    return status;
}

gpumem_status gpumem_capture_pool_end(gpumem_capture_pool *pool, CUstream stream) {
    GM_UNCANCELLED;
    GM_CHECK(pool, "gpumem_capture_pool_end");
    pthread_mutex_lock(&pool->cache->lock);
    struct gm_lane *lane = find_lane(pool, stream);
    int found = lane && lane->begun;
    if (found) {
        lane->begun = 0;
        atomic_fetch_sub(&pool->cache->capturing, 1);
    }
    pthread_mutex_unlock(&pool->cache->lock);
    GM_REQUIRE(found, "gpumem_capture_pool_end: the pool was not begun on this stream");
    return GPUMEM_OK;
}

/* ---- The end of a pool ----------------------------------------------------------------------- */

static size_t count_begun(const struct gpumem_capture_pool *pool) {
    size_t count = 0;
    for (const struct gm_lane *lane = pool->cache->lanes; lane; lane = lane->next)
        count += lane->pool == pool && lane->begun;
    return count;
}

/* Memory retained for the graph becomes free with it; other streams that used it must have
 * passed. */
static void give_held(struct gm_cache *cache, struct gm_lane *lane) {
    struct gm_block *block = lane->held, *next;
    lane->held = NULL;
    for (; block; block = next) {
        next = block->next;
        block->next = NULL;
        gpumem_buffer *buffer = &block->buffer;
        for (size_t i = 0; i < buffer->wait_count; i++)
            if (buffer->waits[i].state == GM_WAIT_CAPTURING)
                buffer->waits[i].state = GM_WAIT_PASSED;
        gm_pending_add(cache, block);
    }
}

/* The cache's lock is held. */
static void end_lanes(const struct gpumem_capture_pool *pool, CUstream last) {
    struct gm_cache *cache = pool->cache;
    for (struct gm_lane *lane = cache->lanes; lane; lane = lane->next) {
        if (lane->pool != pool)
            continue;
        give_held(cache, lane);
        lane->pool = NULL;
        lane->stream = last;
        gm_lane_end(cache, lane);
    }
    (void)gm_pending_poll(cache, NULL);
    gm_lanes_prune(cache);
    cache->pools--;
}

gpumem_status gpumem_capture_pool_destroy(gpumem_capture_pool *pool, CUstream last) {
    GM_UNCANCELLED;
    if (!pool)
        return GPUMEM_OK;
    GM_CHECK(pool, "gpumem_capture_pool_destroy");
    struct gm_cache *cache = pool->cache;
    struct gm_current current;
    int entered = gm_closing_enter();
    gpumem_status status = gm_current_enter(&current, cache->device);
    if (status != GPUMEM_OK) {
        gm_closing_leave(entered);
        return status;
    }
    pthread_mutex_lock(&cache->lock);
    size_t begun = count_begun(pool);
    if (!begun)
        end_lanes(pool, last);
    pthread_mutex_unlock(&cache->lock);
    gm_current_leave(&current);
    gm_closing_leave(entered);
    if (begun)
        return gm_fail(GPUMEM_ERROR_BUSY,
                       "gpumem_capture_pool_destroy: begun on %zu stream%s and not ended", begun,
                       begun == 1 ? "" : "s");
    gm_bury(pool);
    return GPUMEM_OK;
}
