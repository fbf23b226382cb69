/*
 * Lanes of a warp that part run together again from where their ways meet, as code for GPUs without
 * independent lanes takes for granted: what one stores before, another reads behind, without a
 * barrier. Each shape parts the lanes by %p, or by %c of four, and lets each wait for a while of
 * its own (%n) before it stores %v at [%m], volatile.
 */
#include "kernels.h"

#define SHAPE(name)                                                                                \
    ".visible .entry " name "(.param .u64 out, .param .u32 salt, .param .u32 mask) {\n"            \
    ".reg .pred %p, %q, %e; .reg .b64 %d<9>; .reg .b32 %r<24>, %m, %l, %v, %n, %c, %i, %j, "       \
    "%bad;\n"                                                                                      \
    ".shared .align 4 .b8 s[1024]; ld.param.u64 %d1, [out]; ld.param.u32 %r1, [salt];\n"           \
    "ld.param.u32 %r2, [mask]; mov.u32 %r3, %tid.x; and.b32 %l, %r3, 31; mov.u32 %r5, s;\n"        \
    "shl.b32 %r6, %r3, 2; add.u32 %m, %r5, %r6; shl.b32 %r6, %l, 2; sub.u32 %r7, %m, %r6;\n"       \
    "mov.u32 %bad, 0; mov.u32 %i, 0; mov.u32 %j, 0; mov.u32 %r8, -1;\n"                            \
    "st.volatile.shared.u32 [%m], %r8; shl.b32 %r9, %r1, 6; add.u32 %v, %r9, %l;\n"                \
    "add.u32 %c, %l, %r1; shr.u32 %c, %c, 1; and.b32 %c, %c, 3; setp.lt.u32 %p, %c, 2;\n"          \
    "mul.lo.u32 %n, %l, %r1; shr.u32 %n, %n, 3; and.b32 %n, %n, 7; setp.lt.u32 %q, %r3, 32; @%q "  \
    "bra E;\n" /* the first warp of a block ends; the others wait for as long as the salt says */  \
    "mov.u32 %r4, %r1;\nW: st.volatile.shared.u32 [%m], %r8; sub.u32 %r4, %r4, 1; setp.gt.s32 "    \
    "%q, %r4, 0;\n"                                                                                \
    "@%q bra.uni W;\n"
#define WAIT(label)                                                                                \
    "mov.u32 %r10, %n;\n" label ": st.volatile.shared.u32 [%m], %r8; sub.u32 %r10, %r10, 1;\n"     \
    "setp.gt.s32 %q, %r10, 0; @%q bra " label ";\n"
#define STORE "st.volatile.shared.u32 [%m], %v;\n"
/* Reads what three others have stored, if these are in the mask. */
#define LOOK(other)                                                                                \
    "xor.b32 %r11, %l, " other "; shl.b32 %r12, %r11, 2; add.u32 %r12, %r7, %r12;\n"               \
    "ld.volatile.shared.u32 %r13, [%r12]; add.u32 %r14, %r9, %r11; setp.ne.u32 %q, %r13, %r14;\n"  \
    "shr.u32 %r15, %r2, %r11; and.b32 %r15, %r15, 1; selp.u32 %r15, %r15, 0, %q;\n"                \
    "add.u32 %bad, %bad, %r15;\n"
#define LOOKS    LOOK("31") LOOK("16") LOOK("1")
#define END      "red.global.add.u32 [%d1], %bad;\nE: ret; }\n"
#define FUNCTION "(.param .b32 m, .param .b32 v, .param .b32 n) {\n"
#define BODY                                                                                       \
    ".reg .pred %p; .reg .b32 %r<5>; ld.param.b32 %r1, [m]; ld.param.b32 %r2, [v];\n"              \
    "ld.param.b32 %r3, [n]; mov.u32 %r4, -1;\n"
#define ROUND(label)                                                                               \
    label ": st.volatile.shared.u32 [%r1], %r4; sub.u32 %r3, %r3, 1; setp.gt.s32 %p, %r3, 0;\n"    \
          "@%p bra " label ";\n"
#define CALL(name)                                                                                 \
    "{ .param .b32 a; .param .b32 b; .param .b32 c; st.param.b32 [a], %m; st.param.b32 [b], %v;\n" \
    "st.param.b32 [c], %n; call.uni " name ", (a, b, c); }\n"

