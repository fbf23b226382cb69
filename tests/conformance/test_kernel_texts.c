/*
 * Forms of text that few compilers write: each row is a text whose kernel "k" stores words, as an
 * H200 stores them. $ stands for .version, .target and .address_size of today, # begins a kernel
 * with its address in %o, words of 32 bits %a to %d, %x to %z of 64, a float %f and a predicate %p.
 */
#include "harness.h"

#define MOST_WORDS 8
#define MOST_TEXT  4096

static const char head[] = ".version 8.3\n.target sm_90\n.address_size 64\n";
static const char begin[] =
    ".visible .entry k(.param .u64 out) { .reg .b64 %o, %x, %y, %z; .reg .b32 %a, %b, %c, %d;\n"
    ".reg .f32 %f; .reg .b16 %h; .reg .pred %p, %q; ld.param.u64 %o, [out]; mov.u32 %a, %tid.x;\n"
    "setp.ne.u32 %p, %a, 0; @%p exit;\n";

static const struct row {
    const char *text;
    unsigned words[MOST_WORDS];
} rows[] = {
    /* prototypes without a semicolon */
    {"$.func (.param .b32 r) f(.param .b32 a)\n#call (%a), f, (5); st.global.u32 [%o], %a; ret; }\n"
     ".func (.param .b32 r) f(.param .b32 a) { .reg .b32 t; ld.param.b32 t, [a]; add.u32 t, t, 1;\n"
     "st.param.b32 [r], t; ret; }\n",
     {6}},
    /* ranges of variables */
    {"$.func (.param .b64 r) f(.param .b64 a) { .reg .b64 t; ld.param.b64 t, [a]; add.u64 t, t, "
     "3;\n"
     "st.param.b64 [r], t; ret; }\n#{ .param .b64 P<2>; st.param.b64 [P0], 4; call (P1), f, (P0);\n"
     "ld.param.b64 %x, [P1]; } st.global.u64 [%o], %x; ret; }\n",
     {7}},
    {"$#.shared .u32 s<3>; .local .align 16 .b8 l<3>; .global .u32 g<2>; .const .u32 c<2>;\n"
     "st.shared.u32 [s0], 1; st.shared.u32 [s2], 3; ld.shared.u32 %a, [s0]; ld.shared.u32 %b, "
     "[s2];\n"
     "st.local.u8 [l0], 5; st.local.u8 [l2], 6; ld.local.u8 %c, [l0]; ld.local.u8 %d, [l2];\n"
     "st.global.v4.u32 [%o], {%a, %b, %c, %d}; st.global.u32 [g0], 7; st.global.u32 [g1], 8;\n"
     "ld.global.u32 %a, [g0]; ld.global.u32 %b, [g1]; ld.const.u32 %c, [c1];\n"
     "st.global.v4.u32 [%o+16], {%a, %b, %c, %b}; ret; }\n",
     {1, 3, 5, 6, 7, 8, 0, 8}},
    {"$.visible .global .u32 g<2>; .shared .u16 s<2>; .const .u32 c<2>;\n#st.global.u32 [g1], 3;\n"
     "st.shared.u16 [s1], 4; ld.global.u32 %a, [g1]; ld.shared.u16 %b, [s1]; ld.const.u32 %c, "
     "[c1];\n"
     "ld.global.u32 %d, [g0]; st.global.v4.u32 [%o], {%a, %b, %c, %d}; ret; }\n",
     {3, 4}},
    /* .global and .const in bodies, each block its own */
    {"$.visible .global .u32 g = 9; .func (.reg .b32 r) f() { .global .u32 g = 3;\n"
     "ld.global.u32 r, [g]; add.u32 r, r, 1; st.global.u32 [g], r; ret; }\n"
     "#.global .u32 g = 5; .global .u64 at = g; .const .u32 t[2] = {6, 7};\n"
     "{ .global .u32 g = 8; ld.global.u32 %a, [g]; } ld.global.u32 %b, [g]; call (%c), f;\n"
     "call (%c), f; ld.const.u32 %d, [t+4]; st.global.v4.u32 [%o], {%a, %b, %c, %d};\n"
     "ld.global.u64 %x, [at]; ld.global.u32 %a, [%x]; st.global.u32 [%o+16], %a; ret; }\n",
     {8, 5, 5, 7, 5}},
    {"$#.global .u32 g; .const .u32 c; st.global.u32 [%o], 9; ret; }\n", {9}},
    /* arguments and results: vectors, 128 bits, constants */
    {"$.func (.reg .v2 .b32 r) f(.reg .v2 .b32 a) { add.u32 r.x, a.x, a.y; sub.u32 r.y, a.x, a.y; "
     "}\n"
     "#.reg .v2 .b32 %v; mov.u32 %v.x, 30; mov.u32 %v.y, 12; call (%v), f, (%v);\n"
     "st.global.v2.b32 [%o], %v; ret; }\n",
     {42, 18}},
    {"$.func (.reg .v4 .b32 r) f(.reg .v4 .b32 a) { mov.b32 r.x, a.w; mov.b32 r.y, a.z;\n"
     "mov.b32 r.z, a.y; mov.b32 r.w, a.x; ret; }\n#.reg .v4 .b32 %v; mov.b32 %v.x, 1;\n"
     "mov.b32 %v.y, 2; mov.b32 %v.z, 3; mov.b32 %v.w, 4; call (%v), f, (%v);\n"
     "st.global.v4.b32 [%o], %v; ret; }\n",
     {4, 3, 2, 1}},
    {"$.func (.reg .f32 r) f(.reg .f32 a, .param .b16 b) { .reg .b16 h; ld.param.b16 h, [b];\n"
     "cvt.rn.f32.u16 r, h; add.f32 r, r, a; ret; }\n"
     "#call (%f), f, (0f3f800000, 2); st.global.f32 [%o], %f; ret; }\n",
     {0x40400000}},
    /* sums as operands */
    {"$.func f() { ret; }\n#.shared .u32 s[4]; mov.u32 %a, 32; st.global.u32 [%o], %a+1;\n"
     "mad.lo.u32 %b, %a+1, %a+2, %a+3; st.global.u32 [%o+4], %b; mov.u32 %c, -1;\n"
     "cvt.u64.u32 %x, %c+1; st.global.u64 [%o+8], %x; mov.u64 %x, 5; add.u64 %x, %x+1, 3;\n"
     "st.global.u64 [%o+16], %x; mov.u32 %a, s; neg.s32 %a, %a; add.u32 %a, %a, s+4;\n"
     "mov.b64 %x, f; st.global.u64 [%o+24], f; ld.global.u64 %y, [%o+24]; sub.u64 %x, %x, %y;\n"
     "st.global.u64 [%o+24], %x; st.global.u32 [%o+24], %a; ret; }\n",
     {33, 33 * 34 + 35, 0, 0, 9, 0, 4, 0}},
    /* external variables of a known size that nothing defines */
    {"$.extern .global .u32 t[4]; .extern .const .align 8 .b8 c[16]; .extern .global .u32 t[];\n"
     ".global .u64 at = t;\n#ld.global.u32 %a, [t+12]; ld.const.u32 %b, [c]; ld.global.u64 %x, "
     "[at];\n"
     "st.global.u32 [t+4], 6; ld.global.u32 %c, [%x+4]; add.u32 %a, %a, 5;\n"
     "st.global.v4.u32 [%o], {%a, %b, %c, %b}; ret; }\n",
     {5, 0, 6}},
    /* before sm_20: subnormal floats of 32 bits are zero, as operands and as results */
    {".version 1.4\n.target sm_13\n.entry k(.param .u64 out) { .reg .u64 o; .reg .f32 a, b, c, "
     "r<9>;\n"
     ".reg .f64 d; .reg .u32 t; .reg .pred p; ld.param.u64 o, [out]; mov.b32 a, 100;\n"
     "mov.f32 b, 0f00800000; mov.f32 c, 0f3f000000; add.rz.f32 r0, a, a; mul.f32 r1, b, c;\n"
     "sub.f32 r2, b, a; mad.f32 r3, b, c, a; neg.f32 r4, a; max.f32 r5, a, a;\n"
     "setp.gt.f32 p, a, 0f00000000; selp.u32 t, 1, 0, p; cvt.f64.f32 d, a; cvt.rn.f32.f64 r7, d;\n"
     "st.global.f32 [o], r0; st.global.f32 [o+4], r1; st.global.f32 [o+8], r2; st.global.f32 "
     "[o+12], r3;\n"
     "st.global.f32 [o+16], r4; st.global.f32 [o+20], r5; st.global.u32 [o+24], t;\n"
     "st.global.f32 [o+28], r7; exit; }\n",
     {0, 0, 0x800000, 0, 0x80000000, 0, 0, 100}},
    {".version 1.4\n.target sm_13\n.entry k(.param .u64 out) { .reg .u64 o; .reg .f32 a, b, r;\n"
     ".reg .pred p; .reg .u32 t; ld.param.u64 o, [out]; mov.b32 a, 100; mov.f32 b, 0f3f800000;\n"
     "setp.lt.f32 p, a, b; selp.f32 r, a, b, p; st.global.f32 [o], r; set.gt.u32.f32 t, a, "
     "0f00000000;\n"
     "st.global.u32 [o+4], t; exit; }\n",
     {100, 0}},
    /* vote and shfl without .sync: among the lanes that are together */
    {".version 6.4\n.target sm_60\n.address_size 64\n.entry k(.param .u64 out) { .reg .u64 o, at;\n"
     ".reg .u32 t, r<9>; .reg .pred p, q, s; ld.param.u64 o, [out]; mov.u32 t, %tid.x;\n"
     "setp.lt.u32 p, t, 5; vote.all.pred q, p; selp.u32 r0, 1, 0, q; vote.any.pred q, !p;\n"
     "selp.u32 r1, 1, 0, q; vote.uni.pred q, p; selp.u32 r2, 1, 0, q; vote.ballot.b32 r3, p;\n"
     "shfl.bfly.b32 r4, t, 1, 31; shfl.down.b32 r5|q, t, 4, 31; setp.lt.u32 s, t, 8;\n"
     "@s vote.ballot.b32 r6, p; @!s vote.ballot.b32 r6, !p; @!s bra END;\n"
     "vote.ballot.b32 r7, q; setp.ne.u32 p, t, 0; @p bra END; st.global.v4.u32 [o], {r0, r1, r2, "
     "r3};\n"
     "st.global.v4.u32 [o+16], {r4, r5, r6, r7}; END: exit; }\n",
     {0, 1, 0, 0x1f, 1, 4, 0x1f, 0xff}},
    /* what the module declares for each thread, seen from all its functions */
    {".version 2.1\n.target sm_20\n.local .align 4 .b8 l[16];\n.reg .u32 %g<4>;\n.reg .pred %p;\n"
     ".reg .f64 %w;\n.func f { ld.local.u32 %g2, [l+4]; add.u32 %g1, %g1, %g2; setp.eq.u32 %p, "
     "%g1, 14;\n"
     "@%p st.local.u32 [l+8], %g2; add.f64 %w, %w, %w; ret; }\n"
     ".entry k(.param .u64 out) { .reg .u64 o; .reg .u32 r, t; ld.param.u64 o, [out];\n"
     "mov.u32 t, %tid.x; setp.ne.u32 %p, t, 0; @%p exit; mov.u32 %g1, 9; st.local.u32 [l+4], 5;\n"
     "mov.f64 %w, 0d3ff0000000000000; call f; st.global.u32 [o], %g1; ld.local.u32 r, [l+8];\n"
     "st.global.u32 [o+4], r; selp.u32 r, 3, 4, %p; st.global.u32 [o+8], r; @!%p mov.u32 %g1, 1;\n"
     "st.global.u32 [o+12], %g1; st.global.f64 [o+16], %w; exit; }\n",
     {14, 5, 3, 14, 0, 0x40000000}},
    /* shared memory without a name: its first KiB is there */
    {"$#mov.u32 %a, 0; mov.u32 %b, 5; ld.shared.u32 %c, [%a+1020]; st.shared.u32 [%a], %b;\n"
     "ld.shared.u32 %d, [%a]; st.global.v2.u32 [%o], {%d, %c}; ret; }\n",
     {5, 0}},
    /* parameters that are read beyond their end */
    {"$.entry k(.param .u64 out, .param .align 4 .b8 s) { .reg .u64 o, x; .reg .u32 a, b, c;\n"
     "ld.param.u64 o, [out]; ld.param.u32 a, [s]; ld.param.u32 b, [s+4]; mov.u64 x, s;\n"
     "ld.param.u32 c, [x+4]; st.global.v2.u32 [o], {a, b}; st.global.u32 [o+8], c;\n"
     "ld.param.u32 a, [s+5000]; st.global.u32 [o+12], a; ret; }\n",
     {0x67, 0, 0, 0}},
    /* references that nothing is bound to */
    {".version 4.3\n.target sm_20\n.address_size 64\n.global .texref tx;\n.global .surfref sf;\n"
     ".entry k(.param .u64 out) { .reg .u64 o; .reg .f32 f<5>; .reg .u32 a, r<5>;\n"
     "ld.param.u64 o, [out]; mov.f32 f0, 0f3f000000; mov.u32 a, 1; mov.u32 r1, 7; mov.u32 r2, 7;\n"
     "tex.2d.v4.f32.f32 {f1,f2,f3,f4}, [tx, {f0,f0}]; st.global.f32 [o], f1;\n"
     "st.global.f32 [o+4], f4; tex.3d.v4.f32.s32 {f1,f2,f3,f4}, [tx, {a,a,a,a}];\n"
     "st.global.f32 [o+8], f2; suld.b.2d.b32.trap {r1}, [sf, {a,a}]; st.global.u32 [o+12], r1;\n"
     "sust.b.2d.b32.trap [sf, {a,a}], {a}; sured.b.add.2d.u32.clamp [sf, {a,a}], a;\n"
     "txq.width.b32 r2, [tx]; st.global.u32 [o+16], r2; suq.height.b32 r2, [sf];\n"
     "st.global.u32 [o+20], r2; st.global.u32 [o+24], a; ret; }\n",
     {0, 0, 0, 0, 0, 0, 1}},
    /* shifts of 16 bits by more than 65,535; environment registers */
    {"$#.reg .b16 %g; mov.b16 %h, 0x8235; shr.u16 %g, %h, 65537; cvt.u32.u16 %a, %g;\n"
     "shl.b16 %g, %h, 65537; cvt.u32.u16 %b, %g; shr.s16 %g, %h, 0x1000f; cvt.u32.u16 %c, %g;\n"
     "mov.u32 %d, 65537; shr.u16 %g, %h, %d; cvt.u32.u16 %d, %g;\n"
     "st.global.v4.u32 [%o], {%a, %b, %c, %d}; mov.b32 %a, %envreg4; mov.b32 %b, %envreg0;\n"
     "st.global.u32 [%o+16], %a; ret; }\n",
     {0x411a, 0x46a, 0xffff, 0, 0}},
};

