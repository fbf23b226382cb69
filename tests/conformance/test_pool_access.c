/* Who may read and write the memory of a pool. */
#include "pools.h"

static CUmemAccess_flags access_of(CUmemoryPool pool, CUmemLocationType type, int id) {
    CUmemLocation location = {.type = type, .id = id};
    CUmemAccess_flags flags = (CUmemAccess_flags)77;
    OK(cu.cuMemPoolGetAccess(&flags, pool, &location));
    return flags;
}

static CUresult set_access(CUmemoryPool pool, int device, CUmemAccess_flags flags) {
    CUmemAccessDesc desc = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                            .flags = flags};
    return cu.cuMemPoolSetAccess(pool, &desc, 1);
}

static void own_device_has_it(void **state) {
    (void)state;
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_DEVICE, dev), 3);
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_HOST, 0), 0);
    OK(set_access(pool, dev, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    FAILS(CUDA_ERROR_INVALID_DEVICE, set_access(pool, dev, CU_MEM_ACCESS_FLAGS_PROT_NONE));
    FAILS(CUDA_ERROR_NOT_SUPPORTED, set_access(pool, dev, CU_MEM_ACCESS_FLAGS_PROT_READ));
    FAILS(CUDA_ERROR_INVALID_DEVICE, set_access(pool, 99, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    FAILS(CUDA_ERROR_INVALID_VALUE, set_access(pool, dev, (CUmemAccess_flags)2));
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_DEVICE, dev), 3);
    pool_end(pool);
}

/* The rights hold for what is allocated already and for what comes later. */
static void host_pool_is_opened_to_the_device(void **state) {
    (void)state;
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_HOST, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUstream stream = stream_make();
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_HOST, 0), 3);
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_DEVICE, dev), 0);
    CUdeviceptr p = pool_take(pool, 4096, stream);
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemsetD8Async(p, 0x21, 4096, stream));
    OK(set_access(pool, dev, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_DEVICE, dev), 3);
    CUdeviceptr q = pool_take(pool, 64 * MIB, stream);
    OK(cu.cuMemsetD8Async(p, 0x21, 4096, stream));
    OK(cu.cuMemsetD8Async(q, 0x22, 4096, stream));
    OK(cu.cuStreamSynchronize(stream));
    assert_int_equal(*(volatile unsigned char *)(uintptr_t)(p + 4095), 0x21);
    assert_int_equal(*(volatile unsigned char *)(uintptr_t)q, 0x22);
    OK(set_access(pool, dev, CU_MEM_ACCESS_FLAGS_PROT_NONE));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemsetD8Async(q, 0x23, 4096, stream));
    OK(cu.cuMemFreeAsync(p, stream));
    OK(cu.cuMemFreeAsync(q, stream));
    stream_end(stream);
    pool_end(pool);
}

static void peer(void **state) {
    (void)state;
    NEEDS_DEVICES(2);
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUcontext other;
    CUdeviceptr p = pool_take(pool, 4096, NULL);
    OK(cu.cuCtxSynchronize());
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_DEVICE, 1), 0);
    OK(set_access(pool, 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_DEVICE, 1), 3);
    OK(cu.cuDevicePrimaryCtxRetain(&other, 1));
    OK(cu.cuCtxSetCurrent(other));
    OK(cu.cuMemsetD8_v2(p, 0x31, 4096));
    OK(cu.cuCtxSynchronize());
    OK(cu.cuCtxSetCurrent(ctx));
    unsigned char byte = 0;
    OK(cu.cuMemcpyDtoH_v2(&byte, p, 1));
    assert_int_equal(byte, 0x31);
    OK(cu.cuDevicePrimaryCtxRelease_v2(1));
    OK(cu.cuMemFreeAsync(p, NULL));
    pool_end(pool);
}

static void whole_list_or_nothing(void **state) {
    (void)state;
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_HOST, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUmemAccessDesc desc[2] = {
        {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev},
         .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
        {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 99},
         .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
    };
    FAILS(CUDA_ERROR_INVALID_DEVICE, cu.cuMemPoolSetAccess(pool, desc, 2));
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_DEVICE, dev), 0);
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemPoolSetAccess(pool, NULL, 1));
    OK(cu.cuMemPoolSetAccess(pool, desc, 0));
    pool_end(pool);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(own_device_has_it),
        TEST(host_pool_is_opened_to_the_device),
        TEST(peer),
        TEST(whole_list_or_nothing),
    };
    return conformance(argc, argv, tests, COUNT(tests), NULL, 0);
}
