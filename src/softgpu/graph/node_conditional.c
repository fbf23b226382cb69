/* Conditional nodes: IF, WHILE, SWITCH. */
#include "softgpu/core/config.h"
#include "softgpu/graph/dot.h"
#include "softgpu/graph/node_type.h"
#include "softgpu/graph/nodes.h"

#include <inttypes.h>

static CUresult check(const CUgraphNodeParams *params) {
    const CUDA_CONDITIONAL_NODE_PARAMS *conditional = &params->conditional;
    unsigned most = conditional->type == CU_GRAPH_COND_TYPE_IF      ? 2
                    : conditional->type == CU_GRAPH_COND_TYPE_WHILE ? 1
                                                                    : UINT32_MAX;
    bool known = conditional->type <= CU_GRAPH_COND_TYPE_SWITCH && conditional->size > 0;
    return known && conditional->size <= most ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Its handle is checked last. */
static CUresult resolve(struct sg_graph *graph, CUgraphNodeParams *params) {
    CUDA_CONDITIONAL_NODE_PARAMS *conditional = &params->conditional;
    CUresult result = check(params);
    if (result == CUDA_SUCCESS)
        result = conditional->ctx ? sg_params_resolve_context(&conditional->ctx)
                                  : CUDA_ERROR_INVALID_CONTEXT;
    if (result != CUDA_SUCCESS)
        return result;
    return sg_condition_get(graph, conditional->handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUgraphExecUpdateResult compare(const CUgraphNodeParams *now,
                                       const CUgraphNodeParams *wanted) {
    return sg_params_judged(now->conditional.type == wanted->conditional.type &&
                            now->conditional.size == wanted->conditional.size);
}

static void hand_out_bodies(CUgraphNodeParams *to, const CUgraphNodeParams *from) {
    to->conditional.phGraph_out = from->conditional.phGraph_out;
}

/* ---- Execs ----------------------------------------------------------------------------------- */

/* Where no kernel runs, a condition keeps the value with which a launch begins. */
static bool loops(const struct sg_exec_node *node) {
    return node->params.conditional.type == CU_GRAPH_COND_TYPE_WHILE && node->value != 0;
}

/* The part that runs with the node's value then, or NULL; not for loops. */
static struct sg_exec_part *chosen(const struct sg_exec_node *node) {
    switch (node->params.conditional.type) {
    case CU_GRAPH_COND_TYPE_IF:
        if (node->value)
            return node->parts[0];
        return node->part_count > 1 ? node->parts[1] : NULL;
    case CU_GRAPH_COND_TYPE_SWITCH:
        return node->value < node->part_count ? node->parts[node->value] : NULL;
    default:
        return NULL;
    }
}

static bool joins(const struct sg_exec_node *node, struct sg_exec_part **inner) {
    if (sg_config()->kernels)
        return false;
    *inner = chosen(node);
    return !loops(node);
}

static void draw(const struct sg_picture *picture, const struct sg_node *node) {
    static const char *const types[] = {"if", "while", "switch"};
    const CUDA_CONDITIONAL_NODE_PARAMS *conditional = &node->params.conditional;
    if (sg_picture_wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS))
        fprintf(picture->out, "|%s|handle: 0x%" PRIx64 "|bodies: %u", types[conditional->type],
                (uint64_t)conditional->handle, conditional->size);
}

const struct sg_node_type sg_node_conditional = {
    .name = "CONDITIONAL",
    .runtime_name = "cudaGraphNodeTypeConditional",
    .size = SG_NODE_SIZE(conditional),
    .context = SG_NODE_OFFSET(conditional.ctx),
    .runs_in_context = true,
    .unique = true,
    .fixed = true,
    .may_block = true,
    .resolve = resolve,
    .check = check,
    .compare = compare,
    .draw = draw,
    .furnish = sg_node_make_bodies,
    .hand_out = hand_out_bodies,
    .joins = joins,
    .make = sg_flow_make,
    .discard = sg_flow_discard,
};
