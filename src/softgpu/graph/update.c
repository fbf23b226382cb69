/* cuGraphExecUpdate: takes over the parameters of a graph of the same shape, or nothing. */
#include "softgpu/graph/update.h"

#include "softgpu/core/calls.h"
#include "softgpu/graph/node_type.h"

#include <stdlib.h>
#include <string.h>

/* ---- Pairing -------------------------------------------------------------------------------- */

/*
 * As recorded on H200, nodes are paired backwards from the ends: first the nodes that nothing
 * depends on, in order of creation, then their dependencies, in order of the edges. So the order in
 * which two branches were made does not matter.
 */
struct pairing {
    const struct sg_exec *exec;
    struct sg_exec_part *part;
    struct sg_graph *graph;
    CUgraphExecUpdateResultInfo *info;
    uint64_t unpaired; /* mark of the graph's first node; a paired node's is this + its index + 1 */
    struct sg_node **wanted; /* by index in the part; NULL until paired */
    size_t *todo;            /* indices whose dependencies are still to be paired */
    size_t todo_count;
    bool *inner; /* by index: something depends on it */
};

static CUgraphExecUpdateResult say(struct pairing *pairing, CUgraphExecUpdateResult result,
                                   const struct sg_node *node, const struct sg_node *from) {
    *pairing->info = (CUgraphExecUpdateResultInfo){
        .result = result,
        .errorNode = node ? SG_HANDLE_POINTER(CUgraphNode, node->handle) : NULL,
        .errorFromNode = from ? SG_HANDLE_POINTER(CUgraphNode, from->handle) : NULL};
    return result;
}

static bool same_attribute(const struct sg_exec_node *now, const struct sg_node *wanted,
                           CUlaunchAttributeID id) {
    static const CUkernelNodeAttrValue none;
    bool set = now->attribute_set && now->attribute_set[id];
    bool will_be_set = wanted->attribute_set && wanted->attribute_set[id];
    const CUkernelNodeAttrValue *a = set ? &now->attributes[id] : &none;
    const CUkernelNodeAttrValue *b = will_be_set ? &wanted->attributes[id] : &none;
    /* Values are stored whole, including whatever the application left in their unused bytes. */
    return memcmp(a, b, sizeof *a) == 0; /* NOLINT(bugprone-suspicious-memory-comparison) */
}

/* The attributes of a kernel node that are fixed at instantiation. */
static bool attributes_allow(const struct sg_exec *exec, const struct sg_exec_node *now,
                             const struct sg_node *wanted) {
    if (!sg_type_of(&now->params)->has_attributes)
        return true;
    bool priorities = exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    return same_attribute(now, wanted, CU_LAUNCH_ATTRIBUTE_COOPERATIVE) &&
           (!priorities || same_attribute(now, wanted, CU_LAUNCH_ATTRIBUTE_PRIORITY));
}

