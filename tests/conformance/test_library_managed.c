/* The library's managed memory in use, on any driver: ranges, pools, who may use a pool, and what
 * is kept for graphs. */
#include "library.h"

/* Checked as a condition, so that skipping comes before anything is opened. */
#define NEEDS_MANAGED() NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)

static gpumem_resource *resource;
static gpumem_buffer *buffer;
static CUstream stream;

static void begin(gpumem_managed_method method) {
    open_library();
    OK(gpumem_stream_create(device, NULL, &stream));
    resource = NEW_MANAGED(.method = method, .pool = GPUMEM_POOL_CURRENT);
    buffer = NEW_BUFFER_WITH(resource, 4 * MIB, .stream = stream);
    OK(gpumem_stream_synchronize(device, stream));
}

static void end(void) {
    OK(gpumem_buffer_free(buffer, stream));
    OK(gpumem_stream_synchronize(device, stream));
    OK(gpumem_device_trim(device, 1));
    DESTROY(resource, stream);
}

static gpumem_managed_range range_of(size_t offset, size_t bytes) {
    gpumem_managed_range range = {.size = sizeof range};
    OK(gpumem_buffer_get_managed_range(buffer, offset, bytes, &range));
    return range;
}

TEST_WHERE(advice_and_prefetch_are_read_back, NEEDS_MANAGED()) {
    begin(GPUMEM_MANAGED_ALLOCATED);
    unsigned char *bytes = gpumem_buffer_host_pointer(buffer);
    fill_pattern(bytes, 4 * MIB, 3);
    OK(gpumem_buffer_advise(buffer, 0, 2 * MIB, GPUMEM_ADVICE_SET_READ_MOSTLY,
                            GPUMEM_LOCATION_DEVICE, 0));
    OK(gpumem_buffer_advise(buffer, 0, 2 * MIB, GPUMEM_ADVICE_SET_PREFERRED_LOCATION,
                            GPUMEM_LOCATION_HOST, 0));
    OK(gpumem_buffer_advise(buffer, 2 * MIB, 2 * MIB, GPUMEM_ADVICE_SET_ACCESSED_BY,
                            GPUMEM_LOCATION_DEVICE, 0));
    OK(gpumem_buffer_prefetch(buffer, 2 * MIB, 2 * MIB, GPUMEM_LOCATION_DEVICE, 0, stream));
    OK(gpumem_stream_synchronize(device, stream));
    gpumem_managed_range first = range_of(0, 2 * MIB), second = range_of(2 * MIB, 2 * MIB);
    MEMBERS(first, (read_mostly, 1), (has_preferred, 1), (preferred, GPUMEM_LOCATION_HOST),
            (accessed_by, 0));
    MEMBERS(second, (read_mostly, 0), (has_preferred, 0), (accessed_by, 1), (has_prefetched, 1),
            (prefetched, GPUMEM_LOCATION_DEVICE), (prefetched_ordinal_or_node, 0));
    assert_true(has_pattern(bytes, 4 * MIB, 3));
    end();
}

TEST_WHERE(discarded_memory_can_be_written_again, NEEDS_MANAGED()) {
    if (!gpumem_driver_has(driver, GPUMEM_FN_cuMemDiscardBatchAsync))
        SKIP("the driver is older than 13.0");
    begin(GPUMEM_MANAGED_ALLOCATED);
    unsigned char *bytes = gpumem_buffer_host_pointer(buffer);
    fill_pattern(bytes, 4 * MIB, 3);
    OK(gpumem_buffer_discard(buffer, 0, 2 * MIB, NULL, stream));
    OK(gpumem_buffer_discard(buffer, 2 * MIB, MIB,
                             GPUMEM_DISCARD_OPTIONS(.prefetch = true,
                                                    .location = GPUMEM_LOCATION_DEVICE,
                                                    .ordinal_or_node = 0),
                             stream));
    OK(gpumem_stream_synchronize(device, stream));
    assert_int_equal(range_of(2 * MIB, MIB).prefetched, GPUMEM_LOCATION_DEVICE);
    OK(gpumem_buffer_fill(buffer, 0, 3 * MIB, 9, stream));
    OK(gpumem_stream_synchronize(device, stream));
    assert_int_equal(bytes[0], 9);
    assert_int_equal(bytes[3 * MIB - 1], 9);
    assert_int_equal(gpumem_buffer_discard(buffer, 0, MIB, NULL, NULL),
                     GPUMEM_ERROR_INVALID_ARGUMENT);
    end();
}

TEST_WHERE(managed_memory_calls_leave_captures_valid, NEEDS_MANAGED()) {
    begin(GPUMEM_MANAGED_ALLOCATED);
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(gpumem_buffer_prefetch(buffer, 0, MIB, GPUMEM_LOCATION_HOST, 0, stream),
                     GPUMEM_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpumem_buffer_discard(buffer, 0, MIB, NULL, stream),
                     GPUMEM_ERROR_NOT_SUPPORTED);
    OK(gpumem_buffer_advise(buffer, 0, MIB, GPUMEM_ADVICE_SET_READ_MOSTLY, GPUMEM_LOCATION_DEVICE,
                            0));
    (void)range_of(0, MIB);
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    OK_CU(cu.cuGraphDestroy(graph));
    end();
}

