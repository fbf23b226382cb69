/* mbarriers: phases, counts of arrivals and bytes, what is misused. */
#include "async_kernel.h"

/* `body` leaves a number in %r2 of each of 64 threads. */
static void numbers(const char *text, uint32_t *out) {
    struct async_run run = {.threads = 64};
    FOR_EACH_LEVEL(level)
    FOR_EACH_SCHEDULE(run) {
        memset(out, 0xcc, 64 * sizeof *out);
        run.level = (enum sg_level)level;
        async_succeeds(text, &run, out, NULL);
    }
}

static void a_phase_ends_when_all_have_arrived(void **state) {
    (void)state;
    uint32_t out[64];
    numbers(ASYNC("@%q mbarrier.init.shared.b64 [%r8], 64; bar.sync 0;\n"
                  "shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r10; st.shared.u32 [%r4], %r1;\n"
                  "mbarrier.arrive.shared.b64 %rd4, [%r8];\n"
                  "again: mbarrier.try_wait.shared.b64 %p, [%r8], %rd4; @!%p bra again;\n"
                  "xor.b32 %r5, %r1, 63; shl.b32 %r5, %r5, 2; add.u32 %r5, %r5, %r10;\n"
                  "ld.shared.u32 %r2, [%r5];" ANSWER),
            out);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(out[i], i ^ 63);
}

/* A token's phase, and a parity's, before and after; the next phase, and that it wants as many. */
static void phases_have_parities(void **state) {
    (void)state;
    uint32_t out[64];
    numbers(
        ASYNC("@!%q bra end; mov.u32 %r2, 0; mbarrier.init.shared::cta.b64 [%r8], 2;\n"
              "mbarrier.test_wait.parity.shared.b64 %p, [%r8], 1; @%p or.b32 %r2, %r2, 1;\n"
              "mbarrier.test_wait.parity.shared.b64 %p, [%r8], 0; @%p or.b32 %r2, %r2, 2;\n"
              "mbarrier.arrive.shared.b64 %rd4, [%r8];\n"
              "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 4;\n"
              "mbarrier.pending_count.b64 %r5, %rd4; shl.b32 %r5, %r5, 16; or.b32 %r2, %r2, %r5;\n"
              "mbarrier.arrive.shared.b64 %rd5, [%r8];\n"
              "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 8;\n"
              "mbarrier.test_wait.parity.shared.b64 %p, [%r8], 0; @%p or.b32 %r2, %r2, 16;\n"
              "mbarrier.test_wait.parity.shared.b64 %p, [%r8], 1; @%p or.b32 %r2, %r2, 32;\n"
              "mbarrier.arrive.shared.b64 %rd5, [%r8], 2;\n"
              "mbarrier.test_wait.shared.b64 %p, [%r8], %rd5; @%p or.b32 %r2, %r2, 64;\n"
              "mbarrier.test_wait.parity.shared.b64 %p, [%r8], 1; @%p or.b32 %r2, %r2, 128;\n"
              "mbarrier.inval.shared.b64 [%r8]; st.global.u32 [%rd2], %r2;\nend:"),
        out);
    assert_int_equal(out[0], 0x20000 | 1 | 8 | 16 | 64 | 128);
}

/* Who drops out is not wanted any more. */
static void arrivals_are_dropped(void **state) {
    (void)state;
    uint32_t out[64];
    numbers(ASYNC("@!%q bra end; mov.u32 %r2, 0; mbarrier.init.shared.b64 [%r8], 3;\n"
                  "mbarrier.arrive_drop.shared.b64 %rd4, [%r8];\n"
                  "mbarrier.arrive.noComplete.shared.b64 %rd5, [%r8], 1;\n"
                  "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 1;\n"
                  "mbarrier.arrive.shared.b64 %rd5, [%r8];\n"
                  "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 2;\n"
                  "mbarrier.arrive.shared.b64 %rd5, [%r8], 2;\n"
                  "mbarrier.test_wait.parity.shared.b64 %p, [%r8], 1; @%p or.b32 %r2, %r2, 4;\n"
                  "mbarrier.arrive_drop.expect_tx.shared::cta.b64 %rd4, [%r8], 8;\n"
                  "mbarrier.arrive.shared.b64 %rd5, [%r8];\n"
                  "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 8;\n"
                  "mbarrier.complete_tx.relaxed.cta.shared.b64 [%r8], 8;\n"
                  "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 16;\n"
                  "mbarrier.arrive.shared.b64 %rd4, [%r8];\n"
                  "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 32;\n"
                  "st.global.u32 [%rd2], %r2;\nend:"),
            out);
    assert_int_equal(out[0], 2 | 4 | 16 | 32);
}

