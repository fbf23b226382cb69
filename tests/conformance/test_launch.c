/* Launches: arguments that are refused, and nodes that a capture makes of them. */
#include "harness.h"
#include "images.h"

static CUmodule module;

static CUfunction function(const char *name) {
    module = new_module(image_kernels_cubin);
    CUfunction found = function_of(module, name);
    return found;
}

static CUresult launch(CUfunction f, unsigned grid, unsigned block, unsigned shared, void **params,
                       void **extra) {
    return cu.cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, NULL, params, extra);
}

TEST(invalid_shapes_and_parameters_are_refused) {
    CUfunction f = function("bounded");
    CUdeviceptr p = 0;
    void *params[] = {&p, &p}, *missing[] = {NULL, NULL}, *end[] = {CU_LAUNCH_PARAM_END};
    CUfunction heavy = function_of(module, "heavy");
    CUfunction pair = function_of(module, "clustered");
    FAILS_CU(INVALID_HANDLE, launch(NULL, 1, 1, 0, NULL, NULL));
    FAILS_CU(INVALID_VALUE, launch(f, 0, 1, 0, params, NULL));
    FAILS_CU(INVALID_VALUE, launch(f, 1, 0, 0, params, NULL));
    FAILS_CU(INVALID_VALUE, launch(f, 1, 129, 0, params, NULL));
    FAILS_CU(INVALID_VALUE, launch(f, 1, 1, 49153, params, NULL));
    FAILS_CU(INVALID_VALUE, launch(f, 1, 1, 0, NULL, NULL));
    FAILS_CU(INVALID_VALUE, launch(f, 1, 1, 0, missing, NULL));
    FAILS_CU(INVALID_VALUE, launch(f, 1, 1, 0, NULL, end));
    FAILS_CU(LAUNCH_OUT_OF_RESOURCES, launch(heavy, 1, 1024, 0, params, NULL));
    FAILS_CU(INVALID_CLUSTER_SIZE, launch(pair, 3, 1, 0, params, NULL));
}

TEST(launching_a_function_of_another_context_is_refused) {
    CUfunction f = function("empty");
    new_context(dev);
    FAILS_CU(INVALID_HANDLE, launch(f, 1, 1, 0, NULL, NULL));
}

TEST(captured_launches_become_nodes) {
    CUfunction f = function("bounded");
    CUdeviceptr p = 0x1234;
    void *params[] = {&p};
    CUgraphNode nodes[3];
    size_t count = 3;
    CUDA_KERNEL_NODE_PARAMS got = {0};
    CUlaunchConfig config = {5, 1, 1, 32, 1, 1, 0, NULL, NULL, 0};
    CUstream stream = new_stream();
    config.hStream = stream;
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK_CU(cu.cuLaunchKernel(f, 2, 3, 1, 64, 1, 1, 128, stream, params, NULL));
    OK_CU(cu.cuLaunchKernelEx(&config, f, params, NULL));
    OK_CU(cu.cuLaunchCooperativeKernel(f, 1, 1, 1, 32, 1, 1, 0, stream, params));
    p = 0;
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    OK_CU(cu.cuGraphGetNodes(graph, nodes, &count));
    assert_int_equal(count, 3);
    OK_CU(cu.cuGraphKernelNodeGetParams_v2(nodes[0], &got));
    assert_ptr_equal(got.func, f);
    MEMBERS(got, (gridDimX, 2), (gridDimY, 3), (blockDimX, 64), (sharedMemBytes, 128));
    assert_int_equal(*(CUdeviceptr *)got.kernelParams[0], 0x1234);
    OK_CU(cu.cuGraphKernelNodeGetParams_v2(nodes[1], &got));
    assert_int_equal(got.gridDimX, 5);
    OK_CU(cu.cuGraphDestroy(graph));
}

/* Missing arguments are noticed before the stream is looked at: the capture goes on. */
TEST(missing_arguments_do_not_invalidate_a_capture) {
    CUfunction f = function("bounded");
    size_t count = 1;
    CUstream stream = new_stream();
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    FAILS_CU(INVALID_VALUE, cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    OK_CU(cu.cuGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 0);
    OK_CU(cu.cuGraphDestroy(graph));
}

/* A launch that is refused ends the capture. */
TEST(a_refused_launch_invalidates_its_capture) {
    CUfunction f = function("empty");
    CUgraph graph = NULL;
    CUstream stream = new_stream();
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    FAILS_CU(INVALID_VALUE, cu.cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    FAILS_CU(STREAM_CAPTURE_INVALIDATED,
             cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    FAILS_CU(STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &graph));
    assert_null(graph);
}

TEST_WHERE(launching_machine_code_is_refused, NEEDS_SOFTGPU("hardware runs it")) {
    CUfunction f = function("empty");
    CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, NULL, NULL, 0};
    CUdeviceptr p = 0;
    void *params[] = {&p, &p}, *end[] = {CU_LAUNCH_PARAM_END};
    CUfunction bounded = function_of(module, "bounded");
    FAILS_CU(NOT_SUPPORTED, launch(f, 1, 1, 0, NULL, NULL));
    FAILS_CU(NOT_SUPPORTED, cu.cuLaunchKernelEx(&config, f, NULL, NULL));
    FAILS_CU(NOT_SUPPORTED, cu.cuLaunchCooperativeKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL));
    /* An empty list beside the arguments: hardware takes the arguments. */
    FAILS_CU(NOT_SUPPORTED, launch(bounded, 1, 1, 0, params, end));
    FAILS_CU(NOT_SUPPORTED, cu.cuLaunch(f));
}
