/* Graphs as structure: nodes, edges, what is asked of them, and what is refused. */
#include "harness.h"

static CUgraph graph;

static int begin(void **state) {
    int failed = test_begin(state);
    if (!failed)
        OK_CU(cu.cuGraphCreate(&graph, 0));
    return failed;
}

static int end(void **state) {
    if (graph)
        destroy_graph(graph);
    graph = NULL;
    return test_end(state);
}

EACH_TEST(begin, end);

static CUgraphNode after(const CUgraphNode *dependencies, size_t count) {
    return MADE_CU(CUgraphNode, cuGraphAddEmptyNode, graph, dependencies, count);
}

static size_t count_nodes(CUgraph of) {
    return GOT_CU(size_t, cuGraphGetNodes, of, NULL);
}

static size_t count_edges(CUgraph of) {
    return GOT_CU(size_t, cuGraphGetEdges, of, NULL, NULL);
}

static bool has_edge(CUgraphNode from, CUgraphNode to) {
    CUgraphNode sources[64], targets[64];
    size_t count = 64;
    OK_CU(cu.cuGraphGetEdges(graph, sources, targets, &count));
    for (size_t i = 0; i < count; i++)
        if (sources[i] == from && targets[i] == to)
            return true;
    return false;
}

TEST(a_graph_begins_empty) {
    CUgraph other = MADE_CU(CUgraph, cuGraphCreate, 0);
    assert_non_null(other);
    assert_ptr_not_equal(other, graph);
    assert_int_equal(count_nodes(other), 0);
    assert_int_equal(count_edges(other), 0);
    destroy_graph(other);
    FAILS_CU(INVALID_VALUE, cu.cuGraphCreate(&other, 1));
}

TEST(graph_nodes_are_listed) {
    CUgraphNode a = after(NULL, 0), b = after(&a, 1), nodes[4];
    size_t count = 4;
    memset(nodes, 0x5a, sizeof nodes);
    OK_CU(cu.cuGraphGetNodes(graph, nodes, &count));
    assert_int_equal(count, 2);
    assert_ptr_equal(nodes[0], a);
    assert_ptr_equal(nodes[1], b);
    assert_null(nodes[2]);
    assert_null(nodes[3]);
    count = 1;
    memset(nodes, 0, sizeof nodes);
    OK_CU(cu.cuGraphGetNodes(graph, nodes, &count));
    assert_int_equal(count, 1);
    assert_null(nodes[1]);
    FAILS_CU(INVALID_VALUE, cu.cuGraphGetNodes(graph, nodes, NULL));
    FAILS_CU(INVALID_VALUE, cu.cuGraphGetNodes(NULL, nodes, &count));
    count = 0;
    FAILS_CU(INVALID_VALUE, cu.cuGraphGetNodes(graph, nodes, &count));
}

TEST(root_nodes_are_those_without_dependencies) {
    CUgraphNode a = after(NULL, 0), b = after(&a, 1), c = after(NULL, 0), roots[3];
    size_t count = 3;
    (void)b;
    OK_CU(cu.cuGraphGetRootNodes(graph, roots, &count));
    assert_int_equal(count, 2);
    assert_ptr_equal(roots[0], c); /* the newest root first */
    assert_ptr_equal(roots[1], a);
    assert_null(roots[2]);
    OK_CU(cu.cuGraphGetRootNodes(graph, NULL, &count));
    assert_int_equal(count, 2);
}

