/* Events: flags, states, time by class, waiting, contexts. */
#include "../parity.h"

SCENARIO(creates, "event/creates", par_context) {
    CUevent e;
    for (unsigned flags = 0; flags <= 16; flags++) {
        par_note("flags=%u", flags);
        CALLO(cuEventCreate, flags < 8 ? "flags" : "bad-flags", (&e, flags), OUT_H(e));
        if (par_last() == CUDA_SUCCESS) {
            CALL(cuEventQuery, "never-recorded", (e));
            CALL(cuEventSynchronize, "never-recorded", (e));
            CALL(cuEventDestroy_v2, "never-recorded", (e));
            FORGET(e);
        }
    }
    CALLO(cuEventCreate, "bad-flags", (&e, ~0u), OUT_H(e));
    CALL(cuEventCreate, "null-out", (NULL, 0));
    SETUP(cuEventCreate, (&e, 0));
    CALL(cuEventDestroy, "v1", (e));
    SETUP(cuCtxSetCurrent, (NULL));
    CALLO(cuEventCreate, "no-context", (&e, 0), OUT_H(e));
}

SCENARIO(nulls, "event/nulls", par_context) {
    float ms;
    CUstream s = par_stream();
    CUevent e = par_event(0);
    CALL(cuEventQuery, "null", (NULL));
    CALL(cuEventSynchronize, "null", (NULL));
    CALL(cuEventDestroy_v2, "null", (NULL));
    CALL(cuEventRecord, "null", (NULL, s));
    CALL(cuEventRecordWithFlags, "null", (NULL, s, 0));
    CALL(cuStreamWaitEvent, "null", (s, NULL, 0));
    CALLO(cuEventElapsedTime, "null-start", (&ms, NULL, e), OUT_F(ms));
    CALLO(cuEventElapsedTime, "null-end", (&ms, e, NULL), OUT_F(ms));
    CALL(cuEventElapsedTime, "null-out", (NULL, e, e));
    CALL(cuEventElapsedTime_v2, "null-out", (NULL, e, e));
    CALL(cuEventQuery, "foreign-small", ((CUevent)(uintptr_t)1));
}

SCENARIO(elapsed, "event/elapsed", par_context) {
    float ms;
    CUstream s = par_stream();
    CUevent a = par_event(0);
    CUevent b = par_event(0);
    CUevent never = par_event(0);
    CUevent untimed = par_event(CU_EVENT_DISABLE_TIMING);
#define ELAPSED(cls, x, y)                                                                         \
    do {                                                                                           \
        CALLO(cuEventElapsedTime, cls, (&ms, x, y), OUT_F(ms));                                    \
        CALLO(cuEventElapsedTime_v2, cls, (&ms, x, y), OUT_F(ms));                                 \
    } while (0)
    ELAPSED("never-recorded", a, b);
    SETUP(cuEventRecord, (a, s));
    SETUP(cuEventRecord, (untimed, s));
    SETUP(cuMemsetD8Async, (par_alloc((size_t)64 << 20), 1, (size_t)64 << 20, s));
    SETUP(cuEventRecord, (b, s));
    SETUP(cuStreamSynchronize, (s));
    ELAPSED("ok", a, b);
    ELAPSED("same", a, a);
    ELAPSED("backwards", b, a);
    ELAPSED("end-never-recorded", a, never);
    ELAPSED("start-never-recorded", never, b);
    ELAPSED("start-untimed", untimed, b);
    ELAPSED("end-untimed", a, untimed);
    par_hold(s);
    SETUP(cuEventRecord, (b, s));
    ELAPSED("end-not-complete", a, b);
    ELAPSED("start-not-complete", b, a);
    PAR_DRAIN("released", s);
    ELAPSED("released", a, b);
}

SCENARIO(records, "event/records", par_context) {
    CUstream s = par_stream();
    CUevent e = par_event(0);
    CALL(cuEventRecord, "ok", (e, s));
    CALL(cuEventRecord, "null-stream", (e, NULL));
    CALL(cuEventRecord, "legacy-stream", (e, CU_STREAM_LEGACY));
    CALL(cuEventRecord, "per-thread-stream", (e, CU_STREAM_PER_THREAD));
    CALL(cuEventRecord_ptsz, "null-stream", (e, NULL));
    CALL(cuEventRecordWithFlags, "ok", (e, s, 0));
    CALL(cuEventRecordWithFlags, "external", (e, s, CU_EVENT_RECORD_EXTERNAL));
    CALL(cuEventRecordWithFlags, "bad-flags", (e, s, 2));
    CALL(cuEventRecordWithFlags_ptsz, "ok", (e, NULL, 0));
    CALL(cuStreamWaitEvent, "ok", (s, e, 0));
    CALL(cuStreamWaitEvent, "external", (s, e, CU_EVENT_WAIT_EXTERNAL));
    CALL(cuStreamWaitEvent, "bad-flags", (s, e, 2));
    CALL(cuStreamWaitEvent, "null-stream", (NULL, e, 0));
    CALL(cuStreamWaitEvent_ptsz, "null-stream", (NULL, e, 0));
    CALL(cuStreamSynchronize, "ok", (s));
    CALL(cuEventQuery, "complete", (e));
}