static CUgraphExecUpdateResult judge_node(struct pairing *pairing, const struct sg_exec_node *now,
                                          const struct sg_node *wanted) {
    if (now->params.type != wanted->params.type)
        return say(pairing, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, wanted, NULL);
    if (now->from_count != wanted->from.count)
        return say(pairing, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, wanted, NULL);
    CUgraphExecUpdateResult result = sg_params_compare(&now->params, &wanted->params);
    if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return say(pairing, result, wanted, NULL);
    if (!attributes_allow(pairing->exec, now, wanted))
        return say(pairing, CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED, wanted, NULL);
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* Pairs two unpaired nodes, or checks that they are paired with each other. */
static CUgraphExecUpdateResult pair(struct pairing *pairing, size_t place, struct sg_node *wanted,
                                    const struct sg_node *of) {
    uint64_t mark = pairing->unpaired + 1 + place;
    if (pairing->wanted[place] || wanted->mark != pairing->unpaired)
        return wanted->mark == mark
                   ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                   : say(pairing, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, of, wanted);
    CUgraphExecUpdateResult result = judge_node(pairing, &pairing->part->nodes[place], wanted);
    if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return result;
    wanted->mark = mark;
    pairing->wanted[place] = wanted;
    pairing->todo[pairing->todo_count++] = place;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static CUgraphExecUpdateResult pair_dependencies(struct pairing *pairing, size_t place) {
    const struct sg_exec_node *now = &pairing->part->nodes[place];
    struct sg_node *wanted = pairing->wanted[place];
    CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    for (size_t i = 0; i < now->from_count && !result; i++) {
        const struct sg_edge *edge = &wanted->from.list[i];
        if (memcmp(&edge->data, &now->edges[i], sizeof edge->data) != 0)
            return say(pairing, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, wanted, edge->node);
        result = pair(pairing, now->from[i], edge->node, wanted);
    }
    return result;
}

static const struct sg_node *first_end(const struct sg_graph *graph, size_t *ends) {
    const struct sg_node *first = NULL;
    *ends = 0;
    for (const struct sg_node *node = graph->first; node; node = node->next)
        if (node->to.count == 0 && ++*ends == 1)
            first = node;
    return first;
}

static CUgraphExecUpdateResult pair_ends(struct pairing *pairing) {
    size_t ends = 0, wanted_ends;
    for (size_t i = 0; i < pairing->part->count; i++)
        ends += !pairing->inner[i];
    const struct sg_node *first = first_end(pairing->graph, &wanted_ends);
    if (wanted_ends > ends)
        return say(pairing, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, first, NULL);
    struct sg_node *wanted = pairing->graph->first;
    CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    for (size_t i = 0; i < pairing->part->count && !result; i++) {
        if (pairing->inner[i])
            continue;
        while (wanted && wanted->to.count > 0)
            wanted = wanted->next;
        if (!wanted)
            break;
        result = pair(pairing, i, wanted, wanted);
        wanted = wanted->next;
    }
    return result;
}

static CUgraphExecUpdateResult pair_all(struct pairing *pairing) {
    CUgraphExecUpdateResult result = pair_ends(pairing);
    while (pairing->todo_count > 0 && !result)
        result = pair_dependencies(pairing, pairing->todo[--pairing->todo_count]);
    /* Fewer ends, or a cycle: not every node was reached. */
    for (struct sg_node *node = pairing->graph->first; node && !result; node = node->next)
        if (node->mark == pairing->unpaired)
            result = say(pairing, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node, NULL);
    return result;
}

/* ---- Changes -------------------------------------------------------------------------------- */

/* All new parameters are made before the first ones are replaced. */
struct sg_exec_change {
    struct sg_exec_node *node;
    struct sg_exec_node made; /* only what sg_exec_node_set sets, and the value */
};

static CUresult prepare(struct sg_exec_changes *changes, struct sg_exec_node *node,
                        const struct sg_node *wanted) {
    struct sg_exec_change *change = &changes->list[changes->count];
    *change = (struct sg_exec_change){.node = node};
    change->made.params.type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUresult result = sg_exec_node_set(&change->made, &wanted->params);
    if (result != CUDA_SUCCESS)
        return result;
    change->made.value = sg_condition_first_value(wanted);
    changes->count++;
    return CUDA_SUCCESS;
}

static struct sg_graph *inner_graph(const struct sg_node *node, unsigned number) {
    return node->child ? node->child : node->bodies[number];
}

/* Each node, and the parts inside it. */
static CUresult prepare_all(struct sg_exec_changes *changes, struct pairing *pairing) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < pairing->part->count && result == CUDA_SUCCESS; i++) {
        struct sg_exec_node *node = &pairing->part->nodes[i];
        struct sg_node *wanted = pairing->wanted[i];
        result = prepare(changes, node, wanted);
        for (unsigned k = 0; k < node->part_count && result == CUDA_SUCCESS; k++)
            result =
                sg_exec_compare(changes, node->parts[k], inner_graph(wanted, k), pairing->info);
    }
    return result;
}

static bool begin(struct pairing *pairing) {
    size_t count = pairing->part->count;
    pairing->wanted = calloc(count + 1, sizeof *pairing->wanted);
    pairing->todo = calloc(count + 1, sizeof *pairing->todo);
    pairing->inner = calloc(count + 1, sizeof *pairing->inner);
    if (!pairing->wanted || !pairing->todo || !pairing->inner)
        return false;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < pairing->part->nodes[i].from_count; k++)
            pairing->inner[pairing->part->nodes[i].from[k]] = true;
    pairing->unpaired = sg_graph_walks(count + 1);
    for (struct sg_node *node = pairing->graph->first; node; node = node->next)
        node->mark = pairing->unpaired;
    return true;
}

