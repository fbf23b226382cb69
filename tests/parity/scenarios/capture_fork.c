/* Capture across streams: forks, joins, events, the legacy stream, and things that end meanwhile.
 */
#include "capture_seen.h"

static const CUstreamCaptureMode GLOBAL = CU_STREAM_CAPTURE_MODE_GLOBAL;
static const CUstreamCaptureMode RELAXED = CU_STREAM_CAPTURE_MODE_RELAXED;

static void CUDAAPI nothing(void *unused) {
}

static void see_status(CUstream s, const char *which) {
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)9;
    cuuint64_t id = 0;
    size_t count = 99;
    CUresult result = par.api->cuStreamGetCaptureInfo_v3(s, &status, &id, NULL, NULL, NULL, &count);
    par_see("status", "%s %s %d id %s dependencies %zu", which, result_text(result), (int)status,
            id != 0 ? "set" : "zero", count);
}

static void see_and_end(CUstream s, const char *which, const char *cls) {
    see_status(s, which);
    end_and_see(s, cls);
}

typedef struct fork {
    CUstream s, t, u;
    CUevent e, f;
    CUdeviceptr d;
} fork_ground;

static fork_ground make(void) {
    fork_ground g;
    par_context();
    g.s = par_stream();
    g.t = par_stream();
    g.u = par_stream();
    SETUP(cuEventCreate, (&g.e, 0));
    SETUP(cuEventCreate, (&g.f, CU_EVENT_DISABLE_TIMING));
    g.d = par_alloc(256);
    return g;
}

#define SET(stream, offset) SETUP(cuMemsetD8Async, (g.d + (offset), 1, 16, stream))

/* g.s captures a set, behind which g.t takes part. */
static void capture_fork(const fork_ground *g) {
    SETUP(cuStreamBeginCapture_v2, (g->s, GLOBAL));
    SETUP(cuMemsetD8Async, (g->d, 1, 16, g->s));
    SETUP(cuEventRecord, (g->e, g->s));
    SETUP(cuStreamWaitEvent, (g->t, g->e, 0));
}

SCENARIO(joins, "capture/joins") {
    fork_ground g = make();
    cuuint64_t a, b;
    CUstreamCaptureStatus status;
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    SET(g.s, 0);
    CALL(cuEventRecord, "captured", (g.e, g.s));
    see_status(g.t, "t");
    CALL(cuStreamWaitEvent, "forks", (g.t, g.e, 0));
    see_status(g.t, "t");
    SETUP(cuStreamGetCaptureInfo, (g.s, &status, &a));
    SETUP(cuStreamGetCaptureInfo, (g.t, &status, &b));
    par_see("ids", "%s", a == b ? "same" : "other");
    SET(g.t, 16);
    SET(g.s, 32);
    see_status(g.t, "t");
    CALL(cuEventRecord, "captured-fork", (g.f, g.t));
    CALL(cuStreamWaitEvent, "joins", (g.s, g.f, 0));
    see_status(g.s, "s");
    see_status(g.t, "t");
    CALL(cuStreamWaitEvent, "joins-again", (g.s, g.f, 0));
    see_status(g.s, "s");
    SET(g.s, 48);
    see_status(g.s, "s");
    CALL(cuStreamWaitEvent, "older", (g.s, g.e, 0));
    see_and_end(g.s, "s", "joined");
    see_status(g.t, "t");
    CALL(cuMemsetD8Async, "after-end", (g.d, 2, 16, g.t));
    CALL(cuStreamSynchronize, "after-end", (g.t));
    CALL(cuEventQuery, "after-end", (g.e));
    CALL(cuEventSynchronize, "after-end", (g.e));
    CALL(cuStreamWaitEvent, "after-end", (g.t, g.e, 0));
    CALL(cuEventRecord, "after-end", (g.e, g.t));
    CALL(cuEventSynchronize, "recorded-again", (g.e));
}