/* Bytes may be there before they are expected. */
static void bytes_are_counted(void **state) {
    (void)state;
    uint32_t out[64];
    numbers(ASYNC("@!%q bra end; mov.u32 %r2, 0; mbarrier.init.shared.b64 [%r8], 1;\n"
                  "mbarrier.complete_tx.relaxed.cta.shared.b64 [%r8], 48;\n"
                  "mbarrier.test_wait.parity.shared.b64 %p, [%r8], 0; @%p or.b32 %r2, %r2, 1;\n"
                  "mbarrier.expect_tx.relaxed.cta.shared.b64 [%r8], 16;\n"
                  "mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r8], 64;\n"
                  "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 2;\n"
                  "mbarrier.complete_tx.relaxed.cta.shared.b64 [%r8], 16;\n"
                  "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 4;\n"
                  "mbarrier.complete_tx.relaxed.cta.shared.b64 [%r8], 16;\n"
                  "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 8;\n"
                  "st.global.u32 [%rd2], %r2;\nend:"),
            out);
    assert_int_equal(out[0], 8);
}

/* By generic addresses, by names, and a warp at a time through many phases. */
static void producers_and_consumers_alternate(void **state) {
    (void)state;
    uint32_t out[64];
    /* Warp 0 fills, warp 1 adds up; `bar` says full, `bar[1]` empty. */
    numbers(
        ASYNC("cvta.shared.u64 %rd5, %rd6; mov.u64 %rd6, bar; cvta.shared.u64 %rd5, %rd6;\n"
              "@%q mbarrier.init.b64 [%rd5], 32; @%q mbarrier.init.shared.b64 [bar+8], 32;\n"
              "bar.sync 0; mov.u32 %r2, 0; mov.u32 %r4, 0; shl.b32 %r5, %r3, 2;\n"
              "add.u32 %r5, %r5, %r10; setp.ge.u32 %q, %r1, 32; @%q bra consume;\n"
              "produce: and.b32 %r6, %r4, 1; xor.b32 %r6, %r6, 1;\n" AWAIT(
                  "e", "bar+8",
                  "%r6") "mad.lo.u32 %r7, %r4, 100, %r3; st.shared.u32 [%r5], %r7;\n"
                         "mbarrier.arrive.b64 _, [%rd5]; add.u32 %r4, %r4, 1; setp.lt.u32 %p, %r4, "
                         "9;\n"
                         "@%p bra produce; bra end;\n"
                         "consume: and.b32 %r6, %r4, 1;\n" AWAIT(
                             "f", "%r8",
                             "%r6") "ld.shared.u32 %r7, [%r5]; add.u32 %r2, %r2, %r7;\n"
                                    "mbarrier.arrive.shared.b64 _, [%r9]; add.u32 %r4, %r4, 1;\n"
                                    "setp.lt.u32 %p, %r4, 9; @%p bra consume;\nend:" ANSWER),
        out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[32 + i], 3600 + 9 * i);
}

static void misuse_is_a_fault(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum sg_fault_kind kind;
    } cases[] = {
        {ASYNC("mbarrier.arrive.shared.b64 %rd4, [%r8];"), SG_FAULT_MBARRIER},
        {ASYNC("mbarrier.init.shared.b64 [%r8], 0;"), SG_FAULT_MBARRIER},
        {ASYNC("mbarrier.init.shared.b64 [%r8], 1048576;"), SG_FAULT_MBARRIER},
        {ASYNC("mbarrier.init.shared.b64 [%r8+4], 1;"), SG_FAULT_MISALIGNED},
        {ASYNC("mbarrier.init.shared.b64 [%r8+80], 1;"), SG_FAULT_SPACE},
        {ASYNC("mbarrier.init.b64 [%rd1], 1;"), SG_FAULT_SPACE},
        {ASYNC("@%q mbarrier.init.shared.b64 [%r8], 3; mbarrier.arrive.shared.b64 %rd4, [%r8], 4;"),
         SG_FAULT_MBARRIER},
        {ASYNC("mbarrier.init.shared.b64 [%r8], 3; mbarrier.inval.shared.b64 [%r8];\n"
               "mbarrier.test_wait.parity.shared.b64 %p, [%r8], 0;"),
         SG_FAULT_MBARRIER},
        {ASYNC("@%q mbarrier.init.shared.b64 [%r8], 3;\n"
               "mbarrier.expect_tx.relaxed.cta.shared.b64 [%r8], 1048575;"),
         SG_FAULT_MBARRIER},
    };
    uint32_t out[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sg_grid_fault fault =
            async_fault(cases[i].text, &(struct async_run){.threads = 32}, out, NULL);
        if (fault.kind != cases[i].kind)
            fail_msg("%s: %s", cases[i].text, sg_fault_name(fault.kind));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_phase_ends_when_all_have_arrived),
        cmocka_unit_test(phases_have_parities),
        cmocka_unit_test(arrivals_are_dropped),
        cmocka_unit_test(bytes_are_counted),
        cmocka_unit_test(producers_and_consumers_alternate),
        cmocka_unit_test(misuse_is_a_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
