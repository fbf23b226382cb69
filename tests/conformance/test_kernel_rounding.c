/*
 * The floating-point modes of the thread that loads a module, launches its kernels and waits for
 * them: kernels compute as if they were not there, and they are the same afterwards.
 */
#include "kernels.h"

#include <fenv.h>

/* Results that any mode but rounding to nearest changes, with subnormal numbers among them; and
 * what traps, where an application has asked for that. */
static const char text[] = KERNELS_HEAD
    ".visible .entry probe() { ret; }\n"
    ".visible .entry compute(.param .u64 out, .param .f32 one, .param .f32 small) {\n"
    ".reg .f32 %f<16>; .reg .f64 %e<4>; .reg .b64 %d; .reg .b32 %r<4>; .reg .b16 %h<2>;\n"
    "ld.param.u64 %d, [out]; ld.param.f32 %f0, [one]; ld.param.f32 %f1, [small];\n"
    "mov.f32 %f2, 0f33000001; add.f32 %f2, %f0, %f2; st.global.f32 [%d], %f2;\n" /* 1 + 2^-25 */
    "neg.f32 %f3, %f0; sub.f32 %f3, %f3, 0f33000001; st.global.f32 [%d+4], %f3;\n"
    "add.f32 %f4, %f1, %f1; st.global.f32 [%d+8], %f4;\n" /* subnormal */
    "mul.f32 %f5, %f1, 0f3F000000; st.global.f32 [%d+12], %f5;\n"
    "mov.f32 %f6, 0.1; st.global.f32 [%d+16], %f6;\n" /* decimal, of the text */
    "mov.f64 %e0, -0.1; st.global.f64 [%d+24], %e0;\n"
    "mov.f32 %f7, 0f40400000; div.rn.f32 %f8, %f0, %f7; st.global.f32 [%d+32], %f8;\n"
    "sqrt.rn.f32 %f9, %f7; st.global.f32 [%d+36], %f9;\n"
    "fma.rn.f32 %f10, %f8, %f8, %f6; st.global.f32 [%d+40], %f10;\n"
    "cvt.f64.f32 %e1, %f7; rcp.rn.f64 %e1, %e1; cvt.rn.f32.f64 %f11, %e1;\n"
    "st.global.f64 [%d+48], %e1; st.global.f32 [%d+56], %f11;\n"
    "cvt.rn.f16.f32 %h0, %f6; cvt.u32.u16 %r0, %h0; st.global.u32 [%d+60], %r0;\n"
    "mov.u32 %r1, 16777217; cvt.rn.f32.u32 %f12, %r1; st.global.f32 [%d+64], %f12;\n"
    "sub.f32 %f13, %f0, %f0; div.rn.f32 %f14, %f0, %f13; st.global.f32 [%d+68], %f14;\n"
    "div.rn.f32 %f15, %f13, %f13; st.global.f32 [%d+72], %f15;\n"
    "ex2.approx.f32 %f15, %f6; st.global.f32 [%d+76], %f15; ret; }\n";

enum { WORDS = 20 };
static struct shared_words words;

/* From the text to the results, all in this thread. */
static void compute(unsigned results[WORDS]) {
    float one = 1;
    unsigned small = 0x00012345; /* bits of a subnormal number */
    void *params[] = {&words.device, &one, &small};
    for (int i = 0; i < WORDS; i++)
        words.host[i] = 0;
    CUmodule module = MADE_CU(CUmodule, cuModuleLoadData, text);
    CUfunction f = function_of(module, "compute");
    OK_CU(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuModuleUnload(module));
    for (int i = 0; i < WORDS; i++)
        results[i] = words.host[i];
}

static void same(const unsigned *results, const unsigned *expected, const char *mode) {
    for (int i = 0; i < WORDS; i++)
        if (results[i] != expected[i])
            fail_msg("%s: the word %d is %08x, not %08x", mode, i, results[i], expected[i]);
}

static void begin(unsigned expected[WORDS]) {
    kernels_open(text);
    words = words_make(WORDS);
    compute(expected);
    assert_int_equal(expected[0], 0x3f800000);
    assert_int_equal(expected[1], 0xbf800000);
    assert_int_equal(expected[2], 2 * 0x00012345);
    assert_int_equal(expected[4], 0x3dcccccd);
    assert_int_equal(expected[17], 0x7f800000);
    assert_int_equal(expected[18], 0x7fffffff);
}

TEST(kernels_ignore_the_threads_rounding_mode) {
    static const struct {
        const char *name;
        int mode;
    } modes[] = {{"upward", FE_UPWARD}, {"downward", FE_DOWNWARD}, {"to zero", FE_TOWARDZERO}};
    unsigned expected[WORDS], results[WORDS];
    begin(expected);
    for (size_t i = 0; i < COUNT(modes); i++) {
        assert_int_equal(fesetround(modes[i].mode), 0);
        compute(results);
        int mode = fegetround();
        fesetround(FE_TONEAREST);
        assert_int_equal(mode, modes[i].mode);
        same(results, expected, modes[i].name);
    }
}

TEST(kernels_ignore_the_threads_flush_and_trap_modes) {
#ifdef __x86_64__
    /* Subnormal results and operands are zeros; invalid operations, divisions by zero and
     * overflows are signals. */
    static const unsigned modes[] = {0x1f80 | 0x8040, 0x1f80 & ~0x680u,
                                     (0x1f80 | 0xe040) & ~0x680u};
    unsigned expected[WORDS], results[WORDS];
    begin(expected);
    for (size_t i = 0; i < COUNT(modes); i++) {
        char name[32];
        unsigned before = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(modes[i]);
        compute(results);
        unsigned mode = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(before);
        snprintf(name, sizeof name, "mode %04x", modes[i]);
        assert_int_equal(mode & ~0x3fu, modes[i]); /* flags of what happened aside */
        same(results, expected, name);
    }
#else
    SKIP("the modes of this processor are not known here");
#endif
}
