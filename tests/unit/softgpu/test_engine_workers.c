/* Several threads advance one grid: all blocks run once, those that wait for each other get on. */
#include "kernel.h"

#include "softgpu/engine/inside.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4 };

struct crew {
    struct sg_grid *grid;
    uint64_t budget;
    atomic_uint ran; /* threads that were there */
    pthread_barrier_t start;
};

static void *advance(void *argument) {
    struct crew *crew = argument;
    pthread_barrier_wait(&crew->start);
    atomic_fetch_add(&crew->ran, 1);
    while (!sg_grid_advance(crew->grid, crew->budget))
        ;
    return NULL;
}

static struct sg_grid_fault run_together(struct kernel *kernel, uint64_t budget) {
    struct crew crew = {.budget = budget};
    pthread_t threads[THREADS];
    kernel->launch.parameters = kernel->parameters;
    kernel->launch.workers = THREADS;
    assert_int_equal(sg_grid_begin(&kernel->launch, &crew.grid), CUDA_SUCCESS);
    pthread_barrier_init(&crew.start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, advance, &crew), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&crew.start);
    assert_int_equal(crew.ran, THREADS);
    assert_true(sg_grid_over(crew.grid));
    const struct sg_grid_fault *fault = sg_grid_fault(crew.grid);
    struct sg_grid_fault result = fault ? *fault : (struct sg_grid_fault){.kind = SG_FAULT_COUNT};
    sg_grid_end(crew.grid);
    return result;
}

/* Each block adds its number to a sum, and counts itself. */
TEST(several_workers_run_each_block_once) {
    static const char text[] =
        KERNEL_HEAD ".visible .entry k(.param .u64 out) {\n"
                    ".reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<6>;\n"
                    "ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;\n"
                    "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;\n"
                    "red.global.add.u32 [%rd2], 1;\n"
                    "atom.global.add.u32 %r3, [%rd1+4000], %r1; ret; }\n";
    enum { BLOCKS = 900, SUM = 1000 };
    static uint32_t out[SUM + 1];
    memset(out, 0, sizeof out);
    struct kernel kernel = KERNEL_WITH(text, sg_level_best(), BLOCKS, 96, out);
    assert_int_equal(run_together(&kernel, 3000).kind, SG_FAULT_COUNT);
    for (int i = 0; i < BLOCKS; i++)
        assert_int_equal(out[i], 96);
    assert_int_equal(out[SUM], 96 * (BLOCKS * (BLOCKS - 1) / 2));
    kernel_free(&kernel);
}

/*
 * A chained scan: block i waits for the sum of blocks before it, adds its own, and tells the next.
 * `sum` is data, published by a fence and a flag.
 */
static const char scan_text[] = KERNEL_HEAD
    ".visible .entry k(.param .u64 sums, .param .u64 flags) {\n"
    ".reg .pred %p; .reg .b32 %r<9>; .reg .b64 %rd<8>;\n"
    "ld.param.u64 %rd1, [sums]; ld.param.u64 %rd2, [flags];\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; setp.ne.u32 %p, %r2, 0; @%p bra end;\n"
    "mul.wide.u32 %rd3, %r1, 4; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;\n"
    "mov.u32 %r4, 0; setp.eq.u32 %p, %r1, 0; @%p bra first;\n"
    "wait: ld.volatile.global.u32 %r3, [%rd2+-4]; setp.eq.u32 %p, %r3, 0; @%p bra wait;\n"
    "fence.acq_rel.gpu; ld.global.u32 %r4, [%rd1+-4];\n"
    "first: add.u32 %r4, %r4, %r1; st.global.u32 [%rd1], %r4; fence.acq_rel.gpu;\n"
    "st.volatile.global.u32 [%rd2], 1;\nend: bar.sync 0; ret; }\n";

TEST(blocks_may_wait_for_earlier_blocks) {
    enum { BLOCKS = 500 };
    static uint32_t sums[BLOCKS], flags[BLOCKS];
    FOR_EACH_LEVEL(level) {
        memset(sums, 0, sizeof sums);
        memset(flags, 0, sizeof flags);
        struct kernel kernel =
            KERNEL_WITH(scan_text, (enum sg_level)level, BLOCKS, 64, sums, flags);
        assert_int_equal(run_together(&kernel, 2000).kind, SG_FAULT_COUNT);
        for (uint32_t i = 0; i < BLOCKS; i++)
            assert_int_equal(sums[i], i * (i + 1) / 2);
        kernel_free(&kernel);
    }
}