static const char *written_out(const struct row *row) {
    static char text[MOST_TEXT];
    size_t used = 0;
    for (const char *at = row->text; *at; at++) {
        const char *piece = *at == '$' ? head : *at == '#' ? begin : NULL;
        size_t size = piece ? strlen(piece) : 1;
        assert_true(used + size < MOST_TEXT);
        memcpy(text + used, piece ? piece : at, size);
        used += size;
    }
    text[used] = '\0';
    return text;
}

static void gives(const struct row *row, CUdeviceptr out) {
    unsigned got[MOST_WORDS];
    CUfunction function;
    CUmodule module;
    unsigned more = 0x1234567;
    void *params[] = {&out, &more};
    OK_CU(cu.cuMemsetD8_v2(out, 0, sizeof got));
    if (cu.cuModuleLoadData(&module, written_out(row)) != CUDA_SUCCESS)
        fail_msg("%s\nis not loaded", row->text);
    OK_CU(cu.cuModuleGetFunction(&function, module, "k"));
    CUresult launched = cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
    if (launched != CUDA_SUCCESS && row == rows && no_kernels(launched))
        SKIP("the driver runs no kernels: SOFTGPU_KERNELS=0");
    if (launched != CUDA_SUCCESS)
        fail_msg("%s\nis not launched: %d", row->text, (int)launched);
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuMemcpyDtoH_v2(got, out, sizeof got));
    for (unsigned i = 0; i < MOST_WORDS; i++)
        if (got[i] != row->words[i])
            fail_msg("%s\nword %u: %x, not %x", row->text, i, got[i], row->words[i]);
    OK_CU(cu.cuModuleUnload(module));
}

