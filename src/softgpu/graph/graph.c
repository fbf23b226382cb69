/* Graphs and nodes as objects: creation, changes, destruction. */
#include "softgpu/graph/graph.h"

#include "softgpu/core/calls.h"
#include "softgpu/graph/edges.h"
#include "softgpu/graph/node_type.h"
#include "softgpu/graph/nodes.h"

#include <stdlib.h>

static uint64_t last_id, last_walk;

uint64_t sg_graph_walks(size_t count) {
    uint64_t first = last_walk + 1;
    last_walk += count;
    return first;
}

struct sg_graph *sg_graph_get(CUgraph handle) {
    return sg_handle_get(SG_KIND_GRAPH, SG_HANDLE_VALUE(handle));
}

struct sg_node *sg_node_get(CUgraphNode handle) {
    return sg_handle_get(SG_KIND_NODE, SG_HANDLE_VALUE(handle));
}

struct sg_graph *sg_graph_new(void) {
    struct sg_graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return NULL;
    graph->handle = sg_handle_new(SG_KIND_GRAPH, graph);
    graph->id = ++last_id;
    if (graph->handle)
        return graph;
    free(graph);
    return NULL;
}

struct sg_graph *sg_graph_outermost(struct sg_graph *graph) {
    while (graph->owner)
        graph = graph->owner->graph;
    return graph;
}

void sg_graph_count_memory(struct sg_graph *graph, int64_t nodes) {
    for (;;) {
        graph->memory_nodes += (uint64_t)nodes;
        if (!graph->owner)
            return;
        graph = graph->owner->graph;
    }
}

/* ---- Nodes ---------------------------------------------------------------------------------- */

struct sg_node *sg_node_new(const CUgraphNodeParams *params, CUresult *result) {
    struct sg_node *node = calloc(1, sizeof *node);
    *result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!node)
        return NULL;
    node->handle = sg_handle_new(SG_KIND_NODE, node);
    if (node->handle)
        *result = sg_params_copy(&node->params, params);
    if (*result == CUDA_SUCCESS) {
        node->id = ++last_id;
        return node;
    }
    sg_handle_drop(SG_KIND_NODE, node->handle);
    free(node);
    return NULL;
}

void sg_node_link(struct sg_graph *graph, struct sg_node *node) {
    node->graph = graph;
    node->previous = graph->last;
    if (graph->last)
        graph->last->next = node;
    else
        graph->first = node;
    graph->last = node;
    graph->count++;
    sg_root_add(node);
}

/* Without edges, it is a root. */
static void unlink_node(struct sg_node *node) {
    struct sg_graph *graph = node->graph;
    sg_root_remove(node);
    if (node->previous)
        node->previous->next = node->next;
    else
        graph->first = node->next;
    if (node->next)
        node->next->previous = node->previous;
    else
        graph->last = node->previous;
    graph->count--;
    sg_graph_forget_copy(graph, node);
}

/* Graphs whose nodes are still to be freed: a list, because graphs may be nested too deeply for
 * recursion on the thread's stack. */
static void free_later(struct sg_graph **list, struct sg_graph *graph) {
    if (!graph)
        return;
    graph->to_free = *list;
    *list = graph;
}

static bool is_memory(const struct sg_node *node) {
    return sg_type_of(&node->params)->memory != 0;
}

/* Frees what belongs to the node alone, not its edges or its place in the graph. */
static void end_node(struct sg_node *node, struct sg_graph **graphs) {
    free_later(graphs, node->child);
    for (unsigned i = 0; node->bodies && i < node->params.conditional.size; i++)
        free_later(graphs, node->bodies[i]);
    sg_allocation_node_gone(node);
    if (sg_type_of(&node->params)->allocates && sg_params_memory(&node->params))
        sg_graph_memory_release(sg_params_memory(&node->params));
    if (node->condition)
        node->condition->node = NULL;
    sg_handle_drop(SG_KIND_NODE, node->handle);
    sg_params_free(&node->params);
    free(node->bodies);
    free(node->body_handles);
    free(node->attributes);
    free(node->attribute_set);
    free(node->from.list);
    free(node->to.list);
    free(node);
}

static void end_graphs(struct sg_graph *list) {
    while (list) {
        struct sg_graph *graph = list;
        list = graph->to_free;
        for (struct sg_node *node = graph->first, *next; node; node = next) {
            next = node->next;
            end_node(node, &list);
        }
        sg_held_objects_drop(&graph->objects);
        sg_conditions_free(graph);
        sg_graph_forget_index(graph);
        sg_handle_drop(SG_KIND_GRAPH, graph->handle);
        free(graph);
    }
}

