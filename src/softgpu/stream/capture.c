/*
 * Stream capture, as far as it can be answered without it: no stream ever captures, because
 * cuStreamBeginCapture is refused.
 */
#include "softgpu/core/calls.h"
#include "softgpu/stream/stream.h"

CUresult sg_cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus) {
    if (!captureStatus)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_stream *stream;
    CUresult result = sg_stream_from_handle(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *captureStatus = CU_STREAM_CAPTURE_STATUS_NONE;
    return result;
}

/* Only the status is answered for a stream that does not capture. */
CUresult sg_cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                   cuuint64_t *id_out) {
    (void)id_out;
    return sg_cuStreamIsCapturing(hStream, captureStatus_out);
}

CUresult sg_cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                      cuuint64_t *id_out, CUgraph *graph_out,
                                      const CUgraphNode **dependencies_out,
                                      size_t *numDependencies_out) {
    (void)id_out, (void)graph_out, (void)dependencies_out, (void)numDependencies_out;
    return sg_cuStreamIsCapturing(hStream, captureStatus_out);
}

CUresult sg_cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                      cuuint64_t *id_out, CUgraph *graph_out,
                                      const CUgraphNode **dependencies_out,
                                      const CUgraphEdgeData **edgeData_out,
                                      size_t *numDependencies_out) {
    (void)id_out, (void)graph_out, (void)numDependencies_out;
    if (edgeData_out && !dependencies_out)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_cuStreamIsCapturing(hStream, captureStatus_out);
}

CUresult sg_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    static _Thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!mode) /* an H200's driver crashes; any value is as good as another to it */
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode previous = current;
    current = *mode;
    *mode = previous;
    return CUDA_SUCCESS;
}
