/* Contexts that an application creates, and their end. */
#include "softgpu/context/lifetime.h"
#include "softgpu/core/calls.h"

static CUresult create(CUcontext *pctx, unsigned flags, CUdevice dev, unsigned api_version) {
    struct sg_device *device = sg_device(dev);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!pctx || !sg_context_flags_valid(flags))
        return CUDA_ERROR_INVALID_VALUE;
    if (device->fault != CUDA_SUCCESS)
        return device->fault;

    struct sg_context *context = sg_context_new(device, false);
    if (!context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = sg_stack_push(context);
    if (result == CUDA_SUCCESS) {
        result = sg_context_begin(context, flags, api_version);
        if (result != CUDA_SUCCESS)
            sg_context_unref(sg_stack_pop());
    }
    if (result != CUDA_SUCCESS) {
        sg_handle_drop(SG_KIND_CONTEXT, context->handle);
        sg_context_unref(context);
        return result;
    }
    context->uses = 1;
    *pctx = SG_HANDLE_POINTER(CUcontext, context->handle);
    return CUDA_SUCCESS;
}

CUresult sg_cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev) {
    return create(pctx, flags, dev, 3010);
}

CUresult sg_cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev) {
    return create(pctx, flags, dev, 3020);
}

/* Execution affinity is an MPS feature: without MPS the documentation names
 * UNSUPPORTED_EXEC_AFFINITY. */
CUresult sg_cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                           unsigned int flags, CUdevice dev) {
    if (numParams > 0 && !paramsArray)
        return CUDA_ERROR_INVALID_VALUE;
    if (numParams > 0)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create(pctx, flags, dev, 3020);
}

CUresult sg_cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags,
                           CUdevice dev) {
    if (!ctxCreateParams)
        return create(pctx, flags, dev, 3020);
    if (ctxCreateParams->execAffinityParams && ctxCreateParams->cigParams)
        return CUDA_ERROR_INVALID_VALUE;
    if (ctxCreateParams->cigParams)
        return CUDA_ERROR_NOT_SUPPORTED;
    return sg_cuCtxCreate_v3(pctx, ctxCreateParams->execAffinityParams,
                             ctxCreateParams->numExecAffinityParams, flags, dev);
}

/* The handle is freed first: while this thread waits for the context's work with the lock released,
 * no other thread can find it. */
static void destroy(struct sg_context *context) {
    sg_handle_drop(SG_KIND_CONTEXT, context->handle);
    sg_context_end(context);
    if (sg_context_peek_part() == context)
        sg_context_unref(sg_stack_pop());
    sg_context_unref(context);
}

CUresult sg_cuCtxDestroy_v2(CUcontext ctx) {
    struct sg_context *context;
    if (!ctx)
        return CUDA_ERROR_INVALID_VALUE;
    if (!atomic_load(&sg_initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    if (sg_context_find(ctx, &context) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context->primary || context->owner)
        return CUDA_ERROR_INVALID_CONTEXT; /* Calls of their own end them. */
    destroy(context);
    return CUDA_SUCCESS;
}

/* As on H200: before CUDA 4.0 only the current context could be destroyed. */
CUresult sg_cuCtxDestroy(CUcontext ctx) {
    const struct sg_context *top = sg_context_peek_part();
    if (ctx && top && SG_HANDLE_POINTER(CUcontext, top->handle) != ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    return sg_cuCtxDestroy_v2(ctx);
}

/* ---- Usage counts, as before CUDA 4.0 -------------------------------------------------------- */

CUresult sg_cuCtxAttach(CUcontext *pctx, unsigned int flags) {
    struct sg_context *context;
    CUresult result = sg_context_from_handle(NULL, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pctx || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    context->uses++;
    *pctx = SG_HANDLE_POINTER(CUcontext, context->handle);
    return CUDA_SUCCESS;
}

/* Only the thread to which a context is current can detach from it. */
CUresult sg_cuCtxDetach(CUcontext ctx) {
    struct sg_context *context;
    CUresult result = ctx ? sg_context_from_handle(ctx, &context) : CUDA_ERROR_INVALID_CONTEXT;
    if (result != CUDA_SUCCESS)
        return result;
    if (context != sg_context_peek_part() || context->owner)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context->primary)
        return sg_cuDevicePrimaryCtxRelease_v2(context->device);
    if (--context->uses == 0)
        destroy(context);
    return CUDA_SUCCESS;
}
