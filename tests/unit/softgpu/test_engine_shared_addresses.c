/*
 * Where shared memory is: a block's own begins at 0x400, as recorded on an H200; what is below is
 * reserved, and there for those only who ask where it is, or whose addresses are numbers.
 */
#include "kernel.h"

#define HEAD                                                                                       \
    KERNEL_HEAD                                                                                    \
    ".extern .shared .align 4 .b8 dynamic[];\n"                                                    \
    ".visible .entry k(.param .u64 out) {\n"                                                       \
    ".reg .pred %p; .reg .b32 %r<12>; .reg .b64 %d<9>; .shared .align 4 .b8 own[40];\n"            \
    "ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4;\n"                    \
    "add.u64 %d2, %d1, %d2;\n"
#define TAIL "\nret; }\n"

static struct sg_grid_fault run(const char *text, enum sg_level level, unsigned threads,
                                uint32_t *out) {
    struct kernel kernel = KERNEL_WITH(text, level, 1, threads, out);
    kernel.launch.dynamic_shared = 64;
    struct sg_grid_fault fault = kernel_run(&kernel, 0);
    kernel_free(&kernel);
    return fault;
}

TEST(a_blocks_shared_memory_begins_at_0x400) {
    FOR_EACH_LEVEL(level) {
        uint32_t out[8] = {0};
        assert_int_equal(
            run(HEAD
                "mov.u32 %r2, own; mov.u32 %r3, dynamic; mov.u64 %d3, own;\n"
                "cvta.shared.u64 %d3, %d3; cvta.to.shared.u64 %d4, %d3; cvt.u32.u64 %r4, %d4;\n"
                "mov.u32 %r5, 1028; st.shared.u32 [own+4], 77; ld.shared.u32 %r6, [%r5];\n"
                "mov.u32 %r5, 1500; ld.shared.u32 %r7, [%r5+-472];\n"
                "mov.u32 %r5, 0; ld.shared.u32 %r8, [%r5+1028];\n"
                "ld.u32 %r9, [%d3+4]; st.global.v4.u32 [%d1], {%r2, %r3, %r4, %r6};\n"
                "st.global.v2.u32 [%d1+16], {%r7, %r8}; st.global.u32 [%d1+24], %r9;" TAIL,
                (enum sg_level)level, 1, out)
                .kind,
            SG_FAULT_COUNT);
        static const uint32_t wanted[7] = {0x400, 0x430, 0x400, 77, 77, 77, 77};
        assert_memory_equal(out, wanted, sizeof wanted);
    }
}

TEST(shared_memory_size_registers_match_the_h200) {
    uint32_t out[8] = {0};
    assert_int_equal(run(HEAD "mov.u32 %r2, %total_smem_size; mov.u32 %r3, %dynamic_smem_size;\n"
                              "mov.u32 %r4, %aggr_smem_size; mov.u32 %r5, "
                              "%reserved_smem_offset_begin;\n"
                              "mov.u32 %r6, %reserved_smem_offset_0; mov.u32 %r7, "
                              "%reserved_smem_offset_cap;\n"
                              "st.shared.u8 [own], %r2; st.shared.u8 [dynamic], %r2;\n"
                              "st.global.v4.u32 [%d1], {%r2, %r3, %r4, %r5};\n"
                              "st.global.v2.u32 [%d1+16], {%r6, %r7};" TAIL,
                         sg_level_best(), 1, out)
                         .kind,
                     SG_FAULT_COUNT);
    static const uint32_t wanted[6] = {0x80, 0x40, 0x400 + 0x70, 0, 0, 0x400};
    assert_memory_equal(out, wanted, sizeof wanted);
}

