/* Nodes that restrict their graph: allocations, frees, conditional nodes; graphs that are moved. */
#include "harness.h"

static CUgraph graph, other;

BEFORE(test_begin) {
    graph = new_graph();
    OK_CU(cu.cuGraphCreate(&other, 0));
}

AFTER(test_end) {
    if (other)
        destroy_graph(other);
}

EACH_TEST(before, after);

static CUgraphNode empty(CUgraph in) {
    return MADE_CU(CUgraphNode, cuGraphAddEmptyNode, in, NULL, 0);
}

static size_t count_nodes(CUgraph of) {
    return GOT_CU(size_t, cuGraphGetNodes, of, NULL);
}

/* ---- Allocations ---------------------------------------------------------------------------- */

static CUgraphNode allocate(CUdeviceptr *address) {
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .poolProps.location = device_location(dev),
                                         .bytesize = 4096};
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddMemAllocNode, graph, NULL, 0, &params);
    *address = params.dptr;
    return node;
}

TEST(allocation_nodes_have_an_address_when_added) {
    CUdeviceptr address, freed;
    CUgraphNode node = allocate(&address), free_node;
    CUDA_MEM_ALLOC_NODE_PARAMS out;
    assert_true(address != 0);
    memset(&out, 0x5a, sizeof out);
    OK_CU(cu.cuGraphMemAllocNodeGetParams(node, &out));
    MEMBERS(out, (dptr, address), (bytesize, 4096), (accessDescCount, 0));
    CUgraphNodeType type = GOT_CU(CUgraphNodeType, cuGraphNodeGetType, node);
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    OK_CU(cu.cuGraphAddMemFreeNode(&free_node, graph, &node, 1, address));
    OK_CU(cu.cuGraphMemFreeNodeGetParams(free_node, &freed));
    assert_int_equal(freed, address);
    FAILS_CU(INVALID_VALUE, cu.cuGraphMemFreeNodeGetParams(node, &freed));
    FAILS_CU(INVALID_VALUE, cu.cuGraphMemAllocNodeGetParams(free_node, &out));
}

TEST(a_graph_allocation_can_be_freed_only_once) {
    CUdeviceptr address;
    CUgraphNode node = allocate(&address), made;
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddMemFreeNode(&made, graph, &node, 1, 0));
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddMemFreeNode(&made, graph, &node, 1, address + 256));
    OK_CU(cu.cuGraphAddMemFreeNode(&made, other, NULL, 0, address));
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddMemFreeNode(&made, other, NULL, 0, address));
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddMemFreeNode(&made, graph, &node, 1, address));
    CUdeviceptr second;
    node = allocate(&second);
    OK_CU(cu.cuGraphAddMemFreeNode(&made, graph, &node, 1, second));
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddMemFreeNode(&made, graph, &node, 1, second));
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddMemFreeNode(&made, other, NULL, 0, second));
}

TEST(graphs_with_allocations_cannot_be_cloned_or_embedded) {
    CUdeviceptr address;
    CUgraph copy, embedded;
    CUgraphNode a = empty(graph), b, made;
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    OK_CU(cu.cuGraphAddEmptyNode(&b, graph, &a, 1));
    CUgraphNode node = allocate(&address);
    FAILS_CU(NOT_SUPPORTED, cu.cuGraphClone(&copy, graph));
    FAILS_CU(NOT_SUPPORTED, cu.cuGraphAddChildGraphNode(&made, other, NULL, 0, graph));
    FAILS_CU(NOT_SUPPORTED, cu.cuGraphDestroyNode(node));
    FAILS_CU(NOT_SUPPORTED, cu.cuGraphDestroyNode(b));
    FAILS_CU(NOT_SUPPORTED, cu.cuGraphRemoveDependencies(graph, &a, &b, 1));
    OK_CU(cu.cuGraphAddDependencies(graph, &node, &a, 1));
    assert_int_equal(count_nodes(graph), 3);
    OK_CU(cu.cuGraphAddChildGraphNode(&made, graph, NULL, 0, other));
    OK_CU(cu.cuGraphChildGraphNodeGetGraph(made, &embedded));
    OK_CU(cu.cuGraphMemAllocNodeGetParams(node, &params));
    FAILS_CU(NOT_SUPPORTED, cu.cuGraphAddMemAllocNode(&made, embedded, NULL, 0, &params));
}

