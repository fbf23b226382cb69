/* Address ranges as DMA buffers: which bytes a buffer has. softgpu makes them with /dev/udmabuf; a
 * stand-in takes its place where there is none. Hardware's buffers are for other devices, and not
 * to be mapped by a program. */
#include "pools.h"
#include "udmabuf.h"

#include <dirent.h>

#define CHUNK ((size_t)2 << 20)
#define PAGE  ((size_t)4096)
#define FD    CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD

static unsigned char host[4 * CHUNK];

static int export_range(CUdeviceptr at, size_t size) {
    int fd = -2;
    OK_CU(cu.cuMemGetHandleForAddressRange(&fd, at, size, FD, 0));
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    return fd;
}

static void refused(CUresult error, CUdeviceptr at, size_t size) {
    int fd = 7;
    ANSWERS_CU(error, cu.cuMemGetHandleForAddressRange(&fd, at, size, FD, 0));
    assert_int_equal(fd, -1);
}

/* A buffer of the range has its bytes: what either side writes, the other one reads. */
static void shares_bytes(CUdeviceptr at, size_t size) {
    assert_true(size <= sizeof host);
    int fd = export_range(at, size);
    unsigned char *map = udmabuf_map(fd, size);
    assert_non_null(map);
    fill_pattern(host, size, 1);
    OK_CU(cu.cuMemcpyHtoD_v2(at, host, size));
    assert_true(has_pattern(map, size, 1));
    fill_pattern(map, size, 2);
    OK_CU(cu.cuMemcpyDtoH_v2(host, at, size));
    assert_true(has_pattern(host, size, 2));
    munmap(map, size);
    udmabuf_close(fd);
}

static unsigned count_descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    unsigned count = 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static CUmemGenericAllocationHandle create(CUdevice device, unsigned types) {
    CUmemGenericAllocationHandle memory;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = device_location(device),
                                .requestedHandleTypes = (CUmemAllocationHandleType)types};
    OK_CU(cu.cuMemCreate(&memory, CHUNK, &prop, 0));
    return memory;
}

/* Maps it there, to be given back by cuMemUnmap alone. */
static void place(CUdeviceptr at, CUmemGenericAllocationHandle memory) {
    CUmemAccessDesc access = {.location = device_location(dev),
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK_CU(cu.cuMemMap(at, CHUNK, 0, memory, 0));
    OK_CU(cu.cuMemRelease(memory));
    OK_CU(cu.cuMemSetAccess(at, CHUNK, &access, 1));
}

/* ---- Tests ----------------------------------------------------------------------------------- */

TEST(the_device_attribute_reports_dma_buffer_support) {
    NEEDS_SOFTGPU("/dev/udmabuf, or a stand-in for it");
    assert_int_equal(device_attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED), 1);
}

TEST_WHERE(a_dma_buffer_has_the_bytes_of_its_range, NEEDS_SOFTGPU("maps a DMA buffer")) {
    CUdeviceptr d = new_memory(4 * CHUNK), small = new_memory(PAGE);
    shares_bytes(d, 4 * CHUNK);
    shares_bytes(d + 65536, CHUNK);
    shares_bytes(d + 3 * CHUNK, CHUNK);
    shares_bytes(d + PAGE, PAGE);
    shares_bytes(small & ~(CUdeviceptr)(PAGE - 1), PAGE);
    /* Nothing beside it: of two buffers of neighbours each has its own. */
    int first = export_range(d, PAGE), second = export_range(d + PAGE, PAGE);
    unsigned char *one = udmabuf_map(first, PAGE), *other = udmabuf_map(second, PAGE);
    assert_non_null(one);
    assert_non_null(other);
    OK_CU(cu.cuMemsetD8_v2(d, 5, PAGE));
    set_bytes(d + PAGE, 6, PAGE);
    assert_true(one[0] == 5 && one[PAGE - 1] == 5);
    assert_true(other[0] == 6 && other[PAGE - 1] == 6);
    munmap(one, PAGE);
    munmap(other, PAGE);
    udmabuf_close(first);
    udmabuf_close(second);
}

