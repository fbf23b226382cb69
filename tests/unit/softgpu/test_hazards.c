/* Hazards as text and as JSON, whatever names hold; runs of bits; which array an access means. */
#include "kernel.h"

#include "softgpu/check/bits.h"
#include "softgpu/check/report.h"
#include "softgpu/check/spans.h"

static struct sg_hazard hazard_of(const char *name) {
    return (struct sg_hazard){.check = "race",
                              .kind = "write-write",
                              .level = SG_HAZARD_WARNING,
                              .what = "two writes",
                              .has_address = true,
                              .write = true,
                              .space = "shared",
                              .address = 24,
                              .size = 8,
                              .place = {.kernel = name,
                                        .function = "f",
                                        .line = 3,
                                        .text = "st.shared",
                                        .file = "a.cu",
                                        .source_line = 9,
                                        .block = {1, 2, 3},
                                        .thread = {4, 5, 6}},
                              .other = {.kernel = "k", .line = 8, .thread = {7}},
                              .other_says = "written by",
                              .details = "  more\n"};
}

TEST(a_hazard_with_two_places_is_printed_as_text) {
    struct sg_hazard hazard = hazard_of("k");
    char *text = sg_hazard_text(&hazard, 12);
    assert_string_equal(text,
                        "softgpu: warning 12 (race, write-write): kernel k: two writes: write of 8 "
                        "bytes at offset 24 of shared memory\n"
                        "    at a.cu:9\n"
                        "    PTX line 3: st.shared\n"
                        "    in function f\n"
                        "    block 1,2,3 thread 4,5,6\n"
                        "  written by kernel k\n"
                        "    PTX line 8\n"
                        "    block 0,0,0 thread 7,0,0\n"
                        "  more\n");
    free(text);
}

TEST(a_hazard_with_two_places_is_printed_as_json) {
    struct sg_hazard hazard = hazard_of("a\"b\\c\n\x01\xc3\xa4\xff");
    char *text = sg_hazard_json(&hazard, 1);
    assert_string_equal(
        text, "{\"hazard\":1,\"check\":\"race\",\"kind\":\"write-write\",\"level\":\"warning\","
              "\"what\":\"two writes\",\"address\":\"0x18\",\"space\":\"shared\",\"size\":8,"
              "\"write\":true,\"place\":{\"kernel\":"
              "\"a\\\"b\\\\c\\u000a\\u0001\xc3\xa4\\\\xff\",\"function\":\"f\",\"ptx_line\":3,"
              "\"ptx\":\"st.shared\",\"file\":\"a.cu\",\"line\":9,\"block\":[1,2,3],"
              "\"thread\":[4,5,6]},\"other\":{\"kernel\":\"k\",\"ptx_line\":8,\"block\":[0,0,0],"
              "\"thread\":[7,0,0]},\"other_says\":\"written by\",\"details\":\"  more\\u000a\"}\n");
    free(text);
}

