/* Lanes of one warp inside different functions at the same time: each keeps its registers. */
#include "kernel.h"

/* Each lane calls one of two functions, whose registers are laid out differently; both keep values
 * while the lanes of the other run, because each waits at a function of warps for the other. */
#define FUNCTION(name, wide, narrow)                                                               \
    ".func (.param .u32 result) " name "(.param .u32 n) {\n"                                       \
    ".reg .b32 %r<12>; .reg .b64 %d<12>;\n"                                                        \
    "ld.param.u32 %r1, [n];\n" wide narrow "bar.warp.sync -1;\n"                                   \
    "cvt.u32.u64 %r9, %d1; add.u32 %r1, %r1, %r9; cvt.u32.u64 %r9, %d2; add.u32 %r1, %r1, %r9;\n"  \
    "add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; st.param.u32 [result], %r1; ret; }\n"
#define WIDE(by)                                                                                   \
    "cvt.u64.u32 %d1, %r1; mul.lo.u64 %d1, %d1, " by "; add.u64 %d2, %d1, 1;"                      \
    "add.u64 %d3, %d1, 2; add.u64 %d4, %d1, 3;\n"
#define NARROW "add.u32 %r2, %r1, 5; add.u32 %r3, %r1, 6;\n"

static const char text[] =
    KERNEL_HEAD FUNCTION("first", WIDE("10"), NARROW) FUNCTION("second", NARROW, WIDE("20"))
    /* Deeper than the other, so that frames lie at different depths too. */
    ".func (.param .u32 result) outer(.param .u32 n) {\n"
    ".reg .b32 %r<40>; ld.param.u32 %r1, [n]; add.u32 %r30, %r1, 0;\n"
    "{ .param .u32 a; .param .u32 b; st.param.u32 [a], %r1; call (b), second, (a);\n"
    "ld.param.u32 %r2, [b]; } add.u32 %r2, %r2, %r30; sub.u32 %r2, %r2, %r30;\n"
    "st.param.u32 [result], %r2; ret; }\n"
    ".visible .entry k(.param .u64 out) {\n"
    ".reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<4>;\n"
    "ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4;\n"
    "add.u64 %d1, %d1, %d2; and.b32 %r2, %r1, 1; setp.eq.u32 %p, %r2, 0; @%p bra EVEN;\n"
    "{ .param .u32 a; .param .u32 b; st.param.u32 [a], %r1; call (b), outer, (a);\n"
    "ld.param.u32 %r3, [b]; } bra.uni DONE;\n"
    "EVEN: { .param .u32 a; .param .u32 b; st.param.u32 [a], %r1; call (b), first, (a);\n"
    "ld.param.u32 %r3, [b]; }\n"
    "DONE: st.global.u32 [%d1], %r3; ret; }\n";

TEST(lanes_in_different_functions_keep_their_registers) {
    FOR_EACH_LEVEL(level) {
        uint32_t out[32];
        KERNEL_SUCCEEDS(text, (enum sg_level)level, 1, 32, out);
        for (uint32_t n = 0; n < 32; n++)
            assert_int_equal(out[n], n + 2 * (n & 1 ? 20u : 10u) * n + 1 + n + 5 + n + 6);
    }
}
