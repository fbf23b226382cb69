/* tex and tld4, lane by lane: from handle, coordinates and level to the registers' values. */
#include "softgpu/engine/texture_inside.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct sg_texture_shape sg_texture_shape(unsigned geometry) {
    static const struct sg_texture_shape shapes[SG_GEOMETRY_COUNT] = {
        [SG_GEOMETRY_1D] = {1, 1, false, false},  [SG_GEOMETRY_2D] = {2, 2, false, false},
        [SG_GEOMETRY_3D] = {3, 3, false, false},  [SG_GEOMETRY_A1D] = {1, 1, true, false},
        [SG_GEOMETRY_A2D] = {2, 2, true, false},  [SG_GEOMETRY_CUBE] = {2, 3, false, true},
        [SG_GEOMETRY_ACUBE] = {2, 3, true, true},
    };
    return shapes[geometry];
}

/* ---- which texture --------------------------------------------------------------------------- */

void sg_texture_fault(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                      uint64_t handle, const char *why) {
    char report[256];
    snprintf(report, sizeof report, "handle 0x%llx: %s", (unsigned long long)handle, why);
    sg_fault_note(warp, step, SG_FAULT_TEXTURE, lane, handle, 0, report);
}

const struct sg_texture *sg_texture_look_up(struct sg_warp *warp, uint64_t handle) {
    struct sg_known_texture *known = &warp->textures[handle % SG_KNOWN_TEXTURES];
    if (known->texture && known->handle == handle)
        return known->texture;
    const struct sg_grid_launch *launch = &warp->grid->launch;
    const struct sg_texture *found = launch->texture ? launch->texture(launch->user, handle) : NULL;
    *known = (struct sg_known_texture){handle, found};
    return found;
}

const struct sg_texture *sg_texture_find(struct sg_warp *warp, const struct sg_step *step,
                                         unsigned lane, uint64_t handle, bool surface) {
    const struct sg_texture *found = sg_texture_look_up(warp, handle);
    const char *why = !found                       ? "no texture or surface has it"
                      : found->surface && !surface ? "it is a surface's, where a texture is needed"
                      : !found->surface && surface ? "it is a texture's, where a surface is needed"
                                                   : found->refused;
    if (!why)
        return found;
    sg_texture_fault(warp, step, lane, handle, why);
    return NULL;
}

static const char *shape_name(unsigned axes, bool layered, bool cube, char *text, size_t size) {
    snprintf(text, size, "%s%s",
             cube        ? "cube"
             : axes == 1 ? "1D"
             : axes == 2 ? "2D"
                         : "3D",
             layered ? ", layered" : "");
    return text;
}

bool sg_texture_fits(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                     uint64_t handle, const struct sg_texture *image) {
    struct sg_texture_shape shape = sg_texture_shape(step->choice);
    /* Surfaces number the faces of cubes as layers. */
    bool faces = image->surface && image->cube && shape.layered;
    if (shape.axes == image->dimensions &&
        (faces || (shape.layered == image->layered && shape.cube == image->cube)))
        return true;
    char has[32], wants[32], why[128];
    snprintf(why, sizeof why, "it is of another shape (%s) than the instruction's (%s)",
             shape_name(image->dimensions, image->layered, image->cube, has, sizeof has),
             shape_name(shape.axes, shape.layered, shape.cube, wants, sizeof wants));
    sg_texture_fault(warp, step, lane, handle, why);
    return false;
}

/* ---- one lane -------------------------------------------------------------------------------- */

/* Layers are clamped to the last. */
static uint32_t layer_of(const struct sg_sampling *s, const uint32_t *list, unsigned faces) {
    uint32_t count = s->image->levels[0].depth / faces;
    uint32_t layer = sg_lane_32(s->warp, list[SG_AT_COORDINATE], s->lane);
    return layer < count ? layer : count - 1;
}

static void offsets(const struct sg_sampling *s, const uint32_t *list, struct sg_spot *spot) {
    for (unsigned i = 0; i < spot->axes; i++)
        spot->offset[i] = list[SG_AT_OFFSET + i] == SG_NOWHERE
                              ? 0
                              : (int32_t)sg_lane_32(s->warp, list[SG_AT_OFFSET + i], s->lane);
}

/* The coordinates; for cubes the face and the position in it. From 0 to 1 if normalised. */
static struct sg_spot spot_of(const struct sg_sampling *s, const uint32_t *list) {
    struct sg_texture_shape shape = sg_texture_shape(s->step->choice);
    struct sg_spot spot = {.axes = shape.axes};
    const uint32_t *coordinates = &list[SG_AT_COORDINATE + shape.layered];
    if (shape.layered)
        spot.layer = layer_of(s, list, shape.cube ? 6 : 1);
    double at[3] = {0};
    for (unsigned i = 0; i < shape.coordinates; i++)
        at[i] = sg_real_at(s, coordinates[i]);
    if (shape.cube)
        spot.layer = spot.layer * 6 + sg_cube_face(at, spot.at);
    for (unsigned i = 0; i < 3 && !shape.cube; i++)
        spot.at[i] = at[i];
    offsets(s, list, &spot);
    return spot;
}

