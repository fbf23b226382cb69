/* Nodes that signal external semaphores, and nodes that wait for them. */
#include "softgpu/external/external.h"
#include "softgpu/graph/dot.h"
#include "softgpu/graph/node_type.h"

#include <stdlib.h>

/* Whether the handles are semaphores is not checked before they are used. */
static CUresult check(const CUexternalSemaphore *list, const void *params, unsigned count) {
    return count && (!list || !params) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* Two arrays: semaphores, and what to do with each. */
static CUresult copy(CUexternalSemaphore **list, const void **params, size_t size, unsigned count) {
    void *copied_list, *copied_params;
    if (!sg_params_copy_array(&copied_list, *list, count, sizeof **list))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!sg_params_copy_array(&copied_params, *params, count, size)) {
        free(copied_list);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *list = copied_list;
    *params = copied_params;
    return CUDA_SUCCESS;
}

/* ---- Signals --------------------------------------------------------------------------------- */

static CUresult check_signal(const CUgraphNodeParams *params) {
    const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2 *signal = &params->extSemSignal;
    return check(signal->extSemArray, signal->paramsArray, signal->numExtSems);
}

static CUresult deepen_signal(CUgraphNodeParams *to, const CUgraphNodeParams *from) {
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2 *signal = &to->extSemSignal;
    const void *params = from->extSemSignal.paramsArray;
    CUresult result =
        copy(&signal->extSemArray, &params, sizeof *signal->paramsArray, signal->numExtSems);
    signal->paramsArray = params;
    return result;
}

static void free_signal(CUgraphNodeParams *params) {
    free(params->extSemSignal.extSemArray);
    free((void *)(uintptr_t)params->extSemSignal.paramsArray);
}

static CUgraphExecUpdateResult compare_signals(const CUgraphNodeParams *now,
                                               const CUgraphNodeParams *wanted) {
    return sg_params_judged(now->extSemSignal.numExtSems == wanted->extSemSignal.numExtSems);
}

static CUresult make_signal(struct sg_context *context, const struct sg_exec_node *node,
                            struct sg_op **op) {
    return sg_semaphore_signal_make(context, &node->params.extSemSignal, op);
}

static void draw_signal(const struct sg_picture *picture, const struct sg_node *node) {
    sg_picture_count(picture, CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_SIGNAL_NODE_PARAMS, "semaphores",
                     node->params.extSemSignal.numExtSems);
}

const struct sg_node_type sg_node_semaphores_signal = {
    .name = "EXT_SEMAS_SIGNAL",
    .runtime_name = "cudaGraphNodeTypeExtSemaphoreSignal",
    .size = SG_NODE_SIZE(extSemSignal),
    .check = check_signal,
    .deepen = deepen_signal,
    .free = free_signal,
    .compare = compare_signals,
    .draw = draw_signal,
    .make = make_signal,
    .discard = sg_semaphore_discard,
};

/* ---- Waits ----------------------------------------------------------------------------------- */

static CUresult check_wait(const CUgraphNodeParams *params) {
    const CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2 *wait = &params->extSemWait;
    return check(wait->extSemArray, wait->paramsArray, wait->numExtSems);
}

static CUresult deepen_wait(CUgraphNodeParams *to, const CUgraphNodeParams *from) {
    CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2 *wait = &to->extSemWait;
    const void *params = from->extSemWait.paramsArray;
    CUresult result =
        copy(&wait->extSemArray, &params, sizeof *wait->paramsArray, wait->numExtSems);
    wait->paramsArray = params;
    return result;
}

static void free_wait(CUgraphNodeParams *params) {
    free(params->extSemWait.extSemArray);
    free((void *)(uintptr_t)params->extSemWait.paramsArray);
}

static CUgraphExecUpdateResult compare_waits(const CUgraphNodeParams *now,
                                             const CUgraphNodeParams *wanted) {
    return sg_params_judged(now->extSemWait.numExtSems == wanted->extSemWait.numExtSems);
}

static CUresult make_wait(struct sg_context *context, const struct sg_exec_node *node,
                          struct sg_op **op) {
    return sg_semaphore_wait_make(context, &node->params.extSemWait, op);
}

static void draw_wait(const struct sg_picture *picture, const struct sg_node *node) {
    sg_picture_count(picture, CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_WAIT_NODE_PARAMS, "semaphores",
                     node->params.extSemWait.numExtSems);
}

const struct sg_node_type sg_node_semaphores_wait = {
    .name = "EXT_SEMAS_WAIT",
    .runtime_name = "cudaGraphNodeTypeExtSemaphoreWait",
    .size = SG_NODE_SIZE(extSemWait),
    .may_block = true,
    .check = check_wait,
    .deepen = deepen_wait,
    .free = free_wait,
    .compare = compare_waits,
    .draw = draw_wait,
    .make = make_wait,
    .discard = sg_semaphore_discard,
};
