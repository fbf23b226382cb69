/* Default streams: who waits for whom, seen from behind a gate. */
#include "../parity.h"

#include <pthread.h>

typedef struct lanes {
    CUstream blocking, free_running;
    CUdeviceptr d;
} lanes;

static lanes make_lanes(void) {
    lanes l;
    par_context();
    SETUP(cuStreamCreate, (&l.blocking, CU_STREAM_DEFAULT));
    SETUP(cuStreamCreate, (&l.free_running, CU_STREAM_NON_BLOCKING));
    l.d = par_alloc(4096);
    return l;
}

static void see_all(const lanes *l) {
    CALL(cuStreamQuery, "blocking-stream", (l->blocking));
    CALL(cuStreamQuery, "non-blocking-stream", (l->free_running));
    CALL(cuStreamQuery, "legacy-stream", (CU_STREAM_LEGACY));
    CALL(cuStreamQuery, "per-thread-stream", (CU_STREAM_PER_THREAD));
}

static void work_on_all(const lanes *l) {
    CALL(cuMemsetD8Async, "blocking-stream", (l->d, 1, 16, l->blocking));
    CALL(cuMemsetD8Async, "non-blocking-stream", (l->d + 64, 1, 16, l->free_running));
    CALL(cuMemsetD8Async, "legacy-stream", (l->d + 128, 1, 16, CU_STREAM_LEGACY));
    CALL(cuMemsetD8Async, "per-thread-stream", (l->d + 192, 1, 16, CU_STREAM_PER_THREAD));
}

static void end(void) {
    par_release();
    CALL(cuCtxSynchronize, "released", ());
}

SCENARIO(blocking_held, "order/blocking-held") {
    lanes l = make_lanes();
    par_hold(l.blocking);
    CALL(cuMemsetD8Async, "non-blocking-stream", (l.d, 1, 16, l.free_running));
    CALL(cuStreamSynchronize, "non-blocking-stream", (l.free_running));
    see_all(&l);
    CALL(cuMemsetD8Async, "legacy-stream", (l.d + 128, 1, 16, CU_STREAM_LEGACY));
    CALL(cuStreamQuery, "legacy-behind-blocking", (CU_STREAM_LEGACY));
    CALL(cuMemsetD8Async, "per-thread-stream", (l.d + 192, 1, 16, CU_STREAM_PER_THREAD));
    CALL(cuStreamQuery, "per-thread-behind-legacy", (CU_STREAM_PER_THREAD));
    CALL(cuStreamQuery, "non-blocking-free", (l.free_running));
    end();
    see_all(&l);
}

SCENARIO(legacy_held, "order/legacy-held") {
    lanes l = make_lanes();
    par_hold(CU_STREAM_LEGACY);
    work_on_all(&l);
    CALL(cuStreamSynchronize, "non-blocking-stream", (l.free_running));
    see_all(&l);
    end();
    see_all(&l);
}

SCENARIO(non_blocking_held, "order/non-blocking-held") {
    lanes l = make_lanes();
    par_hold(l.free_running);
    work_on_all(&l);
    CALL(cuStreamSynchronize, "legacy-stream", (CU_STREAM_LEGACY));
    CALL(cuStreamSynchronize, "blocking-stream", (l.blocking));
    CALL(cuStreamSynchronize, "per-thread-stream", (CU_STREAM_PER_THREAD));
    see_all(&l);
    end();
    see_all(&l);
}

SCENARIO(per_thread_held, "order/per-thread-held") {
    lanes l = make_lanes();
    par_hold(CU_STREAM_PER_THREAD);
    CALL(cuMemsetD8Async, "blocking-stream", (l.d, 1, 16, l.blocking));
    CALL(cuStreamSynchronize, "blocking-stream", (l.blocking));
    CALL(cuStreamQuery, "null-stream-twin", (NULL));
    CALL(cuStreamQuery_ptsz, "null-stream-twin", (NULL));
    CALL(cuMemsetD8Async, "legacy-stream", (l.d, 1, 16, CU_STREAM_LEGACY));
    CALL(cuStreamQuery, "legacy-behind-per-thread", (CU_STREAM_LEGACY));
    end();
}

SCENARIO(null_is_legacy, "order/null-is-legacy") {
    lanes l = make_lanes();
    par_hold(NULL);
    CALL(cuStreamQuery, "legacy-stream", (CU_STREAM_LEGACY));
    CALL(cuStreamQuery, "null-stream", (NULL));
    CALL(cuStreamQuery, "per-thread-stream", (CU_STREAM_PER_THREAD));
    CALL(cuStreamQuery_ptsz, "null-stream", (NULL));
    (void)l;
    end();
}

