/*
 * Contexts. The primary context of a device is made by the first retain and reset by the last
 * release; created ones by cuCtxCreate. Each thread has a stack of them (sg_thread()).
 */
#ifndef SG_CONTEXT_CONTEXT_H
#define SG_CONTEXT_CONTEXT_H

#include "softgpu/core/handle.h"
#include "softgpu/core/state.h"

struct sg_stream;

struct sg_context {
    uint64_t handle;
    uint64_t id; /* cuCtxGetId: never reused */
    int device;
    bool primary;
    bool alive;      /* false once destroyed or reset; the object stays while it is referenced */
    unsigned refs;   /* handle table, thread stacks, streams, events, ranges */
    unsigned uses;   /* retains of a primary context */
    unsigned flags;
    unsigned api_version;
    CUresult sticky; /* CUDA_SUCCESS, or the error that poisons every later call */
    size_t limits[CU_LIMIT_MAX];
    CUfunc_cache cache_config;
    CUsharedconfig shared_config;

    /* stream/ owns these. */
    struct sg_stream *legacy;     /* the NULL stream */
    struct sg_stream *per_thread; /* list of per-thread default streams */
    struct sg_stream *streams;    /* list of created streams, not yet destroyed */
};

/* The calling thread's current context. INVALID_CONTEXT when there is none; CONTEXT_IS_DESTROYED
 * when it was destroyed; its sticky error when poisoned. */
CUresult sg_context_current(struct sg_context **context);
/* As above but NULL for none, and without the sticky error. */
struct sg_context *sg_context_peek(void);
/* A handle as argument: NULL means the current context. */
CUresult sg_context_from_handle(CUcontext handle, struct sg_context **context);

void sg_context_ref(struct sg_context *context);
void sg_context_unref(struct sg_context *context);

/* Poisons: every later call in this context answers `error`. The first error stays. */
void sg_context_fault(struct sg_context *context, CUresult error);

/* Called by context/ in this order when a context ends (destroy, reset, last release): waits for
 * and ends streams and events, then frees memory that belongs to it. */
void sg_streams_context_end(struct sg_context *context);
void sg_memory_context_end(struct sg_context *context);

#endif
