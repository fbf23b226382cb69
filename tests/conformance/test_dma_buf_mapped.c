/*
 * DMA buffers that the CPU maps, as drivers from 13.3 on give them: on softgpu's profile dmabuf,
 * with or without /dev/udmabuf, and on hardware that has the attribute. The steps are those of a
 * library that pins and maps device memory: versions and attributes, the aligned range, its
 * descriptor, mmap.
 */
#include "pools.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define CHUNK          ((size_t)2 << 20)
#define PAGE           ((size_t)4096)
#define FD             CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
#define MMAP_SUPPORTED ((CUdevice_attribute)152) /* since 13.3 */
#define SKIPPED        77
#define PITCH          8 /* of a set that takes its time: a byte in each row */

static unsigned char host[2 * CHUNK];

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "# line %d: %s\n", __LINE__, #condition);                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* What each child begins with: the driver, and that it has what this is about. */
static void begin(void) {
    int version = 0, supported = 0;
    init_driver();
    OK_CU(cu.cuDriverGetVersion(&version));
    if (version < 13030 || cu.cuDeviceGetAttribute(&supported, MMAP_SUPPORTED, 0) != CUDA_SUCCESS ||
        !supported)
        exit(SKIPPED);
}

/* Is it the kernel's /dev/udmabuf that makes buffers here, or hardware? */
static bool kernel_makes_them(void) {
    return !soft || access("/dev/udmabuf", R_OK | W_OK) == 0;
}

static int export_range(CUdeviceptr at, size_t size) {
    int fd = -2;
    OK_CU(cu.cuMemGetHandleForAddressRange(&fd, at, size, FD, 0));
    REQUIRE(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
    return fd;
}

static CUresult try_export(CUdeviceptr at, size_t size) {
    int fd = 7;
    CUresult result = cu.cuMemGetHandleForAddressRange(&fd, at, size, FD, 0);
    REQUIRE(result == CUDA_SUCCESS ? fd >= 0 : fd == -1);
    if (fd >= 0)
        close(fd);
    return result;
}

static unsigned char *map(int fd, size_t size) {
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(at != MAP_FAILED);
    return at;
}

/* A memory file does not know the request, which is only needed where caches must be told. */
static void sync_buffer(int fd, unsigned long long flags) {
    struct dma_buf_sync sync = {.flags = flags};
    REQUIRE(ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync) == 0 || errno == ENOTTY);
}

static void same_bytes(int fd, unsigned char *view, CUdeviceptr at, size_t size, unsigned seed) {
    sync_buffer(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW);
    fill_pattern(view, size, seed);
    sync_buffer(fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW);
    memset(host, 0, size);
    OK_CU(cu.cuMemcpyDtoH_v2(host, at, size));
    REQUIRE(has_pattern(host, size, seed));
    fill_pattern(host, size, seed + 1);
    OK_CU(cu.cuMemcpyHtoD_v2(at, host, size));
    REQUIRE(has_pattern(view, size, seed + 1));
}

static void shares_bytes(CUdeviceptr at, size_t size) {
    int fd = export_range(at, size);
    unsigned char *view = map(fd, size);
    close(fd); /* the mapping needs it no more */
    fd = export_range(at, size);
    same_bytes(fd, view, at, size, 1);
    munmap(view, size);
    close(fd);
}

/* ---- Children -------------------------------------------------------------------------------- */

typedef CUresult (*range_fn)(void *, CUdeviceptr, size_t, CUmemRangeHandleType, unsigned long long);

/* What a client of 13.3 asks for by that version is there, also before cuInit. */
CHILD_THAT_ENDS(by_version) {
    int version = 0;
    OK_CU(cu.cuDriverGetVersion(&version));
    begin();
    static const char *const names[] = {
        "cuInit",          "cuDeviceGetAttribute",     "cuPointerGetAttribute",
        "cuCtxGetCurrent", "cuDevicePrimaryCtxRetain", "cuMemGetHandleForAddressRange"};
    void *found = NULL;
    for (size_t i = 0; i < COUNT(names); i++) {
        found = NULL;
        OK_CU(cu.cuGetProcAddress(names[i], &found, 13030, 0));
        REQUIRE(found);
    }
    REQUIRE(version >= 13030);
    if (soft)
        REQUIRE(cu.cuGetProcAddress("cuInit", &found, version + 10, 0) == CUDA_ERROR_INVALID_VALUE);
    range_fn range;
    int fd = -1;
    memcpy(&range, &found, sizeof range);
    CUdeviceptr d = MADE_CU(CUdeviceptr, cuMemAlloc_v2, CHUNK);
    OK_CU(range(&fd, d, CHUNK, FD, 0));
    close(fd);
    OK_CU(cu.cuMemFree_v2(d));
}

