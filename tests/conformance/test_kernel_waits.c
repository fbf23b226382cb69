/* Kernels that wait for each other, for the host and for copies; and threads that wait for them. */
#include "kernels.h"

#include <pthread.h>

static const char text[] = KERNELS_HEAD
    ".visible .entry probe() { ret; }\n"
    /* `rounds` times: waits until p[mine] is the number of the round, then p[other] = p[mine] + 1
     * for the first of two, or the same number for the second. */
    ".visible .entry turns(.param .u64 mine, .param .u64 other, .param .u32 rounds,\n"
    ".param .u32 step) {\n"
    ".reg .pred %q; .reg .b32 %r<6>; .reg .b64 %d<3>; ld.param.u64 %d1, [mine];\n"
    "ld.param.u64 %d2, [other]; ld.param.u32 %r1, [rounds]; ld.param.u32 %r2, [step];\n"
    "mov.u32 %r3, 1;\n"
    "AGAIN: ld.acquire.sys.global.u32 %r4, [%d1]; setp.ne.u32 %q, %r4, %r3; @%q bra AGAIN;\n"
    "add.u32 %r5, %r3, %r2; st.release.sys.global.u32 [%d2], %r5;\n"
    "add.u32 %r3, %r3, 1; setp.le.u32 %q, %r3, %r1; @%q bra AGAIN; ret; }\n"
    /* waits until p[0] is not 0, then p[1] = p[0] + 1 */
    ".visible .entry wait_for(.param .u64 p) {\n"
    ".reg .pred %q; .reg .b32 %r<3>; .reg .b64 %d<2>; ld.param.u64 %d1, [p];\n"
    "AGAIN: ld.acquire.sys.global.u32 %r1, [%d1]; setp.eq.u32 %q, %r1, 0; @%q bra AGAIN;\n"
    "add.u32 %r2, %r1, 1; st.release.sys.global.u32 [%d1+4], %r2; ret; }\n"
    /* p[0] = value */
    ".visible .entry store(.param .u64 p, .param .u32 value) { .reg .b32 %r<2>; .reg .b64 %d<2>;\n"
    "ld.param.u64 %d1, [p]; ld.param.u32 %r1, [value]; st.release.sys.global.u32 [%d1], %r1;\n"
    "ret; }\n"
    /* the first warp sleeps twenty milliseconds, p[0] = how many microseconds that took; the second
     * counts to p[1] meanwhile */
    ".visible .entry sleep(.param .u64 p) { .reg .pred %p, %q; .reg .b32 %r<6>; .reg .b64 %d<5>;\n"
    ".shared .b32 over; ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0;\n"
    "st.volatile.shared.u32 [over], %r2; bar.sync 0; setp.ge.u32 %p, %r1, 32; @%p bra COUNT;\n"
    "mov.u64 %d2, %globaltimer;\nSLEEP: nanosleep.u32 1000000; add.u32 %r2, %r2, 1;\n"
    "setp.lt.u32 %q, %r2, 20; @%q bra SLEEP; mov.u64 %d3, %globaltimer; sub.u64 %d3, %d3, %d2;\n"
    "div.u64 %d3, %d3, 1000; cvt.u32.u64 %r3, %d3; st.global.u32 [%d1], %r3; mov.u32 %r4, 1;\n"
    "st.volatile.shared.u32 [over], %r4; ret;\nCOUNT: add.u32 %r2, %r2, 1;\n"
    "ld.volatile.shared.u32 %r3, [over]; setp.eq.u32 %q, %r3, 0; @%q bra COUNT;\n"
    "st.global.u32 [%d1+4], %r2; ret; }\n";

static struct shared_words words;

static void begin(void) {
    kernels_open(text);
    words = words_make(16);
}

static CUstream stream_with(int priority) {
    CUstream stream;
    OK_CU(cu.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priority));
    return stream;
}

