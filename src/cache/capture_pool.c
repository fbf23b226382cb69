/* Memory of captures: what a graph was captured with stays its own until its owner is done. */
#include "cache/cache.h"

#include "base/cancel.h"
#include "memory/current.h"
#include "memory/driver_error.h"
#include "memory/resource.h"

#include <stdlib.h>

struct gpumem_capture_pool {
    unsigned generation;
    struct gm_cache *cache;
    struct gm_lane *lane;
    CUstream *streams; /* that are being captured */
    size_t stream_count, stream_room;
    struct gpumem_capture_pool *next;
};

struct gm_lane *gm_capture_lane(struct gm_cache *cache, CUstream stream) {
    for (struct gpumem_capture_pool *pool = cache->captures; pool; pool = pool->next)
        for (size_t i = 0; i < pool->stream_count; i++)
            if (pool->streams[i] == stream)
                return pool->lane;
    return NULL;
}

gpumem_status gpumem_capture_pool_create(gpumem_resource *resource, gpumem_capture_pool **pool) {
    GM_UNCANCELLED;
    GM_CHECK(resource, "gpumem_capture_pool_create");
    GM_REQUIRE(pool, "gpumem_capture_pool_create: pool is NULL");
    struct gm_cache *cache = gm_cache_of(resource);
    GM_REQUIRE(cache, "gpumem_capture_pool_create: a %s resource is no cache", resource->kind);
    struct gpumem_capture_pool *made = calloc(1, sizeof *made);
    struct gm_lane *lane = calloc(1, sizeof *lane);
    if (!made || !lane) {
        free(made);
        free(lane);
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a capture pool");
    }
    made->generation = resource->generation;
    made->cache = cache;
    made->lane = lane;
    lane->capture = 1;
    lane->stream = GPUMEM_STREAM_NONE;
    pthread_mutex_lock(&cache->lock);
    lane->next = cache->lanes;
    cache->lanes = lane;
    made->next = cache->captures;
    cache->captures = made;
    pthread_mutex_unlock(&cache->lock);
    *pool = made;
    return GPUMEM_OK;
}

/* The cache's lock is held. */
static gpumem_status add_stream(struct gpumem_capture_pool *pool, CUstream stream) {
    struct gm_cache *cache = pool->cache;
    GM_REQUIRE(!gm_capture_lane(cache, stream),
               "gpumem_capture_pool_begin: the stream has a capture pool already");
    if (pool->stream_count == pool->stream_room) {
        size_t room = pool->stream_room ? 2 * pool->stream_room : 4;
        CUstream *grown = realloc(pool->streams, room * sizeof(CUstream));
        if (!grown)
            return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to note a stream");
        pool->streams = grown;
        pool->stream_room = room;
    }
    /* No thread may find memory of the stream's that is not the capture's. */
    for (struct gm_lane *lane = cache->lanes; lane; lane = lane->next)
        if (!cache->host && lane->stream == stream && !lane->ended && !lane->capture)
            gm_cache_flush_lane(cache, lane);
    pool->streams[pool->stream_count++] = stream;
    atomic_fetch_add(&cache->capturing, 1);
    return GPUMEM_OK;
}

gpumem_status gpumem_capture_pool_begin(gpumem_capture_pool *pool, CUstream stream) {
    GM_UNCANCELLED;
    GM_CHECK(pool, "gpumem_capture_pool_begin");
    GM_REQUIRE(stream != GPUMEM_STREAM_NONE && stream != GPUMEM_STREAM_PER_THREAD,
               "gpumem_capture_pool_begin: name a stream");
    pthread_mutex_lock(&pool->cache->lock);
    gpumem_status status = add_stream(pool, stream);
    pthread_mutex_unlock(&pool->cache->lock);
    return status;
}

gpumem_status gpumem_capture_pool_end(gpumem_capture_pool *pool, CUstream stream) {
    GM_UNCANCELLED;
    GM_CHECK(pool, "gpumem_capture_pool_end");
    int found = 0;
    pthread_mutex_lock(&pool->cache->lock);
    for (size_t i = 0; !found && i < pool->stream_count; i++) {
        found = pool->streams[i] == stream;
        if (found)
            pool->streams[i] = pool->streams[--pool->stream_count];
    }
    if (found)
        atomic_fetch_sub(&pool->cache->capturing, 1);
    pthread_mutex_unlock(&pool->cache->lock);
    GM_REQUIRE(found, "gpumem_capture_pool_end: the pool was not begun on this stream");
    return GPUMEM_OK;
}

static void unlink_pool(struct gpumem_capture_pool *pool) {
    struct gpumem_capture_pool **at = &pool->cache->captures;
    while (*at != pool)
        at = &(*at)->next;
    *at = pool->next;
}

/* What was freed on streams that could not be asked is free now: the graph is done. */
static void give_held(struct gm_cache *cache, struct gm_lane *lane) {
    struct gm_block *block = lane->held, *next;
    lane->held = NULL;
    for (; block; block = next) {
        next = block->next;
        gm_block_end(cache, block);
    }
}

gpumem_status gpumem_capture_pool_destroy(gpumem_capture_pool *pool, CUstream last) {
    GM_UNCANCELLED;
    if (!pool)
        return GPUMEM_OK;
    GM_CHECK(pool, "gpumem_capture_pool_destroy");
    struct gm_cache *cache = pool->cache;
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, cache->device);
    if (status != GPUMEM_OK)
        return status;
    pthread_mutex_lock(&cache->lock);
    size_t capturing = pool->stream_count;
    if (!capturing) {
        give_held(cache, pool->lane);
        pool->lane->capture = 0;
        pool->lane->stream = last;
        gm_lane_end(cache, pool->lane);
        gm_lanes_prune(cache);
        unlink_pool(pool);
    }
    pthread_mutex_unlock(&cache->lock);
    gm_current_leave(&current);
    if (capturing)
        return gm_fail(GPUMEM_ERROR_BUSY,
                       "gpumem_capture_pool_destroy: begun on %zu stream%s and not ended",
                       capturing, capturing == 1 ? "" : "s");
    free(pool->streams);
    free(pool);
    return GPUMEM_OK;
}
