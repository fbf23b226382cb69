/* Contents of a graph: nodes, roots, edges, neighbors, types. A list without room is refused. */
#include "softgpu/core/calls.h"
#include "softgpu/graph/edges.h"
#include "softgpu/stream/capture.h"

/* A result that is written as far as there is room, and counted in full. */
struct answer {
    CUgraphNode *from, *to; /* `to` is NULL for lists of nodes */
    CUgraphEdgeData *data;
    size_t room, count;
    bool lossy;
};

static void put(struct answer *answer, const struct sg_node *from, const struct sg_node *to,
                const CUgraphEdgeData *data) {
    size_t at = answer->count++;
    if (at >= answer->room || !answer->from)
        return;
    answer->from[at] = SG_HANDLE_POINTER(CUgraphNode, from->handle);
    if (answer->to)
        answer->to[at] = SG_HANDLE_POINTER(CUgraphNode, to->handle);
    if (answer->data)
        answer->data[at] = data ? *data : (CUgraphEdgeData){0};
    else if (data && !sg_edge_data_plain(data))
        answer->lossy = true;
}

static void clear_from(const struct answer *answer, size_t first) {
    for (size_t i = first; i < answer->room; i++) {
        answer->from[i] = NULL;
        if (answer->to)
            answer->to[i] = NULL;
        if (answer->to && answer->data) /* for neighbors the data is left as it was */
            answer->data[i] = (CUgraphEdgeData){0};
    }
}

/* Fills the rest of the lists; the count is of what was written, or the total without lists. */
static CUresult finish(struct answer *answer, size_t *count) {
    if (!answer->from) {
        *count = answer->count;
        return CUDA_SUCCESS;
    }
    clear_from(answer, answer->lossy ? 0 : answer->count);
    if (answer->lossy)
        return CUDA_ERROR_LOSSY_QUERY;
    *count = answer->count < answer->room ? answer->count : answer->room;
    return CUDA_SUCCESS;
}

static CUresult list_nodes(CUgraph handle, CUgraphNode *nodes, size_t *count, bool roots) {
    const struct sg_graph *graph = sg_graph_get(handle);
    if (!graph || !count || (nodes && *count == 0))
        return CUDA_ERROR_INVALID_VALUE;
    struct answer answer = {.from = nodes, .room = nodes ? *count : 0};
    const struct sg_node *node = roots ? graph->roots : graph->first;
    for (; node; node = roots ? node->root_next : node->next)
        put(&answer, node, NULL, NULL);
    return finish(&answer, count);
}

CUresult sg_cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes) {
    return list_nodes(hGraph, nodes, numNodes, false);
}

CUresult sg_cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes) {
    return list_nodes(hGraph, rootNodes, numRootNodes, true);
}

CUresult sg_cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
                               CUgraphEdgeData *edgeData, size_t *numEdges) {
    const struct sg_graph *graph = sg_graph_get(hGraph);
    if (!graph || !numEdges || !from != !to || (edgeData && !from) || (from && *numEdges == 0))
        return CUDA_ERROR_INVALID_VALUE;
    struct answer answer = {from, to, edgeData, from ? *numEdges : 0, 0, false};
    for (const struct sg_node *node = graph->first; node; node = node->next)
        for (size_t i = 0; i < node->to.count; i++)
            put(&answer, node, node->to.list[i].node, &node->to.list[i].data);
    return finish(&answer, numEdges);
}

CUresult sg_cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges) {
    return sg_cuGraphGetEdges_v2(hGraph, from, to, NULL, numEdges);
}

static CUresult list_neighbours(const struct sg_edges *edges, CUgraphNode *nodes,
                                CUgraphEdgeData *data, size_t *count) {
    if (!count || (data && !nodes) || (nodes && *count == 0))
        return CUDA_ERROR_INVALID_VALUE;
    struct answer answer = {.from = nodes, .data = data, .room = nodes ? *count : 0};
    for (size_t i = 0; i < edges->count; i++)
        put(&answer, edges->list[i].node, NULL, &edges->list[i].data);
    return finish(&answer, count);
}

CUresult sg_cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies,
                                          CUgraphEdgeData *edgeData, size_t *numDependencies) {
    const struct sg_node *node = sg_node_get(hNode);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    return list_neighbours(&node->from, dependencies, edgeData, numDependencies);
}

CUresult sg_cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies,
                                       size_t *numDependencies) {
    return sg_cuGraphNodeGetDependencies_v2(hNode, dependencies, NULL, numDependencies);
}

CUresult sg_cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                            CUgraphEdgeData *edgeData, size_t *numDependentNodes) {
    const struct sg_node *node = sg_node_get(hNode);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    return list_neighbours(&node->to, dependentNodes, edgeData, numDependentNodes);
}

CUresult sg_cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                         size_t *numDependentNodes) {
    return sg_cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, NULL, numDependentNodes);
}

CUresult sg_cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type) {
    const struct sg_node *node = sg_node_get(hNode);
    if (!node || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->params.type;
    return CUDA_SUCCESS;
}
