/* Integers: wrapping, products, quotients, shifts, fields, permutations, on every level. */
#include "kernel.h"

#define M64 UINT64_MAX
#define M32 ((uint64_t)UINT32_MAX)

TEST(integer_sums_wrap_or_saturate) {
    static const struct row add[] = {{1, 2, 0, 3}, {M64, 1, 0, 0}, {1, M64, 0, 0}};
    ROWS_HOLD("add.u64 %d, %a, %b;", add);
    static const struct row sub[] = {{1, 2, 0, M32}, {0x80000000, 1, 0, 0x7fffffff}};
    ROWS_HOLD("sub.s32 %w, %x, %y; cvt.u64.u32 %d, %w;", sub);
    static const struct row half[] = {{0xffff, 2, 0, 1}, {0x8000, 0x8000, 0, 0}};
    ROWS_HOLD("add.u16 %v, %s, %t; cvt.u64.u16 %d, %v;", half);
    static const struct row sat[] = {
        {0x7fffffff, 1, 0, 0x7fffffff}, {0x80000000, M32, 0, 0x80000000}, {5, M32, 0, 4}};
    ROWS_HOLD("add.sat.s32 %w, %x, %y; cvt.u64.u32 %d, %w;", sat);
}

TEST(multiplication_returns_low_and_high_halves) {
    static const struct row lo[] = {{M64, M64, 0, 1}, {1ull << 33, 1ull << 33, 0, 0}};
    ROWS_HOLD("mul.lo.u64 %d, %a, %b;", lo);
    static const struct row hi[] = {
        {M64, M64, 0, M64 - 1},
        {1ull << 33, 1ull << 33, 0, 4},
        {0x123456789abcdef0, 0xfedcba9876543210, 0, 0x121fa00ad77d7422}};
    ROWS_HOLD("mul.hi.u64 %d, %a, %b;", hi);
    static const struct row shi[] = {{M64, M64, 0, 0}, {M64, 2, 0, M64}, {1ull << 63, 2, 0, M64}};
    ROWS_HOLD("mul.hi.s64 %d, %a, %b;", shi);
    static const struct row wide[] = {{M32, M32, 0, 1}, {M32, 2, 0, (uint64_t)-2}};
    ROWS_HOLD("mul.wide.s32 %d, %x, %y;", wide);
    static const struct row uwide[] = {{M32, M32, 7, 0xfffffffe00000008}};
    ROWS_HOLD("mad.wide.u32 %d, %x, %y, %c;", uwide);
    static const struct row small[] = {{0xffff, 0xffff, 5, 1 + 5}, {300, 300, 1, (90001 & 0xffff)}};
    ROWS_HOLD("mad.lo.u16 %v, %s, %t, %u; cvt.u64.u16 %d, %v;", small);
    static const struct row small_wide[] = {{0xffff, 2, 0, (uint32_t)-2}};
    ROWS_HOLD("mul.wide.s16 %w, %s, %t; cvt.u64.u32 %d, %w;", small_wide);
    static const struct row m24[] = {{0x01800000, 2, 0, 0xff000000}};
    ROWS_HOLD("mul24.lo.s32 %w, %x, %y; cvt.u64.u32 %d, %w;", m24);
    static const struct row sat[] = {{0x40000000, 0x40000000, 0x7fffffff, 0x7fffffff}};
    ROWS_HOLD("mad.hi.sat.s32 %w, %x, %y, %z; cvt.u64.u32 %d, %w;", sat);
}

TEST(division_by_zero_and_overflow_do_not_trap) {
    static const struct row s64[] = {
        {1ull << 63, M64, 0, 1ull << 63}, {7, 0, 0, M64}, {(uint64_t)-7, 2, 0, (uint64_t)-3}};
    ROWS_HOLD("div.s64 %d, %a, %b;", s64);
    static const struct row s64r[] = {
        {1ull << 63, M64, 0, 0}, {7, 0, 0, M64}, {(uint64_t)-7, 2, 0, (uint64_t)-1}};
    ROWS_HOLD("rem.s64 %d, %a, %b;", s64r);
    static const struct row u32[] = {{7, 0, 0, M32}, {M32, 2, 0, 0x7fffffff}};
    ROWS_HOLD("div.u32 %w, %x, %y; cvt.u64.u32 %d, %w;", u32);
    static const struct row s32[] = {{0x80000000, M32, 0, 0x80000000}, {9, 0, 0, M32}};
    ROWS_HOLD("div.s32 %w, %x, %y; cvt.u64.u32 %d, %w;", s32);
    static const struct row s16[] = {{0x8000, 0xffff, 0, 0x8000}, {7, 0xfffe, 0, 0xfffd}};
    ROWS_HOLD("div.s16 %v, %s, %t; cvt.u64.u16 %d, %v;", s16);
}

