/* Freeing in stream order, and the range operations of pools. */
#include "softgpu/pool/internal.h"

#include "softgpu/address/phys.h"
#include "softgpu/context/address_32.h"
#include "softgpu/core/config.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/leaving.h"

/* Host memory is at its address; that of a device lies in steps. */
static void poison(CUdeviceptr address, size_t size, int device) {
    size_t span = size;
    for (; size > 0; address += span, size -= span) {
        unsigned char *bytes = device < 0 ? (unsigned char *)(uintptr_t)address
                                          : sg_translate(device, address, size, SG_WRITE, &span);
        if (!bytes)
            return;
        sg_poison(bytes, span, SG_POISON_FREED);
    }
}

static int home_of(const struct sg_block *block) {
    const struct sg_pool *pool = block->segment->pool;
    return pool->managed ? -1 : pool->device;
}

static CUresult run_poison(struct sg_op *op) {
    poison(op->data.words[0], op->data.words[1], (int)op->data.words[2] - 1);
    return CUDA_SUCCESS;
}

/* The block remains pending until this has run, so its bytes remain in place. */
static CUresult poison_in_order(const struct sg_block *block, struct sg_stream *stream) {
    struct sg_op *op = sg_op_new(run_poison);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->data.words[0] = sg_block_address(block);
    op->data.words[1] = block->size;
    op->data.words[2] = (uint64_t)home_of(block) + 1;
    return sg_stream_submit(stream, op);
}

static void count_out(struct sg_pool *pool, struct sg_block *block) {
    sg_range_remove(&block->range);
    pool->live--;
    pool->used -= block->range.size;
}

/* Sets a live block aside until the stream has completed `number`; without a stream it is free at
 * once. A completed free still belongs to its stream until another stream takes it under a reuse
 * rule, or the host has synchronized. */
static CUresult put_aside(struct sg_block *block, struct sg_stream *stream, uint64_t number) {
    struct sg_pool *pool = block->segment->pool;
    struct sg_token after = block->after;
    /* Imported memory is of no use to anyone else. */
    bool pend = stream && (!pool->imported || stream->completed < number);
    if (stream && stream->completed < number &&
        !sg_leaving_add(block->range.start, block->range.size, stream, number))
        return CUDA_ERROR_OUT_OF_MEMORY;
    bool keep = sg_block_keeps(block);
    if (pend && !keep && !sg_block_pend(block, stream, number))
        return CUDA_ERROR_OUT_OF_MEMORY;
    count_out(pool, block);
    block->after = (struct sg_token){0};
    if (keep)
        sg_block_keep(block, pend ? stream : NULL, number);
    else if (!pend)
        sg_block_idle(block);
    sg_token_release(&after);
    if (pool->destroyed)
        sg_pool_collect(pool);
    return CUDA_SUCCESS;
}

static CUresult free_async(struct sg_range *range, struct sg_stream *stream) {
    struct sg_block *block = range->owner;
    CUresult result = CUDA_SUCCESS;
    /* As recorded: a context of the first API gets memory of a pool, but cannot free it here. */
    if (sg_context_has_32_bit_addresses(stream->context))
        return CUDA_ERROR_INVALID_VALUE;
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

/* cuMemFree does not wait here: the driver's documentation leaves that to the caller. Bytes that
 * earlier work may still touch, because the block was handed on in stream order, are not reused
 * before that work ends. */
static CUresult free_now(struct sg_range *range) {
    struct sg_block *block = range->owner;
    struct sg_token after = block->after;
    bool pending = !sg_token_complete(after);
    if (!pending && !block->segment->pool->imported)
        poison(sg_block_address(block), block->size, home_of(block));
    return put_aside(block, pending ? after.stream : NULL, after.number);
}

/* ---- The range of a block -------------------------------------------------------------------- */

static const struct sg_pool *pool_of(const struct sg_range *range) {
    const struct sg_block *block = range->owner;
    return block->segment->pool;
}

static struct sg_pages *pages_of(const struct sg_range *range) {
    const struct sg_block *block = range->owner;
    return block->segment->pool->managed ? &block->segment->pages : NULL;
}

static bool accessible(const struct sg_range *range, int device) {
    return (pool_of(range)->devices >> device) & 1;
}

static bool seen(const struct sg_context *context, const struct sg_range *range) {
    return accessible(range, context->device);
}

static bool reachable(const struct sg_context *context, const struct sg_range *range,
                      CUdeviceptr address, size_t size, unsigned rights) {
    (void)address, (void)size, (void)rights;
    return range->device < 0 || accessible(range, context->device);
}

static struct sg_phys *phys_at(const struct sg_range *range, CUdeviceptr address, size_t *offset) {
    const struct sg_block *block = range->owner;
    const struct sg_pool_segment *segment = block->segment;
    const struct sg_pool_step *step = sg_step_at(segment, (size_t)(address - segment->address));
    *offset = (size_t)(address - segment->address) - step->offset;
    return step->phys;
}

/* The handle does not change when the pool is destroyed, as on H200. The rights are as recorded,
 * before and after any cuMemPoolSetAccess. */
static void describe(const struct sg_range *range, struct sg_range_facts *facts) {
    const struct sg_pool *pool = pool_of(range);
    bool host = range->device < 0;
    facts->has_address_range = !host;
    facts->start = host ? 0 : range->start;
    facts->handle_types = (uint64_t)pool->props.handleTypes;
    facts->pool = pool->handle;
    facts->rights = SG_READ | SG_WRITE;
    facts->managed = pool->managed;
    facts->host_pointer = host || pool->managed;
    facts->decompress = !host && (pool->props.usage & CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS) != 0;
}

const struct sg_range_ops sg_pool_range_ops = {
    .free = free_now,
    .free_async = free_async,
    .seen = seen,
    .accessible = accessible,
    .reachable = reachable,
    .describe = describe,
    .phys_at = phys_at,
    .pages = pages_of,
    .bindable = true,
    .memops = SG_MEMOPS_IN_GRAPHS, /* as recorded on H200, for device memory too */
};

/* ---- cuMemFreeAsync -------------------------------------------------------------------------- */

static CUresult capture_free(struct sg_stream *stream, CUdeviceptr address) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};
    params.free.dptr = address;
    return sg_capture_node(stream, &params);
}

CUresult sg_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
    struct sg_stream *stream;
    CUresult result = sg_stream_from_handle(hStream, &stream);
    if (result == CUDA_SUCCESS)
        result = sg_pool_capture_allows(stream);
    if (result != CUDA_SUCCESS || dptr == 0)
        return result;
    if (stream->capture)
        return capture_free(stream, dptr);
    struct sg_range *range = sg_range_find(dptr);
    if (!range || range->start != dptr || range->variable)
        return CUDA_ERROR_INVALID_VALUE;
    if (range->ops->free_async)
        return range->ops->free_async(range, stream);
    return range->ops->free ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}
