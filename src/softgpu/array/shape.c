/* What a descriptor means in bytes. */
#include "softgpu/array/internal.h"

/* Where a level or a plane may begin: H200's alignment of textures. */
#define ALIGNMENT ((size_t)512)

bool sg_is_layered(const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    return (descriptor->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
}

bool sg_is_tiled(const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    return (descriptor->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0;
}

static size_t at_least_one(size_t size) {
    return size ? size : 1;
}

bool sg_array_shape(struct sg_array *array) {
    const CUDA_ARRAY3D_DESCRIPTOR *d = &array->descriptor;
    const struct sg_format *format = sg_format_find(d->Format);
    array->element = sg_array_element(d->Format, d->NumChannels);
    if (!format || !array->element)
        return false;
    size_t block = format->block, all;
    array->rows = (at_least_one(d->Height) + block - 1) / block;
    array->slices = at_least_one(d->Depth);
    if (__builtin_mul_overflow((d->Width + block - 1) / block, array->element,
                               &array->width_bytes) ||
        __builtin_mul_overflow(array->width_bytes, array->rows, &array->layer) ||
        __builtin_mul_overflow(array->layer, array->slices, &all) || all > SIZE_MAX / 4)
        return false;
    array->pitch = array->width_bytes;
    return true;
}

static size_t round_up(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t sg_array_bytes(const struct sg_array *array) {
    if (array->plane_count == 0)
        return round_up(array->layer * array->slices);
    size_t bytes = 0;
    for (unsigned i = 0; i < array->plane_count; i++)
        bytes += sg_array_bytes(&array->planes[i]);
    return bytes;
}

static size_t halved(size_t size, unsigned level) {
    size_t half = size >> level;
    return size && !half ? 1 : half;
}

CUDA_ARRAY3D_DESCRIPTOR sg_level_descriptor(const CUDA_ARRAY3D_DESCRIPTOR *whole, unsigned level) {
    CUDA_ARRAY3D_DESCRIPTOR d = *whole;
    d.Width = halved(whole->Width, level);
    d.Height = halved(whole->Height, level);
    if (!sg_is_layered(whole))
        d.Depth = halved(whole->Depth, level);
    return d;
}

unsigned sg_level_limit(const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    size_t largest = descriptor->Width;
    unsigned levels = 0;
    if (descriptor->Height > largest)
        largest = descriptor->Height;
    if (!sg_is_layered(descriptor) && descriptor->Depth > largest)
        largest = descriptor->Depth;
    for (; largest; largest >>= 1)
        levels++;
    return levels;
}
