/* malloc and free of kernels: alignment, the end of the heap, life across kernels and modules. Each
 * test is a process of its own: a context keeps its heap. */
#include "kernel_module.h"

/* take(out, size): a block for each thread, filled with its number. check(in, out, size): whether
 * each still holds it, then frees it. exhaust(out, size): how many there are, all freed again. */
#define RUNTIME                                                                                    \
    ".extern .func (.param .b64 r) malloc (.param .b64 size);\n"                                   \
    ".extern .func free (.param .b64 p);\n"
static const char text[] = RUNTIME
    ".visible .entry take(.param .u64 out, .param .u64 size) {\n"
    ".reg .b64 %d<8>; .reg .b32 %r<8>; .reg .pred %p;\n"
    "ld.param.u64 %d1, [out]; ld.param.u64 %d2, [size]; mov.u32 %r1, %tid.x;\n"
    "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r1, %r2, %r3, %r1;\n"
    "{ .param .b64 p; .param .b64 q; st.param.b64 [p], %d2; call.uni (q), malloc, (p);\n"
    "ld.param.b64 %d3, [q]; } mul.wide.u32 %d4, %r1, 8; add.u64 %d4, %d4, %d1;\n"
    "st.global.u64 [%d4], %d3; setp.eq.u64 %p, %d3, 0; @%p ret;\n"
    "mov.u64 %d5, 0; again: add.u64 %d6, %d3, %d5; st.u32 [%d6], %r1; add.u64 %d5, %d5, 4;\n"
    "setp.lt.u64 %p, %d5, %d2; @%p bra again; ret; }\n"
    ".visible .entry exhaust(.param .u64 out, .param .u64 size) {\n"
    ".reg .b64 %d<10>; .reg .b32 %r<4>; .reg .pred %p;\n"
    "ld.param.u64 %d1, [out]; ld.param.u64 %d2, [size]; mov.u64 %d4, 0; mov.u32 %r1, 0;\n"
    /* a chain: each block holds the address of the one before */
    "again: { .param .b64 p; .param .b64 q; st.param.b64 [p], %d2; call.uni (q), malloc, (p);\n"
    "ld.param.b64 %d3, [q]; } setp.eq.u64 %p, %d3, 0; @%p bra full; st.u64 [%d3], %d4;\n"
    "mov.u64 %d4, %d3; add.u32 %r1, %r1, 1; bra again;\n"
    "full: setp.eq.u64 %p, %d4, 0; @%p bra end; ld.u64 %d5, [%d4];\n"
    "{ .param .b64 p; st.param.b64 [p], %d4; call.uni free, (p); } mov.u64 %d4, %d5; bra full;\n"
    "end: st.global.u32 [%d1], %r1; ret; }\n"
    /* give_one(out, size): whether there is a block of this size, which is freed again */
    ".visible .entry give_one(.param .u64 out, .param .u64 size) {\n"
    ".reg .b64 %d<4>; .reg .b32 %r<2>; .reg .pred %p;\n"
    "ld.param.u64 %d1, [out]; ld.param.u64 %d2, [size];\n"
    "{ .param .b64 p; .param .b64 q; st.param.b64 [p], %d2; call.uni (q), malloc, (p);\n"
    "ld.param.b64 %d3, [q]; } setp.ne.u64 %p, %d3, 0; selp.u32 %r1, 1, 0, %p;\n"
    "st.global.u32 [%d1], %r1;\n"
    "{ .param .b64 p; st.param.b64 [p], %d3; call.uni free, (p); } ret; }\n"
    /* release(p): frees it */
    ".visible .entry release(.param .u64 at) {\n"
    ".reg .b64 %d1; ld.param.u64 %d1, [at];\n"
    "{ .param .b64 p; st.param.b64 [p], %d1; call.uni free, (p); } ret; }\n";
