/* Kernel nodes as data: parameters, arguments, attributes, edges with data. Nothing is launched. */
#include "harness.h"

static const char text[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
                           ".visible .entry nothing()\n{\n    ret;\n}\n"
                           ".visible .entry two(.param .u32 a, .param .u64 b)\n{\n    ret;\n}\n";

static CUgraph graph;
static CUmodule module;
static CUfunction nothing, two;

BEFORE(test_begin) {
    graph = new_graph();
    module = new_module(text);
    OK_CU(cu.cuModuleGetFunction(&nothing, module, "nothing"));
    OK_CU(cu.cuModuleGetFunction(&two, module, "two"));
}

EACH_TEST(before, test_end);

static CUDA_KERNEL_NODE_PARAMS params_of(CUfunction function) {
    return kernel_node(function, 4, 32, NULL);
}

static CUgraphNode kernel(void) {
    CUDA_KERNEL_NODE_PARAMS params = params_of(nothing);
    return MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &params);
}

TEST(kernel_node_parameters_are_returned) {
    CUDA_KERNEL_NODE_PARAMS params = params_of(nothing), out;
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &params);
    assert_int_equal(GOT_CU(CUgraphNodeType, cuGraphNodeGetType, node), CU_GRAPH_NODE_TYPE_KERNEL);
    memset(&out, 0x5a, sizeof out);
    OK_CU(cu.cuGraphKernelNodeGetParams_v2(node, &out));
    assert_ptr_equal(out.func, nothing);
    MEMBERS(out, (gridDimX, 4), (blockDimX, 32), (sharedMemBytes, 0));
    assert_ptr_equal(out.ctx, ctx);
    assert_null(out.kern);
    assert_null(out.kernelParams);
    params.blockDimX = 64;
    OK_CU(cu.cuGraphKernelNodeSetParams_v2(node, &params));
    OK_CU(cu.cuGraphKernelNodeGetParams_v2(node, &out));
    assert_int_equal(out.blockDimX, 64);
    params.blockDimX = 0;
    FAILS_CU(INVALID_VALUE, cu.cuGraphKernelNodeSetParams_v2(node, &params));
    params.blockDimX = 1025;
    FAILS_CU(INVALID_VALUE, cu.cuGraphKernelNodeSetParams_v2(node, &params));
    params = params_of(NULL);
    FAILS_CU(INVALID_HANDLE, cu.cuGraphKernelNodeSetParams_v2(node, &params));
    OK_CU(cu.cuGraphKernelNodeGetParams_v2(node, &out));
    assert_int_equal(out.blockDimX, 64);
}

TEST(kernel_arguments_are_copied_into_the_node) {
    uint32_t a = 0x11223344;
    uint64_t b = 0x5566778899aabbcc;
    void *arguments[] = {&a, &b};
    CUDA_KERNEL_NODE_PARAMS params = params_of(two), out;
    params.kernelParams = arguments;
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &params);
    a = 1, b = 2;
    OK_CU(cu.cuGraphKernelNodeGetParams_v2(node, &out));
    assert_int_equal(*(uint32_t *)out.kernelParams[0], 0x11223344);
    assert_int_equal(*(uint64_t *)out.kernelParams[1], 0x5566778899aabbcc);
    CUgraph copy = MADE_CU(CUgraph, cuGraphClone, graph);
    OK_CU(cu.cuGraphKernelNodeSetParams_v2(node, &params));
    OK_CU(cu.cuGraphKernelNodeGetParams_v2(node, &out));
    assert_int_equal(*(uint32_t *)out.kernelParams[0], 1);
    CUgraphNode found = MADE_CU(CUgraphNode, cuGraphNodeFindInClone, node, copy);
    OK_CU(cu.cuGraphKernelNodeGetParams_v2(found, &out));
    assert_int_equal(*(uint32_t *)out.kernelParams[0], 0x11223344);
    assert_int_equal(*(uint64_t *)out.kernelParams[1], 0x5566778899aabbcc);
    destroy_graph(copy);
    params.kernelParams = NULL;
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
}

