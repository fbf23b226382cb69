/* cuMemGetAddressRange of all kinds of memory, and address ranges as DMA buffers. */
#include "harness.h"

#include <fcntl.h>

#define CHUNK ((size_t)2 << 20)

static bool is_range(CUdeviceptr at, CUdeviceptr start, size_t size) {
    CUdeviceptr base = 1;
    size_t bytes = 1;
    OK_CU(cu.cuMemGetAddressRange_v2(&base, &bytes, at));
    return base == start && bytes == size;
}

TEST(an_address_range_has_the_bounds_of_its_allocation) {
    CUdeviceptr pooled, m = 0, base = 1;
    size_t size = 1;
    CUdeviceptr d = new_memory(10000);
    OK_CU(cu.cuMemAllocAsync(&pooled, 5000, NULL));
    void *pinned = new_pinned(3000, 0);
    assert_true(is_range(d + 9999, d, 10000));
    assert_true(is_range(pooled + 4999, pooled, 5000));
    assert_true(is_range((CUdeviceptr)(uintptr_t)pinned + 5, (CUdeviceptr)(uintptr_t)pinned, 3000));
    if (device_attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)) {
        OK_CU(cu.cuMemAllocManaged(&m, 700, CU_MEM_ATTACH_GLOBAL));
        assert_true(is_range(m + 699, m, 700));
        OK_CU(cu.cuMemFree_v2(m));
    }
    FAILS_CU(NOT_FOUND, cu.cuMemGetAddressRange_v2(&base, &size, (CUdeviceptr)(uintptr_t)&size));
    assert_int_equal(base, 0);
    assert_int_equal(size, 0);
    OK_CU(cu.cuMemFreeAsync(pooled, NULL));
    OK_CU(cu.cuCtxSynchronize());
}

TEST(a_dma_buffer_is_a_valid_descriptor) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
    int fd = -2;
    CUdeviceptr d = new_memory(4 * CHUNK);
    OK_CU(cu.cuMemGetHandleForAddressRange(&fd, d + 65536, CHUNK,
                                           CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    assert_true(fd >= 0);
    assert_int_not_equal(fcntl(fd, F_GETFD), -1);
    close(fd);
}

TEST(invalid_dma_buffer_ranges_are_refused) {
    const CUmemRangeHandleType type = CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD;
    int fd = 77;
    CUdeviceptr d = new_memory(4 * CHUNK);
    FAILS_CU(INVALID_VALUE, cu.cuMemGetHandleForAddressRange(&fd, d, 100, type, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemGetHandleForAddressRange(&fd, d, 0, type, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemGetHandleForAddressRange(&fd, d + 1, 4096, type, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemGetHandleForAddressRange(&fd, d, CHUNK, type, 2));
    FAILS_CU(INVALID_VALUE, cu.cuMemGetHandleForAddressRange(&fd, 0, CHUNK, type, 0));
    FAILS_CU(INVALID_VALUE,
             cu.cuMemGetHandleForAddressRange(&fd, d, CHUNK, (CUmemRangeHandleType)2, 0));
    assert_int_equal(fd, 77);
    FAILS_CU(INVALID_VALUE, cu.cuMemGetHandleForAddressRange(&fd, d, 8 * CHUNK, type, 0));
    assert_int_equal(fd, -1);
    FAILS_CU(NOT_SUPPORTED, cu.cuMemGetHandleForAddressRange(
                                &fd, d, CHUNK, type, CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE));
    if (!device_attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED))
        FAILS_CU(NOT_SUPPORTED, cu.cuMemGetHandleForAddressRange(&fd, d, CHUNK, type, 0));
}

TEST(gpu_direct_rdma_writes_can_be_flushed) {
    if (!(device_attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS) &
          CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST))
        SKIP("the device cannot be asked to");
    const CUflushGPUDirectRDMAWritesTarget here =
        CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX;
    OK_CU(cu.cuFlushGPUDirectRDMAWrites(here, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
    OK_CU(cu.cuFlushGPUDirectRDMAWrites(here, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES));
    FAILS_CU(INVALID_VALUE,
             cu.cuFlushGPUDirectRDMAWrites(here, (CUflushGPUDirectRDMAWritesScope)150));
}
