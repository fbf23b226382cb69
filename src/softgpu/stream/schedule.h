/*
 * Internal to stream/: which operation may start, how it runs, and which threads are notified.
 *
 * Everything needs the lock; sg_op_execute and the waits release it while bytes move.
 */
#ifndef SG_STREAM_SCHEDULE_H
#define SG_STREAM_SCHEDULE_H

#include "softgpu/stream/stream.h"

/* What prevents the head of a stream from starting. */
enum sg_head {
    SG_HEAD_NONE,    /* the stream is idle */
    SG_HEAD_START,   /* nothing: it may start here and now */
    SG_HEAD_HOST,    /* only a worker may run it, in its turn (sg_host_turn) */
    SG_HEAD_RUNNING, /* a thread is running it, or the host function whose turn it is */
    SG_HEAD_BLOCKED, /* other streams */
    SG_HEAD_POLL,    /* a value in memory */
};
enum sg_head sg_head_state(struct sg_stream *stream);
bool sg_context_poisoned(const struct sg_context *context);
/* Of each device: operations up to this serial are not run any more. */
extern uint64_t sg_dropped[SG_MAX_DEVICES];
/* The host function whose turn it is among the streams of this stream's context; NULL if none. */
struct sg_op *sg_host_turn(const struct sg_stream *stream);

/* Streams that have work, in the order in which they received it. */
extern struct sg_stream *sg_working;
/* Count submissions and completions, to detect changes since the last look. */
extern uint64_t sg_submissions, sg_completions;
/* Number of threads asleep in sg_progress_wait. */
extern unsigned sg_waiters;

/* Runs the head of its stream: it must be startable, or a host function in its turn on a worker. */
void sg_op_execute(struct sg_op *op);
/* Links an operation that has all its tokens, and completes operations that need no thread. */
void sg_stream_enqueue(struct sg_stream *stream, struct sg_op *op);
/* Adds the tokens required by the default-stream rules. */
bool sg_default_stream_waits(struct sg_stream *stream, struct sg_op *op);

/* The result of a search from a stream through its dependencies. */
struct sg_walk {
    struct sg_op *start; /* may start now; NULL if none */
    struct sg_op *host;  /* a host function in its turn that needs only a worker */
    bool polls;          /* something waits for a value in memory */
};
void sg_walk_from(struct sg_stream *stream, struct sg_walk *walk);
/* Completes the markers that `stream` waits for, as far as possible without moving bytes. */
void sg_stream_settle(struct sg_stream *stream);
/* The same for all streams of a context. */
void sg_context_settle(const struct sg_context *context);
/* Called by queries after settling, because a thread that polls does not wait. From the second
 * query on, little work is done here, with the lock released meanwhile, and a worker is woken for
 * the rest. */
void sg_stream_queried(struct sg_stream *stream);

/* Waits until operation `number` is complete, or exit has begun. */
void sg_stream_wait_number(struct sg_stream *stream, uint64_t number);
/* Sleeps until something completes, or for `nanoseconds` (0: no limit). */
void sg_progress_wait(uint64_t nanoseconds);
void sg_progress_announce(void);

/* Some worker must look at the queues: at once, or after a while (when a waiter is likely to be
 * there first). */
void sg_workers_now(void);
void sg_workers_later(void);

enum sg_schedule sg_schedule_kind(void);
/* A number below `limit` (> 0), derived from the seed. */
uint64_t sg_schedule_draw(uint64_t limit);
/* A randomly drawn startable operation of any stream; NULL if there is none. */
struct sg_op *sg_schedule_any(void);
/* Whether of two startable operations the first goes before the second: by priority, which counts
 * until a kernel begins; those that have begun and run in slices take turns, because they may wait
 * for each other. */
bool sg_schedule_before(const struct sg_op *op, const struct sg_op *other);
/* The startable operation of any stream whose turn it is; NULL if there is none. */
struct sg_op *sg_schedule_turn(void);

/* How long a check of a memory value may be put off, when it has been waited for since `since`. */
uint64_t sg_poll_interval(uint64_t since);

/* The nearest valid priority. */
int sg_stream_priority(int priority);
/* A stream object with one reference, not in any list. NULL when out of memory. */
struct sg_stream *sg_stream_new(struct sg_context *context, unsigned flags, int priority);
/* Removes it from its context's list, if it is in one. */
void sg_stream_unlist(struct sg_stream *stream);
/* Lists it among the created streams of its context; the list takes over the reference. */
void sg_stream_list(struct sg_stream *stream);
/* Ends a listed stream; what is queued still runs. */
void sg_stream_destroy(struct sg_stream *stream);
/* Makes a stream wait for what cuCtxWaitEvent required of its context: at once, or for a new stream
 * with its first operation. */
CUresult sg_stream_heed_barrier(struct sg_stream *stream);
void sg_stream_heed_barrier_later(struct sg_stream *stream);
/* True when nothing is queued; for the legacy stream, also in any blocking stream. */
bool sg_stream_idle(struct sg_stream *stream);

/* A hidden stream of a context, made on first use; NULL when out of memory. */
struct sg_stream *sg_stream_hidden(struct sg_context *context, struct sg_stream **slot);
/* Adds the tokens of all of a context's streams. False when out of memory. */
bool sg_op_wait_for_all(struct sg_op *op, struct sg_context *context);
/* What all of a context's streams, its parts' left out, get from now on comes after that moment. */
CUresult sg_context_wait_for(struct sg_context *context, struct sg_token token);

/* The error for a handle that is not a stream. */
CUresult sg_stream_lost(CUstream handle);

/* Ends a context's events: their handles become invalid. */
void sg_events_context_end(struct sg_context *context);

#endif
