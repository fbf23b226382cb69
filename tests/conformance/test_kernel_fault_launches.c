/*
 * A kernel that faults, by every way in which it can come to run: in a stream, in graphs, as a
 * cooperative launch, with programmatic edges on either side. Each time the error is the kernel's,
 * stays with the context, and what was queued behind the kernel does not run. A process for each:
 * the fault stays with the device.
 */
#include "kernel_module.h"
#include "kernels.h"

static const char text[] = KERNELS_HEAD
    ".visible .entry probe() { ret; }\n"
    ".visible .entry trap(.param .u64 p) { griddepcontrol.launch_dependents; trap; ret; }\n"
    ".visible .entry address(.param .u64 p) { .reg .b64 %d; mov.u64 %d, 16;\n"
    "griddepcontrol.launch_dependents; st.global.u32 [%d], 1; ret; }\n"
    ".visible .entry misaligned(.param .u64 p) { .reg .b64 %d; .reg .b32 %r;\n"
    "griddepcontrol.launch_dependents; ld.param.u64 %d, [p]; ld.global.u32 %r, [%d+34];\n"
    "st.global.u32 [%d+36], %r; ret; }\n"
    /* waits for what is in front of it; p[0]++ */
    ".visible .entry after(.param .u64 p) { .reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p];\n"
    "griddepcontrol.wait; mov.u32 %r, 1; red.global.add.u32 [%d], %r; ret; }\n"
    /* lets its dependents go, waits until p[1] is not 0; p[0]++ */
    ".visible .entry before(.param .u64 p) { .reg .b64 %d; .reg .b32 %r; .reg .pred %q;\n"
    "ld.param.u64 %d, [p]; griddepcontrol.launch_dependents;\n"
    "AGAIN: ld.acquire.sys.global.u32 %r, [%d+4]; setp.eq.u32 %q, %r, 0; @%q bra AGAIN;\n"
    "mov.u32 %r, 1; red.global.add.u32 [%d], %r; ret; }\n";

static const struct kind {
    const char *kernel;
    CUresult error;
    const char *report;
} kinds[] = {
    {"trap", CUDA_ERROR_LAUNCH_FAILED, "kernel trap: trap"},
    {"address", CUDA_ERROR_ILLEGAL_ADDRESS, "kernel address: illegal address: write of 4 bytes"},
    {"misaligned", CUDA_ERROR_MISALIGNED_ADDRESS, "kernel misaligned: misaligned address"},
};

static struct shared_words words;
static CUstream stream;