TEST(kernel_arguments_may_be_packed_in_one_buffer) {
    struct {
        uint32_t a, pad;
        uint64_t b;
    } packed = {7, 0, 9};
    size_t size = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    CUDA_KERNEL_NODE_PARAMS params = params_of(two), out;
    params.extra = extra;
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &params);
    OK_CU(cu.cuGraphKernelNodeGetParams_v2(node, &out));
    assert_null(out.kernelParams);
    assert_non_null(out.extra);
    size = sizeof packed + 1;
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
}

TEST(the_first_version_of_kernel_node_parameters_works) {
    CUDA_KERNEL_NODE_PARAMS_v1 params = {.func = nothing, GRID(1), BLOCK(8)}, out;
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddKernelNode, graph, NULL, 0, &params);
    memset(&out, 0x5a, sizeof out);
    OK_CU(cu.cuGraphKernelNodeGetParams(node, &out));
    assert_ptr_equal(out.func, nothing);
    assert_int_equal(out.blockDimX, 8);
    params.blockDimX = 16;
    OK_CU(cu.cuGraphKernelNodeSetParams(node, &params));
    OK_CU(cu.cuGraphKernelNodeGetParams(node, &out));
    assert_int_equal(out.blockDimX, 16);
}

TEST(kernel_node_attributes_are_kept_and_copied) {
    CUgraphNode node = kernel(), other = kernel(), plain;
    CUkernelNodeAttrValue value, out;
    OK_CU(cu.cuGraphAddEmptyNode(&plain, graph, NULL, 0));
    OK_CU(cu.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &out));
    assert_int_equal(out.priority, 0);
    memset(&value, 0, sizeof value);
    value.priority = -3;
    OK_CU(cu.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    OK_CU(cu.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &out));
    assert_int_equal(out.priority, -3);
    value.priority = -100;
    OK_CU(cu.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    OK_CU(cu.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &out));
    assert_int_equal(out.priority, -5);
    OK_CU(cu.cuGraphKernelNodeGetAttribute(other, CU_LAUNCH_ATTRIBUTE_PRIORITY, &out));
    assert_int_equal(out.priority, 0);
    OK_CU(cu.cuGraphKernelNodeCopyAttributes(other, node));
    OK_CU(cu.cuGraphKernelNodeGetAttribute(other, CU_LAUNCH_ATTRIBUTE_PRIORITY, &out));
    assert_int_equal(out.priority, -5);
    FAILS_CU(INVALID_VALUE,
             cu.cuGraphKernelNodeSetAttribute(plain, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    FAILS_CU(INVALID_VALUE, cu.cuGraphKernelNodeGetAttribute(
                                node, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &out));
    FAILS_CU(INVALID_VALUE, cu.cuGraphKernelNodeCopyAttributes(plain, node));
    value.clusterDim.x = 3, value.clusterDim.y = value.clusterDim.z = 1;
    FAILS_CU(INVALID_CLUSTER_SIZE,
             cu.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
}

TEST(device_updatable_nodes_cannot_be_copied) {
    CUgraph copy;
    CUgraphNode node = kernel();
    CUkernelNodeAttrValue value, out;
    memset(&value, 0, sizeof value);
    value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    OK_CU(cu.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
                                           &value));
    OK_CU(cu.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
                                           &out));
    assert_non_null(out.deviceUpdatableKernelNode.devNode);
    FAILS_CU(NOT_SUPPORTED, cu.cuGraphClone(&copy, graph));
    FAILS_CU(NOT_SUPPORTED, cu.cuGraphDestroyNode(node));
    value.deviceUpdatableKernelNode.deviceUpdatable = 0;
    FAILS_CU(NOT_SUPPORTED, cu.cuGraphKernelNodeSetAttribute(
                                node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value));
}

