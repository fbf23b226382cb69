/* What grids have beside their parameters: a workspace, reserved memory, grids they depend on. */
#include "kernel.h"

#include "softgpu/binary/read.h"

/* Cooperative groups' grid.sync() between two steps: out[i] = i, then sum of all. */
static const char sums[] = KERNEL_HEAD
    ".visible .entry k(.param .u64 out) {\n"
    ".reg .pred %p; .reg .b32 %r<20>; .reg .b64 %d<8>;\n"
    "ld.param.u64 %d1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %tid.x;\n"
    "mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d1, %d2;\n"
    "mov.u32 %r4, %envreg2; cvt.u64.u32 %d3, %r4; mov.u32 %r4, %envreg1; cvt.u64.u32 %d4, %r4;\n"
    "bfi.b64 %d3, %d4, %d3, 32, 32; setp.eq.u64 %p, %d3, 0; @%p bra NONE;\n"
    "setp.ne.u32 %p, %r3, 0; @!%p st.global.u32 [%d2], %r1;\n"
    "barrier.sync 0; @%p bra WAITED;\n"
    "mov.u32 %r5, -2147483647; sub.u32 %r5, %r5, %r2; setp.eq.u32 %p, %r1, 0;\n"
    "selp.b32 %r6, %r5, 1, %p; atom.add.release.gpu.u32 %r7, [%d3+4], %r6;\n"
    "SPIN: ld.acquire.gpu.u32 %r8, [%d3+4]; xor.b32 %r9, %r8, %r7; setp.gt.s32 %p, %r9, -1;\n"
    "@%p bra SPIN;\n"
    "WAITED: barrier.sync 0; mov.u32 %r10, 0; mov.u32 %r11, 0;\n"
    "ADD: mul.wide.u32 %d5, %r10, 4; add.u64 %d5, %d1, %d5; ld.global.u32 %r12, [%d5];\n"
    "add.u32 %r11, %r11, %r12; add.u32 %r10, %r10, 1; setp.lt.u32 %p, %r10, %r2; @%p bra ADD;\n"
    "add.u32 %r13, %r1, %r2; mul.wide.u32 %d5, %r13, 4; add.u64 %d5, %d1, %d5;\n"
    "st.global.u32 [%d5], %r11; ret;\n"
    "NONE: mov.u32 %r6, 7; st.global.u32 [%d1], %r6; ret; }\n";

#define BLOCKS 200

TEST(a_cooperative_grid_synchronizes_through_its_workspace) {
    static uint32_t out[2 * BLOCKS];
    FOR_EACH_LEVEL(level) {
        memset(out, 0, sizeof out);
        struct kernel kernel = KERNEL_WITH(sums, (enum sg_level)level, BLOCKS, 64, out);
        kernel.launch.cooperative = true;
        kernel_succeeds(&kernel);
        for (unsigned i = 0; i < BLOCKS; i++) {
            assert_int_equal(out[i], i);
            assert_int_equal(out[BLOCKS + i], BLOCKS * (BLOCKS - 1) / 2);
        }
        kernel_free(&kernel);
    }
}

TEST(an_ordinary_launch_has_no_workspace) {
    uint32_t out[2] = {0};
    struct kernel kernel = KERNEL_WITH(sums, SG_LEVEL_GENERIC, 1, 64, out);
    kernel_succeeds(&kernel);
    assert_int_equal(out[0], 7);
    kernel_free(&kernel);
}

TEST(a_read_past_the_end_of_the_workspace_is_a_fault) {
    static const char beyond[] =
        KERNEL_HEAD ".visible .entry k() { .reg .b32 %r<3>; .reg .b64 %d<3>;\n"
                    "mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %d1, {%r2, %r1};\n"
                    "ld.u32 %r1, [%d1+252]; ld.u32 %r1, [%d1+256]; ret; }\n";
    struct kernel kernel;
    kernel_make(&kernel, beyond, SG_LEVEL_GENERIC);
    kernel_shape(&kernel, 1, 1);
    kernel.launch.cooperative = true;
    struct sg_grid_fault fault = kernel_run(&kernel, 0);
    MEMBERS(fault, (kind, SG_FAULT_ADDRESS), (address, SG_WORKSPACE_WINDOW + 256));
    kernel_free(&kernel);
}

/* 288 bytes at least, below static and dynamic shared memory, which keep their own bounds. */
TEST(multi_warp_tiles_use_reserved_shared_memory) {
    static const char text[] = KERNEL_HEAD
        ".extern .shared .align 4 .b8 dynamic[];\n"
        ".visible .entry k(.param .u64 out) { .shared .align 4 .b8 own[12];\n"
        ".reg .b32 %r<10>; .reg .b64 %d<3>; ld.param.u64 %d1, [out];\n"
        "mov.u32 %r1, %reserved_smem_offset_1; mov.u32 %r2, 5; mov.u32 %r7, own;\n"
        "mov.u32 %r8, dynamic; st.shared.u32 [%r1], %r2; st.shared.u32 [%r1+284], %r2;\n"
        "st.shared.u32 [%r7], %r8; ld.shared.u32 %r3, [%r1+284];\n"
        "mov.u32 %r4, %total_smem_size; mov.u32 %r5, %aggr_smem_size;\n"
        "mov.u32 %r6, %reserved_smem_offset_begin; mov.u32 %r9, %reserved_smem_offset_end;\n"
        "st.global.v4.u32 [%d1], {%r1, %r3, %r4, %r5}; st.global.v2.u32 [%d1+16], {%r6, %r9};\n"
        "mov.u32 %r9, %reserved_smem_offset_cap; st.global.u32 [%d1+24], %r9; ret; }\n";
    uint32_t out[8];
    struct kernel kernel = KERNEL_WITH(text, SG_LEVEL_GENERIC, 3, 32, out);
    kernel.launch.dynamic_shared = 40;
    kernel_succeeds(&kernel);
    assert_int_equal(out[1], 5);
    assert_int_equal(out[2], 128);
    assert_int_equal(out[3], 56 + 1024);
    assert_int_equal(out[4], 0);
    assert_int_equal(out[0], 0);
    assert_int_equal(out[5], 288);
    assert_int_equal(out[6], SG_SHARED_BEGIN);
    kernel_free(&kernel);
}

