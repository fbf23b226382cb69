/* Stream capture: beginning, ending, what becomes a node and what does not, dependencies. */
#include "capture_seen.h"

#include <pthread.h>

static void CUDAAPI count_call(void *data) {
    ++*(int *)data;
}

static void CUDAAPI no_callback(CUstream stream, CUresult status, void *unused) {
}

static const CUstreamCaptureMode GLOBAL = CU_STREAM_CAPTURE_MODE_GLOBAL;
static const CUstreamCaptureMode RELAXED = CU_STREAM_CAPTURE_MODE_RELAXED;

static void see_status(CUstream s, const char *which) {
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)9;
    CUresult result = par.api->cuStreamIsCapturing(s, &status);
    par_see("status", "%s %s %d", which, result_text(result), (int)status);
}

static void see_and_end(CUstream s, const char *which, const char *cls) {
    see_status(s, which);
    end_and_see(s, cls);
}

SCENARIO(begins, "capture/begins", par_context) {
    CUgraph graph;
    CUstream s = par_stream();
    CUstream blocking = par_blocking_stream();
    for (int mode = -1; mode <= 4; mode++) {
        par_note("mode=%d", mode);
        CALL(cuStreamBeginCapture_v2, "mode", (s, (CUstreamCaptureMode)mode));
        if (par_last() == CUDA_SUCCESS)
            end_and_see(s, "empty");
    }
    CALL(cuStreamBeginCapture, "v1", (s));
    end_and_see(s, "v1");
    CALL(cuStreamBeginCapture_ptsz, "v1", (s));
    end_and_see(s, "v1");
    CALL(cuStreamBeginCapture_v2_ptsz, "ok", (s, GLOBAL));
    CALLO(cuStreamEndCapture_ptsz, "ok", (s, &graph), OUT_C(graph));
    CALL(cuStreamBeginCapture_v2, "blocking", (blocking, GLOBAL));
    end_and_see(blocking, "blocking");
    CALL(cuStreamBeginCapture_v2, "legacy-stream", (CU_STREAM_LEGACY, GLOBAL));
    CALL(cuStreamBeginCapture, "null-stream", (NULL));
    CALL(cuStreamBeginCapture_v2, "per-thread-stream", (CU_STREAM_PER_THREAD, GLOBAL));
    see_and_end(CU_STREAM_PER_THREAD, "per-thread", "per-thread-stream");
    CALL(cuStreamBeginCapture_v2_ptsz, "null-stream", (NULL, GLOBAL));
    CALLO(cuStreamEndCapture_ptsz, "null-stream", (NULL, &graph), OUT_C(graph));
    CALL(cuStreamBeginCapture_v2_ptsz, "legacy-stream", (CU_STREAM_LEGACY, GLOBAL));
    CALL(cuStreamBeginCapture_v2, "stale-and-bad-mode", (NULL, (CUstreamCaptureMode)9));
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuStreamBeginCapture_v2, "no-context", (s, GLOBAL));
    CALLO(cuStreamEndCapture, "no-context", (s, &graph), OUT_C(graph));
    CALL(cuStreamBeginCapture_v2, "no-context-null-stream", (NULL, GLOBAL));
}

SCENARIO(begins_twice, "capture/begins-twice", par_context) {
    CUgraph graph;
    CUstream s = par_stream();
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    CALL(cuStreamBeginCapture_v2, "capturing", (s, GLOBAL));
    see_status(s, "s");
    CALL(cuStreamBeginCapture_v2, "capturing-bad-mode", (s, (CUstreamCaptureMode)7));
    CALL(cuStreamBeginCapture, "v1-capturing", (s));
    see_and_end(s, "s", "after-second-begin");
    CALLO(cuStreamEndCapture, "twice", (s, &graph), OUT_C(graph));
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    CALL(cuStreamEndCapture, "null-out", (s, NULL));
    see_status(s, "s");
    CALLO(cuStreamEndCapture, "after-null-out", (s, &graph), OUT_C(graph));
    CALL(cuStreamEndCapture, "not-capturing-null-out", (s, NULL));
    CALLO(cuStreamEndCapture, "legacy-stream", (CU_STREAM_LEGACY, &graph), OUT_C(graph));
    CALLO(cuStreamEndCapture, "per-thread-stream", (CU_STREAM_PER_THREAD, &graph), OUT_C(graph));
}

/* With work queued before the capture: it is no part of it. */
SCENARIO(begins_busy, "capture/begins-busy", par_context) {
    unsigned char byte = 9;
    CUstream s = par_stream();
    CUdeviceptr d = par_alloc(16);
    SETUP(cuMemsetD8_v2, (d, 1, 16));
    par_hold(s);
    SETUP(cuMemsetD8Async, (d, 2, 16, s));
    CALL(cuStreamBeginCapture_v2, "held", (s, RELAXED));
    CALL(cuMemsetD8Async, "captured", (d, 3, 16, s));
    par_release();
    end_and_see(s, "released");
    CALL(cuStreamSynchronize, "after", (s));
    SETUP(cuMemcpyDtoH_v2, (&byte, d, 1));
    par_see("content", "%d", byte);
}

