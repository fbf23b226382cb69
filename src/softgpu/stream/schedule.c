/* Which operation runs next, for threads that wait and threads that do not. */
#include "softgpu/stream/schedule.h"

static enum sg_schedule kind;
static uint64_t random_state;

void sg_schedule_set(enum sg_schedule schedule, uint64_t seed) {
    kind = schedule;
    random_state = seed;
}

enum sg_schedule sg_schedule_kind(void) {
    return kind;
}

/* splitmix64: one 64-bit state, any seed is good. */
uint64_t sg_schedule_draw(uint64_t limit) {
    random_state += 0x9e3779b97f4a7c15u;
    uint64_t z = random_state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % limit;
}

struct sg_op *sg_schedule_any(void) {
    struct sg_op *chosen = NULL;
    uint64_t seen = 0;
    for (struct sg_stream *s = sg_working; s; s = s->work_next)
        if (sg_head_state(s) == SG_HEAD_START && sg_schedule_draw(++seen) == 0)
            chosen = s->head;
    return chosen;
}

static int priority_of(const struct sg_op *op) {
    return op->has_priority ? op->priority : op->stream->priority;
}

bool sg_schedule_before(const struct sg_op *op, const struct sg_op *other) {
    if (op->turn || other->turn)
        return op->turn < other->turn;
    return priority_of(op) < priority_of(other);
}

struct sg_op *sg_schedule_turn(void) {
    struct sg_op *chosen = NULL;
    for (struct sg_stream *s = sg_working; s; s = s->work_next)
        if (sg_head_state(s) == SG_HEAD_START && (!chosen || sg_schedule_before(s->head, chosen)))
            chosen = s->head;
    return chosen;
}

void sg_schedule_chance(void) {
    if (kind != SG_SCHEDULE_RANDOM)
        return;
    /* On average fewer than are queued, so that queues grow and there is something to choose from.
     */
    if (sg_schedule_draw(4) != 0)
        return;
    for (uint64_t runs = sg_schedule_draw(4); runs > 0; runs--) {
        struct sg_op *op = sg_schedule_any();
        if (!op)
            return;
        sg_op_execute(op);
    }
}

/* ---- From a stream through its dependencies ------------------------------------------------- */

static uint64_t walks;

static void visit(struct sg_stream *stream, struct sg_stream **last) {
    if (stream->walk == walks)
        return;
    stream->walk = walks;
    stream->walk_next = NULL;
    (*last)->walk_next = stream;
    *last = stream;
}

/*
 * Breadth first, each stream once. It terminates because an operation waits only for operations
 * submitted before it. Priorities choose among operations that may start.
 */
void sg_walk_from(struct sg_stream *stream, struct sg_walk *walk) {
    *walk = (struct sg_walk){0};
    walks++;
    stream->walk = walks;
    stream->walk_next = NULL;
    struct sg_stream *last = stream;
    for (struct sg_stream *s = stream; s; s = s->walk_next) {
        struct sg_op *op = s->head;
        switch (sg_head_state(s)) {
        case SG_HEAD_START:
            if (!walk->start || sg_schedule_before(op, walk->start))
                walk->start = op;
            break;
        case SG_HEAD_HOST:
            walk->host = sg_host_turn(s);
            break;
        case SG_HEAD_POLL:
            walk->polls = true;
            break;
        case SG_HEAD_BLOCKED:
            for (unsigned i = 0; i < op->wait_count; i++)
                if (!sg_token_complete(op->waits[i]))
                    visit(op->waits[i].stream, &last);
            break;
        case SG_HEAD_NONE:
        case SG_HEAD_RUNNING:
            break;
        }
    }
}
