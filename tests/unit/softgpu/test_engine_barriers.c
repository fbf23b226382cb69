/* Barriers with explicit counts: of whole warps, whichever lanes they have left. */
#include "barrier_texts.h"
#include "kernel.h"

static struct sg_grid_fault run(const char *text, unsigned threads, bool apart, uint32_t *out) {
    memset(out, 0xcc, threads * sizeof *out);
    struct kernel kernel = KERNEL_WITH(text, sg_level_best(), 1, threads, out);
    kernel.launch.apart = apart;
    struct sg_grid_fault fault = kernel_run(&kernel, 0);
    kernel_free(&kernel);
    return fault;
}

/* `value` in the words from first to end, and all other words untouched. */
static void expect(const char *text, unsigned threads, unsigned first, unsigned end,
                   uint32_t value) {
    uint32_t out[128];
    for (int apart = 0; apart < 2; apart++) {
        assert_int_equal(run(text, threads, apart, out).kind, SG_FAULT_COUNT);
        for (unsigned i = 0; i < threads; i++)
            assert_int_equal(out[i], i >= first && i < end ? value : 0xcccccccc);
    }
}

TEST_IS(a_partial_warp_counts_as_a_whole_warp_at_a_barrier,
        expect(KERNEL_HEAD BARRIER_ENTRY("k") BARRIER_SHORT_WARP BARRIER_END, 40, 0, 40, 77));
TEST_IS(exited_lanes_count_as_arrived_at_a_barrier,
        expect(KERNEL_HEAD BARRIER_ENTRY("k") BARRIER_EXITED BARRIER_END, 64, 5, 63, 78));

TEST(a_partial_warp_may_arrive_without_waiting) {
    uint32_t out[64];
    static const char text[] = KERNEL_HEAD BARRIER_ENTRY("k") BARRIER_ARRIVES BARRIER_END;
    for (int apart = 0; apart < 2; apart++) {
        assert_int_equal(run(text, 64, apart, out).kind, SG_FAULT_COUNT);
        for (unsigned i = 0; i < 64; i++)
            assert_int_equal(out[i], i < 20 ? 0xcccccccc : i < 32 ? 1 : 520);
    }
}

/* 72 threads: the last warp has 8. `late` comes last. */
TEST(the_last_warp_of_a_block_may_be_partial) {
    static const char *texts[2] = {
        KERNEL_HEAD BARRIER_ENTRY("k") BARRIER_MIXED("bar.sync 0", "bar.sync 0") BARRIER_END,
        KERNEL_HEAD BARRIER_ENTRY("k") BARRIER_MIXED("bar.sync 0, 96", "bar.sync 0, 96")
            BARRIER_END};
    for (uint32_t late = 0; late < 3; late++)
        for (int way = 0; way < 4; way++) {
            uint32_t out[72];
            for (unsigned i = 0; i < 72; i++)
                out[i] = late;
            struct kernel kernel = KERNEL_WITH(texts[way / 2], sg_level_best(), 1, 72, out);
            kernel.launch.apart = way % 2;
            kernel_succeeds(&kernel);
            kernel_free(&kernel);
            for (unsigned i = 0; i < 72; i++)
                assert_int_equal(out[i], 71 - i);
        }
}

/* As recorded of an H200, also where the count is that of the whole block. */
TEST(barrier_counts_that_differ_are_a_fault) {
    static const char *texts[] = {
        KERNEL_HEAD BARRIER_ENTRY("k") BARRIER_MIXED("bar.sync 0", "bar.sync 0, 64") BARRIER_END,
        KERNEL_HEAD BARRIER_ENTRY("k") BARRIER_MIXED("bar.sync 0, 64", "bar.sync 0") BARRIER_END,
        KERNEL_HEAD BARRIER_ENTRY("k") BARRIER_MIXED("bar.sync 0, 64", "bar.arrive 0, 32")
            BARRIER_END};
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        uint32_t out[64] = {0};
        struct sg_grid_fault fault = run(texts[i], 64, false, out);
        MEMBERS(fault, (kind, SG_FAULT_BARRIER), (size, 0), (address, 0));
    }
}

TEST(half_warps_at_different_barriers_deadlock) {
    uint32_t out[64];
    static const char text[] = KERNEL_HEAD BARRIER_ENTRY("k") BARRIER_HALVES BARRIER_END;
    struct sg_grid_fault fault = run(text, 64, false, out);
    assert_int_equal(fault.kind, SG_FAULT_DEADLOCK);
    assert_string_equal(
        fault.report,
        "warp 0 lanes ffff0000 line 8: waits for barrier 1; threads part at line 8\n"
        "warp 0 lanes 0000ffff line 9: waits for barrier 2; threads part at line 8\n"
        "warp 1 lanes ffff0000 line 8: waits for barrier 1; threads part at line 8\n"
        "warp 1 lanes 0000ffff line 9: waits for barrier 2; threads part at line 8\n");
}

/* In a loop: what one round leaves behind does not count in the next. */
TEST(a_barrier_in_a_loop_starts_each_round_empty) {
    expect(KERNEL_HEAD BARRIER_ENTRY("k") "setp.lt.u32 %p, %t, 3; @%p exit;\n"
                                          "AGAIN: setp.eq.u32 %p, %t, 40; @!%p bra WAIT;\n"
                                          "ld.shared.u32 %y, [s]; add.u32 %y, %y, 1;\n"
                                          "st.shared.u32 [s], %y;\n"
                                          "WAIT: barrier.sync 1, 64; ld.shared.u32 %y, [s];\n"
                                          "barrier.sync 2, 64; add.u32 %x, %x, %y;\n"
                                          "setp.lt.u32 %p, %y, 20; @%p bra AGAIN;\n" BARRIER_END,
           45, 3, 45, 210);
}
