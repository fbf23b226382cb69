/* Copies of graphs, and graphs inside graphs. */
#include "harness.h"

static CUgraph graph;

static int begin(void **state) {
    int failed = test_begin(state);
    if (!failed)
        OK(cu.cuGraphCreate(&graph, 0));
    return failed;
}

static int end(void **state) {
    if (graph)
        destroy_graph(graph);
    graph = NULL;
    return test_end(state);
}

EACH_TEST(begin, end);

static CUgraphNode empty(CUgraph in, const CUgraphNode *dependencies, size_t count) {
    CUgraphNode node;
    OK(cu.cuGraphAddEmptyNode(&node, in, dependencies, count));
    return node;
}

static size_t count_nodes(CUgraph of) {
    size_t count;
    OK(cu.cuGraphGetNodes(of, NULL, &count));
    return count;
}

static void nothing(void *data) {
}

TEST(a_clone_is_independent_of_its_original) {
    CUgraph copy;
    CUgraphNode a = empty(graph, NULL, 0), b = empty(graph, &a, 1), found, from[2], to[2];
    size_t count = 2;
    OK(cu.cuGraphClone(&copy, graph));
    assert_ptr_not_equal(copy, graph);
    OK(cu.cuGraphGetEdges(copy, from, to, &count));
    assert_int_equal(count, 1);
    OK(cu.cuGraphNodeFindInClone(&found, a, copy));
    assert_ptr_equal(found, from[0]);
    assert_ptr_not_equal(found, a);
    OK(cu.cuGraphNodeFindInClone(&found, b, copy));
    assert_ptr_equal(found, to[0]);
    empty(copy, NULL, 0);
    assert_int_equal(count_nodes(graph), 2);
    destroy_graph(graph);
    graph = NULL;
    assert_int_equal(count_nodes(copy), 3);
    destroy_graph(copy);
}

TEST(nodes_are_found_in_their_clone_only) {
    CUgraph copy;
    CUgraphNode a = empty(graph, NULL, 0), b = empty(graph, NULL, 0), found, later;
    CUgraph other = new_graph();
    empty(other, NULL, 0);
    OK(cu.cuGraphClone(&copy, graph));
    later = empty(graph, NULL, 0);
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuGraphNodeFindInClone(&found, later, copy));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuGraphNodeFindInClone(&found, a, other));
    OK(cu.cuGraphNodeFindInClone(&found, a, copy));
    OK(cu.cuGraphDestroyNode(found));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuGraphNodeFindInClone(&found, a, copy));
    OK(cu.cuGraphNodeFindInClone(&found, b, copy));
    destroy_graph(copy);
}

TEST(a_clone_copies_node_parameters) {
    static int data[2];
    CUgraph copy;
    CUgraphNode node, found;
    CUDA_HOST_NODE_PARAMS host = {nothing, &data[0]}, out;
    OK(cu.cuGraphAddHostNode(&node, graph, NULL, 0, &host));
    OK(cu.cuGraphClone(&copy, graph));
    host.userData = &data[1];
    OK(cu.cuGraphHostNodeSetParams(node, &host));
    OK(cu.cuGraphNodeFindInClone(&found, node, copy));
    OK(cu.cuGraphHostNodeGetParams(found, &out));
    assert_ptr_equal(out.userData, &data[0]);
    assert_true(out.fn == nothing);
    destroy_graph(copy);
}

TEST(a_child_graph_is_a_copy) {
    CUgraph child, embedded, again;
    CUgraphNode node, in_child, found;
    CUgraphNodeType type;
    OK(cu.cuGraphCreate(&child, 0));
    in_child = empty(child, NULL, 0);
    OK(cu.cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    OK(cu.cuGraphNodeGetType(node, &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_GRAPH);
    OK(cu.cuGraphChildGraphNodeGetGraph(node, &embedded));
    assert_ptr_not_equal(embedded, child);
    OK(cu.cuGraphChildGraphNodeGetGraph(node, &again));
    assert_ptr_equal(again, embedded);
    OK(cu.cuGraphNodeFindInClone(&found, in_child, embedded));
    empty(child, NULL, 0);
    assert_int_equal(count_nodes(embedded), 1);
    destroy_graph(child);
    empty(embedded, &found, 1);
    assert_int_equal(count_nodes(embedded), 2);
    assert_int_equal(count_nodes(graph), 1);
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddDependencies(graph, &found, &node, 1));
}

TEST(child_graphs_are_cloned) {
    CUgraph child, copy, embedded, in_copy;
    CUgraphNode node, found;
    OK(cu.cuGraphCreate(&child, 0));
    empty(child, NULL, 0);
    OK(cu.cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    destroy_graph(child);
    OK(cu.cuGraphClone(&copy, graph));
    OK(cu.cuGraphNodeFindInClone(&found, node, copy));
    OK(cu.cuGraphChildGraphNodeGetGraph(node, &embedded));
    OK(cu.cuGraphChildGraphNodeGetGraph(found, &in_copy));
    assert_ptr_not_equal(in_copy, embedded);
    assert_int_equal(count_nodes(in_copy), 1);
    OK(cu.cuGraphDestroyNode(node));
    assert_int_equal(count_nodes(in_copy), 1);
    destroy_graph(copy);
}

TEST(missing_child_graphs_are_refused) {
    CUgraph embedded;
    CUgraphNode plain = empty(graph, NULL, 0);
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuGraphChildGraphNodeGetGraph(plain, &embedded));
    assert_int_equal(count_nodes(graph), 1);
}
