/*
 * Executable graphs. Everything here requires the lock.
 *
 * An exec is a copy of a graph: a tree of parts (the graph, embedded graphs, bodies of conditional
 * nodes), which remembers where each node came from, plus a plan: the steps of a launch in
 * topological order, divided into lanes. A lane is a hidden stream that the exec owns: steps that
 * follow one another share a lane, and a dependency between lanes is a token. Empty nodes, and the
 * begin and end of embedded graphs, are not steps as long as leaving them out does not multiply the
 * dependencies.
 *
 * A launch queues a marker in the stream (the gate that the first steps wait for), the steps'
 * operations in their lanes, and a marker in the stream that waits for the end of every lane. So
 * stream/ schedules, helps, faults and drains graphs like any other work.
 */
#ifndef SG_GRAPH_EXEC_H
#define SG_GRAPH_EXEC_H

#include "softgpu/graph/graph.h"
#include "softgpu/launch/device_conditions.h"
#include "softgpu/stream/event.h"
#include "softgpu/stream/stream.h"

struct sg_exec_part;
struct sg_launch_age;

/* A node, with copies of what it needs to run. */
struct sg_exec_node {
    uint64_t id;              /* id of the graph's node */
    CUgraphNodeParams params; /* deep */
    bool enabled;
    struct sg_context *context; /* the context it runs in; referenced. NULL: the exec's */
    struct sg_event *event;     /* event nodes; referenced */
    size_t *from;               /* indices in its part, in order of the edges */
    CUgraphEdgeData *edges;     /* from_count of them */
    size_t from_count;
    struct sg_exec_part **parts; /* child graph: one; conditional: its bodies */
    unsigned part_count;
    unsigned value;                    /* conditional: its handle's value when a launch begins */
    CUkernelNodeAttrValue *attributes; /* kernel nodes: as in sg_node */
    bool *attribute_set;
};

struct sg_exec_part {
    uint64_t graph_id;
    struct sg_exec_node *nodes; /* in order of creation */
    size_t count;
    struct sg_held_object *objects; /* its own references to the graph's user objects */
};

/* One operation, or several in succession, of a launch. */
struct sg_step {
    struct sg_exec_node *node; /* NULL: a join only */
    unsigned lane;
    size_t first_wait, wait_count; /* in sg_plan.waits: earlier steps in other lanes */
    bool gated; /* no step of this launch precedes it in its lane, and it waits for none */
};

struct sg_lane {
    struct sg_stream *stream;
    size_t last; /* last step, while lanes are made */
    bool blocks; /* contains a step that may wait for something outside */
};

struct sg_plan {
    struct sg_step *steps;
    size_t count;
    size_t *waits;
    size_t wait_count, wait_room;
    struct sg_lane *lanes;
    unsigned lane_count;
    size_t lane_room;
};

struct sg_exec {
    uint64_t handle; /* 0 once destroyed */
    unsigned refs;   /* one for the handle, one for each incomplete launch or upload */
    uint64_t number; /* in order of creation, for reports */
    uint64_t graph_id;
    cuuint64_t flags;
    struct sg_context *context; /* the context current at creation; referenced */
    struct sg_exec_part *root;
    struct sg_plan plan;
    struct {
        uint64_t id;
        struct sg_exec_node *node;
    } * index; /* all nodes, by id */
    size_t node_count, memory_nodes;
    struct sg_token last;            /* end of the last launch or upload */
    struct sg_launch_age *age;       /* the age of the next launch */
    struct sg_exec *next, *previous; /* list of all execs with a handle */
};

extern struct sg_exec *sg_execs;

struct sg_exec *sg_exec_get(CUgraphExec handle);
/* Where and how an instantiation failed. */
struct sg_exec_error {
    CUgraphInstantiateResult result;
    CUgraphNode node;
};
/* Creates an exec with a handle. */
CUresult sg_exec_new(struct sg_graph *graph, cuuint64_t flags, struct sg_exec **exec,
                     struct sg_exec_error *error);
/* Invalidates the handle; the exec is freed with its last launch. */
void sg_exec_destroy(struct sg_exec *exec);
void sg_exec_ref(struct sg_exec *exec);
void sg_exec_unref(struct sg_exec *exec);
/* The copy of a graph's node, or NULL if it was not in the graph. */
struct sg_exec_node *sg_exec_node_find(const struct sg_exec *exec, CUgraphNode node);

/* ---- Ages of launches (exec_objects.c) ------------------------------------------------------- */

