/* f16 and bf16, one or two in a register: computed in double, rounded once. */
#include "softgpu/engine/lanes/lanes.h"

#include <math.h>

float SG_LEVEL(sg_half_to_float)(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31;
    uint32_t fraction = half & 0x3ff;
    if (exponent == 31)
        return sg_float(sign | 0x7f800000u | fraction << 13);
    if (exponent != 0)
        return sg_float(sign | (exponent + 112) << 23 | fraction << 13);
    float value = (float)fraction * 0x1p-24F; /* exact */
    return sign ? -value : value;
}

/*
 * Rounds to `digits` fraction bits and `bits` exponent bits. The remainder is compared with half a
 * unit in the last place; overflow gives infinity or the largest number, by the direction.
 */
static uint16_t from_double(double value, unsigned rounding, int digits, int bits) {
    uint64_t all = sg_bits64(value);
    uint16_t sign = (uint16_t)(all >> 63 << 15);
    uint16_t infinity = (uint16_t)(((1u << bits) - 1) << digits);
    if (value != value)
        return 0x7fff;
    if (isinf(value))
        return (uint16_t)(sign | infinity);
    if (value == 0.0)
        return sign;
    int least = 2 - (1 << (bits - 1)); /* exponent of the smallest normal number */
    int raw = (int)(all >> 52 & 0x7ff);
    uint64_t fraction = all & ((UINT64_C(1) << 52) - 1);
    int exponent = raw ? raw - 1023 : -1022;
    fraction |= raw ? UINT64_C(1) << 52 : 0;
    int cut = 52 - digits + (exponent < least ? least - exponent : 0);
    cut = cut > 62 ? 62 : cut;
    uint64_t kept = fraction >> cut, rest = fraction & ((UINT64_C(1) << cut) - 1);
    uint64_t half = UINT64_C(1) << (cut - 1);
    bool up = rounding == SG_ROUND_RZ    ? false
              : rounding == SG_ROUND_RM  ? sign && rest
              : rounding == SG_ROUND_RP  ? !sign && rest
              : rounding == SG_ROUND_RNA ? rest >= half
                                         : rest > half || (rest == half && (kept & 1));
    int base = exponent < least ? 0 : exponent - least;
    /* The hidden bit adds one to the exponent, as does a carry. */
    uint64_t result = ((uint64_t)base << digits) + kept + up;
    if (result >= infinity) {
        bool inward = rounding == SG_ROUND_RZ || (rounding == SG_ROUND_RM && !sign) ||
                      (rounding == SG_ROUND_RP && sign);
        result = inward ? infinity - 1u : infinity;
    }
    return (uint16_t)(sign | result);
}

uint16_t SG_LEVEL(sg_half_from_double)(double value, unsigned rounding) {
    return from_double(value, rounding, 10, 5);
}

uint16_t SG_LEVEL(sg_bfloat_from_double)(double value, unsigned rounding) {
    return from_double(value, rounding, 7, 8);
}

double SG_LEVEL(sg_fma_odd)(double a, double b, double c) {
    double product = a * b, sum = product + c;
    double part = sum - product, rest = (product - (sum - part)) + (c - part);
    uint64_t bits = sg_bits64(sum);
    if ((rest < 0 || rest > 0) && !(bits & 1))
        bits = (rest > 0) == (sum > 0) ? bits + 1 : bits - 1;
    return sg_double(bits);
}

static double widened(uint16_t bits, bool brain) {
    return brain ? (double)sg_bfloat_to_float(bits) : (double)SG_LEVEL(sg_half_to_float)(bits);
}

static bool is_nan(uint16_t bits, bool brain) {
    return (bits & 0x7fff) > (brain ? 0x7f80 : 0x7c00);
}

static uint16_t flushed(uint16_t bits, bool brain) {
    return (bits & (brain ? 0x7f80 : 0x7c00)) == 0 ? bits & 0x8000 : bits;
}