CHILD_THAT_ENDS(buffers) {
    begin();
    CUdeviceptr d = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 2 * CHUNK);
    CUdeviceptr small = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 65536 + 4);
    CUdeviceptr page = MADE_CU(CUdeviceptr, cuMemAlloc_v2, PAGE);
    OK_CU(cu.cuMemsetD8_v2(page, 0x77, PAGE));
    shares_bytes(d, 2 * CHUNK);
    shares_bytes(d, PAGE);
    shares_bytes(small & ~(CUdeviceptr)(PAGE - 1), PAGE);
    /* What was there before is still there, and what lies beside it is untouched. */
    OK_CU(cu.cuMemsetD8_v2(d, 0x11, 2 * CHUNK));
    int fd = export_range(d, CHUNK);
    unsigned char *view = map(fd, CHUNK);
    REQUIRE(view[0] == 0x11 && view[CHUNK - 1] == 0x11);
    memset(view, 0x22, CHUNK);
    OK_CU(cu.cuMemcpyDtoH_v2(host, d, 2 * CHUNK));
    REQUIRE(host[0] == 0x22 && host[CHUNK - 1] == 0x22 && host[CHUNK] == 0x11);
    OK_CU(cu.cuMemcpyDtoH_v2(host, page, PAGE));
    REQUIRE(host[0] == 0x77 && host[PAGE - 1] == 0x77);
    munmap(view, CHUNK);
    close(fd);
    DESTROY_CU(page, small, d);
}

/* The same range, a longer one that begins there, and one within, while all are mapped. */
CHILD_THAT_ENDS(many_views) {
    begin();
    CUdeviceptr d = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 2 * CHUNK);
    int first = export_range(d, PAGE), second = export_range(d, 2 * CHUNK),
        third = export_range(d, CHUNK);
    unsigned char *a = map(first, PAGE), *b = map(second, 2 * CHUNK), *c = map(third, CHUNK);
    same_bytes(second, b, d, 2 * CHUNK, 5);
    REQUIRE(has_pattern(a, PAGE, 6) && has_pattern(c, CHUNK, 6));
    fill_pattern(a, PAGE, 9);
    REQUIRE(has_pattern(b, PAGE, 9));
    if (kernel_makes_them()) {
        shares_bytes(d + PAGE, PAGE);
    } else {
        /* A page is in one file, until nobody has that any more. */
        FAILS_CU(NOT_SUPPORTED, try_export(d + PAGE, PAGE));
        munmap(b, 2 * CHUNK);
        munmap(c, CHUNK);
        close(first);
        close(second);
        close(third);
        FAILS_CU(NOT_SUPPORTED, try_export(d + PAGE, PAGE)); /* a is still mapped */
        munmap(a, PAGE);
        OK_CU(cu.cuMemcpyDtoH_v2(host, d, PAGE));
        REQUIRE(has_pattern(host, PAGE, 9));
        shares_bytes(d + PAGE, PAGE);
        shares_bytes(d + 2 * PAGE, CHUNK);
        shares_bytes(d, 2 * CHUNK);
        OK_CU(cu.cuMemcpyDtoH_v2(host, d, 2 * CHUNK));
        REQUIRE(has_pattern(host, 2 * CHUNK, 2));
    }
    OK_CU(cu.cuMemFree_v2(d));
}

/* Whoever has the buffer keeps the bytes; what is allocated next has others. */
CHILD(outlives) {
    CUdeviceptr d;
    begin();
    if (!soft)
        return SKIPPED;
    for (int round = 0; round < 3; round++) {
        OK_CU(cu.cuMemAlloc_v2(&d, CHUNK));
        int fd = export_range(d, CHUNK);
        unsigned char *view = map(fd, CHUNK);
        fill_pattern(view, CHUNK, 3);
        OK_CU(cu.cuMemFree_v2(d));
        OK_CU(cu.cuMemAlloc_v2(&d, CHUNK));
        OK_CU(cu.cuMemcpyDtoH_v2(host, d, CHUNK));
        REQUIRE(!has_pattern(host, CHUNK, 3));
        set_bytes(d, 0x44, CHUNK);
        REQUIRE(has_pattern(view, CHUNK, 3));
        shares_bytes(d, CHUNK);
        munmap(view, CHUNK);
        close(fd);
        OK_CU(cu.cuMemFree_v2(d));
    }
    return 0;
}

