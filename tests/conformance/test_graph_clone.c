/* Copies of graphs, and graphs inside graphs. */
#include "harness.h"

static CUgraph graph;

BEFORE(test_begin) {
    OK_CU(cu.cuGraphCreate(&graph, 0));
}

AFTER(test_end) {
    if (graph)
        destroy_graph(graph);
    graph = NULL;
}

EACH_TEST(before, after);

static CUgraphNode empty(CUgraph in, const CUgraphNode *dependencies, size_t count) {
    return MADE_CU(CUgraphNode, cuGraphAddEmptyNode, in, dependencies, count);
}

static size_t count_nodes(CUgraph of) {
    return GOT_CU(size_t, cuGraphGetNodes, of, NULL);
}

static void nothing(void *data) {
}

TEST(a_clone_is_independent_of_its_original) {
    CUgraphNode a = empty(graph, NULL, 0), b = empty(graph, &a, 1), found, from[2], to[2];
    size_t count = 2;
    CUgraph copy = MADE_CU(CUgraph, cuGraphClone, graph);
    assert_ptr_not_equal(copy, graph);
    OK_CU(cu.cuGraphGetEdges(copy, from, to, &count));
    assert_int_equal(count, 1);
    OK_CU(cu.cuGraphNodeFindInClone(&found, a, copy));
    assert_ptr_equal(found, from[0]);
    assert_ptr_not_equal(found, a);
    OK_CU(cu.cuGraphNodeFindInClone(&found, b, copy));
    assert_ptr_equal(found, to[0]);
    empty(copy, NULL, 0);
    assert_int_equal(count_nodes(graph), 2);
    destroy_graph(graph);
    graph = NULL;
    assert_int_equal(count_nodes(copy), 3);
    destroy_graph(copy);
}

TEST(nodes_are_found_in_their_clone_only) {
    CUgraphNode a = empty(graph, NULL, 0), b = empty(graph, NULL, 0), found, later;
    CUgraph other = new_graph();
    empty(other, NULL, 0);
    CUgraph copy = MADE_CU(CUgraph, cuGraphClone, graph);
    later = empty(graph, NULL, 0);
    FAILS_CU(INVALID_VALUE, cu.cuGraphNodeFindInClone(&found, later, copy));
    FAILS_CU(INVALID_VALUE, cu.cuGraphNodeFindInClone(&found, a, other));
    OK_CU(cu.cuGraphNodeFindInClone(&found, a, copy));
    OK_CU(cu.cuGraphDestroyNode(found));
    FAILS_CU(INVALID_VALUE, cu.cuGraphNodeFindInClone(&found, a, copy));
    OK_CU(cu.cuGraphNodeFindInClone(&found, b, copy));
    destroy_graph(copy);
}

TEST(a_clone_copies_node_parameters) {
    static int data[2];
    CUDA_HOST_NODE_PARAMS host = {nothing, &data[0]}, out;
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddHostNode, graph, NULL, 0, &host);
    CUgraph copy = MADE_CU(CUgraph, cuGraphClone, graph);
    host.userData = &data[1];
    OK_CU(cu.cuGraphHostNodeSetParams(node, &host));
    CUgraphNode found = MADE_CU(CUgraphNode, cuGraphNodeFindInClone, node, copy);
    OK_CU(cu.cuGraphHostNodeGetParams(found, &out));
    assert_ptr_equal(out.userData, &data[0]);
    assert_true(out.fn == nothing);
    destroy_graph(copy);
}

TEST(a_child_graph_is_a_copy) {
    CUgraphNode node, in_child, found;
    CUgraph child = MADE_CU(CUgraph, cuGraphCreate, 0);
    in_child = empty(child, NULL, 0);
    OK_CU(cu.cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    assert_int_equal(GOT_CU(CUgraphNodeType, cuGraphNodeGetType, node), CU_GRAPH_NODE_TYPE_GRAPH);
    CUgraph embedded = GOT_CU(CUgraph, cuGraphChildGraphNodeGetGraph, node);
    assert_ptr_not_equal(embedded, child);
    assert_ptr_equal(GOT_CU(CUgraph, cuGraphChildGraphNodeGetGraph, node), embedded);
    OK_CU(cu.cuGraphNodeFindInClone(&found, in_child, embedded));
    empty(child, NULL, 0);
    assert_int_equal(count_nodes(embedded), 1);
    destroy_graph(child);
    empty(embedded, &found, 1);
    assert_int_equal(count_nodes(embedded), 2);
    assert_int_equal(count_nodes(graph), 1);
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddDependencies(graph, &found, &node, 1));
}

TEST(child_graphs_are_cloned) {
    CUgraph child = MADE_CU(CUgraph, cuGraphCreate, 0);
    empty(child, NULL, 0);
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddChildGraphNode, graph, NULL, 0, child);
    destroy_graph(child);
    CUgraph copy = MADE_CU(CUgraph, cuGraphClone, graph);
    CUgraphNode found = MADE_CU(CUgraphNode, cuGraphNodeFindInClone, node, copy);
    CUgraph embedded = GOT_CU(CUgraph, cuGraphChildGraphNodeGetGraph, node);
    CUgraph in_copy = GOT_CU(CUgraph, cuGraphChildGraphNodeGetGraph, found);
    assert_ptr_not_equal(in_copy, embedded);
    assert_int_equal(count_nodes(in_copy), 1);
    OK_CU(cu.cuGraphDestroyNode(node));
    assert_int_equal(count_nodes(in_copy), 1);
    destroy_graph(copy);
}

TEST(missing_child_graphs_are_refused) {
    CUgraph embedded;
    CUgraphNode plain = empty(graph, NULL, 0);
    FAILS_CU(INVALID_VALUE, cu.cuGraphChildGraphNodeGetGraph(plain, &embedded));
    assert_int_equal(count_nodes(graph), 1);
}
