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
    HOLDS(F32("add.rn.f32 r, f, g;"), {0x3f800000, 0x33800000, 0, 0x3f800000});
    HOLDS(F32("add.rp.f32 r, f, g;"), {0x3f800000, 0x33800000, 0, 0x3f800001});
    HOLDS(F32("add.rm.f32 r, f, g;"), {0xbf800000, 0xb3800000, 0, 0xbf800001},
          {0x3f800000, 0x33800000, 0, 0x3f800000});
    HOLDS(F32("mul.rz.f32 r, f, g;"), {0x7f7fffff, 0x7f7fffff, 0, 0x7f7fffff});
    HOLDS(F32("mul.rz.f32 r, f, g; mul.rn.f32 r, f, g;"), {0x7f7fffff, 0x7f7fffff, 0, INF});
    HOLDS(F32("div.rn.f32 r, f, g;"), {0x3f800000, 0x40400000, 0, 0x3eaaaaab});
    HOLDS(F32("div.rm.f32 r, f, g;"), {0x3f800000, 0x40400000, 0, 0x3eaaaaaa});
    HOLDS(F32("sqrt.rn.f32 r, f;"), {0x40000000, 0, 0, 0x3fb504f3}, {0xbf800000, 0, 0, QNAN});
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
    HOLDS(F32("fma.rm.f32 r, f, g, h;"), {0x3f800000, 0xbf800000, 0x3f800000, 0x80000000});
    HOLDS("fma.rn.f64 %d, %a, %b, %c;",
          {0x3ff0000004000000, 0x3ff0000002000000, 1, 0x3ff0000006000001},
          {0x3ff0000004000000, 0x3ff0000002000000, 0x8000000000000001, 0x3ff0000006000000});
}

TEST(results_flush_saturate_and_use_the_canonical_nan) {
    HOLDS(F32("add.ftz.f32 r, f, g;"), {0x00000001, 0x3f800000, 0, 0x3f800000},
          {0x80000001, 0x80000001, 0, 0x80000000}, {0x00800000, 0x807fffff, 0, 0x00800000});
    HOLDS(F32("mul.ftz.f32 r, f, g;"), {0x00800000, 0xbf000000, 0, 0x80000000});
    HOLDS(F32("add.f32 r, f, g;"), {0x00000001, 0x00000001, 0, 0x00000002});
    static const struct row sat[] = {{0x40000000, 0, 0, 0x3f800000},
                                     {0xbf800000, 0, 0, 0},
                                     {0x7fc00000, 0, 0, 0},
                                     {0x3f000000, 0, 0, 0x3f000000}};
    ROWS_HOLD(F32("add.sat.f32 r, f, g;"), sat);
    HOLDS(F32("add.f32 r, f, g;"), {0xffc12345, 0, 0, QNAN}, {INF, 0xff800000, 0, QNAN});
    HOLDS("add.f64 %d, %a, %b;", {0x7ff8000000000123, 0x7ff8000000000456, 0, 0x7ff8000000000456},
          {0x3ff0000000000000, 0x7ff0000000000456, 0, 0x7ff8000000000456});
    /* What only a lack of bits rounds up to the smallest normal number is flushed. */
    HOLDS(F32("mul.rn.ftz.f32 r, f, g;"), {0x3f7fffff, 0x00800000, 0, 0},
          {0x3f800000, 0x00800000, 0, 0x00800000}, {0xbf7fffff, 0x00800000, 0, 0x80000000});
}

/* The two operands of all 2^32 for which an H200's rcp.ftz is not what rcp gives, flushed: the
 * exact result is subnormal, and rounding gives the smallest normal number. Quotients likewise. */
TEST(reciprocals_are_flushed_before_they_are_rounded) {
    HOLDS(F32("rcp.rp.ftz.f32 r, f;"), {0x7e800001, 0, 0, 0}, {0x7e800000, 0, 0, 0x00800000},
          {0x7e7fffff, 0, 0, 0x00800001}, {0x7f000000, 0, 0, 0}, {0, 0, 0, INF});
    HOLDS(F32("rcp.rm.ftz.f32 r, f;"), {0xfe800001, 0, 0, 0x80000000},
          {0xfe800000, 0, 0, 0x80800000}, {0x80000001, 0, 0, 0xff800000});
    HOLDS(F32("rcp.rp.f32 r, f;"), {0x7e800001, 0, 0, 0x00800000});
    HOLDS(F32("div.rm.ftz.f32 r, f, g;"), {0x00b59480, 0xbfb59481, 0, 0x80000000});
    HOLDS(F32("div.rp.ftz.f32 r, f, g;"), {0x8142312e, 0xc042312f, 0, 0});
}

