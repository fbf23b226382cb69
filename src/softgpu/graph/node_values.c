/* Reading and changing the parameters of nodes. */
#include "softgpu/core/calls.h"
#include "softgpu/graph/node_type.h"
#include "softgpu/graph/nodes.h"

/* The results point to the node's own copies, which live until the node's parameters are set again
 * or the node is destroyed. */
static struct sg_node *typed(CUgraphNode handle, CUgraphNodeType type) {
    struct sg_node *node = sg_node_get(handle);
    return node && node->params.type == type ? node : NULL;
}

/* Replaces a node's parameters with checked copies of the given ones, of the same type. */
static CUresult set_params(struct sg_node *node, CUgraphNodeParams *params) {
    CUresult result = sg_params_resolve(node->graph, params);
    if (result == CUDA_SUCCESS)
        result = sg_params_check(params);
    CUgraphNodeParams copy;
    if (result == CUDA_SUCCESS)
        result = sg_params_copy(&copy, params);
    if (result != CUDA_SUCCESS)
        return result;
    sg_params_free(&node->params);
    node->params = copy;
    return CUDA_SUCCESS;
}

/* Sets the parameters if the node is of the type. */
static CUresult set(CUgraphNode handle, CUgraphNodeParams *params) {
    struct sg_node *node = typed(handle, params->type);
    return node ? set_params(node, params) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams) {
    struct sg_node *node = sg_node_get(hNode);
    if (!node || !nodeParams || !sg_params_unused_zero(nodeParams) ||
        nodeParams->type != node->params.type)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_node_type *type = sg_type_of(nodeParams);
    if (type->fixed)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (type->set)
        return type->set(node, nodeParams);
    CUgraphNodeParams params = *nodeParams;
    return set_params(node, &params);
}

/* ---- Kernels -------------------------------------------------------------------------------- */

CUresult sg_cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
    const struct sg_node *node = typed(hNode, CU_GRAPH_NODE_TYPE_KERNEL);
    if (!node || !nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS_v3 given = sg_kernel_params_given(&node->params.kernel);
    sg_kernel_narrow_v1(nodeParams, &given);
    return CUDA_SUCCESS;
}

CUresult sg_cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams) {
    const struct sg_node *node = typed(hNode, CU_GRAPH_NODE_TYPE_KERNEL);
    if (!node || !nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS_v3 given = sg_kernel_params_given(&node->params.kernel);
    sg_kernel_narrow(nodeParams, &given);
    return CUDA_SUCCESS;
}

CUresult sg_cuGraphKernelNodeSetParams(CUgraphNode hNode,
                                       const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    sg_kernel_widen_v1(&params.kernel, nodeParams);
    return set(hNode, &params);
}

CUresult sg_cuGraphKernelNodeSetParams_v2(CUgraphNode hNode,
                                          const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    sg_kernel_widen(&params.kernel, nodeParams);
    return set(hNode, &params);
}

/* ---- Copies and memsets: the context remains ------------------------------------------------ */

CUresult sg_cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams) {
    const struct sg_node *node = typed(hNode, CU_GRAPH_NODE_TYPE_MEMCPY);
    if (!node || !nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    *nodeParams = node->params.memcpy.copyParams;
    return CUDA_SUCCESS;
}

CUresult sg_cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams) {
    struct sg_node *node = typed(hNode, CU_GRAPH_NODE_TYPE_MEMCPY);
    if (!node || !nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {
        .type = CU_GRAPH_NODE_TYPE_MEMCPY,
        .memcpy = {.copyCtx = node->params.memcpy.copyCtx, .copyParams = *nodeParams}};
    return set_params(node, &params);
}

CUresult sg_cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams) {
    const struct sg_node *node = typed(hNode, CU_GRAPH_NODE_TYPE_MEMSET);
    if (!node || !nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMSET_NODE_PARAMS_v2 *from = &node->params.memset;
    *nodeParams = (CUDA_MEMSET_NODE_PARAMS){.dst = from->dst,
                                            .pitch = from->pitch,
                                            .value = from->value,
                                            .elementSize = from->elementSize,
                                            .width = from->width,
                                            .height = from->height};
    return CUDA_SUCCESS;
}

CUresult sg_cuGraphMemsetNodeSetParams(CUgraphNode hNode,
                                       const CUDA_MEMSET_NODE_PARAMS *nodeParams) {
    struct sg_node *node = typed(hNode, CU_GRAPH_NODE_TYPE_MEMSET);
    if (!node || !nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    sg_memset_widen(&params.memset, nodeParams, node->params.memset.ctx);
    return set_params(node, &params);
}

/* ---- Host functions and events -------------------------------------------------------------- */

CUresult sg_cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams) {
    const struct sg_node *node = typed(hNode, CU_GRAPH_NODE_TYPE_HOST);
    if (!node || !nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    *nodeParams = (CUDA_HOST_NODE_PARAMS){node->params.host.fn, node->params.host.userData};
    return CUDA_SUCCESS;
}

CUresult sg_cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams) {
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST,
                                .host = {nodeParams->fn, nodeParams->userData}};
    return set(hNode, &params);
}

