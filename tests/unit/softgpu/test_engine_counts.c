/* Counted code: how often instructions ran, with how many lanes, and what they moved. Each kernel
 * is one whose numbers are known exactly; warps in lock step and by themselves must agree. */
#include "kernel.h"

#include "softgpu/engine/count.h"
#include "softgpu/program/program.h"

#include <pthread.h>

static void make_counted(struct kernel *kernel, const char *text, enum sg_level level) {
    kernel_make(kernel, text, level);
    sg_code_free(kernel->code);
    assert_int_equal(sg_code_make(kernel->program, level, SG_CODE_COUNTED, &kernel->code),
                     CUDA_SUCCESS);
    kernel->launch.code = kernel->code;
}

/* Runs it to its end; the caller frees the counts. */
static struct sg_counts *counts_of(struct kernel *kernel, uint64_t budget) {
    struct sg_grid *grid;
    struct sg_counts *counts = sg_counts_new(kernel->code);
    kernel->launch.parameters = kernel->parameters;
    assert_non_null(counts);
    assert_int_equal(sg_grid_begin(&kernel->launch, &grid), CUDA_SUCCESS);
    while (!sg_grid_advance(grid, budget))
        ;
    assert_null(sg_grid_fault(grid));
    sg_grid_counts(grid, counts);
    sg_grid_end(grid);
    return counts;
}

/* The instruction of a line; the first of it. */
static const struct sg_count *of_line(const struct kernel *kernel, const struct sg_counts *counts,
                                      uint32_t line) {
    for (size_t i = 0; i < kernel->program->instruction_count; i++)
        if (kernel->program->instructions[i].line == line)
            return &counts->instructions[i];
    fail_msg("no instruction in line %u", line);
    return NULL;
}

static const struct sg_access_count *access_of(const struct kernel *kernel,
                                               const struct sg_counts *counts, uint32_t line,
                                               unsigned direction) {
    for (size_t i = 0; i < counts->access_count; i++)
        if (kernel->program->instructions[counts->accesses[i].instruction].line == line &&
            counts->accesses[i].direction == direction)
            return &counts->accesses[i];
    fail_msg("no access in line %u", line);
    return NULL;
}

static void expect_count(const struct kernel *kernel, const struct sg_counts *counts, uint32_t line,
                         struct sg_count wanted) {
    const struct sg_count *got = of_line(kernel, counts, line);
    if (got->warps != wanted.warps || got->threads != wanted.threads || got->taken != wanted.taken)
        fail_msg("line %u: %llu warps, %llu threads, %llu taken", line,
                 (unsigned long long)got->warps, (unsigned long long)got->threads,
                 (unsigned long long)got->taken);
}

/* All in one space. */
static void expect_access(const struct kernel *kernel, const struct sg_counts *counts,
                          uint32_t line, unsigned direction, unsigned space, uint64_t bytes,
                          uint64_t same, uint64_t contiguous, uint64_t scattered) {
    const struct sg_access_count *got = access_of(kernel, counts, line, direction);
    const uint64_t *warps = got->warps[space];
    uint64_t all = 0;
    for (unsigned s = 0; s < SG_COUNT_SPACES; s++)
        all += got->bytes[s];
    if (got->bytes[space] != bytes || all != bytes || warps[SG_COUNT_SAME] != same ||
        warps[SG_COUNT_CONTIGUOUS] != contiguous || warps[SG_COUNT_SCATTERED] != scattered)
        fail_msg("line %u: %llu bytes of %llu, %llu same, %llu contiguous, %llu scattered", line,
                 (unsigned long long)got->bytes[space], (unsigned long long)all,
                 (unsigned long long)warps[SG_COUNT_SAME],
                 (unsigned long long)warps[SG_COUNT_CONTIGUOUS],
                 (unsigned long long)warps[SG_COUNT_SCATTERED]);
}

