/* Races in global memory between threads of a kernel, each beside the same kernel mended. */
#include "race_kernel.h"

/* The thread in %r1, the block in %r2, the threads of all in %r3, memory in %rd1. */
#define TEXT(body)                                                                                 \
    KERNEL_HEAD ".visible .entry k(.param .u64 to) {\n"                                            \
                ".reg .pred %p, %q, %first; .reg .b32 %r<24>; .reg .b64 %rd<16>;\n"                \
                ".shared .b32 s[64]; .shared .b32 last;\n"                                         \
                "ld.param.u64 %rd1, [to]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n"           \
                "mov.u32 %r4, %ntid.x; mad.lo.u32 %r3, %r2, %r4, %r1;\n"                           \
                "setp.eq.u32 %first, %r1, 0; mov.u32 %r20, %nctaid.x;\n" body "\nret;\n}\n"

static struct race_kernel grid_of(unsigned blocks, unsigned threads, const char *text) {
    return (struct race_kernel){.text = text, .grid = {blocks}, .block = {threads}, .words = 4096};
}

static void races(unsigned blocks, unsigned threads, const char *text, const char *one,
                  const char *other) {
    struct race_kernel kernel = grid_of(blocks, threads, text);
    race_between(&kernel, one, other);
}

static void silent(unsigned blocks, unsigned threads, const char *text) {
    struct race_kernel kernel = grid_of(blocks, threads, text);
    race_silent(&kernel, NULL, 0);
}

TEST(blocks_that_write_the_same_address_race) {
    silent(4, 64,
           TEXT("mad.wide.u32 %rd2, %r3, 4, %rd1;\nst.global.u32 [%rd2], %r3;\n"
                "ld.global.u32 %r5, [%rd2];"));
    races(4, 64, TEXT("mad.wide.u32 %rd2, %r1, 4, %rd1;\nst.global.u32 [%rd2], %r3;"), "st.global",
          "st.global");
    /* A stencil in place: neighbours are read and written. */
    races(4, 64,
          TEXT("mad.wide.u32 %rd2, %r3, 4, %rd1;\nld.global.u32 %r5, [%rd2+4];\n"
               "st.global.u32 [%rd2], %r5;"),
          "ld.global", "st.global");
    silent(4, 64,
           TEXT("mad.wide.u32 %rd2, %r3, 4, %rd1;\nld.global.u32 %r5, [%rd2+4];\n"
                "ld.global.u32 %r6, [%rd2+8];\nst.global.u32 [%rd2+8192], %r5;"));
    /* Two words each. */
    silent(4, 64,
           TEXT("mad.wide.u32 %rd2, %r3, 8, %rd1;\nst.global.v2.u32 [%rd2], {%r3, %r1};\n"
                "ld.global.u32 %r5, [%rd2]; ld.global.u32 %r6, [%rd2+4];"));
    races(4, 64,
          TEXT("mad.wide.u32 %rd2, %r3, 8, %rd1;\nst.global.v2.u32 [%rd2], {%r3, %r1};\n"
               "ld.global.u32 %r5, [%rd2+8];"),
          "st.global.v2", "ld.global");
}

TEST(atomics_race_if_their_scope_is_too_narrow) {
    silent(4, 64, TEXT("red.global.add.u32 [%rd1], 1;"));
    races(4, 64, TEXT("red.relaxed.cta.global.add.u32 [%rd1], 1;"), "red", "red");
    silent(1, 64, TEXT("red.relaxed.cta.global.add.u32 [%rd1], 1;"));
    races(4, 64, TEXT("red.global.add.u32 [%rd1], 1;\nld.global.u32 %r5, [%rd1];"), "red",
          "ld.global");
    silent(4, 64, TEXT("red.global.add.u32 [%rd1], 1;\nld.relaxed.gpu.global.u32 %r5, [%rd1];"));
}

/*
 * Each block writes its part, and takes a ticket; the block with the last one adds the parts. Word
 * 0: the ticket, 1: the sum, from 64 on: the parts.
 */
