/* Stream capture: what streams take becomes nodes, runs when the graph is launched, and not before.
 */
#include "harness.h"

#define SIZE 256

struct scene {
    CUstream stream, other;
    CUevent event, joined;
    CUdeviceptr memory;
};

static struct scene make(void) {
    struct scene scene;
    scene.stream = new_stream();
    scene.other = new_stream();
    scene.event = new_event();
    scene.joined = new_event();
    scene.memory = new_memory(SIZE);
    set_bytes(scene.memory, 0, SIZE);
    return scene;
}

static CUstreamCaptureStatus status_of(CUstream stream) {
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)77;
    OK_CU(cu.cuStreamIsCapturing(stream, &status));
    return status;
}

static size_t nodes_of(CUgraph graph) {
    return GOT_CU(size_t, cuGraphGetNodes, graph, NULL);
}

static size_t edges_of(CUgraph graph) {
    return GOT_CU(size_t, cuGraphGetEdges, graph, NULL, NULL);
}

/* Launches it in the stream, waits, and destroys it. */
static void launch(CUgraph graph, CUstream stream, unsigned times) {
    CUgraphExec exec = instantiate(graph);
    for (unsigned i = 0; i < times; i++)
        OK_CU(cu.cuGraphLaunch(exec, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuGraphDestroy(graph));
}

static void discard(CUstream stream) {
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    OK_CU(cu.cuGraphDestroy(graph));
}

TEST(captured_work_runs_at_the_launch) {
    struct scene scene = make();
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(status_of(scene.stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_int_equal(status_of(scene.other), CU_STREAM_CAPTURE_STATUS_NONE);
    OK_CU(cu.cuMemsetD8Async(scene.memory, 5, 16, scene.stream));
    OK_CU(cu.cuMemcpyDtoDAsync_v2(scene.memory + 64, scene.memory, 16, scene.stream));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, scene.stream);
    assert_int_equal(status_of(scene.stream), CU_STREAM_CAPTURE_STATUS_NONE);
    assert_int_equal(nodes_of(graph), 2);
    assert_int_equal(edges_of(graph), 1);
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    assert_int_equal(byte_at(scene.memory), 0);
    launch(graph, scene.stream, 1);
    assert_int_equal(byte_at(scene.memory), 5);
    assert_int_equal(byte_at(scene.memory + 79), 5);
    assert_int_equal(byte_at(scene.memory + 80), 0);
}

TEST(the_first_version_of_begin_capture_works) {
    struct scene scene = make();
    OK_CU(cu.cuStreamBeginCapture(scene.stream));
    OK_CU(cu.cuMemsetD8Async(scene.memory, 6, 16, scene.stream));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, scene.stream);
    assert_int_equal(byte_at(scene.memory), 0);
    launch(graph, scene.stream, 1);
    assert_int_equal(byte_at(scene.memory), 6);
}

static void CUDAAPI count_call(void *data) {
    ++*(int *)data;
}

TEST(host_functions_and_value_operations_are_captured_as_nodes) {
    struct scene scene = make();
    int calls = 0;
    CUstreamBatchMemOpParams ops[2];
    memset(ops, 0, sizeof ops);
    ops[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[0].writeValue.address = scene.memory + 16;
    ops[0].writeValue.value = 0x05050505;
    ops[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[1].waitValue.address = scene.memory + 16;
    ops[1].waitValue.value = 0x05050505;
    ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK_CU(cu.cuLaunchHostFunc(scene.stream, count_call, &calls));
    OK_CU(cu.cuStreamWriteValue32_v2(scene.stream, scene.memory, 0x03030303, 0));
    OK_CU(cu.cuStreamWriteValue64_v2(scene.stream, scene.memory + 8, 0x0404040404040404u, 0));
    OK_CU(
        cu.cuStreamWaitValue32_v2(scene.stream, scene.memory, 0x03030303, CU_STREAM_WAIT_VALUE_EQ));
    OK_CU(cu.cuStreamBatchMemOp_v2(scene.stream, 2, ops, 0));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, scene.stream);
    assert_int_equal(calls, 0);
    assert_int_equal(nodes_of(graph), 5);
    launch(graph, scene.stream, 2);
    assert_int_equal(calls, 2);
    assert_int_equal(byte_at(scene.memory), 3);
    assert_int_equal(byte_at(scene.memory + 8), 4);
    assert_int_equal(byte_at(scene.memory + 16), 5);
}

TEST(captured_allocations_belong_to_the_graph) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
    struct scene scene = make();
    CUdeviceptr inside = 0, none = 77;
    CUgraphNode nodes[4];
    size_t count = 4;
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK_CU(cu.cuMemAllocAsync(&inside, 4096, scene.stream));
    assert_true(inside != 0);
    OK_CU(cu.cuMemAllocAsync(&none, 0, scene.stream));
    assert_true(none == 0);
    OK_CU(cu.cuMemFreeAsync(0, scene.stream));
    FAILS_CU(INVALID_VALUE, cu.cuMemFreeAsync(scene.memory, scene.stream));
    OK_CU(cu.cuMemsetD8Async(inside + 100, 5, 16, scene.stream));
    OK_CU(cu.cuMemcpyDtoDAsync_v2(scene.memory, inside + 100, 16, scene.stream));
    OK_CU(cu.cuMemFreeAsync(inside, scene.stream));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, scene.stream);
    OK_CU(cu.cuGraphGetNodes(graph, nodes, &count));
    assert_int_equal(count, 4);
    CUgraphNodeType type = GOT_CU(CUgraphNodeType, cuGraphNodeGetType, nodes[0]);
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    OK_CU(cu.cuGraphNodeGetType(nodes[3], &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_MEM_FREE);
    launch(graph, scene.stream, 1);
    assert_int_equal(byte_at(scene.memory + 15), 5);
    OK_CU(cu.cuDeviceGraphMemTrim(dev));
}

TEST(work_queued_before_the_capture_is_not_captured) {
    struct scene scene = make();
    struct gate gate = hold(scene.stream);
    OK_CU(cu.cuMemsetD8Async(scene.memory, 1, 16, scene.stream));
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK_CU(cu.cuMemsetD8Async(scene.memory, 2, 16, scene.stream));
    gate_release(&gate);
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, scene.stream);
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    assert_int_equal(byte_at(scene.memory), 1);
    assert_int_equal(nodes_of(graph), 1);
    OK_CU(cu.cuGraphDestroy(graph));
}

