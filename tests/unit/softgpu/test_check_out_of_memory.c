/* The race and the synchronization checker where memory ends, at each allocation in turn: they miss
 * something then, but invent nothing, and the next kernel is checked as ever. */
#include "race_kernel.h"
#include "refused_memory.h"

#include "softgpu/check/sync.h"

/* Threads in warps that part, meet and wait: shadows of lines, words and cells, clocks, released
 * words, mbarriers, copies of threads and in bulk, a warp's functions. No hazard is in it. */
static const char good[] = KERNEL_HEAD
    ".visible .entry k(.param .u64 to) {\n"
    ".reg .pred %p, %q, %o; .reg .b32 %r<24>; .reg .b64 %rd<8>; .reg .b64 %t;\n"
    ".shared .align 16 .b8 s[4096];\n"
    "ld.param.u64 %rd1, [to]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"
    "mad.lo.u32 %r4, %r2, %r3, %r1; mad.wide.u32 %rd2, %r4, 16, %rd1; mov.u32 %r6, s;\n"
    "shl.b32 %r7, %r1, 4; add.u32 %r7, %r7, %r6; setp.eq.u32 %q, %r1, 0;\n"
    "and.b32 %r8, %r1, 1; setp.eq.u32 %o, %r8, 0;\n"
    /* words, and cells of words */
    "ld.global.u32 %r9, [%rd1+32768];\n@%o ld.global.u16 %r9, [%rd2];\n"
    "@!%o ld.global.u8 %r9, [%rd2+1];\nst.global.u32 [%rd2], %r1;\n@%o st.global.u8 [%rd2+4], 1;\n"
    /* an mbarrier, copies of threads and in bulk */
    "@%q mbarrier.init.shared.b64 [s+8], 64;\nbar.sync 0;\n"
    "cp.async.ca.shared.global [%r7+1024], [%rd2], 16;\ncp.async.commit_group;\n"
    "cp.async.wait_group 0;\n@%q mbarrier.expect_tx.relaxed.cta.shared.b64 [s+8], 64;\n"
    "@%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+2048], "
    "[%rd1+32768], 64, [s+8];\n"
    "mbarrier.arrive.shared.b64 %t, [s+8];\n"
    "look: mbarrier.test_wait.shared.b64 %p, [s+8], %t;\n@!%p bra look;\n"
    "ld.shared.u32 %r10, [s+2048];\n"
    /* clocks of lanes, and what they release to other blocks */
    "@!%o bra others;\nmembar.gl;\natom.global.add.u32 %r11, [%rd1+49152], 1;\nmembar.gl;\n"
    "bar.warp.sync 0x55555555;\nothers: bar.warp.sync -1;\n"
    "st.shared.u32 [%r7+2304], %r11;\nbar.sync 1;\nxor.b32 %r12, %r7, 512;\n"
    "ld.shared.u32 %r13, [%r12+2304];\nret;\n}\n";

/* Neighbours' words without a barrier. */
static const char bad[] = KERNEL_HEAD
    ".visible .entry k(.param .u64 to) {\n"
    ".reg .b32 %r<8>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [to];\n"
    "mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;\nst.global.u32 [%rd2], %r1;\n"
    "ld.global.u32 %r2, [%rd2+4];\nret;\n}\n";

static uint32_t memory[16384] __attribute__((aligned(4096)));
static unsigned found;

static void count_race(void *user, const struct sg_race_found *race) {
    found++;
}

static void count_sync(const void *user, const struct sg_sync_found *what) {
    found++;
}

static void make(struct kernel *kernel, const char *text, const struct sg_watch *watch) {
    kernel_make(kernel, text, sg_level_best());
    kernel_pointer(kernel, memory);
    kernel_watched(kernel, sg_level_best(), watch, NULL);
    kernel_shape(kernel, 2, 64);
    kernel->launch.parameters = kernel->parameters;
    kernel->launch.schedule = SG_GRID_LATE;
}

