/* What the files texture_*.c share: operands of the steps, and access to texels. */
#ifndef SG_ENGINE_TEXTURE_INSIDE_H
#define SG_ENGINE_TEXTURE_INSIDE_H

#include "softgpu/engine/inside.h"

/* Indices in a step's list of places; SG_NOWHERE is there if the instruction lacks the operand. */
enum sg_texture_place {
    SG_AT_VALUE = 0, /* up to four: results, or values to store */
    SG_AT_RESIDENT = 4,
    SG_AT_HANDLE,
    SG_AT_SAMPLER,
    SG_AT_COORDINATE, /* up to four, as in the text */
    SG_AT_LEVEL = SG_AT_COORDINATE + 4,
    SG_AT_DX, /* three */
    SG_AT_DY = SG_AT_DX + 3,
    SG_AT_OFFSET = SG_AT_DY + 3, /* three */
    SG_AT_COUNT = SG_AT_OFFSET + 3
};

/* The geometries that run: axes, and whether a layer comes before the coordinates. */
struct sg_texture_shape {
    unsigned char axes; /* of the resource; a cube has 2 */
    unsigned char coordinates;
    bool layered, cube;
};
struct sg_texture_shape sg_texture_shape(unsigned geometry);

/* One lane's access to an image, whose settings may come from another handle. */
struct sg_sampling {
    struct sg_warp *warp;
    const struct sg_step *step;
    unsigned lane;
    const struct sg_texture *image, *sampler;
    bool resident;          /* all texels so far are mapped */
    bool failed;            /* the warp has faulted */
    bool filtering;         /* texels are read for a linear filter, whose formats are wider */
    struct sg_texture *own; /* room for the settings of a .samplerref */
};

static inline uint32_t sg_lane_32(const struct sg_warp *warp, uint32_t place, unsigned lane) {
    return ((const uint32_t *)sg_place(warp, place))[lane];
}

static inline double sg_real_at(const struct sg_sampling *sampling, uint32_t place) {
    union {
        uint32_t bits;
        float value;
    } both = {sg_lane_32(sampling->warp, place, sampling->lane)};
    return (double)both.value;
}

/* ---- texture_texel.c ------------------------------------------------------------------------- */

/* The host bytes of a level at (x bytes, row y, slice z), which lie in it; NULL: nothing is mapped,
 * a watcher refuses it, or the warp has faulted. */
unsigned char *sg_texel_bytes(struct sg_sampling *sampling, const struct sg_texture_level *level,
                              uint64_t x, uint64_t y, uint64_t z, unsigned size);
/* Reads each channel of a texel inside the level as a register receives it, or the filter: a signed
 * byte is then -128/127 at least, and ten bits are repeated to 16. Channels that the format lacks
 * are 0. */
void sg_texel_read(struct sg_sampling *sampling, const struct sg_texture_level *level, uint32_t x,
                   uint32_t y, uint32_t z, uint32_t value[4]);
/* The same for the border colour. */
void sg_texel_border(const struct sg_sampling *sampling, uint32_t value[4]);
/* Whether sampling returns floats, which can be filtered. */
bool sg_texel_is_real(const struct sg_texture *image, const struct sg_texture *sampler);
/* Whether the format has negative numbers, other than floats. */
bool sg_texel_has_sign(const struct sg_texture *image);
/* Whether a channel is decoded from sRGB. */
bool sg_texel_is_srgb(const struct sg_texture *image, const struct sg_texture *sampler,
                      unsigned channel);
uint16_t sg_half_of(float value);
float sg_half_value(uint16_t half);
static inline float sg_float_of(uint32_t bits) {
    union {
        uint32_t bits;
        float value;
    } both = {bits};
    return both.value;
}
static inline uint32_t sg_bits_of(float value) {
    union {
        float value;
        uint32_t bits;
    } both = {value};
    return both.bits;
}

/* texture_block.c: a texel of a compressed block of 4 x 4, as floats. */
void sg_texel_of_block(unsigned form, const unsigned char *block, unsigned x, unsigned y,
                       float value[4]);

/* texture_srgb.c: a code of 8 bits as a linear value, which is a whole number of 2^-14 times 2 to
 * the power of its exponent. */
