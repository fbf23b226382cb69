/*
 * Samples of one level, as the CUDA programming guide's appendix on texture fetching defines them:
 * address modes find texels, which are weighted by fractions of 8 bits, stored in 9 so that 1 is
 * possible. What the guide leaves open is computed in real numbers and rounded once.
 */
#include "softgpu/engine/texture_inside.h"

#include <math.h>
#include <string.h>

/* Limits a coordinate to a range far outside of every image that integers can hold; NaN becomes
 * 0. */
static double limited(double at) {
    const double most = 0x1p30;
    return at > most ? most : at < -most ? -most : at == at ? at : 0;
}

/* The effective mode: without normalised coordinates only CLAMP and BORDER exist. */
static unsigned mode_of(const struct sg_texture *sampler, unsigned axis) {
    unsigned mode = sampler->address[axis];
    bool turns = mode == SG_ADDRESS_WRAP || mode == SG_ADDRESS_MIRROR;
    return turns && !sampler->normalized ? SG_ADDRESS_CLAMP : mode;
}

/* The texel at index `at`, by the address mode; -1: the border. */
static int64_t folded(int64_t at, uint32_t size, unsigned mode) {
    int64_t n = size, turned;
    if (at >= 0 && at < n)
        return at;
    switch (mode) {
    case SG_ADDRESS_WRAP:
        turned = at % n;
        return turned < 0 ? turned + n : turned;
    case SG_ADDRESS_MIRROR:
        turned = at % (2 * n);
        turned = turned < 0 ? turned + 2 * n : turned;
        return turned < n ? turned : 2 * n - 1 - turned;
    case SG_ADDRESS_CLAMP:
        return at < 0 ? 0 : n - 1;
    default:
        return -1;
    }
}

static uint32_t size_of(const struct sg_texture_level *level, unsigned axis) {
    return axis == 0 ? level->width : axis == 1 ? level->height : level->depth;
}

/* ---- one texel ------------------------------------------------------------------------------- */

static void plain_texel(struct sg_sampling *s, const struct sg_texture_level *level,
                        const struct sg_spot *spot, const int64_t *at, uint32_t value[4]) {
    uint32_t place[3] = {0, 0, spot->layer};
    for (unsigned i = 0; i < spot->axes; i++) {
        uint32_t size = size_of(level, i);
        bool outside = at[i] < 0 || at[i] >= (int64_t)size;
        if (outside && s->image->memory) {
            memset(value, 0, 4 * sizeof *value);
            return;
        }
        int64_t found = folded(at[i], size, mode_of(s->sampler, i));
        if (found < 0) {
            sg_texel_border(s->image, s->sampler, value);
            return;
        }
        place[i] = (uint32_t)found;
    }
    sg_texel_read(s, level, place[0], place[1], place[2], value);
}

/* False: at a corner of a cube only three faces meet, and there is no fourth texel. */
static bool seamless_texel(struct sg_sampling *s, const struct sg_texture_level *level,
                           const struct sg_spot *spot, const int64_t *at, uint32_t value[4]) {
    int64_t n = level->width;
    bool beside = at[0] < 0 || at[0] >= n, above = at[1] < 0 || at[1] >= n;
    uint32_t x = (uint32_t)at[0], y = (uint32_t)at[1];
    unsigned face = spot->layer % 6;
    if (beside && above)
        return false;
    if (beside || above)
        sg_cube_neighbour(face, at[0], at[1], level->width, &face, &x, &y);
    sg_texel_read(s, level, x, y, spot->layer / 6 * 6 + face, value);
    return true;
}

/* ---- texels together ------------------------------------------------------------------------- */

struct footprint {
    int64_t first[3];
    unsigned weight[3]; /* of the second texel along each axis, in 256ths */
    uint32_t value[8][4];
    double share[8];
};

static void linear_axes(const struct sg_spot *spot, struct footprint *to) {
    for (unsigned i = 0; i < spot->axes; i++) {
        int64_t fixed = (int64_t)floor((limited(spot->at[i]) - 0.5) * 256 + 0.5);
        to->first[i] = (fixed >> 8) + spot->offset[i];
        to->weight[i] = (unsigned)(fixed & 255);
    }
    for (unsigned k = 0; k < 1u << spot->axes; k++) {
        to->share[k] = 1;
        for (unsigned i = 0; i < spot->axes; i++)
            to->share[k] *= k >> i & 1 ? to->weight[i] : 256 - to->weight[i];
    }
}

