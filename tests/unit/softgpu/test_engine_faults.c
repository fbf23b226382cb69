/* What ends a grid: which kind, where, and by whom; and what the engine says it cannot run. */
#include "kernel.h"

#include "softgpu/binary/read.h"

#include <fenv.h>

#define BODY(text)                                                                                 \
    KERNEL_HEAD ".visible .entry k(.param .u64 at) {\n"                                            \
                ".reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<6>;\n"                              \
                "ld.param.u64 %rd1, [at]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;\n"       \
                "add.u64 %rd2, %rd1, %rd2;\n" text "\nret; }\n"

/* The body's first line is the eighth. */
#define LINE 8

static bool only(void *user, uint64_t address, uint64_t *low, uint64_t *length) {
    const uint64_t *range = user;
    if (address < range[0] || address - range[0] >= range[1])
        return false;
    *low = range[0];
    *length = range[1];
    return true;
}

static struct sg_grid_fault fault_of(const char *text, const void *at, unsigned threads,
                                     uint64_t *range) {
    struct sg_grid_fault fault = {.kind = SG_FAULT_COUNT};
    FOR_EACH_LEVEL(level) {
        struct kernel kernel = KERNEL_WITH(text, (enum sg_level)level, 2, threads, at);
        kernel.launch.extent = range ? only : NULL;
        kernel.launch.user = range;
        fault = kernel_run(&kernel, 0);
        kernel_free(&kernel);
    }
    return fault;
}

TEST(an_access_outside_an_allocation_is_a_fault) {
    static uint32_t words[128];
    uint64_t range[2] = {(uint64_t)(uintptr_t)words, 100 * 4};
    struct sg_grid_fault fault = fault_of(BODY("st.global.u32 [%rd2], %r1;"), words, 128, range);
    assert_int_equal(fault.kind, SG_FAULT_ADDRESS);
    assert_true(fault.address == range[0] + 400);
    MEMBERS(fault, (thread[0], 100), (block[0], 0), (size, 4));
    assert_true(fault.write);
    assert_int_equal(fault.line, LINE);
    assert_int_equal(words[99], 99);
    assert_int_equal(words[100], 0);
    fault = fault_of(BODY("ld.global.u32 %r1, [%rd2+-4];"), words, 32, range);
    assert_int_equal(fault.kind, SG_FAULT_ADDRESS);
    assert_false(fault.write);
    assert_int_equal(fault.thread[0], 0);
}

TEST(misaligned_and_out_of_range_accesses_are_faults) {
    static uint32_t words[64];
    struct sg_grid_fault fault =
        fault_of(BODY("setp.eq.u32 %p, %r1, 9; @%p add.u64 %rd2, %rd2, 2;\n"
                      "st.global.u32 [%rd2], %r1;"),
                 words, 32, NULL);
    MEMBERS(fault, (kind, SG_FAULT_MISALIGNED), (thread[0], 9), (line, LINE + 1));
    fault = fault_of(BODY(".shared .b32 s[4]; mov.u32 %r2, s; shl.b32 %r3, %r1, 2;\n"
                          "add.u32 %r2, %r2, %r3; st.shared.u32 [%r2], %r1;"),
                     words, 5, NULL);
    MEMBERS(fault, (kind, SG_FAULT_SPACE), (thread[0], 4), (address, 16));
    fault = fault_of(BODY(".local .b32 l[2]; mov.u64 %rd3, l; ld.local.u32 %r2, [%rd3+4096];"),
                     words, 32, NULL);
    assert_int_equal(fault.kind, SG_FAULT_SPACE);
}

TEST(traps_and_breakpoints_end_the_grid) {
    static uint32_t words[64];
    struct sg_grid_fault fault =
        fault_of(BODY("setp.eq.u32 %p, %r1, 40;\n@%p trap;"), words, 64, NULL);
    MEMBERS(fault, (kind, SG_FAULT_TRAP), (thread[0], 40), (line, LINE + 1));
    fault = fault_of(BODY("brkpt;"), words, 64, NULL);
    assert_int_equal(fault.kind, SG_FAULT_BREAKPOINT);
    fault = fault_of(BODY("setp.ge.u32 %p, %r1, 64; @%p trap;"), words, 64, NULL);
    assert_int_equal(fault.kind, SG_FAULT_COUNT);
}

TEST(endless_recursion_is_a_stack_fault) {
    static const char text[] =
        KERNEL_HEAD ".func deeper() { call.uni deeper, (); ret; }\n"
                    ".visible .entry k(.param .u64 at) { call.uni deeper, (); ret; }\n";
    assert_int_equal(fault_of(text, NULL, 32, NULL).kind, SG_FAULT_STACK);
}

TEST(calling_an_address_without_a_function_is_a_fault) {
    struct sg_grid_fault fault =
        fault_of(BODY("proto: .callprototype _ (); call %rd1, (), proto;"), (void *)64, 32, NULL);
    MEMBERS(fault, (kind, SG_FAULT_INSTRUCTION), (address, 64));
    fault =
        fault_of(BODY("proto: .callprototype _ (); call %rd1, (), proto;"), (void *)72, 32, NULL);
    assert_int_equal(fault.kind, SG_FAULT_PC);
}