TEST(shift_counts_clamp_or_wrap) {
    static const struct row shl[] = {{1, 31, 0, 0x80000000}, {1, 32, 0, 0}, {1, M32, 0, 0}};
    ROWS_HOLD("shl.b32 %w, %x, %y; cvt.u64.u32 %d, %w;", shl);
    static const struct row shr[] = {
        {1ull << 63, 63, 0, M64}, {1ull << 63, 64, 0, M64}, {1ull << 62, 200, 0, 0}};
    ROWS_HOLD("shr.s64 %d, %a, %y;", shr);
    static const struct row shr16[] = {{0x8000, 15, 0, 1}, {0x8000, 16, 0, 0}};
    ROWS_HOLD("shr.u16 %v, %s, %y; cvt.u64.u16 %d, %v;", shr16);
    static const struct row wrap[] = {{0x11, 0x80000000, 33, 0x23}};
    ROWS_HOLD("shf.l.wrap.b32 %w, %y, %x, %z; cvt.u64.u32 %d, %w;", wrap);
    static const struct row clamp[] = {{0x11, 0x80000000, 33, 0x80000000}};
    ROWS_HOLD("shf.l.clamp.b32 %w, %y, %x, %z; cvt.u64.u32 %d, %w;", clamp);
    static const struct row right[] = {{1, 0x80000000, 4, 0x18000000}};
    ROWS_HOLD("shf.r.wrap.b32 %w, %y, %x, %z; cvt.u64.u32 %d, %w;", right);
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
    static const struct row bfi[] = {{0xff, 0, 4, 0xff0}, {0xff, M64, 60, M64}, {1, 0, 64, 0}};
    ROWS_HOLD("bfi.b64 %d, %a, %b, %z, 8;", bfi);
    static const struct row bmsk[] = {{4, 8, 0, 0xff0}, {28, 8, 0, 0xf0000000}, {32, 1, 0, 0}};
    ROWS_HOLD("bmsk.clamp.b32 %w, %x, %y; cvt.u64.u32 %d, %w;", bmsk);
}

TEST(bits_are_counted_found_and_reversed) {
    static const struct row popc[] = {{M64, 0, 0, 64}, {0x8000000000000001, 0, 0, 2}};
    ROWS_HOLD("popc.b64 %w, %a; cvt.u64.u32 %d, %w;", popc);
    static const struct row clz[] = {{0, 0, 0, 32}, {1, 0, 0, 31}, {M32, 0, 0, 0}};
    ROWS_HOLD("clz.b32 %w, %x; cvt.u64.u32 %d, %w;", clz);
    static const struct row brev[] = {{1, 0, 0, 1ull << 63}, {0x123, 0, 0, 0xc480000000000000}};
    ROWS_HOLD("brev.b64 %d, %a;", brev);
    static const struct row bfind[] = {
        {0, 0, 0, M32}, {M32, 0, 0, M32}, {0x10, 0, 0, 4}, {0xfffffff0, 0, 0, 3}};
    ROWS_HOLD("bfind.s32 %w, %x; cvt.u64.u32 %d, %w;", bfind);
    static const struct row shift[] = {{0x10, 0, 0, 27}, {M32, 0, 0, 0}};
    ROWS_HOLD("bfind.shiftamt.u32 %w, %x; cvt.u64.u32 %d, %w;", shift);
    static const struct row lop3[] = {{0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa, 0x96969696}};
    ROWS_HOLD("lop3.b32 %w, %x, %y, %z, 0x96; cvt.u64.u32 %d, %w;", lop3);
    static const struct row cnot[] = {{0, 0, 0, 1}, {5, 0, 0, 0}};
    ROWS_HOLD("cnot.b32 %w, %x; cvt.u64.u32 %d, %w;", cnot);
}

TEST(prmt_permutes_bytes_in_every_mode) {
    static const struct row usual[] = {{0x83020100, 0x07060584, 0x3210, 0x83020100},
                                       {0x83020100, 0x07060584, 0x7654, 0x07060584},
                                       {0x83020100, 0x07060584, 0xbc08, 0xffff0000}};
    ROWS_HOLD("prmt.b32 %w, %x, %y, %z; cvt.u64.u32 %d, %w;", usual);
    static const struct row f4e[] = {{0x03020100, 0x07060504, 1, 0x04030201}};
    ROWS_HOLD("prmt.b32.f4e %w, %x, %y, %z; cvt.u64.u32 %d, %w;", f4e);
    static const struct row b4e[] = {{0x03020100, 0x07060504, 0, 0x05060700}};
    ROWS_HOLD("prmt.b32.b4e %w, %x, %y, %z; cvt.u64.u32 %d, %w;", b4e);
    static const struct row rc16[] = {{0x03020100, 0x07060504, 1, 0x03020302}};
    ROWS_HOLD("prmt.b32.rc16 %w, %x, %y, %z; cvt.u64.u32 %d, %w;", rc16);
    static const struct row ecl[] = {{0x03020100, 0x07060504, 2, 0x03020202}};
    ROWS_HOLD("prmt.b32.ecl %w, %x, %y, %z; cvt.u64.u32 %d, %w;", ecl);
}

