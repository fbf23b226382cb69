/* Discarding managed memory: its bytes are nobody's until they are written again. */
#include "harness.h"

#define PAGE ((size_t)4096)
#define SIZE (16 * PAGE)

#define NEEDS_DISCARD()                                                                            \
    do {                                                                                           \
        NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);                            \
        if (!gpumem_driver_has(driver, GPUMEM_FN_cuMemDiscardBatchAsync))                          \
            SKIP("the driver is older than 13.0");                                                 \
    } while (0)

static unsigned char *bytes_of(CUdeviceptr p) {
    return (unsigned char *)(uintptr_t)p;
}

static CUdeviceptr managed(void) {
    return MADE_CU(CUdeviceptr, cuMemAllocManaged, SIZE, CU_MEM_ATTACH_GLOBAL);
}

TEST_WHERE(memory_outside_the_discarded_range_is_kept, NEEDS_DISCARD()) {
    CUdeviceptr m = managed(), part = m + 4 * PAGE;
    size_t size = 4 * PAGE;
    CUstream s = new_stream();
    fill_pattern(bytes_of(m), SIZE, 1);
    OK_CU(cu.cuMemDiscardBatchAsync(&part, &size, 1, 0, s));
    OK_CU(cu.cuStreamSynchronize(s));
    assert_true(has_pattern(bytes_of(m), 4 * PAGE, 1));
    memset(bytes_of(part), 8, size);
    unsigned char plain[8];
    OK_CU(cu.cuMemcpyDtoH_v2(plain, part + 100, sizeof plain));
    assert_int_equal(plain[7], 8);
    OK_CU(cu.cuMemFree_v2(m));
}

/* On hardware nothing is said of such bytes; here they are gone, in the order of the stream. */
TEST_WHERE(discarding_happens_in_stream_order, NEEDS_DISCARD()) {
    NEEDS_SOFTGPU("the contents of discarded memory are not defined");
    CUdeviceptr m = managed();
    size_t size = SIZE;
    CUstream s = new_stream();
    fill_pattern(bytes_of(m), SIZE, 1);
    struct gate gate = hold(s);
    OK_CU(cu.cuMemDiscardBatchAsync(&m, &size, 1, 0, s));
    assert_true(has_pattern(bytes_of(m), SIZE, 1));
    gate_drain(&gate, s);
    assert_false(has_pattern(bytes_of(m), SIZE, 1));
    assert_int_equal(bytes_of(m)[1], bytes_of(m)[SIZE - 1]);
    OK_CU(cu.cuMemFree_v2(m));
}

TEST_WHERE(memory_can_be_discarded_and_prefetched_in_one_call, NEEDS_DISCARD()) {
    CUdeviceptr m[2] = {managed(), managed()};
    size_t sizes[2] = {SIZE, SIZE}, first[2] = {0, 1};
    CUmemLocation places[2] = {{.type = CU_MEM_LOCATION_TYPE_DEVICE},
                               {.type = CU_MEM_LOCATION_TYPE_HOST}};
    int where[2] = {77, 77};
    places[0].id = dev;
    CUstream s = new_stream();
    OK_CU(cu.cuMemDiscardAndPrefetchBatchAsync(m, sizes, 2, places, first, 2, 0, s));
    OK_CU(cu.cuStreamSynchronize(s));
    for (int i = 0; i < 2; i++)
        OK_CU(cu.cuMemRangeGetAttribute(&where[i], sizeof where[i],
                                        CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, m[i], SIZE));
    assert_int_equal(where[0], dev);
    assert_int_equal(where[1], CU_DEVICE_CPU);
    FAILS_CU(INVALID_VALUE,
             cu.cuMemDiscardAndPrefetchBatchAsync(m, sizes, 2, places, first, 2, 1, s));
    for (int i = 0; i < 2; i++)
        OK_CU(cu.cuMemFree_v2(m[i]));
}

TEST_WHERE(invalid_discards_are_refused, NEEDS_DISCARD()) {
    CUdeviceptr m[2] = {0, managed()};
    size_t sizes[2] = {SIZE, SIZE};
    CUstream s = new_stream();
    OK_CU(cu.cuMemAlloc_v2(&m[0], SIZE));
    fill_pattern(bytes_of(m[1]), SIZE, 1);
    FAILS_CU(INVALID_VALUE, cu.cuMemDiscardBatchAsync(m, sizes, 2, 0, s));
    FAILS_CU(INVALID_VALUE, cu.cuMemDiscardBatchAsync(m, sizes, 0, 0, s));
    FAILS_CU(INVALID_VALUE, cu.cuMemDiscardBatchAsync(m, sizes, 1, 1, s));
    FAILS_CU(INVALID_VALUE, cu.cuMemDiscardBatchAsync(m, NULL, 1, 0, s));
    OK_CU(cu.cuStreamSynchronize(s));
    assert_true(has_pattern(bytes_of(m[1]), SIZE, 1));
    DESTROY_CU(m[0], m[1]);
}
