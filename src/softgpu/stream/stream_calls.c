/* cuStream*: making, querying and waiting for streams. */
#include "softgpu/core/calls.h"
#include "softgpu/core/chapter.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/schedule.h"

int sg_stream_priority(int priority) {
    if (priority < SG_PRIORITY_GREATEST)
        return SG_PRIORITY_GREATEST;
    return priority > SG_PRIORITY_LEAST ? SG_PRIORITY_LEAST : priority;
}

CUresult sg_stream_create_begin(CUstream *handle) {
    *handle = SG_HANDLE_POINTER(CUstream, SG_HANDLE_DEAD(SG_KIND_STREAM));
    return atomic_load(&sg_initialized) ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult sg_stream_create(struct sg_context *context, unsigned flags, int priority,
                          CUstream *handle) {
    struct sg_stream *stream = sg_stream_new(context, flags, sg_stream_priority(priority));
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sg_stream_heed_barrier_later(stream);
    stream->handle = sg_handle_new(SG_KIND_STREAM, stream);
    if (!stream->handle) {
        sg_stream_unref(stream);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg_stream_list(stream);
    *handle = SG_HANDLE_POINTER(CUstream, stream->handle);
    return CUDA_SUCCESS;
}

CUresult sg_cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority) {
    if (!phStream || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_context *context;
    CUresult result = sg_stream_create_begin(phStream);
    if (result == CUDA_SUCCESS)
        result = sg_context_current_part(&context);
    return result == CUDA_SUCCESS ? sg_stream_create(context, flags, priority, phStream) : result;
}

CUresult sg_cuStreamCreate(CUstream *phStream, unsigned int Flags) {
    return sg_cuStreamCreateWithPriority(phStream, Flags, SG_PRIORITY_LEAST);
}

CUresult sg_cuStreamDestroy_v2(CUstream hStream) {
    struct sg_stream *stream = sg_handle_get(SG_KIND_STREAM, SG_HANDLE_VALUE(hStream));
    if (!stream)
        return sg_stream_lost(hStream);
    sg_stream_destroy(stream);
    return CUDA_SUCCESS;
}

CUresult sg_cuStreamDestroy(CUstream hStream) {
    return sg_cuStreamDestroy_v2(hStream);
}

CUresult sg_cuStreamQuery(CUstream hStream) {
    struct sg_stream *stream;
    CUresult result = sg_stream_from_handle(hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture)
        return sg_capture_refuse(stream);
    result = sg_capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    if (stream == stream->context->legacy && stream->busy_blocking > 0)
        sg_context_settle(stream->context);
    else
        sg_stream_settle(stream);
    if (sg_stream_idle(stream)) {
        sg_token_reached((struct sg_token){stream, stream->completed});
        return CUDA_SUCCESS;
    }
    sg_stream_ref(stream);
    sg_stream_queried(stream);
    result = stream->context->sticky;
    if (result == CUDA_SUCCESS && !sg_stream_idle(stream))
        result = CUDA_ERROR_NOT_READY;
    else
        sg_token_reached((struct sg_token){stream, stream->completed});
    sg_stream_unref(stream);
    return result;
}

/* The legacy stream as a whole includes the work of blocking streams: a marker in it joins them. */
static CUresult wait_for_legacy(struct sg_stream *legacy) {
    struct sg_op *op = sg_op_new(NULL);
    return op ? sg_stream_run(legacy, op) : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult wait_for_own(struct sg_stream *stream) {
    struct sg_token token = sg_stream_token(stream);
    CUresult result = sg_token_wait(token);
    sg_token_release(&token);
    return result;
}

/* Waiting drops the lock: meanwhile another thread may destroy the stream or its context. The
 * stream keeps both until the pools have been notified. */
static CUresult synchronize(struct sg_stream *stream) {
    struct sg_context *context = stream->context;
    sg_stream_ref(stream);
    bool joins = stream == context->legacy && stream->busy_blocking > 0;
    CUresult result = joins ? wait_for_legacy(stream) : wait_for_own(stream);
    if (result == CUDA_SUCCESS)
        sg_chapters_synchronized(context, stream);
    sg_stream_unref(stream);
    return result;
}

CUresult sg_cuStreamSynchronize(CUstream hStream) {
    struct sg_stream *stream;
    CUresult result = sg_stream_from_handle(hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture)
        return sg_capture_refuse(stream);
    result = sg_capture_unsafe();
    return result == CUDA_SUCCESS ? synchronize(stream) : result;
}

/* ---- What a stream is ----------------------------------------------------------------------- */

/* These invalidate the capture of a capturing stream; queries of priority, context or attributes do
 * not. */
static CUresult find_to_ask(CUstream handle, struct sg_stream **stream) {
    CUresult result = sg_stream_from_handle(handle, stream);
    return result == CUDA_SUCCESS && (*stream)->capture ? sg_capture_refuse(*stream) : result;
}

CUresult sg_cuStreamGetFlags(CUstream hStream, unsigned int *flags) {
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_stream *stream;
    CUresult result = find_to_ask(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *flags = stream->flags;
    return result;
}

CUresult sg_cuStreamGetPriority(CUstream hStream, int *priority) {
    if (!priority)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_stream *stream;
    CUresult result = sg_stream_find_valid(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *priority = stream->priority;
    return result;
}

CUresult sg_cuStreamGetId(CUstream hStream, unsigned long long *streamId) {
    if (!streamId)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_stream *stream;
    CUresult result = find_to_ask(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *streamId = stream->id;
    return result;
}

CUresult sg_cuStreamGetDevice(CUstream hStream, CUdevice *device) {
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_stream *stream;
    CUresult result = find_to_ask(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *device = stream->context->device;
    return result;
}

CUresult sg_cuStreamGetCtx(CUstream hStream, CUcontext *pctx) {
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_stream *stream;
    CUresult result = sg_stream_find_valid(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *pctx = SG_HANDLE_POINTER(CUcontext, stream->context->handle);
    return result;
}

/* A green context and its CUcontext are one value, as on H200. */
static CUgreenCtx green_of(const struct sg_stream *stream) {
    const struct sg_context *context = stream->context;
    return context->owner ? SG_HANDLE_POINTER(CUgreenCtx, context->handle) : NULL;
}

CUresult sg_cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx) {
    if (!phCtx)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_stream *stream;
    CUresult result = sg_stream_find_valid(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *phCtx = green_of(stream);
    return result;
}

CUresult sg_cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx) {
    if (!pGreenCtx)
        return CUDA_ERROR_INVALID_VALUE;
    if (!pCtx)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_stream *stream;
    CUresult result = sg_stream_find_valid(hStream, &stream);
    if (result == CUDA_SUCCESS) {
        *pCtx = SG_HANDLE_POINTER(CUcontext, sg_context_owner(stream->context)->handle);
        *pGreenCtx = green_of(stream);
    }
    return result;
}

CUresult sg_cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (leastPriority)
        *leastPriority = SG_PRIORITY_LEAST;
    if (greatestPriority)
        *greatestPriority = SG_PRIORITY_GREATEST;
    return CUDA_SUCCESS;
}