#define LAST_BLOCK(before, after)                                                                  \
    TEXT("mad.wide.u32 %rd2, %r2, 4, %rd1; setp.ne.u32 %p, %r1, 0;\n@%p bra wait;\n"               \
         "add.u32 %r5, %r2, 1;\nst.global.u32 [%rd2+256], %r5;\n" before                           \
         "\natom.global.inc.u32 %r6, [%rd1], 1000;\nst.shared.u32 [last], %r6;\n" after            \
         "\nwait: bar.sync 0;\nld.shared.u32 %r6, [last];\nmov.u32 %r7, %nctaid.x;\n"              \
         "add.u32 %r7, %r7, -1;\nsetp.ne.u32 %p, %r6, %r7;\n@%p bra end;\n"                        \
         "setp.ge.u32 %p, %r1, %r20;\n@%p bra end;\nmad.wide.u32 %rd3, %r1, 4, %rd1;\n"            \
         "ld.global.u32 %r8, [%rd3+256];\nred.global.add.u32 [%rd1+4], %r8;\nend:")

TEST(the_last_block_reads_other_blocks_results_after_a_fence) {
    static const uint32_t expected[] = {20, 210};
    struct race_kernel kernel = grid_of(20, 64, LAST_BLOCK("membar.gl;", "membar.gl;"));
    race_silent(&kernel, expected, 2);
    kernel.text = LAST_BLOCK("fence.acq_rel.gpu;", "fence.acq_rel.gpu;");
    race_silent(&kernel, expected, 2);
    races(20, 64, LAST_BLOCK("", "membar.gl;"), "st.global", "ld.global.u32 %r8");
    races(20, 64, LAST_BLOCK("membar.gl;", ""), "st.global", "ld.global.u32 %r8");
    races(20, 64, LAST_BLOCK("membar.cta;", "membar.gl;"), "st.global", "ld.global.u32 %r8");
}

/*
 * A scan that looks back: each block publishes its sum (flag 1) and then, when it knows all before
 * it, the sum up to it (flag 2). Words from 1024 on: flags; 1280: sums; 1536: sums up to here.
 */
#define LOOK_BACK(give, take, inclusive)                                                           \
    TEXT("@!%first bra end;\nmad.wide.u32 %rd2, %r2, 4, %rd1; add.u64 %rd2, %rd2, 4096;\n"         \
         "add.u32 %r5, %r2, 1;\nst.global.u32 [%rd2+1024], %r5;\n"                                 \
         "setp.eq.u32 %p, %r2, 0;\n@%p bra done;\n" give                                           \
         "st.relaxed.gpu.global.u32 [%rd2], 1;\nmov.u64 %rd3, %rd2;\n"                             \
         "back: add.u64 %rd3, %rd3, -4;\nlook: ld.relaxed.gpu.global.u32 %r6, [%rd3];\n"           \
         "setp.eq.u32 %p, %r6, 0;\n@%p bra look;\n" take                                           \
         "setp.eq.u32 %p, %r6, 2;\n@%p bra found;\n"                                               \
         "ld.global.u32 %r7, [%rd3+1024];\nadd.u32 %r5, %r5, %r7;\nbra back;\n"                    \
         "found: ld.global.u32 %r7, [%rd3+2048];\nadd.u32 %r5, %r5, %r7;\n"                        \
         "done: st.global.u32 [%rd2+2048], %r5;\n" inclusive                                       \
         "st.relaxed.gpu.global.u32 [%rd2], 2;\nmad.wide.u32 %rd4, %r2, 4, %rd1;\n"                \
         "st.global.u32 [%rd4], %r5;\nend:")

TEST(a_fenced_look_back_scan_has_no_race) {
    enum { BLOCKS = 70 };
    uint32_t expected[BLOCKS];
    for (uint32_t b = 0; b < BLOCKS; b++)
        expected[b] = (b + 1) * (b + 2) / 2;
    struct race_kernel kernel =
        grid_of(BLOCKS, 64,
                LOOK_BACK("fence.acq_rel.gpu;\n", "fence.acq_rel.gpu;\n", "fence.acq_rel.gpu;\n"));
    race_silent(&kernel, expected, BLOCKS);
    kernel.text = LOOK_BACK("membar.gl;\n", "membar.gl;\n", "membar.gl;\n");
    race_silent(&kernel, expected, BLOCKS);
    races(BLOCKS, 64, LOOK_BACK("fence.acq_rel.gpu;\n", "fence.acq_rel.gpu;\n", ""),
          "st.global.u32 [%rd2+2048]", "[%rd3+2048]");
    races(BLOCKS, 64, LOOK_BACK("fence.acq_rel.gpu;\n", "", "fence.acq_rel.gpu;\n"), "[%rd2+",
          "[%rd3+");
}

