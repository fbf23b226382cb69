/* Floats of all widths: rounding, flushing, NaN, extremes, comparisons, conversions. */
#include "kernel.h"

#define M64  UINT64_MAX
#define QNAN 0x7fffffff
#define INF  0x7f800000
#define F32(text)                                                                                  \
    "{ .reg .f32 f, g, h, r; mov.b32 f, %x; mov.b32 g, %y; mov.b32 h, %z;\n" text                  \
    " mov.b32 %w, r; cvt.u64.u32 %d, %w; }"

TEST(single_precision_obeys_the_rounding_modifier) {
    /* 1 + 2^-24: between 1 and its successor. */
    static const struct row rn[] = {{0x3f800000, 0x33800000, 0, 0x3f800000}};
    ROWS_HOLD(F32("add.rn.f32 r, f, g;"), rn);
    static const struct row rp[] = {{0x3f800000, 0x33800000, 0, 0x3f800001}};
    ROWS_HOLD(F32("add.rp.f32 r, f, g;"), rp);
    static const struct row rm[] = {{0xbf800000, 0xb3800000, 0, 0xbf800001},
                                    {0x3f800000, 0x33800000, 0, 0x3f800000}};
    ROWS_HOLD(F32("add.rm.f32 r, f, g;"), rm);
    static const struct row rz[] = {{0x7f7fffff, 0x7f7fffff, 0, 0x7f7fffff}};
    ROWS_HOLD(F32("mul.rz.f32 r, f, g;"), rz);
    static const struct row after[] = {{0x7f7fffff, 0x7f7fffff, 0, INF}};
    ROWS_HOLD(F32("mul.rz.f32 r, f, g; mul.rn.f32 r, f, g;"), after);
    static const struct row third[] = {{0x3f800000, 0x40400000, 0, 0x3eaaaaab}};
    ROWS_HOLD(F32("div.rn.f32 r, f, g;"), third);
    static const struct row down[] = {{0x3f800000, 0x40400000, 0, 0x3eaaaaaa}};
    ROWS_HOLD(F32("div.rm.f32 r, f, g;"), down);
    static const struct row root[] = {{0x40000000, 0, 0, 0x3fb504f3}, {0xbf800000, 0, 0, QNAN}};
    ROWS_HOLD(F32("sqrt.rn.f32 r, f;"), root);
}

TEST(fma_rounds_once) {
    /* (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: the last term decides with a tiny addend only if fused. */
    static const struct row rows[] = {{0x3f800800, 0x3f800800, 0x00000001, 0x3f801001},
                                      {0x3f800800, 0x3f800800, 0x80000001, 0x3f801000},
                                      {0x3f800800, 0x3f800800, 0, 0x3f801000},
                                      {0x7f7fffff, 0x40000000, 0xff7fffff, 0x7f7fffff},
                                      {INF, 0, 0, QNAN},
                                      {0x00800000, 0x3f000000, 0x00000001, 0x00400001},
                                      {0x3f800000, 0xbf800000, 0x3f800000, 0}};
    ROWS_HOLD(F32("fma.rn.f32 r, f, g, h;"), rows);
    static const struct row rm[] = {{0x3f800000, 0xbf800000, 0x3f800000, 0x80000000}};
    ROWS_HOLD(F32("fma.rm.f32 r, f, g, h;"), rm);
    static const struct row wide[] = {
        {0x3ff0000004000000, 0x3ff0000002000000, 1, 0x3ff0000006000001},
        {0x3ff0000004000000, 0x3ff0000002000000, 0x8000000000000001, 0x3ff0000006000000}};
    ROWS_HOLD("fma.rn.f64 %d, %a, %b, %c;", wide);
}

