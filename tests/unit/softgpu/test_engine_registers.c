/*
 * Places of registers: values that never live together share one, those that do never; and tags of
 * values that a branch leaves alone hold only for lanes that are in the same round of a loop.
 */
#include "softgpu/engine/inside.h"

#include "kernel.h"

enum { THREADS = 128, VALUES = 300 };

static void run(const char *text, enum sg_level level, bool apart, uint32_t *out, uint32_t *frame) {
    struct kernel kernel = KERNEL_WITH(text, level, 1, THREADS, out);
    kernel.launch.apart = apart;
    kernel_succeeds(&kernel);
    *frame = kernel.code->functions[0].frame;
    kernel_free(&kernel);
}

#define BEGIN                                                                                      \
    KERNEL_HEAD ".visible .entry k(.param .u64 out) {\n"                                           \
                ".reg .pred %p, %q; .reg .b32 %r<400>; .reg .b64 %d<400>;\n"                       \
                "ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4;\n"        \
                "add.u64 %d2, %d0, %d1;\n"
#define END "st.global.u32 [%d2], %r1; ret; }\n"

/* As compilers write it: each value in a register of its own. */
TEST(values_with_disjoint_lifetimes_share_registers) {
    static char text[VALUES * 40 + 1000];
    size_t at = (size_t)snprintf(text, sizeof text, "%s", BEGIN "and.b32 %r10, %r0, 7;\n");
    for (unsigned i = 10; i < VALUES; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "add.u32 %%r%u, %%r%u, %%r0;\n", i + 1,
                               i);
    snprintf(text + at, sizeof text - at, "mov.u32 %%r1, %%r%u;\n%s", VALUES, END);
    FOR_EACH_LEVEL(level) {
        uint32_t out[THREADS], frame;
        run(text, (enum sg_level)level, false, out, &frame);
        for (uint32_t n = 0; n < THREADS; n++)
            assert_int_equal(out[n], (n & 7) + (VALUES - 10) * n);
        assert_in_range(frame, 1, 2048); /* 300 of 128 bytes would be 38,400 */
    }
}

/* Instructions with several results, whose operands end with them. */
TEST(results_do_not_overwrite_operands_still_needed) {
    static const char text[] = BEGIN
        "cvt.u64.u32 %d10, %r0; add.u64 %d11, %d10, 5; st.global.u32 [%d2], %r0;\n"
        "mov.v2.b64 {%d12, %d13}, {%d11, %d10};\n"
        "mov.v2.b64 {%d14, %d15}, {%d13, %d12};\n"
        "sub.u64 %d16, %d15, %d14; cvt.u32.u64 %r10, %d16;\n"
        "shfl.sync.bfly.b32 %r11|%p, %r0, 1, 31, -1; shfl.sync.idx.b32 %r12, %r11, %r11, 31, -1;\n"
        "mov.b64 %d17, {%r10, %r12}; mov.b64 {%r13, %r14}, %d17; mov.b64 %d18, {%r14, %r13};\n"
        "mov.b64 {%r15, %r16}, %d18; mad.lo.u32 %r1, %r16, 1000, %r15;\n" END;
    FOR_EACH_LEVEL(level) {
        uint32_t out[THREADS], frame;
        for (int apart = 0; apart < 2; apart++) {
            run(text, (enum sg_level)level, apart, out, &frame);
            for (uint32_t n = 0; n < THREADS; n++)
                assert_int_equal(out[n], 5000 + (n ^ 1 ^ 1));
        }
    }
}

/* %r10 has one value before the branch, and both ways read it; %r12 is written on one way only, and
 * its place is not that of what the other way reads. */
TEST(a_value_live_on_one_branch_survives_the_other) {
    static const char text[] =
        BEGIN "mul.lo.u32 %r10, %r0, 3; add.u32 %r11, %r0, 100; mov.u32 %r20, 0; mov.u32 %r1, 0;\n"
              "loop: and.b32 %r13, %r0, 1; setp.eq.u32 %p, %r13, 0; @%p bra even;\n"
              "add.u32 %r12, %r10, 1; add.u32 %r14, %r12, 2; add.u32 %r1, %r1, %r14; bra next;\n"
              "even: add.u32 %r15, %r11, %r20; add.u32 %r16, %r15, 2; add.u32 %r1, %r1, %r16;\n"
              "next: add.u32 %r20, %r20, 1; setp.lt.u32 %q, %r20, 9; @%q bra loop;\n" END;
    FOR_EACH_LEVEL(level) {
        uint32_t out[THREADS], frame;
        for (int apart = 0; apart < 2; apart++) {
            run(text, (enum sg_level)level, apart, out, &frame);
            for (uint32_t n = 0; n < THREADS; n++)
                assert_int_equal(out[n], n & 1 ? 9 * (3 * n + 3) : 9 * (n + 102) + 36);
        }
    }
}

/* Many blocks one after another, where lanes may wait and others join them. */
static const char *rounds(unsigned there, unsigned blocks) {
    static char text[65536];
    size_t at =
        (size_t)snprintf(text, sizeof text,
                         "%smov.u32 %%r20, 0; popc.b32 %%r1, %%r0; setp.eq.u64 %%q, %%d0, 0;\n"
                         "loop: and.b32 %%r13, %%r0, 1; setp.eq.u32 %%p, %%r13, 0; @%%p bra next;\n"
                         "min.u32 %%r21, %%r20, 1; mul.lo.u32 %%r21, %%r21, %u; long: add.u32 "
                         "%%r21, %%r21, 1; setp.lt.u32 %%p, %%r21, %u;\n"
                         "@%%p bra long;\n"
                         "next: mad.lo.u32 %%r1, %%r1, 3, %%r20; add.u32 %%r20, %%r20, 1;\n",
                         BEGIN, there - 5, there);
    for (unsigned i = 0; i < blocks; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "@%%q bra end; add.u32 %%r30, %%r30, 1;\n");
    snprintf(text + at, sizeof text - at, "setp.lt.u32 %%p, %%r20, 30; @%%p bra loop;\nend: %s",
             END);
    return text;
}

/* Odd lanes stay long between branch and join in the first round. The others, whose turn comes, go
 * on to later rounds, where the odd ones catch up with them: then the number of the round is not
 * the same in all. */
TEST(lanes_in_different_loop_rounds_keep_their_own_values) {
    uint32_t expected[THREADS];
    for (uint32_t n = 0; n < THREADS; n++) {
        expected[n] = (uint32_t)__builtin_popcount(n); /* no scalar describes that */
        for (uint32_t i = 0; i < 30; i++)
            expected[n] = expected[n] * 3 + i;
    }
    for (unsigned there = 300; there <= 2100; there += 450)
        for (unsigned blocks = 50; blocks <= 950; blocks += 100) {
            uint32_t out[THREADS], frame;
            run(rounds(there, blocks), sg_level_best(), false, out, &frame);
            assert_memory_equal(out, expected, sizeof out);
        }
}
