/*
 * From the parts of an exec to the steps of a launch, in lanes.
 *
 * First all nodes become vertices in topological order; the begin and end of an embedded graph are
 * vertices that only join others, as empty nodes are. Then joins are left out where their
 * dependencies can be handed on cheaply, and the remaining vertices are assigned to lanes.
 */
#include "softgpu/graph/exec.h"

#include "base/growing_array.h"
#include "softgpu/graph/node_type.h"
#include "softgpu/stream/schedule.h"

#include <stdlib.h>
#include <string.h>

#define NONE ((size_t)-1)

/* A dependency list that is handed on must remain short, or a chain of joins would copy a growing
 * list. */
#define HANDED_ON 16

/* Above this number, steps that could run in parallel share lanes: each look at the queues costs
 * time for every lane with work. Such a step also waits for whatever happens to precede it in its
 * lane, so a step that may wait for something outside gets a lane of its own. */
#define LANES          64
#define LANES_BLOCKING 1024

/* ---- Lists of numbers ----------------------------------------------------------------------- */

struct numbers {
    size_t *list;
    size_t count, room;
};

static bool push(struct numbers *numbers, size_t number) {
    if (!GM_RESERVE(numbers->list, numbers->room, numbers->count + 1))
        return false;
    numbers->list[numbers->count++] = number;
    return true;
}

/* ---- Vertices ------------------------------------------------------------------------------- */

struct vertex {
    struct sg_exec_node *node; /* NULL for a join */
    size_t first, count;       /* in deps */
    size_t outs;               /* how many vertices wait for it */
    size_t step;               /* or NONE if left out */
    size_t handed, handed_count;
    size_t seen; /* the vertex that last collected its dependencies */
};

struct layout {
    struct vertex *vertices;
    size_t count, room;
    struct numbers deps;   /* vertices */
    struct numbers handed; /* steps that a left-out vertex stands for */
};

static void layout_free(struct layout *layout) {
    free(layout->vertices);
    free(layout->deps.list);
    free(layout->handed.list);
}

/* Adds a vertex without dependencies; NONE when out of memory. */
static size_t add_vertex(struct layout *layout, struct sg_exec_node *node) {
    if (!GM_RESERVE(layout->vertices, layout->room, layout->count + 1))
        return NONE;
    layout->vertices[layout->count] =
        (struct vertex){.node = node, .first = layout->deps.count, .step = NONE, .seen = NONE};
    return layout->count++;
}

/* Adds a dependency to the vertex that was added last. */
static bool add_dependency(struct layout *layout, size_t on) {
    if (!push(&layout->deps, on))
        return false;
    layout->vertices[layout->count - 1].count++;
    layout->vertices[on].outs++;
    return true;
}

/* ---- One part in topological order ---------------------------------------------------------- */

struct order {
    size_t *sequence; /* indices of the part's nodes */
    size_t *vertex;   /* by index: the vertex that stands for the node's end */
    size_t *waiting;  /* by index: dependencies not yet passed */
    size_t *first;    /* by index: its dependents in targets; one extra entry at the end */
    size_t *targets;
};

static void order_free(struct order *order) {
    free(order->sequence);
    free(order->vertex);
    free(order->waiting);
    free(order->first);
    free(order->targets);
}

static bool order_room(struct order *order, const struct sg_exec_part *part) {
    size_t edges = 0;
    for (size_t i = 0; i < part->count; i++)
        edges += part->nodes[i].from_count;
    order->sequence = calloc(part->count + 1, sizeof *order->sequence);
    order->vertex = calloc(part->count + 1, sizeof *order->vertex);
    order->waiting = calloc(part->count + 1, sizeof *order->waiting);
    order->first = calloc(part->count + 2, sizeof *order->first);
    order->targets = calloc(edges + 1, sizeof *order->targets);
    return order->sequence && order->vertex && order->waiting && order->first && order->targets;
}

/* The dependents of each node: counted, summed up, filled in. */
static void find_targets(struct order *order, const struct sg_exec_part *part) {
    for (size_t i = 0; i < part->count; i++)
        for (size_t k = 0; k < part->nodes[i].from_count; k++)
            order->first[part->nodes[i].from[k] + 2]++;
    for (size_t i = 0; i < part->count; i++)
        order->first[i + 2] += order->first[i + 1];
    for (size_t i = 0; i < part->count; i++)
        for (size_t k = 0; k < part->nodes[i].from_count; k++)
            order->targets[order->first[part->nodes[i].from[k] + 1]++] = i;
}

