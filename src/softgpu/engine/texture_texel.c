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

static float signed_part(uint32_t value, unsigned bits) {
    double part = (double)extended(value, bits) / (double)((UINT64_C(1) << (bits - 1)) - 1);
    return (float)(part < -1 ? -1 : part);
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

static uint32_t channel_value(const struct sg_texture *image, bool real, uint32_t bits) {
    switch (image->form) {
    case SG_TEXEL_FLOAT:
        return image->bits == 16 ? sg_bits_of(sg_half_value((uint16_t)bits)) : bits;
    case SG_TEXEL_UINT:
        return real ? sg_bits_of(unsigned_part(bits, image->bits)) : bits;
    case SG_TEXEL_SINT:
        return real ? sg_bits_of(signed_part(bits, image->bits))
                    : (uint32_t)extended(bits, image->bits);
    case SG_TEXEL_SNORM:
        return sg_bits_of(signed_part(bits, image->bits));
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

static void of_1010102(const unsigned char *bytes, uint32_t value[4]) {
    uint32_t word = raw(bytes, 32, 0);
    for (unsigned c = 0; c < 3; c++)
        value[c] = sg_bits_of(unsigned_part(word >> 10 * c & 0x3ff, 10));
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
        of_1010102(bytes, value);
    else
        for (unsigned c = 0; c < image->channels; c++)
            value[c] = channel_value(image, real, raw(bytes, image->bits, c));
    missing(image, value);
    for (unsigned c = 0; c < 3; c++)
        if (sg_texel_is_srgb(image, sampling->sampler, c))
            value[c] =
                sg_bits_of(sg_srgb_value((unsigned)lrint(255 * (double)sg_float_of(value[c]))));
}

/* A part of 1 or -1 in a format's bits: what does not fit is cut off. */
static float cut_off(const struct sg_texture *image, float part) {
    bool has_sign = image->form == SG_TEXEL_SINT || image->form == SG_TEXEL_SNORM;
    double most = (double)((UINT64_C(1) << (image->bits - has_sign)) - 1), value = (double)part;
    double least = has_sign ? -1 : 0;
    value = value > 1 ? 1 : value >= least ? value : value < least ? least : 0;
    return (float)(trunc(value * most) / most);
}

void sg_texel_border(const struct sg_texture *image, const struct sg_texture *sampler,
                     uint32_t value[4]) {
    bool parts = sg_texel_is_real(image, sampler) && image->form <= SG_TEXEL_SNORM;
    for (unsigned c = 0; c < 4; c++)
        value[c] = sg_bits_of(parts ? cut_off(image, sampler->border[c]) : sampler->border[c]);
    missing(image, value);
}
