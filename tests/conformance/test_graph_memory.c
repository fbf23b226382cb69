/* Memory that graphs allocate and free. */
#include "graph_nodes.h"

static CUdeviceptr memory;
static CUstream stream;

static int begin(void **state) {
    int failed = test_begin(state);
    if (!failed) {
        OK_CU(cu.cuMemAlloc_v2(&memory, 4096));
        OK_CU(cu.cuMemsetD8_v2(memory, 0x11, 4096));
        OK_CU(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    }
    return failed;
}

static int end(void **state) {
    OK_CU(cu.cuStreamSynchronize(stream));
    DESTROY_CU(stream, memory);
    OK_CU(cu.cuDeviceGraphMemTrim(dev));
    return test_end(state);
}

EACH_TEST(begin, end);

static uint64_t attribute(CUgraphMem_attribute which) {
    uint64_t value = ~(uint64_t)0;
    OK_CU(cu.cuDeviceGetGraphMemAttribute(dev, which, &value));
    return value;
}

TEST(memory_allocated_and_freed_in_a_graph_is_reusable) {
    CUdeviceptr p;
    CUgraph graph = new_graph();
    CUgraphNode node = add_alloc(graph, NULL, 3 * MIB, &p);
    assert_int_not_equal(p, 0);
    node = add_set(graph, node, p, 0x5a, 3 * MIB);
    node = add_copy(graph, node, memory, p + 3 * MIB - 64, 64);
    add_free(graph, node, p);
    CUgraphExec exec = instantiate(graph), second = NULL;
    FAILS_CU(NOT_SUPPORTED, cu.cuGraphInstantiateWithFlags(&second, graph, 0));
    for (int i = 0; i < 3; i++) {
        OK_CU(cu.cuMemsetD8_v2(memory, 0x11, 64));
        OK_CU(cu.cuGraphLaunch(exec, stream));
        launch_and_wait(exec, stream);
        assert_int_equal(byte_at(memory + 63), 0x5a);
    }
    FAILS_CU(INVALID_VALUE, cu.cuMemFreeAsync(p, stream));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD8_v2(p, 1, 16));
}

TEST(memory_left_by_a_graph_can_be_freed_outside_it) {
    CUdeviceptr p, base;
    size_t size;
    CUgraph graph = new_graph();
    CUgraphNode node = add_alloc(graph, NULL, 3 * MIB, &p);
    add_set(graph, node, p, 0x5a, 64);
    CUgraphExec exec = instantiate(graph);
    FAILS_CU(INVALID_VALUE, cu.cuMemFreeAsync(p, stream));
    OK_CU(cu.cuGraphLaunch(exec, stream));
    FAILS_CU(INVALID_VALUE, cu.cuGraphLaunch(exec, stream));
    OK_CU(cu.cuMemcpyDtoDAsync_v2(memory, p, 64, stream));
    OK_CU(cu.cuMemGetAddressRange_v2(&base, &size, p + 100));
    assert_int_equal(base, p);
    assert_int_equal(size, 3 * MIB);
    OK_CU(cu.cuMemFreeAsync(p, stream));
    FAILS_CU(INVALID_VALUE, cu.cuMemFreeAsync(p, stream));
    launch_and_wait(exec, stream);
    assert_int_equal(byte_at(memory), 0x5a);
    assert_int_equal(byte_at(p), 0x5a);
    OK_CU(cu.cuMemFree_v2(p));
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(p));
}

/* What is left outlives the exec and the graph. */
TEST(memory_left_by_a_graph_outlives_it) {
    CUdeviceptr p;
    CUgraph graph = new_graph();
    CUgraphNode node = add_alloc(graph, NULL, 4096, &p);
    add_set(graph, node, p, 0x5a, 64);
    CUgraphExec exec = instantiate(graph);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    end_graph(graph, exec);
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(byte_at(p), 0x5a);
    OK_CU(cu.cuMemFreeAsync(p, stream));
}