/* ---- Grids that depend on others ------------------------------------------------------------- */

/* Block 0 lets go at once and waits for *flag; the others end. */
static const char first[] = KERNEL_HEAD
    ".visible .entry k(.param .u64 flag) { .reg .pred %p; .reg .b32 %r<3>; .reg .b64 %d<2>;\n"
    "ld.param.u64 %d1, [flag]; mov.u32 %r1, %ctaid.x; setp.ne.u32 %p, %r1, 0; @%p exit;\n"
    "mov.u32 %r1, %tid.x; setp.eq.u32 %p, %r1, 3; @%p griddepcontrol.launch_dependents;\n"
    "SPIN: ld.volatile.global.u32 %r2, [%d1]; setp.eq.u32 %p, %r2, 0; @%p bra SPIN; ret; }\n";

static struct sg_grid *grid_of(struct kernel *kernel) {
    struct sg_grid *grid = NULL;
    kernel->launch.parameters = kernel->parameters;
    assert_int_equal(sg_grid_begin(&kernel->launch, &grid), CUDA_SUCCESS);
    return grid;
}

TEST(a_grid_may_trigger_its_dependents_early) {
    uint32_t flag = 0;
    struct kernel kernel = KERNEL_WITH(first, SG_LEVEL_GENERIC, 3, 32, &flag);
    struct sg_grid *grid = grid_of(&kernel);
    assert_false(sg_grid_all_begun(grid));
    assert_false(sg_grid_triggered(grid));
    for (int i = 0; i < 100 && !sg_grid_triggered(grid); i++)
        assert_false(sg_grid_advance(grid, 20000));
    assert_true(sg_grid_triggered(grid));
    assert_true(sg_grid_all_begun(grid));
    assert_false(sg_grid_advance(grid, 20000));
    assert_true(sg_grid_spins(grid));
    flag = 1;
    while (!sg_grid_advance(grid, 20000))
        assert_null(sg_grid_fault(grid));
    assert_null(sg_grid_fault(grid));
    sg_grid_end(grid);
    kernel_free(&kernel);
}

/* Some lanes wait, those behind the guard do not; then all go on. */
TEST(griddepcontrol_wait_blocks_until_the_grid_is_released) {
    static const char text[] = KERNEL_HEAD
        ".visible .entry k(.param .u64 out) { .reg .pred %p; .reg .b32 %r<3>; .reg .b64 %d<3>;\n"
        "ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 8;\n"
        "add.u64 %d1, %d1, %d2; mov.u32 %r2, 1; st.global.u32 [%d1], %r2;\n"
        "setp.lt.u32 %p, %r1, 20; @%p griddepcontrol.wait; st.global.u32 [%d1+4], %r2; ret; }\n";
    uint32_t out[64][2];
    FOR_EACH_LEVEL(level) {
        memset(out, 0, sizeof out);
        struct kernel kernel = KERNEL_WITH(text, (enum sg_level)level, 1, 64, out);
        kernel.launch.held = true;
        struct sg_grid *grid = grid_of(&kernel);
        for (int i = 0; i < 20; i++)
            assert_false(sg_grid_advance(grid, 20000));
        assert_true(sg_grid_spins(grid));
        for (unsigned i = 0; i < 64; i++) {
            assert_int_equal(out[i][0], 1);
            assert_int_equal(out[i][1], i >= 20);
        }
        sg_grid_release(grid);
        while (!sg_grid_advance(grid, 20000))
            assert_null(sg_grid_fault(grid));
        for (unsigned i = 0; i < 64; i++)
            assert_int_equal(out[i][1], 1);
        sg_grid_end(grid);
        kernel_free(&kernel);
    }
}

TEST(a_rewound_grid_runs_again) {
    static uint32_t out[2 * BLOCKS];
    struct kernel kernel = KERNEL_WITH(sums, SG_LEVEL_GENERIC, BLOCKS, 32, out);
    kernel.launch.cooperative = true;
    struct sg_grid *grid = grid_of(&kernel);
    for (int round = 0; round < 3; round++) {
        memset(out, 0, sizeof out);
        while (!sg_grid_advance(grid, 20000))
            assert_null(sg_grid_fault(grid));
        assert_true(sg_grid_triggered(grid));
        assert_int_equal(out[2 * BLOCKS - 1], BLOCKS * (BLOCKS - 1) / 2);
        sg_grid_rewind(grid);
        assert_false(sg_grid_triggered(grid));
        assert_false(sg_grid_all_begun(grid));
    }
    sg_grid_end(grid);
    kernel_free(&kernel);
}
