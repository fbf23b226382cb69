/* Pinned host memory: one address for both sides, flags, freeing. */
#include "harness.h"

#include <sys/wait.h>

#define SIZE ((size_t)3 << 20)

static CUdeviceptr unified(const void *host) {
    return (CUdeviceptr)(uintptr_t)host;
}

TEST(host_and_device_use_the_same_address) {
    unsigned char *p = new_pinned(SIZE, CU_MEMHOSTALLOC_DEVICEMAP);
    CUdeviceptr d = device_address(p + 100);
    assert_int_equal(d, unified(p + 100));
    set_bytes(d, 0x5a, 16);
    assert_int_equal(p[100], 0x5a);
    assert_int_equal(p[115], 0x5a);
    p[SIZE - 1] = 9;
}

TEST(allocation_flags_are_reported) {
    for (unsigned flags = 0; flags < 8; flags++) {
        unsigned got = 99;
        void *p = MADE_CU(void *, cuMemHostAlloc, 4096, flags);
        OK_CU(cu.cuMemHostGetFlags(&got, (char *)p + 100));
        assert_int_equal(got, flags | CU_MEMHOSTALLOC_DEVICEMAP);
        OK_CU(cu.cuMemFreeHost(p));
    }
    unsigned got;
    FAILS_CU(INVALID_VALUE, cu.cuMemHostGetFlags(&got, &got));
}

TEST(invalid_pinned_allocations_are_refused) {
    void *p = &p;
    CUdeviceptr d = 7;
    FAILS_CU(INVALID_VALUE, cu.cuMemHostAlloc(&p, 4096, 8));
    assert_null(p);
    FAILS_CU(INVALID_VALUE, cu.cuMemHostGetDevicePointer_v2(&d, &p, 0));
    assert_int_equal(d, 0);
    OK_CU(cu.cuMemHostAlloc(&p, 0, 0));
    assert_null(p);
}

TEST(pinned_memory_is_freed_once_and_by_its_start) {
    char *p;
    OK_CU(cu.cuMemAllocHost_v2((void **)&p, 8192));
    FAILS_CU(INVALID_VALUE, cu.cuMemFreeHost(p + 8));
    FAILS_CU(INVALID_VALUE, cu.cuMemHostUnregister(p));
    OK_CU(cu.cuMemFreeHost(p));
    FAILS_CU(INVALID_VALUE, cu.cuMemFreeHost(p));
    FAILS_CU(INVALID_VALUE, cu.cuMemFreeHost(&p));
    OK_CU(cu.cuMemFreeHost(NULL));
}

TEST(freeing_pinned_memory_waits_for_work) {
    CUstream stream = new_stream();
    void *p = MADE_CU(void *, cuMemHostAlloc, 64 * SIZE, 0);
    CUdeviceptr d = new_memory(64 * SIZE);
    memset(p, 1, 64 * SIZE);
    for (int i = 0; i < 4; i++)
        OK_CU(cu.cuMemcpyHtoDAsync_v2(d, p, 64 * SIZE, stream));
    OK_CU(cu.cuMemFreeHost(p));
    OK_CU(cu.cuStreamQuery(stream));
}

TEST(pinned_memory_ends_with_its_context) {
    CUcontext made = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    void *p = MADE_CU(void *, cuMemHostAlloc, 4096, 0);
    OK_CU(cu.cuCtxDestroy_v2(made));
    OK_CU(cu.cuCtxSetCurrent(ctx));
    FAILS_CU(INVALID_VALUE, cu.cuMemFreeHost(p));
}

/* Seen on H200: pinned memory is the same memory in a forked child. */
TEST(pinned_memory_is_shared_with_forked_children) {
    volatile int *p;
    int status;
    OK_CU(cu.cuMemHostAlloc((void **)&p, 4096, 0));
    *p = 1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int seen = *p;
        *p = 42;
        _exit(seen == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(*p, 42);
    OK_CU(cu.cuMemFreeHost((void *)p));
}

TEST(two_thousand_pinned_allocations_keep_their_bytes) {
    enum { MANY = 2000 };
    static unsigned *p[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        OK_CU(cu.cuMemHostAlloc((void **)&p[i], 4096, 0));
        p[i][0] = p[i][1023] = i;
    }
    for (unsigned i = 0; i < MANY; i++) {
        assert_true(p[i][0] == i && p[i][1023] == i);
        OK_CU(cu.cuMemFreeHost(p[i]));
    }
}
