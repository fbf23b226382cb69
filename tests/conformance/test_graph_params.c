/* Parameters of nodes: what goes in comes out, and can be set. */
#include "harness.h"

static CUgraph graph;
static CUdeviceptr memory;

static int begin(void **state) {
    int failed = test_begin(state);
    if (!failed) {
        OK_CU(cu.cuGraphCreate(&graph, 0));
        OK_CU(cu.cuMemAlloc_v2(&memory, 4096));
    }
    return failed;
}

AFTER(test_end) {
    if (graph) {
        destroy_graph(graph);
        OK_CU(cu.cuMemFree_v2(memory));
    }
    graph = NULL;
}

EACH_TEST(begin, after);

static void assert_type(CUgraphNode node, CUgraphNodeType wanted) {
    assert_int_equal(GOT_CU(CUgraphNodeType, cuGraphNodeGetType, node), wanted);
}

static CUgraphNode empty(void) {
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddEmptyNode, graph, NULL, 0);
    assert_type(node, CU_GRAPH_NODE_TYPE_EMPTY);
    return node;
}

/* ---- Copies --------------------------------------------------------------------------------- */

static CUDA_MEMCPY3D copy_of(size_t width) {
    CUDA_MEMCPY3D copy;
    memset(&copy, 0, sizeof copy);
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = memory;
    copy.dstDevice = memory + 2048;
    copy.WidthInBytes = width;
    copy.Height = copy.Depth = 1;
    return copy;
}

TEST(memcpy_node_parameters_are_kept_and_changed) {
    CUgraphNode node, none = empty();
    CUDA_MEMCPY3D copy = copy_of(64), out;
    OK_CU(cu.cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, ctx));
    assert_type(node, CU_GRAPH_NODE_TYPE_MEMCPY);
    memset(&out, 0x5a, sizeof out);
    OK_CU(cu.cuGraphMemcpyNodeGetParams(node, &out));
    MEMBERS(out, (srcMemoryType, CU_MEMORYTYPE_DEVICE), (srcDevice, memory),
            (dstDevice, memory + 2048), (WidthInBytes, 64), (Height, 1), (Depth, 1));
    copy = copy_of(128);
    OK_CU(cu.cuGraphMemcpyNodeSetParams(node, &copy));
    OK_CU(cu.cuGraphMemcpyNodeGetParams(node, &out));
    assert_int_equal(out.WidthInBytes, 128);
    FAILS_CU(INVALID_VALUE, cu.cuGraphMemcpyNodeGetParams(none, &out));
    FAILS_CU(INVALID_VALUE, cu.cuGraphMemcpyNodeSetParams(none, &copy));
    copy.srcDevice = 0;
    FAILS_CU(INVALID_VALUE, cu.cuGraphMemcpyNodeSetParams(node, &copy));
    OK_CU(cu.cuGraphMemcpyNodeGetParams(node, &out));
    assert_int_equal(out.srcDevice, memory);
}

/* ---- Sets ----------------------------------------------------------------------------------- */

static CUDA_MEMSET_NODE_PARAMS set_of(unsigned value, unsigned element, size_t width) {
    return (CUDA_MEMSET_NODE_PARAMS){
        .dst = memory, .value = value, .elementSize = element, .width = width, .height = 1};
}

TEST(memset_node_parameters_are_kept_and_changed) {
    CUgraphNode node, made, none = empty();
    CUDA_MEMSET_NODE_PARAMS set = set_of(7, 1, 16), out;
    OK_CU(cu.cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, ctx));
    assert_type(node, CU_GRAPH_NODE_TYPE_MEMSET);
    memset(&out, 0x5a, sizeof out);
    OK_CU(cu.cuGraphMemsetNodeGetParams(node, &out));
    MEMBERS(out, (dst, memory), (value, 7), (elementSize, 1), (width, 16), (height, 1));
    set = set_of(0x12345678, 4, 8);
    OK_CU(cu.cuGraphMemsetNodeSetParams(node, &set));
    OK_CU(cu.cuGraphMemsetNodeGetParams(node, &out));
    MEMBERS(out, (value, 0x12345678), (elementSize, 4), (width, 8));
    set.elementSize = 3;
    FAILS_CU(INVALID_VALUE, cu.cuGraphMemsetNodeSetParams(node, &set));
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddMemsetNode(&made, graph, NULL, 0, &set, ctx));
    FAILS_CU(INVALID_VALUE, cu.cuGraphMemsetNodeGetParams(none, &out));
    OK_CU(cu.cuGraphMemsetNodeGetParams(node, &out));
    assert_int_equal(out.elementSize, 4);
}

