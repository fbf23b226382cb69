#include "matrix_edges.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- cases ----------------------------------------------------------------------------------- */

struct list {
    struct matrix_edge *edges;
    size_t count, room;
    struct matrix_edge scratch, *now;
    struct matrix_form form;
    unsigned products; /* that are added: half of k where A is sparse */
    const char *kind;
};

static void begin(struct list *list, const char *name, double c) {
    list->now = list->count < list->room ? &list->edges[list->count++] : &list->scratch;
    memset(list->now, 0, sizeof *list->now);
    list->now->form = list->form;
    snprintf(list->now->name, sizeof list->now->name, "%s %s", list->kind, name);
    list->now->c = matrix_encode(list->form.product.c, c);
}

static void begin_at(struct list *list, const char *name, unsigned at, double c) {
    char both[48];
    snprintf(both, sizeof both, "%s-%u", name, at);
    begin(list, both, c);
}

static void raw(struct list *list, unsigned k, uint64_t a, uint64_t b) {
    list->now->a[k] = a;
    list->now->b[k] = b;
}

static void term(struct list *list, unsigned k, double a, double b) {
    raw(list, k, matrix_encode(list->form.product.a, a), matrix_encode(list->form.product.b, b));
}

static void terms(struct list *list, unsigned from, unsigned count, double a, double b) {
    for (unsigned k = from; k < from + count; k++)
        term(list, k, a, b);
}

/* The largest power of two whose square is used, and the smallest number, both of A's type. */
struct scale {
    double large, small;
    int lowest; /* exponent of a product that is nearly the smallest */
};

static struct scale scale_of(enum matrix_type type) {
    switch (type) {
    case M_F16:
        return (struct scale){0x1p15, 0x1p-24, -40};
    case M_E4M3:
        return (struct scale){0x1p8, 0x1p-9, -18};
    case M_E5M2:
        return (struct scale){0x1p15, 0x1p-16, -30};
    default:
        return (struct scale){0x1p60, 0x1p-120, -150};
    }
}

/* How much is kept of terms below the largest one: 2^n of them, 2^-(23 + n) of it. */
static void add_kept(struct list *list, unsigned most) {
    int one =
        scale_of(list->form.product.a).lowest + 28 > 0 ? 8 : 0; /* 8-bit floats begin higher */
    double unit = ldexp(1, one);
    for (unsigned n = 1; n <= 3 && (1u << n) < most; n++) {
        int power = 2 * one - 23 - (int)n;
        double a = ldexp(1, power / 2), b = ldexp(1, power - power / 2);
        begin_at(list, "kept", 23 + n, 0);
        term(list, 0, unit, unit);
        terms(list, 1, 1u << n, a, b);
        begin_at(list, "kept-below-zero", 23 + n, 0);
        term(list, 0, -unit, unit);
        terms(list, 1, 1u << n, -a, b);
        begin_at(list, "kept-other-sign", 23 + n, 0);
        term(list, 0, unit, unit);
        terms(list, 1, 1u << n, -a, b);
        begin_at(list, "kept-beside-c", 23 + n, ldexp(1, 2 * one));
        terms(list, 0, 1u << n, a, b);
        begin_at(list, "kept-1.5-squared", 23 + n, 0);
        term(list, 0, 1.5 * unit, 1.5 * unit);
        terms(list, 1, 1u << n, a * 2, b);
    }
    int half = 2 * one - 24;
    begin(list, "rounding-above-half", ldexp(1, 2 * one));
    term(list, 0, ldexp(1, half / 2), ldexp(1, half - half / 2));
    term(list, 1, ldexp(1, half / 2), ldexp(1, half - half / 2 - 1));
    begin(list, "rounding-above-half-below-zero", -ldexp(1, 2 * one));
    term(list, 0, -ldexp(1, half / 2), ldexp(1, half - half / 2));
    term(list, 1, -ldexp(1, half / 2), ldexp(1, half - half / 2 - 1));
}

