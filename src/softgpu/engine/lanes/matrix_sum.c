/*
 * How Hopper's tensor cores add products of f16, bf16 and tf32, as published measurements describe
 * it. If a recording shows otherwise, only this file needs to change.
 *
 * Products are exact and not normalised. All terms of an instruction, the old sum among them, are
 * aligned to the largest exponent; each keeps 25 fraction bits and is truncated towards zero. The
 * truncated terms are added exactly. The result is truncated to f32 towards zero, or rounded to
 * f16, to nearest even. A sum of 0 is +0. A sum that is too large is an infinity.
 */
#include "softgpu/engine/lanes/matrix_lanes.h"

/* The smallest exponent is that of f32's smallest normal number, which the old sum has at least. */
#define LEAST (-126)

/* Values have at most 28 bits; a shift by more than 31 leaves nothing. Branch-free, so that the
 * compiler vectorises it. */
static inline int32_t shifted(int32_t value, int32_t places) {
    uint32_t sign = value < 0 ? UINT32_MAX : 0;
    uint32_t magnitude = (((uint32_t)value ^ sign) - sign) >> (places > 31 ? 31 : places);
    return (int32_t)((magnitude ^ sign) - sign);
}

void SG_LEVEL(sg_matrix_sum)(const struct sg_matrix_factors *factors, const int32_t *c_value,
                             const int32_t *c_exponent, unsigned c_digits,
                             struct sg_matrix_sums *sums) {
    int32_t largest[SG_MATRIX_EIGHT];
    unsigned up = SG_MATRIX_KEPT - 2 * factors->digits;
    for (unsigned j = 0; j < SG_MATRIX_EIGHT; j++)
        largest[j] = c_exponent[j] > LEAST ? c_exponent[j] : LEAST;
    for (unsigned i = 0; i < factors->count; i++) {
        int32_t a = factors->a_exponent[factors->a[i]];
        const int32_t *b = factors->b_exponent[factors->b[i]];
        for (unsigned j = 0; j < SG_MATRIX_EIGHT; j++)
            largest[j] = a + b[j] > largest[j] ? a + b[j] : largest[j];
    }
    for (unsigned j = 0; j < SG_MATRIX_EIGHT; j++) {
        int32_t c = (int32_t)((uint32_t)c_value[j] << (SG_MATRIX_KEPT - c_digits));
        sums->value[j] = shifted(c, largest[j] - c_exponent[j]);
        sums->exponent[j] = largest[j];
    }
    /* Eight terms of 28 bits and a sign fit into 32 bits. */
    for (unsigned from = 0; from < factors->count; from += 8) {
        unsigned to = from + 8 < factors->count ? from + 8 : factors->count;
        int32_t part[SG_MATRIX_EIGHT] = {0};
        for (unsigned i = from; i < to; i++) {
            int32_t a = factors->a_value[factors->a[i]], power = factors->a_exponent[factors->a[i]];
            const int32_t *b = factors->b_value[factors->b[i]];
            const int32_t *powers = factors->b_exponent[factors->b[i]];
            for (unsigned j = 0; j < SG_MATRIX_EIGHT; j++) {
                int32_t product = (int32_t)((uint32_t)(a * b[j]) << up);
                part[j] += shifted(product, largest[j] - (power + powers[j]));
            }
        }
        for (unsigned j = 0; j < SG_MATRIX_EIGHT; j++)
            sums->value[j] += part[j];
    }
}

/* The magnitude of a sum in units of 2 to the power of `unit`, and the position of its highest
 * bit. */
static unsigned first_bit(uint64_t magnitude) {
    return 63 - (unsigned)__builtin_clzll(magnitude);
}

uint32_t SG_LEVEL(sg_matrix_single)(int64_t value, int exponent) {
    uint32_t sign = value < 0 ? UINT32_C(0x80000000) : 0;
    uint64_t magnitude = value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value;
    if (!magnitude)
        return 0;
    int unit = exponent - SG_MATRIX_KEPT, first = (int)first_bit(magnitude) + unit;
    if (first > 127)
        return sign | UINT32_C(0x7f800000);
    int last = first - 23 > -149 ? first - 23 : -149, cut = last - unit;
    uint32_t kept = 0;
    if (cut <= 63)
        kept = (uint32_t)(cut > 0 ? magnitude >> cut : magnitude << -cut);
    if (!kept) /* cut off whole, a negative sum is the positive zero: as recorded */
        return 0;
    /* The first bit of a normal number adds one to the exponent. */
    return sign | (((uint32_t)(last + 149) << 23) + kept);
}

uint16_t SG_LEVEL(sg_matrix_half)(int64_t value, int exponent) {
    uint32_t sign = value < 0 ? 0x8000 : 0;
    uint64_t magnitude = value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value;
    if (!magnitude)
        return 0;
    int unit = exponent - SG_MATRIX_KEPT, first = (int)first_bit(magnitude) + unit;
    if (first > 15)
        return (uint16_t)(sign | 0x7c00);
    int last = first - 10 > -24 ? first - 10 : -24, cut = last - unit;
    if (cut > 62)
        return 0; /* cut off whole, a negative sum is the positive zero: as recorded */
    uint64_t kept = cut > 0 ? magnitude >> cut : magnitude << -cut;
    if (cut > 0) {
        uint64_t rest = magnitude & ((UINT64_C(1) << cut) - 1), half = UINT64_C(1) << (cut - 1);
        kept += rest > half || (rest == half && (kept & 1));
    }
    if (!kept)
        return 0;
    return (uint16_t)(sign | (((uint64_t)(last + 24) << 10) + kept)); /* a carry goes on up */
}
