/*
 * Which products and sums become one fma. Each row is what ptxas 13.0 makes of the body for sm_90,
 * as its machine code shows; the scenes `contraction` of tests/parity/ptx are an H200's answers.
 */
#include "softgpu/engine/engine.h"

#include "program_text.h"

static const struct {
    const char *body, *wanted;
} rows[] = {
#define CONTRACTION(body, wanted) {body, wanted},
#include "contraction.def"
    /* Loops, which ptxas unrolls: a turn is a block of its own here. */
    {"L:mul.f32 %f10,%f0,%f1;add.f32 %f2,%f2,%f10;@%q bra L;st.global.f32 [%p],%f2;",
     "fma 2 0 1 2"},
    {"L:add.f32 %f2,%f2,%f10;mul.f32 %f10,%f0,%f2;@%q bra L;st.global.f32 [%p],%f2;",
     "add 2 2 10; mul 10 0 2"},
    {"@%q bra L;bar.sync 0;L:mul.f32 %f10,%f0,%f1;M:add.f32 %f12,%f10,%f4;"
     "st.global.f32 [%p],%f12;@%q bra L;",
     "fma 12 0 1 4"},
};

static struct sg_program *program_with(const char *body) {
    char text[2048];
    snprintf(text, sizeof text,
             ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a) {\n"
             ".reg .f32 %%f<20>; .reg .f64 %%d<20>; .reg .b16 %%h<20>; .reg .b32 %%r, %%x<20>;\n"
             ".reg .b64 %%p; .reg .pred %%q; ld.param.u64 %%p, [a]; setp.ne.u64 %%q, %%p, 0;\n"
             "ld.global.v4.f32 {%%f0,%%f1,%%f2,%%f3}, [%%p]; ld.global.f32 %%f4, [%%p];\n"
             "%s\nret; }\n",
             body);
    return program_of(text);
}

/* The arithmetic of a program: "fma 12 0 1 4; …". */
static void arithmetic_of(const struct sg_program *program, char *to, size_t room) {
    static const char *const ops[] = {"mul.", "add.", "sub.", "fma.", "neg.", "mov."};
    char *dump = sg_program_dump(program), *rest = NULL;
    to[0] = '\0';
    for (char *line = strtok_r(dump, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *at = strchr(line, ' ');
        at = at && at[1] == '@' ? strchr(at + 1, ' ') : at;
        bool wanted = false;
        for (size_t i = 0; at && i < sizeof ops / sizeof *ops; i++)
            wanted |= strncmp(at + 1, ops[i], 4) == 0;
        if (!wanted || strstr(at, ".b32 %r,") || strstr(at, ", %r"))
            continue;
        const char *flags = strchr(at, '+');
        char *operands = strchr(at + 1, ' ');
        operands[0] = '\0';
        size_t used = strlen(to);
        used += (size_t)snprintf(to + used, room - used, "%s%.3s%s", used ? "; " : "", at + 1,
                                 flags && flags < operands ? flags : "");
        for (const char *word = operands + 1; *word && used + 2 < room; word++) {
            if (word == operands + 1)
                to[used++] = ' ';
            if (*word != '%' && *word != ',' && *word != 'f')
                to[used++] = *word;
            else if (*word == 'f' && word[-1] != '%')
                to[used++] = *word;
        }
        to[used] = '\0';
    }
    free(dump);
}

TEST(products_and_sums_are_contracted_as_by_ptxas) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sg_program *program = program_with(rows[i].body);
        struct sg_code *code;
        char got[512];
        arithmetic_of(program, got, sizeof got);
        if (strcmp(got, rows[i].wanted) != 0)
            fail_msg("%s\nis    %s\nnot   %s", rows[i].body, got, rows[i].wanted);
        assert_int_equal(sg_code_make(program, SG_LEVEL_GENERIC, 0, &code), CUDA_SUCCESS);
        sg_code_free(code);
        sg_program_free(program);
    }
}
