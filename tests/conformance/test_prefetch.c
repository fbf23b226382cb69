/* Prefetching managed memory: the last place asked for is told of each page. */
#include "harness.h"

#define PAGE ((size_t)4096)
#define SIZE (16 * PAGE)

static const CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST};

#define NEEDS_MANAGED() NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)

static CUmemLocation at_device(int id) {
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    location.id = id;
    return location;
}

static int last(CUdeviceptr at, size_t size) {
    int value = 77;
    OK_CU(cu.cuMemRangeGetAttribute(&value, sizeof value,
                                    CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, at, size));
    return value;
}

static CUdeviceptr managed(void) {
    return MADE_CU(CUdeviceptr, cuMemAllocManaged, SIZE, CU_MEM_ATTACH_GLOBAL);
}

TEST_WHERE(the_last_prefetch_location_is_reported, NEEDS_MANAGED()) {
    CUdeviceptr m = managed();
    CUstream s = new_stream();
    assert_int_equal(last(m, SIZE), CU_DEVICE_INVALID);
    OK_CU(cu.cuMemPrefetchAsync(m, SIZE, dev, s));
    assert_int_equal(last(m, SIZE), dev);
    OK_CU(cu.cuMemPrefetchAsync_v2(m, 4 * PAGE, host, 0, s));
    assert_int_equal(last(m, 4 * PAGE), CU_DEVICE_CPU);
    assert_int_equal(last(m + 4 * PAGE, PAGE), dev);
    assert_int_equal(last(m, SIZE), CU_DEVICE_INVALID);
    /* Both take the stream that NULL means. */
    OK_CU(cu.cuMemPrefetchAsync(m, SIZE, CU_DEVICE_CPU, NULL));
    assert_int_equal(last(m, SIZE), CU_DEVICE_CPU);
    OK_CU(cu.cuMemPrefetchAsync_v2(m, SIZE, at_device(dev), 0, NULL));
    assert_int_equal(last(m, SIZE), dev);
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuMemFree_v2(m));
}

TEST_WHERE(a_prefetch_runs_in_stream_order, NEEDS_MANAGED()) {
    CUdeviceptr m = managed();
    CUstream s = new_stream();
    *(unsigned char *)(uintptr_t)m = 3;
    struct gate gate = hold(s);
    OK_CU(cu.cuMemPrefetchAsync(m, SIZE, dev, s));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(s));
    gate_drain(&gate, s);
    assert_int_equal(*(unsigned char *)(uintptr_t)m, 3);
    OK_CU(cu.cuMemFree_v2(m));
}

TEST_WHERE(a_batch_prefetches_to_several_locations, NEEDS_MANAGED()) {
    if (!gpumem_driver_has(driver, GPUMEM_FN_cuMemPrefetchBatchAsync))
        SKIP("the driver is older than 13.0");
    CUdeviceptr m[3] = {managed(), managed(), managed()};
    size_t sizes[3] = {SIZE, SIZE, SIZE}, first[2] = {0, 2};
    CUmemLocation places[2] = {at_device(dev), host};
    CUstream s = new_stream();
    OK_CU(cu.cuMemPrefetchBatchAsync(m, sizes, 3, places, first, 2, 0, s));
    assert_int_equal(last(m[0], SIZE), dev);
    assert_int_equal(last(m[1], SIZE), dev);
    assert_int_equal(last(m[2], SIZE), CU_DEVICE_CPU);
    first[0] = 1;
    FAILS_CU(INVALID_VALUE, cu.cuMemPrefetchBatchAsync(m, sizes, 3, places, first, 2, 0, s));
    first[0] = 0;
    FAILS_CU(INVALID_VALUE, cu.cuMemPrefetchBatchAsync(m, sizes, 3, places, first, 2, 1, s));
    FAILS_CU(INVALID_VALUE, cu.cuMemPrefetchBatchAsync(m, sizes, 0, places, first, 2, 0, s));
    OK_CU(cu.cuStreamSynchronize(s));
    for (int i = 0; i < 3; i++)
        OK_CU(cu.cuMemFree_v2(m[i]));
}

TEST_WHERE(invalid_prefetches_are_refused, NEEDS_MANAGED()) {
    CUdeviceptr m = managed();
    CUmemLocation none = {.type = CU_MEM_LOCATION_TYPE_INVALID};
    CUdeviceptr d = new_memory(SIZE);
    FAILS_CU(INVALID_DEVICE, cu.cuMemPrefetchAsync_v2(m, SIZE, at_device(99), 0, NULL));
    FAILS_CU(INVALID_VALUE, cu.cuMemPrefetchAsync_v2(m, SIZE, none, 0, NULL));
    FAILS_CU(INVALID_VALUE, cu.cuMemPrefetchAsync_v2(m, SIZE, host, 1, NULL));
    FAILS_CU(INVALID_VALUE, cu.cuMemPrefetchAsync(d, SIZE, dev, NULL));
    FAILS_CU(INVALID_VALUE, cu.cuMemPrefetchAsync(0, SIZE, dev, NULL));
    assert_int_equal(last(m, SIZE), CU_DEVICE_INVALID);
    OK_CU(cu.cuMemFree_v2(m));
}

TEST_WHERE(managed_memory_is_prefetched_to_a_second_device, NEEDS_MANAGED()) {
    NEEDS_DEVICES(2);
    CUdeviceptr m = managed();
    unsigned char *bytes = (unsigned char *)(uintptr_t)m;
    int list[2] = {77, 77}, preferred = 77;
    CUdevice second = MADE_CU(CUdevice, cuDeviceGet, 1);
    OK_CU(cu.cuMemPrefetchAsync(m, SIZE, second, NULL));
    assert_int_equal(last(m, SIZE), second);
    OK_CU(cu.cuMemAdvise(m, SIZE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, second));
    OK_CU(cu.cuMemAdvise(m, SIZE, CU_MEM_ADVISE_SET_ACCESSED_BY, second));
    OK_CU(cu.cuMemRangeGetAttribute(&preferred, sizeof preferred,
                                    CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, m, SIZE));
    assert_int_equal(preferred, second);
    OK_CU(
        cu.cuMemRangeGetAttribute(list, sizeof list, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, m, SIZE));
    assert_int_equal(list[0], second);
    assert_int_equal(list[1], CU_DEVICE_INVALID);
    OK_CU(cu.cuCtxSynchronize());
    new_context(second);
    set_bytes(m, 9, SIZE);
    assert_int_equal(bytes[SIZE - 1], 9);
    OK_CU(cu.cuMemFree_v2(m));
}
