/* Copying graphs: cuGraphClone, embedding, and finding a node in a copy. */
#include "softgpu/core/calls.h"
#include "softgpu/graph/edges.h"
#include "softgpu/graph/node_type.h"
#include "softgpu/graph/nodes.h"

#include <stdlib.h>
#include <string.h>

/* ---- Cloning -------------------------------------------------------------------------------- */

/* `copies` holds at i the copy of the node that is marked first + i. */
struct copying {
    struct sg_node **copies;
    uint64_t first;
};

static struct sg_node *copy_of(const struct copying *copying, const struct sg_node *node) {
    return copying->copies[node->mark - copying->first];
}

static struct sg_graph *clone_graph(const struct sg_graph *graph);

static struct sg_graph *clone_into(const struct sg_graph *graph, struct sg_node *owner) {
    struct sg_graph *clone = clone_graph(graph);
    if (clone)
        clone->owner = owner;
    return clone;
}

static bool clone_bodies(struct sg_node *copy, const struct sg_node *node) {
    unsigned count = node->params.conditional.size;
    copy->bodies = calloc(count, sizeof *copy->bodies);
    copy->body_handles = calloc(count, sizeof *copy->body_handles);
    if (!copy->bodies || !copy->body_handles)
        return false;
    for (unsigned i = 0; i < count; i++) {
        copy->bodies[i] = clone_into(node->bodies[i], copy);
        if (!copy->bodies[i])
            return false;
        copy->body_handles[i] = SG_HANDLE_POINTER(CUgraph, copy->bodies[i]->handle);
    }
    copy->params.conditional.phGraph_out = copy->body_handles;
    return true;
}

/* What a copied node owns besides its parameters. */
static bool clone_parts(struct sg_node *copy, const struct sg_node *node) {
    if (sg_type_of(&node->params)->allocates)
        sg_graph_memory_retain(sg_params_memory(&node->params));
    if (node->child) {
        copy->child = clone_into(node->child, copy);
        if (!copy->child)
            return false;
        copy->params.graph.graph = SG_HANDLE_POINTER(CUgraph, copy->child->handle);
    }
    if (node->bodies && !clone_bodies(copy, node))
        return false;
    return sg_node_attributes_copy(copy, node);
}

static bool clone_nodes(struct sg_graph *clone, const struct sg_graph *graph,
                        struct copying *copying) {
    size_t at = 0;
    for (struct sg_node *node = graph->first; node; node = node->next, at++) {
        CUresult result;
        struct sg_node *copy = sg_node_new(&node->params, &result);
        if (!copy)
            return false;
        copy->original = node;
        copy->original_id = node->id;
        sg_node_link(clone, copy);
        if (!clone_parts(copy, node))
            return false;
        node->mark = copying->first + at;
        copying->copies[at] = copy;
    }
    return true;
}

static bool clone_list(struct sg_edges *to, const struct sg_edges *from,
                       const struct copying *copying) {
    if (from->count == 0)
        return true;
    if (!sg_edges_reserve(to, from->count))
        return false;
    for (size_t i = 0; i < from->count; i++)
        to->list[i] = (struct sg_edge){copy_of(copying, from->list[i].node), from->list[i].data};
    to->count = from->count;
    return true;
}

static bool clone_edges(const struct sg_graph *graph, const struct copying *copying) {
    for (const struct sg_node *node = graph->first; node; node = node->next) {
        struct sg_node *copy = copy_of(copying, node);
        if (node->from.count > 0)
            sg_root_remove(copy);
        if (!clone_list(&copy->from, &node->from, copying) ||
            !clone_list(&copy->to, &node->to, copying))
            return false;
    }
    return true;
}

/* A deep copy with its own handles, or NULL; embedded graphs are copied too. */
static struct sg_graph *clone_graph(const struct sg_graph *graph) {
    struct copying copying = {.first = sg_graph_walks(graph->count)};
    struct sg_graph *clone = sg_graph_new();
    copying.copies = calloc(graph->count ? graph->count : 1, sizeof *copying.copies);
    bool done = clone && copying.copies && clone_nodes(clone, graph, &copying) &&
                clone_edges(graph, &copying) &&
                sg_held_objects_copy(&clone->objects, graph->objects);
    free(copying.copies);
    if (!done) {
        sg_graph_free(clone);
        return NULL;
    }
    clone->original = (struct sg_graph *)graph;
    clone->original_id = graph->id;
    clone->memory_nodes = graph->memory_nodes;
    return clone;
}

