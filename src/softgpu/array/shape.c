/* Sizes and layout that follow from a descriptor. */
#include "softgpu/array/internal.h"

/* Where a level or a plane may begin: H200's texture alignment. */
#define ALIGNMENT ((size_t)512)

bool sg_is_layered(const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    return (descriptor->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
}

bool sg_is_tiled(const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    return (descriptor->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0;
}

CUDA_ARRAY3D_DESCRIPTOR sg_descriptor_taken(const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    CUDA_ARRAY3D_DESCRIPTOR taken = *descriptor;
    taken.Width = (uint32_t)descriptor->Width;
    taken.Height = (uint32_t)descriptor->Height;
    taken.Depth = (uint32_t)descriptor->Depth;
    return taken;
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

/* ---- As a GPU lays it out -------------------------------------------------------------------- */

#define GOB_WIDTH ((size_t)64) /* bytes */
#define GOB_ROWS  ((size_t)8)

/* The smallest power of two, at most `most`, of units that cover `size`. */
static size_t units(size_t size, size_t unit, size_t most) {
    size_t count = 1;
    while (count < most && count * unit < size)
        count *= 2;
    return count;
}

static size_t multiple(size_t size, size_t of) {
    return (size + of - 1) / of * of;
}

static bool is_solid(const struct sg_array *array) {
    return array->descriptor.Depth && !sg_is_layered(&array->descriptor);
}

/* Gobs stacked in a block, and slices. The maxima fit the sizes that H200 reports for deferred
 * arrays and mip tails. */
static size_t block_rows(const struct sg_array *array) {
    return GOB_ROWS * units(array->rows, GOB_ROWS, is_solid(array) ? 2 : 16);
}

static size_t block_slices(const struct sg_array *array) {
    return is_solid(array) ? units(array->slices, 1, 8) : 1;
}

size_t sg_array_block(const struct sg_array *array) {
    return GOB_WIDTH * block_rows(array) * block_slices(array);
}

size_t sg_array_block_bytes(const struct sg_array *array) {
    size_t slices = is_solid(array) ? multiple(array->slices, block_slices(array)) : 1;
    return multiple(array->width_bytes, GOB_WIDTH) * multiple(array->rows, block_rows(array)) *
           slices;
}

/* ---- Levels ---------------------------------------------------------------------------------- */

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