/* An event recorded on the legacy stream waits for the blocking streams too. */
SCENARIO(legacy_event, "order/legacy-event") {
    lanes l = make_lanes();
    CUevent e = par_event(0);
    par_hold(l.blocking);
    CALL(cuEventRecord, "legacy-stream", (e, CU_STREAM_LEGACY));
    CALL(cuEventQuery, "blocking-held", (e));
    end();
    CALL(cuEventQuery, "released", (e));
}

static void *thread_stream(void *data) {
    CUdeviceptr d = *(CUdeviceptr *)data;
    SETUP(cuCtxSetCurrent, (par.primary));
    CALL(cuStreamQuery, "per-thread-of-new-thread", (CU_STREAM_PER_THREAD));
    CALL(cuMemsetD8Async, "per-thread-of-new-thread", (d, 1, 16, CU_STREAM_PER_THREAD));
    CALL(cuStreamSynchronize, "per-thread-of-new-thread", (CU_STREAM_PER_THREAD));
    return NULL;
}

SCENARIO(per_thread_is_own, "order/per-thread-is-own") {
    lanes l = make_lanes();
    pthread_t thread;
    par_hold(CU_STREAM_PER_THREAD);
    pthread_create(&thread, NULL, thread_stream, &l.d);
    pthread_join(thread, NULL);
    CALL(cuStreamQuery, "per-thread-held", (CU_STREAM_PER_THREAD));
    end();
}

/* Which synchronous calls return while another stream is held? Those that do not time out. */
#define WHILE_HELD(function, title, call)                                                          \
    SCENARIO(function, title) {                                                                    \
        lanes l = make_lanes();                                                                    \
        char host[64] = {0};                                                                       \
        void *pinned = par_pinned(4096);                                                           \
        CUdeviceptr other = par_alloc(PAR_2M), mapped = par_mapped(PAR_2M);                        \
        (void)host, (void)pinned, (void)other, (void)mapped;                                       \
        par_hold(l.free_running);                                                                  \
        call;                                                                                      \
        CALL(cuStreamQuery, "still-held", (l.free_running));                                       \
        end();                                                                                     \
    }
WHILE_HELD(held_copy_in, "order/held-copy-in",
           CALL(cuMemcpyHtoD_v2, "other-stream-held", (l.d, host, 64)))
WHILE_HELD(held_copy_out, "order/held-copy-out",
           CALL(cuMemcpyDtoH_v2, "other-stream-held", (host, l.d, 64)))
WHILE_HELD(held_copy_device, "order/held-copy-device",
           CALL(cuMemcpyDtoD_v2, "other-stream-held", (l.d, l.d + 64, 64)))
WHILE_HELD(held_set, "order/held-set", CALL(cuMemsetD8_v2, "other-stream-held", (l.d, 1, 64)))
WHILE_HELD(held_alloc, "order/held-alloc",
           CALL(cuMemAlloc_v2, "other-stream-held", (&other, (size_t)64 << 20)))
WHILE_HELD(held_free, "order/held-free", CALL(cuMemFree_v2, "other-stream-held", (other)))
WHILE_HELD(held_host_alloc, "order/held-host-alloc",
           CALL(cuMemHostAlloc, "other-stream-held", (&pinned, 1 << 20, 0)))
WHILE_HELD(held_host_free, "order/held-host-free",
           CALL(cuMemFreeHost, "other-stream-held", (pinned)))
WHILE_HELD(held_unmap, "order/held-unmap", CALL(cuMemUnmap, "other-stream-held", (mapped, PAR_2M)))
WHILE_HELD(held_set_access, "order/held-set-access",
           CUmemAccessDesc a = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READ);
           CALL(cuMemSetAccess, "other-stream-held", (mapped, PAR_2M, &a, 1)))
WHILE_HELD(held_alloc_async, "order/held-alloc-async",
           CALL(cuMemAllocAsync, "other-stream-held", (&other, 4096, l.blocking)))
WHILE_HELD(held_stream_create, "order/held-stream-create",
           CALL(cuStreamCreate, "other-stream-held", (&l.blocking, CU_STREAM_DEFAULT)))
WHILE_HELD(held_stream_destroy, "order/held-stream-destroy",
           CALL(cuStreamDestroy_v2, "other-stream-held", (l.blocking)))
WHILE_HELD(held_info, "order/held-info", size_t a; size_t b;
           CALL(cuMemGetInfo_v2, "other-stream-held", (&a, &b)))
WHILE_HELD(held_synchronize, "order/held-synchronize",
           CALL(cuCtxSynchronize, "other-stream-held", ()))
