/* How sums of floats are added: by hand where it can be said, and the same on each level. */
#include "kernel.h"
#include "matrix_edges.h"

static struct matrix_edge edges[MATRIX_EDGES];
static struct matrix_form forms[MATRIX_FORMS];
static struct matrix_data data[MATRIX_PRODUCTS];

static void make(struct kernel *kernel, const struct matrix_form *form, enum sg_level level) {
    char text[8192] = ".version 9.0\n.target sm_90\n.address_size 64\n";
    matrix_kernel(form, "k", text + strlen(text), sizeof text - strlen(text));
    kernel_make(kernel, text, level);
}

static void run(struct kernel *kernel, const void *in, const void *out) {
    kernel->launch.parameter_bytes = 0;
    kernel_pointer(kernel, in);
    kernel_pointer(kernel, out);
    kernel_succeeds(kernel);
}

static uint64_t answer(struct kernel *kernel, const struct matrix_edge *edge) {
    uint64_t in[32][MATRIX_IN], out[32][MATRIX_OUT] = {{0}};
    matrix_edge_pack(edge, data, in);
    run(kernel, in, out);
    matrix_collect(&edge->form, (const uint64_t(*)[MATRIX_OUT])out, data);
    return data[0].d[0][0];
}

static uint64_t named(const char *name, enum sg_level level) {
    struct kernel kernel;
    for (size_t i = 0; i < MATRIX_EDGES; i++)
        if (strcmp(edges[i].name, name) == 0) {
            make(&kernel, &edges[i].form, level);
            uint64_t result = answer(&kernel, &edges[i]);
            kernel_free(&kernel);
            return result;
        }
    fail_msg("no case is named %s", name);
    return 0;
}

static int find_edges(void **state) {
    size_t count = matrix_edges(edges, MATRIX_EDGES);
    return count > 0 && count < MATRIX_EDGES ? 0 : -1;
}

ALL_TESTS(find_edges, NULL);

