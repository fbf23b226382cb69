/*
 * Instructions that few programs use, row by row: video, floats of 8 bits, conversions with
 * .satfinite and .pack, comparisons of halves, packed integers, vectors, 128 bits, alloca, calls.
 */
#include "harness.h"

#define MOST_ROWS 4

struct row {
    uint64_t a, b, c, d;
};

/* A body reads %a, %b, %c (64 bits), %x, %y, %z (their lower 32) and %s, %t, %u (their lower 16),
 * and writes %d; `rows` ends where a and d are 0, but for the first. */
struct form {
    const char *body;
    struct row rows[MOST_ROWS];
};

#define WORD(text)  text " cvt.u64.u32 %d, %w;"
#define SHORT(text) text " cvt.u64.u16 %d, %v;"
#define FLOATS(text)                                                                               \
    "{ .reg .f32 f, g; mov.b32 f, %x; mov.b32 g, %y; " text " cvt.u64.u16 %d, %v; }"
#define FLOATS_WORD(text)                                                                          \
    "{ .reg .f32 f, g; mov.b32 f, %x; mov.b32 g, %y; " text " cvt.u64.u32 %d, %w; }"

static const struct form defined[] = {
    /* video: parts, signs, saturation, a second operation, merging */
    {WORD("vadd.s32.s32.u32.sat %w, %x.b1, %y.h1;"),
     {{0x8000, 0x00050000, 0, 0xffffff85}, {0x7f00, 0xffff0000, 0, 0x1007e}}},
    {WORD("vsub.s32.u32.u32.add %w, %x, %y, %z;"), {{1, 2, 10, 9}}},
    {WORD("vabsdiff.u32.s32.s32.max %w, %x, %y, %z;"),
     {{0xfffffffb, 5, 3, 10}, {1, 2, 0x80000000, 0x80000000}}},
    {WORD("vmin.s32.s32.s32 %w.b2, %x.b0, %y.b3, %z;"),
     {{0x7f, 0x80000000, 0x11223344, 0x11803344}}},
    {WORD("vmax.u32.u32.u32 %w.h0, %x, %y, %z;"), {{0x12345, 7, 0xaaaabbbb, 0xaaaa2345}}},
    {WORD("vshl.u32.u32.u32.clamp %w, %x, %y;"),
     {{1, 31, 0, 0x80000000}, {1, 32, 0, 0}, {3, 99, 0, 0}}},
    {WORD("vshl.u32.u32.u32.wrap %w, %x, %y;"), {{3, 33, 0, 6}}},
    {WORD("vshr.s32.s32.u32.clamp %w, %x, %y;"),
     {{0x80000000, 40, 0, 0xffffffff}, {0x80000000, 4, 0, 0xf8000000}}},
    {WORD("vmad.s32.s32.s32 %w, -%x.h0, %y.h0, %z;"), {{3, 5, 7, 0xfffffff8}}},
    {WORD("vmad.u32.u32.u32.po %w, %x, %y, %z;"), {{3, 5, 7, 23}}},
    {WORD("vmad.s32.s32.s32.sat.shr7 %w, %x, %y, %z;"),
     {{0x7fffffff, 0x7fffffff, 0, 0x7fffffff}, {0x100, 3, 0x80, 7}}},
    {WORD("vset.s32.u32.lt %w, %x, %y;"), {{0xffffffff, 1, 0, 1}, {2, 1, 0, 0}}},
    {WORD("vadd2.u32.u32.u32.sat %w, %x, %y, %z;"), {{0xffff0001, 0x00010002, 0, 0xffff0003}}},
    {WORD("vadd4.s32.s32.s32.sat %w, %x, %y, %z;"), {{0x7f80ff01, 0x01ff0102, 0, 0x7f800003}}},
    {WORD("vsub2.s32.u32.u32 %w.h0, %x, %y, %z;"),
     {{0x00010002, 0x00030004, 0xaaaabbbb, 0xaaaafffe}}},
    {WORD("vavrg4.u32.u32.u32 %w, %x, %y, %z;"), {{0x01020304, 0x02020205, 0, 0x02020305}}},
    {WORD("vabsdiff4.u32.u32.u32.add %w, %x, %y, %z;"), {{0x0a0b0c0d, 0x0d0c0b0a, 100, 108}}},
    {WORD("vmin2.s32.s32.s32 %w, %x.h12, %y, %z;"), {{0x00030004, 0x80000005, 0, 0x80000005}}},
    {WORD("vset4.u32.u32.eq.add %w, %x, %y, %z;"), {{0x01020304, 0x01000305, 10, 12}}},
    /* floats of 8 bits */
    {FLOATS("cvt.rn.satfinite.e4m3x2.f32 %v, f, g;"),
     {{0x3f800000, 0x40000000, 0, 0x3840},
      {0x7f800000, 0xc3e80000, 0, 0x7efe},
      {0x7fc00000, 0x3a800000, 0, 0x7f00},
      {0x3ac00000, 0x3f880000, 0, 0x0138}}},
    {FLOATS("cvt.rn.satfinite.e5m2x2.f32 %v, f, g;"),
     {{0x3f800000, 0x47800000, 0, 0x3c7b},
      {0x7fc00000, 0xff800000, 0, 0x7ffb},
      {0x37000000, 0x3f900000, 0, 0x003c}}},
    {FLOATS("cvt.rn.satfinite.relu.e4m3x2.f32 %v, f, g;"), {{0xbf800000, 0x3f800000, 0, 0x0038}}},
    {SHORT("cvt.rn.satfinite.e4m3x2.f16x2 %v, %x;"), {{0x3c007bff, 0, 0, 0x387e}}},
    {SHORT("cvt.rn.satfinite.e5m2x2.f16x2 %v, %x;"), {{0x3c00fc00, 0, 0, 0x3cfb}}},
    {WORD("cvt.rn.f16x2.e4m3x2 %w, %s;"), {{0x387e, 0, 0, 0x3c005f00}, {0x01ff, 0, 0, 0x18007fff}}},
    {WORD("cvt.rn.f16x2.e5m2x2 %w, %s;"), {{0x3cfc, 0, 0, 0x3c00fc00}, {0x017f, 0, 0, 0x01007fff}}},
    /* .satfinite, .pack, whole numbers with .sat */
    {FLOATS("cvt.rn.satfinite.f16.f32 %v, f;"),
     {{0x7f800000, 0, 0, 0x7bff},
      {0xff800000, 0, 0, 0xfbff},
      {0x7fc00000, 0, 0, 0x7fff},
      {0x3f801000, 0, 0, 0x3c00}}},
    {FLOATS_WORD("cvt.rz.satfinite.bf16x2.f32 %w, f, g;"),
     {{0x7f7fffff, 0xff800000, 0, 0x7f7fff7f}}},
    {FLOATS_WORD("cvt.rna.satfinite.tf32.f32 %w, f;"), {{0x7f7fffff, 0, 0, 0x7f7fe000}}},
    {WORD("cvt.pack.sat.u8.s32.b32 %w, %x, %y, %z;"), {{300, 0xffffffff, 0x12345678, 0x5678ff00}}},
    {WORD("cvt.pack.sat.s16.s32 %w, %x, %y;"), {{70000, 0xffff0000, 0, 0x7fff8000}}},
    {WORD("cvt.pack.sat.u4.s32.b32 %w, %x, %y, %z;"), {{99, 3, 0x00abcdef, 0xabcdeff3}}},
    {SHORT("cvt.rz.sat.f16.u32 %v, %x;"), {{7, 0, 0, 0x3c00}}},
    /* comparisons */
    {"setp.gt.f16x2 %p|%q, %x, %y; selp.u64 %d, 1, 0, %p; selp.u64 %a, 2, 0, %q; or.b64 %d, %d, "
     "%a;",
     {{0x3c004000, 0x40003c00, 0, 1}, {0x40003c00, 0x3c004000, 0, 2}}},
    {"setp.neu.bf16x2 %p|%q, %x, %y; selp.u64 %d, 1, 0, %p; selp.u64 %a, 2, 0, %q; or.b64 %d, %d, "
     "%a;",
     {{0x7fc03f80, 0x7fc03f80, 0, 2}}},
    {"setp.eq.ftz.f16 %p, %s, %t; selp.u64 %d, 1, 0, %p;", {{1, 0x8001, 0, 1}}},
    {WORD("set.eq.f16x2.f16x2 %w, %x, %y;"), {{0x3c004000, 0x3c003c00, 0, 0x3c000000}}},
    {WORD("set.gt.u32.f16x2 %w, %x, %y;"), {{0x3c004000, 0x40003c00, 0, 0xffff}}},
    {SHORT("set.lt.bf16.s16 %v, %s, %t;"), {{0xffff, 1, 0, 0x3f80}}},
    {SHORT("set.eq.u16.f16 %v, %s, %t;"), {{0x3c00, 0x3c00, 0, 0xffff}}},
    /* logic and packed integers */
    {"setp.eq.u64 %p, %c, 0; lop3.and.b32 %w|%q, %x, %y, %y, 0xc0, %p;\n"
     "cvt.u64.u32 %d, %w; selp.u64 %a, 1, 0, %q; add.u64 %d, %d, %a;",
     {{0xf0, 0x1f, 0, 0x11}, {0xf0, 0x1f, 1, 0x10}, {0xf0, 0x0f, 0, 0}}},
    {WORD("add.u16x2 %w, %x, %y;"), {{0xffff0001, 0x00020003, 0, 0x00010004}}},
    {WORD("max.s16x2 %w, %x, %y;"), {{0xffff0001, 0x8000fffe, 0, 0xffff0001}}},
    {WORD("min.relu.s16x2 %w, %x, %y;"), {{0xffff0005, 0x80000007, 0, 5}}},
    {WORD("min.relu.s32 %w, %x, %y;"), {{3, 5, 0, 3}, {0xfffffff0, 5, 0, 0}}},
    {WORD("fns.b32 %w, %x, %y, %z;"),
     {{0xaaaaaaaa, 3, 2, 5},
      {0xaaaaaaaa, 3, 0xfffffffe, 1},
      {0xaaaaaaaa, 4, 0, 0xffffffff},
      {0xaaaaaaaa, 3, 1, 3}}},
    /* vectors and 128 bits */
    {"mov.v2.b32 {%x, %y}, {%y, %x}; mov.b64 %d, {%x, %y};", {{1, 2, 0, 0x100000002}}},
    {"{ .reg .b128 q; mov.b128 q, {%a, %b}; mov.b128 {_, %d}, q; }", {{7, 9, 0, 9}}},
    {"{ .local .align 16 .b8 m[16]; .reg .b128 q, r; mov.b128 q, {%a, %b}; st.local.b128 [m], q;\n"
     "ld.local.b128 r, [m]; mov.b128 {%a, %b}, r; sub.u64 %d, %b, %a; }",
     {{7, 9, 0, 2}}},
    {"{ .shared .align 16 .b8 m[16]; .reg .b128 q, r, s; mov.u32 %w, m; mov.b128 q, {%a, %b};\n"
     "st.shared.b128 [%w], q; mov.b128 r, {%b, %c}; atom.shared.cas.b128 s, [%w], q, r;\n"
     "atom.shared.exch.b128 q, [%w], s; mov.b128 {%d, %a}, q; }",
     {{7, 9, 5, 9}}},
    /* alloca: a thread's own bytes, given back */
    {"{ .reg .u64 m, n, e; stacksave.u64 e; alloca.u64 m, %a, 16; st.local.u64 [m], %b;\n"
     "and.b64 %d, m, 15; alloca.u64 n, 8, 8; st.local.u64 [n], %c; ld.local.u64 %a, [m];\n"
     "add.u64 %d, %d, %a; ld.local.u64 %a, [n]; add.u64 %d, %d, %a; stackrestore.u64 e; }",
     {{8, 5, 6, 11}, {40, 100, 1, 101}}},
    /* special registers where only mov and cvt take them */
    {"cvt.u64.u32 %d, %ntid.x; mov.u32 %w, %pm0;", {{1, 0, 0, 1}}},
    /* calls: aggregates through registers, and values that one side has in memory */
    {"{ .reg .u64 f; .param .align 16 .b8 p[24]; .param .align 16 .b8 q[16];\n"
     "P: .callprototype (.param .align 16 .b8 _[16]) _ (.param .align 16 .b8 _[24]);\n"
     "mov.u64 f, turn; st.param.v2.b64 [p], {%a, %b}; st.param.b64 [p+16], %c;\n"
     "call (q), f, (p), P; ld.param.v2.b64 {%a, %b}, [q]; sub.u64 %d, %b, %a; }",
     {{100, 3, 20, 117}}},
    {"{ call (%w), twice, (%x); cvt.u64.u32 %d, %w; }", {{21, 0, 0, 42}}},
    {"{ .param .b32 r; call (r), twice, (%x); ld.param.b32 %w, [r]; cvt.u64.u32 %d, %w; }",
     {{21, 0, 0, 42}}},
    /* spaces */
    {"{ .reg .u64 g; cvta.const.u64 g, fixed; isspacep.const %p, g; isspacep.shared %q, g;\n"
     "selp.u64 %d, 1, 0, %p; selp.u64 %a, 2, 0, %q; or.b64 %d, %d, %a; }",
     {{1, 0, 0, 1}}},
    {"{ .reg .u64 g; cvta.global.u64 g, moving; isspacep.const %p, g; isspacep.global %q, g;\n"
     "selp.u64 %d, 1, 0, %p; selp.u64 %a, 2, 0, %q; or.b64 %d, %d, %a; }",
     {{1, 0, 0, 2}}},
    /* what says only how caches treat bytes */
    {"{ .reg .b64 k; createpolicy.fractional.L2::evict_first.b64 k, 0.5;\n"
     "mov.u64 %a, moving; st.global.L2::cache_hint.u64 [%a], %b, k;\n"
     "ld.global.L2::cache_hint.u64 %d, [%a], k; prefetch.global.L2 [%a]; }",
     {{1, 77, 0, 77}}},
};

