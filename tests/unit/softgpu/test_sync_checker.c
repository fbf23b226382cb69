/* What the synchronization checker finds, each beside the same kernel mended. */
#include "sync_kernel.h"

static void silent(const char *text, unsigned threads) {
    sync_silent(text, threads, 0);
}

static void finds_with(const char *text, unsigned threads, enum sg_sync_kind kind,
                       enum sg_fault_kind fault) {
    sync_finds(text, threads, 0, kind, fault);
}

static void finds(const char *text, unsigned threads, enum sg_sync_kind kind) {
    finds_with(text, threads, kind, SG_FAULT_COUNT);
}

TEST(a_barrier_reached_by_part_of_a_warp_is_reported) {
    silent(TEXT("bar.sync 0; bar.sync 1, 64; barrier.sync 2, 64;"), 64);
    /* Both branches have a barrier of their own. */
    finds(TEXT("setp.lt.u32 %p, %r1, 16;\n@%p bra low;\nbar.sync 0;\nbra end;\nlow: bar.sync 0;\n"
               "end:"),
          32, SG_SYNC_OTHER_PLACE);
    silent(TEXT("setp.lt.u32 %p, %r1, 32;\n@%p bra low;\nbar.sync 0;\nbra end;\nlow: bar.sync 0;\n"
                "end:"),
           64);
    silent(TEXT("setp.lt.u32 %p, %r1, 16;\n@%p bra low;\nbarrier.sync 0;\nbra end;\n"
                "low: barrier.sync 0;\nend:"),
           32);
    /* Only a part of the warp, which a count makes complete. */
    finds(TEXT("setp.lt.u32 %p, %r1, 48;\nsetp.ge.u32 %q, %r1, 16;\nand.pred %p, %p, %q;\n"
               "@%p bar.sync 0, 32;"),
          64, SG_SYNC_DIVERGENT_WARP);
    silent(TEXT("setp.lt.u32 %p, %r1, 32;\n@%p bar.sync 0, 32;"), 64);
}

TEST(a_barrier_not_reached_by_all_warps_is_reported) {
    finds_with(TEXT("setp.lt.u32 %p, %r1, 32;\n@%p bar.sync 0, 64;"), 64, SG_SYNC_UNREACHED,
               SG_FAULT_DEADLOCK);
    silent(TEXT("bar.sync 0, 64;"), 64);
    finds(TEXT("setp.lt.u32 %p, %r1, 32;\n@%p bar.arrive 3, 64;"), 64, SG_SYNC_UNREACHED);
    silent(TEXT("setp.lt.u32 %p, %r1, 32;\n@%p bar.arrive 3, 64;\n@!%p bar.sync 3, 64;"), 64);
    finds(TEXT("setp.ge.u32 %p, %r1, 40;\n@%p ret;\nbar.sync 0;"), 64, SG_SYNC_EXITED);
    silent(TEXT("setp.ge.u32 %p, %r1, 40;\nbar.sync 0;\n@%p ret;"), 64);
}

TEST(one_warp_at_two_barriers_is_reported) {
    finds_with(TEXT("setp.lt.u32 %p, %r1, 16;\n@%p bra low;\nbar.sync 1, 64;\nbra end;\n"
                    "low: bar.sync 2, 64;\nend:"),
               32, SG_SYNC_TWO_BARRIERS, SG_FAULT_DEADLOCK);
    silent(TEXT("setp.lt.u32 %p, %r1, 32;\n@%p bra low;\nbar.sync 1, 32;\nbra end;\n"
                "low: bar.sync 2, 32;\nend:"),
           64);
}

TEST(a_barrier_count_of_partial_warps_is_reported) {
    finds_with(TEXT("setp.lt.u32 %p, %r1, 16;\nbarrier.sync 1, 24+24;"), 48, SG_SYNC_COUNT,
               SG_FAULT_BARRIER);
    silent(TEXT("barrier.sync 1, 64;"), 64);
}

TEST(a_barrier_number_above_15_is_reported) {
    finds(TEXT("mov.u32 %r2, 17;\nbarrier.sync %r2;"), 64, SG_SYNC_NUMBER);
    silent(TEXT("mov.u32 %r2, 15;\nbarrier.sync %r2;"), 64);
}

TEST(a_warp_at_two_cluster_barrier_instructions_is_reported) {
    finds(TEXT("setp.lt.u32 %p, %r1, 20;\n@%p bra low;\nbarrier.cluster.arrive;\nbra on;\n"
               "low: barrier.cluster.arrive;\non: barrier.cluster.wait;"),
          64, SG_SYNC_CLUSTER_PLACES);
    silent(TEXT("setp.lt.u32 %p, %r1, 32;\n@%p bra low;\nbarrier.cluster.arrive;\nbra on;\n"
                "low: barrier.cluster.arrive;\non: barrier.cluster.wait;"),
           64);
    /* One instruction, reached by parts of the warp one after the other. */
    silent(TEXT("setp.lt.u32 %p, %r1, 20;\n@%p bra on;\nadd.u32 %r2, %r1, 1;\n"
                "on: barrier.cluster.arrive; barrier.cluster.wait;\n"
                "barrier.cluster.arrive; barrier.cluster.wait;"),
           64);
}

