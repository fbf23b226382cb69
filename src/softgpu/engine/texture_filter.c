/*
 * The weights and sums of linear filters, as an H200 computes them. No document says how: each step
 * was found from what it answers (tests/parity, kernel-texture/sums, srgb, formats and blocks,
 * kernel-texture-steps/weights-3, sums, between, special and compressed).
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

/* All weights are whole numbers, and together 256: the whole is divided between the two planes of
 * z, each plane's share between its columns along x, and each column's between its ends along y. */
void sg_filter_weights(const unsigned fraction[3], unsigned axes, unsigned weight[8]) {
    unsigned y = axes > 1 ? fraction[1] : 0, z = axes > 2 ? fraction[2] : 0;
    const unsigned planes[2] = {256 - z, z};
    for (unsigned i = 0; i < 4; i++) {
        unsigned plane = planes[i >> 1], second_column = share_up(plane, fraction[0]);
        unsigned column = i & 1 ? second_column : plane - second_column;
        unsigned second = i & 1 ? share_up(column, y) : share_down(column, y);
        unsigned first = (i & 1) | (i & 2) << 1;
        weight[first] = column - second;
        weight[first | 2] = second;
    }
}

/* ---- sums of floats -------------------------------------------------------------------------- */

enum {
    BEHIND = 4,      /* bits kept behind those of the format where texels are aligned */
    PLANE_BITS = 33, /* of the first plane's sum, to which another is added */
};

/* What differs between floats and halves. Halves are sums and results of 11 bits. */
struct precision {
    int bits;     /* of a fraction, with the first one */
    int least;    /* the exponent of the last bit of the smallest numbers */
    bool flushed; /* subnormal numbers are 0 */
    uint32_t nan;
};
static const struct precision precisions[2] = {{24, -149, true, 0x7fffffff},
                                               {11, -24, false, 0x7fffe000}};

/* sum * 2^exponent */
struct scaled {
    int64_t sum;
    int exponent;
};

/* To `bits` bits and no bit below 2^least; halves go away from zero. */
static float rounded(struct scaled of, int bits, int least) {
    uint64_t units = of.sum < 0 ? (uint64_t)-of.sum : (uint64_t)of.sum;
    if (units == 0)
        return 0;
    int drop = 64 - __builtin_clzll(units) - bits;
    drop = of.exponent + drop < least ? least - of.exponent : drop;
    if (drop > 0) {
        units = drop > 62 ? 0 : (units + (UINT64_C(1) << (drop - 1))) >> drop;
        of.exponent += drop;
    }
    double value = ldexp((double)units, of.exponent);
    return (float)(of.sum < 0 ? -value : value);
}

/* A subnormal number is 0 of its sign. */
static uint32_t flushed(uint32_t bits) {
    return bits & 0x7f800000 ? bits : bits & 0x80000000;
}

/* Infinities and NaNs decide the sum; false where there are none. */
static bool not_finite(const struct sg_filter *f, const struct precision *of, uint32_t *sum) {
    bool found = false;
    float all = 0;
    for (unsigned k = 0; k < f->count; k++)
        if (f->weight[k] && !isfinite(sg_float_of(f->value[k]))) {
            all += sg_float_of(f->value[k]);
            found = true;
        }
    *sum = isnan(all) ? of->nan : sg_bits_of(all);
    return found;
}

/* The exponent of the last bit of a number; the smallest numbers share theirs. */
static int last_bit(uint32_t bits, const struct precision *of) {
    int exponent = (int)(bits >> 23 & 255) - 126 - of->bits;
    return exponent > of->least ? exponent : of->least;
}

/* The fraction's bits down to that one. A subnormal float is 0. */
static int64_t fraction_of(uint32_t bits, const struct precision *of) {
    int exponent = (int)(bits >> 23 & 255);
    return exponent ? ((bits & 0x7fffff) | 0x800000) >> (last_bit(bits, of) - (exponent - 150)) : 0;
}

/* The four texels of a plane are moved to the greatest exponent among them; what falls out behind
 * the four bits more is lost. */
static struct scaled sum_of_plane(const struct sg_filter *f, unsigned first,
                                  const struct precision *of) {
    struct scaled plane = {0, of->least};
    unsigned end = first + 4 < f->count ? first + 4 : f->count;
    for (unsigned k = first; k < end; k++)
        if (f->weight[k] && last_bit(f->value[k], of) > plane.exponent)
            plane.exponent = last_bit(f->value[k], of);
    for (unsigned k = first; k < end; k++) {
        uint32_t bits = f->value[k];
        int moved = plane.exponent - last_bit(bits, of);
        if (!f->weight[k] || moved > 31)
            continue;
        int64_t units = (fraction_of(bits, of) << BEHIND >> moved) * (int64_t)f->weight[k];
        plane.sum += bits >> 31 ? -units : units;
    }
    plane.exponent -= BEHIND + 8;
    return plane;
}