/* A reference keeps alive the user objects that later updates release. */
struct sg_launch_age *sg_launch_age_new(void); /* with one reference; NULL when out of memory */
void sg_launch_age_ref(struct sg_launch_age *age);
void sg_launch_age_unref(struct sg_launch_age *age); /* may be NULL */

/* ---- Parts (exec_part.c) --------------------------------------------------------------------- */

/* Copies a graph and all graphs embedded in it. */
CUresult sg_exec_part_new(struct sg_graph *graph, struct sg_exec_part **part);
void sg_exec_part_free(struct sg_exec_part *part);
/* Replaces what a node does with a deep copy of `params`, and the context and event that they name.
 * On failure nothing has changed. */
CUresult sg_exec_node_set(struct sg_exec_node *node, const CUgraphNodeParams *params);
/* Releases what sg_exec_node_set took. */
void sg_exec_node_release(struct sg_exec_node *node);
/* The value of a conditional node's handle when a launch begins; 0 for other nodes. */
unsigned sg_condition_first_value(const struct sg_node *node);
/* Calls `visit` for each node of a part and of the parts in it. */
void sg_exec_part_each(struct sg_exec_part *part,
                       void (*visit)(struct sg_exec_node *node, void *user), void *user);

/* Whether a graph may be instantiated with these flags (exec_check.c). */
CUresult sg_exec_check(struct sg_graph *graph, cuuint64_t flags, struct sg_exec_error *error);

/* ---- The plan (lanes.c) ---------------------------------------------------------------------- */

/* Rebuilds the plan of an exec. On failure the old one is kept. */
CUresult sg_plan_make(struct sg_exec *exec);
void sg_plan_free(struct sg_plan *plan);

/* ---- Work (work.c, conditional_run.c) -------------------------------------------------------- */

/*
 * Makes the operation of a node that does one thing on the device: copy, memset, host function,
 * batch of memory operations (several, linked through `next`), semaphore signal or wait, condition.
 * The operation takes over what it needs of the parameters. NOT_SUPPORTED for types without
 * operations.
 */
CUresult sg_work_make(struct sg_context *context, const struct sg_exec_node *node,
                      struct sg_op **op);
/* Frees operations that sg_work_make made for a node of this type and that will not be queued. */
struct sg_node_type;
void sg_work_discard(const struct sg_node_type *type, struct sg_op *op);
/* The operation of a conditional node: runs the bodies that the values of handles choose, and those
 * of conditional nodes in them. */
CUresult sg_flow_make(struct sg_context *context, const struct sg_exec_node *node,
                      struct sg_op **op);
void sg_flow_discard(struct sg_op *op);
/* The values of the handles of the launch that is being made, with the lock; else NULL. Operations
 * that use them later take a reference. */
extern struct sg_conditions *sg_launch_conditions;

/* ---- Launching (launch.c) -------------------------------------------------------------------- */

CUresult sg_exec_launch(struct sg_exec *exec, struct sg_stream *stream);
/* Provides memory for its allocation nodes, ordered after earlier launches. */
CUresult sg_exec_upload(struct sg_exec *exec, struct sg_stream *stream);

/* ---- Graph memory for launches (graph_memory_launch.c) --------------------------------------- */

struct sg_graph_memory_uses;
/*
 * Determines what a launch will do to memory, in order of the steps: allocations need memory and
 * must not be left over from an earlier launch (unless `automatic`), frees need an allocation.
 * Changes the host's view; sg_graph_memory_end reverts it. INVALID_VALUE or OUT_OF_MEMORY, with
 * everything undone. *uses is NULL when there is nothing to do.
 */
CUresult sg_graph_memory_begin(struct sg_exec *exec, bool automatic,
                               struct sg_graph_memory_uses **uses);
/* Call after a successful begin, when nothing that follows can fail. */
void sg_graph_memory_commit(const struct sg_graph_memory_uses *uses);
/* Gives the operation of an allocation or free node its effect. */
void sg_graph_memory_step_allocate(CUdeviceptr address, struct sg_op *op);
void sg_graph_memory_step_free(CUdeviceptr address, struct sg_op *op);
/* A launch is complete, or was not made: unused memory returns to the device's pool for graphs. */
void sg_graph_memory_end(struct sg_graph_memory_uses *uses);
/* Sets memory aside for the exec's allocations, without a launch. */
CUresult sg_graph_memory_upload(struct sg_exec *exec);

/* Parts of the chapter's dump and leak report. */
struct sg_text;
void sg_execs_dump(struct sg_text *text);
void sg_execs_leaks(struct sg_text *text);

#endif
