/* Copies in bulk and mbarriers under the synchronization checker, each hazard beside the same
 * kernel mended. */
#include "sync_kernel.h"

static void silent(const char *text, unsigned threads) {
    sync_silent(text, threads, 0);
}

static void finds(const char *text, unsigned threads, enum sg_sync_kind kind) {
    sync_finds(text, threads, 0, kind, SG_FAULT_COUNT);
}

/* Thread 0 sets up the mbarrier at [s] for one arrival, and lets `bytes` be copied to [s+1024]. */
#define INIT "@%q mbarrier.init.shared.b64 [s], 1;\nbar.sync 0;\n"
#define LOAD(bytes)                                                                                \
    "@%q mbarrier.arrive.expect_tx.shared.b64 %t, [s], " bytes ";\n"                               \
    "@%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+1024], "             \
    "[%rd1], " bytes ", [s];\n"
#define WAIT(name, parity)                                                                         \
    name ": mbarrier.try_wait.parity.shared.b64 %p, [s], " parity ";\n@!%p bra " name ";\n"
/* It is true at once, of the phase before the first. */
#define EARLY "mbarrier.test_wait.parity.shared.b64 %p, [s], 1;\n"
#define READ  "ld.shared.u32 %r5, [%r4+1024];\n"

TEST(accessing_a_bulk_copy_before_its_wait_is_reported) {
    silent(TEXT(INIT LOAD("1024") WAIT("look", "0") READ), 64);
    /* Without a wait, with one behind the access, and with one for the phase before. */
    finds(TEXT(INIT LOAD("1024") "bar.sync 0;\n" READ WAIT("look", "0")), 64, SG_SYNC_NOT_WAITED);
    finds(TEXT(INIT LOAD("1024") "bar.sync 0;\n" EARLY READ WAIT("look", "0")), 64,
          SG_SYNC_NOT_WAITED);
    finds(TEXT(INIT LOAD("1024") "bar.sync 0;\nst.shared.u32 [%r4+1024], 0;\n" WAIT("look", "0")),
          64, SG_SYNC_NOT_WAITED);
    /* One thread waits, and the others meet it. */
    silent(
        TEXT(INIT LOAD("1024") "@!%q bra others;\n" WAIT("look", "0") "others: bar.sync 0;\n" READ),
        64);
    /* Other bytes may be accessed. */
    silent(TEXT(INIT LOAD("1024") "bar.sync 0;\nld.shared.u32 %r5, [s+2048];\n" WAIT("look", "0")),
           64);
}

TEST(waiting_for_an_earlier_mbarrier_phase_is_reported) {
#define TWICE(second)                                                                              \
    TEXT(INIT LOAD("1024") WAIT("one", "0") READ "bar.sync 0;\n" LOAD(                             \
        "1024") "bar.sync 0;\n" second READ "bar.sync 0;\n" WAIT("all", "1"))
    silent(TWICE(WAIT("two", "1")), 64);
    /* The parity has not been turned: it is the phase that is over. */
    finds(TWICE("mbarrier.test_wait.parity.shared.b64 %p, [s], 0;\n"), 64, SG_SYNC_NOT_WAITED);
}

TEST(overlapping_bulk_copies_are_reported) {
    finds(TEXT(INIT "@%q mbarrier.expect_tx.relaxed.cta.shared.b64 [s], 1024;\n" LOAD(
              "1024") "@%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                      "[s+1040], "
                      "[%rd1], 1024, [s];\n" WAIT("look", "0")),
          32, SG_SYNC_TWO_COPIES);
    silent(TEXT(INIT "@%q mbarrier.expect_tx.relaxed.cta.shared.b64 [s], 1024;\n" LOAD(
               "1024") "@%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                       "[s+2048], "
                       "[%rd1], 1024, [s];\n" WAIT("look", "0")),
           32);
    /* The copy's own mbarrier is overwritten. */
    finds(TEXT(INIT "@%q mbarrier.init.shared.b64 [s+1032], 1;\n" LOAD("16") WAIT("look", "0")), 32,
          SG_SYNC_OVERWRITTEN);
}

#define STORE                                                                                      \
    "st.shared.u32 [%r4+1024], %r1;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n"                \
    "@%q cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s+1024], 1024;\n"                    \
    "@%q cp.async.bulk.commit_group;\n"

