/* Warp functions and barriers: who waits for whom, and what each gets. */
#include "kernel.h"

#define OUT_HEAD                                                                                   \
    ".visible .entry k(.param .u64 out) {\n"                                                       \
    ".reg .pred %p, %q; .reg .b32 %r<12>; .reg .b64 %rd<6>;\n"                                     \
    ".shared .align 4 .b32 cell[64];\n"                                                            \
    "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;\n"                  \
    "add.u64 %rd2, %rd1, %rd2; mov.u32 %r3, %laneid;\n"
#define OUT_TAIL "st.global.u32 [%rd2], %r2; ret; }\n"

static void words(const char *body, unsigned threads, uint32_t *out) {
    static const char form[] = KERNEL_HEAD OUT_HEAD "%s\n" OUT_TAIL;
    size_t size = sizeof form + strlen(body);
    char *text = malloc(size);
    assert_non_null(text);
    size_t head = strlen(form) - strlen("%s\n" OUT_TAIL);
    memcpy(text, form, head);
    snprintf(text + head, size - head, "%s\n%s", body, OUT_TAIL);
    FOR_EACH_LEVEL(level) {
        memset(out, 0xcc, threads * sizeof *out);
        KERNEL_SUCCEEDS(text, (enum sg_level)level, 1, threads, out);
    }
    free(text);
}

TEST(shuffles_stay_within_their_segment) {
    uint32_t out[32];
    words("shfl.sync.down.b32 %r2|%p, %r3, 3, 31, -1; @!%p add.u32 %r2, %r2, 100;", 32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], i + 3 < 32 ? i + 3 : i + 100);
    words("shfl.sync.up.b32 %r2|%p, %r3, 1, 0, -1; @!%p add.u32 %r2, %r2, 100;", 32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], i ? i - 1 : 100);
    /* Segments of eight: the mask of the segment is 24, in bits 8 to 12. */
    words("shfl.sync.idx.b32 %r2, %r3, 5, 6175, -1;", 32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], (i & 24) + 5);
    words("shfl.sync.bfly.b32 %r2, %r3, 9, 31, -1;", 32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], i ^ 9);
}

/* As recorded: 0 comes from a lane that has exited. */
TEST(a_shuffle_from_an_exited_lane_returns_zero) {
    uint32_t out[32];
    words("setp.lt.u32 %p, %r3, 16; @%p exit; add.u32 %r2, %r3, 100;\n"
          "shfl.sync.idx.b32 %r2|%q, %r2, 3, 31, -1; @%q add.u32 %r2, %r2, 1000;",
          32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], i < 16 ? 0xcccccccc : 1000);
}

TEST(votes_matches_and_reductions_are_correct) {
    uint32_t out[32];
    words("setp.lt.u32 %p, %r3, 5; vote.sync.ballot.b32 %r2, !%p, -1;", 32, out);
    assert_int_equal(out[9], 0xffffffe0);
    words("setp.lt.u32 %p, %r3, 5; vote.sync.any.pred %q, %p, -1; selp.u32 %r2, 1, 0, %q;", 32,
          out);
    assert_int_equal(out[31], 1);
    words("setp.lt.u32 %p, %r3, 5; vote.sync.all.pred %q, %p, -1; selp.u32 %r2, 1, 0, %q;", 32,
          out);
    assert_int_equal(out[0], 0);
    words("rem.u32 %r4, %r3, 3; match.any.sync.b32 %r2, %r4, -1;", 32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], (uint32_t)(0x9249249249249249ull >> (i % 3 ? 3 - i % 3 : 0)));
    words("mov.u32 %r4, 6; match.all.sync.b32 %r2|%p, %r4, -1; @!%p mov.u32 %r2, 5;", 32, out);
    assert_int_equal(out[3], UINT32_MAX);
    words("sub.u32 %r4, 3, %r3; redux.sync.min.s32 %r2, %r4, -1;", 32, out);
    assert_int_equal((int32_t)out[0], -28);
    words("redux.sync.add.u32 %r2, %r3, -1;", 32, out);
    assert_int_equal(out[17], 496);
}

TEST(lanes_converge_from_different_instructions) {
    uint32_t out[32];
    /* Each half has an instruction of its own, with the mask of all. */
    words(
        "setp.lt.u32 %p, %r3, 16; @%p bra low; shfl.sync.bfly.b32 %r2, %r3, 16, 31, -1; bra end;\n"
        "low: shfl.sync.bfly.b32 %r2, %r3, 16, 31, -1;\nend:",
        32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], i ^ 16);
    /* Who has exited is not waited for. */
    words("setp.ge.u32 %p, %r3, 20; @%p exit; redux.sync.add.u32 %r2, %r3, -1;", 32, out);
    assert_int_equal(out[0], 190);
    assert_int_equal(out[25], 0xcccccccc);
    /* Parts of a warp, each with its own mask. */
    words("setp.lt.u32 %p, %r3, 10; selp.b32 %r4, 0x3ff, 0xfffffc00, %p;\n"
          "redux.sync.max.u32 %r2, %r3, %r4; bar.warp.sync -1;",
          32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], i < 10 ? 9 : 31);
}

TEST(a_barrier_waits_for_all_live_lanes) {
    uint32_t out[64];
    words("mov.u32 %r5, cell; mul.lo.u32 %r4, %r1, 4; add.u32 %r5, %r5, %r4;\n"
          "st.shared.u32 [%r5], %r1; bar.sync 0; mov.u32 %r6, cell; sub.u32 %r4, 252, %r4;\n"
          "add.u32 %r6, %r6, %r4; ld.shared.u32 %r2, [%r6];",
          64, out);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(out[i], 63 - i);
    words("setp.ge.u32 %p, %r1, 50; @%p exit; bar.sync 0; mov.u32 %r2, 1; bar.sync 1;", 64, out);
    assert_int_equal(out[49], 1);
    assert_int_equal(out[50], 0xcccccccc);
    words("setp.lt.u32 %p, %r1, 11; barrier.sync 0; bar.red.popc.u32 %r2, 2, %p;\n"
          "bar.red.and.pred %q, 3, %p; @%q mov.u32 %r2, 0; bar.red.or.pred %q, 3, %p;\n"
          "@!%q mov.u32 %r2, 0;",
          64, out);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(out[i], 11);
    /* From different places, and with half of a warp at each. */
    words("mov.u32 %r2, 1; and.b32 %r4, %r1, 1; setp.eq.u32 %p, %r4, 0; @%p bra even;\n"
          "barrier.sync 5; mov.u32 %r2, 2; bra end;\n even: barrier.sync 5;\nend:",
          64, out);
    assert_int_equal(out[0], 1);
    assert_int_equal(out[1], 2);
}

TEST(bar_arrive_does_not_wait) {
    uint32_t out[64];
    /* The second warp waits for the first, which only arrives. */
    words("mov.u32 %r5, cell; setp.ge.u32 %p, %r1, 32; mov.u32 %r2, 0; @%p bra consume;\n"
          "mul.lo.u32 %r4, %r1, 4; add.u32 %r5, %r5, %r4; add.u32 %r6, %r1, 500;\n"
          "st.shared.u32 [%r5], %r6; bar.arrive 1, 64; bra end;\n"
          "consume: bar.sync 1, 64; sub.u32 %r4, %r1, 32; mul.lo.u32 %r4, %r4, 4;\n"
          "add.u32 %r5, %r5, %r4; ld.shared.u32 %r2, [%r5];\nend:",
          64, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[32 + i], 500 + i);
}
