#include "pools.h"

static void end_at_end(void *pool) {
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(pool_used(pool), 0);
    OK_CU(cu.cuMemPoolDestroy(pool));
}

CUmemoryPool pool_make(CUmemLocationType location, CUmemAllocationHandleType handles, size_t most) {
    CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes = handles,
        .location = {.type = location, .id = 0},
        .maxSize = most,
    };
    CUmemoryPool pool = MADE_CU(CUmemoryPool, cuMemPoolCreate, &props);
    assert_non_null(pool);
    at_end(end_at_end, pool);
    pool_set_threshold(pool, UINT64_MAX);
    return pool;
}

void pool_end(CUmemoryPool pool) {
    forget(pool);
    end_at_end(pool);
}

void pool_destroy(CUmemoryPool pool) {
    forget(pool);
    OK_CU(cu.cuMemPoolDestroy(pool));
}

CUdeviceptr pool_take(CUmemoryPool pool, size_t size, CUstream stream) {
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAllocFromPoolAsync, size, pool, stream);
    assert_int_not_equal(p, 0);
    return p;
}

/* The second and the fourth stay, so that the other two are not neighbours. */
CUdeviceptr pool_take_steps(CUmemoryPool pool, CUdeviceptr block[3]) {
    CUdeviceptr step[4];
    for (size_t i = 0; i < 4; i++)
        step[i] = pool_take(pool, POOL_STEP, NULL);
    OK_CU(cu.cuMemFreeAsync(step[0], NULL));
    OK_CU(cu.cuMemFreeAsync(step[2], NULL));
    OK_CU(cu.cuStreamSynchronize(NULL));
    block[0] = pool_take(pool, 2 * POOL_STEP, NULL);
    OK_CU(cu.cuStreamSynchronize(NULL));
    assert_int_equal(pool_reserved(pool), 4 * POOL_STEP);
    block[1] = step[1];
    block[2] = step[3];
    return block[0] + POOL_STEP;
}

void pool_free_steps(const CUdeviceptr block[3]) {
    for (size_t i = 0; i < 3; i++)
        OK_CU(cu.cuMemFreeAsync(block[i], NULL));
    OK_CU(cu.cuStreamSynchronize(NULL));
}

uint64_t pool_number(CUmemoryPool pool, CUmemPool_attribute attribute) {
    uint64_t value = 0xfeedfeedfeedfeed;
    OK_CU(cu.cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

int pool_flag(CUmemoryPool pool, CUmemPool_attribute attribute) {
    int value = -1;
    OK_CU(cu.cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

void pool_set_flag(CUmemoryPool pool, CUmemPool_attribute attribute, int value) {
    OK_CU(cu.cuMemPoolSetAttribute(pool, attribute, &value));
}

void pool_set_threshold(CUmemoryPool pool, uint64_t bytes) {
    OK_CU(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}

uint64_t pool_reserved(CUmemoryPool pool) {
    return pool_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
}

uint64_t pool_used(CUmemoryPool pool) {
    return pool_number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
}