TEST(overwriting_the_source_of_a_bulk_copy_is_reported) {
    silent(TEXT(STORE "@%q cp.async.bulk.wait_group.read 0;\nbar.sync 0;\n"
                      "st.shared.u32 [%r4+1024], 0;"),
           64);
    finds(TEXT(STORE "bar.sync 0;\nst.shared.u32 [%r4+1024], 0;\nbar.sync 0;\n"
                     "@%q cp.async.bulk.wait_group.read 0;"),
          64, SG_SYNC_SOURCE);
    /* It may be read meanwhile. */
    silent(TEXT(STORE "bar.sync 0;\nld.shared.u32 %r5, [%r4+1024];\nbar.sync 0;\n"
                      "@%q cp.async.bulk.wait_group.read 0;"),
           64);
    /* The block ends, and with it what the copy reads. */
    finds(TEXT(STORE), 64, SG_SYNC_LEFT);
    finds(TEXT(STORE "@%q cp.async.bulk.wait_group.read 1;"), 64, SG_SYNC_LEFT);
    silent(TEXT(STORE "@%q cp.async.bulk.wait_group 0;"), 64);
    finds(TEXT("@%q cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s+1024], 1024;\n"
               "@%q cp.async.bulk.wait_group 0;"), /* it is in no group */
          64, SG_SYNC_LEFT);
}

TEST(reading_a_global_copy_target_before_its_wait_is_reported) {
    silent(TEXT(STORE "@%q cp.async.bulk.wait_group 0;\n@%q ld.global.u32 %r5, [%rd1+16];"), 64);
    /* The source has been read, which says nothing of the target. */
    finds(TEXT(STORE "@%q cp.async.bulk.wait_group.read 0;\n@%q ld.global.u32 %r5, [%rd1+16];"), 64,
          SG_SYNC_NOT_WAITED);
    silent(TEXT(STORE "@%q cp.async.bulk.wait_group.read 0;\n@%q ld.global.u32 %r5, [%rd1+1024];"),
           64);
}

TEST(a_block_that_ends_during_a_bulk_copy_is_reported) {
    finds(TEXT(INIT LOAD("1024")), 64, SG_SYNC_LEFT);
    silent(TEXT(INIT LOAD("1024") "@!%q bra end;\n" WAIT("look", "0") "end:"), 64);
}

/* The copies of each thread are counted by the mbarrier. */
#define COUNTED(look)                                                                              \
    TEXT("@%q mbarrier.init.shared.b64 [s], 64;\nbar.sync 0;\n"                                    \
         "cp.async.ca.shared.global [%r4+1024], [%rd3], 16;\n"                                     \
         "cp.async.mbarrier.arrive.noinc.shared.b64 [s];\n" look)

TEST(copies_counted_by_an_mbarrier_need_its_wait) {
    silent(COUNTED(WAIT("look", "0") READ), 64);
    finds(COUNTED("bar.sync 0;\n" READ WAIT("look", "0")), 64, SG_SYNC_NOT_WAITED);
    finds(COUNTED(EARLY READ WAIT("look", "0")), 64, SG_SYNC_NOT_WAITED);
    finds(COUNTED(""), 64, SG_SYNC_UNUSED);
}

TEST(reading_an_async_store_before_its_wait_is_reported) {
#define STORED(rest)                                                                               \
    TEXT(INIT "@%q mbarrier.arrive.expect_tx.shared.b64 %t, [s], 8;\n"                             \
              "mapa.shared::cluster.u32 %r6, %r2, 0;\n"                                            \
              "@%q st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r6+1024], "    \
              "%rd1, [%r6];\n" rest)
    silent(STORED(WAIT("look", "0") "ld.shared.u32 %r5, [s+1024];"), 32);
    finds(STORED("ld.shared.u32 %r5, [s+1028];\n" WAIT("look", "0")), 32, SG_SYNC_NOT_WAITED);
}

TEST(invalidating_an_mbarrier_still_waited_for_is_reported) {
    /* Thread 32 has looked, and only then thread 0 invalidates it. */
#define INVALIDATED(ready)                                                                         \
    TEXT(                                                                                          \
        "@%q mbarrier.init.shared.b64 [s], 1;\n@%q st.shared.u32 [s+64], 0;\n"                     \
        "bar.sync 0;\nsetp.eq.u32 %p, %r1, 32;\n@%p bra looks;\n@!%q bra end;\n"                   \
        "ends: ld.volatile.shared.u32 %r5, [s+64];\nsetp.eq.u32 %p, %r5, 0;\n@%p bra ends;\n"      \
        "mbarrier.inval.shared.b64 [s];\nst.volatile.shared.u32 [s+64], 2;\nbra end;\n"            \
        "looks: mbarrier.test_wait.parity.shared.b64 %p, [s], " ready ";\n"                        \
        "st.volatile.shared.u32 [s+64], 1;\n"                                                      \
        "more: ld.volatile.shared.u32 %r5, [s+64];\nsetp.eq.u32 %p, %r5, 1;\n@%p bra more;\nend:")
    silent(INVALIDATED("1"), 64);
    finds(INVALIDATED("0"), 64, SG_SYNC_INVALIDATED);
}

