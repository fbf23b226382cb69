/*
 * Video instructions: one 32-bit result from parts of registers (vadd, vmad, vshl, …), or two
 * halves or four bytes at once (vadd2, vavrg4, …). Lane by lane, as no program's speed depends on
 * them.
 */
#include "softgpu/engine/video.h"

__extension__ typedef __int128 wide;

/* The part's bits, extended by the type's sign. */
static int64_t part_of(uint32_t word, unsigned part, unsigned type) {
    bool has_sign = type == SG_TYPE_S32;
    if (part >= SG_PART_B0 && part <= SG_PART_B3) {
        uint32_t byte = word >> 8 * (part - SG_PART_B0) & 0xff;
        return has_sign ? (int8_t)byte : (int64_t)byte;
    }
    if (part == SG_PART_H0 || part == SG_PART_H1) {
        uint32_t half = word >> 16 * (part - SG_PART_H0) & 0xffff;
        return has_sign ? (int16_t)half : (int64_t)half;
    }
    return has_sign ? (int32_t)word : (int64_t)word;
}

static wide clamped(wide value, unsigned bits, bool has_sign) {
    wide most = ((wide)1 << (has_sign ? bits - 1 : bits)) - 1, least = has_sign ? -most - 1 : 0;
    return value > most ? most : value < least ? least : value;
}

static bool compared(int64_t a, int64_t b, unsigned compare) {
    switch (compare) {
    case SG_COMPARE_EQ:
        return a == b;
    case SG_COMPARE_NE:
        return a != b;
    case SG_COMPARE_LT:
        return a < b;
    case SG_COMPARE_LE:
        return a <= b;
    case SG_COMPARE_GT:
        return a > b;
    default:
        return a >= b;
    }
}

/* The result of an operation before it is clamped. */
static wide combined(const struct sg_step *step, int64_t a, int64_t b) {
    switch (step->choice) {
    case SG_VIDEO_ADD:
        return a + b;
    case SG_VIDEO_SUB:
        return a - b;
    case SG_VIDEO_DISTANCE:
        return a > b ? a - b : b - a;
    case SG_VIDEO_MIN:
        return a < b ? a : b;
    case SG_VIDEO_MAX:
        return a > b ? a : b;
    case SG_VIDEO_AVERAGE: /* halves round up, also for negative sums */
        return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
    case SG_VIDEO_LEFT:
    case SG_VIDEO_RIGHT:
        b = step->count ? b & 31 : b > 32 ? 32 : b; /* .wrap, .clamp */
        return step->choice == SG_VIDEO_LEFT ? (wide)a * ((wide)1 << b) : a >> b;
    default:
        return compared(a, b, step->rounding);
    }
}

/* ---- one result ------------------------------------------------------------------------------ */

static uint32_t merged(uint32_t value, unsigned part, uint32_t c) {
    if (part >= SG_PART_B0 && part <= SG_PART_B3) {
        unsigned at = 8 * (part - SG_PART_B0);
        return (value & 0xff) << at | (c & ~(UINT32_C(0xff) << at));
    }
    /* ptxas moves the low half for .h0, and takes the high one for .h1. */
    uint32_t kept = part == SG_PART_H1 ? 0xffff : 0xffff0000;
    return (value & ~kept) | (c & kept);
}

/*
 * ptxas builds video instructions from others with 64-bit intermediate results; this gives an
 * H200's results. Sums and differences saturate as 32-bit numbers, as unsigned whole results only
 * from below; a part is clamped as unsigned, so that a negative number becomes the largest. Shifts
 * have 34 bits with a sign, and are clamped to 32 whatever the part.
 */
static wide saturated(const struct sg_step *step, wide value, unsigned bits, bool has_sign) {
    if (step->choice == SG_VIDEO_LEFT)
        value = (int64_t)((uint64_t)value << 30) >> 30;
    if (step->choice == SG_VIDEO_LEFT || step->choice == SG_VIDEO_RIGHT || (bits == 32 && has_sign))
        return clamped(value, 32, has_sign);
    if (bits == 32)
        return value < 0 ? 0 : value;
    uint64_t most = (UINT64_C(1) << (has_sign ? bits - 1 : bits)) - 1;
    return (uint64_t)value > most ? most : (uint64_t)value;
}

/* A minimum or maximum compares 64 bits: for a sum, a difference or a saturated left shift, 32 bits
 * with their sign. */
static uint32_t second(const struct sg_step *step, wide value, uint32_t c, bool has_sign) {
    bool sum = step->choice == SG_VIDEO_ADD || step->choice == SG_VIDEO_SUB ||
               (step->choice == SG_VIDEO_LEFT && step->flags & SG_STEP_SAT);
    int64_t compared_one = sum ? (int32_t)value : (int64_t)value;
    bool less = has_sign ? compared_one < (int32_t)c : (uint64_t)compared_one < c;
    switch (step->second) {
    case SG_DO_ADD:
        return (uint32_t)value + c;
    case SG_DO_MIN:
        return less ? (uint32_t)value : c;
    default:
        return less ? c : (uint32_t)value;
    }
}

