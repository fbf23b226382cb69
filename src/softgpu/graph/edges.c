#include "softgpu/graph/edges.h"

#include <stdlib.h>
#include <string.h>

bool sg_edges_reserve(struct sg_edges *edges, size_t more) {
    size_t wanted;
    if (__builtin_add_overflow(edges->count, more, &wanted))
        return false;
    if (wanted <= edges->room)
        return true;
    size_t room = edges->room < 2 ? 2 : edges->room * 2;
    if (room < wanted)
        room = wanted;
    struct sg_edge *list = reallocarray(edges->list, room, sizeof *list);
    if (!list)
        return false;
    edges->list = list;
    edges->room = room;
    return true;
}

static void append(struct sg_edges *edges, struct sg_node *node, const CUgraphEdgeData *data) {
    struct sg_edge *edge = &edges->list[edges->count++];
    edge->node = node;
    if (data)
        edge->data = *data;
    else
        memset(&edge->data, 0, sizeof edge->data);
}

void sg_edge_add(struct sg_node *from, struct sg_node *to, const CUgraphEdgeData *data) {
    append(&from->to, to, data);
    append(&to->from, from, data);
}

static bool same(const CUgraphEdgeData *a, const CUgraphEdgeData *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

/* The position of an edge, or the count when there is none. From the end: what was added last is
 * asked for and removed most. */
static size_t position(const struct sg_edges *edges, const struct sg_node *node,
                       const CUgraphEdgeData *data) {
    for (size_t i = edges->count; i-- > 0;)
        if (edges->list[i].node == node && (!data || same(&edges->list[i].data, data)))
            return i;
    return edges->count;
}

bool sg_edge_exists(const struct sg_node *from, const struct sg_node *to,
                    const CUgraphEdgeData *data) {
    if (from->to.count < to->from.count)
        return position(&from->to, to, data) < from->to.count;
    return position(&to->from, from, data) < to->from.count;
}

static void take(struct sg_edges *edges, const struct sg_node *node, const CUgraphEdgeData *data) {
    size_t at = position(edges, node, data);
    if (at == edges->count)
        return;
    edges->count--;
    memmove(&edges->list[at], &edges->list[at + 1], (edges->count - at) * sizeof edges->list[0]);
}

void sg_edge_remove(struct sg_node *from, struct sg_node *to, const CUgraphEdgeData *data) {
    take(&from->to, to, data);
    take(&to->from, from, data);
}

void sg_edges_sever(struct sg_node *node) {
    for (size_t i = 0; i < node->from.count; i++)
        take(&node->from.list[i].node->to, node, &node->from.list[i].data);
    for (size_t i = 0; i < node->to.count; i++)
        take(&node->to.list[i].node->from, node, &node->to.list[i].data);
    node->from.count = node->to.count = 0;
}

bool sg_edge_data_plain(const CUgraphEdgeData *data) {
    static const CUgraphEdgeData plain;
    return same(data, &plain);
}

/* Ports are outputs of kernel nodes, and only a kernel can wait for less than the end of one. */
CUresult sg_edge_data_check(const CUgraphEdgeData *data, CUgraphNodeType from, CUgraphNodeType to) {
    static const unsigned char zeros[sizeof data->reserved];
    if (sg_edge_data_plain(data))
        return CUDA_SUCCESS;
    bool kernels = from == CU_GRAPH_NODE_TYPE_KERNEL && to == CU_GRAPH_NODE_TYPE_KERNEL;
    bool known = data->from_port <= CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER && data->to_port == 0 &&
                 data->type <= CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC &&
                 memcmp(data->reserved, zeros, sizeof zeros) == 0;
    if (!known || (data->from_port && from != CU_GRAPH_NODE_TYPE_KERNEL))
        return CUDA_ERROR_INVALID_VALUE;
    if (data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && !(kernels && data->from_port))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}
