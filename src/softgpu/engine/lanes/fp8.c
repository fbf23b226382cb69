/*
 * cvt to and from 8-bit floats, e4m3 (no infinities, one NaN, up to 448) and e5m2 (like f16 with
 * two fraction bits), and .satfinite to f16, bf16 and tf32: numbers that are too large become the
 * largest finite one of their sign.
 */
#include "softgpu/engine/lanes/lanes.h"

#include <math.h>

/* Rounds to `digits` fraction bits and a smallest exponent, to nearest even. Returns the bits
 * without a sign; they exceed the largest number's if the value is too large. */
static unsigned magnitude(double value, int digits, int least) {
    int exponent;
    if (!(value > 0))
        return 0;
    frexp(value, &exponent); /* value is 0.5 to 1 times 2 to the exponent */
    exponent = exponent - 1 < least ? least : exponent - 1;
    /* Exact: scaling by a power of two, and few bits before the point. */
    double scaled = nearbyint(ldexp(value, digits - exponent));
    return (unsigned)scaled + ((unsigned)(exponent - least) << digits);
}

static uint8_t eight(double value, bool five, bool relu) {
    unsigned sign = signbit(value) ? 0x80 : 0, most = five ? 0x7b : 0x7e;
    if (value != value)
        return 0x7f;
    if (relu && sign)
        return 0;
    double size = fabs(value);
    unsigned bits = size > 1e6 ? most : five ? magnitude(size, 2, -14) : magnitude(size, 3, -6);
    return (uint8_t)(sign | (bits > most ? most : bits));
}

static uint16_t half_of(uint8_t bits, bool five, bool relu) {
    unsigned sign = bits & 0x80u, rest = bits & 0x7fu;
    uint16_t half;
    if (five ? rest > 0x7c : rest == 0x7f)
        return 0x7fff;
    if (relu && sign)
        return 0;
    if (five)
        half = (uint16_t)(rest << 8);
    else if (rest >> 3)
        half = (uint16_t)((rest << 7) + (8u << 10));
    else
        half = SG_LEVEL(sg_half_from_double)((double)rest * 0x1p-9, SG_ROUND_RN);
    return (uint16_t)(half | sign << 8);
}

/* choice: 1 for e5m2. The upper and the lower one come from a and b, or from the halves of a. */
static const struct sg_step *eights_of_floats(struct sg_warp *warp, const struct sg_step *step) {
    const u32 *a = SG_SLOT(warp, step->a), *b = SG_SLOT(warp, step->b);
    u16 *d = SG_SLOT(warp, step->d);
    bool relu = (step->flags & SG_STEP_RELU) != 0;
    for (unsigned l = 0; l < SG_LANES; l++)
        if (warp->mask >> l & 1)
            d[l] = (uint16_t)(eight(sg_float(a[l]), step->choice, relu) << 8 |
                              eight(sg_float(b[l]), step->choice, relu));
    return step + 1;
}

static const struct sg_step *eights_of_halves(struct sg_warp *warp, const struct sg_step *step) {
    const u32 *a = SG_SLOT(warp, step->a);
    u16 *d = SG_SLOT(warp, step->d);
    bool relu = (step->flags & SG_STEP_RELU) != 0;
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(warp->mask >> l & 1))
            continue;
        double high = SG_LEVEL(sg_half_to_float)((uint16_t)(a[l] >> 16));
        double low = SG_LEVEL(sg_half_to_float)((uint16_t)a[l]);
        d[l] = (uint16_t)(eight(high, step->choice, relu) << 8 | eight(low, step->choice, relu));
    }
    return step + 1;
}

static const struct sg_step *halves_of_eights(struct sg_warp *warp, const struct sg_step *step) {
    const u16 *a = SG_SLOT(warp, step->a);
    u32 *d = SG_SLOT(warp, step->d);
    bool relu = (step->flags & SG_STEP_RELU) != 0;
    for (unsigned l = 0; l < SG_LANES; l++)
        if (warp->mask >> l & 1)
            d[l] = (uint32_t)half_of((uint8_t)(a[l] >> 8), step->choice, relu) << 16 |
                   half_of((uint8_t)a[l], step->choice, relu);
    return step + 1;
}

/* ---- .satfinite ------------------------------------------------------------------------------ */

static uint16_t at_most(float value, bool brain, unsigned rounding, bool relu) {
    if (relu && signbit(value) && value == value)
        return 0;
    uint16_t bits = brain ? SG_LEVEL(sg_bfloat_from_double)(value, rounding)
                          : SG_LEVEL(sg_half_from_double)(value, rounding);
    uint16_t infinity = brain ? 0x7f80 : 0x7c00;
    return (bits & 0x7fff) == infinity ? bits - 1 : bits;
}

