/* Products of float matrices: factors, special values, and which terms are added together. */
#include "softgpu/engine/lanes/matrix_lanes.h"

#include <math.h>

#define NAN_32 UINT32_C(0x7fffffff)
#define NAN_16 0x7fffu
#define MOST_K 64

enum kind { FINITE, INFINITE, INFINITE_BELOW, NOT_A_NUMBER };

/* A float, decomposed. */
struct factor {
    int32_t value, exponent;
    enum kind kind;
};

/* From a float with `digits` fraction bits and `bits` exponent bits. */
static inline struct factor factor_of(uint32_t magnitude, bool negative, int digits, int bits) {
    int32_t raw = (int32_t)(magnitude >> digits), bias = (1 << (bits - 1)) - 1;
    int32_t fraction = (int32_t)(magnitude & ((1u << digits) - 1));
    if (raw == (1 << bits) - 1)
        return (struct factor){0, SG_MATRIX_ZERO,
                               fraction   ? NOT_A_NUMBER
                               : negative ? INFINITE_BELOW
                                          : INFINITE};
    int32_t value = raw ? fraction | 1 << digits : fraction;
    int32_t exponent = value ? (raw ? raw : 1) - bias : SG_MATRIX_ZERO;
    return (struct factor){negative ? -value : value, exponent, FINITE};
}

static inline struct factor factor(uint32_t bits, unsigned type) {
    switch (type) {
    case SG_TYPE_F16:
        return factor_of(bits & 0x7fff, bits >> 15 & 1, 10, 5);
    case SG_TYPE_BF16:
        return factor_of(bits & 0x7fff, bits >> 15 & 1, 7, 8);
    case SG_TYPE_TF32: /* the lower bits are ignored */
        return factor_of(bits >> 13 & 0x3ffff, bits >> 31, 10, 8);
    default:
        return factor_of(bits & INT32_MAX, bits >> 31, 23, 8);
    }
}

/* 8-bit floats are converted to f16, which represents them all, before they are multiplied. */
static uint32_t half_of(uint32_t bits, unsigned type) {
    if (type == SG_TYPE_E5M2)
        return bits << 8;
    uint32_t sign = (bits & 0x80) << 8, raw = bits >> 3 & 15, fraction = bits & 7;
    if ((bits & 0x7f) == 0x7f)
        return NAN_16;
    if (raw)
        return sign | (raw + 8) << 10 | fraction << 7;
    if (!fraction)
        return sign;
    unsigned first = 31 - (unsigned)__builtin_clz(fraction); /* in units of 2^-9 */
    return sign | (first + 6) << 10 | ((fraction << (10 - first)) & 0x3ff);
}

/* ---- special values -------------------------------------------------------------------------- */

static enum kind times(struct factor a, struct factor b) {
    if (a.kind == NOT_A_NUMBER || b.kind == NOT_A_NUMBER)
        return NOT_A_NUMBER;
    if (a.kind == FINITE && b.kind == FINITE)
        return FINITE;
    if ((a.kind == FINITE && !a.value) || (b.kind == FINITE && !b.value))
        return NOT_A_NUMBER;
    bool below =
        (a.kind == INFINITE_BELOW || a.value < 0) != (b.kind == INFINITE_BELOW || b.value < 0);
    return below ? INFINITE_BELOW : INFINITE;
}

static enum kind plus(enum kind a, enum kind b) {
    if (a == FINITE || b == FINITE)
        return a == FINITE ? b : a;
    return a == b ? a : NOT_A_NUMBER;
}

static uint32_t special(enum kind kind, bool half) {
    uint32_t below = kind == INFINITE_BELOW;
    if (kind == NOT_A_NUMBER)
        return half ? NAN_16 : NAN_32;
    return half ? UINT32_C(0x7c00) | below << 15 : UINT32_C(0x7f800000) | below << 31;
}

/* ---- one instruction of a tensor core -------------------------------------------------------- */

