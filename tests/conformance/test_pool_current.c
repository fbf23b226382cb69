/* Making and ending pools; which is the default and which the current one. */
#include "pools.h"

static CUmemPoolProps device_props(void) {
    return (CUmemPoolProps){
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev},
    };
}

static CUmemoryPool pool_of(CUdeviceptr p) {
    CUmemoryPool pool = NULL;
    OK_CU(cu.cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    return pool;
}

TEST(the_default_pool_is_initially_current) {
    CUmemoryPool fallback = MADE_CU(CUmemoryPool, cuDeviceGetDefaultMemPool, dev);
    CUmemoryPool current = MADE_CU(CUmemoryPool, cuDeviceGetMemPool, dev);
    assert_non_null(fallback);
    assert_ptr_equal(fallback, current);
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAllocAsync, 4096, NULL);
    assert_ptr_equal(pool_of(p), fallback);
    OK_CU(cu.cuMemFreeAsync(p, NULL));
    OK_CU(cu.cuStreamSynchronize(NULL));
}

TEST(allocations_come_from_the_current_pool) {
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUmemoryPool fallback = MADE_CU(CUmemoryPool, cuDeviceGetDefaultMemPool, dev);
    OK_CU(cu.cuDeviceSetMemPool(dev, pool));
    CUmemoryPool current = MADE_CU(CUmemoryPool, cuDeviceGetMemPool, dev);
    assert_ptr_equal(current, pool);
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAllocAsync, 4096, NULL);
    assert_ptr_equal(pool_of(p), pool);
    OK_CU(cu.cuMemFreeAsync(p, NULL));
    OK_CU(cu.cuStreamSynchronize(NULL));
    /* Its end makes the default pool current again. */
    pool_end(pool);
    OK_CU(cu.cuDeviceGetMemPool(&current, dev));
    assert_ptr_equal(current, fallback);
}

TEST(the_default_pool_cannot_be_destroyed) {
    CUmemoryPool fallback = MADE_CU(CUmemoryPool, cuDeviceGetDefaultMemPool, dev);
    assert_int_not_equal(cu.cuMemPoolDestroy(fallback), CUDA_SUCCESS);
    assert_int_equal(pool_flag(fallback, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC), 1);
}

TEST(default_and_current_pools_are_found_by_location) {
    if (!gpumem_driver_has(driver, GPUMEM_FN_cuMemGetDefaultMemPool))
        SKIP("the driver is older than 13.0");
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev};
    CUmemoryPool fallback, same = NULL, current = NULL;
    OK_CU(cu.cuDeviceGetDefaultMemPool(&fallback, dev));
    OK_CU(cu.cuMemGetDefaultMemPool(&same, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(same, fallback);
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    OK_CU(cu.cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
    OK_CU(cu.cuMemGetMemPool(&current, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(current, pool);
    current = NULL;
    OK_CU(cu.cuDeviceGetMemPool(&current, dev));
    assert_ptr_equal(current, pool);
    OK_CU(cu.cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, fallback));
    OK_CU(cu.cuDeviceGetMemPool(&current, dev));
    assert_ptr_equal(current, fallback);
}

/* The allocation lives on, and with its end the rest of the pool goes. */
TEST(live_memory_outlives_its_destroyed_pool) {
    size_t before, after, total;
    CUstream stream = new_stream();
    OK_CU(cu.cuMemGetInfo_v2(&before, &total));
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUdeviceptr p = pool_take(pool, 4 * MIB, stream);
    CUdeviceptr q = pool_take(pool, 4 * MIB, stream);
    pool_destroy(pool);
    OK_CU(cu.cuMemFreeAsync(q, stream));
    OK_CU(cu.cuMemsetD8Async(p, 0x42, 4 * MIB, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(byte_at(p + 4 * MIB - 1), 0x42);
    OK_CU(cu.cuMemFreeAsync(p, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuMemGetInfo_v2(&after, &total));
    assert_int_equal(before, after);
}

TEST(a_pool_may_be_destroyed_with_a_pending_free) {
    CUstream stream = new_stream();
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUdeviceptr p = pool_take(pool, 4 * MIB, stream);
    struct gate gate = hold(stream);
    OK_CU(cu.cuMemsetD8Async(p, 1, 4 * MIB, stream));
    OK_CU(cu.cuMemFreeAsync(p, stream));
    pool_destroy(pool);
    gate_drain(&gate, stream);
}

/* The stream goes while its free is pending. */
TEST(a_stream_may_be_destroyed_with_a_pending_free) {
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUdeviceptr p = pool_take(pool, 4 * MIB, stream);
    struct gate gate = hold(stream);
    OK_CU(cu.cuMemsetD8Async(p, 1, 4 * MIB, stream));
    OK_CU(cu.cuMemFreeAsync(p, stream));
    OK_CU(cu.cuStreamDestroy_v2(stream));
    gate_release(&gate);
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuMemPoolTrimTo(pool, 0));
    assert_int_equal(pool_reserved(pool), 0);
}

TEST(invalid_pool_properties_are_refused) {
    CUmemoryPool pool;
    CUmemPoolProps props = device_props();
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolCreate(&pool, NULL));
    props.allocType = (CUmemAllocationType)0;
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolCreate(&pool, &props));
    props = device_props();
    props.location.type = (CUmemLocationType)9;
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolCreate(&pool, &props));
}