/* One element, a whole warp, atomics, generic addresses: each way to memory looks. */
TEST(shared_memory_below_the_base_is_a_fault) {
    static const char *const bodies[] = {
        "ld.shared.u32 %r3, [own+-4]; st.global.u32 [%d2], %r3;",
        "mov.u32 %r2, 0; st.shared.u32 [%r2], %r1;",
        "mov.u32 %r2, 512; mad.lo.u32 %r2, %r1, 4, %r2; st.shared.u32 [%r2], %r1;",
        "mov.u32 %r2, 1020; atom.shared.add.u32 %r3, [%r2], 1;",
        ("mov.u64 %d3, own; cvta.shared.u64 %d3, %d3; ld.u32 %r3, [%d3+-8];\n"
         "st.global.u32 [%d2], %r3;"),
        "mov.u64 %d3, own; cvta.shared.u64 %d3, %d3; atom.add.u32 %r3, [%d3+-8], 1;",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        FOR_EACH_LEVEL(level) {
            char text[4096];
            uint32_t out[32];
            snprintf(text, sizeof text, "%s%s%s", HEAD, bodies[i], TAIL);
            struct sg_grid_fault fault = run(text, (enum sg_level)level, 32, out);
            if (fault.kind != SG_FAULT_SPACE)
                fail_msg("%s: fault %s", bodies[i], sg_fault_name(fault.kind));
        }
}

/* Tiles of several warps meet there: plain, generic and atomic accesses of two warps. */
TEST(reserved_shared_memory_is_usable_by_kernels_that_ask_for_it) {
    FOR_EACH_LEVEL(level) {
        uint32_t out[64] = {0};
        assert_int_equal(
            run(HEAD "mov.u32 %r2, %reserved_smem_offset_1; atom.shared.add.u32 %r3, [%r2], 1;\n"
                     "cvt.u64.u32 %d3, %r2; cvta.shared.u64 %d3, %d3; atom.add.u32 %r3, [%d3], 2;\n"
                     "bar.sync 0; ld.shared.u32 %r4, [%r2]; ld.u32 %r5, [%d3];\n"
                     "st.shared.u32 [own], %r1; add.u32 %r4, %r4, %r5; st.global.u32 [%d2], "
                     "%r4;" TAIL,
                (enum sg_level)level, 64, out)
                .kind,
            SG_FAULT_COUNT);
        for (unsigned i = 0; i < 64; i++)
            assert_int_equal(out[i], 2 * 3 * 64);
    }
}

/* Word by word from address 0 through what is reserved into its own, by 400 threads; the next one's
 * is read. The last thread reads beyond all of it, if it may. */
#define NUMBERED                                                                                   \
    KERNEL_HEAD                                                                                    \
    ".visible .entry k(.param .u64 out, .param .u32 beyond) {\n"                                   \
    ".reg .b32 %r<6>; .reg .b64 %d<4>; .reg .pred %p;\n"                                           \
    "ld.param.u64 %d1, [out]; ld.param.u32 %r5, [beyond]; mov.u32 %r1, %tid.x;\n"                  \
    "shl.b32 %r2, %r1, 2; st.shared.u32 [%r2], %r1; bar.sync 0;\n"                                 \
    "add.u32 %r3, %r1, %r5; shl.b32 %r3, %r3, 2; setp.eq.u32 %p, %r1, 399;\n"                      \
    "@%p sub.u32 %r3, %r3, 4; ld.shared.u32 %r4, [%r3];\n"                                         \
    "mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d1, %d2; st.global.u32 [%d2], %r4; ret; }\n"

static struct sg_grid_fault run_numbered(enum sg_level level, unsigned dynamic, uint32_t beyond,
                                         uint32_t out[400]) {
    struct kernel kernel;
    kernel_make(&kernel, NUMBERED, level);
    kernel_pointer(&kernel, out);
    kernel_number(&kernel, beyond);
    kernel_shape(&kernel, 2, 400);
    kernel.launch.dynamic_shared = dynamic;
    struct sg_grid_fault fault = kernel_run(&kernel, 0);
    kernel_free(&kernel);
    return fault;
}

TEST(a_kernel_without_named_shared_memory_addresses_it_from_zero) {
    FOR_EACH_LEVEL(level) {
        uint32_t out[400];
        assert_int_equal(run_numbered((enum sg_level)level, 576, 1, out).kind, SG_FAULT_COUNT);
        for (unsigned i = 0; i < 400; i++)
            assert_int_equal(out[i], i == 399 ? i : i + 1);
        assert_int_equal(run_numbered((enum sg_level)level, 576, 2, out).kind, SG_FAULT_SPACE);
        assert_int_equal(run_numbered((enum sg_level)level, 0, 1, out).kind, SG_FAULT_SPACE);
    }
}
