/*
 * Contexts. The primary context of a device is made by the first retain and reset by the last
 * release; created ones by cuCtxCreate. Each thread has a stack of them (sg_thread()).
 */
#ifndef SG_CONTEXT_CONTEXT_H
#define SG_CONTEXT_CONTEXT_H

#include "softgpu/core/handle.h"
#include "softgpu/core/state.h"
#include "softgpu/report/coredump.h"

struct sg_stream;

struct sg_context {
    uint64_t handle;
    uint64_t id; /* cuCtxGetId: never reused */
    int device;
    bool primary;  /* one object and one handle per device, dead and alive again */
    bool alive;    /* false once destroyed or reset; the object stays while it is referenced */
    bool ending;   /* a primary context whose end another thread is still waiting for */
    unsigned refs; /* device or handle table, thread stacks, streams, events, ranges, peers */
    unsigned uses; /* retains of a primary context; attaches of a created one */
    unsigned flags;
    unsigned api_version;
    CUresult sticky; /* CUDA_SUCCESS, or the error that poisons every later call */
    size_t limits[CU_LIMIT_MAX];
    CUfunc_cache cache_config;
    struct sg_peer *peers; /* contexts whose memory this one may access */

    /* report/ owns these. */
    struct sg_coredump coredump;
    bool profiled;

    /* stream/ owns these. */
    struct sg_stream *legacy;     /* the NULL stream */
    struct sg_stream *per_thread; /* list of per-thread default streams */
    struct sg_stream *streams;    /* list of created streams, not yet destroyed */

    /* texture/ owns these. */
    struct sg_samplers *samplers;    /* texture and surface objects */
    struct sg_reference *references; /* of textures and surfaces */
};

/* The calling thread's current context. INVALID_CONTEXT when there is none; CONTEXT_IS_DESTROYED
 * when it was destroyed; its sticky error when poisoned. */
CUresult sg_context_current(struct sg_context **context);
/* As above but NULL for none, and without the sticky error. */
struct sg_context *sg_context_peek(void);
/* A handle as argument: NULL means the current context. INVALID_CONTEXT for a value that is no live
 * handle, CONTEXT_IS_DESTROYED for one that has ended; no sticky error. */
CUresult sg_context_from_handle(CUcontext handle, struct sg_context **context);
/* The same for calls that a primary context answers while it is not active. */
CUresult sg_context_find(CUcontext handle, struct sg_context **context);

void sg_context_ref(struct sg_context *context);
void sg_context_unref(struct sg_context *context);

/* Poisons: every later call in this context, and in the others of its device, answers `error`. The
 * first error stays. The device remembers it: no later context of it can be made in this process.
 * All as seen on H200. */
void sg_context_fault(struct sg_context *context, CUresult error);

/* True when `context` may access memory of `peer`'s device: the same device, or enabled. */
bool sg_context_may_access(const struct sg_context *context, const struct sg_context *peer);

/* Called by context/ in this order when a context ends (destroy, reset, last release): waits for
 * and ends streams and events, unloads modules, then frees memory that belongs to it. `alive` is already false. */
void sg_streams_context_end(struct sg_context *context);
void sg_modules_context_end(struct sg_context *context);
void sg_memory_context_end(struct sg_context *context);
void sg_external_context_end(struct sg_context *context);

#endif
