/* Describes texture and surface objects and references to the engine. */
#include "softgpu/launch/launch_texture.h"

#include "softgpu/array/tiles.h"
#include "softgpu/core/config.h"
#include "softgpu/launch/texture_format.h"
#include "softgpu/texture/texture.h"

#include <stdlib.h>
#include <string.h>

struct taken {
    struct taken *next;
    uint64_t handle;
    struct sg_tiles *tiles; /* referenced; NULL without pieces */
    struct sg_texture texture;
};

struct sg_launch_textures {
    struct sg_sampler_user user;
    const struct sg_context *context;
    struct taken *first;
};

struct sg_launch_textures *sg_launch_textures_new(const struct sg_context *context) {
    struct sg_launch_textures *textures = calloc(1, sizeof *textures);
    if (!textures)
        return NULL;
    textures->context = context;
    sg_sampler_user_begin(&textures->user);
    return textures;
}

void sg_launch_textures_end(struct sg_launch_textures *textures) {
    if (!textures)
        return;
    sg_sampler_user_end(&textures->user);
    while (textures->first) {
        struct taken *taken = textures->first;
        textures->first = taken->next;
        sg_tiles_unref(taken->tiles);
        free(taken);
    }
    free(textures);
}

/* A texel is in one piece: pieces begin at multiples of every texel size. */
unsigned char *sg_launch_piece(const void *view, uint64_t offset, size_t size) {
    size_t span;
    return sg_tile_bytes(view, offset, size, &span);
}

/* ---- Resources ------------------------------------------------------------------------------- */

/* Adds an array as a level. */
static void add_level(struct taken *to, const struct sg_array *array) {
    const CUDA_ARRAY3D_DESCRIPTOR *d = &array->descriptor;
    struct sg_texture_level *level = &to->texture.levels[to->texture.level_count++];
    *level = (struct sg_texture_level){
        .address = array->address,
        .view = array->view,
        .pitch = array->pitch,
        .layer = array->layer,
        .width = (uint32_t)d->Width,
        .height = d->Height ? (uint32_t)d->Height : 1,
        .depth = d->Depth ? (uint32_t)d->Depth : 1,
    };
    if (!array->view)
        return;
    to->texture.faults = array->view->tiles->faults;
    if (!to->tiles)
        sg_tiles_ref(to->tiles = array->view->tiles);
}

static void shape_of(struct sg_texture *to, const CUDA_ARRAY3D_DESCRIPTOR *d) {
    to->array = true;
    to->layered = d->Flags & CUDA_ARRAY3D_LAYERED;
    to->cube = d->Flags & CUDA_ARRAY3D_CUBEMAP;
    bool flat = to->layered || to->cube || d->Depth == 0;
    to->dimensions = !flat ? 3 : d->Height > 0 ? 2 : 1;
    if (!sg_texture_format(to, d->Format, d->NumChannels))
        to->refused = "its array has a format that is not sampled here";
}

static void of_array(struct taken *to, CUarray handle) {
    const struct sg_array *array = sg_array_get(handle);
    if (!array) {
        to->texture.refused = "its array was destroyed";
        return;
    }
    shape_of(&to->texture, &array->descriptor);
    add_level(to, array);
}

static void of_mipmap(struct taken *to, CUmipmappedArray handle) {
    const struct sg_mipmap *mipmap = sg_mipmap_get(handle);
    if (!mipmap) {
        to->texture.refused = "its mipmapped array was destroyed";
        return;
    }
    shape_of(&to->texture, &mipmap->descriptor);
    for (unsigned i = 0; i < mipmap->level_count && i < SG_TEXTURE_LEVELS; i++)
        add_level(to, &mipmap->levels[i]);
}

/* Linear memory (one row of elements) or pitched memory (rows). */
static void of_memory(struct sg_texture *to, CUdeviceptr address, uint64_t bytes,
                      CUarray_format format, unsigned channels) {
    if (!sg_texture_format(to, format, channels)) {
        to->refused = "linear memory of this format is not sampled";
        return;
    }
    uint64_t count = bytes / to->element;
    to->memory = true;
    to->dimensions = 1;
    to->level_count = 1;
    to->levels[0] = (struct sg_texture_level){
        .address = address,
        .width = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count,
        .height = 1,
        .depth = 1,
    };
}

