/* Conditional nodes on their default values. */
#include "graph_nodes.h"

static CUdeviceptr memory;

BEFORE(test_begin) {
    memory = new_memory(4096);
    OK_CU(cu.cuMemsetD8_v2(memory, 0x11, 4096));
}

static int end(void **state) {
    return test_end(state);
}

EACH_TEST(before, end);

/* A conditional node in `graph`, whose handle begins with `value`. */
static CUgraphNode add_condition(CUgraph graph, CUgraphConditionalNodeType type, unsigned size,
                                 unsigned value, CUgraph *bodies) {
    CUgraphNodeParams params;
    CUgraphConditionalHandle condition =
        MADE_CU(CUgraphConditionalHandle, cuGraphConditionalHandleCreate, graph, ctx, value,
                CU_GRAPH_COND_ASSIGN_DEFAULT);
    memset(&params, 0, sizeof params);
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional =
        (CUDA_CONDITIONAL_NODE_PARAMS){.handle = condition, .type = type, .size = size, .ctx = ctx};
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddNode_v2, graph, NULL, NULL, 0, &params);
    memcpy(bodies, params.conditional.phGraph_out, size * sizeof *bodies);
    return node;
}

/* The bodies write 0x40, 0x41, …; 0x11 when none was run. Twice, for the value is assigned anew. */
static void chooses(CUgraphConditionalNodeType type, unsigned size, unsigned value,
                    unsigned char wanted) {
    CUgraph bodies[4], graph = new_graph();
    CUgraphNode node = add_condition(graph, type, size, value, bodies);
    for (unsigned i = 0; i < size; i++)
        add_copy(bodies[i], add_set(bodies[i], NULL, memory, 0x40 + i, 4), memory + 4, memory, 4);
    add_copy(graph, node, memory + 8, memory + 4, 4);
    CUgraphExec exec = instantiate(graph);
    for (int i = 0; i < 2; i++) {
        OK_CU(cu.cuMemsetD8_v2(memory, 0x11, 64));
        run(exec);
        assert_int_equal(byte_at(memory + 4), wanted);
        assert_int_equal(byte_at(memory + 8), wanted);
    }
}

TEST(an_if_node_runs_the_chosen_body) {
    chooses(CU_GRAPH_COND_TYPE_IF, 1, 0, 0x11);
    chooses(CU_GRAPH_COND_TYPE_IF, 1, 2, 0x40);
    chooses(CU_GRAPH_COND_TYPE_IF, 2, 0, 0x41);
    chooses(CU_GRAPH_COND_TYPE_IF, 2, 1, 0x40);
}

TEST(a_switch_node_runs_one_body_or_none) {
    for (unsigned value = 0; value < 3; value++)
        chooses(CU_GRAPH_COND_TYPE_SWITCH, 3, value, (unsigned char)(0x40 + value));
    chooses(CU_GRAPH_COND_TYPE_SWITCH, 3, 3, 0x11);
}

TEST_IS(a_while_node_may_run_its_body_zero_times, chooses(CU_GRAPH_COND_TYPE_WHILE, 1, 0, 0x11));

TEST(conditional_nodes_nest) {
    CUgraph outer[1], inner[2], graph = new_graph();
    add_condition(graph, CU_GRAPH_COND_TYPE_IF, 1, 1, outer);
    add_condition(outer[0], CU_GRAPH_COND_TYPE_IF, 2, 0, inner);
    add_set(inner[0], NULL, memory, 0x50, 4);
    add_set(inner[1], NULL, memory, 0x51, 4);
    CUgraphExec exec = instantiate(graph);
    run(exec);
    assert_int_equal(byte_at(memory), 0x51);
}

TEST(an_update_changes_the_default_condition_value) {
    CUgraph bodies[2][2], graphs[2];
    CUgraphExecUpdateResultInfo info;
    for (unsigned i = 0; i < 2; i++) {
        graphs[i] = new_graph();
        add_condition(graphs[i], CU_GRAPH_COND_TYPE_IF, 2, i, bodies[i]);
        add_set(bodies[i][0], NULL, memory, 0x40, 4);
        add_set(bodies[i][1], NULL, memory, 0x41, 4);
    }
    CUgraphExec exec = instantiate(graphs[0]);
    run(exec);
    assert_int_equal(byte_at(memory), 0x41);
    OK_CU(cu.cuGraphExecUpdate_v2(exec, graphs[1], &info));
    run(exec);
    assert_int_equal(byte_at(memory), 0x40);
    destroy_graph(graphs[1]);
    end_graph(graphs[0], exec);
}