static const char functions[] = KERNELS_HEAD
    ".visible .entry probe() { ret; }\n"
    ".func waits_and_stores" FUNCTION BODY ROUND(
        "A") "st.volatile.shared.u32 [%r1], %r2; ret; }\n"
             /* every fourth lane returns at once */
             ".func returns_early" FUNCTION BODY
             "and.b32 %r4, %r2, 3; setp.ne.u32 %p, %r4, 0; mov.u32 %r4, -1; @%p bra A;\n"
             "st.volatile.shared.u32 [%r1], %r2; ret;\n" ROUND(
                 "A") "st.volatile.shared.u32 [%r1], %r2; ret; }\n";

static const struct shape {
    const char *name, *text;
    bool leaves; /* lanes of %c 0 */
} shapes[] = {
    {.name = "if_else",
     .text = SHAPE("if_else") "@%p bra B;\n" WAIT("X") STORE "bra.uni F;\nB:\n" WAIT("Y") STORE
     "F:\n" LOOKS END},
    {.name = "nested",
     .text = SHAPE("nested") "setp.eq.u32 %e, %c, 0; @%p bra B;\nsetp.eq.u32 %e, %c, 2; @%e bra "
                             "C;\n" WAIT("X") STORE "bra.uni G;\nC:\n" WAIT("Y") STORE
     "G:\n" WAIT("Z") STORE "bra.uni F;\n"
                            "B: @%e bra D;\n" WAIT("U") STORE
     "bra.uni F;\nD: st.volatile.shared.u32 [%m], %v;\nF:\n" LOOKS END},
    /* each lane leaves in a round of its own */
    {.name = "breaks",
     .text = SHAPE("breaks") "A: st.volatile.shared.u32 [%m], %v; setp.ge.u32 %p, %i, %c; @%p bra "
                             "F;\n" WAIT("X") STORE
     "add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 100; @%p bra A;\n"
     "F:\n" LOOKS END},
    /* a round begins for all at once */
    {.name = "continues",
     .text = SHAPE("continues") "A: setp.eq.u32 %e, %c, %i; @%e bra B;\n" WAIT("X") STORE
     "@%p bra C;\n" WAIT("Y") STORE
     "bra.uni C;\nB: st.volatile.shared.u32 [%m], %v;\nC:\n" LOOKS
     "add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 4; @%q bra.uni A;\n" END},
    {.name = "call_on_one_side",
     .text = SHAPE("call_on_one_side") "@%p bra B;\n" CALL(
         "waits_and_stores") "bra.uni F;\nB: st.volatile.shared.u32 [%m], %v;\nF:\n" LOOKS END},
    {.name = "called_from_both",
     .text =
         SHAPE("called_from_both") "@%p bra B;\n" CALL("waits_and_stores") "bra.uni F;\nB:\n" WAIT(
             "X") CALL("waits_and_stores") "F:\n" LOOKS END},
    {.name = "returns_early_from_it",
     .text = SHAPE("returns_early_from_it") CALL("returns_early") LOOKS END},
    /* lanes of %c 0 */
    {.name = "exits",
     .text = SHAPE("exits") "@%p bra B;\n" WAIT("X") STORE
     "bra.uni F;\nB: setp.ne.u32 %e, %c, 0; @%e bra C;\n"
     "exit;\nC:\n" WAIT("Y") STORE "F:\n" LOOKS END,
     .leaves = true},
    {.name = "returns",
     .text = SHAPE("returns") "@%p bra B;\n" WAIT("X") STORE
     "bra.uni F;\nB: setp.eq.u32 %e, %c, 0;\n" WAIT("Y") STORE "@%e ret;\n" WAIT("Z") STORE
     "F:\n" LOOKS END,
     .leaves = true},
    {.name = "switch",
     .text = SHAPE("switch") "T: .branchtargets S0, S1, S2, S3;\nbrx.idx %c, T;\n"
                             "S0:\n" WAIT("X") STORE
     "bra.uni F;\nS1: st.volatile.shared.u32 [%m], %v; bra.uni F;\n"
     "S2:\n" WAIT("Y") STORE "S3:\n" WAIT("Z") STORE "F:\n" LOOKS END},
    /* three ways, two of which have their end in common */
    {.name = "common_tail",
     .text = SHAPE("common_tail") "setp.eq.u32 %e, %c, 0; @%e bra B; setp.eq.u32 %e, %c, 1; @%e "
                                  "bra C;\n" WAIT("X") STORE
     "bra.uni F;\nB:\n" WAIT("Y") "bra.uni T;\nC:\n" WAIT("Z") STORE "T:\n" WAIT("U") STORE
     "F:\n" LOOKS END},
    {.name = "out_of_two_loops",
     .text = SHAPE("out_of_two_loops") "A: mov.u32 %j, 0;\nI: st.volatile.shared.u32 [%m], %v;\n"
                                       "mad.lo.u32 %r16, %i, 2, %j; setp.ge.u32 %p, %r16, %c; @%p "
                                       "bra F;\n" WAIT("X") STORE
     "add.u32 %j, %j, 1; setp.lt.u32 %p, %j, 2; @%p bra I;\n" WAIT("Y") STORE
     "add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 100; @%p bra A;\nF:\n" LOOKS END},
    /* where they meet comes first in the text */
    {.name = "backward",
     .text = SHAPE("backward") "bra.uni A;\nF:\n" LOOKS "bra.uni Z;\nA: @%p bra B;\n" WAIT("X")
         STORE "bra.uni F;\nB:\n" WAIT("Y") STORE "bra.uni F;\nZ:\n" END},
    /* one side only looks at memory, for long */
    {.name = "long_look",
     .text = SHAPE("long_look") "mul.lo.u32 %r16, %n, 300; @%p bra B;\n"
                                "A: ld.volatile.shared.u32 %r17, [%m]; sub.u32 %r16, %r16, 1; "
                                "setp.gt.s32 %q, %r16, 0;\n"
                                "@%q bra A;\n" STORE
                                "bra.uni F;\nB: st.volatile.shared.u32 [%m], %v;\nF:\n" LOOKS END},
};

