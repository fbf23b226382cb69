/*
 * The API of CUDA 2 to 3.1, with addresses of 32 bits: it works in a context of its time, and only
 * there. Such a context and one of today do not go together, so each part has a process of its own.
 */
#include "harness.h"

#define SIZE 4096u

struct old {
    CUcontext context;
    CUdeviceptr_v1 a, b;
    unsigned char host[SIZE];
};

static void begin(struct old *old) {
    memset(old, 0, sizeof *old);
    OK_CU(cu.cuInit(0));
    OK_CU(cu.cuCtxCreate(&old->context, 0, 0));
    OK_CU(cu.cuMemAlloc(&old->a, SIZE));
    OK_CU(cu.cuMemAlloc(&old->b, SIZE));
    assert_true(old->a != 0 && old->b != 0 && old->a != old->b);
}

static int end(struct old *old) {
    OK_CU(cu.cuMemFree(old->a));
    OK_CU(cu.cuMemFree(old->b));
    OK_CU(cu.cuCtxDestroy(old->context));
    return 0;
}

static unsigned char fetch(struct old *old, CUdeviceptr_v1 at) {
    unsigned char byte = 0;
    OK_CU(cu.cuMemcpyDtoH(&byte, at, 1));
    return byte;
}

CHILD_TEST(a_32_bit_context_allocates) {
    struct old old;
    CUdeviceptr_v1 base = 0, p = 77;
    unsigned size = 0, pitch = 0, freed = 0, total = 0;
    begin(&old);
    OK_CU(cu.cuMemGetAddressRange(&base, &size, old.a + 100));
    assert_int_equal(base, old.a);
    assert_int_equal(size, SIZE);
    FAILS_CU(INVALID_VALUE, cu.cuMemAlloc(&p, 0));
    assert_int_equal(p, 0);
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemAlloc(&p, 0xffffffffu));
    OK_CU(cu.cuMemAllocPitch(&p, &pitch, 100, 2, 4));
    assert_int_equal(pitch, 512);
    OK_CU(cu.cuMemGetAddressRange(NULL, &size, p));
    assert_int_equal(size, 1024);
    OK_CU(cu.cuMemFree(p));
    FAILS_CU(INVALID_VALUE, cu.cuMemFree(p));
    FAILS_CU(NOT_FOUND, cu.cuMemGetAddressRange(&base, NULL, p));
    OK_CU(cu.cuMemGetInfo(&freed, &total));
    assert_true(total > 0 && freed > 0);
    return end(&old);
}

CHILD_TEST(a_32_bit_context_copies) {
    struct old old;
    begin(&old);
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, 0);
    fill_pattern(old.host, SIZE, 3);
    OK_CU(cu.cuMemcpyHtoD(old.a, old.host, SIZE));
    OK_CU(cu.cuMemcpyDtoD(old.b, old.a, SIZE));
    memset(old.host, 0, SIZE);
    OK_CU(cu.cuMemcpyDtoH(old.host, old.b, SIZE));
    assert_true(has_pattern(old.host, SIZE, 3));
    fill_pattern(old.host, SIZE, 4);
    OK_CU(cu.cuMemcpyHtoDAsync(old.a, old.host, SIZE, stream));
    OK_CU(cu.cuMemcpyDtoDAsync(old.b, old.a, SIZE, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    memset(old.host, 0, SIZE);
    OK_CU(cu.cuMemcpyDtoHAsync(old.host, old.b, SIZE, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_true(has_pattern(old.host, SIZE, 4));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyHtoD(old.a, old.host, SIZE + 1));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoH(old.host, 0x1000, 16));
    OK_CU(cu.cuStreamDestroy(stream));
    return end(&old);
}

CHILD_TEST(a_32_bit_context_runs_memsets) {
    struct old old;
    begin(&old);
    OK_CU(cu.cuMemsetD8(old.a, 1, SIZE));
    assert_int_equal(fetch(&old, old.a + SIZE - 1), 1);
    OK_CU(cu.cuMemsetD16(old.a, 0x0202, 4));
    assert_int_equal(fetch(&old, old.a + 7), 2);
    assert_int_equal(fetch(&old, old.a + 8), 1);
    OK_CU(cu.cuMemsetD32(old.a, 0x03030303, 4));
    assert_int_equal(fetch(&old, old.a + 15), 3);
    OK_CU(cu.cuMemsetD2D8(old.a + 512, 64, 4, 16, 2));
    assert_int_equal(fetch(&old, old.a + 512 + 79), 4);
    assert_int_equal(fetch(&old, old.a + 512 + 80), 1);
    OK_CU(cu.cuMemsetD2D16(old.a + 512, 64, 0x0505, 8, 2));
    assert_int_equal(fetch(&old, old.a + 512 + 79), 5);
    OK_CU(cu.cuMemsetD2D32(old.a + 512, 64, 0x06060606, 4, 2));
    assert_int_equal(fetch(&old, old.a + 512 + 79), 6);
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD16(old.a + 1, 1, 2));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD8(0x1000, 1, 16));
    return end(&old);
}

