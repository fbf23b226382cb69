/* Contexts that the application creates. */
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static CUcontext current(void) {
    CUcontext context = NULL;
    OK_CU(cu.cuCtxGetCurrent(&context));
    return context;
}

TEST(every_version_of_context_creation_works) {
    CUcontext made[3] = {0}, first = NULL;
    OK_CU(cu.cuCtxCreate_v2(&made[0], 0, 0));
    OK_CU(cu.cuCtxCreate_v3(&made[1], NULL, 0, 0, 0));
    OK_CU(cu.cuCtxCreate_v4(&made[2], NULL, 0, 0));
    FAILS_CU(OUT_OF_MEMORY, cu.cuCtxCreate(&first, 0, 0));
    assert_null(first);
    for (int i = 2; i >= 0; i--) {
        assert_ptr_equal(current(), made[i]);
        unsigned version = GOT_CU(unsigned, cuCtxGetApiVersion, made[i]);
        assert_in_range(version, 3020, 13000);
        OK_CU(cu.cuCtxDestroy_v2(made[i]));
    }
    assert_ptr_equal(current(), ctx);
}

/* Contexts of the first version, whose addresses have 32 bits, and later ones exclude each other on
 * a device, so that these need a process of their own. */
CHILD_TEST(contexts_of_the_first_version_exclude_later_ones) {
    CUcontext first = NULL, second = NULL, newer = NULL;
    OK_CU(cu.cuInit(0));
    OK_CU(cu.cuCtxCreate(&first, 0, 0));
    assert_int_equal(GOT_CU(unsigned, cuCtxGetApiVersion, first), 3010);
    OK_CU(cu.cuCtxCreate(&second, 0, 0));
    assert_ptr_equal(current(), second);
    FAILS_CU(OUT_OF_MEMORY, cu.cuCtxCreate_v2(&newer, 0, 0));
    FAILS_CU(OUT_OF_MEMORY, cu.cuDevicePrimaryCtxRetain(&newer, 0));
    assert_null(newer);
    FAILS_CU(INVALID_CONTEXT, cu.cuCtxDestroy(first)); /* it is not the current one */
    OK_CU(cu.cuCtxDestroy(second));
    assert_ptr_equal(current(), first);
    OK_CU(cu.cuCtxDestroy(first));
    assert_null(current());
    return 0;
}

TEST(invalid_arguments_are_refused) {
    CUcontext context = NULL;
    FAILS_CU(INVALID_DEVICE, cu.cuCtxCreate_v2(&context, 0, 99));
    FAILS_CU(INVALID_VALUE, cu.cuCtxCreate_v2(&context, 3, 0)); /* two ways to wait */
    FAILS_CU(INVALID_VALUE, cu.cuCtxCreate_v2(&context, ~0u, 0));
    assert_null(context);
    assert_ptr_equal(current(), ctx);
}

TEST(flags_are_kept_and_changed) {
    unsigned flags = 0;
    CUcontext context = MADE_CU(CUcontext, cuCtxCreate_v2, CU_CTX_SCHED_YIELD, 0);
    OK_CU(cu.cuCtxGetFlags(&flags));
    assert_int_equal(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_YIELD);
    OK_CU(cu.cuCtxSetFlags(CU_CTX_SCHED_BLOCKING_SYNC));
    OK_CU(cu.cuCtxGetFlags(&flags));
    assert_int_equal(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_BLOCKING_SYNC);
    FAILS_CU(INVALID_VALUE, cu.cuCtxSetFlags(~0u));
    OK_CU(cu.cuCtxDestroy_v2(context));
    OK_CU(cu.cuCtxSetCurrent(NULL));
}

TEST(a_context_knows_its_device_and_id) {
    CUdevice device = -1;
    unsigned long long id[3] = {0, 0, 0};
    CUcontext first = MADE_CU(CUcontext, cuCtxCreate_v2, 0, 0);
    CUcontext second = MADE_CU(CUcontext, cuCtxCreate_v2, 0, 0);
    OK_CU(cu.cuCtxGetDevice(&device));
    assert_int_equal(device, 0);
    device = -1;
    OK_CU(cu.cuCtxGetDevice_v2(&device, first));
    assert_int_equal(device, 0);
    OK_CU(cu.cuCtxGetId(first, &id[0]));
    OK_CU(cu.cuCtxGetId(second, &id[1]));
    OK_CU(cu.cuCtxGetId(NULL, &id[2]));
    assert_int_not_equal(id[0], id[1]);
    assert_int_equal(id[1], id[2]);
    DESTROY_CU(second, first);
    OK_CU(cu.cuCtxSetCurrent(NULL));
}

