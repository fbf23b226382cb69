/* cuGraphAddNode and the type-specific functions, which are converted to it. */
#include "softgpu/core/calls.h"
#include "softgpu/graph/handles.h"
#include "softgpu/graph/node_type.h"
#include "softgpu/graph/nodes.h"

#include <stdlib.h>

CUresult sg_node_list_read(struct sg_node_list *list, const CUgraphNode *handles, size_t count) {
    list->nodes = list->few;
    if (count > 0 && !handles)
        return CUDA_ERROR_INVALID_VALUE;
    /* Before there is room for them, and no further: a count may be a mistake. */
    for (size_t i = 0; i < count; i++)
        if (!sg_node_get(handles[i]))
            return CUDA_ERROR_INVALID_VALUE;
    if (count > sizeof list->few / sizeof list->few[0]) {
        list->nodes = reallocarray(NULL, count, sizeof(struct sg_node *));
        if (!list->nodes)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < count; i++)
        list->nodes[i] = sg_node_get(handles[i]);
    return CUDA_SUCCESS;
}

void sg_node_list_end(struct sg_node_list *list) {
    if (list->nodes != list->few)
        free(list->nodes);
}

struct place {
    CUgraph graph;
    const CUgraphNode *dependencies;
    const CUgraphEdgeData *data;
    size_t count;
};

static CUresult add(CUgraphNode *out, const struct place *place, CUgraphNodeParams *params) {
    struct sg_graph *graph = sg_graph_get(place->graph);
    if (!out || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_node_list list;
    struct sg_node *node;
    CUresult result = sg_node_list_read(&list, place->dependencies, place->count);
    if (result == CUDA_SUCCESS)
        result = sg_graph_add(graph, list.nodes, place->data, place->count, params, &node);
    sg_node_list_end(&list);
    if (result == CUDA_SUCCESS)
        *out = SG_HANDLE_POINTER(CUgraphNode, node->handle);
    return result;
}

/* ---- One type ------------------------------------------------------------------------------- */

#define PLACE(graph, dependencies, count)                                                          \
    &(const struct place) {                                                                        \
        graph, dependencies, NULL, count                                                           \
    }

CUresult sg_cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                const CUgraphNode *dependencies, size_t numDependencies) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return add(phGraphNode, PLACE(hGraph, dependencies, numDependencies), &params);
}

CUresult sg_cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                 const CUgraphNode *dependencies, size_t numDependencies,
                                 const CUDA_MEMCPY3D *copyParams, CUcontext ctx) {
    if (!copyParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY,
                                .memcpy = {.copyCtx = ctx, .copyParams = *copyParams}};
    return add(phGraphNode, PLACE(hGraph, dependencies, numDependencies), &params);
}

CUresult sg_cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                 const CUgraphNode *dependencies, size_t numDependencies,
                                 const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx) {
    if (!memsetParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    sg_memset_widen(&params.memset, memsetParams, ctx);
    return add(phGraphNode, PLACE(hGraph, dependencies, numDependencies), &params);
}

CUresult sg_cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                               const CUgraphNode *dependencies, size_t numDependencies,
                               const CUDA_HOST_NODE_PARAMS *nodeParams) {
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST,
                                .host = {nodeParams->fn, nodeParams->userData}};
    return add(phGraphNode, PLACE(hGraph, dependencies, numDependencies), &params);
}

CUresult sg_cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                     const CUgraphNode *dependencies, size_t numDependencies,
                                     CUgraph childGraph) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = childGraph}};
    return add(phGraphNode, PLACE(hGraph, dependencies, numDependencies), &params);
}

CUresult sg_cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                      const CUgraphNode *dependencies, size_t numDependencies,
                                      CUevent event) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {event}};
    return add(phGraphNode, PLACE(hGraph, dependencies, numDependencies), &params);
}

CUresult sg_cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                    const CUgraphNode *dependencies, size_t numDependencies,
                                    CUevent event) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {event}};
    return add(phGraphNode, PLACE(hGraph, dependencies, numDependencies), &params);
}

CUresult
sg_cuGraphAddExternalSemaphoresSignalNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                          const CUgraphNode *dependencies, size_t numDependencies,
                                          const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *nodeParams) {
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {
        .type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL,
        .extSemSignal = {nodeParams->extSemArray, nodeParams->paramsArray, nodeParams->numExtSems}};
    return add(phGraphNode, PLACE(hGraph, dependencies, numDependencies), &params);
}

CUresult sg_cuGraphAddExternalSemaphoresWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                                 const CUgraphNode *dependencies,
                                                 size_t numDependencies,
                                                 const CUDA_EXT_SEM_WAIT_NODE_PARAMS *nodeParams) {
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {
        .type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT,
        .extSemWait = {nodeParams->extSemArray, nodeParams->paramsArray, nodeParams->numExtSems}};
    return add(phGraphNode, PLACE(hGraph, dependencies, numDependencies), &params);
}

CUresult sg_cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                     const CUgraphNode *dependencies, size_t numDependencies,
                                     const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams) {
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {
        .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
        .memOp = {nodeParams->ctx, nodeParams->count, nodeParams->paramArray, nodeParams->flags}};
    return add(phGraphNode, PLACE(hGraph, dependencies, numDependencies), &params);
}

CUresult sg_cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                   const CUgraphNode *dependencies, size_t numDependencies,
                                   CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams) {
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                                .alloc = {.poolProps = nodeParams->poolProps,
                                          .accessDescs = nodeParams->accessDescs,
                                          .accessDescCount = nodeParams->accessDescCount,
                                          .bytesize = nodeParams->bytesize}};
    CUresult result = add(phGraphNode, PLACE(hGraph, dependencies, numDependencies), &params);
    if (result == CUDA_SUCCESS)
        nodeParams->dptr = params.alloc.dptr;
    return result;
}

CUresult sg_cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                  const CUgraphNode *dependencies, size_t numDependencies,
                                  CUdeviceptr dptr) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = {dptr}};
    return add(phGraphNode, PLACE(hGraph, dependencies, numDependencies), &params);
}

CUresult sg_cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                 const CUgraphNode *dependencies, size_t numDependencies,
                                 const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    sg_kernel_widen_v1(&params.kernel, nodeParams);
    return add(phGraphNode, PLACE(hGraph, dependencies, numDependencies), &params);
}

CUresult sg_cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                                    const CUgraphNode *dependencies, size_t numDependencies,
                                    const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    sg_kernel_widen(&params.kernel, nodeParams);
    return add(phGraphNode, PLACE(hGraph, dependencies, numDependencies), &params);
}

/* ---- Any type ------------------------------------------------------------------------------- */

CUresult sg_cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                              const CUgraphNode *dependencies,
                              const CUgraphEdgeData *dependencyData, size_t numDependencies,
                              CUgraphNodeParams *nodeParams) {
    if (!nodeParams || !sg_params_unused_zero(nodeParams))
        return CUDA_ERROR_INVALID_VALUE;
    const struct place place = {hGraph, dependencies, dependencyData, numDependencies};
    CUgraphNodeParams params = *nodeParams;
    CUresult result = add(phGraphNode, &place, &params);
    if (result == CUDA_SUCCESS && sg_type_of(&params)->hand_out)
        sg_type_of(&params)->hand_out(nodeParams, &params);
    return result;
}

CUresult sg_cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                           const CUgraphNode *dependencies, size_t numDependencies,
                           CUgraphNodeParams *nodeParams) {
    return sg_cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, NULL, numDependencies,
                                nodeParams);
}
