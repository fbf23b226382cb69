/* Nodes that call a host function. */
#include "softgpu/graph/dot.h"
#include "softgpu/graph/node_type.h"

#include <inttypes.h>

static CUresult check(const CUgraphNodeParams *params) {
    return params->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

struct call {
    CUhostFn function;
    void *user;
};
_Static_assert(sizeof(struct call) <= sizeof(((struct sg_op *)0)->data), "fits an operation");

static CUresult run(struct sg_op *op) {
    const struct call *call = (const void *)op->data.bytes;
    call->function(call->user);
    return CUDA_SUCCESS;
}

static CUresult make(struct sg_context *context, const struct sg_exec_node *node,
                     struct sg_op **op) {
    const CUDA_HOST_NODE_PARAMS_v2 *params = &node->params.host;
    (void)context;
    *op = sg_op_new(run);
    if (!*op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*op)->host_function = true;
    *(struct call *)(void *)(*op)->data.bytes =
        (struct call){.function = params->fn, .user = params->userData};
    return CUDA_SUCCESS;
}

static void draw(const struct sg_picture *picture, const struct sg_node *node) {
    const CUDA_HOST_NODE_PARAMS_v2 *host = &node->params.host;
    if (sg_picture_wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS))
        fprintf(picture->out, "|function: 0x%" PRIxPTR "|data: 0x%" PRIxPTR, (uintptr_t)host->fn,
                (uintptr_t)host->userData);
}

const struct sg_node_type sg_node_host = {
    .name = "HOST",
    .runtime_name = "cudaGraphNodeTypeHost",
    .size = SG_NODE_SIZE(host),
    .may_block = true,
    .flat = true,
    .check = check,
    .draw = draw,
    .make = make,
};
