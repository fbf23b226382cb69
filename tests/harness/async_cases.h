/*
 * Kernels of mbarriers, asynchronous copies and clusters whose answers PTX defines: the same on
 * hardware, and under each schedule of the engine. k(out, in): out has a word for each thread of
 * the grid, in ASYNC_INPUT words.
 */
#ifndef TESTS_HARNESS_ASYNC_CASES_H
#define TESTS_HARNESS_ASYNC_CASES_H

#include <stdint.h>

#define ASYNC_INPUT 256u
#define ASYNC_IN(i) ((uint32_t)(i)*2654435761u + 1)
#define UNTOUCHED   0xccccccccu

/* %r1: thread, %r3: lane, %rd1: out, %rd2: out + 4 * thread, %rd3: in; buf: 1024 bytes, bar: two
 * mbarriers, %r8 and %r9 their addresses, %r10 that of buf. */
#define ASYNC_HEAD                                                                                 \
    ".version 9.0\n.target sm_90\n.address_size 64\n"                                              \
    ".visible .entry k(.param .u64 out, .param .u64 in) {\n"                                       \
    ".reg .pred %p, %q; .reg .b16 %rs<3>; .reg .b32 %r<24>; .reg .b64 %rd<12>;\n"                  \
    ".shared .align 16 .b8 buf[1024]; .shared .align 8 .b64 bar[2];\n"                             \
    "ld.param.u64 %rd1, [out]; ld.param.u64 %rd3, [in]; mov.u32 %r1, %tid.x;\n"                    \
    "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2; mov.u32 %r3, %laneid;\n"                 \
    "mov.u32 %r8, bar; add.u32 %r9, %r8, 8; mov.u32 %r10, buf; setp.eq.u32 %q, %r1, 0;\n"
#define ASYNC_TAIL  "\nret; }\n"
#define ASYNC(body) ASYNC_HEAD body ASYNC_TAIL
/* Writes %r2. */
#define ANSWER "\nst.global.u32 [%rd2], %r2;"
/* Waits until the phase of a parity of the mbarrier at a register is over. */
#define AWAIT(label, bar, parity)                                                                  \
    "\n" label ": mbarrier.try_wait.parity.shared.b64 %p, [" bar "], " parity "; @!%p bra " label  \
    ";\n"

/* %r12: rank, %r13: blocks of the cluster, %r14: the next block's rank, %rd2: out + 4 * (thread of
 * the grid) */
#define CLUSTER(body)                                                                              \
    ASYNC("mov.u32 %r12, %cluster_ctarank; mov.u32 %r13, %cluster_nctarank;\n"                     \
          "add.u32 %r14, %r12, 1; rem.u32 %r14, %r14, %r13; mov.u32 %r15, %ctaid.x;\n"             \
          "mov.u32 %r16, %ntid.x; mad.lo.u32 %r16, %r15, %r16, %r1;\n"                             \
          "mul.wide.u32 %rd2, %r16, 4; add.u64 %rd2, %rd1, %rd2;\n" body)
#define SYNC "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
#define OWN  "shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r10;\n"

#define TO_SHARED                                                                                  \
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%rd3], 256, "      \
    "[%r8];\n"
/* One thread has an mbarrier for itself, and begins; a fence tells the asynchronous proxy. */
#define ONE_BEGINS(what)                                                                           \
    "@%q mbarrier.init.shared.b64 [%r8], 1; fence.proxy.async.shared::cta; bar.sync 0;\n"          \
    "@!%q bra begun;\n"                                                                            \
    "mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r8], 256;\n" what "begun:\n"

struct async_case {
    const char *name, *text;
    unsigned blocks, threads, cluster; /* cluster: 0 for none */
    uint32_t (*answer)(uint32_t block, uint32_t thread);
};

static inline uint32_t cut(uint32_t thread) {
    uint32_t wanted = 0;
    for (uint32_t k = 0; k < (thread < 32 ? thread & 3 : thread < 48 ? 0u : 4u); k++)
        wanted ^= ASYNC_IN(4 * thread + k);
    return wanted;
}