TEST(waiting_with_an_old_mbarrier_state_is_reported) {
    /* Thread 0 arrives in two phases, and waits with the state of the first. */
#define STATES(waited)                                                                             \
    TEXT("@!%q bra end;\nmbarrier.init.shared.b64 [s], 1;\n"                                       \
         "mbarrier.arrive.shared.b64 %t, [s];\nmbarrier.arrive.shared.b64 %u, [s];\n"              \
         "mbarrier.test_wait.shared.b64 %p, [s], " waited ";\nend:")
    silent(STATES("%u"), 32);
    finds(STATES("%t"), 32, SG_SYNC_OLD_STATE);
}

TEST(more_arrivals_than_expected_are_a_fault) {
    sync_run(TEXT("@%q mbarrier.init.shared.b64 [s], 3;\n"
                  "@%q mbarrier.arrive.shared.b64 %t, [s], 4;"),
             32, 0, 0, SG_FAULT_MBARRIER);
}

/* Block 0 of each cluster has the mbarrier; all arrive there. */
#define REMOTE(arrivals)                                                                           \
    TEXT("mov.u32 %r6, %cluster_ctarank; setp.ne.u32 %p, %r6, 0;\n@%p bra begun;\n"                \
         "@%q mbarrier.init.shared.b64 [s], " arrivals ";\n"                                       \
         "begun: barrier.cluster.arrive; barrier.cluster.wait;\n"                                  \
         "mapa.shared::cluster.u32 %r7, %r2, 0;\n"                                                 \
         "@%q mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];\n"                     \
         "@%p bra end;\n" WAIT("look", "0") "end: barrier.cluster.arrive; barrier.cluster.wait;")

TEST(arriving_at_a_remote_block_without_an_mbarrier_is_reported) {
    sync_silent(REMOTE("2"), 32, 2);
    sync_silent(REMOTE("4"), 32, 4);
    /* No block has one there. */
    sync_finds(TEXT("mapa.shared::cluster.u32 %r7, %r2, 1;\n"
                    "barrier.cluster.arrive; barrier.cluster.wait;\n"
                    "@%q mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];"),
               32, 2, SG_SYNC_NO_MBARRIER, SG_FAULT_MBARRIER);
}

TEST(unpaired_cluster_arrivals_and_waits_are_reported) {
    sync_silent(TEXT("barrier.cluster.arrive; barrier.cluster.wait;\n"
                     "barrier.cluster.arrive.relaxed; barrier.cluster.wait;"),
                64, 2);
    sync_finds(TEXT("barrier.cluster.arrive; barrier.cluster.arrive; barrier.cluster.wait;"), 64, 2,
               SG_SYNC_ARRIVED_TWICE, SG_FAULT_COUNT);
    sync_finds(TEXT("barrier.cluster.wait;"), 64, 2, SG_SYNC_NOT_ARRIVED, SG_FAULT_COUNT);
}

/* Each block of a pair copies into the shared memory of the other. */
#define MULTICAST(look)                                                                            \
    TEXT("mov.u32 %r6, %cluster_ctarank; mov.b32 %r8, 3; cvt.u16.u32 %h, %r8;\n"                   \
         "@%q mbarrier.init.shared.b64 [s], 1;\n"                                                  \
         "@%q mbarrier.arrive.expect_tx.shared.b64 %t, [s], 1024;\n"                               \
         "barrier.cluster.arrive; barrier.cluster.wait;\nsetp.eq.u32 %p, %r6, 0;\n"                \
         "and.pred %p, %p, %q;\n"                                                                  \
         "@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"                   \
         ".multicast::cluster [s+1024], [%rd1], 1024, [s], %h;\n" look                             \
         "barrier.cluster.arrive; barrier.cluster.wait;")

TEST(each_block_must_wait_for_a_multicast_copy) {
    sync_silent(MULTICAST(WAIT("look", "0") READ), 64, 2);
    sync_finds(MULTICAST("barrier.cluster.arrive; barrier.cluster.wait;\n" READ WAIT("look", "0")),
               64, 2, SG_SYNC_NOT_WAITED, SG_FAULT_COUNT);
}

TEST(a_warp_barrier_not_reached_by_all_lanes_is_reported) {
    sync_finds(TEXT("setp.lt.u32 %p, %r1, 16;\n@%p bra low;\nbar.warp.sync -1;\nbra end;\n"
                    "low: bar.sync 0;\nend:"),
               32, 0, SG_SYNC_NOT_COME, SG_FAULT_DEADLOCK);
}
