/* Which values all threads of a block share, and which branches part them. */
#include "program_text.h"

#include "softgpu/program/uniformity.h"

#define TOP ".version 8.5\n.target sm_90\n.address_size 64\n"
#define HEAD                                                                                       \
    ".visible .entry k(.param .u64 in, .param .u32 n)\n{\n.reg .pred p, q;\n"                      \
    ".reg .b32 a, b, c, d, e, f;\n.reg .b64 x, y;\n.shared .u32 s;\n"

/* The registers of a function that vary, by name, and the numbers of the blocks that part. */
static void vary(const char *text, unsigned function, const char *registers, const char *blocks) {
    struct sg_program *program = program_of(text);
    const struct sg_program_function *one = &program->functions[function];
    struct sg_uniformity found;
    char names[400] = "", numbers[100] = "";
    assert_true(sg_uniformity_find(program, one, &found));
    for (uint32_t i = 0; i < one->registers; i++)
        if (found.varies[i]) {
            strcat(names, program->registers[one->first_register + i].name);
            strcat(names, " ");
        }
    for (uint32_t i = 0; i < one->blocks; i++)
        if (found.parts[i])
            sprintf(numbers + strlen(numbers), "%u ", i);
    assert_string_equal(names, registers);
    assert_string_equal(numbers, blocks);
    sg_uniformity_free(&found);
    sg_program_free(program);
}

TEST(values_derived_from_the_thread_index_vary) {
    vary(TOP HEAD "mov.u32 a, %tid.x;\nadd.s32 b, a, 1;\nmov.u32 c, %ctaid.x;\n"
                  "ld.param.u32 d, [n];\nmad.lo.s32 e, c, d, 3;\ncvt.u64.u32 x, e;\n"
                  "mul.wide.u32 y, b, 4;\nsetp.lt.u32 p, e, d;\nsetp.lt.u32 q, b, d;\nret;\n}\n",
         0, "a b y q ", "");
}

/* Loads, atomic operations, shuffles, clocks, and what a call gives. */
TEST(loaded_and_received_values_vary) {
    vary(TOP ".func (.reg .b32 r) f(.reg .b32 g)\n{\n.reg .b32 t;\nmov.u32 t, 1;\n"
             "add.s32 r, g, t;\nret;\n}\n" HEAD
             "ld.param.u64 x, [in];\nld.global.u32 a, [x];\nldu.global.u32 b, [x];\n"
             "atom.shared.add.u32 c, [s], 1;\nshfl.sync.idx.b32 d, e, 0, 31, -1;\n"
             "mov.u32 f, %clock;\nret;\n}\n",
         0, "a b c d f ", "");
    vary(TOP ".func (.reg .b32 r) fu(.reg .b32 g)\n{\n.reg .b32 t;\nmov.u32 t, 1;\n"
             "add.s32 r, g, t;\nret;\n}\n" HEAD "call (a), fu, (b);\nret;\n}\n",
         1, "r g ", "");
}

/* The condition code joins an addition to the next one. */
TEST(a_carry_from_a_varying_addition_varies) {
    vary(TOP HEAD "mov.u32 a, %laneid;\nadd.cc.u32 b, a, 1;\naddc.u32 c, d, d;\nret;\n}\n", 0,
         "a b c ", "");
    vary(TOP HEAD "mov.u32 a, %ntid.x;\nadd.cc.u32 b, a, 1;\naddc.u32 c, d, d;\nret;\n}\n", 0, "",
         "");
}

TEST(a_write_under_a_varying_guard_varies) {
    vary(TOP HEAD "mov.u32 a, %tid.y;\nsetp.eq.u32 p, a, 1;\n@p mov.u32 b, 5;\n"
                  "setp.eq.u32 q, c, 1;\n@q mov.u32 d, 5;\nret;\n}\n",
         0, "a p b ", "");
}

/* b depends on the way; c is the same on the only way that has it; d is the same on both. */
TEST(a_value_written_on_one_branch_varies_after_the_join) {
    vary(TOP HEAD "mov.u32 a, %tid.x;\nmov.u32 d, 4;\nsetp.eq.u32 p, a, 1;\n@p bra ELSE;\n"
                  "mov.u32 c, 1;\nadd.s32 b, c, d;\nbra END;\n"
                  "ELSE: mov.u32 b, 2;\nEND: add.s32 e, b, d;\nadd.s32 f, d, d;\nret;\n}\n",
         0, "a p b e ", "0 ");
    vary(TOP HEAD "mov.u32 a, %ctaid.x;\nsetp.eq.u32 p, a, 1;\n@p bra ELSE;\n"
                  "mov.u32 b, 1;\nbra END;\nELSE: mov.u32 b, 2;\nEND: add.s32 e, b, 1;\nret;\n}\n",
         0, "", "");
}

/* Threads leave the loop in different rounds, so its counter differs behind it. */
TEST(the_counter_of_a_divergent_loop_varies_after_it) {
    vary(TOP HEAD "mov.u32 a, %tid.x;\nmov.u32 b, 0;\n"
                  "MORE: add.s32 b, b, 1;\nsetp.lt.u32 p, b, a;\n@p bra MORE;\nmov.u32 c, b;\n"
                  "ret;\n}\n",
         0, "a b p c ", "1 ");
    vary(TOP HEAD "ld.param.u32 a, [n];\nmov.u32 b, 0;\n"
                  "MORE: add.s32 b, b, 1;\nsetp.lt.u32 p, b, a;\n@p bra MORE;\nmov.u32 c, b;\n"
                  "ret;\n}\n",
         0, "", "");
}

TEST(the_nearest_divergent_branch_is_found) {
    struct sg_program *program =
        program_of(TOP HEAD "mov.u32 a, %tid.x;\nsetp.eq.u32 p, a, 1;\nsetp.eq.u32 q, a, 2;\n"
                            "@p bra END;\n@q bra NEAR;\nbar.sync 1;\nNEAR: bar.sync 2;\n"
                            "END: bar.sync 3;\nret;\n}\n");
    const struct sg_instruction *code = program->instructions;
    assert_int_equal(code[3].op, SG_OP_bra);
    assert_int_equal(sg_parting_branch(program, 5), 4); /* bar.sync 1 */
    assert_int_equal(sg_parting_branch(program, 6), 3);
    assert_int_equal(sg_parting_branch(program, 7), SG_NO_BRANCH);
    sg_program_free(program);
}
