/*
 * Contexts. The primary context of a device is made by the first retain and reset by the last
 * release; created ones by cuCtxCreate. Each thread has a stack of them (sg_thread()).
 */
#ifndef SG_CONTEXT_CONTEXT_H
#define SG_CONTEXT_CONTEXT_H

#include "softgpu/core/chapter.h"
#include "softgpu/core/handle.h"
#include "softgpu/core/state.h"
#include "softgpu/coredump/coredump.h"

struct sg_stream;
struct sg_op;
struct sg_green;

struct sg_context {
    uint64_t handle;
    uint64_t id; /* cuCtxGetId: never reused */
    int device;
    bool primary;  /* one object and one handle per device, dead and alive again */
    bool alive;    /* false once destroyed or reset; the object stays while it is referenced */
    bool lost;     /* stands for one that was destroyed before it was made current: no device */
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

    /* A green context is a part of the device's primary context: streams are its own, all else that
     * is made in it belongs to its owner. green/ owns these. */
    struct sg_context *owner; /* of a green one: the primary context, referenced */
    struct sg_green *green;   /* of a green one: its resources */
    struct sg_context *parts; /* of a primary one: its green contexts that are alive */
    struct sg_context *next_part;
    unsigned ending_parts; /* of a primary one: not among its parts any more, not ended yet */

    /* stream/ owns these. */
    struct sg_stream *legacy;     /* the NULL stream */
    struct sg_stream *per_thread; /* list of per-thread default streams */
    struct sg_stream *streams;    /* list of created streams, not yet destroyed */
    /* Host functions that only want their turn, in the order of their streams' coming to them; of a
     * green context its owner has them. The first may be running. */
    struct sg_op *calls;

    /* texture/ owns these. */
    struct sg_samplers *samplers;    /* texture and surface objects */
    struct sg_reference *references; /* of textures and surfaces */
};

/* The context that things made by the calling thread belong to: the current one, or its owner when
 * that is green. INVALID_CONTEXT when there is none; CONTEXT_IS_DESTROYED when it was destroyed;
 * its sticky error when poisoned. */
CUresult sg_context_current(struct sg_context **context);
/* As above but NULL for none, and without the sticky error. A green one that has ended stands for
 * itself. */
struct sg_context *sg_context_peek(void);
/* The same two of the current context itself, green or not: for its streams and its settings. */
CUresult sg_context_current_part(struct sg_context **context);
struct sg_context *sg_context_peek_part(void);
/* What the prologue checks, for functions that do something before (SG_BEFORE_INIT, SG_STICKY_OK):
 * NOT_INITIALIZED, or the sticky error of the current context. SUCCESS without one. */
CUresult sg_context_admits(void);
/* A handle as argument: NULL means the current context; a green one stays what it is.
 * INVALID_CONTEXT for a value that is no live handle, CONTEXT_IS_DESTROYED for one that has ended;
 * no sticky error. */
CUresult sg_context_from_handle(CUcontext handle, struct sg_context **context);
/* The same for calls that a primary context answers while it is not active. */
CUresult sg_context_find(CUcontext handle, struct sg_context **context);

/* The context itself, or the owner of a green one. */
struct sg_context *sg_context_owner(struct sg_context *context);
/* `other` is `context` or a part of it. */
bool sg_context_includes(const struct sg_context *context, const struct sg_context *other);

void sg_context_ref(struct sg_context *context);
void sg_context_unref(struct sg_context *context);

/* Poisons: every later call in this context, and in the others of its device, answers `error`. The
 * first error stays. The device remembers it: no later context of it can be made in this process.
 * All as seen on H200. */
void sg_context_fault(struct sg_context *context, CUresult error);

/* True when `context` may access memory of `peer`'s device: the same device, or enabled. */
bool sg_context_may_access(const struct sg_context *context, const struct sg_context *peer);

extern const struct sg_chapter sg_context_chapter;

#endif
