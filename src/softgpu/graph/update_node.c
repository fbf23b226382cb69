/* Changing one node of an exec, and disabling nodes. */
#include "softgpu/core/calls.h"
#include "softgpu/graph/node_type.h"
#include "softgpu/graph/nodes.h"
#include "softgpu/graph/update.h"

/* The exec's node for the graph's node, if it is of that type. */
static struct sg_exec_node *typed(CUgraphExec handle, CUgraphNode node_handle, CUgraphNodeType type,
                                  struct sg_exec **exec) {
    *exec = sg_exec_get(handle);
    struct sg_exec_node *node = *exec ? sg_exec_node_find(*exec, node_handle) : NULL;
    return node && node->params.type == type ? node : NULL;
}

/* On failure nothing has changed: another context may need another lane, and memory for it. */
static CUresult put(struct sg_exec *exec, struct sg_exec_node *node,
                    const CUgraphNodeParams *params) {
    struct sg_exec_node made = {.params = {.type = CU_GRAPH_NODE_TYPE_EMPTY},
                                .context = node->context,
                                .value = node->value};
    if (made.context)
        sg_context_ref(made.context);
    CUresult result = sg_exec_node_set(&made, params);
    if (result == CUDA_SUCCESS) {
        sg_exec_node_exchange(node, &made);
        result = node->context == made.context ? CUDA_SUCCESS : sg_plan_make(exec);
        if (result != CUDA_SUCCESS)
            sg_exec_node_exchange(node, &made);
    }
    sg_exec_node_release(&made);
    return result;
}

/* `params` may name no context: then the node keeps its own. */
static CUresult set(CUgraphExec handle, CUgraphNode node_handle, const CUgraphNodeParams *params) {
    struct sg_exec *exec;
    struct sg_exec_node *node = typed(handle, node_handle, params->type, &exec);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_update_check(params);
    if (result != CUDA_SUCCESS)
        return result;
    if (sg_params_compare(&node->params, params) != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    return put(exec, node, params);
}

/* ---- Kernels -------------------------------------------------------------------------------- */

CUresult sg_cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    sg_kernel_widen_v1(&params.kernel, nodeParams);
    return set(hGraphExec, hNode, &params);
}

CUresult sg_cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                              const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    sg_kernel_widen(&params.kernel, nodeParams);
    return set(hGraphExec, hNode, &params);
}

/* ---- Copies and sets ------------------------------------------------------------------------ */

CUresult sg_cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_MEMCPY3D *copyParams, CUcontext ctx) {
    if (!copyParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY,
                                .memcpy = {.copyCtx = ctx, .copyParams = *copyParams}};
    return set(hGraphExec, hNode, &params);
}

CUresult sg_cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_MEMSET_NODE_PARAMS *memsetParams,
                                           CUcontext ctx) {
    if (!memsetParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    sg_memset_widen(&params.memset, memsetParams, ctx);
    return set(hGraphExec, hNode, &params);
}

/* ---- Host functions, events, batches, semaphores --------------------------------------------- */

CUresult sg_cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                         const CUDA_HOST_NODE_PARAMS *nodeParams) {
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST,
                                .host = {nodeParams->fn, nodeParams->userData}};
    return set(hGraphExec, hNode, &params);
}

CUresult sg_cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                               CUevent event) {
    const CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                                      .eventRecord = {event}};
    return set(hGraphExec, hNode, &params);
}

CUresult sg_cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                             CUevent event) {
    const CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {event}};
    return set(hGraphExec, hNode, &params);
}

CUresult sg_cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                               const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams) {
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    const CUgraphNodeParams params = {
        .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
        .memOp = {nodeParams->ctx, nodeParams->count, nodeParams->paramArray, nodeParams->flags}};
    return set(hGraphExec, hNode, &params);
}

CUresult
sg_cuGraphExecExternalSemaphoresSignalNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                    const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params) {
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    const CUgraphNodeParams made = {
        .type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL,
        .extSemSignal = {params->extSemArray, params->paramsArray, params->numExtSems}};
    return set(hGraphExec, hNode, &made);
}

CUresult
sg_cuGraphExecExternalSemaphoresWaitNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                  const CUDA_EXT_SEM_WAIT_NODE_PARAMS *params) {
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    const CUgraphNodeParams made = {
        .type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT,
        .extSemWait = {params->extSemArray, params->paramsArray, params->numExtSems}};
    return set(hGraphExec, hNode, &made);
}

/* ---- Child graphs --------------------------------------------------------------------------- */

CUresult sg_cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                               CUgraph childGraph) {
    const CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH,
                                      .graph = {.graph = childGraph}};
    struct sg_exec *exec;
    struct sg_exec_node *node = typed(hGraphExec, hNode, params.type, &exec);
    return node ? sg_node_child.set_exec(exec, node, &params) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- Any type ------------------------------------------------------------------------------- */

CUresult sg_cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                     CUgraphNodeParams *nodeParams) {
    struct sg_exec *exec;
    if (!nodeParams || !sg_params_unused_zero(nodeParams))
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_exec_node *node = typed(hGraphExec, hNode, nodeParams->type, &exec);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_node_type *type = sg_type_of(nodeParams);
    if (type->fixed)
        return CUDA_ERROR_NOT_SUPPORTED;
    return type->set_exec ? type->set_exec(exec, node, nodeParams)
                          : set(hGraphExec, hNode, nodeParams);
}

/* ---- On and off ----------------------------------------------------------------------------- */

/* "Currently only kernel, memset and memcpy nodes are supported." */
static struct sg_exec_node *switchable(CUgraphExec handle, CUgraphNode node_handle) {
    const struct sg_exec *exec = sg_exec_get(handle);
    struct sg_exec_node *node = exec ? sg_exec_node_find(exec, node_handle) : NULL;
    return node && sg_type_of(&node->params)->can_be_disabled ? node : NULL;
}

CUresult sg_cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                  unsigned int isEnabled) {
    struct sg_exec_node *node = switchable(hGraphExec, hNode);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    node->enabled = isEnabled != 0;
    return CUDA_SUCCESS;
}

CUresult sg_cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                  unsigned int *isEnabled) {
    const struct sg_exec_node *node = switchable(hGraphExec, hNode);
    if (!node || !isEnabled)
        return CUDA_ERROR_INVALID_VALUE;
    *isEnabled = node->enabled;
    return CUDA_SUCCESS;
}
