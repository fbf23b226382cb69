/*
 * What a library beside a capture relies on: which questions do no harm, how work of the legacy
 * stream is waited for without touching it, whose memory is whose, and who a stream is.
 */
#include "capture_seen.h"

#define RELAXED CU_STREAM_CAPTURE_MODE_RELAXED

static CUstream make_blocking(void) {
    CUstream stream = par_blocking_stream();
    return stream;
}

static void relax(void) {
    CUstreamCaptureMode mode = RELAXED;
    SETUP(cuThreadExchangeStreamCaptureMode, (&mode));
}

static void see_status(CUstream s) {
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)9;
    par.api->cuStreamIsCapturing(s, &status);
    par_see("status", "%d", (int)status);
}

/* ---- The legacy stream, seen from a blocking one --------------------------------------------- */

/* A blocking stream's event comes after what the legacy stream was given before: also of a stream
 * that was made later, and that never had work. */
SCENARIO(events_after_legacy, "beside/events-after-legacy", par_context) {
    CUstream early = make_blocking(), running = par_stream();
    CUevent early_event = par_event(CU_EVENT_DISABLE_TIMING);
    CUevent late_event = par_event(CU_EVENT_DISABLE_TIMING);
    CUevent free_event = par_event(CU_EVENT_DISABLE_TIMING);
    par_hold(NULL);
    CUstream late = make_blocking();
    CALL(cuEventRecord, "blocking-made-before", (early_event, early));
    CALL(cuEventRecord, "blocking-made-after", (late_event, late));
    CALL(cuEventRecord, "non-blocking", (free_event, running));
    SETUP(cuEventSynchronize, (free_event));
    CALL(cuEventQuery, "blocking-made-before", (early_event));
    CALL(cuEventQuery, "blocking-made-after", (late_event));
    CALL(cuEventQuery, "non-blocking", (free_event));
    CALL(cuStreamDestroy_v2, "blocking-made-after", (late));
    CALL(cuEventQuery, "its-stream-destroyed", (late_event));
    par_release();
    CALL(cuEventSynchronize, "released", (early_event));
    CALL(cuEventSynchronize, "its-stream-destroyed", (late_event));
}

/* ---- During a capture of a blocking stream --------------------------------------------------- */

SCENARIO(beside_blocking, "beside/blocking-capture", par_context) {
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUdeviceptr pooled, more;
    unsigned long long number;
    CUstream captured = make_blocking(), other = make_blocking(), made = NULL;
    CUevent event = par_event(CU_EVENT_DISABLE_TIMING);
    SETUP(cuMemAllocAsync, (&pooled, 64, other));
    SETUP(cuStreamSynchronize, (other));
    relax();
    SETUP(cuStreamBeginCapture_v2, (captured, RELAXED));
    CALLO(cuStreamGetCaptureInfo, "captured", (captured, &status, &id), OUT_I(status), OUT_C(id));
    CALL(cuStreamGetCaptureInfo, "legacy", (NULL, &status, &id));
    CALLO(cuStreamGetCaptureInfo, "other", (other, &status, &id), OUT_I(status));
    CALLO(cuStreamGetId, "other", (other, &number), OUT_C(number));
    CALL(cuEventRecord, "other-blocking", (event, other));
    CALL(cuEventSynchronize, "other-blocking", (event));
    CALL(cuEventQuery, "other-blocking", (event));
    CALLO(cuStreamCreate, "blocking", (&made, CU_STREAM_DEFAULT), OUT_H(made));
    CALL(cuEventRecord, "made-during", (event, made));
    CALL(cuEventSynchronize, "made-during", (event));
    CALL(cuMemFreeAsync, "pool-memory-other-blocking", (pooled, other));
    CALLO(cuMemAllocAsync, "other-blocking", (&more, 64, other), OUT_C(more));
    CALL(cuMemFreeAsync, "other-blocking", (more, made));
    CALL(cuStreamDestroy_v2, "made-during", (made));
    see_status(captured);
    end_and_see(captured, "beside");
}

/* An event that was recorded in a capture is recorded anew, and is an event like any other. */
SCENARIO(event_used_again, "beside/event-used-again", par_context) {
    CUstream s = par_stream(), fork = par_stream(), other = par_stream();
    CUevent event = par_event(CU_EVENT_DISABLE_TIMING);
    relax();
    SETUP(cuStreamBeginCapture_v2, (s, RELAXED));
    SETUP(cuEventRecord, (event, s));
    SETUP(cuStreamWaitEvent, (fork, event, 0));
    CALL(cuEventRecord, "on-the-fork", (event, fork));
    CALL(cuStreamWaitEvent, "joins", (s, event, 0));
    CALL(cuEventRecord, "outside", (event, other));
    CALL(cuEventSynchronize, "outside", (event));
    CALL(cuEventQuery, "outside", (event));
    see_status(s);
    end_and_see(s, "again");
}

