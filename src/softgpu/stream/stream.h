/*
 * Streams: queues of operations, and the threads that run them.
 *
 * A stream is a FIFO of operations numbered from 1. Operation n is complete when stream->completed
 * >= n. A token (stream, n) names that moment and is what other operations wait for: events, the
 * legacy stream's ordering and stream-ordered frees are all tokens. An operation may start when it
 * is at the head of its queue, its tokens are complete and its poll (if any) says ready.
 *
 * A waiting thread helps by running operations itself, because a hand-off between threads costs 10
 * to 100 us on a small machine; worker threads run operations that no thread waits for. Host
 * functions run only on a worker, never on a waiter, and those of one context run one at a time, as
 * on H200: one that waits for another stream's host function waits for ever.
 */
#ifndef SG_STREAM_STREAM_H
#define SG_STREAM_STREAM_H

#include "softgpu/address/memory.h"
#include "softgpu/context/context.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/config.h"

/* Smaller numbers have priority; the range is the one that H200 reports. */
#define SG_PRIORITY_LEAST    0
#define SG_PRIORITY_GREATEST (-5)

struct sg_stream;
struct sg_capture;

/* A point in a stream's work. A token with stream NULL is complete. Holds a reference: a caller
 * that gets a token from a function below releases it. */
struct sg_token {
    struct sg_stream *stream;
    uint64_t number;
};

/* Nodes that the next captured node depends on, with the edges' data; see stream/capture.h. */
struct sg_dependencies {
    CUgraphNode *nodes;
    CUgraphEdgeData *data;
    size_t count, room;
};

struct sg_op {
    struct sg_op *next;
    struct sg_stream *stream;
    uint64_t number;
    struct sg_op *next_call; /* the host function whose turn is next */
    struct sg_token *waits;  /* owned; NULL when none, own_waits while they fit */
    unsigned wait_count, wait_room;
    struct sg_token own_waits[2];
    uint64_t serial;    /* order of submission over all streams */
    bool host_function; /* only workers run it, in its context's turn */
    bool lined_up;      /* among the calls of its context */
    bool little;        /* faster to do than to hand to another thread */
    bool asked;         /* a query found it waiting */
    bool wanted;        /* a worker should take it without delay */
    bool running;
    bool spins;        /* it ran, and only waits for what others write; set by `run` */
    uint64_t turn;     /* when it last ran, of operations with `again`; 0: not yet */
    bool has_priority; /* of its own, instead of its stream's */
    int priority;
    struct sg_work work;
    /* Called without the lock: moves bytes. An error poisons the context. NULL for pure markers,
     * which complete as soon as they are at the head of their queue and may start, on whichever
     * thread notices. */
    CUresult (*run)(struct sg_op *op);
    /* Called with the lock: is the awaited memory value there? NULL when it need not poll. */
    bool (*ready)(struct sg_op *op);
    /* Called with the lock, after run: true keeps the operation in place, to run again as soon as
     * `ready` says so. Not called in a poisoned context. NULL to run once. */
    bool (*again)(struct sg_op *op);
    /* Called with the lock, after run and before waiters are woken: frees what the operation owns.
     * Called exactly once for each submitted operation, even when the context is poisoned (then run
     * is not called). stream/ frees the op itself. May be NULL. */
    void (*finish)(struct sg_op *op);
    union {
        uint64_t words[16];
        max_align_t align;
        unsigned char bytes[128];
    } data; /* the chapter's parameters */
};

struct sg_stream {
    uint64_t handle; /* 0 for the default streams */
    uint64_t id;
    unsigned refs;
    struct sg_context *context; /* referenced */
    unsigned flags;             /* CU_STREAM_NON_BLOCKING */
    int priority;
    bool destroyed;
    uint64_t submitted; /* number of the last operation */
    uint64_t completed;
    struct sg_op *head, *tail;
    const void *thread;                          /* owner of a per-thread default stream */
    struct sg_stream *next;                      /* in its list in the context */
    struct sg_stream *thread_next;               /* in the list of its owning thread */
    struct sg_stream *work_next, *work_previous; /* streams with work, in order of activation */
    struct sg_stream *walk_next;                 /* the scheduler's, valid during one walk */
    uint64_t walk;
    bool listed; /* in a list of the context: created streams remain there until drained */

