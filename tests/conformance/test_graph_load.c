/* Large graphs: as many nodes as programs have been seen to make, and more. */
#include "graph_nodes.h"

static CUdeviceptr memory;

static int begin(void **state) {
    int failed = test_begin(state);
    if (!failed)
        memory = new_memory(4096);
    return failed;
}

EACH_TEST(begin, test_end);

/* One chain: each node copies what the one before it wrote. */
TEST(a_chain_of_100000_nodes_runs_to_its_end) {
    enum { NODES = 100000 };
    CUgraph graph = new_graph();
    OK_CU(cu.cuMemsetD8_v2(memory, 0, 4096));
    CUgraphNode node = add_set(graph, NULL, memory, 0x5a, 4);
    for (unsigned i = 1; i < NODES; i++)
        node = add_copy(graph, node, memory + 4 * (i % 1000), memory + 4 * ((i - 1) % 1000), 4);
    CUgraphExec exec = instantiate(graph);
    destroy_graph(graph);
    run(exec);
    destroy_exec(exec);
    assert_int_equal(byte_at(memory + 4 * ((NODES - 1) % 1000)), 0x5a);
}

TEST(a_wide_graph_runs_all_its_branches) {
    enum { NODES = 20000 };
    CUgraph graph = new_graph();
    for (unsigned i = 0; i < NODES; i++)
        add_set(graph, NULL, memory + i % 4096, i % 4096 % 251, 1);
    CUgraphExec exec = instantiate(graph);
    destroy_graph(graph);
    run(exec);
    destroy_exec(exec);
    unsigned char bytes[4096];
    OK_CU(cu.cuMemcpyDtoH_v2(bytes, memory, sizeof bytes));
    for (unsigned i = 0; i < sizeof bytes; i++)
        assert_int_equal(bytes[i], i % 251);
}

/* Layers of empty nodes, each behind all of the one before: joins that are not left out. */
TEST(layers_of_densely_joined_empty_nodes_can_be_launched) {
    enum { LAYERS = 40, WIDTH = 40 };
    CUgraph graph = new_graph();
    CUgraphNode layers[2][WIDTH], last;
    for (unsigned i = 0; i < LAYERS; i++)
        for (unsigned k = 0; k < WIDTH; k++)
            OK_CU(cu.cuGraphAddEmptyNode(&layers[i % 2][k], graph, i ? layers[(i + 1) % 2] : NULL,
                                         i ? WIDTH : 0));
    CUDA_MEMSET_NODE_PARAMS params = set_params(memory, 0x5b, 4);
    OK_CU(cu.cuGraphAddMemsetNode(&last, graph, layers[(LAYERS + 1) % 2], WIDTH, &params, ctx));
    CUgraphExec exec = instantiate(graph);
    run(exec);
    assert_int_equal(byte_at(memory), 0x5b);
}

TEST(many_launches_of_one_graph_run_in_order) {
    CUgraph graph = new_graph();
    CUgraphNode node = NULL;
    OK_CU(cu.cuMemsetD8_v2(memory, 0, 4096));
    for (unsigned i = 0; i < 10; i++)
        node = add_copy(graph, node, memory + 4 * i + 4, memory + 4 * i, 4);
    CUgraphExec exec = instantiate(graph);
    for (unsigned i = 0; i < 2000; i++)
        OK_CU(cu.cuGraphLaunch(exec, NULL));
    OK_CU(cu.cuMemsetD8Async(memory, 0x5c, 4, NULL));
    launch_and_wait(exec, NULL);
    assert_int_equal(byte_at(memory + 40), 0x5c);
}
