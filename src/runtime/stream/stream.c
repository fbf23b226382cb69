/* Streams and events, where the runtime's call is not the driver's. */
#include "runtime/core/runtime.h"

#include <stdlib.h>

cudaError_t rt_cudaStreamCreate(cudaStream_t *pStream) {
    return rt_error(CU(cuStreamCreate)(pStream, CU_STREAM_DEFAULT));
}

cudaError_t rt_cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags) {
    return rt_error(CU(cuStreamCreate)(pStream, flags));
}

cudaError_t rt_cudaEventCreate(cudaEvent_t *event) {
    return rt_error(CU(cuEventCreate)(event, CU_EVENT_DEFAULT));
}

cudaError_t rt_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
    return rt_error(CU(cuEventCreate)(event, flags));
}

cudaError_t rt_cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
    return ms ? rt_error(CU(cuEventElapsedTime)(ms, start, end)) : cudaErrorInvalidValue;
}

/* 0 is no attribute, and is refused before the stream is looked at. */
cudaError_t rt_cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attr,
                                      const cudaLaunchAttributeValue *param) {
    return attr && param ? rt_error(CU(cuStreamSetAttribute)(stream, attr, param))
                         : cudaErrorInvalidValue;
}

/* The program's callback has the runtime's type of error, with the same numbers. */
struct callback {
    cudaStreamCallback_t call;
    void *data;
};

static void CUDAAPI call_back(CUstream stream, CUresult status, void *data) {
    struct callback wanted = *(struct callback *)data;
    free(data);
    wanted.call(stream, rt_error(status), wanted.data);
}

cudaError_t rt_cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                     void *userData, unsigned int flags) {
    if (!callback)
        return cudaErrorInvalidValue;
    struct callback *wanted = malloc(sizeof *wanted);
    if (!wanted)
        return cudaErrorMemoryAllocation;
    *wanted = (struct callback){callback, userData};
    cudaError_t error = rt_error(CU(cuStreamAddCallback)(stream, call_back, wanted, flags));
    if (error != cudaSuccess)
        free(wanted);
    return error;
}

#if RT_ABI == 12
cudaError_t rt_cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status,
                                        unsigned long long *id) {
    return rt_error(
        CU(cuStreamGetCaptureInfo_v2)(stream, status, RT_NUMBERS(id), NULL, NULL, NULL));
}
#else
cudaError_t rt_cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status,
                                        unsigned long long *id, cudaGraph_t *graph,
                                        const cudaGraphNode_t **dependencies,
                                        const cudaGraphEdgeData **edges, size_t *count) {
    return rt_error(CU(cuStreamGetCaptureInfo_v3)(stream, status, RT_NUMBERS(id), graph,
                                                  dependencies, edges, count));
}

/* Without the mode of 13.2's drivers there is one way to wait. */
cudaError_t rt_cudaLaunchHostFunc_v2(cudaStream_t stream, cudaHostFn_t fn, void *userData,
                                     unsigned int syncMode) {
    return syncMode ? cudaErrorNotSupported : rt_error(CU(cuLaunchHostFunc)(stream, fn, userData));
}
#endif

cudaError_t rt_cudaProfilerStart(void) {
    return rt_error(CU(cuProfilerStart)());
}

cudaError_t rt_cudaProfilerStop(void) {
    return rt_error(CU(cuProfilerStop)());
}
