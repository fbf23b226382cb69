/* What the files texture_*.c share: operands of the steps, and how a texel is reached and read. */
#ifndef SG_ENGINE_TEXTURE_INSIDE_H
#define SG_ENGINE_TEXTURE_INSIDE_H

#include "softgpu/engine/inside.h"

/* Places in a step's list; SG_NOWHERE where the instruction has no such operand. */
enum sg_texture_place {
    SG_AT_VALUE = 0, /* up to four: results, or what is stored */
    SG_AT_RESIDENT = 4,
    SG_AT_HANDLE,
    SG_AT_SAMPLER,
    SG_AT_COORDINATE, /* up to four, as the text has them */
    SG_AT_LEVEL = SG_AT_COORDINATE + 4,
    SG_AT_DX, /* three */
    SG_AT_DY = SG_AT_DX + 3,
    SG_AT_OFFSET = SG_AT_DY + 3, /* three */
    SG_AT_COUNT = SG_AT_OFFSET + 3
};

/* The geometries that run: axes, and whether a layer comes before the coordinates. */
struct sg_texture_shape {
    unsigned char axes; /* of the resource; cubes: 2 */
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
    bool resident;          /* all texels so far lie in memory */
    bool failed;            /* the warp has faulted */
    struct sg_texture *own; /* room for the settings of a .samplerref */
};

static inline uint32_t sg_lane_32(const struct sg_warp *warp, uint32_t place, unsigned lane) {
    return ((const uint32_t *)sg_place(warp, place))[lane];
}

/* ---- texture_texel.c ------------------------------------------------------------------------- */

/* The host bytes of a level at (x bytes, row y, slice z), which lie in it; NULL: nothing is mapped,
 * a watcher refuses it, or the warp has faulted. */
unsigned char *sg_texel_bytes(struct sg_sampling *sampling, const struct sg_texture_level *level,
                              uint64_t x, uint64_t y, uint64_t z, unsigned size);
/* What a register receives of each channel of a texel that lies in the level; 0, 0, 0 and 1 of
 * those that the format does not have. */
void sg_texel_read(struct sg_sampling *sampling, const struct sg_texture_level *level, uint32_t x,
                   uint32_t y, uint32_t z, uint32_t value[4]);
/* The same for the border. */
void sg_texel_border(const struct sg_texture *image, const struct sg_texture *sampler,
                     uint32_t value[4]);
/* Whether its channels are floats when sampled, which can be filtered. */
bool sg_texel_is_real(const struct sg_texture *image, const struct sg_texture *sampler);
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

/* texture_block.c: a texel of a block of 4 x 4, as floats. */
void sg_texel_of_block(unsigned form, const unsigned char *block, unsigned x, unsigned y,
                       float value[4]);

/* ---- texture_sample.c ------------------------------------------------------------------------ */

/* Where a sample is: in texels of a level before the filter moves it by half of one. */
struct sg_spot {
    double at[3];
    int32_t offset[3];
    unsigned axes;
    uint32_t layer; /* of cubes: the face, counted through all of them */
};

/* A sample of one level, filtered as the sampler says. */
void sg_sample_level(struct sg_sampling *sampling, const struct sg_texture_level *level,
                     const struct sg_spot *spot, uint32_t value[4]);
/* The four texels that a linear filter would use, as tld4 orders them. */
void sg_sample_gather(struct sg_sampling *sampling, const struct sg_texture_level *level,
                      const struct sg_spot *spot, unsigned component, uint32_t value[4]);
/* A texel by its number; 0 outside of the level. */
void sg_sample_texel(struct sg_sampling *sampling, const struct sg_texture_level *level,
                     const int64_t at[3], unsigned axes, uint32_t layer, uint32_t value[4]);

/* ---- texture_cube.c -------------------------------------------------------------------------- */

/* The face that a direction points to, and where: both coordinates from 0 to 1. */
unsigned sg_cube_face(const double direction[3], double place[2]);
/* How that place moves with a gradient of the direction. */
void sg_cube_gradient(const double direction[3], const double gradient[3], double moved[2]);
/* The texel of the neighbouring face in place of one that lies over one edge of a face. */
void sg_cube_neighbour(unsigned face, int64_t x, int64_t y, uint32_t size, unsigned *to,
                       uint32_t *to_x, uint32_t *to_y);

/* ---- texture_run.c --------------------------------------------------------------------------- */

/* What a handle is of; NULL: of nothing. */
const struct sg_texture *sg_texture_look_up(struct sg_warp *warp, uint64_t handle);
/* The texture of a handle; NULL: the warp has faulted, with a report. */
const struct sg_texture *sg_texture_find(struct sg_warp *warp, const struct sg_step *step,
                                         unsigned lane, uint64_t handle, bool surface);
/* A fault whose report is `why`. */
void sg_texture_fault(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                      uint64_t handle, const char *why);
/* False, with a fault: the resource has another shape than the instruction. */
bool sg_texture_fits(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                     uint64_t handle, const struct sg_texture *image);

#endif
