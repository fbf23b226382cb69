/* Pinned host memory: allocation, registration, its device address and flags. */
#include "../parity.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static char *pages(size_t size) {
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, 1, size);
    return p;
}

SCENARIO(allocate_flags, "host/allocate-flags", par_context) {
    void *p;
    CUdeviceptr d;
    unsigned got;
    for (unsigned flags = 0; flags <= 16; flags++) {
        par_note("flags=%u", flags);
        CALLO(cuMemHostAlloc, flags < 8 ? "flags" : "bad-flags", (&p, 4096, flags), OUT_R(p, 4096));
        if (par_last() != CUDA_SUCCESS)
            continue;
        par_note("flags=%u", flags);
        CALLO(cuMemHostGetFlags, "allocated", (&got, p), OUT_U(got));
        par_note("flags=%u", flags);
        CALLO(cuMemHostGetDevicePointer_v2, "allocated", (&d, p, 0), OUT_P(d));
        CALL(cuMemFreeHost, "ok", (p));
        FORGET(p);
    }
    CALLO(cuMemHostAlloc, "bad-flags", (&p, 4096, ~0u), OUT_P(p));
}

SCENARIO(allocate_sizes, "host/allocate-sizes", par_context) {
    void *p;
    CALLO(cuMemHostAlloc, "zero-size", (&p, 0, 0), OUT_P(p));
    CALLO(cuMemAllocHost_v2, "zero-size", (&p, 0), OUT_P(p));
    CALL(cuMemHostAlloc, "null-out", (NULL, 4096, 0));
    CALL(cuMemHostAlloc, "null-out-zero-size", (NULL, 0, 0));
    CALL(cuMemAllocHost_v2, "null-out", (NULL, 4096));
    CALLO(cuMemHostAlloc, "ok", (&p, 1, 0), OUT_P(p));
    CALL(cuMemFreeHost, "ok", (p));
    FORGET(p);
    CALLO(cuMemAllocHost_v2, "ok", (&p, 1), OUT_P(p));
    CALL(cuMemFreeHost, "ok", (p));
    FORGET(p);
    CALLO(cuMemAllocHost, "v1", (&p, 100), OUT_P(p));
    CALLO(cuMemHostAlloc, "too-large", (&p, (size_t)1 << 46, 0), OUT_P(p));
    CALLO(cuMemHostAlloc, "too-large", (&p, ~(size_t)0, 0), OUT_P(p));
}

SCENARIO(frees, "host/frees", par_context) {
    char *p = par_pinned(8192);
    char *q = par_pinned(8192);
    char *plain = pages(4096);
    CUdeviceptr d = par_alloc(4096);
    CALL(cuMemFreeHost, "null", (NULL));
    CALL(cuMemFreeHost, "interior", (p + 8));
    CALL(cuMemFreeHost, "interior-page", (p + 4096));
    CALL(cuMemFreeHost, "ok", (p));
    CALL(cuMemFreeHost, "twice", (p));
    CALL(cuMemFreeHost, "plain-memory", (plain));
    CALL(cuMemFreeHost, "device-memory", ((void *)(uintptr_t)d));
    CALL(cuMemHostUnregister, "host-allocation", (q));
    CALL(cuMemFreeHost, "ok", (q));
    SETUP(cuMemHostRegister_v2, (plain, 4096, 0));
    CALL(cuMemFreeHost, "registered", (plain));
}

SCENARIO(without_context, "host/without-context", par_init) {
    void *p;
    unsigned flags;
    char *plain = pages(4096);
    CALLO(cuMemHostAlloc, "no-context", (&p, 4096, 0), OUT_P(p));
    CALLO(cuMemAllocHost_v2, "no-context", (&p, 4096), OUT_P(p));
    CALL(cuMemFreeHost, "no-context", (plain));
    CALL(cuMemFreeHost, "no-context-null", (NULL));
    CALL(cuMemHostRegister_v2, "no-context", (plain, 4096, 0));
    CALL(cuMemHostUnregister, "no-context", (plain));
    CALLO(cuMemHostGetFlags, "no-context", (&flags, plain), OUT_U(flags));
}

SCENARIO(free_without_context, "host/free-without-context", par_context) {
    void *p = par_pinned(4096);
    CUcontext other = par_new_context();
    void *q = par_pinned(4096);
    CALL(cuMemFreeHost, "foreign-ctx", (p));
    SETUP(cuCtxDestroy_v2, (other));
    CALL(cuCtxGetDevice, "no-context", (NULL));
    CALL(cuMemFreeHost, "destroyed-ctx", (q));
}

