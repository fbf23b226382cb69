/* Integers: wrapping, products, quotients, shifts, fields, permutations, on every level. */
#include "kernel.h"

#define M64 UINT64_MAX
#define M32 ((uint64_t)UINT32_MAX)

TEST(integer_sums_wrap_or_saturate) {
    HOLDS("add.u64 %d, %a, %b;", {1, 2, 0, 3}, {M64, 1, 0, 0}, {1, M64, 0, 0});
    HOLDS("sub.s32 %w, %x, %y; cvt.u64.u32 %d, %w;", {1, 2, 0, M32},
          {0x80000000, 1, 0, 0x7fffffff});
    HOLDS("add.u16 %v, %s, %t; cvt.u64.u16 %d, %v;", {0xffff, 2, 0, 1}, {0x8000, 0x8000, 0, 0});
    HOLDS("add.sat.s32 %w, %x, %y; cvt.u64.u32 %d, %w;", {0x7fffffff, 1, 0, 0x7fffffff},
          {0x80000000, M32, 0, 0x80000000}, {5, M32, 0, 4});
}

TEST(multiplication_returns_low_and_high_halves) {
    HOLDS("mul.lo.u64 %d, %a, %b;", {M64, M64, 0, 1}, {1ull << 33, 1ull << 33, 0, 0});
    HOLDS("mul.hi.u64 %d, %a, %b;", {M64, M64, 0, M64 - 1}, {1ull << 33, 1ull << 33, 0, 4},
          {0x123456789abcdef0, 0xfedcba9876543210, 0, 0x121fa00ad77d7422});
    HOLDS("mul.hi.s64 %d, %a, %b;", {M64, M64, 0, 0}, {M64, 2, 0, M64}, {1ull << 63, 2, 0, M64});
    HOLDS("mul.wide.s32 %d, %x, %y;", {M32, M32, 0, 1}, {M32, 2, 0, (uint64_t)-2});
    HOLDS("mad.wide.u32 %d, %x, %y, %c;", {M32, M32, 7, 0xfffffffe00000008});
    HOLDS("mad.lo.u16 %v, %s, %t, %u; cvt.u64.u16 %d, %v;", {0xffff, 0xffff, 5, 1 + 5},
          {300, 300, 1, (90001 & 0xffff)});
    HOLDS("mul.wide.s16 %w, %s, %t; cvt.u64.u32 %d, %w;", {0xffff, 2, 0, (uint32_t)-2});
    HOLDS("mul24.lo.s32 %w, %x, %y; cvt.u64.u32 %d, %w;", {0x01800000, 2, 0, 0xff000000});
    HOLDS("mad.hi.sat.s32 %w, %x, %y, %z; cvt.u64.u32 %d, %w;",
          {0x40000000, 0x40000000, 0x7fffffff, 0x7fffffff});
}

TEST(division_by_zero_and_overflow_do_not_trap) {
    HOLDS("div.s64 %d, %a, %b;", {1ull << 63, M64, 0, 1ull << 63}, {7, 0, 0, M64},
          {(uint64_t)-7, 2, 0, (uint64_t)-3});
    HOLDS("rem.s64 %d, %a, %b;", {1ull << 63, M64, 0, 0}, {7, 0, 0, M64},
          {(uint64_t)-7, 2, 0, (uint64_t)-1});
    HOLDS("div.u32 %w, %x, %y; cvt.u64.u32 %d, %w;", {7, 0, 0, M32}, {M32, 2, 0, 0x7fffffff});
    HOLDS("div.s32 %w, %x, %y; cvt.u64.u32 %d, %w;", {0x80000000, M32, 0, 0x80000000},
          {9, 0, 0, M32});
    HOLDS("div.s16 %v, %s, %t; cvt.u64.u16 %d, %v;", {0x8000, 0xffff, 0, 0x8000},
          {7, 0xfffe, 0, 0xfffd});
}