/* The factors of A or of B, by lines; `bits`: as they are multiplied. */
struct side {
    unsigned length;
    uint32_t bits[SG_MATRIX_MOST];
    int32_t value[SG_MATRIX_MOST], exponent[SG_MATRIX_MOST];
};

struct sides {
    unsigned type, digits; /* of the factors, after conversion */
    bool special;          /* there is an infinity or NaN among them */
    struct side a, b;
};

/* With a constant type the loop has no branches. */
static inline __attribute__((always_inline)) bool factors(struct side *side, unsigned count,
                                                          unsigned type) {
    uint32_t odd = 0;
    for (unsigned i = 0; i < count; i++) {
        struct factor one = factor(side->bits[i], type);
        side->value[i] = one.value;
        side->exponent[i] = one.exponent;
        odd |= one.kind;
    }
    return odd != FINITE;
}

static void read_side(struct sides *sides, struct side *side, const struct sg_matrix *shape,
                      const uint32_t *bits) {
    unsigned count = (unsigned)shape->lines * shape->length;
    bool eights = shape->type == SG_TYPE_E4M3 || shape->type == SG_TYPE_E5M2;
    side->length = shape->length;
    for (unsigned i = 0; i < count; i++)
        side->bits[i] = eights ? half_of(bits[i], shape->type) : bits[i];
    sides->special |= sides->type == SG_TYPE_F16    ? factors(side, count, SG_TYPE_F16)
                      : sides->type == SG_TYPE_BF16 ? factors(side, count, SG_TYPE_BF16)
                                                    : factors(side, count, SG_TYPE_TF32);
}

static void read_sides(const struct sg_matrix_work *work, struct sides *sides) {
    unsigned type = work->shape[SG_MATRIX_A].type;
    sides->type = type == SG_TYPE_E4M3 || type == SG_TYPE_E5M2 ? (unsigned)SG_TYPE_F16 : type;
    sides->digits = type == SG_TYPE_BF16 ? 7 : 10;
    sides->special = false;
    read_side(sides, &sides->a, &work->shape[SG_MATRIX_A], work->a);
    read_side(sides, &sides->b, &work->shape[SG_MATRIX_B], work->b);
}

/* The products that one instruction adds: `count` elements of a line of A, and their partners. */
struct batch {
    unsigned count;
    unsigned char a[MOST_K], b[MOST_K];
};

static uint32_t one_special(const struct sides *sides, const struct batch *batch, unsigned i,
                            unsigned j, struct factor c, bool half, uint32_t otherwise) {
    const uint32_t *a = sides->a.bits + i * sides->a.length;
    const uint32_t *b = sides->b.bits + j * sides->b.length;
    enum kind all = c.kind;
    for (unsigned p = 0; p < batch->count; p++)
        all = plus(all,
                   times(factor(a[batch->a[p]], sides->type), factor(b[batch->b[p]], sides->type)));
    return all == FINITE ? otherwise : special(all, half);
}

/* Eight lines of B, transposed. */
struct columns {
    int32_t value[MOST_K][SG_MATRIX_EIGHT], exponent[MOST_K][SG_MATRIX_EIGHT];
};

static void columns_of(const struct sides *sides, unsigned first, struct columns *columns) {
    const struct side *b = &sides->b;
    for (unsigned j = 0; j < SG_MATRIX_EIGHT; j++)
        for (unsigned k = 0; k < b->length; k++) {
            /* All were read. NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign) */
            columns->value[k][j] = b->value[(first + j) * b->length + k];
            columns->exponent[k][j] = b->exponent[(first + j) * b->length + k];
        }
}

