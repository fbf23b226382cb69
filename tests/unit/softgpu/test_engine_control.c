/* Branches, loops, calls: lanes that part, join again and wait for each other. */
#include "kernel.h"

#define OUT_HEAD                                                                                   \
    ".visible .entry k(.param .u64 out) {\n"                                                       \
    ".reg .pred %p, %q; .reg .b32 %r<12>; .reg .b64 %rd<6>;\n"                                     \
    "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r9, %ctaid.x;\n"                      \
    "mov.u32 %r10, %ntid.x; mad.lo.u32 %r11, %r9, %r10, %r1;\n"                                    \
    "mul.wide.u32 %rd2, %r11, 4; add.u64 %rd2, %rd1, %rd2;\n"
#define OUT_TAIL "st.global.u32 [%rd2], %r2; ret; }\n"

/* Runs a kernel that writes a word for each thread. */
static void words(const char *text, unsigned blocks, unsigned threads, uint32_t *out) {
    FOR_EACH_LEVEL(level) {
        memset(out, 0xcc, blocks * threads * sizeof *out);
        KERNEL_SUCCEEDS(text, (enum sg_level)level, blocks, threads, out);
    }
}

TEST(each_lane_runs_its_own_number_of_loop_rounds) {
    uint32_t out[64];
    words(KERNEL_HEAD OUT_HEAD "mov.u32 %r2, 0; mov.u32 %r3, 0;\n"
                               "loop: setp.ge.u32 %p, %r3, %r1; @%p bra end;\n"
                               "and.b32 %r4, %r3, 1; setp.eq.u32 %q, %r4, 0; @%q bra even;\n"
                               "add.u32 %r2, %r2, 10; bra.uni next;\n"
                               "even: add.u32 %r2, %r2, 1;\n"
                               "next: add.u32 %r3, %r3, 1; bra loop;\n"
                               "end: " OUT_TAIL,
          1, 64, out);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(out[i], i / 2 * 11 + (i & 1));
}

TEST(diverged_lanes_reconverge_at_the_join) {
    uint32_t out[32];
    words(KERNEL_HEAD OUT_HEAD
          "setp.lt.u32 %p, %r1, 7; @%p bra less; mov.u32 %r3, 1; bra.uni both;\n"
          "less: mov.u32 %r3, 2;\n"
          "both: activemask.b32 %r2; " OUT_TAIL,
          1, 32, out);
    for (int i = 0; i < 32; i++)
        assert_int_equal(out[i], UINT32_MAX);
}

TEST(calls_pass_parameters_and_recurse) {
    static const char text[] = KERNEL_HEAD
        ".func (.param .u32 result) fib(.param .u32 n) {\n"
        ".reg .pred %p; .reg .b32 %r<6>;\n"
        "ld.param.u32 %r1, [n]; setp.lt.u32 %p, %r1, 2; mov.u32 %r4, %r1; @%p bra end;\n"
        "sub.u32 %r2, %r1, 1;\n"
        "{ .param .u32 a; .param .u32 b; st.param.u32 [a], %r2; call.uni (b), fib, (a);\n"
        "ld.param.u32 %r3, [b]; }\n"
        "sub.u32 %r2, %r1, 2;\n"
        "{ .param .u32 a; .param .u32 b; st.param.u32 [a], %r2; call.uni (b), fib, (a);\n"
        "ld.param.u32 %r4, [b]; }\n"
        "add.u32 %r4, %r4, %r3;\n"
        "end: st.param.u32 [result], %r4; ret; }\n" OUT_HEAD
        "{ .param .u32 a; .param .u32 b; rem.u32 %r3, %r1, 12; st.param.u32 [a], %r3;\n"
        "call.uni (b), fib, (a); ld.param.u32 %r2, [b]; }\n" OUT_TAIL;
    uint32_t out[64], fib[12] = {0, 1};
    for (int i = 2; i < 12; i++)
        fib[i] = fib[i - 1] + fib[i - 2];
    words(text, 1, 64, out);
    for (int i = 0; i < 64; i++)
        assert_int_equal(out[i], fib[i % 12]);
}

