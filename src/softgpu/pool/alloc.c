/* Allocating and freeing in stream order. */
#include "softgpu/pool/internal.h"

#include "softgpu/address/phys.h"
#include "softgpu/context/address_32.h"
#include "softgpu/core/config.h"
#include "softgpu/memory/allocation.h"
#include "softgpu/stream/capture.h"

/* ---- Choosing a block ------------------------------------------------------------------------ */

/* What the stream freed itself, in exactly this size: the common case of a loop. */
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

/* What the stream freed itself, what others freed before it, or what is idle: where it begins
 * lowest, neighbours counted as one. As recorded on H200: a stream that waited for a free gets that
 * block although the pool has memory to spare above it, cuts the first of two although the second
 * fits closer, and has two that lie side by side as one. The block may be a run's first. */
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

/* What another stream freed, when this stream is made to wait for it. */
static struct sg_block *find_by_waiting(struct sg_pool *pool, struct sg_stream *stream,
                                        size_t size) {
    struct sg_block *block = NULL;
    struct sg_cache *cache = pool->caches;
    for (; cache && !block; cache = block ? cache : cache->next)
        block = sg_places_find(&cache->places, size, UINT64_MAX);
    if (!block)
        return NULL;
    struct sg_op *op = sg_op_new(NULL);
    if (!op)
        return NULL;
    if (!sg_op_wait_for(op, (struct sg_token){block->cache->stream, block->number})) {
        sg_op_free(op);
        return NULL;
    }
    return sg_stream_submit(stream, op) == CUDA_SUCCESS ? block : NULL;
}

/* The order of the reuse rules is that of the programming guide: inner dependencies are made only
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
    block->state = SG_BLOCK_LIVE;
    block->range = (struct sg_range){
        .start = segment->map.address + offset,
        .size = bytes,
        .kind = SG_RANGE_POOL,
        .device = pool->device,
        .phys = segment->map.phys,
        .phys_offset = offset,
        .owner = block,
    };
    if (!sg_range_insert(&block->range)) {
        /* The addresses of a segment are its pool's own, so nothing else can lie there. */
        sg_log(0, "pool memory at 0x%llx overlaps something",
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

/* A run comes after all that its blocks come after: after what the stream does now. */
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
    size_t size = (bytes + SG_BLOCK_UNIT - 1) / SG_BLOCK_UNIT * SG_BLOCK_UNIT;
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

/* In another stream than those that capture the call is unsafe; in those it is not. */
static CUresult capture_allows(const struct sg_stream *stream) {
    return stream->capture ? sg_capture_valid(stream) : sg_capture_unsafe();
}

/* As on H200: the stream is looked at first, the address is 0 where there is none, and zero bytes
 * need nothing. */
static CUresult begin(CUdeviceptr *address, CUstream handle, struct sg_stream **stream) {
    if (address)
        *address = 0;
    CUresult result = sg_stream_from_handle(handle, stream);
    if (result == CUDA_SUCCESS)
        result = capture_allows(*stream);
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

static CUresult capture_free(struct sg_stream *stream, CUdeviceptr address) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};
    params.free.dptr = address;
    return sg_capture_node(stream, &params);
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

/* ---- Freeing --------------------------------------------------------------------------------- */

static unsigned char *host_bytes(const struct sg_block *block) {
    return block->segment->map.phys->host + block->offset;
}

static CUresult run_poison(struct sg_op *op) {
    sg_poison((unsigned char *)(uintptr_t)op->data.words[0], op->data.words[1], SG_POISON_FREED);
    return CUDA_SUCCESS;
}

/* The block stays pending until this has run, so that its bytes stay where they are. */
static CUresult poison_in_order(const struct sg_block *block, struct sg_stream *stream) {
    struct sg_op *op = sg_op_new(run_poison);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->data.words[0] = (uintptr_t)host_bytes(block);
    op->data.words[1] = block->size;
    return sg_stream_submit(stream, op);
}

static void count_out(struct sg_pool *pool, struct sg_block *block) {
    sg_range_remove(&block->range);
    pool->live--;
    pool->used -= block->range.size;
}

/* Puts a live block aside until the stream has completed `number`; without a stream it is free at
 * once. A free that is complete stays its stream's own until another stream takes it by a rule, or
 * the host has synchronized. */
static CUresult put_aside(struct sg_block *block, struct sg_stream *stream, uint64_t number) {
    struct sg_pool *pool = block->segment->pool;
    struct sg_token after = block->after;
    /* What was imported is of no use to anyone else. */
    bool pend = stream && (!pool->imported || stream->completed < number);
    if (pend && !sg_block_pend(block, stream, number))
        return CUDA_ERROR_OUT_OF_MEMORY;
    count_out(pool, block);
    block->after = (struct sg_token){0};
    if (!pend)
        sg_block_idle(block);
    sg_token_release(&after);
    if (pool->destroyed)
        sg_pool_collect(pool);
    return CUDA_SUCCESS;
}

static CUresult free_in_order(struct sg_block *block, struct sg_stream *stream) {
    CUresult result = CUDA_SUCCESS;
    if (sg_config()->poison && !block->segment->pool->imported)
        result = poison_in_order(block, stream);
    struct sg_token point;
    if (result == CUDA_SUCCESS)
        result = sg_free_point(stream, &point);
    if (result != CUDA_SUCCESS)
        return result;
    result = put_aside(block, stream, point.stream ? point.number : stream->submitted);
    sg_token_release(&point);
    return result;
}

/* cuMemAlloc's memory is known no more at once, and its bytes go when the stream gets there. */
static void finish_plain(struct sg_op *op) {
    sg_allocation_end((struct sg_range *)(uintptr_t)op->data.words[0]);
}

static CUresult free_plain(struct sg_range *range, struct sg_stream *stream) {
    struct sg_op *op = sg_op_new(NULL);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->data.words[0] = (uintptr_t)range;
    op->finish = finish_plain;
    uint64_t id = range->buffer_id;
    sg_range_remove(range);
    CUresult result = sg_stream_submit(stream, op);
    if (result != CUDA_SUCCESS) {
        sg_range_insert(range);
        range->buffer_id = id;
    }
    return result;
}

CUresult sg_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
    struct sg_stream *stream;
    CUresult result = sg_stream_from_handle(hStream, &stream);
    if (result == CUDA_SUCCESS)
        result = capture_allows(stream);
    if (result != CUDA_SUCCESS || dptr == 0)
        return result;
    if (stream->capture)
        return capture_free(stream, dptr);
    struct sg_range *range = sg_range_find(dptr);
    if (!range || range->start != dptr || range->variable)
        return CUDA_ERROR_INVALID_VALUE;
    /* Recorded: a context of the first API gets memory of a pool, and does not find it again. */
    if (range->kind == SG_RANGE_POOL)
        return sg_context_has_32_bit_addresses(stream->context)
                   ? CUDA_ERROR_INVALID_VALUE
                   : free_in_order(range->owner, stream);
    if (range->kind == SG_RANGE_DEVICE)
        return free_plain(range, stream);
    if (range->kind == SG_RANGE_GRAPH)
        return sg_graph_memory_free_async(range, stream);
    bool unsupported = range->kind == SG_RANGE_MANAGED || range->kind == SG_RANGE_EXTERNAL;
    return unsupported ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_pool_free(struct sg_range *range) {
    struct sg_block *block = range->owner;
    struct sg_token after = block->after;
    bool pending = !sg_token_complete(after);
    if (!pending && !block->segment->pool->imported)
        sg_poison(host_bytes(block), block->size, SG_POISON_FREED);
    return put_aside(block, pending ? after.stream : NULL, after.number);
}