TEST(carries_propagate_to_the_next_instruction) {
    static const struct row add[] = {{M64, 1, 0, 0}, {0x00000001ffffffff, 1, 0, 0x200000000}};
    ROWS_HOLD("{ .reg .b32 h, g; mov.b64 {%x, h}, %a; mov.b64 {%y, g}, %b;\n"
              "add.cc.u32 %w, %x, %y; addc.u32 h, h, g; mov.b64 %d, {%w, h}; }",
              add);
    static const struct row sub[] = {{0, 1, 0, M64}, {0x100000000, 1, 0, M32}};
    ROWS_HOLD("{ .reg .b32 h, g; mov.b64 {%x, h}, %a; mov.b64 {%y, g}, %b;\n"
              "sub.cc.u32 %w, %x, %y; subc.u32 h, h, g; mov.b64 %d, {%w, h}; }",
              sub);
    /* Subtractions leave a carry where they borrow nothing. */
    static const struct row mixed[] = {{5, 3, 10, 11}, {3, 5, 10, 10}};
    ROWS_HOLD("{ .reg .b32 h; sub.cc.u32 h, %x, %y; addc.u32 %w, %z, 0; cvt.u64.u32 %d, %w; }",
              mixed);
    static const struct row mad[] = {{M32, M32, M32, 0xffffffff00000000}};
    ROWS_HOLD("{ .reg .b32 h; mad.lo.cc.u32 %w, %x, %y, %z; madc.hi.u32 h, %x, %y, 0;\n"
              "mov.b64 %d, {%w, h}; }",
              mad);
}

TEST(dot_products_min_max_and_absolute_differences_are_correct) {
    static const struct row dp4a[] = {{0xff010203, 0x01010101, 10, 10 + 1 + 2 + 3 - 1}};
    ROWS_HOLD("dp4a.s32.u32 %w, %x, %y, %z; cvt.u64.u32 %d, %w;", dp4a);
    static const struct row dp2a[] = {{0x00020003, 0x04030201, 1, 1 + 3 * 3 + 2 * 4}};
    ROWS_HOLD("dp2a.hi.u32.u32 %w, %x, %y, %z; cvt.u64.u32 %d, %w;", dp2a);
    static const struct row sad[] = {{1, M32, 3, 5}};
    ROWS_HOLD("sad.s32 %w, %x, %y, %z; cvt.u64.u32 %d, %w;", sad);
    static const struct row min[] = {{M64, 1, 0, M64}, {1, 2, 0, 1}};
    ROWS_HOLD("min.s64 %d, %a, %b;", min);
    static const struct row max16[] = {{0xffff, 1, 0, 1}, {0x8000, 0x7fff, 0, 0x7fff}};
    ROWS_HOLD("max.s16 %v, %s, %t; cvt.u64.u16 %d, %v;", max16);
    static const struct row abs[] = {{1ull << 63, 0, 0, 1ull << 63}, {M64, 0, 0, 1}};
    ROWS_HOLD("abs.s64 %d, %a;", abs);
}

TEST(comparisons_set_predicates_and_select) {
    static const struct row lt[] = {{M64, 1, 0, 1}, {1, M64, 0, 0}, {1, 1, 0, 0}};
    ROWS_HOLD("setp.lt.s64 %p, %a, %b; selp.b64 %d, 1, 0, %p;", lt);
    static const struct row lo[] = {{M64, 1, 0, 0}, {1, M64, 0, 1}};
    ROWS_HOLD("setp.lt.u64 %p, %a, %b; selp.b64 %d, 1, 0, %p;", lo);
    static const struct row both[] = {{1, 2, 3, 1}, {1, 2, 1, 2}, {2, 1, 3, 0}};
    ROWS_HOLD("setp.lt.u64 %r, %a, %c; setp.lt.and.u64 %p|%q, %a, %b, %r;\n"
              "selp.b64 %d, 1, 0, %p; @!%r setp.lt.or.u64 %p|%q, %a, %b, %r;\n"
              "@%q mov.u64 %d, 7; setp.ge.or.u64 %p, %a, %c, !%r; @%p selp.b64 %d, 2, 0, %p;\n"
              "setp.gt.u64 %p, %a, 1; @%p mov.u64 %d, 0;",
              both);
    static const struct row set[] = {{1, 1, 0, M32}, {1, 2, 0, 0}};
    ROWS_HOLD("set.eq.u32.u32 %w, %x, %y; cvt.u64.u32 %d, %w;", set);
    static const struct row setf[] = {{1, 1, 0, 0x3f800000}, {1, 2, 0, 0}};
    ROWS_HOLD("{ .reg .f32 f; set.eq.f32.u32 f, %x, %y; mov.b32 %w, f; cvt.u64.u32 %d, %w; }",
              setf);
    static const struct row slct[] = {{5, 6, 0, 5}, {5, 6, M32, 6}};
    ROWS_HOLD("slct.u64.s32 %d, %a, %b, %z;", slct);
}