static uint16_t extreme(uint16_t a, uint16_t b, uint32_t flags, bool most, bool brain) {
    uint16_t sign = flags & SG_STEP_XORSIGN ? (uint16_t)((a ^ b) & 0x8000) : 0;
    uint16_t x = flags & SG_STEP_XORSIGN ? a & 0x7fff : a;
    uint16_t y = flags & SG_STEP_XORSIGN ? b & 0x7fff : b;
    bool nan_a = is_nan(a, brain), nan_b = is_nan(b, brain);
    if ((nan_a && nan_b) || (flags & SG_STEP_NAN && (nan_a || nan_b)))
        return 0x7fff;
    int left = x & 0x8000 ? -(x & 0x7fff) - 1 : x, right = y & 0x8000 ? -(y & 0x7fff) - 1 : y;
    uint16_t best = (left > right) == most ? x : y;
    return (uint16_t)((nan_a ? y : nan_b ? x : best) | sign);
}

/* Flags of fma: .oob, and a sum of zeros of both signs that is -0. */
#define STEP_OOB       SG_STEP_NAN
#define STEP_ZERO_DOWN SG_STEP_XORSIGN

/* The NaN, of either sign, that tensor-map copies write for what is out of bounds, and that .oob
 * takes for 0, in f16 and in bf16. Other NaNs are as without .oob, as recorded. */
static bool is_out_of_bounds(uint16_t bits) {
    return (bits & 0x7fff) == 0x7ff7;
}

/* One element, by the step's operation (an opcode). */
static uint16_t compute(unsigned op, uint16_t a, uint16_t b, uint16_t c, uint32_t flags,
                        bool brain) {
    if (flags & SG_STEP_FTZ) {
        a = flushed(a, brain);
        b = flushed(b, brain);
        c = flushed(c, brain);
    }
    if (op == SG_OP_abs || op == SG_OP_neg)
        return is_nan(a, brain) ? 0x7fff : op == SG_OP_abs ? a & 0x7fff : a ^ 0x8000;
    if (op == SG_OP_min || op == SG_OP_max)
        return extreme(a, b, flags, op == SG_OP_max, brain);
    double x = widened(a, brain), y = widened(b, brain), value;
    x = flags & SG_STEP_MINUS_PRODUCT ? -x : x;
    c = flags & SG_STEP_MINUS_ADDEND ? c ^ 0x8000 : c;
    if (op == SG_OP_fma && flags & STEP_OOB && (is_out_of_bounds(a) || is_out_of_bounds(b)))
        return 0;
    if (op == SG_OP_fma)
        value = SG_LEVEL(sg_fma_odd)(x, y, widened(c, brain));
    else if (op == SG_OP_mul)
        value = x * y;
    else /* exact, or rounded to odd */
        value = SG_LEVEL(sg_fma_odd)(x, 1.0, op == SG_OP_sub ? -y : y);
    if (flags & SG_STEP_SAT)
        value = value > 0 ? (value < 1 ? value : 1) : 0;
    if (flags & SG_STEP_RELU && !(value > 0) && value == value)
        value = 0;
    if (op == SG_OP_fma && flags & STEP_ZERO_DOWN && value == 0.0 &&
        (!signbit(x) != !signbit(y)) != (c >> 15))
        value = -0.0;
    uint16_t bits = brain ? SG_LEVEL(sg_bfloat_from_double)(value, SG_ROUND_RN)
                          : SG_LEVEL(sg_half_from_double)(value, SG_ROUND_RN);
    /* Flushes also what rounds up to the smallest normal number only for lack of bits below it. */
    bool tiny = !brain && value < 0x1p-14 - 0x1p-26 && value > -(0x1p-14 - 0x1p-26);
    return flags & SG_STEP_FTZ && tiny ? bits & 0x8000 : bits;
}