float sg_srgb_value(unsigned code);
/* The code nearest to a linear value. */
unsigned sg_srgb_code(float value);
int sg_srgb_exponent(float value);

/* ---- texture_filter.c ------------------------------------------------------------------------ */

enum sg_filter_kind {
    SG_FILTER_FLOATS,
    SG_FILTER_HALVES,
    SG_FILTER_PARTS,        /* of 1 */
    SG_FILTER_SIGNED_PARTS, /* of 1 and -1: 16 bits */
    SG_FILTER_SIGNED_BYTES, /* of 1 and -1: 8 bits, from -128/127 on */
    SG_FILTER_SRGB,
    SG_FILTER_SHORT_INTEGERS, /* of up to 16 bits, extended to 32 */
    SG_FILTER_SIGNED_WORDS,
    SG_FILTER_UNSIGNED_WORDS
};

/* A channel of the texels that a sample is made of. */
struct sg_filter {
    enum sg_filter_kind kind;
    unsigned count;
    unsigned weight[8]; /* of 256, together 256 */
    uint32_t value[8];  /* where the weight is not 0: the bits of a float, or an integer */
};

/* Weights of the texels k: at the second place along x, y and z for the bits 0, 1 and 2 of k.
 * Fractions are 0 to 255; there are 2^axes texels, and the others weigh nothing. */
void sg_filter_weights(const unsigned fraction[3], unsigned axes, unsigned weight[8]);
uint32_t sg_filter_sum(const struct sg_filter *filter);

/* ---- texture_sample.c ------------------------------------------------------------------------ */

/* The position of a sample, in texels of a level, before the filter moves it by half a texel. */
struct sg_spot {
    double at[3];
    int32_t offset[3];
    unsigned axes;
    uint32_t layer; /* cubes: the face, counted over all cubes */
};

/* A sample of one level, filtered by the sampler's settings. */
void sg_sample_level(struct sg_sampling *sampling, const struct sg_texture_level *level,
                     const struct sg_spot *spot, uint32_t value[4]);
/* The four texels that a linear filter would use, in tld4's order. */
void sg_sample_gather(struct sg_sampling *sampling, const struct sg_texture_level *level,
                      const struct sg_spot *spot, unsigned component, uint32_t value[4]);
/* A texel by its number; 0 outside of the level. */
void sg_sample_texel(struct sg_sampling *sampling, const struct sg_texture_level *level,
                     const int64_t at[3], unsigned axes, uint32_t layer, uint32_t value[4]);

/* ---- texture_gradient.c ---------------------------------------------------------------------- */

/* The level, in 256ths and before the bias, that the gradients of an instruction choose. */
int64_t sg_gradient_level(const struct sg_sampling *sampling, const uint32_t *list);

/* ---- texture_cube.c -------------------------------------------------------------------------- */

/* The face that a direction points to, and the position there, with coordinates from 0 to 1. */
unsigned sg_cube_face(const double direction[3], double place[2]);
/* How that position changes with a gradient of the direction. */
void sg_cube_gradient(const double direction[3], const double gradient[3], double moved[2]);
/* The texel of the neighbouring face that replaces one beyond an edge of a face. */
void sg_cube_neighbour(unsigned face, int64_t x, int64_t y, uint32_t size, unsigned *to,
                       uint32_t *to_x, uint32_t *to_y);

/* ---- texture_run.c --------------------------------------------------------------------------- */

/* The texture or surface of a handle; NULL: there is none. */
const struct sg_texture *sg_texture_look_up(struct sg_warp *warp, uint64_t handle);
/* The texture of a handle; NULL: the warp has faulted, with a report. */
const struct sg_texture *sg_texture_find(struct sg_warp *warp, const struct sg_step *step,
                                         unsigned lane, uint64_t handle, bool surface);
/* What a reference is that nothing is bound to: reads give zero, stores are dropped, and its
 * properties are zero, as an H200 answers. */
static inline bool sg_texture_is_nothing(const struct sg_texture *image) {
    return image->level_count == 0;
}
/* A fault whose report is `why`. */
void sg_texture_fault(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                      uint64_t handle, const char *why);
/* False, with a fault: the resource's shape is not the instruction's. */
bool sg_texture_fits(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                     uint64_t handle, const struct sg_texture *image);

#endif
