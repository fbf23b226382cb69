/* Vectors of registers, 128 bits, atomic operations on both, packed integers, alloca, and other
 * small instructions. */
#include "kernel.h"

TEST(a_vector_move_reads_all_sources_first) {
    HOLDS("mov.v2.b32 {%x, %y}, {%y, %x}; mov.b64 %d, {%x, %y};", {1, 2, 0, 0x0000000100000002});
    HOLDS("mov.v4.b16 {%s, %t, %u, %v}, {%t, %u, %s, %v}; mov.b64 %d, {%s, %t, %u, %v};",
          {0x1234, 0x5678, 0x9abc, 0x12349abc5678});
}

TEST(vector_moves_pack_and_unpack_words) {
    HOLDS("{ .reg .b8 p, q, r, s; mov.b32 {p, q, r, s}, %x; mov.b32 %w, {s, r, q, p}; "
          "cvt.u64.u32 %d, %w; }",
          {0x11223344, 0, 0, 0x44332211});
    HOLDS("{ .reg .b128 q, r; .reg .b32 i, j, k, l; mov.b128 q, {%a, %b}; mov.b128 r, q; "
          "mov.b128 {i, j, k, l}, r; mov.b64 %d, {i, l}; }",
          {0x1111222233334444, 0x5555666677778888, 0, 0x5555666633334444});
    HOLDS("{ .reg .b128 q; mov.b128 q, {%a, %b}; mov.b128 {_, %d}, q; }", {7, 9, 0, 9});
}

TEST(lop3_sets_a_predicate_from_its_result) {
    /* c says whether the predicate that is combined is false; 0xc0 is a & b */
    HOLDS("setp.eq.u64 %p, %c, 0; lop3.and.b32 %w|%q, %x, %y, %y, 0xc0, %p;\n"
          "cvt.u64.u32 %d, %w;\n@%q add.u64 %d, %d, 1;",
          {0xf0, 0x0f, 0, 0}, {0xf0, 0x1f, 0, 0x11}, {0xf0, 0x1f, 1, 0x10}, {0xf0, 0x0f, 1, 0});
    HOLDS("setp.eq.u64 %p, %c, 0; lop3.or.b32 _|%q, %x, %y, %y, 0xc0, %p;\n"
          "selp.u64 %d, 2, 0, %q; setp.ne.u32 %r, %x, 0; and.pred %r, %r, %p;\n"
          "@%r add.u64 %d, %d, 1; @!%p mov.u64 %d, 0;",
          {0, 0, 0, 2}, {1, 1, 0, 3}, {1, 1, 1, 0});
}

TEST(packed_16_bit_integers_are_added_and_compared) {
    HOLDS("add.u16x2 %w, %x, %y; cvt.u64.u32 %d, %w;", {0xffff0001, 0x0001ffff, 0, 0},
          {0x7fff8000, 0x00018000, 0, 0x80000000});
    HOLDS("min.u16x2 %w, %x, %y; cvt.u64.u32 %d, %w;", {0xffff0001, 0x0001ffff, 0, 0x00010001});
    HOLDS("max.s16x2 %w, %x, %y; cvt.u64.u32 %d, %w;", {0xffff0001, 0x8000fffe, 0, 0xffff0001});
    HOLDS("min.relu.s16x2 %w, %x, %y; cvt.u64.u32 %d, %w;", {0xffff0005, 0x80000007, 0, 5});
    HOLDS("min.relu.s32 %w, %x, %y; cvt.u64.u32 %d, %w;", {0xfffffff0, 5, 0, 0}, {3, 5, 0, 3});
    HOLDS("add.cc.u32 %w, %x, -1; madc.hi.u16 %v, %s, %t, %u; cvt.u64.u16 %d, %v;",
          {0xffff, 0xffff, 0, 0xffff}, {2, 3, 4, 5});
    HOLDS("add.cc.u32 %w, %x, -1; madc.hi.s16 %v, %s, %t, %u; cvt.u64.u16 %d, %v;",
          {0xffff, 2, 0, 0});
}

