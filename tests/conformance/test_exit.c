/* The end of the process: who can still call, and that nothing hangs. */
#include "harness.h"

#include <pthread.h>
#include <signal.h>

/* What a child exits with once its last handler saw what it should see. */
#define SEEN          42
#define LIMIT_SECONDS 20

static int child_result = SEEN;

static void expect(CUresult wanted) {
    CUdeviceptr memory;
    CUcontext current;
    if (cu.cuCtxGetCurrent(&current) != wanted)
        child_result = 1;
    if (cu.cuMemAlloc_v2(&memory, 4096) != wanted)
        child_result = 2;
}

static void expect_work(void) {
    expect(CUDA_SUCCESS);
}

static void expect_the_end(void) {
    expect(CUDA_ERROR_DEINITIALIZED);
    if (cu.cuInit(0) != CUDA_ERROR_DEINITIALIZED)
        child_result = 3;
    _exit(child_result);
}

CHILD_THAT_ENDS(handlers) {
    alarm(LIMIT_SECONDS);
    atexit(expect_the_end);
    init_driver();
    atexit(expect_work);
}

TEST_IS(exit_handlers_registered_before_cuinit_run_after_the_driver,
        assert_int_equal(run_child("handlers", NULL), SEEN));

static bool in_destructor;

__attribute__((destructor)) static void last_words(void) {
    if (in_destructor)
        expect_the_end();
}

CHILD_THAT_ENDS(destructor) {
    alarm(LIMIT_SECONDS);
    init_driver();
    in_destructor = true;
}

TEST_IS(destructors_run_after_the_driver, assert_int_equal(run_child("destructor", NULL), SEEN));

static void *wait_for_ever(void *stream) {
    OK_CU(cu.cuCtxSetCurrent(ctx));
    cu.cuStreamSynchronize(stream);
    return NULL;
}

/* Work that never ends, a thread that waits for it, and a process that has had enough. */
CHILD(busy) {
    alarm(LIMIT_SECONDS);
    init_driver();
    struct gate gate;
    pthread_t thread;
    gate_make(&gate);
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    gate_hold(&gate, stream);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, stream), 0);
    pthread_detach(thread);
    usleep(20000); /* it is likelier to wait by then; either way the process must end */
    return SEEN;
}

TEST(a_waiting_thread_does_not_delay_process_exit) {
    NEEDS_SOFTGPU("the driver's own behaviour here is not promised");
    assert_int_equal(run_child("busy", NULL), SEEN);
}
