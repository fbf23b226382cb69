/* Pools of host memory: the CPU uses what they hand out. */
#include "pools.h"

static void check(CUmemLocationType location, CUmemAllocationHandleType handles) {
    CUmemoryPool pool = pool_make(location, handles, 0);
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK_CU(cu.cuMemPoolSetAccess(pool, &access, 1));
    CUstream stream = new_stream();
    CUdeviceptr device, p = pool_take(pool, MIB, stream);
    OK_CU(cu.cuStreamSynchronize(stream));
    unsigned char *bytes = (unsigned char *)(uintptr_t)p;
    fill_pattern(bytes, MIB, 9);
    OK_CU(cu.cuMemAlloc_v2(&device, MIB));
    OK_CU(cu.cuMemcpyHtoDAsync_v2(device, bytes, MIB, stream));
    OK_CU(cu.cuMemsetD8Async(p, 0, MIB, stream));
    OK_CU(cu.cuMemcpyDtoHAsync_v2(bytes, device, MIB / 2, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_true(has_pattern(bytes, MIB / 2, 9));
    assert_int_equal(bytes[MIB / 2], 0);
    assert_int_equal(bytes[MIB - 1], 0);
    unsigned type = MADE_CU(unsigned, cuPointerGetAttribute, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    OK_CU(cu.cuMemFree_v2(device));
    OK_CU(cu.cuMemFreeAsync(p, stream));
    pool_end(pool);
}

TEST_IS(host_and_device_use_memory_of_a_host_pool,
        check(CU_MEM_LOCATION_TYPE_HOST, CU_MEM_HANDLE_TYPE_NONE));
TEST_IS(host_and_device_use_memory_of_a_numa_node_pool,
        check(CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_HANDLE_TYPE_NONE));

TEST_WHERE(host_and_device_use_memory_of_a_shareable_numa_node_pool, NEEDS_POOL_DESCRIPTORS()) {
    check(CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

/* Copies that find out by themselves what an address is take the memory as the CPU does. */
TEST(generic_copies_reach_host_pool_memory_without_device_access) {
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_HOST, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUstream stream = new_stream();
    CUdeviceptr hidden = pool_take(pool, 4096, stream);
    OK_CU(cu.cuStreamSynchronize(stream));
    CUdeviceptr device = new_memory(4096);
    fill_pattern((void *)(uintptr_t)hidden, 4096, 3);
    OK_CU(cu.cuMemcpyAsync(device, hidden, 4096, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    memset((void *)(uintptr_t)hidden, 0, 4096);
    OK_CU(cu.cuMemcpyAsync(hidden, device, 4096, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_true(has_pattern((void *)(uintptr_t)hidden, 4096, 3));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD8Async(hidden, 0, 4096, stream));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoDAsync_v2(device, hidden, 4096, stream));
    OK_CU(cu.cuMemFreeAsync(hidden, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
}

TEST(invalid_host_pool_properties_are_refused) {
    CUmemoryPool pool = NULL;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location = {.type = CU_MEM_LOCATION_TYPE_HOST}};
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolCreate(&pool, &props));
    props.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolCreate(&pool, &props));
    props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    props.location.id = -1;
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolCreate(&pool, &props));
    assert_null(pool);
}

/* The copy's turn comes when the memory has been given back: a fault, as of any memory. */
CHILD_TEST_WHERE(freeing_memory_under_a_running_copy_is_a_fault,
                 NEEDS_SOFTGPU("faults the device")) {
    struct gate gate;
    init_driver();
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_HOST, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUstream held = new_stream(), other = new_stream();
    CUdeviceptr p = pool_take(pool, MIB, other);
    OK_CU(cu.cuStreamSynchronize(other));
    CUdeviceptr device = MADE_CU(CUdeviceptr, cuMemAlloc_v2, MIB);
    gate_make(&gate);
    gate_hold(&gate, held);
    OK_CU(cu.cuMemcpyAsync(device, p, MIB, held));
    OK_CU(cu.cuMemFreeAsync(p, other));
    OK_CU(cu.cuStreamSynchronize(other));
    OK_CU(cu.cuMemPoolTrimTo(pool, 0));
    gate_release(&gate);
    FAILS_CU(LAUNCH_FAILED, cu.cuStreamSynchronize(held));
    return 0;
}