TEST(results_flush_saturate_and_use_the_canonical_nan) {
    static const struct row ftz[] = {{0x00000001, 0x3f800000, 0, 0x3f800000},
                                     {0x80000001, 0x80000001, 0, 0x80000000},
                                     {0x00800000, 0x807fffff, 0, 0x00800000}};
    ROWS_HOLD(F32("add.ftz.f32 r, f, g;"), ftz);
    static const struct row product[] = {{0x00800000, 0xbf000000, 0, 0x80000000}};
    ROWS_HOLD(F32("mul.ftz.f32 r, f, g;"), product);
    static const struct row kept[] = {{0x00000001, 0x00000001, 0, 0x00000002}};
    ROWS_HOLD(F32("add.f32 r, f, g;"), kept);
    static const struct row sat[] = {{0x40000000, 0, 0, 0x3f800000},
                                     {0xbf800000, 0, 0, 0},
                                     {0x7fc00000, 0, 0, 0},
                                     {0x3f000000, 0, 0, 0x3f000000}};
    ROWS_HOLD(F32("add.sat.f32 r, f, g;"), sat);
    static const struct row nan[] = {{0xffc12345, 0, 0, QNAN}, {INF, 0xff800000, 0, QNAN}};
    ROWS_HOLD(F32("add.f32 r, f, g;"), nan);
    static const struct row payload[] = {
        {0x7ff8000000000123, 0x7ff8000000000456, 0, 0x7ff8000000000456},
        {0x3ff0000000000000, 0x7ff0000000000456, 0, 0x7ff8000000000456}};
    ROWS_HOLD("add.f64 %d, %a, %b;", payload);
    /* What only a lack of bits rounds up to the smallest normal number is flushed. */
    static const struct row tiny[] = {{0x3f7fffff, 0x00800000, 0, 0},
                                      {0x3f800000, 0x00800000, 0, 0x00800000},
                                      {0xbf7fffff, 0x00800000, 0, 0x80000000}};
    ROWS_HOLD(F32("mul.rn.ftz.f32 r, f, g;"), tiny);
}

TEST(min_and_max_handle_nan_and_signed_zeros) {
    static const struct row min[] = {
        {0x7fc00000, 0x3f800000, 0, 0x3f800000}, {0x3f800000, 0xffc00000, 0, 0x3f800000},
        {0x7fc00000, 0xffc00000, 0, QNAN},       {0x00000000, 0x80000000, 0, 0x80000000},
        {0x80000000, 0x00000000, 0, 0x80000000}, {0xff800000, 0x3f800000, 0, 0xff800000}};
    ROWS_HOLD(F32("min.f32 r, f, g;"), min);
    static const struct row max[] = {{0x00000000, 0x80000000, 0, 0},
                                     {0xc0000000, 0xbf800000, 0, 0xbf800000}};
    ROWS_HOLD(F32("max.f32 r, f, g;"), max);
    static const struct row nan[] = {{0x7fc00000, 0x3f800000, 0, QNAN}};
    ROWS_HOLD(F32("max.NaN.f32 r, f, g;"), nan);
    static const struct row sign[] = {{0xc0000000, 0x3f800000, 0, 0xc0000000}};
    ROWS_HOLD(F32("max.xorsign.abs.f32 r, f, g;"), sign);
}

TEST(comparisons_of_nan_are_ordered_or_unordered) {
    static const struct row lt[] = {
        {0x7fc00000, 0x3f800000, 0, 0}, {0xbf800000, 0x3f800000, 0, 1}, {0x80000000, 0, 0, 0}};
    ROWS_HOLD(F32("mov.f32 r, 0f00000000; setp.lt.f32 %p, f, g;") "selp.b64 %d, 1, 0, %p;", lt);
    static const struct row ltu[] = {{0x7fc00000, 0x3f800000, 0, 1},
                                     {0x3f800000, 0x3f800000, 0, 0}};
    ROWS_HOLD(F32("mov.f32 r, 0f00000000; setp.ltu.f32 %p, f, g;") "selp.b64 %d, 1, 0, %p;", ltu);
    static const struct row ne[] = {{0x7fc00000, 0x3f800000, 0, 0}, {0x40000000, 0x3f800000, 0, 1}};
    ROWS_HOLD(F32("mov.f32 r, 0f00000000; setp.ne.f32 %p, f, g;") "selp.b64 %d, 1, 0, %p;", ne);
    static const struct row num[] = {{0x7fc00000, 0x3f800000, 0, 0},
                                     {0x40000000, 0x3f800000, 0, 1}};
    ROWS_HOLD(F32("mov.f32 r, 0f00000000; setp.num.f32 %p, f, g;") "selp.b64 %d, 1, 0, %p;", num);
    static const struct row ftz[] = {{0x00000001, 0x80000001, 0, 1}};
    ROWS_HOLD(F32("mov.f32 r, 0f00000000; setp.eq.ftz.f32 %p, f, g;") "selp.b64 %d, 1, 0, %p;",
              ftz);
    static const struct row test[] = {{0x00000001, 0, 0, 1}, {0x00800000, 0, 0, 0}, {0, 0, 0, 0}};
    ROWS_HOLD(F32("mov.f32 r, 0f00000000; testp.subnormal.f32 %p, f;") "selp.b64 %d, 1, 0, %p;",
              test);
}