/* Kernels in which lanes wait for others that have parted from them. */
#define LOCK ".reg .pred %p, %q; .reg .b64 %d<4>; .reg .b32 %r<9>; ld.param.u64 %d1, [out];\n"
static const char waits[] = KERNELS_HEAD
    ".visible .entry probe() { ret; }\n"
    /* the lane that has the lock leaves the loop, and gives it back behind */
    ".visible .entry lock_by_loop(.param .u64 out) {\n" LOCK
    "A: atom.global.cas.b32 %r1, [%d1+4], 0, 1; setp.ne.u32 %p, %r1, 0; @%p bra A;\n"
    "ld.volatile.global.u32 %r2, [%d1]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%d1], %r2;\n"
    "membar.gl; atom.global.exch.b32 %r3, [%d1+4], 0; ret; }\n"
    /* it gives it back inside of the loop */
    ".visible .entry lock_in_loop(.param .u64 out) {\n" LOCK
    "A: atom.global.cas.b32 %r1, [%d1+4], 0, 1; setp.ne.u32 %p, %r1, 0; @%p bra B;\n"
    "ld.volatile.global.u32 %r2, [%d1]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%d1], %r2;\n"
    "membar.gl; atom.global.exch.b32 %r3, [%d1+4], 0;\nB: @%p bra A; ret; }\n"
    /* lane 0 waits for what the others store behind the place where all meet */
    ".visible .entry producer(.param .u64 out) {\n" LOCK
    "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; setp.ne.u32 %p, %r2, 0; @%p bra F;\n"
    "A: ld.volatile.global.u32 %r3, [%d1+4]; setp.eq.u32 %q, %r3, 0; @%q bra A;\n"
    "F: mov.u32 %r4, 1; @%p st.volatile.global.u32 [%d1+4], %r4; red.global.add.u32 [%d1], 1; "
    "ret;\n"
    "}\n"
    /* one side waits for the others, which come there behind the place where all meet */
    ".visible .entry barrier_on_one_side(.param .u64 out) {\n" LOCK
    "mov.u32 %r1, %tid.x; and.b32 %r1, %r1, 16; setp.ne.u32 %p, %r1, 0; @%p bra F;\n"
    "bar.sync 0;\nF: @%p bar.sync 0; red.global.add.u32 [%d1], 1; ret; }\n"
    ".visible .entry sync_on_one_side(.param .u64 out) {\n" LOCK
    "mov.u32 %r1, %tid.x; and.b32 %r1, %r1, 16; setp.ne.u32 %p, %r1, 0; @%p bra F;\n"
    "bar.warp.sync 0xffffffff; bra.uni G;\nG: bra.uni H;\nF: bar.warp.sync 0xffffffff;\n"
    "H: red.global.add.u32 [%d1], 1; ret; }\n"
    ".visible .entry sync_behind(.param .u64 out) {\n" LOCK
    "mov.u32 %r1, %tid.x; and.b32 %r1, %r1, 16; setp.ne.u32 %p, %r1, 0; @%p bra F;\n"
    "bar.warp.sync 0xffffffff;\nF: @!%p bra G; bar.warp.sync 0xffffffff;\n"
    "G: red.global.add.u32 [%d1], 1; ret; }\n"
    /* each waits for the one in front of it, with a pause between two looks */
    ".visible .entry chain(.param .u64 out) {\n" LOCK
    "mov.u32 %r1, %tid.x; setp.eq.u32 %p, %r1, 0; @%p bra F;\n"
    "A: nanosleep.u32 100; ld.volatile.global.u32 %r3, [%d1]; setp.ne.u32 %q, %r3, %r1;\n"
    "@%q bra A;\nF: membar.gl; add.u32 %r4, %r1, 1; st.volatile.global.u32 [%d1], %r4; ret; }\n";