SCENARIO(device_pointer, "host/device-pointer", par_context) {
    CUdeviceptr d;
    CUdeviceptr_v1 d32;
    int on_stack;
    char *p = par_pinned(8192);
    NAME_R(p, 8192);
    CALLO(cuMemHostGetDevicePointer_v2, "ok", (&d, p, 0), OUT_P(d));
    CALLO(cuMemHostGetDevicePointer_v2, "interior", (&d, p + 100, 0), OUT_P(d));
    CALLO(cuMemHostGetDevicePointer_v2, "one-past", (&d, p + 8192, 0), OUT_C(d));
    CALLO(cuMemHostGetDevicePointer_v2, "bad-flags", (&d, p, 1), OUT_P(d));
    CALL(cuMemHostGetDevicePointer_v2, "null-out", (NULL, p, 0));
    CALLO(cuMemHostGetDevicePointer_v2, "null", (&d, NULL, 0), OUT_P(d));
    CALLO(cuMemHostGetDevicePointer_v2, "plain-memory", (&d, &on_stack, 0), OUT_C(d));
    CALLO(cuMemHostGetDevicePointer, "v1", (&d32, p, 0), OUT_C(d32));
    SETUP(cuMemFreeHost, (p));
    CALLO(cuMemHostGetDevicePointer_v2, "freed", (&d, p, 0), OUT_C(d));
}

SCENARIO(flags_of, "host/flags-of", par_context) {
    char *p, *plain = pages(8192);
    unsigned flags;
    p = par_pinned(8192);
    CALLO(cuMemHostGetFlags, "interior", (&flags, p + 100), OUT_U(flags));
    CALL(cuMemHostGetFlags, "null-out", (NULL, p));
    CALLO(cuMemHostGetFlags, "null", (&flags, NULL), OUT_U(flags));
    CALLO(cuMemHostGetFlags, "plain-memory", (&flags, plain), OUT_U(flags));
    SETUP(cuMemHostRegister_v2, (plain, 8192, CU_MEMHOSTREGISTER_PORTABLE));
    CALLO(cuMemHostGetFlags, "registered", (&flags, plain), OUT_U(flags));
    SETUP(cuMemHostUnregister, (plain));
    CALLO(cuMemHostGetFlags, "unregistered", (&flags, plain), OUT_U(flags));
    CALLO(cuMemHostGetFlags, "device-memory", (&flags, (void *)(uintptr_t)par_alloc(64)),
          OUT_U(flags));
}

