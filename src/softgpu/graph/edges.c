#include "softgpu/graph/edges.h"

#include "base/growing_array.h"
#include "softgpu/graph/node_type.h"

#include <string.h>

bool sg_edges_reserve(struct sg_edges *edges, size_t more) {
    size_t wanted;
    if (__builtin_add_overflow(edges->count, more, &wanted))
        return false;
    return GM_RESERVE(edges->list, edges->room, wanted);
}

static void append(struct sg_edges *edges, struct sg_node *node, const CUgraphEdgeData *data) {
    struct sg_edge *edge = &edges->list[edges->count++];
    edge->node = node;
    if (data)
        edge->data = *data;
    else
        memset(&edge->data, 0, sizeof edge->data);
}

/* ---- Roots: newest first, as H200 lists them ------------------------------------------------- */

void sg_root_add(struct sg_node *node) {
    struct sg_graph *graph = node->graph;
    node->root_previous = NULL;
    node->root_next = graph->roots;
    if (graph->roots)
        graph->roots->root_previous = node;
    graph->roots = node;
}

void sg_root_remove(struct sg_node *node) {
    if (node->root_next)
        node->root_next->root_previous = node->root_previous;
    if (node->root_previous)
        node->root_previous->root_next = node->root_next;
    else
        node->graph->roots = node->root_next;
}

/* ---- Edges ---------------------------------------------------------------------------------- */

void sg_edge_add(struct sg_node *from, struct sg_node *to, const CUgraphEdgeData *data) {
    if (to->from.count == 0)
        sg_root_remove(to);
    append(&from->to, to, data);
    append(&to->from, from, data);
}

/* The index of an edge, or the count if there is none. Searches from the end, because recent edges
 * are looked up and removed most often. */
static size_t position(const struct sg_edges *edges, const struct sg_node *node) {
    for (size_t i = edges->count; i-- > 0;)
        if (edges->list[i].node == node)
            return i;
    return edges->count;
}

bool sg_edge_exists(const struct sg_node *from, const struct sg_node *to) {
    if (from->to.count < to->from.count)
        return position(&from->to, to) < from->to.count;
    return position(&to->from, from) < to->from.count;
}

static void take(struct sg_edges *edges, const struct sg_node *node) {
    size_t at = position(edges, node);
    if (at == edges->count)
        return;
    edges->count--;
    memmove(&edges->list[at], &edges->list[at + 1], (edges->count - at) * sizeof edges->list[0]);
}

void sg_edge_remove(struct sg_node *from, struct sg_node *to) {
    take(&from->to, to);
    take(&to->from, from);
    if (to->from.count == 0)
        sg_root_add(to);
}

void sg_edges_sever(struct sg_node *node) {
    for (size_t i = 0; i < node->from.count; i++)
        take(&node->from.list[i].node->to, node);
    if (node->from.count > 0)
        sg_root_add(node);
    node->from.count = 0;
    for (size_t i = 0; i < node->to.count; i++) {
        struct sg_node *to = node->to.list[i].node;
        take(&to->from, node);
        if (to->from.count == 0)
            sg_root_add(to);
    }
    node->to.count = 0;
}

/* As recorded on H200: a programmatic dependency is between kernels and starts at one of the two
 * ports; the launch-order port may also stand for a full dependency on a kernel. */
CUresult sg_edge_data_check(const CUgraphEdgeData *data, const struct sg_node_type *from,
                            const struct sg_node_type *to) {
    static const unsigned char zeros[sizeof data->reserved];
    if (data->to_port || memcmp(data->reserved, zeros, sizeof zeros) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    bool valid = false;
    if (data->from_port == CU_GRAPH_KERNEL_NODE_PORT_DEFAULT)
        valid = data->type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT;
    else if (data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
        valid = from->has_kernel_ports && to->has_kernel_ports &&
                data->from_port <= CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER;
    else if (data->type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT)
        valid = from->has_kernel_ports && data->from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER;
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