/* The missing texel of a corner is the mean of the other three. */
static void fill_corner(struct footprint *in, unsigned missing) {
    for (unsigned c = 0; c < 4; c++) {
        double sum = 0;
        for (unsigned k = 0; k < 4; k++)
            sum += k == missing ? 0 : (double)sg_float_of(in->value[k][c]);
        in->value[missing][c] = sg_bits_of((float)(sum / 3));
    }
}

static void read_all(struct sg_sampling *s, const struct sg_texture_level *level,
                     const struct sg_spot *spot, bool unweighted, struct footprint *to) {
    bool seamless = s->image->cube && s->sampler->seamless;
    unsigned corner = 8;
    for (unsigned k = 0; k < 1u << spot->axes && !s->failed; k++) {
        int64_t at[3] = {0};
        for (unsigned i = 0; i < spot->axes; i++)
            at[i] = to->first[i] + (k >> i & 1);
        if (seamless) {
            if (!seamless_texel(s, level, spot, at, to->value[k]))
                corner = k;
        } else if (unweighted || to->share[k] > 0) {
            plain_texel(s, level, spot, at, to->value[k]);
        }
    }
    if (corner < 8)
        fill_corner(to, corner);
}

static void weighted(const struct footprint *of, unsigned axes, uint32_t value[4]) {
    double whole = axes == 1 ? 256.0 : axes == 2 ? 65536.0 : 16777216.0;
    for (unsigned c = 0; c < 4; c++) {
        double sum = 0;
        for (unsigned k = 0; k < 1u << axes; k++)
            sum += of->share[k] > 0 ? of->share[k] * (double)sg_float_of(of->value[k][c]) : 0;
        value[c] = sg_bits_of((float)(sum / whole));
    }
    /* A sample of a single texel has exactly its bits. */
    for (unsigned k = 0; k < 1u << axes; k++)
        if (of->share[k] == whole)
            memcpy(value, of->value[k], sizeof of->value[k]);
}

void sg_sample_level(struct sg_sampling *sampling, const struct sg_texture_level *level,
                     const struct sg_spot *spot, uint32_t value[4]) {
    const struct sg_texture *image = sampling->image, *sampler = sampling->sampler;
    if (sampler->linear && !image->memory && sg_texel_is_real(image, sampler)) {
        struct footprint all = {0};
        linear_axes(spot, &all);
        read_all(sampling, level, spot, false, &all);
        weighted(&all, spot->axes, value);
        return;
    }
    int64_t at[3] = {0};
    for (unsigned i = 0; i < spot->axes; i++)
        at[i] = (int64_t)floor(limited(spot->at[i])) + spot->offset[i];
    /* A direction can be exactly at the end of a face. */
    for (unsigned i = 0; i < 2 && image->cube; i++)
        at[i] = at[i] < 0 ? 0 : at[i] >= (int64_t)level->width ? (int64_t)level->width - 1 : at[i];
    plain_texel(sampling, level, spot, at, value);
}

void sg_sample_gather(struct sg_sampling *sampling, const struct sg_texture_level *level,
                      const struct sg_spot *spot, unsigned component, uint32_t value[4]) {
    static const unsigned char order[4] = {2, 3, 1, 0};
    struct footprint all = {0};
    linear_axes(spot, &all);
    read_all(sampling, level, spot, true, &all);
    for (unsigned i = 0; i < 4; i++)
        value[i] = all.value[order[i]][component];
}

void sg_sample_texel(struct sg_sampling *sampling, const struct sg_texture_level *level,
                     const int64_t at[3], unsigned axes, uint32_t layer, uint32_t value[4]) {
    uint32_t place[3] = {0, 0, layer};
    memset(value, 0, 4 * sizeof *value);
    for (unsigned i = 0; i < axes; i++) {
        if (at[i] < 0 || at[i] >= (int64_t)size_of(level, i))
            return;
        place[i] = (uint32_t)at[i];
    }
    sg_texel_read(sampling, level, place[0], place[1], place[2], value);
}
