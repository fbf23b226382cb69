/*
 * cuGraphAddDependencies and cuGraphRemoveDependencies.
 *
 * As on H200, the edges before a refused one remain added, or removed.
 */
#include "softgpu/core/calls.h"
#include "softgpu/graph/edges.h"
#include "softgpu/graph/handles.h"
#include "softgpu/graph/node_type.h"

static const CUgraphEdgeData plain;

static const CUgraphEdgeData *data_at(const CUgraphEdgeData *data, size_t i) {
    return data ? &data[i] : &plain;
}

static CUresult may_add(const struct sg_graph *graph, struct sg_node *from, struct sg_node *to,
                        const CUgraphEdgeData *data) {
    if (!from || !to || from->graph != graph || to->graph != graph || from == to)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_edge_data_check(data, sg_type_of(&from->params), sg_type_of(&to->params));
    if (result == CUDA_SUCCESS && sg_edge_exists(from, to))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS &&
        (!sg_edges_reserve(&from->to, 1) || !sg_edges_reserve(&to->from, 1)))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    return result;
}

static CUresult add_all(const struct sg_graph *graph, struct sg_node *const *from,
                        struct sg_node *const *to, const CUgraphEdgeData *data, size_t count) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = may_add(graph, from[i], to[i], data_at(data, i));
        if (result == CUDA_SUCCESS)
            sg_edge_add(from[i], to[i], data_at(data, i));
    }
    return result;
}

/* Against the documentation, an H200 removes an edge even if its data differs. */
static CUresult remove_all(const struct sg_graph *graph, struct sg_node *const *from,
                           struct sg_node *const *to, const CUgraphEdgeData *data, size_t count) {
    (void)data;
    for (size_t i = 0; i < count; i++) {
        bool ours = from[i] && to[i] && from[i]->graph == graph && to[i]->graph == graph;
        if (!ours || !sg_edge_exists(from[i], to[i]))
            return CUDA_ERROR_INVALID_VALUE;
        sg_edge_remove(from[i], to[i]);
    }
    return CUDA_SUCCESS;
}

typedef CUresult change(const struct sg_graph *, struct sg_node *const *, struct sg_node *const *,
                        const CUgraphEdgeData *, size_t);

static CUresult change_edges(change *act, const struct sg_graph *graph, const CUgraphNode *from,
                             const CUgraphNode *to, const CUgraphEdgeData *data, size_t count) {
    struct sg_node_list sources, targets;
    CUresult result = sg_node_list_read(&sources, from, count);
    CUresult second = sg_node_list_read(&targets, to, count);
    if (result == CUDA_SUCCESS)
        result = second;
    if (result == CUDA_SUCCESS)
        result = act(graph, sources.nodes, targets.nodes, data, count);
    sg_node_list_end(&sources);
    sg_node_list_end(&targets);
    return result;
}

CUresult sg_cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
                                      const CUgraphNode *to, const CUgraphEdgeData *edgeData,
                                      size_t numDependencies) {
    const struct sg_graph *graph = sg_graph_get(hGraph);
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    return change_edges(add_all, graph, from, to, edgeData, numDependencies);
}

CUresult sg_cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                   size_t numDependencies) {
    return sg_cuGraphAddDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

CUresult sg_cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
                                         const CUgraphNode *to, const CUgraphEdgeData *edgeData,
                                         size_t numDependencies) {
    const struct sg_graph *graph = sg_graph_get(hGraph);
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (graph->memory_nodes && numDependencies > 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    return change_edges(remove_all, graph, from, to, edgeData, numDependencies);
}

CUresult sg_cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from,
                                      const CUgraphNode *to, size_t numDependencies) {
    return sg_cuGraphRemoveDependencies_v2(hGraph, from, to, NULL, numDependencies);
}
