/* Blocks: taking, giving back, cutting and joining. */
#include "softgpu/pool/internal.h"

#include "softgpu/stream/schedule.h"

#include <stdlib.h>

static struct sg_pool *pool_of(const struct sg_block *block) {
    return block->segment->pool;
}

/* ---- Caches ---------------------------------------------------------------------------------- */

struct sg_cache *sg_pool_cache(struct sg_pool *pool, const struct sg_stream *stream) {
    struct sg_cache *cache = pool->caches;
    while (cache && cache->stream != stream)
        cache = cache->next;
    return cache;
}

static struct sg_cache *make_cache(struct sg_pool *pool, struct sg_stream *stream) {
    struct sg_cache *cache = pool->spare;
    pool->spare = NULL;
    if (!cache)
        cache = calloc(1, sizeof *cache);
    if (!cache)
        return NULL;
    sg_stream_ref(stream);
    cache->stream = stream;
    cache->next = pool->caches;
    pool->caches = cache;
    return cache;
}

static void end_cache(struct sg_pool *pool, struct sg_cache *cache) {
    struct sg_cache **link = &pool->caches;
    while (*link != cache)
        link = &(*link)->next;
    *link = cache->next;
    sg_stream_unref(cache->stream);
    cache->stream = NULL;
    cache->next = NULL;
    if (pool->spare)
        free(cache);
    else
        pool->spare = cache;
}

static void queue_add(struct sg_cache *cache, struct sg_block *block) {
    block->queue_next = NULL;
    block->queue_previous = cache->last;
    if (cache->last)
        cache->last->queue_next = block;
    else
        cache->first = block;
    cache->last = block;
}

static void queue_remove(struct sg_cache *cache, struct sg_block *block) {
    if (block->queue_previous)
        block->queue_previous->queue_next = block->queue_next;
    else
        cache->first = block->queue_next;
    if (block->queue_next)
        block->queue_next->queue_previous = block->queue_previous;
    else
        cache->last = block->queue_previous;
}

/* ---- Index ----------------------------------------------------------------------------------- */

static bool fills_segment(const struct sg_block *block) {
    return !block->previous && !block->next;
}

static void index_add(struct sg_block *block) {
    if (block->state == SG_BLOCK_IDLE) {
        pool_of(block)->idle_segments += fills_segment(block);
        sg_bins_add(&pool_of(block)->idle, block);
    } else {
        sg_bins_add(&block->cache->bins, block);
        queue_add(block->cache, block);
    }
}

/* The cache stays, even when it is empty now. */
static void index_remove(struct sg_block *block) {
    if (block->state == SG_BLOCK_IDLE) {
        pool_of(block)->idle_segments -= fills_segment(block);
        sg_bins_remove(&pool_of(block)->idle, block);
    } else {
        sg_bins_remove(&block->cache->bins, block);
        queue_remove(block->cache, block);
    }
}

/* ---- Cutting and joining --------------------------------------------------------------------- */

static void link_behind(struct sg_block *block, struct sg_block *rest) {
    rest->previous = block;
    rest->next = block->next;
    if (rest->next)
        rest->next->previous = rest;
    block->next = rest;
}

/* Takes in the next block, which is in no index. */
static void swallow_next(struct sg_block *block) {
    struct sg_block *gone = block->next;
    block->size += gone->size;
    block->next = gone->next;
    if (block->next)
        block->next->previous = block;
    free(gone);
}

bool sg_block_take(struct sg_block *block, size_t size) {
    struct sg_block *rest = NULL;
    if (block->size > size) {
        rest = calloc(1, sizeof *rest);
        if (!rest)
            return false;
    }
    index_remove(block);
    if (rest) {
        rest->segment = block->segment;
        rest->offset = block->offset + size;
        rest->size = block->size - size;
        rest->state = block->state;
        rest->cache = block->cache;
        rest->number = block->number;
        block->size = size;
        link_behind(block, rest);
        index_add(rest);
    }
    struct sg_cache *cache = block->cache;
    if (block->state == SG_BLOCK_PENDING) {
        if (cache->stream->completed < block->number) {
            sg_stream_ref(cache->stream);
            block->after = (struct sg_token){cache->stream, block->number};
        }
        if (!cache->first)
            end_cache(pool_of(block), cache);
    }
    block->cache = NULL;
    block->number = 0;
    block->state = SG_BLOCK_LIVE;
    return true;
}

