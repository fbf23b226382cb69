/* Orders that PTX leaves open follow the seed: the same with the same, others with others. */
#include "async_kernel.h"

#define THREADS 128u
#define BLOCKS  16u
#define WORDS   (BLOCKS * THREADS)

/* Each thread draws a number three times, with branches between: who comes when. */
static const char drawing[] =
    ASYNC("mov.u32 %r4, 0; mov.u32 %r2, 0; and.b32 %r5, %r1, 3; mov.u32 %r6, %ctaid.x;\n"
          "mad.lo.u32 %r7, %r6, 128, %r1; mul.wide.u32 %rd2, %r7, 4; add.u64 %rd2, %rd1, %rd2;\n"
          "more: atom.global.add.u32 %r7, [%rd3], 1; add.u32 %r2, %r2, %r7;\n"
          "setp.eq.u32 %p, %r5, 0; @%p bra next; mul.lo.u32 %r7, %r7, 3;\n"
          "next: add.u32 %r4, %r4, 1; setp.lt.u32 %p, %r4, 3; @%p bra more;" ANSWER);

static void draws(struct async_run *run, uint32_t *out) {
    uint32_t counter[4] = {0};
    run->blocks = BLOCKS;
    run->threads = THREADS;
    async_succeeds(drawing, run, out, counter);
    assert_int_equal(counter[0], 3 * WORDS);
}

TEST(the_same_seed_repeats_the_order) {
    static uint32_t eager[WORDS], again[WORDS], first[WORDS], second[WORDS];
    struct async_run run = {.schedule = SG_GRID_EAGER};
    draws(&run, eager);
    run.seed = 5; /* of no meaning there */
    draws(&run, again);
    assert_memory_equal(eager, again, sizeof eager);
    run.schedule = SG_GRID_LATE;
    draws(&run, again);
    assert_memory_equal(eager, again, sizeof eager);
    run.schedule = SG_GRID_RANDOM;
    draws(&run, first);
    draws(&run, again);
    assert_memory_equal(first, again, sizeof first);
    run.seed = 6;
    draws(&run, second);
    assert_memory_not_equal(first, second, sizeof first);
    assert_memory_not_equal(first, eager, sizeof first);
}

/* Each block notes when it came. */
TEST(blocks_begin_in_any_order) {
    enum { SEEDS = 200, BLOCKS_MOST = 8 };
    static const char text[] =
        ASYNC("mov.u32 %r4, %ctaid.x; atom.global.add.u32 %r5, [%rd3], 1;\n"
              "mul.wide.u32 %rd4, %r5, 4; add.u64 %rd4, %rd1, %rd4; st.global.u32 [%rd4], %r4;\n");
    for (uint32_t blocks = 2; blocks <= BLOCKS_MOST; blocks += 3) {
        uint32_t came[BLOCKS_MOST][BLOCKS_MOST] = {{0}}, ascending = 0; /* block, place */
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            uint32_t out[BLOCKS_MOST] = {0}, counter[4] = {0};
            struct kernel kernel = KERNEL_WITH(text, SG_LEVEL_GENERIC, blocks, 1, out, counter);
            kernel.launch.schedule = SG_GRID_RANDOM;
            kernel.launch.seed = seed;
            kernel_succeeds(&kernel);
            kernel_free(&kernel);
            uint32_t all = 0, in_order = 1;
            for (uint32_t i = 0; i < blocks; i++) {
                came[out[i]][i]++;
                all |= UINT32_C(1) << out[i];
                in_order &= out[i] == i;
            }
            assert_int_equal(all, (UINT32_C(1) << blocks) - 1);
            ascending += in_order;
        }
        for (uint32_t b = 0; b < blocks; b++) /* each at each place, about as often */
            for (uint32_t i = 0; i < blocks; i++)
                assert_in_range(came[b][i], SEEDS / blocks / 3, SEEDS * 2 / blocks);
        assert_in_range(ascending, blocks == 2 ? SEEDS / 3 : 0, SEEDS / (blocks == 2 ? 1.5 : 10));
    }
}

