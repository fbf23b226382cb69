/* Programs: what an entry reaches, where bytes lie, where branches go, and how making one fails. */
#include "softgpu/binary/read.h"
#include "softgpu/program/program.h"
#include "softgpu/ptx/ptx_sink.h"

#include "test.h"

#define HEAD ".version 8.5\n.target sm_90\n.address_size 64\n"

static char error[600];

static struct sg_image *image_of(const char *text) {
    static const struct sg_image_options options = {
        .architecture = 90, .suffix = 'a', .newest_ptx = 90, .relocatable = true};
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    struct sg_image *image = NULL;
    error[0] = '\0';
    if (sg_image_read(text, SIZE_MAX, &options, &log, &image) != CUDA_SUCCESS)
        fail_msg("%s\n%s", text, error);
    return image;
}

static struct sg_program *program_of(const char *text) {
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    struct sg_image *image = image_of(text);
    struct sg_program *program = NULL;
    if (sg_program_make(image, "k", &log, &program) != CUDA_SUCCESS)
        fail_msg("%s\n%s", text, error);
    sg_image_free(image); /* the program outlives it */
    return program;
}

static void dumps_as(const char *text, const char *wanted) {
    struct sg_program *program = program_of(text);
    char *dump = sg_program_dump(program);
    assert_non_null(dump);
    if (strcmp(dump, wanted) != 0)
        fail_msg("%s\nis\n%s\nnot\n%s", text, dump, wanted);
    free(dump);
    sg_program_free(program);
}

/* ---- whole programs -------------------------------------------------------------------------- */

TEST(a_kernel_with_a_loop_and_a_call_is_decoded) {
    dumps_as(HEAD ".global .align 4 .u32 sum;\n"
                  ".func (.param .b32 r) twice(.param .b32 x)\n{\n.reg .b32 %a<2>;\n"
                  ".local .align 16 .b8 t[20];\n"
                  "ld.param.b32 %a0, [x];\nshl.b32 %a1, %a0, 1;\nst.param.b32 [r], %a1;\nret;\n}\n"
                  ".visible .entry k(.param .u8 c, .param .u64 p, .param .align 4 .b8 s[12])\n{\n"
                  ".reg .pred %p<3>;\n.reg .b32 %r<9>;\n.reg .b64 %d<4>;\n"
                  "ld.param.u64 %d1, [p];\nmov.u32 %r1, 0;\n"
                  "TOP:\n"
                  "{\n.param .b32 q;\nst.param.b32 [q], %r1;\n.param .b32 w;\n"
                  "call.uni (w), twice, (q);\nld.param.b32 %r2, [w];\n}\n"
                  "{\n.param .b64 z;\nst.param.b64 [z], %d1;\n}\n"
                  "add.s32 %r1, %r2, 1;\nsetp.lt.s32 %p1, %r1, 10;\n@%p1 bra TOP;\n"
                  "st.global.u32 [sum], %r1;\nret;\n}\n",
             "program k shared 0 dynamic 0\n"
             "variable c parameters offset 0 size 1 align 1\n"
             "variable p parameters offset 8 size 8 align 8\n"
             "variable s parameters offset 16 size 12 align 4\n"
             "variable q frame offset 0 size 4 align 4\n"
             "variable w frame offset 4 size 4 align 4\n"
             "variable z frame offset 0 size 8 align 8\n"
             "variable sum image offset 0 size 4 align 4\n"
             "variable r frame offset 20 size 4 align 4\n"
             "variable x frame offset 24 size 4 align 4\n"
             "variable t frame offset 0 size 20 align 16\n"
             "entry k parameter c parameter p parameter s registers 4 frame 16\n"
             "block 0 -> 1 join 1\n"
             "0 ld.param.u64 %d1, [p+0]\n"
             "1 mov.u32 %r1, #0\n"
             "block 1 loop parts -> 2 1 join 2 live %d1, %r1\n"
             "2 st.param_frame.b32 [q+0], %r1\n"
             "3 call+UNI twice(), {&w+0}, {&q+0}\n"
             "4 ld.param_frame.b32 %r2, [w+0]\n"
             "5 st.param_frame.b64 [z+0], %d1\n"
             "6 add.s32 %r1, %r2, #1\n"
             "7 setp.lt.s32 %p1, %r1, #a\n"
             "8 @%p1 bra ->2 (back)\n"
             "block 2 -> live %r1\n"
             "9 st.global.u32 [sum+0], %r1\n"
             "10 ret\n"
             "function twice result r parameter x registers 2 frame 32\n"
             "block 3 ->\n"
             "11 ld.param_frame.b32 %a0, [x+0]\n"
             "12 shl.b32 %a1, %a0, #1\n"
             "13 st.param_frame.b32 [r+0], %a1\n"
             "14 ret\n");
}