static void of_rows(struct sg_texture *to, CUdeviceptr address, size_t width, size_t height,
                    size_t pitch) {
    to->memory = false;
    to->dimensions = 2;
    to->levels[0] = (struct sg_texture_level){
        .address = address,
        .pitch = pitch,
        .width = (uint32_t)width,
        .height = (uint32_t)height,
        .depth = 1,
    };
}

static void of_resource(struct taken *to, const CUDA_RESOURCE_DESC *resource) {
    switch (resource->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        of_array(to, resource->res.array.hArray);
        break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        of_mipmap(to, resource->res.mipmap.hMipmappedArray);
        break;
    case CU_RESOURCE_TYPE_LINEAR:
        of_memory(&to->texture, resource->res.linear.devPtr, resource->res.linear.sizeInBytes,
                  resource->res.linear.format, resource->res.linear.numChannels);
        break;
    default:
        of_memory(&to->texture, resource->res.pitch2D.devPtr, 1, resource->res.pitch2D.format,
                  resource->res.pitch2D.numChannels);
        of_rows(&to->texture, resource->res.pitch2D.devPtr, resource->res.pitch2D.width,
                resource->res.pitch2D.height, resource->res.pitch2D.pitchInBytes);
    }
}

/* A view: a part of an array's levels and layers, read in another format. */
static void of_view(struct sg_texture *to, const CUDA_RESOURCE_VIEW_DESC *view) {
    unsigned first = view->firstMipmapLevel, last = view->lastMipmapLevel;
    last = last < to->level_count ? last : to->level_count - 1u;
    if (!sg_texture_view_format(to, view->format))
        to->refused = "its view has a format that is not sampled here";
    if (first >= to->level_count) {
        to->refused = "its view begins after the last level";
        return;
    }
    memmove(to->levels, to->levels + first, (last + 1 - first) * sizeof to->levels[0]);
    to->level_count = (unsigned char)(last + 1 - first);
    for (unsigned i = 0; i < to->level_count; i++) {
        struct sg_texture_level *level = &to->levels[i];
        if (i == 0 || to->form >= SG_TEXEL_BC1) {
            level->width = (uint32_t)(view->width >> (first + i));
            level->height = (uint32_t)(view->height >> (first + i));
            level->width += level->width == 0;
            level->height += level->height == 0;
        }
        if (!to->layered || view->firstLayer >= level->depth)
            continue;
        uint64_t skipped = view->firstLayer * level->layer;
        level->base += skipped;
        level->address += skipped;
        unsigned layers = view->lastLayer - view->firstLayer + 1;
        level->depth -= view->firstLayer;
        level->depth = layers < level->depth ? layers : level->depth;
    }
}

/* ---- Settings -------------------------------------------------------------------------------- */

static void set_flags(struct sg_texture *to, unsigned flags) {
    to->integers = flags & CU_TRSF_READ_AS_INTEGER;
    to->normalized = flags & CU_TRSF_NORMALIZED_COORDINATES;
    to->srgb |= (flags & CU_TRSF_SRGB) != 0;
    to->seamless = flags & CU_TRSF_SEAMLESS_CUBEMAP;
}

static void of_object(struct taken *to, const struct sg_sampler *from) {
    const CUDA_TEXTURE_DESC *texture = &from->texture;
    to->texture.surface = from->surface;
    of_resource(to, &from->resource);
    if (from->surface)
        return;
    bool array = from->resource.resType == CU_RESOURCE_TYPE_ARRAY ||
                 from->resource.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    if (from->has_view && array && !to->texture.refused)
        of_view(&to->texture, &from->view);
    set_flags(&to->texture, texture->flags);
    for (unsigned i = 0; i < 3; i++)
        to->texture.address[i] = (unsigned char)texture->addressMode[i];
    to->texture.linear = texture->filterMode == CU_TR_FILTER_MODE_LINEAR;
    to->texture.mip_linear = texture->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
    to->texture.anisotropy = texture->maxAnisotropy;
    to->texture.bias = texture->mipmapLevelBias;
    to->texture.least_level = texture->minMipmapLevelClamp;
    to->texture.most_level = texture->maxMipmapLevelClamp;
    memcpy(to->texture.border, texture->borderColor, sizeof to->texture.border);
}