/* False: there was no memory for the grid itself. */
static bool run(struct kernel *kernel, void *user) {
    struct sg_grid *grid;
    kernel->launch.watch_user = user;
    if (!user || sg_grid_begin(&kernel->launch, &grid) != CUDA_SUCCESS)
        return false;
    while (!sg_grid_advance(grid, UINT64_MAX))
        ;
    bool good_end = sg_grid_fault(grid) == NULL;
    sg_grid_end(grid);
    return good_end;
}

static bool run_race(struct kernel *kernel, struct sg_race *race) {
    static uint64_t number;
    const struct sg_race_after after = {.stream = 2, .number = 1};
    const struct sg_race_operation operation = {
        .stream = 1, .number = ++number, .after = &after, .after_count = 1, .name = "k"};
    struct sg_race_shape shape = {{2, 1, 1}, {64, 1, 1}, {0}};
    struct sg_race_grid *grid = sg_race_begin(race, &operation, &shape);
    bool good_end = run(kernel, grid);
    sg_race_end(grid);
    return good_end;
}

TEST(out_of_memory_causes_no_false_race) {
    const struct sg_race_options options = {.found = count_race};
    struct kernel kernel, racing;
    size_t failures = 0;
    make(&kernel, good, &sg_race_watch);
    make(&racing, bad, &sg_race_watch);
    for (bool done = false; !done; failures += !done) {
        found = 0;
        refuse_memory((long)failures + 1);
        struct sg_race *race = sg_race_new(&options);
        bool whole = race && run_race(&kernel, race);
        end_refusal();
        done = !memory_was_refused();
        assert_true(whole || memory_was_refused());
        assert_int_equal(found, 0);
        if (race) {
            assert_true(run_race(&racing, race));
            assert_true(found > 0);
        }
        sg_race_free(race);
    }
    assert_true(failures > 40);
    kernel_free(&kernel);
    kernel_free(&racing);
}

TEST(out_of_memory_causes_no_false_race_between_copies) {
    const struct sg_race_options options = {.found = count_race};
    size_t failures = 0;
    for (bool done = false; !done; failures += !done) {
        found = 0;
        refuse_memory((long)failures + 1);
        struct sg_race *race = sg_race_new(&options);
        const struct sg_race_after after = {.stream = 1, .number = 1};
        const struct sg_race_operation first = {.stream = 1, .number = 1, .name = "a"},
                                       second = {.stream = 2,
                                                 .number = 1,
                                                 .after = &after,
                                                 .after_count = 1,
                                                 .name = "b"};
        if (race) {
            sg_race_copy(race, &first, (uint64_t)(uintptr_t)memory + 3, 8001, true);
            sg_race_copy(race, &second, (uint64_t)(uintptr_t)memory + 7, 8001, true);
        }
        done = !memory_was_refused();
        end_refusal();
        assert_int_equal(found, 0);
        sg_race_free(race);
    }
    assert_true(failures > 8);
}

static struct sg_sync *begin_sync(const struct kernel *kernel) {
    const struct sg_sync_options options = {
        .program = kernel->program, .threads = 64, .grid = {2, 1, 1}, .found = count_sync};
    return sg_sync_begin(&options);
}

TEST(out_of_memory_causes_no_false_synchronization_error) {
    struct kernel kernel;
    size_t failures = 0;
    make(&kernel, good, &sg_sync_watch);
    found = 0;
    for (bool done = false; !done; failures += !done) {
        refuse_memory((long)failures + 1);
        struct sg_sync *sync = begin_sync(&kernel);
        bool whole = sync && run(&kernel, sync);
        end_refusal();
        done = !memory_was_refused();
        assert_true(whole || memory_was_refused());
        assert_int_equal(found, 0);
        if (sync)
            sg_sync_end(sync, false);
    }
    assert_true(failures > 20);
    kernel_free(&kernel);
}