TEST(min_and_max_handle_nan_and_signed_zeros) {
    static const struct row min[] = {
        {0x7fc00000, 0x3f800000, 0, 0x3f800000}, {0x3f800000, 0xffc00000, 0, 0x3f800000},
        {0x7fc00000, 0xffc00000, 0, QNAN},       {0x00000000, 0x80000000, 0, 0x80000000},
        {0x80000000, 0x00000000, 0, 0x80000000}, {0xff800000, 0x3f800000, 0, 0xff800000}};
    ROWS_HOLD(F32("min.f32 r, f, g;"), min);
    HOLDS(F32("max.f32 r, f, g;"), {0x00000000, 0x80000000, 0, 0},
          {0xc0000000, 0xbf800000, 0, 0xbf800000});
    HOLDS(F32("max.NaN.f32 r, f, g;"), {0x7fc00000, 0x3f800000, 0, QNAN});
    HOLDS(F32("max.xorsign.abs.f32 r, f, g;"), {0xc0000000, 0x3f800000, 0, 0xc0000000});
}

TEST(comparisons_of_nan_are_ordered_or_unordered) {
    HOLDS(F32("mov.f32 r, 0f00000000; setp.lt.f32 %p, f, g;") "selp.b64 %d, 1, 0, %p;",
          {0x7fc00000, 0x3f800000, 0, 0}, {0xbf800000, 0x3f800000, 0, 1}, {0x80000000, 0, 0, 0});
    HOLDS(F32("mov.f32 r, 0f00000000; setp.ltu.f32 %p, f, g;") "selp.b64 %d, 1, 0, %p;",
          {0x7fc00000, 0x3f800000, 0, 1}, {0x3f800000, 0x3f800000, 0, 0});
    HOLDS(F32("mov.f32 r, 0f00000000; setp.ne.f32 %p, f, g;") "selp.b64 %d, 1, 0, %p;",
          {0x7fc00000, 0x3f800000, 0, 0}, {0x40000000, 0x3f800000, 0, 1});
    HOLDS(F32("mov.f32 r, 0f00000000; setp.num.f32 %p, f, g;") "selp.b64 %d, 1, 0, %p;",
          {0x7fc00000, 0x3f800000, 0, 0}, {0x40000000, 0x3f800000, 0, 1});
    HOLDS(F32("mov.f32 r, 0f00000000; setp.eq.ftz.f32 %p, f, g;") "selp.b64 %d, 1, 0, %p;",
          {0x00000001, 0x80000001, 0, 1});
    HOLDS(F32("mov.f32 r, 0f00000000; testp.subnormal.f32 %p, f;") "selp.b64 %d, 1, 0, %p;",
          {0x00000001, 0, 0, 1}, {0x00800000, 0, 0, 0}, {0, 0, 0, 0});
}