static void info_of(const char *cls, CUstream s) {
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph graph;
    const CUgraphNode *nodes;
    const CUgraphEdgeData *edges;
    size_t count;
    CALLO(cuStreamGetCaptureInfo, cls, (s, &status, &id), OUT_I(status), OUT_C(id));
    CALLO(cuStreamGetCaptureInfo_v2, cls, (s, &status, &id, &graph, &nodes, &count), OUT_I(status),
          OUT_C(id), OUT_C(graph), OUT_C(nodes), OUT_U(count));
    CALLO(cuStreamGetCaptureInfo_v3, cls, (s, &status, &id, &graph, &nodes, &edges, &count),
          OUT_I(status), OUT_C(id), OUT_C(graph), OUT_C(nodes), OUT_C(edges), OUT_U(count));
    if (par_last() == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE && count > 0)
        par_see("edge", "%d %d %d", edges[0].from_port, edges[0].to_port, edges[0].type);
}

SCENARIO(info, "capture/info", par_context) {
    CUstreamCaptureStatus status;
    cuuint64_t id, second;
    CUgraph graph;
    const CUgraphNode *nodes;
    const CUgraphEdgeData *edges;
    size_t count;
    CUstream s = par_stream();
    CUstream fresh = par_stream();
    CUdeviceptr d = par_alloc(16);
    info_of("not-capturing", s);
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    info_of("empty", s);
    SETUP(cuMemsetD8Async, (d, 1, 16, s));
    info_of("one-node", s);
    SETUP(cuMemsetD8Async, (d, 2, 16, s));
    info_of("two-nodes", s);
    info_of("other-stream", fresh);
    CALL(cuStreamGetCaptureInfo, "null-status", (s, NULL, &id));
    CALLO(cuStreamGetCaptureInfo, "null-id", (s, &status, NULL), OUT_I(status));
    CALL(cuStreamGetCaptureInfo_v2, "null-status", (s, NULL, &id, &graph, &nodes, &count));
    CALLO(cuStreamGetCaptureInfo_v2, "null-rest", (s, &status, NULL, NULL, NULL, NULL),
          OUT_I(status));
    CALLO(cuStreamGetCaptureInfo_v2, "null-count", (s, &status, &id, &graph, &nodes, NULL),
          OUT_I(status), OUT_C(nodes));
    CALLO(cuStreamGetCaptureInfo_v2, "null-nodes", (s, &status, &id, &graph, NULL, &count),
          OUT_I(status), OUT_U(count));
    CALLO(cuStreamGetCaptureInfo_v3, "null-edges", (s, &status, &id, &graph, &nodes, NULL, &count),
          OUT_I(status), OUT_U(count));
    CALLO(cuStreamGetCaptureInfo_v3, "null-nodes-with-edges",
          (s, &status, &id, &graph, NULL, &edges, &count), OUT_I(status), OUT_U(count));
    CALLO(cuStreamGetCaptureInfo_v3, "null-rest", (s, &status, NULL, NULL, NULL, NULL, NULL),
          OUT_I(status));
    CALLO(cuStreamGetCaptureInfo_v2_ptsz, "ok", (s, &status, &id, &graph, &nodes, &count),
          OUT_I(status), OUT_U(count));
    CALLO(cuStreamGetCaptureInfo_v3_ptsz, "ok", (s, &status, &id, &graph, &nodes, &edges, &count),
          OUT_I(status), OUT_U(count));
    SETUP(cuStreamGetCaptureInfo, (s, &status, &id));
    end_and_see(s, "ok");
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    SETUP(cuStreamGetCaptureInfo, (s, &status, &second));
    par_see("ids", "%s", second > id ? "grow" : second == id ? "same" : "shrink");
    CALL(cuStreamQuery, "invalidates", (s));
    info_of("invalidated", s);
    end_and_see(s, "invalidated");
}

/* ---- What becomes a node -------------------------------------------------------------------- */

static CUDA_MEMCPY3D box(CUdeviceptr from, CUdeviceptr to) {
    CUDA_MEMCPY3D c = {FROM_DEVICE(from), TO_DEVICE(to),  .srcPitch = 16,    .dstPitch = 16,
                       .srcHeight = 2,    .dstHeight = 2, EXTENT_3D(8, 2, 2)};
    return c;
}

