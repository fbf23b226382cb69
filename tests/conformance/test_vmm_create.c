/* cuMemCreate, handles and their counts, properties, granularity. */
#include "harness.h"

#define PAGE ((size_t)2 << 20)

static CUmemAllocationProp on(CUmemLocationType type, int id) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    prop.location.type = type;
    prop.location.id = id;
    return prop;
}

static size_t free_bytes(void) {
    size_t left, total;
    OK_CU(cu.cuMemGetInfo_v2(&left, &total));
    return left;
}

TEST(created_memory_is_charged_until_its_release) {
    CUmemAllocationProp prop = on(CU_MEM_LOCATION_TYPE_DEVICE, dev);
    CUmemGenericAllocationHandle handle;
    size_t before = free_bytes();
    OK_CU(cu.cuMemCreate(&handle, 16 * PAGE, &prop, 0));
    assert_int_equal(before - free_bytes(), 16 * PAGE);
    OK_CU(cu.cuMemRelease(handle));
    assert_int_equal(free_bytes(), before);
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemCreate(&handle, (size_t)1 << 45, &prop, 0));
    assert_int_equal(free_bytes(), before);
}

TEST(invalid_arguments_are_refused) {
    CUmemAllocationProp prop = on(CU_MEM_LOCATION_TYPE_DEVICE, dev);
    CUmemGenericAllocationHandle handle = 77;
    static const size_t sizes[] = {0, 1, 4096, PAGE - 1, PAGE + 1, ~(size_t)0};
    for (unsigned i = 0; i < COUNT(sizes); i++)
        FAILS_CU(INVALID_VALUE, cu.cuMemCreate(&handle, sizes[i], &prop, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemCreate(&handle, PAGE, NULL, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemCreate(&handle, PAGE, &prop, 1));
    prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    FAILS_CU(INVALID_VALUE, cu.cuMemCreate(&handle, PAGE, &prop, 0));
    prop = on(CU_MEM_LOCATION_TYPE_DEVICE, 99);
    FAILS_CU(INVALID_DEVICE, cu.cuMemCreate(&handle, PAGE, &prop, 0));
    prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    FAILS_CU(INVALID_DEVICE, cu.cuMemCreate(&handle, PAGE, &prop, 0));
    prop = on(CU_MEM_LOCATION_TYPE_INVALID, 0);
    FAILS_CU(INVALID_VALUE, cu.cuMemCreate(&handle, PAGE, &prop, 0));
    prop = on(CU_MEM_LOCATION_TYPE_DEVICE, dev);
    prop.allocFlags.compressionType = 2;
    FAILS_CU(INVALID_VALUE, cu.cuMemCreate(&handle, PAGE, &prop, 0));
    prop = on(CU_MEM_LOCATION_TYPE_DEVICE, dev);
    prop.allocFlags.reserved[0] = 1;
    FAILS_CU(INVALID_VALUE, cu.cuMemCreate(&handle, PAGE, &prop, 0));
    prop = on(CU_MEM_LOCATION_TYPE_DEVICE, dev);
    prop.win32HandleMetaData = &prop;
    FAILS_CU(INVALID_VALUE, cu.cuMemCreate(&handle, PAGE, &prop, 0));
    prop = on(CU_MEM_LOCATION_TYPE_DEVICE, dev);
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32;
    FAILS_CU(INVALID_VALUE, cu.cuMemCreate(&handle, PAGE, &prop, 0));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    FAILS_CU(NOT_PERMITTED, cu.cuMemCreate(&handle, PAGE, &prop, 0));
    assert_int_equal(handle, 77);
}

TEST_WHERE(host_memory_is_created_on_the_requested_numa_node, NEEDS_DESCRIPTORS()) {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = on(CU_MEM_LOCATION_TYPE_HOST, 0), got;
    OK_CU(cu.cuMemCreate(&handle, PAGE, &prop, 0));
    OK_CU(cu.cuMemGetAllocationPropertiesFromHandle(&got, handle));
    MEMBERS(got.location, (type, CU_MEM_LOCATION_TYPE_HOST_NUMA), (id, 0));
    OK_CU(cu.cuMemRelease(handle));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    FAILS_CU(INVALID_VALUE, cu.cuMemCreate(&handle, PAGE, &prop, 0));
    prop = on(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    OK_CU(cu.cuMemCreate(&handle, PAGE, &prop, 0));
    OK_CU(cu.cuMemRelease(handle));
    prop.location.id = 99;
    FAILS_CU(INVALID_VALUE, cu.cuMemCreate(&handle, PAGE, &prop, 0));
    prop = on(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0);
    FAILS_CU(INVALID_VALUE, cu.cuMemCreate(&handle, PAGE, &prop, 0));
}

TEST_WHERE(allocation_properties_are_read_back, NEEDS_DESCRIPTORS()) {
    CUmemAllocationProp prop = on(CU_MEM_LOCATION_TYPE_DEVICE, dev), got;
    CUmemGenericAllocationHandle handle;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop.allocFlags.gpuDirectRDMACapable = 1;
    OK_CU(cu.cuMemCreate(&handle, PAGE, &prop, 0));
    memset(&got, 0xa5, sizeof got);
    OK_CU(cu.cuMemGetAllocationPropertiesFromHandle(&got, handle));
    MEMBERS(got, (type, prop.type), (requestedHandleTypes, prop.requestedHandleTypes));
    MEMBERS(got.location, (type, prop.location.type), (id, prop.location.id));
    assert_int_equal(got.allocFlags.gpuDirectRDMACapable, 1);
    FAILS_CU(INVALID_VALUE, cu.cuMemGetAllocationPropertiesFromHandle(&got, 0));
    OK_CU(cu.cuMemRelease(handle));
}

TEST(released_and_foreign_handles_are_refused) {
    NEEDS_SOFTGPU("hardware's driver may crash on them");
    CUmemAllocationProp prop = on(CU_MEM_LOCATION_TYPE_DEVICE, dev);
    CUmemGenericAllocationHandle handle;
    OK_CU(cu.cuMemCreate(&handle, PAGE, &prop, 0));
    OK_CU(cu.cuMemRelease(handle));
    FAILS_CU(INVALID_VALUE, cu.cuMemRelease(handle));
    FAILS_CU(INVALID_VALUE, cu.cuMemRelease(0));
    FAILS_CU(INVALID_VALUE, cu.cuMemRelease(0x12345));
    FAILS_CU(INVALID_VALUE, cu.cuMemRelease((CUmemGenericAllocationHandle)(uintptr_t)ctx));
    FAILS_CU(INVALID_VALUE, cu.cuMemGetAllocationPropertiesFromHandle(&prop, handle));
}

TEST(the_granularity_is_the_large_page_size) {
    CUmemAllocationProp prop = on(CU_MEM_LOCATION_TYPE_DEVICE, dev);
    for (int option = 0; option < 2; option++) {
        size_t size = MADE_CU(size_t, cuMemGetAllocationGranularity, &prop,
                              (CUmemAllocationGranularity_flags)option);
        assert_int_equal(size, PAGE);
    }
    size_t size = 7;
    FAILS_CU(INVALID_VALUE,
             cu.cuMemGetAllocationGranularity(&size, &prop, (CUmemAllocationGranularity_flags)2));
    FAILS_CU(INVALID_VALUE,
             cu.cuMemGetAllocationGranularity(&size, NULL, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    assert_int_equal(size, 7);
}