/* align(out, size, alignment): a block for each thread, filled with its number. */
static const char aligned_text[] = RUNTIME
    ".extern .func (.param .b64 r) __cuda_syscall_aligned_malloc (.param .b64 size,\n"
    ".param .b64 alignment);\n"
    ".visible .entry align(.param .u64 out, .param .u64 size, .param .u64 alignment) {\n"
    ".reg .b64 %d<7>; .reg .b32 %r<2>; .reg .pred %p;\n"
    "ld.param.u64 %d1, [out]; ld.param.u64 %d2, [size]; ld.param.u64 %d3, [alignment];\n"
    "{ .param .b64 p; .param .b64 a; .param .b64 q; st.param.b64 [p], %d2;\n"
    "st.param.b64 [a], %d3; call.uni (q), __cuda_syscall_aligned_malloc, (p, a);\n"
    "ld.param.b64 %d4, [q]; } mov.u32 %r1, %tid.x; mul.wide.u32 %d5, %r1, 8;\n"
    "add.u64 %d5, %d5, %d1; st.global.u64 [%d5], %d4; setp.eq.u64 %p, %d4, 0; @%p ret;\n"
    "mov.u64 %d5, 0; again: add.u64 %d6, %d4, %d5; st.u32 [%d6], %r1; add.u64 %d5, %d5, 4;\n"
    "setp.lt.u64 %p, %d5, %d2; @%p bra again; ret; }\n";
static const char other[] =
    RUNTIME ".visible .entry check(.param .u64 in, .param .u64 bad, .param .u64 size) {\n"
            ".reg .b64 %d<8>; .reg .b32 %r<8>; .reg .pred %p;\n"
            "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [size]; ld.param.u64 %d7, [bad];\n"
            "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"
            "mad.lo.u32 %r1, %r2, %r3, %r1; mul.wide.u32 %d4, %r1, 8; add.u64 %d4, %d4, %d1;\n"
            "ld.global.u64 %d3, [%d4]; mov.u64 %d5, 0;\n"
            "again: add.u64 %d6, %d3, %d5; ld.u32 %r4, [%d6]; setp.ne.u32 %p, %r4, %r1;\n"
            "@%p red.global.add.u32 [%d7], 1; add.u64 %d5, %d5, 4; setp.lt.u64 %p, %d5, %d2;\n"
            "@%p bra again;\n"
            "{ .param .b64 p; st.param.b64 [p], %d3; call.uni free, (p); } ret; }\n";

#define THREADS 192u

DRIVER_CHILD(lives) {
    CUmodule first = kernel_module(NULL, text), second = kernel_module(NULL, other);
    uint64_t size = 100, blocks[THREADS];
    unsigned wrong = 99;
    CUdeviceptr out = MADE_CU(CUdeviceptr, cuMemAlloc_v2, sizeof blocks);
    CUdeviceptr bad = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4);
    OK_CU(cu.cuMemsetD32_v2(bad, 0, 1));
    void *params[] = {&out, &size}, *check[] = {&out, &bad, &size};
    OK_CU(kernel_launch(function_of(first, "take"), 3, THREADS / 3, params));
    OK_CU(cu.cuMemcpyDtoH_v2(blocks, out, sizeof blocks));
    for (unsigned i = 0; i < THREADS; i++) {
        assert_true(blocks[i] != 0 && blocks[i] % 16 == 0);
        for (unsigned k = 0; k < i; k++)
            assert_true(blocks[i] >= blocks[k] + size || blocks[k] >= blocks[i] + size);
    }
    OK_CU(cu.cuModuleUnload(first));
    OK_CU(kernel_launch(function_of(second, "check"), 3, THREADS / 3, check));
    assert_int_equal(word_at(bad), 0);
    /* It is no memory of the application's. */
    assert_int_not_equal(cu.cuMemcpyDtoH_v2(&wrong, blocks[0], 4), CUDA_SUCCESS);
}

