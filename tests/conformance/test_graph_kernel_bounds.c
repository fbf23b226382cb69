/* What bounds kernel nodes: dynamic shared memory that a function must be allowed, clusters that
 * must fit the grid, blocks of the shape that a function requires, or of as many threads. */
#include "kernels.h"

static const char text[] = KERNELS_HEAD
    ".visible .entry probe() { ret; }\n"
    /* Touches the first, the middle and the last word of its dynamic shared memory: 1 + 10 + 100 */
    ".extern .shared .align 16 .b8 room[];\n"
    ".visible .entry dynamic(.param .u64 out, .param .u32 bytes) {\n"
    ".reg .b32 %r<9>; .reg .b64 %d<2>; ld.param.u64 %d1, [out]; ld.param.u32 %r1, [bytes];\n"
    "mov.u32 %r2, room; shr.u32 %r3, %r1, 1; and.b32 %r3, %r3, -4; add.u32 %r3, %r3, %r2;\n"
    "add.u32 %r1, %r1, %r2; mov.u32 %r4, 1; mov.u32 %r5, 10; mov.u32 %r6, 100;\n"
    "st.shared.u32 [%r2], %r4; st.shared.u32 [%r3], %r5; st.shared.u32 [%r1+-4], %r6;\n"
    "ld.shared.u32 %r4, [%r2]; ld.shared.u32 %r5, [%r3]; ld.shared.u32 %r6, [%r1+-4];\n"
    "add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6; st.global.u32 [%d1], %r4; ret; }\n"
    ".visible .entry pairs(.param .u64 out) .reqnctapercluster 2 { .reg .b32 %r<2>;\n"
    ".reg .b64 %d<2>; ld.param.u64 %d1, [out]; mov.u32 %r1, 1;\n"
    "red.global.add.u32 [%d1], %r1; ret; }\n"
    ".visible .entry required(.param .u64 out) .reqntid 8, 4, 2 { .reg .b32 %r<2>;\n"
    ".reg .b64 %d<2>; ld.param.u64 %d1, [out]; mov.u32 %r1, 1;\n"
    "red.global.add.u32 [%d1], %r1; ret; }\n"
    ".visible .entry bounded(.param .u64 out) .maxntid 64 { .reg .b32 %r<2>;\n"
    ".reg .b64 %d<2>; ld.param.u64 %d1, [out]; mov.u32 %r1, 1;\n"
    "red.global.add.u32 [%d1], %r1; ret; }\n"
    ".visible .entry count(.param .u64 out) { .reg .b32 %r<2>;\n"
    ".reg .b64 %d<2>; ld.param.u64 %d1, [out]; mov.u32 %r1, 1;\n"
    "red.global.add.u32 [%d1], %r1; ret; }\n";

static struct shared_words words;
static CUgraph graph;
static CUstream stream;

static void begin(void) {
    kernels_open(text);
    words = words_make(1);
    graph = new_graph();
    stream = new_stream();
}

static CUDA_KERNEL_NODE_PARAMS params_of(CUfunction function, unsigned blocks, unsigned shared,
                                         void **arguments) {
    CUDA_KERNEL_NODE_PARAMS params = kernel_node(function, blocks, 1, arguments);
    params.sharedMemBytes = shared;
    return params;
}

static unsigned sum_of(CUgraphExec exec) {
    words.host[0] = 0;
    launch_and_wait(exec, stream);
    return words.host[0];
}

TEST(shared_memory_above_48_kib_needs_the_attribute) {
    begin();
    CUfunction f = kernel("dynamic");
    CUgraphNode node, refused;
    unsigned usual = 48 << 10, bytes = usual;
    unsigned most =
        (unsigned)device_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    void *arguments[] = {&words.device, &bytes};
    CUDA_KERNEL_NODE_PARAMS params = params_of(f, 1, usual, arguments);
    OK_CU(cu.cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(sum_of(exec), 111);
    /* Not yet: the nodes stay as they are. */
    bytes = usual + 4;
    params = params_of(f, 1, bytes, arguments);
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddKernelNode_v2(&refused, graph, NULL, 0, &params));
    FAILS_CU(INVALID_VALUE, cu.cuGraphKernelNodeSetParams_v2(node, &params));
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
    assert_int_equal(sum_of(exec), 111);
    OK_CU(cu.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)most));
    OK_CU(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
    assert_int_equal(sum_of(exec), 111);
    bytes = most;
    params = params_of(f, 1, bytes, arguments);
    OK_CU(cu.cuGraphKernelNodeSetParams_v2(node, &params));
    CUgraphExecUpdateResultInfo info;
    OK_CU(cu.cuGraphExecUpdate_v2(exec, graph, &info));
    assert_int_equal(sum_of(exec), 111);
    params = params_of(f, 1, most + 1, arguments);
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
}

