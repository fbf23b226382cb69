/*
 * Several threads with kernels in streams and graphs, while modules, streams, graphs and contexts
 * end under them. Every result is checked. A few rounds; with GPUMEM_STRESS_SECONDS as many as fit
 * (tests/long/test_kernel_stress.py, which is of most worth under ThreadSanitizer).
 */
#include "kernels.h"

#include <pthread.h>
#include <time.h>

#define THREADS 4
#define ROUNDS  24
#define STEPS   12

static const char text[] = KERNELS_HEAD
    ".visible .global .u32 own = 5;\n"
    ".visible .entry probe() { ret; }\n"
    /* p[0] = p[0] * 3 + n, after what is in front of it */
    ".visible .entry step(.param .u64 p, .param .u32 n) { .reg .b32 %r<4>; .reg .b64 %d<2>;\n"
    "ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n]; griddepcontrol.launch_dependents;\n"
    "griddepcontrol.wait; ld.global.u32 %r2, [%d1]; mad.lo.u32 %r2, %r2, 3, %r1;\n"
    "st.global.u32 [%d1], %r2; ret; }\n"
    /* p[0] += the number of threads, counted in shared memory */
    ".visible .entry count(.param .u64 p) { .reg .b32 %r<6>; .reg .b64 %d<2>; .reg .pred %q<3>;\n"
    ".shared .b32 sum; ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; setp.eq.u32 %q1, %r1, 0;\n"
    "mov.u32 %r2, 0; @%q1 st.shared.u32 [sum], %r2; bar.sync 0; mov.u32 %r3, 1;\n"
    "atom.shared.add.u32 %r4, [sum], %r3; bar.sync 0; @!%q1 ret; ld.shared.u32 %r5, [sum];\n"
    "red.global.add.u32 [%d1], %r5; ret; }\n"
    /* loops n times; p[0] = the module's variable + 1 */
    ".visible .entry slow(.param .u64 p, .param .u32 n) { .reg .b32 %r<4>; .reg .b64 %d<2>;\n"
    ".reg .pred %q; ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n];\n"
    "AGAIN: add.u32 %r1, %r1, -1; setp.ne.u32 %q, %r1, 0; @%q bra AGAIN;\n"
    "ld.global.u32 %r2, [own]; add.u32 %r2, %r2, 1; st.global.u32 [%d1], %r2; ret; }\n"
    /* waits until p[0] is not 0; p[1] = 1 */
    ".visible .entry wait_for(.param .u64 p) { .reg .b32 %r<2>; .reg .b64 %d<2>; .reg .pred %q;\n"
    "ld.param.u64 %d1, [p];\n"
    "AGAIN: ld.acquire.sys.global.u32 %r1, [%d1]; setp.eq.u32 %q, %r1, 0; @%q bra AGAIN;\n"
    "st.release.sys.global.u32 [%d1+4], 1; ret; }\n";

struct actor {
    uint64_t random;
    CUstream streams[2];
    struct shared_words words; /* its own */
};

static unsigned draw(struct actor *actor, unsigned limit) {
    actor->random = actor->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(actor->random >> 33) % limit;
}

static void check(unsigned got, unsigned wanted, const char *what) {
    if (got == wanted)
        return;
    print_error("%s: %u, not %u\n", what, got, wanted);
    abort(); /* cmocka's failures are for the main thread */
}

#define GOOD(call) check((unsigned)(call), CUDA_SUCCESS, #call)

static void step(CUmodule module, CUstream stream, CUdeviceptr p, unsigned n, bool early) {
    void *params[] = {&p, &n};
    CUfunction f;
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                   .value = {.programmaticStreamSerializationAllowed = 1}};
    CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, stream, &attribute, early};
    GOOD(cu.cuModuleGetFunction(&f, module, "step"));
    GOOD(cu.cuLaunchKernelEx(&config, f, params, NULL));
}

static CUfunction find(CUmodule module, const char *name) {
    CUfunction f;
    GOOD(cu.cuModuleGetFunction(&f, module, name));
    return f;
}

/* ---- What the threads do --------------------------------------------------------------------- */

