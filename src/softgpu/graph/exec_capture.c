/* A launch in a stream that captures becomes a child graph node, whose graph is made of the exec:
 * the graph that it was instantiated from may have changed since, or be gone. */
#include "softgpu/graph/exec.h"

#include "softgpu/graph/capture.h"

#include <stdlib.h>
#include <string.h>

static CUresult rebuild(const struct sg_exec_part *part, struct sg_graph *graph);

static CUresult add_child(const struct sg_exec_node *node, struct sg_graph *graph,
                          struct sg_node *const *from, struct sg_node **made) {
    struct sg_graph *child = sg_graph_new();
    if (!child)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    params.graph.graph = SG_HANDLE_POINTER(CUgraph, child->handle);
    CUresult result = rebuild(node->parts[0], child);
    if (result == CUDA_SUCCESS)
        result = sg_graph_add(graph, from, node->edges, node->from_count, &params, made);
    sg_graph_free(child);
    return result;
}

/* Memory and conditional nodes may not be in a graph that is embedded by copying. */
static CUresult add_node(const struct sg_exec_node *node, struct sg_graph *graph,
                         struct sg_node *const *from, struct sg_node **made) {
    CUgraphNodeParams params = node->params;
    switch (params.type) {
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return add_child(node, graph, from, made);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return sg_graph_add(graph, from, node->edges, node->from_count, &params, made);
    }
}

/* Edges may lead from a node to one that was made before it, so the order of creation will not do:
 * nodes are added when what they depend on is there. */
static CUresult add_ready(const struct sg_exec_part *part, struct sg_graph *graph,
                          struct sg_node **made, struct sg_node **from, size_t *added) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < part->count && result == CUDA_SUCCESS; i++) {
        const struct sg_exec_node *node = &part->nodes[i];
        bool ready = !made[i];
        for (size_t k = 0; k < node->from_count && ready; k++) {
            from[k] = made[node->from[k]];
            ready = from[k] != NULL;
        }
        if (!ready)
            continue;
        result = add_node(node, graph, from, &made[i]);
        *added += 1;
    }
    return result;
}

static CUresult rebuild(const struct sg_exec_part *part, struct sg_graph *graph) {
    struct sg_node **made = calloc(part->count + 1, sizeof *made);
    struct sg_node **from = calloc(part->count + 1, sizeof *from);
    CUresult result = made && from ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t added = 0; added < part->count && result == CUDA_SUCCESS;)
        result = add_ready(part, graph, made, from, &added);
    free(made);
    free(from);
    return result;
}

CUresult sg_exec_capture(struct sg_exec *exec, struct sg_stream *stream) {
    struct sg_graph *graph = sg_graph_new();
    if (!graph)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    params.graph.graph = SG_HANDLE_POINTER(CUgraph, graph->handle);
    CUresult result = rebuild(exec->root, graph);
    if (result == CUDA_SUCCESS)
        result = sg_capture_node(stream, &params);
    sg_graph_free(graph);
    return result;
}
