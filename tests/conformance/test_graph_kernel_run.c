/* Kernels in graphs: what they compute, as the graph's edges and updates have it. */
#include "kernels.h"

static const char text[] = KERNELS_HEAD
    ".visible .entry probe() { ret; }\n"
    /* p[0] = p[0] * 10 + digit: the order in which kernels ran */
    ".visible .entry append(.param .u64 p, .param .u32 digit) {\n"
    ".reg .b32 %r<4>; .reg .b64 %d<2>; ld.param.u64 %d1, [p]; ld.param.u32 %r1, [digit];\n"
    "ld.volatile.global.u32 %r2, [%d1]; mad.lo.u32 %r2, %r2, 10, %r1;\n"
    "st.volatile.global.u32 [%d1], %r2; ret; }\n"
    /* p[0] += blocks * threads + 1000 * dynamic shared bytes, added up by its threads */
    ".extern .shared .align 16 .b8 room[];\n"
    ".visible .entry measure(.param .u64 p) {\n"
    ".reg .b32 %r<4>; .reg .b64 %d<2>; ld.param.u64 %d1, [p];\n"
    "mov.u32 %r1, %dynamic_smem_size; mad.lo.u32 %r1, %r1, 1000, 1;\n"
    "red.global.add.u32 [%d1], %r1; ret; }\n"
    /* waits until p[0] is not 0, then p[1] = p[0] + 1 */
    ".visible .entry wait_for(.param .u64 p) {\n"
    ".reg .pred %q; .reg .b32 %r<3>; .reg .b64 %d<2>; ld.param.u64 %d1, [p];\n"
    "AGAIN: ld.acquire.sys.global.u32 %r1, [%d1]; setp.eq.u32 %q, %r1, 0; @%q bra AGAIN;\n"
    "add.u32 %r2, %r1, 1; st.release.sys.global.u32 [%d1+4], %r2; ret; }\n";

static struct shared_words words;
static CUgraph graph;

static void begin(void) {
    kernels_open(text);
    words = words_make(16);
    graph = new_graph();
}

static CUgraphNode append(const CUgraphNode *after, size_t count, unsigned digit) {
    CUdeviceptr p = words.device;
    void *arguments[] = {&p, &digit};
    CUDA_KERNEL_NODE_PARAMS params = kernel_node(kernel("append"), 1, 1, arguments);
    return MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, graph, after, count, &params);
}

static CUDA_KERNEL_NODE_PARAMS measure(unsigned blocks, unsigned threads, unsigned shared,
                                       void **arguments) {
    CUDA_KERNEL_NODE_PARAMS params = kernel_node(kernel("measure"), blocks, threads, arguments);
    params.sharedMemBytes = shared;
    return params;
}

static unsigned after_launch(CUgraphExec exec) {
    words.host[0] = 0;
    OK_CU(cu.cuGraphLaunch(exec, NULL));
    OK_CU(cu.cuCtxSynchronize());
    return words.host[0];
}

TEST(kernels_of_a_graph_run_in_edge_order) {
    begin();
    CUgraphNode nodes[3];
    nodes[0] = append(NULL, 0, 1);
    nodes[1] = append(&nodes[0], 1, 2);
    nodes[2] = append(&nodes[1], 1, 3);
    append(nodes, 3, 4);
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(after_launch(exec), 1234);
    assert_int_equal(after_launch(exec), 1234);
    /* Launches of one graph follow one another, in whichever streams. */
    CUstream streams[2];
    words.host[0] = 0;
    for (int i = 0; i < 2; i++) {
        streams[i] = new_stream();
        OK_CU(cu.cuGraphLaunch(exec, streams[i]));
    }
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(words.host[0], 12341234);
}

