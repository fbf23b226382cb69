/* cuMemAlloc and its kin: sizes, pitches, freeing, ranges, what the driver charges. */
#include "../parity.h"

SCENARIO(sizes, "memory/sizes", par_context) {
    static const size_t tries[] = {
        1,       255,           256,        257,    512,        4096,       65536,
        1 << 20, (1 << 20) + 1, PAR_2M - 1, PAR_2M, PAR_2M + 1, 3 * PAR_2M, (size_t)64 << 20};
    CUdeviceptr p, base;
    size_t size;
    for (size_t i = 0; i < COUNT(tries); i++) {
        par_note("size=%zu", tries[i]);
        CALLO(cuMemAlloc_v2, "size", (&p, tries[i]), OUT_R(p, tries[i]));
        par_note("size=%zu", tries[i]);
        CALLO(cuMemGetAddressRange_v2, "allocated", (&base, &size, p), OUT_P(base), OUT_U(size));
        SETUP(cuMemFree_v2, (p));
        FORGET(p);
    }
}

SCENARIO(bad_sizes, "memory/bad-sizes", par_context) {
    static const size_t huge[] = {(size_t)1 << 40, (size_t)1 << 47, (size_t)1 << 48,
                                  (size_t)1 << 62, ~(size_t)0};
    CUdeviceptr p;
    CALLO(cuMemAlloc_v2, "zero-size", (&p, 0), OUT_P(p));
    CALL(cuMemAlloc_v2, "null-out", (NULL, 4096));
    CALL(cuMemAlloc_v2, "null-out-zero-size", (NULL, 0));
    for (size_t i = 0; i < COUNT(huge); i++) {
        par_note("size=%zu", huge[i]);
        CALLO(cuMemAlloc_v2, "too-large", (&p, huge[i]), OUT_P(p));
    }
    CALLO(cuMemAlloc_v2, "after-refusals", (&p, 4096), OUT_P(p));
}

SCENARIO(neighbours, "memory/neighbours", par_context) {
    CUdeviceptr a, b, c, d;
    CALLO(cuMemAlloc_v2, "ok", (&a, 1), OUT_R(a, PAR_2M));
    CALLO(cuMemAlloc_v2, "ok", (&b, 1), OUT_P(b));
    CALLO(cuMemAlloc_v2, "ok", (&c, 700), OUT_P(c));
    CALLO(cuMemAlloc_v2, "ok", (&d, 512), OUT_P(d));
    CALL(cuMemFree_v2, "ok", (b));
    FORGET(b);
    CALLO(cuMemAlloc_v2, "after-free", (&b, 1), OUT_P(b));
}

SCENARIO(frees, "memory/frees", par_context) {
    CUdeviceptr p = par_alloc(4096);
    CUdeviceptr q = par_alloc(4096);
    void *host = par_pinned(4096);
    CUdeviceptr mapped = par_mapped(PAR_2M);
    CALL(cuMemFree_v2, "null", (0));
    CALL(cuMemFree_v2, "interior", (p + 256));
    CALL(cuMemFree_v2, "interior-unaligned", (p + 1));
    CALL(cuMemFree_v2, "ok", (p));
    CALL(cuMemFree_v2, "twice", (p));
    CALL(cuMemFree_v2, "random", (0x1000));
    CALL(cuMemFree_v2, "random-high", (0x7123456789abull));
    CALL(cuMemFree_v2, "host-allocation", ((CUdeviceptr)(uintptr_t)host));
    CALL(cuMemFree_v2, "stack-address", ((CUdeviceptr)(uintptr_t)&p));
    CALL(cuMemFree_v2, "mapped", (mapped));
    CALL(cuMemFree_v2, "ok", (q));
}

SCENARIO(free_across_contexts, "memory/free-across-contexts", par_context) {
    CUdeviceptr p = par_alloc(4096);
    CUcontext other = par_new_context();
    CALL(cuMemFree_v2, "foreign-ctx", (p));
    CUdeviceptr q = par_alloc(4096);
    SETUP(cuCtxDestroy_v2, (other));
    SETUP(cuCtxSetCurrent, (par.primary));
    CALL(cuMemFree_v2, "destroyed-ctx", (q));
    SETUP(cuMemAlloc_v2, (&p, 4096));
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuMemFree_v2, "no-context", (p));
    CALL(cuMemFree_v2, "no-context-null", (0));
    CALLO(cuMemAlloc_v2, "no-context", (&p, 4096), OUT_P(p));
}