/* The first sum is rounded down to 33 bits. The sum whose units are greater then gets four bits
 * more; what the other has behind them is lost. */
static struct scaled sum_of_planes(struct scaled a, struct scaled b) {
    if (a.sum == 0 || b.sum == 0)
        return a.sum ? a : b;
    for (; llabs(a.sum) >> PLANE_BITS; a.exponent++)
        a.sum >>= 1;
    struct scaled great = a.exponent > b.exponent ? a : b;
    struct scaled small = a.exponent > b.exponent ? b : a;
    int distance = great.exponent - small.exponent;
    int up = distance < BEHIND ? distance : BEHIND, down = distance - up;
    great.sum = great.sum * (1 << up) + (small.sum >> (down < 63 ? down : 63));
    great.exponent -= up;
    return great;
}

static uint32_t sum_of_floats(const struct sg_filter *f, const struct precision *of) {
    uint32_t special;
    if (not_finite(f, of, &special))
        return special;
    for (unsigned k = 0; k < f->count; k++)
        if (f->weight[k] == 256) /* alone: -0 stays what it is */
            return of->flushed ? flushed(f->value[k]) : f->value[k];
    struct scaled sum = sum_of_planes(sum_of_plane(f, 0, of), sum_of_plane(f, 4, of));
    uint32_t bits = sg_bits_of(rounded(sum, of->bits, of->least));
    return of->flushed ? flushed(bits) : bits;
}

/* ---- sums of whole numbers ------------------------------------------------------------------- */

/* In 256ths. */
static int64_t sum_of_units(const struct sg_filter *f, double units) {
    int64_t sum = 0;
    for (unsigned k = 0; k < f->count; k++)
        if (f->weight[k])
            sum += (int64_t)f->weight[k] * (int64_t)rint((double)sg_float_of(f->value[k]) * units);
    return sum;
}

static uint32_t part(int64_t units, double of) {
    double value = (double)units / of;
    return sg_bits_of((float)(value < -1 ? -1 : value));
}

/* Parts of one, as whole numbers of 16 bits, or of 15 and a sign: halves are rounded up. */
static uint32_t sum_of_parts(const struct sg_filter *f, double most) {
    return part((sum_of_units(f, most) + 128) >> 8, most);
}

/* Signed bytes, -128 among them. The sum, of 8 bits and 8 behind them, becomes 15 bits and a sign:
 * its twelve upper bits and their own four upper ones are added behind it, as if repeated. */
static uint32_t sum_of_signed_bytes(const struct sg_filter *f) {
    int64_t sum = sum_of_units(f, 127);
    return part(sum + (((sum >> 4) + (sum >> 12) + 4) >> 3), 32767);
}

/* Integers: of up to 16 bits halves are rounded up, of 32 bits all is rounded down. */
static uint32_t sum_of_integers(const struct sg_filter *f) {
    int64_t sum = f->kind == SG_FILTER_SHORT_INTEGERS ? 128 : 0;
    for (unsigned k = 0; k < f->count; k++) {
        bool has_sign = f->kind != SG_FILTER_UNSIGNED_WORDS;
        int64_t value = has_sign ? (int64_t)(int32_t)f->value[k] : (int64_t)f->value[k];
        sum += (int64_t)f->weight[k] * value;
    }
    return (uint32_t)(sum >> 8);
}

/* Linear values of sRGB: eight bits with the exponent of their group of codes, moved to the
 * greatest exponent; of the sum eleven bits are left. */
static uint32_t sum_of_srgb(const struct sg_filter *f) {
    int greatest = 0;
    struct scaled sum = {0};
    for (unsigned k = 0; k < f->count; k++)
        if (f->weight[k] && sg_srgb_exponent(sg_float_of(f->value[k])) > greatest)
            greatest = sg_srgb_exponent(sg_float_of(f->value[k]));
    for (unsigned k = 0; k < f->count; k++)
        if (f->weight[k])
            sum.sum += (int64_t)f->weight[k] *
                       (int64_t)ldexp((double)sg_float_of(f->value[k]), 14 - greatest);
    sum.exponent = greatest - 14 - 8;
    return sg_bits_of(rounded(sum, 11, -24));
}

uint32_t sg_filter_sum(const struct sg_filter *filter) {
    switch (filter->kind) {
    case SG_FILTER_FLOATS:
        return sum_of_floats(filter, &precisions[0]);
    case SG_FILTER_HALVES:
        return sum_of_floats(filter, &precisions[1]);
    case SG_FILTER_PARTS:
        return sum_of_parts(filter, 65535);
    case SG_FILTER_SIGNED_PARTS:
        return sum_of_parts(filter, 32767);
    case SG_FILTER_SIGNED_BYTES:
        return sum_of_signed_bytes(filter);
    case SG_FILTER_SRGB:
        return sum_of_srgb(filter);
    default:
        return sum_of_integers(filter);
    }
}
