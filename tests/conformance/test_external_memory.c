/* External memory by descriptor. On hardware only a graphics driver makes descriptors that can be
 * imported; softgpu takes memory files as well. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#define PAGE      ((size_t)2 << 20)
#define FD        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define SEALS     (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define NEEDS_FDS NEEDS_SOFTGPU("hardware imports what a graphics driver exported")

/* A memory file, mapped; *fd is to be imported. */
static unsigned char *memory_file(size_t size, int seals, int *fd) {
    *fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(*fd >= 0);
    assert_int_equal(ftruncate(*fd, (off_t)size), 0);
    if (seals)
        assert_int_equal(fcntl(*fd, F_ADD_SEALS, seals), 0);
    unsigned char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    assert_true(bytes != MAP_FAILED);
    return bytes;
}

static CUDA_EXTERNAL_MEMORY_HANDLE_DESC description(int fd, size_t size) {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;
    memset(&desc, 0, sizeof desc);
    desc.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    desc.handle.fd = fd;
    desc.size = size;
    return desc;
}

static CUexternalMemory import(int fd, size_t size) {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = description(fd, size);
    CUexternalMemory memory = MADE_CU(CUexternalMemory, cuImportExternalMemory, &desc);
    assert_non_null(memory);
    return memory;
}

static CUresult map_result(CUexternalMemory memory, size_t offset, size_t size, CUdeviceptr *p) {
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC desc = {.offset = offset, .size = size};
    return cu.cuExternalMemoryGetMappedBuffer(p, memory, &desc);
}

static CUdeviceptr map(CUexternalMemory memory, size_t offset, size_t size) {
    CUdeviceptr p = 0;
    OK_CU(map_result(memory, offset, size, &p));
    assert_true(p != 0);
    return p;
}

static bool is_open(int fd) {
    return fcntl(fd, F_GETFD) >= 0;
}

/* Bytes go both ways between `bytes` (plain memory) and a buffer of the same memory. */
static void check_same(unsigned char *bytes, CUdeviceptr p, size_t size) {
    unsigned char *copy = malloc(size);
    fill_pattern(bytes, size, 1);
    OK_CU(cu.cuMemcpyDtoH_v2(copy, p, size));
    assert_true(has_pattern(copy, size, 1));
    fill_pattern(copy, size, 2);
    OK_CU(cu.cuMemcpyHtoD_v2(p, copy, size));
    OK_CU(cu.cuCtxSynchronize());
    assert_true(has_pattern(bytes, size, 2));
    free(copy);
}

TEST_WHERE(a_sealed_memory_file_can_be_imported, NEEDS_FDS) {
    int fd;
    unsigned char *bytes = memory_file(100000, SEALS, &fd);
    CUexternalMemory memory = import(fd, 100000);
    assert_false(is_open(fd)); /* it is the driver's now */
    CUdeviceptr p = map(memory, 0, 100000), part = map(memory, 4096, 1000);
    check_same(bytes, p, 100000);
    check_same(bytes + 4096, part, 1000);
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD8_v2(part, 1, 1001));
    OK_CU(cu.cuMemFree_v2(part));
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(part));
    DESTROY_CU(p, memory);
    munmap(bytes, 100000);
}

/* What Mesa's llvmpipe makes: size of the file, where the data begin, 16 bytes of identity. */
TEST_WHERE(the_header_of_lavapipe_memory_is_skipped, NEEDS_FDS) {
    static const size_t starts[] = {4096, 64, 256, 65536};
    for (size_t i = 0; i < COUNT(starts); i++) {
        size_t size = 50000, whole = starts[i] + size;
        int fd;
        unsigned char *bytes = memory_file(whole, SEALS, &fd);
        uint64_t header[2] = {whole, starts[i]};
        memcpy(bytes, header, sizeof header);
        CUexternalMemory memory = import(fd, size);
        CUdeviceptr p = map(memory, 0, size);
        check_same(bytes + starts[i], p, size);
        FAILS_CU(INVALID_VALUE, map_result(memory, 1, size, &p));
        DESTROY_CU(p, memory);
        munmap(bytes, whole);
    }
}

/* The header says less than there is, or more: then the file is plain memory. */
TEST_WHERE(an_inconsistent_header_is_read_as_plain_bytes, NEEDS_FDS) {
    static const uint64_t headers[][2] = {{8191, 4096}, {8192, 8192}, {8192, 16}, {8192, 4097}};
    for (size_t i = 0; i < COUNT(headers); i++) {
        unsigned char seen[16];
        int fd;
        unsigned char *bytes = memory_file(8192, SEALS, &fd);
        memcpy(bytes, headers[i], 16);
        CUexternalMemory memory = import(fd, 8192);
        CUdeviceptr p = map(memory, 0, 8192);
        OK_CU(cu.cuMemcpyDtoH_v2(seen, p, 16));
        assert_memory_equal(seen, headers[i], 16);
        DESTROY_CU(p, memory);
        munmap(bytes, 8192);
    }
}