/* They load, with the size that they ask for. */
TEST(kernels_with_too_much_local_memory_are_not_launched) {
    static const struct {
        const char *bytes;
        CUresult launched;
    } all[] = {{"520000", CUDA_SUCCESS},
               {"524288", CUDA_ERROR_INVALID_VALUE},
               {"1073741824", CUDA_ERROR_INVALID_VALUE}};
    if (device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9)
        SKIP("the device is older than these kernels (compute capability 9.0)");
    size_t before = MADE_CU(size_t, cuCtxGetLimit, CU_LIMIT_STACK_SIZE);
    for (unsigned i = 0; i < COUNT(all); i++) {
        char text[400];
        int bytes = 0;
        snprintf(
            text, sizeof text,
            "%s.entry k() { .local .b8 l[%s]; .reg .u64 d, t; .reg .u32 r; mov.u32 r, %%tid.x;\n"
            "mov.u64 d, l; cvt.u64.u32 t, r; add.u64 d, d, t; st.local.u8 [d], r; ret; }\n",
            head, all[i].bytes);
        CUfunction function;
        OK_CU(cu.cuModuleGetFunction(&function, new_module(text), "k"));
        OK_CU(cu.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function));
        assert_int_equal(bytes, atoi(all[i].bytes));
        CUresult result = cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
        if (no_kernels(result))
            SKIP("the driver runs no kernels: SOFTGPU_KERNELS=0");
        assert_int_equal(result, all[i].launched);
        OK_CU(cu.cuCtxSynchronize());
    }
    OK_CU(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, before)); /* the first launch has raised it */
}

TEST(forms_of_text_that_few_compilers_write_are_run) {
    if (device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9)
        SKIP("the device is older than these kernels (compute capability 9.0)");
    CUdeviceptr out = new_memory(4096);
    for (unsigned i = 0; i < COUNT(rows); i++)
        gives(&rows[i], out);
}