TEST(dependencies_and_dependents_are_listed) {
    CUgraphNode a = after(NULL, 0), b = after(NULL, 0), both[] = {a, b}, list[3];
    CUgraphNode c = after(both, 2);
    size_t count = 3;
    OK_CU(cu.cuGraphNodeGetDependencies(c, list, &count));
    assert_int_equal(count, 2);
    assert_true((list[0] == a && list[1] == b) || (list[0] == b && list[1] == a));
    assert_null(list[2]);
    count = 3;
    OK_CU(cu.cuGraphNodeGetDependentNodes(a, list, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(list[0], c);
    assert_null(list[1]);
    OK_CU(cu.cuGraphNodeGetDependencies(a, NULL, &count));
    assert_int_equal(count, 0);
    OK_CU(cu.cuGraphNodeGetDependentNodes(c, NULL, &count));
    assert_int_equal(count, 0);
}

TEST(graph_edges_are_listed) {
    CUgraphNode a = after(NULL, 0), b = after(&a, 1), from[2], to[2];
    size_t count = 2;
    OK_CU(cu.cuGraphGetEdges(graph, from, to, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(from[0], a);
    assert_ptr_equal(to[0], b);
    assert_null(from[1]);
    assert_null(to[1]);
}

TEST(functions_with_edge_data_list_the_same_edges) {
    CUgraphNode a = after(NULL, 0), b = after(&a, 1), from[2], to[2];
    CUgraphEdgeData data[2];
    size_t count = 2;
    memset(data, 0x5a, sizeof data);
    OK_CU(cu.cuGraphGetEdges_v2(graph, from, to, data, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(from[0], a);
    assert_ptr_equal(to[0], b);
    MEMBERS(data[0], (from_port, 0), (type, 0));
    count = 2;
    memset(data, 0x5a, sizeof data);
    OK_CU(cu.cuGraphNodeGetDependencies_v2(b, from, data, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(from[0], a);
    assert_int_equal(data[0].from_port, 0);
    count = 2;
    memset(data, 0x5a, sizeof data);
    OK_CU(cu.cuGraphNodeGetDependentNodes_v2(a, to, data, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(to[0], b);
    assert_int_equal(data[0].type, 0);
    FAILS_CU(INVALID_VALUE, cu.cuGraphGetEdges_v2(graph, NULL, NULL, data, &count));
}

TEST(edges_are_added_and_removed) {
    CUgraphNode a = after(NULL, 0), b = after(NULL, 0), c = after(NULL, 0);
    CUgraphNode from[] = {a, b}, to[] = {b, c};
    OK_CU(cu.cuGraphAddDependencies(graph, from, to, 2));
    assert_int_equal(count_edges(graph), 2);
    assert_true(has_edge(a, b));
    assert_true(has_edge(b, c));
    OK_CU(cu.cuGraphRemoveDependencies(graph, from, to, 1));
    assert_int_equal(count_edges(graph), 1);
    assert_false(has_edge(a, b));
    OK_CU(cu.cuGraphRemoveDependencies_v2(graph, &from[1], &to[1], NULL, 1));
    assert_int_equal(count_edges(graph), 0);
    OK_CU(cu.cuGraphAddDependencies_v2(graph, from, to, NULL, 2));
    assert_int_equal(count_edges(graph), 2);
    OK_CU(cu.cuGraphAddDependencies(graph, NULL, NULL, 0));
    OK_CU(cu.cuGraphRemoveDependencies(graph, NULL, NULL, 0));
    assert_int_equal(count_edges(graph), 2);
}

/* The edges before the refused one stay. */
TEST(a_refused_edge_keeps_the_edges_before_it) {
    CUgraphNode a = after(NULL, 0), b = after(&a, 1), c = after(NULL, 0);
    CUgraphNode from[] = {b, a, a}, to[] = {c, b, c};
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddDependencies(graph, from, to, 3));
    assert_int_equal(count_edges(graph), 2);
    assert_true(has_edge(b, c));
    assert_false(has_edge(a, c));
    from[1] = c, to[1] = a;
    FAILS_CU(INVALID_VALUE, cu.cuGraphRemoveDependencies(graph, from, to, 2));
    assert_int_equal(count_edges(graph), 1);
    assert_true(has_edge(a, b));
}

TEST(a_graph_may_contain_a_cycle_before_instantiation) {
    CUgraphNode a = after(NULL, 0), b = after(&a, 1);
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddDependencies(graph, &a, &a, 1));
    OK_CU(cu.cuGraphAddDependencies(graph, &b, &a, 1));
    size_t count = GOT_CU(size_t, cuGraphGetRootNodes, graph, NULL);
    assert_int_equal(count, 0);
    OK_CU(cu.cuGraphRemoveDependencies(graph, &b, &a, 1));
    OK_CU(cu.cuGraphGetRootNodes(graph, NULL, &count));
    assert_int_equal(count, 1);
}

TEST(invalid_edges_are_refused) {
    CUgraphNode a = after(NULL, 0), b = after(&a, 1), stranger;
    CUgraph other = new_graph();
    OK_CU(cu.cuGraphAddEmptyNode(&stranger, other, NULL, 0));
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddDependencies(graph, &a, &b, 1));
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddDependencies(graph, &stranger, &b, 1));
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddDependencies(graph, &a, &stranger, 1));
    FAILS_CU(INVALID_VALUE, cu.cuGraphRemoveDependencies(graph, &b, &a, 1));
    FAILS_CU(INVALID_VALUE, cu.cuGraphRemoveDependencies(graph, &stranger, &b, 1));
    assert_int_equal(count_edges(graph), 1);
    assert_int_equal(count_edges(other), 0);
}

TEST(invalid_dependencies_of_new_nodes_are_refused) {
    CUgraphNode a = after(NULL, 0), stranger, made, list[2] = {a, a};
    CUgraph other = new_graph();
    OK_CU(cu.cuGraphAddEmptyNode(&stranger, other, NULL, 0));
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddEmptyNode(&made, graph, list, 2));
    list[1] = stranger;
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddEmptyNode(&made, graph, list, 2));
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddEmptyNode(&made, graph, NULL, 1));
    assert_int_equal(count_nodes(graph), 1);
    assert_int_equal(count_edges(graph), 0);
}

TEST(destroying_a_node_removes_its_edges) {
    CUgraphNode a = after(NULL, 0), b = after(&a, 1), c = after(&b, 1), roots[3];
    size_t count = 3;
    OK_CU(cu.cuGraphDestroyNode(b));
    assert_int_equal(count_nodes(graph), 2);
    assert_int_equal(count_edges(graph), 0);
    OK_CU(cu.cuGraphGetRootNodes(graph, roots, &count));
    assert_int_equal(count, 2);
    assert_ptr_equal(roots[0], c);
    assert_ptr_equal(roots[1], a);
}

TEST(handles_of_destroyed_graphs_are_refused) {
    NEEDS_SOFTGPU("hardware may crash on handles that are gone");
    CUgraphNode node, made;
    CUgraphNodeType type;
    size_t count;
    CUgraph gone = MADE_CU(CUgraph, cuGraphCreate, 0);
    OK_CU(cu.cuGraphAddEmptyNode(&node, gone, NULL, 0));
    destroy_graph(gone);
    FAILS_CU(INVALID_VALUE, cu.cuGraphDestroy(gone));
    FAILS_CU(INVALID_VALUE, cu.cuGraphGetNodes(gone, NULL, &count));
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddEmptyNode(&made, gone, NULL, 0));
    FAILS_CU(INVALID_VALUE, cu.cuGraphNodeGetType(node, &type));
    FAILS_CU(INVALID_VALUE, cu.cuGraphDestroyNode(node));
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddEmptyNode(&made, graph, &node, 1));
    FAILS_CU(INVALID_VALUE, cu.cuGraphNodeGetType((CUgraphNode)(void *)&count, &type));
}