TEST(functions_are_called_by_address_and_with_register_parameters) {
    static const char text[] = KERNEL_HEAD
        ".func (.reg .u32 out) twice(.reg .u32 in) { add.u32 out, in, in; ret; }\n"
        ".func (.param .u32 result) one(.param .u32 n) { .reg .u32 %r; ld.param.u32 %r, [n];\n"
        "add.u32 %r, %r, 1; st.param.u32 [result], %r; ret; }\n"
        ".func (.param .u32 result) two(.param .u32 n) { .reg .u32 %r; ld.param.u32 %r, [n];\n"
        "add.u32 %r, %r, 2; st.param.u32 [result], %r; ret; }\n" OUT_HEAD
        "and.b32 %r3, %r1, 1; setp.eq.u32 %p, %r3, 0; mov.u64 %rd3, one; mov.u64 %rd4, two;\n"
        "selp.b64 %rd3, %rd3, %rd4, %p; call.uni (%r4), twice, (%r1);\n"
        "{ .param .u32 a; .param .u32 b; st.param.u32 [a], %r4;\n"
        "proto: .callprototype (.param .u32 _) _ (.param .u32 _);\n"
        "call (b), %rd3, (a), proto; ld.param.u32 %r2, [b]; }\n" OUT_TAIL;
    uint32_t out[32];
    words(text, 1, 32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], 2 * i + (i & 1 ? 2 : 1));
}

TEST(an_indexed_branch_selects_its_target) {
    uint32_t out[32];
    words(KERNEL_HEAD OUT_HEAD "rem.u32 %r3, %r1, 3; table: .branchtargets a, b, c;\n"
                               "brx.idx %r3, table;\n"
                               "a: mov.u32 %r2, 100; bra end;\n"
                               "b: mov.u32 %r2, 200; bra end;\n"
                               "c: mov.u32 %r2, 300;\n"
                               "end: " OUT_TAIL,
          1, 32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], 100 * (i % 3 + 1));
}

TEST(a_spin_lock_passes_from_lane_to_lane) {
    /* Each lane spins for the lock; who has it is behind those who spin. */
    static const char text[] = KERNEL_HEAD
        ".visible .entry k(.param .u64 out) {\n"
        ".reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd1;\n"
        "ld.param.u64 %rd1, [out];\n"
        "spin: atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p, %r1, 0; @%p bra spin;\n"
        "ld.volatile.global.u32 %r2, [%rd1+4]; add.u32 %r2, %r2, 1;\n"
        "st.volatile.global.u32 [%rd1+4], %r2; membar.gl;\n"
        "atom.global.exch.b32 %r3, [%rd1], 0; ret; }\n";
    FOR_EACH_LEVEL(level) {
        uint32_t lock[2] = {0, 0};
        struct kernel kernel = KERNEL_WITH(text, (enum sg_level)level, 3, 96, lock);
        kernel_succeeds(&kernel);
        assert_int_equal(lock[0], 0);
        assert_int_equal(lock[1], 3 * 96);
        kernel_free(&kernel);
    }
}

