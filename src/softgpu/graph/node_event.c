/* Nodes that record an event, and nodes that wait for one. */
#include "softgpu/graph/dot.h"
#include "softgpu/graph/node_type.h"
#include "softgpu/stream/event.h"

#include <inttypes.h>

static CUresult check(const CUgraphNodeParams *params) {
    return sg_event_get(sg_params_event(params)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Both belong to one context. */
static CUgraphExecUpdateResult compare(const CUgraphNodeParams *now,
                                       const CUgraphNodeParams *wanted) {
    const struct sg_event *a = sg_event_get(sg_params_event(now));
    const struct sg_event *b = sg_event_get(sg_params_event(wanted));
    return sg_params_judged(b && (!a || a->context == b->context));
}

static void draw(const struct sg_picture *picture, const struct sg_node *node) {
    if (sg_picture_wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS))
        fprintf(picture->out, "|event: 0x%" PRIxPTR, (uintptr_t)sg_params_event(&node->params));
}

static void begin_wait(const struct sg_exec_node *node, struct sg_op *op) {
    sg_event_wait_begin(node->event, op);
}

static void begin_record(const struct sg_exec_node *node, struct sg_op *op) {
    sg_event_record_begin(node->event, op);
}

static void record_queued(const struct sg_exec_node *node, struct sg_stream *lane,
                          uint64_t number) {
    sg_event_record_queued(node->event, lane, number);
}

const struct sg_node_type sg_node_wait_event = {
    .name = "WAIT_EVENT",
    .runtime_name = "cudaGraphNodeTypeWaitEvent",
    .size = SG_NODE_SIZE(eventWait),
    .event = SG_NODE_OFFSET(eventWait.event),
    .may_block = true,
    .check = check,
    .compare = compare,
    .draw = draw,
    .begin = begin_wait,
    .waits = 1,
};

const struct sg_node_type sg_node_event_record = {
    .name = "EVENT_RECORD",
    .runtime_name = "cudaGraphNodeTypeEventRecord",
    .size = SG_NODE_SIZE(eventRecord),
    .event = SG_NODE_OFFSET(eventRecord.event),
    .check = check,
    .compare = compare,
    .draw = draw,
    .begin = begin_record,
    .queued = record_queued,
};
