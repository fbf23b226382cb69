/* Clusters: ranks, each other's shared memory, the barrier, copies and stores between blocks. */
#include "async_kernel.h"

/* A cluster in three dimensions: which block is which. */
TEST(cluster_registers_have_three_dimensions) {
    static const char text[] = CLUSTER(
        "mov.u32 %r17, %ctaid.y; mov.u32 %r18, %ctaid.z; mov.u32 %r19, %nctaid.x;\n"
        "mov.u32 %r20, %nctaid.y; mad.lo.u32 %r18, %r18, %r20, %r17;\n"
        "mad.lo.u32 %r18, %r18, %r19, %r15; mul.wide.u32 %rd2, %r18, 4;\n"
        "add.u64 %rd2, %rd1, %rd2; mov.u32 %r4, %clusterid.x; mov.u32 %r5, %clusterid.y;\n"
        "mov.u32 %r6, %clusterid.z; shl.b32 %r5, %r5, 8; shl.b32 %r6, %r6, 12;\n"
        "mad.lo.u32 %r2, %r4, 16, %r12; or.b32 %r2, %r2, %r5; or.b32 %r2, %r2, %r6;\n"
        /* The first of the cluster has got all ranks. */
        "st.shared.u32 [%r10], 0;\n" SYNC "mapa.shared::cluster.u32 %r7, %r10, 0;\n"
        "shl.b32 %r11, 1, %r12; red.shared::cluster.or.b32 [%r7], %r11;\n" SYNC
        "ld.shared::cluster.u32 %r7, [%r7]; shl.b32 %r7, %r7, 16; or.b32 %r2, %r2, %r7;\n" SYNC
            ANSWER);
    static uint32_t out[6 * 4 * 2];
    struct kernel kernel = KERNEL_WITH(text, SG_LEVEL_GENERIC, 6, 1, out, NULL);
    kernel.launch.grid[1] = 4;
    kernel.launch.grid[2] = 2;
    kernel.launch.cluster[0] = 3;
    kernel.launch.cluster[1] = 2;
    kernel.launch.cluster[2] = 1;
    kernel_succeeds(&kernel);
    for (uint32_t z = 0; z < 2; z++)
        for (uint32_t y = 0; y < 4; y++)
            for (uint32_t x = 0; x < 6; x++)
                assert_int_equal(out[(z * 4 + y) * 6 + x], (x / 3 * 16 + x % 3 + y % 2 * 3) |
                                                               y / 2 << 8 | z << 12 | 0x3fu << 16);
    kernel.launch.cluster[0] = 4; /* does not divide 6 */
    struct sg_grid *grid;
    assert_int_equal(sg_grid_begin(&kernel.launch, &grid), CUDA_ERROR_INVALID_VALUE);
    kernel.launch.cluster[0] = 6;
    kernel.launch.cluster[1] = 4;
    assert_int_equal(sg_grid_begin(&kernel.launch, &grid), CUDA_ERROR_INVALID_VALUE);
    kernel_free(&kernel);
}

/* ---- the barrier ----------------------------------------------------------------------------- */

/* The largest: sixteen blocks of a thousand threads, each heard by the first block. */
TEST(a_cluster_may_have_sixteen_full_blocks) {
    static uint32_t out[16 * 1024];
    struct async_run run = {.blocks = 16, .threads = 1024, .cluster = 16};
    run.level = sg_level_best();
    async_succeeds(CLUSTER("@%q st.shared.u32 [%r10], 0;\n" SYNC
                           "mapa.shared::cluster.u32 %r6, %r10, 0;\n"
                           "red.shared::cluster.add.u32 [%r6], %r12;\n" SYNC
                           "ld.shared::cluster.u32 %r2, [%r6];\n" SYNC ANSWER),
                   &run, out, NULL);
    for (uint32_t i = 0; i < 16 * 1024; i++)
        assert_int_equal(out[i], 1024 * 120);
}

TEST(cluster_deadlocks_and_bad_accesses_are_reported) {
    uint32_t out[64];
    struct async_run run = {.blocks = 2, .threads = 32, .cluster = 2};
    /* One block does not come, and stays. */
    struct sg_grid_fault fault =
        async_fault(CLUSTER("setp.eq.u32 %p, %r12, 1; @%p bar.sync 1, 64; barrier.cluster.arrive;\n"
                            "barrier.cluster.wait;"),
                    &run, out, NULL);
    assert_int_equal(fault.kind, SG_FAULT_DEADLOCK);
    assert_non_null(strstr(fault.report, "waits for the cluster's barrier"));
    assert_non_null(strstr(fault.report, "waits for barrier 1"));
    assert_non_null(strstr(fault.report, "block 0,0,0 warp 0 lanes ffffffff"));
    assert_non_null(strstr(fault.report, "block 1,0,0 warp 0 lanes ffffffff"));
    /* A rank that the cluster does not have. */
    fault = async_fault(CLUSTER("mapa.shared::cluster.u32 %r6, %r10, 2;\n"
                                "ld.shared::cluster.u32 %r2, [%r6];"),
                        &run, out, NULL);
    assert_int_equal(fault.kind, SG_FAULT_SPACE);
    /* Behind the end of the other's memory. */
    fault = async_fault(CLUSTER("mapa.shared::cluster.u32 %r6, %r10, 1;\n"
                                "st.shared::cluster.u32 [%r6+4096], 1;"),
                        &run, out, NULL);
    MEMBERS(fault, (kind, SG_FAULT_SPACE), (thread[0], 0));
    /* A block that has ended. */
    fault = async_fault(CLUSTER("setp.eq.u32 %p, %r12, 1; @%p exit; mov.u32 %r4, 0;\n"
                                "mapa.shared::cluster.u32 %r6, %r10, 1;\n"
                                "more: nanosleep.u32 100; add.u32 %r4, %r4, 1;\n"
                                "setp.lt.u32 %p, %r4, 9; @%p bra more; ld.shared::cluster.u32 %r2, "
                                "[%r6];"),
                        &run, out, NULL);
    assert_int_equal(fault.kind, SG_FAULT_SPACE);
}
