/* Loads, stores and atomic operations in all spaces, and the page table behind them. */
#include "kernel.h"

#include "softgpu/address/pagetable.h"
#include "softgpu/address/window.h"
#include "softgpu/core/calls.h"

#define KERNEL_OF(parameters, body)                                                                \
    KERNEL_HEAD ".visible .entry k(" parameters ") {\n"                                            \
                ".reg .pred %p, %q; .reg .b16 %h<4>; .reg .b32 %r<12>; .reg .b64 %rd<8>;\n"        \
                ".reg .f32 %f<4>;\n" body

TEST(narrow_loads_are_extended_to_the_register) {
    FOR_EACH_LEVEL(level) {
        signed char from[32];
        int64_t to[32];
        struct kernel kernel;
        for (int i = 0; i < 32; i++)
            from[i] = (signed char)(i * 9 - 128);
        kernel_make(
            &kernel,
            KERNEL_OF(
                ".param .u64 to, .param .u64 from",
                "ld.param.u64 %rd1, [to]; ld.param.u64 %rd2, [from]; mov.u32 %r1, %tid.x;\n"
                "cvt.u64.u32 %rd3, %r1; add.u64 %rd4, %rd2, %rd3; ld.global.s8 %rd5, [%rd4];\n"
                "mad.lo.u64 %rd6, %rd3, 8, %rd1; st.global.u64 [%rd6], %rd5; ret; }\n"),
            (enum sg_level)level);
        kernel_pointer(&kernel, to);
        kernel_pointer(&kernel, from);
        kernel_succeeds(&kernel);
        for (int i = 0; i < 32; i++)
            assert_int_equal(to[i], from[i]);
        kernel_free(&kernel);
    }
}

TEST(vector_accesses_keep_elements_and_lanes_in_order) {
    FOR_EACH_LEVEL(level) {
        uint32_t from[128] __attribute__((aligned(16))), to[128] __attribute__((aligned(16)));
        struct kernel kernel;
        for (uint32_t i = 0; i < 128; i++)
            from[i] = i * 7;
        /* Backwards, two by two exchanged; odd lanes only in a second store. */
        kernel_make(
            &kernel,
            KERNEL_OF(".param .u64 to, .param .u64 from",
                      "ld.param.u64 %rd1, [to]; ld.param.u64 %rd2, [from]; mov.u32 %r1, %tid.x;\n"
                      "mul.wide.u32 %rd3, %r1, 16; add.u64 %rd4, %rd2, %rd3;\n"
                      "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd4]; sub.u64 %rd3, 496, %rd3;\n"
                      "add.u64 %rd5, %rd1, %rd3; st.global.v2.u32 [%rd5], {%r3, %r2};\n"
                      "st.global.v2.u32 [%rd5+8], {%r5, %r4}; and.b32 %r6, %r1, 1;\n"
                      "setp.eq.u32 %p, %r6, 1; @%p st.global.u32 [%rd5], 5; ret; }\n"),
            (enum sg_level)level);
        kernel_pointer(&kernel, to);
        kernel_pointer(&kernel, from);
        kernel_succeeds(&kernel);
        for (uint32_t i = 0; i < 32; i++) {
            const uint32_t *x = &from[4 * i], *y = &to[4 * (31 - i)];
            assert_int_equal(y[0], i & 1 ? 5 : x[1]);
            assert_true(y[1] == x[0] && y[2] == x[3] && y[3] == x[2]);
        }
        kernel_free(&kernel);
    }
}

TEST(generic_addresses_reach_shared_local_and_global_memory) {
    FOR_EACH_LEVEL(level) {
        uint32_t to[32], from[32];
        struct kernel kernel;
        for (uint32_t i = 0; i < 32; i++)
            from[i] = 1000 + i;
        /* A lane in three reads shared, local or global memory, through one instruction. */
        kernel_make(
            &kernel,
            KERNEL_OF(
                ".param .u64 to, .param .u64 from",
                ".shared .b32 s[32]; .local .b32 mine[4];\n"
                "ld.param.u64 %rd1, [to]; ld.param.u64 %rd2, [from]; mov.u32 %r1, %tid.x;\n"
                "mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd2, %rd3; mov.u64 %rd5, s;\n"
                "add.u64 %rd5, %rd5, %rd3; add.u32 %r2, %r1, 2000; st.shared.u32 [%rd5], %r2;\n"
                "cvta.shared.u64 %rd5, %rd5; mov.u64 %rd6, mine; add.u32 %r2, %r1, 3000;\n"
                "st.local.u32 [%rd6+8], %r2; cvta.local.u64 %rd6, %rd6; add.u64 %rd6, %rd6, 8;\n"
                "rem.u32 %r3, %r1, 3; setp.eq.u32 %p, %r3, 1; selp.b64 %rd7, %rd5, %rd4, %p;\n"
                "setp.eq.u32 %p, %r3, 2; selp.b64 %rd7, %rd6, %rd7, %p; ld.u32 %r4, [%rd7];\n"
                "isspacep.shared %q, %rd7; @%q add.u32 %r4, %r4, 50000;\n"
                "add.u64 %rd1, %rd1, %rd3; st.global.u32 [%rd1], %r4; ret; }\n"),
            (enum sg_level)level);
        kernel_pointer(&kernel, to);
        kernel_pointer(&kernel, from);
        kernel_succeeds(&kernel);
        for (uint32_t i = 0; i < 32; i++)
            assert_int_equal(to[i], (i % 3 == 0 ? 1000u : i % 3 == 1 ? 52000u : 3000u) + i);
        kernel_free(&kernel);
    }
}

