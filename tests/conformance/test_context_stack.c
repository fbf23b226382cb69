/* The stack of contexts that each thread has. */
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>

static CUcontext current(void) {
    CUcontext context = NULL;
    OK_CU(cu.cuCtxGetCurrent(&context));
    return context;
}

static CUcontext pop(void) {
    CUcontext context = NULL;
    OK_CU(cu.cuCtxPopCurrent_v2(&context));
    return context;
}

TEST(contexts_are_popped_in_reverse_order) {
    CUcontext a = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    CUcontext b = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    OK_CU(cu.cuCtxPushCurrent_v2(ctx));
    OK_CU(cu.cuCtxPushCurrent_v2(a));
    assert_ptr_equal(pop(), a);
    assert_ptr_equal(pop(), ctx);
    assert_ptr_equal(current(), b);
    assert_ptr_equal(pop(), b);
    assert_ptr_equal(pop(), a);
    assert_ptr_equal(current(), ctx);
    DESTROY_CU(b, a);
    assert_ptr_equal(current(), ctx);
}

TEST(the_first_versions_of_push_and_pop_work) {
    CUcontext popped = NULL;
    CUcontext a = new_context(dev);
    OK_CU(cu.cuCtxPopCurrent(&popped));
    assert_ptr_equal(popped, a);
    assert_ptr_equal(current(), ctx);
    OK_CU(cu.cuCtxPushCurrent(a));
    assert_ptr_equal(current(), a);
}

TEST(setting_the_current_context_replaces_the_top) {
    CUcontext a = new_context(dev);
    OK_CU(cu.cuCtxSetCurrent(ctx));
    assert_ptr_equal(pop(), ctx);
    assert_ptr_equal(pop(), ctx);
    assert_null(current());
    OK_CU(cu.cuCtxSetCurrent(a)); /* on an empty stack */
    assert_ptr_equal(pop(), a);
    OK_CU(cu.cuCtxPushCurrent_v2(ctx));
}

/* As recorded; but hardware reads what it has freed, and what follows is chance there. */
TEST(a_destroyed_context_can_be_pushed_but_not_used) {
    NEEDS_SOFTGPU("a dangling context is undefined behaviour elsewhere");
    CUdevice device;
    CUdeviceptr p;
    CUcontext a = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    OK_CU(cu.cuCtxDestroy_v2(a));
    OK_CU(cu.cuCtxPushCurrent_v2(a));
    assert_ptr_equal(current(), a);
    OK_CU(cu.cuCtxSetCurrent(a));
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuCtxSynchronize());
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuMemAlloc_v2(&p, 16));
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuCtxGetDevice(&device));
    FAILS_CU(INVALID_CONTEXT, cu.cuCtxDestroy_v2(a));
    assert_ptr_equal(pop(), a);
    assert_ptr_equal(current(), ctx);
}

TEST(setting_null_pops) {
    new_context(dev);
    OK_CU(cu.cuCtxSetCurrent(NULL));
    assert_ptr_equal(current(), ctx);
    OK_CU(cu.cuCtxSetCurrent(NULL));
    assert_null(current());
    OK_CU(cu.cuCtxSetCurrent(NULL)); /* nothing left, no error */
    OK_CU(cu.cuCtxSetCurrent(ctx));
}

TEST(popping_an_empty_stack_is_refused) {
    CUcontext popped = ctx;
    OK_CU(cu.cuCtxSetCurrent(NULL));
    FAILS_CU(INVALID_CONTEXT, cu.cuCtxPopCurrent_v2(&popped));
    assert_ptr_equal(popped, ctx);
    OK_CU(cu.cuCtxSetCurrent(ctx));
}

/* A destroyed context that is not on top stays where it is. */
TEST(a_destroyed_context_in_the_middle_stays_on_the_stack) {
    CUcontext a = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    CUcontext b = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    OK_CU(cu.cuCtxDestroy_v2(a));
    assert_ptr_equal(current(), b);
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuCtxDestroy_v2(b));
    assert_ptr_equal(pop(), a);
    assert_ptr_equal(current(), ctx);
}

