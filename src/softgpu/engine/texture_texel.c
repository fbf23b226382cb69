/* Texels: their place in memory, and the meaning of their bits. */
#include "softgpu/engine/texture_inside.h"
#include "softgpu/engine/watching.h"

#include <math.h>
#include <string.h>

unsigned char *sg_texel_bytes(struct sg_sampling *sampling, const struct sg_texture_level *level,
                              uint64_t x, uint64_t y, uint64_t z, unsigned size) {
    struct sg_warp *warp = sampling->warp;
    const struct sg_step *step = sampling->step;
    uint64_t offset = z * level->layer + y * level->pitch + x;
    if (level->view) {
        unsigned char *bytes = warp->grid->launch.piece(level->view, level->base + offset, size);
        sampling->resident &= bytes != NULL;
        if (!bytes && sampling->image->faults) {
            sampling->failed = true;
            sg_warp_fault(warp, step, SG_FAULT_ADDRESS, sampling->lane, offset, size);
        }
        return bytes;
    }
    uint64_t address = level->address + offset;
    if (warp->grid->code->watched &&
        sg_watch_texel(warp, step, sampling->lane, address, size, sampling->image->array))
        return NULL;
    const struct sg_range_cache *cache = &warp->caches[step->cache];
    if (size <= cache->length && address - cache->low <= cache->length - size)
        return (unsigned char *)(uintptr_t)(address + cache->distance);
    unsigned char *bytes = (sampling->image->array ? sg_reach_array : sg_reach_global)(
        warp, step, sampling->lane, address, size);
    sampling->failed |= bytes == NULL;
    return bytes;
}

/* ---- numbers --------------------------------------------------------------------------------- */

float sg_half_value(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = half >> 10 & 31;
    uint32_t fraction = half & 0x3ffu;
    if (exponent == 31)
        return sg_float_of(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) {
        float small = (float)fraction * 0x1p-24f;
        return sign ? -small : small;
    }
    return sg_float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

/* To nearest, ties to even; a NaN keeps its sign and upper bits, as in an H200's surfaces. */
uint16_t sg_half_of(float value) {
    uint32_t bits = sg_bits_of(value), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (rest >> 13 & 0x1ffu));
    if (rest >= 0x477ff000u) /* 65520 and more */
        return (uint16_t)(sign | 0x7c00u);
    if (rest < 0x38800000u) { /* subnormal: in units of 2^-24, exact in a double */
        double units = rint(fabs((double)value) * 0x1p24);
        return (uint16_t)(sign | (uint32_t)units);
    }
    uint32_t rounded = rest + 0xfffu + (rest >> 13 & 1);
    return (uint16_t)(sign | (rounded - 0x38000000u) >> 13);
}

static uint32_t raw(const unsigned char *bytes, unsigned bits, unsigned channel) {
    uint16_t half;
    uint32_t word;
    switch (bits) {
    case 8:
        return bytes[channel];
    case 16:
        memcpy(&half, bytes + 2 * channel, sizeof half);
        return half;
    default:
        memcpy(&word, bytes + 4 * channel, sizeof word);
        return word;
    }
}

static int32_t extended(uint32_t value, unsigned bits) {
    unsigned shift = 32 - bits;
    return (int32_t)(value << shift) >> shift;
}

/* A fraction of the largest value, rounded once. */
static float unsigned_part(uint32_t value, unsigned bits) {
    return (float)((double)value / (double)((UINT64_C(1) << bits) - 1));
}

/* Below -1 only for a filter. */
static float signed_part(uint32_t value, unsigned bits, bool below) {
    double part = (double)extended(value, bits) / (double)((UINT64_C(1) << (bits - 1)) - 1);
    return (float)(part < -1 && !below ? -1 : part);
}

/* ---- formats --------------------------------------------------------------------------------- */

bool sg_texel_is_real(const struct sg_texture *image, const struct sg_texture *sampler) {
    bool integer = image->form == SG_TEXEL_UINT || image->form == SG_TEXEL_SINT;
    return !integer || (image->bits < 32 && !sampler->integers);
}

bool sg_texel_is_srgb(const struct sg_texture *image, const struct sg_texture *sampler,
                      unsigned channel) {
    return sampler->srgb && channel < 3 && channel < image->channels && image->bits == 8 &&
           image->form != SG_TEXEL_SNORM && image->form != SG_TEXEL_SINT &&
           sg_texel_is_real(image, sampler);
}

bool sg_texel_has_sign(const struct sg_texture *image) {
    return image->form == SG_TEXEL_SINT || image->form == SG_TEXEL_SNORM ||
           image->form == SG_TEXEL_BC4_SIGNED || image->form == SG_TEXEL_BC5_SIGNED;
}

static uint32_t channel_value(const struct sg_sampling *s, bool real, uint32_t bits) {
    const struct sg_texture *image = s->image;
    switch (image->form) {
    case SG_TEXEL_FLOAT:
        return image->bits == 16 ? sg_bits_of(sg_half_value((uint16_t)bits)) : bits;
    case SG_TEXEL_UINT:
        return real ? sg_bits_of(unsigned_part(bits, image->bits)) : bits;
    case SG_TEXEL_SINT:
        return real ? sg_bits_of(signed_part(bits, image->bits, s->filtering))
                    : (uint32_t)extended(bits, image->bits);
    case SG_TEXEL_SNORM:
        return sg_bits_of(signed_part(bits, image->bits, s->filtering));
    default:
        return sg_bits_of(unsigned_part(bits, image->bits));
    }
}

/* Even the fourth channel is 0, not 1, as on an H200. */
static void missing(const struct sg_texture *image, uint32_t value[4]) {
    for (unsigned c = image->channels; c < 4; c++)
        value[c] = 0;
}

