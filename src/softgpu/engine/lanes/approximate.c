/*
 * Functions for which PTX only bounds the error: computed by the C library in double and rounded to
 * single, in the steps that an H200 takes. The H200's own results come from tables and differ for
 * some inputs; docs/softgpu.md says for how many.
 */
#include "softgpu/engine/lanes/lanes.h"

#include <math.h>

#define RECIPROCAL (SG_MOD(APPROX) | SG_MOD(FULL))

/*
 * sin and cos: the hardware first multiplies by 1 / 2 pi, rounded towards zero to single precision,
 * so that large angles lose their fraction of a turn, and then flushes subnormal numbers.
 */
static double turns(double x) {
    double exact = x * (double)0x1.45f306p-3F; /* two factors of single precision: exact */
    float cut = (float)exact;
    if (fabs((double)cut) > fabs(exact))
        cut = sg_float(sg_bits32(cut) - 1);
    cut = sg_flush(cut);
    return (double)cut - rint((double)cut);
}

static double sine(double x) {
    double part = turns(x);
    return fabs(part) == 0.5 || part == 0.0 ? copysign(0.0, x) : sin(6.283185307179586 * part);
}

static double cosine(double x) {
    double part = turns(x);
    return fabs(part) == 0.25 ? 0.0 : cos(6.283185307179586 * part);
}

static double compute(unsigned op, double x) {
    switch (op) {
    case SG_OP_ex2:
        return exp2(x);
    case SG_OP_lg2:
        return log2(x);
    case SG_OP_sin:
        return sine(x);
    case SG_OP_cos:
        return cosine(x);
    case SG_OP_tanh:
        return tanh(x);
    case SG_OP_sqrt:
        return sqrt(x);
    case SG_OP_rcp:
        return 1.0 / x;
    default:
        return 1.0 / sqrt(x); /* rsqrt; of -0 it is -inf */
    }
}

static const struct sg_step *single(struct sg_warp *warp, const struct sg_step *step) {
    u32 *d = SG_SLOT(warp, step->d);
    const u32 *a = SG_SLOT(warp, step->a);
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(warp->mask >> l & 1))
            continue;
        float x = sg_float(step->flags & SG_STEP_FTZ ? sg_flush_bits(a[l]) : a[l]);
        float y = (float)compute(step->choice, x);
        d[l] = sg_canonical(step->flags & SG_STEP_FTZ ? sg_flush(y) : y);
    }
    return step + 1;
}

/*
 * div.approx and div.full: the product with the reciprocal. In .approx the reciprocal of numbers
 * above 2^126 is flushed; .full scales such operands first.
 */
static const struct sg_step *quotient(struct sg_warp *warp, const struct sg_step *step) {
    u32 *d = SG_SLOT(warp, step->d);
    const u32 *a = SG_SLOT(warp, step->a), *b = SG_SLOT(warp, step->b);
    bool ftz = step->flags & SG_STEP_FTZ;
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(warp->mask >> l & 1))
            continue;
        double x = sg_float(ftz ? sg_flush_bits(a[l]) : a[l]);
        double y = sg_float(ftz ? sg_flush_bits(b[l]) : b[l]), inverse = 1.0 / y;
        int exponent = 0;
        if (y != 0.0 && isfinite(y)) {
            double fraction = frexp(inverse, &exponent);
            inverse = ldexp((double)(float)fraction, exponent);
        }
        if (step->second && fabs(inverse) < 0x1p-126)
            inverse = copysign(0.0, inverse);
        float z = (float)(x * inverse);
        d[l] = sg_canonical(ftz ? sg_flush(z) : z);
    }
    return step + 1;
}

static const struct sg_step *twice(struct sg_warp *warp, const struct sg_step *step) {
    u64 *d = SG_SLOT(warp, step->d);
    const u64 *a = SG_SLOT(warp, step->a);
    /* rcp and rsqrt .approx.ftz.f64: read and write the upper 32 bits only. */
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(warp->mask >> l & 1))
            continue;
        uint64_t bits = a[l] & ~(uint64_t)UINT32_MAX;
        if ((bits >> 52 & 0x7ff) == 0)
            bits &= (uint64_t)1 << 63;
        double y = compute(step->choice, sg_double(bits));
        bits = y != y ? UINT64_C(0x7fffffff00000000) : sg_bits64(y) & ~(uint64_t)UINT32_MAX;
        d[l] = (bits >> 52 & 0x7ff) == 0 ? bits & (uint64_t)1 << 63 : bits;
    }
    return step + 1;
}

#if defined __FMA__ || defined __ARM_FEATURE_FMA
#define fused(a, b, c) __builtin_fma(a, b, c)
#else
#define fused(a, b, c) fma(a, b, c) /* the library's: exact */
#endif

