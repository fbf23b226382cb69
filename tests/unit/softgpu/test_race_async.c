/* Races of asynchronous copies, mbarriers, clusters and their shared memory, each beside the same
 * kernel mended. */
#include "race_kernel.h"

/* The thread in %r1, the block's rank in %r2, 4 KiB of shared memory `s` at %r3, the thread's word
 * there in %r4, memory in %rd1, the thread's word there in %rd2; %q: it is the first thread. */
#define TEXT(body)                                                                                 \
    KERNEL_HEAD ".visible .entry k(.param .u64 to) {\n"                                            \
                ".reg .pred %p, %q; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .b64 %t;\n"           \
                ".shared .align 16 .b8 s[4096];\n"                                                 \
                "ld.param.u64 %rd1, [to]; mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank;\n"   \
                "mov.u32 %r3, s; shl.b32 %r5, %r1, 2; add.u32 %r4, %r3, %r5;\n"                    \
                "mad.wide.u32 %rd2, %r1, 4, %rd1; setp.eq.u32 %q, %r1, 0;\n" body "\nret;\n}\n"

static struct race_kernel kernel_of(unsigned threads, unsigned cluster, const char *text) {
    return (struct race_kernel){.text = text,
                                .grid = {cluster ? 2 * cluster : 1},
                                .block = {threads},
                                .cluster = cluster,
                                .words = 4096};
}

static void silent(unsigned threads, unsigned cluster, const char *text) {
    struct race_kernel kernel = kernel_of(threads, cluster, text);
    race_silent(&kernel, NULL, 0);
}

static void races(unsigned threads, unsigned cluster, const char *text, const char *one,
                  const char *other) {
    struct race_kernel kernel = kernel_of(threads, cluster, text);
    race_between(&kernel, one, other);
}

#define WAIT(name, parity)                                                                         \
    name ": mbarrier.try_wait.parity.shared.b64 %p, [s], " parity ";\n@!%p bra " name ";\n"

TEST(waiting_for_an_mbarrier_phase_orders_memory) {
#define PHASE(wait)                                                                                \
    TEXT("@%q mbarrier.init.shared.b64 [s], 64;\nbar.sync 0;\n"                                    \
         "st.shared.u32 [%r4+1024], %r1;\nmbarrier.arrive.shared.b64 %t, [s];\n" wait              \
         "xor.b32 %r5, %r5, 128;\nadd.u32 %r5, %r5, %r3;\nld.shared.u32 %r6, [%r5+1024];")
    silent(64, 0, PHASE(WAIT("look", "0")));
    /* It does not wait until the phase is over, or asks for the one before, which is. */
    races(64, 0, PHASE("mbarrier.test_wait.parity.shared.b64 %p, [s], 1;\n"), "st.shared",
          "ld.shared");
    /* Arrivals that do not release. */
    races(64, 0,
          TEXT("@%q mbarrier.init.shared.b64 [s], 64;\nbar.sync 0;\n"
               "st.shared.u32 [%r4+1024], %r1;\n"
               "mbarrier.arrive.relaxed.cta.shared.b64 %t, [s];\n" WAIT(
                   "look", "0") "xor.b32 %r5, %r5, 128;\nadd.u32 %r5, %r5, %r3;\n"
                                "ld.shared.u32 %r6, [%r5+1024];"),
          "st.shared", "ld.shared");
}

TEST(producer_and_consumer_mbarriers_prevent_races) {
    /* Warp 0 fills a buffer three times, warp 1 reads it; [s]: full, [s+8]: empty. */
#define TURNS(wait_empty, wait_full)                                                               \
    TEXT("@%q mbarrier.init.shared.b64 [s], 32;\n@%q mbarrier.init.shared.b64 [s+8], 32;\n"        \
         "bar.sync 0;\nmov.u32 %r7, 0;\nsetp.ge.u32 %p, %r1, 32;\n@%p bra consumer;\n"             \
         "producer: and.b32 %r8, %r7, 1;\nxor.b32 %r9, %r8, 1;\n" wait_empty                       \
         "st.shared.u32 [%r4+1024], %r7;\nmbarrier.arrive.shared.b64 %t, [s];\n"                   \
         "add.u32 %r7, %r7, 1;\nsetp.lt.u32 %p, %r7, 3;\n@%p bra producer;\nbra end;\n"            \
         "consumer: and.b32 %r8, %r7, 1;\n" wait_full                                              \
         "ld.shared.u32 %r6, [%r4+896];\nmbarrier.arrive.shared.b64 %t, [s+8];\n"                  \
         "add.u32 %r7, %r7, 1;\nsetp.lt.u32 %p, %r7, 3;\n@%p bra consumer;\nend:")
#define UNTIL(name, at, parity)                                                                    \
    name ": mbarrier.try_wait.parity.shared.b64 %p, [" at "], " parity ";\n@!%p bra " name ";\n"
    silent(64, 0, TURNS(UNTIL("empty", "s+8", "%r9"), UNTIL("full", "s", "%r8")));
    /* The producer does not wait. The consumer only looks, since it could wait for ever; whoever
     * comes first decides whether it finds its phase over. */
    struct race_kernel kernel =
        kernel_of(64, 0, TURNS("", "mbarrier.test_wait.parity.shared.b64 %p, [s], %r8;\n"));
    struct race_findings findings;
    race_run(&kernel, SG_GRID_EAGER, 0, &findings, NULL);
    assert_true(findings.count > 0);
}

