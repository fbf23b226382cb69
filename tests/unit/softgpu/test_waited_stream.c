/* A stream that ends while threads wait for it: they do not touch what is gone. */
#include "softgpu/core/handle.h"
#include "softgpu/pool/internal.h"
#include "softgpu/stream/schedule.h"

#include "test.h"
#include <sched.h>

#define CU_FN(symbol, name, version, kind, params, args) CUresult CUDAAPI symbol params;
#include <gpumem/functions.def>

#define ROUNDS 20

static CUcontext primary;
static atomic_bool gate_open;

static bool gate(struct sg_op *op) {
    return atomic_load(&gate_open);
}

static void ok(CUresult result) {
    assert_int_equal(result, CUDA_SUCCESS);
}

/* Work that is not done before the gate opens. */
static void hold(CUstream handle) {
    struct sg_stream *stream;
    sg_lock();
    ok(sg_stream_find(handle, &stream));
    struct sg_op *op = sg_op_new(NULL);
    assert_non_null(op);
    op->ready = gate;
    ok(sg_stream_submit(stream, op));
    sg_unlock();
}

/* Threads that sleep behind the gate have looked their stream up. */
static void until_waiting(unsigned threads) {
    for (unsigned waiting = 0; waiting < threads; sched_yield()) {
        sg_lock();
        waiting = sg_waiters;
        sg_unlock();
    }
}

struct waiter {
    pthread_t thread;
    CUcontext context;
    CUstream stream;
    CUresult result;
};

static void *synchronize(void *argument) {
    struct waiter *waiter = argument;
    waiter->result = cuCtxSetCurrent(waiter->context);
    if (waiter->result == CUDA_SUCCESS)
        waiter->result = cuStreamSynchronize(waiter->stream);
    (void)cuCtxSetCurrent(NULL);
    return NULL;
}

static void *destroy_context(void *argument) {
    struct waiter *waiter = argument;
    waiter->result = cuCtxDestroy_v2(waiter->context);
    return NULL;
}

static void start(struct waiter *waiter, void *(*run)(void *)) {
    assert_int_equal(pthread_create(&waiter->thread, NULL, run, waiter), 0);
}

static void join(struct waiter *waiter) {
    pthread_join(waiter->thread, NULL);
    ok(waiter->result);
}

static uint64_t reserved(void) {
    CUmemoryPool pool;
    cuuint64_t bytes = 0;
    ok(cuDeviceGetDefaultMemPool(&pool, 0));
    ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes));
    return bytes;
}

static void destroy_while_waited_for(CUstream stream) {
    struct waiter waiter = {.context = primary, .stream = stream};
    start(&waiter, synchronize);
    until_waiting(1);
    ok(cuStreamDestroy_v2(stream));
    atomic_store(&gate_open, true);
    join(&waiter);
}

/* Nothing else refers to the stream: it goes with the wait. AddressSanitizer sees who looks. */
TEST(a_stream_may_be_destroyed_while_it_is_waited_for) {
    for (int round = 0; round < ROUNDS; round++) {
        CUstream stream;
        atomic_store(&gate_open, false);
        ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        hold(stream);
        destroy_while_waited_for(stream);
    }
}

TEST(waiting_for_a_destroyed_stream_releases_its_pool_memory) {
    CUdeviceptr bytes;
    CUstream stream;
    atomic_store(&gate_open, false);
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuMemAllocAsync(&bytes, 4096, stream));
    hold(stream);
    ok(cuMemFreeAsync(bytes, stream));
    destroy_while_waited_for(stream);
    assert_int_equal(reserved(), 0);
}

/* Who ends first is chance: the wait, or the end of the context. */
TEST(a_context_may_be_destroyed_while_its_legacy_stream_is_waited_for) {
    for (int round = 0; round < ROUNDS; round++) {
        struct waiter waiter = {.stream = CU_STREAM_LEGACY}, other;
        CUcontext popped;
        CUstream stream;
        atomic_store(&gate_open, false);
        ok(cuCtxCreate_v2(&waiter.context, 0, 0));
        ok(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
        hold(stream);
        ok(cuCtxPopCurrent_v2(&popped));
        start(&waiter, synchronize);
        until_waiting(1);
        other = waiter;
        start(&other, destroy_context);
        until_waiting(2);
        atomic_store(&gate_open, true);
        join(&waiter);
        join(&other);
    }
}

static int begin(void **state) {
    ok(cuInit(0));
    ok(cuDevicePrimaryCtxRetain(&primary, 0));
    ok(cuCtxSetCurrent(primary));
    return 0;
}

static int end(void **state) {
    ok(cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}

ALL_TESTS(begin, end);