CUresult sg_cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph) {
    const struct sg_graph *graph = sg_graph_get(originalGraph);
    if (!phGraphClone || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_graph_may_copy(graph);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_graph *clone = clone_graph(graph);
    if (!clone)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *phGraphClone = SG_HANDLE_POINTER(CUgraph, clone->handle);
    return CUDA_SUCCESS;
}

/* ---- Embedding ------------------------------------------------------------------------------ */

CUresult sg_node_embed(struct sg_node *node, const CUDA_CHILD_GRAPH_NODE_PARAMS *params) {
    struct sg_graph *child = sg_graph_get(params->graph);
    if (params->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
        node->child = child;
        child->owner = node;
        return CUDA_SUCCESS;
    }
    node->child = clone_into(child, node);
    if (!node->child)
        return CUDA_ERROR_OUT_OF_MEMORY;
    node->params.graph.graph = SG_HANDLE_POINTER(CUgraph, node->child->handle);
    return CUDA_SUCCESS;
}

CUresult sg_node_embed_again(struct sg_node *node, const CUDA_CHILD_GRAPH_NODE_PARAMS *params) {
    struct sg_graph *old = node->child;
    if (sg_graph_get(params->graph) == old)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_graph_may_embed(node->graph, params);
    if (result == CUDA_SUCCESS)
        result = sg_node_embed(node, params);
    if (result != CUDA_SUCCESS) {
        node->child = old;
        return result;
    }
    sg_graph_count_memory(node->graph,
                          (int64_t)node->child->memory_nodes - (int64_t)old->memory_nodes);
    node->params.graph.graph = SG_HANDLE_POINTER(CUgraph, node->child->handle);
    sg_graph_free(old);
    return CUDA_SUCCESS;
}

CUresult sg_cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph) {
    const struct sg_node *node = sg_node_get(hNode);
    if (!node || !phGraph || !node->child)
        return CUDA_ERROR_INVALID_VALUE;
    *phGraph = SG_HANDLE_POINTER(CUgraph, node->child->handle);
    return CUDA_SUCCESS;
}

/* ---- Finding -------------------------------------------------------------------------------- */

/* Copies are in the order of their originals, and nodes added later have none, so a table in list
 * order is already sorted by original_id. */
struct sg_copied {
    uint64_t original_id;
    struct sg_node *node; /* NULL once it is gone */
};

static bool make_index(struct sg_graph *graph) {
    if (graph->index)
        return true;
    graph->index = calloc(graph->count ? graph->count : 1, sizeof *graph->index);
    if (!graph->index)
        return false;
    for (struct sg_node *node = graph->first; node; node = node->next)
        if (node->original_id)
            graph->index[graph->index_count++] = (struct sg_copied){node->original_id, node};
    return true;
}

static struct sg_copied *find_copy(const struct sg_graph *graph, uint64_t id) {
    size_t low = 0, high = graph->index_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct sg_copied *copied = &graph->index[middle];
        if (copied->original_id == id)
            return copied;
        if (copied->original_id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

void sg_graph_forget_copy(struct sg_graph *graph, const struct sg_node *node) {
    struct sg_copied *copied =
        graph->index && node->original_id ? find_copy(graph, node->original_id) : NULL;
    if (copied)
        copied->node = NULL;
}

void sg_graph_forget_index(struct sg_graph *graph) {
    free(graph->index);
    graph->index = NULL;
    graph->index_count = 0;
}

CUresult sg_cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode,
                                   CUgraph hClonedGraph) {
    const struct sg_node *original = sg_node_get(hOriginalNode);
    struct sg_graph *clone = sg_graph_get(hClonedGraph);
    if (!phNode || !original || !clone)
        return CUDA_ERROR_INVALID_VALUE;
    if (!make_index(clone))
        return CUDA_ERROR_OUT_OF_MEMORY;
    const struct sg_copied *copied = find_copy(clone, original->id);
    const struct sg_node *found = copied ? copied->node : NULL;
    *phNode = found ? SG_HANDLE_POINTER(CUgraphNode, found->handle) : NULL;
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
