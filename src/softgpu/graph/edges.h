/* Edges between nodes of one graph; inside graph/ only. Both ends are kept in step. */
#ifndef SG_GRAPH_EDGES_H
#define SG_GRAPH_EDGES_H

#include "softgpu/graph/graph.h"

/* Room for `more` edges, so that adding them cannot fail. */
bool sg_edges_reserve(struct sg_edges *edges, size_t more);
/* Room must be reserved at both ends: from->to and to->from. */
void sg_edge_add(struct sg_node *from, struct sg_node *to, const CUgraphEdgeData *data);
/* Searches the shorter of the two lists. There is at most one edge between two nodes in one
 * direction, whatever its data. */
bool sg_edge_exists(const struct sg_node *from, const struct sg_node *to);
/* The edge must exist. */
void sg_edge_remove(struct sg_node *from, struct sg_node *to);
/* Removes all edges of a node, at both ends; the node becomes a root. */
void sg_edges_sever(struct sg_node *node);

/* The graph's list of nodes without dependencies, maintained as edges are added and removed. */
void sg_root_add(struct sg_node *node);
void sg_root_remove(struct sg_node *node);

/* Checks an edge's data for nodes of these types. */
struct sg_node_type;
CUresult sg_edge_data_check(const CUgraphEdgeData *data, const struct sg_node_type *from,
                            const struct sg_node_type *to);

#endif
