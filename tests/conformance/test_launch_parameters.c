/*
 * The most parameters that a kernel can have, 32,764 bytes, by every way to launch one: the first,
 * the middle and the last word arrive, and what the caller writes afterwards does not.
 */
#include "kernels.h"

enum { MOST = 32764, BYTES = MOST - 8, WORDS = BYTES / 4, MIDDLE = WORDS / 2 };

/* As `extra` and cuParamSetv take them. */
struct parameters {
    CUdeviceptr out;
    unsigned words[WORDS];
};

static struct parameters given;
static struct shared_words words;
static CUfunction large;
static CUstream stream;

static void begin(void) {
    static const char form[] =
        KERNELS_HEAD ".visible .entry probe() { ret; }\n"
                     ".visible .entry large(.param .u64 out, .param .align 4 .b8 bytes[%d]) {\n"
                     ".reg .b32 %%r<4>; .reg .b64 %%d<2>; ld.param.u64 %%d1, [out];\n"
                     "ld.param.u32 %%r1, [bytes]; ld.param.u32 %%r2, [bytes+%d];\n"
                     "ld.param.u32 %%r3, [bytes+%d]; st.global.u32 [%%d1], %%r1;\n"
                     "st.global.u32 [%%d1+4], %%r2; st.global.u32 [%%d1+8], %%r3; ret; }\n";
    static char text[sizeof form + 64];
    snprintf(text, sizeof text, form, BYTES, 4 * MIDDLE, BYTES - 4);
    kernels_open(text);
    words = words_make(3);
    large = kernel("large");
    stream = new_stream();
}

/* No two words of any two calls are equal. */
static void fill(unsigned seed) {
    given.out = words.device;
    for (unsigned i = 0; i < WORDS; i++)
        given.words[i] = seed << 16 | i;
}

/* The caller's copy is its own again. */
static void scribble(void) {
    memset(&given, 0xee, sizeof given);
}

static void arrived(unsigned seed, const char *way) {
    OK_CU(cu.cuCtxSynchronize());
    const unsigned expected[] = {seed << 16, seed << 16 | MIDDLE, seed << 16 | (WORDS - 1)};
    for (int i = 0; i < 3; i++) {
        if (words.host[i] != expected[i])
            fail_msg("%s, word %d: %08x, not %08x", way, i, words.host[i], expected[i]);
        words.host[i] = 0;
    }
}

static void **listed(void) {
    static void *list[] = {&given.out, given.words};
    return list;
}

static void **packed(void) {
    static size_t size = MOST;
    static void *list[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &given, CU_LAUNCH_PARAM_BUFFER_SIZE,
                           &size, CU_LAUNCH_PARAM_END};
    return list;
}

TEST(launches_accept_32764_bytes_of_parameters) {
    begin();
    CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, stream, NULL, 0};
    fill(1);
    OK_CU(cu.cuLaunchKernel(large, 1, 1, 1, 1, 1, 1, 0, stream, listed(), NULL));
    scribble();
    arrived(1, "cuLaunchKernel, a list");
    fill(2);
    OK_CU(cu.cuLaunchKernel(large, 1, 1, 1, 1, 1, 1, 0, stream, NULL, packed()));
    scribble();
    arrived(2, "cuLaunchKernel, a buffer");
    fill(3);
    OK_CU(cu.cuLaunchKernelEx(&config, large, listed(), NULL));
    scribble();
    arrived(3, "cuLaunchKernelEx, a list");
    fill(4);
    OK_CU(cu.cuLaunchKernelEx(&config, large, NULL, packed()));
    scribble();
    arrived(4, "cuLaunchKernelEx, a buffer");
}

TEST(cooperative_launches_accept_32764_bytes_of_parameters) {
    begin();
    fill(5);
    OK_CU(cu.cuLaunchCooperativeKernel(large, 1, 1, 1, 1, 1, 1, 0, stream, listed()));
    scribble();
    arrived(5, "cuLaunchCooperativeKernel");
    if (device_attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH)) {
        CUDA_LAUNCH_PARAMS one = {large, 1, 1, 1, 1, 1, 1, 0, stream, listed()};
        fill(6);
        OK_CU(cu.cuLaunchCooperativeKernelMultiDevice(&one, 1, 0));
        scribble();
        arrived(6, "cuLaunchCooperativeKernelMultiDevice");
    }
}

TEST(the_first_launch_api_accepts_32764_bytes_of_parameters) {
    begin();
    fill(7);
    OK_CU(cu.cuFuncSetBlockShape(large, 1, 1, 1));
    OK_CU(cu.cuParamSetSize(large, MOST));
    OK_CU(cu.cuParamSetv(large, 0, &given, MOST));
    scribble();
    OK_CU(cu.cuLaunchGrid(large, 1, 1));
    arrived(7, "cuParamSetv");
    fill(8);
    OK_CU(cu.cuParamSetv(large, 0, &given.out, 8));
    for (int i = 0; i < WORDS; i++)
        OK_CU(cu.cuParamSeti(large, 8 + 4 * i, given.words[i]));
    scribble();
    OK_CU(cu.cuLaunchGridAsync(large, 1, 1, stream));
    arrived(8, "cuParamSeti");
    FAILS_CU(INVALID_VALUE, cu.cuParamSetSize(large, 40000)); /* as an H200 does */
}

static CUDA_KERNEL_NODE_PARAMS node_params(void **list, void **extra) {
    return (CUDA_KERNEL_NODE_PARAMS){GRID(1), .func = large, BLOCK(1), .kernelParams = list,
                                     .extra = extra};
}

TEST(kernel_nodes_accept_32764_bytes_of_parameters) {
    begin();
    CUDA_KERNEL_NODE_PARAMS params = node_params(listed(), NULL);
    CUgraph graph = new_graph();
    fill(10);
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &params);
    scribble();
    CUgraphExec exec = instantiate(graph);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    arrived(10, "a node's list");
    fill(11);
    OK_CU(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
    scribble();
    OK_CU(cu.cuGraphLaunch(exec, stream));
    arrived(11, "an executable node's list");
    fill(12);
    params = node_params(NULL, packed());
    OK_CU(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
    scribble();
    OK_CU(cu.cuGraphLaunch(exec, stream));
    arrived(12, "an executable node's buffer");
    fill(13);
    OK_CU(cu.cuGraphKernelNodeSetParams_v2(node, &params));
    scribble();
    CUgraphExecUpdateResultInfo info;
    OK_CU(cu.cuGraphExecUpdate_v2(exec, graph, &info));
    OK_CU(cu.cuGraphLaunch(exec, stream));
    arrived(13, "an update");
}

TEST(captured_launches_accept_32764_bytes_of_parameters) {
    begin();
    for (unsigned way = 0; way < 2; way++) {
        OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        fill(20 + way);
        OK_CU(cu.cuLaunchKernel(large, 1, 1, 1, 1, 1, 1, 0, stream, way ? NULL : listed(),
                                way ? packed() : NULL));
        scribble();
        CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
        CUgraphExec exec = instantiate(graph);
        OK_CU(cu.cuGraphDestroy(graph));
        OK_CU(cu.cuGraphLaunch(exec, stream));
        arrived(20 + way, way ? "a captured buffer" : "a captured list");
        destroy_exec(exec);
    }
}
