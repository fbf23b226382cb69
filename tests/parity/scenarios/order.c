/* Default streams: who waits for whom, seen from behind a gate. */
#include "../parity.h"

#include <pthread.h>
#include <string.h>

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

static void blocking_held(void) {
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

static void legacy_held(void) {
    lanes l = make_lanes();
    par_hold(CU_STREAM_LEGACY);
    work_on_all(&l);
    CALL(cuStreamSynchronize, "non-blocking-stream", (l.free_running));
    see_all(&l);
    end();
    see_all(&l);
}

static void non_blocking_held(void) {
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

static void per_thread_held(void) {
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

static void null_is_legacy(void) {
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
static void legacy_event(void) {
    lanes l = make_lanes();
    CUevent e;
    SETUP(cuEventCreate, (&e, 0));
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

static void per_thread_is_own(void) {
    lanes l = make_lanes();
    pthread_t thread;
    par_hold(CU_STREAM_PER_THREAD);
    pthread_create(&thread, NULL, thread_stream, &l.d);
    pthread_join(thread, NULL);
    CALL(cuStreamQuery, "per-thread-held", (CU_STREAM_PER_THREAD));
    end();
}

/* Which synchronous calls return while another stream is held? Those that do not time out. */
#define WHILE_HELD(function, call)                                                                 \
    static void function(void) {                                                                   \
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
WHILE_HELD(held_copy_in, CALL(cuMemcpyHtoD_v2, "other-stream-held", (l.d, host, 64)))
WHILE_HELD(held_copy_out, CALL(cuMemcpyDtoH_v2, "other-stream-held", (host, l.d, 64)))
WHILE_HELD(held_copy_device, CALL(cuMemcpyDtoD_v2, "other-stream-held", (l.d, l.d + 64, 64)))
WHILE_HELD(held_set, CALL(cuMemsetD8_v2, "other-stream-held", (l.d, 1, 64)))
WHILE_HELD(held_alloc, CALL(cuMemAlloc_v2, "other-stream-held", (&other, (size_t)64 << 20)))
WHILE_HELD(held_free, CALL(cuMemFree_v2, "other-stream-held", (other)))
WHILE_HELD(held_host_alloc, CALL(cuMemHostAlloc, "other-stream-held", (&pinned, 1 << 20, 0)))
WHILE_HELD(held_host_free, CALL(cuMemFreeHost, "other-stream-held", (pinned)))
WHILE_HELD(held_unmap, CALL(cuMemUnmap, "other-stream-held", (mapped, PAR_2M)))
WHILE_HELD(held_set_access, CUmemAccessDesc a = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READ);
           CALL(cuMemSetAccess, "other-stream-held", (mapped, PAR_2M, &a, 1)))
WHILE_HELD(held_alloc_async, CALL(cuMemAllocAsync, "other-stream-held", (&other, 4096, l.blocking)))
WHILE_HELD(held_stream_create,
           CALL(cuStreamCreate, "other-stream-held", (&l.blocking, CU_STREAM_DEFAULT)))
WHILE_HELD(held_stream_destroy, CALL(cuStreamDestroy_v2, "other-stream-held", (l.blocking)))
WHILE_HELD(held_info, size_t a; size_t b; CALL(cuMemGetInfo_v2, "other-stream-held", (&a, &b)))
WHILE_HELD(held_synchronize, CALL(cuCtxSynchronize, "other-stream-held", ()))

PAR_SCENARIOS = {
    {"order/blocking-held", blocking_held, 0, 0},
    {"order/legacy-held", legacy_held, 0, 0},
    {"order/non-blocking-held", non_blocking_held, 0, 0},
    {"order/per-thread-held", per_thread_held, 0, 0},
    {"order/null-is-legacy", null_is_legacy, 0, 0},
    {"order/legacy-event", legacy_event, 0, 0},
    {"order/per-thread-is-own", per_thread_is_own, 0, 0},
    {"order/held-copy-in", held_copy_in, 0, 0},
    {"order/held-copy-out", held_copy_out, 0, 0},
    {"order/held-copy-device", held_copy_device, 0, 0},
    {"order/held-set", held_set, 0, 0},
    {"order/held-alloc", held_alloc, 0, 0},
    {"order/held-free", held_free, 0, 0},
    {"order/held-host-alloc", held_host_alloc, 0, 0},
    {"order/held-host-free", held_host_free, 0, 0},
    {"order/held-unmap", held_unmap, 0, 0},
    {"order/held-set-access", held_set_access, 0, 0},
    {"order/held-alloc-async", held_alloc_async, 0, 0},
    {"order/held-stream-create", held_stream_create, 0, 0},
    {"order/held-stream-destroy", held_stream_destroy, 0, 0},
    {"order/held-info", held_info, 0, 0},
    {"order/held-synchronize", held_synchronize, 0, 0},
};