/* Normalised coordinates that wrap or mirror have 21 bits behind the point, or 22 for wide levels,
 * as recorded for 3,001 texels, and for 16,384 and more; what lies behind is rounded down. */
static double turned(double at, double size) {
    double units = size > 4096 ? 0x1p22 : 0x1p21;
    return floor(at * units) / units;
}

static bool turns(const struct sg_texture *sampler, unsigned axis) {
    return sampler->address[axis] == SG_ADDRESS_WRAP || sampler->address[axis] == SG_ADDRESS_MIRROR;
}

/* The spot, scaled to texels of a level. */
static struct sg_spot scaled(const struct sg_sampling *s, const struct sg_spot *spot,
                             const struct sg_texture_level *level) {
    struct sg_spot to = *spot;
    const double sizes[3] = {level->width, level->height, level->depth};
    for (unsigned i = 0; i < 3 && i < to.axes; i++) {
        if (s->sampler->normalized && !s->image->cube && turns(s->sampler, i))
            to.at[i] = turned(to.at[i], sizes[i]);
        to.at[i] *= s->sampler->normalized || s->image->cube ? sizes[i] : 1;
    }
    return to;
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* 256ths of a level, cut off towards 0; NaN becomes 0. */
static int64_t of_256(double level) {
    const double most = 0x1p20;
    return (int64_t)(256 * (level > most ? most : level > -most ? level : level < 0 ? -most : 0));
}

/* In units of 1/256 of a level, with the bias, clamped to all limits, each of which is cut off
 * before. Without a level there is no bias. */
static unsigned level_of(const struct sg_sampling *s, const uint32_t *list, unsigned operation) {
    const struct sg_texture *sampler = s->sampler;
    int64_t level = 0, last = 256 * (s->image->level_count - 1);
    int64_t most = of_256((double)sampler->most_level),
            least = of_256((double)sampler->least_level);
    if (operation == SG_DO_LEVEL) {
        level = of_256(sg_real_at(s, list[SG_AT_LEVEL])) + of_256((double)sampler->bias);
    } else if (operation == SG_DO_GRAD) {
        level = sg_gradient_level(s, list) + of_256((double)sampler->bias);
    }
    level = level > most ? most : level;
    level = level < least ? least : level;
    return (unsigned)(level > last ? last : level < 0 ? 0 : level);
}

/* With anisotropic filters, the mixture of two levels is steeper around its middle: one and a half
 * times, from 4 on one and three quarters, from 16 on twice. */
static unsigned steeper(const struct sg_texture *sampler, unsigned level) {
    unsigned most = sampler->anisotropy;
    int quarters = most >= 16 ? 8 : most >= 4 ? 7 : most >= 2 ? 6 : 4;
    int part = 128 + ((((int)(level & 255) - 128) * quarters + 2) >> 2);
    return (level & ~255u) + (unsigned)(part > 256 ? 256 : part > 0 ? part : 0);
}

static void between(const uint32_t *near, const uint32_t *far, unsigned part, uint32_t value[4]) {
    for (unsigned c = 0; c < 4; c++) {
        double sum = (256.0 - part) * (double)sg_float_of(near[c]) +
                     (double)part * (double)sg_float_of(far[c]);
        value[c] = sg_bits_of((float)(sum / 256));
    }
}

static void sample(struct sg_sampling *s, const uint32_t *list, unsigned operation,
                   uint32_t value[4]) {
    const struct sg_texture *image = s->image;
    struct sg_spot spot = spot_of(s, list), here;
    unsigned level = level_of(s, list, operation);
    level = s->sampler->mip_linear ? steeper(s->sampler, level) : level;
    unsigned part = level & 255;
    bool mixed = s->sampler->mip_linear && part && sg_texel_is_real(image, s->sampler);
    const struct sg_texture_level *first =
        &image->levels[mixed || s->sampler->mip_linear ? level >> 8 : (level + 128) >> 8];
    here = scaled(s, &spot, first);
    sg_sample_level(s, first, &here, value);
    if (!mixed || s->failed)
        return;
    uint32_t near[4], far[4];
    memcpy(near, value, sizeof near);
    here = scaled(s, &spot, first + 1);
    sg_sample_level(s, first + 1, &here, far);
    between(near, far, part, value);
}

static void by_number(struct sg_sampling *s, const uint32_t *list, uint32_t value[4]) {
    struct sg_texture_shape shape = sg_texture_shape(s->step->choice);
    struct sg_spot spot = {.axes = shape.axes};
    int64_t at[3] = {0};
    uint32_t layer = shape.layered ? layer_of(s, list, 1) : 0, level = 0;
    offsets(s, list, &spot);
    for (unsigned i = 0; i < shape.axes; i++)
        at[i] = (int64_t)(int32_t)sg_lane_32(s->warp, list[SG_AT_COORDINATE + shape.layered + i],
                                             s->lane) +
                spot.offset[i];
    if (list[SG_AT_LEVEL] != SG_NOWHERE)
        level = sg_lane_32(s->warp, list[SG_AT_LEVEL], s->lane);
    memset(value, 0, 4 * sizeof *value);
    /* A row is read by number from linear memory alone, as on an H200; an array's gives zeros. */
    bool none = shape.axes == 1 && !shape.layered && !s->image->memory;
    if (level < s->image->level_count && !none)
        sg_sample_texel(s, &s->image->levels[level], at, shape.axes, layer, value);
}

static void gather(struct sg_sampling *s, const uint32_t *list, unsigned operation,
                   uint32_t value[4]) {
    struct sg_spot spot = spot_of(s, list);
    const struct sg_texture_level *level = &s->image->levels[level_of(s, list, SG_DO_NONE) >> 8];
    spot = scaled(s, &spot, level);
    unsigned component = operation == SG_DO_R   ? 0
                         : operation == SG_DO_G ? 1
                         : operation == SG_DO_B ? 2
                                                : 3;
    sg_sample_gather(s, level, &spot, component, value);
}

/* ---- all lanes ------------------------------------------------------------------------------- */

/* Every NaN becomes the same one. */
static uint16_t half_of(uint32_t bits) {
    return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : sg_half_of(sg_float_of(bits));
}

static void receive(const struct sg_sampling *s, const uint32_t *list, const uint32_t value[4]) {
    const struct sg_step *step = s->step;
    for (unsigned i = 0; i < step->count; i++) {
        void *to = sg_place(s->warp, list[SG_AT_VALUE + i]);
        if (step->type == SG_TYPE_F16)
            ((uint16_t *)to)[s->lane] = half_of(value[i]);
        else if (step->type == SG_TYPE_F16X2)
            ((uint32_t *)to)[s->lane] =
                half_of(value[2 * i % 4]) | (uint32_t)half_of(value[(2 * i + 1) % 4]) << 16;
        else
            ((uint32_t *)to)[s->lane] = value[i];
    }
}

/* The image's own settings, except those that a .samplerref gives. */
static void take_settings(struct sg_sampling *s, uint32_t settings) {
    static const unsigned char modes[8] = {SG_ADDRESS_WRAP, SG_ADDRESS_MIRROR, SG_ADDRESS_CLAMP,
                                           SG_ADDRESS_CLAMP, SG_ADDRESS_BORDER};
    *s->own = *s->image;
    for (unsigned axis = 0; axis < 3; axis++)
        s->own->address[axis] = modes[SG_SAMPLER_MODE(settings, axis)];
    s->own->linear = settings & SG_SAMPLER_LINEAR;
    s->own->normalized &= !(settings & SG_SAMPLER_UNNORMALIZED);
    s->sampler = s->own;
}

/* False: the warp has faulted. */
static bool images(struct sg_sampling *s, const uint32_t *list, unsigned operation) {
    const uint64_t *handles = sg_place(s->warp, list[SG_AT_HANDLE]);
    uint64_t handle = handles[s->lane];
    s->image = s->sampler = sg_texture_find(s->warp, s->step, s->lane, handle, false);
    if (s->image && sg_texture_is_nothing(s->image))
        return true;
    if (!s->image || !sg_texture_fits(s->warp, s->step, s->lane, handle, s->image))
        return false;
    if (list[SG_AT_SAMPLER] != SG_NOWHERE) {
        handle = ((const uint64_t *)sg_place(s->warp, list[SG_AT_SAMPLER]))[s->lane];
        if (handle >> 48 == SG_SAMPLER_WINDOW >> 48)
            take_settings(s, (uint32_t)handle);
        else
            s->sampler = sg_texture_find(s->warp, s->step, s->lane, handle, false);
    }
    if (!s->sampler)
        return false;
    if (operation != SG_DO_GRAD || s->sampler->anisotropy <= 1)
        return true;
    sg_texture_fault(s->warp, s->step, s->lane, handle,
                     "anisotropic filtering by gradients, which no document describes");
    return false;
}

const struct sg_step *sg_run_texture(struct sg_warp *warp, const struct sg_step *step) {
    const struct sg_instruction *in = &warp->grid->code->program->instructions[step->instruction];
    const uint32_t *list = warp->grid->code->list + step->list;
    uint32_t resident = 0;
    struct sg_texture own;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        struct sg_sampling one = {.warp = warp,
                                  .step = step,
                                  .lane = (unsigned)__builtin_ctz(left),
                                  .resident = true,
                                  .own = &own};
        uint32_t value[4];
        if (!images(&one, list, in->operation))
            return NULL;
        if (sg_texture_is_nothing(one.image))
            memset(value, 0, sizeof value);
        else if (in->op == SG_OP_tld4)
            gather(&one, list, in->operation, value);
        else if (step->type2 == SG_TYPE_F32)
            sample(&one, list, in->operation, value);
        else
            by_number(&one, list, value);
        if (one.failed)
            return NULL;
        receive(&one, list, value);
        resident |= (uint32_t)one.resident << one.lane;
    }
    if (list[SG_AT_RESIDENT] != SG_NOWHERE)
        sg_predicate_set(warp, list[SG_AT_RESIDENT], resident);
    return step + 1;
}
