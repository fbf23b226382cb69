/* The primary context: retained, released, reset, and the same handle throughout. */
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>

static void assert_state(int active, unsigned flags) {
    unsigned got_flags = 77;
    int got_active = 77;
    OK_CU(cu.cuDevicePrimaryCtxGetState(0, &got_flags, &got_active));
    assert_int_equal(got_active, active);
    assert_int_equal(got_flags, flags);
}

static CUcontext retain(void) {
    CUcontext context = MADE_CU(CUcontext, cuDevicePrimaryCtxRetain, 0);
    assert_non_null(context);
    return context;
}

CHILD_TEST(retains_of_the_primary_context_are_counted) {
    OK_CU(cu.cuInit(0));
    assert_state(0, 0);
    FAILS_CU(INVALID_CONTEXT, cu.cuDevicePrimaryCtxRelease_v2(0));
    CUcontext first = retain();
    CUcontext second = retain();
    assert_ptr_equal(first, second);
    assert_state(1, 0);
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(0));
    assert_state(1, 0);
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(0));
    assert_state(0, 0);
    FAILS_CU(INVALID_CONTEXT, cu.cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}

CHILD_TEST(retaining_the_primary_context_does_not_make_it_current) {
    OK_CU(cu.cuInit(0));
    CUcontext current = (CUcontext)&current;
    retain();
    OK_CU(cu.cuCtxGetCurrent(&current));
    assert_null(current);
    OK_CU(cu.cuDevicePrimaryCtxRelease(0));
    assert_state(0, 0);
    return 0;
}

CHILD_TEST(invalid_arguments_are_refused) {
    OK_CU(cu.cuInit(0));
    CUcontext context = NULL;
    unsigned flags;
    int active;
    FAILS_CU(INVALID_VALUE, cu.cuDevicePrimaryCtxRetain(NULL, 0));
    FAILS_CU(INVALID_DEVICE, cu.cuDevicePrimaryCtxRetain(&context, 99));
    FAILS_CU(INVALID_DEVICE, cu.cuDevicePrimaryCtxRelease_v2(99));
    FAILS_CU(INVALID_DEVICE, cu.cuDevicePrimaryCtxReset_v2(99));
    FAILS_CU(INVALID_DEVICE, cu.cuDevicePrimaryCtxSetFlags_v2(99, 0));
    FAILS_CU(INVALID_DEVICE, cu.cuDevicePrimaryCtxGetState(99, &flags, &active));
    FAILS_CU(INVALID_VALUE, cu.cuDevicePrimaryCtxSetFlags_v2(0, 3)); /* two ways to wait */
    FAILS_CU(INVALID_VALUE, cu.cuDevicePrimaryCtxSetFlags_v2(0, ~0u));
    assert_null(context);
    assert_state(0, 0);
    return 0;
}

CHILD_TEST(flags_are_reset_when_the_primary_context_is_released) {
    OK_CU(cu.cuInit(0));
    unsigned flags = 0;
    OK_CU(cu.cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_YIELD));
    assert_state(0, CU_CTX_SCHED_YIELD);
    CUcontext context = retain();
    FAILS_CU(PRIMARY_CONTEXT_ACTIVE, cu.cuDevicePrimaryCtxSetFlags(0, 0));
    OK_CU(cu.cuCtxSetCurrent(context));
    OK_CU(cu.cuCtxGetFlags(&flags));
    assert_int_equal(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_YIELD);
    OK_CU(cu.cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_BLOCKING_SYNC));
    assert_state(1, CU_CTX_SCHED_BLOCKING_SYNC);
    OK_CU(cu.cuCtxGetFlags(&flags));
    assert_int_equal(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_BLOCKING_SYNC);
    OK_CU(cu.cuCtxSetCurrent(NULL));
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(0));
    assert_state(0, 0);
    return 0;
}

/* A reset ends everything in the context, but not the retains. */
CHILD_TEST(a_reset_destroys_everything_in_the_primary_context) {
    OK_CU(cu.cuInit(0));
    CUcontext context = retain();
    OK_CU(cu.cuCtxSetCurrent(context));
    (void)MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    OK_CU(cu.cuDevicePrimaryCtxReset_v2(0));
    assert_state(0, 0);
    assert_int_not_equal(cu.cuCtxSynchronize(), CUDA_SUCCESS);
    CUcontext again = retain();
    assert_ptr_equal(again, context);
    OK_CU(cu.cuCtxSetCurrent(again));
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuCtxSetCurrent(NULL));
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(0));
    OK_CU(cu.cuDevicePrimaryCtxReset(0));
    assert_state(0, 0);
    return 0;
}

CHILD_TEST(the_primary_context_has_a_new_id_after_its_release) {
    OK_CU(cu.cuInit(0));
    unsigned long long first = GOT_CU(unsigned long long, cuCtxGetId, retain());
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(0));
    unsigned long long second = GOT_CU(unsigned long long, cuCtxGetId, retain());
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(0));
    assert_int_not_equal(first, 0);
    assert_int_not_equal(first, second);
    return 0;
}

/* Unlike cuCtxDestroy a release pops nothing: the thread keeps a context that is no more. */
CHILD_TEST(a_released_primary_context_stays_current) {
    OK_CU(cu.cuInit(0));
    CUcontext context = retain(), current = NULL;
    OK_CU(cu.cuCtxPushCurrent_v2(context));
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(0));
    OK_CU(cu.cuCtxGetCurrent(&current));
    assert_ptr_equal(current, context);
    assert_int_not_equal(cu.cuCtxSynchronize(), CUDA_SUCCESS);
    retain();
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuCtxPopCurrent_v2(&current));
    assert_ptr_equal(current, context);
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}

CHILD_TEST(the_primary_context_cannot_be_destroyed) {
    OK_CU(cu.cuInit(0));
    CUcontext context = retain();
    FAILS_CU(INVALID_CONTEXT, cu.cuCtxDestroy_v2(context));
    assert_state(1, 0);
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}

static atomic_int wrong;

static void expect(bool holds) {
    if (!holds)
        atomic_fetch_add(&wrong, 1);
}

/* Between its retain and its release a thread has a context that lives, whatever others do. */
static void *retain_and_release(void *unused) {
    int rounds = soft ? 100 : 2; /* hardware needs some 0.2 s to make a context */
    for (int i = 0; i < rounds; i++) {
        CUcontext context = NULL;
        expect(cu.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
        expect(cu.cuCtxSetCurrent(context) == CUDA_SUCCESS);
        expect(cu.cuCtxSynchronize() == CUDA_SUCCESS);
        expect(cu.cuCtxSetCurrent(NULL) == CUDA_SUCCESS);
        expect(cu.cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
    }
    return unused;
}

CHILD_TEST(many_threads_retain_the_primary_context) {
    pthread_t threads[8];
    OK_CU(cu.cuInit(0));
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, retain_and_release, NULL), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_state(0, 0);
    return 0;
}
