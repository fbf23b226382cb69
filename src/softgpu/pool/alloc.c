/* Allocation in stream order. */
#include "softgpu/pool/internal.h"

#include "softgpu/core/config.h"
#include "softgpu/stream/capture.h"

/* ---- Choosing a block ------------------------------------------------------------------------ */

/* A block of exactly this size that the stream itself freed: the common case in a loop. */
static struct sg_block *find_same(struct sg_pool *pool, const struct sg_stream *stream,
                                  size_t size) {
    struct sg_cache *cache = pool->caches ? sg_pool_cache(pool, stream) : NULL;
    struct sg_block *own = cache ? sg_places_find(&cache->places, size, UINT64_MAX) : NULL;
    return own && own->size == size ? own : NULL;
}

/* Either may be NULL. */
static struct sg_block *lower(struct sg_block *first, struct sg_block *second) {
    if (!first || !second)
        return first ? first : second;
    return sg_block_address(second) < sg_block_address(first) ? second : first;
}

/* The lowest block that the stream freed, that others freed before it, or that is idle; adjacent
 * blocks count as one. As recorded on H200: a stream that waited for a free gets that block even if
 * the pool has spare memory above, cuts the first of two even if the second fits more closely, and
 * gets two adjacent ones as one. The block may be the first of a run. */
static struct sg_block *find_usable(struct sg_pool *pool, struct sg_stream *stream, size_t size) {
    struct sg_block *best = sg_places_find(&pool->idle, size, UINT64_MAX);
    if (!pool->caches)
        return best;
    sg_pool_order(pool, stream, pool->reuse_follow);
    for (struct sg_cache *cache = pool->caches; cache; cache = cache->next)
        if (cache->usable > 0)
            best = lower(best, sg_places_find(&cache->places, size, cache->usable));
    struct sg_block *run =
        sg_pool_run(pool, size, best ? sg_block_address(best) : UINT64_MAX, !best);
    return run ? run : best;
}

/* Makes an operation wait for what a run of free blocks waits for. */
static bool wait_for_run(struct sg_op *op, struct sg_pool *pool, const struct sg_block *run,
                         size_t size) {
    for (struct sg_cache *cache = pool->caches; cache; cache = cache->next) {
        uint64_t number = 0;
        size_t length = 0;
        for (const struct sg_block *b = run; length < size; length += b->size, b = b->next)
            if (b->cache == cache && b->number > number)
                number = b->number;
        if (number > 0 && !sg_op_wait_for(op, (struct sg_token){cache->stream, number}))
            return false;
    }
    return true;
}

/* Blocks that other streams freed, once this stream is made to wait for them. */
static struct sg_block *find_by_waiting(struct sg_pool *pool, struct sg_stream *stream,
                                        size_t size) {
    struct sg_block *block = NULL;
    for (struct sg_cache *cache = pool->caches; cache; cache = cache->next) {
        cache->usable = UINT64_MAX;
        if (!block)
            block = sg_places_find(&cache->places, size, UINT64_MAX);
    }
    if (!block)
        block = sg_pool_run(pool, size, UINT64_MAX, true);
    struct sg_op *op = block ? sg_op_new(NULL) : NULL;
    if (!op)
        return NULL;
    if (!wait_for_run(op, pool, block, size)) {
        sg_op_free(op);
        return NULL;
    }
    return sg_stream_submit(stream, op) == CUDA_SUCCESS ? block : NULL;
}

/* The reuse rules apply in the order of the programming guide: internal dependencies are made only
 * when no more memory can be had. */
static CUresult find(struct sg_pool *pool, struct sg_stream *stream, size_t size,
                     struct sg_block **out) {
    struct sg_block *block = find_same(pool, stream, size);
    if (!block && pool->reuse_opportunistic && pool->caches)
        sg_pool_promote(pool);
    if (!block)
        block = find_usable(pool, stream, size);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!block) {
        result = sg_pool_grow(pool, size);
        if (result == CUDA_SUCCESS)
            block = find_usable(pool, stream, size);
    }
    if (!block && sg_pool_let_go(pool))
        block = find_usable(pool, stream, size);
    if (!block && pool->reuse_internal)
        block = find_by_waiting(pool, stream, size);
    *out = block;
    return block ? CUDA_SUCCESS : result;
}

/* ---- Allocating ------------------------------------------------------------------------------ */