/* ---- Size ----------------------------------------------------------------------------------- */

#define MANY 100000

TEST(a_chain_of_many_nodes_is_built_and_cloned) {
    CUgraphNode last = NULL, found;
    for (int i = 0; i < MANY; i++) {
        CUgraphNode node;
        check_result(cu.cuGraphAddEmptyNode(&node, graph, &last, i > 0), CUDA_SUCCESS,
                     "cuGraphAddEmptyNode", __FILE__, __LINE__);
        last = node;
    }
    assert_int_equal(count_nodes(graph), MANY);
    assert_int_equal(count_edges(graph), MANY - 1);
    CUgraph copy = MADE_CU(CUgraph, cuGraphClone, graph);
    assert_int_equal(count_edges(copy), MANY - 1);
    OK_CU(cu.cuGraphNodeFindInClone(&found, last, copy));
    assert_int_equal(GOT_CU(size_t, cuGraphNodeGetDependentNodes, found, NULL), 0);
    destroy_graph(copy);
}

/* Looked up and destroyed one by one, from the end. */
TEST(many_nodes_of_a_clone_are_found_and_destroyed) {
    static CUgraphNode nodes[MANY];
    size_t count = MANY;
    for (int i = 0; i < MANY; i++)
        OK_CU(cu.cuGraphAddEmptyNode(&nodes[i], graph, NULL, 0));
    CUgraph copy = MADE_CU(CUgraph, cuGraphClone, graph);
    while (count > 0) {
        CUgraphNode found = MADE_CU(CUgraphNode, cuGraphNodeFindInClone, nodes[--count], copy);
        OK_CU(cu.cuGraphDestroyNode(found));
    }
    assert_int_equal(count_nodes(copy), 0);
    destroy_graph(copy);
}

#define WIDE 10000

TEST(a_wide_fan_lists_all_its_edges) {
    static CUgraphNode leaves[WIDE], from[WIDE];
    CUgraphNode root = after(NULL, 0), join;
    for (int i = 0; i < WIDE; i++) {
        from[i] = root;
        OK_CU(cu.cuGraphAddEmptyNode(&leaves[i], graph, NULL, 0));
    }
    OK_CU(cu.cuGraphAddDependencies(graph, from, leaves, WIDE));
    OK_CU(cu.cuGraphAddEmptyNode(&join, graph, leaves, WIDE));
    size_t count = GOT_CU(size_t, cuGraphNodeGetDependencies, join, NULL);
    assert_int_equal(count, WIDE);
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddDependencies(graph, &root, &leaves[WIDE / 2], 1));
    OK_CU(cu.cuGraphRemoveDependencies(graph, from, leaves, WIDE));
    OK_CU(cu.cuGraphNodeGetDependentNodes(root, NULL, &count));
    assert_int_equal(count, 0);
}
