/* Nodes of batches of memory operations. */
#include "softgpu/copy/copy.h"
#include "softgpu/graph/dot.h"
#include "softgpu/graph/node_type.h"

#include <stdlib.h>

#define LIMIT 256 /* as in cuStreamBatchMemOp */

static CUresult resolve(struct sg_graph *graph, CUgraphNodeParams *params) {
    (void)graph;
    return params->memOp.ctx ? sg_params_resolve_context(&params->memOp.ctx)
                             : CUDA_ERROR_INVALID_VALUE;
}

/* The address is not checked before the operation runs. */
static CUresult check_access(CUdeviceptr address, unsigned width) {
    return address % width == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_operation(const CUstreamBatchMemOpParams *op) {
    unsigned width = 8;
    switch (op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        width = 4;
        /* fallthrough */
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        if (op->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH)
            return CUDA_ERROR_NOT_SUPPORTED;
        if (op->waitValue.flags > CU_STREAM_WAIT_VALUE_NOR)
            return CUDA_ERROR_INVALID_VALUE;
        return check_access(op->waitValue.address, width);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        width = 4;
        /* fallthrough */
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        if (op->writeValue.flags != CU_STREAM_WRITE_VALUE_DEFAULT)
            return CUDA_ERROR_INVALID_VALUE;
        return check_access(op->writeValue.address, width);
    case CU_STREAM_MEM_OP_BARRIER:
        return op->memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult check(const CUgraphNodeParams *params) {
    const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *batch = &params->memOp;
    if (batch->count >= LIMIT || batch->flags || (batch->count && !batch->paramArray))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < batch->count && result == CUDA_SUCCESS; i++)
        result = check_operation(&batch->paramArray[i]);
    return result;
}

/* Addresses are not checked. */
static CUresult check_update(const CUgraphNodeParams *params) {
    const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *batch = &params->memOp;
    bool listed = batch->ctx && batch->count > 0 && batch->paramArray;
    return listed && batch->flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult deepen(CUgraphNodeParams *to, const CUgraphNodeParams *from) {
    void *copied;
    if (!sg_params_copy_array(&copied, from->memOp.paramArray, from->memOp.count,
                              sizeof *from->memOp.paramArray))
        return CUDA_ERROR_OUT_OF_MEMORY;
    to->memOp.paramArray = copied;
    return CUDA_SUCCESS;
}

static void free_operations(CUgraphNodeParams *params) {
    free(params->memOp.paramArray);
}

/* The operations cannot change. */
static CUgraphExecUpdateResult compare(const CUgraphNodeParams *now_params,
                                       const CUgraphNodeParams *wanted_params) {
    const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *now = &now_params->memOp;
    const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *wanted = &wanted_params->memOp;
    bool allowed =
        now->ctx == wanted->ctx && now->count == wanted->count && now->flags == wanted->flags;
    for (unsigned i = 0; allowed && i < now->count; i++)
        allowed = now->paramArray[i].operation == wanted->paramArray[i].operation;
    return sg_params_judged(allowed);
}

static CUresult make(struct sg_context *context, const struct sg_exec_node *node,
                     struct sg_op **op) {
    (void)context;
    return sg_memops_make(&node->params.memOp, op);
}

static void draw(const struct sg_picture *picture, const struct sg_node *node) {
    sg_picture_count(picture, CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS, "operations",
                     node->params.memOp.count);
}

const struct sg_node_type sg_node_batch = {
    .name = "BATCH_MEM_OP",
    .runtime_name = "BATCH_MEM_OP",
    .size = SG_NODE_SIZE(memOp),
    .context = SG_NODE_OFFSET(memOp.ctx),
    .runs_in_context = true,
    .may_block = true,
    .resolve = resolve,
    .check = check,
    .check_update = check_update,
    .deepen = deepen,
    .free = free_operations,
    .compare = compare,
    .draw = draw,
    .make = make,
};
