/* A process may end while streams are at work: nothing hangs and nothing crashes. */
#include "harness.h"

#include <stdatomic.h>
#include <time.h>

#define SIZE ((size_t)32 << 20)

static void queue_copies(void) {
    init_driver();
    CUdeviceptr a = MADE_CU(CUdeviceptr, cuMemAlloc_v2, SIZE);
    for (unsigned i = 0; i < 4; i++) {
        CUdeviceptr b = MADE_CU(CUdeviceptr, cuMemAlloc_v2, SIZE);
        CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
        for (unsigned k = 0; k < 50; k++)
            OK_CU(cu.cuMemcpyDtoDAsync_v2(b, a, SIZE, stream));
    }
}

static void pause_for(long milliseconds) {
    struct timespec time = {0, milliseconds * 1000000};
    nanosleep(&time, NULL);
}

CHILD_TEST(a_process_may_exit_during_copies) {
    queue_copies();
    pause_for(3); /* so that workers are at it */
    return 0;
}

/* Long enough in exit handlers for workers to notice, or to touch what is gone. */
static void slow_handler(void) {
    pause_for(20);
}

CHILD_TEST(a_process_may_exit_during_copies_with_slow_exit_handlers) {
    atexit(slow_handler);
    queue_copies();
    pause_for(3);
    return 0;
}

static atomic_bool entered;

static void CUDAAPI stay(void *unused) {
    atomic_store(&entered, true);
    for (;;)
        pause_for(100);
}

CHILD_TEST_WHERE(a_process_may_exit_during_a_host_function,
                 NEEDS_SOFTGPU("hardware may wait for host functions")) {
    init_driver();
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    OK_CU(cu.cuLaunchHostFunc(stream, stay, NULL));
    while (!atomic_load(&entered))
        pause_for(1);
    return 0;
}

CHILD_TEST_WHERE(a_process_may_exit_with_a_stream_blocked_forever,
                 NEEDS_SOFTGPU("nothing says what hardware does")) {
    struct gate gate;
    init_driver();
    gate_make(&gate);
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    gate_hold(&gate, stream);
    pause_for(2);
    return 0;
}