/* A large term and its negative, and one that is lost beside them: added together or not. */
static void add_groups(struct list *list, unsigned count) {
    struct scale scale = scale_of(list->form.product.a);
    double large = scale.large, lost = list->form.product.a == M_E4M3 ? 0x1p-5 : 1;
    bool half = list->form.product.c == M_F16;
    double first = half ? 1 : large; /* f16 must not overflow */
    double small = list->form.product.a == M_E4M3 ? 0x1p-5 : half ? 0x1p-14 : lost;
    for (unsigned k = 2; k < count; k++) {
        begin_at(list, "group-of-0-1", k, 0);
        term(list, 0, first, large);
        term(list, 1, -first, large);
        term(list, k, small, small);
        begin_at(list, "group-of-0", k, 0);
        term(list, 0, first, large);
        term(list, k, -first, large);
        term(list, k == 2 ? 3 : 2, small, small);
        begin_at(list, "group-of-c", k, first * (half ? 0x1p14 : large));
        term(list, 0, -first, half ? 0x1p14 : large);
        term(list, k, small, small);
    }
}

static void add_zeros(struct list *list) {
    struct scale scale = scale_of(list->form.product.a);
    begin(list, "zero-all", 0);
    begin(list, "zero-c-negative", -0.0);
    begin(list, "zero-products-negative", -0.0);
    for (unsigned k = 0; k < list->products; k++)
        term(list, k, -0.0, 1);
    begin(list, "zero-products-negative-c-positive", 0);
    for (unsigned k = 0; k < list->products; k++)
        term(list, k, -0.0, 1);
    begin(list, "zero-by-cancelling", 0);
    term(list, 0, 1, 1);
    term(list, 1, -1, 1);
    begin(list, "zero-by-cancelling-c", -1);
    term(list, 0, 1, 1);
    int lowest = scale.lowest;
    begin(list, "zero-times-large", 0);
    term(list, 0, 0, scale.large);
    term(list, 1, ldexp(1, lowest / 2), ldexp(1, lowest - lowest / 2));
    begin(list, "zero-times-zero", 0);
    term(list, 0, 0, 0);
    term(list, 1, ldexp(1, lowest / 2), ldexp(1, lowest - lowest / 2));
    begin(list, "negative-and-tiny", 0);
    term(list, 1, -ldexp(1, lowest / 2), ldexp(1, lowest - lowest / 2));
}

static void add_subnormals(struct list *list) {
    struct scale scale = scale_of(list->form.product.a);
    enum matrix_type type = list->form.product.a, sum = list->form.product.c;
    uint64_t least = type == M_TF32 ? 0x2000 : 1; /* the smallest subnormal number */
    uint64_t one = matrix_encode(type, 1);
    begin(list, "subnormal-a", 0);
    raw(list, 0, least, one);
    begin(list, "subnormal-b", 0);
    raw(list, 0, one, least);
    begin(list, "subnormal-squared", 0);
    raw(list, 0, least, least);
    begin(list, "subnormal-c", 0);
    list->now->c = 1;
    begin(list, "subnormal-c-and-its-negative", 0);
    list->now->c = (UINT64_C(1) << (matrix_type_bits(sum) - 1)) | 1;
    /* Its exponent as it is written, or as it would be normalised? */
    begin(list, "subnormal-times-large-beside-tiny", 0);
    raw(list, 0, least, matrix_encode(type, scale.large));
    term(list, 1, ldexp(1, scale.lowest / 2), ldexp(1, scale.lowest - scale.lowest / 2));
    if (scale.lowest > -100)
        return;
    for (int power = -149; power >= -154; power--) { /* what f32 has at its end, and below */
        begin_at(list, "below-f32", (unsigned)-power, 0);
        for (unsigned k = 0; k < 4; k++)
            term(list, k, 0x1p-75, ldexp(1, power + 75));
    }
    begin(list, "subnormal-sum", 0);
    term(list, 0, 0x1p-70, 0x1p-70);
    term(list, 1, 0x1p-70, 0x1p-78);
    begin(list, "subnormal-c-and-term", 0);
    list->now->c = 3;
    term(list, 0, 0x1p-75, 0x1p-74);
}