static CUDA_MEMCPY2D plane(CUdeviceptr from, CUdeviceptr to) {
    CUDA_MEMCPY2D c = {FROM_DEVICE(from), TO_DEVICE(to), .srcPitch = 16, .dstPitch = 16,
                       EXTENT(8, 2)};
    return c;
}

SCENARIO(nodes, "capture/nodes", par_context) {
    static int calls;
    CUdeviceptr d, at;
    static char plain[64];
    CUstream s = par_stream();
    d = par_alloc(4096);
    char *pinned = par_pinned(4096);
    SETUP(cuMemHostGetDevicePointer_v2, (&at, pinned, 0));
    CUDA_MEMCPY2D flat = plane(d, d + 1024);
    CUDA_MEMCPY3D deep = box(d, d + 1024);
    SETUP(cuMemsetD8_v2, (d, 7, 4096));
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    CALL(cuMemcpyAsync, "captured", (d, d + 64, 16, s));
    CALL(cuMemcpyHtoDAsync_v2, "captured-pinned", (d, pinned, 16, s));
    CALL(cuMemcpyHtoDAsync_v2, "captured-pageable", (d, plain, 16, s));
    CALL(cuMemcpyDtoHAsync_v2, "captured-pinned", (pinned, d, 16, s));
    CALL(cuMemcpyDtoHAsync_v2, "captured-pageable", (plain, d, 16, s));
    CALL(cuMemcpyDtoDAsync_v2, "captured", (d + 128, d, 16, s));
    CALL(cuMemcpy2DAsync_v2, "captured", (&flat, s));
    CALL(cuMemcpy3DAsync_v2, "captured", (&deep, s));
    CALL(cuMemcpyPeerAsync, "captured", (d, par.primary, d + 64, par.primary, 16, s));
    CALL(cuMemsetD8Async, "captured", (d, 1, 16, s));
    CALL(cuMemsetD16Async, "captured", (d, 1, 8, s));
    CALL(cuMemsetD32Async, "captured", (d, 1, 4, s));
    CALL(cuMemsetD2D8Async, "captured", (d, 64, 1, 16, 4, s));
    CALL(cuMemsetD2D32Async, "captured", (d, 64, 1, 4, 4, s));
    CALL(cuLaunchHostFunc, "captured", (s, count_call, &calls));
    CALL(cuStreamWriteValue32_v2, "captured", (s, at, 5, 0));
    CALL(cuStreamWaitValue32_v2, "captured", (s, at, 5, CU_STREAM_WAIT_VALUE_EQ));
    CALL(cuStreamWriteValue64_v2, "captured", (s, at + 8, 5, 0));
    CALL(cuMemsetD8Async, "zero-size", (d, 1, 0, s));
    CALL(cuMemcpyDtoDAsync_v2, "zero-size", (d, d + 64, 0, s));
    see_and_end(s, "s", "ok");
    unsigned char byte = 0;
    SETUP(cuMemcpyDtoH_v2, (&byte, d, 1));
    par_see("not-run", "%d %d", byte, calls);
}

SCENARIO(launched, "capture/launched", par_context) {
    static int calls;
    CUgraph graph;
    unsigned char bytes[4];
    CUstream s = par_stream();
    CUdeviceptr d = par_alloc(64);
    SETUP(cuMemsetD8_v2, (d, 7, 64));
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    SETUP(cuMemsetD8Async, (d, 1, 16, s));
    SETUP(cuMemcpyDtoDAsync_v2, (d + 32, d, 2, s));
    SETUP(cuLaunchHostFunc, (s, count_call, &calls));
    CALLO(cuStreamEndCapture, "ok", (s, &graph), OUT_C(graph));
    CUgraphExec exec = par_instantiate(graph);
    CALL(cuGraphLaunch, "captured-graph", (exec, s));
    CALL(cuGraphLaunch, "captured-graph", (exec, s));
    CALL(cuStreamSynchronize, "launched", (s));
    SETUP(cuMemcpyDtoH_v2, (bytes, d + 31, 4));
    par_see("content", "%d %d %d %d calls %d", bytes[0], bytes[1], bytes[2], bytes[3], calls);
    /* A captured launch is a child graph. */
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    CALL(cuGraphLaunch, "captured", (exec, s));
    CALL(cuGraphUpload, "captured", (exec, s));
    see_and_end(s, "s", "ok");
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    CALL(cuGraphLaunch, "captured", (exec, s));
    end_and_see(s, "ok");
}

