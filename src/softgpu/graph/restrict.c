/*
 * Which nodes may be in which graphs, and what may be done to the graphs.
 *
 * The contents of a conditional node's bodies are checked when the graph is instantiated: until
 * then an H200 accepts nodes of every type.
 */
#include "softgpu/graph/node_type.h"
#include "softgpu/graph/nodes.h"

static bool has_unique(const struct sg_graph *graph) {
    for (const struct sg_node *node = graph->first; node; node = node->next)
        if (sg_type_of(&node->params)->unique || (node->child && has_unique(node->child)))
            return true;
    return false;
}

static bool has_updatable(const struct sg_graph *graph) {
    for (const struct sg_node *node = graph->first; node; node = node->next)
        if (sg_node_is_updatable(node) || (node->child && has_updatable(node->child)))
            return true;
    return false;
}

CUresult sg_graph_may_copy(const struct sg_graph *graph) {
    bool may = !graph->memory_nodes && !has_unique(graph) && !has_updatable(graph);
    return may ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* A graph inside itself crashes an H200, copied or not. Any value other than MOVE copies. */
CUresult sg_graph_may_embed(struct sg_graph *graph, const CUDA_CHILD_GRAPH_NODE_PARAMS *params) {
    const struct sg_graph *child = sg_graph_get(params->graph);
    bool moved = params->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    if (!child || child == sg_graph_outermost(graph))
        return CUDA_ERROR_INVALID_VALUE;
    if (child->owner || has_unique(child) || (!moved && child->memory_nodes))
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}