/* Nothing ends a loop whose value is not 0 but the end of its context. Meanwhile it goes on, and
 * other streams do. */
TEST(an_endless_loop_runs_until_its_context_is_destroyed) {
#ifdef __SANITIZE_THREAD__
    SKIP("it looks at memory that the loop is writing, which ThreadSanitizer reports");
#endif
    NEEDS_SOFTGPU("on hardware the loop would keep the device busy");
    CUgraph body[1], graph;
    CUcontext context = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    CUstream looping = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    CUstream other = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    CUdeviceptr cell = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 64);
    CUcontext primary = ctx;
    ctx = context;
    graph = new_graph();
    add_condition(graph, CU_GRAPH_COND_TYPE_WHILE, 1, 1, body);
    add_copy(body[0], add_set(body[0], NULL, cell, 0x66, 4), cell + 4, cell, 4);
    CUgraphExec exec = instantiate(graph);
    OK_CU(cu.cuGraphLaunch(exec, looping));
    for (int i = 0; i < 3; i++) {
        OK_CU(cu.cuMemsetD8Async(cell + 4, 0x11, 4, other));
        OK_CU(cu.cuStreamSynchronize(other));
        unsigned char byte = 0x11;
        while (byte == 0x11) {
            usleep(500);
            OK_CU(cu.cuMemcpyDtoHAsync_v2(&byte, cell + 4, 1, other));
            OK_CU(cu.cuStreamSynchronize(other));
        }
        assert_int_equal(byte, 0x66);
        FAILS_CU(NOT_READY, cu.cuStreamQuery(looping));
    }
    OK_CU(cu.cuCtxDestroy_v2(context));
    ctx = primary;
    OK_CU(cu.cuCtxSetCurrent(ctx));
}

/* Of a batch in a body each operation is done. */
TEST(a_loop_runs_every_operation_of_a_batch_node) {
#ifdef __SANITIZE_THREAD__
    SKIP("it looks at memory that the loop is writing, which ThreadSanitizer reports");
#endif
    NEEDS_SOFTGPU("on hardware the loop would keep the device busy");
    CUgraph body[1], graph;
    uint32_t value = 0;
    CUcontext context = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    CUstream looping = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    CUstream other = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    CUdeviceptr cell = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 64);
    OK_CU(cu.cuMemsetD8_v2(cell, 0, 64));
    CUcontext primary = ctx;
    ctx = context;
    graph = new_graph();
    add_condition(graph, CU_GRAPH_COND_TYPE_WHILE, 1, 1, body);
    CUstreamBatchMemOpParams ops[2];
    memset(ops, 0, sizeof ops);
    for (unsigned i = 0; i < 2; i++) {
        ops[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        ops[i].writeValue.address = cell + i * 4ull;
        ops[i].writeValue.value = 7 + i;
    }
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.ctx = ctx, .count = 2, .paramArray = ops};
    (void)MADE_CU(CUgraphNode, cuGraphAddBatchMemOpNode, body[0], NULL, 0, &params);
    CUgraphExec exec = instantiate(graph);
    OK_CU(cu.cuGraphLaunch(exec, looping));
    for (int i = 0; i < 200 && value != 8; i++) {
        usleep(500);
        OK_CU(cu.cuMemcpyDtoHAsync_v2(&value, cell + 4, 4, other));
        OK_CU(cu.cuStreamSynchronize(other));
    }
    OK_CU(cu.cuCtxDestroy_v2(context));
    ctx = primary;
    OK_CU(cu.cuCtxSetCurrent(ctx));
    end_graph(graph, exec);
    assert_int_equal(value, 8); /* now that nothing loops any more */
}

CHILD_TEST_WHERE(an_endless_loop_does_not_prevent_process_exit,
                 NEEDS_SOFTGPU("on hardware the loop would keep the device busy")) {
    init_driver();
    CUgraph body[1], graph = new_graph();
    memory = new_memory(64);
    add_condition(graph, CU_GRAPH_COND_TYPE_WHILE, 1, 1, body);
    add_set(body[0], NULL, memory, 0x66, 4);
    OK_CU(cu.cuGraphLaunch(instantiate(graph), NULL));
    return 0;
}