SCENARIO(batches, "capture/batches", par_context) {
    CUstreamBatchMemOpParams ops[2];
    CUstream s = par_stream();
    void *pinned = par_pinned(4096);
    CUdeviceptr at = PAR_MADE(CUdeviceptr, cuMemHostGetDevicePointer_v2, pinned, 0);
    memset(ops, 0, sizeof(ops));
    ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[0].writeValue.address = at;
    ops[0].writeValue.value = 21;
    ops[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[1].waitValue.address = at;
    ops[1].waitValue.value = 21;
    ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    CALL(cuStreamBatchMemOp_v2, "captured", (s, 2, ops, 0));
    CALL(cuStreamBatchMemOp_v2, "captured-one", (s, 1, ops, 0));
    CALL(cuStreamBatchMemOp_v2, "captured-zero", (s, 0, ops, 0));
    see_status(s, "s");
    CALL(cuStreamBatchMemOp_v2, "captured-bad-flags", (s, 1, ops, 9));
    see_status(s, "s");
    ops[0].operation = (CUstreamBatchMemOpType)99;
    CALL(cuStreamBatchMemOp_v2, "captured-bad-operation", (s, 1, ops, 0));
    see_status(s, "s");
    CALL(cuStreamWriteValue32_v2, "captured-misaligned", (s, at + 2, 1, 0));
    see_status(s, "s");
    CALL(cuStreamWaitValue32_v2, "captured-bad-flags", (s, at, 1, 0x80));
    see_and_end(s, "s", "ok");
}

SCENARIO(memory, "capture/memory", par_context) {
    CUdeviceptr p, second, plain, async_plain;
    CUgraph graph;
    CUstream s = par_stream();
    plain = par_alloc(64);
    CUmemoryPool pool = PAR_MADE(CUmemoryPool, cuDeviceGetDefaultMemPool, par.dev);
    SETUP(cuMemAllocAsync, (&async_plain, 64, s));
    SETUP(cuStreamSynchronize, (s));
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    CALLO(cuMemAllocAsync, "captured", (&p, 1000, s), OUT_R(p, 1000));
    CALLO(cuMemAllocFromPoolAsync, "captured", (&second, 1000, pool, s), OUT_C(second));
    CALLO(cuMemAllocAsync, "captured-zero", (&second, 0, s), OUT_C(second));
    see_status(s, "s");
    CALL(cuMemAllocAsync, "captured-null-out", (NULL, 64, s));
    see_status(s, "s");
    CALL(cuMemsetD8Async, "graph-memory", (p, 5, 1000, s));
    CALL(cuMemFreeAsync, "graph-memory", (p, s));
    see_status(s, "s");
    CALL(cuMemFreeAsync, "graph-memory-twice", (p, s));
    see_and_end(s, "s", "ok");
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    CALL(cuMemFreeAsync, "plain-memory", (plain, s));
    see_and_end(s, "s", "ok");
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    CALL(cuMemFreeAsync, "pool-memory", (async_plain, s));
    see_and_end(s, "s", "ok");
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    CALL(cuMemFreeAsync, "null", (0, s));
    see_status(s, "s");
    CALL(cuMemFreeAsync, "random", (0x1000, s));
    see_and_end(s, "s", "ok");
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    SETUP(cuMemAllocAsync, (&p, 1 << 20, s));
    SETUP(cuMemsetD8Async, (p, 6, 1 << 20, s));
    SETUP(cuStreamEndCapture, (s, &graph));
    CUgraphExec exec = par_instantiate(graph);
    CALL(cuGraphLaunch, "allocates", (exec, s));
    CALL(cuStreamSynchronize, "allocated", (s));
    unsigned char byte = 0;
    CALL(cuMemcpyDtoH_v2, "graph-memory", (&byte, p, 1));
    par_see("content", "%d", byte);
    CALL(cuMemFreeAsync, "graph-memory-outside", (p, s));
    CALL(cuStreamSynchronize, "freed", (s));
}

/* ---- What does not -------------------------------------------------------------------------- */

#define REFUSAL(calls)                                                                             \
    do {                                                                                           \
        SETUP(cuStreamBeginCapture_v2, (s, RELAXED));                                              \
        calls;                                                                                     \
        see_status(s, "s");                                                                        \
        end_and_see(s, "after");                                                                   \
    } while (0)

SCENARIO(refused, "capture/refused", par_context) {
    unsigned flags;
    int priority;
    unsigned long long id;
    CUcontext ctx;
    CUdevice dev;
    CUstreamAttrValue value;
    CUstream s = par_stream();
    CUstream t = par_stream();
    CUdeviceptr d = par_alloc(64);
    CUdeviceptr m = par_managed(4096);
    CUevent e = par_event(0);
    memset(&value, 0, sizeof(value));
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, par.dev};
    REFUSAL(CALL(cuStreamQuery, "captured", (s)));
    REFUSAL(CALL(cuStreamSynchronize, "captured", (s)));
    REFUSAL(CALL(cuCtxSynchronize, "captured", ()));
    REFUSAL(CALL(cuStreamAddCallback, "captured", (s, no_callback, NULL, 0)));
    REFUSAL(CALL(cuStreamAddCallback, "captured-bad-flags", (s, no_callback, NULL, 1)));
    REFUSAL(CALL(cuStreamAttachMemAsync, "captured", (s, m, 0, CU_MEM_ATTACH_SINGLE)));
    REFUSAL(CALL(cuMemPrefetchAsync_v2, "captured", (m, 4096, location, 0, s)));
    REFUSAL(CALL(cuStreamGetFlags, "captured", (s, &flags)));
    REFUSAL(CALL(cuStreamGetPriority, "captured", (s, &priority)));
    REFUSAL(CALL(cuStreamGetId, "captured", (s, &id)));
    REFUSAL(CALL(cuStreamGetCtx, "captured", (s, &ctx)));
    REFUSAL(CALL(cuStreamGetDevice, "captured", (s, &dev)));
    REFUSAL(CALL(cuStreamSetAttribute, "captured", (s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value)));
    REFUSAL(CALL(cuStreamGetAttribute, "captured", (s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value)));
    REFUSAL(CALL(cuStreamCopyAttributes, "captured", (s, t)));
    REFUSAL(CALL(cuStreamCopyAttributes, "from-captured", (t, s)));
    REFUSAL(CALL(cuMemsetD8Async, "random", (0x1000, 1, 16, s)));
    REFUSAL(CALL(cuMemcpyHtoDAsync_v2, "random", (0x1000, &flags, 4, s)));
    REFUSAL(CALL(cuMemcpyDtoDAsync_v2, "past-end", (d, d + 64, 128 << 20, s)));
    REFUSAL(CALL(cuLaunchHostFunc, "null-function", (s, NULL, NULL)));
    REFUSAL(CALL(cuEventRecord, "null-event", (NULL, s)));
    REFUSAL(CALL(cuStreamWaitEvent, "null-event", (s, NULL, 0)));
    REFUSAL(CALL(cuStreamWaitEvent, "bad-flags", (s, e, 8)));
    REFUSAL(CALL(cuEventRecordWithFlags, "bad-flags", (e, s, 8)));
    REFUSAL(CALL(cuCtxRecordEvent, "captured", (par.primary, e)));
    REFUSAL(CALL(cuCtxWaitEvent, "captured", (par.primary, e)));
    REFUSAL(CALL(cuStreamBeginCapture_v2, "captured", (s, GLOBAL)));
    REFUSAL(CALL(cuStreamUpdateCaptureDependencies, "bad-flags", (s, NULL, 0, 5)));
}