static void add_specials(struct list *list) {
    enum matrix_type type = list->form.product.a, sum = list->form.product.c;
    uint64_t one = matrix_encode(type, 1), sign = UINT64_C(1) << (matrix_type_bits(type) - 1);
    uint64_t infinity = type == M_F16                     ? 0x7c00
                        : type == M_BF16                  ? 0x7f80
                        : type == M_TF32 || type == M_F32 ? 0x7f800000
                                                          : 0x7c;
    uint64_t nan = type == M_E4M3 ? 0x7f : infinity | infinity >> 2;
    uint64_t c_infinity = sum == M_F16 ? 0x7c00 : 0x7f800000;
    begin(list, "nan-a", 1);
    raw(list, 0, nan, one);
    begin(list, "nan-b-negative", 1);
    raw(list, 0, one, nan | sign);
    begin(list, "nan-times-zero", 1);
    raw(list, 0, nan, 0);
    begin(list, "nan-c", 0);
    list->now->c = c_infinity + 5;
    term(list, 0, 1, 1);
    begin(list, "infinity-c", 0);
    list->now->c = c_infinity;
    term(list, 0, 1, 1);
    if (type == M_E4M3)
        return;
    begin(list, "infinity-a", 1);
    raw(list, 0, infinity, one);
    begin(list, "infinity-negative", 1);
    raw(list, 0, infinity | sign, one);
    begin(list, "infinity-times-zero", 1);
    raw(list, 0, infinity, 0);
    begin(list, "infinity-times-subnormal", 1);
    raw(list, 0, infinity, type == M_TF32 ? 0x2000 : 1);
    begin(list, "infinity-less-infinity", 1);
    raw(list, 0, infinity, one);
    raw(list, 1, infinity | sign, one);
    begin(list, "infinity-less-c", 0);
    list->now->c = c_infinity | UINT64_C(1) << (matrix_type_bits(sum) - 1);
    raw(list, 0, infinity, one);
}

static void add_ranges(struct list *list) {
    bool half = list->form.product.c == M_F16;
    double largest = half ? 65504 : 0x1.fffffep127;
    if (half) {
        static const double more[] = {8, 15, 16, 17, 32};
        for (unsigned i = 0; i < 5; i++) {
            begin_at(list, "overflow-65504-and", (unsigned)more[i], largest);
            term(list, 0, more[i], 1);
        }
        return;
    }
    begin(list, "overflow-c-and-half-a-place", largest);
    if (scale_of(list->form.product.a).lowest > -100)
        return;
    term(list, 0, 0x1p52, 0x1p51);
    begin(list, "overflow-c-and-a-place", largest);
    term(list, 0, 0x1p52, 0x1p52);
    begin(list, "overflow-product", 0);
    term(list, 0, 0x1p100, 0x1p100);
    begin(list, "overflow-products-that-cancel", 1);
    term(list, 0, 0x1p100, 0x1p100);
    term(list, 1, -0x1p100, 0x1p100);
    begin(list, "overflow-sum-that-is-in-range", -largest);
    term(list, 0, 0x1p64, 0x1p64);
}

static void add_tf32(struct list *list) {
    begin(list, "low-bits-of-a", 0);
    raw(list, 0, 0x3f801fff, 0x3f800000);
    begin(list, "low-bits-of-b-nearly-next", 0);
    raw(list, 0, 0x3f800000, 0x3f801001);
    begin(list, "nan-in-low-bits", 0);
    raw(list, 0, 0x7f800001, 0x3f800000);
    begin(list, "subnormal-in-low-bits", 0);
    raw(list, 0, 0x00001fff, 0x7f000000);
}

static void add_kind(struct list *list, const char *kind, bool sparse,
                     struct matrix_product product) {
    unsigned products = product.k / (sparse ? 2 : 1);
    product.rounding = product.popc = "";
    list->kind = kind;
    list->form = (struct matrix_form){
        .product = product, .quarters = product.k == 4, .b_column = true, .sparse = sparse};
    list->products = products;
    add_kept(list, products);
    add_groups(list, products);
    add_zeros(list);
    add_subnormals(list);
    add_specials(list);
    add_ranges(list);
    if (product.a == M_TF32)
        add_tf32(list);
}

