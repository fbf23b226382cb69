/*
 * Conditional nodes that are decided while a graph runs: one operation, whose body's operations are
 * made once and never queued. The bodies, with those of conditional nodes in them, are a list of
 * items with jumps: operations in order, and places where the value of a handle chooses what comes
 * next. After each slice of a kernel others have a turn.
 */
#include "softgpu/graph/exec.h"

#include "base/growing_array.h"
#include "softgpu/graph/node_type.h"

#include <stdlib.h>

/* ns between two looks at a loop's condition that nothing has had a chance to change */
#define PAUSE 1000000u

enum kind { WORK, CHOICE, JUMP };

struct item {
    enum kind kind;
    struct sg_op *op; /* of WORK: one, or several linked through `next` */
    const struct sg_node_type *type;
    CUgraphConditionalNodeType choice;
    uint64_t handle;
    unsigned bodies;
    size_t first; /* of CHOICE: its targets in the flow's; of JUMP: where to */
};

struct flow {
    struct item *items;
    size_t count, room;
    size_t *targets; /* of a choice: where each body begins, and where the node ends */
    size_t target_count, target_room;
    struct sg_conditions *conditions;
    size_t at;          /* the item that is next */
    struct sg_op *work; /* the operation in it; NULL: its first */
    bool ran;           /* it has had a turn just now */
    bool moved;         /* a kernel has run since a loop looked at its condition */
    uint64_t due;       /* no turn before */
};

static struct flow *flow_of(const struct sg_op *op) {
    return (struct flow *)(uintptr_t)op->data.words[0];
}

static void free_flow(struct flow *flow) {
    for (size_t i = 0; i < flow->count; i++)
        if (flow->items[i].kind == WORK)
            sg_work_discard(flow->items[i].type, flow->items[i].op);
    sg_conditions_unref(flow->conditions);
    free(flow->items);
    free(flow->targets);
    free(flow);
}

/* ---- Making --------------------------------------------------------------------------------- */

static CUresult add_part(struct flow *flow, struct sg_context *context,
                         const struct sg_exec_part *part);

static struct item *add_item(struct flow *flow, enum kind kind) {
    if (!GM_RESERVE(flow->items, flow->room, flow->count + 1))
        return NULL;
    struct item *item = &flow->items[flow->count];
    *item = (struct item){.kind = kind};
    return item;
}

static CUresult add_work(struct flow *flow, struct sg_context *context,
                         const struct sg_exec_node *node) {
    struct item *item = add_item(flow, WORK);
    if (!item)
        return CUDA_ERROR_OUT_OF_MEMORY;
    item->type = sg_type_of(&node->params);
    CUresult result = sg_work_make(context, node, &item->op);
    flow->count += result == CUDA_SUCCESS;
    return result;
}

static CUresult add_jump(struct flow *flow, size_t to) {
    struct item *item = add_item(flow, JUMP);
    if (!item)
        return CUDA_ERROR_OUT_OF_MEMORY;
    item->first = to;
    flow->count++;
    return CUDA_SUCCESS;
}