static CUmemGenericAllocationHandle place(CUdeviceptr at, unsigned types) {
    CUmemGenericAllocationHandle memory;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                .requestedHandleTypes = (CUmemAllocationHandleType)types,
                                .allocFlags.gpuDirectRDMACapable = types == 0};
    CUmemAccessDesc access = {.location = prop.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK_CU(cu.cuMemCreate(&memory, CHUNK, &prop, 0));
    OK_CU(cu.cuMemMap(at, CHUNK, 0, memory, 0));
    OK_CU(cu.cuMemSetAccess(at, CHUNK, &access, 1));
    return memory;
}

CHILD_THAT_ENDS(virtual_memory) {
    begin();
    CUdeviceptr range = MADE_CU(CUdeviceptr, cuMemAddressReserve, 3 * CHUNK, 0, 0, 0);
    CUmemGenericAllocationHandle second = place(range + CHUNK, 0), first = place(range, 0),
                                 shared = place(range + 2 * CHUNK,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    shares_bytes(range, 2 * CHUNK);
    shares_bytes(range + CHUNK - PAGE, 2 * PAGE);
    /* Memory that another process may import: whole, so that the importer has the same bytes. */
    shares_bytes(range + 2 * CHUNK, CHUNK);
    if (!kernel_makes_them())
        FAILS_CU(NOT_SUPPORTED, try_export(range + 2 * CHUNK + PAGE, PAGE));
    OK_CU(cu.cuMemUnmap(range, 3 * CHUNK));
    OK_CU(cu.cuMemRelease(first));
    OK_CU(cu.cuMemRelease(second));
    OK_CU(cu.cuMemRelease(shared));
    OK_CU(cu.cuMemAddressFree(range, 3 * CHUNK));
}

/* Two handles that other processes may have: both ways of passing them on, one after the other. A
 * memory file is either a handle's or a buffer's. */
CHILD_THAT_ENDS(several_handles) {
    begin();
    const CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUdeviceptr range = MADE_CU(CUdeviceptr, cuMemAddressReserve, 2 * CHUNK, 0, 0, 0);
    CUmemGenericAllocationHandle first = place(range, type), second = place(range + CHUNK, type);
    fill_pattern(host, 2 * CHUNK, 9);
    OK_CU(cu.cuMemcpyHtoD_v2(range, host, 2 * CHUNK));
    int fd = export_range(range, 2 * CHUNK), own = -1;
    REQUIRE(lseek(fd, 0, SEEK_END) == (off_t)(2 * CHUNK));
    unsigned char *view = map(fd, 2 * CHUNK);
    REQUIRE(has_pattern(view, 2 * CHUNK, 9));
    same_bytes(fd, view, range, 2 * CHUNK, 3);
    close(fd);
    if (!kernel_makes_them())
        FAILS_CU(NOT_SUPPORTED, cu.cuMemExportToShareableHandle(&own, second, type, 0));
    munmap(view, 2 * CHUNK);
    OK_CU(cu.cuMemExportToShareableHandle(&own, second, type, 0));
    if (soft) {
        view = map(own, CHUNK);
        same_bytes(own, view, range + CHUNK, CHUNK, 5);
        munmap(view, CHUNK);
    }
    if (!kernel_makes_them())
        FAILS_CU(NOT_SUPPORTED, try_export(range, 2 * CHUNK));
    fd = export_range(range + CHUNK, CHUNK);
    REQUIRE(lseek(fd, 0, SEEK_END) == (off_t)CHUNK);
    close(fd);
    fd = export_range(range, CHUNK);
    REQUIRE(lseek(fd, 0, SEEK_END) == (off_t)CHUNK);
    OK_CU(cu.cuMemUnmap(range, 2 * CHUNK));
    OK_CU(cu.cuMemRelease(first));
    OK_CU(cu.cuMemRelease(second));
    OK_CU(cu.cuMemAddressFree(range, 2 * CHUNK));
    close(fd);
    close(own);
}

/* A block of two steps that lay apart: exported across, whole, and used again while mapped. */
CHILD_THAT_ENDS(pool_steps) {
    begin();
    CUdeviceptr block[3];
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUdeviceptr between = pool_take_steps(pool, block);
    set_bytes(block[0], 0x21, POOL_STEP);
    set_bytes(between, 0x22, POOL_STEP);
    FAILS_CU(INVALID_VALUE, try_export(between - CHUNK, 2 * CHUNK));
    FAILS_CU(INVALID_VALUE, try_export(block[0] + PAGE, PAGE));
    int fd = export_range(block[0], 2 * POOL_STEP);
    REQUIRE(lseek(fd, 0, SEEK_END) == (off_t)(2 * POOL_STEP));
    unsigned char *view = map(fd, 2 * POOL_STEP);
    REQUIRE(view[0] == 0x21 && view[POOL_STEP - CHUNK - 1] == 0x21);
    REQUIRE(view[POOL_STEP + CHUNK] == 0x22 && view[2 * POOL_STEP - 1] == 0x22);
    same_bytes(fd, view + POOL_STEP - CHUNK, between - CHUNK, 2 * CHUNK, 4);
    pool_free_steps(block);
    /* Whoever maps the buffer sees what its pages hold next, here or elsewhere in the pool. */
    CUdeviceptr again = pool_take(pool, 4 * POOL_STEP, NULL);
    OK_CU(cu.cuStreamSynchronize(NULL));
    REQUIRE(pool_reserved(pool) == 4 * POOL_STEP);
    set_bytes(again, 0x23, 4 * POOL_STEP);
    REQUIRE(view[0] == 0x23 && view[2 * POOL_STEP - 1] == 0x23);
    OK_CU(cu.cuMemFreeAsync(again, NULL));
    /* What the pool gives back is no longer the buffer's. */
    OK_CU(cu.cuStreamSynchronize(NULL));
    OK_CU(cu.cuMemPoolTrimTo(pool, 0));
    again = pool_take(pool, 4 * POOL_STEP, NULL);
    set_bytes(again, 0x24, 4 * POOL_STEP);
    if (soft)
        REQUIRE(view[0] == 0x23 && view[2 * POOL_STEP - 1] == 0x23);
    munmap(view, 2 * POOL_STEP);
    close(fd);
    OK_CU(cu.cuMemFreeAsync(again, NULL));
    pool_end(pool);
}

/* Legacy IPC finds memory by its place, so one of the two must be refused. */
CHILD(beside_ipc) {
    begin();
    if (kernel_makes_them())
        return SKIPPED;
    CUdeviceptr d = MADE_CU(CUdeviceptr, cuMemAlloc_v2, CHUNK);
    CUdeviceptr named = MADE_CU(CUdeviceptr, cuMemAlloc_v2, CHUNK);
    CUipcMemHandle handle = MADE_CU(CUipcMemHandle, cuIpcGetMemHandle, named);
    FAILS_CU(NOT_SUPPORTED, try_export(named, CHUNK));
    OK_CU(try_export(d, CHUNK));
    FAILS_CU(NOT_SUPPORTED, cu.cuIpcGetMemHandle(&handle, d));
    DESTROY_CU(named, d);
    return 0;
}

static void *copy_all_the_time(void *stop) {
    static unsigned char bytes[CHUNK];
    CUcontext context = MADE_CU(CUcontext, cuDevicePrimaryCtxRetain, 0);
    OK_CU(cu.cuCtxSetCurrent(context));
    CUdeviceptr d = new_memory(CHUNK);
    fill_pattern(bytes, CHUNK, 1);
    while (!atomic_load((atomic_bool *)stop)) {
        OK_CU(cu.cuMemcpyHtoD_v2(d, bytes, CHUNK));
        memset(bytes, 0, CHUNK);
        OK_CU(cu.cuMemcpyDtoH_v2(bytes, d, CHUNK));
        REQUIRE(has_pattern(bytes, CHUNK, 1));
    }
    return NULL;
}

/* Until the first byte is another one. Who reads what is being written races with it, and the
 * sanitizer says so: there the moment is left to chance. */
static void wait_until_set(CUdeviceptr at, unsigned char old) {
#if !defined(__SANITIZE_THREAD__)
    for (unsigned char first = old; first == old;)
        OK_CU(cu.cuMemcpyDtoH_v2(&first, at, 1));
#else
#endif
}

/* Pages move while other work runs, and no byte of what is running gets lost: work that takes
 * longer than the pages do is under way when they are asked for. */
CHILD_THAT_ENDS(under_work) {
    const size_t large = (size_t)32 << 20;
    pthread_t thread;
    atomic_bool stop = false;
    CUdeviceptr d;
    begin();
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    REQUIRE(pthread_create(&thread, NULL, copy_all_the_time, &stop) == 0);
    for (unsigned round = 1; round <= 10; round++) {
        OK_CU(cu.cuMemAlloc_v2(&d, large));
        set_bytes(d, 0xee, large);
        OK_CU(cu.cuMemsetD2D8Async(d, PITCH, (unsigned char)round, 1, large / PITCH, stream));
        wait_until_set(d, 0xee);
        int fd = export_range(d, large);
        unsigned char *view = map(fd, large);
        OK_CU(cu.cuStreamSynchronize(stream));
        for (size_t i = 0; i < large; i++)
            REQUIRE(view[i] == (i % PITCH == 0 ? round : 0xee));
        munmap(view, large);
        close(fd);
        OK_CU(cu.cuMemFree_v2(d));
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    OK_CU(cu.cuStreamDestroy_v2(stream));
}

/* Bytes that were never written take no memory, and the flag for the way over PCIe is taken. */
CHILD_THAT_ENDS(sparse) {
    const size_t large = (size_t)256 << 20;
    int fd = -1;
    begin();
    CUdeviceptr d = MADE_CU(CUdeviceptr, cuMemAlloc_v2, large);
    set_bytes(d + large / 2, 0x33, PAGE);
    OK_CU(cu.cuMemGetHandleForAddressRange(&fd, d, large, FD,
                                           CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE));
    unsigned char *view = map(fd, large);
    REQUIRE(view[large / 2] == 0x33 && view[large / 2 + PAGE - 1] == 0x33);
    struct stat status;
    if (!kernel_makes_them())
        REQUIRE(fstat(fd, &status) == 0 && status.st_blocks * 512 < 4 << 20);
    munmap(view, large);
    close(fd);
    OK_CU(cu.cuMemFree_v2(d));
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static char *replace(const char *variable, const char *value) {
    const char *old = getenv(variable);
    char *kept = old ? strdup(old) : NULL;
    setenv(variable, value, 1);
    return kept;
}

static void put_back(const char *variable, char *kept) {
    if (kept)
        setenv(variable, kept, 1);
    else
        unsetenv(variable);
    free(kept);
}

/* Work begins by itself there, which one of the children waits for. */
static int with_profile(const char *child) {
    char *profile = replace("SOFTGPU_PROFILE", "dmabuf");
    char *schedule = replace("SOFTGPU_SCHEDULE", "eager");
    int status = run_child(child, NULL);
    put_back("SOFTGPU_PROFILE", profile);
    put_back("SOFTGPU_SCHEDULE", schedule);
    return status;
}

static void must_pass(int status) {
    if (status == SKIPPED)
        SKIP("needs a driver of 13.3 that maps DMA buffers, or softgpu's own way of making them");
    assert_int_equal(status, 0);
}

#define PROFILED(name, child)                                                                      \
    TEST(name) {                                                                                   \
        must_pass(with_profile(child));                                                            \
    }

PROFILED(the_device_attribute_reports_mappable_dma_buffers, "by_version")
PROFILED(a_mapped_dma_buffer_has_the_bytes_of_its_range, "buffers")
PROFILED(one_range_has_many_dma_buffer_mappings, "many_views")
PROFILED(a_dma_buffer_mapping_outlives_its_memory, "outlives")

/* The pattern of freed memory is not written over bytes that somebody still maps. */
TEST(a_dma_buffer_mapping_outlives_poisoned_memory) {
    char *poison = replace("SOFTGPU_POISON", "1");
    int status = with_profile("outlives");
    put_back("SOFTGPU_POISON", poison);
    must_pass(status);
}

PROFILED(memory_of_cumemcreate_is_exported_as_a_dma_buffer, "virtual_memory")
PROFILED(several_handles_are_one_dma_buffer, "several_handles")
PROFILED(a_mapped_dma_buffer_crosses_the_steps_of_a_pool, "pool_steps")
PROFILED(legacy_ipc_works_beside_dma_buffers, "beside_ipc")
PROFILED(dma_buffers_are_exported_while_work_is_running, "under_work")
PROFILED(bytes_never_written_consume_no_memory, "sparse")

/* The default profile answers as the recorded H200. */
TEST(by_default_mappable_dma_buffers_are_not_offered) {
    NEEDS_SOFTGPU("its profile is chosen");
    int value = 7, version = 0;
    FAILS_CU(INVALID_VALUE, cu.cuDeviceGetAttribute(&value, MMAP_SUPPORTED, dev));
    OK_CU(cu.cuDriverGetVersion(&version));
    assert_int_equal(version, 13000);
}