TEST(both_branches_of_a_diamond_join_at_its_end) {
    dumps_as(HEAD ".visible .entry k()\n{\n.reg .pred p;\n.reg .b32 r;\n"
                  "@!p bra.uni ELSE;\nmov.b32 r, 1;\nbra END;\nELSE: mov.b32 r, 2;\n@p exit;\n"
                  "END: trap;\n}\n",
             "program k shared 0 dynamic 0\n"
             "entry k registers 2 frame 0\n"
             "block 0 -> 1 2 live p\n"
             "0 @!p bra+UNI ->3\n"
             "block 1 -> 3 join 3\n"
             "1 mov.b32 r, #1\n"
             "2 bra ->5\n"
             "block 2 -> 3 live p\n"
             "3 mov.b32 r, #2\n"
             "4 @p exit\n"
             "block 3 ->\n"
             "5 trap\n");
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Blocks of inline assembly have the same labels and registers many times. */
TEST(names_are_scoped_to_their_block) {
    struct sg_program *program =
        program_of(HEAD ".visible .entry k()\n{\n.reg .b32 r, t;\n"
                        "{\n.reg .f32 r;\nL: neg.f32 r, r;\nbra L;\n}\n"
                        "{\n.reg .f32 r;\nL: neg.f32 r, r;\n{\nbra L;\n}\n}\nneg.s32 r, t;\n}\n");
    const struct sg_instruction *code = program->instructions;
    assert_int_equal(program->instruction_count, 6); /* and a ret at the end */
    assert_int_equal(program->operands[code[1].first_operand].first, 0);
    assert_int_equal(program->operands[code[3].first_operand].first, 2);
    uint32_t regs[3] = {program->operands[code[0].first_operand].reg,
                        program->operands[code[2].first_operand].reg,
                        program->operands[code[4].first_operand].reg};
    assert_true(regs[0] != regs[1] && regs[1] != regs[2] && regs[0] != regs[2]);
    assert_int_equal(program->registers[regs[0]].type, SG_TYPE_F32);
    assert_int_equal(program->registers[regs[2]].type, SG_TYPE_B32);
    assert_int_equal(code[5].op, SG_OP_ret);
    sg_program_free(program);
}

TEST(a_label_in_another_block_is_refused) {
    struct sg_program *program =
        program_of(HEAD ".visible .entry k()\n{\nbra L;\n{\nL: ret;\n}\n}\n");
    assert_string_equal(program->instructions[0].unsupported,
                        "bra: its label is in no block around it");
    sg_program_free(program);
}

/* A range of registers costs nothing until one is named. */
TEST(only_named_registers_are_counted) {
    struct sg_program *program =
        program_of(HEAD ".visible .entry k()\n{\n.reg .b32 r<2000000000>;\nmov.b32 r7, 1;\nmov.b32 "
                        "r1999, r7;\n}\n");
    assert_int_equal(program->functions[0].registers, 2);
    assert_string_equal(program->registers[1].name, "r1999");
    assert_int_equal(program->operands[program->instructions[1].first_operand].reg, 1);
    sg_program_free(program);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const struct sg_program_variable *variable(const struct sg_program *program,
                                                  const char *name) {
    for (size_t i = 0; i < program->variable_count; i++) {
        if (strcmp(program->variables[i].name, name) == 0)
            return &program->variables[i];
    }
    fail_msg("no variable %s", name);
    return NULL;
}

TEST(shared_memory_counts_only_reachable_variables) {
    struct sg_program *program = program_of(
        HEAD ".shared .align 4 .b8 used[10];\n.shared .align 4 .b8 unused[1000];\n"
             ".extern .shared .align 32 .b8 dyn[];\n.extern .shared .b8 sized[3];\n"
             ".func f() { .reg .b32 r; .shared .align 16 .b8 own[24]; mov.u32 r, own; ret; }\n"
             ".func g() { .shared .b8 never[500]; ret; }\n"
             ".visible .entry k()\n{\n.reg .b32 r;\nmov.u32 r, used;\ncall f;\nmov.u32 r, dyn;\n"
             "mov.u32 r, sized;\n}\n");
    assert_int_equal(variable(program, "own")->offset, 16);
    assert_int_equal(variable(program, "used")->offset, 0);
    assert_int_equal(variable(program, "sized")->offset, 10);
    assert_int_equal(variable(program, "sized")->place, SG_PLACE_SHARED);
    assert_int_equal(program->static_shared, 64); /* as ptxas rounds it where dyn is declared */
    assert_int_equal(program->dynamic_shared_alignment, 32);
    assert_int_equal(program->dynamic_shared_offset, 64);
    assert_int_equal(variable(program, "dyn")->offset, 64);
    assert_int_equal(variable(program, "dyn")->place, SG_PLACE_DYNAMIC_SHARED);
    assert_int_equal(program->function_count, 2);
    sg_program_free(program);
}

TEST(program_variables_refer_to_image_variables) {
    static const char text[] =
        HEAD ".global .u32 a;\n.const .u32 b;\n.global .u64 c;\n"
             ".visible .entry k()\n{\n.reg .b64 r;\nmov.u64 r, c;\nmov.u64 r, b;\n}\n";
    struct sg_image *image = image_of(text);
    struct sg_program *program = program_of(text);
    assert_string_equal(image->variables[variable(program, "c")->image].name, "c");
    assert_string_equal(image->variables[variable(program, "b")->image].name, "b");
    assert_int_equal(variable(program, "b")->space, SG_IN_CONST);
    assert_int_equal(program->variable_count, 2);
    sg_program_free(program);
    sg_image_free(image);
}

TEST(parameters_may_be_vectors) {
    dumps_as(HEAD ".func (.reg .v2 .f32 o) f(.reg .v2 .f32 i) { mov.v2.f32 o, i; ret; }\n"
                  ".visible .entry k(.param .u32 a, .param .v4 .f32 p[2])\n{\n.reg .v4 .f32 v;\n"
                  ".reg .v2 .f32 x, y;\nld.param.v4.f32 v, [p+16];\ncall (x), f, (y);\n}\n",
             "program k shared 0 dynamic 0\n"
             "variable a parameters offset 0 size 4 align 4\n"
             "variable p parameters offset 16 size 32 align 16\n"
             "variable wide frame offset 0 size 8 align 8\n"
             "variable wide frame offset 8 size 8 align 8\n"
             "variable wide frame offset 0 size 8 align 8\n"
             "variable wide frame offset 8 size 8 align 8\n"
             "entry k parameter a parameter p registers 8 frame 16\n"
             "block 0 -> live y.x, y.y\n"
             "0 ld.param.v4.f32 {v.x, v.y, v.z, v.w}, [p+16]\n"
             "1 st.param_frame.v2.f32 [wide+0], {y.x, y.y}\n"
             "2 call f(), {&wide+0}, {&wide+0}\n"
             "3 ld.param_frame.v2.f32 {x.x, x.y}, [wide+0]\n"
             "4 ret\n"
             "function f result wide parameter wide registers 4 frame 16\n"
             "block 1 ->\n"
             "5 ld.param_frame.v2.f32 {i.x, i.y}, [wide+0]\n"
             "6 mov.v2.f32 {o.x, o.y}, {i.x, i.y}\n"
             "7 st.param_frame.v2.f32 [wide+0], {o.x, o.y}\n"
             "8 ret\n");
}

TEST(a_list_that_names_a_target_twice_leads_there_once) {
    struct sg_program *program =
        program_of(HEAD ".visible .entry k()\n{\n.reg .u32 r;\nT: .branchtargets A, B, A, B, B;\n"
                        "brx.idx r, T;\nA: add.u32 r, r, 1;\nB: ret;\n}\n");
    assert_int_equal(program->block_count, 3);
    assert_int_equal(program->blocks[0].successors, 2);
    assert_int_equal(program->successors[program->blocks[0].first_successor], 1);
    assert_int_equal(program->successors[program->blocks[0].first_successor + 1], 2);
    assert_int_equal(program->blocks[1].successors, 1);
    sg_program_free(program);
}

/* ---- calls ----------------------------------------------------------------------------------- */

TEST(an_indirect_call_may_reach_every_listed_function) {
    struct sg_program *program = program_of(
        HEAD ".func a() { ret; }\n.func b() { ret; }\n.func also();\n.alias also, b;\n"
             ".visible .entry k()\n{\n.reg .b64 d;\nmov.u64 d, a;\nP: .callprototype _ ();\n"
             "call d, (), P;\nT: .calltargets b, also;\ncall d, (), T;\n}\n");
    const struct sg_program_function *functions = program->functions;
    assert_int_equal(program->function_count, 3);
    assert_true(functions[0].indirect_calls && !functions[1].indirect_calls);
    assert_true(functions[1].address_taken);
    assert_true(functions[1].ordinal != functions[2].ordinal);
    const struct sg_instruction *call = &program->instructions[2];
    assert_int_equal(call->operand_count, 4);
    const struct sg_operand *last = &program->operands[call->first_operand + 3];
    assert_int_equal(last->kind, SG_OPERAND_TARGETS);
    assert_int_equal(program->targets[last->first].count, 2);
    assert_int_equal(program->target_list[program->targets[last->first].first],
                     program->target_list[program->targets[last->first].first + 1]);
    sg_program_free(program);
}

TEST(arguments_must_have_the_sizes_of_the_parameters) {
    dumps_as(HEAD ".func (.param .b32 r) f(.param .align 8 .b8 x[16]) { ret; }\n"
                  ".visible .entry k()\n{\n.param .align 8 .b8 a[16];\n.param .b64 b;\n"
                  ".param .b32 c;\n.reg .b32 g;\n.reg .b64 h;\ncall (c), f, (a);\n"
                  "call (g), f, (a);\ncall (h), f, (a);\ncall (c), f, (b);\n}\n",
             "program k shared 0 dynamic 0\n"
             "variable a frame offset 0 size 16 align 8\n"
             "variable b frame offset 16 size 8 align 8\n"
             "variable c frame offset 24 size 4 align 4\n"
             "variable r frame offset 16 size 4 align 4\n"
             "variable x frame offset 0 size 16 align 8\n"
             "entry k registers 2 frame 32\n"
             "block 0 ->\n"
             "0 call f(), {&c+0}, {&a+0}\n"
             "1 call f(), {g}, {&a+0}\n"
             "2 ? call: 'f' has parameters or results of other sizes\n"
             "3 ? call: 'f' has parameters or results of other sizes\n"
             "4 ret\n"
             "function f result r parameter x registers 0 frame 32\n"
             "block 1 ->\n"
             "5 ret\n");
}

TEST(functions_of_the_device_runtime_are_recognized) {
    static const struct {
        const char *name;
        enum sg_runtime runtime;
        const char *declared, *call;
    } all[] = {
        {"vprintf", SG_RUNTIME_VPRINTF, "(.param .b32 r) %s(.param .b64 x, .param .b64 y)",
         "(r), %s, (x, x)"},
        {"malloc", SG_RUNTIME_MALLOC, "(.param .b64 r) %s(.param .b64 x)", "(x), %s, (x)"},
        {"__cuda_syscall_aligned_malloc", SG_RUNTIME_ALIGNED_MALLOC,
         "(.param .b64 r) %s(.param .b64 x, .param .b64 y)", "(x), %s, (x, x)"},
        {"free", SG_RUNTIME_FREE, "%s(.param .b64 x)", "%s, (x)"},
        {"__assertfail", SG_RUNTIME_ASSERTFAIL,
         "%s(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e)",
         "%s, (x, x, r, x, x)"},
        {"cudaGraphSetConditional", SG_RUNTIME_GRAPH_SET_CONDITIONAL,
         "%s(.param .b64 x, .param .b32 y)", "%s, (x, r)"},
        {"cudaLaunchDeviceV2", SG_RUNTIME_OTHER, "(.param .b32 r) %s(.param .b64 x)",
         "(r), %s, (x)"},
        {"__cuda_syscall_of_a_later_driver", SG_RUNTIME_OTHER, "%s(.param .b64 x)", "%s, (x)"},
        /* With other sizes than the runtime's it is refused. */
        {"malloc", SG_RUNTIME_OTHER, "(.param .b32 r) %s(.param .b32 x)", "(r), %s, (r)"},
        {"vprintf", SG_RUNTIME_OTHER, "(.param .b32 r) %s(.param .b64 x)", "(r), %s, (x)"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char declared[300], call[200], text[800];
        const char *name = all[i].name, *at = strstr(all[i].declared, "%s");
        snprintf(declared, sizeof declared, "%.*s%s%s", (int)(at - all[i].declared),
                 all[i].declared, name, at + 2);
        at = strstr(all[i].call, "%s");
        snprintf(call, sizeof call, "%.*s%s%s", (int)(at - all[i].call), all[i].call, name, at + 2);
        snprintf(text, sizeof text,
                 HEAD ".extern .func %s;\n"
                      ".visible .entry k() { .param .b32 r; .param .b64 x; call %s; }\n",
                 declared, call);
        struct sg_program *program = program_of(text);
        if (all[i].runtime != SG_RUNTIME_OTHER)
            assert_int_equal(program->functions[1].runtime, all[i].runtime);
        assert_int_equal(program->functions[1].instructions, 0);
        assert_true((program->unsupported != NULL) == (all[i].runtime == SG_RUNTIME_OTHER));
        sg_program_free(program);
    }
}

/* ---- the text -------------------------------------------------------------------------------- */

TEST(instructions_keep_their_ptx_and_source_lines) {
    struct sg_program *program = program_of(
        HEAD ".visible .entry k()\n{\n.reg .b32 r;\n.loc 1 30 7\nmov.b32 r, 1;\n"
             ".loc 2 5 0, function_name F, inlined_at 1 31 2\nmov.b32 r, 2;\nret;\nF:\n}\n"
             ".file 1 \"a.cu\"\n.file 2 \"b.h\", 12, 13\n");
    const struct sg_instruction *code = program->instructions;
    assert_int_equal(code[0].line, 8);
    assert_int_equal(code[1].line, 10);
    const struct sg_program_location *at = &program->locations[code[0].location - 1];
    assert_int_equal(at->file, 1);
    assert_int_equal(at->line, 30);
    assert_int_equal(at->column, 7);
    assert_false(at->inlined);
    at = &program->locations[code[2].location - 1];
    assert_int_equal(at->file, 2);
    assert_true(at->inlined && at->inlined_file == 1 && at->inlined_line == 31);
    assert_int_equal(program->file_count, 2);
    assert_string_equal(program->files[1].name, "b.h");
    sg_program_free(program);
}

/* What else the text has is not read: it may be any number of functions. */
TEST(each_entry_of_an_image_is_decoded_by_itself) {
    struct sg_image *image = image_of(HEAD ".visible .entry a() { ret; }\n"
                                           ".visible .entry k() { .reg .b32 r; add.u32 r, r, 1; }\n"
                                           "// \n.visible .entry c() { trap; }\n");
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    static const struct {
        const char *name;
        unsigned op, line;
    } all[] = {{"c", SG_OP_trap, 7}, {"k", SG_OP_add, 5}, {"a", SG_OP_ret, 4}};
    for (size_t i = 0; i < 3; i++) {
        struct sg_program *program = NULL;
        assert_int_equal(sg_program_make(image, all[i].name, &log, &program), CUDA_SUCCESS);
        MEMBERS(program->instructions[0], (op, all[i].op), (line, all[i].line));
        sg_program_free(program);
    }
    sg_image_free(image);
}

static char *fixture(const char *name) {
    char path[400], *bytes = calloc(1, 1 << 20);
    snprintf(path, sizeof path, GPUMEM_SOURCE_DIR "/tests/fixtures/programs/%s", name);
    FILE *file = fopen(path, "rb");
    assert_true(bytes && file);
    assert_in_range(fread(bytes, 1, 1 << 20, file), 1, (1 << 20) - 1);
    fclose(file);
    return bytes;
}

/* Calls of known functions, of themselves, and through a register; structures by value. */
TEST(ptx_written_by_clang_is_decoded) {
    static const char *const entries[] = {"reduce", "choose", "indirect"};
    char *bytes = fixture("kernels.ptx");
    struct sg_image *image = image_of(bytes);
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        struct sg_program *program = NULL;
        assert_int_equal(sg_program_make(image, entries[i], &log, &program), CUDA_SUCCESS);
        if (program->unsupported)
            fail_msg("line %u: %s", program->unsupported_line, program->unsupported);
        assert_string_equal(program->name, entries[i]);
        assert_int_equal(program->static_shared, i == 0 ? 1024 : 0);
        assert_int_equal(program->functions[0].indirect_calls, i == 2);
        sg_program_free(program);
    }
    sg_image_free(image);
    free(bytes);
}

/* What a link gives has its text, and nobody has read it. */
TEST(a_linked_text_without_an_outline_is_decoded) {
    struct sg_image *image =
        image_of(HEAD ".global .u32 v;\n.visible .entry k() { .reg .b64 d; mov.u64 d, v; }\n");
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    struct sg_program *program = NULL;
    free(image->outline);
    image->outline = NULL;
    assert_int_equal(sg_program_make(image, "k", &log, &program), CUDA_SUCCESS);
    assert_int_equal(variable(program, "v")->image, 0);
    assert_null(program->unsupported);
    sg_program_free(program);
    sg_image_free(image);
}

TEST(a_name_that_is_no_entry_is_not_found) {
    struct sg_image *image = image_of(HEAD ".func f() { ret; }\n.global .u32 v;\n"
                                           ".visible .entry k() { ret; }\n");
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    static const char *const names[] = {"f", "v", "", "kk"};
    struct sg_program *program = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(sg_program_make(image, names[i], &log, &program), CUDA_ERROR_NOT_FOUND);
        assert_null(program);
    }
    free(image->ptx);
    image->ptx = NULL;
    assert_int_equal(sg_program_make(image, "k", &log, &program), CUDA_ERROR_INVALID_VALUE);
    assert_null(program);
    sg_program_free(NULL);
    sg_image_free(image);
}
