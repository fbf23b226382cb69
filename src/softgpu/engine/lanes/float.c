/* Single precision: each operation is rounded by its own mode; products and sums are contracted in
 * the program (program/contract.c), not here. */
#include "softgpu/engine/lanes/lanes.h"

#include <math.h>

#if defined __FMA__ || defined __ARM_FEATURE_FMA
#define fma_nearest(a, b, c) __builtin_fmaf(a, b, c)
#else
/* Without an instruction for it: exact in double, or rounded to odd. */
static inline float fma_nearest(float a, float b, float c) {
    double product = (double)a * (double)b, addend = c, sum = product + addend;
    double part = sum - product, rest = (product - (sum - part)) + (addend - part);
    uint64_t bits = sg_bits64(sum);
    bool inexact = rest < 0 || rest > 0, away = (rest > 0) == (sum > 0);
    uint64_t odd = away ? bits + 1 : bits - 1;
    return (float)sg_double(inexact && !(bits & 1) ? odd : bits);
}
#endif

static inline uint32_t saturated(float value) {
    return value > 0 ? (value < 1 ? sg_bits32(value) : UINT32_C(0x3f800000)) : 0;
}

static inline uint32_t finish(float value, uint32_t flags) {
    float flushed = flags & SG_STEP_FTZ ? sg_flush(value) : value;
    return flags & SG_STEP_SAT ? saturated(flushed) : sg_canonical(flushed);
}

/*
 * .ftz of a product or quotient: a result below the smallest normal number is flushed, even if
 * rounding to the fewer bits there gives that number. `large` is the result for operands scaled by
 * 2^100, which is rounded to full precision; if that overflows it is infinite or NaN.
 */
static inline uint32_t finish_scaled(float value, float large, uint32_t flags) {
    bool tiny = flags & SG_STEP_FTZ && large < 0x1p-26F && large > -0x1p-26F;
    float flushed = tiny ? sg_float(sg_bits32(value) & UINT32_C(0x80000000)) : value;
    return flags & SG_STEP_SAT ? saturated(flushed) : sg_canonical(flushed);
}

/* Each operation has a usual form, and one with .ftz, .sat and other roundings. */
#define X  (sg_float(A))
#define Y  (sg_float(B))
#define Z  (sg_float(C))
#define FX (step->flags & SG_STEP_FTZ ? sg_flush(X) : X)
#define FY (step->flags & SG_STEP_FTZ ? sg_flush(Y) : Y)
#define FZ (step->flags & SG_STEP_FTZ ? sg_flush(Z) : Z)
#define ROUNDED(NAME, FULL)                                                                        \
    static const struct sg_step *NAME(struct sg_warp *warp, const struct sg_step *step) {          \
        unsigned before = sg_round_set(step->rounding);                                            \
        const struct sg_step *next = FULL(warp, step);                                             \
        sg_round_restore(before);                                                                  \
        return next;                                                                               \
    }
SG_MAP2(add, u32, u32, u32, sg_canonical(X + Y))
SG_MAP2(sub, u32, u32, u32, sg_canonical(X - Y))
SG_MAP2(mul, u32, u32, u32, sg_canonical(X *Y))
SG_MAP2(div, u32, u32, u32, sg_canonical(X / Y))
SG_MAP3(fma_, u32, u32, u32, u32, sg_canonical(fma_nearest(X, Y, Z)))
SG_MAP2(add_full, u32, u32, u32, finish(FX + FY, step->flags))
SG_MAP2(sub_full, u32, u32, u32, finish(FX - FY, step->flags))
SG_MAP2(mul_full, u32, u32, u32, finish_scaled(FX *FY, FX * 0x1p100F * FY, step->flags))
SG_MAP2(div_full, u32, u32, u32, finish_scaled(FX / FY, FX * 0x1p100F / FY, step->flags))
SG_MAP3(fma_full, u32, u32, u32, u32,
        finish_scaled(fma_nearest(FX, FY, FZ),
                      fma_nearest(FX * 0x1p50F, FY * 0x1p50F, FZ * 0x1p100F), step->flags))
/* The library's function is exact under each rounding mode. */
SG_MAP3(fma_directed_full, u32, u32, u32, u32,
        finish_scaled(fmaf(FX, FY, FZ), fmaf(FX * 0x1p50F, FY * 0x1p50F, FZ * 0x1p100F),
                      step->flags))
/* What a contracted sub or neg has become: the signs are those of the product and of the addend. */
SG_MAP3(fma_minus_product, u32, u32, u32, u32, sg_canonical(fma_nearest(-X, Y, Z)))
SG_MAP3(fma_minus_addend, u32, u32, u32, u32, sg_canonical(fma_nearest(X, Y, -Z)))
SG_MAP3(fma_minus_both, u32, u32, u32, u32, sg_canonical(fma_nearest(-X, Y, -Z)))
#define SX (step->flags & SG_STEP_MINUS_PRODUCT ? -FX : FX)
#define SZ (step->flags & SG_STEP_MINUS_ADDEND ? -FZ : FZ)
SG_MAP3(fma_signed_full, u32, u32, u32, u32,
        finish_scaled(fma_nearest(SX, FY, SZ),
                      fma_nearest(SX * 0x1p50F, FY * 0x1p50F, SZ * 0x1p100F), step->flags))
SG_MAP1(sqrt_full, u32, u32, finish(__builtin_sqrtf(FX), step->flags))
SG_MAP1(rcp_full, u32, u32, finish_scaled(1.0F / FX, 0x1p100F / FX, step->flags))
ROUNDED(add_directed, add_full)
ROUNDED(sub_directed, sub_full)
ROUNDED(mul_directed, mul_full)
ROUNDED(div_directed, div_full)
ROUNDED(fma_directed, fma_directed_full)
ROUNDED(sqrt_directed, sqrt_full)
ROUNDED(rcp_directed, rcp_full)

