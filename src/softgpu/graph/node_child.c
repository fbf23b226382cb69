/* Child graph nodes. */
#include "softgpu/graph/node_type.h"
#include "softgpu/graph/nodes.h"
#include "softgpu/graph/update.h"

static CUresult check(const CUgraphNodeParams *params) {
    return sg_graph_get(params->graph.graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult may_be_in(struct sg_graph *graph, const CUgraphNodeParams *params) {
    return sg_graph_may_embed(graph, &params->graph);
}

static CUresult furnish(struct sg_graph *graph, struct sg_node *node, CUgraphNodeParams *params) {
    (void)graph;
    return sg_node_embed(node, &params->graph);
}

static CUresult set(struct sg_node *node, const CUgraphNodeParams *params) {
    return sg_node_embed_again(node, &params->graph);
}

static CUresult set_exec(struct sg_exec *exec, struct sg_exec_node *node,
                         const CUgraphNodeParams *params) {
    struct sg_graph *graph = sg_graph_get(params->graph.graph);
    struct sg_exec_changes changes;
    CUgraphExecUpdateResultInfo info;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (sg_exec_changes_begin(&changes, exec))
        result = sg_exec_compare(&changes, node->parts[0], graph, &info);
    if (result == CUDA_SUCCESS)
        result = sg_exec_changes_make(&changes);
    sg_exec_changes_end(&changes);
    return result;
}

static bool joins(const struct sg_exec_node *node, struct sg_exec_part **inner) {
    *inner = node->parts[0];
    return true;
}

const struct sg_node_type sg_node_child = {
    .name = "GRAPH",
    .runtime_name = "cudaGraphNodeTypeGraph",
    .size = SG_NODE_SIZE(graph),
    .check = check,
    .may_be_in = may_be_in,
    .furnish = furnish,
    .set = set,
    .set_exec = set_exec,
    .joins = joins,
};