/* __nv_aligned_device_malloc: what a compiler makes of it. */
DRIVER_CHILD(aligns) {
    CUmodule module = kernel_module(NULL, aligned_text), second = kernel_module(NULL, other);
    uint64_t size = 40, alignment, blocks[32];
    CUdeviceptr out = MADE_CU(CUdeviceptr, cuMemAlloc_v2, sizeof blocks);
    CUdeviceptr bad = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4);
    OK_CU(cu.cuMemsetD32_v2(bad, 0, 1));
    void *params[] = {&out, &size, &alignment}, *check[] = {&out, &bad, &size};
    for (alignment = 1; alignment <= 8192; alignment *= 2) {
        OK_CU(kernel_launch(function_of(module, "align"), 1, 32, params));
        OK_CU(cu.cuMemcpyDtoH_v2(blocks, out, sizeof blocks));
        for (int i = 0; i < 32; i++)
            assert_true(blocks[i] != 0 && blocks[i] % alignment == 0);
        OK_CU(kernel_launch(function_of(second, "check"), 1, 32, check)); /* frees them, too */
        assert_int_equal(word_at(bad), 0);
    }
    alignment = 16, size = (uint64_t)1 << 40;
    OK_CU(kernel_launch(function_of(module, "align"), 1, 1, params));
    OK_CU(cu.cuMemcpyDtoH_v2(blocks, out, sizeof blocks));
    assert_int_equal(blocks[0], 0);
}

DRIVER_CHILD(ends) {
    uint64_t size = (uint64_t)1 << 20;
    unsigned count[2];
    OK_CU(cu.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, (size_t)8 << 20));
    CUmodule module = kernel_module(NULL, text);
    CUdeviceptr out = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4);
    void *params[] = {&out, &size};
    for (int i = 0; i < 2; i++) {
        OK_CU(kernel_launch(function_of(module, "exhaust"), 1, 1, params));
        OK_CU(cu.cuMemcpyDtoH_v2(&count[i], out, sizeof count[i]));
    }
    assert_in_range(count[0], 1, 8);
    assert_int_equal(count[0], count[1]);
    size = 0; /* a block, too */
    OK_CU(kernel_launch(function_of(module, "give_one"), 1, 1, params));
    OK_CU(cu.cuMemcpyDtoH_v2(&count[0], out, sizeof count[0]));
    assert_int_equal(count[0], 1);
    size = (uint64_t)1 << 40;
    OK_CU(kernel_launch(function_of(module, "exhaust"), 1, 1, params));
    OK_CU(cu.cuMemcpyDtoH_v2(&count[0], out, sizeof count[0]));
    assert_int_equal(count[0], 0);
    FAILS_CU(INVALID_VALUE, cu.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, (size_t)16 << 20));
}

DRIVER_CHILD(frees) {
    CUmodule module = kernel_module(NULL, text);
    uint64_t nothing = 0, middle, size = 64, block, other;
    CUdeviceptr out = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 8);
    void *none[] = {&nothing}, *take[] = {&out, &size}, *bad[] = {&middle}, *own[] = {&out};
    void *once[] = {&block};
    OK_CU(kernel_launch(function_of(module, "release"), 1, 1, none));
    OK_CU(kernel_launch(function_of(module, "take"), 1, 1, take));
    OK_CU(cu.cuMemcpyDtoH_v2(&block, out, sizeof block));
    middle = block + 16;
    OK_CU(kernel_launch(function_of(module, "release"), 1, 1, bad));
    OK_CU(kernel_launch(function_of(module, "release"), 1, 1, own));
    OK_CU(cu.cuCtxSynchronize());
    /* Nothing was freed: the block is not given out again, and memory of the application stays. */
    OK_CU(kernel_launch(function_of(module, "take"), 1, 1, take));
    OK_CU(cu.cuMemcpyDtoH_v2(&other, out, sizeof other));
    assert_true(other != 0 && (other >= block + size || block >= other + size));
    OK_CU(kernel_launch(function_of(module, "release"), 1, 1, once));
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(kernel_launch(function_of(module, "release"), 1, 1, once));
    FAILS_CU(LAUNCH_FAILED, cu.cuCtxSynchronize());
    FAILS_CU(LAUNCH_FAILED, cu.cuMemFree_v2(out)); /* it stays */
}

#define IN_CHILD(name, child)                                                                      \
    TEST(name) {                                                                                   \
        NEEDS_KERNELS();                                                                           \
        assert_int_equal(run_child(child, NULL), 0);                                               \
    }
IN_CHILD(heap_blocks_live_across_kernels_and_modules, "lives")
IN_CHILD(heap_blocks_have_the_requested_alignment, "aligns")
IN_CHILD(malloc_beyond_the_heap_limit_returns_null, "ends")
IN_CHILD(freeing_an_unknown_pointer_does_nothing_and_a_double_free_faults, "frees")