/* abs and neg change the sign bit; with .ftz they flush. A NaN becomes the canonical one. */
static inline uint32_t sign_changed(uint32_t bits, uint32_t keep, uint32_t flip, uint32_t flags) {
    uint32_t result = (bits & keep) ^ flip;
    result = flags & SG_STEP_FTZ ? sg_flush_bits(result) : result;
    return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : result;
}
SG_MAP1(abs_, u32, u32, sign_changed(A, 0x7fffffffu, 0, step->flags))
SG_MAP1(neg, u32, u32, sign_changed(A, UINT32_MAX, 0x80000000u, step->flags))
SG_MAP2(copysign_, u32, u32, u32, (A & 0x80000000u) | (B & 0x7fffffffu))

/*
 * min and max: if one operand is NaN the other one, if both are the canonical NaN; with .NaN that
 * if any is. -0 is less than +0. .xorsign.abs: of the magnitudes, with the product's sign.
 */
static inline int32_t ordered(uint32_t bits) {
    return (int32_t)(bits ^ ((0 - (bits >> 31)) & 0x7fffffffu));
}
static inline bool is_nan(uint32_t bits) {
    return (bits & 0x7fffffffu) > 0x7f800000u;
}
static inline uint32_t extreme(uint32_t a, uint32_t b, uint32_t flags, bool most) {
    a = flags & SG_STEP_FTZ ? sg_flush_bits(a) : a;
    b = flags & SG_STEP_FTZ ? sg_flush_bits(b) : b;
    uint32_t sign = flags & SG_STEP_XORSIGN ? (a ^ b) & 0x80000000u : 0;
    uint32_t kept = flags & SG_STEP_XORSIGN ? 0x7fffffffu : UINT32_MAX;
    uint32_t x = a & kept, y = b & kept;
    uint32_t best = (ordered(x) > ordered(y)) == most ? x : y;
    best = is_nan(a) ? y : is_nan(b) ? x : best;
    bool none = (is_nan(a) && is_nan(b)) || (flags & SG_STEP_NAN && (is_nan(a) || is_nan(b)));
    return none ? 0x7fffffffu : best | sign;
}
SG_MAP2(min_, u32, u32, u32, extreme(A, B, step->flags, false))
SG_MAP2(max_, u32, u32, u32, extreme(A, B, step->flags, true))
SG_MAP3(min3, u32, u32, u32, u32, extreme(extreme(A, B, step->flags, false), C, step->flags, false))
SG_MAP3(max3, u32, u32, u32, u32, extreme(extreme(A, B, step->flags, true), C, step->flags, true))

struct row {
    unsigned char op, sources;
    sg_run *usual, *full, *directed;
};
static const struct row rows[] = {
    {SG_OP_add, 2, add, add_full, add_directed},
    {SG_OP_sub, 2, sub, sub_full, sub_directed},
    {SG_OP_mul, 2, mul, mul_full, mul_directed},
    {SG_OP_div, 2, div, div_full, div_directed},
    {SG_OP_fma, 3, fma_, fma_full, fma_directed},
    {SG_OP_mad, 3, fma_, fma_full, fma_directed},
    {SG_OP_sqrt, 1, sqrt_full, sqrt_full, sqrt_directed},
    {SG_OP_rcp, 1, rcp_full, rcp_full, rcp_directed},
    {SG_OP_abs, 1, abs_, abs_, NULL},
    {SG_OP_neg, 1, neg, neg, NULL},
    {SG_OP_copysign, 2, copysign_, copysign_, NULL},
    {SG_OP_min, 2, min_, min_, NULL},
    {SG_OP_max, 2, max_, max_, NULL},
};

static sg_run *const signed_fma[] = {fma_, fma_minus_product, fma_minus_addend, fma_minus_both};

bool SG_LEVEL(sg_theme_float)(const struct sg_instruction *in, struct sg_form *form) {
    if (in->type != SG_TYPE_F32 || (in->modifiers & SG_MOD(RELU)) ||
        (in->op == SG_OP_div && (in->modifiers & (SG_MOD(APPROX) | SG_MOD(FULL)))))
        return false;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        if (row->op != in->op)
            continue;
        bool flags = (in->modifiers & (SG_MOD(FTZ) | SG_MOD(SAT))) != 0;
        bool directed = in->rounding != SG_ROUND_NONE && in->rounding != SG_ROUND_RN;
        unsigned sources = row->sources;
        form->run = directed ? row->directed : flags ? row->full : row->usual;
        if ((in->op == SG_OP_min || in->op == SG_OP_max) && in->operand_count == 4) {
            form->run = in->op == SG_OP_min ? min3 : max3;
            sources = 3;
        }
        unsigned signs = sg_fma_signs(in);
        if (signs)
            form->run = flags ? fma_signed_full : signed_fma[signs];
        form->flags = (uint16_t)(signs * SG_STEP_MINUS_PRODUCT |
                                 (in->modifiers & SG_MOD(FTZ) ? SG_STEP_FTZ : 0) |
                                 (in->modifiers & SG_MOD(SAT) ? SG_STEP_SAT : 0) |
                                 (in->modifiers & SG_MOD(NAN) ? SG_STEP_NAN : 0) |
                                 (in->modifiers & SG_MOD(XORSIGN) ? SG_STEP_XORSIGN : 0));
        form->rounding = in->rounding;
        form->gang = true;
        form->dest = SG_W_32;
        for (unsigned k = 0; k < sources; k++)
            form->source[k] = SG_W_32;
        return form->run != NULL;
    }
    return false;
}