static inline uint32_t ranks(uint32_t block) {
    uint32_t rank = block % 2;
    return 1 | (rank + 1) % 2 << 1 | rank << 2 | 1u << 3 | 0u << 4 | 1u << 5 | 2u << 8 |
           block / 2 << 12 | rank << 16 | 3u << 20;
}

static inline uint32_t answer_0(uint32_t block, uint32_t thread) {
    return thread ^ 63;
}
static inline uint32_t answer_1(uint32_t block, uint32_t thread) {
    return thread ? UNTOUCHED : (0x20000 | 1 | 8 | 16 | 64 | 128);
}
static inline uint32_t answer_2(uint32_t block, uint32_t thread) {
    return thread ? UNTOUCHED : (2 | 4 | 16 | 32);
}
static inline uint32_t answer_3(uint32_t block, uint32_t thread) {
    return thread ? UNTOUCHED : 8;
}
static inline uint32_t answer_4(uint32_t block, uint32_t thread) {
    return thread < 32 ? 0 : 3600 + 9 * (thread - 32);
}
static inline uint32_t answer_5(uint32_t block, uint32_t thread) {
    return ASYNC_IN(thread);
}
static inline uint32_t answer_6(uint32_t block, uint32_t thread) {
    return ASYNC_IN(thread) + ASYNC_IN(thread + 64) + ASYNC_IN(thread + 128);
}
static inline uint32_t answer_7(uint32_t block, uint32_t thread) {
    return cut(thread);
}
static inline uint32_t answer_8(uint32_t block, uint32_t thread) {
    return ASYNC_IN(thread ^ 1) + ASYNC_IN(64 + (thread ^ 1));
}
static inline uint32_t answer_9(uint32_t block, uint32_t thread) {
    return (block / 4 * 4 + (block % 4 + 1) % 4) * 1000 + thread;
}
static inline uint32_t answer_10(uint32_t block, uint32_t thread) {
    return (block / 4 * 4 + (block % 4 + 1) % 4) * 1000 + thread;
}
static inline uint32_t answer_11(uint32_t block, uint32_t thread) {
    return block % 2 ? UNTOUCHED : thread == 0 ? 69 : 0;
}
static inline uint32_t answer_12(uint32_t block, uint32_t thread) {
    return ranks(block);
}
static inline uint32_t answer_13(uint32_t block, uint32_t thread) {
    return (block / 2 * 2 + (block + 1) % 2) * 100 + thread + 6 * 32;
}
static inline uint32_t answer_14(uint32_t block, uint32_t thread) {
    return 4 * thread + 6;
}
static inline uint32_t answer_15(uint32_t block, uint32_t thread) {
    return thread + 1000 * (block / 4 * 4);
}
static inline uint32_t answer_16(uint32_t block, uint32_t thread) {
    return block == 2 ? 7 : ASYNC_IN(thread);
}
static inline uint32_t answer_17(uint32_t block, uint32_t thread) {
    return block == 1 && thread < 40 ? UNTOUCHED : 3;
}
static inline uint32_t answer_18(uint32_t block, uint32_t thread) {
    return thread < 32 || (0xfff0u >> (thread - 32) & 1) ? 17 : UNTOUCHED;
}
static inline uint32_t answer_19(uint32_t block, uint32_t thread) {
    return thread;
}

static inline uint32_t answer_20(uint32_t block, uint32_t thread) {
    return block * 1000 + thread;
}

static inline uint32_t answer_21(uint32_t block, uint32_t thread) {
    return 3;
}

