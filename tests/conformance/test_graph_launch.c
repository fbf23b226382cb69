/* What launched graphs do, and in which order. */
#include "graph_nodes.h"

static CUdeviceptr memory;
static CUstream stream, other;
static struct gate gate;

static int begin(void **state) {
    int failed = test_begin(state);
    if (!failed) {
        memory = new_memory(4096);
        OK_CU(cu.cuMemsetD8_v2(memory, 0x11, 4096));
        stream = new_stream();
        other = new_stream();
        gate = new_gate();
    }
    return failed;
}

EACH_TEST(begin, test_end);

static char order[64];

static void append(void *letter) {
    order[strlen(order)] = *(const char *)letter;
}

TEST(nodes_run_in_dependency_order) {
    static char letters[] = "abcd";
    CUgraph graph = new_graph();
    memset(order, 0, sizeof order);
    CUgraphNode a = add_host(graph, NULL, append, &letters[0]);
    CUgraphNode b = add_host(graph, a, append, &letters[1]);
    CUgraphNode c = add_empty(graph, add_empty(graph, a));
    CUgraphNode both[] = {b, c}, d = NULL;
    CUDA_HOST_NODE_PARAMS params = {.fn = append, .userData = &letters[3]};
    OK_CU(cu.cuGraphAddHostNode(&d, graph, both, 2, &params));
    CUgraphExec exec = instantiate(graph);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    launch_and_wait(exec, stream);
    assert_string_equal(order, "abdabd");
}

/* A chain through three copies, made backwards. */
TEST(edges_decide_the_order_not_creation) {
    CUgraph graph = new_graph();
    CUgraphNode last = add_copy(graph, NULL, memory + 192, memory + 128, 64);
    CUgraphNode middle = add_copy(graph, NULL, memory + 128, memory + 64, 64);
    CUgraphNode first = add_set(graph, NULL, memory + 64, 0x33, 64);
    OK_CU(cu.cuGraphAddDependencies(graph, &first, &middle, 1));
    OK_CU(cu.cuGraphAddDependencies(graph, &middle, &last, 1));
    CUgraphExec exec = instantiate(graph);
    run(exec);
    assert_int_equal(byte_at(memory + 192), 0x33);
}

/* Many branches that meet: more than there are lanes in softgpu. */
TEST(many_branches_join) {
    enum { BRANCHES = 200 };
    CUgraph graph = new_graph();
    CUgraphNode ends[BRANCHES], join;
    for (unsigned i = 0; i < BRANCHES; i++) {
        CUgraphNode set = add_set(graph, NULL, memory + 8 * i, i, 4);
        ends[i] = add_copy(graph, set, memory + 8 * i + 4, memory + 8 * i, 4);
    }
    CUDA_MEMCPY3D params = copy_params(memory + 2048, memory, 8 * BRANCHES);
    OK_CU(cu.cuGraphAddMemcpyNode(&join, graph, ends, BRANCHES, &params, ctx));
    CUgraphExec exec = instantiate(graph);
    run(exec);
    unsigned char bytes[8 * BRANCHES];
    OK_CU(cu.cuMemcpyDtoH_v2(bytes, memory + 2048, sizeof bytes));
    for (unsigned i = 0; i < BRANCHES; i++)
        assert_int_equal(bytes[8 * i + 7], i);
}

TEST(a_graph_launch_keeps_stream_order) {
    CUgraph graph = new_graph();
    add_copy(graph, NULL, memory + 64, memory, 64);
    CUgraphExec exec = instantiate(graph);
    gate_hold(&gate, stream);
    OK_CU(cu.cuMemsetD8Async(memory, 0x44, 64, stream));
    OK_CU(cu.cuGraphLaunch(exec, stream));
    OK_CU(cu.cuMemsetD8Async(memory, 0x55, 64, stream));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
    gate_drain(&gate, stream);
    assert_int_equal(byte_at(memory + 64), 0x44);
    assert_int_equal(byte_at(memory), 0x55);
}

/* Launches of one exec follow one another; those of two execs do not. */
TEST(launches_of_one_exec_do_not_overlap) {
    CUgraph graph = new_graph();
    add_set(graph, NULL, memory, 0x22, 64);
    CUgraphExec exec = instantiate(graph), second = instantiate(graph);
    gate_hold(&gate, stream);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    launch_and_wait(second, other);
    OK_CU(cu.cuGraphLaunch(exec, other));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(other));
    gate_drain(&gate, other);
    OK_CU(cu.cuStreamSynchronize(stream));
}