TEST(fns_finds_the_nth_set_bit) {
    static const struct row rows[] = {
        {0xaaaaaaaa, 3, 1, 3},           {0xaaaaaaaa, 3, (uint32_t)-1, 3},
        {0xaaaaaaaa, 3, 0, 3},           {0xaaaaaaaa, 4, 0, UINT32_MAX},
        {0xaaaaaaaa, 3, 2, 5},           {0xaaaaaaaa, 3, (uint32_t)-2, 1},
        {0xaaaaaaaa, 31, 2, UINT32_MAX}, {0xffffffff, 32, 1, UINT32_MAX},
        {1, 31, (uint32_t)-1, 0},        {0xffffffff, 0, 0x80000000, 0}};
    ROWS_HOLD("fns.b32 %w, %x, %y, %z; cvt.u64.u32 %d, %w;", rows);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Vectors of atomic operations and registers of 128 bits are newer than the other tests. */
#define NEW_HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"
#define HEAD                                                                                       \
    NEW_HEAD                                                                                       \
    ".visible .entry k(.param .u64 at, .param .u64 out) {\n"                                       \
    ".reg .b64 p, o, a, b, c, d, e, f; .reg .b32 i, w<8>, x<8>; .reg .b16 h<9>, g<9>;\n"           \
    ".reg .b128 q<4>; .reg .f32 r<5>; .reg .pred t;\n"                                             \
    "ld.param.u64 p, [at]; ld.param.u64 o, [out]; mov.u32 i, %tid.x;\n"
#define TAIL "ret; }\n"

/* Runs one block of threads on 4096 bytes of memory and as many of output, on each level. */
static void run(const char *text, unsigned threads, unsigned char *memory, unsigned char *out,
                const unsigned char *begin,
                void (*check)(const unsigned char *memory, const unsigned char *out)) {
    FOR_EACH_LEVEL(level) {
        memcpy(memory, begin, 4096);
        memset(out, 0xee, 4096);
        struct kernel kernel = KERNEL_WITH(text, (enum sg_level)level, 1, threads, memory, out);
        kernel_succeeds(&kernel);
        check(memory, out);
        kernel_free(&kernel);
    }
}

static _Alignas(64) unsigned char memory[4096], out[4096], begin[4096];

static uint64_t word(const unsigned char *from, size_t at) {
    uint64_t value;
    memcpy(&value, from + 8 * at, sizeof value);
    return value;
}

/* Each thread's own 16 bytes, exchanged, then compared and set where they are what they were. */
static void exchanged(const unsigned char *after, const unsigned char *seen) {
    for (size_t i = 0; i < 32; i++) {
        assert_int_equal(word(seen, 4 * i), word(begin, 2 * i));
        assert_int_equal(word(seen, 4 * i + 1), word(begin, 2 * i + 1));
        assert_int_equal(word(seen, 4 * i + 2), i);
        assert_int_equal(word(seen, 4 * i + 3), i + 100);
        assert_int_equal(word(after, 2 * i), i % 2 ? i : i + 1000);
        assert_int_equal(word(after, 2 * i + 1), i % 2 ? i + 100 : 77);
    }
}

TEST(atomics_exchange_and_compare_128_bits) {
    for (size_t i = 0; i < sizeof begin; i++)
        begin[i] = (unsigned char)(i * 7 + 3);
    run(HEAD "mad.wide.u32 p, i, 16, p; mad.wide.u32 o, i, 32, o;\n"
             "cvt.u64.u32 a, i; add.u64 b, a, 100; mov.b128 q0, {a, b};\n"
             "atom.global.exch.b128 q1, [p], q0; st.global.b128 [o], q1;\n"
             /* odd threads compare with something else */
             "and.b64 c, a, 1; add.u64 c, c, a; mov.b128 q2, {c, b};\n"
             "add.u64 d, a, 1000; mov.u64 e, 77; mov.b128 q3, {d, e};\n"
             "atom.relaxed.gpu.global.cas.b128 q1, [p], q2, q3; st.global.b128 [o+16], q1;\n" TAIL,
        32, memory, out, begin, exchanged);
}

static void counted(const unsigned char *after, const unsigned char *seen) {
    assert_int_equal(word(after, 0), 256);
    assert_int_equal(word(after, 1), 512);
}

/* 256 threads add to one pair by compare and swap; half of a pair would break the sum. */
TEST(concurrent_128_bit_compare_and_swap_is_atomic) {
    memset(begin, 0, sizeof begin);
    run(HEAD "ld.relaxed.gpu.global.b128 q0, [p];\n"
             "again: mov.b128 {a, b}, q0; add.u64 c, a, 1; add.u64 d, b, 2; mov.b128 q1, {c, d};\n"
             "atom.global.cas.b128 q2, [p], q0, q1; mov.b128 {e, f}, q2; mov.b128 q0, q2;\n"
             "setp.ne.u64 t, e, a; @t bra again; setp.ne.u64 t, f, b; @t bra again;\n" TAIL,
        256, memory, out, begin, counted);
}

static void kept_in_shared(const unsigned char *after, const unsigned char *seen) {
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(word(seen, 2 * i), 63 - i);
        assert_int_equal(word(seen, 2 * i + 1), (63 - i) * 3);
    }
}

