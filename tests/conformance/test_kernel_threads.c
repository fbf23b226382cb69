/*
 * Kernels of many threads at once, with contexts pushed and popped: on streams of their own, of
 * others and of the thread, in modules that are unloaded, on streams and in contexts that are
 * destroyed while they run, in graphs, and with the host between them. Each kernel that was
 * accepted has run; the run under ThreadSanitizer sees the rest.
 */
#include "kernels.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 16

static const char text[] = KERNELS_HEAD
    ".visible .entry probe() { ret; }\n"
    ".visible .global .u32 own;\n"
    ".visible .entry count(.param .u64 p) { .reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p];\n"
    "red.global.add.u32 [%d], 1; red.global.add.u32 [own], 1; ret; }\n"
    /* waits for p[0] to be the turn, then p[1] = the turn */
    ".visible .entry answer(.param .u64 p, .param .u32 turn) {\n"
    ".reg .pred %q; .reg .b32 %r<3>; .reg .b64 %d; ld.param.u64 %d, [p]; ld.param.u32 %r2, "
    "[turn];\n"
    "AGAIN: ld.acquire.sys.global.u32 %r1, [%d]; setp.ne.u32 %q, %r1, %r2; @%q bra AGAIN;\n"
    "st.release.sys.global.u32 [%d+4], %r2; ret; }\n";

static struct worker {
    pthread_t thread;
    unsigned number, expected;
    uint64_t random;
    CUdeviceptr counter;
    CUstream stream;
    struct shared_words turns;
    unsigned turn;
} workers[THREADS];

static CUfunction count_, answer_;
static CUstream shared;

static unsigned below(struct worker *worker, unsigned limit) {
    worker->random = worker->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(worker->random >> 33) % limit;
}

static void launch(struct worker *worker, CUfunction function, CUstream stream) {
    void *params[] = {&worker->counter};
    OK_CU(cu.cuLaunchKernel(function, 1 + worker->number % 3, 1, 1, 64, 1, 1, 0, stream, params,
                            NULL));
    worker->expected += (1 + worker->number % 3) * 64;
}

static void on_any_stream(struct worker *worker) {
    CUstream streams[] = {worker->stream, shared, NULL, CU_STREAM_PER_THREAD};
    launch(worker, count_, streams[below(worker, 4)]);
}

static void in_a_module_that_is_unloaded(struct worker *worker) {
    CUmodule module = new_module(text);
    CUfunction function = function_of(module, "count");
    launch(worker, function, worker->stream);
}

static void on_a_stream_that_is_destroyed(struct worker *worker) {
    CUstream stream;
    OK_CU(cu.cuStreamCreate(&stream, below(worker, 2) ? CU_STREAM_NON_BLOCKING : 0));
    launch(worker, count_, stream);
    launch(worker, count_, stream);
    OK_CU(cu.cuStreamDestroy_v2(stream));
}

/* What a context that ends has queued may be lost; its memory ends with it. */
static void in_a_context_that_is_destroyed(struct worker *worker) {
    CUcontext context, popped;
    OK_CU(cu.cuCtxCreate_v2(&context, 0, dev));
    CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4);
    CUmodule module = MADE_CU(CUmodule, cuModuleLoadData, text);
    CUfunction function = function_of(module, "count");
    void *params[] = {&memory};
    for (unsigned i = below(worker, 4); i > 0; i--)
        OK_CU(cu.cuLaunchKernel(function, 4, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
    OK_CU(cu.cuCtxPopCurrent_v2(&popped));
    assert_ptr_equal(popped, context);
    OK_CU(cu.cuCtxDestroy_v2(context));
}

static void in_a_graph(struct worker *worker) {
    OK_CU(cu.cuStreamBeginCapture_v2(worker->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    launch(worker, count_, worker->stream);
    launch(worker, count_, worker->stream);
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, worker->stream);
    CUgraphExec exec = instantiate(graph);
    OK_CU(cu.cuGraphLaunch(exec, worker->stream));
    OK_CU(cu.cuGraphDestroy(graph));
}

static void with_the_host(struct worker *worker) {
    unsigned turn = ++worker->turn;
    void *params[] = {&worker->turns.device, &turn};
    OK_CU(cu.cuLaunchKernel(answer_, 1, 1, 1, 1, 1, 1, 0, worker->stream, params, NULL));
    __atomic_store_n(&worker->turns.host[0], turn, __ATOMIC_RELEASE);
    OK_CU(cu.cuStreamSynchronize(worker->stream));
    assert_int_equal(__atomic_load_n(&worker->turns.host[1], __ATOMIC_ACQUIRE), turn);
}

static void *work(void *argument) {
    static void (*const ways[])(struct worker *) = {on_any_stream,
                                                    on_any_stream,
                                                    on_any_stream,
                                                    in_a_module_that_is_unloaded,
                                                    on_a_stream_that_is_destroyed,
                                                    in_a_context_that_is_destroyed,
                                                    in_a_graph,
                                                    with_the_host};
    struct worker *worker = argument;
    const char *text_of_long = getenv("GPUMEM_TEST_LONG");
    bool takes_long = text_of_long && strcmp(text_of_long, "1") == 0;
    CUcontext popped;
    for (unsigned i = takes_long ? 3000 : 60; i > 0; i--) {
        OK_CU(cu.cuCtxPushCurrent_v2(ctx));
        ways[below(worker, COUNT(ways))](worker);
        OK_CU(cu.cuCtxPopCurrent_v2(&popped));
        assert_ptr_equal(popped, ctx);
    }
    return NULL;
}

TEST(every_accepted_launch_of_many_threads_runs) {
    unsigned total = 0, counted, own;
    CUdeviceptr variable;
    size_t size;
    kernels_open(text);
    count_ = kernel("count");
    answer_ = kernel("answer");
    shared = new_stream();
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.number = i, .random = 88 * i, .turns = words_make(2)};
        OK_CU(cu.cuMemAlloc_v2(&workers[i].counter, 4));
        OK_CU(cu.cuMemsetD32_v2(workers[i].counter, 0, 1));
        /* It captures at times, when the legacy stream of others must not wait for it. */
        OK_CU(cu.cuStreamCreate(&workers[i].stream, CU_STREAM_NON_BLOCKING));
    }
    OK_CU(cu.cuCtxSynchronize());
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    OK_CU(cu.cuCtxSynchronize());
    for (unsigned i = 0; i < THREADS; i++) {
        counted = word_at(workers[i].counter);
        assert_int_equal(counted, workers[i].expected);
        total += counted;
        DESTROY_CU(workers[i].counter, workers[i].stream);
    }
    OK_CU(cu.cuModuleGetGlobal_v2(&variable, &size, kernels_module, "own"));
    OK_CU(cu.cuMemcpyDtoH_v2(&own, variable, 4));
    assert_true(own <= total); /* less what counted in modules of its own */
}
