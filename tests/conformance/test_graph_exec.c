/* Making executable graphs, and what is checked then. */
#include "graph_nodes.h"

static CUdeviceptr memory;

BEFORE(test_begin) {
    memory = new_memory(4096);
    set_bytes(memory, 0x11, 4096); /* streams of the tests do not wait for the legacy one */
}

EACH_TEST(before, test_end);

static void works_once(CUgraphExec exec) {
    assert_non_null(exec);
    OK_CU(cu.cuMemsetD8_v2(memory, 0x11, 4096));
    run(exec);
    assert_int_equal(byte_at(memory), 0x22);
    destroy_exec(exec);
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecDestroy(exec));
    FAILS_CU(INVALID_VALUE, cu.cuGraphLaunch(exec, NULL));
}

TEST(every_version_of_instantiate_works) {
    CUgraph graph = new_graph();
    CUgraphNode error = (CUgraphNode)(uintptr_t)1;
    char log[16] = "?";
    add_set(graph, NULL, memory, 0x22, 64);
    CUgraphExec exec = MADE_CU(CUgraphExec, cuGraphInstantiate, graph, &error, log, sizeof log);
    assert_null(error);
    assert_string_equal(log, "");
    works_once(exec);
    exec = NULL;
    OK_CU(cu.cuGraphInstantiate_v2(&exec, graph, NULL, NULL, 0));
    works_once(exec);
    exec = NULL;
    OK_CU(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    works_once(exec);
    exec = NULL;
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.result_out = CUDA_GRAPH_INSTANTIATE_ERROR};
    OK_CU(cu.cuGraphInstantiateWithParams(&exec, graph, &params));
    assert_int_equal(params.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
    works_once(exec);
}

TEST(instantiation_flags_are_kept_except_upload) {
    CUgraph graph = new_graph();
    cuuint64_t flags = 99;
    add_set(graph, NULL, memory, 0x22, 64);
    CUgraphExec exec = instantiate_with(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    OK_CU(cu.cuGraphExecGetFlags(exec, &flags));
    assert_int_equal(flags, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    destroy_exec(exec);
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                                     CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH};
    OK_CU(cu.cuGraphInstantiateWithParams(&exec, graph, &params));
    OK_CU(cu.cuGraphExecGetFlags(exec, &flags));
    assert_int_equal(flags, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
    OK_CU(cu.cuStreamSynchronize(NULL));
    destroy_exec(exec);
}

TEST(impossible_instantiation_flags_are_refused) {
    CUgraph graph = new_graph();
    CUgraphExec exec = NULL;
    add_set(graph, NULL, memory, 0x22, 64);
    FAILS_CU(INVALID_VALUE, cu.cuGraphInstantiateWithFlags(&exec, graph, 16));
    FAILS_CU(INVALID_VALUE,
             cu.cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD));
    FAILS_CU(INVALID_VALUE,
             cu.cuGraphInstantiateWithFlags(&exec, graph,
                                            CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                                CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH));
    FAILS_CU(INVALID_VALUE, cu.cuGraphInstantiateWithFlags(&exec, NULL, 0));
    assert_null(exec);
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS};
    FAILS_CU(INVALID_VALUE, cu.cuGraphInstantiateWithParams(NULL, graph, &params));
    assert_int_equal(params.result_out, CUDA_GRAPH_INSTANTIATE_ERROR);
}

static void fails_with(CUgraph graph, cuuint64_t flags, CUgraphInstantiateResult result,
                       CUgraphNode node) {
    CUgraphExec exec = NULL;
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = flags, .hErrNode_out = node};
    FAILS_CU(INVALID_VALUE, cu.cuGraphInstantiateWithParams(&exec, graph, &params));
    assert_null(exec);
    assert_int_equal(params.result_out, result);
    assert_ptr_equal(params.hErrNode_out, node);
    destroy_graph(graph);
}

static void nothing(void *unused) {
}