TEST(shift_counts_clamp_or_wrap) {
    HOLDS("shl.b32 %w, %x, %y; cvt.u64.u32 %d, %w;", {1, 31, 0, 0x80000000}, {1, 32, 0, 0},
          {1, M32, 0, 0});
    HOLDS("shr.s64 %d, %a, %y;", {1ull << 63, 63, 0, M64}, {1ull << 63, 64, 0, M64},
          {1ull << 62, 200, 0, 0});
    HOLDS("shr.u16 %v, %s, %y; cvt.u64.u16 %d, %v;", {0x8000, 15, 0, 1}, {0x8000, 16, 0, 0});
    HOLDS("shf.l.wrap.b32 %w, %y, %x, %z; cvt.u64.u32 %d, %w;", {0x11, 0x80000000, 33, 0x23});
    HOLDS("shf.l.clamp.b32 %w, %y, %x, %z; cvt.u64.u32 %d, %w;",
          {0x11, 0x80000000, 33, 0x80000000});
    HOLDS("shf.r.wrap.b32 %w, %y, %x, %z; cvt.u64.u32 %d, %w;", {1, 0x80000000, 4, 0x18000000});
}

TEST(bit_field_position_and_length_use_eight_bits) {
    static const struct row u32[] = {
        {0xabcd1234, 8, 8, 0x12},         {0xabcd1234, 28, 20, 0xa},
        {0xabcd1234, 40, 8, 0},           {0xabcd1234, 256 + 8, 256 + 8, 0x12},
        {0xabcd1234, 0, 255, 0xabcd1234}, {0xabcd1234, 3, 0, 0}};
    ROWS_HOLD("bfe.u32 %w, %x, %y, %z; cvt.u64.u32 %d, %w;", u32);
    static const struct row s32[] = {{0xabcd1234, 28, 20, 0xfffffffa},
                                     {0xabcd1234, 40, 8, M32},
                                     {0xabcd1234, 4, 4, 3},
                                     {0xabcd12f4, 4, 4, M32}};
    ROWS_HOLD("bfe.s32 %w, %x, %y, %z; cvt.u64.u32 %d, %w;", s32);
    HOLDS("bfi.b64 %d, %a, %b, %z, 8;", {0xff, 0, 4, 0xff0}, {0xff, M64, 60, M64}, {1, 0, 64, 0});
    HOLDS("bmsk.clamp.b32 %w, %x, %y; cvt.u64.u32 %d, %w;", {4, 8, 0, 0xff0},
          {28, 8, 0, 0xf0000000}, {32, 1, 0, 0});
}

TEST(bits_are_counted_found_and_reversed) {
    HOLDS("popc.b64 %w, %a; cvt.u64.u32 %d, %w;", {M64, 0, 0, 64}, {0x8000000000000001, 0, 0, 2});
    HOLDS("clz.b32 %w, %x; cvt.u64.u32 %d, %w;", {0, 0, 0, 32}, {1, 0, 0, 31}, {M32, 0, 0, 0});
    HOLDS("brev.b64 %d, %a;", {1, 0, 0, 1ull << 63}, {0x123, 0, 0, 0xc480000000000000});
    HOLDS("bfind.s32 %w, %x; cvt.u64.u32 %d, %w;", {0, 0, 0, M32}, {M32, 0, 0, M32},
          {0x10, 0, 0, 4}, {0xfffffff0, 0, 0, 3});
    HOLDS("bfind.shiftamt.u32 %w, %x; cvt.u64.u32 %d, %w;", {0x10, 0, 0, 27}, {M32, 0, 0, 0});
    HOLDS("lop3.b32 %w, %x, %y, %z, 0x96; cvt.u64.u32 %d, %w;",
          {0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa, 0x96969696});
    HOLDS("cnot.b32 %w, %x; cvt.u64.u32 %d, %w;", {0, 0, 0, 1}, {5, 0, 0, 0});
}

TEST(prmt_permutes_bytes_in_every_mode) {
    static const struct row usual[] = {{0x83020100, 0x07060584, 0x3210, 0x83020100},
                                       {0x83020100, 0x07060584, 0x7654, 0x07060584},
                                       {0x83020100, 0x07060584, 0xbc08, 0xffff0000}};
    ROWS_HOLD("prmt.b32 %w, %x, %y, %z; cvt.u64.u32 %d, %w;", usual);
    HOLDS("prmt.b32.f4e %w, %x, %y, %z; cvt.u64.u32 %d, %w;",
          {0x03020100, 0x07060504, 1, 0x04030201});
    HOLDS("prmt.b32.b4e %w, %x, %y, %z; cvt.u64.u32 %d, %w;",
          {0x03020100, 0x07060504, 0, 0x05060700});
    HOLDS("prmt.b32.rc16 %w, %x, %y, %z; cvt.u64.u32 %d, %w;",
          {0x03020100, 0x07060504, 1, 0x03020302});
    HOLDS("prmt.b32.ecl %w, %x, %y, %z; cvt.u64.u32 %d, %w;",
          {0x03020100, 0x07060504, 2, 0x03020202});
}

