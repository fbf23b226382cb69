/*
 * Graphs: nodes with parameters, and edges between them. Everything here requires the lock.
 *
 * A graph owns its nodes; a node owns its edges, its parameters (deep copies) and its child or body
 * graphs. Nothing in a graph runs: cuGraphInstantiate (exec.h) makes a CUgraphExec, which keeps
 * copies of what it needs and never looks at the graph again, except to compare during an update.
 *
 * Parameters are the API's own CUgraphNodeParams throughout: cuGraphAddNode takes them, the
 * type-specific functions and capture convert to them, and an exec runs them.
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
    struct sg_edge *list; /* in the order in which they were added */
    size_t count, room;
};

/* A node of a graph, in the graph's list in order of creation. */
struct sg_node {
    uint64_t handle;
    uint64_t id; /* unique in the process, never reused; increases with creation */
    struct sg_graph *graph;
    struct sg_node *next, *previous;
    struct sg_edges from, to; /* dependencies and dependents, kept in step */
    struct sg_node *original; /* for a node of a clone: cuGraphNodeFindInClone; only compared, may
                                 dangle: original_id decides */
    uint64_t original_id;
    CUgraphNodeParams params;       /* deep: owned by node_params.c's copy and free */
    struct sg_graph *child;         /* child graph nodes: owned, embedded */
    struct sg_graph **bodies;       /* conditional nodes: params.conditional.size of them, owned */
    CUgraph *body_handles;          /* their handles: params.conditional.phGraph_out points here */
    struct sg_condition *condition; /* conditional nodes: what their handle refers to */
    CUkernelNodeAttrValue *attributes; /* kernel nodes: indexed by CUlaunchAttributeID, or NULL */
    bool *attribute_set;
    struct sg_node *root_next, *root_previous; /* used while it depends on nothing */
    struct sg_node_allocation
        *allocation; /* owned by allocations.c: what a memory node allocates or frees */
    struct sg_node *next_free, *previous_free; /* nodes that free the same allocation */
    uint64_t mark; /* for walks: equal to the walk's number when visited */
};

struct sg_graph {
    uint64_t handle;
    uint64_t id;
    struct sg_node *first, *last;
    size_t count;
    struct sg_node *roots;     /* nodes that depend on nothing, newest first */
    struct sg_node *owner;     /* the node that has this as its child or body, or NULL */
    struct sg_graph *original; /* for a clone; only compared */
    uint64_t original_id;
    unsigned captures;                /* streams that are capturing into it */
    struct sg_held_object *objects;   /* retained user objects */
    struct sg_condition **conditions; /* conditional handles, of embedded graphs too, by number */
    size_t condition_count, condition_room;
    uint64_t memory_nodes;   /* alloc and free nodes in it and its children */
    struct sg_copied *index; /* owned by clone.c: nodes by original_id, or NULL until needed */
    size_t index_count;
    struct sg_graph *to_free; /* used by graph.c while freeing */
};

struct sg_graph *sg_graph_get(CUgraph handle);
struct sg_node *sg_node_get(CUgraphNode handle);

/* Creates a graph with a handle; NULL when out of memory. */
struct sg_graph *sg_graph_new(void);
/* Frees the graph with its nodes, children and references to user objects. */
void sg_graph_free(struct sg_graph *graph);

/*
 * Adds a node after `count` dependencies (distinct nodes of the same graph; `data` may be NULL for
 * plain edges). Checks dependencies and parameters as cuGraphAddNode_v2 does and copies them
 * deeply. For an allocation node *params receives the address; for a conditional node, the body
 * graphs. On failure nothing has changed.
 */
CUresult sg_graph_add(struct sg_graph *graph, struct sg_node *const *dependencies,
                      const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *params,
                      struct sg_node **node);
/* The same for a captured stream operation (sg_params_check_captured). */
CUresult sg_graph_add_captured(struct sg_graph *graph, struct sg_node *const *dependencies,
                               const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *params,
                               struct sg_node **node);

/* A digest of nodes, edges and parameters, including embedded graphs. False when out of memory. */
bool sg_graph_digest(const struct sg_graph *graph, uint64_t *digest);