/* The order of f64, and its zeros and NaNs. */
static void add_doubles(struct list *list) {
    struct matrix_product product = {
        .m = 16, .n = 8, .k = 16, .d = M_F64, .a = M_F64, .b = M_F64, .c = M_F64};
    product.rounding = product.popc = "";
    list->kind = "f64.k16";
    list->form = (struct matrix_form){.product = product};
    for (unsigned k = 2; k < 16; k++) {
        begin_at(list, "order", k, 0);
        term(list, 0, 0x1p60, 1);
        term(list, 1, -0x1p60, 1);
        term(list, k, 1, 1);
        begin_at(list, "order-of-last", k, 0x1p60);
        term(list, k, -0x1p60, 1);
        term(list, 1, 1, 1);
    }
    begin(list, "zero-products-negative", -0.0);
    for (unsigned k = 0; k < 16; k++)
        term(list, k, -0.0, 1);
    begin(list, "nan-a", 0);
    raw(list, 0, UINT64_C(0x7ff4000000000005), matrix_encode(M_F64, 1));
    begin(list, "nan-c", 0);
    list->now->c = UINT64_C(0xfff8000000000007);
    begin(list, "infinity-times-zero", 0);
    raw(list, 0, UINT64_C(0x7ff0000000000000), 0);
    begin(list, "subnormal", 0);
    raw(list, 0, 1, matrix_encode(M_F64, 1));
}

size_t matrix_edges(struct matrix_edge *edges, size_t room) {
    struct list list = {.edges = edges, .room = room};
#define KIND(NAME, M, K, A, C)                                                                     \
    add_kind(&list, NAME, strchr(NAME, '-') != NULL,                                               \
             (struct matrix_product){.m = (M), .n = 8, .k = (K), .d = C, .a = A, .b = A, .c = C})
    KIND("f32.f16.k16", 16, 16, M_F16, M_F32);
    KIND("f32.f16.k8", 16, 8, M_F16, M_F32);
    KIND("f16.f16.k16", 16, 16, M_F16, M_F16);
    KIND("f32.bf16.k16", 16, 16, M_BF16, M_F32);
    KIND("f32.tf32.k8", 16, 8, M_TF32, M_F32);
    KIND("f32.e4m3.k32", 16, 32, M_E4M3, M_F32);
    KIND("f16.e4m3.k32", 16, 32, M_E4M3, M_F16);
    KIND("f32.e5m2.k16", 16, 16, M_E5M2, M_F32);
    KIND("f32.f16.k32-sparse", 16, 32, M_F16, M_F32);
    KIND("f16.f16.k32-sparse", 16, 32, M_F16, M_F16);
    KIND("f32.tf32.k16-sparse", 16, 16, M_TF32, M_F32);
    KIND("f32.e4m3.k64-sparse", 16, 64, M_E4M3, M_F32);
    KIND("f32.f16.k4", 8, 4, M_F16, M_F32);
    KIND("f16.f16.k4", 8, 4, M_F16, M_F16);
#undef KIND
    add_doubles(&list);
    return list.count;
}

/* ---- data ------------------------------------------------------------------------------------ */

void matrix_edge_pack(const struct matrix_edge *edge, struct matrix_data *data,
                      uint64_t in[32][MATRIX_IN]) {
    memset(data, 0, matrix_products(&edge->form) * sizeof *data);
    unsigned count = edge->form.product.k / (edge->form.sparse ? 2 : 1);
    for (unsigned k = 0; k < count; k++) {
        data->a[0][k] = edge->a[k];
        data->b[matrix_partner(&edge->form, k)][0] = edge->b[k];
    }
    data->c[0][0] = edge->c;
    matrix_pack(&edge->form, data, in);
}

bool matrix_edge_bound(const struct matrix_edge *edge, double *sum, double *bound) {
    const struct matrix_product *p = &edge->form.product;
    double all, most;
    *sum = matrix_decode(p->c, edge->c);
    all = most = fabs(*sum);
    for (unsigned k = 0; k < p->k; k++) {
        double one = matrix_decode(p->a, edge->a[k]) * matrix_decode(p->b, edge->b[k]);
        if (p->a == M_E4M3 && (edge->a[k] == 0x7f || (edge->b[k] & 0x7f) == 0x7f))
            return false;
        *sum += one;
        all += fabs(one);
        most = fabs(one) > most ? fabs(one) : most;
    }
    bool half = p->d == M_F16;
    double least = half ? 0x1p-24 : 0x1p-149;
    *bound = ldexp(most * (p->k + 1), -24) + 3 * ldexp(all, half ? -10 : -22) + least;
    return all <= (half ? 65504 : 0x1.fffffep127);
}