static const struct sg_step *one(struct sg_warp *warp, const struct sg_step *step) {
    u16 *d = SG_SLOT(warp, step->d);
    const u16 *a = SG_SLOT(warp, step->a), *b = SG_SLOT(warp, step->b);
    const u16 *c = SG_SLOT(warp, step->c);
    for (unsigned l = 0; l < SG_LANES; l++)
        if (warp->mask >> l & 1)
            d[l] = compute(step->choice, a[l], b[l], c[l], step->flags, step->second);
    return step + 1;
}

static const struct sg_step *two(struct sg_warp *warp, const struct sg_step *step) {
    u32 *d = SG_SLOT(warp, step->d);
    const u32 *a = SG_SLOT(warp, step->a), *b = SG_SLOT(warp, step->b);
    const u32 *c = SG_SLOT(warp, step->c);
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(warp->mask >> l & 1))
            continue;
        uint16_t low = compute(step->choice, (uint16_t)a[l], (uint16_t)b[l], (uint16_t)c[l],
                               step->flags, step->second);
        uint16_t high = compute(step->choice, (uint16_t)(a[l] >> 16), (uint16_t)(b[l] >> 16),
                                (uint16_t)(c[l] >> 16), step->flags, step->second);
        d[l] = (uint32_t)high << 16 | low;
    }
    return step + 1;
}

/*
 * fma.rz, .rm and .rp of bf16, which PTX does not define: as recorded, ptxas makes of one an fma.rn
 * of f16 without .relu, where .rm still decides about the sign of 0; of two an fma.rn.
 */
static void undefined_rounding(const struct sg_instruction *in, struct sg_form *form) {
    if (in->type != SG_TYPE_BF16)
        return;
    form->second = false;
    form->flags = in->rounding == SG_ROUND_RM ? STEP_ZERO_DOWN : 0;
}

bool SG_LEVEL(sg_theme_half)(const struct sg_instruction *in, struct sg_form *form) {
    bool single = in->type == SG_TYPE_F16 || in->type == SG_TYPE_BF16;
    bool pair = in->type == SG_TYPE_F16X2 || in->type == SG_TYPE_BF16X2;
    unsigned sources = in->op == SG_OP_abs || in->op == SG_OP_neg   ? 1
                       : in->op == SG_OP_fma                        ? 3
                       : in->op == SG_OP_add || in->op == SG_OP_sub ? 2
                       : in->op == SG_OP_mul || in->op == SG_OP_min ? 2
                       : in->op == SG_OP_max                        ? 2
                                                                    : 0;
    bool other = in->rounding != SG_ROUND_NONE && in->rounding != SG_ROUND_RN;
    bool brain = in->type == SG_TYPE_BF16 || in->type == SG_TYPE_BF16X2;
    if ((!single && !pair) || sources == 0 || (other && !(in->op == SG_OP_fma && brain)) ||
        in->operand_count != sources + 1)
        return false;
    form->run = single ? one : two;
    form->choice = (unsigned char)in->op;
    form->second = brain;
    form->flags = (uint16_t)(sg_fma_signs(in) * SG_STEP_MINUS_PRODUCT |
                             (in->modifiers & SG_MOD(FTZ) ? SG_STEP_FTZ : 0) |
                             (in->modifiers & SG_MOD(SAT) ? SG_STEP_SAT : 0) |
                             (in->modifiers & SG_MOD(NAN) ? SG_STEP_NAN : 0) |
                             (in->modifiers & SG_MOD(OOB) ? STEP_OOB : 0) |
                             (in->modifiers & SG_MOD(RELU) ? SG_STEP_RELU : 0) |
                             (in->modifiers & SG_MOD(XORSIGN) ? SG_STEP_XORSIGN : 0));
    if (other)
        undefined_rounding(in, form);
    form->dest = single ? SG_W_16 : SG_W_32;
    for (unsigned i = 0; i < 3; i++)
        form->source[i] = i < sources ? form->dest : SG_W_NONE;
    return true;
}