CUresult sg_exec_compare(struct sg_exec_changes *changes, struct sg_exec_part *part,
                         struct sg_graph *graph, CUgraphExecUpdateResultInfo *info) {
    struct pairing pairing = {.exec = changes->exec, .part = part, .graph = graph, .info = info};
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (part->count != graph->count) {
        say(&pairing, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL);
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    if (begin(&pairing))
        result = pair_all(&pairing) ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
                                    : prepare_all(changes, &pairing);
    if (result == CUDA_SUCCESS && !sg_exec_take_objects(changes, part, graph))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        say(&pairing, CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL);
    free(pairing.wanted);
    free(pairing.todo);
    free(pairing.inner);
    return result;
}

bool sg_exec_changes_begin(struct sg_exec_changes *changes, struct sg_exec *exec) {
    *changes = (struct sg_exec_changes){.exec = exec};
    changes->list = calloc(exec->node_count + 1, sizeof *changes->list);
    return changes->list != NULL;
}

void sg_exec_node_exchange(struct sg_exec_node *node, struct sg_exec_node *made) {
    struct sg_exec_node before = *node;
    node->params = made->params;
    node->context = made->context;
    node->event = made->event;
    node->value = made->value;
    made->params = before.params;
    made->context = before.context;
    made->event = before.event;
    made->value = before.value;
}

/* A second call restores everything. */
static void exchange(struct sg_exec_changes *changes) {
    for (size_t i = 0; i < changes->count; i++)
        sg_exec_node_exchange(changes->list[i].node, &changes->list[i].made);
}

CUresult sg_exec_changes_make(struct sg_exec_changes *changes) {
    exchange(changes);
    /* Contexts and conditions determine lanes and bodies. */
    CUresult result = sg_plan_make(changes->exec);
    if (result == CUDA_SUCCESS)
        sg_exec_exchange_objects(changes);
    else
        exchange(changes);
    return result;
}

void sg_exec_changes_end(struct sg_exec_changes *changes) {
    for (size_t i = 0; i < changes->count; i++)
        sg_exec_node_release(&changes->list[i].made);
    free(changes->list);
    sg_exec_drop_objects(changes);
}

/* ---- The calls ------------------------------------------------------------------------------ */

static CUresult update(struct sg_exec *exec, struct sg_graph *graph,
                       CUgraphExecUpdateResultInfo *info) {
    struct sg_exec_changes changes;
    if (!sg_exec_changes_begin(&changes, exec)) {
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = sg_exec_compare(&changes, exec->root, graph, info);
    if (result == CUDA_SUCCESS)
        result = sg_exec_changes_make(&changes);
    if (result != CUDA_SUCCESS && info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS)
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
    sg_exec_changes_end(&changes);
    return result;
}

/* The results are optional, and are success if there is nothing to compare, as on H200. */
CUresult sg_cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                                 CUgraphExecUpdateResultInfo *resultInfo) {
    struct sg_exec *exec = sg_exec_get(hGraphExec);
    struct sg_graph *graph = sg_graph_get(hGraph);
    CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_SUCCESS};
    const struct sg_context *context = sg_context_peek();
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (exec && graph && context && context->sticky != CUDA_SUCCESS)
        return context->sticky;
    if (exec && graph)
        result = update(exec, graph, &info);
    if (resultInfo)
        *resultInfo = info;
    return result;
}

/* As on H200, this version reports NOT_SUPPORTED, not TOPOLOGY_CHANGED, if no node is at fault. */
CUresult sg_cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                              CUgraphExecUpdateResult *updateResult_out) {
    CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_SUCCESS};
    CUresult result = sg_cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);
    bool blameless = info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED && !info.errorNode;
    if (updateResult_out)
        *updateResult_out = blameless ? CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED : info.result;
    if (hErrorNode_out)
        *hErrorNode_out = info.errorNode;
    return result;
}
