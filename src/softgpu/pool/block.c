/* Blocks: taking, returning, cutting and joining. */
#include "softgpu/pool/internal.h"

#include "softgpu/stream/schedule.h"

#include <limits.h>
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

static size_t whole_steps(const struct sg_block *block) {
    size_t first;
    if (block->size < pool_of(block)->least_step)
        return 0;
    return sg_steps_between(block->segment, block->offset, block->offset + block->size, &first);
}

static void index_add(struct sg_block *block) {
    if (block->state == SG_BLOCK_IDLE) {
        pool_of(block)->idle_steps += whole_steps(block);
        sg_places_add(&pool_of(block)->idle, block);
    } else {
        sg_places_add(&block->cache->places, block);
        queue_add(block->cache, block);
    }
}

/* Keeps the cache, even if it is now empty. */
static void index_remove(struct sg_block *block) {
    if (block->state == SG_BLOCK_IDLE) {
        pool_of(block)->idle_steps -= whole_steps(block);
        sg_places_remove(&pool_of(block)->idle, block);
    } else {
        sg_places_remove(&block->cache->places, block);
        queue_remove(block->cache, block);
    }
}

/* ---- Cutting and joining --------------------------------------------------------------------- */

static void link_behind(struct sg_block *block, struct sg_block *rest) {
    rest->previous = block;
    rest->next = block->next;
    *(rest->next ? &rest->next->previous : &block->segment->last) = rest;
    block->next = rest;
}

/* Absorbs the next block, which is in no index. */
static void swallow_next(struct sg_block *block) {
    struct sg_block *gone = block->next;
    block->size += gone->size;
    block->next = gone->next;
    *(block->next ? &block->next->previous : &block->segment->last) = block;
    free(gone);
}

/* Makes `block` end after `size` bytes; the rest becomes a block in the same state, in no index. */
static void cut(struct sg_block *block, size_t size, struct sg_block *rest) {
    rest->segment = block->segment;
    rest->offset = block->offset + size;
    rest->size = block->size - size;
    rest->state = block->state;
    rest->cache = block->cache;
    rest->number = block->number;
    block->size = size;
    link_behind(block, rest);
}

/* Removes the block from its index; the last pending block of a cache takes the cache with it. */
static void leave(struct sg_block *block) {
    struct sg_cache *cache = block->cache;
    index_remove(block);
    if (cache && !cache->first)
        end_cache(pool_of(block), cache);
    block->cache = NULL;
}

static struct sg_token pending_after(const struct sg_block *block) {
    struct sg_cache *cache = block->cache;
    if (block->state != SG_BLOCK_PENDING || cache->stream->completed >= block->number)
        return (struct sg_token){0};
    sg_stream_ref(cache->stream);
    return (struct sg_token){cache->stream, block->number};
}

bool sg_block_take(struct sg_block *block, size_t size) {
    struct sg_block *last = block, *rest = NULL;
    size_t before = 0;
    for (; before + last->size < size; last = last->next)
        before += last->size;
    if (before + last->size > size) {
        rest = calloc(1, sizeof *rest);
        if (!rest)
            return false;
    }
    struct sg_token after = last == block ? pending_after(block) : (struct sg_token){0};
    if (rest) {
        index_remove(last);
        cut(last, size - before, rest);
        index_add(rest);
        last->cache = NULL;
    }
    for (struct sg_block *b = block; b != last; b = b->next)
        leave(b);
    if (!rest)
        leave(last);
    while (block->size < size)
        swallow_next(block);
    block->after = after;
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

struct sg_block *sg_block_carve(struct sg_block *idle, size_t offset, size_t size) {
    size_t before = offset - idle->offset, behind = idle->size - before - size;
    struct sg_block *part = before ? calloc(1, sizeof *part) : idle;
    struct sg_block *rest = behind ? calloc(1, sizeof *rest) : NULL;
    if (!part || (behind && !rest)) {
        if (part != idle)
            free(part);
        free(rest);
        return NULL;
    }
    index_remove(idle);
    if (before) {
        cut(idle, before, part);
        index_add(idle);
    }
    if (rest) {
        cut(part, size, rest);
        index_add(rest);
    }
    return part;
}

void sg_block_gone(struct sg_block *block) {
    block->state = SG_BLOCK_GONE;
    pool_of(block)->gone += block->size;
    if (block->next && block->next->state == SG_BLOCK_GONE)
        swallow_next(block);
    if (block->previous && block->previous->state == SG_BLOCK_GONE)
        swallow_next(block->previous);
}

static size_t end_of(const struct sg_block *block) {
    return block->offset + block->size;
}

void sg_blocks_join(struct sg_block *first, size_t end, size_t step_end, struct sg_block **spare) {
    struct sg_block *last = first;
    for (;; last = last->next) {
        if (last->state == SG_BLOCK_IDLE)
            index_remove(last);
        if (end_of(last) >= end || !last->next)
            break;
    }
    if (last->state == SG_BLOCK_GONE && end_of(last) > step_end) {
        cut(last, step_end - last->offset, *spare);
        *spare = NULL;
    }
    for (struct sg_block *b = first;; b = b->next) {
        if (b->state == SG_BLOCK_GONE)
            pool_of(b)->gone -= b->size;
        if (b == last)
            break;
    }
    size_t whole = end_of(last);
    while (first->next && end_of(first) < whole)
        swallow_next(first);
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
    /* A marker that can complete does so only when checked. */
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

/* Synchronizing the legacy stream synchronizes the blocking ones. */
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

/* ---- Runs of blocks that one stream may use -------------------------------------------------- */

/* Bounds of a search that is allowed to fail. */
#define RUN_LIMIT  64
#define STEP_LIMIT 1024

static bool is_usable(const struct sg_block *block) {
    return block->state == SG_BLOCK_IDLE ||
           (block->state == SG_BLOCK_PENDING && block->number <= block->cache->usable);
}

/* The start of the run with this pending block; NULL if an earlier pending block is in it too. */
static struct sg_block *run_begin(struct sg_block *block) {
    struct sg_block *before = block->previous;
    if (!before || !is_usable(before))
        return block;
    if (before->state == SG_BLOCK_PENDING)
        return NULL;
    struct sg_block *other = before->previous;
    return other && is_usable(other) ? NULL : before;
}

static bool is_long(const struct sg_block *block, size_t size, unsigned *steps) {
    size_t length = 0;
    for (; block && is_usable(block) && *steps > 0; block = block->next, --*steps) {
        length += block->size;
        if (length >= size)
            return true;
    }
    return false;
}

struct sg_block *sg_pool_run(struct sg_pool *pool, size_t size, CUdeviceptr below, bool thorough) {
    struct sg_block *found = NULL;
    unsigned blocks = thorough ? UINT_MAX : RUN_LIMIT, steps = thorough ? UINT_MAX : STEP_LIMIT;
    for (struct sg_cache *cache = pool->caches; cache; cache = cache->next) {
        if (cache->usable == 0)
            continue;
        for (struct sg_block *b = cache->first; b && blocks > 0; b = b->queue_next, blocks--) {
            struct sg_block *begin = is_usable(b) ? run_begin(b) : NULL;
            if (!begin || sg_block_address(begin) >= below || !is_long(begin, size, &steps))
                continue;
            found = begin;
            below = sg_block_address(begin);
        }
    }
    return found;
}
