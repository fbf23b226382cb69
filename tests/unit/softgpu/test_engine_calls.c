/* Parameters and results of calls: of all sizes, in memory on one side and in registers on the
 * other, through registers with a target that fits or does not. */
#include "kernel.h"

#define HEAD                                                                                       \
    ".version 8.3\n.target sm_90\n.address_size 64\n"                                              \
    ".func (.reg .b128 r) quad(.reg .b128 a, .reg .v2 .b32 b) { .reg .b64 x, y;\n"                 \
    "mov.b128 {x, y}, a; cvt.u64.u32 y, b.y; mov.b128 r, {y, x}; }\n"                              \
    ".func (.param .b32 r) twice(.param .b32 a) { .reg .b32 t; ld.param.b32 t, [a];\n"             \
    "add.u32 t, t, t; st.param.b32 [r], t; ret; }\n"                                               \
    ".func (.reg .b32 r) sum(.reg .b32 a, .reg .b64 b) { .reg .b32 t;\n"                           \
    "cvt.u32.u64 t, b; add.u32 r, a, t; ret; }\n"                                                  \
    ".func (.reg .pred r) odd(.reg .b16 a) { .reg .b16 t; and.b16 t, a, 1;\n"                      \
    "setp.ne.u16 r, t, 0; ret; }\n"                                                                \
    ".func (.reg .b16 r) more(.reg .b16 a) { add.u16 r, a, 258; ret; }\n"                          \
    ".func (.param .align 16 .b8 r[16]) turn(.param .align 16 .b8 a[24]) {\n"                      \
    ".reg .b64 x, y, z; ld.param.v2.b64 {x, y}, [a]; ld.param.b64 z, [a+16];\n"                    \
    "add.u64 x, x, z; st.param.v2.b64 [r], {y, x}; ret; }\n"                                       \
    ".func (.param .b8 r) byte(.param .b8 a, .param .b16 b) { .reg .b16 s, t;\n"                   \
    "ld.param.u8 s, [a]; ld.param.u16 t, [b]; add.u16 s, s, t;\n"                                  \
    "st.param.b8 [r], s; ret; }\n"                                                                 \
    ".visible .entry k(.param .u64 out) {\n"                                                       \
    ".reg .b128 q4; .reg .v2 .b32 v;\n"                                                            \
    "P3: .callprototype (.reg .b128 _) _ (.reg .b128 _, .reg .v2 .b32 _);\n"                       \
    ".reg .b64 o, f, g, x, y; .reg .b32 i, j, m; .reg .b16 h, s; .reg .pred p, q;\n"               \
    ".param .b32 pa; .param .b32 pr; .param .b64 pw; .param .align 16 .b8 p24[24];\n"              \
    ".param .align 16 .b8 p16[16]; .param .b8 pb; .param .b16 ph; .param .b8 pc;\n"                \
    "P1: .callprototype (.param .b32 _) _ (.param .b32 _);\n"                                      \
    "P2: .callprototype (.param .align 16 .b8 _[16]) _ (.param .align 16 .b8 _[24]);\n"            \
    "ld.param.u64 o, [out]; mov.u32 i, %tid.x; mad.wide.u32 o, i, 16, o;\n"                        \
    "cvt.u16.u32 h, i; cvt.u64.u32 x, i; mov.u64 y, 0;\n"
#define TAIL "\nst.global.v2.u64 [o], {x, y}; ret; }\n"

static struct sg_grid_fault run(const char *body, enum sg_level level, uint64_t *out) {
    struct kernel kernel;
    char *text = malloc(strlen(body) + sizeof HEAD + sizeof TAIL);
    assert_non_null(text);
    strcpy(text, HEAD);
    strcat(text, body);
    strcat(text, TAIL);
    kernel_make(&kernel, text, level);
    kernel_pointer(&kernel, out);
    struct sg_grid_fault fault = kernel_run(&kernel, 0);
    kernel_free(&kernel);
    free(text);
    return fault;
}

static void gives(const char *body, uint64_t (*first)(uint64_t), uint64_t (*second)(uint64_t)) {
    FOR_EACH_LEVEL(level) {
        static uint64_t out[64];
        memset(out, 0xee, sizeof out);
        assert_int_equal(run(body, (enum sg_level)level, out).kind, SG_FAULT_COUNT);
        for (uint64_t i = 0; i < 32; i++)
            if (out[2 * i] != first(i) || (second && out[2 * i + 1] != second(i)))
                fail_msg("%s, thread %u: %llx, %llx", body, (unsigned)i,
                         (unsigned long long)out[2 * i], (unsigned long long)out[2 * i + 1]);
    }
}

static uint64_t doubled(uint64_t i) {
    return 2 * i;
}
static uint64_t and_hundred(uint64_t i) {
    return i + 100;
}
static uint64_t last_bit(uint64_t i) {
    return i & 1;
}
static uint64_t more(uint64_t i) {
    return i + 258;
}
static uint64_t seven_more(uint64_t i) {
    return i + 7;
}
static uint64_t same(uint64_t i) {
    return i;
}
static uint64_t nines(uint64_t i) {
    return 9 * i;
}
static uint64_t byte_sum(uint64_t i) {
    return (i + 250) & 255;
}