/* However deep a stack may be, a push that is refused leaves it as it was. */
TEST(pushing_beyond_the_stack_limit_changes_nothing) {
    NEEDS_SOFTGPU("hardware's limit is not known");
    int pushed = 0;
    while (pushed < 1000 && cu.cuCtxPushCurrent_v2(ctx) == CUDA_SUCCESS)
        pushed++;
    assert_in_range(pushed, 8, 999);
    CUcontext made = NULL;
    FAILS_CU(OUT_OF_MEMORY, cu.cuCtxPushCurrent_v2(ctx));
    FAILS_CU(OUT_OF_MEMORY, cu.cuCtxCreate_v2(&made, 0, dev));
    assert_null(made);
    for (int i = 0; i < pushed; i++)
        assert_ptr_equal(pop(), ctx);
    assert_ptr_equal(current(), ctx);
}

/* ---- Threads --------------------------------------------------------------------------------- */

#define THREADS 8
#define ROUNDS  200

static CUcontext shared[2];
static atomic_int wrong;

static void expect(bool holds) {
    if (!holds)
        atomic_fetch_add(&wrong, 1);
}

static void *use_own_stack(void *unused) {
    CUcontext got = ctx;
    expect(cu.cuCtxGetCurrent(&got) == CUDA_SUCCESS && got == NULL);
    for (int i = 0; i < ROUNDS; i++) {
        CUcontext outer = shared[i & 1], inner = shared[!(i & 1)];
        expect(cu.cuCtxPushCurrent_v2(outer) == CUDA_SUCCESS);
        expect(cu.cuCtxPushCurrent_v2(inner) == CUDA_SUCCESS);
        expect(cu.cuCtxSynchronize() == CUDA_SUCCESS);
        expect(cu.cuCtxPopCurrent_v2(&got) == CUDA_SUCCESS && got == inner);
        expect(cu.cuCtxGetCurrent(&got) == CUDA_SUCCESS && got == outer);
        expect(cu.cuCtxPopCurrent_v2(&got) == CUDA_SUCCESS && got == outer);
    }
    /* The stack of a thread that ends gives back what is on it. */
    expect(cu.cuCtxPushCurrent_v2(shared[0]) == CUDA_SUCCESS);
    return unused;
}

TEST(each_thread_has_its_own_context_stack) {
    pthread_t threads[THREADS];
    atomic_store(&wrong, 0);
    shared[0] = ctx;
    OK_CU(cu.cuCtxCreate_v2(&shared[1], 0, dev));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_own_stack, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_ptr_equal(current(), shared[1]);
    OK_CU(cu.cuCtxDestroy_v2(shared[1]));
}

static void *make_and_end(void *unused) {
    CUcontext made = NULL, got = NULL;
    for (int i = 0; i < 20; i++) {
        expect(cu.cuCtxCreate_v2(&made, 0, dev) == CUDA_SUCCESS);
        expect(cu.cuCtxGetCurrent(&got) == CUDA_SUCCESS && got == made);
        expect(cu.cuCtxDestroy_v2(made) == CUDA_SUCCESS);
        expect(cu.cuCtxGetCurrent(&got) == CUDA_SUCCESS && got == NULL);
        expect(cu.cuDevicePrimaryCtxRetain(&got, dev) == CUDA_SUCCESS && got == ctx);
        expect(cu.cuDevicePrimaryCtxRelease_v2(dev) == CUDA_SUCCESS);
    }
    return unused;
}

TEST(threads_create_and_destroy_contexts) {
    pthread_t threads[THREADS / 2];
    atomic_store(&wrong, 0);
    for (int i = 0; i < THREADS / 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_and_end, NULL), 0);
    for (int i = 0; i < THREADS / 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    OK_CU(cu.cuCtxSynchronize());
}