static void of_block(const struct sg_texture *image, const unsigned char *bytes, uint32_t x,
                     uint32_t y, uint32_t value[4]) {
    float each[4];
    sg_texel_of_block(image->form, bytes, x % 4, y % 4, each);
    for (unsigned c = 0; c < 4; c++)
        value[c] = sg_bits_of(each[c]);
}

/* Ten bits alone, or repeated to 16. */
static uint32_t ten_bits(const struct sg_sampling *s, uint32_t ten) {
    return sg_bits_of(s->filtering ? unsigned_part(ten << 6 | ten >> 4, 16)
                                   : unsigned_part(ten, 10));
}

static void of_1010102(const struct sg_sampling *s, const unsigned char *bytes, uint32_t value[4]) {
    uint32_t word = raw(bytes, 32, 0);
    for (unsigned c = 0; c < 3; c++)
        value[c] = ten_bits(s, word >> 10 * c & 0x3ff);
    value[3] = sg_bits_of(unsigned_part(word >> 30, 2));
}

void sg_texel_read(struct sg_sampling *sampling, const struct sg_texture_level *level, uint32_t x,
                   uint32_t y, uint32_t z, uint32_t value[4]) {
    const struct sg_texture *image = sampling->image;
    bool real = sg_texel_is_real(image, sampling->sampler), blocks = image->form >= SG_TEXEL_BC1;
    const unsigned char *bytes =
        blocks
            ? sg_texel_bytes(sampling, level, (uint64_t)(x / 4) * image->element, y / 4, z,
                             image->element)
            : sg_texel_bytes(sampling, level, (uint64_t)x * image->element, y, z, image->element);
    static const unsigned char nothing[16];
    bytes = bytes ? bytes : nothing;
    if (blocks)
        of_block(image, bytes, x, y, value);
    else if (image->form == SG_TEXEL_1010102)
        of_1010102(sampling, bytes, value);
    else
        for (unsigned c = 0; c < image->channels; c++)
            value[c] = channel_value(sampling, real, raw(bytes, image->bits, c));
    missing(image, value);
    for (unsigned c = 0; c < 3; c++)
        if (sg_texel_is_srgb(image, sampling->sampler, c))
            value[c] =
                sg_bits_of(sg_srgb_value((unsigned)lrint(255 * (double)sg_float_of(value[c]))));
}

/* ---- the border ------------------------------------------------------------------------------ */

/* Parts of 1 or -1 as whole numbers of some bits: to nearest, halves and a little more towards 0.
 * Of what was recorded, 0.54 goes down and 0.65 up. */
static double units_of(float value, unsigned bits, bool has_sign) {
    double most = (double)((UINT64_C(1) << (bits - has_sign)) - 1), part = (double)value;
    double least = has_sign ? -1 : 0;
    part = part > 1 ? 1 : part >= least ? part : part < least ? least : 0;
    double units = floor(fabs(part) * most + 0.4375);
    return part < 0 && units > 0 ? -units : units;
}

/* Compressed channels have 16 bits. */
static float border_part(const struct sg_texture *image, float value) {
    bool has_sign = sg_texel_has_sign(image);
    unsigned bits = image->form >= SG_TEXEL_BC1 ? 16 : image->bits;
    double most = (double)((UINT64_C(1) << (bits - has_sign)) - 1);
    return (float)(units_of(value, bits, has_sign) / most);
}

/* Cut off to a half, not above the greatest one. */
static float border_half(float value) {
    if (!isfinite(value))
        return value;
    float limited = value > 65504 ? 65504 : value < -65504 ? -65504 : value;
    uint32_t bits = sg_bits_of(limited);
    if ((bits & 0x7fffffff) >= 0x38800000)
        return sg_float_of(bits & ~UINT32_C(0x1fff));
    return (float)(trunc((double)limited * 0x1p24) / 0x1p24);
}

/* The bits of an integer format, which are the lowest of the float's. */
static uint32_t border_integer(const struct sg_texture *image, float value) {
    uint32_t bits = sg_bits_of(value), unused = 32u - image->bits;
    return image->form == SG_TEXEL_SINT ? (uint32_t)extended(bits, image->bits)
                                        : bits << unused >> unused;
}

/* 16 bits, of which a colour alone has the upper ten; the fourth channel keeps all. */
static uint32_t border_1010102(const struct sg_sampling *s, unsigned channel) {
    uint32_t units = (uint32_t)units_of(s->sampler->border[channel], 16, false);
    bool all = s->filtering || channel == 3;
    return sg_bits_of(all ? unsigned_part(units, 16) : unsigned_part(units >> 6, 10));
}

static uint32_t border_channel(const struct sg_sampling *s, unsigned channel) {
    const struct sg_texture *image = s->image;
    float value = s->sampler->border[channel];
    if (!sg_texel_is_real(image, s->sampler))
        return border_integer(image, value);
    if (image->form == SG_TEXEL_1010102)
        return border_1010102(s, channel);
    if (image->form == SG_TEXEL_FLOAT && image->bits == 16)
        return sg_bits_of(border_half(value));
    bool second = image->channels == 2 && channel == 1; /* which the border has as it is */
    if (sg_texel_is_srgb(image, s->sampler, channel) && !second)
        return sg_bits_of(sg_srgb_value(sg_srgb_code(value)));
    if (image->form == SG_TEXEL_FLOAT)
        return sg_bits_of(value);
    return sg_bits_of(border_part(image, value));
}

void sg_texel_border(const struct sg_sampling *sampling, uint32_t value[4]) {
    for (unsigned c = 0; c < 4; c++)
        value[c] = border_channel(sampling, c);
    missing(sampling->image, value);
}
