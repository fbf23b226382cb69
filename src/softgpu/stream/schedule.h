/*
 * Inside of stream/: which operation may start, running it, and who is told of it.
 *
 * Everything wants the lock; sg_op_execute and the waits release it while bytes move.
 */
#ifndef SG_STREAM_SCHEDULE_H
#define SG_STREAM_SCHEDULE_H

#include "softgpu/stream/stream.h"

/* What keeps the head of a stream from starting. */
enum sg_head {
    SG_HEAD_NONE,    /* the stream is idle */
    SG_HEAD_START,   /* nothing: it may start here and now */
    SG_HEAD_HOST,    /* only a worker may run it, when it is its turn (sg_host_turn) */
    SG_HEAD_RUNNING, /* some thread is at it, or at the host function whose turn it is */
    SG_HEAD_BLOCKED, /* other streams */
    SG_HEAD_POLL,    /* a value in memory */
};
enum sg_head sg_head_state(struct sg_stream *stream);
bool sg_context_poisoned(const struct sg_context *context);
/* The host function whose turn it is among those of the stream's context; NULL when there is none.
 */
struct sg_op *sg_host_turn(const struct sg_stream *stream);

/* Streams that have work, in the order in which they got it. */
extern struct sg_stream *sg_working;
/* Counts submissions, and completions: what changed since a look. */
extern uint64_t sg_submissions, sg_completions;
/* Threads that sleep in sg_progress_wait. */
extern unsigned sg_waiters;

/* Runs the head of its stream: it must be startable, or a host function in its turn on a worker. */
void sg_op_execute(struct sg_op *op);
/* Links an operation whose tokens are all there, and completes what needs nobody. */
void sg_stream_enqueue(struct sg_stream *stream, struct sg_op *op);
/* Adds the tokens that the default-stream rules ask for. */
bool sg_default_stream_waits(struct sg_stream *stream, struct sg_op *op);

/* What a search from a stream through its dependencies found. */
struct sg_walk {
    struct sg_op *start; /* may start now; NULL when there is none */
    struct sg_op *host;  /* a host function that only wants a worker, in its turn */
    bool polls;          /* something waits for a value in memory */
};
void sg_walk_from(struct sg_stream *stream, struct sg_walk *walk);
/* Completes the markers that `stream` waits for, as far as that goes without moving bytes. */
void sg_stream_settle(struct sg_stream *stream);
/* The same for all streams of a context. */
void sg_context_settle(const struct sg_context *context);
/* After settling, for queries: whoever asks again and again does not wait. So the second question
 * has little work done here and now, with the lock released meanwhile, and a worker woken for the
 * rest. */
void sg_stream_queried(struct sg_stream *stream);

/* Waits until operation `number` is complete, or exit has begun. */
void sg_stream_wait_number(struct sg_stream *stream, uint64_t number);
/* Sleeps until something completes, or for `nanoseconds` (0: no limit). */
void sg_progress_wait(uint64_t nanoseconds);
void sg_progress_announce(void);

/* Some worker must look at the queues: now, or in a while (when a waiter is likely to come first).
 */
void sg_workers_now(void);
void sg_workers_later(void);

enum sg_schedule sg_schedule_kind(void);
/* A number below `limit` (> 0) from the seed. */
uint64_t sg_schedule_draw(uint64_t limit);
/* Any startable operation of any stream, drawn by chance; NULL when there is none. */
struct sg_op *sg_schedule_any(void);

/* How long a look at a memory value may wait, when it was waited for since `since`. */
uint64_t sg_poll_interval(uint64_t since);

/* The nearest priority that there is. */
int sg_stream_priority(int priority);
/* A stream object: one reference, listed nowhere. NULL when out of memory. */
struct sg_stream *sg_stream_new(struct sg_context *context, unsigned flags, int priority);
/* Takes it out of its context's list, when it is in one. */
void sg_stream_unlist(struct sg_stream *stream);
/* Lists it among the created streams of its context; the list takes over the reference. */
void sg_stream_list(struct sg_stream *stream);
/* Ends a listed stream; what is queued still runs. */
void sg_stream_destroy(struct sg_stream *stream);
/* Makes a stream wait for what cuCtxWaitEvent asked of its context: now, and for a new stream with
 * the first operation that it gets. */
CUresult sg_stream_heed_barrier(struct sg_stream *stream);
void sg_stream_heed_barrier_later(struct sg_stream *stream);
/* True when nothing is queued; for the legacy stream also in all blocking streams. */
bool sg_stream_idle(struct sg_stream *stream);

/* A hidden stream of a context, made when first asked for; NULL when out of memory. */
struct sg_stream *sg_stream_hidden(struct sg_context *context, struct sg_stream **slot);
/* Adds the tokens of all of a context's streams. False when out of memory. */
bool sg_op_wait_for_all(struct sg_op *op, struct sg_context *context);

/* What a handle that is no stream answers. */
CUresult sg_stream_lost(CUstream handle);

/* Ends a context's events: their handles answer nothing any more. */
void sg_events_context_end(struct sg_context *context);

#endif
