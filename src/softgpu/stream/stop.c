/* The end of queued work where no context is poisoned for good. */
#include "softgpu/stream/schedule.h"

uint64_t sg_dropped[SG_MAX_DEVICES];

/*
 * The operations up to this serial, of a device; -1: of all. What still runs after a turn does not
 * belong to them until the drop: a kernel may wait for what nobody writes, and a loop may have no
 * end.
 */
struct part {
    int device;
    uint64_t last;
    bool dropped;
};

static bool is_meant(const struct part *part, const struct sg_stream *stream) {
    const struct sg_op *op = stream->head;
    return (part->device < 0 || stream->context->device == part->device) &&
           op->serial <= part->last && (part->dropped || op->turn == 0);
}

static struct sg_op *next_of(const struct part *part) {
    for (struct sg_stream *s = sg_working; s; s = s->work_next)
        if (is_meant(part, s) && sg_head_state(s) == SG_HEAD_START)
            return s->head;
    return NULL;
}

/* One that a thread is in, other than a host function. */
static bool is_under_way(const struct part *part) {
    for (const struct sg_stream *s = sg_working; s; s = s->work_next)
        if (is_meant(part, s) && s->head->running && !s->head->host_function)
            return true;
    return false;
}

/* Runs what can, and waits for what runs, until there is neither. */
static void run_out(const struct part *part) {
    while (!atomic_load(&sg_exiting)) {
        struct sg_op *op = next_of(part);
        if (op)
            sg_op_execute(op);
        else if (is_under_way(part))
            sg_progress_wait(0);
        else
            return;
    }
}

void sg_streams_stop(int device) {
    struct part part = {.device = device, .last = sg_submissions};
    run_out(&part);
    for (int i = 0; i < SG_MAX_DEVICES; i++)
        if (device < 0 || i == device)
            sg_dropped[i] = part.last;
    part.dropped = true;
    run_out(&part);
}
