/* Stream capture: what is refused meanwhile, and what that does to the capture. */
#include "harness.h"

#include <pthread.h>

static CUstream captured_stream(unsigned flags, CUstreamCaptureMode mode) {
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, flags);
    OK_CU(cu.cuStreamBeginCapture_v2(stream, mode));
    return stream;
}

/* Ends it as `wanted` says, and the stream with it. */
static void finish(CUstream stream, CUresult wanted) {
    CUgraph graph = NULL;
    ANSWERS_CU(wanted, cu.cuStreamEndCapture(stream, &graph));
    assert_true((graph != NULL) == (wanted == CUDA_SUCCESS));
    if (graph)
        OK_CU(cu.cuGraphDestroy(graph));
    OK_CU(cu.cuStreamDestroy_v2(stream));
}

static void set_mode(CUstreamCaptureMode mode, CUstreamCaptureMode expected) {
    CUstreamCaptureMode value = mode;
    OK_CU(cu.cuThreadExchangeStreamCaptureMode(&value));
    assert_int_equal(value, expected);
}

TEST(captured_events_cannot_be_awaited) {
    CUevent event = new_timed_event();
    CUstream s = captured_stream(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK_CU(cu.cuEventRecord(event, s));
    FAILS_CU(CAPTURED_EVENT, cu.cuEventQuery(event));
    finish(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    s = captured_stream(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK_CU(cu.cuEventRecord(event, s));
    FAILS_CU(CAPTURED_EVENT, cu.cuEventSynchronize(event));
    finish(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    s = captured_stream(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK_CU(cu.cuEventRecord(event, s));
    float ms;
    FAILS_CU(CAPTURED_EVENT, cu.cuEventElapsedTime(&ms, event, event));
    finish(s, CUDA_SUCCESS);
}

TEST(unsafe_calls_are_refused_by_capture_mode) {
    CUdeviceptr p = 77;
    CUstream other = new_stream();
    CUstream s = captured_stream(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_GLOBAL);
    FAILS_CU(STREAM_CAPTURE_UNSUPPORTED, cu.cuMemAlloc_v2(&p, 64));
    assert_true(p == 0);
    finish(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    s = captured_stream(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    FAILS_CU(STREAM_CAPTURE_UNSUPPORTED, cu.cuStreamQuery(other));
    finish(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    s = captured_stream(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK_CU(cu.cuMemAlloc_v2(&p, 64));
    OK_CU(cu.cuMemFree_v2(p));
    OK_CU(cu.cuStreamSynchronize(other));
    finish(s, CUDA_SUCCESS);
    set_mode(CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_GLOBAL);
    s = captured_stream(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK_CU(cu.cuMemAlloc_v2(&p, 64));
    OK_CU(cu.cuMemFree_v2(p));
    finish(s, CUDA_SUCCESS);
    set_mode(CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED);
}

/* Another thread that allocates, in its own mode. */
struct visitor {
    CUstreamCaptureMode mode;
    CUresult result;
};

static void *visit(void *data) {
    struct visitor *visitor = data;
    CUdeviceptr p = 0;
    CUstreamCaptureMode mode = visitor->mode;
    cu.cuCtxSetCurrent(ctx);
    cu.cuThreadExchangeStreamCaptureMode(&mode);
    visitor->result = cu.cuMemAlloc_v2(&p, 64);
    if (p)
        cu.cuMemFree_v2(p);
    cu.cuCtxSetCurrent(NULL);
    return NULL;
}

static CUresult visited_in(CUstreamCaptureMode mode) {
    struct visitor visitor = {mode, CUDA_ERROR_UNKNOWN};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, visit, &visitor), 0);
    pthread_join(thread, NULL);
    return visitor.result;
}

TEST(a_global_capture_restricts_other_threads) {
    CUstream s = captured_stream(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK_CU(visited_in(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK_CU(visited_in(CU_STREAM_CAPTURE_MODE_RELAXED));
    FAILS_CU(STREAM_CAPTURE_UNSUPPORTED, visited_in(CU_STREAM_CAPTURE_MODE_GLOBAL));
    finish(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    s = captured_stream(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    OK_CU(visited_in(CU_STREAM_CAPTURE_MODE_GLOBAL));
    finish(s, CUDA_SUCCESS);
}

static void *end_it(void *data) {
    static CUresult result;
    CUgraph graph = NULL;
    cu.cuCtxSetCurrent(ctx);
    result = cu.cuStreamEndCapture(data, &graph);
    if (graph)
        cu.cuGraphDestroy(graph);
    cu.cuCtxSetCurrent(NULL);
    return &result;
}

static CUresult ended_elsewhere(CUstream stream) {
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, end_it, stream), 0);
    pthread_join(thread, &result);
    return *(CUresult *)result;
}

TEST(only_the_beginning_thread_ends_a_non_relaxed_capture) {
    CUgraph graph;
    CUstream s = captured_stream(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_GLOBAL);
    FAILS_CU(STREAM_CAPTURE_WRONG_THREAD, ended_elsewhere(s));
    FAILS_CU(ILLEGAL_STATE, cu.cuStreamEndCapture(s, &graph));
    OK_CU(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK_CU(ended_elsewhere(s));
    OK_CU(cu.cuStreamDestroy_v2(s));
}

TEST_WHERE(the_legacy_stream_is_unusable_while_a_blocking_stream_captures, NEEDS_LEGACY_STREAM()) {
    CUstreamCaptureStatus status;
    unsigned char byte = 1;
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 64);
    CUstream s = captured_stream(CU_STREAM_DEFAULT, CU_STREAM_CAPTURE_MODE_RELAXED);
    FAILS_CU(STREAM_CAPTURE_IMPLICIT, cu.cuStreamIsCapturing(NULL, &status));
    finish(s, CUDA_SUCCESS);
    s = captured_stream(CU_STREAM_DEFAULT, CU_STREAM_CAPTURE_MODE_RELAXED);
    FAILS_CU(STREAM_CAPTURE_IMPLICIT, cu.cuMemcpyHtoD_v2(p, &byte, 1));
    finish(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    s = captured_stream(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK_CU(cu.cuMemcpyHtoD_v2(p, &byte, 1));
    finish(s, CUDA_SUCCESS);
    OK_CU(cu.cuMemFree_v2(p));
    FAILS_CU(STREAM_CAPTURE_UNSUPPORTED,
             cu.cuStreamBeginCapture_v2(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

TEST(invalid_capture_modes_are_refused) {
    CUgraph graph;
    CUstream s = new_stream();
    FAILS_CU(INVALID_VALUE, cu.cuStreamBeginCapture_v2(s, (CUstreamCaptureMode)3));
    FAILS_CU(ILLEGAL_STATE, cu.cuStreamEndCapture(s, &graph));
    FAILS_CU(ILLEGAL_STATE, cu.cuStreamUpdateCaptureDependencies(s, NULL, 0, 0));
}

TEST_WHERE(querying_the_legacy_stream_invalidates_a_blocking_capture, NEEDS_LEGACY_STREAM()) {
    unsigned flags;
    int priority;
    CUcontext context;
    CUstream s = captured_stream(CU_STREAM_DEFAULT, CU_STREAM_CAPTURE_MODE_RELAXED);
    FAILS_CU(STREAM_CAPTURE_IMPLICIT, cu.cuStreamGetFlags(NULL, &flags));
    finish(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    s = captured_stream(CU_STREAM_DEFAULT, CU_STREAM_CAPTURE_MODE_RELAXED);
    FAILS_CU(STREAM_CAPTURE_IMPLICIT, cu.cuStreamGetPriority(NULL, &priority));
    FAILS_CU(STREAM_CAPTURE_INVALIDATED, cu.cuStreamGetPriority(s, &priority));
    FAILS_CU(STREAM_CAPTURE_INVALIDATED, cu.cuStreamGetCtx(s, &context));
    finish(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST(pool_calls_are_unsafe_during_a_global_capture) {
    cuuint64_t value;
    CUmemoryPool pool = MADE_CU(CUmemoryPool, cuDeviceGetMemPool, dev);
    CUstream s = captured_stream(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_GLOBAL);
    FAILS_CU(STREAM_CAPTURE_UNSUPPORTED, cu.cuDeviceSetMemPool(dev, pool));
    finish(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    s = captured_stream(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_GLOBAL);
    FAILS_CU(STREAM_CAPTURE_UNSUPPORTED,
             cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    finish(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    s = captured_stream(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_GLOBAL);
    FAILS_CU(STREAM_CAPTURE_UNSUPPORTED, cu.cuGraphExecDestroy(NULL));
    finish(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    s = captured_stream(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_GLOBAL);
    FAILS_CU(INVALID_HANDLE, cu.cuModuleUnload(NULL));
    finish(s, CUDA_SUCCESS);
}