SCENARIO(register_flags, "host/register-flags") {
    char *p = pages(8192);
    CUdeviceptr d;
    unsigned got;
    NAME_R(p, 8192);
    par_context();
    for (unsigned flags = 0; flags <= 17; flags++) {
        if ((flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0)
            continue; /* maps a device's registers: not on ordinary pages */
        par_note("flags=%u", flags);
        CALL(cuMemHostRegister_v2, flags < 16 ? "flags" : "bad-flags", (p, 8192, flags));
        par_note("flags=%u", flags);
        CALLO(cuMemHostGetFlags, "registered", (&got, p), OUT_U(got));
        par_note("flags=%u", flags);
        CALLO(cuMemHostGetDevicePointer_v2, "registered", (&d, p + 5000, 0), OUT_P(d));
        par_note("flags=%u", flags);
        CALL(cuMemHostUnregister, "after-register", (p));
    }
    CALL(cuMemHostRegister_v2, "io-memory-on-pages", (p, 8192, CU_MEMHOSTREGISTER_IOMEMORY));
}

SCENARIO(register_ranges, "host/register-ranges", par_context) {
    char *p = pages(16 * 4096);
    CUdeviceptr d, base;
    size_t size;
    NAME_R(p, 16 * 4096);
    CALL(cuMemHostRegister_v2, "null", (NULL, 4096, 0));
    CALL(cuMemHostRegister_v2, "zero-size", (p, 0, 0));
    CALL(cuMemHostRegister_v2, "not-mapped", ((void *)0x10000, 4096, 0));
    CALL(cuMemHostRegister_v2, "past-mapping", (p, (size_t)1 << 40, 0));
    CALL(cuMemHostRegister_v2, "unaligned", (p + 100, 200, 0));
    CALLO(cuMemHostGetDevicePointer_v2, "unaligned", (&d, p + 100, 0), OUT_P(d));
    CALLO(cuMemHostGetDevicePointer_v2, "before-range-same-page", (&d, p, 0), OUT_P(d));
    CALLO(cuMemHostGetDevicePointer_v2, "behind-range-same-page", (&d, p + 400, 0), OUT_P(d));
    CALLO(cuMemGetAddressRange_v2, "unaligned", (&base, &size, (CUdeviceptr)(uintptr_t)p + 100),
          OUT_P(base), OUT_U(size));
    CALL(cuMemHostRegister_v2, "same-page-apart", (p + 1000, 200, 0));
    CALL(cuMemHostRegister_v2, "twice", (p + 100, 200, 0));
    CALL(cuMemHostRegister_v2, "inside", (p + 150, 20, 0));
    CALL(cuMemHostRegister_v2, "overlapping", (p + 200, 8192, 0));
    CALL(cuMemHostRegister_v2, "around", (p, 8192, 0));
    CALL(cuMemHostUnregister, "interior", (p + 150));
    CALL(cuMemHostUnregister, "same-page-start", (p));
    CALL(cuMemHostUnregister, "ok", (p + 100));
    CALL(cuMemHostUnregister, "twice", (p + 100));
    CALL(cuMemHostUnregister, "null", (NULL));
    CALL(cuMemHostRegister_v2, "neighbour", (p + 8192, 4096, 0));
    CALL(cuMemHostRegister_v2, "neighbour", (p + 12288, 4096, 0));
    CALL(cuMemHostUnregister, "second-neighbour", (p + 12288));
    CALL(cuMemHostUnregister, "first-neighbour", (p + 8192));
}

SCENARIO(register_kinds, "host/register-kinds", par_context) {
    static const char constant[8192] = "in the program's read-only data";
    char *read_only = pages(4096);
    char *heap = malloc(100);
    mprotect(read_only, 4096, PROT_READ);
    char *pinned = par_pinned(4096);
    CALL(cuMemHostRegister_v2, "heap", (heap, 100, 0));
    CALL(cuMemHostUnregister, "heap", (heap));
    CALL(cuMemHostRegister_v2, "read-only-pages", (read_only, 4096, 0));
    CALL(cuMemHostRegister_v2, "read-only-pages-flag",
         (read_only, 4096, CU_MEMHOSTREGISTER_READ_ONLY));
    CALL(cuMemHostRegister_v2, "constant", ((void *)(uintptr_t)constant, 8192, 0));
    CALL(cuMemHostRegister_v2, "host-allocation", (pinned, 4096, 0));
    CALL(cuMemHostRegister_v2, "device-memory", ((void *)(uintptr_t)par_alloc(4096), 4096, 0));
    CALL(cuMemHostRegister, "v1", (pages(4096), 4096, 0));
    free(heap);
}

SCENARIO(unmapped_while_registered, "host/unmapped-while-registered", par_context) {
    char *p = pages(8192);
    CUdeviceptr d;
    NAME_R(p, 8192);
    SETUP(cuMemHostRegister_v2, (p, 8192, 0));
    munmap(p, 8192);
    CALLO(cuMemHostGetDevicePointer_v2, "unmapped", (&d, p, 0), OUT_P(d));
    CALL(cuMemHostUnregister, "unmapped", (p));
}

/* What a forked child finds where its parent has pinned memory: nothing, its own copy, or the same
 * memory, in which a write of the child is seen. */
static void see_in_child(const char *what, void *memory) {
    volatile unsigned char *p = memory;
    int status = 0;
    *p = 1;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        int found = *p;
        *p = 2;
        _exit(found);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        par_see(what, "no child");
        return;
    }
    if (WIFSIGNALED(status)) {
        par_see(what, "child-dies-of %d", WTERMSIG(status));
        return;
    }
    par_see(what, "child-reads %d parent-sees %d", WEXITSTATUS(status), *p);
}

SCENARIO(forked_child, "host/forked-child", par_context) {
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_HOST}};
    void *p = PAR_MADE(void *, cuMemHostAlloc, 4096, 0);
    see_in_child("allocated", p);
    SETUP(cuMemHostAlloc, (&p, 4096, CU_MEMHOSTALLOC_WRITECOMBINED));
    see_in_child("write-combined", p);
    p = pages(4096);
    SETUP(cuMemHostRegister_v2, (p, 4096, 0));
    see_in_child("registered", p);
    CUmemoryPool pool = par_pool(&props);
    CUdeviceptr block = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, 4096, pool, NULL);
    SETUP(cuStreamSynchronize, (NULL));
    see_in_child("pool", (void *)(uintptr_t)block);
}