/* What the description of PTX leaves open, and where ptxas makes something else of it: as an H200
 * does it, or as softgpu does until hardware says otherwise. */
static const struct form open_questions[] = {
    {WORD("vsub.u32.u32.u32.min %w, %x, %y, %z;"), {{1, 2, 7, 7}}},
    {WORD("vset.s32.s32.lt.min %w, %x, %y, %z;"), {{1, 2, 0xffffffff, 0xffffffff}}},
    {WORD("vset.u32.u32.lt.min %w, %x, %y, %z;"), {{1, 2, 0xffffffff, 1}}},
    {WORD("vadd.u32.u32.u32.sat %w, %x, %y;"), {{0xffffffff, 1, 0, 0}, {1, 2, 0, 3}}},
    {WORD("vadd.u32.s32.s32.sat %w, %x, %y;"), {{0xffffffff, 0xffffff80, 0, 0}}},
    {WORD("vadd.s32.s32.s32.sat %w.h0, %x, %y, %z;"),
     {{0xffffffff, 1, 7, 0}, {0xfffffffe, 1, 7, 0x7fff}}},
    {WORD("vadd.u32.u32.u32.min %w, %x, %y, %z;"),
     {{0x70000000, 0x20000000, 0xfffffff0, 0xfffffff0}}},
    {WORD("vabsdiff.u32.s32.u32.sat.min %w, %x, %y, %z;"), {{0xffffffff, 0xffffffff, 5, 5}}},
    {WORD("vmad.u32.u32.u32.sat %w, %x, %y, %z;"),
     {{0xffffffff, 31, 0, 0}, {255, 3, 0xffffffff, 0x2fc}}},
    {WORD("vmad.u32.u32.u32.sat.shr7 %w, %x.b1, %y.h1, %z;"), {{255, 3, 0xffffffff, 0xffffffff}}},
    {WORD("vmad.u32.u32.u32.shr7 %w, %x, %y, %z;"), {{7, 0xd23bd6eb, 7, 0xfd7f45c0}}},
    {WORD("vshl.u32.u32.u32.sat.clamp %w, %x, %y;"),
     {{0x55555555, 3, 0, 0}, {0x40000000, 2, 0, 0xffffffff}}},
    {WORD("vmax.u32.u32.u32 %w.h1, %x, %y, %z;"), {{0x12345, 7, 0xaaaabbbb, 0x1bbbb}}},
    {WORD("vadd.s32.s32.s32.sat.max %w, %x, %y, %z;"), {{0x7fffffff, 1, 0x80000000, 0x7fffffff}}},
    {WORD("vavrg2.s32.s32.s32 %w, %x, %y, %z;"), {{0xfffffffe, 0xffffffff, 0, 0xfffffffe}}},
    {FLOATS("cvt.rn.satfinite.relu.e4m3x2.f32 %v, f, g;"), {{0x80000000, 0xffc00000, 0, 0x007f}}},
    {FLOATS("cvt.rn.satfinite.e4m3x2.f32 %v, f, g;"), {{0xffc00000, 0x80000000, 0, 0x7f80}}},
    {FLOATS("cvt.rn.relu.satfinite.f16.f32 %v, f;"),
     {{0x80000000, 0, 0, 0}, {0xffc00000, 0, 0, 0x7fff}}},
    {WORD("cvt.rn.relu.f16x2.e5m2x2 %w, %s;"), {{0x80bc, 0, 0, 0}, {0xfffd, 0, 0, 0x7fff7fff}}},
    {WORD("fns.b32 %w, %x, %y, %z;"), {{0xffffffff, 32, 1, 0xffffffff}}},
    {"{ .reg .u64 m; alloca.u64 m, %a; and.b64 %d, m, 7; }", {{3, 0, 0, 0}}},
};