/* Puts the block into the address map: `bytes` at `offset` of its segment. */
static bool make_live(struct sg_block *block, size_t offset, size_t bytes) {
    struct sg_pool_segment *segment = block->segment;
    struct sg_pool *pool = segment->pool;
    const struct sg_pool_step *step = sg_step_at(segment, offset);
    block->state = SG_BLOCK_LIVE;
    block->range = (struct sg_range){
        .start = segment->address + offset,
        .size = bytes,
        .ops = &sg_pool_range_ops,
        .device = pool->device,
        .phys = step->phys,
        .phys_offset = offset - step->offset,
        .owner = block,
    };
    if (!sg_range_insert(&block->range)) {
        /* The addresses of a segment belong to its pool, so nothing else can be there. */
        sg_log(SG_LOG_ERROR, "pool memory at 0x%llx overlaps something",
               (unsigned long long)block->range.start);
        return false;
    }
    pool->live++;
    pool->used += bytes;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    return true;
}

CUresult sg_block_live(struct sg_block *block, size_t offset, size_t bytes) {
    if (make_live(block, offset, bytes))
        return CUDA_SUCCESS;
    sg_token_release(&block->after);
    sg_block_idle(block);
    return CUDA_ERROR_UNKNOWN;
}

/* A run follows everything that its blocks follow: everything the stream has been given so far. */
static CUresult take(struct sg_block *block, struct sg_stream *stream, size_t size) {
    struct sg_token after = {0};
    bool run = block->size < size;
    CUresult result = run ? sg_free_point(stream, &after) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_block_take(block, size)) {
        sg_token_release(&after);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (run)
        block->after = after;
    return CUDA_SUCCESS;
}

static CUresult allocate(struct sg_pool *pool, struct sg_stream *stream, size_t bytes,
                         CUdeviceptr *address) {
    if (bytes > SIZE_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t whole = bytes + sg_red_zone(sg_config());
    size_t size = (whole + SG_BLOCK_UNIT - 1) / SG_BLOCK_UNIT * SG_BLOCK_UNIT;
    struct sg_block *block;
    CUresult result = find(pool, stream, size, &block);
    if (result != CUDA_SUCCESS)
        return result;
    result = take(block, stream, size);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_block_live(block, block->offset, bytes);
    if (result == CUDA_SUCCESS)
        *address = block->range.start;
    return result;
}

CUresult sg_pool_capture_allows(const struct sg_stream *stream) {
    return stream->capture ? sg_capture_valid(stream) : sg_capture_unsafe();
}

/* As on H200: the stream is checked first, the address is set to 0 if none is allocated, and zero
 * bytes need nothing. */
static CUresult begin(CUdeviceptr *address, CUstream handle, struct sg_stream **stream) {
    if (address)
        *address = 0;
    CUresult result = sg_stream_from_handle(handle, stream);
    if (result == CUDA_SUCCESS)
        result = sg_pool_capture_allows(*stream);
    return result == CUDA_SUCCESS && !address ? CUDA_ERROR_INVALID_VALUE : result;
}

/* "The allocation is owned by the graph instead of the memory pool. The memory pool's properties
 * are used to set the node's creation parameters." */
static CUresult capture_alloc(const struct sg_pool *pool, struct sg_stream *stream, size_t bytes,
                              CUdeviceptr *address) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params.alloc.poolProps.location.id = pool->device;
    params.alloc.bytesize = bytes;
    CUresult result = sg_capture_node(stream, &params);
    if (result == CUDA_SUCCESS)
        *address = params.alloc.dptr;
    return result;
}

static CUresult allocate_or_null(struct sg_pool *pool, struct sg_stream *stream, size_t bytes,
                                 CUdeviceptr *address) {
    if (stream->capture && bytes > 0)
        return capture_alloc(pool, stream, bytes, address);
    return bytes > 0 ? allocate(pool, stream, bytes, address) : CUDA_SUCCESS;
}

CUresult sg_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
    struct sg_stream *stream;
    struct sg_pool *pool;
    CUresult result = begin(dptr, hStream, &stream);
    if (result == CUDA_SUCCESS)
        result = sg_pool_current(stream->context->device, &pool);
    return result == CUDA_SUCCESS ? allocate_or_null(pool, stream, bytesize, dptr) : result;
}

CUresult sg_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool handle,
                                    CUstream hStream) {
    struct sg_stream *stream;
    struct sg_pool *pool = sg_pool_get(handle);
    CUresult result = begin(dptr, hStream, &stream);
    if (result == CUDA_SUCCESS && (!pool || pool->imported))
        return CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? allocate_or_null(pool, stream, bytesize, dptr) : result;
}
