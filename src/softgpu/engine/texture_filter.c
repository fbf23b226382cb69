/*
 * The weights and sums of linear filters, as an H200 computes them. No document says how: each step
 * was found from what it answers (tests/parity, kernel-texture/sums, srgb, formats and blocks).
 */
#include "softgpu/engine/texture_inside.h"

#include <math.h>
#include <stdlib.h>

/* ---- weights --------------------------------------------------------------------------------- */

/* A share of `of`, in 256ths: half a unit is rounded up, or down for what lies beside it. */
static unsigned share_up(unsigned of, unsigned fraction) {
    return (of * fraction + 128) >> 8;
}

static unsigned share_down(unsigned of, unsigned fraction) {
    return (of * fraction + 127) >> 8;
}

/* All weights are whole numbers, and together 256: the whole is divided between the columns along y
 * (by x and z), and each column's share between its ends. */
void sg_filter_weights(const unsigned fraction[3], unsigned axes, unsigned weight[8]) {
    unsigned x = fraction[0], y = axes > 1 ? fraction[1] : 0, z = axes > 2 ? fraction[2] : 0;
    unsigned both = share_up(x, z);
    const unsigned columns[4] = {256 - x - z + both, x - both, z - both, both};
    for (unsigned i = 0; i < 4; i++) {
        unsigned first = (i & 1) | (i & 2) << 1;
        unsigned second = i & 1 ? share_up(columns[i], y) : share_down(columns[i], y);
        weight[first] = columns[i] - second;
        weight[first | 2] = second;
    }
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* sum * 2^exponent, to `bits` bits and no bit below 2^least; halves go away from zero. */
static float rounded(int64_t sum, int exponent, int bits, int least) {
    uint64_t units = sum < 0 ? (uint64_t)-sum : (uint64_t)sum;
    if (units == 0)
        return 0;
    int drop = 64 - __builtin_clzll(units) - bits;
    drop = exponent + drop < least ? least - exponent : drop;
    if (drop > 0) {
        units = drop > 62 ? 0 : (units + (UINT64_C(1) << (drop - 1))) >> drop;
        exponent += drop;
    }
    double value = ldexp((double)units, exponent);
    return (float)(sum < 0 ? -value : value);
}

static int exponent_of(float value) {
    int exponent = (int)(sg_bits_of(value) >> 23 & 255);
    return exponent ? exponent : 1;
}

/* Infinities and NaNs decide the sum; false where there are none. */
static bool not_finite(const struct sg_filter *f, float *sum) {
    bool found = false;
    *sum = 0;
    for (unsigned k = 0; k < f->count; k++)
        if (f->weight[k] && !isfinite(f->value[k])) {
            *sum += f->value[k];
            found = true;
        }
    if (found && isnan(*sum))
        *sum = sg_float_of(0x7fffffff);
    return found;
}

/* Fractions of 24 bits, with five more behind them, are moved to the greatest exponent; what falls
 * out there is lost. */
static float sum_of_floats(const struct sg_filter *f) {
    float special;
    int greatest = 1;
    int64_t sum = 0;
    if (not_finite(f, &special))
        return special;
    for (unsigned k = 0; k < f->count; k++)
        if (f->weight[k] && exponent_of(f->value[k]) > greatest)
            greatest = exponent_of(f->value[k]);
    for (unsigned k = 0; k < f->count; k++) {
        uint32_t bits = sg_bits_of(f->value[k]);
        int64_t units = (bits & 0x7fffff) | (bits & 0x7f800000 ? 0x800000 : 0);
        int moved = greatest - exponent_of(f->value[k]);
        if (!f->weight[k] || moved > 31)
            continue;
        units = (units << 5 >> moved) * (int64_t)f->weight[k];
        sum += bits >> 31 ? -units : units;
    }
    return rounded(sum, greatest - 150 - 5 - 8, 24, -149);
}

/* Parts of one, as whole numbers of 16 bits, or of 15 and a sign. */
static float sum_of_parts(const struct sg_filter *f, double most) {
    int64_t sum = 0;
    for (unsigned k = 0; k < f->count; k++)
        if (f->weight[k])
            sum += (int64_t)f->weight[k] * (int64_t)rint((double)f->value[k] * most);
    int64_t whole = (llabs(sum) + 128) >> 8;
    return (float)((double)(sum < 0 ? -whole : whole) / most);
}

/* Linear values of sRGB: eight bits with the exponent of their group of codes, moved to the
 * greatest exponent; of the sum eleven bits are left. */
static float sum_of_srgb(const struct sg_filter *f) {
    int greatest = 0;
    int64_t sum = 0;
    for (unsigned k = 0; k < f->count; k++)
        if (f->weight[k] && sg_srgb_exponent(f->value[k]) > greatest)
            greatest = sg_srgb_exponent(f->value[k]);
    for (unsigned k = 0; k < f->count; k++)
        if (f->weight[k])
            sum += (int64_t)f->weight[k] * (int64_t)ldexp((double)f->value[k], 14 - greatest);
    return rounded(sum, greatest - 14 - 8, 11, -24);
}

float sg_filter_sum(const struct sg_filter *filter) {
    for (unsigned k = 0; k < filter->count; k++)
        if (filter->weight[k] == 256 && !isnan(filter->value[k]))
            return filter->value[k]; /* one texel's alone has its bits */
    switch (filter->kind) {
    case SG_FILTER_PARTS:
        return sum_of_parts(filter, 65535);
    case SG_FILTER_SIGNED_PARTS:
        return sum_of_parts(filter, 32767);
    case SG_FILTER_SRGB:
        return sum_of_srgb(filter);
    default:
        return sum_of_floats(filter);
    }
}
