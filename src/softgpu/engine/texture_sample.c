/*
 * Samples of one level, as the CUDA programming guide's appendix on texture fetching has it: texels
 * are found by the address modes, and weighted by fractions of 8 bits that are stored in 9, so that
 * 1 is among them. What the guide leaves open is done as an H200 does it.
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
            sg_texel_border(s, value);
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
    unsigned count;
    int64_t first[3];
    unsigned corner; /* the texel that a corner of a cube lacks; else 8 */
    unsigned weight[8];
    uint32_t value[8][4];
};

/* Where both texels of an axis are the same because of CLAMP, only the first is left: its weight is
 * not divided, which matters to the rounding of the others. */
static void clamp_axis(int64_t *first, unsigned *fraction, uint32_t size) {
    int64_t last = (int64_t)size - 1;
    if (*first >= 0 && *first < last)
        return;
    *first = *first < 0 ? 0 : last;
    *fraction = 0;
}

static void linear_axes(const struct sg_sampling *s, const struct sg_texture_level *level,
                        const struct sg_spot *spot, bool unweighted, struct footprint *to) {
    unsigned fraction[3] = {0};
    to->count = 1u << spot->axes;
    for (unsigned i = 0; i < spot->axes; i++) {
        int64_t fixed = (int64_t)floor((limited(spot->at[i]) - 0.5) * 256 + 0.5);
        to->first[i] = (fixed >> 8) + spot->offset[i];
        fraction[i] = (unsigned)(fixed & 255);
        bool seamless = s->image->cube && s->sampler->seamless;
        if (!unweighted && !seamless && mode_of(s->sampler, i) == SG_ADDRESS_CLAMP)
            clamp_axis(&to->first[i], &fraction[i], size_of(level, i));
    }
    sg_filter_weights(fraction, spot->axes, to->weight);
}

static enum sg_filter_kind kind_of(const struct sg_sampling *s, unsigned channel) {
    const struct sg_texture *image = s->image;
    bool has_sign = sg_texel_has_sign(image);
    if (image->form == SG_TEXEL_FLOAT)
        return image->bits == 16 ? SG_FILTER_HALVES : SG_FILTER_FLOATS;
    if (!sg_texel_is_real(image, s->sampler))
        return image->bits < 32 ? SG_FILTER_SHORT_INTEGERS
               : has_sign       ? SG_FILTER_SIGNED_WORDS
                                : SG_FILTER_UNSIGNED_WORDS;
    if (sg_texel_is_srgb(image, s->sampler, channel))
        return SG_FILTER_SRGB;
    if (has_sign && image->bits == 8 && image->form < SG_TEXEL_BC1)
        return SG_FILTER_SIGNED_BYTES;
    return has_sign ? SG_FILTER_SIGNED_PARTS : SG_FILTER_PARTS;
}

/* The texel that a corner lacks leaves its weight to the others: a third, to nearest, to each of
 * those beside it, and what is left to the one across. */
static void share_corner(struct footprint *in, unsigned missing) {
    unsigned third = (in->weight[missing] + 1) / 3;
    in->weight[missing ^ 1] += third;
    in->weight[missing ^ 2] += third;
    in->weight[missing ^ 3] += in->weight[missing] - 2 * third;
    in->weight[missing] = 0;
}

static void read_all(struct sg_sampling *s, const struct sg_texture_level *level,
                     const struct sg_spot *spot, bool unweighted, struct footprint *to) {
    bool seamless = s->image->cube && s->sampler->seamless;
    unsigned corner = 8;
    for (unsigned k = 0; k < to->count && !s->failed; k++) {
        int64_t at[3] = {0};
        for (unsigned i = 0; i < spot->axes; i++)
            at[i] = to->first[i] + (k >> i & 1);
        if (seamless) {
            if (!seamless_texel(s, level, spot, at, to->value[k]))
                corner = k;
        } else if (unweighted || to->weight[k] > 0) {
            plain_texel(s, level, spot, at, to->value[k]);
        }
    }
    to->corner = corner;
    if (corner < 8 && !unweighted)
        share_corner(to, corner);
}

static void weighted(const struct sg_sampling *s, const struct footprint *of, uint32_t value[4]) {
    for (unsigned c = 0; c < 4; c++) {
        struct sg_filter filter = {.kind = kind_of(s, c), .count = of->count};
        memcpy(filter.weight, of->weight, sizeof filter.weight);
        for (unsigned k = 0; k < of->count; k++)
            filter.value[k] = of->weight[k] ? of->value[k][c] : 0;
        value[c] = sg_filter_sum(&filter);
    }
}

/* A row is a plane of one row to the filter, which samples it at 0: half a texel before its middle.
 * That shows where the border lies beside it. */
static struct sg_spot as_plane(const struct sg_sampling *s, const struct sg_spot *spot) {
    struct sg_spot plane = *spot;
    if (plane.axes == 1 && mode_of(s->sampler, 1) == SG_ADDRESS_BORDER) {
        plane.axes = 2;
        plane.at[1] = 0;
        plane.offset[1] = 0;
    }
    return plane;
}

void sg_sample_level(struct sg_sampling *sampling, const struct sg_texture_level *level,
                     const struct sg_spot *spot, uint32_t value[4]) {
    sampling->filtering = sampling->sampler->linear && !sampling->image->memory;
    if (sampling->filtering) {
        struct footprint all = {0};
        struct sg_spot plane = as_plane(sampling, spot);
        linear_axes(sampling, level, &plane, false, &all);
        read_all(sampling, level, &plane, false, &all);
        weighted(sampling, &all, value);
        return;
    }
    int64_t at[3] = {0};
    for (unsigned i = 0; i < spot->axes; i++)
        at[i] = (int64_t)floor(limited(spot->at[i])) + spot->offset[i];
    plain_texel(sampling, level, spot, at, value);
}

void sg_sample_gather(struct sg_sampling *sampling, const struct sg_texture_level *level,
                      const struct sg_spot *spot, unsigned component, uint32_t value[4]) {
    static const unsigned char order[4] = {2, 3, 1, 0};
    struct footprint all = {0};
    linear_axes(sampling, level, spot, true, &all);
    read_all(sampling, level, spot, true, &all);
    if (all.corner < 8) {
        memset(all.weight, 0, sizeof all.weight);
        all.weight[all.corner] = 256;
        share_corner(&all, all.corner);
        weighted(sampling, &all, all.value[all.corner]);
    }
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