/* ---- Conditional nodes ---------------------------------------------------------------------- */

static CUgraphConditionalHandle condition(void) {
    CUgraphConditionalHandle handle = 0;
    OK_CU(cu.cuGraphConditionalHandleCreate(&handle, graph, ctx, 0, 0));
    assert_true(handle != 0);
    return handle;
}

static CUgraphNodeParams conditional(CUgraphConditionalHandle handle, unsigned size) {
    CUgraphNodeParams params;
    memset(&params, 0, sizeof params);
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = handle;
    params.conditional.type = CU_GRAPH_COND_TYPE_IF;
    params.conditional.size = size;
    params.conditional.ctx = ctx;
    return params;
}

TEST(conditional_nodes_own_their_body_graphs) {
    CUgraph copy;
    CUgraphNode node, made;
    CUgraphNodeParams params = conditional(condition(), 2);
    OK_CU(cu.cuGraphAddNode(&node, graph, NULL, 0, &params));
    CUgraphNodeType type = GOT_CU(CUgraphNodeType, cuGraphNodeGetType, node);
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_CONDITIONAL);
    CUgraph *bodies = params.conditional.phGraph_out;
    assert_non_null(bodies[0]);
    assert_non_null(bodies[1]);
    assert_ptr_not_equal(bodies[0], bodies[1]);
    empty(bodies[0]);
    assert_int_equal(count_nodes(bodies[0]), 1);
    assert_int_equal(count_nodes(bodies[1]), 0);
    FAILS_CU(NOT_SUPPORTED, cu.cuGraphClone(&copy, graph));
    FAILS_CU(NOT_SUPPORTED, cu.cuGraphAddChildGraphNode(&made, other, NULL, 0, graph));
    FAILS_CU(NOT_SUPPORTED, cu.cuGraphNodeSetParams(node, &params));
    OK_CU(cu.cuGraphDestroyNode(node));
    assert_int_equal(count_nodes(graph), 0);
}

TEST(a_condition_handle_serves_one_node) {
    CUgraphConditionalHandle handle = condition();
    CUgraphNode node, made;
    CUgraphNodeParams params = conditional(handle, 1), again = conditional(handle, 1);
    OK_CU(cu.cuGraphAddNode(&node, graph, NULL, 0, &params));
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddNode(&made, graph, NULL, 0, &again));
    OK_CU(cu.cuGraphDestroyNode(node));
    OK_CU(cu.cuGraphAddNode(&node, graph, NULL, 0, &again));
}

TEST(invalid_conditional_nodes_are_refused) {
    CUgraphNode made;
    CUgraphNodeParams params = conditional(condition(), 3);
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddNode(&made, graph, NULL, 0, &params));
    params = conditional(condition(), 0);
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddNode(&made, graph, NULL, 0, &params));
    params = conditional(0, 1);
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddNode(&made, graph, NULL, 0, &params));
    params = conditional(condition(), 1);
    params.conditional.ctx = NULL;
    FAILS_CU(INVALID_CONTEXT, cu.cuGraphAddNode(&made, graph, NULL, 0, &params));
    assert_int_equal(count_nodes(graph), 0);
}

/* ---- Moved graphs --------------------------------------------------------------------------- */

TEST(a_moved_graph_becomes_the_child) {
    NEEDS_SOFTGPU("moving is not recorded on hardware yet");
    CUgraphNode node, made;
    CUgraphNodeParams params;
    empty(other);
    memset(&params, 0, sizeof params);
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    params.graph.graph = graph;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    FAILS_CU(INVALID_VALUE, cu.cuGraphAddNode(&made, graph, NULL, 0, &params));
    params.graph.graph = other;
    OK_CU(cu.cuGraphAddNode(&node, graph, NULL, 0, &params));
    CUgraph embedded = GOT_CU(CUgraph, cuGraphChildGraphNodeGetGraph, node);
    assert_ptr_equal(embedded, other);
    empty(other);
    assert_int_equal(count_nodes(embedded), 2);
    FAILS_CU(INVALID_VALUE, cu.cuGraphDestroy(other));
    OK_CU(cu.cuGraphDestroyNode(node));
    size_t count;
    FAILS_CU(INVALID_VALUE, cu.cuGraphGetNodes(other, NULL, &count));
    other = NULL;
}