/*
 * rsqrt.approx.f64 is emulated by the hardware's compiler: from the upper 32 bits it takes a step
 * that makes the error cubic, with subnormal numbers scaled. All recorded results are equal.
 */
static double root(double x) {
    double scale = 1.0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        scale = 0x1p27;
    }
    double upper = sg_double(sg_bits64(x) & ~(uint64_t)UINT32_MAX);
    double y = sg_double(sg_bits64(1.0 / sqrt(upper)) & ~(uint64_t)UINT32_MAX);
    double error = fused(x, -(y * y), 1.0);
    return fused(fused(error, 0.375, 0.5), error * y, y) * scale;
}

static const struct sg_step *roots(struct sg_warp *warp, const struct sg_step *step) {
    static const uint64_t sign = (uint64_t)1 << 63, infinity = (uint64_t)0x7ff << 52;
    static const uint64_t quiet = (uint64_t)1 << 51;
    u64 *d = SG_SLOT(warp, step->d);
    const u64 *a = SG_SLOT(warp, step->a);
    for (unsigned l = 0; l < SG_LANES; l++) {
        uint64_t bits = a[l], size = bits & ~sign;
        if (!(warp->mask >> l & 1))
            continue;
        if (size > infinity)
            d[l] = bits | quiet;
        else if (size == 0)
            d[l] = bits | infinity;
        else if (bits & sign)
            d[l] = sign | infinity | quiet;
        else
            d[l] = size == infinity ? 0 : sg_bits64(root(sg_double(bits)));
    }
    return step + 1;
}

static uint16_t half(unsigned op, uint16_t bits, bool brain) {
    double x = brain ? (double)sg_bfloat_to_float(bits) : (double)SG_LEVEL(sg_half_to_float)(bits);
    double y = compute(op, x);
    return brain ? SG_LEVEL(sg_bfloat_from_double)(y, SG_ROUND_RN)
                 : SG_LEVEL(sg_half_from_double)(y, SG_ROUND_RN);
}

static const struct sg_step *halves(struct sg_warp *warp, const struct sg_step *step) {
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(warp->mask >> l & 1))
            continue;
        if (step->type == SG_TYPE_F16 || step->type == SG_TYPE_BF16) {
            const u16 *a = SG_SLOT(warp, step->a);
            u16 *d = SG_SLOT(warp, step->d);
            d[l] = half(step->choice, a[l], step->second);
        } else {
            const u32 *a = SG_SLOT(warp, step->a);
            u32 *d = SG_SLOT(warp, step->d);
            d[l] = (uint32_t)half(step->choice, (uint16_t)(a[l] >> 16), step->second) << 16 |
                   half(step->choice, (uint16_t)a[l], step->second);
        }
    }
    return step + 1;
}

bool SG_LEVEL(sg_theme_approximate)(const struct sg_instruction *in, struct sg_form *form) {
    static const unsigned char ops[] = {SG_OP_ex2,  SG_OP_lg2,  SG_OP_sin, SG_OP_cos,
                                        SG_OP_tanh, SG_OP_sqrt, SG_OP_rcp, SG_OP_rsqrt};
    if (in->op == SG_OP_div && in->type == SG_TYPE_F32 && (in->modifiers & RECIPROCAL)) {
        form->run = quotient;
        form->second = (in->modifiers & SG_MOD(APPROX)) != 0;
        form->flags = in->modifiers & SG_MOD(FTZ) ? SG_STEP_FTZ : 0;
        form->dest = form->source[0] = form->source[1] = SG_W_32;
        return true;
    }
    bool known = false;
    for (size_t i = 0; i < sizeof ops; i++)
        known |= ops[i] == in->op;
    if (!known)
        return false;
    bool brain = in->type == SG_TYPE_BF16 || in->type == SG_TYPE_BF16X2;
    bool f16 = in->type == SG_TYPE_F16 || in->type == SG_TYPE_F16X2;
    unsigned bits = sg_type_bits(in->type);
    if ((brain || f16) && (in->op == SG_OP_ex2 || in->op == SG_OP_tanh))
        form->run = halves;
    else if (in->type == SG_TYPE_F32)
        form->run = single;
    else if (in->type == SG_TYPE_F64 && (in->op == SG_OP_rcp || in->op == SG_OP_rsqrt))
        form->run = in->modifiers & SG_MOD(FTZ) ? twice : roots;
    else
        return false;
    form->choice = (unsigned char)in->op;
    form->second = brain;
    form->type = in->type;
    form->flags = in->modifiers & SG_MOD(FTZ) ? SG_STEP_FTZ : 0;
    form->dest = form->source[0] = bits == 16 ? SG_W_16 : bits == 32 ? SG_W_32 : SG_W_64;
    return true;
}