/* After the capture was invalidated. */
SCENARIO(invalidated, "capture/invalidated", par_context) {
    static int calls;
    CUdeviceptr d, p;
    unsigned flags;
    CUstreamAttrValue value;
    CUstream s = par_stream();
    CUstream t = par_stream();
    d = par_alloc(64);
    CUevent e = par_event(0);
    memset(&value, 0, sizeof(value));
    SETUP(cuStreamBeginCapture_v2, (s, RELAXED));
    CALL(cuStreamQuery, "captured", (s));
    CALL(cuStreamQuery, "invalidated", (s));
    CALL(cuStreamSynchronize, "invalidated", (s));
    CALL(cuMemsetD8Async, "invalidated", (d, 1, 16, s));
    CALL(cuMemcpyDtoDAsync_v2, "invalidated", (d, d + 32, 16, s));
    CALL(cuLaunchHostFunc, "invalidated", (s, count_call, &calls));
    CALL(cuStreamAddCallback, "invalidated", (s, no_callback, NULL, 0));
    CALL(cuEventRecord, "invalidated", (e, s));
    CALL(cuStreamWaitEvent, "invalidated", (s, e, 0));
    CALL(cuEventQuery, "recorded-invalidated", (e));
    CALLO(cuMemAllocAsync, "invalidated", (&p, 64, s), OUT_C(p));
    CALL(cuMemFreeAsync, "invalidated", (d, s));
    CALL(cuCtxSynchronize, "invalidated", ());
    CALL(cuStreamSynchronize, "other", (t));
    CALLO(cuMemAlloc_v2, "invalidated", (&p, 64), OUT_C(p));
    CALL(cuStreamGetFlags, "invalidated", (s, &flags));
    CALL(cuStreamSetAttribute, "invalidated", (s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    CALL(cuStreamUpdateCaptureDependencies, "invalidated", (s, NULL, 0, 0));
    CALL(cuStreamBeginCapture_v2, "invalidated", (s, GLOBAL));
    see_and_end(s, "s", "invalidated");
    see_status(s, "s");
    CALL(cuMemsetD8Async, "ended", (d, 1, 16, s));
    CALL(cuStreamSynchronize, "ended", (s));
    /* In global mode the thread's other calls: does an invalidated capture still forbid them? */
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    CALL(cuStreamQuery, "captured", (s));
    CALLO(cuMemAlloc_v2, "invalidated-global", (&p, 64), OUT_C(p));
    CALL(cuStreamQuery, "other-invalidated-global", (t));
    CALL(cuStreamDestroy_v2, "invalidated", (s));
    CALLO(cuMemAlloc_v2, "destroyed-invalidated", (&p, 64), OUT_C(p));
}

/* ---- Updating the dependencies -------------------------------------------------------------- */

static void see_dependencies(CUstream s) {
    CUstreamCaptureStatus status;
    const CUgraphNode *list = NULL;
    const CUgraphEdgeData *data = NULL;
    size_t count = 99;
    CUresult result =
        par.api->cuStreamGetCaptureInfo_v3(s, &status, NULL, NULL, &list, &data, &count);
    par_see("dependencies", "%s status %d count %zu", result_text(result), (int)status, count);
}

SCENARIO(updates, "capture/updates", par_context) {
    CUgraph graph, foreign;
    CUgraphNode a, b, other, removed;
    CUstreamCaptureStatus status;
    CUstream s = par_stream();
    CUstream idle = par_stream();
    CUdeviceptr d = par_alloc(64);
    CUgraphEdgeData data = {0};
    SETUP(cuGraphCreate, (&foreign, 0));
    SETUP(cuGraphAddEmptyNode, (&other, foreign, NULL, 0));
    CALL(cuStreamUpdateCaptureDependencies, "not-capturing", (idle, NULL, 0, 0));
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    SETUP(cuStreamGetCaptureInfo_v2, (s, &status, NULL, &graph, NULL, NULL));
    CALL(cuGraphAddEmptyNode, "graph-in-capture", (&a, graph, NULL, 0));
    CALL(cuGraphAddEmptyNode, "graph-in-capture", (&b, graph, NULL, 0));
    see_dependencies(s);
    CALL(cuStreamUpdateCaptureDependencies, "add", (s, &a, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    see_dependencies(s);
    CALL(cuStreamUpdateCaptureDependencies, "add-same", (s, &a, 1, 0));
    see_dependencies(s);
    CALL(cuStreamUpdateCaptureDependencies, "add-second", (s, &b, 1, 0));
    see_dependencies(s);
    CALL(cuMemsetD8Async, "after-two", (d, 1, 16, s));
    see_dependencies(s);
    CALL(cuStreamUpdateCaptureDependencies, "set", (s, &a, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    see_dependencies(s);
    CALL(cuStreamUpdateCaptureDependencies, "set-none", (s, NULL, 0, 1));
    see_dependencies(s);
    CALL(cuStreamUpdateCaptureDependencies, "null-with-count", (s, NULL, 1, 0));
    CALL(cuStreamUpdateCaptureDependencies, "bad-flags", (s, &a, 1, 2));
    CALL(cuStreamUpdateCaptureDependencies, "foreign-node", (s, &other, 1, 0));
    see_status(s, "s");
    CUgraphNode twice[2] = {a, a};
    CALL(cuStreamUpdateCaptureDependencies, "twice", (s, twice, 2, 0));
    see_dependencies(s);
    CALL(cuStreamUpdateCaptureDependencies, "set-twice", (s, twice, 2, 1));
    see_dependencies(s);
    CALL(cuStreamUpdateCaptureDependencies_v2, "null-data", (s, &b, NULL, 1, 1));
    see_dependencies(s);
    CALL(cuStreamUpdateCaptureDependencies_v2, "zero-data", (s, &a, &data, 1, 0));
    see_dependencies(s);
    data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    CALL(cuStreamUpdateCaptureDependencies_v2, "programmatic", (s, &b, &data, 1, 1));
    see_dependencies(s);
    data.type = 9;
    CALL(cuStreamUpdateCaptureDependencies_v2, "bad-type", (s, &b, &data, 1, 1));
    data.type = 0;
    data.from_port = 1;
    CALL(cuStreamUpdateCaptureDependencies_v2, "from-port", (s, &b, &data, 1, 1));
    data.from_port = 0;
    data.to_port = 1;
    CALL(cuStreamUpdateCaptureDependencies_v2, "to-port", (s, &b, &data, 1, 1));
    data.to_port = 0;
    data.reserved[0] = 1;
    CALL(cuStreamUpdateCaptureDependencies_v2, "reserved", (s, &b, &data, 1, 1));
    see_dependencies(s);
    CALL(cuMemsetD8Async, "after", (d, 1, 16, s));
    see_dependencies(s);
    CALL(cuStreamUpdateCaptureDependencies_ptsz, "ok", (s, &a, 1, 1));
    CALL(cuStreamUpdateCaptureDependencies_v2_ptsz, "ok", (s, &a, NULL, 1, 1));
    SETUP(cuGraphAddEmptyNode, (&removed, graph, NULL, 0));
    CALL(cuStreamUpdateCaptureDependencies, "set", (s, &removed, 1, 1));
    CALL(cuGraphDestroyNode, "dependency", (removed));
    see_status(s, "s");
    see_dependencies(s);
    end_and_see(s, "ok");
}

SCENARIO(graph_during, "capture/graph-during", par_context) {
    CUgraph graph, clone;
    CUgraphExec exec;
    CUgraphNode nodes_seen[4], node;
    CUstreamCaptureStatus status;
    size_t count = 4;
    CUstream s = par_stream();
    CUdeviceptr d = par_alloc(64);
    SETUP(cuStreamBeginCapture_v2, (s, RELAXED));
    SETUP(cuMemsetD8Async, (d, 1, 16, s));
    SETUP(cuMemsetD8Async, (d, 2, 16, s));
    SETUP(cuStreamGetCaptureInfo_v2, (s, &status, NULL, &graph, NULL, NULL));
    CALLO(cuGraphGetNodes, "in-capture", (graph, nodes_seen, &count), IO_U(count));
    CALL(cuGraphInstantiateWithFlags, "in-capture", (&exec, graph, 0));
    see_status(s, "s");
    CALL(cuGraphClone, "in-capture", (&clone, graph));
    CALL(cuGraphAddEmptyNode, "in-capture", (&node, graph, NULL, 0));
    CALL(cuGraphAddDependencies, "in-capture", (graph, &nodes_seen[1], &node, 1));
    CALL(cuGraphRemoveDependencies, "in-capture", (graph, &nodes_seen[1], &node, 1));
    CALL(cuGraphDestroyNode, "in-capture", (node));
    see_status(s, "s");
    CALL(cuGraphDestroyNode, "last-in-capture", (nodes_seen[1]));
    see_status(s, "s");
    CALL(cuGraphDestroy, "in-capture", (graph));
    see_and_end(s, "s", "after");
}

/* ---- Into a graph --------------------------------------------------------------------------- */

SCENARIO(to_graph, "capture/to-graph", par_context) {
    CUgraph graph, ended = NULL, foreign;
    CUgraphExec exec;
    CUstream s = par_stream();
    CUstream t = par_stream();
    CUdeviceptr d = par_alloc(64);
    CUgraphEdgeData data = {0};
    SETUP(cuGraphCreate, (&graph, 0));
    SETUP(cuGraphCreate, (&foreign, 0));
    CUgraphNode a = PAR_MADE(CUgraphNode, cuGraphAddEmptyNode, graph, NULL, 0);
    CUgraphNode b = PAR_MADE(CUgraphNode, cuGraphAddEmptyNode, graph, NULL, 0);
    CUgraphNode other = PAR_MADE(CUgraphNode, cuGraphAddEmptyNode, foreign, NULL, 0);
    CUgraphNode both[2] = {a, b};
    CALL(cuStreamBeginCaptureToGraph, "null-graph", (s, NULL, NULL, NULL, 0, GLOBAL));
    CALL(cuStreamBeginCaptureToGraph, "null-nodes-with-count", (s, graph, NULL, NULL, 1, GLOBAL));
    CALL(cuStreamBeginCaptureToGraph, "foreign-node", (s, graph, &other, NULL, 1, GLOBAL));
    CALL(cuStreamBeginCaptureToGraph, "bad-mode",
         (s, graph, NULL, NULL, 0, (CUstreamCaptureMode)7));
    CALL(cuStreamBeginCaptureToGraph, "legacy-stream",
         (CU_STREAM_LEGACY, graph, NULL, NULL, 0, GLOBAL));
    see_status(s, "s");
    CALL(cuStreamBeginCaptureToGraph, "ok", (s, graph, both, NULL, 2, GLOBAL));
    see_dependencies(s);
    CALL(cuStreamBeginCaptureToGraph, "capturing", (s, graph, NULL, NULL, 0, GLOBAL));
    CALL(cuStreamBeginCaptureToGraph, "same-graph", (t, graph, NULL, NULL, 0, GLOBAL));
    see_status(s, "s");
    see_status(t, "t");
    CALL(cuMemsetD8Async, "captured", (d, 1, 16, s));
    CALL(cuGraphInstantiateWithFlags, "in-capture", (&exec, graph, 0));
    CALL(cuStreamEndCapture, "ok", (s, &ended));
    par_see("graph", "%s", ended == graph ? "same" : "other");
    see_graph(graph);
    if (par.api->cuStreamEndCapture(t, &ended) == CUDA_SUCCESS)
        par_see("second", "ended");
    CALL(cuStreamBeginCaptureToGraph, "again", (s, graph, &a, &data, 1, GLOBAL));
    CALL(cuMemsetD8Async, "captured", (d, 1, 16, s));
    CALL(cuMemsetD8Async, "captured", (d, 1, 16, s));
    CALL(cuStreamEndCapture, "ok", (s, &ended));
    see_graph(graph);
    data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    CALL(cuStreamBeginCaptureToGraph, "programmatic", (s, graph, &a, &data, 1, GLOBAL));
    if (par_last() == CUDA_SUCCESS) {
        CALL(cuMemsetD8Async, "after-programmatic", (d, 1, 16, s));
        see_and_end(s, "s", "programmatic");
        return;
    }
    CALL(cuStreamBeginCaptureToGraph_ptsz, "ok", (s, graph, NULL, NULL, 0, GLOBAL));
    CALL(cuStreamQuery, "invalidates", (s));
    CALLO(cuStreamEndCapture, "invalidated", (s, &ended), OUT_C(ended));
    see_graph(graph);
    CALL(cuGraphDestroy, "after-invalidated", (graph));
}

SCENARIO(to_graph_twice, "capture/to-graph-twice", par_context) {
    CUstream s = par_stream();
    CUgraph graph = par_graph();
    CUgraphNode a = PAR_MADE(CUgraphNode, cuGraphAddEmptyNode, graph, NULL, 0);
    CUgraphNode twice[2] = {a, a};
    CALL(cuStreamBeginCaptureToGraph, "twice", (s, graph, twice, NULL, 2, GLOBAL));
    if (par_last() == CUDA_SUCCESS) {
        see_dependencies(s);
        end_and_see(s, "ok");
    }
}

SCENARIO(to_graph_destroyed, "capture/to-graph-destroyed", par_context) {
    CUgraph graph, ended;
    CUstream s = par_stream();
    SETUP(cuGraphCreate, (&graph, 0));
    SETUP(cuStreamBeginCaptureToGraph, (s, graph, NULL, NULL, 0, GLOBAL));
    CALL(cuGraphDestroy, "in-capture", (graph));
    see_status(s, "s");
    CALLO(cuStreamEndCapture, "graph-destroyed", (s, &ended), OUT_C(ended));
}

/* ---- A thread's mode ------------------------------------------------------------------------ */

SCENARIO(exchange, "capture/exchange", par_context) {
    static const int modes[] = {2, 1, 0, 1, 7, -1, 0};
    CUstreamCaptureMode mode;
    for (size_t i = 0; i < COUNT(modes); i++) {
        mode = (CUstreamCaptureMode)modes[i];
        par_note("mode=%d", modes[i]);
        CALLO(cuThreadExchangeStreamCaptureMode, "mode", (&mode), IO_I(mode));
    }
}

static void *end_elsewhere(void *data) {
    CUgraph graph = NULL;
    par.api->cuCtxSetCurrent(par.primary);
    CALLO(cuStreamEndCapture, "other-thread", ((CUstream)data, &graph), OUT_C(graph));
    return NULL;
}

static void *use_elsewhere(void *data) {
    CUdeviceptr d;
    par.api->cuCtxSetCurrent(par.primary);
    par.api->cuMemAllocAsync(&d, 64, (CUstream)data);
    CALL(cuMemsetD8Async, "other-thread", (d, 1, 16, (CUstream)data));
    CALL(cuStreamQuery, "other-thread", ((CUstream)data));
    return NULL;
}

static void in_thread(void *(*function)(void *), void *data) {
    pthread_t thread;
    pthread_create(&thread, NULL, function, data);
    pthread_join(thread, NULL);
}

SCENARIO(wrong_thread, "capture/wrong-thread", par_context) {
    CUstream s = par_stream();
    for (int mode = 0; mode < 3; mode++) {
        SETUP(cuStreamBeginCapture_v2, (s, (CUstreamCaptureMode)mode));
        par_note("mode=%d", mode);
        in_thread(end_elsewhere, s);
        see_status(s, "s");
        if (mode < 2)
            end_and_see(s, "own-thread");
    }
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    in_thread(use_elsewhere, s);
    see_and_end(s, "s", "used-elsewhere");
}

static void *begin_here(void *data) {
    par.api->cuCtxSetCurrent(par.primary);
    CALL(cuStreamBeginCapture_v2, "ending-thread", ((CUstream)data, GLOBAL));
    return NULL;
}

/* The thread that began is gone. */
SCENARIO(thread_gone, "capture/thread-gone", par_context) {
    CUdeviceptr p;
    CUstream s = par_stream();
    in_thread(begin_here, s);
    see_status(s, "s");
    CALLO(cuMemAlloc_v2, "thread-gone", (&p, 64), OUT_C(p));
    see_and_end(s, "s", "thread-gone");
    CALL(cuStreamDestroy_v2, "thread-gone", (s));
    CALLO(cuMemAlloc_v2, "destroyed", (&p, 64), OUT_C(p));
}