/* Eight elements of a line of D, from those of C; `half`: both are f16. */
static void eight(const struct sides *sides, const struct columns *columns,
                  const struct batch *batch, unsigned i, unsigned first, uint32_t *sum, bool half) {
    int32_t c_value[SG_MATRIX_EIGHT], c_exponent[SG_MATRIX_EIGHT];
    struct factor old[SG_MATRIX_EIGHT];
    bool odd = sides->special;
    for (unsigned j = 0; j < SG_MATRIX_EIGHT; j++) {
        old[j] = factor(sum[j], half ? SG_TYPE_F16 : SG_TYPE_F32);
        c_value[j] = old[j].value;
        c_exponent[j] = old[j].exponent;
        odd |= old[j].kind != FINITE;
    }
    const struct sg_matrix_factors factors = {.count = batch->count,
                                              .digits = sides->digits,
                                              .a_value = sides->a.value + i * sides->a.length,
                                              .a_exponent = sides->a.exponent + i * sides->a.length,
                                              .b_value = columns->value,
                                              .b_exponent = columns->exponent,
                                              .a = batch->a,
                                              .b = batch->b};
    struct sg_matrix_sums sums;
    SG_LEVEL(sg_matrix_sum)(&factors, c_value, c_exponent, half ? 10 : 23, &sums);
    for (unsigned j = 0; j < SG_MATRIX_EIGHT; j++) {
        sum[j] = half ? SG_LEVEL(sg_matrix_half)(sums.value[j], sums.exponent[j])
                      : SG_LEVEL(sg_matrix_single)(sums.value[j], sums.exponent[j]);
        if (odd)
            sum[j] = one_special(sides, batch, i, first + j, old[j], half, sum[j]);
    }
}

/* ---- which terms are added together ---------------------------------------------------------- */

/*
 * Most shapes are one instruction of a tensor core. wmma with tf32 is two in sequence, with four
 * products each. 8-bit floats take two as well: the lower and then the upper half of each register,
 * starting at 0; an ordinary addition adds C at the end.
 */
struct plan {
    unsigned parts;
    bool alone; /* C is added at the end */
};

static struct plan plan_of(const struct sg_matrix_work *work) {
    unsigned type = work->shape[SG_MATRIX_A].type;
    bool eights = type == SG_TYPE_E4M3 || type == SG_TYPE_E5M2;
    bool wide_tf32 = work->in->op == SG_OP_wmma && type == SG_TYPE_TF32;
    return (struct plan){eights || wide_tf32 ? 2 : 1, eights};
}

static void batch_of(const struct sg_matrix_work *work, const struct plan *plan, unsigned line,
                     unsigned part, struct batch *batch) {
    unsigned char pick[64];
    SG_LEVEL(sg_matrix_pick)(work, line, pick);
    batch->count = 0;
    unsigned length = work->shape[SG_MATRIX_A].length;
    for (unsigned i = 0; i < length; i++) {
        unsigned which = plan->parts == 1 ? 0 : plan->alone ? i >> 1 & 1 : i >= length / 2;
        if (which != part)
            continue;
        batch->a[batch->count] = (unsigned char)i;
        batch->b[batch->count++] = pick[i];
    }
}

static float single_of(uint32_t bits, bool half) {
    return half ? SG_LEVEL(sg_half_to_float)((uint16_t)bits) : sg_float(bits);
}

static uint32_t added(uint32_t a, uint32_t b, bool half) {
    if (!half)
        return sg_canonical(sg_float(a) + sg_float(b));
    double sum = (double)single_of(a, true) + (double)single_of(b, true); /* exact */
    return SG_LEVEL(sg_half_from_double)(sum, SG_ROUND_RN);
}

/* Converts a sum to D's type, and saturates it to finite numbers if asked to. */
static uint32_t finished(const struct sg_matrix_work *work, uint32_t bits, bool half) {
    unsigned type = work->shape[SG_MATRIX_D].type;
    if (type == SG_TYPE_F16 && !half) {
        bits = SG_LEVEL(sg_half_from_double)((double)sg_float(bits), SG_ROUND_RN);
        half = true;
    }
    if (!(work->in->modifiers & SG_MOD(SATFINITE)))
        return bits;
    uint32_t infinity = half ? 0x7c00 : 0x7f800000, sign = half ? 0x8000 : 0x80000000;
    if ((bits & ~sign) > infinity)
        return 0;
    return (bits & ~sign) == infinity ? (bits & sign) | (infinity - 1) : bits;
}