TEST(blocks_may_wait_for_earlier_and_later_blocks) {
    /* A chain of sums over blocks, and then all wait for the last. */
    static const char text[] = KERNEL_HEAD OUT_HEAD
        "add.u32 %r3, %r9, 1; mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd1, %rd3;\n"
        "setp.ne.u32 %p, %r1, 0; @%p bra wait; setp.eq.u32 %q, %r9, 0; mov.u32 %r4, 0; @%q bra "
        "mine;\n"
        "before: ld.acquire.gpu.global.u32 %r4, [%rd3+-4]; setp.eq.u32 %p, %r4, 0; @%p bra "
        "before;\n"
        "mine: add.u32 %r4, %r4, 1; st.release.gpu.global.u32 [%rd3], %r4;\n"
        "wait: mov.u32 %r6, %nctaid.x; mul.wide.u32 %rd4, %r6, 4; add.u64 %rd4, %rd1, %rd4;\n"
        "last: ld.acquire.gpu.global.u32 %r5, [%rd4]; setp.eq.u32 %p, %r5, 0; @%p bra last;\n"
        "atom.global.add.u32 %r7, [%rd1], %r5; ret; }\n";
    FOR_EACH_LEVEL(level) {
        uint32_t out[9] = {0};
        struct kernel kernel = KERNEL_WITH(text, (enum sg_level)level, 8, 32, out);
        assert_int_equal(kernel_run(&kernel, 1000).kind, SG_FAULT_COUNT);
        for (uint32_t i = 1; i < 9; i++)
            assert_int_equal(out[i], i);
        assert_int_equal(out[0], 8 * 32 * 8);
        kernel_free(&kernel);
    }
}

TEST(a_grid_is_advanced_in_slices) {
    struct kernel kernel;
    uint32_t flag[2] = {0, 0};
    kernel_make(
        &kernel,
        KERNEL_HEAD
        ".visible .entry k(.param .u64 out) { .reg .pred %p; .reg .b32 %r1; .reg .b64 %rd1;\n"
        "ld.param.u64 %rd1, [out];\n"
        "spin: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p, %r1, 0; @%p bra spin;\n"
        "st.global.u32 [%rd1+4], %r1; ret; }\n",
        sg_level_best());
    kernel_pointer(&kernel, flag);
    kernel.launch.parameters = kernel.parameters;
    struct sg_grid *grid;
    assert_int_equal(sg_grid_begin(&kernel.launch, &grid), CUDA_SUCCESS);
    for (int i = 0; i < 10; i++)
        assert_false(sg_grid_advance(grid, 10000));
    /* A grid that only spins gives way before its slice is used up. */
    assert_true(sg_grid_instructions(grid) >= 10 && sg_grid_instructions(grid) < 200000);
    flag[0] = 7;
    while (!sg_grid_advance(grid, 10000))
        ;
    assert_int_equal(flag[1], 7);
    sg_grid_end(grid);
    kernel_free(&kernel);
}

/* More of them than 16 bits count: the last, and one behind the last. */
TEST(a_branch_table_may_have_more_than_65536_targets) {
    enum { TARGETS = 65540 };
    static const char head[] =
        KERNEL_HEAD ".visible .entry k(.param .u64 out, .param .u32 n) {\n"
                    ".reg .b32 %n; .reg .b64 %d; ld.param.u64 %d, [out]; ld.param.u32 %n, [n];\n"
                    "T: .branchtargets A",
                      tail[] = ", B; brx.idx %n, T;\nA: st.global.u32 [%d], 7; ret;\n"
                               "B: st.global.u32 [%d], 9; ret; }\n";
    char *text = malloc(sizeof head + sizeof tail + (size_t)3 * TARGETS), *at = text;
    uint32_t out = 0;
    assert_non_null(text);
    at = stpcpy(at, head);
    for (int i = 0; i < TARGETS - 2; i++)
        at = stpcpy(at, ", A");
    strcpy(at, tail);
    for (uint32_t n = TARGETS - 1; n <= TARGETS; n++) {
        struct kernel kernel;
        kernel_make(&kernel, text, sg_level_best());
        kernel_pointer(&kernel, &out);
        kernel_number(&kernel, n);
        kernel_shape(&kernel, 1, 1);
        struct sg_grid_fault fault = kernel_run(&kernel, 0);
        assert_int_equal(fault.kind, n < TARGETS ? SG_FAULT_COUNT : SG_FAULT_INSTRUCTION);
        assert_int_equal(out, 9);
        kernel_free(&kernel);
    }
    free(text);
}