SCENARIO(pitch, "memory/pitch", par_context) {
    static const struct {
        size_t width, height;
        unsigned element;
    } tries[] = {{1, 1, 4},
                 {1, 1, 8},
                 {1, 1, 16},
                 {512, 1, 4},
                 {513, 4, 4},
                 {1000, 10, 16},
                 {0, 1, 4},
                 {1, 0, 4},
                 {1, 1, 0},
                 {1, 1, 1},
                 {1, 1, 2},
                 {1, 1, 3},
                 {1, 1, 32},
                 {4096, 3, 4},
                 {(size_t)1 << 31, 1, 4},
                 {(size_t)1 << 40, 1, 4},
                 {1, (size_t)1 << 50, 4}};
    CUdeviceptr p;
    size_t pitch;
    for (size_t i = 0; i < COUNT(tries); i++) {
        par_note("%zux%zu element=%u", tries[i].width, tries[i].height, tries[i].element);
        CALLO(cuMemAllocPitch_v2, "geometry",
              (&p, &pitch, tries[i].width, tries[i].height, tries[i].element), OUT_P(p),
              OUT_U(pitch));
        if (par_last() == CUDA_SUCCESS) {
            SETUP(cuMemFree_v2, (p));
            FORGET(p);
        }
    }
    CALLO(cuMemAllocPitch_v2, "null-out", (NULL, &pitch, 512, 1, 4), OUT_U(pitch));
    CALLO(cuMemAllocPitch_v2, "null-pitch", (&p, NULL, 512, 1, 4), OUT_P(p));
}

SCENARIO(ranges, "memory/ranges", par_context) {
    CUdeviceptr p, base, mapped, reserved, q;
    size_t size;
    int on_stack;
    p = par_alloc(1000);
    NAME_R(p, 1000);
    CALLO(cuMemGetAddressRange_v2, "base", (&base, &size, p), OUT_P(base), OUT_U(size));
    CALLO(cuMemGetAddressRange_v2, "interior", (&base, &size, p + 999), OUT_P(base), OUT_U(size));
    CALLO(cuMemGetAddressRange_v2, "one-past", (&base, &size, p + 1000), OUT_C(base), OUT_C(size));
    CALLO(cuMemGetAddressRange_v2, "null-base", (NULL, &size, p), OUT_U(size));
    CALLO(cuMemGetAddressRange_v2, "null-size", (&base, NULL, p), OUT_P(base));
    CALL(cuMemGetAddressRange_v2, "null-both", (NULL, NULL, p));
    CALLO(cuMemGetAddressRange_v2, "null", (&base, &size, 0), OUT_P(base), OUT_U(size));
    CALLO(cuMemGetAddressRange_v2, "random", (&base, &size, 0x1000), OUT_P(base), OUT_U(size));
    CALLO(cuMemGetAddressRange_v2, "stack-address",
          (&base, &size, (CUdeviceptr)(uintptr_t)&on_stack), OUT_C(base), OUT_C(size));
    void *host = par_pinned(5000);
    NAME_R(host, 5000);
    CALLO(cuMemGetAddressRange_v2, "host-allocation",
          (&base, &size, (CUdeviceptr)(uintptr_t)host + 8), OUT_P(base), OUT_U(size));
    mapped = par_mapped(PAR_2M);
    NAME_R(mapped, PAR_2M);
    CALLO(cuMemGetAddressRange_v2, "mapped", (&base, &size, mapped + 4), OUT_P(base), OUT_U(size));
    reserved = par_reserve(PAR_2M);
    NAME_R(reserved, PAR_2M);
    CALLO(cuMemGetAddressRange_v2, "reserved", (&base, &size, reserved), OUT_P(base), OUT_U(size));
    SETUP(cuMemAllocAsync, (&q, 1000, NULL));
    NAME_R(q, 1000);
    CALLO(cuMemGetAddressRange_v2, "pool", (&base, &size, q + 4), OUT_P(base), OUT_U(size));
    SETUP(cuMemFree_v2, (p));
    CALLO(cuMemGetAddressRange_v2, "freed", (&base, &size, p), OUT_P(base), OUT_U(size));
}

SCENARIO(charges, "memory/charges", par_context, PAR_ALONE) {
    static const size_t tries[] = {1,          1 << 20,          PAR_2M,
                                   PAR_2M + 1, (size_t)64 << 20, (size_t)512 << 20};
    CUdeviceptr p;
    size_t freed, total;
    CALLO(cuMemGetInfo_v2, "ok", (&freed, &total), OUT_C(freed), OUT_U(total));
    CALLO(cuMemGetInfo_v2, "null-free", (NULL, &total), OUT_U(total));
    CALLO(cuMemGetInfo_v2, "null-total", (&freed, NULL), OUT_C(freed));
    CALL(cuMemGetInfo_v2, "null-both", (NULL, NULL));
    par_free_mark();
    for (size_t i = 0; i < COUNT(tries); i++) {
        p = par_alloc(tries[i]);
        par_note("size=%zu", tries[i]);
        par_free_delta("alloc");
        SETUP(cuMemFree_v2, (p));
        par_note("size=%zu", tries[i]);
        par_free_delta("free");
    }
    SETUP(cuCtxSetCurrent, (NULL));
    CALLO(cuMemGetInfo_v2, "no-context", (&freed, &total), OUT_C(freed), OUT_C(total));
}

