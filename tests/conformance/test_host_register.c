/* cuMemHostRegister: which ranges, which flags, what registration changes. */
#include "harness.h"

#include <sys/mman.h>
#include <sys/wait.h>

#define PAGES ((size_t)16 * 4096)

static char *pages(int prot) {
    char *p = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    memset(p, 1, PAGES);
    assert_int_equal(mprotect(p, PAGES, prot), 0);
    return p;
}

static CUdeviceptr unified(const void *host) {
    return (CUdeviceptr)(uintptr_t)host;
}

static unsigned memory_type(const void *p) {
    unsigned type = 0;
    CUresult result = cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, unified(p));
    return result == CUDA_SUCCESS ? type : 0;
}

TEST(registered_memory_is_known_until_unregistered) {
    char *p = pages(PROT_READ | PROT_WRITE);
    assert_int_equal(memory_type(p), 0);
    OK_CU(cu.cuMemHostRegister_v2(p, PAGES, CU_MEMHOSTREGISTER_PORTABLE));
    assert_int_equal(memory_type(p + PAGES - 1), CU_MEMORYTYPE_HOST);
    CUdeviceptr d = device_address(p + 5);
    assert_int_equal(d, unified(p + 5));
    set_bytes(d, 7, 3);
    assert_int_equal(p[7], 7);
    assert_int_equal(p[8], 1);
    OK_CU(cu.cuMemHostUnregister(p));
    assert_int_equal(memory_type(p), 0);
    FAILS_CU(HOST_MEMORY_NOT_REGISTERED, cu.cuMemHostUnregister(p));
    /* The first version of the function is the same one. */
    OK_CU(cu.cuMemHostRegister(p, PAGES, 0));
    assert_int_equal(memory_type(p), CU_MEMORYTYPE_HOST);
    OK_CU(cu.cuMemHostUnregister(p));
    munmap(p, PAGES);
}

