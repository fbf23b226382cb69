/*
 * A thread that is cancelled (pthread_cancel) within a call ends the call first: no call is a
 * cancellation point. Each part is a process of its own, because a lock that a cancelled thread
 * left held would stop all that comes after.
 */
#include "harness.h"
#include "temporary.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

static struct gate gate;
static CUstream stream; /* blocking, and behind the gate */
static CUevent event;
static CUdeviceptr bytes;
static CUarray array;
static void *pinned;
static unsigned char plain[4096] __attribute__((aligned(4096)));
static char file_name[TEMPORARY_ROOM];

/* ---- Calls that wait for the gate ------------------------------------------------------------ */

static CUresult stream_synchronize(void) {
    return cu.cuStreamSynchronize(stream);
}
static CUresult legacy_synchronize(void) {
    return cu.cuStreamSynchronize(CU_STREAM_LEGACY);
}
static CUresult context_synchronize(void) {
    return cu.cuCtxSynchronize();
}
static CUresult event_synchronize(void) {
    return cu.cuEventSynchronize(event);
}
static CUresult copy(void) {
    return cu.cuMemcpyDtoH_v2(plain, bytes, sizeof plain);
}
static CUresult free_memory(void) {
    return cu.cuMemFree_v2(bytes);
}
static CUresult free_host(void) {
    return cu.cuMemFreeHost(pinned);
}
static CUresult unregister_host(void) {
    return cu.cuMemHostUnregister(plain);
}
static CUresult destroy_array(void) {
    return cu.cuArrayDestroy(array);
}
static CUresult reset_primary(void) {
    return cu.cuDevicePrimaryCtxReset_v2(dev);
}

/* ---- Calls that read and write files --------------------------------------------------------- */

static CUresult dump_log(void) {
    return cu.cuLogsDumpToFile(NULL, file_name, 0);
}
static CUresult load_module(void) {
    CUmodule module;
    CUresult result = cu.cuModuleLoad(&module, file_name);
    return result == CUDA_SUCCESS ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}
static CUresult name_memory(void) {
    CUipcMemHandle handle;
    return cu.cuIpcGetMemHandle(&handle, bytes);
}
static CUresult draw_graph(void) {
    CUgraph graph;
    CUresult result = cu.cuGraphCreate(&graph, 0);
    if (result == CUDA_SUCCESS)
        result = cu.cuGraphDebugDotPrint(graph, file_name, 0);
    return result == CUDA_SUCCESS ? cu.cuGraphDestroy(graph) : result;
}
/* Each call is a line of the trace, and a refused one of the log as well. */
static CUresult be_refused(void) {
    CUresult result = cu.cuMemFree_v2(12345);
    return result == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
static CUresult ask_without_a_lock(void) {
    const char *name;
    return cu.cuGetErrorName(CUDA_SUCCESS, &name);
}

static const struct call {
    const char *name;
    CUresult (*run)(void);
    bool waits;
} calls[] = {
    {"stream_synchronize", stream_synchronize, true},
    {"legacy_synchronize", legacy_synchronize, true},
    {"context_synchronize", context_synchronize, true},
    {"event_synchronize", event_synchronize, true},
    {"copy", copy, true},
    {"free_memory", free_memory, true},
    {"free_host", free_host, true},
    {"unregister_host", unregister_host, true},
    {"destroy_array", destroy_array, true},
    {"reset_primary", reset_primary, true},
    {"dump_log", dump_log, false},
    {"load_module", load_module, false},
    {"name_memory", name_memory, false},
    {"draw_graph", draw_graph, false},
    {"be_refused", be_refused, false},
    {"ask_without_a_lock", ask_without_a_lock, false},
};

/* ---- The thread that is cancelled ------------------------------------------------------------ */

struct attempt {
    const struct call *call;
    CUcontext context;
    atomic_long thread; /* its id, when the call is next */
    atomic_bool done;
    CUresult result;
};

/* The request is there before the call: its first cancellation point would be the thread's end. */
static void *attempt_call(void *argument) {
    struct attempt *attempt = argument;
    attempt->result = cu.cuCtxSetCurrent(attempt->context);
    pthread_cancel(pthread_self());
    atomic_store(&attempt->thread, syscall(SYS_gettid));
    if (attempt->result == CUDA_SUCCESS)
        attempt->result = attempt->call->run();
    atomic_store(&attempt->done, true);
    pthread_testcancel();
    return NULL;
}

/* How often a thread has gone to sleep; -1 when it is no more. */
static long sleeps_of(long thread) {
    char path[64], line[256];
    long sleeps = -1;
    snprintf(path, sizeof path, "/proc/self/task/%ld/status", thread);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps);
    if (file)
        fclose(file);
    return sleeps;
}

/* Who waits for the gate looks again and again, and sleeps in between. */
static void until_it_waits(const struct attempt *attempt) {
    long thread;
    while ((thread = atomic_load(&attempt->thread)) == 0)
        sched_yield();
    long first = sleeps_of(thread), now = first;
    while (now >= 0 && now < first + 20 && !atomic_load(&attempt->done)) {
        sched_yield();
        now = sleeps_of(thread);
    }
}