/* A join of a stream that got no node of its own. */
SCENARIO(joins_without_node, "capture/joins-without-node") {
    fork_ground g = make();
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    CALL(cuEventRecord, "empty", (g.e, g.s));
    CALL(cuStreamWaitEvent, "empty", (g.t, g.e, 0));
    see_status(g.t, "t");
    end_and_see(g.s, "fork-without-node");
    capture_fork(&g);
    end_and_see(g.s, "fork-without-node");
    see_status(g.t, "t");
    capture_fork(&g);
    SET(g.s, 16);
    end_and_see(g.s, "fork-without-node-behind");
}

SCENARIO(unjoined, "capture/unjoined") {
    fork_ground g = make();
    capture_fork(&g);
    SET(g.t, 16);
    end_and_see(g.s, "unjoined");
    see_status(g.s, "s");
    see_status(g.t, "t");
    CALL(cuMemsetD8Async, "after-unjoined", (g.d, 1, 16, g.t));
    CALL(cuStreamSynchronize, "after-unjoined", (g.t));
    /* Recorded, but not waited for, is not joined; waited for before more work neither. */
    capture_fork(&g);
    SET(g.t, 16);
    SETUP(cuEventRecord, (g.f, g.t));
    SETUP(cuStreamWaitEvent, (g.s, g.f, 0));
    SET(g.t, 32);
    end_and_see(g.s, "work-behind-join");
    /* Joined by way of a third stream. */
    capture_fork(&g);
    SETUP(cuStreamWaitEvent, (g.u, g.e, 0));
    SET(g.t, 16);
    SETUP(cuEventRecord, (g.f, g.t));
    SETUP(cuStreamWaitEvent, (g.u, g.f, 0));
    SET(g.u, 32);
    SETUP(cuEventRecord, (g.e, g.u));
    SETUP(cuStreamWaitEvent, (g.s, g.e, 0));
    end_and_see(g.s, "joined-through-third");
    /* Removed from the dependencies on purpose. */
    capture_fork(&g);
    SET(g.t, 16);
    SETUP(cuStreamUpdateCaptureDependencies, (g.t, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    see_status(g.t, "t");
    end_and_see(g.s, "dependencies-removed");
}

SCENARIO(unmatched, "capture/unmatched") {
    fork_ground g = make();
    capture_fork(&g);
    SET(g.t, 16);
    CALL(cuStreamBeginCapture_v2, "forked", (g.t, GLOBAL));
    end_and_see(g.t, "forked-stream");
    see_status(g.s, "s");
    see_status(g.t, "t");
    end_and_see(g.s, "after-unmatched");
    capture_fork(&g);
    CALL(cuStreamQuery, "forked", (g.t));
    see_status(g.s, "s");
    see_status(g.t, "t");
    CALL(cuMemsetD8Async, "origin", (g.d, 1, 16, g.s));
    CALL(cuMemsetD8Async, "forked", (g.d, 1, 16, g.t));
    end_and_see(g.t, "forked-invalidated");
    end_and_see(g.s, "invalidated");
    see_status(g.t, "t");
}

SCENARIO(merges, "capture/merges") {
    fork_ground g = make();
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    SETUP(cuStreamBeginCapture_v2, (g.t, GLOBAL));
    SET(g.s, 0);
    SET(g.t, 16);
    SETUP(cuEventRecord, (g.e, g.s));
    CALL(cuStreamWaitEvent, "merges", (g.t, g.e, 0));
    see_status(g.s, "s");
    see_status(g.t, "t");
    CALL(cuMemsetD8Async, "merged", (g.d, 1, 16, g.s));
    CALL(cuMemsetD8Async, "merged", (g.d, 1, 16, g.t));
    end_and_see(g.t, "merged");
    end_and_see(g.s, "merged");
    /* An event of a capture that has ended. */
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    SET(g.s, 0);
    SETUP(cuEventRecord, (g.e, g.s));
    end_and_see(g.s, "ok");
    SETUP(cuStreamBeginCapture_v2, (g.t, GLOBAL));
    SET(g.t, 0);
    CALL(cuStreamWaitEvent, "of-ended-capture", (g.t, g.e, 0));
    see_and_end(g.t, "t", "after");
    CALL(cuStreamWaitEvent, "of-ended-capture-not-capturing", (g.u, g.e, 0));
    /* Of one that was invalidated, and one that is. */
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    SETUP(cuEventRecord, (g.e, g.s));
    CALL(cuStreamQuery, "invalidates", (g.s));
    CALL(cuStreamWaitEvent, "of-invalidated-capture", (g.u, g.e, 0));
    CALL(cuEventQuery, "of-invalidated-capture", (g.e));
    CALL(cuEventRecord, "of-invalidated-capture-elsewhere", (g.e, g.u));
    end_and_see(g.s, "after");
}

SCENARIO(isolation, "capture/isolation") {
    fork_ground g = make();
    CUevent never = par_event(0);
    CUevent before = par_event(0);
    SETUP(cuEventRecord, (before, g.t));
    SETUP(cuStreamSynchronize, (g.t));
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    CALL(cuStreamWaitEvent, "never-recorded", (g.s, never, 0));
    see_and_end(g.s, "s", "after");
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    CALL(cuStreamWaitEvent, "recorded-outside-complete", (g.s, before, 0));
    see_and_end(g.s, "s", "after");
    par_hold(g.t);
    SETUP(cuEventRecord, (before, g.t));
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    CALL(cuStreamWaitEvent, "recorded-outside-pending", (g.s, before, 0));
    see_and_end(g.s, "s", "after");
    SETUP(cuEventRecord, (before, g.s));
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    CALL(cuStreamWaitEvent, "recorded-in-stream-before", (g.s, before, 0));
    see_and_end(g.s, "s", "after");
    par_release();
    /* The other way: a stream that does not capture takes part by waiting, whatever it holds. */
    par_hold(g.t);
    SETUP(cuMemsetD8Async, (g.d, 1, 16, g.t));
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    SETUP(cuEventRecord, (g.e, g.s));
    CALL(cuStreamWaitEvent, "fork-into-busy", (g.t, g.e, 0));
    see_status(g.t, "t");
    end_and_see(g.s, "after");
    PAR_DRAIN("after", g.t);
}

SCENARIO(external, "capture/external") {
    fork_ground g = make();
    CALL(cuEventRecordWithFlags, "external-not-capturing", (g.e, g.s, CU_EVENT_RECORD_EXTERNAL));
    CALL(cuStreamWaitEvent, "external-not-capturing", (g.s, g.e, CU_EVENT_WAIT_EXTERNAL));
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    CALL(cuEventRecordWithFlags, "external", (g.e, g.s, CU_EVENT_RECORD_EXTERNAL));
    CALL(cuStreamWaitEvent, "external", (g.s, g.f, CU_EVENT_WAIT_EXTERNAL));
    CALL(cuStreamWaitEvent, "external-never-recorded", (g.s, g.e, CU_EVENT_WAIT_EXTERNAL));
    see_status(g.s, "s");
    CALL(cuEventQuery, "external-recorded", (g.e));
    CALL(cuEventRecordWithFlags_ptsz, "external", (g.e, g.s, CU_EVENT_RECORD_EXTERNAL));
    CALL(cuEventRecordWithFlags, "default", (g.f, g.s, CU_EVENT_RECORD_DEFAULT));
    CALL(cuStreamWaitEvent, "external-of-captured", (g.s, g.f, CU_EVENT_WAIT_EXTERNAL));
    see_and_end(g.s, "s", "ok");
}

SCENARIO(events, "capture/events") {
    fork_ground g = make();
    CUipcEventHandle handle;
    float ms;
    CUevent timed = par_event(0);
    CUevent interprocess = par_event(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    SETUP(cuEventRecord, (timed, g.u));
    SETUP(cuStreamSynchronize, (g.u));
    SETUP(cuStreamBeginCapture_v2, (g.s, RELAXED));
    SET(g.s, 0);
    SETUP(cuEventRecord, (g.e, g.s));
    CALL(cuEventQuery, "captured", (g.e));
    see_and_end(g.s, "after-query", "after-query");
    SETUP(cuStreamBeginCapture_v2, (g.s, RELAXED));
    SETUP(cuEventRecord, (g.e, g.s));
    CALL(cuEventSynchronize, "captured", (g.e));
    see_and_end(g.s, "after-synchronize", "after-synchronize");
    SETUP(cuStreamBeginCapture_v2, (g.s, RELAXED));
    SETUP(cuEventRecord, (g.e, g.s));
    CALL(cuEventElapsedTime, "captured-start", (&ms, g.e, timed));
    see_status(g.s, "after-elapsed");
    CALL(cuEventElapsedTime, "captured-end", (&ms, timed, g.e));
    see_and_end(g.s, "after-elapsed", "after-elapsed");
    SETUP(cuStreamBeginCapture_v2, (g.s, RELAXED));
    SETUP(cuEventRecord, (g.e, g.s));
    CALL(cuCtxRecordEvent, "captured", (par.primary, g.e));
    see_and_end(g.s, "after-context-record", "after-context-record");
    SETUP(cuStreamBeginCapture_v2, (g.s, RELAXED));
    SETUP(cuEventRecord, (g.e, g.s));
    CALL(cuCtxWaitEvent, "captured", (par.primary, g.e));
    see_and_end(g.s, "after-context-wait", "after-context-wait");
    SETUP(cuStreamBeginCapture_v2, (g.s, RELAXED));
    CALL(cuEventRecord, "interprocess", (interprocess, g.s));
    see_status(g.s, "after-interprocess");
    CALL(cuIpcGetEventHandle, "captured", (&handle, interprocess));
    CALL(cuStreamWaitEvent, "interprocess", (g.s, interprocess, 0));
    see_and_end(g.s, "after-interprocess", "after-interprocess");
    SETUP(cuStreamBeginCapture_v2, (g.s, RELAXED));
    SETUP(cuEventRecord, (g.e, g.s));
    CALL(cuEventRecord, "captured-elsewhere", (g.e, g.u));
    CALL(cuEventSynchronize, "recorded-elsewhere", (g.e));
    see_status(g.s, "after-record-elsewhere");
    SETUP(cuEventRecord, (g.f, g.s));
    CALL(cuStreamWaitEvent, "fork", (g.t, g.f, 0));
    CALL(cuEventDestroy_v2, "captured", (g.f));
    see_status(g.t, "after-destroy");
    end_and_see(g.s, "after-destroy");
}

SCENARIO(legacy, "capture/legacy", par_context) {
    CUstreamCaptureStatus status;
    cuuint64_t id;
    char plain[16];
    CUstream s = par_blocking_stream();
    CUstream t = par_stream();
    CUevent e = par_event(0);
    CUdeviceptr d = par_alloc(64);
#define LEGACY(call)                                                                               \
    do {                                                                                           \
        SETUP(cuStreamBeginCapture_v2, (s, RELAXED));                                              \
        call;                                                                                      \
        see_status(s, "s");                                                                        \
        end_and_see(s, "after");                                                                   \
    } while (0)
    LEGACY(CALLO(cuStreamIsCapturing, "legacy", (CU_STREAM_LEGACY, &status), OUT_I(status)));
    LEGACY(CALLO(cuStreamIsCapturing, "null", (NULL, &status), OUT_I(status)));
    LEGACY(
        CALLO(cuStreamGetCaptureInfo, "legacy", (CU_STREAM_LEGACY, &status, &id), OUT_I(status)));
    LEGACY(CALL(cuStreamQuery, "legacy", (NULL)));
    LEGACY(CALL(cuStreamSynchronize, "legacy", (NULL)));
    LEGACY(CALL(cuMemsetD8Async, "legacy", (d, 1, 16, NULL)));
    LEGACY(CALL(cuMemsetD8_v2, "legacy", (d, 1, 16)));
    LEGACY(CALL(cuMemcpyHtoD_v2, "legacy", (d, plain, 16)));
    LEGACY(CALL(cuMemcpyDtoD_v2, "legacy", (d, d + 16, 16)));
    LEGACY(CALL(cuMemcpyHtoD_v2, "zero-size", (d, plain, 0)));
    LEGACY(CALL(cuMemcpyHtoD_v2, "random", (0x1000, plain, 16)));
    LEGACY(CALL(cuMemsetD8_v2_ptds, "per-thread", (d, 1, 16)));
    LEGACY(CALL(cuMemsetD8Async, "per-thread", (d, 1, 16, CU_STREAM_PER_THREAD)));
    LEGACY(CALL(cuMemsetD8Async, "other", (d, 1, 16, t)));
    LEGACY(CALL(cuEventRecord, "legacy", (e, NULL)));
    LEGACY(CALL(cuStreamWaitEvent, "legacy", (NULL, e, 0)));
    LEGACY(CALL(cuStreamBeginCapture_v2, "legacy", (NULL, GLOBAL)));
    LEGACY(CALL(cuLaunchHostFunc, "legacy", (NULL, nothing, NULL)));
    LEGACY(CALL(cuStreamWriteValue32_v2, "legacy", (NULL, d, 1, 0)));
    LEGACY(CALL(cuMemAllocAsync, "legacy", (&d, 64, NULL)));
    LEGACY(CALL(cuMemFreeAsync, "legacy", (d, NULL)));
    LEGACY(CALL(cuStreamDestroy_v2, "other", (t)));
    LEGACY(CALL(cuCtxSynchronize, "legacy", ()));
    SETUP(cuStreamBeginCapture_v2, (s, RELAXED));
    SETUP(cuEventRecord, (e, s));
    CALL(cuStreamWaitEvent, "legacy-of-captured", (NULL, e, 0));
    see_and_end(s, "s", "after");
}

SCENARIO(per_thread, "capture/per-thread") {
    fork_ground g = make();
    SETUP(cuStreamBeginCapture_v2, (CU_STREAM_PER_THREAD, GLOBAL));
    see_status(CU_STREAM_LEGACY, "legacy");
    CALL(cuMemsetD8_v2_ptds, "captured", (g.d, 1, 16));
    see_status(CU_STREAM_PER_THREAD, "per-thread");
    CALL(cuMemsetD8Async_ptsz, "captured", (g.d, 1, 16, NULL));
    end_and_see(CU_STREAM_PER_THREAD, "ok");
}

SCENARIO(destroys, "capture/destroys") {
    fork_ground g = make();
    CUdeviceptr p;
    capture_fork(&g);
    CALL(cuStreamDestroy_v2, "forked", (g.t));
    see_and_end(g.s, "s", "forked-destroyed");
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    SET(g.s, 0);
    SETUP(cuEventRecord, (g.e, g.s));
    SETUP(cuStreamWaitEvent, (g.u, g.e, 0));
    SET(g.u, 16);
    CALL(cuStreamDestroy_v2, "forked-with-work", (g.u));
    see_and_end(g.s, "s", "forked-with-work-destroyed");
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    SET(g.s, 0);
    SETUP(cuEventRecord, (g.e, g.s));
    CALL(cuStreamDestroy_v2, "origin", (g.s));
    CALL(cuEventQuery, "origin-destroyed", (g.e));
    CALLO(cuMemAlloc_v2, "origin-destroyed", (&p, 64), OUT_C(p));
    g.s = par_stream();
    CALL(cuStreamWaitEvent, "origin-destroyed", (g.s, g.e, 0));
    see_status(g.s, "s");
}

SCENARIO(destroys_origin_of_fork, "capture/destroys-origin") {
    fork_ground g = make();
    capture_fork(&g);
    CALL(cuStreamDestroy_v2, "origin", (g.s));
    see_status(g.t, "t");
    CALL(cuMemsetD8Async, "origin-destroyed", (g.d, 1, 16, g.t));
    end_and_see(g.t, "origin-destroyed");
    see_status(g.t, "t");
    CALL(cuStreamSynchronize, "origin-destroyed", (g.t));
}

SCENARIO(context_destroyed, "capture/context-destroyed", par_context) {
    CUdeviceptr p;
    CUcontext made = par_new_context();
    CUstream s = PAR_MADE(CUstream, cuStreamCreate, 1);
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    CALL(cuCtxDestroy_v2, "capturing", (made));
    SETUP(cuCtxSetCurrent, (par.primary));
    CALLO(cuMemAlloc_v2, "context-destroyed", (&p, 64), OUT_C(p));
}

SCENARIO(primary_reset, "capture/primary-reset", par_context) {
    CUdeviceptr p;
    CUstream s = par_stream();
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    CALL(cuDevicePrimaryCtxReset_v2, "capturing", (0));
    CALLO(cuMemAlloc_v2, "reset", (&p, 64), OUT_C(p));
}

/* Two contexts of the device in one capture. */
SCENARIO(two_contexts, "capture/two-contexts", par_context) {
    CUstream s, t;
    s = par_stream();
    CUdeviceptr d = par_alloc(64);
    CUevent e = par_event(0);
    par_new_context();
    SETUP(cuStreamCreate, (&t, 1));
    CUevent f = par_event(0);
    CUdeviceptr d2 = par_alloc(64);
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    SETUP(cuMemsetD8Async, (d, 1, 16, s));
    SETUP(cuEventRecord, (e, s));
    CALL(cuStreamWaitEvent, "other-context", (t, e, 0));
    see_status(t, "t");
    CALL(cuMemsetD8Async, "other-context", (d2, 1, 16, t));
    CALL(cuEventRecord, "other-context", (f, t));
    CALL(cuStreamWaitEvent, "joins-other-context", (s, f, 0));
    see_and_end(s, "s", "two-contexts");
    SETUP(cuStreamBeginCapture_v2, (s, GLOBAL));
    CALL(cuEventRecord, "event-of-other-context", (f, s));
    see_and_end(s, "s", "after");
}

static const char ptx[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
                          ".visible .entry empty()\n{\n  ret;\n}\n";

static void see_edges(CUstream s) {
    CUstreamCaptureStatus status;
    CUgraph graph;
    const CUgraphNode *nodes;
    const CUgraphEdgeData *data = NULL;
    size_t count = 0;
    CUresult result =
        par.api->cuStreamGetCaptureInfo_v3(s, &status, NULL, &graph, &nodes, &data, &count);
    if (result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE && count > 0)
        par_see("edge", "count %zu from %d to %d type %d", count, data[0].from_port,
                data[0].to_port, data[0].type);
    else
        par_see("edge", "%s count %zu", result_text(result), count);
}

SCENARIO(kernels, "capture/kernels") {
    fork_ground g = make();
    CUlaunchAttribute attribute[2];
    CUstreamCaptureStatus status;
    CUgraph graph;
    const CUgraphNode *nodes;
    size_t count;
    CUmodule module = par_module(ptx);
    CUfunction f = par_function(module, "empty");
    memset(attribute, 0, sizeof(attribute));
    CUlaunchConfig config = {GRID(1), BLOCK(1), .hStream = g.s};
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    CALL(cuLaunchKernel, "captured", (f, 1, 1, 1, 1, 1, 1, 0, g.s, NULL, NULL));
    see_edges(g.s);
    attribute[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute[0].value.programmaticStreamSerializationAllowed = 1;
    config.attrs = attribute;
    config.numAttrs = 1;
    CALL(cuLaunchKernelEx, "programmatic-serialization", (&config, f, NULL, NULL));
    see_edges(g.s);
    attribute[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
    memset(&attribute[0].value, 0, sizeof(attribute[0].value));
    attribute[0].value.programmaticEvent.event = g.f;
    CALL(cuLaunchKernelEx, "programmatic-event", (&config, f, NULL, NULL));
    CALL(cuStreamWaitEvent, "programmatic-event", (g.t, g.f, 0));
    see_edges(g.t);
    CALL(cuStreamGetCaptureInfo_v2, "lossy", (g.t, &status, NULL, &graph, &nodes, &count));
    CALL(cuStreamGetCaptureInfo_v3, "lossy", (g.t, &status, NULL, &graph, &nodes, NULL, &count));
    config.hStream = g.t;
    config.numAttrs = 0;
    CALL(cuLaunchKernelEx, "behind-programmatic-event", (&config, f, NULL, NULL));
    SETUP(cuEventRecord, (g.e, g.t));
    CALL(cuStreamWaitEvent, "joins", (g.s, g.e, 0));
    see_edges(g.s);
    end_and_see(g.s, "kernels");
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    CALL(cuLaunchKernel, "bad-grid", (f, 0, 1, 1, 1, 1, 1, 0, g.s, NULL, NULL));
    see_and_end(g.s, "s", "after");
}

/* What only asks about a stream that captures, and about the legacy stream beside one. */
#define ASK(cls, before, call)                                                                     \
    do {                                                                                           \
        SETUP(cuStreamBeginCapture_v2, (s, RELAXED));                                              \
        before;                                                                                    \
        call;                                                                                      \
        see_status(s, cls);                                                                        \
        end_and_see(s, cls);                                                                       \
    } while (0)
#define SPOIL (void)par.api->cuStreamQuery(s)

SCENARIO(asks, "capture/asks", par_context) {
    CUgreenCtx green;
    CUcontext ctx;
    CUdevice dev;
    CUstreamAttrValue value;
    unsigned flags;
    unsigned long long id;
    int priority;
    memset(&value, 0, sizeof(value));
    CUstream s = par_blocking_stream();
    CUstream t = par_stream();
    ASK("s", (void)0, CALL(cuStreamGetGreenCtx, "captured", (s, &green)));
    ASK("s", (void)0, CALL(cuStreamGetCtx_v2, "captured", (s, &ctx, &green)));
    ASK("s", (void)0, CALL(cuStreamGetFlags, "captured-null-out", (s, NULL)));
    ASK("s", (void)0, CALL(cuStreamGetFlags, "legacy", (NULL, &flags)));
    ASK("s", (void)0, CALL(cuStreamGetPriority, "legacy", (NULL, &priority)));
    ASK("s", (void)0, CALL(cuStreamGetId, "legacy", (NULL, &id)));
    ASK("s", (void)0, CALL(cuStreamGetDevice, "legacy", (NULL, &dev)));
    ASK("s", (void)0, CALL(cuStreamGetCtx, "legacy", (NULL, &ctx)));
    ASK("s", (void)0,
        CALL(cuStreamSetAttribute, "legacy", (NULL, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value)));
    ASK("s", (void)0,
        CALL(cuStreamGetAttribute, "legacy", (NULL, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value)));
    ASK("s", (void)0, CALL(cuStreamCopyAttributes, "to-legacy", (NULL, t)));
    ASK("s", (void)0, CALL(cuStreamEndCapture, "legacy", (NULL, NULL)));
    ASK("s", (void)0, CALL(cuStreamUpdateCaptureDependencies, "legacy", (NULL, NULL, 0, 0)));
    ASK("s", SPOIL, CALL(cuStreamGetPriority, "invalidated", (s, &priority)));
    ASK("s", SPOIL, CALL(cuStreamGetCtx, "invalidated", (s, &ctx)));
    ASK("s", SPOIL,
        CALL(cuStreamGetAttribute, "invalidated", (s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value)));
    ASK("s", SPOIL, CALL(cuStreamCopyAttributes, "to-invalidated", (s, t)));
    ASK("s", SPOIL, CALL(cuStreamCopyAttributes, "from-invalidated", (t, s)));
    ASK("s", SPOIL, CALL(cuStreamBatchMemOp_v2, "invalidated-zero", (s, 0, NULL, 0)));
    ASK("s", SPOIL, CALL(cuMemFreeAsync, "invalidated-null", (0, s)));
    ASK("s", SPOIL, CALL(cuLaunchHostFunc, "invalidated-null", (s, NULL, NULL)));
    ASK("s", SPOIL, CALL(cuStreamWriteValue32_v2, "invalidated-bad", (s, 2, 1, 0x80)));
    ASK("s", SPOIL, CALL(cuMemsetD8Async, "invalidated-zero", (0, 1, 0, s)));
}

/* Events of captures: asked in the mode that forbids unsafe calls, and when all is over. */
SCENARIO(events_global, "capture/events-global") {
    fork_ground g = make();
    float ms;
    CUevent timed = par_event(0);
    SETUP(cuEventRecord, (timed, g.u));
    SETUP(cuStreamSynchronize, (g.u));
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    SETUP(cuEventRecord, (g.e, g.s));
    CALL(cuEventQuery, "captured-global", (g.e));
    see_and_end(g.s, "s", "after");
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    SETUP(cuEventRecord, (g.e, g.s));
    CALL(cuEventSynchronize, "captured-global", (g.e));
    see_and_end(g.s, "s", "after");
    SETUP(cuStreamBeginCapture_v2, (g.s, RELAXED));
    SETUP(cuEventRecord, (g.e, g.s));
    end_and_see(g.s, "ok");
    CALL(cuEventElapsedTime, "of-ended-capture", (&ms, g.e, timed));
    CALL(cuEventElapsedTime, "of-ended-capture-end", (&ms, timed, g.e));
    CALL(cuCtxWaitEvent, "of-ended-capture", (par.primary, g.e));
    CALL(cuCtxRecordEvent, "of-ended-capture", (par.primary, g.e));
    SETUP(cuStreamBeginCapture_v2, (g.s, RELAXED));
    SETUP(cuEventRecord, (g.e, g.s));
    SETUP(cuStreamBeginCapture_v2, (g.t, GLOBAL));
    CALL(cuEventQuery, "captured-in-other", (g.e));
    see_status(g.s, "s");
    see_status(g.t, "t");
    CALL(cuEventElapsedTime, "of-invalidated-capture", (&ms, g.e, timed));
    end_and_see(g.t, "after");
    end_and_see(g.s, "after");
}

/* Depending on a node twice, by events of different age. */
SCENARIO(orders, "capture/orders") {
    fork_ground g = make();
    CUevent f2 = par_event(0);
    SETUP(cuStreamBeginCapture_v2, (g.s, GLOBAL));
    SET(g.s, 0);
    SETUP(cuEventRecord, (g.e, g.s));
    SET(g.s, 16);
    CALL(cuStreamWaitEvent, "own-older", (g.s, g.e, 0));
    see_status(g.s, "s");
    SET(g.s, 32);
    SETUP(cuEventRecord, (g.f, g.s));
    CALL(cuStreamWaitEvent, "own-newest", (g.s, g.f, 0));
    see_status(g.s, "s");
    CALL(cuStreamWaitEvent, "fork", (g.t, g.e, 0));
    CALL(cuStreamWaitEvent, "fork-newer", (g.t, g.f, 0));
    see_status(g.t, "t");
    SET(g.t, 48);
    SETUP(cuEventRecord, (f2, g.t));
    CALL(cuStreamUpdateCaptureDependencies, "forget", (g.s, NULL, 0, 1));
    CALL(cuStreamWaitEvent, "joins", (g.s, f2, 0));
    see_and_end(g.s, "s", "ok");
}
