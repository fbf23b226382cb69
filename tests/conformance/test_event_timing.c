/* Elapsed time: between completions, in milliseconds. */
#include "harness.h"

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
    OK(cu.cuStreamCreate(&scene.stream, CU_STREAM_NON_BLOCKING));
    OK(cu.cuEventCreate(&scene.start, flags));
    OK(cu.cuEventCreate(&scene.end, flags));
    gate_make(&scene.gate);
    return scene;
}

static void end(struct scene *scene) {
    gate_release(&scene->gate);
    OK(cu.cuStreamSynchronize(scene->stream));
    gate_free(&scene->gate);
    OK(cu.cuEventDestroy_v2(scene->start));
    OK(cu.cuEventDestroy_v2(scene->end));
    OK(cu.cuStreamDestroy_v2(scene->stream));
}

/* The gate keeps the second event from completing for a time that the host measures. */
static void it_is_the_time_between_completions(void **state) {
    (void)state;
    struct scene scene = make(CU_EVENT_DEFAULT);
    float elapsed = -1;
    OK(cu.cuEventRecord(scene.start, scene.stream));
    OK(cu.cuEventSynchronize(scene.start));
    double begin = milliseconds();
    gate_hold(&scene.gate, scene.stream);
    OK(cu.cuEventRecord(scene.end, scene.stream));
    while (milliseconds() < begin + 5)
        ;
    gate_release(&scene.gate);
    OK(cu.cuEventSynchronize(scene.end));
    double after = milliseconds();
    OK(cu.cuEventElapsedTime(&elapsed, scene.start, scene.end));
    assert_true(elapsed >= 4.9);
    /* The first event completed at some time before `begin`; a generous bound tells a wrong unit.
     */
    assert_true(elapsed < (float)(after - begin) + 1000);
    if (gpumem_driver_has(driver, GPUMEM_FN_cuEventElapsedTime_v2)) {
        float again = -1;
        OK(cu.cuEventElapsedTime_v2(&again, scene.start, scene.end));
        assert_true(again == elapsed);
    }
    OK(cu.cuEventElapsedTime(&elapsed, scene.end, scene.start));
    assert_true(elapsed < 0);
    end(&scene);
}

static void both_must_be_recorded_and_complete(void **state) {
    (void)state;
    struct scene scene = make(CU_EVENT_DEFAULT);
    float elapsed = -1;
    FAILS(CUDA_ERROR_INVALID_HANDLE, cu.cuEventElapsedTime(&elapsed, scene.start, scene.end));
    OK(cu.cuEventRecord(scene.start, scene.stream));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cu.cuEventElapsedTime(&elapsed, scene.start, scene.end));
    gate_hold(&scene.gate, scene.stream);
    OK(cu.cuEventRecord(scene.end, scene.stream));
    FAILS(CUDA_ERROR_NOT_READY, cu.cuEventElapsedTime(&elapsed, scene.start, scene.end));
    assert_true(elapsed == -1);
    end(&scene);
}

static void untimed_events_have_no_time(void **state) {
    (void)state;
    struct scene scene = make(CU_EVENT_DISABLE_TIMING);
    float elapsed = -1;
    OK(cu.cuEventRecord(scene.start, scene.stream));
    OK(cu.cuEventRecord(scene.end, scene.stream));
    OK(cu.cuStreamSynchronize(scene.stream));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cu.cuEventElapsedTime(&elapsed, scene.start, scene.end));
    end(&scene);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(it_is_the_time_between_completions),
        TEST(both_must_be_recorded_and_complete),
        TEST(untimed_events_have_no_time),
    };
    return conformance(argc, argv, tests, COUNT(tests), NULL, 0);
}
