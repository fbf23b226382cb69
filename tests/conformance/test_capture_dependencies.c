/* Stream capture: what the next node depends on, asked and changed; capture into a graph. */
#include "harness.h"

struct scene {
    CUstream stream;
    CUdeviceptr memory;
};

static struct scene make(void) {
    struct scene scene;
    scene.stream = new_stream();
    scene.memory = new_memory(64);
    return scene;
}

static void discard(struct scene *scene) {
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, scene->stream);
    OK_CU(cu.cuGraphDestroy(graph));
}

/* How many there are, and the first. */
static size_t dependencies(CUstream stream, CUgraphNode *first) {
    CUstreamCaptureStatus status;
    const CUgraphNode *nodes = NULL;
    const CUgraphEdgeData *data = NULL;
    size_t count = 99;
    OK_CU(cu.cuStreamGetCaptureInfo_v3(stream, &status, NULL, NULL, &nodes, &data, &count));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    *first = count > 0 ? nodes[0] : NULL;
    for (size_t i = 0; i < count; i++)
        assert_int_equal(data[i].type, CU_GRAPH_DEPENDENCY_TYPE_DEFAULT);
    return count;
}

static CUgraph graph_of(CUstream stream) {
    CUstreamCaptureStatus status;
    CUgraph graph = NULL;
    OK_CU(cu.cuStreamGetCaptureInfo_v2(stream, &status, NULL, &graph, NULL, NULL));
    assert_non_null(graph);
    return graph;
}

TEST(the_last_captured_node_is_the_dependency) {
    struct scene scene = make();
    CUgraphNode node, later;
    cuuint64_t id = 0, next = 0;
    CUstreamCaptureStatus status;
    OK_CU(cu.cuStreamGetCaptureInfo(scene.stream, &status, &id));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    assert_true(id == 0);
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(dependencies(scene.stream, &node), 0);
    OK_CU(cu.cuMemsetD8Async(scene.memory, 1, 16, scene.stream));
    assert_int_equal(dependencies(scene.stream, &node), 1);
    OK_CU(cu.cuMemsetD8Async(scene.memory, 1, 16, scene.stream));
    assert_int_equal(dependencies(scene.stream, &later), 1);
    assert_ptr_not_equal(node, later);
    OK_CU(cu.cuStreamGetCaptureInfo(scene.stream, &status, &id));
    assert_true(id != 0);
    discard(&scene);
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK_CU(cu.cuStreamGetCaptureInfo(scene.stream, &status, &next));
    assert_true(next > id);
    discard(&scene);
}

static size_t predecessors(CUgraphNode node) {
    return GOT_CU(size_t, cuGraphNodeGetDependencies, node, NULL);
}

TEST(capture_dependencies_are_added_and_replaced) {
    struct scene scene = make();
    CUgraphNode a, b, first, foreign;
    CUgraph other = new_graph();
    OK_CU(cu.cuGraphAddEmptyNode(&foreign, other, NULL, 0));
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUgraph graph = graph_of(scene.stream);
    OK_CU(cu.cuGraphAddEmptyNode(&a, graph, NULL, 0));
    OK_CU(cu.cuGraphAddEmptyNode(&b, graph, NULL, 0));
    OK_CU(cu.cuStreamUpdateCaptureDependencies(scene.stream, &a, 1,
                                               CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    OK_CU(cu.cuStreamUpdateCaptureDependencies_v2(scene.stream, &b, NULL, 1,
                                                  CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    assert_int_equal(dependencies(scene.stream, &first), 2);
    OK_CU(cu.cuMemsetD8Async(scene.memory, 1, 16, scene.stream));
    assert_int_equal(dependencies(scene.stream, &first), 1);
    assert_int_equal(predecessors(first), 2);
    OK_CU(cu.cuStreamUpdateCaptureDependencies(scene.stream, &a, 1,
                                               CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    assert_int_equal(dependencies(scene.stream, &first), 1);
    assert_ptr_equal(first, a);
    FAILS_CU(INVALID_VALUE, cu.cuStreamUpdateCaptureDependencies(scene.stream, &foreign, 1, 0));
    FAILS_CU(INVALID_VALUE, cu.cuStreamUpdateCaptureDependencies(scene.stream, &a, 1, 2));
    FAILS_CU(INVALID_VALUE, cu.cuStreamUpdateCaptureDependencies(scene.stream, NULL, 1, 0));
    CUgraphEdgeData data = {.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    FAILS_CU(INVALID_VALUE, cu.cuStreamUpdateCaptureDependencies_v2(scene.stream, &a, &data, 1, 0));
    discard(&scene);
}

TEST(a_capture_can_continue_an_existing_graph) {
    struct scene scene = make();
    CUgraphNode node, first;
    CUgraph graph = MADE_CU(CUgraph, cuGraphCreate, 0);
    OK_CU(cu.cuGraphAddEmptyNode(&node, graph, NULL, 0));
    FAILS_CU(INVALID_VALUE, cu.cuStreamBeginCaptureToGraph(scene.stream, NULL, NULL, NULL, 0,
                                                           CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK_CU(cu.cuStreamBeginCaptureToGraph(scene.stream, graph, &node, NULL, 1,
                                         CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(dependencies(scene.stream, &first), 1);
    assert_ptr_equal(first, node);
    assert_ptr_equal(graph_of(scene.stream), graph);
    OK_CU(cu.cuMemsetD8Async(scene.memory, 1, 16, scene.stream));
    FAILS_CU(ILLEGAL_STATE, cu.cuGraphDestroyNode(node));
    FAILS_CU(ILLEGAL_STATE, cu.cuGraphDestroy(graph));
    assert_ptr_equal(GOT_CU(CUgraph, cuStreamEndCapture, scene.stream), graph);
    size_t count = GOT_CU(size_t, cuGraphGetNodes, graph, NULL);
    assert_int_equal(count, 2);
    OK_CU(cu.cuGraphGetEdges(graph, NULL, NULL, &count));
    assert_int_equal(count, 1);
    OK_CU(cu.cuGraphDestroy(graph));
}

/* Seen on H200: the graph goes with the capture that failed. */
TEST(a_failed_capture_destroys_its_graph) {
    struct scene scene = make();
    CUgraph graph, ended = NULL;
    size_t count = 0;
    OK_CU(cu.cuGraphCreate(&graph, 0));
    OK_CU(cu.cuStreamBeginCaptureToGraph(scene.stream, graph, NULL, NULL, 0,
                                         CU_STREAM_CAPTURE_MODE_GLOBAL));
    FAILS_CU(STREAM_CAPTURE_UNSUPPORTED, cu.cuStreamQuery(scene.stream));
    FAILS_CU(STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(scene.stream, &ended));
    assert_null(ended);
    FAILS_CU(INVALID_VALUE, cu.cuGraphGetNodes(graph, NULL, &count));
}
