/* cuLaunchHostFunc and cuStreamAddCallback: the application's functions in a stream's order. */
#include "softgpu/core/calls.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/schedule.h"

struct call {
    CUhostFn function;
    CUstreamCallback callback;
    CUstream handle; /* the stream, as the application named it */
    void *user;
};
_Static_assert(sizeof(struct call) <= sizeof(((struct sg_op *)0)->data), "fits an operation");

static CUresult run_function(struct sg_op *op) {
    const struct call *call = (const void *)op->data.bytes;
    call->function(call->user);
    return CUDA_SUCCESS;
}

/* The documentation says that callbacks may be passed errors; on H200 one queued after a fault was
 * not called, like a host function. So the status is always success. */
static CUresult run_callback(struct sg_op *op) {
    const struct call *call = (const void *)op->data.bytes;
    call->callback(call->handle, CUDA_SUCCESS, call->user);
    return CUDA_SUCCESS;
}

/* There is no node type for callbacks. */
static CUresult capture(struct sg_stream *stream, const struct call *call) {
    if (call->callback)
        return sg_capture_refuse(stream);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
    params.host.fn = call->function;
    params.host.userData = call->user;
    return sg_capture_node(stream, &params);
}

static CUresult submit(CUstream handle, CUresult (*run)(struct sg_op *), struct call call) {
    struct sg_stream *stream;
    CUresult result = sg_stream_from_handle(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture)
        return capture(stream, &call);
    struct sg_op *op = sg_op_new(run);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->host_function = true;
    *(struct call *)(void *)op->data.bytes = call;
    result = sg_stream_submit(stream, op);
    sg_schedule_chance();
    return result;
}

CUresult sg_cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData) {
    if (!fn)
        return CUDA_ERROR_INVALID_VALUE;
    return submit(hStream, run_function, (struct call){.function = fn, .user = userData});
}

CUresult sg_cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData,
                                unsigned int flags) {
    if (!callback || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct call call = {.callback = callback, .handle = hStream, .user = userData};
    return submit(hStream, run_callback, call);
}
