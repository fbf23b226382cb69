/*
 * Matrix instructions: every form of mma and wmma beside plain C, where wmma's fragments lie, and
 * how sums of floats are added.
 * GPUMEM_MATRIX_EDGES=1 prints the answer to each case of matrix_edges.c, a line for each: what
 * softgpu and hardware print is to be the same.
 */
#include "harness.h"
#include "matrix_edges.h"
#include "matrix_wide.h"

#include <inttypes.h>
#include <math.h>

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"
#define TEXT ((size_t)2 << 20)

static CUmodule module;
static CUdeviceptr input, output;
static char *text;
static size_t length;

static const char probe[] = HEAD ".visible .entry nothing() { ret; }\n";

/* Skips where the driver runs no kernels, or none of sm_90. */
static void begin(void) {
    if (device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9)
        SKIP("the device is older than sm_90");
    OK_CU(cu.cuModuleLoadData(&module, probe));
    CUfunction function = function_of(module, "nothing");
    CUresult result = cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuModuleUnload(module));
    if (no_kernels(result))
        SKIP("the driver runs no kernels: SOFTGPU_KERNELS=0");
    assert_int_equal(result, CUDA_SUCCESS);
    input = new_memory(3 * WIDE_PART);
    output = new_memory(WIDE_PART);
    text = malloc(TEXT);
    assert_non_null(text);
    length = (size_t)snprintf(text, TEXT, "%s", HEAD);
}

static void end(void) {
    free(text);
}

static void load(void) {
    assert_true(length + 1 < TEXT);
    module = new_module(text);
}

static void launch(const char *name, const void *in, size_t in_bytes, void *out, size_t out_bytes) {
    void *parameters[] = {&input, &output};
    CUfunction function = function_of(module, name);
    OK_CU(cu.cuMemcpyHtoD_v2(input, in, in_bytes));
    OK_CU(cu.cuMemsetD32_v2(output, 0xcccccccc, out_bytes / 4));
    OK_CU(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
    OK_CU(cu.cuMemcpyDtoH_v2(out, output, out_bytes));
}

/* ---- mma ------------------------------------------------------------------------------------- */

static struct matrix_form forms[MATRIX_FORMS];
static struct matrix_data data[MATRIX_PRODUCTS];

static void one_form(const struct matrix_form *form, const char *name, bool exact) {
    uint64_t in[32][MATRIX_IN], out[32][MATRIX_OUT];
    uint32_t seed = 41;
    char words[128], why[200];
    matrix_words(form, words, sizeof words);
    for (int times = 0; times < 3; times++) {
        matrix_prepare(form, data, exact, &seed, in);
        launch(name, in, sizeof in, out, sizeof out);
        matrix_collect(form, (const uint64_t(*)[MATRIX_OUT])out, data);
        for (unsigned p = 0; p < matrix_products(form); p++)
            if (!matrix_holds(&form->product, &data[p], exact, why, sizeof why))
                fail_msg("%s, selector %u, product %u: %s", words, form->selector, p, why);
    }
}

TEST(every_mma_form_multiplies_correctly) {
    char name[32];
    begin();
    size_t count = matrix_forms(forms, MATRIX_FORMS);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "k%zu", i);
        matrix_kernel(&forms[i], name, text + length, TEXT - length);
        length += strlen(text + length);
    }
    load();
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "k%zu", i);
        one_form(&forms[i], name, true);
        one_form(&forms[i], name, false);
    }
    end();
}

/* ---- wmma ------------------------------------------------------------------------------------ */

static struct wide_form wide[WIDE_FORMS];
static unsigned char wide_in[3 * WIDE_PART], wide_out[WIDE_PART];

TEST(every_wmma_form_multiplies_correctly) {
    char name[32], words[128], why[200];
    uint32_t seed = 43;
    begin();
    size_t count = wide_forms(wide, WIDE_FORMS);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "k%zu", i);
        wide_kernel(&wide[i], name, text + length, TEXT - length);
        length += strlen(text + length);
    }
    load();
    for (size_t i = 0; i < 2 * count; i++) {
        const struct wide_form *form = &wide[i / 2];
        snprintf(name, sizeof name, "k%zu", i / 2);
        wide_prepare(form, data, i & 1, &seed, wide_in);
        launch(name, wide_in, sizeof wide_in, wide_out, sizeof wide_out);
        wide_collect(form, wide_out, data);
        wide_words(form, words, sizeof words);
        if (!matrix_holds(&form->product, data, i & 1, why, sizeof why))
            fail_msg("%s: %s", words, why);
    }
    end();
}