/* ---- running --------------------------------------------------------------------------------- */

static const char head[] =
    ".version 8.8\n.target sm_90\n.address_size 64\n"
    ".const .align 8 .u64 fixed = 5;\n.global .align 8 .u64 moving;\n"
    ".func (.param .align 16 .b8 r[16]) turn(.param .align 16 .b8 a[24]) {\n"
    ".reg .b64 x, y, z; ld.param.v2.b64 {x, y}, [a]; ld.param.b64 z, [a+16]; add.u64 x, x, z;\n"
    "st.param.v2.b64 [r], {y, x}; ret; }\n"
    ".func (.param .b32 r) twice(.param .b32 a) { .reg .b32 t; ld.param.b32 t, [a];\n"
    "add.u32 t, t, t; st.param.b32 [r], t; ret; }\n"
    ".visible .entry k(.param .u64 row) {\n"
    ".reg .b64 %a, %b, %c, %d, %at; .reg .pred %p, %q; .reg .b32 %x, %y, %z, %w;\n"
    ".reg .b16 %s, %t, %u, %v;\n"
    "ld.param.u64 %at, [row]; ld.global.v2.b64 {%a, %b}, [%at]; ld.global.b64 %c, [%at+16];\n"
    "cvt.u32.u64 %x, %a; cvt.u32.u64 %y, %b; cvt.u32.u64 %z, %c;\n"
    "cvt.u16.u64 %s, %a; cvt.u16.u64 %t, %b; cvt.u16.u64 %u, %c;\n"
    "mov.b32 %w, 0; mov.b16 %v, 0; mov.u64 %d, 0;\n";