TEST(a_node_unsupported_for_device_launch_is_named) {
    const cuuint64_t flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
    const CUgraphInstantiateResult not_supported =
        CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
    fails_with(new_graph(), flags, CUDA_GRAPH_INSTANTIATE_ERROR, NULL);
    CUgraph graph = new_graph();
    fails_with(graph, flags, not_supported, add_empty(graph, NULL));
    graph = new_graph();
    fails_with(graph, flags, not_supported,
               add_host(graph, add_set(graph, NULL, memory, 1, 16), nothing, NULL));
}

TEST(instantiating_a_cycle_is_refused) {
    CUgraph graph = new_graph();
    CUgraphExec exec = NULL;
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = 0};
    CUgraphNode a = add_empty(graph, NULL), b = add_empty(graph, a);
    OK_CU(cu.cuGraphAddDependencies(graph, &b, &a, 1));
    FAILS_CU(INVALID_VALUE, cu.cuGraphInstantiateWithParams(&exec, graph, &params));
    assert_int_equal(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
    assert_true(params.hErrNode_out == a || params.hErrNode_out == b);
    FAILS_CU(INVALID_VALUE, cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
}

TEST(an_unused_condition_handle_is_refused) {
    CUgraph graph = new_graph();
    CUgraphConditionalHandle condition;
    OK_CU(cu.cuGraphConditionalHandleCreate(&condition, graph, ctx, 1, 0));
    fails_with(graph, 0, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, NULL);
}

TEST(instantiating_a_graph_with_freed_memory_is_refused) {
    CUgraph graph = new_graph();
    CUgraphExec exec = NULL;
    /* Large enough to be an allocation of its own. */
    CUdeviceptr gone = MADE_CU(CUdeviceptr, cuMemAlloc_v2, (size_t)32 << 20);
    add_set(graph, NULL, gone, 1, 64);
    OK_CU(cu.cuMemFree_v2(gone));
    FAILS_CU(INVALID_VALUE, cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
}

TEST(an_executable_graph_outlives_its_graph) {
    CUgraph graph = new_graph();
    add_set(graph, NULL, memory, 0x22, 64);
    CUgraphExec exec = instantiate(graph);
    destroy_graph(graph);
    works_once(exec);
}

TEST(an_exec_destroyed_in_flight_finishes) {
    CUgraph graph = new_graph();
    CUstream stream = new_stream();
    add_copy(graph, add_set(graph, NULL, memory, 0x22, 64), memory + 64, memory, 64);
    CUgraphExec exec = instantiate(graph);
    struct gate gate = hold(stream);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    end_graph(graph, exec);
    FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
    gate_drain(&gate, stream);
    assert_int_equal(byte_at(memory + 64), 0x22);
}

TEST_WHERE(executable_graphs_are_listed_in_state_and_leaks, NEEDS_SOFTGPU("reads its reports")) {
    CUgraph graph = new_graph();
    add_set(graph, NULL, memory, 0x22, 64);
    instantiate(graph);
    char *text = soft->state_dump();
    assert_non_null(strstr(text, "executable graph 1: nodes 1 steps 1 lanes 1 flags 0x0"));
    soft->free_text(text);
    text = soft->leak_report();
    assert_non_null(strstr(text, "executable graph 1"));
    soft->free_text(text);
}

/* Empty nodes are no steps, as long as the dependencies that they join are few. */
TEST_WHERE(empty_nodes_add_no_steps, NEEDS_SOFTGPU("reads its reports")) {
    CUgraph graph = new_graph();
    CUgraphNode node = NULL;
    for (int i = 0; i < 100; i++)
        node = add_empty(graph, i % 10 ? node : NULL);
    CUgraphExec exec = instantiate(graph);
    char *text = soft->state_dump();
    assert_non_null(strstr(text, "executable graph 1: nodes 100 steps 0 lanes 0 flags 0x0"));
    soft->free_text(text);
    run(exec);
}