TEST(conversions_round_and_saturate) {
    static const struct row s32[] = {{0x7fc00000, 0, 0, 0},
                                     {0x4f000000, 0, 0, 0x7fffffff},
                                     {0xff800000, 0, 0, 0x80000000},
                                     {0xbfc00000, 0, 0, 0xffffffff}};
    ROWS_HOLD("{ .reg .f32 f; mov.b32 f, %x; cvt.rzi.s32.f32 %w, f; cvt.u64.u32 %d, %w; }", s32);
    static const struct row rni[] = {
        {0x40200000, 0, 0, 2}, {0x40600000, 0, 0, 4}, {0xbf800000, 0, 0, 0}};
    ROWS_HOLD("{ .reg .f32 f; mov.b32 f, %x; cvt.rni.u32.f32 %w, f; cvt.u64.u32 %d, %w; }", rni);
    static const struct row s64[] = {{0x7ff8000000000000, 0, 0, 1ull << 63},
                                     {0x43e0000000000000, 0, 0, INT64_MAX}};
    ROWS_HOLD("{ .reg .f64 f; mov.b64 f, %a; cvt.rzi.s64.f64 %d, f; }", s64);
    static const struct row whole[] = {{0x40200000, 0, 0, 0x40400000},
                                       {0xc0200000, 0, 0, 0xc0000000}};
    ROWS_HOLD(F32("cvt.rpi.f32.f32 r, f;"), whole);
    static const struct row from[] = {{0x1000001, 0, 0, 0x4b800000}, {0x1000003, 0, 0, 0x4b800002}};
    ROWS_HOLD("{ .reg .f32 f; cvt.rn.f32.u32 f, %x; mov.b32 %w, f; cvt.u64.u32 %d, %w; }", from);
    static const struct row up[] = {{0x1000001, 0, 0, 0x4b800001}};
    ROWS_HOLD("{ .reg .f32 f; cvt.rp.f32.u32 f, %x; mov.b32 %w, f; cvt.u64.u32 %d, %w; }", up);
    static const struct row byte[] = {{0x1ff, 0, 0, M64}, {0x7f, 0, 0, 0x7f}};
    ROWS_HOLD("cvt.s64.s8 %d, %a;", byte);
    static const struct row sat[] = {{300, 0, 0, 255}, {5, 0, 0, 5}};
    ROWS_HOLD("cvt.sat.u8.u32 %w, %x; cvt.u64.u32 %d, %w;", sat);
    static const struct row narrow[] = {{0x3ff0000010000000, 0, 0, 0x3f800000},
                                        {0x3ff0000030000000, 0, 0, 0x3f800002}};
    ROWS_HOLD("{ .reg .f64 e; .reg .f32 f; mov.b64 e, %a; cvt.rn.f32.f64 f, e; mov.b32 %w, f; "
              "cvt.u64.u32 %d, %w; }",
              narrow);
    static const struct row half[] = {{0x3f801000, 0, 0, 0x3c00}, {0x3f803000, 0, 0, 0x3c02},
                                      {0x477ff000, 0, 0, 0x7c00}, {0x33000000, 0, 0, 0},
                                      {0x33000001, 0, 0, 1},      {0x7fc00000, 0, 0, 0x7fff}};
    ROWS_HOLD("{ .reg .f32 f; mov.b32 f, %x; cvt.rn.f16.f32 %v, f; cvt.u64.u16 %d, %v; }", half);
    static const struct row pack[] = {{0x3f800000, 0x40000000, 0, 0x3c004000}};
    ROWS_HOLD("{ .reg .f32 f, g; mov.b32 f, %x; mov.b32 g, %y; cvt.rn.f16x2.f32 %w, f, g; "
              "cvt.u64.u32 %d, %w; }",
              pack);
    static const struct row tf32[] = {{0x3f801000, 0, 0, 0x3f802000}};
    ROWS_HOLD("{ .reg .f32 f; mov.b32 f, %x; cvt.rna.tf32.f32 %w, f; cvt.u64.u32 %d, %w; }", tf32);
}

