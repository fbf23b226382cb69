/*
 * Kernels of mbarriers, asynchronous copies in bulk and by threads, and clusters: the answers that
 * PTX defines.
 */
#include "async_reductions.h"
#include "harness.h"

#include <signal.h>

#define LITERAL(number)  LITERAL_OF(number)
#define LITERAL_OF(text) #text
#define OUT_OF_TIME      124 /* exit status of a child, as timeout's */

/* Skips where the driver runs no kernels, or the device is older than these instructions. */
static void need_kernels(void) {
    int major = MADE_CU(int, cuDeviceGetAttribute, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    if (major < 9)
        SKIP("the device is older than 9.0");
    CUmodule module = MADE_CU(CUmodule, cuModuleLoadData,
                              ".version 8.0\n.target sm_90\n.address_size 64\n"
                              ".visible .entry k() { ret; }\n");
    CUfunction function = function_of(module, "k");
    CUresult result = cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuModuleUnload(module));
    if (no_kernels(result))
        SKIP("the driver runs no kernels: SOFTGPU_KERNELS=0");
    assert_int_equal(result, CUDA_SUCCESS);
}

/* Runs k(out, in) over buffers of these bytes, and brings `out` back. */
static void run(const char *text, unsigned blocks, unsigned threads, unsigned cluster, void *out,
                size_t out_bytes, const void *in, size_t in_bytes) {
    CUmodule module = new_module(text);
    CUfunction function = function_of(module, "k");
    CUdeviceptr to = new_memory(out_bytes), from = new_memory(in_bytes);
    OK_CU(cu.cuMemcpyHtoD_v2(to, out, out_bytes));
    OK_CU(cu.cuMemcpyHtoD_v2(from, in, in_bytes));
    void *params[] = {&to, &from};
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    attribute.value.clusterDim.x = cluster;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    CUlaunchConfig config = {GRID(blocks), BLOCK(threads), .attrs = &attribute,
                             .numAttrs = cluster != 0};
    OK_CU(cu.cuLaunchKernelEx(&config, function, params, NULL));
    OK_CU(cu.cuMemcpyDtoH_v2(out, to, out_bytes));
}

static bool case_answers(const struct async_case *each) {
    uint32_t in[ASYNC_INPUT], out[1024];
    for (uint32_t i = 0; i < ASYNC_INPUT; i++)
        in[i] = ASYNC_IN(i);
    memset(out, UNTOUCHED & 0xff, sizeof out);
    run(each->text, each->blocks, each->threads, each->cluster, out,
        each->blocks * (size_t)each->threads * sizeof *out, in, sizeof in);
    for (uint32_t k = 0; k < each->blocks * each->threads; k++) {
        uint32_t wanted = each->answer(k / each->threads, k % each->threads);
        if (out[k] == wanted)
            continue;
        fprintf(stderr, "# %s: thread %u has %x instead of %x\n", each->name, k, out[k], wanted);
        return false;
    }
    return true;
}

/*
 * A kernel that waits in vain keeps a GPU busy for ever, and only the end of its process ends it.
 * So on hardware what runs has a limit, and says its name when that is over.
 */
#define PATIENCE 10 /* seconds */
static const char *volatile under_way;