TEST(a_destroyed_context_below_the_top_stays_on_the_stack) {
    CUcontext below, top, popped = NULL;
    OK_CU(cu.cuCtxCreate_v2(&below, 0, 0));
    OK_CU(cu.cuCtxCreate_v2(&top, 0, 0));
    OK_CU(cu.cuCtxDestroy_v2(below));
    assert_ptr_equal(current(), top);
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuCtxDestroy_v2(top));
    /* It stays on the stack, and answers nothing any more. */
    assert_ptr_equal(current(), below);
    assert_int_not_equal(cu.cuCtxSynchronize(), CUDA_SUCCESS);
    OK_CU(cu.cuCtxPopCurrent_v2(&popped));
    assert_ptr_equal(popped, below);
    assert_ptr_equal(current(), ctx);
}

static void *destroy_it(void *context) {
    CUresult result = cu.cuCtxDestroy_v2(context);
    return (void *)(uintptr_t)result;
}

/* Recorded on H200: it comes before the arguments, and for copies and frees even before a stream or
 * memory of a context that is alive. Events and pools need no current context. */
static void check_what_a_gone_context_answers(CUstream stream, CUdeviceptr memory, CUevent event) {
    CUDA_MEMCPY2D nothing = {0};
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuMemcpyDtoDAsync_v2(memory, memory, 64, stream));
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuMemcpy2DAsync_v2(&nothing, stream));
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuMemFree_v2(memory));
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuMemFreeHost(NULL));
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuMemHostUnregister(NULL));
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuEventCreate(NULL, 0));
    OK_CU(cu.cuMemsetD8Async(memory, 1, 64, stream));
    OK_CU(cu.cuEventRecord(event, stream));
    OK_CU(cu.cuEventSynchronize(event));
}

TEST(a_context_may_be_destroyed_by_another_thread) {
    pthread_t thread;
    void *result;
    CUdeviceptr memory = new_memory(64);
    CUstream stream = new_blocking_stream();
    CUevent event = new_timed_event();
    unsigned version;
    CUdevice device = -1;
    CUcontext context = MADE_CU(CUcontext, cuCtxCreate_v2, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, destroy_it, context), 0);
    pthread_join(thread, &result);
    assert_int_equal((uintptr_t)result, CUDA_SUCCESS);
    assert_ptr_equal(current(), context);
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuCtxGetApiVersion(NULL, &version));
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuCtxSynchronize());
    OK_CU(cu.cuCtxGetDevice(&device)); /* this much is still known */
    assert_int_equal(device, dev);
    check_what_a_gone_context_answers(stream, memory, event);
    OK_CU(cu.cuCtxPopCurrent_v2(NULL));
}

/* ---- Synchronize ----------------------------------------------------------------------------- */

static atomic_int released, finished;

static void wait_for_release(void *unused) {
    while (!atomic_load(&released))
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    atomic_store(&finished, 1);
}

static void *release_soon(void *unused) {
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    atomic_store(&released, 1);
    return unused;
}

static CUresult synchronize_v1(CUcontext context) {
    return cu.cuCtxSynchronize();
}

/* A call that does not wait finds the host function still held: nothing releases it for 20 ms. */
static void check_that_it_waits(CUresult (*synchronize)(CUcontext), CUcontext context,
                                CUstream stream) {
    pthread_t thread;
    atomic_store(&released, 0);
    atomic_store(&finished, 0);
    OK_CU(cu.cuLaunchHostFunc(stream, wait_for_release, NULL));
    assert_int_equal(pthread_create(&thread, NULL, release_soon, NULL), 0);
    CUresult result = synchronize(context);
    int was_finished = atomic_load(&finished);
    pthread_join(thread, NULL);
    assert_int_equal(result, CUDA_SUCCESS);
    assert_int_equal(was_finished, 1);
}