/* The choice, then each body with a jump behind it: to the node's end, or back to the choice. */
static CUresult add_choice(struct flow *flow, struct sg_context *context,
                           const struct sg_exec_node *node) {
    size_t choice = flow->count, first = flow->target_count, bodies = node->part_count;
    struct item *item = add_item(flow, CHOICE);
    if (!item || !GM_RESERVE(flow->targets, flow->target_room, first + bodies + 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    item->choice = node->params.conditional.type;
    item->handle = node->params.conditional.handle;
    item->bodies = node->part_count;
    item->first = first;
    flow->count++;
    flow->target_count += bodies + 1;
    size_t last = SIZE_MAX; /* the jumps to the end, linked by where they go until it is known */
    for (unsigned i = 0; i < node->part_count; i++) {
        flow->targets[first + i] = flow->count;
        CUresult result = add_part(flow, context, node->parts[i]);
        bool loops = node->params.conditional.type == CU_GRAPH_COND_TYPE_WHILE;
        if (result == CUDA_SUCCESS)
            result = add_jump(flow, loops ? choice : last);
        if (result != CUDA_SUCCESS)
            return result;
        last = loops ? last : flow->count - 1;
    }
    flow->targets[first + bodies] = flow->count;
    while (last != SIZE_MAX) {
        size_t before = flow->items[last].first;
        flow->items[last].first = flow->count;
        last = before;
    }
    return CUDA_SUCCESS;
}

static CUresult add_node(struct flow *flow, struct sg_context *context,
                         const struct sg_exec_node *node) {
    const struct sg_node_type *type = sg_type_of(&node->params);
    struct sg_exec_part *inner = NULL;
    if (!node->enabled)
        return CUDA_SUCCESS;
    if (node->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        return add_choice(flow, context, node);
    if (type->joins && type->joins(node, &inner))
        return inner ? add_part(flow, context, inner) : CUDA_SUCCESS;
    return add_work(flow, context, node);
}

/* Adds nodes whose dependencies have all been added, until all are in. */
static CUresult add_in_order(struct flow *flow, struct sg_context *context,
                             const struct sg_exec_part *part, bool *in) {
    CUresult result = CUDA_SUCCESS;
    for (bool moved = true; moved && result == CUDA_SUCCESS;) {
        moved = false;
        for (size_t i = 0; i < part->count && result == CUDA_SUCCESS; i++) {
            const struct sg_exec_node *node = &part->nodes[i];
            bool ready = !in[i];
            for (size_t k = 0; k < node->from_count; k++)
                ready = ready && in[node->from[k]];
            if (!ready)
                continue;
            in[i] = moved = true;
            result = add_node(flow, context, node);
        }
    }
    return result;
}

static CUresult add_part(struct flow *flow, struct sg_context *context,
                         const struct sg_exec_part *part) {
    bool *in = calloc(part->count + 1, sizeof *in);
    if (!in)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = add_in_order(flow, context, part, in);
    free(in);
    return result;
}

/* ---- Running -------------------------------------------------------------------------------- */

static size_t chosen(const struct flow *flow, const struct item *item) {
    unsigned value = sg_conditions_value(flow->conditions, item->handle);
    const size_t *targets = &flow->targets[item->first], end = targets[item->bodies];
    switch (item->choice) {
    case CU_GRAPH_COND_TYPE_IF:
        return value ? targets[0] : item->bodies > 1 ? targets[1] : end;
    case CU_GRAPH_COND_TYPE_SWITCH:
        return value < item->bodies ? targets[value] : end;
    default:
        return value ? targets[0] : end;
    }
}

/* A loop that came back to its condition, true as before, without a kernel in between: nothing ends
 * it but its context. It waits a little. */
static bool rests(struct flow *flow, const struct item *item, size_t next, bool back) {
    if (item->choice != CU_GRAPH_COND_TYPE_WHILE || next == flow->targets[item->first + 1])
        return false;
    bool rests = back && !flow->moved;
    if (rests)
        flow->due = sg_now() + PAUSE;
    flow->moved = false;
    return rests;
}

/* On to the next operation, or the end, or a condition that is to be looked at later. */
static void settle(struct flow *flow) {
    bool back = false;
    flow->work = NULL;
    while (flow->at < flow->count && flow->items[flow->at].kind != WORK) {
        const struct item *item = &flow->items[flow->at];
        size_t next = item->kind == JUMP ? item->first : chosen(flow, item);
        if (item->kind == CHOICE && rests(flow, item, next, back))
            return;
        back = item->kind == JUMP && next < flow->at;
        flow->at = next;
    }
    if (flow->at < flow->count)
        flow->work = flow->items[flow->at].op;
}

static bool is_due(struct sg_op *op) {
    const struct flow *flow = flow_of(op);
    if (!op->stream->context->alive)
        return true;
    return sg_now() >= flow->due &&
           (!flow->work || !flow->work->ready || flow->work->ready(flow->work));
}

static CUresult run_flow(struct sg_op *op) {
    struct flow *flow = flow_of(op);
    bool looked = flow->work != NULL; /* it is ready, then */
    op->spins = false;
    if (!looked)
        settle(flow);
    struct sg_op *work = flow->work;
    flow->ran = work && (looked || !work->ready);
    if (!flow->ran)
        return CUDA_SUCCESS;
    work->stream = op->stream;
    work->serial = op->serial;
    work->number = op->number;
    CUresult result = work->run ? work->run(work) : CUDA_SUCCESS;
    op->spins = work->spins;
    return result;
}

/* After a turn of the operation: whether it wants another one; else the one behind it is next. */
static void step(struct flow *flow) {
    const struct item *item = &flow->items[flow->at];
    struct sg_op *work = flow->work;
    if (work->again) {
        if (work->again(work))
            return;
        flow->moved = true;
        if (item->type->rewind)
            item->type->rewind(work);
    }
    flow->work = work->next;
    if (flow->work)
        return;
    flow->at++;
    settle(flow);
}

static bool goes_on(struct sg_op *op) {
    struct flow *flow = flow_of(op);
    if (flow->ran)
        step(flow);
    return flow->at < flow->count && op->stream->context->alive && !atomic_load(&sg_exiting);
}

static void finish_flow(struct sg_op *op) {
    free_flow(flow_of(op));
}

CUresult sg_flow_make(struct sg_context *context, const struct sg_exec_node *node,
                      struct sg_op **out) {
    struct flow *flow = calloc(1, sizeof *flow);
    struct sg_op *op = sg_op_new(run_flow);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (flow && op) {
        flow->conditions = sg_conditions_ref(sg_launch_conditions);
        result = add_choice(flow, context, node);
    }
    if (result != CUDA_SUCCESS) {
        if (flow)
            free_flow(flow);
        if (op)
            sg_op_free(op);
        return result;
    }
    op->ready = is_due;
    op->again = goes_on;
    op->finish = finish_flow;
    op->data.words[0] = (uintptr_t)flow;
    *out = op;
    return CUDA_SUCCESS;
}

void sg_flow_discard(struct sg_op *op) {
    free_flow(flow_of(op));
    sg_op_free(op);
}
