/*
 * Launching: all operations are made first, which may fail, and then queued, which cannot. The lock
 * is held throughout, so the operations' numbers are known in advance.
 */
#include "softgpu/graph/exec.h"

#include "softgpu/graph/node_type.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/schedule.h"

#include <stdlib.h>
#include <string.h>

/* The operations made for one step, in order. */
struct made {
    struct sg_op *first;
    uint64_t number; /* of the last of them */
};

struct launch {
    struct sg_exec *exec;
    struct sg_stream *stream;
    struct sg_op *gate, *end;
    struct sg_graph_memory_uses *memory;
    struct made *steps;
    uint64_t *numbers; /* of the last operation in each lane so far */
    bool host;         /* a host function is among them */
    bool node_priorities;
};

/* ---- Making --------------------------------------------------------------------------------- */

static struct sg_context *context_of(const struct sg_plan *plan, const struct sg_step *step) {
    return plan->lanes[step->lane].stream->context;
}

static CUresult make_marker(struct sg_op **op, unsigned waits) {
    *op = sg_op_new(NULL);
    if (!*op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (sg_op_reserve_waits(*op, waits))
        return CUDA_SUCCESS;
    sg_op_free(*op);
    *op = NULL;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Makes a node's operation; NULL when queueing will give an empty operation its effect. */
static CUresult make_work(const struct sg_plan *plan, const struct sg_step *step,
                          struct sg_op **op) {
    const struct sg_exec_node *node = step->node;
    *op = NULL;
    if (!node || !node->enabled || sg_type_of(&node->params)->begin)
        return CUDA_SUCCESS;
    return sg_work_make(context_of(plan, step), node, op);
}

/* CUDA_GRAPHS_USE_NODE_PRIORITY decides instead of the flag, where it is set. */
static bool uses_node_priorities(const struct sg_exec *exec) {
    const char *set = secure_getenv("CUDA_GRAPHS_USE_NODE_PRIORITY");
    return set ? strcmp(set, "0") != 0
               : (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0;
}

static void take_priority(const struct sg_exec_node *node, struct sg_op *op) {
    if (!node || !node->attribute_set || !node->attribute_set[CU_LAUNCH_ATTRIBUTE_PRIORITY])
        return;
    op->has_priority = true;
    op->priority = sg_stream_priority(node->attributes[CU_LAUNCH_ATTRIBUTE_PRIORITY].priority);
}

static bool add_waits(struct launch *launch, const struct sg_step *step, struct sg_op *op) {
    const struct sg_plan *plan = &launch->exec->plan;
    if (step->gated) {
        struct sg_token gate = {launch->stream, launch->stream->submitted + 1};
        return sg_op_wait_for(op, gate);
    }
    for (size_t i = 0; i < step->wait_count; i++) {
        size_t on = plan->waits[step->first_wait + i];
        struct sg_token token = {plan->lanes[plan->steps[on].lane].stream,
                                 launch->steps[on].number};
        if (!sg_op_wait_for(op, token))
            return false;
    }
    return true;
}

static bool reserve_waits(const struct sg_step *step, struct sg_op *op) {
    unsigned waits = step->node ? sg_type_of(&step->node->params)->waits : 0;
    return waits == 0 || sg_op_reserve_waits(op, waits);
}

static CUresult make_step(struct launch *launch, size_t number) {
    const struct sg_plan *plan = &launch->exec->plan;
    const struct sg_step *step = &plan->steps[number];
    struct made *made = &launch->steps[number];
    CUresult result = make_work(plan, step, &made->first);
    if (result == CUDA_SUCCESS && !made->first)
        result = make_marker(&made->first, 0);
    if (result != CUDA_SUCCESS)
        return result;
    if (launch->node_priorities)
        take_priority(step->node, made->first);
    for (struct sg_op *op = made->first; op; op = op->next) {
        launch->numbers[step->lane]++;
        launch->host |= op->host_function;
    }
    made->number = launch->numbers[step->lane];
    bool room = add_waits(launch, step, made->first) && reserve_waits(step, made->first);
    return room ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void discard(struct launch *launch, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct sg_step *step = &launch->exec->plan.steps[i];
        struct sg_op *op = launch->steps[i].first;
        if (!op)
            continue;
        if (!op->run && !op->ready && !op->finish && !op->next)
            sg_op_free(op);
        else
            sg_work_discard(sg_type_of(&step->node->params), op);
    }
    if (launch->gate)
        sg_op_free(launch->gate);
    if (launch->end)
        sg_op_free(launch->end);
}

/* The end waits for all lanes. */
static CUresult make_end(struct launch *launch) {
    const struct sg_plan *plan = &launch->exec->plan;
    CUresult result = make_marker(&launch->end, plan->lane_count);
    for (unsigned i = 0; i < plan->lane_count && result == CUDA_SUCCESS; i++) {
        struct sg_token lane = {plan->lanes[i].stream, launch->numbers[i]};
        if (!sg_op_wait_for(launch->end, lane))
            result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

/* The gate waits for the previous launch; it takes the waits of the default-stream rules last,
 * because those then count as done. */
static CUresult make_gate(struct launch *launch) {
    CUresult result = make_marker(&launch->gate, 0);
    if (result == CUDA_SUCCESS && !sg_op_wait_for(launch->gate, launch->exec->last))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS && !sg_default_stream_waits(launch->stream, launch->gate))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    return result;
}

static CUresult make(struct launch *launch) {
    const struct sg_plan *plan = &launch->exec->plan;
    launch->steps = calloc(plan->count + 1, sizeof *launch->steps);
    launch->numbers = calloc(plan->lane_count + 1, sizeof *launch->numbers);
    CUresult result = launch->steps && launch->numbers ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < plan->lane_count && result == CUDA_SUCCESS; i++)
        launch->numbers[i] = plan->lanes[i].stream->submitted;
    for (size_t i = 0; i < plan->count && result == CUDA_SUCCESS; i++)
        result = make_step(launch, i);
    if (result == CUDA_SUCCESS)
        result = make_end(launch);
    if (result == CUDA_SUCCESS)
        result = make_gate(launch);
    if (result != CUDA_SUCCESS && launch->steps)
        discard(launch, plan->count);
    return result;
}

/* ---- Queueing ------------------------------------------------------------------------------- */

static void finish_end(struct sg_op *op) {
    struct sg_exec *exec = (struct sg_exec *)(uintptr_t)op->data.words[0];
    sg_graph_memory_end((struct sg_graph_memory_uses *)(uintptr_t)op->data.words[1]);
    sg_launch_age_unref((struct sg_launch_age *)(uintptr_t)op->data.words[2]);
    sg_exec_unref(exec);
}

static void queue_step(const struct launch *launch, size_t number) {
    const struct sg_step *step = &launch->exec->plan.steps[number];
    struct sg_stream *lane = launch->exec->plan.lanes[step->lane].stream;
    const struct sg_exec_node *node = step->node;
    const struct sg_node_type *type = node ? sg_type_of(&node->params) : NULL;
    struct sg_op *op = launch->steps[number].first;
    if (type && type->begin)
        type->begin(node, op);
    while (op) {
        struct sg_op *next = op->next;
        sg_stream_enqueue(lane, op);
        op = next;
    }
    if (type && type->queued)
        type->queued(node, lane, launch->steps[number].number);
}

/* Ends in `exec->last`. */
static void queue(struct launch *launch) {
    struct sg_exec *exec = launch->exec;
    sg_exec_ref(exec);
    launch->end->finish = finish_end;
    launch->end->data.words[0] = (uintptr_t)exec;
    launch->end->data.words[1] = (uintptr_t)launch->memory;
    sg_launch_age_ref(exec->age);
    launch->end->data.words[2] = (uintptr_t)exec->age;
    sg_stream_ref(launch->stream);
    sg_stream_enqueue(launch->stream, launch->gate);
    for (unsigned i = 0; i < exec->plan.lane_count; i++)
        exec->plan.lanes[i].stream->priority = launch->stream->priority;
    for (size_t i = 0; i < exec->plan.count; i++)
        queue_step(launch, i);
    sg_stream_enqueue(launch->stream, launch->end);
    sg_token_release(&exec->last);
    exec->last = sg_stream_token(launch->stream);
    if (launch->stream->head && launch->host && sg_schedule_kind() == SG_SCHEDULE_EAGER)
        sg_workers_now();
    else if (launch->stream->head)
        sg_workers_later();
    sg_stream_unref(launch->stream);
}

/* ---- Conditions ------------------------------------------------------------------------------ */

struct sg_conditions *sg_launch_conditions;

static void count_handle(struct sg_exec_node *node, void *user) {
    uint64_t *most = user, handle = node->params.conditional.handle;
    if (node->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && handle > *most)
        *most = handle;
}

static void set_first(struct sg_exec_node *node, void *user) {
    if (node->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        sg_conditions_set(user, node->params.conditional.handle, node->value);
}

/* Of this launch: its kernels and conditional nodes share them. */
static CUresult begin_conditions(struct sg_exec *exec) {
    uint64_t most = 0;
    sg_exec_part_each(exec->root, count_handle, &most);
    if (most == 0)
        return CUDA_SUCCESS;
    sg_launch_conditions = sg_conditions_new((size_t)most);
    if (!sg_launch_conditions)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sg_exec_part_each(exec->root, set_first, sg_launch_conditions);
    return CUDA_SUCCESS;
}

static void end_conditions(void) {
    sg_conditions_unref(sg_launch_conditions);
    sg_launch_conditions = NULL;
}

/* ---- Checks --------------------------------------------------------------------------------- */

static CUresult check_node(const struct sg_exec_node *node) {
    const struct sg_node_type *type = sg_type_of(&node->params);
    CUresult result = type->may_launch && node->enabled ? type->may_launch() : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return result;
    if (node->context && !node->context->alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return CUDA_SUCCESS;
}

static CUresult check(const struct sg_exec *exec) {
    CUresult result = exec->context->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    for (size_t i = 0; i < exec->plan.count && result == CUDA_SUCCESS; i++)
        if (exec->plan.steps[i].node)
            result = check_node(exec->plan.steps[i].node);
    return result;
}

CUresult sg_exec_launch(struct sg_exec *exec, struct sg_stream *stream) {
    struct launch launch = {
        .exec = exec, .stream = stream, .node_priorities = uses_node_priorities(exec)};
    bool automatic = exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    CUresult result = check(exec);
    if (result == CUDA_SUCCESS)
        result = sg_graph_memory_begin(exec, automatic, &launch.memory);
    if (result != CUDA_SUCCESS)
        return result;
    result = begin_conditions(exec);
    if (result == CUDA_SUCCESS)
        result = make(&launch);
    end_conditions();
    if (result == CUDA_SUCCESS) {
        sg_graph_memory_commit(launch.memory);
        queue(&launch);
    } else {
        sg_graph_memory_end(launch.memory);
    }
    free(launch.steps);
    free(launch.numbers);
    return result;
}

/* Uploads and launches of an exec follow one another. */
CUresult sg_exec_upload(struct sg_exec *exec, struct sg_stream *stream) {
    struct sg_op *op;
    CUresult result = make_marker(&op, 1);
    if (result != CUDA_SUCCESS)
        return result;
    sg_op_wait_for(op, exec->last);
    result = sg_graph_memory_upload(exec);
    if (result != CUDA_SUCCESS) {
        sg_op_free(op);
        return result;
    }
    result = sg_stream_submit(stream, op);
    if (result != CUDA_SUCCESS)
        return result;
    sg_token_release(&exec->last);
    exec->last = sg_stream_token(stream);
    return CUDA_SUCCESS;
}