static int exported(CUmemGenericAllocationHandle *handle) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    int fd = -1;
    prop.location = device_location(dev);
    prop.requestedHandleTypes = FD;
    OK_CU(cu.cuMemCreate(handle, PAGE, &prop, 0));
    OK_CU(cu.cuMemExportToShareableHandle(&fd, *handle, FD, 0));
    return fd;
}

static CUdeviceptr map_handle(CUmemGenericAllocationHandle handle) {
    CUmemAccessDesc desc = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    desc.location = device_location(dev);
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAddressReserve, PAGE, 0, 0, 0);
    OK_CU(cu.cuMemMap(p, PAGE, 0, handle, 0));
    OK_CU(cu.cuMemSetAccess(p, PAGE, &desc, 1));
    return p;
}

TEST_WHERE(an_export_of_the_driver_can_be_imported_as_external_memory, NEEDS_DESCRIPTORS()) {
    CUmemGenericAllocationHandle handle;
    int fd = exported(&handle);
    CUexternalMemory memory = import(fd, PAGE);
    CUdeviceptr mapped = map_handle(handle), p = map(memory, 0, PAGE);
    OK_CU(cu.cuMemsetD32_v2(mapped, 0x12345678, PAGE / 4));
    assert_int_equal(word_at(p + PAGE - 4), 0x12345678);
    unmap_and_free(mapped, PAGE, handle);
    /* Memory and buffer live on, without the handle and without the external memory. */
    OK_CU(cu.cuDestroyExternalMemory(memory));
    OK_CU(cu.cuMemsetD32_v2(p, 0x0badf00d, 1));
    assert_int_equal(word_at(p), 0x0badf00d);
    OK_CU(cu.cuMemFree_v2(p));
}

static void refuse(CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc) {
    CUexternalMemory memory = (CUexternalMemory)(uintptr_t)1;
    assert_int_not_equal(cu.cuImportExternalMemory(&memory, &desc), CUDA_SUCCESS);
    assert_true(memory == (CUexternalMemory)(uintptr_t)1);
}

/* A descriptor that is no memory's is gone all the same, as on H200; one that was not looked at
 * stays the caller's. */
TEST(descriptors_that_are_not_memory_are_refused) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), open_ended;
    unsigned char *bytes = memory_file(4096, 0, &open_ended);
    refuse(description(-1, 4096));
    refuse(description(9999, 4096));
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = description(null, 4096);
    desc.type = (CUexternalMemoryHandleType)0;
    refuse(desc);
    desc.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD;
    refuse(desc);
    desc = description(null, 4096);
    desc.flags = 2;
    refuse(desc);
    refuse(description(null, 0));
    assert_true(is_open(null));
    refuse(description(null, 4096));
    assert_false(is_open(null));
    refuse(description(open_ended, 4096));
    assert_false(is_open(open_ended));
    munmap(bytes, 4096);
}

TEST_WHERE(invalid_sizes_and_flags_are_refused, NEEDS_FDS) {
    int fd;
    unsigned char *bytes = memory_file(8192, SEALS, &fd);
    refuse(description(fd, 0));
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = description(fd, 8192);
    desc.flags = 2;
    refuse(desc);
    desc.flags = CUDA_EXTERNAL_MEMORY_DEDICATED;
    assert_true(is_open(fd));
    CUexternalMemory memory = MADE_CU(CUexternalMemory, cuImportExternalMemory, &desc);
    CUdeviceptr p = 7;
    FAILS_CU(INVALID_VALUE, map_result(memory, 0, 0, &p));
    FAILS_CU(INVALID_VALUE, map_result(memory, 0, 8193, &p));
    FAILS_CU(INVALID_VALUE, map_result(memory, 8192, 1, &p));
    FAILS_CU(INVALID_VALUE, map_result(memory, SIZE_MAX, 2, &p));
    assert_int_equal(p, 7);
    OK_CU(cu.cuDestroyExternalMemory(memory));
    munmap(bytes, 8192);
}

/* A size that is too large shows when the memory is mapped. */
TEST_WHERE(an_excessive_size_is_refused_when_mapped, NEEDS_FDS) {
    int fd;
    unsigned char *bytes = memory_file(8192, SEALS, &fd);
    CUexternalMemory memory = import(fd, 10000);
    CUdeviceptr p = 0;
    FAILS_CU(INVALID_VALUE, map_result(memory, 0, 10000, &p));
    p = map(memory, 0, 8192);
    check_same(bytes, p, 8192);
    DESTROY_CU(p, memory);
    munmap(bytes, 8192);
}