TEST(carries_propagate_to_the_next_instruction) {
    HOLDS("{ .reg .b32 h, g; mov.b64 {%x, h}, %a; mov.b64 {%y, g}, %b;\n"
          "add.cc.u32 %w, %x, %y; addc.u32 h, h, g; mov.b64 %d, {%w, h}; }",
          {M64, 1, 0, 0}, {0x00000001ffffffff, 1, 0, 0x200000000});
    HOLDS("{ .reg .b32 h, g; mov.b64 {%x, h}, %a; mov.b64 {%y, g}, %b;\n"
          "sub.cc.u32 %w, %x, %y; subc.u32 h, h, g; mov.b64 %d, {%w, h}; }",
          {0, 1, 0, M64}, {0x100000000, 1, 0, M32});
    /* Subtractions leave a carry where they borrow nothing. */
    HOLDS("{ .reg .b32 h; sub.cc.u32 h, %x, %y; addc.u32 %w, %z, 0; cvt.u64.u32 %d, %w; }",
          {5, 3, 10, 11}, {3, 5, 10, 10});
    HOLDS("{ .reg .b32 h; mad.lo.cc.u32 %w, %x, %y, %z; madc.hi.u32 h, %x, %y, 0;\n"
          "mov.b64 %d, {%w, h}; }",
          {M32, M32, M32, 0xffffffff00000000});
}

TEST(dot_products_min_max_and_absolute_differences_are_correct) {
    HOLDS("dp4a.s32.u32 %w, %x, %y, %z; cvt.u64.u32 %d, %w;",
          {0xff010203, 0x01010101, 10, 10 + 1 + 2 + 3 - 1});
    HOLDS("dp2a.hi.u32.u32 %w, %x, %y, %z; cvt.u64.u32 %d, %w;",
          {0x00020003, 0x04030201, 1, 1 + 3 * 3 + 2 * 4});
    HOLDS("sad.s32 %w, %x, %y, %z; cvt.u64.u32 %d, %w;", {1, M32, 3, 5});
    HOLDS("min.s64 %d, %a, %b;", {M64, 1, 0, M64}, {1, 2, 0, 1});
    HOLDS("max.s16 %v, %s, %t; cvt.u64.u16 %d, %v;", {0xffff, 1, 0, 1},
          {0x8000, 0x7fff, 0, 0x7fff});
    HOLDS("abs.s64 %d, %a;", {1ull << 63, 0, 0, 1ull << 63}, {M64, 0, 0, 1});
}

TEST(comparisons_set_predicates_and_select) {
    HOLDS("setp.lt.s64 %p, %a, %b; selp.b64 %d, 1, 0, %p;", {M64, 1, 0, 1}, {1, M64, 0, 0},
          {1, 1, 0, 0});
    HOLDS("setp.lt.u64 %p, %a, %b; selp.b64 %d, 1, 0, %p;", {M64, 1, 0, 0}, {1, M64, 0, 1});
    HOLDS("setp.lt.u64 %r, %a, %c; setp.lt.and.u64 %p|%q, %a, %b, %r;\n"
          "selp.b64 %d, 1, 0, %p; @!%r setp.lt.or.u64 %p|%q, %a, %b, %r;\n"
          "@%q mov.u64 %d, 7; setp.ge.or.u64 %p, %a, %c, !%r; @%p selp.b64 %d, 2, 0, %p;\n"
          "setp.gt.u64 %p, %a, 1; @%p mov.u64 %d, 0;",
          {1, 2, 3, 1}, {1, 2, 1, 2}, {2, 1, 3, 0});
    HOLDS("set.eq.u32.u32 %w, %x, %y; cvt.u64.u32 %d, %w;", {1, 1, 0, M32}, {1, 2, 0, 0});
    HOLDS("{ .reg .f32 f; set.eq.f32.u32 f, %x, %y; mov.b32 %w, f; cvt.u64.u32 %d, %w; }",
          {1, 1, 0, 0x3f800000}, {1, 2, 0, 0});
    HOLDS("slct.u64.s32 %d, %a, %b, %z;", {5, 6, 0, 5}, {5, 6, M32, 6});
}