/* As CUDA's own samples publish: a fence, and then a flag that is volatile. */
#define FLAG(give, take)                                                                           \
    TEXT(                                                                                          \
        "@!%first bra end;\nsetp.ne.u32 %p, %r2, 0;\n@%p bra look;\n"                              \
        "st.global.u32 [%rd1+64], 7;\n" give "st.volatile.global.u32 [%rd1], 1;\nbra end;\n"       \
        "look: ld.volatile.global.u32 %r5, [%rd1];\nsetp.eq.u32 %p, %r5, 0;\n@%p bra look;\n" take \
        "ld.global.u32 %r6, [%rd1+64];\nend:")

TEST(a_volatile_flag_needs_fences) {
    silent(3, 32, FLAG("membar.gl;\n", "membar.gl;\n"));
    silent(3, 32, FLAG("membar.sys;\n", "fence.sc.gpu;\n"));
    races(3, 32, FLAG("", "membar.gl;\n"), "st.global.u32 [%rd1+64]", "ld.global.u32 %r6");
    races(3, 32, FLAG("membar.gl;\n", ""), "st.global.u32 [%rd1+64]", "ld.global.u32 %r6");
    races(3, 32, FLAG("membar.cta;\n", "membar.gl;\n"), "st.global.u32 [%rd1+64]",
          "ld.global.u32 %r6");
}

/* Each block's first thread adds to word 1 while it has the lock in word 0. */
#define LOCK(taken, given)                                                                         \
    TEXT(                                                                                          \
        "@!%first bra end;\nagain: atom.global.cas.b32 %r5, [%rd1], 0, 1;\n"                       \
        "setp.ne.u32 %p, %r5, 0;\n@%p bra again;\n" taken                                          \
        "ld.global.u32 %r6, [%rd1+4];\nadd.u32 %r6, %r6, 1;\nst.global.u32 [%rd1+4], %r6;\n" given \
        "atom.global.exch.b32 %r7, [%rd1], 0;\nend:")

TEST(a_fenced_spin_lock_prevents_races) {
    static const uint32_t expected[] = {0, 12};
    struct race_kernel kernel = grid_of(12, 32, LOCK("membar.gl;\n", "membar.gl;\n"));
    race_silent(&kernel, expected, 2);
    races(12, 32, LOCK("membar.gl;\n", ""), "[%rd1+4]", "[%rd1+4]");
    races(12, 32, LOCK("", "membar.gl;\n"), "[%rd1+4]", "[%rd1+4]");
    /* Lanes of one warp, one after the other. */
    kernel = grid_of(
        2, 32,
        TEXT("again: atom.acquire.gpu.global.cas.b32 %r5, [%rd1], 0, 1;\n"
             "setp.ne.u32 %p, %r5, 0;\n@%p bra again;\n"
             "ld.global.u32 %r6, [%rd1+4];\nadd.u32 %r6, %r6, 1;\nst.global.u32 [%rd1+4], %r6;\n"
             "atom.release.gpu.global.exch.b32 %r7, [%rd1], 0;"));
    race_silent(&kernel, (const uint32_t[]){0, 64}, 2);
}

