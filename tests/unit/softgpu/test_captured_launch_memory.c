/* A launch that a stream captures, with too little memory: the node is whole, or the capture does
 * not end well. */
#include "images.h"
#include "refused_memory.h"

#include <gpumem/cuda_api.h>

#include "test.h"

#define CU_FN(symbol, name, version, kind, params, args) CUresult CUDAAPI symbol params;
#include <gpumem/functions.def>

static CUcontext primary;
static CUmodule module;
static CUfunction function;

static void ok(CUresult result) {
    assert_int_equal(result, CUDA_SUCCESS);
}

static int setup(void **state) {
    ok(cuInit(0));
    ok(cuDevicePrimaryCtxRetain(&primary, 0));
    ok(cuCtxSetCurrent(primary));
    ok(cuModuleLoadData(&module, image_kernels_cubin));
    ok(cuModuleGetFunction(&function, module, "empty"));
    return 0;
}

static int teardown(void **state) {
    ok(cuModuleUnload(module));
    ok(cuCtxSetCurrent(NULL));
    ok(cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}

ALL_TESTS(setup, teardown);

/* The launch with the n-th allocation refused; whether one was. */
static bool launch(CUstream stream, CUevent event, int n, CUresult *result) {
    CUlaunchAttribute attributes[] = {
        {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}},
        {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
         .value = {.programmaticEvent = {.event = event}}}};
    CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, stream, attributes, 2};
    refuse_memory_of_threads(n);
    *result = cuLaunchKernelEx(&config, function, NULL, NULL);
    return end_refusal();
}

/* A node, the attribute with it, or none. */
static void is_whole(CUgraph graph, bool launched) {
    CUgraphNode nodes[2];
    size_t count = 2;
    ok(cuGraphGetNodes(graph, nodes, &count));
    assert_int_equal(count, launched ? 1 : 0);
    if (!launched)
        return;
    CUkernelNodeAttrValue value;
    ok(cuGraphKernelNodeGetAttribute(nodes[0], CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    assert_int_equal(value.cooperative, 1);
}

TEST(a_captured_launch_without_memory_invalidates_the_capture) {
    bool refused = true;
    int n = 1;
    for (; refused; n++) {
        CUstream stream;
        CUevent event;
        CUgraph graph = NULL;
        CUresult launched;
        ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        refused = launch(stream, event, n, &launched);
        assert_int_equal(launched, refused ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
        CUresult ended = cuStreamEndCapture(stream, &graph);
        if (ended == CUDA_SUCCESS) {
            is_whole(graph, launched == CUDA_SUCCESS);
            ok(cuGraphDestroy(graph));
        } else {
            assert_true(refused);
            assert_int_equal(ended, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        }
        ok(cuEventDestroy_v2(event));
        ok(cuStreamDestroy_v2(stream));
    }
    assert_true(n > 3); /* the node, its attribute, and the event, at least */
}
