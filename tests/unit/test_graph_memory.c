/* What the driver keeps for graphs: its numbers, their high-water marks, and giving it back. */
#include "library_test.h"

EACH_TEST(open_device, close_device);

static uint64_t number(gpumem_graph_memory_attribute attribute) {
    uint64_t value = 77;
    OK(gpumem_graph_memory_get_attribute(device, attribute, &value));
    return value;
}

/* A graph that allocates and frees `bytes`, launched once. */
static void run_a_graph(size_t bytes) {
    gpumem_resource *pool = NEW_POOL();
    CUstream stream = NEW_STREAM();
    OK_CU(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)));
    OK_CU(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    gpumem_buffer *buffer = NEW_BUFFER_WITH(pool, bytes, .stream = stream);
    OK(gpumem_buffer_fill(buffer, 0, bytes, 3, stream));
    OK(gpumem_buffer_free(buffer, stream));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    CUgraphExec exec = MADE_CU(CUgraphExec, cuGraphInstantiateWithFlags, graph, 0);
    OK_CU(cu->cuGraphLaunch(exec, stream));
    synchronize(stream);
    OK_CU(cu->cuGraphExecDestroy(exec));
    OK_CU(cu->cuGraphDestroy(graph));
    OK_CU(cu->cuCtxPopCurrent_v2(NULL));
    DESTROY(stream, pool);
}

TEST(graph_memory_is_kept_counted_and_trimmed) {
    OK(gpumem_graph_memory_trim(device));
    OK(gpumem_graph_memory_set_attribute(device, GPUMEM_GRAPH_MEMORY_RESERVED_HIGH, 0));
    OK(gpumem_graph_memory_set_attribute(device, GPUMEM_GRAPH_MEMORY_USED_HIGH, 0));
    for (int i = 0; i < 4; i++)
        assert_int_equal(number((gpumem_graph_memory_attribute)i), 0);
    run_a_graph(20 * MIB);
    uint64_t reserved = number(GPUMEM_GRAPH_MEMORY_RESERVED_CURRENT);
    assert_true(reserved >= 20 * MIB);
    assert_int_equal(number(GPUMEM_GRAPH_MEMORY_RESERVED_HIGH), reserved);
    assert_true(number(GPUMEM_GRAPH_MEMORY_USED_HIGH) >= 20 * MIB);
    OK(gpumem_graph_memory_trim(device));
    assert_int_equal(number(GPUMEM_GRAPH_MEMORY_RESERVED_CURRENT), 0);
    assert_int_equal(number(GPUMEM_GRAPH_MEMORY_USED_CURRENT), 0);
    assert_int_equal(number(GPUMEM_GRAPH_MEMORY_RESERVED_HIGH), reserved); /* until it is reset */
    OK(gpumem_graph_memory_set_attribute(device, GPUMEM_GRAPH_MEMORY_RESERVED_HIGH, 0));
    assert_int_equal(number(GPUMEM_GRAPH_MEMORY_RESERVED_HIGH), 0);
    assert_true(number(GPUMEM_GRAPH_MEMORY_USED_HIGH) >= 20 * MIB); /* each by itself */
    OK(gpumem_graph_memory_set_attribute(device, GPUMEM_GRAPH_MEMORY_USED_HIGH, 0));
    assert_int_equal(number(GPUMEM_GRAPH_MEMORY_USED_HIGH), 0);
}

TEST(invalid_arguments_are_refused_with_a_reason) {
    uint64_t value;
    FAILS_SAYING(
        INVALID_ARGUMENT, "no attribute 4",
        gpumem_graph_memory_get_attribute(device, (gpumem_graph_memory_attribute)4, &value));
    FAILS(INVALID_ARGUMENT,
          gpumem_graph_memory_get_attribute(device, GPUMEM_GRAPH_MEMORY_USED_HIGH, NULL));
    FAILS_SAYING(INVALID_ARGUMENT, "read-only",
                 gpumem_graph_memory_set_attribute(device, GPUMEM_GRAPH_MEMORY_USED_CURRENT, 0));
    FAILS_SAYING(INVALID_ARGUMENT, "set to 0",
                 gpumem_graph_memory_set_attribute(device, GPUMEM_GRAPH_MEMORY_USED_HIGH, 5));
    FAILS(INVALID_ARGUMENT, gpumem_graph_memory_trim(NULL));
}

/* Asking and giving back is no work of a capture, and does not spoil one. */
TEST(querying_and_trimming_do_not_spoil_a_capture) {
    CUstream stream = NEW_STREAM();
    OK_CU(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    (void)number(GPUMEM_GRAPH_MEMORY_RESERVED_CURRENT);
    OK(gpumem_graph_memory_trim(device));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    OK_CU(cu->cuGraphDestroy(graph));
    OK(gpumem_stream_destroy(device, stream));
}

TEST(driver_refusals_are_reported) {
    uint64_t value = 5;
    soft->fault_arm("cuDeviceGetGraphMemAttribute", 1, CUDA_ERROR_NOT_SUPPORTED,
                    SOFTGPU_FAULT_BEFORE);
    FAILS(NOT_SUPPORTED,
          gpumem_graph_memory_get_attribute(device, GPUMEM_GRAPH_MEMORY_USED_HIGH, &value));
    assert_int_equal(value, 5);
    assert_int_equal(soft->fault_disarm(), 1);
    soft->fault_arm("cuDeviceGraphMemTrim", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_BEFORE);
    FAILS(DRIVER, gpumem_graph_memory_trim(device));
    assert_int_equal(soft->fault_disarm(), 1);
}