static const char tail[] = "\nst.global.b64 [%at+24], %d; ret; }\n";

static CUdeviceptr memory;

static CUfunction load_at(CUmodule *module, const char *body, uintptr_t level) {
    static char text[8192], log[2048];
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_OPTIMIZATION_LEVEL};
    void *values[] = {log, (void *)sizeof log, (void *)level};
    snprintf(text, sizeof text, "%s%s%s", head, body, tail);
    log[0] = '\0';
    if (cu.cuModuleLoadDataEx(module, text, 3, options, values) != CUDA_SUCCESS)
        fail_msg("%s: %s", body, log);
    CUfunction function = function_of(*module, "k");
    return function;
}

static CUfunction load(CUmodule *module, const char *body) {
    return load_at(module, body, 4);
}

/* The last value of a row, as computed. */
static uint64_t computed(CUfunction function, struct row row) {
    void *params[] = {&memory};
    row.d = ~row.d;
    OK_CU(cu.cuMemcpyHtoD_v2(memory, &row, sizeof row));
    OK_CU(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK_CU(cu.cuMemcpyDtoH_v2(&row, memory, sizeof row));
    return row.d;
}

static bool begin(void) {
    CUmodule module;
    if (device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9)
        SKIP("the device is before sm_90");
    OK_CU(cu.cuMemAlloc_v2(&memory, sizeof(struct row)));
    CUfunction function = load(&module, "");
    void *params[] = {&memory};
    CUresult result = cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuModuleUnload(module));
    if (no_kernels(result)) {
        OK_CU(cu.cuMemFree_v2(memory));
        SKIP("the driver runs no kernels: SOFTGPU_KERNELS=0");
    }
    assert_int_equal(result, CUDA_SUCCESS);
    return true;
}

