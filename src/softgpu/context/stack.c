/* Each thread's stack of contexts, and the calls that change it. */
#include "base/cancel.h"
#include "softgpu/context/lifetime.h"
#include "softgpu/core/calls.h"

#include <stdlib.h>

/* Drops the references of a thread that ends. In a forked child, and once exit handlers run, the
 * lock may belong to a thread that does not exist: then the references are kept. */
static void drop_stack(void *value) {
    struct sg_thread *thread = value;
    if (atomic_load(&sg_forked) || atomic_load(&sg_exiting))
        return;
    GM_UNCANCELLED;
    sg_lock();
    while (thread->depth)
        sg_context_unref(thread->stack[--thread->depth]);
    sg_unlock();
}

static pthread_key_t key;
static bool key_made;

static void make_key(void) {
    key_made = pthread_key_create(&key, drop_stack) == 0;
}

/* False when the thread's end cannot be detected. */
static bool watch_thread(struct sg_thread *thread) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    return key_made && (pthread_getspecific(key) || pthread_setspecific(key, thread) == 0);
}

CUresult sg_stack_push(struct sg_context *context) {
    struct sg_thread *thread = sg_thread();
    if (thread->depth == SG_CONTEXT_STACK || !watch_thread(thread))
        return CUDA_ERROR_OUT_OF_MEMORY;
    sg_context_ref(context);
    thread->stack[thread->depth++] = context;
    return CUDA_SUCCESS;
}

struct sg_context *sg_stack_pop(void) {
    struct sg_thread *thread = sg_thread();
    return thread->depth ? thread->stack[--thread->depth] : NULL;
}

CUresult sg_cuCtxGetCurrent(CUcontext *pctx) {
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_context *context = sg_context_peek_part();
    *pctx = context ? SG_HANDLE_POINTER(CUcontext, context->handle) : NULL;
    return CUDA_SUCCESS;
}

/* Its device is no longer known; 0 will do, because nothing is done in it. */
static struct sg_context *lost(CUcontext handle) {
    struct sg_context *context = calloc(1, sizeof *context);
    if (!context)
        return NULL;
    context->handle = SG_HANDLE_VALUE(handle);
    context->refs = 1;
    context->lost = true;
    context->api_version = 3020; /* an older version would mean 32-bit addresses */
    return context;
}

/* A context to make current; referenced. Recorded: a destroyed one is accepted, too. Calls in it
 * then return CONTEXT_IS_DESTROYED; for a primary context, until it is retained again. */
static CUresult find(CUcontext handle, struct sg_context **context) {
    CUresult result = sg_context_find(handle, context);
    if (result == CUDA_SUCCESS) {
        sg_context_ref(*context);
    } else if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
        *context = lost(handle);
        result = *context ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

CUresult sg_cuCtxSetCurrent(CUcontext ctx) {
    struct sg_context *context = NULL;
    CUresult result = ctx ? find(ctx, &context) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_context *old = sg_stack_pop();
    if (old)
        sg_context_unref(old);
    if (!context)
        return CUDA_SUCCESS;
    result = sg_stack_push(context);
    sg_context_unref(context);
    return result;
}

CUresult sg_cuCtxPushCurrent_v2(CUcontext ctx) {
    struct sg_context *context;
    CUresult result = ctx ? find(ctx, &context) : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_stack_push(context);
    sg_context_unref(context);
    return result;
}

CUresult sg_cuCtxPopCurrent_v2(CUcontext *pctx) {
    struct sg_context *context = sg_stack_pop();
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (pctx)
        *pctx = SG_HANDLE_POINTER(CUcontext, context->handle);
    sg_context_unref(context);
    return CUDA_SUCCESS;
}

/* The first versions had contexts that belong to one thread at a time; since CUDA 4.0 the driver
 * treats both alike. */
CUresult sg_cuCtxPushCurrent(CUcontext ctx) {
    return sg_cuCtxPushCurrent_v2(ctx);
}

CUresult sg_cuCtxPopCurrent(CUcontext *pctx) {
    return sg_cuCtxPopCurrent_v2(pctx);
}