/* Returns the first of `count` numbers that no node is marked with yet. */
uint64_t sg_graph_walks(size_t count);
/* The graph that is not embedded: this one, or its owner's graph, and so on. */
struct sg_graph *sg_graph_outermost(struct sg_graph *graph);

/* ---- Parameters (node_params.c) -------------------------------------------------------------- */

/* Checks what cuGraphAddNode checks of a node's parameters, independent of the graph. */
CUresult sg_params_check(const CUgraphNodeParams *params);
/* The same for a capture. As recorded: a memset is captured whatever its address, even NULL, and
 * the memory is checked when the graph is instantiated; copies are checked immediately. */
CUresult sg_params_check_captured(const CUgraphNodeParams *params);
/* Fills in the current context for a type that runs in a context but names none; INVALID_CONTEXT
 * when there is none. For a conditional node it also makes the checks that come before and after
 * that: INVALID_VALUE. */
CUresult sg_params_resolve(struct sg_graph *graph, CUgraphNodeParams *params);
/*
 * Deep copy: kernel arguments (laid out by the function's parameters, into kernelParams without
 * `extra`), memory operations, semaphore lists, access descriptions. Child graphs and bodies are
 * not followed. OUT_OF_MEMORY leaves *to untouched. A deep copy has SG_PARAMS_DEEP in reserved2, so
 * that copying it again does not need the function.
 */
#define SG_PARAMS_DEEP 1
CUresult sg_params_copy(CUgraphNodeParams *to, const CUgraphNodeParams *from);
void sg_params_free(CUgraphNodeParams *params);

/* ---- Graph memory (graph_memory.c) ----------------------------------------------------------- */

/* For an allocation node: checks params->alloc, reserves the address that all launches will use and
 * sets params->alloc.dptr. */
CUresult sg_graph_memory_reserve(CUgraphNodeParams *params);
/* The address is reference-counted: one reference from reserve and one for each retain. It is freed
 * when the node is gone and no exec uses it. */
void sg_graph_memory_retain(CUdeviceptr address);
void sg_graph_memory_release(CUdeviceptr address);
/* Whether the address is in a graph allocation, mapped or not; whether it is its first byte. */
bool sg_graph_memory_is(CUdeviceptr address);
bool sg_graph_memory_starts(CUdeviceptr address);
/* Releases idle memory of the device's pool for graphs. Returns the number of bytes. */
uint64_t sg_graph_memory_reclaim(int device);

/* ---- User objects (user_object.c) ------------------------------------------------------------ */

/* A graph's references to user objects, one entry per object. */
struct sg_held_object {
    struct sg_user_object *object;
    unsigned count;
    struct sg_held_object *next;
};
/* Copies references for a clone or an exec (each takes as many references as the original holds).
 * False when out of memory; then none were taken. */
bool sg_held_objects_copy(struct sg_held_object **to, const struct sg_held_object *from);
/* Releases the references. The destructors of objects that lose their last reference run in the
 * calling thread when its API call ends, as on hardware, or else in a dedicated thread. */
void sg_held_objects_drop(struct sg_held_object **objects);

/* Number of objects whose destructors wait for the end of an API call, in any thread. */
extern unsigned sg_user_objects_ended;
/* Called at the end of each API call while there are such objects: runs the calling thread's
 * destructors, with the lock released meanwhile. */
void sg_user_objects_run(void);

/* ---- Conditional handles (conditional.c) ----------------------------------------------------- */

/* A handle is a number, counted from 1 within each graph together with the bodies and embedded
 * graphs in it, as on H200: only the number of another graph's handle is seen. */
struct sg_condition {
    struct sg_context *context; /* referenced */
    unsigned initial, flags;    /* CU_GRAPH_COND_ASSIGN_DEFAULT */
    struct sg_node *node;       /* the node that uses it, or NULL */
};
/* Resolves a handle for a node of this graph; NULL when there is no such handle. */
struct sg_condition *sg_condition_get(struct sg_graph *graph, CUgraphConditionalHandle handle);

extern const struct sg_chapter sg_graph_chapter;

#endif