TEST(synchronizing_a_context_waits_for_all_streams) {
    CUcontext context = new_context(0);
    CUstream stream = new_stream();
    check_that_it_waits(synchronize_v1, context, stream);
    check_that_it_waits(synchronize_v1, context, NULL);
    if (gpumem_driver_has(driver, GPUMEM_FN_cuCtxSynchronize_v2)) {
        OK_CU(cu.cuCtxSetCurrent(NULL));
        OK_CU(cu.cuCtxSetCurrent(NULL));
        FAILS_CU(INVALID_CONTEXT, cu.cuCtxSynchronize());
        FAILS_CU(INVALID_CONTEXT, cu.cuCtxSynchronize_v2(NULL));
        OK_CU(cu.cuCtxPushCurrent_v2(ctx)); /* another than the one that is named */
        check_that_it_waits(cu.cuCtxSynchronize_v2, context, stream);
        OK_CU(cu.cuCtxPushCurrent_v2(context));
    }
}

TEST(destroying_a_context_waits_for_its_work) {
    CUcontext context = MADE_CU(CUcontext, cuCtxCreate_v2, 0, 0);
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    check_that_it_waits(cu.cuCtxDestroy_v2, context, stream);
}

/* ---- Counted uses, as before CUDA 4.0 -------------------------------------------------------- */

TEST(attaching_and_detaching_are_counted) {
    OK_CU(cu.cuCtxSetCurrent(NULL));
    CUcontext context = MADE_CU(CUcontext, cuCtxCreate_v2, 0, 0);
    assert_ptr_equal(MADE_CU(CUcontext, cuCtxAttach, 0), context);
    OK_CU(cu.cuCtxDetach(context));
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuCtxDetach(context));
    assert_null(current());
}

/* NVIDIA's driver dereferences such values, so only softgpu is asked. */
TEST(invalid_context_handles_are_refused) {
    NEEDS_SOFTGPU("a wrong handle is undefined behaviour on hardware");
    CUcontext stale, wrong[3];
    CUdevice device;
    unsigned version;
    unsigned long long id;
    OK_CU(cu.cuCtxCreate_v2(&stale, 0, 0));
    OK_CU(cu.cuCtxDestroy_v2(stale));
    FAILS_CU(INVALID_CONTEXT, cu.cuCtxDestroy_v2(stale));
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuCtxGetId(stale, &id));
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuCtxSynchronize_v2(stale));
    FAILS_CU(INVALID_CONTEXT, cu.cuCtxGetApiVersion(stale, &version));
    wrong[0] = (CUcontext)(uintptr_t)0x1234;
    wrong[1] = (CUcontext)&wrong;
    wrong[2] = (CUcontext)(uintptr_t)UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        FAILS_CU(INVALID_CONTEXT, cu.cuCtxDestroy_v2(wrong[i]));
        FAILS_CU(INVALID_CONTEXT, cu.cuCtxSetCurrent(wrong[i]));
        FAILS_CU(INVALID_CONTEXT, cu.cuCtxPushCurrent_v2(wrong[i]));
        FAILS_CU(INVALID_CONTEXT, cu.cuCtxGetDevice_v2(&device, wrong[i]));
        FAILS_CU(INVALID_CONTEXT, cu.cuCtxGetApiVersion(wrong[i], &version));
        FAILS_CU(INVALID_CONTEXT, cu.cuCtxGetId(wrong[i], &id));
        FAILS_CU(INVALID_CONTEXT, cu.cuCtxSynchronize_v2(wrong[i]));
        FAILS_CU(INVALID_CONTEXT, cu.cuCtxDetach(wrong[i]));
    }
    assert_ptr_equal(current(), ctx);
}

TEST(execution_affinity_needs_mps) {
    CUcontext context = NULL;
    CUexecAffinityParam one = {CU_EXEC_AFFINITY_TYPE_SM_COUNT, {{1}}}, got;
    int supported = 1, processors = -1;
    OK_CU(cu.cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    if (supported)
        SKIP("this machine runs MPS");
    FAILS_CU(UNSUPPORTED_EXEC_AFFINITY, cu.cuCtxCreate_v3(&context, &one, 1, 0, 0));
    assert_null(context);
    context = new_context(0);
    OK_CU(cu.cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    memset(&got, 0xff, sizeof got);
    OK_CU(cu.cuCtxGetExecAffinity(&got, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
    assert_int_equal(got.type, CU_EXEC_AFFINITY_TYPE_SM_COUNT);
    assert_int_equal(got.param.smCount.val, processors);
}