TEST(sums_keep_the_bits_that_the_h200_keeps) {
    static const struct {
        const char *name;
        uint64_t wanted;
    } cases[] = {
        /* 1 and four terms of 2^-25 are 1 + 2^-23: 25 bits are kept; eight of 2^-26 are lost. */
        {"f32.f16.k16 kept-25", 0x3f800001},
        {"f32.f16.k16 kept-26", 0x3f800000},
        {"f32.f16.k16 kept-below-zero-25", 0xbf800001},
        {"f32.f16.k16 kept-below-zero-26", 0xbf800000},
        {"f32.bf16.k16 kept-25", 0x3f800001},
        {"f32.bf16.k16 kept-26", 0x3f800000},
        {"f32.tf32.k8 kept-25", 0x3f800001},
        /* 2.25 has the exponent of 1.5 and 1.5: not normalised, or this were 0x40100000. */
        {"f32.f16.k16 kept-1.5-squared-26", 0x40100001},
        /* Three quarters of a place are cut off, towards zero. */
        {"f32.f16.k16 rounding-above-half", 0x3f800000},
        {"f32.f16.k16 rounding-above-half-below-zero", 0xbf800000},
        /* All sixteen products and C at once: 1 is lost beside 2^30, wherever it stands. */
        {"f32.f16.k16 group-of-0-1-15", 0},
        {"f32.f16.k16 group-of-0-15", 0},
        {"f32.f16.k16 group-of-c-15", 0},
        {"f32.tf32.k8 group-of-0-1-7", 0},
        /* Of 8-bit floats, first the lower halves of the registers: 2^-10 is added to nothing. */
        {"f32.e4m3.k32 group-of-0-1-5", 0},
        {"f32.e4m3.k32 group-of-0-1-6", 0x3a800000},
        {"f32.e4m3.k32 group-of-0-4", 0x3a800000},
        {"f32.e4m3.k32 group-of-0-6", 0},
        {"f32.e4m3.k64-sparse group-of-0-1-5", 0},
        {"f32.e4m3.k64-sparse group-of-0-1-6", 0x3a800000},
        {"f32.f16.k32-sparse kept-25", 0x3f800001},
        {"f32.f16.k32-sparse group-of-0-1-15", 0},
        {"f32.tf32.k16-sparse group-of-c-7", 0},
        /* C is added at the end and rounded to the nearest. */
        {"f32.e4m3.k32 kept-beside-c-26", 0x47800001},
        {"f32.e4m3.k32 rounding-above-half", 0x47800001},
        /* f16 is rounded to the nearest even number. */
        {"f16.f16.k16 overflow-65504-and-15", 0x7bff},
        {"f16.f16.k16 overflow-65504-and-16", 0x7c00},
        /* A subnormal number has the exponent that it is written with. */
        {"f32.f16.k16 subnormal-times-large-beside-tiny", 0x3b000000},
        {"f32.f16.k16 subnormal-squared", 0x27800000},
        {"f32.f16.k16 zero-times-large", 0x2b800000},
        {"f32.bf16.k16 subnormal-sum", 0x202},
        {"f32.f16.k16 nan-c", 0x7fffffff},
        {"f16.f16.k16 nan-a", 0x7fff},
        {"f32.f16.k16 infinity-times-zero", 0x7fffffff},
        {"f32.f16.k16 infinity-negative", 0xff800000},
        {"f32.e4m3.k32 nan-a", 0x7fffffff},
        {"f32.bf16.k16 overflow-products-that-cancel", 0},
        {"f32.bf16.k16 overflow-product", 0x7f800000},
        {"f32.tf32.k8 low-bits-of-a", 0x3f800000},
        /* Scalar instructions: the dot product first, then C, each to the nearest. */
        {"f32.f16.k4 rounding-above-half", 0x3f800001},
        {"f32.f16.k4 group-of-0-1-2", 0x3f800000},
        {"f32.f16.k4 group-of-c-2", 0},
        /* What is cut off whole is the positive zero. */
        {"f16.f16.k16 negative-and-tiny", 0},
        {"f32.bf16.k16 negative-and-tiny", 0},
        {"f32.tf32.k8 negative-and-tiny", 0},
        {"f64.k16 nan-a", 0x7ffc000000000005},
        {"f64.k16 nan-c", 0xfff8000000000007},
        {"f64.k16 order-2", 0x3ff0000000000000},
        {"f64.k16 order-of-last-2", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t got = named(cases[i].name, SG_LEVEL_GENERIC);
        if (got != cases[i].wanted)
            fail_msg("%s: %llx, not %llx", cases[i].name, (unsigned long long)got,
                     (unsigned long long)cases[i].wanted);
    }
}

/* One kernel serves all cases of a form, which follow one another. */
TEST(every_level_sums_each_recorded_case_alike) {
    static uint64_t first[MATRIX_EDGES];
    FOR_EACH_LEVEL(level) {
        struct kernel kernel = {0};
        for (size_t i = 0; edges[i].name[0]; i++) {
            size_t kind = strcspn(edges[i].name, " ");
            if (i == 0 || strncmp(edges[i].name, edges[i - 1].name, kind + 1) != 0) {
                kernel_free(&kernel);
                make(&kernel, &edges[i].form, (enum sg_level)level);
            }
            uint64_t got = answer(&kernel, &edges[i]);
            if (level == 0)
                first[i] = got;
            else if (got != first[i])
                fail_msg("%s on %s: %llx, not %llx", edges[i].name,
                         sg_level_name((enum sg_level)level), (unsigned long long)got,
                         (unsigned long long)first[i]);
        }
        kernel_free(&kernel);
    }
}

TEST(every_level_sums_random_numbers_alike) {
    static uint64_t first[MATRIX_FORMS][32][MATRIX_OUT];
    size_t count = matrix_forms(forms, MATRIX_FORMS);
    FOR_EACH_LEVEL(level) {
        for (size_t i = 0; i < count; i++) {
            uint64_t in[32][MATRIX_IN], out[32][MATRIX_OUT] = {{0}};
            uint32_t seed = (uint32_t)i;
            struct kernel kernel;
            make(&kernel, &forms[i], (enum sg_level)level);
            matrix_prepare(&forms[i], data, false, &seed, in);
            run(&kernel, in, out);
            kernel_free(&kernel);
            if (level == 0)
                memcpy(first[i], out, sizeof out);
            else
                assert_memory_equal(first[i], out, sizeof out);
        }
    }
}