static void check(const struct form *forms, size_t count) {
    unsigned wrong = 0;
    begin();
    for (size_t i = 0; i < count; i++) {
        CUmodule module;
        CUfunction function = load(&module, forms[i].body);
        for (size_t k = 0; k < MOST_ROWS; k++) {
            const struct row *row = &forms[i].rows[k];
            if (k > 0 && row->a == 0 && row->d == 0)
                break;
            uint64_t got = computed(function, *row);
            if (got == row->d)
                continue;
            printf("# %s\n#   (%llx, %llx, %llx) gives %llx, not %llx\n", forms[i].body,
                   (unsigned long long)row->a, (unsigned long long)row->b,
                   (unsigned long long)row->c, (unsigned long long)got, (unsigned long long)row->d);
            wrong++;
        }
        OK_CU(cu.cuModuleUnload(module));
    }
    OK_CU(cu.cuMemFree_v2(memory));
    assert_int_equal(wrong, 0);
}

TEST_IS(rare_instructions_answer_as_ptx_defines, check(defined, COUNT(defined)));
TEST_IS(results_undefined_by_ptx_match_the_h200, check(open_questions, COUNT(open_questions)));

/* ---- atomic operations of many threads ------------------------------------------------------- */

static const char many[] =
    ".version 8.8\n.target sm_90\n.address_size 64\n"
    /* pairs[0] counts by one and by two together: no thread sees half of it */
    ".visible .entry pair(.param .u64 at) {\n"
    ".reg .b64 p, a, b, c, d, e, f; .reg .b128 q, r, s; .reg .pred t;\n"
    "ld.param.u64 p, [at]; ld.relaxed.gpu.global.b128 q, [p];\n"
    "AGAIN: mov.b128 {a, b}, q; add.u64 c, a, 1; add.u64 d, b, 2; mov.b128 r, {c, d};\n"
    "atom.relaxed.gpu.global.cas.b128 s, [p], q, r; mov.b128 {e, f}, s; mov.b128 q, s;\n"
    "setp.ne.u64 t, e, a; @t bra AGAIN; setp.ne.u64 t, f, b; @t bra AGAIN; ret; }\n"
    ".visible .entry sums(.param .u64 at) {\n"
    ".reg .b64 p; .reg .f32 f, g; .reg .b32 i, j; .reg .b16 h, k;\n"
    "ld.param.u64 p, [at]; mov.f32 f, 0f3F800000; mov.f32 g, 0f40000000;\n"
    "red.global.v4.f32.add [p], {f, g, f, g}; mov.u32 i, %tid.x; cvt.rn.f16.u32 h, i; neg.f16 k, "
    "h;\n"
    "red.global.v8.f16.max.noftz [p+16], {h, k, h, k, h, k, h, k};\n"
    "mov.b32 j, 0x3c003c00; red.global.add.noftz.v2.f16x2 [p+32], {j, j}; ret; }\n";