static void make_objects(void) {
    CUDA_ARRAY_DESCRIPTOR shape = {TEXELS(CU_AD_FORMAT_UNSIGNED_INT8, 1), .Width = 64,
                                   .Height = 64};
    OK_CU(cu.cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    OK_CU(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK_CU(cu.cuMemAlloc_v2(&bytes, 2 * MIB));
    OK_CU(cu.cuMemHostAlloc(&pinned, MIB, 0));
    OK_CU(cu.cuMemHostRegister_v2(plain, sizeof plain, 0));
    OK_CU(cu.cuArrayCreate_v2(&array, &shape));
    gate_make(&gate);
    close(temporary_file(file_name, "gpumem-cancel"));
}

static const struct call *call_of(const char *name) {
    for (size_t i = 0; i < COUNT(calls); i++)
        if (strcmp(calls[i].name, name) == 0)
            return &calls[i];
    return NULL;
}

/* A lock that is left held would keep this process waiting: the alarm ends it. */
CHILD(attempt_one) {
    struct attempt attempt = {.call = argc > 1 ? call_of(argv[1]) : NULL};
    pthread_t thread;
    void *value;
    if (!attempt.call)
        return 127;
    alarm(30);
    init_driver();
    make_objects();
    attempt.context = ctx;
    if (attempt.call->waits) {
        gate_hold(&gate, stream);
        OK_CU(cu.cuEventRecord(event, stream));
    }
    assert_int_equal(pthread_create(&thread, NULL, attempt_call, &attempt), 0);
    if (attempt.call->waits)
        until_it_waits(&attempt);
    gate_release(&gate);
    assert_int_equal(pthread_join(thread, &value), 0);
    unlink(file_name);
    assert_true(atomic_load(&attempt.done));
    OK_CU(attempt.result);
    /* The request was kept for the program's own cancellation point. */
    assert_ptr_equal(value, PTHREAD_CANCELED);
    /* And others go on. */
    if (attempt.call->run != reset_primary)
        OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuDeviceGetCount(&device_count));
    return 0;
}

static void attempt_all(bool waits) {
    for (size_t i = 0; i < COUNT(calls); i++) {
        if (calls[i].waits != waits)
            continue;
        int status = run_child("attempt_one", calls[i].name, NULL);
        if (status != 0)
            print_error("%s: status %d\n", calls[i].name, status);
        assert_int_equal(status, 0);
    }
}

TEST(waiting_calls_are_not_cancellation_points) {
    NEEDS_SOFTGPU("nothing says what other drivers do");
    attempt_all(true);
}

TEST(calls_that_use_files_are_not_cancellation_points) {
    NEEDS_SOFTGPU("nothing says what other drivers do");
    setenv("SOFTGPU_TRACE", "/dev/null", 1);
    setenv("CUDA_LOG_FILE", "/dev/null", 1);
    attempt_all(false);
    unsetenv("SOFTGPU_TRACE");
    unsetenv("CUDA_LOG_FILE");
}

/* ---- Whenever the request comes -------------------------------------------------------------- */

#define STORM_ROUNDS  50
#define STORM_THREADS 4

/* What a round makes it ends: the request is heeded between rounds only. */
static void *work_until_cancelled(void *context) {
    unsigned char out[64];
    for (;;) {
        OK_CU(cu.cuCtxSetCurrent(context));
        CUstream own = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
        CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAlloc_v2, sizeof out);
        OK_CU(cu.cuMemsetD8Async(memory, 7, sizeof out, own));
        OK_CU(cu.cuMemcpyDtoHAsync_v2(out, memory, sizeof out, own));
        OK_CU(cu.cuStreamSynchronize(own));
        DESTROY_CU(memory, own);
        OK_CU(cu.cuCtxSetCurrent(NULL));
        pthread_testcancel();
    }
    return NULL;
}

CHILD_THAT_ENDS(storm) {
    alarm(50);
    init_driver();
    char *before = soft->state_dump();
    for (int round = 0; round < STORM_ROUNDS; round++) {
        pthread_t threads[STORM_THREADS];
        void *value;
        for (int i = 0; i < STORM_THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, work_until_cancelled, ctx), 0);
        for (int i = 0; i < STORM_THREADS; i++)
            assert_int_equal(pthread_cancel(threads[i]), 0);
        for (int i = 0; i < STORM_THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], &value), 0);
            assert_ptr_equal(value, PTHREAD_CANCELED);
        }
    }
    char *after = soft->state_dump();
    assert_string_equal(before, after);
    soft->free_text(before);
    soft->free_text(after);
}

TEST(a_thread_cancelled_at_any_moment_holds_no_lock) {
    NEEDS_SOFTGPU("nothing says what other drivers do");
    setenv("SOFTGPU_TRACE", "/dev/null", 1); /* each call writes a line */
    int status = run_child("storm", NULL);
    unsetenv("SOFTGPU_TRACE");
    assert_int_equal(status, 0);
}

/* ---- The state afterwards -------------------------------------------------------------------- */

/* Disabled before, disabled afterwards: a call restores what it found. */
TEST(a_call_restores_the_cancellation_state) {
    int before, count, now;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    OK_CU(cu.cuDeviceGetCount(&count));
    FAILS_CU(INVALID_VALUE, cu.cuDeviceGetCount(NULL));
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &now);
    assert_int_equal(now, PTHREAD_CANCEL_DISABLE);
    OK_CU(cu.cuDeviceGetCount(&count));
    FAILS_CU(INVALID_VALUE, cu.cuDeviceGetCount(NULL));
    pthread_setcancelstate(before, &now);
    assert_int_equal(now, PTHREAD_CANCEL_ENABLE);
}
