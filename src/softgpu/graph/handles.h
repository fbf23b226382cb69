/* Resolves lists of node handles; inside graph/ only. */
#ifndef SG_GRAPH_HANDLES_H
#define SG_GRAPH_HANDLES_H

#include "softgpu/graph/graph.h"

struct sg_node_list {
    struct sg_node **nodes; /* NULL for an invalid handle */
    struct sg_node *few[8]; /* nodes points here if the list is short */
};

/* INVALID_VALUE for a missing list. Call sg_node_list_end in any case. */
CUresult sg_node_list_read(struct sg_node_list *list, const CUgraphNode *handles, size_t count);
void sg_node_list_end(struct sg_node_list *list);

#endif
