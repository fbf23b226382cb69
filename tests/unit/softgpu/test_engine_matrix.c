/* Every form of mma, on each level, beside plain C. */
#include "kernel.h"
#include "matrix_forms.h"

static struct matrix_form forms[MATRIX_FORMS];
static struct matrix_data data[MATRIX_PRODUCTS];

static void one_form(const struct matrix_form *form, enum sg_level level, bool exact) {
    char text[8192], words[128], why[200];
    uint64_t in[32][MATRIX_IN], out[32][MATRIX_OUT];
    uint32_t seed = 17;
    struct kernel kernel;
    int head = snprintf(text, sizeof text, "%s", ".version 9.0\n.target sm_90\n.address_size 64\n");
    matrix_kernel(form, "k", text + head, sizeof text - (size_t)head);
    matrix_words(form, words, sizeof words);
    kernel_make(&kernel, text, level);
    for (int times = 0; times < 4; times++) {
        matrix_prepare(form, data, exact, &seed, in);
        memset(out, 0xcc, sizeof out);
        kernel.launch.parameter_bytes = 0;
        kernel_pointer(&kernel, in);
        kernel_pointer(&kernel, out);
        kernel_succeeds(&kernel);
        matrix_collect(form, (const uint64_t(*)[MATRIX_OUT])out, data);
        for (unsigned p = 0; p < matrix_products(form); p++)
            if (!matrix_holds(&form->product, &data[p], exact, why, sizeof why))
                fail_msg("%s, selector %u, product %u on %s: %s", words, form->selector, p,
                         sg_level_name(level), why);
    }
    kernel_free(&kernel);
}

static void every_form(bool exact) {
    size_t count = matrix_forms(forms, MATRIX_FORMS);
    assert_int_equal(count, 186); /* as the assembler takes: no form is forgotten */
    FOR_EACH_LEVEL(level) {
        for (size_t i = 0; i < count; i++)
            one_form(&forms[i], (enum sg_level)level, exact);
    }
}

TEST_IS(mma_of_exact_numbers_is_exact, every_form(true));
TEST_IS(mma_of_floats_is_within_the_stated_bound, every_form(false));