    struct sg_capture *capture;          /* NULL when it is not capturing (stream/capture.h) */
    struct sg_dependencies dependencies; /* while it captures */
    struct sg_stream *capture_next;      /* among the streams of its capture */
    unsigned capturing_blocking;         /* in the legacy stream: blocking streams that capture */

    /* Default-stream rules. The `seen` fields are what the other side has already waited for. */
    unsigned busy_blocking;  /* in the legacy stream: blocking streams with work */
    uint64_t seen_by_legacy; /* of this stream, by the legacy stream */
    uint64_t seen_of_legacy; /* of the legacy stream, by this one */
    uint64_t first_after;    /* in `barriers`, awaited by its first operation; or 0 */
    /* In the legacy stream: hidden streams in which cuCtxRecordEvent joins all others, and in which
     * cuCtxWaitEvent's waits queue on behalf of all others. NULL until needed. */
    struct sg_stream *gather, *barriers;
    struct sg_followed *followed; /* what it has waited for (follow.c), owned; NULL for nothing */

    struct sg_stream_attributes {
        CUaccessPolicyWindow window;
        CUsynchronizationPolicy policy;
        CUlaunchMemSyncDomainMap domain_map;
        CUlaunchMemSyncDomain domain;
    } attributes;
};

/* The attributes of a stream for which none have been set. */
void sg_stream_attributes_begin(struct sg_stream_attributes *attributes);

/*
 * A stream argument: 0 (legacy, or per-thread in a twin call), CU_STREAM_LEGACY,
 * CU_STREAM_PER_THREAD or a handle. INVALID_CONTEXT without a current context where one is needed,
 * INVALID_HANDLE or CONTEXT_IS_DESTROYED as recorded. The legacy stream while a blocking stream of
 * its context captures: STREAM_CAPTURE_IMPLICIT, and those captures are invalidated.
 */
CUresult sg_stream_from_handle(CUstream handle, struct sg_stream **stream);
/* The same, for calls that are allowed on a capturing stream unless its capture is invalid:
 * STREAM_CAPTURE_INVALIDATED. */
CUresult sg_stream_find_valid(CUstream handle, struct sg_stream **stream);
/* The same, for calls that only query a stream: captures do not matter. */
CUresult sg_stream_find(CUstream handle, struct sg_stream **stream);
void sg_stream_ref(struct sg_stream *stream);
void sg_stream_unref(struct sg_stream *stream);

/* Allocates an operation (zeroed) or NULL. */
struct sg_op *sg_op_new(CUresult (*run)(struct sg_op *));
/* Adds a token to wait for, taking a reference of its own. False when out of memory. */
bool sg_op_wait_for(struct sg_op *op, struct sg_token token);
/* Makes room for `count` more tokens, so that adding them cannot fail. False when out of memory. */
bool sg_op_reserve_waits(struct sg_op *op, unsigned count);
/* For an operation that will not be submitted. */
void sg_op_free(struct sg_op *op);
/*
 * Queues the operation, adding the tokens required by the default-stream rules: work in the legacy
 * stream waits for all blocking streams of the context, work in a blocking stream for the legacy
 * stream's last operation. Fails only with OUT_OF_MEMORY, and then frees the op (finish is not
 * called).
 */
CUresult sg_stream_submit(struct sg_stream *stream, struct sg_op *op);

/*
 * Stops a device, or with -1 all, as a fault does, but contexts stay usable: what is queued and can
 * run has run when this returns, and the rest, which waits for something or takes long, is dropped.
 * Host functions that run are not waited for.
 */
void sg_streams_stop(int device);

/* Told, with the lock, of what the API orders; NULL: nobody. Then also complete tokens are kept, so
 * that `waits` of an operation has all that it comes after, except by the default-stream rules. */