/* Lanes that are still there: see %c. */
static unsigned stay(const struct shape *shape, unsigned salt) {
    unsigned mask = 0;
    for (unsigned l = 0; l < 32; l++)
        mask |= (unsigned)(!shape->leaves || ((l + salt) >> 1 & 3) != 0) << l;
    return mask;
}

/* How many lanes of all launches read what was not stored yet. */
static unsigned wrong_looks(const struct shape *shape, unsigned salts, unsigned blocks,
                            unsigned threads) {
    CUdeviceptr out = new_memory(4);
    unsigned found = 0;
    OK_CU(cu.cuMemsetD32_v2(out, 0, 1));
    for (unsigned i = 0; i < salts; i++) {
        unsigned salt = soft ? i * 5 : i;
        unsigned mask = stay(shape, salt);
        void *params[] = {&out, &salt, &mask};
        OK_CU(cu.cuLaunchKernel(kernel(shape->name), blocks, 1, 1, threads, 1, 1, 0, NULL, params,
                                NULL));
    }
    OK_CU(cu.cuMemcpyDtoH_v2(&found, out, 4));
    return found;
}

/* Turns of a warp end after some 2,048 instructions: other salts shift that to any place. */
TEST(lanes_that_part_run_together_again_where_their_ways_meet) {
    const unsigned salts = soft ? 280 : 4000;
    char *all = NULL;
    size_t size;
    FILE *to = open_memstream(&all, &size);
    assert_non_null(to);
    fputs(functions, to);
    for (size_t i = 0; i < COUNT(shapes); i++)
        fputs(shapes[i].text, to);
    fclose(to);
    kernels_open(all);
    free(all);
    unsigned sum = 0;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        unsigned wrong = wrong_looks(&shapes[i], salts, soft ? 1 : 256, soft ? 64 : 128);
        print_message("# %-22s %u wrong looks in %u launches\n", shapes[i].name, wrong, salts);
        sum += wrong;
    }
    assert_int_equal(sum, 0);
}

/* Independent lanes make progress: who waits where the ways meet goes on when those it waits for
 * have been seen to do nothing but look. */
TEST(lanes_may_wait_for_lanes_that_have_parted_from_them) {
    static const char *const names[] = {"lock_in_loop", "lock_by_loop",        "producer",
                                        "chain",        "barrier_on_one_side", "sync_on_one_side",
                                        "sync_behind"};
    enum { THREADS = 64 };
    kernels_open(waits);
    for (size_t i = 0; i < COUNT(names); i++) {
        CUdeviceptr out = new_memory(8);
        unsigned found = 0;
        void *params[] = {&out};
        OK_CU(cu.cuMemsetD32_v2(out, 0, 2));
        OK_CU(cu.cuLaunchKernel(kernel(names[i]), 1, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
        OK_CU(cu.cuMemcpyDtoH_v2(&found, out, 4));
        assert_int_equal(found, THREADS);
    }
}