SCENARIO(many_small, "memory/many-small", par_context, PAR_ALONE) {
    CUdeviceptr p[3000];
    par_free_mark();
    for (size_t i = 0; i < 3000; i++)
        p[i] = par_alloc(1024);
    par_free_delta("3000-times-1024");
    for (size_t i = 0; i < 3000; i++)
        SETUP(cuMemFree_v2, (p[i]));
    par_free_delta("freed");
}

SCENARIO(whole_device, "memory/whole-device", par_context, PAR_ALONE) {
    size_t freed, total;
    CUdeviceptr p, q;
    SETUP(cuMemGetInfo_v2, (&freed, &total));
    CALLO(cuMemAlloc_v2, "total-memory", (&p, total), OUT_P(p));
    CALLO(cuMemAlloc_v2, "more-than-free", (&p, freed + PAR_2M), OUT_P(p));
    CALLO(cuMemAlloc_v2, "small-after-refusal", (&q, 4096), OUT_P(q));
}

SCENARIO(managed, "memory/managed", par_context) {
    static const unsigned flags[] = {1, 2, 0, 3, 4, 8};
    CUdeviceptr p;
    for (size_t i = 0; i < COUNT(flags); i++) {
        par_note("flags=%u", flags[i]);
        CALLO(cuMemAllocManaged, i < 2 ? "ok" : "bad-flags", (&p, 4096, flags[i]), OUT_P(p));
        if (par_last() == CUDA_SUCCESS) {
            SETUP(cuMemFree_v2, (p));
            FORGET(p);
        }
    }
    CALLO(cuMemAllocManaged, "zero-size", (&p, 0, CU_MEM_ATTACH_GLOBAL), OUT_P(p));
    CALL(cuMemAllocManaged, "null-out", (NULL, 4096, CU_MEM_ATTACH_GLOBAL));
}

SCENARIO(old_versions, "memory/old-versions", par_context) {
    CUdeviceptr_v1 p, base;
    unsigned pitch_bytes, size, freed, total;
    CALLO(cuMemAlloc, "ok", (&p, 4096), OUT_C(p));
    CALLO(cuMemAlloc, "zero-size", (&p, 0), OUT_C(p));
    CALL(cuMemAlloc, "null-out", (NULL, 4096));
    CALL(cuMemFree, "null", (0));
    CALL(cuMemFree, "random", (0x1000));
    CALLO(cuMemAllocPitch, "ok", (&p, &pitch_bytes, 100, 2, 4), OUT_C(p), OUT_U(pitch_bytes));
    CALLO(cuMemGetAddressRange, "random", (&base, &size, 0x1000), OUT_C(base), OUT_C(size));
    CALLO(cuMemGetInfo, "ok", (&freed, &total), OUT_C(freed), OUT_C(total));
}

SCENARIO(dma_buf, "memory/dma-buf", par_context) {
    int fd;
    CUdeviceptr p = par_alloc(4 * PAR_2M);
    CUdeviceptr mapped = par_mapped(PAR_2M);
    CALLO(cuMemGetHandleForAddressRange, "allocation",
          (&fd, p, PAR_2M, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), OUT_D(fd));
    CALLO(cuMemGetHandleForAddressRange, "size-unaligned",
          (&fd, p, 100, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), OUT_D(fd));
    CALLO(cuMemGetHandleForAddressRange, "zero-size",
          (&fd, p, 0, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), OUT_D(fd));
    CALLO(cuMemGetHandleForAddressRange, "address-unaligned",
          (&fd, p + 1, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), OUT_D(fd));
    CALLO(cuMemGetHandleForAddressRange, "interior-page",
          (&fd, p + 65536, 65536, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), OUT_D(fd));
    CALLO(cuMemGetHandleForAddressRange, "past-end",
          (&fd, p, 8 * PAR_2M, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), OUT_D(fd));
    CALLO(cuMemGetHandleForAddressRange, "pcie-flag",
          (&fd, p, PAR_2M, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 1), OUT_D(fd));
    CALLO(cuMemGetHandleForAddressRange, "bad-flags",
          (&fd, p, PAR_2M, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 2), OUT_D(fd));
    CALLO(cuMemGetHandleForAddressRange, "bad-type", (&fd, p, PAR_2M, (CUmemRangeHandleType)2, 0),
          OUT_D(fd));
    CALLO(cuMemGetHandleForAddressRange, "mapped-not-rdma",
          (&fd, mapped, PAR_2M, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), OUT_D(fd));
    CALL(cuMemGetHandleForAddressRange, "null-out",
         (NULL, p, PAR_2M, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    CALLO(cuMemGetHandleForAddressRange, "random",
          (&fd, 0x1000, PAR_2M, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), OUT_D(fd));
}
