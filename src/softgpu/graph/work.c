/* The operations of nodes that do one thing. */
#include "softgpu/graph/exec.h"

#include "softgpu/copy/copy.h"
#include "softgpu/external/external.h"

#include <string.h>

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

/* A set whose memory went away left CUDA_ERROR_LAUNCH_FAILED on H200 when it was a graph's, where
 * one in a stream left CUDA_ERROR_ILLEGAL_ADDRESS. */
typedef CUresult (*runner)(struct sg_op *);

static unsigned char *own_runner(struct sg_op *op) {
    return &op->data.bytes[sizeof op->data.bytes - sizeof(runner)];
}

static CUresult run_set(struct sg_op *op) {
    runner run;
    memcpy(&run, own_runner(op), sizeof run);
    CUresult result = run(op);
    return result == CUDA_ERROR_ILLEGAL_ADDRESS ? CUDA_ERROR_LAUNCH_FAILED : result;
}

static CUresult make_set(struct sg_context *context, const CUDA_MEMSET_NODE_PARAMS_v2 *params,
                         struct sg_op **op) {
    CUresult result = sg_set_make(context, params, op);
    if (result == CUDA_SUCCESS && (*op)->run) {
        runner run = (*op)->run;
        memcpy(own_runner(*op), &run, sizeof run); /* sets leave the end of their data alone */
        (*op)->run = run_set;
    }
    return result;
}

CUresult sg_work_make(struct sg_context *context, const CUgraphNodeParams *params,
                      struct sg_op **op) {
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return sg_copy_make_3d(context, &params->memcpy.copyParams, op);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return make_set(context, &params->memset, op);
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
        else if (params->type == CU_GRAPH_NODE_TYPE_MEMCPY)
            sg_copy_discard(op); /* it may hold the tiles of sparse arrays */
        else
            sg_op_free(op);
        op = next;
    }
}
