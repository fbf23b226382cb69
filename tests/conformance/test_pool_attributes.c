/* Attributes of pools, and what they count. */
#include "pools.h"

TEST(reuse_flags_are_kept) {
    static const CUmemPool_attribute flags[] = {
        CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
    };
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    for (size_t i = 0; i < COUNT(flags); i++) {
        assert_int_equal(pool_flag(pool, flags[i]), 1);
        pool_set_flag(pool, flags[i], 0);
        for (size_t j = 0; j < COUNT(flags); j++)
            assert_int_equal(pool_flag(pool, flags[j]), j != i);
        pool_set_flag(pool, flags[i], 1);
    }
}

TEST(the_release_threshold_is_kept) {
    CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev},
    };
    CUmemoryPool pool = new_pool(&props);
    assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0);
    pool_set_threshold(pool, 123456789);
    assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 123456789);
}

TEST(reserved_and_used_bytes_are_counted) {
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUstream stream = new_stream();
    assert_int_equal(pool_reserved(pool), 0);
    assert_int_equal(pool_used(pool), 0);
    CUdeviceptr p = pool_take(pool, 3 * MIB, stream);
    CUdeviceptr q = pool_take(pool, 5 * MIB, stream);
    assert_int_equal(pool_used(pool), 8 * MIB);
    assert_true(pool_reserved(pool) >= 8 * MIB);
    OK_CU(cu.cuMemFreeAsync(p, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(pool_used(pool), 5 * MIB);
    assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 8 * MIB);
    assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), pool_reserved(pool));
    OK_CU(cu.cuMemFreeAsync(q, stream));
}

TEST(high_water_marks_are_reset) {
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUstream stream = new_stream();
    uint64_t zero = 0, one = 1;
    CUdeviceptr p = pool_take(pool, 4 * MIB, stream);
    OK_CU(cu.cuMemFreeAsync(p, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuMemPoolTrimTo(pool, 0));
    assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 4 * MIB);
    assert_true(pool_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) >= 4 * MIB);
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one));
    assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 4 * MIB);
    OK_CU(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    OK_CU(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
    assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0);
    assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 0);
}
