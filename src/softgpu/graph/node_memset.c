/* Memset nodes: like memsets in streams, except that empty ones are refused. */
#include "softgpu/copy/copy.h"
#include "softgpu/graph/dot.h"
#include "softgpu/graph/node_type.h"

#include <inttypes.h>
#include <string.h>

static CUresult resolve(struct sg_graph *graph, CUgraphNodeParams *params) {
    (void)graph;
    return sg_params_resolve_optional(&params->memset.ctx);
}

static CUresult check(const CUgraphNodeParams *params) {
    const CUDA_MEMSET_NODE_PARAMS_v2 *set = &params->memset;
    if (!set->dst || !set->width || !set->height)
        return CUDA_ERROR_INVALID_VALUE;
    /* The product may wrap: H200 takes 2^62 words for an empty memset. */
    bool wraps = set->elementSize == 4 || set->elementSize == 2;
    if (wraps && set->width * set->elementSize == 0)
        return CUDA_SUCCESS;
    return sg_set_check(set, sg_graph_memory_is);
}

static CUresult check_captured(const CUgraphNodeParams *params) {
    return sg_set_check_shape(&params->memset);
}

static CUresult check_operands(const CUgraphNodeParams *params) {
    return sg_set_check(&params->memset, sg_graph_memory_is);
}

static CUresult check_update(const CUgraphNodeParams *params) {
    bool empty = params->memset.width == 0 || params->memset.height == 0;
    return empty ? CUDA_ERROR_INVALID_VALUE : check_operands(params);
}

/* Of a single row anything may change; of several, only the destination and the value. */
static CUgraphExecUpdateResult compare(const CUgraphNodeParams *now_params,
                                       const CUgraphNodeParams *wanted_params) {
    const CUDA_MEMSET_NODE_PARAMS_v2 *now = &now_params->memset, *wanted = &wanted_params->memset;
    bool allowed =
        (now->height > 1) == (wanted->height > 1) && sg_params_same_device(now->dst, wanted->dst);
    bool same_shape = now->width == wanted->width && now->height == wanted->height &&
                      now->pitch == wanted->pitch && now->elementSize == wanted->elementSize;
    return sg_params_judged(allowed && (now->height <= 1 || same_shape));
}

/* ---- Work ------------------------------------------------------------------------------------ */

/* A memset whose memory had been freed left CUDA_ERROR_LAUNCH_FAILED on H200 in a graph, but
 * CUDA_ERROR_ILLEGAL_ADDRESS in a stream. */
typedef CUresult (*runner)(struct sg_op *);

static unsigned char *own_runner(struct sg_op *op) {
    return &op->data.bytes[sizeof op->data.bytes - sizeof(runner)];
}

static CUresult run(struct sg_op *op) {
    runner run_set;
    memcpy(&run_set, own_runner(op), sizeof run_set);
    CUresult result = run_set(op);
    return result == CUDA_ERROR_ILLEGAL_ADDRESS ? CUDA_ERROR_LAUNCH_FAILED : result;
}

static CUresult make(struct sg_context *context, const struct sg_exec_node *node,
                     struct sg_op **op) {
    CUresult result = sg_set_make(context, &node->params.memset, op);
    if (result == CUDA_SUCCESS && (*op)->run) {
        runner run_set = (*op)->run;
        memcpy(own_runner(*op), &run_set, sizeof run_set); /* memsets leave its end unused */
        (*op)->run = run;
    }
    return result;
}

static void draw(const struct sg_picture *picture, const struct sg_node *node) {
    const CUDA_MEMSET_NODE_PARAMS_v2 *set = &node->params.memset;
    if (sg_picture_wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
        fprintf(
            picture->out, "|to: 0x%" PRIx64 "|pitch: %zu|value: 0x%x|element: %u|size: %zu, %zu",
            (uint64_t)set->dst, set->pitch, set->value, set->elementSize, set->width, set->height);
}

const struct sg_node_type sg_node_memset = {
    .name = "MEMSET",
    .runtime_name = "cudaGraphNodeTypeMemset",
    .size = SG_NODE_SIZE(memset),
    .context = SG_NODE_OFFSET(memset.ctx),
    .runs_in_context = true,
    .can_be_disabled = true,
    .launches_on_device = true,
    .flat = true,
    .resolve = resolve,
    .check = check,
    .check_captured = check_captured,
    .check_update = check_update,
    .compare = compare,
    .draw = draw,
    .check_operands = check_operands,
    .make = make,
};