/* ---- Whose memory it is ---------------------------------------------------------------------- */

static void see_pool_of(const char *cls, CUdeviceptr p) {
    CUmemoryPool pool = NULL;
    CALLO(cuPointerGetAttribute, cls, (&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p), OUT_C(pool));
}

SCENARIO(refused_frees, "beside/refused-frees", par_context) {
    CUgraph graph = NULL;
    CUstream s = par_stream(), other = par_stream();
    CUdeviceptr outside = PAR_MADE(CUdeviceptr, cuMemAllocAsync, 64, s);
    SETUP(cuStreamSynchronize, (s));
    relax();
    SETUP(cuStreamBeginCapture_v2, (s, RELAXED));
    CUdeviceptr inside = PAR_MADE(CUdeviceptr, cuMemAllocAsync, 64, s);
    see_pool_of("pool-memory", outside);
    see_pool_of("graph-memory-not-launched", inside);
    CALL(cuMemFreeAsync, "pool-memory", (outside, s));
    CALL(cuMemFreeAsync, "graph-memory-on-another-stream", (inside, other));
    see_status(s);
    CALL(cuStreamQuery, "spoils", (s));
    CALL(cuMemFreeAsync, "pool-memory-invalidated", (outside, s));
    CALL(cuMemFreeAsync, "graph-memory-invalidated", (inside, s));
    see_pool_of("pool-memory-invalidated", outside);
    see_pool_of("graph-memory-invalidated", inside);
    CALLO(cuStreamEndCapture, "invalidated", (s, &graph), OUT_C(graph));
    see_pool_of("graph-memory-of-no-graph", inside);
    CALL(cuMemFreeAsync, "graph-memory-of-no-graph", (inside, s));
    CALL(cuMemFreeAsync, "pool-memory-ended", (outside, other));
    see_pool_of("pool-memory-freed", outside);
    CALL(cuStreamSynchronize, "freed", (other));
}

/* ---- Who a stream is ------------------------------------------------------------------------- */

#define TRIES 64

/* The value of a destroyed stream comes back; the number does not. */
SCENARIO(values_come_back, "beside/values-come-back", par_context) {
    CUstream first, again[TRIES];
    int count = 0;
    SETUP(cuStreamCreate, (&first, CU_STREAM_NON_BLOCKING));
    unsigned long long id = PAR_GOT(unsigned long long, cuStreamGetId, first);
    SETUP(cuStreamDestroy_v2, (first));
    while (count < TRIES) {
        SETUP(cuStreamCreate, (&again[count], CU_STREAM_NON_BLOCKING));
        if (again[count++] == first)
            break;
    }
    par_see("value", "%s", again[count - 1] == first ? "comes back" : "does not come back");
    unsigned long long id_again = PAR_GOT(unsigned long long, cuStreamGetId, again[count - 1]);
    par_see("number", "%s", id == id_again ? "the same" : "another");
}

SCENARIO(asked_without_context, "beside/without-context", par_context) {
    CUstreamCaptureStatus status;
    cuuint64_t capture;
    unsigned long long id;
    CUdeviceptr p;
    CUstream s = par_stream();
    CUmemoryPool pool = PAR_MADE(CUmemoryPool, cuDeviceGetDefaultMemPool, par.dev);
    SETUP(cuCtxSetCurrent, (NULL));
    CALLO(cuStreamGetId, "no-context", (s, &id), OUT_C(id));
    CALLO(cuStreamGetCaptureInfo, "no-context", (s, &status, &capture), OUT_I(status));
    CUcontext other = PAR_MADE(CUcontext, cuCtxCreate_v2, 0, par.dev);
    CALLO(cuStreamGetId, "other-context", (s, &id), OUT_C(id));
    CALLO(cuStreamGetCaptureInfo, "other-context", (s, &status, &capture), OUT_I(status));
    CALLO(cuMemAllocFromPoolAsync, "other-context", (&p, 64, pool, s), OUT_C(p));
    CALL(cuMemFreeAsync, "other-context", (p, s));
    SETUP(cuCtxDestroy_v2, (other));
}
