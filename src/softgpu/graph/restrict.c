/*
 * Which nodes may be in which graphs, and what may be done to the graphs.
 *
 * What the bodies of conditional nodes may hold is looked at when the graph is instantiated: an
 * H200 takes nodes of every type before.
 */
#include "softgpu/graph/nodes.h"

/* Nodes that exist once: their address, handle or place on the device cannot be had twice. */
static bool exists_once(const struct sg_node *node) {
    return node->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL || sg_node_is_updatable(node);
}

CUresult sg_graph_may_copy(const struct sg_graph *graph) {
    if (graph->memory_nodes)
        return CUDA_ERROR_NOT_SUPPORTED;
    for (const struct sg_node *node = graph->first; node; node = node->next)
        if (exists_once(node) || (node->child && sg_graph_may_copy(node->child) != CUDA_SUCCESS))
            return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

/* A graph in itself crashes an H200, copied or not. */
static CUresult may_embed(struct sg_graph *graph, const CUDA_CHILD_GRAPH_NODE_PARAMS *params) {
    const struct sg_graph *child = sg_graph_get(params->graph);
    if (params->ownership > CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE ||
        child == sg_graph_outermost(graph))
        return CUDA_ERROR_INVALID_VALUE;
    if (child->owner)
        return CUDA_ERROR_NOT_SUPPORTED;
    bool moved = params->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    return moved ? CUDA_SUCCESS : sg_graph_may_copy(child);
}

static bool in_child_node(const struct sg_graph *graph) {
    return graph->owner && graph->owner->params.type == CU_GRAPH_NODE_TYPE_GRAPH;
}

CUresult sg_graph_may_hold(struct sg_graph *graph, const CUgraphNodeParams *params) {
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return may_embed(graph, &params->graph);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return in_child_node(graph) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        if (in_child_node(graph))
            return CUDA_ERROR_NOT_SUPPORTED;
        return sg_allocation_may_free(graph, params->free.dptr);
    default:
        return CUDA_SUCCESS;
    }
}
