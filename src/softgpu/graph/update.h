/* Between the files that change execs. */
#ifndef SG_GRAPH_UPDATE_H
#define SG_GRAPH_UPDATE_H

#include "softgpu/graph/exec.h"

/* Whether these parameters could be those of a node; of batches, addresses are not looked at. */
CUresult sg_update_check(const CUgraphNodeParams *params);

/* Whether an exec's node may change from one to the other, as cuGraphExecUpdate judges it. */
CUgraphExecUpdateResult sg_params_compare(const CUgraphNodeParams *now,
                                          const CUgraphNodeParams *wanted);

/* Exchanges what two nodes do, with what they own for it. */
void sg_exec_node_exchange(struct sg_exec_node *node, struct sg_exec_node *made);

/* What becomes of nodes and of user objects, prepared as a whole. */
struct sg_exec_change;
struct sg_objects_change;
struct sg_exec_changes {
    struct sg_exec *exec;
    struct sg_exec_change *list; /* one for each node of the exec at most */
    size_t count;
    struct sg_objects_change *parts; /* what parts will hold; once made, what is given up */
    size_t part_count, part_room;
    struct sg_launch_age *age; /* of the launches after it */
};
/* False when out of memory; to be ended all the same. */
bool sg_exec_changes_begin(struct sg_exec_changes *changes, struct sg_exec *exec);
/* Prepares to make a part like `graph`. GRAPH_EXEC_UPDATE_FAILURE when that may not be, with the
 * reason in *info. */
CUresult sg_exec_compare(struct sg_exec_changes *changes, struct sg_exec_part *part,
                         struct sg_graph *graph, CUgraphExecUpdateResultInfo *info);
/* All of it, or nothing. */
CUresult sg_exec_changes_make(struct sg_exec_changes *changes);
void sg_exec_changes_end(struct sg_exec_changes *changes);

/* Between update.c and exec_objects.c: prepares that a part holds the graph's user objects (false
 * when out of memory), does it, and gives up what was not needed or has been replaced. */
bool sg_exec_take_objects(struct sg_exec_changes *changes, struct sg_exec_part *part,
                          const struct sg_graph *graph);
void sg_exec_exchange_objects(struct sg_exec_changes *changes);
void sg_exec_drop_objects(struct sg_exec_changes *changes);

#endif