/* Whether a graph of this node runs, by whichever call refuses it. */
static CUresult run_node(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params) {
    CUgraphExec exec = NULL;
    words.host[0] = 0;
    CUresult result = cu.cuGraphKernelNodeSetParams_v2(node, params);
    if (result == CUDA_SUCCESS)
        result = cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
    if (result != CUDA_SUCCESS)
        return result;
    result = cu.cuGraphLaunch(exec, stream);
    if (result == CUDA_SUCCESS)
        result = cu.cuStreamSynchronize(stream);
    destroy_exec(exec);
    return result;
}

/* The grid that a node gets after its cluster, or its function's, was set must be one of
 * clusters. */
TEST(a_grid_must_be_divisible_into_clusters) {
    begin();
    CUkernelNodeAttrValue value;
    void *arguments[] = {&words.device};
    CUDA_KERNEL_NODE_PARAMS params = params_of(kernel("count"), 4, 0, arguments);
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &params);
    memset(&value, 0, sizeof value);
    value.clusterDim.x = 2, value.clusterDim.y = value.clusterDim.z = 1;
    OK_CU(cu.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
    OK_CU(run_node(node, &params));
    assert_int_equal(words.host[0], 4);
    params = params_of(kernel("count"), 3, 0, arguments);
    assert_int_not_equal(run_node(node, &params), CUDA_SUCCESS);
    assert_int_equal(words.host[0], 0);
    /* Zeros: no cluster. */
    OK_CU(cu.cuGraphDestroyNode(node));
    memset(&value, 0, sizeof value);
    OK_CU(cu.cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
    OK_CU(cu.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
    OK_CU(run_node(node, &params));
    assert_int_equal(words.host[0], 3);
    params = params_of(kernel("pairs"), 6, 0, arguments);
    OK_CU(run_node(node, &params));
    assert_int_equal(words.host[0], 6);
    params = params_of(kernel("pairs"), 5, 0, arguments);
    words.host[0] = 0;
    assert_int_not_equal(run_node(node, &params), CUDA_SUCCESS);
    assert_int_equal(words.host[0], 0);
}

static CUDA_KERNEL_NODE_PARAMS with_block(const char *name, unsigned x, unsigned y, unsigned z,
                                          void **arguments) {
    CUDA_KERNEL_NODE_PARAMS params = params_of(kernel(name), 1, 0, arguments);
    params.blockDimX = x;
    params.blockDimY = y;
    params.blockDimZ = z;
    return params;
}

/* Of a node that was added with another function's parameters. */
static void has_shapes(CUgraphNode node, const char *name, const unsigned shapes[][4],
                       size_t count) {
    void *arguments[] = {&words.device};
    for (size_t i = 0; i < count; i++) {
        const unsigned *shape = shapes[i];
        CUDA_KERNEL_NODE_PARAMS params = with_block(name, shape[0], shape[1], shape[2], arguments);
        words.host[0] = 0;
        CUresult result = run_node(node, &params);
        if ((result == CUDA_SUCCESS) != (shape[3] != 0) || words.host[0] != shape[3])
            fail_msg("%s, %u x %u x %u: %d, and %u threads ran, not %u", name, shape[0], shape[1],
                     shape[2], (int)result, words.host[0], shape[3]);
    }
}

TEST(a_block_must_fit_the_shape_its_function_requires) {
    begin();
    /* A block, and how many threads run; 0: none may. */
    static const unsigned required[][4] = {{8, 4, 2, 64}, {4, 8, 2, 0},  {64, 1, 1, 0},
                                           {8, 4, 1, 0},  {1, 1, 1, 64}, {8, 4, 2, 64}};
    static const unsigned bounded[][4] = {
        {64, 1, 1, 64}, {8, 4, 2, 64}, {65, 1, 1, 0}, {8, 9, 1, 0}, {1, 1, 1, 1}};
    void *arguments[] = {&words.device};
    CUDA_KERNEL_NODE_PARAMS params = params_of(kernel("count"), 4, 0, arguments);
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &params);
    has_shapes(node, "required", required, COUNT(required));
    has_shapes(node, "bounded", bounded, COUNT(bounded));
    /* An executable graph keeps what it had. */
    params = with_block("required", 8, 4, 2, arguments);
    OK_CU(cu.cuGraphKernelNodeSetParams_v2(node, &params));
    CUgraphExec exec = instantiate(graph);
    params = with_block("required", 2, 4, 8, arguments);
    assert_int_not_equal(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &params), CUDA_SUCCESS);
    assert_int_equal(sum_of(exec), 64);
}
