/* Which nodes may be in which graphs, and what may be done to the graphs. */
#include "softgpu/graph/nodes.h"

/* "Allowed node types are kernel nodes, empty nodes, child graphs, memsets, memcopies, and
 * conditionals. This applies recursively to child graphs and conditional bodies." */
static bool type_fits_body(CUgraphNodeType type) {
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_GRAPH:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return true;
    default:
        return false;
    }
}

static bool graph_fits_body(const struct sg_graph *graph) {
    for (const struct sg_node *node = graph->first; node; node = node->next)
        if (!type_fits_body(node->params.type) || (node->child && !graph_fits_body(node->child)))
            return false;
    return true;
}

static bool in_body(const struct sg_graph *graph) {
    for (; graph->owner; graph = graph->owner->graph)
        if (graph->owner->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
            return true;
    return false;
}

static bool is_memory(CUgraphNodeType type) {
    return type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

CUresult sg_graph_may_hold(struct sg_graph *graph, const CUgraphNodeParams *params) {
    const struct sg_graph *child = NULL;
    if (params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
        child = sg_graph_get(params->graph.graph);
        bool moved = params->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
        if (params->graph.ownership > CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
            return CUDA_ERROR_INVALID_VALUE;
        if (child->memory_nodes && !moved)
            return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (is_memory(params->type) && graph->owner)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (in_body(graph) && (!type_fits_body(params->type) || (child && !graph_fits_body(child))))
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}