static void of_reference(struct taken *to, const struct sg_reference *from) {
    struct sg_texture *texture = &to->texture;
    texture->surface = from->surface;
    switch (from->bound) {
    case SG_BOUND_NOTHING:
        break; /* no levels: see sg_texture_is_nothing */
    case SG_BOUND_ADDRESS:
        of_memory(texture, from->address, from->bytes, from->format, (unsigned)from->channels);
        if (from->pitch && !texture->refused)
            of_rows(texture, from->address, from->width, from->height, from->pitch);
        break;
    case SG_BOUND_ARRAY:
        of_array(to, from->array);
        break;
    case SG_BOUND_MIPMAP:
        of_mipmap(to, from->mipmap);
        break;
    }
    set_flags(texture, from->flags);
    for (unsigned i = 0; i < 3; i++)
        texture->address[i] = (unsigned char)from->address_mode[i];
    texture->linear = from->filter == CU_TR_FILTER_MODE_LINEAR;
    texture->mip_linear = from->mipmap_filter == CU_TR_FILTER_MODE_LINEAR;
    texture->anisotropy = from->anisotropy;
    texture->bias = from->bias;
    texture->least_level = from->least_level;
    texture->most_level = from->most_level;
    memcpy(texture->border, from->border, sizeof texture->border);
}

/* ---- Handles --------------------------------------------------------------------------------- */

static const char *own_name(char *const *names, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return names[i];
    return NULL;
}

CUresult sg_launch_reference(const struct sg_module *module, const char *name, uint64_t *handle) {
    const struct sg_image *image = module->program->image;
    struct sg_reference *reference = NULL;
    const char *texture = own_name(image->textures, image->texture_count, name);
    const char *own = texture ? texture : own_name(image->surfaces, image->surface_count, name);
    *handle = 0;
    if (!own)
        return CUDA_SUCCESS;
    CUresult result =
        sg_reference_of_module(module, module->context, own, texture == NULL, &reference);
    if (result == CUDA_SUCCESS)
        *handle = reference->handle;
    return result;
}

static struct taken *find(const struct sg_launch_textures *textures, uint64_t handle) {
    struct taken *taken = textures->first;
    while (taken && taken->handle != handle)
        taken = taken->next;
    return taken;
}

static const struct sg_reference *reference_of(uint64_t handle) {
    const struct sg_reference *texture = sg_handle_get(SG_KIND_TEXTURE_REFERENCE, handle);
    return texture ? texture : sg_handle_get(SG_KIND_SURFACE_REFERENCE, handle);
}

static CUresult take(struct sg_launch_textures *textures, uint64_t handle, struct taken **taken) {
    const struct sg_sampler *object = sg_sampler_find(textures->context, handle);
    const struct sg_reference *reference = object ? NULL : reference_of(handle);
    *taken = find(textures, handle);
    if (*taken || (!object && !reference))
        return CUDA_SUCCESS;
    struct taken *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->handle = handle;
    if (object)
        of_object(made, object);
    else
        of_reference(made, reference);
    if (object && object->ended && object->ended < textures->user.since &&
        sg_config()->checks & SG_CHECK_MEMORY)
        made->texture.refused = "it was destroyed before the launch";
    made->next = textures->first;
    textures->first = *taken = made;
    return CUDA_SUCCESS;
}

CUresult sg_launch_texture_take(struct sg_launch_textures *textures, uint64_t handle) {
    struct taken *taken;
    return take(textures, handle, &taken);
}

const struct sg_texture *sg_launch_texture(struct sg_launch_textures *textures, uint64_t handle) {
    static const struct sg_texture unknown = {.refused = "the host has no memory to describe it"};
    struct taken *taken;
    if (take(textures, handle, &taken) != CUDA_SUCCESS)
        return &unknown;
    return taken ? &taken->texture : NULL;
}
