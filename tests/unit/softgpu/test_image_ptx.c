/* PTX text: what is taken, what is refused with which error, and what the values in it are. */
#include "softgpu/binary/read.h"
#include "softgpu/image/image.h"
#include "softgpu/ptx/ptx.h"

#include "test.h"

#define HEAD    ".version 8.0\n.target sm_90\n.address_size 64\n"
#define ENTRY   ".visible .entry k() { ret; }\n"
#define BODY(x) HEAD ".visible .entry k()\n{\n" x "\n}\n"

static const struct sg_image_options h200 = {
    .architecture = 90, .suffix = 'a', .newest_ptx = 90, .prefer_machine = true};

static char error[600];

static CUresult try_with(const struct sg_image_options *options, const char *text,
                         struct sg_image **image) {
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    error[0] = '\0';
    *image = NULL;
    CUresult result = sg_image_read(text, SIZE_MAX, options, &log, image);
    assert_true((result == CUDA_SUCCESS) == (*image != NULL));
    assert_true((result == CUDA_SUCCESS) == (error[0] == '\0'));
    return result;
}

static struct sg_image *taken(const char *text) {
    struct sg_image *image;
    if (try_with(&h200, text, &image) != CUDA_SUCCESS)
        fail_msg("%s\n%s", text, error);
    return image;
}

static void refused(const char *text, CUresult with) {
    struct sg_image *image;
    CUresult result = try_with(&h200, text, &image);
    sg_image_free(image);
    if (result != with)
        fail_msg("%d instead of %d for\n%s\n%s", (int)result, (int)with, text, error);
}