struct sg_stream_watch {
    void (*queued)(const struct sg_op *op); /* behind all that it comes after */
    /* The host has waited for the stream, or has found it complete, up to this operation. */
    void (*reached)(const struct sg_stream *stream, uint64_t number);
    /* The same of all that had been submitted, with this serial at the end. */
    void (*reached_all)(uint64_t serial);
};
extern const struct sg_stream_watch *sg_stream_watch;
/* The operation whose `run` this thread is in, or NULL. */
extern _Thread_local const struct sg_op *sg_op_running;
/* The host knows that the token is complete. */
void sg_token_reached(struct sg_token token);

/* The point after everything submitted so far; the caller releases it. */
struct sg_token sg_stream_token(struct sg_stream *stream);
bool sg_token_complete(struct sg_token token);
void sg_token_release(struct sg_token *token);

/* `stream` has waited for the token, as for an event: what is queued in it from now on comes after
 * the token and after everything the token comes after. Remembered, complete or not, as far as
 * memory and room allow. */
void sg_stream_follow(struct sg_stream *stream, struct sg_token token);
/* The highest n known such that operation `number` of `stream` comes after operation n of the
 * stream `id`, because streams waited for events; 0 when none is known. */
uint64_t sg_stream_followed(const struct sg_stream *stream, uint64_t number, uint64_t id);
/* Whether it is a hidden stream that joins all streams of a context (cuCtxRecordEvent,
 * cuCtxWaitEvent): on H200, pools do not follow dependencies through one. */
bool sg_stream_joins_context(const struct sg_stream *stream);

/* Blocks until the token is complete, helping; the lock is released meanwhile. Returns the sticky
 * error of the stream's context. The prologue refuses it (NOT_PERMITTED) in host functions. */
CUresult sg_token_wait(struct sg_token token);
/* Submits and waits, with a shortcut when nothing is queued: for synchronous calls. */
CUresult sg_stream_run(struct sg_stream *stream, struct sg_op *op);
/* Whether the eager schedule would start work in this stream at once: then sg_stream_run does
 * little work faster than handing it over, even where the caller need not wait. */
bool sg_stream_may_run_now(struct sg_stream *stream);
/* Waits for all work of a context, or of the device's contexts. */
CUresult sg_context_wait(struct sg_context *context);
/* The same before something is destroyed or freed: a kernel for which that takes long is named. */
CUresult sg_context_wait_to_free(struct sg_context *context);

/* What a call that makes a stream does before it checks the driver and the context, as recorded:
 * the output becomes a handle that refers to nothing, and remains so if the call fails. */
CUresult sg_stream_create_begin(CUstream *handle);
/* cuStreamCreateWithPriority in a context that need not be the current one. */
CUresult sg_stream_create(struct sg_context *context, unsigned flags, int priority,
                          CUstream *handle);

/* A context's default stream object exists from the making of the context to its end. */
CUresult sg_streams_context_begin(struct sg_context *context);
/* Waits for and ends streams and events. */
void sg_streams_context_end(struct sg_context *context);

/* cuInit's work for this chapter; threads start when first needed. */
CUresult sg_streams_init(void);

/* Applies to operations that have not started yet. RANDOM draws from the seed: the same seed,
 * program and order of calls give the same order of operations as long as the program waits rather
 * than polls. */
void sg_schedule_set(enum sg_schedule schedule, uint64_t seed);
/* Called at the end of calls that queued work, when no state of the caller is at risk: the random
 * schedule may run some operations here, with the lock released meanwhile. */
void sg_schedule_chance(void);

/* The operations of a batch of memory operations, linked through `next`; NULL when there is nothing
 * to do. Checks them as cuStreamBatchMemOp does. */
CUresult sg_memops_make(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *params, struct sg_op **first);

/* Called without the lock before each host function, by the thread that calls it; launch/ sets it.
 */
extern void (*sg_before_host_function)(struct sg_context *context);

extern const struct sg_chapter sg_stream_chapter;

#endif
