/*
 * How node types differ: one row per type, in a file of its own (node_kernel.c, node_memcpy.c,
 * ...). All other files of graph/ work with any type by consulting its row. A row leaves out the
 * operations that its nodes do not need. Everything here requires the lock.
 */
#ifndef SG_GRAPH_NODE_TYPE_H
#define SG_GRAPH_NODE_TYPE_H

#include "softgpu/graph/exec.h"

struct sg_picture;

struct sg_node_type {
    const char *name;         /* the driver's name */
    const char *runtime_name; /* the runtime library's name, which batches do not have */

    /* ---- The member of CUgraphNodeParams ---- */
    size_t size; /* bytes of the union that the type uses */
    /* Offsets of these in CUgraphNodeParams; 0 if there is none. */
    size_t context; /* CUcontext */
    size_t event;   /* CUevent that it records or waits for */
    size_t memory;  /* CUdeviceptr of graph memory that it allocates or frees */

    /* ---- Properties --------- */
    bool runs_in_context;    /* the one in its parameters */
    bool allocates;          /* holds a reference to the graph memory at `memory` */
    bool unique;             /* a graph that holds one is neither copied nor embedded */
    bool fixed;              /* its parameters cannot be changed */
    bool has_attributes;     /* launch attributes */
    bool has_kernel_ports;   /* programmatic edges may begin and end here */
    bool can_be_disabled;    /* in an exec */
    bool launches_on_device; /* may be in a graph that device code launches */
    bool may_block;          /* may wait for something outside */
    bool flat;               /* the parameters point to nothing that the node owns */

    /* ---- Parameters ---- */
    /* Fills in the current context where none is named, among others; see sg_params_resolve. */
    CUresult (*resolve)(struct sg_graph *graph, CUgraphNodeParams *params);
    CUresult (*check)(const CUgraphNodeParams *params);          /* required */
    CUresult (*check_captured)(const CUgraphNodeParams *params); /* without: check */
    CUresult (*check_update)(const CUgraphNodeParams *params);   /* without: check */
    /* Replaces what `to`, equal to `from`, points to by copies. On failure nothing is left
     * allocated. */
    CUresult (*deepen)(CUgraphNodeParams *to, const CUgraphNodeParams *from);
    void (*free)(CUgraphNodeParams *params); /* frees what deepen made */
    /* Whether an exec's node may change from one to the other. */
    CUgraphExecUpdateResult (*compare)(const CUgraphNodeParams *now,
                                       const CUgraphNodeParams *wanted);
    void (*draw)(const struct sg_picture *picture, const struct sg_node *node);

    /* ---- Nodes of graphs ---- */
    CUresult (*may_be_in)(struct sg_graph *graph, const CUgraphNodeParams *params);
    /* Makes what only nodes of this type own; `params` receives what is for the application. */
    CUresult (*furnish)(struct sg_graph *graph, struct sg_node *node, CUgraphNodeParams *params);
    /* Passes that to the application. */
    void (*hand_out)(CUgraphNodeParams *to, const CUgraphNodeParams *from);
    /* cuGraphNodeSetParams and cuGraphExecNodeSetParams, for types that must change more than the
     * parameters. */
    CUresult (*set)(struct sg_node *node, const CUgraphNodeParams *params);
    CUresult (*set_exec)(struct sg_exec *exec, struct sg_exec_node *node,
                         const CUgraphNodeParams *params);

    /* ---- Nodes of execs ---- */
    /* For types that run in a context which something else than their parameters names: it, or NULL
     * when that is gone. */
    struct sg_context *(*find_context)(const CUgraphNodeParams *params);
    /* Whether its operands are usable now; memory may have been freed since the node was made. */
    CUresult (*check_operands)(const CUgraphNodeParams *params);
    /* Whether device code may launch it with these operands. */
    bool (*device_reaches)(const CUgraphNodeParams *params);
    CUresult (*may_launch)(void); /* for a node that is not disabled */
    /* Whether the node does nothing itself: it joins its dependencies, and then runs the part
     * *inner, if not NULL. */
    bool (*joins)(const struct sg_exec_node *node, struct sg_exec_part **inner);
    /* Makes the operation, or several linked through `next`. It has taken over, or copied, what it
     * needs of the parameters. */
    CUresult (*make)(struct sg_context *context, const struct sg_exec_node *node,
                     struct sg_op **op);
    void (*discard)(struct sg_op *op); /* frees what make made; without: sg_op_free */
    /* Makes an operation with `again`, which has come to its end, ready to run once more; without:
     * nothing is needed. */
    void (*rewind)(struct sg_op *op);
    /* Types without `make`: gives an empty operation its effect just before it is queued. */
    void (*begin)(const struct sg_exec_node *node, struct sg_op *op);
    unsigned waits; /* waits that `begin` adds to the operation; room is reserved for them */
    /* Called after it was queued as operation `number` of the lane. */
    void (*queued)(const struct sg_exec_node *node, struct sg_stream *lane, uint64_t number);
};

extern const struct sg_node_type sg_node_kernel, sg_node_memcpy, sg_node_memset, sg_node_host,
    sg_node_child, sg_node_wait_event, sg_node_event_record, sg_node_semaphores_signal,
    sg_node_semaphores_wait, sg_node_mem_alloc, sg_node_mem_free, sg_node_batch,
    sg_node_conditional;

/* For an invalid type, a row whose parameters never pass the check. */
const struct sg_node_type *sg_node_type(CUgraphNodeType type);

static inline const struct sg_node_type *sg_type_of(const CUgraphNodeParams *params) {
    return sg_node_type(params->type);
}

/* NULL or 0 for types that have none. */
CUcontext sg_params_context(const CUgraphNodeParams *params);
CUevent sg_params_event(const CUgraphNodeParams *params);
CUdeviceptr sg_params_memory(const CUgraphNodeParams *params);
/* Names a context where the type runs in one and none is named. */
void sg_params_name_context(CUgraphNodeParams *params, CUcontext context);

/* ---- For the rows ---------------------------------------------------------------------------- */

#define SG_NODE_SIZE(member)   sizeof(((CUgraphNodeParams *)0)->member)
#define SG_NODE_OFFSET(member) offsetof(CUgraphNodeParams, member)

/* Resolves a handle to its context (NULL: the current one); returns the context's fault, if any. */
CUresult sg_params_resolve_context(CUcontext *handle);
/* For types that may be added without any context: they then run in the launch's. */
CUresult sg_params_resolve_optional(CUcontext *handle);
/* Copies an array; the copy is not NULL even if it is empty. False when out of memory. */
bool sg_params_copy_array(void **to, const void *from, size_t count, size_t size);
/* Whether two addresses belong to one device, as far as both are known. */
bool sg_params_same_device(CUdeviceptr now, CUdeviceptr wanted);

static inline CUgraphExecUpdateResult sg_params_judged(bool allowed) {
    return allowed ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

#endif
