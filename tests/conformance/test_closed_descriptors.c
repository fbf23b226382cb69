/*
 * A program that closes all descriptors that it does not know, as daemons do, and opens files of
 * its own, which get the numbers: nothing that the driver does reaches those files.
 */
#include "harness.h"
#include "temporary.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define OWN_SIZE   (4 * MIB)
#define OWN_LAST   40          /* descriptors 3 to this are the program's own file */
#define CACHE      (256 * MIB) /* what softgpu keeps of freed memory */
#define GROWN      ((size_t)65 << 30)
#define SHARE_TYPE CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static unsigned char own_bytes[OWN_SIZE];

/* ---- The program's own file, under every number ---------------------------------------------- */

static void close_all(void) {
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
}

static void take_all_numbers(void) {
    char path[TEMPORARY_ROOM];
    fill_pattern(own_bytes, sizeof own_bytes, 3);
    close_all();
    assert_int_equal(temporary_file(path, "gpumem-own"), 3);
    assert_int_equal(write(3, own_bytes, sizeof own_bytes), (ssize_t)sizeof own_bytes);
    for (int fd = 4; fd <= OWN_LAST; fd++)
        assert_int_equal(open(path, O_RDWR), fd);
    assert_int_equal(unlink(path), 0);
}

static void expect_untouched(void) {
    static unsigned char now[OWN_SIZE];
    struct stat first, status;
    assert_int_equal(fstat(3, &first), 0);
    assert_int_equal(first.st_size, (off_t)OWN_SIZE);
    assert_int_equal(pread(3, now, sizeof now, 0), (ssize_t)sizeof now);
    assert_memory_equal(now, own_bytes, sizeof now);
    for (int fd = 4; fd <= OWN_LAST; fd++) {
        assert_int_equal(fstat(fd, &status), 0);
        assert_int_equal(status.st_ino, first.st_ino);
    }
}

static bool is_own(int fd) {
    struct stat own, status;
    assert_int_equal(fstat(3, &own), 0);
    assert_int_equal(fstat(fd, &status), 0);
    return own.st_ino == status.st_ino && own.st_dev == status.st_dev;
}

/* ---- Freeing --------------------------------------------------------------------------------- */

/* The last to be freed is first in the file, and is given back because enough is kept. */
DRIVER_CHILD(frees) {
    CUdeviceptr first = MADE_CU(CUdeviceptr, cuMemAlloc_v2, OWN_SIZE);
    CUdeviceptr rest = MADE_CU(CUdeviceptr, cuMemAlloc_v2, CACHE);
    take_all_numbers();
    DESTROY_CU(rest, first);
    expect_untouched();
}

CHILD(frees_locked) {
    init_driver();
    CUdeviceptr first = MADE_CU(CUdeviceptr, cuMemAlloc_v2, OWN_SIZE);
    CUdeviceptr rest = MADE_CU(CUdeviceptr, cuMemAlloc_v2, CACHE);
    take_all_numbers();
    /* Refused, or cut short: then what is freed is not locked, and as good. */
    if (mlockall(MCL_CURRENT | MCL_ONFAULT) != 0)
        return 77;
    DESTROY_CU(rest, first);
    expect_untouched();
    return 0;
}

/* ---- More memory ----------------------------------------------------------------------------- */

static void use(CUdeviceptr bytes) {
    unsigned char out[512];
    OK_CU(cu.cuMemsetD8_v2(bytes, 0x5a, sizeof out));
    OK_CU(cu.cuMemcpyDtoH_v2(out, bytes, sizeof out));
    for (size_t i = 0; i < sizeof out; i++)
        assert_int_equal(out[i], 0x5a);
}

/* More than the device's file has place for, so that it grows. */
DRIVER_CHILD(grows) {
    CUdeviceptr small = MADE_CU(CUdeviceptr, cuMemAlloc_v2, OWN_SIZE);
    take_all_numbers();
    CUdeviceptr large = MADE_CU(CUdeviceptr, cuMemAlloc_v2, GROWN);
    use(small);
    use(large);
    expect_untouched();
    DESTROY_CU(large, small);
    expect_untouched();
}

