/* txq, suq and istypep: properties of a texture or surface. */
#include "softgpu/engine/texture_inside.h"

/* PTX takes the numbers of channel orders and types from OpenCL. */
enum {
    ORDER_R = 0x10b0,
    ORDER_RG = 0x10b2,
    ORDER_RGBA = 0x10b5,
    TYPE_SNORM_8 = 0x10d0,
    TYPE_SNORM_16 = 0x10d1,
    TYPE_UNORM_8 = 0x10d2,
    TYPE_UNORM_16 = 0x10d3,
    TYPE_UNORM_101010 = 0x10d6,
    TYPE_SIGNED_8 = 0x10d7,
    TYPE_SIGNED_16 = 0x10d8,
    TYPE_SIGNED_32 = 0x10d9,
    TYPE_UNSIGNED_8 = 0x10da,
    TYPE_UNSIGNED_16 = 0x10db,
    TYPE_UNSIGNED_32 = 0x10dc,
    TYPE_HALF = 0x10dd,
    TYPE_FLOAT = 0x10de
};

static uint32_t channel_type(const struct sg_texture *image) {
    bool parts = !image->surface && !image->integers && image->bits < 32;
    switch (image->form) {
    case SG_TEXEL_FLOAT:
        return image->bits == 16 ? TYPE_HALF : TYPE_FLOAT;
    case SG_TEXEL_UNORM:
        return image->bits == 8 ? TYPE_UNORM_8 : TYPE_UNORM_16;
    case SG_TEXEL_SNORM:
    case SG_TEXEL_BC4_SIGNED:
    case SG_TEXEL_BC5_SIGNED:
        return image->bits == 8 ? TYPE_SNORM_8 : TYPE_SNORM_16;
    case SG_TEXEL_SINT:
        if (parts)
            return image->bits == 8 ? TYPE_SNORM_8 : TYPE_SNORM_16;
        return image->bits == 8    ? TYPE_SIGNED_8
               : image->bits == 16 ? TYPE_SIGNED_16
                                   : TYPE_SIGNED_32;
    case SG_TEXEL_UINT:
        if (parts)
            return image->bits == 8 ? TYPE_UNORM_8 : TYPE_UNORM_16;
        return image->bits == 8    ? TYPE_UNSIGNED_8
               : image->bits == 16 ? TYPE_UNSIGNED_16
                                   : TYPE_UNSIGNED_32;
    case SG_TEXEL_1010102:
        return TYPE_UNORM_101010;
    default:
        return TYPE_UNORM_8;
    }
}

/* wrap, mirror, clamp_ogl, clamp_to_edge, clamp_to_border, in this order. */
static uint32_t address_mode(unsigned mode) {
    static const unsigned char numbers[] = {[SG_ADDRESS_WRAP] = 0,
                                            [SG_ADDRESS_MIRROR] = 1,
                                            [SG_ADDRESS_CLAMP] = 3,
                                            [SG_ADDRESS_BORDER] = 4};
    return numbers[mode & 3];
}

static uint32_t size_asked(const struct sg_texture *image, unsigned what, uint32_t level) {
    if (level >= image->level_count)
        return 0;
    const struct sg_texture_level *of = &image->levels[level];
    unsigned axes = image->dimensions;
    bool layers = image->layered && !image->cube && !image->surface; /* the axis after the last */
    switch (what) {
    case SG_DO_WIDTH:
        return of->width;
    case SG_DO_HEIGHT:
        return axes > 1 ? of->height : layers ? of->depth : 0;
    default:
        return axes > 2 || (layers && axes == 2) ? of->depth : 0;
    }
}

static bool asks_sampler(unsigned what) {
    return what == SG_DO_FILTER_MODE || what == SG_DO_FORCE_UNNORMALIZED_COORDS ||
           (what >= SG_DO_ADDR_MODE_0 && what <= SG_DO_ADDR_MODE_2);
}

