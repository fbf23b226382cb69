/* Many threads in the driver at once; the run under ThreadSanitizer is what gives this its worth.
 */
#include "harness.h"

#include <pthread.h>

#define THREADS 6
#define ROUNDS  300
#define BYTES   4096

static void *work(void *argument) {
    unsigned seed = *(unsigned *)argument;
    unsigned char sent[BYTES], got[BYTES];
    OK_CU(cu.cuCtxSetCurrent(ctx));
    CUstream stream = new_stream();
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUcontext current;
        CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAlloc_v2, BYTES);
        fill_pattern(sent, BYTES, seed + round);
        OK_CU(cu.cuMemcpyHtoDAsync_v2(memory, sent, BYTES, stream));
        OK_CU(cu.cuMemcpyDtoHAsync_v2(got, memory, BYTES, stream));
        OK_CU(cu.cuCtxPushCurrent_v2(ctx));
        OK_CU(cu.cuCtxPopCurrent_v2(&current));
        (void)GOT_CU(const char *, cuGetErrorName, CUDA_SUCCESS);
        OK_CU(cu.cuStreamSynchronize(stream));
        assert_true(has_pattern(got, BYTES, seed + round));
        OK_CU(cu.cuMemFree_v2(memory));
        FAILS_CU(INVALID_VALUE, cu.cuMemAlloc_v2(&memory, 0));
    }
    return NULL;
}

TEST(concurrent_threads_do_not_disturb_each_other) {
    pthread_t threads[THREADS];
    unsigned seeds[THREADS];
    uint64_t before = soft ? soft->call_count("cuMemAlloc_v2") : 0;
    for (unsigned i = 0; i < THREADS; i++) {
        seeds[i] = 1000 * i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &seeds[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (soft) /* none of them is lost */
        assert_int_equal(soft->call_count("cuMemAlloc_v2") - before, 2 * THREADS * ROUNDS);
}

static void *arm_and_disarm(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        soft->fault_arm("cuDeviceGetUuid_v2", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_BEFORE);
        soft->fault_disarm();
    }
    return NULL;
}

TEST_WHERE(faults_are_injected_and_cleared_during_calls, NEEDS_UUID()) {
    NEEDS_SOFTGPU("injects faults");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, arm_and_disarm, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        CUuuid id;
        CUresult result = cu.cuDeviceGetUuid_v2(&id, dev);
        assert_true(result == CUDA_SUCCESS || result == CUDA_ERROR_UNKNOWN);
    }
    pthread_join(thread, NULL);
}