TEST(auto_free_on_launch_frees_memory_at_the_next_launch) {
    CUdeviceptr p;
    CUgraph graph = new_graph();
    CUgraphNode node = add_alloc(graph, NULL, 4096, &p);
    add_set(graph, node, p, 0x5a, 64);
    CUgraphExec exec = instantiate_with(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    for (int i = 0; i < 3; i++)
        OK_CU(cu.cuGraphLaunch(exec, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(byte_at(p), 0x5a);
    OK_CU(cu.cuMemFreeAsync(p, stream));
}

TEST(one_graph_may_free_memory_of_another) {
    CUdeviceptr p;
    CUgraph first = new_graph(), second = new_graph();
    add_alloc(first, NULL, 2 * MIB, &p);
    CUgraphNode set = add_set(second, NULL, p, 0x5a, 64);
    add_free(second, add_copy(second, set, memory, p, 64), p);
    CUgraphExec make = instantiate(first), use = instantiate(second);
    FAILS_CU(INVALID_VALUE, cu.cuGraphLaunch(use, stream));
    for (int i = 0; i < 2; i++) {
        OK_CU(cu.cuGraphLaunch(make, stream));
        OK_CU(cu.cuGraphLaunch(use, stream));
        FAILS_CU(INVALID_VALUE, cu.cuGraphLaunch(use, stream));
    }
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(byte_at(memory), 0x5a);
}

TEST(graph_memory_attributes_count_used_and_reserved_bytes) {
    CUdeviceptr p, q;
    uint64_t zero = 0, one = 1;
    size_t total, before, held, after;
    CUgraph graph = new_graph();
    CUgraphNode node = add_alloc(graph, NULL, 4 * MIB, &p);
    add_free(graph, add_set(graph, node, p, 1, 64), p);
    node = add_alloc(graph, NULL, 4 * MIB, &q);
    add_free(graph, add_set(graph, node, q, 1, 64), q);
    CUgraphExec exec = instantiate(graph);
    OK_CU(cu.cuDeviceGraphMemTrim(dev));
    OK_CU(cu.cuDeviceSetGraphMemAttribute(dev, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
    OK_CU(cu.cuDeviceSetGraphMemAttribute(dev, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &zero));
    OK_CU(cu.cuMemGetInfo_v2(&before, &total));
    for (int i = 0; i < 4; i++)
        assert_int_equal(attribute((CUgraphMem_attribute)i), 0);
    OK_CU(cu.cuGraphUpload(exec, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_true(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) >= 8 * MIB);
    launch_and_wait(exec, stream);
    uint64_t reserved = attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
    assert_true(reserved >= 8 * MIB);
    assert_true(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) >= 8 * MIB);
    OK_CU(cu.cuMemGetInfo_v2(&held, &total));
    if (soft) /* on hardware others use the device, too */
        assert_int_equal(before - held, reserved);
    OK_CU(cu.cuDeviceGraphMemTrim(dev));
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), reserved);
    assert_true(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) >= 8 * MIB);
    OK_CU(cu.cuMemGetInfo_v2(&after, &total));
    if (soft)
        assert_int_equal(before, after);
    OK_CU(cu.cuDeviceSetGraphMemAttribute(dev, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &zero));
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), 0);
    FAILS_CU(INVALID_VALUE,
             cu.cuDeviceSetGraphMemAttribute(dev, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &one));
    FAILS_CU(INVALID_VALUE,
             cu.cuDeviceSetGraphMemAttribute(dev, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero));
}

TEST(trimming_keeps_graph_memory_in_use) {
    CUdeviceptr p;
    CUgraph graph = new_graph();
    CUgraphNode node = add_alloc(graph, NULL, 4 * MIB, &p);
    node = add_set(graph, node, p, 0x5a, 64);
    add_free(graph, add_copy(graph, node, memory, p, 64), p);
    CUgraphExec exec = instantiate(graph);
    struct gate gate = hold(stream);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    OK_CU(cu.cuDeviceGraphMemTrim(dev));
    assert_true(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) >= 4 * MIB);
    gate_drain(&gate, stream);
    assert_int_equal(byte_at(memory), 0x5a);
}

static CUgraph through_memory(unsigned value) {
    CUdeviceptr p;
    CUgraph graph = new_graph();
    CUgraphNode node = add_alloc(graph, NULL, 4 * MIB, &p);
    node = add_set(graph, node, p, value, 64);
    add_free(graph, add_copy(graph, node, memory, p, 64), p);
    return graph;
}

/* Memory of a launch under way is given back at its end, and not that of the nodes that took the
 * place of its own meanwhile. */
TEST(an_update_during_a_launch_does_not_free_new_memory) {
    NEEDS_SOFTGPU("an H200 refuses to update the set to memory of another graph's allocation");
    CUgraphExecUpdateResultInfo info;
    CUgraph graph = through_memory(0x5a), other = through_memory(0x6b);
    CUgraphExec exec = instantiate(graph);
    struct gate gate = hold(stream);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    OK_CU(cu.cuGraphExecUpdate_v2(exec, other, &info));
    gate_drain(&gate, stream);
    assert_int_equal(byte_at(memory), 0x5a);
    launch_and_wait(exec, stream);
    assert_int_equal(byte_at(memory), 0x6b);
}

/* Allocations that follow one another in a chain need the memory of one. */
TEST(sequential_graph_allocations_reuse_memory) {
    CUgraph graph = new_graph();
    CUgraphNode node = NULL;
    for (unsigned i = 0; i < 64; i++) {
        CUdeviceptr p;
        node = add_alloc(graph, node, 2 * MIB, &p);
        node = add_set(graph, node, p, i, 64);
        node = add_copy(graph, node, memory + 64 * i, p, 64);
        node = add_free(graph, node, p);
    }
    CUgraphExec exec = instantiate(graph);
    OK_CU(cu.cuDeviceGraphMemTrim(dev));
    launch_and_wait(exec, stream);
    assert_true(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) < 64 * MIB);
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(byte_at(memory + 64 * i), i);
}

TEST(a_graph_allocating_more_than_the_device_has_is_refused) {
    NEEDS_SOFTGPU("would take the device's memory");
    CUdeviceptr p;
    size_t total = MADE_CU(size_t, cuDeviceTotalMem_v2, dev);
    CUgraph graph = new_graph();
    add_set(graph, NULL, memory, 0x22, 64);
    CUgraphNode node = add_alloc(graph, NULL, total + 2 * MIB, &p);
    add_free(graph, node, p);
    CUgraphExec exec = instantiate(graph);
    FAILS_CU(OUT_OF_MEMORY, cu.cuGraphLaunch(exec, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(byte_at(memory), 0x11);
}
