/* Elapsed time: between completions, in milliseconds. */
#include "harness.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

static double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

struct scene {
    CUstream stream;
    CUevent start, end;
    struct gate gate;
};

static struct scene make(unsigned flags) {
    struct scene scene;
    scene.stream = new_stream();
    scene.start = new_event_with(flags);
    scene.end = new_event_with(flags);
    scene.gate = new_gate();
    return scene;
}

/* The gate keeps the second event from completing for a time that the host measures. */
TEST(elapsed_time_is_measured_between_completions) {
    struct scene scene = make(CU_EVENT_DEFAULT);
    float elapsed = -1;
    OK_CU(cu.cuEventRecord(scene.start, scene.stream));
    OK_CU(cu.cuEventSynchronize(scene.start));
    double begin = milliseconds();
    gate_hold(&scene.gate, scene.stream);
    OK_CU(cu.cuEventRecord(scene.end, scene.stream));
    while (milliseconds() < begin + 5)
        ;
    gate_release(&scene.gate);
    OK_CU(cu.cuEventSynchronize(scene.end));
    double after = milliseconds();
    OK_CU(cu.cuEventElapsedTime(&elapsed, scene.start, scene.end));
    assert_true(elapsed >= 4.9);
    /* The first event completed at some time before `begin`; a generous bound tells a wrong unit.
     */
    assert_true(elapsed < (float)(after - begin) + 1000);
    if (gpumem_driver_has(driver, GPUMEM_FN_cuEventElapsedTime_v2)) {
        float again = -1;
        OK_CU(cu.cuEventElapsedTime_v2(&again, scene.start, scene.end));
        assert_true(again == elapsed);
    }
    OK_CU(cu.cuEventElapsedTime(&elapsed, scene.end, scene.start));
    assert_true(elapsed < 0);
}

TEST(elapsed_time_needs_two_completed_events) {
    struct scene scene = make(CU_EVENT_DEFAULT);
    float elapsed = -1;
    FAILS_CU(INVALID_HANDLE, cu.cuEventElapsedTime(&elapsed, scene.start, scene.end));
    OK_CU(cu.cuEventRecord(scene.start, scene.stream));
    FAILS_CU(INVALID_HANDLE, cu.cuEventElapsedTime(&elapsed, scene.start, scene.end));
    gate_hold(&scene.gate, scene.stream);
    OK_CU(cu.cuEventRecord(scene.end, scene.stream));
    FAILS_CU(NOT_READY, cu.cuEventElapsedTime(&elapsed, scene.start, scene.end));
    assert_true(elapsed == -1);
}

TEST(events_without_timing_have_no_elapsed_time) {
    struct scene scene = make(CU_EVENT_DISABLE_TIMING);
    float elapsed = -1;
    OK_CU(cu.cuEventRecord(scene.start, scene.stream));
    OK_CU(cu.cuEventRecord(scene.end, scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    FAILS_CU(INVALID_HANDLE, cu.cuEventElapsedTime(&elapsed, scene.start, scene.end));
}

/* ---- Events that go while their time is asked for ------------------------------------------- */

#define COPY ((size_t)64 << 10)

static struct {
    void *source; /* a page fault in the copy from here is the moment */
    CUevent start, end;
    sem_t faulted, ended; /* the copy waits; the events are destroyed */
} moment;

static void *destroy_both(void *unused) {
    sem_wait(&moment.faulted);
    uintptr_t failed = cu.cuEventDestroy_v2(moment.start) + cu.cuEventDestroy_v2(moment.end);
    sem_post(&moment.ended);
    return (void *)failed; /* NOLINT(performance-no-int-to-ptr) */
}

static void on_fault(int number) {
    sem_post(&moment.faulted);
    sem_wait(&moment.ended);
    if (mprotect(moment.source, COPY, PROT_READ | PROT_WRITE) != 0)
        _Exit(3);
}

static void prepare_moment(CUstream *stream, CUdeviceptr *memory) {
    struct sigaction action = {.sa_handler = on_fault};
    init_driver();
    sem_init(&moment.faulted, 0, 0);
    sem_init(&moment.ended, 0, 0);
    OK_CU(cu.cuMemHostAlloc(&moment.source, COPY, 0));
    OK_CU(cu.cuMemAlloc_v2(memory, COPY));
    OK_CU(cu.cuStreamCreate(stream, CU_STREAM_NON_BLOCKING));
    OK_CU(cu.cuEventCreate(&moment.start, CU_EVENT_DEFAULT));
    OK_CU(cu.cuEventCreate(&moment.end, CU_EVENT_DEFAULT));
    OK_CU(cu.cuEventRecord(moment.start, *stream));
    OK_CU(cu.cuEventSynchronize(moment.start));
    assert_int_equal(mprotect(moment.source, COPY, PROT_NONE), 0);
    assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
}

/* Whoever asks again and again does little work in the question, with the lock released: the copy
 * before the second event, during which another thread destroys both. */
CHILD(destroyed_while_asked) {
    CUstream stream;
    CUdeviceptr memory;
    pthread_t thread;
    float elapsed = 0;
    void *failed = NULL;
    prepare_moment(&stream, &memory);
    assert_int_equal(pthread_create(&thread, NULL, destroy_both, NULL), 0);
    OK_CU(cu.cuMemcpyHtoDAsync_v2(memory, moment.source, COPY, stream));
    OK_CU(cu.cuEventRecord(moment.end, stream));
    FAILS_CU(NOT_READY, cu.cuEventElapsedTime(&elapsed, moment.start, moment.end));
    CUresult got = cu.cuEventElapsedTime(&elapsed, moment.start, moment.end);
    if (got == CUDA_ERROR_NOT_READY)
        return 128 + SIGSEGV; /* a worker was quicker, and dies of the fault: it takes no signals */
    assert_int_equal(got, CUDA_SUCCESS);
    assert_true(elapsed > 0);
    pthread_join(thread, &failed);
    assert_null(failed);
    return 0;
}

struct setting {
    const char *name;
    bool given;
    char value[64];
};

static struct setting put(const char *name, const char *value) {
    const char *given = getenv(name);
    struct setting setting = {.name = name, .given = given != NULL};
    snprintf(setting.value, sizeof setting.value, "%s", given ? given : "");
    setenv(name, value, 1);
    return setting;
}

static void put_back(const struct setting *setting) {
    if (setting->given)
        setenv(setting->name, setting->value, 1);
    else
        unsetenv(setting->name);
}

TEST(an_event_may_be_destroyed_during_a_query) {
    NEEDS_SOFTGPU("knows which thread copies, and when");
    struct setting schedule = put("SOFTGPU_SCHEDULE", "eager");
    /* What is freed is overwritten at once. */
    struct setting heap =
        put("GLIBC_TUNABLES", "glibc.malloc.perturb=90:glibc.malloc.tcache_count=0");
    /* Where a worker was quicker, once more. */
    int status = 128 + SIGSEGV;
    for (int i = 0; i < 20 && status == 128 + SIGSEGV; i++)
        status = run_child("destroyed_while_asked", NULL);
    put_back(&schedule);
    put_back(&heap);
    assert_int_equal(status, 0);
}