/* Who waits for a programmatic event depends on the kernel by its programmatic port. */
TEST(captured_programmatic_events_become_edge_data) {
    CUgraph captured, of;
    CUlaunchAttribute attribute;
    CUstreamCaptureStatus status;
    const CUgraphNode *nodes;
    const CUgraphEdgeData *data;
    size_t count;
    CUstream s = new_stream(), t = new_stream();
    CUevent event = new_event(), join = new_event();
    memset(&attribute, 0, sizeof attribute);
    CUlaunchConfig config = {GRID(1), BLOCK(1), .hStream = s, .attrs = &attribute, .numAttrs = 1};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
    attribute.value.programmaticEvent.event = event;
    OK_CU(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK_CU(cu.cuLaunchKernelEx(&config, nothing, NULL, NULL));
    OK_CU(cu.cuStreamWaitEvent(t, event, 0));
    OK_CU(cu.cuStreamGetCaptureInfo_v3(t, &status, NULL, &of, &nodes, &data, &count));
    assert_int_equal(count, 1);
    assert_int_equal(data[0].from_port, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
    assert_int_equal(data[0].type, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
    FAILS_CU(LOSSY_QUERY, cu.cuStreamGetCaptureInfo_v2(t, &status, NULL, &of, &nodes, &count));
    config.hStream = t;
    config.numAttrs = 0;
    OK_CU(cu.cuLaunchKernelEx(&config, nothing, NULL, NULL));
    order_streams(t, join, s);
    OK_CU(cu.cuStreamEndCapture(s, &captured));
    count = 0;
    OK_CU(cu.cuGraphGetEdges_v2(captured, NULL, NULL, NULL, &count));
    assert_int_equal(count, 1);
    destroy_graph(captured);
}

TEST(edges_keep_their_edge_data) {
    CUgraphNode a = kernel(), b = kernel(), plain, node, from[2], to[2];
    const CUgraphEdgeData programmatic = {1, 0, 1, {0}}, wrong = {0, 0, 1, {0}};
    CUgraphEdgeData data[2];
    CUgraphNodeParams params;
    size_t count = 2;
    OK_CU(cu.cuGraphAddEmptyNode(&plain, graph, NULL, 0));
    OK_CU(cu.cuGraphAddDependencies_v2(graph, &a, &b, &programmatic, 1));
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddDependencies(graph, &a, &b, 1));
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddDependencies_v2(graph, &a, &plain, &programmatic, 1));
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddDependencies_v2(graph, &b, &a, &wrong, 1));
    OK_CU(cu.cuGraphGetEdges_v2(graph, from, to, data, &count));
    assert_int_equal(count, 1);
    MEMBERS(data[0], (from_port, 1), (type, 1));
    FAILS_CU(LOSSY_QUERY, cu.cuGraphGetEdges(graph, from, to, &count));
    FAILS_CU(LOSSY_QUERY, cu.cuGraphNodeGetDependencies(b, from, &count));
    FAILS_CU(LOSSY_QUERY, cu.cuGraphNodeGetDependentNodes(a, from, &count));
    count = 2;
    OK_CU(cu.cuGraphNodeGetDependencies_v2(b, from, data, &count));
    assert_int_equal(data[0].from_port, 1);
    memset(&params, 0, sizeof params);
    params.type = CU_GRAPH_NODE_TYPE_KERNEL;
    params.kernel.func = nothing;
    params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ = 1;
    params.kernel.blockDimX = params.kernel.blockDimY = params.kernel.blockDimZ = 1;
    OK_CU(cu.cuGraphAddNode_v2(&node, graph, &a, &programmatic, 1, &params));
    count = 2;
    OK_CU(cu.cuGraphNodeGetDependencies_v2(node, from, data, &count));
    assert_int_equal(count, 1);
    assert_int_equal(data[0].type, 1);
    OK_CU(cu.cuGraphRemoveDependencies_v2(graph, &a, &b, &programmatic, 1));
    OK_CU(cu.cuGraphNodeGetDependencies(b, NULL, &count));
    assert_int_equal(count, 0);
}