/* False when out of memory, or for a cycle, which sg_exec_check has already ruled out. */
static bool order_make(struct order *order, const struct sg_exec_part *part) {
    if (!order_room(order, part))
        return false;
    find_targets(order, part);
    size_t known = 0;
    for (size_t i = 0; i < part->count; i++) {
        order->waiting[i] = part->nodes[i].from_count;
        if (order->waiting[i] == 0)
            order->sequence[known++] = i;
    }
    for (size_t next = 0; next < known; next++) {
        size_t place = order->sequence[next];
        for (size_t k = order->first[place]; k < order->first[place + 1]; k++)
            if (--order->waiting[order->targets[k]] == 0)
                order->sequence[known++] = order->targets[k];
    }
    return known == part->count;
}

/* ---- Laying out ----------------------------------------------------------------------------- */

static size_t lay_part(struct layout *layout, const struct sg_exec_part *part, size_t entry);

static bool depend(struct layout *layout, const struct sg_exec_node *node,
                   const struct order *order, size_t entry) {
    for (size_t k = 0; k < node->from_count; k++)
        if (!add_dependency(layout, order->vertex[node->from[k]]))
            return false;
    return node->from_count > 0 || entry == NONE || add_dependency(layout, entry);
}

/* The vertex that stands for the node's end. */
static size_t lay_node(struct layout *layout, struct sg_exec_node *node, const struct order *order,
                       size_t entry) {
    const struct sg_node_type *type = sg_type_of(&node->params);
    struct sg_exec_part *inner = NULL;
    bool joins = type->joins && type->joins(node, &inner);
    size_t vertex = add_vertex(layout, joins ? NULL : node);
    if (vertex == NONE || !depend(layout, node, order, entry))
        return NONE;
    return joins && inner ? lay_part(layout, inner, vertex) : vertex;
}

/* The join after all nodes that nothing in the part depends on. */
static size_t lay_end(struct layout *layout, const struct sg_exec_part *part,
                      const struct order *order, size_t entry) {
    size_t end = add_vertex(layout, NULL);
    bool room = end != NONE;
    for (size_t i = 0; i < part->count && room; i++)
        if (order->first[i] == order->first[i + 1])
            room = add_dependency(layout, order->vertex[i]);
    if (room && part->count == 0 && entry != NONE)
        room = add_dependency(layout, entry);
    return room ? end : NONE;
}

static size_t lay_part(struct layout *layout, const struct sg_exec_part *part, size_t entry) {
    struct order order = {0};
    size_t end = 0;
    bool made = order_make(&order, part);
    for (size_t i = 0; made && i < part->count; i++) {
        size_t place = order.sequence[i];
        order.vertex[place] = lay_node(layout, &part->nodes[place], &order, entry);
        made = order.vertex[place] != NONE;
    }
    if (made && entry != NONE)
        end = lay_end(layout, part, &order, entry);
    order_free(&order);
    return made ? end : NONE;
}

/* ---- Leaving out joins ---------------------------------------------------------------------- */

/* Appends the steps that a vertex waits for to layout->handed. */
static bool collect(struct layout *layout, size_t number) {
    struct vertex *vertex = &layout->vertices[number];
    vertex->handed = layout->handed.count;
    for (size_t i = 0; i < vertex->count; i++) {
        const struct vertex *on = &layout->vertices[layout->deps.list[vertex->first + i]];
        size_t many = on->step == NONE ? on->handed_count : 1;
        for (size_t k = 0; k < many; k++) {
            size_t wanted = on->step == NONE ? layout->handed.list[on->handed + k]
                                             : layout->deps.list[vertex->first + i];
            if (layout->vertices[wanted].seen == number)
                continue;
            layout->vertices[wanted].seen = number;
            if (!push(&layout->handed, wanted))
                return false;
        }
    }
    vertex->handed_count = layout->handed.count - vertex->handed;
    return true;
}

static bool is_left_out(const struct vertex *vertex) {
    size_t ins = vertex->handed_count, outs = vertex->outs;
    if (vertex->node)
        return false;
    return ins <= 1 || outs == 0 || (ins <= HANDED_ON && ins * outs <= ins + outs);
}

/* ---- Lanes ---------------------------------------------------------------------------------- */

static bool may_block(const struct sg_exec_node *node) {
    return node && sg_type_of(&node->params)->may_block;
}

/* A step without a context runs in any lane. */
static bool fits(const struct sg_lane *lane, const struct sg_exec_node *node) {
    return !node || !node->context || lane->stream->context == node->context;
}