TEST(conversions_round_and_saturate) {
    static const struct row s32[] = {{0x7fc00000, 0, 0, 0},
                                     {0x4f000000, 0, 0, 0x7fffffff},
                                     {0xff800000, 0, 0, 0x80000000},
                                     {0xbfc00000, 0, 0, 0xffffffff}};
    ROWS_HOLD("{ .reg .f32 f; mov.b32 f, %x; cvt.rzi.s32.f32 %w, f; cvt.u64.u32 %d, %w; }", s32);
    HOLDS("{ .reg .f32 f; mov.b32 f, %x; cvt.rni.u32.f32 %w, f; cvt.u64.u32 %d, %w; }",
          {0x40200000, 0, 0, 2}, {0x40600000, 0, 0, 4}, {0xbf800000, 0, 0, 0});
    HOLDS("{ .reg .f64 f; mov.b64 f, %a; cvt.rzi.s64.f64 %d, f; }",
          {0x7ff8000000000000, 0, 0, 1ull << 63}, {0x43e0000000000000, 0, 0, INT64_MAX});
    HOLDS(F32("cvt.rpi.f32.f32 r, f;"), {0x40200000, 0, 0, 0x40400000},
          {0xc0200000, 0, 0, 0xc0000000});
    HOLDS("{ .reg .f32 f; cvt.rn.f32.u32 f, %x; mov.b32 %w, f; cvt.u64.u32 %d, %w; }",
          {0x1000001, 0, 0, 0x4b800000}, {0x1000003, 0, 0, 0x4b800002});
    HOLDS("{ .reg .f32 f; cvt.rp.f32.u32 f, %x; mov.b32 %w, f; cvt.u64.u32 %d, %w; }",
          {0x1000001, 0, 0, 0x4b800001});
    HOLDS("cvt.s64.s8 %d, %a;", {0x1ff, 0, 0, M64}, {0x7f, 0, 0, 0x7f});
    HOLDS("cvt.sat.u8.u32 %w, %x; cvt.u64.u32 %d, %w;", {300, 0, 0, 255}, {5, 0, 0, 5});
    HOLDS("{ .reg .f64 e; .reg .f32 f; mov.b64 e, %a; cvt.rn.f32.f64 f, e; mov.b32 %w, f; "
          "cvt.u64.u32 %d, %w; }",
          {0x3ff0000010000000, 0, 0, 0x3f800000}, {0x3ff0000030000000, 0, 0, 0x3f800002});
    static const struct row half[] = {{0x3f801000, 0, 0, 0x3c00}, {0x3f803000, 0, 0, 0x3c02},
                                      {0x477ff000, 0, 0, 0x7c00}, {0x33000000, 0, 0, 0},
                                      {0x33000001, 0, 0, 1},      {0x7fc00000, 0, 0, 0x7fff}};
    ROWS_HOLD("{ .reg .f32 f; mov.b32 f, %x; cvt.rn.f16.f32 %v, f; cvt.u64.u16 %d, %v; }", half);
    HOLDS("{ .reg .f32 f, g; mov.b32 f, %x; mov.b32 g, %y; cvt.rn.f16x2.f32 %w, f, g; "
          "cvt.u64.u32 %d, %w; }",
          {0x3f800000, 0x40000000, 0, 0x3c004000});
    HOLDS("{ .reg .f32 f; mov.b32 f, %x; cvt.rna.tf32.f32 %w, f; cvt.u64.u32 %d, %w; }",
          {0x3f801000, 0, 0, 0x3f802000});
}

TEST(half_precision_results_are_rounded_once) {
    static const struct row add[] = {{0x3c00, 0x1000, 0, 0x3c00},
                                     {0x3c01, 0x1000, 0, 0x3c02},
                                     {0x7bff, 0x7bff, 0, 0x7c00},
                                     {0x7c00, 0xfc00, 0, 0x7fff}};
    ROWS_HOLD("add.f16 %v, %s, %t; cvt.u64.u16 %d, %v;", add);
    HOLDS("fma.rn.f16 %v, %s, %t, %u; cvt.u64.u16 %d, %v;", {0x3c01, 0x3c01, 0x0001, 0x3c02},
          {0x7bff, 0x4000, 0xfbff, 0x7bff});
    HOLDS("add.f16x2 %w, %x, %y; cvt.u64.u32 %d, %w;", {0x3c004000, 0x3c003c00, 0, 0x40004200});
    HOLDS("fma.rn.bf16 %v, %s, %t, %u; cvt.u64.u16 %d, %v;", {0x3f80, 0x4000, 0x3f80, 0x4040});
    HOLDS("min.f16 %v, %s, %t; cvt.u64.u16 %d, %v;", {0x7e00, 0x3c00, 0, 0x3c00},
          {0x8000, 0, 0, 0x8000});
}

TEST(approximate_functions_return_the_exact_special_values) {
    HOLDS(F32("ex2.approx.f32 r, f;"), {0x40400000, 0, 0, 0x41000000}, {0xff800000, 0, 0, 0},
          {0x7fc00000, 0, 0, QNAN});
    HOLDS(F32("lg2.approx.f32 r, f;"), {0x41000000, 0, 0, 0x40400000}, {0, 0, 0, 0xff800000});
    HOLDS(F32("rsqrt.approx.f32 r, f;"), {0x40800000, 0, 0, 0x3f000000}, {0xbf800000, 0, 0, QNAN});
    HOLDS(F32("sin.approx.f32 r, f;"), {0, 0, 0, 0}, {INF, 0, 0, QNAN});
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
    HOLDS("rsqrt.approx.ftz.f64 %d, %a;", {1, 0, 0, 0x7ff0000000000000},
          {0x3fe0000000000000, 0, 0, 0x3ff6a09e00000000});
}
