/*
 * Tags of values in gangs (inside.h): which operations keep a value affine in the lane, and what a
 * function of lanes does with its operands' tags.
 */
#ifndef SG_ENGINE_TAGS_H
#define SG_ENGINE_TAGS_H

#include "softgpu/engine/inside.h"

#include <string.h>

#define SG_TAG_SCALAR (SG_TAG_KNOWN | SG_TAG_NO_DATA)

/* Uniform: the same in all lanes. */
static inline bool sg_even(const struct sg_tag *tag) {
    return (tag->s | tag->t) == 0;
}

static inline void sg_tag_even(struct sg_tag *tag, const void *value, size_t size) {
    *tag = (struct sg_tag){.kind = SG_TAG_SCALAR};
    memcpy(&tag->base, value, size); /* little-endian */
}

static inline void sg_tag_set(struct sg_tag *tag, uint64_t base, uint64_t s, uint64_t t) {
    *tag = (struct sg_tag){base, (int64_t)s, (int64_t)t, SG_TAG_SCALAR};
}

/* ---- rules: false where the result is not known to be affine --------------------------------- */

static inline bool sg_none1(const struct sg_warp *gang, struct sg_tag *d, const struct sg_tag *a) {
    (void)gang, (void)d, (void)a;
    return false;
}
static inline bool sg_none2(const struct sg_warp *gang, struct sg_tag *d, const struct sg_tag *a,
                            const struct sg_tag *b) {
    (void)gang, (void)d, (void)a, (void)b;
    return false;
}
static inline bool sg_none3(const struct sg_warp *gang, struct sg_tag *d, const struct sg_tag *a,
                            const struct sg_tag *b, const struct sg_tag *c) {
    (void)gang, (void)d, (void)a, (void)b, (void)c;
    return false;
}

/* Moves and narrowing: only fewer bits count. */
static inline bool sg_same(const struct sg_warp *gang, struct sg_tag *d, const struct sg_tag *a) {
    (void)gang;
    sg_tag_set(d, a->base, (uint64_t)a->s, (uint64_t)a->t);
    return true;
}
static inline bool sg_opposite(const struct sg_warp *gang, struct sg_tag *d,
                               const struct sg_tag *a) {
    (void)gang;
    sg_tag_set(d, 0 - a->base, 0 - (uint64_t)a->s, 0 - (uint64_t)a->t);
    return true;
}
static inline bool sg_sum(const struct sg_warp *gang, struct sg_tag *d, const struct sg_tag *a,
                          const struct sg_tag *b) {
    (void)gang;
    sg_tag_set(d, a->base + b->base, (uint64_t)a->s + (uint64_t)b->s,
               (uint64_t)a->t + (uint64_t)b->t);
    return true;
}
static inline bool sg_difference(const struct sg_warp *gang, struct sg_tag *d,
                                 const struct sg_tag *a, const struct sg_tag *b) {
    (void)gang;
    sg_tag_set(d, a->base - b->base, (uint64_t)a->s - (uint64_t)b->s,
               (uint64_t)a->t - (uint64_t)b->t);
    return true;
}
static inline bool sg_product(const struct sg_warp *gang, struct sg_tag *d, const struct sg_tag *a,
                              const struct sg_tag *b) {
    (void)gang;
    const struct sg_tag *even = sg_even(b) ? b : a, *other = even == b ? a : b;
    if (!sg_even(even))
        return false;
    uint64_t by = even->base;
    sg_tag_set(d, other->base * by, (uint64_t)other->s * by, (uint64_t)other->t * by);
    return true;
}
static inline bool sg_product_sum(const struct sg_warp *gang, struct sg_tag *d,
                                  const struct sg_tag *a, const struct sg_tag *b,
                                  const struct sg_tag *c) {
    struct sg_tag product;
    return sg_product(gang, &product, a, b) && sg_sum(gang, d, &product, c);
}
static inline bool sg_shift(struct sg_tag *d, const struct sg_tag *a, const struct sg_tag *b,
                            unsigned bits) {
    uint32_t by = (uint32_t)b->base;
    if (!sg_even(b) || by >= bits)
        return false;
    sg_tag_set(d, a->base << by, (uint64_t)a->s << by, (uint64_t)a->t << by);
    return true;
}
static inline bool sg_shift_16(const struct sg_warp *gang, struct sg_tag *d, const struct sg_tag *a,
                               const struct sg_tag *b) {
    (void)gang;
    return sg_shift(d, a, b, 16);
}
static inline bool sg_shift_32(const struct sg_warp *gang, struct sg_tag *d, const struct sg_tag *a,
                               const struct sg_tag *b) {
    (void)gang;
    return sg_shift(d, a, b, 32);
}
static inline bool sg_shift_64(const struct sg_warp *gang, struct sg_tag *d, const struct sg_tag *a,
                               const struct sg_tag *b) {
    (void)gang;
    return sg_shift(d, a, b, 64);
}