TEST(an_upload_waits_for_earlier_launches) {
    CUgraph graph = new_graph();
    add_set(graph, NULL, memory, 0x22, 64);
    CUgraphExec exec = instantiate(graph);
    OK_CU(cu.cuGraphUpload(exec, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(byte_at(memory), 0x11);
    gate_hold(&gate, stream);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    OK_CU(cu.cuGraphUpload(exec, other));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(other));
    gate_drain(&gate, other);
    OK_CU(cu.cuStreamSynchronize(stream));
}

/* An upload in the NULL stream is work of that stream, or of the thread's for the twin. */
TEST(instantiation_with_upload_uses_the_given_stream) {
    CUgraph graph = new_graph();
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};
    add_set(graph, NULL, memory, 0x22, 64);
    CUgraphExec exec = MADE_CU(CUgraphExec, cuGraphInstantiateWithParams, graph, &params);
    OK_CU(cu.cuStreamSynchronize(NULL));
    assert_int_equal(params.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
    run(exec);
    assert_int_equal(byte_at(memory), 0x22);
    OK_CU(cu.cuGraphUpload(exec, NULL));
    OK_CU(cu.cuStreamSynchronize(NULL));
    destroy_exec(exec);
}

TEST(event_record_nodes_record_events) {
    float ms = -1;
    CUgraph graph = new_graph();
    CUevent before = new_timed_event(), after = new_timed_event();
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddEventRecordNode, graph, NULL, 0, before);
    node = add_set(graph, node, memory, 0x22, 4096);
    OK_CU(cu.cuGraphAddEventRecordNode(&node, graph, &node, 1, after));
    CUgraphExec exec = instantiate(graph);
    gate_hold(&gate, stream);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    FAILS_CU(NOT_READY, cu.cuEventQuery(before));
    OK_CU(cu.cuStreamWaitEvent(other, after, 0));
    OK_CU(cu.cuMemcpyDtoDAsync_v2(memory + 64, memory, 1, other));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(other));
    gate_release(&gate);
    OK_CU(cu.cuEventSynchronize(after));
    assert_int_equal(byte_at(memory), 0x22);
    OK_CU(cu.cuEventElapsedTime(&ms, before, after));
    assert_true(ms >= 0);
    OK_CU(cu.cuStreamSynchronize(other));
    OK_CU(cu.cuStreamSynchronize(stream));
}

TEST(event_wait_nodes_wait_for_events) {
    CUgraph graph = new_graph();
    CUevent event = new_event();
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddEventWaitNode, graph, NULL, 0, event);
    add_copy(graph, node, memory + 64, memory, 64);
    CUgraphExec exec = instantiate(graph);
    gate_hold(&gate, other);
    OK_CU(cu.cuMemsetD8Async(memory, 0x66, 64, other));
    OK_CU(cu.cuEventRecord(event, other));
    OK_CU(cu.cuGraphLaunch(exec, stream));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
    gate_drain(&gate, stream);
    assert_int_equal(byte_at(memory + 64), 0x66);
}

/* What a node records, a later node of the same launch may wait for. */
TEST(a_graph_may_wait_for_an_event_it_records) {
    CUgraph graph = new_graph();
    CUevent event = new_event();
    CUgraphNode set = add_set(graph, NULL, memory, 0x77, 64);
    CUgraphNode record = MADE_CU(CUgraphNode, cuGraphAddEventRecordNode, graph, &set, 1, event);
    CUgraphNode wait = MADE_CU(CUgraphNode, cuGraphAddEventWaitNode, graph, &record, 1, event);
    add_copy(graph, wait, memory + 64, memory, 64);
    CUgraphExec exec = instantiate(graph);
    launch_and_wait(exec, stream);
    assert_int_equal(byte_at(memory + 64), 0x77);
}