static void out_of_time(int number) {
    static const char text[] = ": did not end in " LITERAL(PATIENCE) " s\n";
    const char *name = under_way;
    if (write(STDERR_FILENO, name, strlen(name)) < 0 ||
        write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(OUT_OF_TIME + 1);
    _exit(OUT_OF_TIME);
}

static void limit(const char *name) {
    under_way = name;
    if (soft)
        return;
    signal(SIGALRM, out_of_time);
    alarm(PATIENCE);
}

/* argv: the first case to run, and a descriptor that each case's number is written to before it
 * begins. 1: all have ended, some with other answers. */
CHILD(cases_from) {
    int status = 0, told = atoi(argv[2]);
    init_driver();
    for (size_t i = strtoul(argv[1], NULL, 10); i < ASYNC_CASES; i++) {
        unsigned char number = (unsigned char)i;
        if (write(told, &number, 1) != 1)
            return 2;
        limit(async_cases[i].name);
        status |= !case_answers(&async_cases[i]);
    }
    return status;
}

/* Runs cases from one on, in a process of their own; answers behind which one it stopped. */
static size_t cases_in_child(size_t first, unsigned *wrong) {
    int ends[2];
    char from[24], told[16];
    unsigned char last = (unsigned char)first;
    assert_int_equal(pipe(ends), 0);
    snprintf(from, sizeof from, "%zu", first);
    snprintf(told, sizeof told, "%d", ends[1]);
    int child = start_child("cases_from", from, told, NULL);
    close(ends[1]);
    while (read(ends[0], &last, 1) == 1)
        ;
    close(ends[0]);
    int status = wait_child(child);
    *wrong += status != 0;
    if (status == 0 || status == 1)
        return ASYNC_CASES;
    print_message("%s: status %d\n", async_cases[last].name, status);
    return last + (size_t)1;
}

TEST(each_async_case_answers_as_defined) {
    unsigned wrong = 0;
    need_kernels();
    for (size_t i = 0; soft && i < ASYNC_CASES; i++)
        wrong += !case_answers(&async_cases[i]);
    for (size_t i = 0; !soft && i < ASYNC_CASES;)
        i = cases_in_child(i, &wrong);
    assert_int_equal(wrong, 0);
}

static unsigned reductions_wrong;

static void reduces(const char *operation, const void *old, const void *with, const void *wanted) {
    char text[ASYNC_REDUCTION];
    unsigned char out[64];
    async_reduction(text, operation);
    limit(operation);
    memcpy(out, old, sizeof out);
    run(text, 1, 32, 0, out, sizeof out, with, sizeof out);
    for (size_t i = 0; i < sizeof out; i++)
        if (out[i] != ((const unsigned char *)wanted)[i]) {
            print_message("%s: byte %zu is %02x instead of %02x\n", operation, i, out[i],
                          ((const unsigned char *)wanted)[i]);
            reductions_wrong++;
            return;
        }
}

TEST(each_async_reduction_matches_the_reference) {
    need_kernels();
    integers_are_reduced(reduces);
    floats_are_reduced(reduces);
    alarm(0);
    assert_int_equal(reductions_wrong, 0);
}

/* .reqnctapercluster: no attribute of the launch is needed, and another is refused. */
TEST(a_kernel_may_require_its_cluster) {
    static const char text[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 out, .param .u64 in) .explicitcluster "
        ".reqnctapercluster 2, 1, 1 {\n"
        ".reg .b32 %r<4>; .reg .b64 %d<3>; ld.param.u64 %d1, [out]; mov.u32 %r1, %ctaid.x;\n"
        "mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; mov.u32 %r2, %cluster_nctarank;\n"
        "mov.u32 %r3, %cluster_ctarank; mad.lo.u32 %r2, %r2, 10, %r3;\n"
        "st.global.u32 [%d1], %r2; ret; }\n";
    uint32_t out[4] = {0}, in = 0;
    need_kernels();
    limit("a cluster that the kernel requires");
    run(text, 4, 1, 0, out, sizeof out, &in, sizeof in);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(out[i], 20 + i % 2);
    run(text, 4, 1, 2, out, sizeof out, &in, sizeof in);
    assert_int_equal(out[3], 21);
    alarm(0);
}

/* A launch with a cluster, captured: the node keeps it, and each launch of the graph has it. */
TEST(captured_cluster_launches_keep_their_cluster) {
    static const char text[] =
        CLUSTER("@%q st.shared.u32 [%r10], %r15;\n" SYNC
                "mapa.shared::cluster.u32 %r6, %r10, %r14; ld.shared::cluster.u32 %r2, [%r6];\n"
                "ld.global.u32 %r5, [%rd2]; add.u32 %r2, %r2, %r5;\n" SYNC ANSWER);
    uint32_t out[4];
    need_kernels();
    int has = MADE_CU(int, cuDeviceGetAttribute, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, dev);
    assert_int_equal(has, 1);
    CUmodule module = new_module(text);
    CUfunction function = function_of(module, "k");
    CUdeviceptr memory = new_memory(sizeof out);
    set_words(memory, 100, COUNT(out));
    CUstream stream = new_stream();
    void *params[] = {&memory, &memory};
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    attribute.value.clusterDim.x = 2;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    CUlaunchConfig config = {GRID(4), BLOCK(1), .hStream = stream, .attrs = &attribute,
                             .numAttrs = 1};
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK_CU(cu.cuLaunchKernelEx(&config, function, params, NULL));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    CUgraphExec exec = instantiate(graph);
    limit("clusters in a graph");
    for (int i = 0; i < 3; i++)
        OK_CU(cu.cuGraphLaunch(exec, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuMemcpyDtoH_v2(out, memory, sizeof out));
    alarm(0);
    for (uint32_t i = 0; i < COUNT(out); i++)
        assert_int_equal(out[i], 100 + 3 * (i ^ 1));
    OK_CU(cu.cuGraphDestroy(graph));
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* What goes wrong and must not go unnoticed; the first two's errors PTX leaves no doubt of, the
 * others' are told, for softgpu's to be compared with. */
static const struct {
    const char *name, *text;
    unsigned cluster;
    CUresult error; /* SUCCESS: any but this */
} wrongs[] = {
    {"a copy in bulk to no memory",
     ASYNC("@!%q bra end; mov.u64 %rd4, 4096;\n"
           "cp.async.bulk.global.shared::cta.bulk_group [%rd4], [%r10], 64;\n"
           "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nend:"),
     0, CUDA_ERROR_ILLEGAL_ADDRESS},
    {"a copy from no memory",
     ASYNC("@!%q bra end; mov.u64 %rd4, 4096;\n"
           "cp.async.ca.shared.global [%r10], [%rd4], 4; cp.async.wait_all;\nend:"),
     0, CUDA_ERROR_ILLEGAL_ADDRESS},
    {"a copy in bulk of 8 bytes alignment",
     ASYNC("@!%q bra end; cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10+8], 64;\n"
           "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nend:"),
     0, CUDA_SUCCESS},
    {"a copy in bulk of 24 bytes",
     ASYNC("@!%q bra end; mov.u32 %r5, 24;\n"
           "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10], %r5;\n"
           "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nend:"),
     0, CUDA_ERROR_UNKNOWN},
    {"a copy of 16 bytes with 8 bytes alignment",
     ASYNC(
         "@!%q bra end; cp.async.cg.shared.global [%r10+8], [%rd3], 16; cp.async.wait_all;\nend:"),
     0, CUDA_SUCCESS},
    {"an mbarrier of 4 bytes alignment", ASYNC("mbarrier.init.shared.b64 [%r8+4], 1;"), 0,
     CUDA_SUCCESS},
    {"shared memory of a rank that the cluster does not have",
     CLUSTER("mapa.shared::cluster.u32 %r6, %r10, 5; ld.shared::cluster.u32 %r2, [%r6];" ANSWER), 2,
     CUDA_SUCCESS},
    {"another block's shared memory, behind its end",
     CLUSTER("mapa.shared::cluster.u32 %r6, %r10, %r14; mov.u32 %r5, 0xf00000;\n"
             "add.u32 %r6, %r6, %r5; ld.shared::cluster.u32 %r2, [%r6];" ANSWER),
     2, CUDA_SUCCESS},
    /* PTX leaves these undefined: hardware may go on, or wait for ever. */
    {"an arrival at what is no mbarrier",
     ASYNC("@!%q bra end; mov.u64 %rd4, 0; st.shared.u64 [%r8], %rd4;\n"
           "mbarrier.arrive.shared.b64 %rd5, [%r8];\nend:"),
     0, CUDA_ERROR_UNKNOWN},
    /* ptxas counts the warp at each of the two, so that the next phases are out of step. */
    {"lanes of a warp come to the cluster's barrier at two places",
     CLUSTER("mov.u32 %r2, 0; setp.lt.u32 %p, %r1, 20;\n"
             "again: @%p bra here; barrier.cluster.arrive; bra on;\n"
             "here: barrier.cluster.arrive.relaxed;\non:\n"
             "add.u32 %r2, %r2, 1; barrier.cluster.wait;\n"
             "setp.lt.u32 %q, %r2, 3; @%q bra again;" ANSWER),
     2, CUDA_ERROR_UNKNOWN},
    {"more arrivals than an mbarrier awaits",
     ASYNC("@!%q bra end; mbarrier.init.shared.b64 [%r8], 3;\n"
           "mbarrier.arrive.shared.b64 %rd5, [%r8], 4;\nend:"),
     0, CUDA_ERROR_UNKNOWN},
};

CHILD(go_wrong) {
    unsigned which = (unsigned)strtoul(argv[1], NULL, 10);
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory;
    const char *name = "?";
    init_driver();
    limit(wrongs[which].name);
    if (cu.cuModuleLoadData(&module, wrongs[which].text) != CUDA_SUCCESS ||
        cu.cuModuleGetFunction(&function, module, "k") != CUDA_SUCCESS ||
        cu.cuMemAlloc_v2(&memory, 4096) != CUDA_SUCCESS)
        return 2;
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    attribute.value.clusterDim.x = wrongs[which].cluster;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    CUlaunchConfig config = {GRID(2), BLOCK(32), .attrs = &attribute,
                             .numAttrs = wrongs[which].cluster != 0};
    void *params[] = {&memory, &memory};
    if (cu.cuLaunchKernelEx(&config, function, params, NULL) != CUDA_SUCCESS)
        return 3;
    CUresult result = cu.cuCtxSynchronize();
    cu.cuGetErrorName(result, &name);
    printf("# %s: %s\n", wrongs[which].name, name);
    fflush(stdout);
    if (wrongs[which].error == CUDA_ERROR_UNKNOWN)
        return 0;
    return wrongs[which].error ? result != wrongs[which].error : result == CUDA_SUCCESS;
}

TEST(each_async_misuse_is_a_fault) {
    unsigned unnoticed = 0;
    need_kernels();
    for (size_t i = 0; i < COUNT(wrongs); i++) {
        char number[8];
        snprintf(number, sizeof number, "%zu", i);
        int status = run_child("go_wrong", number, NULL);
        bool open = wrongs[i].error == CUDA_ERROR_UNKNOWN && status == OUT_OF_TIME;
        if (status != 0)
            print_message("%s: status %d\n", wrongs[i].name, status);
        unnoticed += status != 0 && !open;
    }
    assert_int_equal(unnoticed, 0);
}
