/*
 * Contexts. The first retain makes a device's primary context and the last release resets it;
 * cuCtxCreate makes the others. Each thread has a stack of contexts (sg_thread()).
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
struct sg_device_state;

struct sg_context {
    uint64_t handle;
    uint64_t id; /* cuCtxGetId: never reused */
    int device;
    bool primary;  /* one object and one handle per device, which can end and become alive again */
    bool alive;    /* false once destroyed or reset; the object exists while referenced */
    bool lost;     /* a stand-in for one destroyed before it was made current: no device */
    bool ending;   /* a primary context whose end another thread is still waiting for */
    unsigned refs; /* device or handle table, thread stacks, streams, events, ranges, peers */
    unsigned uses; /* retains of a primary context; attaches of a created one */
    unsigned flags;
    unsigned api_version;
    CUresult sticky; /* CUDA_SUCCESS, or the error that poisons every later call */
    size_t limits[CU_LIMIT_MAX];
    bool limit_fixed[CU_LIMIT_MAX]; /* a kernel that depends on it has been launched */
    CUfunc_cache cache_config;
    struct sg_peer *peers; /* contexts whose memory this one may access */

    /* report/ owns these. */
    struct sg_coredump coredump;
    bool profiled;

    /* A green context is a part of the device's primary context: it has its own streams; everything
     * else made in it belongs to its owner. green/ owns these. */
    struct sg_context *owner; /* of a green context: the primary context, referenced */
    struct sg_green *green;   /* of a green context: its resources */
    struct sg_context *parts; /* of a primary context: its live green contexts */
    struct sg_context *next_part;
    unsigned ending_parts; /* of a primary context: removed from its parts but not ended yet */

    /* stream/ owns these. */
    struct sg_stream *legacy;     /* the NULL stream */
    struct sg_stream *per_thread; /* list of per-thread default streams */
    struct sg_stream *streams;    /* list of created streams, not yet destroyed */
    /* Host functions that are waiting only for their turn, in the order in which their streams
     * reached them; those of a green context are kept in its owner. The first may be running. */
    struct sg_op *calls;
    unsigned freeing; /* calls that wait for its work, to destroy or free something then */

    /* launch/ owns this: what kernels leave behind for later ones; NULL until there is any. */
    struct sg_device_state *device_state;

    /* texture/ owns these. */
    struct sg_samplers *samplers;    /* texture and surface objects */
    struct sg_reference *references; /* of textures and surfaces */
};

/* The context that owns what the calling thread makes: the current one, or its owner when that is
 * green. INVALID_CONTEXT when there is none; CONTEXT_IS_DESTROYED when it was destroyed; its sticky
 * error when poisoned. */
CUresult sg_context_current(struct sg_context **context);
/* As above, but NULL when there is none, and without the sticky error. A green context that has
 * ended stands for itself. */
struct sg_context *sg_context_peek(void);
/* The same two for the current context itself, green or not: for its streams and its settings. */
CUresult sg_context_current_part(struct sg_context **context);
struct sg_context *sg_context_peek_part(void);
/* The prologue's check, for functions that do something before it (SG_BEFORE_INIT, SG_STICKY_OK):
 * NOT_INITIALIZED, or the sticky error of the current context. SUCCESS without a current context.
 */
CUresult sg_context_admits(void);
/* A handle given as an argument: NULL means the current context; a green one is not replaced by its
 * owner. INVALID_CONTEXT for a value that is not a live handle, CONTEXT_IS_DESTROYED for a context
 * that has ended; never a sticky error. */
CUresult sg_context_from_handle(CUcontext handle, struct sg_context **context);
/* The same for calls that a primary context answers while it is inactive. */
CUresult sg_context_find(CUcontext handle, struct sg_context **context);

/* The context itself, or the owner of a green one. */
struct sg_context *sg_context_owner(struct sg_context *context);
/* Whether `other` is `context` or a part of it. */
bool sg_context_includes(const struct sg_context *context, const struct sg_context *other);

void sg_context_ref(struct sg_context *context);
void sg_context_unref(struct sg_context *context);

/* Poisons the context: every later call in it, and in the others of its device, returns `error`.
 * The first error is kept. The device remembers it: no new context of the device can be made in
 * this process. All as seen on H200. */
void sg_context_fault(struct sg_context *context, CUresult error);

/* Whether `context` may access memory of `peer`'s device: the same device, or access is enabled. */
bool sg_context_may_access(const struct sg_context *context, const struct sg_context *peer);

extern const struct sg_chapter sg_context_chapter;

#endif