const struct sg_step *sg_run_video(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *a = sg_place(warp, step->a), *b = sg_place(warp, step->b);
    const uint32_t *c = sg_place(warp, step->c);
    uint32_t *d = sg_place(warp, step->d);
    unsigned to = (unsigned)step->value & 0xff, of_a = (unsigned)(step->value >> 8) & 0xff;
    unsigned of_b = (unsigned)(step->value >> 16) & 0xff, type_b = (unsigned)(step->value >> 24);
    unsigned bits = to == SG_PART_NONE ? 32 : to >= SG_PART_H0 ? 16 : 8;
    /* vset has no result type: a's type decides how its second operation compares. */
    bool has_sign = (step->choice == SG_VIDEO_COMPARE ? step->type2 : step->type) == SG_TYPE_S32;
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(warp->mask >> l & 1))
            continue;
        wide value = combined(step, part_of(a[l], of_a, step->type2), part_of(b[l], of_b, type_b));
        if (step->flags & SG_STEP_SAT)
            value = saturated(step, value, bits, has_sign);
        uint32_t result = (uint32_t)value;
        if (to != SG_PART_NONE)
            result = merged(result, to, c[l]);
        else if (step->second != SG_DO_NONE)
            result = second(step, value, c[l], has_sign);
        d[l] = result;
    }
    return step + 1;
}

/* ---- vmad ------------------------------------------------------------------------------------ */

/*
 * As ptxas builds it: whole registers and the addend are signed whatever their types, which only
 * decide how a shift fills and how the result is clamped.
 */
static int64_t factor(uint32_t word, unsigned part, unsigned type) {
    return part_of(word, part, part == SG_PART_NONE ? SG_TYPE_S32 : type);
}

/* A negated product or c is complemented and 1 is added; .po adds only the 1. */
const struct sg_step *sg_run_video_mad(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *a = sg_place(warp, step->a), *b = sg_place(warp, step->b);
    const uint32_t *c = sg_place(warp, step->c);
    uint32_t *d = sg_place(warp, step->d);
    unsigned of_a = (unsigned)(step->value >> 8) & 0xff, shift = step->rounding;
    unsigned of_b = (unsigned)(step->value >> 16) & 0xff, type_b = (unsigned)(step->value >> 24);
    bool minus = step->choice & 1, minus_c = step->choice & 2, one_more = step->choice & 4;
    bool has_sign = step->type2 == SG_TYPE_S32 || type_b == SG_TYPE_S32 || minus || minus_c;
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(warp->mask >> l & 1))
            continue;
        wide product = (wide)factor(a[l], of_a, step->type2) * (wide)factor(b[l], of_b, type_b);
        wide addend = (int32_t)c[l];
        if (minus)
            product = -product;
        else if (minus_c)
            addend = -addend;
        wide result = product + addend + one_more;
        if (shift)
            result = has_sign ? result >> shift : (wide)((uint64_t)result >> shift);
        if (step->flags & SG_STEP_SAT)
            result = clamped(result, 32, has_sign);
        d[l] = (uint32_t)result;
    }
    return step + 1;
}

/* ---- two or four at once --------------------------------------------------------------------- */

static int64_t element(const uint32_t *both, unsigned selector, unsigned bits, bool has_sign) {
    unsigned per = 32 / bits;
    uint32_t value = both[selector / per % 2] >> bits * (selector % per);
    if (bits == 8)
        return has_sign ? (int8_t)value : (int64_t)(value & 0xff);
    return has_sign ? (int16_t)value : (int64_t)(value & 0xffff);
}

const struct sg_step *sg_run_video_several(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *a = sg_place(warp, step->a), *b = sg_place(warp, step->b);
    const uint32_t *c = sg_place(warp, step->c);
    uint32_t *d = sg_place(warp, step->d);
    unsigned bits = 32u / step->count, type_b = (unsigned)(step->value >> 40);
    bool has_sign = step->type == SG_TYPE_S32, sum = step->second == SG_DO_ADD;
    uint32_t field = (UINT32_C(1) << bits) - 1;
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(warp->mask >> l & 1))
            continue;
        const uint32_t both[2] = {a[l], b[l]};
        uint32_t result = c[l];
        for (unsigned i = 0; i < step->count; i++) {
            unsigned of_a = (unsigned)(step->value >> (8 + 4 * i)) & 15;
            unsigned of_b = (unsigned)(step->value >> (24 + 4 * i)) & 15;
            if (!(step->value >> i & 1))
                continue;
            wide value = combined(step, element(both, of_a, bits, step->type2 == SG_TYPE_S32),
                                  element(both, of_b, bits, type_b == SG_TYPE_S32));
            if (step->flags & SG_STEP_SAT)
                value = clamped(value, bits, has_sign);
            if (sum)
                result += (uint32_t)value;
            else
                result = (result & ~(field << bits * i)) | ((uint32_t)value & field) << bits * i;
        }
        d[l] = result;
    }
    return step + 1;
}