TEST(initializing_an_mbarrier_twice_is_reported) {
    silent(TEXT("@%q mbarrier.init.shared.b64 [s], 32;\nbar.sync 0;\n"
                "mbarrier.arrive.shared.b64 %t, [s];\n"
                "wait: mbarrier.test_wait.shared.b64 %p, [s], %t;\n@!%p bra wait;\nbar.sync 0;\n"
                "@%q mbarrier.inval.shared.b64 [s];\n@%q mbarrier.init.shared.b64 [s], 1;"),
           32);
    finds(TEXT("@%q mbarrier.init.shared.b64 [s], 32;\n@%q mbarrier.init.shared.b64 [s], 32;"), 32,
          SG_SYNC_AGAIN);
    finds(TEXT("@%q mbarrier.init.shared.b64 [s], 32;\n@%q mbarrier.init.shared.b64 [s+8], 32;\n"
               "@%q st.shared.u32 [s+4], 1;"),
          32, SG_SYNC_OVERWRITTEN);
    finds_with(TEXT("@%q mbarrier.arrive.shared.b64 %t, [s];"), 32, SG_SYNC_NO_MBARRIER,
               SG_FAULT_MBARRIER);
    finds_with(TEXT("@%q mbarrier.init.shared.b64 [s], 3;\n@%q mbarrier.inval.shared.b64 [s];\n"
                    "@%q mbarrier.arrive.shared.b64 %t, [s];"),
               32, SG_SYNC_NO_MBARRIER, SG_FAULT_MBARRIER);
}

TEST(accessing_an_async_copy_before_its_wait_is_reported) {
    silent(TEXT("cp.async.ca.shared.global [%r4], [%rd3], 16;\ncp.async.wait_all;\nbar.sync 0;\n"
                "ld.shared.u32 %r5, [s+16];"),
           64);
    finds(TEXT("cp.async.ca.shared.global [%r4], [%rd3], 16;\nld.shared.u32 %r5, [%r4];\n"
               "cp.async.wait_all;"),
          64, SG_SYNC_NOT_WAITED);
    finds(TEXT("cp.async.ca.shared.global [%r4], [%rd3], 16;\nst.shared.u32 [%r4+12], 1;\n"
               "cp.async.wait_all;"),
          64, SG_SYNC_NOT_WAITED);
    finds(TEXT("cp.async.ca.shared.global [%r4], [%rd3], 16;\n"
               "cp.async.ca.shared.global [%r4], [%rd3], 16;\ncp.async.wait_all;"),
          64, SG_SYNC_TWO_COPIES);
    /* Two stages: the second may be open while the first is read. */
#define PIPELINE(open)                                                                             \
    TEXT("cp.async.ca.shared.global [%r4], [%rd3], 16;\ncp.async.commit_group;\n"                  \
         "cp.async.ca.shared.global [%r4+1024], [%rd3], 16;\ncp.async.commit_group;\n"             \
         "cp.async.wait_group " open ";\nbar.sync 0;\nld.shared.u32 %r5, [%r4];\n"                 \
         "cp.async.wait_group 0;\nbar.sync 0;\nld.shared.u32 %r5, [%r4+1024];")
    silent(PIPELINE("1"), 64);
    silent(PIPELINE("0"), 64);
    finds(PIPELINE("2"), 64, SG_SYNC_NOT_WAITED);
    /* Not committed: the wait has nothing to wait for. */
    finds(TEXT("cp.async.ca.shared.global [%r4], [%rd3], 16;\ncp.async.wait_group 0;\n"
               "ld.shared.u32 %r5, [%r4];\ncp.async.wait_all;"),
          64, SG_SYNC_NOT_WAITED);
    finds(TEXT("cp.async.ca.shared.global [%r4], [%rd3], 16;"), 64, SG_SYNC_UNUSED);
}

TEST(a_warp_mask_without_the_executing_lane_is_reported) {
    silent(TEXT("bar.warp.sync -1;\nshfl.sync.idx.b32 %r5, %r1, 0, 31, -1;"), 32);
    silent(TEXT("setp.lt.u32 %p, %r1, 16;\n@%p bar.warp.sync 0xffff;"), 32);
    finds(TEXT("setp.lt.u32 %p, %r1, 16;\n@%p bar.warp.sync 0xfffe;"), 32, SG_SYNC_NO_MEMBER);
    finds(TEXT("mov.u32 %r5, -1;\n@%q mov.u32 %r5, 1;\nshfl.sync.idx.b32 %r6, %r1, 0, 31, %r5;"),
          32, SG_SYNC_UNEQUAL);
}

TEST(a_synchronization_report_names_both_threads) {
    sync_run(TEXT("cp.async.ca.shared.global [%r4], [%rd3], 16;\nsetp.eq.u32 %p, %r1, 5;\n"
                  "@%p ld.shared.u32 %r5, [s+100];\ncp.async.wait_all;"),
             64, 0, 0, SG_FAULT_COUNT);
    assert_int_equal(sync_findings.count, 2); /* one in each block */
    const struct sg_sync_found *found = &sync_findings.found[0];
    assert_int_equal(found->thread, 5);
    assert_int_equal(found->other_thread, 6);
    assert_true(found->has_other && found->has_address && !found->write);
    assert_int_equal(found->address, 100);
    assert_int_equal(found->size, 4);
}