TEST(registered_ranges_may_be_unaligned_but_not_overlap) {
    char *p = pages(PROT_READ | PROT_WRITE);
    OK_CU(cu.cuMemHostRegister_v2(p + 100, 200, 0));
    OK_CU(cu.cuMemHostRegister_v2(p + 1000, 200, 0));
    FAILS_CU(HOST_MEMORY_ALREADY_REGISTERED, cu.cuMemHostRegister_v2(p + 100, 200, 0));
    FAILS_CU(HOST_MEMORY_ALREADY_REGISTERED, cu.cuMemHostRegister_v2(p + 150, 20, 0));
    FAILS_CU(HOST_MEMORY_ALREADY_REGISTERED, cu.cuMemHostRegister_v2(p + 200, 4096, 0));
    FAILS_CU(HOST_MEMORY_ALREADY_REGISTERED, cu.cuMemHostRegister_v2(p, PAGES, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemHostUnregister(p + 150));
    FAILS_CU(HOST_MEMORY_NOT_REGISTERED, cu.cuMemHostUnregister(p));
    OK_CU(cu.cuMemHostUnregister(p + 100));
    OK_CU(cu.cuMemHostUnregister(p + 1000));
    munmap(p, PAGES);
}

TEST(each_combination_of_register_flags_is_kept_or_refused) {
    char *p = pages(PROT_READ | PROT_WRITE);
    for (unsigned asked = 0; asked < 32; asked++) {
        if (asked & CU_MEMHOSTREGISTER_IOMEMORY || asked >= 16) {
            FAILS_CU(INVALID_VALUE, cu.cuMemHostRegister_v2(p, PAGES, asked));
            continue;
        }
        OK_CU(cu.cuMemHostRegister_v2(p, PAGES, asked));
        unsigned got = MADE_CU(unsigned, cuMemHostGetFlags, p + 1);
        assert_int_equal(got, (asked & CU_MEMHOSTREGISTER_PORTABLE) | CU_MEMHOSTREGISTER_DEVICEMAP);
        OK_CU(cu.cuMemHostUnregister(p));
    }
    munmap(p, PAGES);
}

TEST(unmapped_and_pinned_ranges_cannot_be_registered) {
    char *p = pages(PROT_READ);
    FAILS_CU(INVALID_VALUE, cu.cuMemHostRegister_v2(p, PAGES, 0));
    OK_CU(cu.cuMemHostRegister_v2(p, PAGES, CU_MEMHOSTREGISTER_READ_ONLY));
    OK_CU(cu.cuMemHostUnregister(p));
    munmap(p, PAGES);
    FAILS_CU(INVALID_VALUE, cu.cuMemHostRegister_v2(p, PAGES, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemHostRegister_v2(NULL, PAGES, 0));
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemHostRegister_v2(&p, (size_t)1 << 46, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemHostRegister_v2(&p, 0, 0));
    void *pinned = new_pinned(4096, 0);
    CUdeviceptr d = new_memory(4096);
    FAILS_CU(INVALID_VALUE, cu.cuMemHostRegister_v2(pinned, 4096, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemHostRegister_v2((void *)(uintptr_t)d, 4096, 0));
}

/* What lies half in a registration is no memory that a copy may touch as a whole. */
TEST(a_copy_beyond_a_registered_range_is_refused) {
    char *p = pages(PROT_READ | PROT_WRITE);
    CUdeviceptr d = MADE_CU(CUdeviceptr, cuMemAlloc_v2, PAGES);
    OK_CU(cu.cuMemHostRegister_v2(p, 4096, 0));
    OK_CU(cu.cuMemcpyHtoD_v2(d, p, 4096));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyHtoD_v2(d, p, 8192));
    OK_CU(cu.cuMemHostUnregister(p));
    OK_CU(cu.cuMemcpyHtoD_v2(d, p, 8192));
    OK_CU(cu.cuMemFree_v2(d));
    munmap(p, PAGES);
}

/* Pinned memory must not be shared with a forked child, or a write of one side gives it another
 * page than the device's. What is kept from children can be registered, and is the same afterwards.
 */
TEST(registering_keeps_memory_excluded_from_forks) {
    char *p = pages(PROT_READ | PROT_WRITE), back[2] = {0};
    assert_int_equal(madvise(p, PAGES, MADV_DONTFORK), 0);
    CUdeviceptr d = MADE_CU(CUdeviceptr, cuMemAlloc_v2, PAGES);
    OK_CU(cu.cuMemHostRegister_v2(p, PAGES, CU_MEMHOSTREGISTER_DEVICEMAP));
    pid_t child = fork();
    if (child == 0) {
        unsigned char resident[PAGES / 4096];
        _exit(mincore(p, PAGES, resident) == 0); /* ENOMEM: nothing is mapped there */
    }
    memset(p, 2, PAGES);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    memset(p, 3, PAGES / 2);
    OK_CU(cu.cuMemcpyHtoD_v2(d, p, PAGES));
    OK_CU(cu.cuMemcpyDtoH_v2(&back[0], d, 1));
    OK_CU(cu.cuMemcpyDtoH_v2(&back[1], d + PAGES - 1, 1));
    assert_int_equal(back[0], 3);
    assert_int_equal(back[1], 2);
    set_bytes(unified(p), 4, PAGES);
    assert_int_equal(p[PAGES - 1], 4);
    OK_CU(cu.cuMemHostUnregister(p));
    OK_CU(cu.cuMemFree_v2(d));
    munmap(p, PAGES);
}

/* READ_ONLY: the device may read it, and is refused at the call when it would write. */
TEST(writing_read_only_registered_memory_is_refused) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED);
    char *p = pages(PROT_READ | PROT_WRITE), back[8];
    CUdeviceptr d = MADE_CU(CUdeviceptr, cuMemAlloc_v2, PAGES);
    OK_CU(cu.cuMemsetD8_v2(d, 4, PAGES));
    OK_CU(cu.cuMemHostRegister_v2(p, PAGES, CU_MEMHOSTREGISTER_READ_ONLY));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoH_v2(p, d, 64));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoHAsync_v2(p, d, 64, NULL));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD8_v2(unified(p), 6, 64));
    OK_CU(cu.cuMemcpyHtoD_v2(d, p, PAGES));
    OK_CU(cu.cuMemcpyDtoH_v2(back, d + PAGES - 8, 8));
    assert_int_equal(back[7], 1);
    assert_int_equal(p[5], 1);
    OK_CU(cu.cuMemHostUnregister(p));
    OK_CU(cu.cuMemcpyDtoH_v2(p, d, 64));
    OK_CU(cu.cuMemFree_v2(d));
    munmap(p, PAGES);
}

TEST(inaccessible_pages_cannot_be_registered) {
    char *p = pages(PROT_NONE);
    FAILS_CU(INVALID_VALUE, cu.cuMemHostRegister_v2(p, PAGES, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemHostRegister_v2(p, PAGES, CU_MEMHOSTREGISTER_READ_ONLY));
    munmap(p, PAGES);
}