CUresult sg_cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out) {
    const struct sg_node *node = typed(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    if (!node || !event_out)
        return CUDA_ERROR_INVALID_VALUE;
    *event_out = node->params.eventRecord.event;
    return CUDA_SUCCESS;
}

CUresult sg_cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {event}};
    return set(hNode, &params);
}

CUresult sg_cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out) {
    const struct sg_node *node = typed(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    if (!node || !event_out)
        return CUDA_ERROR_INVALID_VALUE;
    *event_out = node->params.eventWait.event;
    return CUDA_SUCCESS;
}

CUresult sg_cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {event}};
    return set(hNode, &params);
}

/* ---- Batches and semaphores ----------------------------------------------------------------- */

CUresult sg_cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode,
                                           CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out) {
    const struct sg_node *node = typed(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    if (!node || !nodeParams_out)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *from = &node->params.memOp;
    *nodeParams_out =
        (CUDA_BATCH_MEM_OP_NODE_PARAMS){from->ctx, from->count, from->paramArray, from->flags};
    return CUDA_SUCCESS;
}

CUresult sg_cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode,
                                           const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams) {
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {
        .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
        .memOp = {nodeParams->ctx, nodeParams->count, nodeParams->paramArray, nodeParams->flags}};
    return set(hNode, &params);
}

CUresult
sg_cuGraphExternalSemaphoresSignalNodeGetParams(CUgraphNode hNode,
                                                CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params_out) {
    const struct sg_node *node = typed(hNode, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL);
    if (!node || !params_out)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2 *from = &node->params.extSemSignal;
    *params_out =
        (CUDA_EXT_SEM_SIGNAL_NODE_PARAMS){from->extSemArray, from->paramsArray, from->numExtSems};
    return CUDA_SUCCESS;
}

CUresult
sg_cuGraphExternalSemaphoresSignalNodeSetParams(CUgraphNode hNode,
                                                const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *nodeParams) {
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {
        .type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL,
        .extSemSignal = {nodeParams->extSemArray, nodeParams->paramsArray, nodeParams->numExtSems}};
    return set(hNode, &params);
}

CUresult sg_cuGraphExternalSemaphoresWaitNodeGetParams(CUgraphNode hNode,
                                                       CUDA_EXT_SEM_WAIT_NODE_PARAMS *params_out) {
    const struct sg_node *node = typed(hNode, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT);
    if (!node || !params_out)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2 *from = &node->params.extSemWait;
    *params_out =
        (CUDA_EXT_SEM_WAIT_NODE_PARAMS){from->extSemArray, from->paramsArray, from->numExtSems};
    return CUDA_SUCCESS;
}

CUresult
sg_cuGraphExternalSemaphoresWaitNodeSetParams(CUgraphNode hNode,
                                              const CUDA_EXT_SEM_WAIT_NODE_PARAMS *nodeParams) {
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {
        .type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT,
        .extSemWait = {nodeParams->extSemArray, nodeParams->paramsArray, nodeParams->numExtSems}};
    return set(hNode, &params);
}

/* ---- Memory --------------------------------------------------------------------------------- */

CUresult sg_cuGraphMemAllocNodeGetParams(CUgraphNode hNode,
                                         CUDA_MEM_ALLOC_NODE_PARAMS *params_out) {
    const struct sg_node *node = typed(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    if (!node || !params_out)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *from = &node->params.alloc;
    *params_out = (CUDA_MEM_ALLOC_NODE_PARAMS){.poolProps = from->poolProps,
                                               .accessDescs = from->accessDescs,
                                               .accessDescCount = from->accessDescCount,
                                               .bytesize = from->bytesize,
                                               .dptr = from->dptr};
    return CUDA_SUCCESS;
}

CUresult sg_cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out) {
    const struct sg_node *node = typed(hNode, CU_GRAPH_NODE_TYPE_MEM_FREE);
    if (!node || !dptr_out)
        return CUDA_ERROR_INVALID_VALUE;
    *dptr_out = node->params.free.dptr;
    return CUDA_SUCCESS;
}
