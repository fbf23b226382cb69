/*
 * cuMemcpyBatchAsync and cuMemcpy3DBatchAsync: many copies, queued together or not at all.
 *
 * "The batch as a whole executes in stream order"; within it any order is correct, so the order of
 * the arrays is used.
 */
#include "softgpu/copy/copy.h"
#include "softgpu/core/calls.h"

/* Prepared copies, linked by `next` in order. */
struct batch {
    const struct sg_context *context; /* the stream's */
    struct sg_op *first, *last;
    bool wait; /* a source still has to be read before the call returns */
};

static CUresult add(struct batch *batch, struct sg_box *box, CUmemcpySrcAccessOrder order) {
    bool now = order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    struct sg_op *op;
    CUresult result = sg_copy_prepare(batch->context, box, now, &batch->wait, &op);
    if (result != CUDA_SUCCESS)
        return result;
    if (batch->last)
        batch->last->next = op;
    else
        batch->first = op;
    batch->last = op;
    return CUDA_SUCCESS;
}

static void discard(struct sg_op *op) {
    while (op) {
        struct sg_op *next = op->next;
        sg_copy_discard(op);
        op = next;
    }
}

/* Only the first can fail: it already waits for what default-stream rules require of the others. */
static CUresult submit(struct batch *batch, struct sg_stream *stream) {
    CUresult result = CUDA_SUCCESS;
    struct sg_op *op = batch->first;
    while (op && result == CUDA_SUCCESS) {
        struct sg_op *next = op->next;
        result = sg_copy_submit(stream, op);
        op = next;
    }
    if (result != CUDA_SUCCESS) {
        discard(op);
        return result;
    }
    struct sg_token token = batch->wait ? sg_stream_token(stream) : (struct sg_token){0};
    result = sg_token_wait(token);
    sg_token_release(&token);
    sg_schedule_chance();
    return result;
}

/* The default stream is refused before any other check, including cuInit, and on H200 even before
 * *failed is set to the index that means none; CU_STREAM_LEGACY after that. */
static CUresult find_stream(CUstream handle, size_t *failed, struct sg_stream **stream) {
    if (!handle && !sg_thread()->per_thread_stream)
        return CUDA_ERROR_INVALID_VALUE;
    if (failed)
        *failed = SIZE_MAX;
    CUresult result = sg_context_admits();
    if (result == CUDA_SUCCESS)
        result = handle == CU_STREAM_LEGACY ? CUDA_ERROR_INVALID_VALUE
                                            : sg_stream_from_handle(handle, stream);
    /* The capture continues, as on H200. */
    bool captures = result == CUDA_SUCCESS && (*stream)->capture;
    return captures ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : result;
}

static bool known_order(CUmemcpySrcAccessOrder order) {
    return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

static bool known_flags(unsigned flags) {
    return (flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE) == 0;
}

/* ---- Rows ----------------------------------------------------------------------------------- */

static CUresult check_attributes(const CUmemcpyAttributes *attrs, const size_t *indices,
                                 size_t attributes, size_t count) {
    if (!attrs || !indices || attributes == 0 || attributes > count || indices[0] != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 1; i < attributes; i++)
        if (indices[i] <= indices[i - 1] || indices[i] >= count)
            return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < attributes; i++)
        if (!known_order(attrs[i].srcAccessOrder) || !known_flags(attrs[i].flags))
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult sg_cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                               CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
                               size_t *failIdx, CUstream hStream) {
    struct sg_stream *stream;
    CUresult result = find_stream(hStream, failIdx, &stream);
    if (result == CUDA_SUCCESS && (!dsts || !srcs || !sizes || count == 0))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = check_attributes(attrs, attrsIdxs, numAttrs, count);
    if (result != CUDA_SUCCESS)
        return result;
    struct batch batch = {.context = stream->context};
    size_t attribute = 0, i;
    for (i = 0; i < count && result == CUDA_SUCCESS; i++) {
        if (attribute + 1 < numAttrs && attrsIdxs[attribute + 1] == i)
            attribute++;
        struct sg_box box = sg_box_linear(dsts[i], SG_ROLE_ANY, srcs[i], SG_ROLE_ANY, sizes[i]);
        result = sizes[i] == 0 ? CUDA_ERROR_INVALID_VALUE
                               : add(&batch, &box, attrs[attribute].srcAccessOrder);
    }
    if (result == CUDA_SUCCESS)
        return submit(&batch, stream);
    discard(batch.first);
    if (failIdx)
        *failIdx = i - 1;
    return result;
}