TEST(half_precision_results_are_rounded_once) {
    static const struct row add[] = {{0x3c00, 0x1000, 0, 0x3c00},
                                     {0x3c01, 0x1000, 0, 0x3c02},
                                     {0x7bff, 0x7bff, 0, 0x7c00},
                                     {0x7c00, 0xfc00, 0, 0x7fff}};
    ROWS_HOLD("add.f16 %v, %s, %t; cvt.u64.u16 %d, %v;", add);
    static const struct row fma[] = {{0x3c01, 0x3c01, 0x0001, 0x3c02},
                                     {0x7bff, 0x4000, 0xfbff, 0x7bff}};
    ROWS_HOLD("fma.rn.f16 %v, %s, %t, %u; cvt.u64.u16 %d, %v;", fma);
    static const struct row two[] = {{0x3c004000, 0x3c003c00, 0, 0x40004200}};
    ROWS_HOLD("add.f16x2 %w, %x, %y; cvt.u64.u32 %d, %w;", two);
    static const struct row brain[] = {{0x3f80, 0x4000, 0x3f80, 0x4040}};
    ROWS_HOLD("fma.rn.bf16 %v, %s, %t, %u; cvt.u64.u16 %d, %v;", brain);
    static const struct row min[] = {{0x7e00, 0x3c00, 0, 0x3c00}, {0x8000, 0, 0, 0x8000}};
    ROWS_HOLD("min.f16 %v, %s, %t; cvt.u64.u16 %d, %v;", min);
}

TEST(approximate_functions_return_the_exact_special_values) {
    static const struct row ex2[] = {
        {0x40400000, 0, 0, 0x41000000}, {0xff800000, 0, 0, 0}, {0x7fc00000, 0, 0, QNAN}};
    ROWS_HOLD(F32("ex2.approx.f32 r, f;"), ex2);
    static const struct row lg2[] = {{0x41000000, 0, 0, 0x40400000}, {0, 0, 0, 0xff800000}};
    ROWS_HOLD(F32("lg2.approx.f32 r, f;"), lg2);
    static const struct row rsqrt[] = {{0x40800000, 0, 0, 0x3f000000}, {0xbf800000, 0, 0, QNAN}};
    ROWS_HOLD(F32("rsqrt.approx.f32 r, f;"), rsqrt);
    static const struct row sine[] = {{0, 0, 0, 0}, {INF, 0, 0, QNAN}};
    ROWS_HOLD(F32("sin.approx.f32 r, f;"), sine);
}

/* Recorded on an H200. */
TEST(rsqrt_of_doubles_matches_the_h200_bit_for_bit) {
    static const struct row full[] = {
        {0, 0, 0, 0x7ff0000000000000},
        {0x8000000000000000, 0, 0, 0xfff0000000000000},
        {1, 0, 0, 0x6180000000000000},
        {0x000fffffffffffff, 0, 0, 0x5fe0000000000001},
        {0x0010000000000000, 0, 0, 0x5fe0000000000000},
        {0x8000000000000001, 0, 0, 0xfff8000000000000},
        {0xbff0000000000000, 0, 0, 0xfff8000000000000},
        {0x3fe0000000000000, 0, 0, 0x3ff6a09e667f3bcd},
        {0x3ff0000000000001, 0, 0, 0x3fefffffffffffff},
        {0x7ff0000000000000, 0, 0, 0},
        {0xfff0000000000000, 0, 0, 0xfff8000000000000},
        {0x7ff8123456789abc, 0, 0, 0x7ff8123456789abc},
        {0xfff0123456789abc, 0, 0, 0xfff8123456789abc},
        {0x3fd3bf666e650a65, 0, 0, 0x3ffccdd042d91ad3},
    };
    ROWS_HOLD("rsqrt.approx.f64 %d, %a;", full);
    static const struct row upper[] = {{1, 0, 0, 0x7ff0000000000000},
                                       {0x3fe0000000000000, 0, 0, 0x3ff6a09e00000000}};
    ROWS_HOLD("rsqrt.approx.ftz.f64 %d, %a;", upper);
}