TEST(waiting_for_a_bulk_copy_orders_its_bytes) {
#define BULK(wait, after)                                                                          \
    TEXT("@%q mbarrier.init.shared.b64 [s], 1;\nbar.sync 0;\n"                                     \
         "@%q mbarrier.arrive.expect_tx.shared.b64 %t, [s], 256;\n"                                \
         "@%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+1024], "        \
         "[%rd1], 256, [s];\n" wait "ld.shared.u32 %r6, [%r4+1024];\n" after)
    silent(64, 0, BULK(WAIT("look", "0"), ""));
    races(64, 0, BULK("", WAIT("look", "0")), "cp.async.bulk", "ld.shared");
    /* What the copy has read may be written by who has waited. */
    silent(64, 0, BULK(WAIT("look", "0"), "st.global.u32 [%rd2], %r1;"));
    races(64, 0, BULK("st.global.u32 [%rd2], %r1;\n" WAIT("look", "0"), ""), "cp.async.bulk",
          "st.global");
}

/* Two stages: a thread's copies are those of the tile after the one that all work on. */
#define PIPELINE(wait, barrier)                                                                    \
    TEXT("cp.async.ca.shared.global [%r4], [%rd2], 4;\ncp.async.commit_group;\nmov.u32 %r7, 0;\n"  \
         "next: add.u32 %r7, %r7, 1;\nand.b32 %r8, %r7, 1;\nmad.lo.u32 %r9, %r8, 256, %r4;\n"      \
         "cp.async.ca.shared.global [%r9], [%rd2], 4;\ncp.async.commit_group;\n" wait              \
         "xor.b32 %r8, %r8, 1;\nxor.b32 %r10, %r5, 252;\nmad.lo.u32 %r10, %r8, 256, %r10;\n"       \
         "add.u32 %r10, %r10, %r3;\nld.shared.u32 %r6, [%r10];\n" barrier                          \
         "setp.lt.u32 %p, %r7, 5;\n@%p bra next;\ncp.async.wait_all;")

TEST(a_correct_double_buffer_has_no_race) {
    silent(64, 0, PIPELINE("cp.async.wait_group 1;\nbar.sync 0;\n", "bar.sync 0;\n"));
    /* Nobody waits until all have read, or until all have copied. */
    races(64, 0, PIPELINE("cp.async.wait_group 1;\nbar.sync 0;\n", ""), "cp.async.ca", "ld.shared");
    races(64, 0, PIPELINE("cp.async.wait_group 1;\n", "bar.sync 0;\n"), "cp.async.ca", "ld.shared");
}

/* Each block of a cluster writes its own shared memory, and reads the next block's. */
#define NEIGHBOUR(barrier, last)                                                                   \
    TEXT("st.shared.u32 [%r4], %r1;\n" barrier                                                     \
         "mov.u32 %r6, %cluster_nctarank; add.u32 %r7, %r2, 1; rem.u32 %r7, %r7, %r6;\n"           \
         "mapa.shared::cluster.u32 %r8, %r4, %r7;\nld.shared::cluster.u32 %r9, [%r8];\n" last)
#define MEETS "barrier.cluster.arrive; barrier.cluster.wait;\n"

