/* Expands a tag to the lanes of each warp of the gang. */
#include "softgpu/engine/lanes/lanes.h"

/* A warp's lanes start at x, y of the gang's rows; rows shorter than a warp start with a warp. */
#define FILL(BITS)                                                                                 \
    static inline void fill_##BITS(const struct sg_warp *gang, unsigned g,                         \
                                   const struct sg_tag *tag, u##BITS *d) {                         \
        uint##BITS##_t s = (uint##BITS##_t)tag->s, t = (uint##BITS##_t)tag->t;                     \
        unsigned first = g * SG_LANES, row = first >> gang->across_log;                            \
        uint##BITS##_t base = (uint##BITS##_t)(tag->base + (uint64_t)tag->t * row +                \
                                               (uint64_t)tag->s * (first & (gang->across - 1)));   \
        if (sg_even(tag)) {                                                                        \
            SG_LOOP {                                                                              \
                d[l] = base;                                                                       \
            }                                                                                      \
        } else if (gang->across >= SG_LANES) {                                                     \
            SG_LOOP {                                                                              \
                d[l] = (uint##BITS##_t)(base + (uint##BITS##_t)l * s);                             \
            }                                                                                      \
        } else {                                                                                   \
            uint##BITS##_t last = (uint##BITS##_t)(gang->across - 1);                              \
            unsigned log = gang->across_log;                                                       \
            SG_LOOP {                                                                              \
                d[l] = (uint##BITS##_t)(base + ((uint##BITS##_t)l & last) * s +                    \
                                        ((uint##BITS##_t)l >> log) * t);                           \
            }                                                                                      \
        }                                                                                          \
    }
FILL(32)
FILL(64)

static inline void fill_16(const struct sg_warp *gang, unsigned g, const struct sg_tag *tag,
                           u16 *d) {
    uint32_t whole[SG_LANES] __attribute__((aligned(64)));
    fill_32(gang, g, tag, whole);
    SG_LOOP {
        d[l] = (uint16_t)whole[l];
    }
}

void SG_LEVEL(sg_tag_fill)(struct sg_warp *gang, uint32_t place, unsigned bytes) {
    struct sg_tag *tag = sg_tag(gang, place);
    uint32_t offset = place & SG_OFFSET_MASK;
    bool special = place >> 30 == SG_BASE_SPECIALS;
    tag->kind &= ~SG_TAG_NO_DATA;
    if (place >> 30 == SG_BASE_NOWHERE)
        return;
    for (unsigned g = 0; g < gang->gang_size; g++) {
        /* Not by the base, which may belong to a call's frame by now. */
        unsigned char *from =
            special ? gang[g].specials : gang[g].registers + gang[g].root.registers;
        void *d = __builtin_assume_aligned(from + offset, 64);
        if (bytes == 2)
            fill_16(gang, g, tag, d);
        else if (bytes == 4)
            fill_32(gang, g, tag, d);
        else
            fill_64(gang, g, tag, d);
    }
}