TEST(atomic_operations_lose_no_update) {
    FOR_EACH_LEVEL(level) {
        struct {
            uint32_t add, inc, min, cas;
            float sum, spare;
            uint64_t bits;
            double twice;
            uint32_t halves;
        } all = {0, 0, UINT32_MAX, 0, 0, 0, 0, 0, 0};
        struct kernel kernel;
        kernel_make(
            &kernel,
            KERNEL_OF(
                ".param .u64 all",
                ".shared .b32 s; ld.param.u64 %rd1, [all]; mov.u32 %r1, %tid.x;\n"
                "mov.u32 %r9, %ctaid.x; mad.lo.u32 %r1, %r9, 64, %r1; mov.u32 %r8, 0;\n"
                "st.shared.u32 [s], %r8; bar.sync 0; atom.shared.add.u32 %r2, [s], 2; "
                "bar.sync 0;\nld.shared.u32 %r3, [s]; red.global.add.u32 [%rd1], %r3;\n"
                "atom.global.inc.u32 %r4, [%rd1+4], 9; red.global.min.s32 [%rd1+8], %r1;\n"
                "sub.s32 %r5, 10, %r1; red.global.min.s32 [%rd1+8], %r5;\n"
                "red.global.add.f32 [%rd1+16], 0f3F000000; cvt.u64.u32 %rd2, %r1;\n"
                "and.b32 %r6, %r1, 63; mov.u64 %rd3, 1; shl.b64 %rd3, %rd3, %r6;\n"
                "red.global.or.b64 [%rd1+24], %rd3; { .reg .f64 e; cvt.rn.f64.u32 e, %r1;\n"
                "red.global.add.f64 [%rd1+32], e; }\n"
                "mov.b32 %r7, 0x3c003800; red.global.add.noftz.f16x2 [%rd1+40], %r7; ret; }\n"),
            (enum sg_level)level);
        kernel_pointer(&kernel, &all);
        kernel_shape(&kernel, 2, 64);
        kernel_succeeds(&kernel);
        MEMBERS(all, (add, 128 * 128), (inc, 128 % 10));
        assert_int_equal((int32_t)all.min, 10 - 127);
        assert_true(all.sum == 64);
        assert_true(all.bits == UINT64_MAX);
        assert_true(all.twice == 127 * 64);
        assert_int_equal(all.halves, 0x58005400);
        kernel_free(&kernel);
    }
}

TEST(asynchronous_copies_are_visible_after_the_wait) {
    FOR_EACH_LEVEL(level) {
        uint32_t from[128] __attribute__((aligned(16))), to[128] __attribute__((aligned(16)));
        struct kernel kernel;
        for (uint32_t i = 0; i < 128; i++)
            from[i] = i + 1;
        kernel_make(
            &kernel,
            KERNEL_OF(".param .u64 to, .param .u64 from",
                      ".shared .align 16 .b8 s[512]; ld.param.u64 %rd1, [to];\n"
                      "ld.param.u64 %rd2, [from]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 4;\n"
                      "mov.u32 %r3, s; add.u32 %r3, %r3, %r2; cvt.u64.u32 %rd3, %r2;\n"
                      "add.u64 %rd2, %rd2, %rd3; setp.eq.u32 %p, %r1, 5; selp.b32 %r4, 8, 16, %p;\n"
                      "cp.async.cg.shared.global [%r3], [%rd2], 16, %r4; cp.async.commit_group;\n"
                      "cp.async.wait_group 0; ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r3];\n"
                      "add.u64 %rd1, %rd1, %rd3; st.global.v4.u32 [%rd1], {%r5, %r6, %r7, %r8};\n"
                      "ret; }\n"),
            (enum sg_level)level);
        kernel_pointer(&kernel, to);
        kernel_pointer(&kernel, from);
        kernel_succeeds(&kernel);
        for (uint32_t i = 0; i < 128; i++)
            assert_int_equal(to[i], i == 22 || i == 23 ? 0 : i + 1);
        kernel_free(&kernel);
    }
}