/* Line i of D, for eight columns starting at `first`. */
static void line(struct sg_matrix_work *work, const struct plan *plan, const struct sides *sides,
                 const struct columns *columns, unsigned i, unsigned first) {
    bool c_half = work->shape[SG_MATRIX_C].type == SG_TYPE_F16;
    bool half = c_half && work->shape[SG_MATRIX_D].type == SG_TYPE_F16;
    uint32_t c[SG_MATRIX_EIGHT], sum[SG_MATRIX_EIGHT];
    for (unsigned j = 0; j < SG_MATRIX_EIGHT; j++) {
        c[j] = work->c[i * work->n + first + j];
        c[j] = c_half && !half ? sg_bits32(single_of(c[j], true)) : c[j];
        sum[j] = plan->alone ? 0 : c[j];
    }
    for (unsigned part = 0; part < plan->parts; part++) {
        struct batch batch;
        batch_of(work, plan, i, part, &batch);
        eight(sides, columns, &batch, i, first, sum, half);
    }
    for (unsigned j = 0; j < SG_MATRIX_EIGHT; j++) {
        uint32_t all = plan->alone ? added(c[j], sum[j], half) : sum[j];
        work->d[i * work->n + first + j] = finished(work, all, half);
    }
}

void SG_LEVEL(sg_matrix_floats)(struct sg_matrix_work *work) {
    struct sides sides;
    struct columns columns;
    const struct plan plan = plan_of(work);
    read_sides(work, &sides);
    for (unsigned first = 0; first < work->n; first += SG_MATRIX_EIGHT) {
        columns_of(&sides, first, &columns);
        for (unsigned i = 0; i < work->m; i++)
            line(work, &plan, &sides, &columns, i, first);
    }
}

/* ---- m8n8k4 ---------------------------------------------------------------------------------- */

#if defined __FMA__ || defined __ARM_FEATURE_FMA
#define fused(a, b, c) __builtin_fmaf(a, b, c)
#else
#define fused(a, b, c) fmaf(a, b, c) /* the library's: exact */
#endif

/*
 * sm_90's tensor cores do not have this shape; the assembler emits scalar instructions. To f32:
 * four products by fused multiply-add, starting at 0, and then C is added. To f16: C plus the sum
 * of the first two products, plus the sum of the others, in f32, with one rounding to f16.
 */
static uint32_t quarter(const float *a, const float *b, uint32_t c, bool c_half, bool d_half) {
    float old = single_of(c, c_half);
    if (!d_half) {
        float sum = 0;
        for (unsigned k = 0; k < 4; k++)
            sum = fused(a[k], b[k], sum);
        return sg_canonical(old + sum);
    }
    float first = fused(a[1], b[1], a[0] * b[0]), second = fused(a[3], b[3], a[2] * b[2]);
    float all = old + first + second;
    return SG_LEVEL(sg_half_from_double)((double)all, SG_ROUND_RN);
}

void SG_LEVEL(sg_matrix_quarter)(struct sg_matrix_work *work) {
    bool c_half = work->shape[SG_MATRIX_C].type == SG_TYPE_F16;
    bool d_half = work->shape[SG_MATRIX_D].type == SG_TYPE_F16;
    float a[8][4], b[8][4];
    for (unsigned i = 0; i < 32; i++) {
        a[i / 4][i % 4] = single_of(work->a[i], true);
        b[i / 4][i % 4] = single_of(work->b[i], true);
    }
    for (unsigned i = 0; i < 64; i++)
        work->d[i] = quarter(a[i / 8], b[i % 8], work->c[i], c_half, d_half);
}