static uint32_t sampler_asked(uint32_t settings, unsigned what) {
    if (what == SG_DO_FILTER_MODE)
        return (settings & SG_SAMPLER_LINEAR) != 0;
    if (what == SG_DO_FORCE_UNNORMALIZED_COORDS)
        return (settings & SG_SAMPLER_UNNORMALIZED) != 0;
    return SG_SAMPLER_MODE(settings, what - SG_DO_ADDR_MODE_0);
}

static uint32_t asked(const struct sg_texture *image, unsigned what, uint32_t level) {
    switch (what) {
    case SG_DO_WIDTH:
    case SG_DO_HEIGHT:
    case SG_DO_DEPTH:
        return size_asked(image, what, level);
    case SG_DO_CHANNEL_DATA_TYPE:
        return channel_type(image);
    case SG_DO_CHANNEL_ORDER:
        return image->channels == 1 ? ORDER_R : image->channels == 2 ? ORDER_RG : ORDER_RGBA;
    case SG_DO_NORMALIZED_COORDS:
        return image->normalized;
    case SG_DO_ARRAY_SIZE:
        return image->layered ? image->levels[0].depth / (image->cube ? 6 : 1) : 0;
    case SG_DO_NUM_MIPMAP_LEVELS:
        return image->level_count;
    case SG_DO_NUM_SAMPLES:
        return 1;
    case SG_DO_ADDR_MODE_0:
    case SG_DO_ADDR_MODE_1:
    case SG_DO_ADDR_MODE_2:
        return address_mode(image->address[what - SG_DO_ADDR_MODE_0]);
    case SG_DO_FILTER_MODE:
        return image->linear;
    case SG_DO_FORCE_UNNORMALIZED_COORDS:
        return !image->normalized;
    default: /* no other is decoded */
        return 0;
    }
}

static bool of_type(struct sg_warp *warp, uint64_t handle, unsigned type) {
    if (handle >> 48 == SG_SAMPLER_WINDOW >> 48)
        return type == SG_DO_SAMPLERREF;
    const struct sg_texture *image = sg_texture_look_up(warp, handle);
    return image && type == (image->surface ? SG_DO_SURFREF : SG_DO_TEXREF);
}

/* False: the warp has faulted. */
static bool ask(struct sg_warp *warp, const struct sg_step *step, unsigned lane, uint64_t handle,
                uint32_t *to) {
    const struct sg_instruction *in = &warp->grid->code->program->instructions[step->instruction];
    const uint32_t *list = warp->grid->code->list + step->list;
    uint32_t level = 0;
    if (handle >> 48 == SG_SAMPLER_WINDOW >> 48 && asks_sampler(in->operation)) {
        *to = sampler_asked((uint32_t)handle, in->operation);
        return true;
    }
    const struct sg_texture *image = sg_texture_find(warp, step, lane, handle, in->op == SG_OP_suq);
    if (list[SG_AT_LEVEL] != SG_NOWHERE)
        level = sg_lane_32(warp, list[SG_AT_LEVEL], lane);
    if (image)
        *to = sg_texture_is_nothing(image) ? 0 : asked(image, in->operation, level);
    return image != NULL;
}

const struct sg_step *sg_run_texture_query(struct sg_warp *warp, const struct sg_step *step) {
    const struct sg_instruction *in = &warp->grid->code->program->instructions[step->instruction];
    const uint32_t *list = warp->grid->code->list + step->list;
    const uint64_t *handles = sg_place(warp, list[SG_AT_HANDLE]);
    bool type = in->op == SG_OP_istypep;
    uint32_t *to = sg_place(warp, list[SG_AT_VALUE]), is = 0;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        if (type)
            is |= (uint32_t)of_type(warp, handles[lane], in->operation) << lane;
        else if (!ask(warp, step, lane, handles[lane], &to[lane]))
            return NULL;
    }
    if (type)
        sg_predicate_set(warp, list[SG_AT_VALUE], is);
    return step + 1;
}
