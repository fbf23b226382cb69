/* The operations of nodes that do one thing. */
#include "softgpu/graph/exec.h"

#include "softgpu/copy/copy.h"
#include "softgpu/external/external.h"

struct call {
    CUhostFn function;
    void *user;
};
_Static_assert(sizeof(struct call) <= sizeof(((struct sg_op *)0)->data), "fits an operation");

static CUresult run_call(struct sg_op *op) {
    const struct call *call = (const void *)op->data.bytes;
    call->function(call->user);
    return CUDA_SUCCESS;
}

static CUresult make_call(const CUDA_HOST_NODE_PARAMS_v2 *params, struct sg_op **op) {
    *op = sg_op_new(run_call);
    if (!*op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*op)->host_function = true;
    *(struct call *)(void *)(*op)->data.bytes =
        (struct call){.function = params->fn, .user = params->userData};
    return CUDA_SUCCESS;
}

CUresult sg_work_make(struct sg_context *context, const CUgraphNodeParams *params,
                      struct sg_op **op) {
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return sg_copy_make_3d(context, &params->memcpy.copyParams, op);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return sg_set_make(context, &params->memset, op);
    case CU_GRAPH_NODE_TYPE_HOST:
        return make_call(&params->host, op);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return sg_memops_make(&params->memOp, op);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
        return sg_semaphore_signal_make(context, &params->extSemSignal, op);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        return sg_semaphore_wait_make(context, &params->extSemWait, op);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

void sg_work_discard(const CUgraphNodeParams *params, struct sg_op *op) {
    bool semaphores = params->type == CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL ||
                      params->type == CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT;
    while (op) {
        struct sg_op *next = op->next;
        if (semaphores)
            sg_semaphore_discard(op);
        else
            sg_op_free(op);
        op = next;
    }
}