static void fragment_name(char *name, size_t size, size_t form, unsigned which) {
    snprintf(name, size, "f%zu_%u", form, which);
}

TEST(wmma_fragments_have_the_layout_of_mma) {
    uint32_t wanted[32][8], got[32][8], seed = 47;
    char name[32], words[128];
    begin();
    size_t count = wide_forms(wide, WIDE_FORMS);
    for (size_t i = 0; i < 3 * count; i++) {
        unsigned which = (unsigned)(i % 3);
        fragment_name(name, sizeof name, i / 3, which);
        if (wide[i / 3].product.a != M_F64)
            wide_fragment_kernel(&wide[i / 3], which, name, text + length, TEXT - length);
        length += strlen(text + length);
    }
    load();
    for (size_t i = 0; i < 3 * count; i++) {
        const struct wide_form *form = &wide[i / 3];
        unsigned which = (unsigned)(i % 3);
        if (form->product.a == M_F64)
            continue;
        fragment_name(name, sizeof name, i / 3, which);
        wide_prepare(form, data, false, &seed, wide_in);
        launch(name, wide_in, sizeof wide_in, got, sizeof got);
        wide_fragment(form, which, data, wanted);
        wide_words(form, words, sizeof words);
        for (unsigned lane = 0; lane < 32; lane++)
            for (unsigned reg = 0; reg < wide_registers(form, which); reg++)
                if (got[lane][reg] != wanted[lane][reg])
                    fail_msg("%s, matrix %u, lane %u, register %u: %#x, not %#x", words, which,
                             lane, reg, got[lane][reg], wanted[lane][reg]);
    }
    end();
}

/* ---- how floats are added -------------------------------------------------------------------- */

static struct matrix_edge edges[MATRIX_EDGES];

static uint64_t answer(const struct matrix_edge *edge) {
    uint64_t in[32][MATRIX_IN], out[32][MATRIX_OUT];
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(edge->name, " "), edge->name);
    for (char *c = name; *c; c++)
        *c = *c == '.' || *c == '-' ? '_' : *c;
    matrix_edge_pack(edge, data, in);
    launch(name, in, sizeof in, out, sizeof out);
    matrix_collect(&edge->form, (const uint64_t(*)[MATRIX_OUT])out, data);
    return data[0].d[0][0];
}

/* A kernel for each kind of cases, which follow one another. */
static void add_kinds(size_t count) {
    char name[64], last[64] = "";
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(edges[i].name, " "), edges[i].name);
        if (strcmp(name, last) == 0)
            continue;
        memcpy(last, name, sizeof last);
        for (char *c = name; *c; c++)
            *c = *c == '.' || *c == '-' ? '_' : *c;
        matrix_kernel(&edges[i].form, name, text + length, TEXT - length);
        length += strlen(text + length);
    }
    load();
}

TEST(sums_of_floats_are_accurate_and_deterministic) {
    const char *print = getenv("GPUMEM_MATRIX_EDGES");
    begin();
    size_t count = matrix_edges(edges, MATRIX_EDGES);
    assert_in_range(count, 500, MATRIX_EDGES - 1);
    add_kinds(count);
    for (size_t i = 0; i < count; i++) {
        const struct matrix_edge *edge = &edges[i];
        uint64_t first = answer(edge), second = answer(edge);
        double sum, bound, got = matrix_decode(edge->form.product.d, first);
        if (print && print[0] == '1')
            printf("edge: %s %" PRIx64 "\n", edge->name, first);
        if (first != second)
            fail_msg("%s: %" PRIx64 " and then %" PRIx64, edge->name, first, second);
        if (edge->form.product.d != M_F64 && matrix_edge_bound(edge, &sum, &bound) &&
            !(fabs(got - sum) <= bound))
            fail_msg("%s: %.9g, not %.9g within %.3g", edge->name, got, sum, bound);
    }
    end();
}
