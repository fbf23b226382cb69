/* Managed memory: one address and the same bytes for the CPU and the device. */
#include "harness.h"

#define SIZE ((size_t)3 << 20)

static unsigned char *bytes_of(CUdeviceptr p) {
    return (unsigned char *)(uintptr_t)p;
}

TEST(cpu_and_device_see_the_same_bytes) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
    static unsigned char plain[4096];
    CUdeviceptr m = MADE_CU(CUdeviceptr, cuMemAllocManaged, SIZE, CU_MEM_ATTACH_GLOBAL);
    CUdeviceptr d = MADE_CU(CUdeviceptr, cuMemAlloc_v2, SIZE);
    fill_pattern(bytes_of(m), SIZE, 1);
    OK_CU(cu.cuMemcpyDtoH_v2(plain, m + 4096, sizeof plain));
    assert_memory_equal(plain, bytes_of(m) + 4096, sizeof plain);
    OK_CU(cu.cuMemcpyDtoD_v2(d, m, SIZE));
    set_bytes(m, 9, SIZE);
    assert_int_equal(bytes_of(m)[SIZE - 1], 9);
    OK_CU(cu.cuMemcpyDtoD_v2(m, d, SIZE));
    OK_CU(cu.cuCtxSynchronize());
    assert_true(has_pattern(bytes_of(m), SIZE, 1));
    DESTROY_CU(d, m);
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(m));
}

TEST(the_cpu_accesses_managed_memory_while_the_device_works) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
    CUdeviceptr m = MADE_CU(CUdeviceptr, cuMemAllocManaged, 2 * 4096, CU_MEM_ATTACH_GLOBAL);
    CUstream s = new_stream();
    bytes_of(m)[0] = 1;
    struct gate gate = hold(s);
    OK_CU(cu.cuMemsetD8Async(m, 5, 4096, s));
    assert_int_equal(bytes_of(m)[0], 1);
    bytes_of(m)[4096] = 2;
    FAILS_CU(NOT_READY, cu.cuStreamQuery(s));
    gate_drain(&gate, s);
    assert_int_equal(bytes_of(m)[0], 5);
    assert_int_equal(bytes_of(m)[4096], 2);
    OK_CU(cu.cuMemFree_v2(m));
}

TEST(invalid_managed_allocations_are_refused) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    CUdeviceptr m = 1;
    static const unsigned flags[] = {0, 3, 4, 5, 8};
    for (size_t i = 0; i < COUNT(flags); i++) {
        FAILS_CU(INVALID_VALUE, cu.cuMemAllocManaged(&m, 4096, flags[i]));
        assert_int_equal(m, 0);
    }
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemAllocManaged(&m, (size_t)-1 / 2, CU_MEM_ATTACH_GLOBAL));
}

static unsigned number(CUpointer_attribute attribute, CUdeviceptr p) {
    unsigned value = 77;
    OK_CU(cu.cuPointerGetAttribute(&value, attribute, p));
    return value;
}

TEST(pointer_attributes_report_managed_memory) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    CUdeviceptr m, got = 0;
    size_t size = 0;
    OK_CU(cu.cuMemAllocManaged(&m, 10000, CU_MEM_ATTACH_HOST));
    assert_int_equal(number(CU_POINTER_ATTRIBUTE_IS_MANAGED, m + 9999), 1);
    assert_int_equal(number(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, m), CU_MEMORYTYPE_DEVICE);
    assert_int_equal(number(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, m), 1);
    assert_int_equal(number(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, m), dev);
    assert_int_equal(number(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, m), 3);
    assert_int_equal(number(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, m), 0);
    OK_CU(cu.cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_HOST_POINTER, m + 5));
    assert_int_equal(got, m + 5);
    OK_CU(cu.cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, m + 5));
    assert_int_equal(got, m + 5);
    CUcontext owner = MADE_CU(CUcontext, cuPointerGetAttribute, CU_POINTER_ATTRIBUTE_CONTEXT, m);
    assert_ptr_equal(owner, ctx);
    OK_CU(cu.cuMemGetAddressRange_v2(&got, &size, m + 5000));
    assert_int_equal(got, m);
    assert_int_equal(size, 10000);
    OK_CU(cu.cuMemFree_v2(m));
    unsigned value;
    FAILS_CU(INVALID_VALUE, cu.cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_IS_MANAGED, m));
}

TEST(managed_memory_ends_with_its_context) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    unsigned value;
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    CUdeviceptr m = MADE_CU(CUdeviceptr, cuMemAllocManaged, 4096, CU_MEM_ATTACH_GLOBAL);
    assert_int_equal(number(CU_POINTER_ATTRIBUTE_IS_MANAGED, m), 1);
    OK_CU(cu.cuCtxDestroy_v2(other));
    FAILS_CU(INVALID_VALUE, cu.cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_IS_MANAGED, m));
}

TEST(calls_for_pinned_memory_refuse_managed_memory) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    CUdeviceptr m, got;
    CUipcMemHandle handle;
    OK_CU(cu.cuMemAllocManaged(&m, 8192, CU_MEM_ATTACH_GLOBAL));
    void *p = (void *)(uintptr_t)m;
    FAILS_CU(INVALID_VALUE, cu.cuMemFreeHost(p));
    FAILS_CU(INVALID_VALUE, cu.cuMemHostUnregister(p));
    FAILS_CU(INVALID_VALUE, cu.cuMemHostRegister_v2(p, 4096, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemHostGetDevicePointer_v2(&got, p, 0));
    FAILS_CU(INVALID_VALUE, cu.cuIpcGetMemHandle(&handle, m));
    FAILS_CU(NOT_SUPPORTED, cu.cuMemFreeAsync(m, NULL));
    FAILS_CU(INVALID_VALUE, cu.cuStreamWriteValue32_v2(NULL, m, 7, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(m + 4096));
    OK_CU(cu.cuMemFree_v2(m));
}
