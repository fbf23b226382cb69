/* Shared by the files that change execs. */
#ifndef SG_GRAPH_UPDATE_H
#define SG_GRAPH_UPDATE_H

#include "softgpu/graph/exec.h"

/* Whether these could be the parameters of a node; addresses in batches are not checked. */
CUresult sg_update_check(const CUgraphNodeParams *params);

/* Whether an exec's node may change from one to the other, as cuGraphExecUpdate judges it. */
CUgraphExecUpdateResult sg_params_compare(const CUgraphNodeParams *now,
                                          const CUgraphNodeParams *wanted);

/* Swaps what two nodes do, and what they own for it. */
void sg_exec_node_exchange(struct sg_exec_node *node, struct sg_exec_node *made);

/* Changes to nodes and user objects, prepared as a whole. */
struct sg_exec_change;
struct sg_objects_change;
struct sg_exec_changes {
    struct sg_exec *exec;
    struct sg_exec_change *list; /* at most one for each node of the exec */
    size_t count;
    struct sg_objects_change *parts; /* what parts will hold; once made, what is released */
    size_t part_count, part_room;
    struct sg_launch_age *age; /* age of the launches after the update */
};
/* False when out of memory; sg_exec_changes_end must be called even then. */
bool sg_exec_changes_begin(struct sg_exec_changes *changes, struct sg_exec *exec);
/* Prepares to make a part like `graph`. GRAPH_EXEC_UPDATE_FAILURE when that is not allowed, with
 * the reason in *info. */
CUresult sg_exec_compare(struct sg_exec_changes *changes, struct sg_exec_part *part,
                         struct sg_graph *graph, CUgraphExecUpdateResultInfo *info);
/* Makes all of the changes, or none. */
CUresult sg_exec_changes_make(struct sg_exec_changes *changes);
void sg_exec_changes_end(struct sg_exec_changes *changes);

/* Shared by update.c and exec_objects.c: prepare a part to hold the graph's user objects (false
 * when out of memory), make the exchange, and release what was not needed or was replaced. */
bool sg_exec_take_objects(struct sg_exec_changes *changes, struct sg_exec_part *part,
                          const struct sg_graph *graph);
void sg_exec_exchange_objects(struct sg_exec_changes *changes);
void sg_exec_drop_objects(struct sg_exec_changes *changes);

#endif
