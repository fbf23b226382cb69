/* External arrays in shared memory whose size is said: without a linker they are allocated, as
 * compilers that write their own PTX expect; one without a size has what the launch gives. */
#include "kernels.h"

static const char text[] = KERNELS_HEAD
    ".extern .shared .align 8 .b8 sized[256];\n"
    ".shared .align 4 .b8 own[64];\n"
    ".extern .shared .align 8 .b8 open[];\n"
    /* Each thread writes a word into each array, and reads what the last thread before it wrote. */
    ".visible .entry turn(.param .u64 out) {\n"
    ".reg .b32 %r<12>; .reg .b64 %d<4>; .reg .pred %p; ld.param.u64 %d1, [out];\n"
    "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, sized; add.u32 %r3, %r3, %r2;\n"
    "add.u32 %r4, %r1, 100; st.shared.u32 [%r3], %r4; mov.u32 %r5, open; add.u32 %r5, %r5, %r2;\n"
    "add.u32 %r6, %r1, 1000; st.shared.u32 [%r5], %r6; setp.ge.u32 %p, %r1, 16;\n"
    "mov.u32 %r7, own; add.u32 %r7, %r7, %r2; @!%p st.shared.u32 [%r7], %r1; bar.sync 0;\n"
    "xor.b32 %r8, %r2, 252; mov.u32 %r9, sized; add.u32 %r9, %r9, %r8; ld.shared.u32 %r10, [%r9];\n"
    "mov.u32 %r9, open; add.u32 %r9, %r9, %r8; ld.shared.u32 %r11, [%r9]; add.u32 %r10, %r10, "
    "%r11;\n"
    "cvt.u64.u32 %d2, %r2; add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r10; ret; }\n"
    ".visible .entry probe() { ret; }\n";

TEST(a_sized_extern_shared_array_is_static) {
    kernels_open(text);
    struct shared_words words = words_make(64);
    int bytes = -1;
    CUfunction f = kernel("turn");
    OK_CU(cu.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
    assert_int_equal(bytes, 256 + 64);
    OK_CU(cu.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel("probe")));
    assert_int_equal(bytes, 0);
    void *params[] = {&words.device};
    OK_CU(cu.cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 256, NULL, params, NULL));
    OK_CU(cu.cuCtxSynchronize());
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(words.host[i], 1100 + 2 * (63 - i));
}
