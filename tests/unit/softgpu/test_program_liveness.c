/* Which registers are live where, and where lanes are that a branch has parted. */
#include "program_text.h"

#include "softgpu/program/liveness.h"
#include "softgpu/program/region.h"

#define HEAD                                                                                       \
    ".version 8.5\n.target sm_90\n.address_size 64\n"                                              \
    ".visible .entry k(.param .u64 out)\n{\n.reg .pred p, q;\n.reg .b32 a, b, c, d, e, f;\n"       \
    ".reg .b64 x, y;\n"

/* The names of the registers of a function for which `is` says so, each followed by a space. */
static const char *names(const struct sg_program *program, unsigned function,
                         const struct sg_liveness *live, uint32_t block,
                         bool (*is)(const struct sg_liveness *, uint32_t, uint32_t)) {
    static char text[400];
    const struct sg_program_function *one = &program->functions[function];
    text[0] = '\0';
    for (uint32_t i = 0; i < one->registers; i++)
        if (is(live, one->first_block + block, i)) {
            strcat(text, program->registers[one->first_register + i].name);
            strcat(text, " ");
        }
    return text;
}

struct live {
    uint32_t block;
    bool (*is)(const struct sg_liveness *, uint32_t, uint32_t);
    const char *names;
};

static void check_live(const struct sg_program *program, unsigned function,
                       const struct live *expected, size_t count) {
    struct sg_liveness live;
    assert_true(sg_liveness_find(program, &program->functions[function], &live));
    for (size_t i = 0; i < count; i++)
        assert_string_equal(names(program, function, &live, expected[i].block, expected[i].is),
                            expected[i].names);
    sg_liveness_free(&live);
}

/* LIVE(program, function, {block, sg_live_in, "a b "}, ...) */
#define LIVE(program, function, ...)                                                               \
    check_live(program, function, (const struct live[]){__VA_ARGS__},                              \
               sizeof((const struct live[]){__VA_ARGS__}) / sizeof(struct live))

TEST(a_value_is_live_from_its_write_to_its_last_read) {
    struct sg_program *program =
        program_of(HEAD "ld.param.u64 x, [out];\nmov.u32 a, 1;\nmov.u32 b, 2;\n"
                        "setp.eq.u32 p, a, b;\n@p bra ELSE;\n"
                        "add.s32 c, b, 1;\nmov.u32 d, c;\nbra END;\n"
                        "ELSE: mov.u32 d, 3;\n"
                        "END: st.global.u32 [x], d;\nret;\n}\n");
    LIVE(program, 0, {0, sg_live_in, ""}, {0, sg_live_out, "x b "}, {1, sg_live_in, "x b "},
         {1, sg_live_out, "x d "}, {2, sg_live_in, "x "}, {3, sg_live_in, "x d "},
         {3, sg_live_out, ""}, {1, sg_live_written, "d "});
    sg_program_free(program);
}

TEST(values_read_in_the_next_loop_round_stay_live) {
    struct sg_program *program =
        program_of(HEAD "mov.u32 a, 0;\nmov.u32 b, 9;\nmov.u32 e, 7;\n"
                        "TOP: add.s32 c, a, e;\nmov.u32 a, c;\nsetp.lt.u32 p, a, b;\n@p bra TOP;\n"
                        "ret;\n}\n");
    LIVE(program, 0, {1, sg_live_in, "a b e "}, {1, sg_live_out, "a b e "}, {2, sg_live_in, ""});
    sg_program_free(program);
}

/* Where the guard is false a lane keeps the old value; a store's operands are only read. */
TEST(guarded_writes_and_stores_do_not_end_a_lifetime) {
    struct sg_program *program =
        program_of(HEAD "mov.u32 a, 0;\nsetp.eq.u32 p, a, 1;\nld.param.u64 x, [out];\nbra NEXT;\n"
                        "NEXT: @p mov.u32 a, 5;\nst.global.u32 [x], a;\nbar.sync a, b;\n"
                        "@p ret;\nred.global.add.u32 [y], c;\nret;\n}\n");
    LIVE(program, 0, {1, sg_live_in, "a p x b y c "}, {2, sg_live_in, "y c "},
         {0, sg_live_in, "b y c "});
    sg_program_free(program);
}

/* Results of vectors, pairs and calls are written, arguments and addresses read; parameters come
 * with the call, and results leave with it. */
TEST(every_kind_of_operand_counts_for_liveness) {
    struct sg_program *program = program_of(
        ".version 8.5\n.target sm_90\n.address_size 64\n"
        ".func (.reg .b32 r, .reg .b32 s) f(.reg .b32 g, .reg .b32 h)\n{\n.reg .pred o;\n"
        "add.s32 r, g, h;\nsetp.eq.u32 o, g, 1;\n@o bra OUT;\nmov.u32 s, 1;\nOUT: ret;\n}\n"
        ".visible .entry k()\n{\n.reg .pred p, q;\n.reg .b32 a, b, c, d, e;\n.reg .b64 x;\n"
        "bra NEXT;\nNEXT: ld.global.v2.u32 {a, b}, [x];\ncall (c, d), f, (a, e);\n"
        "setp.lt.u32 p|q, c, d;\n@q st.global.v2.u32 [x], {c, b};\nret;\n}\n");
    LIVE(program, 0, {1, sg_live_in, "x e "});
    LIVE(program, 1, {0, sg_live_in, "s g h "}, {1, sg_live_in, "r "}, {2, sg_live_out, "r s "});
    sg_program_free(program);
}

TEST(a_divergent_region_ends_at_the_join) {
    struct sg_region region;
    struct sg_program *program =
        program_of(HEAD "setp.eq.u32 p, a, 1;\nsetp.eq.u32 q, a, 2;\n@p bra ELSE;\n"
                        "MORE: add.s32 a, a, 1;\n@q bra MORE;\n"
                        "bra END;\nELSE: mov.u32 b, 1;\nEND: mov.u32 c, 1;\nret;\n}\n");
    assert_true(sg_region_begin(program, &program->functions[0], &region));
    assert_true(sg_region_find(&region, 0, 10)); /* to block 4 */
    assert_int_equal(program->blocks[0].post_dominator, 4);
    assert_int_equal(region.count, 3);
    assert_true(sg_region_find(&region, 1, 10)); /* a loop: the block itself */
    MEMBERS(region, (count, 1), (blocks[0], 1));
    assert_false(sg_region_find(&region, 0, 2));
    sg_region_end(&region);
    sg_program_free(program);
}