TEST(vector_and_128_bit_atomics_are_atomic) {
    uint64_t words[2] = {0, 0};
    unsigned char bytes[48] = {0};
    begin();
    OK_CU(cu.cuMemFree_v2(memory));
    OK_CU(cu.cuMemAlloc_v2(&memory, sizeof bytes));
    CUmodule module = new_module(many);
    CUfunction pair = function_of(module, "pair");
    CUfunction sums = function_of(module, "sums");
    void *params[] = {&memory};
    OK_CU(cu.cuMemsetD8_v2(memory, 0, sizeof bytes));
    OK_CU(cu.cuLaunchKernel(pair, 8, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    OK_CU(cu.cuMemcpyDtoH_v2(words, memory, sizeof words));
    assert_int_equal(words[0], 512);
    assert_int_equal(words[1], 1024);
    OK_CU(cu.cuMemsetD8_v2(memory, 0, sizeof bytes));
    OK_CU(cu.cuLaunchKernel(sums, 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    OK_CU(cu.cuMemcpyDtoH_v2(bytes, memory, sizeof bytes));
    float floats[4];
    uint16_t halves[12];
    memcpy(floats, bytes, sizeof floats);
    memcpy(halves, bytes + 16, sizeof halves);
    for (int i = 0; i < 4; i++)
        assert_true(floats[i] == (i % 2 ? 512.0f : 256.0f));
    for (int i = 0; i < 8; i++)
        assert_int_equal(halves[i], i % 2 ? 0 : 0x53e0); /* 63 */
    for (int i = 8; i < 12; i++)
        assert_int_equal(halves[i], 0x5c00); /* 256 */
    OK_CU(cu.cuMemFree_v2(memory));
}

/* (1 + 2^-12)^2 - (1 + 2^-11): the last bit of the square, unless it is rounded. */
static void squares_less_a_sum_are(uint64_t wanted, uintptr_t level) {
    CUmodule module;
    CUfunction function = load_at(&module,
                                  FLOATS_WORD(".reg .f32 h, i; mov.b32 i, %z; mul.f32 h, f, g;"
                                              "sub.f32 h, h, i; mov.b32 %w, h;"),
                                  level);
    const struct row row = {0x3f800800, 0x3f800800, 0x3f801000, 0};
    assert_int_equal(computed(function, row), wanted);
    OK_CU(cu.cuModuleUnload(module));
}

TEST(products_and_sums_are_contracted_where_the_driver_optimises) {
    begin();
    squares_less_a_sum_are(0x33800000, 4);
    squares_less_a_sum_are(0x33800000, 1);
    squares_less_a_sum_are(0, 0);
    OK_CU(cu.cuMemFree_v2(memory));
}

CHILD(contracts_nothing) {
    init_driver();
    begin();
    squares_less_a_sum_are(0, 4);
    OK_CU(cu.cuMemFree_v2(memory));
    return 0;
}

TEST_WHERE(contraction_can_be_switched_off, NEEDS_SOFTGPU("SOFTGPU_CONTRACTION")) {
    assert_int_equal(setenv("SOFTGPU_CONTRACTION", "0", 1), 0);
    int status = run_child("contracts_nothing", NULL);
    unsetenv("SOFTGPU_CONTRACTION");
    assert_int_equal(status, 0);
}