void sg_block_idle(struct sg_block *block) {
    block->state = SG_BLOCK_IDLE;
    block->number = 0;
    block->cache = NULL;
    if (block->next && block->next->state == SG_BLOCK_IDLE) {
        index_remove(block->next);
        swallow_next(block);
    }
    if (block->previous && block->previous->state == SG_BLOCK_IDLE) {
        block = block->previous;
        index_remove(block);
        swallow_next(block);
    }
    index_add(block);
    if (pool_of(block)->imported)
        sg_segment_release(block->segment);
}

bool sg_block_pend(struct sg_block *block, struct sg_stream *stream, uint64_t number) {
    struct sg_cache *cache = sg_pool_cache(pool_of(block), stream);
    if (!cache)
        cache = make_cache(pool_of(block), stream);
    if (!cache)
        return false;
    block->state = SG_BLOCK_PENDING;
    block->cache = cache;
    block->number = number;
    index_add(block);
    return true;
}

static void promote(struct sg_pool *pool, struct sg_cache *cache) {
    /* Markers that may complete do so when someone looks. */
    if (cache->stream->head && !cache->stream->head->run)
        sg_stream_settle(cache->stream);
    while (cache->first && cache->stream->completed >= cache->first->number) {
        struct sg_block *block = cache->first;
        index_remove(block);
        sg_block_idle(block);
    }
    if (!cache->first)
        end_cache(pool, cache);
}

void sg_pool_promote(struct sg_pool *pool) {
    struct sg_cache *next;
    for (struct sg_cache *cache = pool->caches; cache; cache = next) {
        next = cache->next;
        promote(pool, cache);
    }
}

/* Synchronizing the legacy stream is synchronizing the blocking ones. */
static bool is_seen(const struct sg_stream *of, const struct sg_context *context,
                    const struct sg_stream *stream) {
    if (!stream && sg_context_includes(context, of->context))
        return true;
    if (of->context != context)
        return !of->context->alive;
    bool blocking = !(of->flags & CU_STREAM_NON_BLOCKING);
    return !stream || of == stream || (stream == context->legacy && blocking);
}

void sg_pool_promote_seen(struct sg_pool *pool, const struct sg_context *context,
                          const struct sg_stream *stream) {
    struct sg_cache *next;
    for (struct sg_cache *cache = pool->caches; cache; cache = next) {
        next = cache->next;
        if (is_seen(cache->stream, context, stream))
            promote(pool, cache);
    }
}

/* ---- Joining what one stream may use --------------------------------------------------------- */

static bool usable_by(const struct sg_block *block, const struct sg_cache *cache) {
    return block->state == SG_BLOCK_IDLE ||
           (block->state == SG_BLOCK_PENDING && block->cache == cache);
}

/* Joins the run that starts at `block`; it becomes pending until the latest of its frees. */
static bool join_run(struct sg_block *block, struct sg_cache *cache) {
    bool pending = block->state == SG_BLOCK_PENDING;
    bool joinable = block->next && usable_by(block->next, cache);
    if (!joinable || (!pending && block->next->state == SG_BLOCK_IDLE))
        return false;
    index_remove(block);
    while (block->next && usable_by(block->next, cache)) {
        if (block->next->number > block->number)
            block->number = block->next->number;
        index_remove(block->next);
        swallow_next(block);
    }
    block->state = SG_BLOCK_PENDING;
    block->cache = cache;
    index_add(block);
    return true;
}

bool sg_pool_join(struct sg_pool *pool, struct sg_stream *stream) {
    struct sg_cache *cache = sg_pool_cache(pool, stream);
    if (!cache)
        return false;
    bool joined = false;
    for (struct sg_pool_segment *segment = pool->first; segment; segment = segment->next)
        for (struct sg_block *block = segment->blocks; block; block = block->next)
            if (usable_by(block, cache))
                joined |= join_run(block, cache);
    return joined;
}