TEST(dynamic_shared_memory_follows_static_shared_memory) {
    struct kernel kernel;
    uint32_t out[2] = {0, 0};
    char text[] = KERNEL_HEAD ".extern .shared .align 16 .b8 more[];\n"
                              ".visible .entry k(.param .u64 out) { .shared .b32 s[5];\n"
                              ".reg .b32 %r<6>; .reg .b64 %rd1; ld.param.u64 %rd1, [out];\n"
                              "mov.u32 %r1, more; mov.u32 %r2, 7; st.shared.u32 [%r1+60], %r2;\n"
                              "st.shared.u32 [s+16], %r1; ld.shared.u32 %r3, [more+60];\n"
                              "mov.u32 %r4, %dynamic_smem_size; st.global.u32 [%rd1], %r3;\n"
                              "st.global.u32 [%rd1+4], %r4; ret; }\n";
    kernel_make(&kernel, text, sg_level_best());
    kernel.launch.dynamic_shared = 64;
    kernel_pointer(&kernel, out);
    kernel_succeeds(&kernel);
    assert_int_equal(out[0], 7);
    assert_int_equal(out[1], 64);
    kernel.launch.dynamic_shared = 60;
    struct sg_grid_fault fault = kernel_run(&kernel, 0);
    assert_int_equal(fault.kind, SG_FAULT_SPACE);
    kernel_free(&kernel);
}

/* The access is to 28 bytes of dynamic shared memory: `fault` tells whether it ends the kernel. */
static void shared_access(const char *instruction, bool fault) {
    struct kernel kernel;
    uint32_t out = 0;
    char text[1024];
    snprintf(text, sizeof text,
             KERNEL_HEAD ".extern .shared .align 16 .b8 more[];\n"
                         ".visible .entry k(.param .u64 out) {\n"
                         ".reg .b32 %%r<6>; .reg .b64 %%rd1; ld.param.u64 %%rd1, [out];\n"
                         "mov.u32 %%r1, 7; st.shared.u32 [more+24], %%r1; mov.u32 %%r4, 0;\n"
                         "%s\nst.global.u32 [%%rd1], %%r4; ret; }\n",
             instruction);
    FOR_EACH_LEVEL(level) {
        kernel_make(&kernel, text, (enum sg_level)level);
        kernel.launch.dynamic_shared = 28;
        kernel_pointer(&kernel, &out);
        assert_int_equal(kernel_run(&kernel, 0).kind, fault ? SG_FAULT_SPACE : SG_FAULT_COUNT);
        assert_int_equal(out, fault ? 0 : 7);
        kernel_free(&kernel);
        out = 0;
    }
}

/* As compilers write it: one load of three words, which are all that is used of it. */
TEST(a_vector_load_may_reach_past_the_end_of_shared_memory) {
    shared_access("ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [more+16];", false);
    shared_access("ld.shared.v2.u32 {%r4, %r5}, [more+24];", false);
    shared_access("ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [more+32];", true);
    shared_access("ld.shared.u32 %r4, [more+28];", true);
    shared_access("ld.shared.u64 %rd1, [more+24];", true);
    shared_access("st.shared.v4.u32 [more+16], {%r2, %r3, %r4, %r5};", true);
}

TEST(unmapping_memory_of_a_running_grid_makes_its_access_a_fault) {
    static _Alignas(SG_PAGE) unsigned char bytes[2 * SG_PAGE];
    CUdeviceptr p = 0;
    struct kernel kernel;
    struct sg_grid *grid;
    uint32_t *words = (uint32_t *)(void *)bytes;
    assert_int_equal(sg_addresses_take(2 * SG_PAGE, SG_PAGE, 0, &p), CUDA_SUCCESS);
    /* Two pages, the wrong way round in memory: a warp's access goes over both. */
    sg_table_map(p, SG_PAGE, bytes + SG_PAGE, sg_rights_of(0, SG_READ | SG_WRITE));
    sg_table_map(p + SG_PAGE, SG_PAGE, bytes, sg_rights_of(0, SG_READ));
    kernel_make(
        &kernel,
        KERNEL_OF(".param .u64 at",
                  "ld.param.u64 %rd1, [at]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;\n"
                  "add.u64 %rd2, %rd1, %rd2; ld.global.u32 %r2, [%rd2]; mov.u32 %r5, 0;\n"
                  "spin: ld.volatile.global.u32 %r3, [%rd1]; add.u32 %r5, %r5, %r2;\n"
                  "setp.eq.u32 %p, %r3, 0; @%p bra spin; ret; }\n"),
        sg_level_best());
    kernel_argument(&kernel, &(uint64_t){p + SG_PAGE - 64}, 8);
    kernel.launch.parameters = kernel.parameters;
    assert_int_equal(sg_grid_begin(&kernel.launch, &grid), CUDA_SUCCESS);
    words[0] = 1;
    assert_false(sg_grid_advance(grid, 10000));
    sg_table_unmap(p, SG_PAGE);
    assert_true(sg_grid_advance(grid, 10000));
    const struct sg_grid_fault *fault = sg_grid_fault(grid);
    assert_non_null(fault);
    assert_int_equal(fault->kind, SG_FAULT_ADDRESS);
    assert_true(fault->address == p + SG_PAGE - 64);
    sg_grid_end(grid);
    kernel_free(&kernel);
    sg_table_unmap(p, 2 * SG_PAGE);
    sg_addresses_give(p, 2 * SG_PAGE);
}