static void run(const char *name) {
    void *params[] = {&words.device};
    OK_CU(cu.cuLaunchKernel(kernel(name), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

static void run_early(const char *name) {
    void *params[] = {&words.device};
    CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                               .value = {.programmaticStreamSerializationAllowed = 1}};
    CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, stream, &early, 1};
    OK_CU(cu.cuLaunchKernelEx(&config, kernel(name), params, NULL));
}

/* ---- The ways -------------------------------------------------------------------------------- */

static void in_a_stream(const char *name) {
    run(name);
    run("after");
}

static void cooperatively(const char *name) {
    void *params[] = {&words.device};
    OK_CU(cu.cuLaunchCooperativeKernel(kernel(name), 4, 1, 1, 32, 1, 1, 0, stream, params));
    run("after");
}

/* The dependent has begun, or may have; it does not get past its wait. */
static void with_a_dependent(const char *name) {
    run(name);
    run_early("after");
}

/* The kernel in front never ends by itself: the fault of its dependent ends both. */
static void as_a_dependent(const char *name) {
    run("before");
    run_early(name);
    run("after");
}

static void launch_graph(CUgraph graph) {
    CUgraphExec exec = instantiate(graph);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    OK_CU(cu.cuGraphDestroy(graph));
}

static void captured(const char *name, void (*way)(const char *name)) {
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    way(name);
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    launch_graph(graph);
}

static void in_a_graph(const char *name) {
    captured(name, in_a_stream);
}

static void cooperatively_in_a_graph(const char *name) {
    captured(name, cooperatively);
}

static void with_a_dependent_in_a_graph(const char *name) {
    captured(name, with_a_dependent);
}

static void as_a_dependent_in_a_graph(const char *name) {
    captured(name, as_a_dependent);
}

static CUgraphNode add(CUgraph graph, const CUgraphNode *after, const char *name) {
    CUgraphNode node;
    void *params[] = {&words.device};
    CUDA_KERNEL_NODE_PARAMS given = kernel_node(kernel(name), 1, 1, params);
    OK_CU(cu.cuGraphAddKernelNode_v2(&node, graph, after, after != NULL, &given));
    return node;
}

static void in_a_child_graph(const char *name) {
    CUgraph graph = MADE_CU(CUgraph, cuGraphCreate, 0);
    CUgraph inner = MADE_CU(CUgraph, cuGraphCreate, 0);
    add(inner, NULL, name);
    CUgraphNode child = MADE_CU(CUgraphNode, cuGraphAddChildGraphNode, graph, NULL, 0, inner);
    OK_CU(cu.cuGraphDestroy(inner));
    add(graph, &child, "after");
    launch_graph(graph);
}

/* A loop that nothing else would end. */
static void in_a_loop(const char *name) {
    CUgraphConditionalHandle handle;
    CUgraph graph = MADE_CU(CUgraph, cuGraphCreate, 0);
    OK_CU(cu.cuGraphConditionalHandleCreate(&handle, graph, ctx, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    params.conditional.handle = handle;
    params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
    params.conditional.size = 1;
    params.conditional.ctx = ctx;
    CUgraphNode loop = MADE_CU(CUgraphNode, cuGraphAddNode_v2, graph, NULL, NULL, 0, &params);
    add(params.conditional.phGraph_out[0], NULL, name);
    add(graph, &loop, "after");
    launch_graph(graph);
}

static const struct way {
    const char *name;
    void (*run)(const char *name);
} ways[] = {
    {"in a stream", in_a_stream},
    {"cooperatively", cooperatively},
    {"with a dependent", with_a_dependent},
    {"as a dependent", as_a_dependent},
    {"in a graph", in_a_graph},
    {"cooperatively in a graph", cooperatively_in_a_graph},
    {"with a dependent in a graph", with_a_dependent_in_a_graph},
    {"as a dependent in a graph", as_a_dependent_in_a_graph},
    {"in a child graph", in_a_child_graph},
    {"in a loop of a graph", in_a_loop},
};

/* ---- One fault ------------------------------------------------------------------------------- */

static void check_sticky(CUresult error) {
    CUgraph graph;
    CUgraphExec exec;
    CUstream other;
    CUdeviceptr p;
    CUcontext again;
    char byte;
    ANSWERS_CU(error, cu.cuCtxSynchronize());
    ANSWERS_CU(error, cu.cuStreamSynchronize(stream));
    ANSWERS_CU(error, cu.cuStreamQuery(stream));
    ANSWERS_CU(error, cu.cuStreamCreate(&other, 0));
    ANSWERS_CU(error, cu.cuMemAlloc_v2(&p, 100));
    ANSWERS_CU(error, cu.cuMemcpyDtoH_v2(&byte, words.device, 1));
    CUmodule module;
    ANSWERS_CU(error, cu.cuModuleLoadData(&module, text));
    CUresult created = cu.cuGraphCreate(&graph, 0); /* a graph is of no context */
    if (created == CUDA_SUCCESS)
        created = cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
    if (created == CUDA_SUCCESS)
        ANSWERS_CU(error, cu.cuGraphLaunch(exec, stream));
    /* An H200 gives the process no other context on the device. */
    ANSWERS_CU(error, cu.cuCtxCreate_v2(&again, 0, dev));
}

static char *contents(const char *name) {
    static char report[8192];
    FILE *in = fopen(name, "r");
    assert_non_null(in);
    report[fread(report, 1, sizeof report - 1, in)] = '\0';
    fclose(in);
    assert_int_equal(unlink(name), 0);
    return report;
}

/* argv: way, kind */
CHILD_THAT_ENDS(faults) {
    assert_int_equal(argc, 3);
    const struct way *way = &ways[atoi(argv[1])];
    const struct kind *kind = &kinds[atoi(argv[2])];
    char name[TEMPORARY_ROOM];
    unsigned char on = 1;
    size_t one = 1;
    init_driver();
    int descriptor = temporary_file(name, "report");
    assert_true(descriptor >= 0);
    close(descriptor);
    size_t length = strlen(name) + 1;
    if (soft) {
        OK_CU(cu.cuCoredumpSetAttribute(CU_COREDUMP_FILE, name, &length));
        OK_CU(cu.cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &one));
    }
    OK_CU(cu.cuModuleLoadData(&kernels_module, text));
    kernels_load_all();
    words = words_make(16);
    OK_CU(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    struct gate gate;
    gate_make(&gate);
    gate_hold(&gate, stream); /* until all is queued: later calls would find the fault */
    way->run(kind->kernel);
    gate_release(&gate);
    ANSWERS_CU(kind->error, cu.cuStreamSynchronize(stream));
    check_sticky(kind->error);
    assert_int_equal(words.host[0], 0); /* nothing after it has run */
    const char *report = contents(name);
    if (soft && !strstr(report, kind->report))
        fail_msg("the core dump is without \"%s\":\n%s", kind->report, report);
}

TEST(each_way_to_launch_reports_the_kernels_fault) {
    bool good = true;
    kernels_open(text);
    for (size_t w = 0; w < COUNT(ways); w++) {
        /* An H200 goes on with the loop after the fault: 8 s later none of three had ended. */
        if (ways[w].run == in_a_loop && !soft) {
            print_message("not on hardware: %s\n", ways[w].name);
            continue;
        }
        for (size_t k = 0; k < COUNT(kinds); k++) {
            char way[16], kind[16];
            snprintf(way, sizeof way, "%zu", w);
            snprintf(kind, sizeof kind, "%zu", k);
            if (run_child("faults", way, kind, NULL) == 0)
                continue;
            print_error("%s %s\n", kinds[k].kernel, ways[w].name);
            good = false;
        }
    }
    assert_true(good);
}