static const struct async_case async_cases[] = {
    {"matrices of each block",
     CLUSTER(OWN "mad.lo.u32 %r5, %r15, 1000, %r1; st.shared.u32 [%r4], %r5;\n" SYNC
                 "and.b32 %r6, %r1, 7; shl.b32 %r6, %r6, 4; add.u32 %r6, %r6, %r10;\n"
                 "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r6];\n" SYNC ANSWER),
     4, 32, 2, answer_20},
    {"a phase ends when all have arrived",
     ASYNC("@%q mbarrier.init.shared.b64 [%r8], 64; bar.sync 0;\n"
           "shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r10; st.shared.u32 [%r4], %r1;\n"
           "mbarrier.arrive.shared.b64 %rd4, [%r8];\n"
           "again: mbarrier.try_wait.shared.b64 %p, [%r8], %rd4; @!%p bra again;\n"
           "xor.b32 %r5, %r1, 63; shl.b32 %r5, %r5, 2; add.u32 %r5, %r5, %r10;\n"
           "ld.shared.u32 %r2, [%r5];" ANSWER),
     1, 64, 0, answer_0},
    {"phases have parities",
     ASYNC("@!%q bra end; mov.u32 %r2, 0; mbarrier.init.shared::cta.b64 [%r8], 2;\n"
           "mbarrier.test_wait.parity.shared.b64 %p, [%r8], 1; @%p or.b32 %r2, %r2, 1;\n"
           "mbarrier.test_wait.parity.shared.b64 %p, [%r8], 0; @%p or.b32 %r2, %r2, 2;\n"
           "mbarrier.arrive.noComplete.shared.b64 %rd4, [%r8], 1;\n"
           "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 4;\n"
           "mbarrier.pending_count.b64 %r5, %rd4; shl.b32 %r5, %r5, 16; or.b32 %r2, %r2, %r5;\n"
           "mbarrier.arrive.shared.b64 %rd5, [%r8];\n"
           "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 8;\n"
           "mbarrier.test_wait.parity.shared.b64 %p, [%r8], 0; @%p or.b32 %r2, %r2, 16;\n"
           "mbarrier.test_wait.parity.shared.b64 %p, [%r8], 1; @%p or.b32 %r2, %r2, 32;\n"
           "mbarrier.arrive.shared.b64 %rd5, [%r8], 2;\n"
           "mbarrier.test_wait.shared.b64 %p, [%r8], %rd5; @%p or.b32 %r2, %r2, 64;\n"
           "mbarrier.test_wait.parity.shared.b64 %p, [%r8], 1; @%p or.b32 %r2, %r2, 128;\n"
           "mbarrier.inval.shared.b64 [%r8]; st.global.u32 [%rd2], %r2;\nend:"),
     1, 64, 0, answer_1},
    {"arrivals are dropped",
     ASYNC("@!%q bra end; mov.u32 %r2, 0; mbarrier.init.shared.b64 [%r8], 3;\n"
           "mbarrier.arrive_drop.shared.b64 %rd4, [%r8];\n"
           "mbarrier.arrive.noComplete.shared.b64 %rd5, [%r8], 1;\n"
           "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 1;\n"
           "mbarrier.arrive.shared.b64 %rd5, [%r8];\n"
           "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 2;\n"
           "mbarrier.arrive.shared.b64 %rd5, [%r8], 2;\n"
           "mbarrier.test_wait.parity.shared.b64 %p, [%r8], 1; @%p or.b32 %r2, %r2, 4;\n"
           "mbarrier.arrive_drop.expect_tx.shared::cta.b64 %rd4, [%r8], 8;\n"
           "mbarrier.arrive.shared.b64 %rd5, [%r8];\n"
           "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 8;\n"
           "mbarrier.complete_tx.relaxed.cta.shared.b64 [%r8], 8;\n"
           "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 16;\n"
           "mbarrier.arrive.shared.b64 %rd4, [%r8];\n"
           "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 32;\n"
           "st.global.u32 [%rd2], %r2;\nend:"),
     1, 64, 0, answer_2},
    {"bytes are counted",
     ASYNC("@!%q bra end; mov.u32 %r2, 0; mbarrier.init.shared.b64 [%r8], 1;\n"
           "mbarrier.complete_tx.relaxed.cta.shared.b64 [%r8], 48;\n"
           "mbarrier.test_wait.parity.shared.b64 %p, [%r8], 0; @%p or.b32 %r2, %r2, 1;\n"
           "mbarrier.expect_tx.relaxed.cta.shared.b64 [%r8], 16;\n"
           "mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r8], 64;\n"
           "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 2;\n"
           "mbarrier.complete_tx.relaxed.cta.shared.b64 [%r8], 16;\n"
           "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 4;\n"
           "mbarrier.complete_tx.relaxed.cta.shared.b64 [%r8], 16;\n"
           "mbarrier.test_wait.shared.b64 %p, [%r8], %rd4; @%p or.b32 %r2, %r2, 8;\n"
           "st.global.u32 [%rd2], %r2;\nend:"),
     1, 64, 0, answer_3},
    {"producers and consumers alternate",
     ASYNC("mov.u64 %rd6, bar; cvta.shared.u64 %rd5, %rd6;\n"
           "@%q mbarrier.init.b64 [%rd5], 32; @%q mbarrier.init.shared.b64 [bar+8], 32;\n"
           "bar.sync 0; mov.u32 %r2, 0; mov.u32 %r4, 0; shl.b32 %r5, %r3, 2;\n"
           "add.u32 %r5, %r5, %r10; setp.ge.u32 %q, %r1, 32; @%q bra consume;\n"
           "produce: and.b32 %r6, %r4, 1; xor.b32 %r6, %r6, 1;\n" AWAIT(
               "e", "bar+8",
               "%r6") "mad.lo.u32 %r7, %r4, 100, %r3; st.shared.u32 [%r5], %r7;\n"
                      "mbarrier.arrive.b64 _, [%rd5]; add.u32 %r4, %r4, 1; setp.lt.u32 %p, %r4, "
                      "9;\n"
                      "@%p bra produce; bra end;\n"
                      "consume: and.b32 %r6, %r4, 1;\n" AWAIT(
                          "f", "%r8",
                          "%r6") "ld.shared.u32 %r7, [%r5]; add.u32 %r2, %r2, %r7;\n"
                                 "mbarrier.arrive.shared.b64 _, [%r9]; add.u32 %r4, %r4, 1;\n"
                                 "setp.lt.u32 %p, %r4, 9; @%p bra consume;\nend:" ANSWER),
     1, 64, 0, answer_4},
    {"bytes come with the phase",
     ASYNC(ONE_BEGINS(TO_SHARED) AWAIT("w", "%r8", "0") OWN "ld.shared.u32 %r2, [%r4];" ANSWER), 1,
     64, 0, answer_5},
    {"groups are waited for in order",
     ASYNC(OWN "mul.wide.u32 %rd4, %r1, 4; add.u64 %rd4, %rd3, %rd4;\n"
               "cp.async.ca.shared.global [%r4], [%rd4], 4; cp.async.commit_group;\n"
               "cp.async.ca.shared.global [%r4+256], [%rd4+256], 4; cp.async.commit_group;\n"
               "cp.async.ca.shared.global [%r4+512], [%rd4+512], 4;\n"
               "cp.async.wait_group 1; ld.shared.u32 %r5, [%r4];\n"
               "cp.async.wait_group 0; ld.shared.u32 %r6, [%r4+256]; add.u32 %r2, %r5, %r6;\n"
               "cp.async.wait_all; ld.shared.u32 %r7, [%r4+512];\n"
               "add.u32 %r2, %r2, %r7;" ANSWER),
     1, 64, 0, answer_6},
    {"sources are cut and ignored",
     ASYNC("shl.b32 %r4, %r1, 4; add.u32 %r4, %r4, %r10; cvt.u64.u32 %rd4, %r1;\n"
           "shl.b64 %rd4, %rd4, 4; add.u64 %rd4, %rd3, %rd4; and.b32 %r5, %r1, 3;\n"
           "shl.b32 %r5, %r5, 2; setp.lt.u32 %p, %r1, 32; st.shared.v4.u32 [%r4], {1,1,1,1};\n"
           "@%p cp.async.cg.shared.global [%r4], [%rd4], 16, %r5;\n"
           "setp.lt.u32 %q, %r1, 48; @!%p cp.async.cg.shared.global [%r4], [%rd4], 16, %q;\n"
           "cp.async.wait_all; ld.shared.v4.u32 {%r5, %r6, %r7, %r11}, [%r4];\n"
           "xor.b32 %r2, %r5, %r6; xor.b32 %r2, %r2, %r7; xor.b32 %r2, %r2, %r11;" ANSWER),
     1, 64, 0, answer_7},
    {"copies arrive at mbarriers",
     ASYNC(OWN
           "mul.wide.u32 %rd4, %r1, 4; add.u64 %rd4, %rd3, %rd4;\n"
           "@%q mbarrier.init.shared.b64 [%r8], 64;\n"
           "@%q mbarrier.init.shared.b64 [%r9], 64; bar.sync 0;\n"
           "cp.async.ca.shared.global [%r4], [%rd4], 4;\n"
           "cp.async.mbarrier.arrive.noinc.shared.b64 [%r8];\n"
           "cp.async.ca.shared.global [%r4+256], [%rd4+256], 4;\n"
           "cp.async.mbarrier.arrive.shared.b64 [%r9];\n"
           "mbarrier.arrive.shared.b64 %rd5, [%r9];\n" AWAIT(
               "w", "%r8", "0") "xor.b32 %r5, %r4, 4; ld.shared.u32 %r2, "
                                "[%r5];\n" AWAIT("v", "%r9", "0") "ld.shared.u32 %r6, [%r5+256]; "
                                                                  "add.u32 %r2, %r2, %r6;" ANSWER),
     1, 64, 0, answer_8},
    {"blocks read each other's memory",
     CLUSTER(OWN "mad.lo.u32 %r5, %r15, 1000, %r1; st.shared.u32 [%r4], %r5;\n" SYNC
                 "mapa.shared::cluster.u32 %r6, %r4, %r14;\n"
                 "ld.shared::cluster.u32 %r2, [%r6];\n" SYNC ANSWER),
     12, 64, 4, answer_9},
    {"blocks read each other's memory by generic addresses",
     CLUSTER(OWN "mad.lo.u32 %r5, %r15, 1000, %r1; st.shared.u32 [%r4], %r5;\n" SYNC
                 "cvt.u64.u32 %rd5, %r4; cvta.shared.u64 %rd5, %rd5;\n"
                 "mapa.u64 %rd6, %rd5, %r14; ld.u32 %r2, [%rd6];\n" SYNC ANSWER),
     12, 64, 4, answer_10},
    {"blocks write each other's memory",
     CLUSTER(OWN "st.shared.u32 [%r4], 0;\n" SYNC "mapa.shared::cluster.u32 %r6, %r10, 0;\n"
                 "atom.acq_rel.cluster.shared::cluster.add.u32 %r7, [%r6], 1;\n" SYNC
                 "setp.eq.u32 %p, %r12, 1; and.pred %p, %p, %q;\n"
                 "@%p ld.shared::cluster.u32 %r7, [%r6];\n"
                 "@%p add.u32 %r7, %r7, 5; @%p st.shared::cluster.u32 [%r6], %r7;\n" SYNC
                 "setp.ne.u32 %p, %r12, 0; @%p exit; ld.shared.u32 %r2, [%r4];" ANSWER),
     4, 32, 2, answer_11},
    {"addresses have ranks",
     CLUSTER("mov.u32 %r2, 0; mapa.shared::cluster.u32 %r6, %r10, %r14;\n"
             "mov.pred %p, %is_explicit_cluster; @%p or.b32 %r2, %r2, 1;\n"
             "getctarank.shared::cluster.u32 %r5, %r6; shl.b32 %r5, %r5, 1;\n"
             "or.b32 %r2, %r2, %r5; cvt.u64.u32 %rd5, %r10; cvta.shared.u64 %rd5, %rd5;\n"
             "getctarank.u64 %r5, %rd5; shl.b32 %r5, %r5, 2; or.b32 %r2, %r2, %r5;\n"
             "cvt.u64.u32 %rd6, %r6; cvta.shared::cluster.u64 %rd6, %rd6;\n"
             "isspacep.shared::cluster %p, %rd6; @%p or.b32 %r2, %r2, 8;\n"
             "isspacep.shared::cta %p, %rd6; @%p or.b32 %r2, %r2, 16;\n"
             "isspacep.shared %p, %rd5; @%p or.b32 %r2, %r2, 32;\n"
             "mov.u32 %r5, %cluster_nctaid.x; shl.b32 %r5, %r5, 8; or.b32 %r2, %r2, %r5;\n"
             "mov.u32 %r5, %clusterid.x; shl.b32 %r5, %r5, 12; or.b32 %r2, %r2, %r5;\n"
             "mov.u32 %r5, %cluster_ctaid.x; shl.b32 %r5, %r5, 16; or.b32 %r2, %r2, %r5;\n"
             "mov.u32 %r5, %nclusterid.x; shl.b32 %r5, %r5, 20; or.b32 %r2, %r2, %r5;" ANSWER),
     6, 32, 2, answer_12},
    {"stores tell the other block",
     CLUSTER(OWN
             "st.shared.u32 [%r10+512], 0;\n"
             "@%q mbarrier.init.shared.b64 [%r8], 1;\n"
             "@%q mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r8], 256;\n" SYNC
             "mapa.shared::cluster.u32 %r6, %r4, %r14; mapa.shared::cluster.u32 %r7, %r8, %r14;\n"
             "mapa.shared::cluster.u32 %r11, %r10, %r14; mad.lo.u32 %r5, %r15, 100, %r1;\n"
             "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r6], %r5, [%r7];\n"
             "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
             "[%r11+512], 6, [%r7];\n" AWAIT(
                 "w", "%r8", "0") "ld.shared.u32 %r2, [%r4]; ld.shared.u32 %r5, [%r10+512];\n"
                                  "add.u32 %r2, %r2, %r5;\n" SYNC ANSWER),
     4, 32, 2, answer_13},
    {"vectors are stored",
     CLUSTER("shl.b32 %r4, %r1, 4; add.u32 %r4, %r4, %r10;\n"
             "@%q mbarrier.init.shared.b64 [%r8], 1;\n"
             "@%q mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r8], 512;\n" SYNC
             "mapa.shared::cluster.u32 %r6, %r4, %r14; mapa.shared::cluster.u32 %r7, %r8, %r14;\n"
             "add.u32 %r17, %r1, 1; add.u32 %r18, %r1, 2; add.u32 %r19, %r1, 3;\n"
             "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r6], "
             "{%r1, %r17, %r18, %r19}, [%r7];\n" AWAIT(
                 "w", "%r8",
                 "0") "ld.shared.v4.u32 {%r17, %r18, %r19, %r20}, [%r4]; add.u32 %r2, %r17, %r18;\n"
                      "add.u32 %r2, %r2, %r19; add.u32 %r2, %r2, %r20;\n" SYNC ANSWER),
     2, 32, 2, answer_14},
    {"copies go between blocks",
     CLUSTER(OWN "mad.lo.u32 %r5, %r15, 1000, %r1; st.shared.u32 [%r4], %r5;\n"
                 "@%q mbarrier.init.shared.b64 [%r8], 1; @%q mbarrier.init.shared.b64 [%r9], 4;\n"
                 "@%q mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r8], 256;\n"
                 "@%q fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;\n" SYNC
                 /* The first block sends its words to each, itself included. */
                 "setp.ne.u32 %p, %r12, 0; @%p bra wait; @!%q bra wait; mov.u32 %r6, 0;\n"
                 "send: mapa.shared::cluster.u32 %r5, %r10, %r6;\n"
                 "mapa.shared::cluster.u32 %r7, %r8, %r6; add.u32 %r5, %r5, 512;\n"
                 "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r5], "
                 "[%r10], 256, [%r7]; add.u32 %r6, %r6, 1; setp.lt.u32 %p, %r6, %r13;\n"
                 "@%p bra send;\nwait:" AWAIT(
                     "w", "%r8",
                     "0") "ld.shared.u32 %r2, [%r4+512]; bar.sync 0;\n"
                          "mapa.shared::cluster.u32 %r7, %r9, 0;\n"
                          "@%q mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];\n"
                          "setp.ne.u32 %p, %r12, 0; @%p bra end;\n" AWAIT(
                              "v", "%r9", "0") "end:\n" ANSWER
                                               "\nbarrier.cluster.arrive; barrier.cluster.wait;"),
     8, 64, 4, answer_15},
    {"one copy goes to many",
     CLUSTER(OWN "st.shared.u32 [%r4], 7; @%q mbarrier.init.shared.b64 [%r8], 1;\n"
                 "fence.mbarrier_init.release.cluster; fence.proxy.async;\n"
                 "setp.ne.u32 %p, %r12, 2; and.pred %p, %p, %q;\n"
                 "@%p mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r8], 256;\n" SYNC
                 "setp.eq.u32 %p, %r12, 1; and.pred %p, %p, %q; mov.b16 %rs1, 11;\n"
                 "@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%r10], [%rd3], 256, [%r8], %rs1;\n"
                 "setp.eq.u32 %p, %r12, 2; @%p bra skip;\n" AWAIT(
                     "w", "%r8", "0") "skip: ld.shared.u32 %r2, [%r4];\n" SYNC ANSWER),
     4, 64, 4, answer_16},
    {"the cluster's barrier waits for who lives",
     CLUSTER("mov.u32 %r2, 0; setp.eq.u32 %p, %r12, 1; setp.lt.and.u32 %q, %r1, 40, %p;\n"
             "@%q exit;\n"
             "again: add.u32 %r2, %r2, 1; barrier.cluster.arrive; barrier.cluster.wait;\n"
             "setp.lt.u32 %q, %r2, 3; @%q bra again;" ANSWER),
     2, 64, 2, answer_17},
    {"warps come to the cluster's barrier at two places",
     CLUSTER("mov.u32 %r2, 0; setp.lt.u32 %p, %r1, 32;\n"
             "again: @%p bra here; barrier.cluster.arrive; bra on;\n"
             "here: barrier.cluster.arrive.relaxed;\non:\n"
             "add.u32 %r2, %r2, 1; barrier.cluster.wait;\n"
             "setp.lt.u32 %q, %r2, 3; @%q bra again;" ANSWER),
     2, 64, 2, answer_21},
    {"one lane is elected",
     ASYNC(
         "mov.u32 %r2, 0; setp.ge.u32 %p, %r1, 32; selp.b32 %r5, 0xfff0, -1, %p;\n"
         "shr.u32 %r6, %r5, %r3; and.b32 %r6, %r6, 1; setp.eq.u32 %p, %r6, 0; @%p exit;\n"
         "elect.sync %r7|%p, %r5; @%p mov.u32 %r2, 1; shr.u32 %r6, %r5, %r7; and.b32 %r6, %r6, 1;\n"
         /* As many as were elected; is the leader a member, and who thinks so? */
         "redux.sync.add.u32 %r2, %r2, %r5; shl.b32 %r6, %r6, 4; or.b32 %r2, %r2, %r6;\n"
         "setp.eq.u32 %q, %r7, %r3; xor.pred %q, %q, %p; @%q or.b32 %r2, %r2, 256;" ANSWER),
     1, 64, 0, answer_18},
    {"fences order",
     ASYNC("fence.proxy.alias; fence.proxy.async; fence.proxy.async.global; fence.sc.cta; "
           "fence.sc.cluster;\n"
           "fence.sc.gpu; fence.sc.sys; fence.acq_rel.cta; fence.acq_rel.cluster; "
           "fence.acq_rel.gpu;\n"
           "fence.acq_rel.sys; membar.cta; membar.gl; membar.sys; "
           "fence.proxy.async.shared::cluster;\n"
           "fence.mbarrier_init.release.cluster; fence.proxy.tensormap::generic.release.gpu;\n"
           "mov.u32 %r2, %r1;" ANSWER),
     1, 64, 0, answer_19},
};
#define ASYNC_CASES (sizeof async_cases / sizeof *async_cases)

#endif