TEST_WHERE(a_destroyed_external_memory_handle_is_refused, NEEDS_FDS) {
    CUdeviceptr p;
    int fd;
    unsigned char *bytes = memory_file(4096, SEALS, &fd);
    CUexternalMemory memory = import(fd, 4096);
    OK_CU(cu.cuDestroyExternalMemory(memory));
    FAILS_CU(INVALID_HANDLE, cu.cuDestroyExternalMemory(memory));
    FAILS_CU(INVALID_HANDLE, map_result(memory, 0, 4096, &p));
    munmap(bytes, 4096);
}

/* Buffers and memory of a context that ends, with it: the state is as before. */
TEST_WHERE(external_memory_is_destroyed_with_its_context, NEEDS_FDS) {
    int fd;
    unsigned char *bytes = memory_file(4096, SEALS, &fd);
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    CUexternalMemory memory = import(fd, 4096);
    CUdeviceptr p = map(memory, 0, 4096);
    OK_CU(cu.cuCtxDestroy_v2(other));
    OK_CU(cu.cuCtxSetCurrent(ctx));
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(p));
    FAILS_CU(INVALID_HANDLE, cu.cuDestroyExternalMemory(memory));
    munmap(bytes, 4096);
}

/* Levels lie in the memory from the offset on. */
TEST_WHERE(arrays_are_mapped_into_external_memory, NEEDS_FDS) {
    int fd;
    unsigned char *bytes = memory_file(PAGE, SEALS, &fd), row[64];
    CUexternalMemory memory = import(fd, PAGE);
    CUDA_ARRAY3D_DESCRIPTOR told;
    CUmipmappedArray mipmap;
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC desc = {.offset = 65536,
                                                      .numLevels = 2,
                                                      .arrayDesc.Width = 64,
                                                      .arrayDesc.Height = 64,
                                                      .arrayDesc.Format =
                                                          CU_AD_FORMAT_UNSIGNED_INT8,
                                                      .arrayDesc.NumChannels = 1};
    OK_CU(cu.cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &desc));
    CUarray level = MADE_CU(CUarray, cuMipmappedArrayGetLevel, mipmap, 0);
    OK_CU(cu.cuArray3DGetDescriptor_v2(&told, level));
    assert_int_equal(told.Width, 64);
    fill_pattern(row, sizeof row, 3);
    OK_CU(cu.cuMemcpyHtoA_v2(level, 0, row, sizeof row));
    OK_CU(cu.cuCtxSynchronize());
    assert_memory_equal(bytes + 65536, row, sizeof row);
    OK_CU(cu.cuMipmappedArrayDestroy(mipmap));
    desc.arrayDesc.Width = desc.arrayDesc.Height = 4096;
    assert_int_not_equal(cu.cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &desc),
                         CUDA_SUCCESS);
    OK_CU(cu.cuDestroyExternalMemory(memory));
    munmap(bytes, PAGE);
}

/* An array that outlives its memory keeps to its own bytes. */
TEST_WHERE(an_array_may_outlive_its_external_memory, NEEDS_FDS) {
    int fd;
    unsigned char *bytes = memory_file(PAGE, SEALS, &fd), row[64], copy[64];
    CUexternalMemory memory = import(fd, PAGE);
    CUmipmappedArray mipmap;
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC desc = {.numLevels = 1,
                                                      .arrayDesc.Width = 64,
                                                      .arrayDesc.Format =
                                                          CU_AD_FORMAT_UNSIGNED_INT8,
                                                      .arrayDesc.NumChannels = 1};
    OK_CU(cu.cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &desc));
    CUarray level = MADE_CU(CUarray, cuMipmappedArrayGetLevel, mipmap, 0);
    OK_CU(cu.cuDestroyExternalMemory(memory));
    CUdeviceptr other = MADE_CU(CUdeviceptr, cuMemAlloc_v2, PAGE);
    OK_CU(cu.cuMemsetD8_v2(other, 9, PAGE));
    fill_pattern(row, sizeof row, 3);
    OK_CU(cu.cuMemcpyHtoA_v2(level, 0, row, sizeof row));
    OK_CU(cu.cuMemcpyDtoH_v2(copy, other, sizeof copy));
    assert_int_equal(copy[0], 9);
    OK_CU(cu.cuCtxSynchronize());
    assert_memory_equal(bytes, row, sizeof row);
    DESTROY_CU(other, mipmap);
    munmap(bytes, PAGE);
}