CHILD_TEST(a_32_bit_context_accesses_pinned_memory) {
    struct old old;
    CUdeviceptr_v1 at = 0;
    begin(&old);
    void *plain = MADE_CU(void *, cuMemAllocHost, SIZE);
    void *mapped = MADE_CU(void *, cuMemHostAlloc, SIZE, CU_MEMHOSTALLOC_DEVICEMAP);
    FAILS_CU(INVALID_VALUE, cu.cuMemHostGetDevicePointer(&at, plain, 0));
    OK_CU(cu.cuMemHostGetDevicePointer(&at, mapped, 0));
    memset(mapped, 9, SIZE);
    OK_CU(cu.cuMemcpyDtoD(old.a, at, SIZE));
    assert_int_equal(fetch(&old, old.a + SIZE - 1), 9);
    memset(plain, 8, SIZE);
    OK_CU(cu.cuMemcpyHtoD(old.a, plain, SIZE));
    assert_int_equal(fetch(&old, old.a), 8);
    OK_CU(cu.cuMemFreeHost(plain));
    OK_CU(cu.cuMemFreeHost(mapped));
    return end(&old);
}

CHILD_TEST(a_32_bit_context_refuses_64_bit_addresses) {
    struct old old;
    CUdeviceptr wide = 77;
    size_t bytes = 77;
    begin(&old);
    FAILS_CU(INVALID_CONTEXT, cu.cuMemAlloc_v2(&wide, SIZE));
    assert_true(wide == 0);
    FAILS_CU(INVALID_CONTEXT, cu.cuMemGetInfo_v2(&bytes, NULL));
    assert_true(bytes == 0);
    FAILS_CU(INVALID_CONTEXT, cu.cuMemcpyHtoD_v2(old.a, old.host, 16));
    FAILS_CU(INVALID_CONTEXT, cu.cuMemsetD8_v2(old.a, 1, 16));
    FAILS_CU(INVALID_CONTEXT, cu.cuMemFree_v2(old.a));
    return end(&old);
}

/* Its addresses are wide, so that nothing in the context that asked for it can be done with it. */
CHILD_TEST(a_32_bit_context_keeps_pool_memory) {
    struct old old;
    begin(&old);
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_DEFAULT);
    CUdeviceptr wide = MADE_CU(CUdeviceptr, cuMemAllocAsync, SIZE, stream);
    FAILS_CU(INVALID_CONTEXT, cu.cuMemsetD8Async(wide, 1, 16, stream));
    FAILS_CU(INVALID_VALUE, cu.cuMemFreeAsync(wide, stream));
    OK_CU(cu.cuStreamDestroy_v2(stream));
    end(&old);
    if (soft) { /* what becomes of it on hardware is not known */
        CUcontext primary = MADE_CU(CUcontext, cuDevicePrimaryCtxRetain, 0);
        OK_CU(cu.cuCtxSetCurrent(primary));
        OK_CU(cu.cuMemsetD8Async(wide, 1, 16, NULL));
        OK_CU(cu.cuMemFreeAsync(wide, NULL));
        OK_CU(cu.cuDevicePrimaryCtxRelease_v2(0));
    }
    return 0;
}

TEST(a_current_context_refuses_the_32_bit_api) {
    CUdeviceptr_v1 p = 77;
    unsigned char byte = 0;
    FAILS_CU(INVALID_CONTEXT, cu.cuMemAlloc(&p, SIZE));
    assert_int_equal(p, 0);
    FAILS_CU(INVALID_CONTEXT, cu.cuMemcpyHtoD(0, &byte, 1));
    FAILS_CU(INVALID_CONTEXT, cu.cuMemsetD8(0, 1, 1));
}