/* All blocks write, meet, and read what another wrote, as cooperative groups do. */
#define GRID_SYNC(arrive, leave)                                                                   \
    TEXT("mad.wide.u32 %rd2, %r3, 4, %rd1;\nst.global.u32 [%rd2+1024], %r3;\nbar.sync 0;\n"        \
         "@!%first bra all;\n" arrive "atom.global.add.u32 %r5, [%rd1], 1;\n"                      \
         "look: ld.volatile.global.u32 %r5, [%rd1];\nsetp.lt.u32 %p, %r5, %r20;\n"                 \
         "@%p bra look;\n" leave "all: bar.sync 0;\nmov.u32 %r6, %nctaid.x;\n"                     \
         "mad.lo.u32 %r6, %r6, %r4, -1;\nsub.u32 %r6, %r6, %r3;\n"                                 \
         "mad.wide.u32 %rd3, %r6, 4, %rd1;\nld.global.u32 %r7, [%rd3+1024];\n"                     \
         "st.global.u32 [%rd2+8192], %r7;")

/* As their later headers have it: one release and acquire instead of fences, and the bit that the
 * first block's arrival turns. */
#define GRID_TURN(release, acquire)                                                                \
    TEXT("mad.wide.u32 %rd2, %r3, 4, %rd1;\nst.global.u32 [%rd2+1024], %r3;\nbar.sync 0;\n"        \
         "@!%first bra all;\nmov.u32 %r8, 1;\nsetp.ne.u32 %p, %r2, 0;\n@%p bra add;\n"             \
         "sub.u32 %r8, -2147483647, %r20;\n"                                                       \
         "add: atom.add." release ".gpu.global.u32 %r5, [%rd1], %r8;\n"                            \
         "look: ld." acquire ".gpu.global.u32 %r6, [%rd1];\nxor.b32 %r6, %r6, %r5;\n"              \
         "setp.ge.s32 %p, %r6, 0;\n@%p bra look;\nall: bar.sync 0;\nmov.u32 %r6, %nctaid.x;\n"     \
         "mad.lo.u32 %r6, %r6, %r4, -1;\nsub.u32 %r6, %r6, %r3;\n"                                 \
         "mad.wide.u32 %rd3, %r6, 4, %rd1;\nld.global.u32 %r7, [%rd3+1024];\n"                     \
         "st.global.u32 [%rd2+8192], %r7;")

TEST(a_grid_wide_barrier_orders_all_blocks) {
    struct race_kernel kernel = grid_of(6, 64, GRID_SYNC("membar.gl;\n", "membar.gl;\n"));
    kernel.cooperative = true;
    race_silent(&kernel, (const uint32_t[]){6}, 1);
    kernel.text = GRID_TURN("release", "acquire");
    race_silent(&kernel, (const uint32_t[]){UINT32_C(0x80000000)}, 1);
    kernel.text = GRID_TURN("acq_rel", "acquire");
    race_silent(&kernel, NULL, 0);
    kernel.text = GRID_TURN("relaxed", "acquire");
    race_between(&kernel, "[%rd2+1024]", "[%rd3+1024]");
    kernel.text = GRID_TURN("release", "relaxed");
    race_between(&kernel, "[%rd2+1024]", "[%rd3+1024]");
    kernel.text = GRID_SYNC("", "membar.gl;\n");
    race_between(&kernel, "[%rd2+1024]", "[%rd3+1024]");
    kernel.text = GRID_SYNC("membar.gl;\n", "");
    race_between(&kernel, "[%rd2+1024]", "[%rd3+1024]");
}

#define ONE_LANE(wait)                                                                             \
    TEXT("@!%first bra wait;\nsetp.ne.u32 %p, %r2, 0;\n@%p bra look;\n"                            \
         "st.global.u32 [%rd1+64], 3;\nst.release.gpu.global.u32 [%rd1], 1;\nbra wait;\n"          \
         "look: ld.acquire.gpu.global.u32 %r5, [%rd1];\nsetp.eq.u32 %p, %r5, 0;\n"                 \
         "@%p bra look;\nwait: " wait "\nsetp.eq.u32 %p, %r2, 0;\n@%p bra end;\n"                  \
         "ld.global.u32 %r6, [%rd1+64];\nend:")

TEST(an_acquire_by_one_lane_needs_a_warp_barrier_for_the_others) {
    silent(2, 32, ONE_LANE("bar.warp.sync -1;"));
    races(2, 32, ONE_LANE(""), "st.global.u32 [%rd1+64]", "ld.global.u32 %r6");
}
