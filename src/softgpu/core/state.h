/*
 * softgpu's global state and the lock around it.
 *
 * One lock guards all structure: handles, address map, page table edits, pools, queues. The
 * prologue of every exported function (entry/) takes it, so an sg_cu* implementation is entered
 * with it held and returns with it held. Anything slow (moving bytes, host functions, waiting)
 * happens with it released: queued work in stream/queue.c, everything else through sg_call_out. One
 * lock is enough: the work under it is a few hundred nanoseconds, and the bytes move outside it.
 */
#ifndef SG_CORE_STATE_H
#define SG_CORE_STATE_H

#include <gpumem/cuda_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define SG_MAX_DEVICES   8
#define SG_PAGE          ((size_t)2 << 20) /* the granularity of device memory, as on H200 */
#define SG_CONTEXT_STACK 64                /* deeper pushes return CUDA_ERROR_OUT_OF_MEMORY */

struct sg_context;

#define SG_LABEL_ROOM 160

/* Per-thread state. Never shared, so never locked. */
struct sg_thread {
    struct sg_context *stack[SG_CONTEXT_STACK]; /* referenced; the top is current */
    int depth;
    bool per_thread_stream; /* the running call is a _ptds/_ptsz twin: NULL is the per-thread stream
                             */
    bool in_host_function;  /* API calls are refused as on hardware */
    bool in_call;           /* the prologue holds the lock for this thread */
    unsigned fn;            /* the current driver function, a gpumem_driver_fn */
    const void *caller;     /* of functions that say who called: the address behind the call */
    unsigned calls;         /* depth of nested calls (checkpoint/gate.h) */
    char label[SG_LABEL_ROOM]; /* what the thread does: sg_label_set; "" for nothing */
};

struct sg_thread *sg_thread(void);

extern atomic_bool sg_forked;      /* in a forked child: set by pthread_atfork, never cleared */
extern atomic_bool sg_exiting;     /* exit handlers run: every call returns DEINITIALIZED */
extern atomic_bool sg_initialized; /* cuInit succeeded */

void sg_lock(void);
void sg_unlock(void);
/*
 * Calls `function` with the lock released: the only way to run what belongs to the application (a
 * callback, a destructor, a file that it may read) or waits for others. Afterwards the caller must
 * not rely on what it knew of objects to which it holds no reference. With `as_host_function`, its
 * driver calls are refused as in host functions. (Streams release the lock for the work that they
 * run, only in stream/queue.c.)
 */
void sg_call_out(bool as_host_function, void (*function)(void *user), void *user);
/* Waits on a condition variable with the lock; `nanoseconds` 0 waits without limit. */
void sg_wait(pthread_cond_t *cond, uint64_t nanoseconds);

/* Monotonic nanoseconds. */
uint64_t sg_now(void);

#endif
