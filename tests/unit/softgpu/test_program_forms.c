/* Each instruction of PTX: what it decodes to, or that it is refused by name. */
#include "softgpu/binary/read.h"
#include "softgpu/program/program.h"

#include "test.h"

#include "form_text.h"

static const char before[] = FORM_BEFORE;
static const char behind[] = FORM_BEHIND;

static char error[600];

/* NULL: the text is refused. */
static struct sg_image *image_of(const char *instruction) {
    static const struct sg_image_options options = {
        .architecture = 90, .suffix = 'a', .newest_ptx = SG_PTX_NEWEST, .relocatable = true};
    char text[4096];
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    struct sg_image *image = NULL;
    snprintf(text, sizeof text, "%s%s%s", before, instruction, behind);
    error[0] = '\0';
    (void)sg_image_read(text, SIZE_MAX, &options, &log, &image);
    return image;
}

static struct sg_program *decoded(const char *instruction) {
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    struct sg_image *image = image_of(instruction);
    struct sg_program *program = NULL;
    if (!image || sg_program_make(image, "k", &log, &program) != CUDA_SUCCESS)
        fail_msg("%s: %s", instruction, error);
    sg_image_free(image);
    return program;
}

/* The line of the dump that is of the first instruction, without its number. */
static void first_line(const struct sg_program *program, char *to, size_t room) {
    char *dump = sg_program_dump(program);
    assert_non_null(dump);
    const char *line = strstr(dump, "\n0 ");
    assert_non_null(line);
    snprintf(to, room, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    free(dump);
}

static const struct {
    const char *text, *decoded;
} forms[] = {
#define FORM(text, decoded) {text, decoded},
#include "program_forms.def"
};

/* Instructions of which no form is decoded, each with what says why. */
static const struct {
    unsigned op;
    const char *text, *why;
} refused[] = {
    {SG_OP_clmad, "clmad.hi.u64 d0, d1, d2, d3;", "own"},
    {SG_OP_clusterlaunchcontrol, "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p0, q0;",
     "after sm_90"},
    {SG_OP_multimem, "multimem.ld_reduce.relaxed.sys.global.add.u32 r0, [d0];", "multimem"},
    {SG_OP_setmaxnreg, "setmaxnreg.inc.sync.aligned.u32 240;", "setmaxnreg"},
    {SG_OP_tcgen05, "tcgen05.fence::before_thread_sync;", "after sm_90"},
    {SG_OP_tensormap,
     "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
     "[d0], [r0], 128;",
     "tensor maps"},
    {SG_OP_wgmma, "wgmma.fence.sync.aligned;", "wgmma"},
};

TEST(each_instruction_form_decodes) {
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        char line[600];
        struct sg_program *program = decoded(forms[i].text);
        first_line(program, line, sizeof line);
        if (strcmp(line, forms[i].decoded) != 0)
            fail_msg("%s\nis    %s\nnot   %s", forms[i].text, line, forms[i].decoded);
        assert_null(program->unsupported);
        sg_program_free(program);
    }
}

TEST(refused_instructions_are_named_with_a_reason) {
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct sg_program *program = decoded(refused[i].text);
        const struct sg_instruction *one = &program->instructions[0];
        assert_int_equal(one->op, refused[i].op);
        assert_non_null(one->unsupported);
        assert_non_null(strstr(one->unsupported, refused[i].why));
        assert_non_null(strstr(one->unsupported, sg_op_name(refused[i].op)));
        /* A profile that avoids it, unless compilers never make it. */
        assert_non_null(
            strstr(one->unsupported, one->op == SG_OP_clmad ? "not run" : "SOFTGPU_PROFILE="));
        assert_ptr_equal(program->unsupported, one->unsupported);
        assert_int_equal(program->unsupported_line, one->line);
        sg_program_free(program);
    }
}

/* A row of the table of opcodes that nobody thought of fails here. */
TEST(every_opcode_decodes_or_is_refused) {
    unsigned times[SG_OP_COUNT] = {0}, refusals[SG_OP_COUNT] = {0};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct sg_program *program = decoded(forms[i].text);
        times[program->instructions[0].op] += !program->instructions[0].unsupported;
        sg_program_free(program);
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        refusals[refused[i].op]++;
    for (unsigned op = 0; op < SG_OP_COUNT; op++) {
        if (!times[op] == !refusals[op])
            fail_msg("%s is %s", sg_op_name(op), times[op] ? "in both lists" : "in neither list");
    }
}