/* As recorded on an H200. */
TEST(text_that_does_not_begin_as_ptx_is_not_an_image) {
    static const char *const no_images[] = {"",
                                            "\n",
                                            "  \t\r\n",
                                            "// nothing\n",
                                            "/* open",
                                            "garbage",
                                            "0",
                                            ";",
                                            "\xff\xfe",
                                            "!<arch>\n",
                                            ".target sm_90",
                                            ".frobnicate",
                                            "\1\2\3",
                                            "\xef\xbb\xbf" HEAD ENTRY,
                                            ".VERSION 8.0\n",
                                            ENTRY};
    static const char *const wrong[] = {
        ".version",
        ".version 8",
        ".version x.y\n",
        ".version 8.0\n",
        ".version 8.0\n" ENTRY,
        ".version 8.0\n" HEAD,
        HEAD ".target sm_90\n",
        ".version 8.0\n.target sm_100\n.address_size 64\n" ENTRY,
        ".version 8.8\n.target sm_100\n.address_size 64\n" ENTRY,
        ".version 7.0\n.target sm_90\n" ENTRY,
        ".version 8.0\n.target sm_91\n",
        ".version 8.0\n.target sm_90f\n",
        ".version 8.0\n.target sm_90,\n" ENTRY,
        ".version 8.0\n.target sm_90, debug\n" ENTRY,
        ".version 8.0\n.target sm_90\n.address_size 32\n" ENTRY,
        ".version 1.4\n.target sm_10\n.address_size 64\n" ENTRY,
        "// caf\xc3\xa9\n" HEAD ENTRY,
        "/* first */\n /* caf\xc3\xa9 */ " HEAD ENTRY,
        "  // \xff",
    };
    static const char *const unsupported[] = {".version 0.0", ".version 7.9", ".version 8.9",
                                              ".version 9.1", ".version 99.9\n{{{"};
    for (size_t i = 0; i < sizeof no_images / sizeof no_images[0]; i++)
        refused(no_images[i], CUDA_ERROR_INVALID_IMAGE);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refused(wrong[i], CUDA_ERROR_INVALID_PTX);
    for (size_t i = 0; i < sizeof unsupported / sizeof unsupported[0]; i++)
        refused(unsupported[i], CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
}

TEST(modules_are_accepted_or_refused_by_their_directives) {
    static const char *const good[] = {
        HEAD,
        HEAD ENTRY,
        "// first\n/* second */ " HEAD ENTRY,
        ".version 8.0 .target sm_90 .address_size 64 .visible .entry k() { ret; }",
        ".version 8.0\n.target sm_90\n" ENTRY,
        ".version 8.0\n.target sm_90a, texmode_independent\n" ENTRY,
        ".version 1.4\n.target sm_10\n" ENTRY,
        HEAD ".visible .entry k { ret; }",
        HEAD ".visible .entry k();\n" ENTRY,
        HEAD ".entry add() { ret; }",
        HEAD ".entry $k() { ret; }",
        HEAD ".entry %k() { ret; }",
        HEAD ".extern .func f();\n" ENTRY,
        HEAD ".extern .func f()\n" ENTRY
             ".extern .func (.param .b32 r) g(.param .b32 a) .noreturn\n",
        HEAD ".func f()\n.file 1 \"a\"\n.global .u32 x;\n.func f() { ret; }\n",
        ".version 2.1\n.target sm_20\n.func f()\n.func g() { call f; ret; }\n.func f() { ret; }\n",
        HEAD ".func f() { ret; }\n.global .u64 x = f;\n",
        HEAD ".visible .func g();\n.visible .func f() { ret; }\n.alias g, f;\n" ENTRY,
        HEAD ".section .debug_str { .b8 0 { } }\n" ENTRY ".file 1 \"a.cu\", 5, 6\n",
        HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
             ".entry k() { { .param .b64 a; .param .b32 r; call.uni (r), vprintf, (a, a); } ret; }",
        HEAD ".reg .u32 r;\n.local .u32 l;\n" ENTRY,
        HEAD ".common .global .u32 x;\n.common .global .u32 x;\n",
        HEAD ".extern .global .u32 x[4];\n.extern .const .u32 y;\n" ENTRY,
        HEAD ".extern .global .u32 x[];\n.visible .global .u32 x[4];\n.extern .global .u32 x[4];\n",
        HEAD ".visible .global .u32 x<4>;\n.shared .u32 s<2>;\n.entry k() { .reg .u32 r;\n"
             "ld.global.u32 r, [x3]; ld.shared.u32 r, [s01]; ret; }\n",
        HEAD ".global .texref t = {filter_mode = linear, normalized_coords = 1, width = 4};\n",
        HEAD ".global .texref t = {};\n",
        HEAD ".global .surfref s = {width = 4, memory_layout = 1};\n",
        ".version 8.0\n.target sm_90, texmode_independent\n.global .samplerref s = "
        "{addr_mode_0 = clamp_ogl, filter_mode = 1, filter_mode = nearest};\n",
    };
    static const char *const bad[] = {
        HEAD "some words\n",
        HEAD ".visible .entry k() { ret;",
        HEAD ".visible .entry k();\n",
        HEAD ENTRY "}\n",
        HEAD "{ }\n",
        HEAD ENTRY ENTRY,
        HEAD ".extern .entry k() { ret; }\n",
        HEAD ".entry 9k() { ret; }\n",
        HEAD ".entry _() { ret; }\n",
        HEAD ".entry a.b() { ret; }\n",
        HEAD ".func f();\n" ENTRY,
        HEAD ".func f()\n" ENTRY,
        HEAD ".extern .func f() g\n" ENTRY,
        HEAD ".entry e()\n" ENTRY ".entry e() { ret; }\n",
        HEAD ".extern .func f();\n.entry k() { call f; ret; }\n",
        HEAD ".extern .func cudaLaunchDevice();\n.entry k() { call cudaLaunchDevice; ret; }\n",
        HEAD ".samplerref s;\n",
        HEAD ".global .samplerref s = {};\n",
        HEAD ".global .texref t = {addr_mode_3 = wrap};\n",
        HEAD ".global .texref t = {filter_mode = frob};\n",
        HEAD ".global .surfref s = {filter_mode = linear};\n",
        HEAD ".global .texref t = 1;\n",
        HEAD ".frob 5;\n",
        HEAD ".param .u32 x;\n",
        HEAD ".global .u32 x;\n.global .u32 x;\n",
        HEAD ".extern .global .u32 x[];\n" ENTRY,
        HEAD ".extern .const .u32 x[];\n" ENTRY,
        HEAD ".extern .global .u32 x[4];\n.visible .global .u32 x[8];\n",
        HEAD ".extern .global .u32 x;\n.extern .global .s32 x;\n",
        HEAD "// caf\xc3\xa9\n" ENTRY,
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        sg_image_free(taken(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refused(bad[i], CUDA_ERROR_INVALID_PTX);
}

TEST(bodies_are_accepted_or_refused_by_their_statements) {
    static const char *const good[] = {
        BODY(""),
        BODY("ret;"),
        BODY("{ { } } ret;"),
        BODY(".pragma \"nounroll\"; .loc 1 2 3\n ret;"),
        BODY(".loc 1 2 3, function_name $L_a + 4, inlined_at 1 5 6\n ret;"),
        BODY(".reg .b32 %r<10>; mov.u32 %r9, %tid.x; add.s32 %r1, %r2, -5; ret;"),
        BODY(".reg .b32 r1<5>; mov.u32 r14, 0x10; ret;"),
        BODY(".reg .pred p, q; .reg .u32 r; setp.eq.u32 p|q, r, 1; @!p bra L; L: ret;"),
        BODY("{ .reg .b32 a; mov.b32 a, 1; L: bra L; } { .reg .b64 a; L: bra L; } ret;"),
        BODY(".reg .b64 d; .reg .b32 a, b; mov.b64 d, {a, b}; mov.b64 {a, _}, d; ret;"),
        BODY(
            ".reg .v4 .f32 v; .reg .f32 f; mov.f32 f, v.x; fma.rn.f32 f, f, 0f3F800000, 1.5; ret;"),
        BODY(".shared .b8 s[4]; st.shared.u8 [s+2], 1; st.volatile.shared.u8 [s], 1; ret;"),
        BODY(".reg .b32 i; a: .branchtargets L, M; brx.idx i, a; L: M: ret;"),
        BODY(".reg .u32 x; .reg .pred p; bar.sync 0; bar.red.popc.u32 x, 0, p; ret;"),
        BODY(".reg .b32 r; .reg .f32 f; add.f32 r, r, f; mov.b32 r, f; max.f16x2 r, r, r;"),
        BODY(".reg .pred p, q; and.pred p, q, p; not.pred p, q; mov.pred p, q;"),
        BODY(".shared .b8 s[4]; .reg .b64 d; mov.u64 d, s; mov.u64 d, s+2; .reg .b32 r; mov.u32 r, "
             "s;"),
        BODY(".local .u32 l<3>, m<2>, n; .shared .v4 .u32 s<0>; .param .u64 p<2>; .reg .u64 d;\n"
             "{ .const .u32 x<2>; .const .u32 y = 4; .global .u64 z = y; ld.global.u64 d, [z]; }"),
        BODY("membar.gl; fence.acq_rel.gpu; griddepcontrol.wait; ret;"),
        BODY("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; trap; exit;"),
        BODY(".reg .b64 d; .reg .b32 r; call (r), d, (r, r), p; p: .callprototype (.param .b32 _) "
             "_ (.param .b32 _, .param .b32 _); ret;"),
    };
    static const char *const bad[] = {
        BODY("ret"),
        BODY("ret;;"),
        BODY(";"),
        BODY("rett;"),
        BODY("ret.frob;"),
        BODY("ret 5;"),
        BODY("mov.u32 %r1, 5;"),
        BODY(".reg .b32 %r<2>; mov.u32 %r2, 5;"),
        BODY(".local .u32 l<2>; st.local.u32 [l2], 1;"),
        BODY(".local .u32 l<2>; st.local.u32 [l], 1;"),
        BODY("{ .global .u32 x; } .reg .u64 d; mov.u64 d, x;"),
        BODY(".global .u32 x; .global .u64 x;"),
        BODY(".extern .global .u32 x;"),
        BODY(".global .texref x;"),
        BODY(".reg .b32 %r<4>; add.u32 %r1, %r2;"),
        BODY(".reg .b32 %r<4>; add.u32 %r1, %r2, %r3, %r1;"),
        BODY(".reg .b32 %r<4>; add %r1, %r2, %r3;"),
        BODY(".reg .b32 %r<4>; add.u32 %r1, , %r3;"),
        BODY(".reg .b32 %r<4>; add.u32 %r1, %r2, (%r3;"),
        BODY(".reg .b32 %r<4>; add.u32 %r1, %r2, %r3];"),
        BODY(".reg .b32 %r<4>; ld.u32 %r1, [];"),
        BODY(".reg .f32 %f<4>; div.f32 %f1, %f2, %f3;"),
        BODY(".reg .b64 %r<2>; mov.u32 %r1, 5;"),
        BODY(".reg .b64 d; .reg .b32 r; add.u32 r, r, d;"),
        BODY(".reg .b32 p; @p ret;"),
        BODY(".reg .pred p; .reg .b32 r; add.u32 r, p, r;"),
        BODY("bra nowhere;"),
        BODY("a: ret; a: ret;"),
        BODY("@%p1 ret;"),
        BODY(".frob 5; ret;"),
        BODY(".reg .u32 r; .reg .u32 r; ret;"),
        BODY("{ .reg .u32 r; } mov.u32 r, 1;"),
        BODY(".pragma \"nounroll; ret;"),
        BODY(".reg .b128 r; ret;"),
        BODY("ret; /* open"),
        BODY("}"),
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        sg_image_free(taken(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refused(bad[i], CUDA_ERROR_INVALID_PTX);
}

TEST(instructions_of_one_device_need_its_target) {
    /* clang-format off */
    static const char *const bodies[] = {
        "setmaxnreg.inc.sync.aligned.u32 64;", "wgmma.fence.sync.aligned;", "wgmma.wait_group.sync.aligned 0;",
        ".reg .b64 d; tensormap.replace.tile.global_address.global.b1024.b64 [d], d;",
    };
    /* clang-format on */
    static const char text[] =
        ".version 8.3\n.target %s\n.address_size 64\n.entry k() { %s ret; }\n";
    char of_all[300], of_one[300];
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        snprintf(of_all, sizeof of_all, text, "sm_90", bodies[i]);
        refused(of_all, CUDA_ERROR_INVALID_PTX);
        assert_non_null(strstr(error, "needs target sm_90a"));
        snprintf(of_one, sizeof of_one, text, "sm_90a", bodies[i]);
        sg_image_free(taken(of_one));
    }
}

/* Pairs of what ptxas refuses and what it takes: each neighbour differs in one thing. */
static const struct {
    const char *bad, *good;
} neighbours[] = {
    /* Types of registers. */
    {".reg .u32 r; add.f32 r, r, r;", ".reg .b32 r; add.f32 r, r, r;"},
    {".reg .u32 r; mov.f32 r, r;", ".reg .u32 r; mov.b32 r, r;"},
    {".reg .f32 f; mov.u32 f, f;", ".reg .f32 f; mov.b32 f, f;"},
    {".reg .f32 f; max.f16x2 f, f, f;", ".reg .b32 f; max.f16x2 f, f, f;"},
    {".reg .u32 r; mul.wide.u32 r, r, r;", ".reg .u64 d; .reg .u32 r; mul.wide.u32 d, r, r;"},
    {".reg .u64 d; popc.b64 d, d;", ".reg .u64 d; .reg .u32 r; popc.b64 r, d;"},
    {".reg .u64 d; shl.b64 d, d, d;", ".reg .u64 d; .reg .u32 r; shl.b64 d, d, r;"},
    {".reg .u32 r; setp.eq.u32 r, r, r;", ".reg .pred p; .reg .u32 r; setp.eq.u32 p, r, r;"},
    {".reg .u16 h; cvt.u32.u16 h, h;", ".reg .u16 h; .reg .u64 d; cvt.u32.u16 d, h;"},
    {".reg .b32 r; st.global.u64 [g], r;", ".reg .b64 d; st.global.u32 [g], d;"},
    {".reg .b16 h; ld.global.u32 h, [g];", ".reg .b64 d; ld.global.u32 d, [g];"},
    {".reg .f64 f; ld.global.f32 f, [g];", ".reg .b64 f; ld.global.f32 f, [g];"},
    {".reg .u32 r; ld.global.f32 r, [g];", ".reg .f32 r; ld.global.b32 r, [g];"},
    /* Widths of addresses. */
    {".reg .b32 a; st.global.u32 [a], 1;", ".reg .b64 a; st.global.u32 [a], 1;"},
    {".reg .b32 a; ld.u32 a, [a];", ".reg .b32 a; ld.shared.u32 a, [a];"},
    {".reg .b32 a; ld.u32 a, [a];", ".reg .b32 a; .reg .b16 h; ld.u32 a, [a]; ld.u32 a, [h];"},
    {".reg .f64 a; st.global.u32 [a], 1;", ".reg .s64 a; st.global.u32 [a], 1;"},
    {".reg .b32 a; mov.u32 a, g;", ".reg .b32 a; mov.u32 a, s; mov.u32 a, c; mov.u32 a, g+4;"},
    {".reg .b32 a; cvta.global.u32 a, a;", ".reg .b64 a; cvta.global.u64 a, a;"},
    /* State spaces. */
    {".reg .b64 a; st.const.u32 [a], 1;", ".reg .b64 a; st.local.u32 [a], 1;"},
    {".reg .b32 r; ld.global.u32 r, [c];", ".reg .b32 r; ld.const.u32 r, [c];"},
    {".reg .b32 r; ld.u32 r, [c];", ".reg .b32 r; ld.u32 r, [g];"},
    {".reg .b32 r; ld.shared::cta.u32 r, [g];", ".reg .b32 r; ld.shared::cta.u32 r, [s + 4];"},
    {".reg .b32 r; atom.const.add.u32 r, [c], 1;", ".reg .b32 r; atom.shared.add.u32 r, [s], 1;"},
    /* Calls. */
    {"call f;", ".reg .b32 r; call (r), f, (r);"},
    {".reg .b32 r; call f, (r);", ".reg .b32 r; call (_), f, (5);"},
    {".reg .b32 r; call (r), f, (r, r);", ".reg .b32 r; call.uni (r), f, (r);"},
    {".reg .b32 r; call nothing, (r);", "call nothing, (); call nothing;"},
    {"call other;", "call nothing;"},
    /* Modifiers. */
    {".reg .b32 r; add.u32.u32 r, r, r;", ".reg .b32 r; cvt.u32.u32 r, r;"},
    {".reg .b32 r; add.wide.u32 r, r, r;", ".reg .b32 r; .reg .b64 d; mul.wide.u32 d, r, r;"},
    {".reg .f32 f; add.ftz.ftz.f32 f, f, f;", ".reg .f32 f; add.sat.sat.f32 f, f, f;"},
    {".reg .f32 f; add.rn.rz.rn.f32 f, f, f;", ".reg .f32 f; add.rn.ftz.f32 f, f, f;"},
    {".reg .b32 r; prmt.b32.f3e r, r, r, r;", ".reg .b32 r; prmt.b32.f4e r, r, r, r;"},
    {".reg .b32 r; and.ftz.b32 r, r, r;", ".reg .b32 r; and.finite.b32 r, r, r;"},
    {".reg .f32 f; sin.ftz.f32 f, f;", ".reg .f32 f; sin.approx.ftz.f32 f, f;"},
    {".reg .f64 d; sqrt.approx.f64 d, d;", ".reg .f32 f; sqrt.approx.f32 f, f;"},
    {".reg .f64 d; div.approx.f64 d, d, d;", ".reg .f64 d; rcp.approx.ftz.f64 d, d;"},
    {".reg .b32 r; add.rn.u32 r, r, r;", ".reg .b32 r; add.rn.f16x2 r, r, r;"},
    {".reg .f32 f; add.cc.f32 f, f, f;", ".reg .b32 r; add.cc.u32 r, r, r;"},
    {".reg .b16 h; fma.rz.f16 h, h, h, h;", ".reg .f32 f; fma.rz.f32 f, f, f, f;"},
    {".reg .f64 d; max.NaN.f64 d, d, d;", ".reg .f32 f; max.NaN.f32 f, f, f;"},
    {".reg .pred p; .reg .b32 r; setp.eq.ftz.s32 p, r, r;",
     ".reg .pred p; .reg .f32 f; setp.eq.ftz.f32 p, f, f;"},
    /* Kinds of mistakes that the comparison with ptxas found (tests/long/test_ptx_mutants.py). */
    /* clang-format off */
    {".reg .b32 r; .reg .b32 r;", ".reg .b32 r; { .reg .b32 r; }"},
    {".reg .b32 %r<5>; .reg .b32 %r<6>;", ".reg .b32 %r<5>; { .reg .b32 %r<6>; }"},
    {".reg .b32 %r<5>; .reg .b32 %r4;", ".reg .b32 %r<5>; .reg .b32 %r5; { .reg .b32 %r4; }"},
    {".reg .u32 r; .reg .f32 f; ld.global.v2.b32 {r, f}, [g];", ".reg .b32 r; .reg .f32 f; ld.global.v2.b32 {r, f}, [g];"},
    {".reg .u32 r; .reg .f32 f; st.global.v2.b32 [g], {f, r};", ".reg .u32 r; .reg .s32 i; st.global.v2.b32 [g], {i, r};"},
    {"bar.sync 16;", "bar.sync 15;"},
    {"bar.sync 0, 33;", "bar.sync 0, 64;"},
    {"bar.arrive 1, 0;", "bar.sync 1, 0;"},
    {".reg .b32 r; st.global.b32 [+20], r;", ".reg .b32 r; .local .b32 l[9]; st.local.b32 [20], r;"},
    {".reg .b32 r; ld.shared.u32 r, [s-4];", ".reg .b32 r; ld.shared.u32 r, [s+-4];"},
    {".reg .b32 r; .reg .b64 d; st.global.v2.b32 [g], {r, d};", ".reg .b32 r; .reg .f32 f; st.global.v2.b32 [g], {r, f};"},
    {".reg .b32 r; st.global.v2.b32 [g], {r, s};", ".reg .b32 r; st.global.v2.b32 [g], {r, 5};"},
    {".reg .b32 r; ld.volatile.const.u32 r, [c];", ".reg .b32 r; ld.volatile.shared.u32 r, [s];"},
    {".reg .b32 r; ld.relaxed.gpu.const.u32 r, [c];", ".reg .b32 r; ld.relaxed.gpu.shared.u32 r, [s];"},
    {".reg .b32 r; ld.gpu.global.u32 r, [g];", ".reg .b32 r; ld.acquire.gpu.global.u32 r, [g];"},
    {".reg .b32 r; ld.nc.u32 r, [g];", ".reg .b32 r; ld.global.nc.u32 r, [g];"},
    {".reg .b32 r; .reg .b64 d; fns.b32 r, r, d, 1;", ".reg .b32 r; fns.b32 r, r, r, 1;"},
    {".reg .b32 r; fns.u32 r, r, r, 1;", ".reg .f32 f; fns.b32 f, f, f, 1;"},
    {".reg .b64 d; mov.u64 d, 0x80000000000000000;", ".reg .b64 d; mov.u64 d, 18446744073709551616;"},
    {".reg .f32 f; add.f32 f, f, 1;", ".reg .f32 f; add.f32 f, f, 0f3F800000;"},
    {".reg .b32 r; add.u32 r, r, 1.5;", ".reg .b32 r; mov.b32 r, 0f3F800000;"},
    {".reg .b32 r; mov.b32 r, 1.5;", ".reg .b64 d; mov.b64 d, 1.5;"},
    {".reg .b32 r; add.u32 _, r, r;", ".reg .b32 r; atom.global.add.u32 _, [g], r;"},
    {".reg .b32 r; add.u32 r, r, -r;", ".reg .b32 r; vmad.u32.u32.u32 r, r, r, -r;"},
    {".reg .b32 r; add.u32 r, r, r-3;", ".reg .b32 r; add.u32 r, r, r+3;"},
    {".reg .b32 r; add.u32 r, r, r+r;", ".reg .b32 r; add.u32 r, r, 3-4;"},
    {".reg .b32 r; add.u32 r, r, s;", ".reg .b32 r; add.u32 r, r, s+4;"},
    {".reg .b32 r; add.u32 r, r, %tid.x;", ".reg .b32 r; cvt.u32.u32 r, %tid.x;"},
    {".reg .b32 r; mov.u32 r, %tid;", ".reg .v4 .b32 v; mov.v4.u32 v, %tid;"},
    {".reg .b32 r; mov.u32 r, 1?2;", ".reg .b32 r; mov.u32 r, 1?2:3;"},
    {".reg .b32 r; ld.global.u32 r, [f];", ".reg .b64 d; mov.u64 d, f;"},
    {".reg .b32 r; bfe.u32 r, r, 256, 1;", ".reg .b32 r; bfe.u32 r, r, 255, 1;"},
    {".reg .b64 d; cp.async.ca.shared.global [s], [d], 5;", ".reg .b64 d; cp.async.ca.shared.global [s], [d], 8;"},
    {".reg .b64 d; cp.async.shared.global [s], [d], 8;", ".reg .b64 d; cp.async.cg.shared.global [s], [d], 16;"},
    {".reg .f32 f; .reg .f64 d; cvt.f32.f64 f, d;", ".reg .f32 f; .reg .f64 d; cvt.f64.f32 d, f;"},
    {".reg .f32 f; mad.f32 f, f, f, f;", ".reg .f32 f; mad.rn.f32 f, f, f, f;"},
    {".reg .f32 f; .reg .b32 r; cvt.rn.bf16.f32 r, f;", ".reg .f32 f; .reg .b32 r; cvt.rn.f16.f32 r, f;"},
    {".reg .b32 r; vadd2.u32.u32.u32 r, r, r, 5;", ".reg .b32 r; vadd.u32.u32.u32 r, r, 5;"},
    {".reg .b32 r; @r bra L; L:", ".reg .pred p; @p bra L; L:"},
    {"fence.sc.cluster.cluster;", "fence.sc.cluster;"},
    {".reg .b64 d; prefetch.global [d];", ".reg .b64 d; prefetch.global.L1 [d];"},
    {".reg .b32 r; ld.release.gpu.global.u32 r, [g];", ".reg .b32 r; ld.acquire.gpu.global.u32 r, [g];"},
    {".reg .b32 r; st.acquire.gpu.global.u32 [g], r;", ".reg .b32 r; st.release.gpu.global.u32 [g], r;"},
    {".reg .b64 d; mov.u64 d, %clock;", ".reg .b64 d; mov.u64 d, %clock64; mov.b64 d, %gridid;"},
    {".reg .b64 d; mov.u64 d, %tid.x;", ".reg .b16 h; mov.u16 h, %tid.x; mov.b16 h, %gridid;"},
    {".reg .b64 d; mov.u64 d, %globaltimer_lo;", ".reg .b32 r; mov.s32 r, %globaltimer_lo;"},
    {".reg .b32 r; mov.u32 r, %globaltimer;", ".reg .b64 d; mov.s64 d, %globaltimer;"},
    {".reg .f32 f; mov.f32 f, %laneid;", ".reg .f32 f; mov.b32 f, %laneid; mov.b32 f, %pm0;"},
    {".reg .b32 r; mov.u32 r, %is_explicit_cluster;", ".reg .pred p; mov.pred p, %is_explicit_cluster;"},
    {".reg .b32 r; cvt.u32.u64 r, %tid.x;", ".reg .b32 r; cvt.u32.u64 r, %clock64; cvt.u32.u16 r, %tid.x;"},
    {".reg .f32 f; cvt.rn.f32.u32 f, %tid.x;", ".reg .b64 d; cvt.u64.u32 d, %tid.x;"},
    {".reg .b64 d<4>; ld.global.v4.b64 {d0, d1, d2, d3}, [g];", ".reg .b64 d<4>; ld.global.v2.b64 {d0, d1}, [g];"},
    {".reg .b32 r<8>; st.global.v8.b32 [g], {r0, r1, r2, r3, r4, r5, r6, r7};", ".reg .b32 r<4>; st.global.v4.b32 [g], {r0, r1, r2, r3};"},
    {".reg .u32 r; .reg .f32 f; cvt.rna.tf32.f32 r, f;", ".reg .b32 r; .reg .f32 f; cvt.rna.tf32.f32 r, f;"},
    {".reg .u16 h; .reg .b32 r; cvt.rn.f16x2.e4m3x2 r, h;", ".reg .b16 h; .reg .b32 r; cvt.rn.f16x2.e4m3x2 r, h;"},
    {".reg .b64 d; .reg .f32 f<2>; .reg .b32 r; tex.1d.v2.f32.s32 {f0, f1}, [d, {r}];", ".reg .b64 d; .reg .b32 r<3>; tex.1d.v2.f16x2.s32 {r0, r1}, [d, {r2}];"},
    {".reg .b64 d; .reg .b32 r<5>; tex.1d.v4.f16x2.s32 {r0, r1, r2, r3}, [d, {r4}];", ".reg .b64 d; .reg .f32 f<4>; .reg .b32 r; tex.1d.v4.f32.s32 {f0, f1, f2, f3}, [d, {r}];"},
    {".reg .b64 d; .reg .u32 r; .reg .f32 f; mov.b64 d, {r, f};", ".reg .b64 d; .reg .b32 r; .reg .f32 f; mov.b64 d, {r, f};"},
    {".reg .b64 d; .reg .u32 r; .reg .f32 f; mov.b64 {f, r}, d;", ".reg .b64 d; .reg .u32 r; .reg .s32 i; mov.b64 {i, r}, d;"},
    {".reg .pred p; .reg .b32 r; selp.b32 r, r, r, !!p;", ".reg .pred p; .reg .b32 r; selp.b32 r, r, r, 1;"},
    /* clang-format on */
};

TEST(instructions_are_refused_by_the_rules_of_ptx) {
    static const char frame[] =
        HEAD ".global .u64 g;\n.const .u32 c;\n.shared .u32 s[2];\n"
             ".func nothing { ret; }\n.func (.reg .b32 o) f(.reg .b32 i) { mov.b32 o, i; ret; }\n"
             ".entry other() { ret; }\n.entry k() { %s ret; }\n";
    char image[800];
    for (size_t i = 0; i < sizeof neighbours / sizeof neighbours[0]; i++) {
        snprintf(image, sizeof image, frame, neighbours[i].bad);
        refused(image, CUDA_ERROR_INVALID_PTX);
        snprintf(image, sizeof image, frame, neighbours[i].good);
        sg_image_free(taken(image));
    }
    refused(HEAD ".func f(.reg .b32 i);\n.func f { ret; }\n", CUDA_ERROR_INVALID_PTX);
    sg_image_free(taken(HEAD ".func f(.reg .b32 i);\n.func f(.reg .b32 i) { ret; }\n"));
}

/* Old texts do not say how wide addresses are: their registers do. */
TEST(addresses_of_32_bits_are_refused_without_address_size_too) {
#define OLD ".version 2.1\n.target sm_20\n.global .u32 g;\n.entry k() { .reg .u32 r; .reg .u64 d;\n"
    refused(OLD "st.global.u32 [r], r; }\n", CUDA_ERROR_INVALID_PTX);
    refused(OLD "mov.u32 r, g; ld.global.u32 r, [d]; }\n", CUDA_ERROR_INVALID_PTX);
    sg_image_free(
        taken(OLD "st.global.u32 [d], r; ld.shared.u32 r, [r]; st.global.u32 [g], r; }\n"));
}

/* As ptxas 13.0 counts it: arrays of dynamic shared memory begin at a multiple of 16, or of what is
 * wanted, whether a kernel uses one or not. */
TEST(static_shared_memory_is_rounded_where_dynamic_memory_is_declared) {
    static const struct {
        const char *declared, *used;
        unsigned bytes;
    } all[] = {
        {"", "st.shared.u8 [s], r;", 8},
        {".extern .shared .align 4 .b8 d[];", "st.shared.u8 [s], r;", 16},
        {".extern .shared .align 4 .b8 d[];", "st.shared.u8 [s], r; st.shared.u8 [d], r;", 16},
        {".extern .shared .align 32 .b8 d[];", "st.shared.u8 [s], r;", 32},
        {".extern .shared .align 4 .b8 d[];", "st.shared.u8 [d], r;", 0},
        {".extern .shared .align 4 .b8 d[4];", "st.shared.u8 [s], r;", 8},
    };
    char text[400];
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        snprintf(text, sizeof text,
                 HEAD "%s\n.shared .align 8 .b8 s[8];\n.entry k() { .reg .b32 r; %s }\n",
                 all[i].declared, all[i].used);
        struct sg_image *image = taken(text);
        if (image->functions[0].static_shared != all[i].bytes)
            fail_msg("%u, not %u bytes:\n%s", image->functions[0].static_shared, all[i].bytes,
                     text);
        sg_image_free(image);
    }
}

/* The first device and the first version that know an instruction. */
TEST(instructions_need_their_version_and_target) {
    static const struct {
        const char *version, *target, *text;
        bool good;
    } all[] = {
        {"7.8", "90", "griddepcontrol.wait;", true},
        {"8.0", "80", "griddepcontrol.wait;", false},
        {"7.0", "80", "griddepcontrol.wait;", false},
        {"8.0", "90", "elect.sync _|p, -1;", true},
        {"7.8", "90", "elect.sync _|p, -1;", false},
        {"7.0", "80", "redux.sync.add.u32 r, r, r;", true},
        {"7.0", "75", "redux.sync.add.u32 r, r, r;", false},
        {"6.2", "50", "activemask.b32 r;", true},
        {"6.1", "50", "activemask.b32 r;", false},
        {"9.0", "60", "vote.all.pred p, p;", true},
        {"6.3", "70", "shfl.up.b32 r, r, 1, 0;", true},
        {"6.4", "70", "shfl.up.b32 r, r, 1, 0;", false},
        {"8.0", "90", "vote.ballot.b32 r, p;", false},
    };
    char image[300];
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        snprintf(image, sizeof image,
                 ".version %s\n.target sm_%s\n.address_size 64\n"
                 ".entry k() { .reg .b32 r; .reg .pred p; %s ret; }\n",
                 all[i].version, all[i].target, all[i].text);
        if (all[i].good)
            sg_image_free(taken(image));
        else
            refused(image, CUDA_ERROR_INVALID_PTX);
    }
}

TEST(malformed_parameters_and_limits_are_refused) {
    static const char *const bad[] = {
        "(.param p)",
        "(.u32 p)",
        "(.reg .u32 p)",
        "(.param .b128 p)",
        "(.param .v4 .u32 p)",
        "(.param .pred p)",
        "(.param .b8 p[])",
        "(.param .b8 p[0])",
        "(.param .b32 p[2][3])",
        "(.param .align 3 .b8 p[4])",
        "(.param .u32 p, .param .u32 p)",
        "(.param .u32 p,)",
        "(.param .b8 p[32768])",
        "(.param .b8 p[18446744073709551615])",
        "() .maxntid 0",
        "() .maxntid 1, 1, 1, 1",
        "() .reqntid 32 .maxntid 64",
        "() .maxnreg 0",
        "() .maxclusterrank 4 .reqnctapercluster 2",
        "() .noreturn",
    };
    static const char *const good[] = {
        "(.param .b8 p[32764])",
        "(.param .f16 p)",
        "(.param .align 256 .b8 p[4])",
        "() .maxntid 1025",
        "() .maxnreg 1000",
        "() .reqnctapercluster 17",
        "() .minnctapersm 2",
        "() .explicitcluster",
        "() .pragma \"x\";",
        "(.param .u64 .ptr p)",
        "(.param .u64 .ptr .global .align 16 p)",
    };
    char image[300];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(image, sizeof image, HEAD ".visible .entry k%s { ret; }\n", bad[i]);
        refused(image, CUDA_ERROR_INVALID_PTX);
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(image, sizeof image, HEAD ".visible .entry k%s { ret; }\n", good[i]);
        sg_image_free(taken(image));
    }
    refused(HEAD ".entry k(.param .texref t) { ret; }", CUDA_ERROR_INVALID_IMAGE);
}

/* Offsets as cuFuncGetParamInfo gave them on an H200. */
TEST(parameter_offsets_match_the_h200) {
    static const struct sg_parameter wanted[] = {{0, 1},   {8, 8},   {16, 2},  {20, 4},
                                                 {32, 20}, {52, 1},  {53, 3},  {56, 12},
                                                 {112, 1}, {120, 8}, {128, 2}, {136, 16}};
    struct sg_image *image =
        taken(HEAD ".visible .entry odd(.param .u8 a, .param .u64 b, .param .u16 c, .param .f32 d,"
                   ".param .align 16 .b8 e[20], .param .u8 f, .param .align 1 .b8 g[3],"
                   ".param .b32 h[3], .param .align 64 .b8 i[1],"
                   ".param .u64 .ptr .global .align 256 j, .param .f16 l, .param .b64 m[2])"
                   "{ ret; }");
    const struct sg_image_function *odd = sg_image_find_function(image, "odd");
    assert_non_null(odd);
    assert_int_equal(odd->parameter_count, 12);
    assert_int_equal(odd->parameter_bytes, 152);
    for (unsigned i = 0; i < 12; i++) {
        MEMBERS(odd->parameters[i], (offset, wanted[i].offset), (size, wanted[i].size));
    }
    sg_image_free(image);
}

static void check_value(const char *declaration, uint64_t size, const void *bytes) {
    char text[300];
    snprintf(text, sizeof text, HEAD ".global .u32 y;\n.visible .global %s;\n", declaration);
    struct sg_image *image = taken(text);
    const struct sg_image_variable *x = sg_image_find_variable(image, "x");
    assert_non_null(x);
    assert_int_equal(x->size, size);
    for (uint64_t i = 0; i < size; i++) {
        unsigned got = i < x->initial_size ? x->initial[i] : 0;
        if (got != ((const unsigned char *)bytes)[i])
            fail_msg("%s: byte %d is 0x%02x", declaration, (int)i, got);
    }
    sg_image_free(image);
}

TEST(initial_values_are_encoded_as_bytes) {
    check_value(".u32 x = 5", 4, "\5\0\0\0");
    check_value(".u32 x = 0x1234567", 4, "\x67\x45\x23\x01");
    check_value(".u32 x = 0b101", 4, "\5\0\0\0");
    check_value(".u16 x = 01777U", 2, "\xff\x03");
    check_value(".u8 x = 257", 1, "\1");
    check_value(".s16 x = -2", 2, "\xfe\xff");
    check_value(".u32 x = (1 + 2) * 3 - ~0 + (7 >> 1) + (1 ? 20 : 30)", 4, "\x21\0\0\0");
    check_value(".s32 x = -7 / 2", 4, "\xfd\xff\xff\xff");
    check_value(".u32 x = 1 << 4 | 3 & 2 ^ 8", 4, "\x1a\0\0\0");
    check_value(".u32 x = !(1 == 2) && 3 > 2", 4, "\1\0\0\0");
    check_value(".u64 x = (.u64) -1 / 2", 8, "\xff\xff\xff\xff\xff\xff\xff\x7f");
    check_value(".s64 x = -8 >> 1", 8, "\xfc\xff\xff\xff\xff\xff\xff\xff");
    check_value(".f32 x = 1.5", 4, "\0\0\xc0\x3f");
    check_value(".f32 x = 0f40400000", 4, "\0\0\x40\x40");
    check_value(".f32 x = 0d3FF0000000000000", 4, "\0\0\x80\x3f");
    check_value(".f64 x = -1.0e0", 8, "\0\0\0\0\0\0\xf0\xbf");
    check_value(".b32 x = .5", 4, "\0\0\0\x3f");
    check_value(".v2 .u16 x = {1, 2}", 4, "\1\0\2\0");
    check_value(".u8 x[] = {1, 2, 3}", 3, "\1\2\3");
    /* Rows that are too short are not filled up: an H200 does so, too. */
    check_value(".u8 x[2][2] = {{1}, {2, 3}}", 4, "\1\2\3\0");
    check_value(".u16 x[2] = {}", 4, "\0\0\0\0");
    check_value(".u64 x[2] = {y + 8, 1}", 16, "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0");
}

TEST(wrong_initial_values_are_refused) {
    static const char *const bad[] = {
        ".u32 x = ",
        ".u32 x = {1}",
        ".u32 x[2] = 1",
        ".u32 x[2] = {1, 2, 3}",
        ".u32 x[2][2] = {1, 2, 3, 4}",
        ".u32 x[2][2] = {{1}, 2}",
        ".u32 x[2] = {1,}",
        ".u32 x = 1.5",
        ".f32 x = 1",
        ".f16 x = 1.0",
        ".u64 x = nowhere",
        ".u32 x = 1 / 0",
        ".u32 x = (1",
        ".u32 x = 1)",
        ".u32 x = 1 2",
        ".u64 x = -y",
        ".u64 x = y * 2",
        ".u8 x = y",
        ".u8 x = 0xFF00(y)",
        ".b8 x[2] = {0xFF(y), 1}",
        ".u64 x = generic(y+4)",
        ".u32 x[-1]",
        ".u32 x[0]",
        ".u32 x[]",
        ".u32 x[4294967296][4294967296]",
        ".align 0 .u32 x",
        ".align 3 .u32 x",
        ".attribute(.frob) .u32 x",
        ".pred x",
        ".b128 x",
        ".u32 x<4> = {1}",
        ".u32 x<2> = 1",
        ".u32 x<4>[2]",
        ".u32 x<70000>",
        ".texref x<2>",
        ".u32 x[1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1]",
        ".u64 x = 99999999999999999999",
    };
    char text[300];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(text, sizeof text, HEAD ".global .u32 y;\n.visible .global %s;\n", bad[i]);
        refused(text, CUDA_ERROR_INVALID_PTX);
    }
    refused(HEAD ".shared .u32 x = 1;\n", CUDA_ERROR_INVALID_PTX);
    refused(HEAD ".extern .global .u32 x = 1;\n", CUDA_ERROR_INVALID_PTX);
    refused(HEAD ".const .b8 x[65537];\n", CUDA_ERROR_INVALID_PTX);
    refused(HEAD ".const .attribute(.managed) .u32 x;\n", CUDA_ERROR_INVALID_PTX);
}

/* Sums of such sizes once came back to a few bytes, in which calls then copied 2^63. */
TEST(oversized_shared_local_and_parameter_memory_is_refused) {
#define HUGE_ "[9223372036854775807]"
    refused(HEAD ".shared .b8 a" HUGE_ ", b" HUGE_ ", c[18];\n"
                 ".entry k() { st.shared.u8 [c], 5; ret; }\n",
            CUDA_ERROR_INVALID_PTX);
    refused(HEAD ".shared .b8 a[4294967296];\n.entry k() { st.shared.u8 [a], 5; ret; }\n",
            CUDA_ERROR_INVALID_PTX);
    refused(HEAD ".entry k() { .local .b8 a" HUGE_ "; .local .b8 b" HUGE_ "; ret; }\n",
            CUDA_ERROR_INVALID_PTX);
    refused(HEAD ".func f(.param .b8 x" HUGE_ ", .param .b8 y" HUGE_ ", .param .b8 z[18])\n"
                 "{ ret; }\n.entry k() { .param .b8 x" HUGE_ "; .param .b8 y" HUGE_ ";\n"
                 ".param .b8 z[18]; call f, (x, y, z); ret; }\n",
            CUDA_ERROR_INVALID_PTX);
    sg_image_free(taken(HEAD ".global .b8 g[1099511627776];\n"));
}

/* As much shared memory as the options allow, and registers of the module in ranges. */
TEST(shared_memory_and_register_limits_are_enforced) {
    struct sg_image_options options = h200;
    struct sg_image *image;
    const char *text = HEAD ".entry k() { .shared .b8 s[1000]; ret; }\n";
    options.most_shared = 1000;
    assert_int_equal(try_with(&options, text, &image), CUDA_SUCCESS);
    sg_image_free(image);
    options.most_shared = 999;
    assert_int_equal(try_with(&options, text, &image), CUDA_ERROR_INVALID_PTX);
    text = HEAD ".reg .b32 %q<4>;\n.entry k() { mov.u32 %q3, 1; ret; }\n";
    assert_int_equal(try_with(&h200, text, &image), CUDA_SUCCESS);
    sg_image_free(image);
    text = HEAD ".reg .b32 %q<4>;\n.entry k() { mov.u32 %q4, 1; ret; }\n";
    assert_int_equal(try_with(&h200, text, &image), CUDA_ERROR_INVALID_PTX);
}

/* Used by an entry, or by what it calls; declared in it, used or not. */
TEST(entries_count_the_memory_of_everything_they_call) {
    struct sg_image *image = taken(
        HEAD
        ".shared .align 4 .b8 a[100];\n.shared .b8 b[7];\n"
        ".extern .shared .align 4 .b8 d[];\n.extern .shared .align 8 .b8 e[40];\n"
        ".func deep() { .shared .b8 c[5]; st.shared.u8 [b], 1; ret; }\n"
        ".func mid() { call deep; ret; }\n"
        ".entry none() { ret; }\n"
        ".entry direct() { st.shared.u8 [a], 1; st.shared.u8 [a + 1], 1; ret; }\n"
        ".entry called() { call mid; call mid; ret; }\n"
        ".entry external() { st.shared.u8 [d], 1; st.shared.u8 [e], 1; ret; }\n"
        ".entry own() { .shared .b8 s[1]; .shared .align 16 .b8 t[1]; .local .b8 l[100]; ret; }\n"
        ".entry frame() { .local .b8 s[1]; .local .align 4 .b8 t[4]; .local .b8 u[1]; ret; }\n");
    assert_int_equal(sg_image_find_function(image, "none")->static_shared, 0);
    assert_int_equal(sg_image_find_function(image, "direct")->static_shared, 112);
    assert_int_equal(sg_image_find_function(image, "called")->static_shared, 16);
    assert_int_equal(sg_image_find_function(image, "external")->static_shared, 48);
    assert_int_equal(sg_image_find_function(image, "own")->static_shared, 32);
    assert_int_equal(sg_image_find_function(image, "own")->local, 104);
    assert_int_equal(sg_image_find_function(image, "frame")->local, 8);
    sg_image_free(image);
}

/* As ptxas 13.0 sums them up: behind all that may call a function, with what alignment costs. */
TEST(entries_count_the_frames_of_calls_without_recursion) {
    static const struct {
        const char *entry, *first, *second;
        unsigned local;
    } rows[] = {
        {"", "", "", 0},
        {"", ".local .align 4 .b8 l[100];", "", 104},
        {".local .b8 l[10];", ".local .b8 l[10];", "", 24},
        {".local .align 8 .b8 l[10];", ".local .align 8 .b8 l[10];", "", 32},
        {".local .align 8 .b8 l[20];", ".local .align 4 .b8 l[20];", "", 40},
        {".local .align 4 .b8 l[20];", ".local .align 16 .b8 l[20];", "", 64},
        {".local .align 16 .b8 l[20];", ".local .align 4 .b8 l[20];", "", 48},
        {".local .align 4 .b8 l[20];", ".local .align 32 .b8 l[100];", "", 176},
        {".local .align 16 .b8 l[100];", "", "", 112},
        {".local .align 128 .b8 l[100];", "", "", 240},
        {".local .align 4 .b8 l[20];", ".local .align 4 .b8 l[100]; call second;",
         ".local .align 4 .b8 l[200];", 320},
        {".local .align 4 .b8 l[20]; call second;", ".local .align 4 .b8 l[100];",
         ".local .align 4 .b8 l[200];", 224},
        {".local .align 4 .b8 l[20];", "call second;", ".local .align 4 .b8 l[20];", 40},
        /* One that calls itself, and what it calls, have the stack. */
        {".local .align 4 .b8 l[20];", ".local .b8 l[4000]; call first;", "", 24},
        {"call second;", ".local .b8 l[4000]; call first; call second;", ".local .b8 l[8];", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char source[1024];
        snprintf(source, sizeof source,
                 HEAD ".func first();\n.func second() { %s ret; }\n.func first() { %s ret; }\n"
                      ".entry k() { %s call first; ret; }\n",
                 rows[i].second, rows[i].first, rows[i].entry);
        struct sg_image *image = taken(source);
        if (sg_image_find_function(image, "k")->local != rows[i].local)
            fail_msg("%s\nhas %u bytes, not %u", source, sg_image_find_function(image, "k")->local,
                     rows[i].local);
        sg_image_free(image);
    }
}

/* As ptxas of CUDA 13.0 takes and refuses them. */
TEST(vector_parameters_and_registers_are_accepted_as_by_ptxas) {
    static const char *const good[] = {
        HEAD ".entry k(.param .v4 .f32 p[2]) { ret; }",
        HEAD ".entry k(.param .align 16 .v2 .u64 p[1]) { ret; }",
        HEAD ".func f(.reg .v4 .f32 p) { ret; }",
        HEAD ".func (.reg .v4 .f32 r) f(.reg .v4 .f32 p) { mov.v4.f32 r, p; ret; }",
        BODY(".reg .f32 f<9>; mov.v4.f32 {f0,f1,f2,f3}, {f4,f5,f6,f7};"),
        BODY(".reg .v2 .f32 a; .reg .f32 f<9>; mov.v2.f32 a, {f4,f5};"),
        BODY(".reg .u32 r; mov.v4.u32 {r,_,_,_}, %ctaid;"),
        BODY("pmevent.mask 3;"),
    };
    static const char *const wrong[] = {
        HEAD ".entry k(.param .v4 .f32 p) { ret; }",
        HEAD ".entry k(.param .align 16 .v4 .f32 p) { ret; }",
        HEAD ".entry k(.param .v8 .f32 p[2]) { ret; }",
        HEAD ".entry k(.param .v4 .align 16 .f32 p[2]) { ret; }",
        HEAD ".entry k(.param .v4 .f64 p[2]) { ret; }",
        HEAD ".entry k(.param .u32 .v2 p[2]) { ret; }",
        HEAD ".entry k(.param .v2 .v2 .u32 p[2]) { ret; }",
        HEAD ".func f(.param .v4 .f32 p) { ret; }",
        HEAD ".func (.param .v2 .f32 p) f() { ret; }",
        BODY(".reg .f32 f<9>; mov.v8.f32 {f0,f1,f2,f3}, {f4,f5,f6,f7};"),
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        sg_image_free(taken(good[i]));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refused(wrong[i], CUDA_ERROR_INVALID_PTX);
    struct sg_image *image = taken(HEAD ".entry k(.param .u32 a, .param .v4 .f32 p[2]) { ret; }");
    MEMBERS(image->functions[0].parameters[1], (offset, 16), (size, 32));
    sg_image_free(image);
}

/* The text that is kept is a string of all its bytes, as long as what was read. */
TEST(a_nul_byte_in_a_comment_reads_as_a_blank) {
    static const char text[] = HEAD "// a\0b\n" ENTRY "/*\0*/";
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    struct sg_image *image = calloc(1, sizeof *image);
    assert_non_null(image);
    assert_int_equal(sg_ptx_read((struct sg_bytes){(const unsigned char *)text, sizeof text - 1},
                                 &h200, &log, image),
                     CUDA_SUCCESS);
    assert_int_equal(strlen(image->ptx), sizeof text - 1);
    assert_non_null(strstr(image->ptx, "// a b\n" ENTRY "/* */"));
    sg_image_free(image);
}

TEST(messages_name_line_and_word) {
    char room[20], name[] = "kernels.ptx";
    struct sg_image_options options = h200;
    struct sg_image_log log = {.error = room, .error_size = sizeof room};
    struct sg_image *image = NULL;
    refused(HEAD ENTRY "\nsome words\n", CUDA_ERROR_INVALID_PTX);
    assert_non_null(strstr(error, "line 6"));
    assert_non_null(strstr(error, "'some'"));
    refused(BODY("mov.u32\n%r1,\n5;\nret;"), CUDA_ERROR_INVALID_PTX);
    assert_non_null(strstr(error, "line 7"));
    assert_non_null(strstr(error, "'%r1'"));
    options.name = name;
    assert_int_equal(try_with(&options, HEAD "{", &image), CUDA_ERROR_INVALID_PTX);
    assert_ptr_equal(strstr(error, "kernels.ptx, line 4"), error);
    /* Cut, with its zero, and said to be full. */
    memset(room, 'z', sizeof room);
    assert_int_equal(sg_image_read(HEAD "{", SIZE_MAX, &h200, &log, &image),
                     CUDA_ERROR_INVALID_PTX);
    assert_int_equal(log.error_used, sizeof room);
    assert_int_equal(strlen(room), sizeof room - 1);
    log = (struct sg_image_log){.error = room, .error_size = 1};
    assert_int_equal(sg_image_read(HEAD "{", SIZE_MAX, &h200, &log, &image),
                     CUDA_ERROR_INVALID_PTX);
    assert_int_equal(log.error_used, 0);
    assert_int_equal(room[0], 0);
}

/* Deep and long texts cost neither stack nor squares of time. */
TEST(parsing_large_texts_takes_linear_time_and_constant_stack) {
    enum { MANY = 200000 };
    char *text = malloc(64 * MANY), *at = text;
    assert_non_null(text);
    at += sprintf(at, HEAD ".entry k() {\n");
    memset(at, '{', MANY);
    memset(at + MANY, '}', MANY);
    strcpy(at + 2 * MANY, "ret; }\n");
    sg_image_free(taken(text));
    at += sprintf(at, "ret; }\n");
    for (int i = 0; i < MANY / 4; i++)
        at += sprintf(at, ".global .u32 v%d = %d;\n", i, i);
    struct sg_image *image = taken(text);
    assert_int_equal(image->variable_count, MANY / 4);
    sg_image_free(image);
    strcpy(at, ".global .u32 x = ");
    memset(at + 17, '(', MANY);
    strcpy(at + 17 + MANY, "1;");
    refused(text, CUDA_ERROR_INVALID_PTX);
    free(text);
}