CUresult sg_cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                  CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
                                  CUstream hStream) {
    /* On H200 the per-thread form of the second version refuses the default stream, too. */
    if (!dsts || !srcs || !sizes || count == 0 || !hStream)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, NULL,
                                 hStream);
}

/* ---- Boxes ---------------------------------------------------------------------------------- */

/* Extents, offsets and row lengths count elements of the arrays involved; without any, bytes. */
static CUresult find_unit(const CUDA_MEMCPY3D_BATCH_OP *entry, size_t *unit) {
    const CUmemcpy3DOperand *ends[2] = {&entry->dst, &entry->src};
    *unit = 0;
    for (int i = 0; i < 2; i++) {
        if (ends[i]->type != CU_MEMCPY_OPERAND_TYPE_ARRAY)
            continue;
        const struct sg_array *array = sg_array_get(ends[i]->op.array.array);
        if (!array || (*unit && *unit != array->element))
            return CUDA_ERROR_INVALID_VALUE;
        *unit = array->element;
    }
    if (!*unit)
        *unit = 1;
    return CUDA_SUCCESS;
}

static CUresult place_pointer(const CUmemcpy3DOperand *operand, const struct sg_box *box,
                              size_t unit, struct sg_side *side) {
    static const size_t origin[3] = {0, 0, 0};
    size_t row;
    if (operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY)
        return CUDA_SUCCESS;
    if (operand->type != CU_MEMCPY_OPERAND_TYPE_POINTER ||
        __builtin_mul_overflow(operand->op.ptr.rowLength, unit, &row))
        return CUDA_ERROR_INVALID_VALUE;
    side->at.address = operand->op.ptr.ptr;
    side->role = SG_ROLE_ANY;
    return sg_side_in_rows(side, box, origin, row, operand->op.ptr.layerHeight);
}

static CUresult place_array(const CUmemcpy3DOperand *operand, const struct sg_box *box, size_t unit,
                            struct sg_side *side) {
    if (operand->type != CU_MEMCPY_OPERAND_TYPE_ARRAY)
        return CUDA_SUCCESS;
    size_t offset[3] = {operand->op.array.offset.x, operand->op.array.offset.y,
                        operand->op.array.offset.z};
    if (__builtin_mul_overflow(offset[0], unit, &offset[0]))
        return CUDA_ERROR_INVALID_VALUE;
    return sg_side_in_array(side, box, offset, operand->op.array.array);
}

/* *late is set for errors at a point where H200 no longer reports the entry at fault. */
static CUresult add_box(struct batch *batch, const CUDA_MEMCPY3D_BATCH_OP *entry, bool *late) {
    struct sg_box box = {.height = entry->extent.height, .depth = entry->extent.depth};
    bool empty = entry->extent.width == 0 || box.height == 0 || box.depth == 0;
    size_t unit;
    if (empty || !known_order(entry->srcAccessOrder) || !known_flags(entry->flags) ||
        find_unit(entry, &unit) != CUDA_SUCCESS ||
        __builtin_mul_overflow(entry->extent.width, unit, &box.width))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = place_pointer(&entry->dst, &box, unit, &box.to);
    if (result == CUDA_SUCCESS)
        result = place_pointer(&entry->src, &box, unit, &box.from);
    if (result != CUDA_SUCCESS)
        return result;
    *late = entry->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY ||
            entry->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
    result = place_array(&entry->dst, &box, unit, &box.to);
    if (result == CUDA_SUCCESS)
        result = place_array(&entry->src, &box, unit, &box.from);
    return result == CUDA_SUCCESS ? add(batch, &box, entry->srcAccessOrder) : result;
}

CUresult sg_cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
                                 unsigned long long flags, CUstream hStream) {
    struct sg_stream *stream;
    CUresult result = find_stream(hStream, failIdx, &stream);
    if (result == CUDA_SUCCESS && (numOps == 0 || !opList || flags != 0))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    struct batch batch = {.context = stream->context};
    size_t i;
    bool late = false;
    for (i = 0; i < numOps && result == CUDA_SUCCESS; i++) {
        late = false;
        result = add_box(&batch, &opList[i], &late);
    }
    if (result == CUDA_SUCCESS)
        return submit(&batch, stream);
    discard(batch.first);
    if (failIdx && !late)
        *failIdx = i - 1;
    return result;
}

CUresult sg_cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList,
                                    unsigned long long flags, CUstream hStream) {
    if (numOps == 0 || !opList || flags != 0 || !hStream)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_cuMemcpy3DBatchAsync(numOps, opList, NULL, flags, hStream);
}