/* Memory, kernels and copies of one stream, in order. */
static void in_a_stream(struct actor *actor) {
    CUstream stream = actor->streams[0];
    CUdeviceptr p;
    unsigned steps = 1 + draw(actor, STEPS), wanted = 1, got = 0;
    bool early = draw(actor, 2);
    GOOD(cu.cuMemAllocAsync(&p, 64, stream));
    GOOD(cu.cuMemsetD32Async(p, 1, 1, stream));
    for (unsigned i = 0; i < steps; i++) {
        step(kernels_module, stream, p, i, early);
        wanted = wanted * 3 + i;
    }
    GOOD(cu.cuMemcpyDtoHAsync_v2(&got, p, 4, stream));
    GOOD(cu.cuMemFreeAsync(p, stream));
    GOOD(cu.cuStreamSynchronize(stream));
    check(got, wanted, "a stream");
}

/* One chain of kernels that goes to and fro between two streams. */
static void across_streams(struct actor *actor) {
    CUevent event;
    CUdeviceptr p = actor->words.device;
    unsigned wanted = 2;
    actor->words.host[0] = 2;
    GOOD(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (unsigned i = 0; i < STEPS; i++) {
        step(kernels_module, actor->streams[i % 2], p, i, false);
        wanted = wanted * 3 + i;
        GOOD(cu.cuEventRecord(event, actor->streams[i % 2]));
        GOOD(cu.cuStreamWaitEvent(actor->streams[(i + 1) % 2], event, 0));
    }
    GOOD(cu.cuEventDestroy_v2(event));
    GOOD(cu.cuStreamSynchronize(actor->streams[STEPS % 2]));
    check(actor->words.host[0], wanted, "two streams");
}

/* Launched several times and changed in between; destroyed before it has run. */
static void in_a_graph(struct actor *actor) {
    CUstream stream = actor->streams[1];
    CUdeviceptr p = actor->words.device;
    CUgraph graph;
    CUgraphExec exec;
    unsigned steps = 1 + draw(actor, STEPS), launches = 1 + draw(actor, 4), wanted = 1;
    actor->words.host[0] = 1;
    GOOD(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (unsigned i = 0; i < steps; i++)
        step(kernels_module, stream, p, i, draw(actor, 2));
    GOOD(cu.cuStreamEndCapture(stream, &graph));
    GOOD(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    CUgraphNode first;
    size_t count = 1;
    GOOD(cu.cuGraphGetRootNodes(graph, &first, &count));
    for (unsigned l = 0; l < launches; l++) {
        unsigned n = draw(actor, 100);
        void *params[] = {&p, &n};
        CUDA_KERNEL_NODE_PARAMS changed = kernel_node(find(kernels_module, "step"), 1, 1, params);
        GOOD(cu.cuGraphExecKernelNodeSetParams_v2(exec, first, &changed));
        GOOD(cu.cuGraphLaunch(exec, stream));
        for (unsigned i = 0; i < steps; i++)
            wanted = wanted * 3 + (i == 0 ? n : i);
    }
    GOOD(cu.cuGraphExecDestroy(exec));
    GOOD(cu.cuGraphDestroy(graph));
    GOOD(cu.cuStreamSynchronize(stream));
    check(actor->words.host[0], wanted, "a graph");
}

/* Many blocks, with barriers, that several threads may advance. */
static void many_blocks(struct actor *actor) {
    CUdeviceptr p = actor->words.device;
    void *params[] = {&p};
    unsigned blocks = 1 + draw(actor, 200), threads = 1 + draw(actor, 256);
    actor->words.host[0] = 0;
    GOOD(cu.cuLaunchKernel(find(kernels_module, "count"), blocks, 1, 1, threads, 1, 1, 0,
                           actor->streams[0], params, NULL));
    GOOD(cu.cuStreamSynchronize(actor->streams[0]));
    check(actor->words.host[0], blocks * threads, "blocks");
}

static void slow(CUmodule module, CUstream stream, CUdeviceptr p, unsigned rounds) {
    void *params[] = {&p, &rounds};
    GOOD(cu.cuLaunchKernel(find(module, "slow"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

/* The module goes while its kernel runs, and is waited for. */
static void unload(struct actor *actor) {
    CUmodule module;
    actor->words.host[0] = 0;
    GOOD(cu.cuModuleLoadData(&module, text));
    slow(module, actor->streams[0], actor->words.device, 1 + draw(actor, 20000));
    GOOD(cu.cuModuleUnload(module));
    GOOD(cu.cuStreamSynchronize(actor->streams[0]));
    check(actor->words.host[0], 6, "an unloaded module");
}

static void destroy_stream(struct actor *actor) {
    CUstream stream;
    CUevent event;
    actor->words.host[0] = 0;
    GOOD(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    GOOD(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    slow(kernels_module, stream, actor->words.device, 1 + draw(actor, 20000));
    GOOD(cu.cuEventRecord(event, stream));
    GOOD(cu.cuStreamDestroy_v2(stream));
    GOOD(cu.cuEventSynchronize(event));
    GOOD(cu.cuEventDestroy_v2(event));
    check(actor->words.host[0], 6, "a destroyed stream");
}

/* Host and device wait for each other. A GPU's driver may hold a lock that this needs while it
 * unloads a module, and waits for this kernel. */
static void to_and_fro(struct actor *actor) {
    if (!soft)
        return;
    void *params[] = {&actor->words.device};
    CUstream stream = actor->streams[0];
    actor->words.host[0] = actor->words.host[1] = 0;
    GOOD(cu.cuLaunchKernel(find(kernels_module, "wait_for"), 1, 1, 1, 1, 1, 1, 0, stream, params,
                           NULL));
    check((unsigned)cu.cuStreamQuery(stream), CUDA_ERROR_NOT_READY, "a kernel that waits");
    __atomic_store_n(&actor->words.host[0], 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&actor->words.host[1], __ATOMIC_ACQUIRE))
        ;
    GOOD(cu.cuStreamSynchronize(stream));
}

/* A context with a module, memory, a graph and a kernel that runs: all of it ends. Now and then the
 * kernel is one that never would, by itself, on softgpu. */
static void end_context(struct actor *actor) {
    CUcontext context;
    CUmodule module;
    CUstream stream;
    CUdeviceptr p;
    GOOD(cu.cuCtxCreate_v2(&context, 0, dev));
    GOOD(cu.cuModuleLoadData(&module, text));
    GOOD(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    GOOD(cu.cuMemAlloc_v2(&p, 64));
    GOOD(cu.cuMemsetD8_v2(p, 0, 64));
    for (unsigned i = 0; i < STEPS; i++)
        step(module, stream, p, i, draw(actor, 2));
    slow(module, NULL, p + 16, 1 + draw(actor, 20000));
    if (soft && draw(actor, 8) == 0) {
        void *params[] = {&p};
        p += 32;
        GOOD(
            cu.cuLaunchKernel(find(module, "wait_for"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
    }
    GOOD(cu.cuCtxDestroy_v2(context));
    GOOD(cu.cuCtxSetCurrent(ctx));
}

static void (*const acts[])(struct actor *) = {
    in_a_stream, across_streams, in_a_graph, many_blocks,
    unload,      destroy_stream, to_and_fro, end_context,
};

/* ---- Threads --------------------------------------------------------------------------------- */

static time_t until; /* 0: a number of rounds */

static bool goes_on(unsigned round) {
    return until ? time(NULL) < until : round < ROUNDS;
}

static void *work(void *user) {
    struct actor *actor = user;
    GOOD(cu.cuCtxSetCurrent(ctx));
    for (unsigned round = 0; goes_on(round); round++)
        acts[draw(actor, COUNT(acts))](actor);
    return NULL;
}

TEST(threads_launch_kernels_while_objects_are_destroyed) {
    struct actor actors[THREADS];
    pthread_t threads[THREADS];
    const char *seconds = getenv("GPUMEM_STRESS_SECONDS"), *seed = getenv("SOFTGPU_SEED");
    uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    kernels_open(text);
    until = seconds ? time(NULL) + strtol(seconds, NULL, 10) : 0;
    for (unsigned i = 0; i < THREADS; i++) {
        actors[i] = (struct actor){.random = 1000 * first + i, .words = words_make(2)};
        for (int s = 0; s < 2; s++)
            OK_CU(cu.cuStreamCreate(&actors[i].streams[s], CU_STREAM_NON_BLOCKING));
    }
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &actors[i]), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        for (int s = 0; s < 2; s++)
            OK_CU(cu.cuStreamDestroy_v2(actors[i].streams[s]));
    }
}
