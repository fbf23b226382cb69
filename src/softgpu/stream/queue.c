/* Putting operations into streams, running them, and completing them. */
#include "softgpu/checkpoint/gate.h"
#include "softgpu/stream/schedule.h"

struct sg_stream *sg_working;
uint64_t sg_submissions, sg_completions;
void (*sg_before_host_function)(struct sg_context *context);

_Thread_local const struct sg_op *sg_op_running;

static struct sg_stream *working_last;
static unsigned moving; /* operations that move bytes right now */

bool sg_context_poisoned(const struct sg_context *context) {
    return context->sticky != CUDA_SUCCESS;
}

/* Not to be run any more. */
static bool is_dropped(const struct sg_op *op) {
    const struct sg_context *context = op->stream->context;
    return sg_context_poisoned(context) || op->serial <= sg_dropped[context->device];
}

static bool is_legacy(const struct sg_stream *stream) {
    return stream->context->legacy == stream;
}

static bool is_blocking(const struct sg_stream *stream) {
    return !(stream->flags & CU_STREAM_NON_BLOCKING);
}

/* ---- The list of streams with work ---------------------------------------------------------- */

static void start_working(struct sg_stream *stream) {
    sg_stream_ref(stream);
    sg_gate_add(&sg_control->working, 1);
    stream->work_previous = working_last;
    stream->work_next = NULL;
    if (working_last)
        working_last->work_next = stream;
    else
        sg_working = stream;
    working_last = stream;
    if (is_blocking(stream) && !is_legacy(stream))
        stream->context->legacy->busy_blocking++;
}

static void stop_working(struct sg_stream *stream) {
    if (stream->work_previous)
        stream->work_previous->work_next = stream->work_next;
    else
        sg_working = stream->work_next;
    if (stream->work_next)
        stream->work_next->work_previous = stream->work_previous;
    else
        working_last = stream->work_previous;
    if (is_blocking(stream) && !is_legacy(stream))
        stream->context->legacy->busy_blocking--;
    if (stream->destroyed)
        sg_stream_unlist(stream);
    sg_stream_unref(stream);
    sg_gate_add(&sg_control->working, (uint32_t)-1);
    if (!sg_gate_open())
        sg_gate_changed();
}

/* ---- The turns of host functions ------------------------------------------------------------ */

static struct sg_op **calls_of(const struct sg_stream *stream) {
    return &sg_context_owner(stream->context)->calls;
}

struct sg_op *sg_host_turn(const struct sg_stream *stream) {
    return *calls_of(stream);
}

static void line_up(struct sg_op *op) {
    struct sg_op **link = calls_of(op->stream);
    while (*link)
        link = &(*link)->next_call;
    *link = op;
    op->lined_up = true;
}

/* Usually it is the first; in a poisoned context they finish in any order. */
static void leave_line(struct sg_op *op) {
    struct sg_op **link = calls_of(op->stream);
    while (*link != op)
        link = &(*link)->next_call;
    *link = op->next_call;
    op->lined_up = false;
}

static enum sg_head host_state(struct sg_op *op) {
    if (!op->lined_up)
        line_up(op);
    return sg_host_turn(op->stream)->running ? SG_HEAD_RUNNING : SG_HEAD_HOST;
}

/* ---- The head of a stream ------------------------------------------------------------------- */

/* Drops complete tokens from the end; the last of those that remain is incomplete. */
static bool waits_complete(struct sg_op *op) {
    while (op->wait_count > 0 && sg_token_complete(op->waits[op->wait_count - 1]))
        sg_token_release(&op->waits[--op->wait_count]);
    return op->wait_count == 0;
}

enum sg_head sg_head_state(struct sg_stream *stream) {
    struct sg_op *op = stream->head;
    if (!op)
        return SG_HEAD_NONE;
    if (op->running)
        return SG_HEAD_RUNNING;
    /* A poisoned context waits for nothing: what is left must drain. */
    if (is_dropped(op))
        return SG_HEAD_START;
    if (!waits_complete(op))
        return SG_HEAD_BLOCKED;
    if (op->ready && !op->ready(op))
        return SG_HEAD_POLL;
    if (op->host_function)
        return host_state(op);
    /* A chosen order runs one operation at a time. */
    bool turn = !op->run || moving == 0 || sg_schedule_kind() == SG_SCHEDULE_EAGER;
    return turn ? SG_HEAD_START : SG_HEAD_RUNNING;
}

/* Takes the finished head off its stream. */
static void complete_head(struct sg_stream *stream) {
    struct sg_op *op = stream->head;
    if (op->lined_up)
        leave_line(op);
    stream->head = op->next;
    if (!stream->head)
        stream->tail = NULL;
    if (op->finish)
        op->finish(op);
    stream->completed = op->number;
    sg_completions++;
    sg_op_free(op);
}

/* Completes operations at the head of the stream that move no bytes. A host function after them is
 * lined up now, not at the next look. */
static void drain_markers(struct sg_stream *stream) {
    while (stream->head && !stream->head->run && sg_head_state(stream) == SG_HEAD_START)
        complete_head(stream);
    if (stream->head && stream->head->host_function)
        sg_head_state(stream);
}

static void after_completion(struct sg_stream *stream) {
    drain_markers(stream);
    if (!stream->head)
        stop_working(stream);
    sg_progress_announce();
}

/* Host functions are not work on memory: they may block, and unmapping waits for running work. */
static void run(struct sg_op *op) {
    struct sg_context *context = op->stream->context;
    bool moves = !op->host_function;
    if (moves)
        sg_work_begin(&op->work);
    moving += moves;
    sg_unlock();
    if (!moves && sg_before_host_function)
        sg_before_host_function(context);
    sg_op_running = op;
    CUresult result = op->run(op);
    sg_op_running = NULL;
    sg_lock();
    moving -= moves;
    if (moves)
        sg_work_end(&op->work);
    if (result != CUDA_SUCCESS) {
        sg_coredump_work(op->stream->id, op->number);
        sg_context_fault(context, result);
        sg_coredump_work(0, 0);
    }
}