/* Pieces lie as they are mapped, not as they were made. */
TEST_WHERE(adjacent_mappings_export_as_one_dma_buffer, NEEDS_DESCRIPTORS()) {
    NEEDS_SOFTGPU("maps a DMA buffer");
    CUdeviceptr range = MADE_CU(CUdeviceptr, cuMemAddressReserve, 4 * CHUNK, 0, 0, 0);
    CUmemGenericAllocationHandle first = create(dev, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                                 second = create(dev, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    place(range + CHUNK, first);
    place(range, second);
    shares_bytes(range, 2 * CHUNK);
    shares_bytes(range + CHUNK - PAGE, 2 * PAGE);
    CUmemGenericAllocationHandle third = create(dev, 0), fourth = create(dev, 0);
    place(range + 3 * CHUNK, third);
    place(range + 2 * CHUNK, fourth);
    shares_bytes(range + 2 * CHUNK, 2 * CHUNK);
    shares_bytes(range + 3 * CHUNK - PAGE, 2 * PAGE);
    OK_CU(cu.cuMemUnmap(range, 4 * CHUNK));
    OK_CU(cu.cuMemAddressFree(range, 4 * CHUNK));
}

TEST_WHERE(pool_memory_can_be_exported_as_a_dma_buffer, NEEDS_POOL_DESCRIPTORS()) {
    NEEDS_SOFTGPU("maps a DMA buffer");
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = device_location(dev),
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
    CUmemoryPool pool = new_pool(&props);
    CUdeviceptr shared = MADE_CU(CUdeviceptr, cuMemAllocFromPoolAsync, 65536, pool, NULL);
    CUdeviceptr own = MADE_CU(CUdeviceptr, cuMemAllocAsync, 65536, NULL);
    OK_CU(cu.cuStreamSynchronize(NULL));
    shares_bytes(own, 65536);
    shares_bytes(shared, 65536);
    OK_CU(cu.cuMemFreeAsync(own, NULL));
    OK_CU(cu.cuMemFreeAsync(shared, NULL));
    OK_CU(cu.cuStreamSynchronize(NULL));
}

/* As they lie there, in a block of several steps that the pool has moved together. */
TEST(a_dma_buffer_crosses_the_steps_of_a_pool) {
    NEEDS_SOFTGPU("maps a DMA buffer");
    CUdeviceptr block[3];
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUdeviceptr between = pool_take_steps(pool, block);
    shares_bytes(between, 4 * CHUNK);
    shares_bytes(between, PAGE);
    /* As on an H200: what begins within a step is refused, unless it is a whole allocation. */
    refused(CUDA_ERROR_INVALID_VALUE, between - CHUNK, 2 * CHUNK);
    refused(CUDA_ERROR_INVALID_VALUE, between + PAGE, PAGE);
    CUdeviceptr small[2] = {pool_take(pool, 2 * CHUNK, NULL), pool_take(pool, CHUNK, NULL)};
    shares_bytes(small[1], CHUNK);
    refused(CUDA_ERROR_INVALID_VALUE, small[1], PAGE);
    refused(CUDA_ERROR_INVALID_VALUE, small[0] + CHUNK, 2 * CHUNK);
    int fd = export_range(block[0], 2 * POOL_STEP);
    unsigned char *map = udmabuf_map(fd, 2 * POOL_STEP);
    assert_non_null(map);
    set_bytes(block[0], 0x21, POOL_STEP);
    set_bytes(between, 0x22, POOL_STEP);
    assert_true(map[0] == 0x21 && map[POOL_STEP - 1] == 0x21 && map[POOL_STEP] == 0x22);
    assert_int_equal(map[2 * POOL_STEP - 1], 0x22);
    munmap(map, 2 * POOL_STEP);
    udmabuf_close(fd);
    for (size_t i = 0; i < 2; i++)
        OK_CU(cu.cuMemFreeAsync(small[i], NULL));
    pool_free_steps(block);
}

/* The pages stay those of the buffer: what is allocated next must have others, without the bytes.
 */
TEST(pages_of_a_dma_buffer_are_not_reused) {
    NEEDS_SOFTGPU("pages that are used again keep their bytes");
    CUdeviceptr d = MADE_CU(CUdeviceptr, cuMemAlloc_v2, CHUNK);
    fill_pattern(host, CHUNK, 3);
    OK_CU(cu.cuMemcpyHtoD_v2(d, host, CHUNK));
    int fd = export_range(d + PAGE, PAGE);
    OK_CU(cu.cuMemFree_v2(d));
    OK_CU(cu.cuMemAlloc_v2(&d, CHUNK));
    OK_CU(cu.cuMemcpyDtoH_v2(host, d, CHUNK));
    assert_false(has_pattern(host, CHUNK, 3));
    OK_CU(cu.cuMemFree_v2(d));
    udmabuf_close(fd);
}

/* As documented: all of a range is mapped, of one device, with the same properties. */
TEST_WHERE(a_range_of_unlike_mappings_is_refused, NEEDS_DESCRIPTORS()) {
    NEEDS_SOFTGPU("documented, but not how hardware answers");
    CUdeviceptr range = MADE_CU(CUdeviceptr, cuMemAddressReserve, 3 * CHUNK, 0, 0, 0);
    place(range, create(dev, 0));
    refused(CUDA_ERROR_INVALID_VALUE, range, 2 * CHUNK);
    place(range + CHUNK, create(dev, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    refused(CUDA_ERROR_INVALID_VALUE, range, 2 * CHUNK);
    shares_bytes(range + CHUNK, CHUNK);
    int reaches = 0;
    if (device_count > 1)
        OK_CU(cu.cuDeviceCanAccessPeer(&reaches, dev, 1));
    if (reaches) {
        place(range + 2 * CHUNK, create(1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
        refused(CUDA_ERROR_INVALID_VALUE, range + CHUNK, 2 * CHUNK);
        OK_CU(cu.cuMemUnmap(range + 2 * CHUNK, CHUNK));
    }
    OK_CU(cu.cuMemUnmap(range, 2 * CHUNK));
    OK_CU(cu.cuMemAddressFree(range, 3 * CHUNK));
}

/* A file that is imported is closed, and its number may be another file's by now. */
TEST(imported_memory_cannot_be_exported_as_a_dma_buffer) {
    NEEDS_SOFTGPU("imports a plain memory file");
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;
    int fd = memfd_create("external", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(fd, (off_t)CHUNK), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    memset(&desc, 0, sizeof desc);
    desc.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    desc.handle.fd = fd;
    desc.size = CHUNK;
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC part = {.size = CHUNK};
    CUexternalMemory memory = MADE_CU(CUexternalMemory, cuImportExternalMemory, &desc);
    CUdeviceptr buffer = MADE_CU(CUdeviceptr, cuExternalMemoryGetMappedBuffer, memory, &part);
    int another = memfd_create("another", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(another, fd);
    assert_int_equal(ftruncate(another, (off_t)CHUNK), 0);
    refused(CUDA_ERROR_INVALID_VALUE, buffer, CHUNK);
    close(another);
    DESTROY_CU(buffer, memory);
}

TEST(multicast_memory_cannot_be_exported_as_a_dma_buffer) {
    NEEDS_SOFTGPU("multicast objects are made nowhere else by tests");
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);
    CUmulticastObjectProp prop;
    CUmemGenericAllocationHandle object;
    memset(&prop, 0, sizeof prop);
    prop.numDevices = 1;
    prop.size = CHUNK;
    OK_CU(cu.cuMulticastCreate(&object, &prop));
    OK_CU(cu.cuMulticastAddDevice(object, dev));
    CUdeviceptr range = MADE_CU(CUdeviceptr, cuMemAddressReserve, CHUNK, 0, 0, 0);
    OK_CU(cu.cuMemMap(range, CHUNK, 0, object, 0));
    CUmemAccessDesc access = {.location = device_location(dev),
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK_CU(cu.cuMemSetAccess(range, CHUNK, &access, 1));
    refused(CUDA_ERROR_INVALID_VALUE, range, CHUNK);
    unmap_and_free(range, CHUNK, object);
}

/* What the kernel refuses leaves nothing behind: neither descriptors nor, as the harness sees,
 * state of softgpu. */
TEST(a_dma_buffer_refused_by_the_kernel_leaks_nothing) {
    NEEDS_SOFTGPU("makes the kernel's device fail");
    if (!udmabuf_stands_in)
        SKIP("/dev/udmabuf is the kernel's");
    const size_t large = UDMABUF_SIZE_LIMIT + CHUNK;
    CUdeviceptr d = new_memory(large);
    unsigned before = count_descriptors();
    static const int errors[] = {ENOMEM, EINVAL, EBADFD, EMFILE};
    for (size_t i = 0; i < COUNT(errors); i++) {
        udmabuf_failure = errors[i];
        refused(CUDA_ERROR_OUT_OF_MEMORY, d, CHUNK);
        assert_int_equal(udmabuf_failure, 0);
    }
    refused(CUDA_ERROR_OUT_OF_MEMORY, d, large);
    assert_int_equal(count_descriptors(), before);
    shares_bytes(d, CHUNK);
    assert_int_equal(count_descriptors(), before);
}

BEFORE_TESTS_DO(udmabuf_may_stand_in = true);