void sg_graph_free(struct sg_graph *graph) {
    if (!graph)
        return;
    graph->to_free = NULL;
    end_graphs(graph);
}

/* Removes a node and its edges from its graph, and frees it. */
static void free_node(struct sg_node *node) {
    struct sg_graph *graphs = NULL;
    int64_t memory = is_memory(node);
    if (node->child)
        memory = (int64_t)node->child->memory_nodes;
    if (node->graph) {
        sg_edges_sever(node);
        unlink_node(node);
        sg_graph_count_memory(node->graph, -memory);
    }
    end_node(node, &graphs);
    end_graphs(graphs);
}

/* ---- Adding --------------------------------------------------------------------------------- */

/* Nodes of this graph, without duplicates. */
static CUresult check_dependencies(const struct sg_graph *graph,
                                   struct sg_node *const *dependencies, const CUgraphEdgeData *data,
                                   size_t count, const struct sg_node_type *type) {
    uint64_t walk = sg_graph_walks(1);
    for (size_t i = 0; i < count; i++) {
        struct sg_node *node = dependencies[i];
        if (!node || node->graph != graph || node->mark == walk)
            return CUDA_ERROR_INVALID_VALUE;
        node->mark = walk;
        CUresult result =
            data ? sg_edge_data_check(&data[i], sg_type_of(&node->params), type) : CUDA_SUCCESS;
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

static bool reserve_edges(struct sg_node *node, struct sg_node *const *dependencies, size_t count) {
    if (count > 0 && !sg_edges_reserve(&node->from, count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!sg_edges_reserve(&dependencies[i]->to, 1))
            return false;
    return true;
}

static CUresult add(struct sg_graph *graph, struct sg_node *const *dependencies,
                    const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *params,
                    CUresult (*check)(const CUgraphNodeParams *), struct sg_node **node) {
    const struct sg_node_type *type = sg_type_of(params);
    CUresult result = check_dependencies(graph, dependencies, data, count, type);
    if (result == CUDA_SUCCESS)
        result = sg_params_resolve(graph, params);
    if (result == CUDA_SUCCESS)
        result = check(params);
    if (result == CUDA_SUCCESS && type->may_be_in)
        result = type->may_be_in(graph, params);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_node *made = sg_node_new(params, &result);
    if (!made)
        return result;
    result = reserve_edges(made, dependencies, count) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS && type->furnish)
        result = type->furnish(graph, made, params);
    if (result != CUDA_SUCCESS) {
        free_node(made);
        return result;
    }
    sg_node_link(graph, made);
    for (size_t i = 0; i < count; i++)
        sg_edge_add(dependencies[i], made, data ? &data[i] : NULL);
    if (is_memory(made))
        sg_graph_count_memory(graph, 1);
    else if (made->child)
        sg_graph_count_memory(graph, (int64_t)made->child->memory_nodes);
    *node = made;
    return CUDA_SUCCESS;
}

CUresult sg_graph_add(struct sg_graph *graph, struct sg_node *const *dependencies,
                      const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *params,
                      struct sg_node **node) {
    return add(graph, dependencies, data, count, params, sg_params_check, node);
}

CUresult sg_graph_add_captured(struct sg_graph *graph, struct sg_node *const *dependencies,
                               const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *params,
                               struct sg_node **node) {
    return add(graph, dependencies, data, count, params, sg_params_check_captured, node);
}

/* ---- The driver's calls --------------------------------------------------------------------- */

CUresult sg_cuGraphCreate(CUgraph *phGraph, unsigned int flags) {
    if (!phGraph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_graph *graph = sg_graph_new();
    if (!graph)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *phGraph = SG_HANDLE_POINTER(CUgraph, graph->handle);
    return CUDA_SUCCESS;
}

/* An embedded graph belongs to its node. "All operations other than destroy and node removal are
 * permitted on the graph while the capture sequence is in progress." */
CUresult sg_cuGraphDestroy(CUgraph hGraph) {
    struct sg_graph *graph = sg_graph_get(hGraph);
    if (!graph || graph->owner)
        return CUDA_ERROR_INVALID_VALUE;
    if (graph->captures)
        return CUDA_ERROR_ILLEGAL_STATE;
    sg_graph_free(graph);
    return CUDA_SUCCESS;
}

CUresult sg_cuGraphDestroyNode(CUgraphNode hNode) {
    struct sg_node *node = sg_node_get(hNode);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    if (node->graph->captures)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (node->graph->memory_nodes || sg_node_is_updatable(node))
        return CUDA_ERROR_NOT_SUPPORTED;
    free_node(node);
    return CUDA_SUCCESS;
}
