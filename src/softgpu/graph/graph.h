/*
 * Graphs: nodes with parameters, and edges between them. Everything here wants the lock.
 *
 * A graph owns its nodes, a node its edges, its parameters (deep copies) and its child or body
 * graphs. Nothing in a graph runs: cuGraphInstantiate (exec.h) makes a CUgraphExec, which keeps
 * copies of what it needs and never looks at the graph again, except to compare in an update.
 *
 * Parameters are the API's own CUgraphNodeParams throughout: what cuGraphAddNode takes, what the
 * functions for one type are turned into, what capture makes of a call on a stream, and what an
 * exec runs.
 */
#ifndef SG_GRAPH_GRAPH_H
#define SG_GRAPH_GRAPH_H

#include "softgpu/context/context.h"
#include "softgpu/core/chapter.h"

struct sg_node;
struct sg_range;
struct sg_stream;
struct sg_user_object;

struct sg_edge {
    struct sg_node *node; /* the other end */
    CUgraphEdgeData data;
};

struct sg_edges {
    struct sg_edge *list; /* in order of adding */
    size_t count, room;
};

/* A node of a graph, in the graph's list in order of creation. */
struct sg_node {
    uint64_t handle;
    uint64_t id; /* unique in the process, never reused; grows with creation */
    struct sg_graph *graph;
    struct sg_node *next, *previous;
    struct sg_edges from, to; /* what it depends on; what depends on it. Kept in step */
    struct sg_node *original; /* of a node of a clone: cuGraphNodeFindInClone; only compared, may be
                                 gone: original_id decides */
    uint64_t original_id;
    CUgraphNodeParams params;       /* deep: owned by node_params.c's copy and free */
    struct sg_graph *child;         /* child graph nodes: owned, embedded */
    struct sg_graph **bodies;       /* conditional nodes: params.conditional.size of them, owned */
    CUgraph *body_handles;          /* their handles: params.conditional.phGraph_out points here */
    struct sg_condition *condition; /* conditional nodes: what their handle means */
    CUkernelNodeAttrValue *attributes; /* kernel nodes: by CUlaunchAttributeID, or NULL */
    bool *attribute_set;
    struct sg_node *root_next, *root_previous; /* while it depends on nothing */
    struct sg_node_allocation
        *allocation; /* allocations.c's: what a memory node allocates or frees */
    struct sg_node *next_free, *previous_free; /* of the same allocation */
    uint64_t mark; /* for walks: equal to the walk's number when visited */
};

struct sg_graph {
    uint64_t handle;
    uint64_t id;
    struct sg_node *first, *last;
    size_t count;
    struct sg_node *roots;     /* that depend on nothing, the newest first */
    struct sg_node *owner;     /* the node whose child or body this is, or NULL */
    struct sg_graph *original; /* of a clone; only compared */
    uint64_t original_id;
    unsigned captures;                /* streams that capture into it right now */
    struct sg_held_object *objects;   /* retained user objects */
    struct sg_condition **conditions; /* conditional handles of it and all in it, by number */
    size_t condition_count, condition_room;
    uint64_t memory_nodes;   /* alloc and free nodes in it and its children */
    struct sg_copied *index; /* clone.c's: nodes by original_id, or NULL until asked for */
    size_t index_count;
    struct sg_graph *to_free; /* graph.c's, while it frees */
};

struct sg_graph *sg_graph_get(CUgraph handle);
struct sg_node *sg_node_get(CUgraphNode handle);

/* A graph with a handle; NULL when out of memory. */
struct sg_graph *sg_graph_new(void);
/* With its nodes, children, references to user objects. */
void sg_graph_free(struct sg_graph *graph);

/*
 * Adds a node after `count` dependencies (nodes of the same graph, distinct; `data` may be NULL for
 * plain edges). Checks dependencies and parameters as cuGraphAddNode_v2 does and copies them
 * deeply. For an allocation node *params receives the address; for a conditional node the body
 * graphs. Whole or nothing.
 */
CUresult sg_graph_add(struct sg_graph *graph, struct sg_node *const *dependencies,
                      const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *params,
                      struct sg_node **node);
/* The same for what a stream captures (sg_params_check_captured). */
CUresult sg_graph_add_captured(struct sg_graph *graph, struct sg_node *const *dependencies,
                               const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *params,
                               struct sg_node **node);

