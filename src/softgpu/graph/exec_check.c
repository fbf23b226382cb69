/* Whether a graph may become executable. */
#include "softgpu/graph/exec.h"

#include "softgpu/graph/node_type.h"

#include <stdlib.h>

static CUresult fail(struct sg_exec_error *error, CUgraphInstantiateResult result,
                     const struct sg_node *node, CUresult answer) {
    error->result = result;
    error->node = node ? SG_HANDLE_POINTER(CUgraphNode, node->handle) : NULL;
    return answer;
}

/* ---- Cycles --------------------------------------------------------------------------------- */

/* Removes nodes that wait for nothing, until there are none; those left are in, or after, a cycle.
 * `waiting` has room for each node. */
static const struct sg_node *find_circle(const struct sg_graph *graph, size_t *waiting,
                                         struct sg_node **known) {
    uint64_t first = sg_graph_walks(graph->count ? graph->count : 1), mark = first;
    size_t count = 0;
    for (struct sg_node *node = graph->first; node; node = node->next) {
        waiting[mark - first] = node->from.count;
        node->mark = mark++;
        if (node->from.count == 0)
            known[count++] = node;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < known[i]->to.count; k++) {
            struct sg_node *next = known[i]->to.list[k].node;
            if (--waiting[next->mark - first] == 0)
                known[count++] = next;
        }
    if (count == graph->count)
        return NULL;
    const struct sg_node *node = graph->first;
    while (node && waiting[node->mark - first] == 0)
        node = node->next;
    return node;
}

static CUresult check_circles(const struct sg_graph *graph, struct sg_exec_error *error) {
    size_t *waiting = calloc(graph->count + 1, sizeof *waiting);
    struct sg_node **known = calloc(graph->count + 1, sizeof *known);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (waiting && known) {
        const struct sg_node *node = find_circle(graph, waiting, known);
        result = node ? fail(error, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, node,
                             CUDA_ERROR_INVALID_VALUE)
                      : CUDA_SUCCESS;
    }
    free(waiting);
    free(known);
    return result;
}

/* ---- Graphs for launches from the device ---------------------------------------------------- */

struct device_launch {
    CUcontext context; /* context of the nodes so far */
    bool works;        /* a kernel, copy or memset was seen */
};

static CUresult check_device_node(const struct sg_node *node, struct device_launch *seen,
                                  struct sg_exec_error *error) {
    const struct sg_node_type *type = sg_type_of(&node->params);
    CUcontext context = sg_params_context(&node->params);
    if (!type->launches_on_device || (type->device_reaches && !type->device_reaches(&node->params)))
        return fail(error, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, node,
                    CUDA_ERROR_INVALID_VALUE);
    if (seen->works && context && seen->context && context != seen->context)
        return fail(error, CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED, node,
                    CUDA_ERROR_INVALID_VALUE);
    seen->works = true;
    if (context)
        seen->context = context;
    return CUDA_SUCCESS;
}

static CUresult check_device(const struct sg_graph *graph, struct device_launch *seen,
                             struct sg_exec_error *error) {
    CUresult result = CUDA_SUCCESS;
    for (struct sg_node *node = graph->first; node && result == CUDA_SUCCESS; node = node->next)
        result = node->child ? check_device(node->child, seen, error)
                             : check_device_node(node, seen, error);
    return result;
}

/* ---- The whole check ------------------------------------------------------------------------ */

static CUresult check_conditions(const struct sg_graph *graph, struct sg_exec_error *error) {
    for (size_t i = 0; i < graph->condition_count; i++)
        if (!graph->conditions[i]->node)
            return fail(error, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, NULL,
                        CUDA_ERROR_INVALID_VALUE);
    return CUDA_SUCCESS;
}

static CUresult check_operands(const struct sg_node *node) {
    const struct sg_node_type *type = sg_type_of(&node->params);
    return type->check_operands ? type->check_operands(&node->params) : CUDA_SUCCESS;
}

static CUresult check_inside(const struct sg_graph *graph, struct sg_exec_error *error) {
    CUresult result = check_circles(graph, error);
    if (result == CUDA_SUCCESS)
        result = check_conditions(graph, error);
    for (struct sg_node *node = graph->first; node && result == CUDA_SUCCESS; node = node->next) {
        result = check_operands(node);
        if (result == CUDA_SUCCESS && node->child)
            result = check_inside(node->child, error);
        for (unsigned i = 0;
             node->bodies && i < node->params.conditional.size && result == CUDA_SUCCESS; i++)
            result = check_inside(node->bodies[i], error);
    }
    return result;
}

/* "There can be at most one executable graph in existence for that graph at a time." */
static bool instantiated(const struct sg_graph *graph) {
    for (const struct sg_exec *exec = sg_execs; exec; exec = exec->next)
        if (exec->graph_id == graph->id)
            return true;
    return false;
}

CUresult sg_exec_check(struct sg_graph *graph, cuuint64_t flags, struct sg_exec_error *error) {
    *error = (struct sg_exec_error){CUDA_GRAPH_INSTANTIATE_ERROR, NULL};
    CUresult result = check_inside(graph, error);
    if (result == CUDA_SUCCESS && graph->memory_nodes > 0 && instantiated(graph))
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (result != CUDA_SUCCESS || !(flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH))
        return result;
    struct device_launch seen = {0};
    result = check_device(graph, &seen, error);
    if (result == CUDA_SUCCESS && !seen.works)
        result = fail(error, CUDA_GRAPH_INSTANTIATE_ERROR, NULL, CUDA_ERROR_INVALID_VALUE);
    return result;
}
