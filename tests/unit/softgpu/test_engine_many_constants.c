/* Texts with very many constants: each keeps its value, and the time is linear in their number. */
#include "kernel.h"

#include <time.h>

#define NUMBERS   150000u
#define VARIABLES 5000u
/* Looked for one behind the other they take minutes. */
#define SECONDS 30.0

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static char *text_of(uint32_t *sum) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    fputs(KERNEL_HEAD, out);
    for (uint32_t i = 0; i < VARIABLES; i++)
        fprintf(out, ".shared .u32 s%u;\n", i);
    fputs(".visible .entry k(.param .u64 to) {\n.reg .u64 %to;\n.reg .u32 %sum, %v;\n"
          "ld.param.u64 %to, [to];\nmov.u32 %sum, 0;\n",
          out);
    *sum = 0;
    for (uint32_t i = 0; i < NUMBERS; i++) {
        fprintf(out, "mad.lo.u32 %%sum, %%sum, 3, %u;\n", i * 2654435761U);
        *sum = *sum * 3 + i * 2654435761U;
    }
    for (uint32_t i = 0; i < VARIABLES; i++) {
        fprintf(out, "mov.u32 %%v, s%u;\nmad.lo.u32 %%sum, %%sum, 5, %%v;\n", i);
        *sum = *sum * 5 + SG_SHARED_BEGIN + i * 4;
    }
    fputs("st.global.u32 [%to], %sum;\nret;\n}\n", out);
    fclose(out);
    return text;
}

TEST(compile_time_is_linear_in_the_number_of_constants) {
    uint32_t sum, found = 0;
    char *text = text_of(&sum);
    struct kernel kernel;
    double begin = cpu_seconds();
    kernel_make(&kernel, text, SG_LEVEL_GENERIC);
    assert_true(cpu_seconds() - begin < SECONDS);
    kernel_pointer(&kernel, &found);
    kernel_shape(&kernel, 1, 1);
    kernel_succeeds(&kernel);
    assert_int_equal(found, sum);
    kernel_free(&kernel);
    free(text);
}

/* What differs only above a width is one constant of it; one number in several widths is not. */
TEST(one_constant_in_several_widths_keeps_each_value) {
    const struct row rows[] = {{.a = 1, .b = 2, .d = 0x10000ffffu + 0xffffffffffffffffu + 0xffffu},
                               {.a = 5, .b = 7, .d = 0x10000ffffu + 0xffffffffffffffffu + 0xffffu}};
    ROWS_HOLD(".reg .u64 %e, %f, %g;\n"
              "mov.u16 %s, 0xffff; cvt.u64.u16 %e, %s;\n"
              "mov.u32 %x, 0xffffffff; cvt.u64.u32 %f, %x;\n"
              "mov.u64 %g, 0xffffffffffffffff;\n"
              "add.u64 %f, %f, 0x10000; add.u64 %d, %e, %f; add.u64 %d, %d, %g;\n",
              rows);
}