TEST(kernel_arguments_are_read_when_the_node_is_added) {
    begin();
    unsigned digit = 7;
    struct {
        CUdeviceptr p;
        unsigned digit;
    } packed = {words.device, 8};
    size_t size = sizeof packed.p + sizeof packed.digit;
    void *arguments[] = {&packed.p, &digit};
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    CUfunction f = kernel("append");
    CUstream stream = new_stream();
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK_CU(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
    OK_CU(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
    digit = packed.digit = 1;
    CUgraph captured = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    CUgraphExec exec = instantiate(captured);
    destroy_graph(captured);
    assert_int_equal(after_launch(exec), 78);
}

TEST(one_kernel_node_of_an_exec_can_be_changed) {
    begin();
    CUdeviceptr p = words.device, q = words.device + 4;
    void *first[] = {&p}, *second[] = {&q};
    CUDA_KERNEL_NODE_PARAMS params = measure(2, 32, 0, first);
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &params);
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(after_launch(exec), 64);
    params = measure(3, 8, 16, second);
    OK_CU(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
    assert_int_equal(after_launch(exec), 0);
    assert_int_equal(words.host[1], 24 * 16001);
    /* What was launched before keeps its shape and arguments. */
    CUdeviceptr gate = words.device + 8;
    CUstream stream = new_stream();
    words.host[0] = words.host[1] = 0;
    OK_CU(cu.cuStreamWaitValue32_v2(stream, gate, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK_CU(cu.cuGraphLaunch(exec, stream));
    params = measure(1, 1, 0, first);
    OK_CU(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
    words.host[2] = 1;
    OK_CU(cu.cuStreamSynchronize(stream));
    MEMBERS(words, (host[0], 0), (host[1], 24 * 16001));
}

TEST(a_whole_exec_with_kernels_can_be_updated) {
    begin();
    CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    CUgraphNode first = append(NULL, 0, 1);
    append(&first, 1, 2);
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(after_launch(exec), 12);
    destroy_graph(graph);
    graph = new_graph();
    first = append(NULL, 0, 5);
    append(&first, 1, 6);
    OK_CU(cu.cuGraphExecUpdate_v2(exec, graph, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    assert_int_equal(after_launch(exec), 56);
    /* One more node is another topology: what was, remains. */
    CUgraph other = MADE_CU(CUgraph, cuGraphClone, graph);
    append(&first, 1, 9);
    FAILS_CU(GRAPH_EXEC_UPDATE_FAILURE, cu.cuGraphExecUpdate_v2(exec, graph, &info));
    assert_int_equal(after_launch(exec), 56);
    destroy_graph(other);
}

TEST(disabled_kernel_nodes_do_not_run) {
    begin();
    CUgraphNode nodes[2];
    unsigned enabled = 9;
    nodes[0] = append(NULL, 0, 1);
    nodes[1] = append(&nodes[0], 1, 2);
    append(&nodes[1], 1, 3);
    CUgraphExec exec = instantiate(graph);
    OK_CU(cu.cuGraphNodeSetEnabled(exec, nodes[1], 0));
    OK_CU(cu.cuGraphNodeGetEnabled(exec, nodes[1], &enabled));
    assert_int_equal(enabled, 0);
    assert_int_equal(after_launch(exec), 13);
    OK_CU(cu.cuGraphNodeSetEnabled(exec, nodes[1], 1));
    assert_int_equal(after_launch(exec), 123);
}

static void count_up(void *user) {
    ++*(unsigned *)user;
}

/* Kernels between copies, sets, host functions and memory operations of one graph. */
TEST(kernels_run_beside_nodes_of_other_types) {
    begin();
    static unsigned calls;
    CUgraphNode nodes[5];
    calls = 0;
    CUdeviceptr copy = new_memory(4);
    CUDA_MEMSET_NODE_PARAMS set = {
        .dst = words.device, .value = 4, .elementSize = 4, .width = 1, .height = 1};
    OK_CU(cu.cuGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &set, ctx));
    nodes[1] = append(&nodes[0], 1, 2);
    CUDA_HOST_NODE_PARAMS host = {.fn = count_up, .userData = &calls};
    OK_CU(cu.cuGraphAddHostNode(&nodes[2], graph, &nodes[1], 1, &host));
    CUstreamBatchMemOpParams ops[2] = {{.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
                                                       .address = words.device + 4,
                                                       .value = 77}},
                                       {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
                                                      .address = words.device + 4,
                                                      .value = 77,
                                                      .flags = CU_STREAM_WAIT_VALUE_EQ}}};
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {.ctx = ctx, .count = 2, .paramArray = ops};
    OK_CU(cu.cuGraphAddBatchMemOpNode(&nodes[3], graph, &nodes[2], 1, &batch));
    nodes[4] = append(&nodes[3], 1, 9);
    CUDA_MEMCPY3D out = {FROM_UNIFIED(words.device), TO_DEVICE(copy), EXTENT_3D(4, 1, 1)};
    (void)MADE_CU(CUgraphNode, cuGraphAddMemcpyNode, graph, &nodes[4], 1, &out, ctx);
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(after_launch(exec), 429);
    assert_int_equal(calls, 1);
    assert_int_equal(words.host[1], 77);
    assert_int_equal(word_at(copy), 429);
}

static CUgraphExec waiting_graph(CUdeviceptr p) {
    void *arguments[] = {&p};
    CUDA_KERNEL_NODE_PARAMS params = measure(1, 1, 0, arguments);
    params.func = kernel("wait_for");
    destroy_graph(graph);
    graph = new_graph();
    (void)MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &params);
    return instantiate(graph);
}

/* Each waits for what the other writes: the first for the host, the second for the first. */
TEST(two_graphs_may_wait_for_each_other) {
    begin();
    CUstream streams[2];
    CUgraphExec execs[2];
    for (int i = 0; i < 2; i++) {
        streams[i] = new_stream();
        execs[i] = waiting_graph(words.device + 4 * (CUdeviceptr)i);
    }
    OK_CU(cu.cuGraphLaunch(execs[1], streams[1]));
    OK_CU(cu.cuGraphLaunch(execs[0], streams[0]));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(streams[0]));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(streams[1]));
    words.host[0] = 5;
    OK_CU(cu.cuStreamSynchronize(streams[1]));
    MEMBERS(words, (host[1], 6), (host[2], 7));
    OK_CU(cu.cuStreamSynchronize(streams[0]));
    for (int i = 0; i < 2; i++)
        destroy_exec(execs[i]);
}

TEST(kernels_in_child_graphs_and_conditional_bodies_run) {
    begin();
    CUgraph inner = graph, body;
    CUgraphNode child, condition;
    CUgraphConditionalHandle handle;
    CUgraphNode first = append(NULL, 0, 1);
    append(&first, 1, 2);
    graph = new_graph();
    OK_CU(cu.cuGraphAddChildGraphNode(&child, graph, NULL, 0, inner));
    destroy_graph(inner);
    OK_CU(cu.cuGraphConditionalHandleCreate(&handle, graph, ctx, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    params.conditional.handle = handle;
    params.conditional.type = CU_GRAPH_COND_TYPE_IF;
    params.conditional.size = 1;
    params.conditional.ctx = ctx;
    OK_CU(cu.cuGraphAddNode_v2(&condition, graph, &child, NULL, 1, &params));
    body = params.conditional.phGraph_out[0];
    CUgraph outer = graph;
    graph = body;
    append(NULL, 0, 3);
    graph = outer;
    append(&condition, 1, 4);
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(after_launch(exec), 1234);
    assert_int_equal(after_launch(exec), 1234);
}

/* After its module, a kernel cannot be launched any more; nothing is queued then. */
TEST(launching_a_graph_after_unloading_its_module_is_refused) {
    NEEDS_SOFTGPU("on hardware the behaviour is undefined");
    begin();
    append(NULL, 0, 1);
    CUgraphExec exec = instantiate(graph);
    forget(kernels_module);
    OK_CU(cu.cuModuleUnload(kernels_module));
    FAILS_CU(INVALID_HANDLE, cu.cuGraphLaunch(exec, NULL));
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(words.host[0], 0);
    destroy_exec(exec);
}

/* A body of a loop runs its kernels again and again, and one that waits lets others run. */
TEST(kernels_in_a_loop_run_in_every_iteration) {
    NEEDS_SOFTGPU("on hardware the loop would keep the device busy");
    begin();
    CUcontext context, primary = ctx;
    CUgraphConditionalHandle handle;
    CUmodule outer_module = kernels_module;
    CUgraph outer = graph, loop;
    OK_CU(cu.cuCtxCreate_v2(&context, 0, dev));
    OK_CU(cu.cuModuleLoadData(&kernels_module, text));
    CUstream looping = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    OK_CU(cu.cuGraphCreate(&loop, 0));
    OK_CU(
        cu.cuGraphConditionalHandleCreate(&handle, loop, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    params.conditional.handle = handle;
    params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
    params.conditional.size = 1;
    params.conditional.ctx = context;
    (void)MADE_CU(CUgraphNode, cuGraphAddNode_v2, loop, NULL, NULL, 0, &params);
    CUdeviceptr p = words.device, q = words.device + 16;
    void *first[] = {&p}, *second[] = {&q};
    CUDA_KERNEL_NODE_PARAMS kernels[2] = {measure(1, 1, 0, first), measure(1, 1, 0, second)};
    kernels[1].func = kernel("wait_for");
    CUgraph body = params.conditional.phGraph_out[0];
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, body, NULL, 0, &kernels[0]);
    OK_CU(cu.cuGraphAddKernelNode_v2(&node, body, &node, 1, &kernels[1]));
    CUgraphExec exec = instantiate(loop);
    OK_CU(cu.cuGraphLaunch(exec, looping));
    while (__atomic_load_n(&words.host[0], __ATOMIC_ACQUIRE) != 1)
        ;
    /* The second kernel waits: no further round begins. */
    OK_CU(cu.cuLaunchKernel(kernel("probe"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK_CU(cu.cuStreamSynchronize(NULL));
    assert_int_equal(words.host[0], 1);
    __atomic_store_n(&words.host[4], 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&words.host[0], __ATOMIC_ACQUIRE) < 4)
        ;
    FAILS_CU(NOT_READY, cu.cuStreamQuery(looping));
    OK_CU(cu.cuCtxDestroy_v2(context));
    OK_CU(cu.cuCtxSetCurrent(primary));
    destroy_exec(exec);
    destroy_graph(loop);
    kernels_module = outer_module;
    graph = outer;
}