/* ---- Host functions, events, batches, semaphores -------------------------------------------- */

static void first(void *data) {
}
static void second(void *data) {
}

TEST(host_node_parameters_are_kept_and_changed) {
    int data[2];
    CUgraphNode node, none = empty();
    CUDA_HOST_NODE_PARAMS host = {first, &data[0]}, out;
    OK_CU(cu.cuGraphAddHostNode(&node, graph, NULL, 0, &host));
    assert_type(node, CU_GRAPH_NODE_TYPE_HOST);
    memset(&out, 0x5a, sizeof out);
    OK_CU(cu.cuGraphHostNodeGetParams(node, &out));
    assert_true(out.fn == first);
    assert_ptr_equal(out.userData, &data[0]);
    host = (CUDA_HOST_NODE_PARAMS){second, &data[1]};
    OK_CU(cu.cuGraphHostNodeSetParams(node, &host));
    OK_CU(cu.cuGraphHostNodeGetParams(node, &out));
    assert_true(out.fn == second);
    assert_ptr_equal(out.userData, &data[1]);
    FAILS_CU(INVALID_VALUE, cu.cuGraphHostNodeGetParams(none, &out));
}

TEST(event_node_parameters_are_kept_and_changed) {
    CUevent a = new_timed_event(), b = new_timed_event();
    CUgraphNode record = MADE_CU(CUgraphNode, cuGraphAddEventRecordNode, graph, NULL, 0, a);
    CUgraphNode wait = MADE_CU(CUgraphNode, cuGraphAddEventWaitNode, graph, NULL, 0, b);
    assert_type(record, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    assert_type(wait, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    CUevent out = GOT_CU(CUevent, cuGraphEventRecordNodeGetEvent, record);
    assert_ptr_equal(out, a);
    OK_CU(cu.cuGraphEventWaitNodeGetEvent(wait, &out));
    assert_ptr_equal(out, b);
    OK_CU(cu.cuGraphEventRecordNodeSetEvent(record, b));
    OK_CU(cu.cuGraphEventWaitNodeSetEvent(wait, a));
    OK_CU(cu.cuGraphEventRecordNodeGetEvent(record, &out));
    assert_ptr_equal(out, b);
    OK_CU(cu.cuGraphEventWaitNodeGetEvent(wait, &out));
    assert_ptr_equal(out, a);
    FAILS_CU(INVALID_VALUE, cu.cuGraphEventWaitNodeGetEvent(record, &out));
    FAILS_CU(INVALID_VALUE, cu.cuGraphEventRecordNodeGetEvent(wait, &out));
    destroy_graph(graph);
    OK_CU(cu.cuMemFree_v2(memory));
    graph = NULL;
}

TEST(batch_memory_operation_node_parameters_are_kept_and_changed) {
    CUstreamBatchMemOpParams ops[2];
    memset(ops, 0, sizeof ops);
    for (int i = 0; i < 2; i++) {
        ops[i].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        ops[i].writeValue.address = memory + 4 * (CUdeviceptr)i;
        ops[i].writeValue.value = 5;
    }
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {ctx, 2, ops, 0}, out;
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddBatchMemOpNode, graph, NULL, 0, &batch);
    assert_type(node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    ops[0].writeValue.value = 6;
    memset(&out, 0x5a, sizeof out);
    OK_CU(cu.cuGraphBatchMemOpNodeGetParams(node, &out));
    assert_int_equal(out.count, 2);
    assert_ptr_equal(out.ctx, ctx);
    assert_int_equal(out.paramArray[0].writeValue.value, 5);
    assert_int_equal(out.paramArray[1].writeValue.address, memory + 4);
    batch.count = 1;
    OK_CU(cu.cuGraphBatchMemOpNodeSetParams(node, &batch));
    OK_CU(cu.cuGraphBatchMemOpNodeGetParams(node, &out));
    assert_int_equal(out.count, 1);
    assert_int_equal(out.paramArray[0].writeValue.value, 6);
}

/* Lists of no semaphore, and of one that is none: nothing looks at it before a launch. */
TEST(semaphore_node_parameters_are_kept_and_changed) {
    CUgraphNode signal, wait, none = empty();
    CUexternalSemaphore list[1] = {NULL};
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signals[1];
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS waits[1];
    memset(signals, 0, sizeof signals);
    memset(waits, 0, sizeof waits);
    signals[0].params.fence.value = 7;
    waits[0].params.fence.value = 8;
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS s = {list, signals, 0}, s_out;
    CUDA_EXT_SEM_WAIT_NODE_PARAMS w = {list, waits, 0}, w_out;
    OK_CU(cu.cuGraphAddExternalSemaphoresSignalNode(&signal, graph, NULL, 0, &s));
    OK_CU(cu.cuGraphAddExternalSemaphoresWaitNode(&wait, graph, NULL, 0, &w));
    assert_type(signal, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL);
    assert_type(wait, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT);
    memset(&s_out, 0x5a, sizeof s_out);
    memset(&w_out, 0x5a, sizeof w_out);
    OK_CU(cu.cuGraphExternalSemaphoresSignalNodeGetParams(signal, &s_out));
    OK_CU(cu.cuGraphExternalSemaphoresWaitNodeGetParams(wait, &w_out));
    assert_int_equal(s_out.numExtSems, 0);
    assert_int_equal(w_out.numExtSems, 0);
    s.numExtSems = w.numExtSems = 1;
    OK_CU(cu.cuGraphExternalSemaphoresSignalNodeSetParams(signal, &s));
    OK_CU(cu.cuGraphExternalSemaphoresWaitNodeSetParams(wait, &w));
    signals[0].params.fence.value = waits[0].params.fence.value = 0;
    OK_CU(cu.cuGraphExternalSemaphoresSignalNodeGetParams(signal, &s_out));
    OK_CU(cu.cuGraphExternalSemaphoresWaitNodeGetParams(wait, &w_out));
    assert_int_equal(s_out.numExtSems, 1);
    assert_int_equal(w_out.numExtSems, 1);
    assert_int_equal(s_out.paramsArray[0].params.fence.value, 7);
    assert_int_equal(w_out.paramsArray[0].params.fence.value, 8);
    FAILS_CU(INVALID_VALUE, cu.cuGraphExternalSemaphoresSignalNodeSetParams(none, &s));
    FAILS_CU(INVALID_VALUE, cu.cuGraphExternalSemaphoresWaitNodeGetParams(none, &w_out));
}

/* ---- cuGraphAddNode and cuGraphNodeSetParams ------------------------------------------------- */

TEST(one_function_adds_nodes_of_any_type) {
    CUgraphNode a, b, list[2];
    CUgraphNodeParams params;
    size_t count = 2;
    memset(&params, 0, sizeof params);
    params.type = CU_GRAPH_NODE_TYPE_EMPTY;
    OK_CU(cu.cuGraphAddNode(&a, graph, NULL, 0, &params));
    assert_type(a, CU_GRAPH_NODE_TYPE_EMPTY);
    params.type = CU_GRAPH_NODE_TYPE_HOST;
    params.host.fn = first;
    OK_CU(cu.cuGraphAddNode_v2(&b, graph, &a, NULL, 1, &params));
    assert_type(b, CU_GRAPH_NODE_TYPE_HOST);
    OK_CU(cu.cuGraphNodeGetDependencies(b, list, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(list[0], a);
    params.host.fn = second;
    OK_CU(cu.cuGraphNodeSetParams(b, &params));
    CUDA_HOST_NODE_PARAMS out = GOT_CU(CUDA_HOST_NODE_PARAMS, cuGraphHostNodeGetParams, b);
    assert_true(out.fn == second);
    FAILS_CU(INVALID_VALUE, cu.cuGraphNodeSetParams(a, &params));
    params.type = (CUgraphNodeType)99;
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddNode(&b, graph, NULL, 0, &params));
}

TEST(one_function_sets_parameters_of_any_node_type) {
    CUgraphNodeParams params;
    CUDA_MEMSET_NODE_PARAMS out;
    memset(&params, 0, sizeof params);
    params.type = CU_GRAPH_NODE_TYPE_MEMSET;
    params.memset.dst = memory;
    params.memset.elementSize = 2;
    params.memset.width = 4;
    params.memset.height = 1;
    params.memset.ctx = ctx;
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddNode, graph, NULL, 0, &params);
    params.memset.width = 8;
    OK_CU(cu.cuGraphNodeSetParams(node, &params));
    OK_CU(cu.cuGraphMemsetNodeGetParams(node, &out));
    MEMBERS(out, (width, 8), (elementSize, 2));
}
