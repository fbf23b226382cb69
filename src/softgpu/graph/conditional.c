/* Conditional handles and the bodies of conditional nodes. */
#include "base/growing_array.h"
#include "softgpu/core/calls.h"
#include "softgpu/graph/nodes.h"

#include <stdlib.h>

struct sg_condition *sg_condition_get(struct sg_graph *graph, CUgraphConditionalHandle handle) {
    const struct sg_graph *of = sg_graph_outermost(graph);
    return handle > 0 && handle <= of->condition_count ? of->conditions[handle - 1] : NULL;
}

/* The bodies that use them may still exist. */
void sg_conditions_free(struct sg_graph *graph) {
    for (size_t i = 0; i < graph->condition_count; i++) {
        struct sg_condition *condition = graph->conditions[i];
        if (condition->node)
            condition->node->condition = NULL;
        sg_context_unref(condition->context);
        free(condition);
    }
    free(graph->conditions);
}

static bool keep(struct sg_graph *graph, struct sg_condition *condition) {
    if (!GM_RESERVE(graph->conditions, graph->condition_room, graph->condition_count + 1))
        return false;
    graph->conditions[graph->condition_count++] = condition;
    return true;
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
    graph = sg_graph_outermost(graph);
    if (!condition || !keep(graph, condition)) {
        free(condition);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg_context_ref(context);
    *condition =
        (struct sg_condition){.context = context, .initial = defaultLaunchValue, .flags = flags};
    *pHandle_out = graph->condition_count;
    return CUDA_SUCCESS;
}

CUresult sg_node_make_bodies(struct sg_graph *graph, struct sg_node *node,
                             CUgraphNodeParams *params) {
    CUDA_CONDITIONAL_NODE_PARAMS *conditional = &params->conditional;
    struct sg_condition *condition = sg_condition_get(graph, conditional->handle);
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
    node->condition = condition;
    node->params.conditional.phGraph_out = node->body_handles;
    conditional->phGraph_out = node->body_handles;
    return CUDA_SUCCESS;
}