TEST(a_call_may_mix_register_and_memory_parameters) {
    gives("call (j), twice, (i); cvt.u64.u32 x, j;", doubled, NULL);
    gives("st.param.b32 [pa], i; call (j), twice, (pa); cvt.u64.u32 x, j;", doubled, NULL);
    gives("call (pr), twice, (i); ld.param.b32 j, [pr]; cvt.u64.u32 x, j;", doubled, NULL);
    gives("st.param.b32 [pa], i; st.param.b64 [pw], 100; call (pr), sum, (pa, pw);\n"
          "ld.param.b32 j, [pr]; cvt.u64.u32 x, j;",
          and_hundred, NULL);
    gives("mov.u64 y, 100; call (j), sum, (i, y); cvt.u64.u32 x, j;", and_hundred, NULL);
    gives("call (p), odd, (h); selp.u64 x, 1, 0, p;", last_bit, NULL);
}

TEST(parameters_of_all_sizes_keep_their_bytes) {
    gives("mul.lo.u64 y, x, 9; st.param.v2.b64 [p24], {x, y}; st.param.b64 [p24+16], 7;\n"
          "call (p16), turn, (p24); ld.param.v2.b64 {y, x}, [p16];",
          seven_more, nines);
    gives("mov.u16 s, 250; st.param.b8 [pb], h; st.param.b16 [ph], s; call (pc), byte, (pb, ph);\n"
          "ld.param.u8 s, [pc]; cvt.u64.u16 x, s;",
          byte_sum, NULL);
}

/* What no register holds whole, by name, through a register, and for some lanes. */
TEST(vectors_and_128_bits_are_passed_in_registers) {
    gives("mov.b128 q4, {x, y}; mov.b32 v.x, 5; add.u32 v.y, i, 7; call (q4), quad, (q4, v);\n"
          "mov.b128 {x, y}, q4; sub.u64 y, y, 0;",
          seven_more, same);
    gives("mov.u64 f, quad; mov.b128 q4, {x, y}; add.u32 v.y, i, 7; call (q4), f, (q4, v), P3;\n"
          "mov.b128 {x, y}, q4;",
          seven_more, same);
    gives("and.b32 j, i, 1; setp.ne.u32 p, j, 0; add.u32 v.y, i, 7; add.u64 y, x, 7;\n"
          "mov.b128 q4, {y, x}; @!p mov.b128 {y, f}, q4; @!p mov.b128 q4, {x, y};\n"
          "@!p call (q4), quad, (q4, v); mov.b128 {x, y}, q4;",
          seven_more, same);
}

TEST(indirect_calls_pass_parameters_and_results) {
    gives("mov.u64 f, twice; st.param.b32 [pa], i; call (pr), f, (pa), P1;\n"
          "ld.param.b32 j, [pr]; cvt.u64.u32 x, j;",
          doubled, NULL);
    gives("mov.u64 f, twice; call (j), f, (i), P1; cvt.u64.u32 x, j;", doubled, NULL);
    gives("mov.u64 f, turn; mul.lo.u64 y, x, 9; st.param.v2.b64 [p24], {x, y};\n"
          "st.param.b64 [p24+16], 7; call (p16), f, (p24), P2; ld.param.v2.b64 {y, x}, [p16];",
          seven_more, nines);
}

/* The target has other parameters than the call: nothing is read or written where nothing is. */
TEST(an_indirect_call_with_mismatched_parameters_is_a_fault) {
    static const char *const bodies[] = {
        "mov.u64 f, turn; st.param.b32 [pa], i; call (pr), f, (pa), P1;",
        "mov.u64 f, sum; st.param.b32 [pa], i; call (pr), f, (pa), P1;",
        "mov.u64 f, twice; call (p16), f, (p24), P2;",
        "mov.u64 f, byte; st.param.b32 [pa], i; call (pr), f, (pa), P1;",
        "mov.u64 f, 64; st.param.b32 [pa], i; call (pr), f, (pa), P1;",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        static uint64_t out[64];
        struct sg_grid_fault fault = run(bodies[i], SG_LEVEL_GENERIC, out);
        if (fault.kind != SG_FAULT_INSTRUCTION)
            fail_msg("%s: %s", bodies[i], sg_fault_name(fault.kind));
    }
}

/* Each lane has its own two bytes: in a register, in memory, and with every other lane away. */
TEST(parameters_of_16_bits_keep_to_their_lanes) {
    gives("call (s), more, (h); cvt.u64.u16 x, s;", more, NULL);
    gives("st.param.b16 [ph], h; call (s), more, (ph); cvt.u64.u16 x, s;", more, NULL);
    gives("call (ph), more, (h); ld.param.u16 s, [ph]; cvt.u64.u16 x, s;", more, NULL);
    gives("and.b32 j, i, 1; setp.ne.u32 p, j, 0; add.u16 s, h, 258; @p call (s), more, (h);\n"
          "cvt.u64.u16 x, s;",
          more, NULL);
}