/* Compilers write calls in several lines. */
TEST(a_multi_line_ptx_statement_prints_as_one_line) {
    static const char ptx[] =
        "a;\n\tcall.uni \n\tf, \n\t(\n\tp0,\n\tp1\n\t);\r\n  { ret; // it\n\nb";
    static const struct {
        uint32_t line;
        const char *text;
    } cases[] = {{1, "a;"},        {2, "call.uni f, ( p0, p1 );"},
                 {5, "p0, p1 );"}, {8, "{ ret; // it"},
                 {9, ""},          {10, "b"},
                 {11, ""},         {0, ""}};
    char text[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sg_ptx_line(ptx, cases[i].line, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
    for (size_t size = 1; size < sizeof text; size++) {
        sg_ptx_line(ptx, 2, text, size);
        assert_int_equal(strlen(text), size < 24 ? size - 1 : 23);
    }
    sg_ptx_line(NULL, 2, text, sizeof text);
    assert_string_equal(text, "");
}

TEST(a_long_kernel_name_is_not_truncated) {
    char name[5000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    struct sg_hazard hazard = hazard_of(name);
    char *text = sg_hazard_text(&hazard, 1);
    assert_non_null(strstr(text, name));
    assert_non_null(strstr(text, "  more\n"));
    free(text);
}

TEST(kernel_globs_match_names) {
    assert_true(sg_globs_match(NULL, "k"));
    assert_true(sg_globs_match("", "k"));
    assert_true(sg_globs_match("a,k*,b", "kernel"));
    assert_true(sg_globs_match(",,kernel", "kernel"));
    assert_false(sg_globs_match("a,b", "kernel"));
    assert_false(sg_globs_match("kern", "kernel"));
}

/* Each run of each length, compared with bits one by one. */
TEST(runs_of_bits_are_set_and_found) {
    for (size_t at = 0; at < 130; at++)
        for (size_t size = 0; at + size < 192; size++) {
            uint64_t bits[3] = {0};
            sg_bits_set(bits, at, size, true);
            for (size_t i = 0; i < 192; i++)
                assert_int_equal(sg_bit(bits, i), i >= at && i < at + size);
            assert_int_equal(sg_bits_first(bits, at, size, false), size);
            assert_int_equal(sg_bits_first(bits, 0, 192, true), size ? at : 192);
            if (size)
                assert_int_equal(sg_bits_first(bits, at, 192 - at, false), size);
            sg_bits_set(bits, at, size, false);
            assert_true(!bits[0] && !bits[1] && !bits[2]);
        }
}

/* Which variable the stores to shared and local memory mean, in their order; "-": not known. */
static void means(const char *body, const char *expected) {
    struct kernel kernel;
    char text[2048], got[256] = "";
    snprintf(text, sizeof text,
             KERNEL_HEAD ".visible .entry k(.param .u64 p) {\n"
                         ".shared .align 8 .b8 a[64]; .shared .align 8 .b8 b[64];\n"
                         ".local .align 8 .b8 l[64]; .reg .pred %%p; .reg .b32 %%r<9>;\n"
                         ".reg .b64 %%d<9>;\n%s ret; }\n",
             body);
    kernel_read(&kernel, text);
    uint32_t *spans = sg_spans_of(kernel.program);
    for (size_t i = 0; i < kernel.program->instruction_count; i++)
        if (kernel.program->instructions[i].op == SG_OP_st) {
            uint32_t what = spans[i];
            strcat(got, what == SG_SPAN_UNKNOWN ? "-" : kernel.program->variables[what].name);
        }
    if (strcmp(got, expected) != 0)
        fail_msg("%s: %s, not %s", body, got, expected);
    free(spans);
    kernel_free(&kernel);
}

TEST(an_access_is_attributed_to_its_array) {
    means("st.shared.u32 [a+4], 1; st.local.u32 [l], 1;", "al");
    means("mov.u32 %r1, a; mov.u32 %r2, %tid.x; shl.b32 %r2, %r2, 2; add.u32 %r3, %r1, %r2;\n"
          "st.shared.u32 [%r3+4], 1;",
          "a");
    /* A loop: the register goes on holding what it began with. */
    means("mov.u32 %r1, b; mov.u32 %r2, 0; L: st.shared.u32 [%r1], 1; add.u32 %r1, %r1, 4;\n"
          "add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, 9; @%p bra L;",
          "b");
    /* Either of two. */
    means("mov.u32 %r1, a; mov.u32 %r2, b; setp.eq.u32 %p, %r3, 0; selp.b32 %r4, %r1, %r2, %p;\n"
          "st.shared.u32 [%r4], 1;",
          "-");
    /* Generic addresses, and what was kept elsewhere meanwhile. */
    means("mov.u64 %d1, l; cvta.local.u64 %d2, %d1; st.u32 [%d2], 1;", "l");
    means("mov.u64 %d1, l; st.local.u64 [l], %d1; ld.local.u64 %d2, [l]; st.local.u32 [%d2], 1;",
          "l-");
    /* The difference of two addresses is none. */
    means("mov.u32 %r1, a; mov.u32 %r2, b; sub.u32 %r3, %r1, %r2; add.u32 %r4, %r3, %r2;\n"
          "st.shared.u32 [%r4], 1;",
          "-");
    means("ld.param.u64 %d1, [p]; st.global.u32 [%d1], 1;", "-");
}

/* In a called function: what callers hand over may be any address, also one of its own. */
TEST(accesses_in_called_functions_are_attributed_to_arrays) {
    struct kernel kernel;
    kernel_read(&kernel, KERNEL_HEAD
                ".func f(.reg .b64 %a, .param .b64 b) {\n"
                ".local .align 8 .b8 l[64]; .reg .pred %p; .reg .b64 %d<9>;\n"
                "mov.u64 %d1, l; ld.param.b64 %d2, [b]; setp.eq.u64 %p, %d2, 0;\n"
                "st.local.u32 [l+4], 1; shl.b64 %d3, %d2, 3; add.u64 %d4, %d1, %d3;\n"
                "st.local.u32 [%d4], 1; selp.b64 %d5, %d1, %a, %p; st.local.u32 [%d5], 1;\n"
                "selp.b64 %d6, %d1, %d2, %p; st.local.u32 [%d6], 1; ret; }\n"
                ".visible .entry k() { { .param .b64 b; st.param.b64 [b], 1;\n"
                "call.uni f, (0, b); } ret; }\n");
    const struct sg_program *program = kernel.program;
    uint32_t *spans = sg_spans_of(program), function = program->function_count > 1;
    char got[64] = "";
    for (size_t i = 0; i < program->instruction_count; i++)
        if (program->instructions[i].op == SG_OP_st &&
            program->instructions[i].space == SG_IN_LOCAL)
            strcat(got, spans[i] == SG_SPAN_UNKNOWN ? "-" : program->variables[spans[i]].name);
    assert_string_equal(got, "ll--");
    assert_true(sg_span_has_frame(program, function));
    assert_false(sg_span_has_frame(program, 0));
    uint64_t start = 0;
    while (sg_span_in_frame(program, function, start, 1) == SG_SPAN_UNKNOWN)
        start++;
    uint32_t all = sg_span_in_frame(program, function, start, 64);
    assert_string_equal(program->variables[all].name, "l");
    assert_int_equal(sg_span_in_frame(program, function, start, 65), SG_SPAN_UNKNOWN);
    assert_int_equal(sg_span_in_frame(program, 0, start, 1), SG_SPAN_UNKNOWN);
    free(spans);
    kernel_free(&kernel);
}