TEST_WHERE(a_managed_resource_uses_a_pool_or_reports_why_not, NEEDS_MANAGED()) {
    gpumem_resource_properties properties = {.size = sizeof properties};
    begin(GPUMEM_MANAGED_POOL);
    OK(gpumem_resource_get_properties(resource, &properties));
    bool pooled = strcmp(properties.kind, "managed_pool") == 0;
    assert_int_equal(properties.note[0] == 0, pooled);
    unsigned char *bytes = gpumem_buffer_host_pointer(buffer);
    OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 5, stream));
    OK(gpumem_stream_synchronize(device, stream));
    assert_int_equal(bytes[4 * MIB - 1], 5);
    OK(gpumem_buffer_prefetch(buffer, 0, MIB, GPUMEM_LOCATION_HOST, 0, stream));
    OK(gpumem_stream_synchronize(device, stream));
    assert_int_equal(range_of(0, MIB).prefetched, GPUMEM_LOCATION_HOST);
    if (pooled) {
        gpumem_buffer *none;
        assert_int_equal(gpumem_buffer_advise(buffer, 0, MIB, GPUMEM_ADVICE_SET_READ_MOSTLY,
                                              GPUMEM_LOCATION_DEVICE, 0),
                         GPUMEM_ERROR_NOT_SUPPORTED);
        OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        assert_int_equal(
            gpumem_buffer_allocate(resource, MIB, GPUMEM_BUFFER_OPTIONS(.stream = stream), &none),
            GPUMEM_ERROR_NOT_SUPPORTED);
        CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
        OK_CU(cu.cuGraphDestroy(graph));
    }
    end();
}

/* ---- Pools' peers, and graphs ---------------------------------------------------------------- */

static CUresult other_sets(CUdeviceptr at, unsigned char value) {
    CUcontext other = MADE_CU(CUcontext, cuDevicePrimaryCtxRetain, 1);
    OK_CU(cu.cuCtxPushCurrent_v2(other));
    CUresult result = cu.cuMemsetD8_v2(at, value, 64);
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuCtxPopCurrent_v2(NULL));
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(1));
    return result;
}

TEST_WHERE(peers_of_a_pool_access_existing_and_new_buffers, NEEDS_PEERS()) {
    gpumem_resource *pool;
    unsigned char byte = 0;
    open_library();
    pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    gpumem_buffer *early = NEW_BUFFER(pool, 4096);
    OK(gpumem_stream_synchronize(device, NULL));
    assert_int_equal(MADE(gpumem_access, gpumem_resource_get_access, pool, 1), GPUMEM_ACCESS_NONE);
    assert_int_not_equal(other_sets(gpumem_buffer_pointer(early), 9), CUDA_SUCCESS);
    OK(gpumem_resource_set_access(pool, 1, GPUMEM_ACCESS_READ_WRITE));
    gpumem_buffer *late = NEW_BUFFER(pool, 64 * MIB);
    OK(gpumem_stream_synchronize(device, NULL));
    assert_int_equal(MADE(gpumem_access, gpumem_resource_get_access, pool, 1),
                     GPUMEM_ACCESS_READ_WRITE);
    OK_CU(other_sets(gpumem_buffer_pointer(early), 2));
    OK_CU(other_sets(gpumem_buffer_pointer(late), 3));
    OK(read_now(early, 63, &byte, 1, NULL));
    assert_int_equal(byte, 2);
    OK(read_now(late, 63, &byte, 1, NULL));
    assert_int_equal(byte, 3);
    OK(gpumem_resource_set_access(pool, 1, GPUMEM_ACCESS_NONE));
    assert_int_equal(MADE(gpumem_access, gpumem_resource_get_access, pool, 1), GPUMEM_ACCESS_NONE);
    assert_int_not_equal(other_sets(gpumem_buffer_pointer(late), 4), CUDA_SUCCESS);
    DESTROY(early, late, pool);
}

static uint64_t number(gpumem_graph_memory_attribute attribute) {
    uint64_t value = 77;
    OK(gpumem_graph_memory_get_attribute(device, attribute, &value));
    return value;
}

TEST(graph_memory_is_counted_and_trimmed) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
    open_library();
    OK(gpumem_stream_create(device, NULL, &stream));
    resource = NEW_POOL();
    OK(gpumem_graph_memory_trim(device));
    uint64_t before = number(GPUMEM_GRAPH_MEMORY_RESERVED_CURRENT);
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    buffer = NEW_BUFFER_WITH(resource, 20 * MIB, .stream = stream);
    OK(gpumem_buffer_fill(buffer, 0, 20 * MIB, 3, stream));
    OK(gpumem_buffer_free(buffer, stream));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    CUgraphExec exec = MADE_CU(CUgraphExec, cuGraphInstantiateWithFlags, graph, 0);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    OK(gpumem_stream_synchronize(device, stream));
    assert_true(number(GPUMEM_GRAPH_MEMORY_RESERVED_HIGH) >= before + 20 * MIB);
    assert_true(number(GPUMEM_GRAPH_MEMORY_USED_HIGH) >= 20 * MIB);
    DESTROY_CU(exec, graph);
    OK(gpumem_graph_memory_trim(device));
    assert_int_equal(number(GPUMEM_GRAPH_MEMORY_RESERVED_CURRENT), before);
    OK(gpumem_graph_memory_set_attribute(device, GPUMEM_GRAPH_MEMORY_RESERVED_HIGH, 0));
    assert_int_equal(number(GPUMEM_GRAPH_MEMORY_RESERVED_HIGH), before);
    OK(gpumem_graph_memory_set_attribute(device, GPUMEM_GRAPH_MEMORY_USED_HIGH, 0));
    DESTROY(resource, stream);
}