/* What others have begun and left, a single thread finishes. */
TEST(one_thread_finishes_blocks_begun_by_others) {
    enum { BLOCKS = 40 };
    static uint32_t sums[BLOCKS], flags[BLOCKS];
    struct sg_grid *grid;
    struct kernel kernel = KERNEL_WITH(scan_text, sg_level_best(), BLOCKS, 64, sums, flags);
    kernel.launch.parameters = kernel.parameters;
    kernel.launch.workers = 3;
    assert_int_equal(sg_grid_begin(&kernel.launch, &grid), CUDA_SUCCESS);
    assert_int_equal(sg_grid_room(grid), 3);
    /* As if three threads had gone in the middle of a block: each worker is held while the next is
     * taken. */
    assert_false(sg_grid_advance(grid, 1));
    atomic_store(&grid->first.taken, true);
    assert_false(sg_grid_advance(grid, 1));
    atomic_store(&grid->first.taken, false);
    assert_int_equal(atomic_load(&grid->begun), 2);
    while (!sg_grid_advance(grid, 500))
        assert_in_range(sg_grid_room(grid), 1, 3);
    assert_null(sg_grid_fault(grid));
    for (uint32_t i = 0; i < BLOCKS; i++)
        assert_int_equal(sums[i], i * (i + 1) / 2);
    sg_grid_end(grid);
    kernel_free(&kernel);
}

/* A grid that waits for another, with blocks of two workers under way. */
static struct sg_grid *waiting_grid(struct kernel *kernel, uint32_t *count, unsigned blocks) {
    static const char text[] = KERNEL_HEAD ".visible .entry k(.param .u64 out) {\n"
                                           ".reg .b64 %rd; ld.param.u64 %rd, [out];\n"
                                           "griddepcontrol.wait; red.global.add.u32 [%rd], 1;\n"
                                           "ret; }\n";
    struct sg_grid *grid;
    *count = 0;
    *kernel = KERNEL_WITH(text, sg_level_best(), blocks, 128, count);
    kernel->launch.parameters = kernel->parameters;
    kernel->launch.workers = 3;
    kernel->launch.held = true;
    assert_int_equal(sg_grid_begin(&kernel->launch, &grid), CUDA_SUCCESS);
    assert_false(sg_grid_advance(grid, 1));
    atomic_store(&grid->first.taken, true);
    assert_false(sg_grid_advance(grid, 1));
    atomic_store(&grid->first.taken, false);
    for (int i = 0; i < 100 && !sg_grid_spins(grid); i++)
        assert_false(sg_grid_advance(grid, 100000));
    assert_true(sg_grid_spins(grid));
    assert_non_null(grid->first.running);
    assert_non_null(sg_grid_worker(grid, 1)->running);
    return grid;
}

TEST(a_grid_counts_as_spinning_when_all_its_workers_spin) {
    enum { BLOCKS = 6 };
    uint32_t count;
    struct kernel kernel;
    struct sg_grid *grid = waiting_grid(&kernel, &count, BLOCKS);
    uint64_t progress = sg_grid_progress(grid), before = sg_grid_instructions(grid);
    for (int i = 0; i < 20; i++)
        assert_false(sg_grid_advance(grid, UINT64_MAX)); /* ends early */
    assert_int_equal(sg_grid_progress(grid), progress);
    assert_true(sg_grid_instructions(grid) - before < 1000000);
    assert_false(sg_grid_triggered(grid));
    assert_int_equal(count, 0);
    sg_grid_release(grid);
    for (unsigned round = 1; round <= 2; round++) {
        while (!sg_grid_advance(grid, 1000))
            ;
        assert_null(sg_grid_fault(grid));
        assert_int_equal(count, round * BLOCKS * 128);
        assert_true(sg_grid_triggered(grid));
        assert_false(sg_grid_spins(grid));
        assert_true(sg_grid_progress(grid) > progress);
        sg_grid_rewind(grid);
        assert_false(sg_grid_triggered(grid));
    }
    sg_grid_end(grid);
    kernel_free(&kernel);
}

TEST(giving_up_reports_the_blocks_of_all_workers) {
    enum { BLOCKS = 4 };
    uint32_t count;
    struct kernel kernel;
    struct sg_grid *grid = waiting_grid(&kernel, &count, BLOCKS);
    sg_grid_give_up(grid);
    const struct sg_grid_fault *fault = sg_grid_fault(grid);
    assert_non_null(fault);
    assert_int_equal(fault->kind, SG_FAULT_TIME);
    for (unsigned i = 0; i < BLOCKS; i++) {
        char block[32];
        snprintf(block, sizeof block, "block %u,0,0 warp 3", i);
        assert_non_null(strstr(fault->report, block));
    }
    assert_true(sg_grid_over(grid));
    assert_true(sg_grid_advance(grid, 1000));
    assert_int_equal(count, 0);
    sg_grid_end(grid);
    kernel_free(&kernel);
}

TEST(the_first_fault_ends_the_grid_for_all_workers) {
    static const char text[] =
        KERNEL_HEAD ".visible .entry k(.param .u64 out) {\n"
                    ".reg .pred %p; .reg .b32 %r<6>;\n"
                    "mov.u32 %r1, %ctaid.x; setp.lt.u32 %p, %r1, 30; @%p bra spin; trap;\n"
                    "spin: mov.u32 %r2, 0;\n"
                    "more: add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, 200; @%p bra more;\n"
                    "ret; }\n";
    struct kernel kernel = KERNEL_WITH(text, sg_level_best(), 1000, 64, NULL);
    struct sg_grid_fault fault = run_together(&kernel, 1000);
    assert_int_equal(fault.kind, SG_FAULT_TRAP);
    assert_in_range(fault.block[0], 30, 999);
    assert_int_equal(fault.thread[0] % 32, 0);
    kernel_free(&kernel);
}