/* Whatever the seed, a block may wait for the one in front of it, where only so many fit. */
TEST(blocks_may_wait_for_those_in_front_with_any_seed) {
    static const char text[] =
        ASYNC("mov.u32 %r4, %ctaid.x; setp.ne.u32 %p, %r1, 0; @%p exit;\n"
              "wait: ld.acquire.gpu.u32 %r5, [%rd3]; setp.ne.u32 %p, %r5, %r4; @%p bra wait;\n"
              "mul.wide.u32 %rd4, %r4, 4; add.u64 %rd4, %rd1, %rd4; st.global.u32 [%rd4], %r4;\n"
              "add.u32 %r5, %r5, 1; st.release.gpu.u32 [%rd3], %r5;");
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint32_t out[40] = {0}, counter[4] = {0};
        struct kernel kernel = KERNEL_WITH(text, SG_LEVEL_GENERIC, 40, 64, out, counter);
        kernel.launch.schedule = SG_GRID_RANDOM;
        kernel.launch.seed = seed;
        kernel.launch.resident = 2;
        kernel_succeeds(&kernel);
        kernel_free(&kernel);
        for (uint32_t i = 0; i < 40; i++)
            assert_int_equal(out[i], i);
    }
}

/* Lanes that hold a lock in turn, blocks that wait for each other, barriers: all get on. */
TEST(every_thread_makes_progress_with_any_seed) {
    static const char text[] = ASYNC(
        "mov.u32 %r4, %ctaid.x; mov.u32 %r11, 0;\n"
        "again: atom.global.cas.b32 %r5, [%rd3], 0, 1; setp.ne.u32 %p, %r5, 0; @%p bra again;\n"
        "ld.global.u32 %r6, [%rd3+4]; add.u32 %r6, %r6, 1; st.global.u32 [%rd3+4], %r6;\n"
        "membar.gl; atom.global.exch.b32 %r5, [%rd3], 0; add.u32 %r11, %r11, 1;\n"
        "bar.sync 0; setp.lt.u32 %p, %r11, 3; @%p bra again;");
    for (uint64_t seed = 0; seed < 5; seed++) {
        uint32_t memory[4] = {0}, out[1];
        struct async_run run = {
            .blocks = 3, .threads = 64, .schedule = SG_GRID_RANDOM, .seed = seed};
        async_succeeds(text, &run, out, memory);
        assert_int_equal(memory[1], 3 * 64 * 3);
    }
}

/*
 * Blocks that wait for all blocks, and compute for a while between two looks: a turn that is cut
 * short before the next look must not keep the other blocks from beginning.
 */
TEST(blocks_that_poll_rarely_let_other_blocks_begin) {
    static const char text[] =
        ASYNC("atom.global.add.u32 %r4, [%rd3], 1;\n"
              "look: mov.u32 %r5, 0; ld.relaxed.gpu.global.u32 %r6, [%rd3];\n"
              "compute: add.u32 %r5, %r5, 1; setp.lt.u32 %p, %r5, 150; @%p bra compute;\n"
              "setp.ne.u32 %p, %r6, 256; @%p bra look;");
    for (unsigned schedule = SG_GRID_EAGER; schedule <= SG_GRID_RANDOM; schedule++) {
        uint32_t memory[4] = {0}, out[1];
        struct sg_grid *grid;
        struct kernel kernel = KERNEL_WITH(text, SG_LEVEL_GENERIC, 8, 32, out, memory);
        kernel.launch.schedule = (unsigned char)schedule;
        kernel.launch.parameters = kernel.parameters;
        assert_int_equal(sg_grid_begin(&kernel.launch, &grid), CUDA_SUCCESS);
        for (unsigned slice = 0; slice < 1000 && !sg_grid_over(grid); slice++)
            sg_grid_advance(grid, 10000);
        assert_true(sg_grid_over(grid));
        assert_null(sg_grid_fault(grid));
        sg_grid_end(grid);
        kernel_free(&kernel);
    }
}

/* Blocks that wait for a word to be 7 are known to spin, under a schedule, after some slices. */
static void spins_until_seven(const char *text, enum sg_level level, unsigned threads,
                              unsigned schedule, uint64_t slice, unsigned slices) {
    uint32_t memory[4] = {0}, out[1];
    struct sg_grid *grid;
    struct kernel kernel = KERNEL_WITH(text, level, 3, threads, out, memory);
    kernel.launch.schedule = (unsigned char)schedule;
    kernel.launch.parameters = kernel.parameters;
    assert_int_equal(sg_grid_begin(&kernel.launch, &grid), CUDA_SUCCESS);
    for (unsigned i = 0; i < slices; i++) /* all blocks begin, and look often enough */
        assert_false(sg_grid_advance(grid, slice));
    uint64_t progress = sg_grid_progress(grid);
    for (unsigned i = 0; i < 10; i++)
        assert_false(sg_grid_advance(grid, 100000));
    assert_true(sg_grid_spins(grid));
    assert_int_equal(sg_grid_progress(grid), progress);
    memory[0] = 7;
    for (unsigned i = 0; i < 100 && !sg_grid_over(grid); i++)
        sg_grid_advance(grid, 100000);
    assert_true(sg_grid_over(grid));
    assert_null(sg_grid_fault(grid));
    sg_grid_end(grid);
    kernel_free(&kernel);
}