/* A number that stands for nodes, edges and parameters, of embedded graphs too. False when out of
 * memory. */
bool sg_graph_digest(const struct sg_graph *graph, uint64_t *digest);

/* The first of `count` numbers that no node is marked with yet. */
uint64_t sg_graph_walks(size_t count);
/* The graph that nobody embeds: itself, or the owner's owner's ... */
struct sg_graph *sg_graph_outermost(struct sg_graph *graph);

/* ---- Parameters (node_params.c) -------------------------------------------------------------- */

/* Checks what cuGraphAddNode checks of a node's parameters, apart from the graph. */
CUresult sg_params_check(const CUgraphNodeParams *params);
/* The same as a capture checks it. Recorded: a set is captured whatever its address, NULL too, and
 * what lies there is looked at when the graph is instantiated; copies are looked at at once. */
CUresult sg_params_check_captured(const CUgraphNodeParams *params);
/* Puts the current context where a type that runs in a context names none. INVALID_CONTEXT when
 * there is none. For a conditional node also what comes before and behind that: INVALID_VALUE. */
CUresult sg_params_resolve(struct sg_graph *graph, CUgraphNodeParams *params);
/*
 * Deep copy: kernel arguments (laid out by the function's parameters, into `extra`-free
 * kernelParams), memory operations, semaphore lists, access descriptions. Child graphs and bodies
 * are not followed. OUT_OF_MEMORY leaves *to untouched.
 * A deep copy has SG_PARAMS_DEEP in reserved2, so that copies of it need not ask for the function.
 */
#define SG_PARAMS_DEEP 1
CUresult sg_params_copy(CUgraphNodeParams *to, const CUgraphNodeParams *from);
void sg_params_free(CUgraphNodeParams *params);

/* ---- Graph memory (graph_memory.c) ----------------------------------------------------------- */

/* For an allocation node: checks params->alloc, reserves the address that all launches will use and
 * sets params->alloc.dptr. */
CUresult sg_graph_memory_reserve(CUgraphNodeParams *params);
/* The node is gone and no exec uses the address any more: counted by references, one from
 * reserve and one for each retain. */
void sg_graph_memory_retain(CUdeviceptr address);
void sg_graph_memory_release(CUdeviceptr address);
/* Does it lie in a graph allocation, whether there is memory now or not? Is it the first byte? */
bool sg_graph_memory_is(CUdeviceptr address);
bool sg_graph_memory_starts(CUdeviceptr address);
/* Gives back what is idle in the device's pool for graphs. Returns the bytes. */
uint64_t sg_graph_memory_reclaim(int device);

/* ---- User objects (user_object.c) ------------------------------------------------------------ */

/* A graph's references to user objects, one entry for each object. */
struct sg_held_object {
    struct sg_user_object *object;
    unsigned count;
    struct sg_held_object *next;
};
/* Copies references for a clone or an exec (each takes as many references as the original holds).
 * False when out of memory; then nothing was taken. */
bool sg_held_objects_copy(struct sg_held_object **to, const struct sg_held_object *from);
/* Gives them up. The destructors of objects whose last reference goes run in the calling thread
 * when its API call ends, as on hardware, and else on a thread of their own. */
void sg_held_objects_drop(struct sg_held_object **objects);

/* Objects whose destructors wait for the end of an API call, of any thread. */
extern unsigned sg_user_objects_ended;
/* For the end of each API call, while there are such: runs those of the calling thread, with the
 * lock released meanwhile. */
void sg_user_objects_run(void);

/* ---- Conditional handles (conditional.c) ----------------------------------------------------- */

/* A handle is a number, counted from 1 in each graph together with the bodies and the embedded
 * graphs in it, as on H200: of another graph's handle only the number is seen. */
struct sg_condition {
    struct sg_context *context; /* referenced */
    unsigned initial, flags;    /* CU_GRAPH_COND_ASSIGN_DEFAULT */
    struct sg_node *node;       /* that uses it, or NULL */
};
/* What a handle means for a node of this graph; NULL when it has no such handle. */
struct sg_condition *sg_condition_get(struct sg_graph *graph, CUgraphConditionalHandle handle);

extern const struct sg_chapter sg_graph_chapter;

#endif