static void launch_turns(CUstream stream, unsigned mine, unsigned other, unsigned rounds,
                         unsigned step) {
    CUdeviceptr p = words.device + 4 * (CUdeviceptr)mine;
    CUdeviceptr q = words.device + 4 * (CUdeviceptr)other;
    void *params[] = {&p, &q, &rounds, &step};
    OK_CU(cu.cuLaunchKernel(kernel("turns"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

/* Of two kernels each waits for the other, a thousand times; whoever waits for either. */
TEST(two_kernels_may_spin_for_each_other) {
    enum { ROUNDS = 1000 };
    begin();
    for (int way = 0; way < 3; way++) {
        int greatest = GOT_CU(int, cuCtxGetStreamPriorityRange, NULL);
        CUstream first = stream_with(0), second = stream_with(way == 2 ? greatest : 0);
        words.host[0] = words.host[1] = 0;
        launch_turns(first, 0, 1, ROUNDS, 0);
        launch_turns(second, 1, 0, ROUNDS, 1);
        __atomic_store_n(&words.host[0], 1, __ATOMIC_RELEASE);
        OK_CU(cu.cuStreamSynchronize(way == 0 ? first : second));
        OK_CU(cu.cuCtxSynchronize());
        assert_int_equal(words.host[0], ROUNDS + 1);
        DESTROY_CU(first, second);
    }
}

/* An H200 takes 20.9 ms, and the second warp counts to 520,000. */
TEST(a_warp_sleeps_as_long_as_it_asks_while_others_run) {
    begin();
    void *params[] = {&words.device};
    OK_CU(cu.cuLaunchKernel(kernel("sleep"), 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    OK_CU(cu.cuCtxSynchronize());
    print_message("# %u us, counted to %u\n", words.host[0], words.host[1]);
    assert_true(words.host[0] >= 19000 && words.host[1] > 1000);
}

/* Nobody waits: the driver itself runs both, while the host only looks. */
TEST(kernels_run_while_the_host_only_polls) {
    begin();
    CUstream first = stream_with(0), second = stream_with(0);
    launch_turns(first, 0, 1, 100, 0);
    launch_turns(second, 1, 0, 100, 1);
    __atomic_store_n(&words.host[0], 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&words.host[0], __ATOMIC_ACQUIRE) != 101)
        ;
    OK_CU(cu.cuCtxSynchronize());
    DESTROY_CU(first, second);
}

static void *answer(void *argument) {
    volatile unsigned *host = argument;
    for (unsigned round = 1; round <= 200; round++) {
        while (__atomic_load_n(&host[1], __ATOMIC_ACQUIRE) != round)
            ;
        __atomic_store_n(&host[0], round + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

TEST(host_and_kernel_may_wait_for_each_other) {
    begin();
    pthread_t thread;
    CUstream stream = stream_with(0);
    launch_turns(stream, 0, 1, 200, 0);
    assert_int_equal(pthread_create(&thread, NULL, answer, (void *)(uintptr_t)words.host), 0);
    __atomic_store_n(&words.host[0], 1, __ATOMIC_RELEASE);
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(words.host[0], 201);
    OK_CU(cu.cuStreamDestroy_v2(stream));
}

/* What a kernel waits for may be written by anything that comes later, in any other stream. */
TEST(work_in_another_stream_ends_a_kernels_wait) {
    begin();
    CUstream waits = stream_with(0), writes = stream_with(0);
    unsigned value = 9;
    void *wait[] = {&words.device}, *store[] = {&words.device, &value};
    CUdeviceptr source = new_memory(4);
    set_words(source, 9, 1);
    for (int way = 0; way < 4; way++) {
        words.host[0] = words.host[1] = 0;
        OK_CU(cu.cuLaunchKernel(kernel("wait_for"), 1, 1, 1, 1, 1, 1, 0, waits, wait, NULL));
        if (way == 0)
            OK_CU(cu.cuMemcpyAsync(words.device, source, 4, writes));
        else if (way == 1)
            OK_CU(cu.cuMemsetD32Async(words.device, 9, 1, writes));
        else if (way == 2)
            OK_CU(cu.cuStreamWriteValue32_v2(writes, words.device, 9, 0));
        else
            OK_CU(cu.cuLaunchKernel(kernel("store"), 1, 1, 1, 1, 1, 1, 0, writes, store, NULL));
        OK_CU(cu.cuStreamSynchronize(waits));
        assert_int_equal(words.host[1], 10);
        OK_CU(cu.cuStreamSynchronize(writes));
    }
    DESTROY_CU(waits, writes);
}

static void write_it(void *user) {
    __atomic_store_n((volatile unsigned *)user, 3, __ATOMIC_RELEASE);
}

TEST(a_host_function_ends_a_kernels_wait) {
    begin();
    CUstream waits = stream_with(0), calls = stream_with(0);
    void *params[] = {&words.device};
    OK_CU(cu.cuLaunchKernel(kernel("wait_for"), 1, 1, 1, 1, 1, 1, 0, waits, params, NULL));
    OK_CU(cu.cuLaunchHostFunc(calls, write_it, (void *)(uintptr_t)words.host));
    OK_CU(cu.cuStreamSynchronize(waits));
    assert_int_equal(words.host[1], 4);
    OK_CU(cu.cuStreamSynchronize(calls));
    DESTROY_CU(waits, calls);
}

/* It waits for an event, while another stream's kernel spins for the host. */
TEST(a_thread_waiting_for_one_stream_does_not_wait_for_another) {
    begin();
    CUstream spins = stream_with(0), stream = stream_with(0);
    void *params[] = {&words.device};
    CUevent event = new_event();
    OK_CU(cu.cuLaunchKernel(kernel("wait_for"), 1, 1, 1, 1, 1, 1, 0, spins, params, NULL));
    OK_CU(cu.cuLaunchKernel(kernel("probe"), 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    OK_CU(cu.cuEventRecord(event, stream));
    OK_CU(cu.cuEventSynchronize(event));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(spins));
    __atomic_store_n(&words.host[0], 1, __ATOMIC_RELEASE);
    OK_CU(cu.cuStreamSynchronize(spins));
    assert_int_equal(words.host[1], 2);
    DESTROY_CU(spins, stream);
}

struct waiter {
    CUstream stream;
    CUresult result;
};

static void *synchronize(void *argument) {
    struct waiter *waiter = argument;
    waiter->result = cu.cuCtxSetCurrent(ctx);
    if (waiter->result == CUDA_SUCCESS)
        waiter->result = cu.cuStreamSynchronize(waiter->stream);
    return NULL;
}

/* Many threads wait for many kernels, which all wait for one another in a ring. */
TEST(kernels_waiting_in_a_ring_complete) {
    enum { KERNELS = 6, ROUNDS = 20 };
    begin();
    struct waiter waiters[KERNELS];
    pthread_t threads[KERNELS];
    for (unsigned i = 0; i < KERNELS; i++) {
        waiters[i].stream = stream_with(0);
        launch_turns(waiters[i].stream, i, (i + 1) % KERNELS, ROUNDS, i + 1 == KERNELS);
    }
    for (unsigned i = 0; i < KERNELS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, synchronize, &waiters[i]), 0);
    __atomic_store_n(&words.host[0], 1, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < KERNELS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        OK_CU(waiters[i].result);
        OK_CU(cu.cuStreamDestroy_v2(waiters[i].stream));
    }
    assert_int_equal(words.host[0], ROUNDS + 1);
}