TEST(events_fork_and_join_a_capture) {
    struct scene scene = make();
    cuuint64_t id = 0, other_id = 1;
    CUstreamCaptureStatus status;
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK_CU(cu.cuMemsetD8Async(scene.memory, 1, 16, scene.stream));
    order_streams(scene.stream, scene.event, scene.other);
    assert_int_equal(status_of(scene.other), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK_CU(cu.cuStreamGetCaptureInfo(scene.stream, &status, &id));
    OK_CU(cu.cuStreamGetCaptureInfo(scene.other, &status, &other_id));
    assert_true(id == other_id && id != 0);
    OK_CU(cu.cuMemcpyDtoDAsync_v2(scene.memory + 16, scene.memory, 16, scene.other));
    OK_CU(cu.cuMemcpyDtoDAsync_v2(scene.memory + 32, scene.memory, 16, scene.stream));
    order_streams(scene.other, scene.joined, scene.stream);
    OK_CU(cu.cuMemcpyDtoDAsync_v2(scene.memory + 48, scene.memory + 16, 16, scene.stream));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, scene.stream);
    assert_int_equal(status_of(scene.other), CU_STREAM_CAPTURE_STATUS_NONE);
    assert_int_equal(nodes_of(graph), 4);
    assert_int_equal(edges_of(graph), 4);
    launch(graph, scene.stream, 1);
    assert_int_equal(byte_at(scene.memory + 47), 1);
    assert_int_equal(byte_at(scene.memory + 63), 1);
    /* The events stand for nothing any more until they are recorded again. */
    FAILS_CU(INVALID_VALUE, cu.cuEventQuery(scene.event));
    FAILS_CU(INVALID_VALUE, cu.cuStreamWaitEvent(scene.other, scene.event, 0));
    OK_CU(cu.cuEventRecord(scene.event, scene.other));
    OK_CU(cu.cuEventSynchronize(scene.event));
}

