/* Barriers with explicit counts, which count warps of 32 however few of their lanes are there: for
 * tests of the engine and of drivers. Each thread of one block writes a word at %at. */
#ifndef BARRIER_TEXTS_H
#define BARRIER_TEXTS_H

#define BARRIER_ENTRY(name)                                                                        \
    ".visible .entry " name "(.param .u64 out) {\n"                                                \
    ".shared .align 4 .b8 s[512]; .reg .pred %p, %q; .reg .b32 %t, %x, %y, %e; .reg .b64 %at, %o;" \
    "\nld.param.u64 %at, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 4;\n"                     \
    "add.u64 %at, %at, %o; mov.u32 %e, s; mad.lo.u32 %e, %t, 4, %e; mov.u32 %x, 0;\n"
#define BARRIER_END "st.global.u32 [%at], %x; ret; }\n"

/* The second warp has 8 lanes; all read what the first thread wrote before the barrier. */
#define BARRIER_SHORT_WARP                                                                         \
    "setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [s], 77; barrier.sync 1, 64;\n"                      \
    "ld.shared.u32 %x, [s];\n"
/* Lanes 0 to 4 have exited before, and lane 63 exits when the others are there. */
#define BARRIER_EXITED                                                                             \
    "setp.lt.u32 %p, %t, 5; @%p exit; setp.eq.u32 %p, %t, 63; @%p bra SLOW;\n"                     \
    "setp.eq.u32 %p, %t, 9; @%p st.shared.u32 [s], 78; barrier.sync 1, 64;\n"                      \
    "ld.shared.u32 %x, [s]; bra DONE;\n"                                                           \
    "SLOW: nanosleep.u32 1000; nanosleep.u32 1000; exit;\nDONE:\n"
/* A warp of 12 lanes, of which the others have exited, only arrives. */
#define BARRIER_ARRIVES                                                                            \
    "setp.lt.u32 %p, %t, 20; @%p exit; setp.lt.u32 %p, %t, 32; @%p bra MAKE;\n"                    \
    "barrier.sync 2, 64; ld.shared.u32 %x, [s+80]; bra DONE;\n"                                    \
    "MAKE: add.u32 %y, %t, 500; st.shared.u32 [%e], %y; barrier.arrive 2, 64; mov.u32 %x, 1;\n"    \
    "DONE:\n"
/* Whole warps and one of 8 lanes meet, some with the count and some without, whoever comes last:
 * the words say which warp does. */
#define BARRIER_MIXED(even, odd)                                                                   \
    "shr.u32 %y, %t, 5; ld.global.u32 %x, [%at];\n"                                                \
    "setp.ne.u32 %p, %y, %x; @%p bra COME; nanosleep.u32 1000; nanosleep.u32 1000;\n"              \
    "COME: and.b32 %x, %y, 1; setp.eq.u32 %p, %x, 0; st.shared.u32 [%e], %t;\n"                    \
    "@%p bra EVEN; " odd "; bra MET;\nEVEN: " even ";\n"                                           \
    "MET: sub.u32 %y, 71, %t; mov.u32 %x, s; mad.lo.u32 %y, %y, 4, %x; ld.shared.u32 %x, [%y];\n"
/* Half of each warp is at one barrier and half at the other: nobody's warp is whole. */
#define BARRIER_HALVES                                                                             \
    "and.b32 %y, %t, 16; setp.eq.u32 %p, %y, 0; @%p bra LOW; barrier.sync 1, 32; bra DONE;\n"      \
    "LOW: barrier.sync 2, 32;\nDONE:\n"

#endif