TEST(a_barrier_count_of_no_whole_warps_is_a_fault) {
    static uint32_t words[64];
    /* Of a number beyond 15 the low bits count. */
    struct sg_grid_fault fault =
        fault_of(BODY("mov.u32 %r2, 16; setp.lt.u32 %p, %r1, 32;\n@%p mov.u32 %r2, 0;\n"
                      "barrier.sync %r2;"),
                 words, 64, NULL);
    assert_int_equal(fault.kind, SG_FAULT_COUNT);
    fault = fault_of(BODY("mov.u32 %r2, 63; barrier.sync 1, %r2;"), words, 64, NULL);
    MEMBERS(fault, (kind, SG_FAULT_BARRIER), (address, 63), (size, 32));
    fault = fault_of(BODY("barrier.sync 1, 64;"), words, 64, NULL);
    assert_int_equal(fault.kind, SG_FAULT_COUNT);
}

TEST(a_deadlock_report_names_waiting_lanes_and_lines) {
    static uint32_t words[64];
    struct sg_grid_fault fault = fault_of(BODY("setp.lt.u32 %p, %r1, 32; @%p bra one;\n"
                                               "bar.sync 2; bra end;\n"
                                               "one: bar.sync 1;\nend:"),
                                          words, 64, NULL);
    assert_int_equal(fault.kind, SG_FAULT_DEADLOCK);
    assert_string_equal(fault.report, "block 0,0,0 warp 0 lanes ffffffff line 10: "
                                      "waits for barrier 1; threads part at line 8\n"
                                      "block 0,0,0 warp 1 lanes ffffffff line 9: "
                                      "waits for barrier 2; threads part at line 8\n");
    fault = fault_of(BODY("setp.lt.u32 %p, %r1, 4; @%p bra end; bar.warp.sync 0xff;\n"
                          "bra far;\nend: bar.sync 3;\nfar:"),
                     words, 32, NULL);
    assert_int_equal(fault.kind, SG_FAULT_DEADLOCK);
    assert_non_null(strstr(fault.report, "lanes 0000000f line 10: waits for barrier 3"));
    assert_non_null(strstr(fault.report, "lanes fffffff0 line 8: waits for lanes 000000ff"));
}

TEST(an_unsupported_instruction_is_refused_by_name) {
    static const struct sg_image_options h200 = {
        .architecture = 90, .suffix = 'a', .newest_ptx = 90};
    struct sg_image *image;
    struct sg_program *program;
    struct sg_code *code = NULL;
    char why[200] = "";
    struct sg_image_log log = {0};
    assert_int_equal(
        sg_image_read(BODY("multimem.ld_reduce.relaxed.gpu.global.add.u32 %r2, [%rd1];"), SIZE_MAX,
                      &h200, &log, &image),
        CUDA_SUCCESS);
    assert_int_equal(sg_program_make(image, "k", &log, &program), CUDA_SUCCESS);
    assert_false(sg_engine_can(program, why, sizeof why));
    assert_non_null(strstr(why, "line 8: multimem"));
    assert_int_equal(sg_code_make(program, SG_LEVEL_GENERIC, 0, &code), CUDA_ERROR_NOT_SUPPORTED);
    assert_null(code);
    sg_program_free(program);
    sg_image_free(image);
}

TEST(the_callers_rounding_mode_is_neither_used_nor_changed) {
    static float out[32];
    struct kernel kernel;
    assert_int_equal(fesetround(FE_UPWARD), 0);
    kernel_make(&kernel,
                BODY("{ .reg .f32 f, g; mov.f32 f, 0f3F800000; mov.f32 g, 0f33800000;\n"
                     "add.f32 f, f, g; st.global.f32 [%rd2], f; }"),
                sg_level_best());
    kernel_pointer(&kernel, out);
    kernel_succeeds(&kernel);
    assert_int_equal(fegetround(), FE_UPWARD);
    fesetround(FE_TONEAREST);
    assert_true(out[5] == 1.0F);
    kernel_free(&kernel);
}

TEST(impossible_grid_shapes_are_refused) {
    struct kernel kernel;
    struct sg_grid *grid = NULL;
    kernel_make(&kernel, BODY(""), sg_level_best());
    kernel_pointer(&kernel, NULL);
    kernel.launch.parameters = kernel.parameters;
    kernel_shape(&kernel, 1, 0);
    assert_int_equal(sg_grid_begin(&kernel.launch, &grid), CUDA_ERROR_INVALID_VALUE);
    kernel_shape(&kernel, 0, 1);
    assert_int_equal(sg_grid_begin(&kernel.launch, &grid), CUDA_ERROR_INVALID_VALUE);
    kernel_shape(&kernel, 1, 1024);
    kernel.launch.block[1] = 2;
    assert_int_equal(sg_grid_begin(&kernel.launch, &grid), CUDA_ERROR_INVALID_VALUE);
    assert_null(grid);
    kernel_free(&kernel);
}