TEST(the_cluster_barrier_orders_its_blocks) {
    for (unsigned cluster = 2; cluster <= 4; cluster += 2) {
        silent(64, cluster, NEIGHBOUR(MEETS, MEETS));
        silent(64, cluster, NEIGHBOUR(MEETS, MEETS "st.shared.u32 [%r4], 0;\n" MEETS));
        races(64, cluster, NEIGHBOUR("", MEETS), "st.shared", "ld.shared::cluster");
        /* The block's own barrier does not reach the others. */
        races(64, cluster, NEIGHBOUR("bar.sync 0;\n", MEETS), "st.shared", "ld.shared::cluster");
        /* An arrival that does not release. */
        races(64, cluster,
              NEIGHBOUR("barrier.cluster.arrive.relaxed; barrier.cluster.wait;\n", MEETS),
              "st.shared", "ld.shared::cluster");
        silent(64, cluster,
               NEIGHBOUR("fence.acq_rel.cluster; barrier.cluster.arrive.relaxed; "
                         "barrier.cluster.wait;\n",
                         MEETS));
        /* It is overwritten while the neighbour may still read it. */
        races(64, cluster, NEIGHBOUR(MEETS, "st.shared.u32 [%r4], 0;\n" MEETS), "st.shared",
              "ld.shared::cluster");
    }
}

TEST(shared_memory_of_different_clusters_does_not_race) {
    /* The same offsets in two clusters. */
    silent(32, 2, TEXT("st.shared.u32 [%r4], %r1;\nld.shared.u32 %r6, [%r4];"));
    /* All add to the first block's counter. */
#define COUNTER(add)                                                                               \
    TEXT("mapa.shared::cluster.u32 %r8, %r3, 0;\n"                                                 \
         "setp.eq.u32 %p, %r2, 0; and.pred %p, %p, %q;\n@%p st.shared.u32 [s], 0;\n" MEETS add     \
             MEETS)
    silent(64, 2, COUNTER("atom.relaxed.cluster.shared::cluster.add.u32 %r9, [%r8], 1;\n"));
    races(64, 2, COUNTER("atom.relaxed.cta.shared::cluster.add.u32 %r9, [%r8], 1;\n"), "atom",
          "atom");
    races(
        64, 2,
        COUNTER("@%q ld.shared::cluster.u32 %r9, [%r8];\n@%q st.shared::cluster.u32 [%r8], %r9;\n"),
        "shared::cluster.u32", "shared::cluster.u32");
}

TEST(cluster_scope_orders_blocks_of_one_cluster) {
    /* Block 1 of each cluster waits for the flag of block 0, in global memory of its own. */
#define FLAG(scope)                                                                                \
    TEXT("mov.u32 %r6, %clusterid.x; mad.wide.u32 %rd3, %r6, 128, %rd1;\n@!%q bra end;\n"          \
         "setp.ne.u32 %p, %r2, 0;\n@%p bra look;\nst.global.u32 [%rd3+64], 7;\n"                   \
         "st.release." scope ".global.u32 [%rd3], 1;\nbra end;\n"                                  \
         "look: ld.acquire." scope ".global.u32 %r7, [%rd3];\nsetp.eq.u32 %p, %r7, 0;\n"           \
         "@%p bra look;\nld.global.u32 %r8, [%rd3+64];\nend:")
    silent(32, 2, FLAG("cluster"));
    silent(32, 2, FLAG("gpu"));
    races(32, 2, FLAG("cta"), "[%rd3", "[%rd3");
}

TEST(arriving_at_a_remote_mbarrier_orders_memory) {
    /* All blocks write into the first one's memory, and arrive at its mbarrier. */
#define REMOTE(sem)                                                                                \
    TEXT("setp.eq.u32 %p, %r2, 0; and.pred %p, %p, %q;\n"                                          \
         "@%p mbarrier.init.shared.b64 [s], 64;\n" MEETS                                           \
         "mapa.shared::cluster.u32 %r8, %r3, 0; shl.b32 %r9, %r2, 7; add.u32 %r9, %r9, %r5;\n"     \
         "add.u32 %r9, %r9, %r8;\nst.shared::cluster.u32 [%r9+1024], %r1;\n"                       \
         "mbarrier.arrive" sem ".shared::cluster.b64 _, [%r8];\n"                                  \
         "setp.ne.u32 %p, %r2, 0;\n@%p bra end;\n" WAIT(                                           \
             "look", "0") "ld.shared.u32 %r6, [%r4+1152];\nend: " MEETS)
    silent(32, 2, REMOTE(""));
    silent(32, 2, REMOTE(".release.cluster"));
    races(32, 2, REMOTE(".relaxed.cluster"), "st.shared::cluster", "ld.shared");
}
