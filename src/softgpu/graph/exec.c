/* Executable graphs as objects: creation, lookup, destruction. */
#include "softgpu/graph/exec.h"

#include "softgpu/graph/node_type.h"

#include <stdlib.h>

struct sg_exec *sg_execs;
static struct sg_exec *last_exec;
static uint64_t last_number;

struct sg_exec *sg_exec_get(CUgraphExec handle) {
    return sg_handle_get(SG_KIND_EXEC, SG_HANDLE_VALUE(handle));
}

/* ---- Finding nodes -------------------------------------------------------------------------- */

static void count_node(struct sg_exec_node *node, void *user) {
    struct sg_exec *exec = user;
    exec->node_count++;
    exec->memory_nodes += sg_type_of(&node->params)->memory != 0;
}

static void index_node(struct sg_exec_node *node, void *user) {
    struct sg_exec *exec = user;
    exec->index[exec->node_count].id = node->id;
    exec->index[exec->node_count++].node = node;
}

static int by_id(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static bool make_index(struct sg_exec *exec) {
    sg_exec_part_each(exec->root, count_node, exec);
    exec->index = reallocarray(NULL, exec->node_count + 1, sizeof *exec->index);
    if (!exec->index)
        return false;
    exec->node_count = 0;
    sg_exec_part_each(exec->root, index_node, exec);
    qsort(exec->index, exec->node_count, sizeof *exec->index, by_id);
    return true;
}

struct sg_exec_node *sg_exec_node_find(const struct sg_exec *exec, CUgraphNode handle) {
    const struct sg_node *node = sg_node_get(handle);
    size_t low = 0, high = exec->node_count;
    if (!node)
        return NULL;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (exec->index[middle].id < node->id)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < exec->node_count && exec->index[low].id == node->id;
    return found ? exec->index[low].node : NULL;
}

/* ---- Lifetime ------------------------------------------------------------------------------- */

static void enlist(struct sg_exec *exec) {
    exec->previous = last_exec;
    if (last_exec)
        last_exec->next = exec;
    else
        sg_execs = exec;
    last_exec = exec;
}

static void unlist(struct sg_exec *exec) {
    if (exec->previous)
        exec->previous->next = exec->next;
    else
        sg_execs = exec->next;
    if (exec->next)
        exec->next->previous = exec->previous;
    else
        last_exec = exec->previous;
}

static void end(struct sg_exec *exec) {
    sg_token_release(&exec->last);
    sg_plan_free(&exec->plan);
    sg_exec_part_free(exec->root);
    sg_launch_age_unref(exec->age);
    sg_context_unref(exec->context);
    free(exec->index);
    free(exec);
}

void sg_exec_ref(struct sg_exec *exec) {
    exec->refs++;
}

void sg_exec_unref(struct sg_exec *exec) {
    if (--exec->refs == 0)
        end(exec);
}

void sg_exec_destroy(struct sg_exec *exec) {
    sg_handle_drop(SG_KIND_EXEC, exec->handle);
    exec->handle = 0;
    unlist(exec);
    sg_exec_unref(exec);
}

static CUresult fill(struct sg_exec *exec, struct sg_graph *graph) {
    exec->age = sg_launch_age_new();
    CUresult result = exec->age ? sg_exec_part_new(graph, &exec->root) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS && !make_index(exec))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        result = sg_plan_make(exec);
    return result;
}

CUresult sg_exec_new(struct sg_graph *graph, cuuint64_t flags, struct sg_exec **out,
                     struct sg_exec_error *error) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result == CUDA_SUCCESS)
        result = sg_exec_check(graph, flags, error);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_exec *exec = calloc(1, sizeof *exec);
    if (!exec)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sg_context_ref(context);
    exec->context = context;
    exec->refs = 1;
    exec->graph_id = graph->id;
    exec->flags = flags;
    result = fill(exec, graph);
    if (result == CUDA_SUCCESS)
        exec->handle = sg_handle_new(SG_KIND_EXEC, exec);
    if (!exec->handle) {
        end(exec);
        return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
    }
    exec->number = ++last_number;
    enlist(exec);
    *out = exec;
    return CUDA_SUCCESS;
}
