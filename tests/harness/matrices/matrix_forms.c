#include "matrix_forms.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- which forms there are ------------------------------------------------------------------- */

struct list {
    struct matrix_form *forms;
    size_t count, room;
};

static void add(struct list *list, struct matrix_form form) {
    if (!form.product.rounding)
        form.product.rounding = "";
    if (!form.product.popc)
        form.product.popc = "";
    if (list->count < list->room)
        list->forms[list->count++] = form;
}

static struct matrix_form of(unsigned m, unsigned k, enum matrix_type a, enum matrix_type b,
                             enum matrix_type d) {
    return (struct matrix_form){
        .product = {.m = m, .n = 8, .k = k, .d = d, .a = a, .b = b, .c = d}};
}

/* A sparse form with each selector that it has. */
static void add_sparse(struct list *list, struct matrix_form form, unsigned selectors) {
    form.sparse = true;
    for (form.selector = 0; form.selector < selectors; form.selector++)
        add(list, form);
}

static void add_floats(struct list *list) {
    static const unsigned char k16[] = {8, 16};
    for (unsigned i = 0; i < 2; i++) {
        add(list, of(16, k16[i], M_F16, M_F16, M_F16));
        add(list, of(16, k16[i], M_F16, M_F16, M_F32));
        add(list, of(16, k16[i], M_BF16, M_BF16, M_F32));
        add(list, of(16, k16[i] / 2, M_TF32, M_TF32, M_F32));
        add_sparse(list, of(16, 2 * k16[i], M_F16, M_F16, M_F16), i ? 2 : 4);
        add_sparse(list, of(16, 2 * k16[i], M_F16, M_F16, M_F32), i ? 2 : 4);
        add_sparse(list, of(16, 2 * k16[i], M_BF16, M_BF16, M_F32), i ? 2 : 4);
        add_sparse(list, of(16, k16[i], M_TF32, M_TF32, M_F32), i ? 2 : 4);
    }
    for (enum matrix_type a = M_E4M3; a <= M_E5M2; a++)
        for (enum matrix_type b = M_E4M3; b <= M_E5M2; b++) {
            add(list, of(16, 16, a, b, M_F16));
            add(list, of(16, 16, a, b, M_F32));
            add(list, of(16, 32, a, b, M_F16));
            add(list, of(16, 32, a, b, M_F32));
            add_sparse(list, of(16, 64, a, b, M_F32), 1);
        }
}

static void add_quarters(struct list *list) {
    static const enum matrix_type ends[][2] = {{M_F16, M_F16}, {M_F32, M_F16}, {M_F32, M_F32}};
    for (unsigned i = 0; i < 3; i++)
        for (unsigned columns = 0; columns < 4; columns++) {
            struct matrix_form form = of(8, 4, M_F16, M_F16, ends[i][0]);
            form.product.c = ends[i][1];
            form.quarters = true;
            form.a_column = columns & 1;
            form.b_column = columns >> 1;
            add(list, form);
        }
}

static void add_integers(struct list *list, enum matrix_type first, unsigned k) {
    for (enum matrix_type a = first; a <= first + 1; a++)
        for (enum matrix_type b = first; b <= first + 1; b++)
            for (unsigned saturates = 0; saturates < 2; saturates++) {
                struct matrix_form forms[] = {of(8, k, a, b, M_S32), of(16, k, a, b, M_S32),
                                              of(16, 2 * k, a, b, M_S32),
                                              of(16, 4 * k, a, b, M_S32)};
                for (unsigned i = 0; i < 4; i++)
                    forms[i].product.saturates = saturates;
                for (unsigned i = 0; i < 3; i++)
                    add(list, forms[i]);
                add_sparse(list, forms[2], 2);
                add_sparse(list, forms[3], 1);
            }
}

