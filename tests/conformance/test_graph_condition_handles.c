/* Conditional handles belong to the graph that they were made for, and to the bodies in it. */
#include "graph_nodes.h"

static CUgraphConditionalHandle condition_of(CUgraph graph) {
    CUgraphConditionalHandle handle = 0;
    OK_CU(cu.cuGraphConditionalHandleCreate(&handle, graph, ctx, 0, CU_GRAPH_COND_ASSIGN_DEFAULT));
    return handle;
}

static CUresult add_if(CUgraph graph, CUgraphConditionalHandle handle, CUgraph *body) {
    CUgraphNode node = (CUgraphNode)&node;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    params.conditional.handle = handle;
    params.conditional.type = CU_GRAPH_COND_TYPE_IF;
    params.conditional.size = 1;
    params.conditional.ctx = ctx;
    CUresult result = cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params);
    if (result == CUDA_SUCCESS && body)
        *body = params.conditional.phGraph_out[0];
    assert_true((node == (CUgraphNode)&node) == (result != CUDA_SUCCESS));
    assert_true((params.conditional.phGraph_out == NULL) == (result != CUDA_SUCCESS));
    return result;
}

static size_t node_count(CUgraph graph) {
    size_t count = 99;
    OK_CU(cu.cuGraphGetNodes(graph, NULL, &count));
    return count;
}

TEST(a_condition_handle_of_another_graph_is_refused) {
    CUgraph graph = new_graph(), other = new_graph();
    CUgraphConditionalHandle theirs = condition_of(other);
    FAILS_CU(INVALID_VALUE, add_if(graph, theirs, NULL));
    assert_int_equal(node_count(graph), 0);
    OK_CU(add_if(other, theirs, NULL));
    FAILS_CU(INVALID_VALUE, add_if(graph, theirs, NULL));
    OK_CU(add_if(graph, condition_of(graph), NULL));
}

TEST(a_condition_handle_of_a_destroyed_graph_is_refused) {
    CUgraph graph = new_graph(), other = new_graph();
    CUgraphConditionalHandle theirs = condition_of(other);
    destroy_graph(other);
    FAILS_CU(INVALID_VALUE, add_if(graph, theirs, NULL));
}

TEST(conditional_bodies_may_use_condition_handles_of_their_graph) {
    CUgraph graph = new_graph(), other = new_graph();
    CUgraph body = NULL, inner = NULL, foreign = NULL;
    CUgraphConditionalHandle first = condition_of(graph), second = condition_of(graph);
    OK_CU(add_if(other, condition_of(other), &foreign));
    FAILS_CU(INVALID_VALUE, add_if(foreign, second, NULL));
    OK_CU(add_if(graph, condition_of(graph), &body));
    OK_CU(add_if(body, first, &inner));
    OK_CU(add_if(inner, second, NULL));
    FAILS_CU(INVALID_VALUE, add_if(graph, first, NULL)); /* in use */
    OK_CU(add_if(inner, condition_of(body), NULL));
}

/* So do graphs that are embedded: in the copy, not in what it was copied from. */
TEST(child_graphs_may_use_condition_handles_of_their_graph) {
    CUgraph graph = new_graph(), child = new_graph(), embedded = NULL;
    CUgraphConditionalHandle outer = condition_of(graph);
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddChildGraphNode, graph, NULL, 0, child);
    OK_CU(cu.cuGraphChildGraphNodeGetGraph(node, &embedded));
    OK_CU(add_if(embedded, outer, NULL));
    OK_CU(add_if(embedded, condition_of(embedded), NULL));
    FAILS_CU(INVALID_VALUE, add_if(embedded, condition_of(child), NULL));
    FAILS_CU(INVALID_VALUE, add_if(graph, outer, NULL)); /* in use */
    OK_CU(cu.cuGraphDestroyNode(node));
    OK_CU(add_if(graph, outer, NULL));
}

/* Bodies are counted before the context is looked at, and the handle after it. */
TEST(body_count_context_and_handle_are_checked_in_this_order) {
    CUgraph graph = new_graph();
    CUgraphNode node = NULL;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    params.conditional.size = 1;
    FAILS_CU(INVALID_CONTEXT, cu.cuGraphAddNode(&node, graph, NULL, 0, &params));
    params.conditional.handle = condition_of(graph);
    FAILS_CU(INVALID_CONTEXT, cu.cuGraphAddNode(&node, graph, NULL, 0, &params));
    params.conditional.size = 0;
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddNode(&node, graph, NULL, 0, &params));
    assert_null(node);
}

/* What is left of a handle, wherever its node was. */
TEST(a_condition_handle_can_be_reused_after_its_node_is_destroyed) {
    CUgraph graph = new_graph(), body = NULL;
    CUgraphNode node = NULL;
    size_t one = 1;
    CUgraphConditionalHandle first = condition_of(graph), second = condition_of(graph);
    OK_CU(add_if(graph, first, &body));
    OK_CU(add_if(body, second, NULL));
    FAILS_CU(INVALID_VALUE, add_if(graph, second, NULL));
    OK_CU(cu.cuGraphGetNodes(graph, &node, &one));
    OK_CU(cu.cuGraphDestroyNode(node));
    OK_CU(add_if(graph, second, NULL));
    OK_CU(add_if(graph, first, NULL));
}

/* Handles of a graph are many, and each is its own. */
#define MANY 300

TEST(many_condition_handles_are_distinct) {
    CUgraph graph = new_graph();
    CUgraphConditionalHandle handles[MANY];
    for (int i = 0; i < MANY; i++)
        handles[i] = condition_of(graph);
    for (int i = MANY; i-- > 0;)
        OK_CU(add_if(graph, handles[i], NULL));
    for (int i = 0; i < MANY; i++)
        FAILS_CU(INVALID_VALUE, add_if(graph, handles[i], NULL));
    assert_int_equal(node_count(graph), MANY);
    instantiate(graph);
}