TEST(every_space_holds_128_bit_values) {
    run(HEAD
        ".shared .align 16 .b8 s[1024]; .local .align 16 .b8 l[16]; .reg .b32 y;\n"
        "cvt.u64.u32 a, i; mul.lo.u64 b, a, 3; mov.b128 q0, {a, b}; shl.b32 w0, i, 4;\n"
        "mov.u32 y, s; add.u32 w1, y, w0; st.local.b128 [l], q0; ld.local.b128 q1, [l];\n"
        "st.release.cta.shared.b128 [w1], q1; bar.sync 0; sub.u32 w2, 63, i; shl.b32 w2, w2, 4;\n"
        "add.u32 w2, w2, y; ld.acquire.cta.shared.b128 q2, [w2];\n"
        "mad.wide.u32 o, i, 16, o; st.relaxed.sys.global.b128 [o], q2;\n" TAIL,
        64, memory, out, begin, kept_in_shared);
}

static void summed(const unsigned char *after, const unsigned char *seen) {
    float sums[4], old[4];
    memcpy(sums, after, sizeof sums);
    for (int k = 0; k < 4; k++)
        assert_true(sums[k] == (float)(32 * (k + 1)));
    for (int i = 0; i < 32; i++) { /* in the order of the lanes */
        memcpy(old, seen + 16 * i, sizeof old);
        for (int k = 0; k < 4; k++)
            assert_true(old[k] == (float)(i * (k + 1)));
    }
    uint16_t halves[8];
    memcpy(halves, after + 64, sizeof halves);
    for (int k = 0; k < 8; k++)
        assert_int_equal(halves[k], k % 2 ? 0xcf80 : 0x4f80); /* 30, -30 */
    uint32_t pairs[2];
    memcpy(pairs, after + 128, sizeof pairs);
    assert_int_equal(pairs[0], 0x43003d80); /* 2.5 and 0.375, and 1 more */
    assert_int_equal(pairs[1], 0x3c004000);
}

TEST(vector_atomics_add_each_element) {
    memset(begin, 0, sizeof begin);
    static const uint32_t pairs[] = {0x41003600, 0x3c004000};
    memcpy(begin + 128, pairs, sizeof pairs);
    run(HEAD "mad.wide.u32 o, i, 16, o;\n"
             "mov.f32 r0, 0f3F800000; mov.f32 r1, 0f40000000; mov.f32 r2, 0f40400000;\n"
             "mov.f32 r3, 0f40800000;\n"
             "atom.global.v4.f32.add {r0, r1, r2, r3}, [p], {r0, r1, r2, r3};\n"
             "st.global.v4.f32 [o], {r0, r1, r2, r3};\n"
             /* f16: the greatest of the numbers of lanes, and the least of their contraries */
             "cvt.rn.f16.u32 h0, i; neg.f16 h1, h0; mov.b16 h7, 0x7c00; mov.b16 h8, 0xfc00;\n"
             "setp.gt.u32 t, i, 30; @t bra over;\n"
             "red.global.v8.f16.max.noftz [p+64], {h0, h8, h0, h8, h0, h8, h0, h8};\n"
             "red.global.v8.f16.min.noftz [p+64], {h7, h1, h7, h1, h7, h1, h7, h1};\n"
             "over: setp.ne.u32 t, i, 3; @t bra end;\n"
             "mov.b32 w0, 0x3c003c00; mov.b32 w1, 0;\n"
             "red.global.add.noftz.v2.f16x2 [p+128], {w0, w1}; end:\n" TAIL,
        32, memory, out, begin, summed);
}

/* ---- alloca ---------------------------------------------------------------------------------- */

static void allocated(const unsigned char *after, const unsigned char *seen) {
    for (size_t i = 0; i < 32; i++) {
        assert_int_equal(word(seen, 4 * i), i * 11 + 5); /* written, and read after a call */
        assert_int_equal(word(seen, 4 * i + 1), i + 1);  /* what the callee kept in its own */
        assert_int_equal(word(seen, 4 * i + 2), 0);      /* the callee gave its own back */
        assert_int_equal(word(seen, 4 * i + 3) % 64, 0); /* aligned */
    }
}

static const char allocates[] = NEW_HEAD
    ".func (.param .u64 r) inner(.param .u64 n) {\n"
    ".reg .b64 a, n1, v; .reg .pred t; ld.param.u64 n1, [n]; add.u64 v, n1, 1; and.b64 n1, n1, "
    "31;\n"
    "add.u64 n1, n1, 8; alloca.u64 a, n1, 16; st.local.u64 [a], v; ld.local.u64 v, [a];\n"
    "st.param.u64 [r], v; setp.lt.u64 t, n1, 20; @t ret;\nret; }\n"
    ".visible .entry k(.param .u64 at, .param .u64 out) {\n"
    ".reg .b64 o, a, b, c, n, before, behind, v, size; .reg .b32 i; .param .u64 pn; .param .u64 "
    "pr;\n"
    "ld.param.u64 o, [out]; mov.u32 i, %tid.x; mad.wide.u32 o, i, 32, o; cvt.u64.u32 n, i;\n"
    "mad.lo.u64 v, n, 11, 5; add.u64 size, n, 8; alloca.u64 a, size, 64; st.local.u64 [a], v;\n"
    "stacksave.u64 before; st.param.u64 [pn], n; call (pr), inner, (pn); ld.param.u64 b, [pr];\n"
    "stacksave.u64 behind; sub.u64 c, before, behind; ld.local.u64 v, [a];\n"
    "st.global.v2.u64 [o], {v, b}; st.global.v2.u64 [o+16], {c, a}; ret; }\n";

