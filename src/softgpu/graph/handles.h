/* Lists of node handles, looked up; inside graph/. */
#ifndef SG_GRAPH_HANDLES_H
#define SG_GRAPH_HANDLES_H

#include "softgpu/graph/graph.h"

struct sg_node_list {
    struct sg_node **nodes; /* NULL where a handle is none */
    struct sg_node *few[8]; /* nodes points here when they are few */
};

/* INVALID_VALUE for no list where there should be one. Ended with sg_node_list_end in any case. */
CUresult sg_node_list_read(struct sg_node_list *list, const CUgraphNode *handles, size_t count);
void sg_node_list_end(struct sg_node_list *list);

#endif
