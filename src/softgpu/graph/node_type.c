/* The table of types, and what its rows say about parameters. */
#include "softgpu/graph/node_type.h"

#include <string.h>

static CUresult check_empty(const CUgraphNodeParams *params) {
    (void)params;
    return CUDA_SUCCESS;
}

static bool joins_only(const struct sg_exec_node *node, struct sg_exec_part **inner) {
    (void)node;
    *inner = NULL;
    return true;
}

static const struct sg_node_type empty = {
    .name = "EMPTY",
    .runtime_name = "cudaGraphNodeTypeEmpty",
    .check = check_empty,
    .joins = joins_only,
};

static CUresult check_unknown(const CUgraphNodeParams *params) {
    (void)params;
    return CUDA_ERROR_INVALID_VALUE;
}

static const struct sg_node_type unknown = {
    .name = "UNKNOWN",
    .runtime_name = "UNKNOWN",
    .check = check_unknown,
};

static const struct sg_node_type *const types[] = {
    [CU_GRAPH_NODE_TYPE_KERNEL] = &sg_node_kernel,
    [CU_GRAPH_NODE_TYPE_MEMCPY] = &sg_node_memcpy,
    [CU_GRAPH_NODE_TYPE_MEMSET] = &sg_node_memset,
    [CU_GRAPH_NODE_TYPE_HOST] = &sg_node_host,
    [CU_GRAPH_NODE_TYPE_GRAPH] = &sg_node_child,
    [CU_GRAPH_NODE_TYPE_EMPTY] = &empty,
    [CU_GRAPH_NODE_TYPE_WAIT_EVENT] = &sg_node_wait_event,
    [CU_GRAPH_NODE_TYPE_EVENT_RECORD] = &sg_node_event_record,
    [CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL] = &sg_node_semaphores_signal,
    [CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT] = &sg_node_semaphores_wait,
    [CU_GRAPH_NODE_TYPE_MEM_ALLOC] = &sg_node_mem_alloc,
    [CU_GRAPH_NODE_TYPE_MEM_FREE] = &sg_node_mem_free,
    [CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = &sg_node_batch,
    [CU_GRAPH_NODE_TYPE_CONDITIONAL] = &sg_node_conditional,
};

const struct sg_node_type *sg_node_type(CUgraphNodeType type) {
    return (size_t)type < sizeof types / sizeof types[0] ? types[type] : &unknown;
}

/* ---- Members --------------------------------------------------------------------------------- */

/* `value` is unchanged for types without such a member. */
static void read_member(const CUgraphNodeParams *params, size_t offset, void *value, size_t size) {
    if (offset)
        memcpy(value, (const char *)params + offset, size);
}

CUcontext sg_params_context(const CUgraphNodeParams *params) {
    CUcontext context = NULL;
    read_member(params, sg_type_of(params)->context, (void *)&context, sizeof(CUcontext));
    return context;
}

CUevent sg_params_event(const CUgraphNodeParams *params) {
    CUevent event = NULL;
    read_member(params, sg_type_of(params)->event, (void *)&event, sizeof(CUevent));
    return event;
}

CUdeviceptr sg_params_memory(const CUgraphNodeParams *params) {
    CUdeviceptr address = 0;
    read_member(params, sg_type_of(params)->memory, &address, sizeof address);
    return address;
}

void sg_params_name_context(CUgraphNodeParams *params, CUcontext context) {
    const struct sg_node_type *type = sg_type_of(params);
    if (type->runs_in_context && !sg_params_context(params))
        memcpy((char *)params + type->context, (const void *)&context, sizeof(CUcontext));
}