TEST(a_fork_must_be_joined) {
    struct scene scene = make();
    CUgraph graph = (CUgraph)(uintptr_t)1;
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    order_streams(scene.stream, scene.event, scene.other);
    OK_CU(cu.cuMemsetD8Async(scene.memory, 1, 16, scene.other));
    FAILS_CU(STREAM_CAPTURE_UNJOINED, cu.cuStreamEndCapture(scene.stream, &graph));
    assert_null(graph);
    assert_int_equal(status_of(scene.other), CU_STREAM_CAPTURE_STATUS_NONE);
    /* One without work of its own need not. */
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK_CU(cu.cuMemsetD8Async(scene.memory, 1, 16, scene.stream));
    order_streams(scene.stream, scene.event, scene.other);
    OK_CU(cu.cuMemsetD8Async(scene.memory, 2, 16, scene.stream));
    discard(scene.stream);
    /* Nor one whose work was taken out of the dependencies. */
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    order_streams(scene.stream, scene.event, scene.other);
    OK_CU(cu.cuMemsetD8Async(scene.memory, 1, 16, scene.other));
    OK_CU(cu.cuStreamUpdateCaptureDependencies(scene.other, NULL, 0,
                                               CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    discard(scene.stream);
}

TEST(a_capture_cannot_wait_for_uncaptured_work) {
    struct scene scene = make();
    CUgraph graph;
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK_CU(cu.cuStreamWaitEvent(scene.stream, scene.event, 0)); /* never recorded */
    discard(scene.stream);
    OK_CU(cu.cuEventRecord(scene.event, scene.other));
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    FAILS_CU(STREAM_CAPTURE_ISOLATION, cu.cuStreamWaitEvent(scene.stream, scene.event, 0));
    FAILS_CU(STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(scene.stream, &graph));
}

TEST(external_events_are_captured_as_nodes) {
    struct scene scene = make();
    FAILS_CU(ILLEGAL_STATE,
             cu.cuEventRecordWithFlags(scene.event, scene.stream, CU_EVENT_RECORD_EXTERNAL));
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK_CU(cu.cuEventRecordWithFlags(scene.event, scene.stream, CU_EVENT_RECORD_EXTERNAL));
    OK_CU(cu.cuStreamWaitEvent(scene.stream, scene.joined, CU_EVENT_WAIT_EXTERNAL));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, scene.stream);
    assert_int_equal(nodes_of(graph), 2);
    OK_CU(cu.cuGraphDestroy(graph));
}

TEST(only_the_origin_stream_ends_a_capture) {
    struct scene scene = make();
    CUgraph graph;
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    FAILS_CU(ILLEGAL_STATE,
             cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    order_streams(scene.stream, scene.event, scene.other);
    FAILS_CU(STREAM_CAPTURE_UNMATCHED, cu.cuStreamEndCapture(scene.other, &graph));
    FAILS_CU(STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(scene.stream, &graph));
    FAILS_CU(ILLEGAL_STATE, cu.cuStreamEndCapture(scene.stream, &graph));
}

TEST(a_capturing_stream_may_be_destroyed) {
    struct scene scene = make();
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK_CU(cu.cuMemsetD8Async(scene.memory, 1, 16, scene.stream));
    order_streams(scene.stream, scene.event, scene.other);
    OK_CU(cu.cuStreamDestroy_v2(scene.stream));
    forget(scene.stream);
    assert_int_equal(status_of(scene.other), CU_STREAM_CAPTURE_STATUS_NONE);
    OK_CU(cu.cuMemsetD8Async(scene.memory, 2, 16, scene.other));
    OK_CU(cu.cuStreamSynchronize(scene.other));
    assert_int_equal(byte_at(scene.memory), 2);
}

/* What lies at the address is looked at when the graph is instantiated; a copy's ends at once. */
TEST(a_memset_is_captured_whatever_its_address) {
    struct scene scene = make();
    const CUdeviceptr addresses[] = {0, 0x1000, scene.memory};
    for (size_t i = 0; i < COUNT(addresses); i++) {
        CUgraphNode node;
        CUgraphExec exec;
        CUDA_MEMSET_NODE_PARAMS params;
        size_t count = 1;
        unsigned char byte = 0;
        OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        OK_CU(
            cu.cuMemsetD32Async(addresses[i], 7, (size_t)1 << 30, scene.stream)); /* past its end */
        FAILS_CU(INVALID_VALUE,
                 cu.cuMemsetD32Async(scene.memory + 2, 7, 1, scene.stream)); /* misaligned */
        if (addresses[i] != scene.memory)
            FAILS_CU(INVALID_VALUE, cu.cuMemcpyHtoDAsync_v2(addresses[i], &byte, 1, scene.stream));
        CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, scene.stream);
        assert_int_equal(nodes_of(graph), 1);
        OK_CU(cu.cuGraphGetNodes(graph, &node, &count));
        OK_CU(cu.cuGraphMemsetNodeGetParams(node, &params));
        MEMBERS(params, (dst, addresses[i]), (width, (size_t)1 << 30));
        FAILS_CU(INVALID_VALUE, cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
        OK_CU(cu.cuGraphDestroy(graph));
    }
}