static void add_others(struct list *list) {
    static const char *const roundings[] = {"", "rn", "rz", "rm", "rp"};
    for (unsigned i = 0; i < 5; i++) {
        struct matrix_form forms[] = {of(8, 4, M_F64, M_F64, M_F64), of(16, 4, M_F64, M_F64, M_F64),
                                      of(16, 8, M_F64, M_F64, M_F64),
                                      of(16, 16, M_F64, M_F64, M_F64)};
        for (unsigned j = 0; j < 4; j++) {
            forms[j].product.rounding = roundings[i];
            add(list, forms[j]);
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        struct matrix_form forms[] = {of(8, 128, M_B1, M_B1, M_S32), of(16, 128, M_B1, M_B1, M_S32),
                                      of(16, 256, M_B1, M_B1, M_S32)};
        for (unsigned j = 0; j < 3; j++) {
            forms[j].product.popc = i ? "xor" : "and";
            add(list, forms[j]);
        }
    }
}

size_t matrix_forms(struct matrix_form *forms, size_t room) {
    struct list list = {forms, 0, room};
    add_floats(&list);
    add_quarters(&list);
    add_integers(&list, M_S8, 16);
    add_integers(&list, M_S4, 32);
    add_others(&list);
    return list.count;
}

unsigned matrix_products(const struct matrix_form *form) {
    return form->quarters ? MATRIX_PRODUCTS : 1;
}

/* ---- registers ------------------------------------------------------------------------------- */

static unsigned registers(const struct matrix_form *form, char which) {
    const struct matrix_product *p = &form->product;
    enum matrix_type type = which == 'a' ? p->a : which == 'b' ? p->b : which == 'c' ? p->c : p->d;
    unsigned elements = which == 'a'   ? p->m * p->k / (form->sparse ? 2 : 1)
                        : which == 'b' ? p->k * p->n
                                       : p->m * p->n;
    elements *= matrix_products(form);
    return elements * matrix_type_bits(type) / (type == M_F64 ? 64 : 32) / 32;
}

/* Where the registers of a matrix begin in what a lane reads. */
static unsigned begin(const struct matrix_form *form, char which) {
    unsigned at = 0;
    if (which != 'a')
        at += registers(form, 'a');
    if (which == 'c' || which == 'e')
        at += registers(form, 'b');
    return which == 'e' ? at + registers(form, 'c') : at;
}

struct out {
    char *text;
    size_t size, at;
};

static __attribute__((format(printf, 2, 3))) void put(struct out *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (out->at < out->size)
        out->at += (size_t)vsnprintf(out->text + out->at, out->size - out->at, format, arguments);
    va_end(arguments);
}

static void fragment(struct out *out, const struct matrix_form *form, char which) {
    unsigned count = registers(form, which);
    for (unsigned i = 0; i < count; i++)
        put(out, "%s%c%u", i ? ", " : " {", which, i);
    put(out, "}%s", which == 'c' ? "" : ",");
}

static const char *layout(bool column) {
    return column ? "col" : "row";
}

void matrix_words(const struct matrix_form *form, char *words, size_t size) {
    const struct matrix_product *p = &form->product;
    struct out out = {words, size, 0};
    put(&out, "mma%s.sync.aligned.m%un%uk%u.%s.%s", form->sparse ? ".sp::ordered_metadata" : "",
        p->m, p->n, p->k, layout(form->quarters && form->a_column),
        layout(!form->quarters || form->b_column));
    put(&out, "%s%s%s", p->saturates ? ".satfinite" : "", p->rounding[0] ? "." : "", p->rounding);
    put(&out, ".%s.%s.%s.%s", matrix_type_name(p->d), matrix_type_name(p->a),
        matrix_type_name(p->b), matrix_type_name(p->c));
    if (p->popc[0])
        put(&out, ".%s.popc", p->popc);
}

void matrix_kernel(const struct matrix_form *form, const char *name, char *text, size_t size) {
    struct out out = {text, size, 0};
    char words[128];
    const char *type = form->product.d == M_F64 ? "b64" : "b32";
    matrix_words(form, words, sizeof words);
    put(&out,
        ".visible .entry %s(.param .u64 in, .param .u64 out) {\n"
        ".reg .%s a<8>, b<8>, c<8>, d<8>; .reg .b32 e0, t; .reg .b64 p<3>;\n"
        "ld.param.u64 p0, [in]; ld.param.u64 p1, [out]; mov.u32 t, %%tid.x;\n"
        "mad.wide.u32 p0, t, %u, p0; mad.wide.u32 p1, t, %u, p1;\n",
        name, type, 8 * MATRIX_IN, 8 * MATRIX_OUT);
    for (const char *which = "abc"; *which; which++)
        for (unsigned i = 0; i < registers(form, *which); i++)
            put(&out, "ld.global.%s %c%u, [p0+%u];\n", type, *which, i,
                8 * (begin(form, *which) + i));
    if (form->sparse)
        put(&out, "ld.global.b32 e0, [p0+%u];\n", 8 * begin(form, 'e'));
    put(&out, "%s", words);
    for (const char *which = "dabc"; *which; which++)
        fragment(&out, form, *which);
    if (form->sparse)
        put(&out, ", e0, %u", form->selector);
    put(&out, ";\n");
    for (unsigned i = 0; i < registers(form, 'd'); i++)
        put(&out, "st.global.%s [p1+%u], d%u;\n", type, 8 * i, i);
    put(&out, "ret; }\n");
}

/* ---- where elements lie ---------------------------------------------------------------------- */

struct matrix_spot matrix_spot_a(unsigned m, unsigned bits, unsigned i, unsigned k) {
    unsigned each = bits == 64 ? 1 : 32 / bits, chunk = k / (4 * each);
    return (struct matrix_spot){.lane = i % 8 * 4 + k % (4 * each) / each,
                                .reg = m == 8 ? chunk : i / 8 % 2 + 2 * chunk,
                                .shift = bits == 64 ? 0 : k % each * bits};
}

struct matrix_spot matrix_spot_b(unsigned bits, unsigned k, unsigned j) {
    return matrix_spot_a(8, bits, j, k);
}

struct matrix_spot matrix_spot_c(bool half, unsigned i, unsigned j) {
    unsigned number = i / 8 * 2 + j % 2;
    return (struct matrix_spot){.lane = i % 8 * 4 + j % 8 / 2,
                                .reg = half ? number / 2 : number,
                                .shift = half ? 16 * (number % 2) : 0};
}

/* Of four products: lanes 4p to 4p + 3 have the upper halves, those 16 further the lower ones. */
static struct matrix_spot quarter_factor(unsigned product, bool whole, unsigned line, unsigned k) {
    unsigned element = whole ? k : line % 4;
    return (struct matrix_spot){.lane = 4 * product + line / 4 * 16 + (whole ? line % 4 : k),
                                .reg = element / 2,
                                .shift = 16 * (element % 2)};
}

static struct matrix_spot quarter_sum(unsigned product, bool half, unsigned i, unsigned j) {
    unsigned lane = 4 * product + i / 4 * 16;
    if (half)
        return (struct matrix_spot){lane + i % 4, j / 2, 16 * (j % 2)};
    return (struct matrix_spot){lane + (i & 1) + (j & 2), (i & 2) | (j & 1) | (j & 4), 0};
}

static struct matrix_spot spot(const struct matrix_form *form, unsigned product, char which,
                               unsigned line, unsigned at) {
    const struct matrix_product *p = &form->product;
    bool half = (which == 'c' ? p->c : p->d) == M_F16;
    if (form->quarters)
        return which == 'a'   ? quarter_factor(product, !form->a_column, line, at)
               : which == 'b' ? quarter_factor(product, form->b_column, line, at)
                              : quarter_sum(product, half, line, at);
    return which == 'a'   ? matrix_spot_a(p->m, matrix_type_bits(p->a), line, at)
           : which == 'b' ? matrix_spot_b(matrix_type_bits(p->b), at, line)
                          : matrix_spot_c(half, line, at);
}

static void set(const struct matrix_form *form, uint64_t in[32][MATRIX_IN], char which,
                struct matrix_spot at, uint64_t bits) {
    in[at.lane][begin(form, which) + at.reg] |= bits << at.shift;
}

/* ---- sparse ones ----------------------------------------------------------------------------- */

/* The lane and the first bit of field `number` of row i; fields are of two bits. */
static struct matrix_spot spot_of_field(const struct matrix_form *form, unsigned i,
                                        unsigned number) {
    unsigned bits = matrix_type_bits(form->product.a), k = form->product.k;
    if (bits >= 16) { /* eight fields of a row, and eight of that eight below */
        unsigned lanes = k * bits / 256;
        return (struct matrix_spot){i % 8 * 4 + form->selector * lanes + number / 8, 0,
                                    i / 8 * 16 + 2 * (number % 8)};
    }
    unsigned lanes = k * bits / 128;
    return (struct matrix_spot){i % 8 * 4 + form->selector * lanes + number / 16 * 2 + i / 8, 0,
                                2 * (number % 16)};
}

/* Of each row, groups of four places (of two for tf32; places of s4 and u4 are pairs) keep two (one
 * of two). The others become zero; what is kept moves together. */
static void thin_out(const struct matrix_form *form, struct matrix_data *data,
                     uint64_t in[32][MATRIX_IN], uint32_t *seed) {
    static const unsigned char pairs[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
    const struct matrix_product *p = &form->product;
    unsigned bits = matrix_type_bits(p->a), each = bits == 4 ? 2 : 1;
    unsigned group = bits == 32 ? 2 : 4 * each;
    for (unsigned i = 0; i < p->m; i++)
        for (unsigned first = 0, kept = 0; first < p->k; first += group) {
            unsigned choice = matrix_random(seed) >> 9, field = 0;
            bool keeps[8] = {false};
            for (unsigned n = 0; n < 2; n++) {
                unsigned which = bits == 32 ? choice % 2 * 2 + n : pairs[choice % 6][n];
                struct matrix_spot at = spot_of_field(form, i, first / group * 2 + n);
                in[at.lane][begin(form, 'e')] |= (uint64_t)which << at.shift;
                field = bits == 32 ? which / 2 : which;
                for (unsigned e = 0; e < each; e++)
                    keeps[field * each + e] = true;
            }
            for (unsigned e = 0; e < group; e++) {
                if (!keeps[e])
                    data->a[i][first + e] = 0;
                else
                    set(form, in, 'a', matrix_spot_a(16, bits, i, kept++), data->a[i][first + e]);
            }
        }
}

/* ---- data ------------------------------------------------------------------------------------ */

static void pack(const struct matrix_form *form, unsigned product, const struct matrix_data *one,
                 uint64_t in[32][MATRIX_IN]) {
    const struct matrix_product *p = &form->product;
    for (unsigned k = 0; k < p->k; k++) {
        for (unsigned i = 0; i < p->m && !form->sparse; i++)
            set(form, in, 'a', spot(form, product, 'a', i, k), one->a[i][k]);
        for (unsigned j = 0; j < p->n; j++)
            set(form, in, 'b', spot(form, product, 'b', j, k), one->b[k][j]);
    }
    for (unsigned i = 0; i < p->m; i++)
        for (unsigned j = 0; j < p->n; j++)
            set(form, in, 'c', spot(form, product, 'c', i, j), one->c[i][j]);
}

void matrix_prepare(const struct matrix_form *form, struct matrix_data *data, bool exact,
                    uint32_t *seed, uint64_t in[32][MATRIX_IN]) {
    memset(in, 0, 32 * sizeof in[0]);
    for (unsigned product = 0; product < matrix_products(form); product++) {
        matrix_fill(&form->product, &data[product], exact, seed);
        if (form->sparse)
            thin_out(form, &data[product], in, seed);
        pack(form, product, &data[product], in);
    }
}

/* Of each group the first half is kept: fields 0 and 1, of tf32 the pair that says the first. */
#define FIRST_HALVES UINT64_C(0x44444444)

unsigned matrix_partner(const struct matrix_form *form, unsigned kept) {
    unsigned bits = matrix_type_bits(form->product.a);
    unsigned half = bits == 32 ? 1 : bits == 4 ? 4 : 2;
    return form->sparse ? kept / half * 2 * half + kept % half : kept;
}

void matrix_pack(const struct matrix_form *form, const struct matrix_data *data,
                 uint64_t in[32][MATRIX_IN]) {
    const struct matrix_product *p = &form->product;
    memset(in, 0, 32 * sizeof in[0]);
    for (unsigned lane = 0; form->sparse && lane < 32; lane++)
        in[lane][begin(form, 'e')] = FIRST_HALVES;
    for (unsigned i = 0; form->sparse && i < p->m; i++)
        for (unsigned kept = 0; kept < p->k / 2; kept++)
            set(form, in, 'a', matrix_spot_a(p->m, matrix_type_bits(p->a), i, kept),
                data->a[i][kept]);
    for (unsigned product = 0; product < matrix_products(form); product++)
        pack(form, product, &data[product], in);
}

void matrix_collect(const struct matrix_form *form, const uint64_t out[32][MATRIX_OUT],
                    struct matrix_data *data) {
    const struct matrix_product *p = &form->product;
    unsigned bits = matrix_type_bits(p->d);
    uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    for (unsigned product = 0; product < matrix_products(form); product++)
        for (unsigned i = 0; i < p->m; i++)
            for (unsigned j = 0; j < p->n; j++) {
                struct matrix_spot at = spot(form, product, 'd', i, j);
                data[product].d[i][j] = out[at.lane][at.reg] >> at.shift & mask;
            }
}