/* The minimum and maximum as 32-bit values; false if some lane's value wraps around. */
static inline bool sg_extent(const struct sg_warp *gang, const struct sg_tag *a, bool has_sign,
                             int64_t *low, int64_t *high) {
    int64_t base = has_sign ? (int32_t)(uint32_t)a->base : (int64_t)(uint32_t)a->base;
    int64_t x = (int64_t)(int32_t)a->s * gang->x_most, y = (int64_t)(int32_t)a->t * gang->y_most;
    *low = base + (x < 0 ? x : 0) + (y < 0 ? y : 0);
    *high = base + (x > 0 ? x : 0) + (y > 0 ? y : 0);
    return has_sign ? *low >= INT32_MIN && *high <= INT32_MAX : *low >= 0 && *high <= UINT32_MAX;
}

static inline bool sg_widened(const struct sg_warp *gang, struct sg_tag *d, const struct sg_tag *a,
                              bool has_sign) {
    int64_t low, high;
    if (!sg_extent(gang, a, has_sign, &low, &high))
        return false;
    uint64_t base = has_sign ? (uint64_t)(int32_t)(uint32_t)a->base : (uint32_t)a->base;
    sg_tag_set(d, base, (uint64_t)(int32_t)a->s, (uint64_t)(int32_t)a->t);
    return true;
}
static inline bool sg_widened_s(const struct sg_warp *gang, struct sg_tag *d,
                                const struct sg_tag *a) {
    return sg_widened(gang, d, a, true);
}
static inline bool sg_widened_u(const struct sg_warp *gang, struct sg_tag *d,
                                const struct sg_tag *a) {
    return sg_widened(gang, d, a, false);
}
static inline bool sg_wide_s(const struct sg_warp *gang, struct sg_tag *d, const struct sg_tag *a,
                             const struct sg_tag *b) {
    struct sg_tag x, y;
    return sg_widened(gang, &x, a, true) && sg_widened(gang, &y, b, true) &&
           sg_product(gang, d, &x, &y);
}
static inline bool sg_wide_u(const struct sg_warp *gang, struct sg_tag *d, const struct sg_tag *a,
                             const struct sg_tag *b) {
    struct sg_tag x, y;
    return sg_widened(gang, &x, a, false) && sg_widened(gang, &y, b, false) &&
           sg_product(gang, d, &x, &y);
}
static inline bool sg_wide_sum_s(const struct sg_warp *gang, struct sg_tag *d,
                                 const struct sg_tag *a, const struct sg_tag *b,
                                 const struct sg_tag *c) {
    struct sg_tag product;
    return sg_wide_s(gang, &product, a, b) && sg_sum(gang, d, &product, c);
}
static inline bool sg_wide_sum_u(const struct sg_warp *gang, struct sg_tag *d,
                                 const struct sg_tag *a, const struct sg_tag *b,
                                 const struct sg_tag *c) {
    struct sg_tag product;
    return sg_wide_u(gang, &product, a, b) && sg_sum(gang, d, &product, c);
}

#endif
