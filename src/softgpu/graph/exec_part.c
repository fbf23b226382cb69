/* Copies of graphs inside an exec. */
#include "softgpu/graph/exec.h"

#include "softgpu/graph/node_type.h"

#include <stdlib.h>
#include <string.h>

/* ---- One node ------------------------------------------------------------------------------- */

void sg_exec_node_release(struct sg_exec_node *node) {
    CUdeviceptr address = sg_params_memory(&node->params);
    if (address)
        sg_graph_memory_release(address);
    if (node->context)
        sg_context_unref(node->context);
    if (node->event)
        sg_event_unref(node->event);
    sg_params_free(&node->params);
}

CUresult sg_exec_node_set(struct sg_exec_node *node, const CUgraphNodeParams *params) {
    struct sg_exec_node made = *node;
    made.context = NULL;
    made.event = NULL;
    const struct sg_node_type *type = sg_type_of(params);
    CUcontext handle = type->runs_in_context ? sg_params_context(params) : NULL;
    CUresult result = handle ? sg_context_from_handle(handle, &made.context) : CUDA_SUCCESS;
    if (!handle)
        made.context = type->find_context ? type->find_context(params) : NULL;
    if (!handle && !made.context)
        made.context = node->context;
    if (type->event) {
        made.event = sg_event_get(sg_params_event(params));
        if (!made.event)
            result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS)
        result = sg_params_copy(&made.params, params);
    if (result != CUDA_SUCCESS)
        return result;
    if (made.context)
        sg_context_ref(made.context);
    if (made.event)
        sg_event_ref(made.event);
    if (sg_params_memory(params))
        sg_graph_memory_retain(sg_params_memory(params));
    sg_exec_node_release(node);
    *node = made;
    return CUDA_SUCCESS;
}

static CUresult copy_attributes(struct sg_exec_node *to, const struct sg_node *from) {
    if (!from->attributes || !from->attribute_set)
        return CUDA_SUCCESS;
    size_t values = CU_LAUNCH_ATTRIBUTE_MAX * sizeof *to->attributes;
    size_t marks = CU_LAUNCH_ATTRIBUTE_MAX * sizeof *to->attribute_set;
    to->attributes = malloc(values);
    to->attribute_set = malloc(marks);
    if (!to->attributes || !to->attribute_set)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(to->attributes, from->attributes, values);
    memcpy(to->attribute_set, from->attribute_set, marks);
    return CUDA_SUCCESS;
}

/* `first` is the mark of the graph's first node; the others follow. */
static CUresult copy_edges(struct sg_exec_node *to, const struct sg_node *from, uint64_t first) {
    size_t count = from->from.count;
    if (count == 0)
        return CUDA_SUCCESS;
    to->from = reallocarray(NULL, count, sizeof *to->from);
    to->edges = reallocarray(NULL, count, sizeof *to->edges);
    if (!to->from || !to->edges)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        to->from[i] = (size_t)(from->from.list[i].node->mark - first);
        to->edges[i] = from->from.list[i].data;
    }
    to->from_count = count;
    return CUDA_SUCCESS;
}

static CUresult copy_parts(struct sg_exec_node *to, const struct sg_node *from) {
    unsigned count = from->bodies ? from->params.conditional.size : from->child ? 1 : 0;
    if (count == 0)
        return CUDA_SUCCESS;
    to->parts = calloc(count, sizeof *to->parts);
    if (!to->parts)
        return CUDA_ERROR_OUT_OF_MEMORY;
    to->part_count = count;
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = sg_exec_part_new(from->bodies ? from->bodies[i] : from->child, &to->parts[i]);
    return result;
}

/* Without the flag, a handle's value at the beginning of a launch is undefined: 0 here. */
unsigned sg_condition_first_value(const struct sg_node *node) {
    const struct sg_condition *condition = node->condition;
    bool assigned = condition && (condition->flags & CU_GRAPH_COND_ASSIGN_DEFAULT);
    return assigned ? condition->initial : 0;
}

static CUresult copy_node(struct sg_exec_node *to, const struct sg_node *from, uint64_t first) {
    to->id = from->id;
    to->enabled = true;
    to->params.type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUresult result = sg_exec_node_set(to, &from->params);
    if (result != CUDA_SUCCESS)
        return result;
    to->value = sg_condition_first_value(from);
    result = copy_edges(to, from, first);
    if (result == CUDA_SUCCESS)
        result = copy_attributes(to, from);
    return result == CUDA_SUCCESS ? copy_parts(to, from) : result;
}

static void end_node(struct sg_exec_node *node) {
    for (unsigned i = 0; i < node->part_count; i++)
        sg_exec_part_free(node->parts[i]);
    sg_exec_node_release(node);
    free(node->parts);
    free(node->from);
    free(node->edges);
    free(node->attributes);
    free(node->attribute_set);
}

/* ---- All nodes of a graph ------------------------------------------------------------------- */

CUresult sg_exec_part_new(struct sg_graph *graph, struct sg_exec_part **out) {
    struct sg_exec_part *part = calloc(1, sizeof *part);
    if (!part)
        return CUDA_ERROR_OUT_OF_MEMORY;
    part->graph_id = graph->id;
    part->nodes = calloc(graph->count ? graph->count : 1, sizeof *part->nodes);
    CUresult result = part->nodes ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t first = sg_graph_walks(graph->count ? graph->count : 1), mark = first;
    for (struct sg_node *node = graph->first; node; node = node->next)
        node->mark = mark++;
    for (struct sg_node *node = graph->first; node && result == CUDA_SUCCESS; node = node->next)
        result = copy_node(&part->nodes[part->count++], node, first);
    if (result == CUDA_SUCCESS && !sg_held_objects_copy(&part->objects, graph->objects))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        *out = part;
    else
        sg_exec_part_free(part);
    return result;
}

void sg_exec_part_free(struct sg_exec_part *part) {
    if (!part)
        return;
    for (size_t i = 0; i < part->count; i++)
        end_node(&part->nodes[i]);
    sg_held_objects_drop(&part->objects);
    free(part->nodes);
    free(part);
}

void sg_exec_part_each(struct sg_exec_part *part,
                       void (*visit)(struct sg_exec_node *node, void *user), void *user) {
    for (size_t i = 0; i < part->count; i++) {
        struct sg_exec_node *node = &part->nodes[i];
        visit(node, user);
        for (unsigned k = 0; k < node->part_count; k++)
            sg_exec_part_each(node->parts[k], visit, user);
    }
}