/* What the reader takes and no form has: never decoded to something near it. */
TEST(an_instruction_without_a_form_is_refused_with_its_reason) {
    /* clang-format off */
    static const struct {
        const char *text, *why;
    } wrong[] = {
        {"call nowhere;",
         "call: a function that has no body in this text"},
        {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [r0], [d0, {r1, r2}], [r3];",
         "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes: copies by tensor maps are not run: under SOFTGPU_PROFILE=a100 compilers do without"},
        {"cp.async.bulk.prefetch.tensor.1d.L2.global [d0, {r1}];",
         "cp.async.bulk.prefetch.tensor.1d.L2.global: copies by tensor maps are not run: under SOFTGPU_PROFILE=a100 compilers do without"},
        {"mov.b64 {r0,r1,r2}, d0;",
         "mov.b64: no form of it has these operands"},
        {"mov.u32 v4.b0, r0;",
         "mov.u32: this part of a register"},
        {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f0,f1,f2,f3}, {r0,r1}, {r4,r5}, {f4,f5,f6,f7};",
         "another number of registers than its matrix has"},
        {"mma.sync.aligned.m16n8k64.row.col.f32.f16.f16.f32 {f0,f1,f2,f3}, {r0,r1,r2,r3}, {r4,r5}, {f4,f5,f6,f7};",
         "a shape that there is not for its types"},
        {"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f0,f1,f2,f3}, {r0,r1}, {r4,r5}, {f4,f5,f6,f7}, r8, 4;",
         "a selector that there is not for its shape"},
        {"mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {r0,r1,r2,r3}, {r4,r5,r6,r7}, {r8,r9,r10,r11}, {r0,r1,r2,r3}, r8, 1;",
         "a selector that there is not for its shape"},
        {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {f0,f1,f2,f3}, {r0,r1,r2,r3}, {r4,r5}, {r6,r7};",
         "types that do not go together"},
        {"mma.sync.aligned.m16n8k32.row.row.s32.s8.s8.s32 {r0,r1,r2,r3}, {r4,r5,r6,r7}, {r8,r9}, {r0,r1,r2,r3};",
         "a layout that there is not for its shape"},
        {"wmma.load.c.sync.aligned.row.m16n8k8.f32 {f0,f1,f2,f3}, [d0], r8;",
         "a shape that there is not for its type"},
        {"wmma.load.a.sync.aligned.col.m8n8k32.s4 {r0}, [d0], r8;",
         "a layout that there is not for its type"},
        {"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 {r0,r1,r2,r3,r4,r5,r6,r7}, {r8,r9}, {r10,r11}, {r0,r1,r2,r3,r4,r5,r6,r7};",
         "types that do not go together"},
        {"call fn, (kp);",
         "call: an argument that is no .param and no register"},
        {"brx.idx r0, L;",
         "brx: its label is not that of a list"},
        {"bra TS;",
         "bra: its label is that of a list"},
    };
    /* Legal for no device, so that the text is not loaded. */
    static const char *const unread[] = {
        "mov.u32 r0, %tid;",
        "mov.u32 r0, %laneid.x;",
        "cp.async.ca.shared.global [r0], [d0], 4, 2, r1;",
        "add.u32 r0, r1, %tid.x;",
        "add.f32 f0, f1, 1;",
        "add.u32 r0, r1, 1.5;",
        "add.f16 h0, h1, 1.5;",
        "cvt.f32.f64 f0, e0;",
        "cvt.rn.e2m1x2.f32 h0, f0, f1;",
        "ld.global.v2.b32 {r0,r1,r2}, [d0];",
        "fma.rn.relu.f32 f0, f1, f2, f3;",
        "ex2.approx.bf16 h0, h1;",
        "cvt.rn.relu.sat.f16.f32 h0, f1;",
        "cvt.rni.ftz.s32.f64 r0, e1;",
        "cvt.rna.f16.f32 h0, f1;",
        "cvt.rn.bf16x2.e4m3x2 r0, h1;",
        "setp.lt.b32 p0, r1, r2;",
        "setp.hi.s32 p0, r1, r2;",
        "set.lt.f16x2.f32 r0, f1, f2;",
        "slct.ftz.f32.s32 f0, f1, f2, r3;",
        "atom.global.and.u32 r0, [d0], r1;",
        "atom.global.add.s64 d0, [d1], d2;",
        "red.acquire.gpu.global.add.u32 [d0], r1;",
        "red.shared.add.noftz.v2.f16x2 [r0], {r1, r2};",
        "atom.global.min.noftz.f16 h0, [d0], h1;",
        "redux.sync.min.f32 f0, f1, -1;",
        "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e5m2.f32 {f0,f1,f2,f3}, {r0,r1,r2,r3}, {r4,r5}, {f4,f5,f6,f7};",
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof unread / sizeof unread[0]; i++)
        if (image_of(unread[i]))
            fail_msg("%s is read", unread[i]);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct sg_program *program = decoded(wrong[i].text);
        const char *why = program->instructions[0].unsupported;
        if (!why || !strstr(why, wrong[i].why))
            fail_msg("%s: %s, not %s", wrong[i].text, why ? why : "decoded", wrong[i].why);
        assert_int_equal(program->instructions[0].operand_count, 0);
        sg_program_free(program);
    }
}