TEST_IS(alloca_gives_each_thread_its_own_memory, run(allocates, 32, memory, out, begin, allocated));

/* stackrestore gives all back that came after stacksave: the loop would need 64 KiB else. */
static void looped(const unsigned char *after, const unsigned char *seen) {
    assert_int_equal(word(seen, 0), 999);
}

TEST(stackrestore_frees_allocations) {
    run(HEAD
        "mov.u64 c, 0;\nmore: stacksave.u64 b; alloca.u64 a, 64; st.local.u64 [a+56], c;\n"
        "ld.local.u64 d, [a+56]; stackrestore.u64 b; add.u64 c, c, 1; setp.lt.u64 t, c, 1000;\n"
        "@t bra more; st.global.u64 [o], d;\n" TAIL,
        1, memory, out, begin, looped);
}

TEST(alloca_beyond_the_stack_is_a_fault) {
    static const char *const texts[] = {
        HEAD "alloca.u64 a, 4000;\n" TAIL,
        HEAD "mov.u64 b, -8; alloca.u64 a, b;\n" TAIL,
        HEAD "more: alloca.u64 a, 16; bra more;\n" TAIL,
        HEAD "mov.u64 b, 0; stackrestore.u64 b; mov.u64 b, 1; shl.b64 b, b, 40;\n"
             "stackrestore.u64 b;\n" TAIL,
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct kernel kernel;
        kernel_make(&kernel, texts[i], SG_LEVEL_GENERIC);
        kernel_pointer(&kernel, memory);
        kernel_pointer(&kernel, out);
        assert_int_equal(kernel_run(&kernel, 0).kind, SG_FAULT_STACK);
        kernel_free(&kernel);
    }
}

/* ---- others ---------------------------------------------------------------------------------- */

TEST(special_registers_are_converted) {
    HOLDS("cvt.u64.u32 %d, %tid.x; mul.lo.u64 %d, %d, 0x1000; cvt.u16.u32 %v, %tid.x;\n"
          "cvt.u64.u16 %a, %v; add.u64 %d, %d, %a; mov.u32 %w, %pm0; cvt.u64.u32 %a, %w;\n"
          "add.u64 %d, %d, %a;",
          {0, 0, 0, 0}, {0, 0, 0, 0x1001}, {0, 0, 0, 0x2002});
    HOLDS("{ .reg .v4 .u32 v; mov.v4.u32 v, %tid; add.u32 %w, v.x, v.y; add.u32 %w, %w, v.z;\n"
          "cvt.u64.u32 %d, %w; }",
          {0, 0, 0, 0}, {0, 0, 0, 1});
}

TEST(saturating_conversions_of_integers_clamp_to_one) {
    HOLDS("{ .reg .f32 f; cvt.rn.ftz.sat.f32.s32 f, %x; mov.b32 %w, f; cvt.u64.u32 %d, %w; }",
          {5, 0, 0, 0x3f800000}, {0, 0, 0, 0}, {0x80000000, 0, 0, 0});
    HOLDS("cvt.rz.sat.f16.u32 %v, %x; cvt.u64.u16 %d, %v;", {7, 0, 0, 0x3c00}, {0, 0, 0, 0});
}

TEST(misaligned_128_bit_accesses_are_faults) {
    static const char *const texts[] = {
        HEAD "st.global.b128 [p+8], q0;\n" TAIL,
        HEAD "ld.relaxed.gpu.global.b128 q0, [p+8];\n" TAIL,
        HEAD "atom.global.exch.b128 q0, [p+8], q1;\n" TAIL,
        HEAD "red.global.v4.f32.add [p+8], {r0, r1, r2, r3};\n" TAIL,
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct kernel kernel;
        kernel_make(&kernel, texts[i], SG_LEVEL_GENERIC);
        kernel_pointer(&kernel, memory);
        kernel_pointer(&kernel, out);
        assert_int_equal(kernel_run(&kernel, 0).kind, SG_FAULT_MISALIGNED);
        kernel_free(&kernel);
    }
}
