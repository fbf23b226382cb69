/*
 * What the types of nodes differ in: a row for each type, in a file of its own (node_kernel.c,
 * node_memcpy.c, ...). All other files of graph/ work with any type, and ask its row. An operation
 * that a row leaves out is one that nodes of the type do not need. Everything here wants the lock.
 */
#ifndef SG_GRAPH_NODE_TYPE_H
#define SG_GRAPH_NODE_TYPE_H

#include "softgpu/graph/exec.h"

struct sg_picture;

struct sg_node_type {
    const char *name;         /* the driver's */
    const char *runtime_name; /* the runtime library's, which has none for batches */

    /* ---- The member of CUgraphNodeParams ---- */
    size_t size; /* bytes that the type uses of the union */
    /* Where in CUgraphNodeParams they lie; 0 where there is none. */
    size_t context; /* CUcontext */
    size_t event;   /* CUevent that it records or waits for */
    size_t memory;  /* CUdeviceptr of graph memory that it allocates or frees */

    /* ---- What it is like ---- */
    bool runs_in_context;    /* in that of its parameters: a kernel has its function's */
    bool allocates;          /* holds a reference to the graph memory at `memory` */
    bool unique;             /* a graph that holds one is neither copied nor embedded */
    bool fixed;              /* its parameters cannot be changed */
    bool has_attributes;     /* of launches */
    bool has_kernel_ports;   /* programmatic edges may begin and end here */
    bool can_be_disabled;    /* in an exec */
    bool launches_on_device; /* may be in a graph that device code launches */
    bool may_block;          /* may wait for somebody outside */
    bool flat;               /* the parameters point to nothing that the node owns */

    /* ---- Parameters ---- */
    /* Puts the current context where none is named, and the like; see sg_params_resolve. */
    CUresult (*resolve)(struct sg_graph *graph, CUgraphNodeParams *params);
    CUresult (*check)(const CUgraphNodeParams *params);          /* every type has it */
    CUresult (*check_captured)(const CUgraphNodeParams *params); /* without: check */
    CUresult (*check_update)(const CUgraphNodeParams *params);   /* without: check */
    /* Puts copies in place of what `to`, equal to `from`, points to. On failure nothing is left. */
    CUresult (*deepen)(CUgraphNodeParams *to, const CUgraphNodeParams *from);
    void (*free)(CUgraphNodeParams *params); /* what deepen made */
    /* Whether an exec's node may change from one to the other. */
    CUgraphExecUpdateResult (*compare)(const CUgraphNodeParams *now,
                                       const CUgraphNodeParams *wanted);
    void (*draw)(const struct sg_picture *picture, const struct sg_node *node);

    /* ---- Nodes of graphs ---- */
    CUresult (*may_be_in)(struct sg_graph *graph, const CUgraphNodeParams *params);
    /* Makes what only nodes of this type own; `params` gets what the application is to know. */
    CUresult (*furnish)(struct sg_graph *graph, struct sg_node *node, CUgraphNodeParams *params);
    /* Hands that to the application. */
    void (*hand_out)(CUgraphNodeParams *to, const CUgraphNodeParams *from);
    /* cuGraphNodeSetParams and cuGraphExecNodeSetParams, where the parameters are not all. */
    CUresult (*set)(struct sg_node *node, const CUgraphNodeParams *params);
    CUresult (*set_exec)(struct sg_exec *exec, struct sg_exec_node *node,
                         const CUgraphNodeParams *params);

    /* ---- Nodes of execs ---- */
    /* Whether its operands can be used now; memory may have gone since the node was made. */
    CUresult (*check_operands)(const CUgraphNodeParams *params);
    /* Whether device code may launch it with these operands. */
    bool (*device_reaches)(const CUgraphNodeParams *params);
    CUresult (*may_launch)(void); /* for a node that is not switched off */
    /* Whether the node does nothing itself: it joins what it depends on, and then runs the part
     * *inner, if not NULL. */
    bool (*joins)(const struct sg_exec_node *node, struct sg_exec_part **inner);
    /* The operation, or several linked through `next`. It has taken over, or copied, what it needs
     * of the parameters. */
    CUresult (*make)(struct sg_context *context, const struct sg_exec_node *node,
                     struct sg_op **op);
    void (*discard)(struct sg_op *op); /* one that make made; without: sg_op_free */
    /* Types without `make`: gives an empty operation its effect, just before it is queued. */
    void (*begin)(const struct sg_exec_node *node, struct sg_op *op);
    unsigned waits; /* that `begin` adds to the operation: room for them is reserved */
    /* After it was queued, as operation `number` of the lane. */
    void (*queued)(const struct sg_exec_node *node, struct sg_stream *lane, uint64_t number);
};

extern const struct sg_node_type sg_node_kernel, sg_node_memcpy, sg_node_memset, sg_node_host,
    sg_node_child, sg_node_wait_event, sg_node_event_record, sg_node_semaphores_signal,
    sg_node_semaphores_wait, sg_node_mem_alloc, sg_node_mem_free, sg_node_batch,
    sg_node_conditional;

/* For a number that is no type, a row whose parameters never pass the check. */
const struct sg_node_type *sg_node_type(CUgraphNodeType type);

static inline const struct sg_node_type *sg_type_of(const CUgraphNodeParams *params) {
    return sg_node_type(params->type);
}

/* NULL and 0 for types without. */
CUcontext sg_params_context(const CUgraphNodeParams *params);
CUevent sg_params_event(const CUgraphNodeParams *params);
CUdeviceptr sg_params_memory(const CUgraphNodeParams *params);
/* Names a context where the type runs in one and none is named. */
void sg_params_name_context(CUgraphNodeParams *params, CUcontext context);

/* ---- For the rows ---------------------------------------------------------------------------- */

#define SG_NODE_SIZE(member)   sizeof(((CUgraphNodeParams *)0)->member)
#define SG_NODE_OFFSET(member) offsetof(CUgraphNodeParams, member)

/* The context that a handle names, NULL for the current one; its fault when it has one. */
CUresult sg_params_resolve_context(CUcontext *handle);
/* For types that may be added without any context: they run in that of the launch then. */
CUresult sg_params_resolve_optional(CUcontext *handle);
/* A copy of an array, which is not NULL for an empty one either. False when out of memory. */
bool sg_params_copy_array(void **to, const void *from, size_t count, size_t size);
/* Whether two addresses are of one device, as far as both are known. */
bool sg_params_same_device(CUdeviceptr now, CUdeviceptr wanted);

static inline CUgraphExecUpdateResult sg_params_judged(bool allowed) {
    return allowed ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

#endif