/* Random turns may be shorter than the loop. */
TEST(a_polling_loop_is_detected_as_spinning) {
    static const char text[] = ASYNC(
        "look: ld.relaxed.gpu.global.u32 %r6, [%rd3]; add.u32 %r4, %r6, 1; mov.u32 %r5, %r4;\n"
        "setp.ne.u32 %p, %r6, 7; @%p bra look;");
    for (unsigned schedule = SG_GRID_EAGER; schedule <= SG_GRID_RANDOM; schedule++)
        spins_until_seven(text, SG_LEVEL_GENERIC, 128, schedule, 100000, 10);
}

/* A loop may poll on each side of a barrier, or let one thread poll and tell the others. */
TEST(polling_between_barriers_is_detected_as_spinning) {
    static const char *const texts[] = {
        ASYNC("look: ld.relaxed.gpu.global.u32 %r6, [%rd3]; bar.sync 0;\n"
              "setp.ne.u32 %p, %r6, 7; @%p bra look;"),
        ASYNC("look: setp.ne.u32 %p, %r1, 0; @%p bra all;\n"
              "ld.volatile.global.u32 %r6, [%rd3]; st.shared.u32 [%r10], %r6;\n"
              "all: bar.sync 0; ld.shared.u32 %r6, [%r10]; bar.sync 0;\n"
              "setp.ne.u32 %p, %r6, 7; @%p bra look;"),
    };
    for (unsigned schedule = SG_GRID_EAGER; schedule <= SG_GRID_RANDOM; schedule++)
        for (unsigned i = 0; i < 2; i++)
            spins_until_seven(texts[i], sg_level_best(), 256, schedule, 1000000, 20);
}

/* Atomic operations that change memory are work; those that change nothing may wait for others. */
TEST(atomics_that_change_memory_do_not_count_as_polling) {
    static const char *const texts[] = {
        ASYNC("more: atom.global.add.u32 %r4, [%rd3], 1; bra more;"),
        ASYNC("more: atom.global.inc.u32 %r4, [%rd3], 7; bra more;"),
        ASYNC("more: atom.global.add.u32 %r4, [%rd3], 0; bra more;"),
        ASYNC("more: atom.global.cas.b32 %r4, [%rd3], 1, 2; bra more;"),
        ASYNC("more: atom.global.exch.b32 %r4, [%rd3], 0; bra more;"),
    };
    for (unsigned i = 0; i < 5; i++) {
        uint32_t memory[4] = {0}, out[1];
        struct sg_grid *grid;
        struct kernel kernel = KERNEL_WITH(texts[i], sg_level_best(), 2, 64, out, memory);
        kernel.launch.parameters = kernel.parameters;
        assert_int_equal(sg_grid_begin(&kernel.launch, &grid), CUDA_SUCCESS);
        for (unsigned slice = 0; slice < 10; slice++)
            assert_false(sg_grid_advance(grid, 100000));
        assert_int_equal(sg_grid_spins(grid), i > 1);
        assert_int_equal(sg_grid_progress(grid) != 0, i < 2);
        sg_grid_end(grid);
        kernel_free(&kernel);
    }
}

/* A race that the usual order hides: the second warp reads what the first has written before any
 * barrier. Some seed shows it. */
TEST(a_missing_barrier_shows_under_some_seed) {
    static const char text[] = ASYNC(
        "shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r10; st.shared.u32 [%r4], %r1;\n"
        "setp.lt.u32 %p, %r1, 32; @%p bra end; ld.shared.u32 %r2, [%r4+-128];" ANSWER "\nend:");
    unsigned shown = 0;
    for (uint64_t seed = 0; seed < 32; seed++) {
        uint32_t out[64] = {0};
        struct async_run run = {.threads = 64, .schedule = SG_GRID_RANDOM, .seed = seed};
        async_succeeds(text, &run, out, NULL);
        shown += out[63] != 31;
    }
    assert_true(shown > 0 && shown < 32);
}