void sg_op_execute(struct sg_op *op) {
    struct sg_stream *stream = op->stream;
    op->running = true;
    if (op->run && !is_dropped(op))
        run(op);
    if (op->again && !is_dropped(op) && op->again(op)) {
        static uint64_t turns;
        op->running = false;
        op->turn = ++turns;
        sg_progress_announce(); /* wakes threads that slept because it was running */
        return;
    }
    complete_head(stream);
    after_completion(stream);
}

static void complete_marker(struct sg_stream *stream) {
    complete_head(stream);
    after_completion(stream);
}

/* The stream may already be destroyed and be freed with its last operation. */
void sg_stream_settle(struct sg_stream *stream) {
    sg_stream_ref(stream);
    for (;;) {
        struct sg_walk walk;
        sg_walk_from(stream, &walk);
        if (!walk.start || walk.start->run)
            break;
        complete_marker(walk.start->stream);
    }
    sg_stream_unref(stream);
}

static struct sg_stream *markers_of(const struct sg_context *context) {
    for (struct sg_stream *s = sg_working; s; s = s->work_next)
        if (s->context == context && !s->head->run && sg_head_state(s) == SG_HEAD_START)
            return s;
    return NULL;
}

void sg_context_settle(const struct sg_context *context) {
    struct sg_stream *stream;
    while ((stream = markers_of(context)))
        complete_marker(stream);
}

void sg_stream_queried(struct sg_stream *stream) {
    if (sg_schedule_kind() != SG_SCHEDULE_EAGER)
        return;
    struct sg_walk walk;
    sg_walk_from(stream, &walk);
    struct sg_op *op = walk.start;
    if (!op || op->wanted)
        return;
    /* The first query may be followed by a wait. */
    bool again = op->asked;
    op->asked = true;
    if (again && op->little) {
        sg_op_execute(op);
    } else if (again) {
        op->wanted = true;
        sg_workers_now();
    }
}

/* ---- Submission ----------------------------------------------------------------------------- */

static bool wait_for_blocking(struct sg_op *op, struct sg_stream *list) {
    for (struct sg_stream *s = list; s; s = s->next) {
        bool pending = is_blocking(s) && s->submitted > s->completed;
        if (pending && s->submitted > s->seen_by_legacy &&
            !sg_op_wait_for(op, (struct sg_token){s, s->submitted}))
            return false;
    }
    return true;
}

static void mark_seen_by_legacy(struct sg_stream *list) {
    for (struct sg_stream *s = list; s; s = s->next)
        if (is_blocking(s))
            s->seen_by_legacy = s->submitted;
}

/* A new stream is idle until it is used, whatever its context waits for, as on H200. */
static bool heed_barrier(struct sg_stream *stream, struct sg_op *op) {
    if (stream->first_after == 0)
        return true;
    struct sg_token barrier = {stream->context->legacy->barriers, stream->first_after};
    if (!sg_op_wait_for(op, barrier))
        return false;
    stream->first_after = 0;
    return true;
}

/* Work in the legacy stream waits for the work in all blocking streams; work in a blocking stream
 * waits for the legacy stream's. What an earlier operation waits for need not be repeated. */
bool sg_default_stream_waits(struct sg_stream *stream, struct sg_op *op) {
    struct sg_context *context = stream->context;
    struct sg_stream *legacy = context->legacy;
    if (!heed_barrier(stream, op))
        return false;
    if (stream == legacy) {
        if (legacy->busy_blocking == 0)
            return true;
        if (!wait_for_blocking(op, context->streams) || !wait_for_blocking(op, context->per_thread))
            return false;
        mark_seen_by_legacy(context->streams);
        mark_seen_by_legacy(context->per_thread);
        return true;
    }
    if (!is_blocking(stream) || legacy->completed == legacy->submitted ||
        stream->seen_of_legacy == legacy->submitted)
        return true;
    if (!sg_op_wait_for(op, (struct sg_token){legacy, legacy->submitted}))
        return false;
    stream->seen_of_legacy = legacy->submitted;
    return true;
}

void sg_stream_enqueue(struct sg_stream *stream, struct sg_op *op) {
    op->stream = stream;
    op->number = ++stream->submitted;
    op->serial = ++sg_submissions;
    op->next = NULL;
    if (sg_stream_watch)
        sg_stream_watch->queued(op);
    if (stream->tail) {
        stream->tail->next = op;
        stream->tail = op;
        return;
    }
    stream->head = stream->tail = op;
    start_working(stream);
    drain_markers(stream);
    if (!stream->head)
        stop_working(stream);
}

bool sg_stream_may_run_now(struct sg_stream *stream) {
    const struct sg_stream *legacy = stream->context->legacy;
    if (sg_schedule_kind() != SG_SCHEDULE_EAGER || stream->head)
        return false;
    if (stream == legacy)
        return stream->busy_blocking == 0;
    return !is_blocking(stream) || !legacy->head;
}

CUresult sg_stream_submit(struct sg_stream *stream, struct sg_op *op) {
    if (!sg_default_stream_waits(stream, op)) {
        sg_op_free(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    bool host_function = op->host_function;
    sg_stream_enqueue(stream, op);
    if (!stream->head)
        return CUDA_SUCCESS;
    if (host_function && stream->head->next == NULL && sg_schedule_kind() == SG_SCHEDULE_EAGER)
        sg_workers_now();
    else
        sg_workers_later();
    return CUDA_SUCCESS;
}