static const struct sg_step *finite_one(struct sg_warp *warp, const struct sg_step *step) {
    const u32 *a = SG_SLOT(warp, step->a);
    u16 *d = SG_SLOT(warp, step->d);
    bool relu = (step->flags & SG_STEP_RELU) != 0;
    for (unsigned l = 0; l < SG_LANES; l++)
        if (warp->mask >> l & 1)
            d[l] = at_most(sg_float(a[l]), step->choice, step->rounding, relu);
    return step + 1;
}

static const struct sg_step *finite_two(struct sg_warp *warp, const struct sg_step *step) {
    const u32 *a = SG_SLOT(warp, step->a), *b = SG_SLOT(warp, step->b);
    u32 *d = SG_SLOT(warp, step->d);
    bool relu = (step->flags & SG_STEP_RELU) != 0;
    for (unsigned l = 0; l < SG_LANES; l++)
        if (warp->mask >> l & 1)
            d[l] = (uint32_t)at_most(sg_float(a[l]), step->choice, step->rounding, relu) << 16 |
                   at_most(sg_float(b[l]), step->choice, step->rounding, relu);
    return step + 1;
}

/* Ten fraction bits, ties away from zero. What is too large goes from infinity down to the largest
 * number; so do, as recorded, NaNs. */
static uint32_t tensor_float(uint32_t bits) {
    uint32_t size = bits & 0x7fffffffu, sign = bits & 0x80000000u;
    size = (size + 0x1000u) & ~0x1fffu;
    return sign | (size >= 0x7f800000u ? size - 0x2000u : size);
}

static const struct sg_step *finite_tensor(struct sg_warp *warp, const struct sg_step *step) {
    const u32 *a = SG_SLOT(warp, step->a);
    u32 *d = SG_SLOT(warp, step->d);
    for (unsigned l = 0; l < SG_LANES; l++)
        if (warp->mask >> l & 1)
            d[l] = tensor_float(a[l]);
    return step + 1;
}

static bool is_eight(unsigned type) {
    return type == SG_TYPE_E4M3X2 || type == SG_TYPE_E5M2X2;
}

/* The function, or NULL; also the number of sources, and widths. */
static sg_run *which(const struct sg_instruction *in, unsigned *sources, unsigned *dest,
                     unsigned *source) {
    unsigned to = in->type, from = in->type2;
    bool pair = to == SG_TYPE_F16X2 || to == SG_TYPE_BF16X2;
    *sources = 1;
    *dest = *source = SG_W_32;
    if (is_eight(to)) {
        *dest = SG_W_16;
        *sources = from == SG_TYPE_F32 ? 2 : 1;
        return from == SG_TYPE_F32 ? eights_of_floats : eights_of_halves;
    }
    if (is_eight(from)) {
        *source = SG_W_16;
        return to == SG_TYPE_F16X2 ? halves_of_eights : NULL;
    }
    if (!(in->modifiers & SG_MOD(SATFINITE)) || from != SG_TYPE_F32)
        return NULL;
    if (to == SG_TYPE_TF32)
        return in->rounding == SG_ROUND_RNA && !(in->modifiers & SG_MOD(RELU)) ? finite_tensor
                                                                               : NULL;
    if (in->rounding != SG_ROUND_RN && in->rounding != SG_ROUND_RZ)
        return NULL;
    *sources = pair ? 2 : 1;
    *dest = pair ? SG_W_32 : SG_W_16;
    return pair ? finite_two : to == SG_TYPE_F16 || to == SG_TYPE_BF16 ? finite_one : NULL;
}

bool SG_LEVEL(sg_theme_eight)(const struct sg_instruction *in, struct sg_form *form) {
    unsigned sources, dest, source;
    if (in->op != SG_OP_cvt || in->operation != SG_DO_NONE)
        return false;
    form->run = which(in, &sources, &dest, &source);
    form->choice = in->type == SG_TYPE_E5M2X2 || in->type2 == SG_TYPE_E5M2X2 ||
                   in->type == SG_TYPE_BF16 || in->type == SG_TYPE_BF16X2;
    form->rounding = in->rounding;
    form->flags = in->modifiers & SG_MOD(RELU) ? SG_STEP_RELU : 0;
    form->dest = (unsigned char)dest;
    for (unsigned i = 0; i < sources; i++)
        form->source[i] = (unsigned char)source;
    return form->run != NULL;
}