TEST(memory_operation_nodes_wait_and_write) {
    CUstreamBatchMemOpParams ops[2];
    CUgraph graph = new_graph();
    memset(ops, 0, sizeof ops);
    OK_CU(cu.cuMemsetD8_v2(memory, 0, 64));
    ops[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[0].waitValue.address = memory;
    ops[0].waitValue.value = 3;
    ops[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[1].writeValue.address = memory + 8;
    ops[1].writeValue.value = 0x5a;
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.ctx = ctx, .count = 2, .paramArray = ops};
    (void)MADE_CU(CUgraphNode, cuGraphAddBatchMemOpNode, graph, NULL, 0, &params);
    CUgraphExec exec = instantiate(graph);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
    assert_int_equal(byte_at(memory + 8), 0);
    OK_CU(cu.cuMemsetD32_v2(memory, 3, 1));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(byte_at(memory + 8), 0x5a);
}

TEST(child_graphs_run_in_place_of_their_node) {
    CUgraph inner = new_graph(), nothing = new_graph(), outer = new_graph();
    add_copy(inner, NULL, memory + 64, memory, 64);
    CUgraphNode node = add_child(outer, add_set(outer, NULL, memory, 0x22, 64), inner);
    node = add_child(outer, node, nothing);
    add_copy(outer, node, memory + 128, memory + 64, 64);
    destroy_graph(inner);
    destroy_graph(nothing);
    CUgraphExec exec = instantiate(outer);
    run(exec);
    assert_int_equal(byte_at(memory + 128), 0x22);
}

TEST_WHERE(a_graph_in_the_legacy_stream_is_ordered_with_blocking_streams, NEEDS_LEGACY_STREAM()) {
    CUgraph graph = new_graph();
    CUstream blocking = new_blocking_stream();
    add_copy(graph, NULL, memory + 64, memory, 64);
    CUgraphExec exec = instantiate(graph);
    gate_hold(&gate, blocking);
    OK_CU(cu.cuMemsetD8Async(memory, 0x44, 64, blocking));
    OK_CU(cu.cuGraphLaunch(exec, NULL));
    OK_CU(cu.cuMemsetD8Async(memory, 0x55, 64, blocking));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(NULL));
    gate_drain(&gate, blocking);
    assert_int_equal(byte_at(memory + 64), 0x44);
}

TEST_WHERE(every_schedule_gives_the_same_result, NEEDS_SOFTGPU("chooses the schedule")) {
    CUgraph graph = new_graph();
    CUgraphNode left = add_set(graph, NULL, memory, 1, 64);
    CUgraphNode right = add_set(graph, NULL, memory + 64, 2, 64);
    CUgraphNode both[] = {left, right}, join;
    CUDA_MEMCPY3D params = copy_params(memory + 128, memory, 128);
    OK_CU(cu.cuGraphAddMemcpyNode(&join, graph, both, 2, &params, ctx));
    add_set(graph, join, memory, 3, 128);
    CUgraphExec exec = instantiate(graph);
    for (unsigned seed = 0; seed < 20; seed++) {
        soft->schedule_set(seed == 0 ? SOFTGPU_SCHEDULE_LATE : SOFTGPU_SCHEDULE_RANDOM, seed);
        set_bytes(memory, 0x11, 256);
        OK_CU(cu.cuGraphLaunch(exec, stream));
        launch_and_wait(exec, other);
        assert_int_equal(byte_at(memory + 128), 1);
        assert_int_equal(byte_at(memory + 192), 2);
        assert_int_equal(byte_at(memory + 64), 3);
    }
    soft->schedule_set(SOFTGPU_SCHEDULE_EAGER, 0);
}

static void user_freed(void *flag) {
    __atomic_store_n((int *)flag, 1, __ATOMIC_RELEASE);
}

TEST(an_executable_graph_keeps_user_objects) {
    static int freed;
    CUuserObject object;
    CUgraph graph = new_graph();
    __atomic_store_n(&freed, 0, __ATOMIC_RELEASE);
    OK_CU(cu.cuUserObjectCreate(&object, &freed, user_freed, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK_CU(cu.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    CUgraphExec exec = instantiate(graph);
    destroy_graph(graph);
    run(exec);
    assert_int_equal(__atomic_load_n(&freed, __ATOMIC_ACQUIRE), 0);
    destroy_exec(exec);
    while (!__atomic_load_n(&freed, __ATOMIC_ACQUIRE))
        usleep(100); /* the destructor runs on a thread of the driver's */
}

CHILD_TEST(launching_a_graph_with_lost_memory_is_a_fault) {
    init_driver();
    CUgraph graph = new_graph();
    CUdeviceptr gone = MADE_CU(CUdeviceptr, cuMemAlloc_v2, (size_t)64 << 20);
    add_copy(graph, NULL, gone, gone + 4096, 4096);
    CUgraphExec exec = instantiate(graph);
    OK_CU(cu.cuMemFree_v2(gone));
    OK_CU(cu.cuGraphLaunch(exec, NULL));
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuStreamSynchronize(NULL));
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuGraphLaunch(exec, NULL));
    destroy_exec(exec);
    return 0;
}