/* In lock step and apart, on each level. */
typedef void check(const struct kernel *kernel, const struct sg_counts *counts);
static void each_way(const char *text, void *memory, unsigned blocks, unsigned threads,
                     check *checks) {
    FOR_EACH_LEVEL(level)
    for (int apart = 0; apart < 2; apart++) {
        struct kernel kernel;
        make_counted(&kernel, text, (enum sg_level)level);
        kernel_pointer(&kernel, memory);
        kernel_shape(&kernel, blocks, threads);
        kernel.launch.apart = apart;
        struct sg_counts *counts = counts_of(&kernel, UINT64_MAX);
        checks(&kernel, counts);
        sg_counts_free(counts);
        kernel_free(&kernel);
    }
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* Line 4 is the first behind the kernel's head. */
#define BEGIN KERNEL_HEAD ".visible .entry k(.param .u64 at) {\n"

static void check_loop(const struct kernel *kernel, const struct sg_counts *counts) {
    /* 3 blocks of 6 warps, the last of 8 lanes: 168 threads. */
    expect_count(kernel, counts, 6, (struct sg_count){18, 504, 504});
    expect_count(kernel, counts, 7, (struct sg_count){18 * 100, 504 * 100, 504 * 100});
    expect_count(kernel, counts, 8, (struct sg_count){18 * 100, 504 * 100, 504 * 100});
    expect_count(kernel, counts, 9, (struct sg_count){18 * 100, 504 * 100, 504 * 99});
    expect_count(kernel, counts, 10, (struct sg_count){18, 504, 504});
}

TEST(a_loop_of_a_hundred_rounds_is_counted_exactly) {
    each_way(BEGIN ".reg .b32 %i; .reg .pred %p;\n"
                   "mov.u32 %i, 0;\n"
                   "again: add.u32 %i, %i, 1;\n"
                   "setp.lt.u32 %p, %i, 100;\n"
                   "@%p bra again;\n"
                   "ret; }\n",
             NULL, 3, 168, check_loop);
}

static void check_halves(const struct kernel *kernel, const struct sg_counts *counts) {
    expect_count(kernel, counts, 7, (struct sg_count){4, 128, 64});     /* the branch */
    expect_count(kernel, counts, 8, (struct sg_count){4, 64, 64});      /* who goes on */
    expect_count(kernel, counts, 10, (struct sg_count){4, 64, 64});     /* who has branched */
    expect_count(kernel, counts, 11, (struct sg_count){4, 128, 4 * 8}); /* together again */
}

TEST(diverged_and_guarded_lanes_are_counted_exactly) {
    each_way(BEGIN ".reg .b32 %i, %l; .reg .pred %p, %q;\n"
                   "mov.u32 %l, %laneid; setp.lt.u32 %p, %l, 16; setp.lt.u32 %q, %l, 8;\n"
                   "@%p bra low;\n"
                   "mov.u32 %i, 1;\n"
                   "bra.uni join;\n"
                   "low: mov.u32 %i, 2;\n"
                   "join: @%q add.u32 %i, %i, 1;\n"
                   "ret; }\n",
             NULL, 1, 128, check_halves);
}

static void check_call(const struct kernel *kernel, const struct sg_counts *counts) {
    expect_count(kernel, counts, 4, (struct sg_count){2 * 3, 64 * 3, 64 * 3});
    const struct sg_count *ret = of_line(kernel, counts, 13);
    assert_int_equal(ret->warps, 2);
}

TEST(instructions_of_called_functions_are_counted_exactly) {
    each_way(KERNEL_HEAD ".func twice(.reg .b32 %a) { add.u32 %a, %a, %a; ret; }\n"
                         ".visible .entry k(.param .u64 at) {\n"
                         ".reg .b32 %i, %l; .reg .pred %p;\n"
                         "mov.u32 %i, 0;\n"
                         "again:\n"
                         "call.uni twice, (%i);\n"
                         "add.u32 %i, %i, 1;\n"
                         "setp.lt.u32 %p, %i, 3;\n"
                         "@%p bra again;\n"
                         "ret; }\n",
             NULL, 1, 64, check_call);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void check_strides(const struct kernel *kernel, const struct sg_counts *counts) {
    expect_access(kernel, counts, 7, SG_COUNT_READ, SG_COUNT_PARAMETERS, 8 * 128, 0, 0, 0);
    expect_access(kernel, counts, 9, SG_COUNT_READ, SG_COUNT_GLOBAL, 4 * 128, 0, 4, 0);
    expect_access(kernel, counts, 11, SG_COUNT_WRITTEN, SG_COUNT_GLOBAL, 4 * 128, 0, 0, 4);
    expect_access(kernel, counts, 12, SG_COUNT_READ, SG_COUNT_GLOBAL, 8 * 128, 4, 0, 0);
    expect_access(kernel, counts, 14, SG_COUNT_READ, SG_COUNT_GLOBAL, 16 * 128, 0, 4, 0);
    expect_access(kernel, counts, 15, SG_COUNT_READ, SG_COUNT_GLOBAL, 4 * 10, 0, 1, 0);
}

TEST(accesses_of_each_stride_are_counted_in_sectors) {
    static _Alignas(16) unsigned char memory[128 * 16];
    each_way(BEGIN ".reg .b32 %t, %x, %y, %z, %w; .reg .b64 %a, %b, %c; .reg .pred %p;\n"
                   "mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 10;\n"
                   "ld.param.u64 %a, [at];\n"
                   "mul.wide.u32 %b, %t, 4; add.u64 %b, %b, %a;\n"
                   "ld.global.u32 %x, [%b];\n"
                   "mul.wide.u32 %c, %t, 12; add.u64 %c, %c, %a;\n"
                   "st.global.u32 [%c], %x;\n"
                   "ld.global.u64 %b, [%a+8];\n"
                   "mul.wide.u32 %c, %t, 16; add.u64 %c, %c, %a;\n"
                   "ld.global.v4.u32 {%x, %y, %z, %w}, [%c];\n"
                   "mul.wide.u32 %b, %t, 4; add.u64 %b, %b, %a; @%p ld.global.u32 %x, [%b];\n"
                   "ret; }\n",
             memory, 1, 128, check_strides);
}

static void check_spaces(const struct kernel *kernel, const struct sg_counts *counts) {
    expect_access(kernel, counts, 9, SG_COUNT_WRITTEN, SG_COUNT_SHARED, 4 * 64, 0, 2, 0);
    expect_access(kernel, counts, 10, SG_COUNT_WRITTEN, SG_COUNT_LOCAL, 2 * 64, 0, 0, 0);
    expect_access(kernel, counts, 11, SG_COUNT_ATOMIC, SG_COUNT_GLOBAL, 4 * 64, 2, 0, 0);
    expect_access(kernel, counts, 12, SG_COUNT_ATOMIC, SG_COUNT_SHARED, 4 * 64, 2, 0, 0);
    expect_access(kernel, counts, 14, SG_COUNT_WRITTEN, SG_COUNT_SHARED, 16 * 64, 0, 0, 0);
    expect_access(kernel, counts, 14, SG_COUNT_READ, SG_COUNT_GLOBAL, 16 * 64, 0, 2, 0);
    expect_access(kernel, counts, 15, SG_COUNT_READ, SG_COUNT_SHARED, 512 * 2, 0, 0, 0);
    /* By a generic address: 16 lanes in shared memory, 16 in global memory. */
    const struct sg_access_count *both = access_of(kernel, counts, 18, SG_COUNT_READ);
    assert_int_equal(both->bytes[SG_COUNT_SHARED], 32 * 4);
    assert_int_equal(both->bytes[SG_COUNT_GLOBAL], 32 * 4);
    assert_int_equal(both->warps[SG_COUNT_SHARED][SG_COUNT_CONTIGUOUS], 2);
    assert_int_equal(both->warps[SG_COUNT_GLOBAL][SG_COUNT_SAME], 2);
}

TEST(accesses_are_counted_by_memory_space) {
    static _Alignas(16) unsigned char memory[64 * 16];
    each_way(
        BEGIN
        ".shared .align 16 .b8 s[1024]; .local .b16 l; .reg .b64 %a, %b, %c, %g;\n"
        ".reg .b32 %t, %x<5>, %s; .reg .pred %p;\n"
        "ld.param.u64 %a, [at]; mov.u32 %t, %tid.x; mov.u32 %x1, 1;\n"
        "mul.lo.u32 %s, %t, 4; mov.u32 %x2, s; add.u32 %s, %s, %x2;\n"
        "st.shared.u32 [%s], %x1;\n"
        "st.local.u16 [l], 7;\n"
        "red.global.add.u32 [%a], 1;\n"
        "atom.shared.add.u32 %x1, [s], 1;\n"
        "mul.wide.u32 %c, %t, 16; add.u64 %b, %a, %c; mul.lo.u32 %s, %t, 16; add.u32 %s, %s, %x2;\n"
        "cp.async.cg.shared.global [%s], [%b], 16; cp.async.wait_all;\n"
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%x1, %x2, %x3, %x4}, [%s];\n"
        "mov.u64 %g, s; cvta.shared.u64 %g, %g; mul.wide.u32 %c, %t, 4; add.u64 %g, %g, %c;\n"
        "and.b32 %t, %t, 31; setp.lt.u32 %p, %t, 16; selp.u64 %g, %g, %a, %p;\n"
        "ld.u32 %x1, [%g];\n"
        "ret; }\n",
        memory, 1, 64, check_spaces);
}

static void check_sizes(const struct kernel *kernel, const struct sg_counts *counts) {
    /* Lane l's copy reads 16 bytes of less than l. */
    uint64_t read = 0;
    for (unsigned l = 0; l < 32; l++)
        read += l < 16 ? l : 16;
    expect_access(kernel, counts, 7, SG_COUNT_READ, SG_COUNT_GLOBAL, read, 0, 0, 0);
    expect_access(kernel, counts, 7, SG_COUNT_WRITTEN, SG_COUNT_SHARED, 16 * 32, 0, 0, 0);
    expect_access(kernel, counts, 10, SG_COUNT_READ, SG_COUNT_SHARED, 48, 0, 0, 0);
    expect_access(kernel, counts, 10, SG_COUNT_WRITTEN, SG_COUNT_GLOBAL, 48, 0, 0, 0);
}

TEST(bytes_of_copies_with_variable_sizes_are_counted) {
    static _Alignas(16) unsigned char memory[512];
    each_way(
        BEGIN
        ".shared .align 16 .b8 s[512]; .reg .b64 %a; .reg .b32 %t, %s, %n; .reg .pred %p;\n"
        "ld.param.u64 %a, [at]; mov.u32 %t, %tid.x; mov.u32 %s, s; mad.lo.u32 %s, %t, 16, %s;\n"
        "cp.async.cg.shared.global [%s], [%a], 16, %t; cp.async.wait_all;\n"
        "setp.eq.u32 %p, %t, 3; mul.lo.u32 %n, %t, 16; mov.u32 %s, s; @!%p bra end;\n"
        "\n"
        "@%p cp.async.bulk.global.shared::cta.bulk_group [%a], [%s], %n;\n"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"
        "end: ret; }\n",
        memory, 1, 32, check_sizes);
}

/* ---- workers, and nothing ------------------------------------------------------------------- */

static void *advance(void *grid) {
    while (!sg_grid_advance(grid, 1000))
        ;
    return NULL;
}

TEST(counts_of_several_workers_add_up) {
    struct kernel kernel;
    struct sg_grid *grid;
    pthread_t thread;
    uint32_t memory = 0;
    make_counted(&kernel,
                 BEGIN ".reg .b64 %a; .reg .b32 %i; .reg .pred %p;\n"
                       "ld.param.u64 %a, [at]; mov.u32 %i, 0;\n"
                       "again: red.global.add.u32 [%a], 1;\n"
                       "add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 10; @%p bra again; ret; }\n",
                 sg_level_best());
    kernel_pointer(&kernel, &memory);
    kernel_shape(&kernel, 300, 64);
    kernel.launch.workers = 2;
    kernel.launch.parameters = kernel.parameters;
    struct sg_counts *counts = sg_counts_new(kernel.code);
    assert_non_null(counts);
    assert_int_equal(sg_grid_begin(&kernel.launch, &grid), CUDA_SUCCESS);
    assert_int_equal(pthread_create(&thread, NULL, advance, grid), 0);
    advance(grid);
    assert_int_equal(pthread_join(thread, NULL), 0);
    sg_grid_counts(grid, counts);
    expect_count(&kernel, counts, 7, (struct sg_count){6000, 192000, 192000});
    expect_access(&kernel, counts, 7, SG_COUNT_ATOMIC, SG_COUNT_GLOBAL, 4 * 192000, 6000, 0, 0);
    assert_int_equal(memory, 192000);
    assert_true(counts->nanoseconds > 0);
    sg_counts_free(counts);
    sg_grid_end(grid);
    kernel_free(&kernel);
}

/* Code that is not counted has no steps for it: none that differ, and no more of them. */
TEST(code_compiled_without_counting_reports_zero) {
    struct kernel kernel;
    kernel_make(&kernel,
                BEGIN ".reg .b64 %a; ld.param.u64 %a, [at]; st.global.u32 [%a], 1; ret; }\n",
                sg_level_best());
    uint32_t memory = 0;
    kernel_pointer(&kernel, &memory);
    struct sg_counts *counts = counts_of(&kernel, UINT64_MAX);
    assert_int_equal(counts->access_count, 0);
    for (size_t i = 0; i < counts->instruction_count; i++)
        assert_int_equal(counts->instructions[i].warps, 0);
    assert_int_equal(counts->nanoseconds, 0);
    assert_int_equal(memory, 1);
    sg_counts_free(counts);
    kernel_free(&kernel);
}