static bool add_lane(struct sg_exec *exec, struct sg_plan *plan, const struct sg_exec_node *node,
                     unsigned *lane) {
    if (!GM_RESERVE(plan->lanes, plan->lane_room, (size_t)plan->lane_count + 1))
        return false;
    struct sg_context *context = node && node->context ? node->context : exec->context;
    struct sg_stream *stream = sg_stream_new(context, CU_STREAM_NON_BLOCKING, SG_PRIORITY_LEAST);
    if (!stream)
        return false;
    *lane = plan->lane_count++;
    plan->lanes[*lane] = (struct sg_lane){.stream = stream, .last = NONE};
    return true;
}

/* Shares an existing lane, in turn. */
static bool share_lane(const struct sg_plan *plan, const struct sg_exec_node *node,
                       unsigned *lane) {
    for (unsigned i = 0; i < plan->lane_count; i++) {
        unsigned at = (unsigned)((plan->count + i) % plan->lane_count);
        if (!plan->lanes[at].blocks && fits(&plan->lanes[at], node)) {
            *lane = at;
            return true;
        }
    }
    return false;
}

static bool choose_lane(struct sg_exec *exec, struct sg_plan *plan, const struct layout *layout,
                        const struct vertex *vertex, unsigned *lane) {
    for (size_t i = 0; i < vertex->handed_count; i++) {
        size_t step = layout->vertices[layout->handed.list[vertex->handed + i]].step;
        *lane = plan->steps[step].lane;
        if (*lane < plan->lane_count && plan->lanes[*lane].last == step &&
            fits(&plan->lanes[*lane], vertex->node))
            return true;
    }
    unsigned most = may_block(vertex->node) ? LANES_BLOCKING : LANES;
    if (plan->lane_count >= most && share_lane(plan, vertex->node, lane))
        return true;
    return add_lane(exec, plan, vertex->node, lane);
}

static bool add_wait(struct sg_plan *plan, size_t step) {
    struct numbers waits = {plan->waits, plan->wait_count, plan->wait_room};
    bool added = push(&waits, step);
    plan->waits = waits.list;
    plan->wait_count = waits.count;
    plan->wait_room = waits.room;
    return added;
}

static bool add_step(struct sg_exec *exec, struct sg_plan *plan, const struct layout *layout,
                     struct vertex *vertex) {
    struct sg_step step = {.node = vertex->node, .first_wait = plan->wait_count};
    if (!choose_lane(exec, plan, layout, vertex, &step.lane))
        return false;
    struct sg_lane *lane = &plan->lanes[step.lane];
    for (size_t i = 0; i < vertex->handed_count; i++) {
        size_t on = layout->vertices[layout->handed.list[vertex->handed + i]].step;
        if (plan->steps[on].lane != step.lane && !add_wait(plan, on))
            return false;
    }
    step.wait_count = plan->wait_count - step.first_wait;
    step.gated = lane->last == NONE && step.wait_count == 0;
    lane->last = plan->count;
    lane->blocks |= may_block(vertex->node);
    vertex->step = plan->count;
    plan->steps[plan->count++] = step;
    return true;
}

/* ---- The plan ------------------------------------------------------------------------------- */

static bool make_steps(struct sg_exec *exec, struct sg_plan *plan, struct layout *layout) {
    plan->steps = calloc(layout->count + 1, sizeof *plan->steps);
    if (!plan->steps)
        return false;
    for (size_t i = 0; i < layout->count; i++) {
        struct vertex *vertex = &layout->vertices[i];
        if (!collect(layout, i))
            return false;
        if (!is_left_out(vertex) && !add_step(exec, plan, layout, vertex))
            return false;
    }
    return true;
}

CUresult sg_plan_make(struct sg_exec *exec) {
    struct layout layout = {0};
    struct sg_plan plan = {0};
    bool made = lay_part(&layout, exec->root, NONE) != NONE && make_steps(exec, &plan, &layout);
    layout_free(&layout);
    if (!made) {
        sg_plan_free(&plan);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg_plan_free(&exec->plan);
    exec->plan = plan;
    return CUDA_SUCCESS;
}

void sg_plan_free(struct sg_plan *plan) {
    for (unsigned i = 0; i < plan->lane_count; i++)
        sg_stream_unref(plan->lanes[i].stream);
    free(plan->lanes);
    free(plan->steps);
    free(plan->waits);
    *plan = (struct sg_plan){0};
}
