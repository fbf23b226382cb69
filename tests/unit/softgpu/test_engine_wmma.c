/* Every form of wmma, on each level, beside plain C; and which lane has which element. */
#include "kernel.h"
#include "matrix_wide.h"

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"

static struct wide_form forms[WIDE_FORMS];
static struct matrix_data data;
static unsigned char in[3 * WIDE_PART], out[WIDE_PART];

static void run(const char *text, enum sg_level level) {
    struct kernel kernel;
    memset(out, 0xcc, sizeof out);
    kernel_make(&kernel, text, level);
    kernel_pointer(&kernel, in);
    kernel_pointer(&kernel, out);
    kernel_succeeds(&kernel);
    kernel_free(&kernel);
}

static void one_form(const struct wide_form *form, enum sg_level level, bool exact) {
    char text[8192] = HEAD, words[128], why[200];
    uint32_t seed = 23;
    wide_kernel(form, "k", text + strlen(text), sizeof text - strlen(text));
    wide_words(form, words, sizeof words);
    wide_prepare(form, &data, exact, &seed, in);
    run(text, level);
    wide_collect(form, out, &data);
    if (!matrix_holds(&form->product, &data, exact, why, sizeof why))
        fail_msg("%s on %s: %s", words, sg_level_name(level), why);
}

TEST(wmma_products_match_plain_c) {
    size_t count = wide_forms(forms, WIDE_FORMS);
    assert_int_equal(count, 126); /* as the assembler takes: no form is forgotten */
    FOR_EACH_LEVEL(level) {
        for (size_t i = 0; i < count; i++) {
            one_form(&forms[i], (enum sg_level)level, true);
            one_form(&forms[i], (enum sg_level)level, false);
        }
    }
}

TEST(wmma_fragments_are_laid_out_as_for_mma) {
    size_t count = wide_forms(forms, WIDE_FORMS);
    uint32_t wanted[32][8], got[32][8], seed = 29;
    for (size_t i = 0; i < count; i++)
        for (unsigned which = 0; which < 3 && forms[i].product.a != M_F64; which++) {
            char text[8192] = HEAD, words[128];
            wide_fragment_kernel(&forms[i], which, "k", text + strlen(text),
                                 sizeof text - strlen(text));
            wide_words(&forms[i], words, sizeof words);
            wide_prepare(&forms[i], &data, false, &seed, in);
            run(text, SG_LEVEL_GENERIC);
            wide_fragment(&forms[i], which, &data, wanted);
            memcpy(got, out, sizeof got);
            for (unsigned lane = 0; lane < 32; lane++)
                for (unsigned reg = 0; reg < wide_registers(&forms[i], which); reg++)
                    if (got[lane][reg] != wanted[lane][reg])
                        fail_msg("%s, matrix %u, lane %u, register %u: %#x, not %#x", words, which,
                                 lane, reg, got[lane][reg], wanted[lane][reg]);
        }
}

TEST(wmma_satfinite_saturates_floats) {
    static const char text[] =
        ".version 6.0\n.target sm_70\n.address_size 64\n"
        ".visible .entry k(.param .u64 in, .param .u64 out) {\n"
        ".reg .b32 a<8>, b<8>, d<4>; .reg .b64 p0, p1; ld.param.u64 p0, [in];\n"
        "ld.param.u64 p1, [out];\n"
        "wmma.load.a.sync.aligned.row.m16n16k16.f16 {a0,a1,a2,a3,a4,a5,a6,a7}, [p0], 16;\n"
        "wmma.load.b.sync.aligned.col.m16n16k16.f16 {b0,b1,b2,b3,b4,b5,b6,b7}, [p0], 16;\n"
        "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16.satfinite {d0,d1,d2,d3},\n"
        "{a0,a1,a2,a3,a4,a5,a6,a7}, {b0,b1,b2,b3,b4,b5,b6,b7}, {0,0,0,0};\n"
        "wmma.store.d.sync.aligned.row.m16n16k16.f16 [p1], {d0,d1,d2,d3}, 16; ret; }\n";
    uint16_t halves[16][16] = {{0}}, got[16][16];
    halves[0][0] = 0x7bff; /* its square is too large */
    halves[1][0] = 0xfbff;
    halves[2][0] = 0x7e00; /* no number */
    memcpy(in, halves, sizeof halves);
    run(text, SG_LEVEL_GENERIC);
    memcpy(got, out, sizeof got);
    assert_int_equal(got[0][0], 0x7bff);
    assert_int_equal(got[0][1], 0xfbff);
    assert_int_equal(got[2][1], 0);
    assert_int_equal(got[5][5], 0);
}
