/* Conditional handles and the bodies of conditional nodes. */
#include "softgpu/core/calls.h"
#include "softgpu/graph/nodes.h"

#include <stdlib.h>

struct sg_condition *sg_condition_get(CUgraphConditionalHandle handle) {
    return sg_handle_get(SG_KIND_CONDITION, handle);
}

void sg_conditions_free(struct sg_graph *graph) {
    while (graph->conditions) {
        struct sg_condition *condition = graph->conditions;
        graph->conditions = condition->next;
        sg_handle_drop(SG_KIND_CONDITION, condition->handle);
        sg_context_unref(condition->context);
        free(condition);
    }
}

void sg_condition_node_gone(struct sg_node *node) {
    struct sg_condition *condition = sg_condition_get(node->params.conditional.handle);
    if (condition && condition->node == node)
        condition->node = NULL;
}

CUresult sg_cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph,
                                           CUcontext ctx, unsigned int defaultLaunchValue,
                                           unsigned int flags) {
    struct sg_graph *graph = sg_graph_get(hGraph);
    if (!pHandle_out || !graph || flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_context *context;
    CUresult result = ctx ? sg_context_from_handle(ctx, &context) : CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS)
        result = context->sticky;
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_condition *condition = calloc(1, sizeof *condition);
    uint64_t handle = condition ? sg_handle_new(SG_KIND_CONDITION, condition) : 0;
    if (!handle) {
        free(condition);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg_context_ref(context);
    *condition = (struct sg_condition){.handle = handle,
                                       .graph = graph,
                                       .context = context,
                                       .initial = defaultLaunchValue,
                                       .flags = flags,
                                       .next = graph->conditions};
    graph->conditions = condition;
    *pHandle_out = handle;
    return CUDA_SUCCESS;
}

/* The handle may have been made for another graph. */
CUresult sg_node_make_bodies(struct sg_node *node, CUgraphNodeParams *params) {
    CUDA_CONDITIONAL_NODE_PARAMS *conditional = &params->conditional;
    struct sg_condition *condition = sg_condition_get(conditional->handle);
    if (!condition || condition->node ||
        condition->context->handle != SG_HANDLE_VALUE(conditional->ctx))
        return CUDA_ERROR_INVALID_VALUE;
    node->bodies = calloc(conditional->size, sizeof *node->bodies);
    node->body_handles = calloc(conditional->size, sizeof *node->body_handles);
    if (!node->bodies || !node->body_handles)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < conditional->size; i++) {
        node->bodies[i] = sg_graph_new();
        if (!node->bodies[i])
            return CUDA_ERROR_OUT_OF_MEMORY;
        node->bodies[i]->owner = node;
        node->body_handles[i] = SG_HANDLE_POINTER(CUgraph, node->bodies[i]->handle);
    }
    condition->node = node;
    node->params.conditional.phGraph_out = node->body_handles;
    conditional->phGraph_out = node->body_handles;
    return CUDA_SUCCESS;
}