DRIVER_CHILD(pins) {
    void *before = MADE_CU(void *, cuMemHostAlloc, OWN_SIZE, 0);
    take_all_numbers();
    void *after = MADE_CU(void *, cuMemHostAlloc, OWN_SIZE, 0);
    memset(before, 1, OWN_SIZE);
    memset(after, 2, OWN_SIZE);
    assert_int_equal(((unsigned char *)before)[OWN_SIZE - 1], 1);
    use((CUdeviceptr)(uintptr_t)after);
    expect_untouched();
    OK_CU(cu.cuMemFreeHost(after));
    OK_CU(cu.cuMemFreeHost(before));
    expect_untouched();
}

/* ---- What is shared has a file of its own ---------------------------------------------------- */

CHILD_THAT_ENDS(shares) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = SHARE_TYPE,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle memory;
    int fd = -1;
    init_driver();
    OK_CU(cu.cuMemCreate(&memory, 2 * MIB, &prop, 0));
    take_all_numbers();
    if (cu.cuMemExportToShareableHandle(&fd, memory, SHARE_TYPE, 0) == CUDA_SUCCESS)
        assert_false(is_own(fd));
    OK_CU(cu.cuMemRelease(memory));
    expect_untouched();
}

CHILD_THAT_ENDS(shares_a_pool) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = SHARE_TYPE,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUdeviceptr first, second;
    int fd = -1;
    init_driver();
    CUmemoryPool pool = MADE_CU(CUmemoryPool, cuMemPoolCreate, &props);
    OK_CU(cu.cuMemAllocFromPoolAsync(&first, 32 * MIB, pool, NULL));
    take_all_numbers();
    if (cu.cuMemAllocFromPoolAsync(&second, 64 * MIB, pool, NULL) == CUDA_SUCCESS) {
        use(second);
        OK_CU(cu.cuMemFreeAsync(second, NULL));
    }
    if (cu.cuMemPoolExportToShareableHandle(&fd, pool, SHARE_TYPE, 0) == CUDA_SUCCESS)
        assert_false(is_own(fd));
    use(first);
    OK_CU(cu.cuMemFreeAsync(first, NULL));
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuMemPoolDestroy(pool));
    expect_untouched();
}

/* ---- What is written for people -------------------------------------------------------------- */

DRIVER_CHILD(writes) {
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(12345));
    take_all_numbers();
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(12345));
    expect_untouched();
}

TEST_WHERE(lines_for_closed_descriptors_never_reach_other_files, NEEDS_SOFTGPU("its trace")) {
    char trace[TEMPORARY_ROOM], log[TEMPORARY_ROOM];
    close(temporary_file(trace, "gpumem-trace"));
    close(temporary_file(log, "gpumem-log"));
    setenv("SOFTGPU_TRACE", trace, 1);
    setenv("CUDA_LOG_FILE", log, 1);
    int status = run_child("writes", NULL);
    unsetenv("SOFTGPU_TRACE");
    unsetenv("CUDA_LOG_FILE");
    unlink(trace);
    unlink(log);
    assert_int_equal(status, 0);
}

#define IN_CHILD(test, name, needs)                                                                \
    TEST(test) {                                                                                   \
        NEEDS_SOFTGPU("other drivers need their descriptors");                                     \
        needs;                                                                                     \
        setenv("SOFTGPU_MEMORY", "100G", 1);                                                       \
        int status = run_child(name, NULL);                                                        \
        unsetenv("SOFTGPU_MEMORY");                                                                \
        if (status == 77)                                                                          \
            SKIP("memory cannot be locked here");                                                  \
        assert_int_equal(status, 0);                                                               \
    }
#define NOTHING ((void)0)
IN_CHILD(freeing_memory_leaves_reused_descriptors_alone, "frees", NOTHING)
IN_CHILD(freeing_locked_memory_leaves_reused_descriptors_alone, "frees_locked", NOTHING)
IN_CHILD(growing_the_device_file_leaves_reused_descriptors_alone, "grows", NOTHING)
IN_CHILD(pinning_memory_leaves_reused_descriptors_alone, "pins", NOTHING)
IN_CHILD(releasing_shareable_memory_leaves_reused_descriptors_alone, "shares", NEEDS_DESCRIPTORS())
IN_CHILD(destroying_a_shareable_pool_leaves_reused_descriptors_alone, "shares_a_pool",
         NEEDS_POOL_DESCRIPTORS())
