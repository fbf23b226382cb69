/*
 * softgpu's global state and the lock around it.
 *
 * One lock guards all structure: handles, address map, page table edits, pools, queues. The
 * prologue of every exported function (entry/) takes it, so an sg_cu* implementation is entered
 * with it held and returns with it held. What takes long (moving bytes, host functions,
 * waiting) happens with it released: queued work in stream/queue.c, all else by sg_call_out. One
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
#define SG_CONTEXT_STACK 64                /* deeper pushes answer CUDA_ERROR_OUT_OF_MEMORY */

struct sg_context;

/* What a thread carries. Never shared, so never locked. */
struct sg_thread {
    struct sg_context *stack[SG_CONTEXT_STACK]; /* referenced; the top is current */
    int depth;
    bool per_thread_stream; /* the running call is a _ptds/_ptsz twin: NULL is the per-thread stream
                             */
    bool in_host_function;  /* API calls are refused as hardware refuses them */
    bool in_call;           /* the prologue holds the lock for this thread */
    unsigned fn;            /* the driver function that it is in, a gpumem_driver_fn */
    unsigned calls;         /* it is in so many, one within another (checkpoint/gate.h) */
};

struct sg_thread *sg_thread(void);

extern atomic_bool sg_forked;      /* in a forked child: set by pthread_atfork, never cleared */
extern atomic_bool sg_exiting;     /* exit handlers run: every call answers DEINITIALIZED */
extern atomic_bool sg_initialized; /* cuInit succeeded */

void sg_lock(void);
void sg_unlock(void);
/*
 * Calls `function` with the lock released: the one way out for what is the application's (a
 * callback, a destructor, a file that it may read) or waits for others. What the caller knew of
 * objects that have no reference of its own does not hold afterwards. With `as_host_function`,
 * driver calls that it makes are refused as in host functions. (Streams release the lock for the
 * work that they run, in stream/queue.c alone.)
 */
void sg_call_out(bool as_host_function, void (*function)(void *user), void *user);
/* Waits on a condition variable with the lock; `nanoseconds` 0 waits without limit. */
void sg_wait(pthread_cond_t *cond, uint64_t nanoseconds);

/* Monotonic nanoseconds. */
uint64_t sg_now(void);

#endif