SCENARIO(wait_on_unrecorded, "event/wait-on-unrecorded", par_context) {
    CUstream s = par_stream();
    CUevent e = par_event(0);
    CALL(cuStreamWaitEvent, "never-recorded", (s, e, 0));
    CALL(cuStreamSynchronize, "ok", (s));
}

/* A wait is for the record that is last when the wait is queued. */
SCENARIO(waits, "event/waits", par_context) {
    CUstream s = par_stream();
    CUstream t = par_stream();
    CUevent e = par_event(CU_EVENT_DISABLE_TIMING);
    par_hold(s);
    CALL(cuEventRecord, "held", (e, s));
    CALL(cuStreamWaitEvent, "held", (t, e, 0));
    CALL(cuStreamQuery, "waits-for-held", (t));
    CALL(cuEventRecord, "again-elsewhere", (e, par_stream()));
    CALL(cuEventSynchronize, "recorded-elsewhere", (e));
    CALL(cuStreamQuery, "still-waits-for-held", (t));
    CALL(cuEventDestroy_v2, "waited-for", (e));
    CALL(cuStreamQuery, "event-destroyed", (t));
    PAR_DRAIN("released", t);
}

SCENARIO(destroy_pending, "event/destroy-pending", par_context) {
    CUstream s = par_stream();
    CUevent e = par_event(0);
    par_hold(s);
    SETUP(cuEventRecord, (e, s));
    CALL(cuEventDestroy_v2, "pending", (e));
    PAR_DRAIN("released", s);
}

SCENARIO(contexts, "event/contexts", par_context) {
    float ms;
    CUstream s = par_stream();
    CUevent mine = par_event(0);
    CUcontext other = par_new_context();
    CUstream t = par_stream();
    CUevent theirs = par_event(0);
    CALL(cuEventRecord, "event-of-other-ctx", (mine, t));
    CALL(cuEventRecord, "stream-of-other-ctx", (theirs, s));
    CALL(cuEventRecord, "both-of-other-ctx", (mine, s));
    CALL(cuEventRecord, "ok", (theirs, t));
    CALL(cuStreamWaitEvent, "event-of-other-ctx", (t, mine, 0));
    CALL(cuStreamWaitEvent, "stream-of-other-ctx", (s, theirs, 0));
    CALL(cuEventSynchronize, "of-other-ctx", (mine));
    CALL(cuEventQuery, "of-other-ctx", (mine));
    CALLO(cuEventElapsedTime, "two-contexts", (&ms, mine, theirs), OUT_C(ms));
    CALL(cuStreamSynchronize, "of-other-ctx", (s));
    CALL(cuStreamQuery, "of-other-ctx", (s));
    CALL(cuCtxRecordEvent, "null-ctx", (NULL, theirs));
    CALL(cuCtxRecordEvent, "null-event", (other, NULL));
    CALL(cuCtxWaitEvent, "null-event", (other, NULL));
    CALL(cuCtxRecordEvent, "ok", (other, theirs));
    CALL(cuCtxRecordEvent, "of-other-ctx", (other, mine));
    CALL(cuCtxWaitEvent, "ok", (other, theirs));
    CALL(cuCtxWaitEvent, "null-ctx", (NULL, theirs));
    CALL(cuEventDestroy_v2, "of-other-ctx", (mine));
    CALL(cuStreamDestroy_v2, "of-other-ctx", (s));
}

static uint64_t words[1024];
#define BAD_EVENT(function, title, setup, call)                                                    \
    SCENARIO(function, title) {                                                                    \
        CUevent e;                                                                                 \
        par_context();                                                                             \
        setup;                                                                                     \
        call;                                                                                      \
    }
#define STALE                                                                                      \
    do {                                                                                           \
        SETUP(cuEventCreate, (&e, 0));                                                             \
        SETUP(cuEventDestroy_v2, (e));                                                             \
    } while (0)
#define FOREIGN e = (CUevent)(void *)words
BAD_EVENT(stale_query, "event/stale-query", STALE, CALL(cuEventQuery, "stale-handle", (e)))
BAD_EVENT(stale_record, "event/stale-record", STALE, CALL(cuEventRecord, "stale-handle", (e, NULL)))
BAD_EVENT(stale_destroy, "event/stale-destroy", STALE, CALL(cuEventDestroy_v2, "stale-handle", (e)))
BAD_EVENT(stale_wait, "event/stale-wait", STALE,
          CALL(cuStreamWaitEvent, "stale-handle", (NULL, e, 0)))
BAD_EVENT(foreign_query, "event/foreign-query", FOREIGN, CALL(cuEventQuery, "foreign-pointer", (e)))
BAD_EVENT(foreign_destroy, "event/foreign-destroy", FOREIGN,
          CALL(cuEventDestroy_v2, "foreign-pointer", (e)))
