/* What the files of array/ share. Everything here wants the lock. */
#ifndef SG_ARRAY_INTERNAL_H
#define SG_ARRAY_INTERNAL_H

#include "softgpu/array/array.h"
#include "softgpu/array/tiles.h"

/* ---- Formats (format.c) ---------------------------------------------------------------------- */

/* One plane of a planar format: its size is the whole's divided by 2 to the shifts. */
struct sg_plane_form {
    unsigned char channels, width_shift, height_shift;
};

struct sg_format {
    CUarray_format format;
    unsigned char channels; /* that it must have; 0: 1, 2 or 4 */
    unsigned char bytes;    /* of a channel (channels 0), an element, a block, a plane's channel */
    unsigned char block;    /* texels on a side of a block; 1 for all but the compressed */
    bool video;             /* wants CUDA_ARRAY3D_VIDEO_ENCODE_DECODE */
    unsigned char plane_count;
    struct sg_plane_form planes[3];
};
/* NULL for a format that is none. */
const struct sg_format *sg_format_find(CUarray_format format);

/* ---- Shapes and storage (shape.c, storage.c) ------------------------------------------------- */

/* Sets what the descriptor says: element, width_bytes, rows, slices, pitch, layer. False when the
 * sizes are no number. */
bool sg_array_shape(struct sg_array *array);
/* Bytes that it takes, planes included: rounded up to what the next level may begin at. */
size_t sg_array_bytes(const struct sg_array *array);
/* The same as a GPU lays it out, in blocks of gobs: what sparse and deferred arrays ask for. Of one
 * slice for layered arrays. */
size_t sg_array_block_bytes(const struct sg_array *array);
/* The block that layers are aligned to. */
size_t sg_array_block(const struct sg_array *array);
/* The descriptor of a level of a mipmapped array. */
CUDA_ARRAY3D_DESCRIPTOR sg_level_descriptor(const CUDA_ARRAY3D_DESCRIPTOR *whole, unsigned level);
/* The levels that an array of that size can have. */
unsigned sg_level_limit(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
/* The sizes as H200 takes them: their lower 32 bits. */
CUDA_ARRAY3D_DESCRIPTOR sg_descriptor_taken(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
/* Which flags make it layered: depth is then a number of layers. */
bool sg_is_layered(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);

/* Bytes of device memory without a range; OUT_OF_MEMORY. */
CUresult sg_storage_new(int device, size_t size, struct sg_array_storage **storage);
CUdeviceptr sg_storage_address(const struct sg_array_storage *storage);
void sg_storage_free(struct sg_array_storage *storage);

/* ---- Objects (array.c, mipmap.c) ------------------------------------------------------------- */

/* A new array with a handle, as cuArray3DCreate makes one. Whole or nothing. */
CUresult sg_array_create(struct sg_context *context, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                         CUarray *handle);
/* Fills `array` in for a descriptor that was checked: shape, context, planes. No handle yet. */
CUresult sg_array_init(struct sg_array *array, struct sg_context *context,
                       const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
/* Gives it and its planes their addresses. */
void sg_array_place(struct sg_array *array, CUdeviceptr address);
/* Ends handles, planes and the reference to the context; not the storage. */
void sg_array_end(struct sg_array *array);
/* The handle, made now if it has none; 0 when out of memory. */
uint64_t sg_array_handle(struct sg_array *array);

/* Ends all that a mipmapped array has, and its handle; the object is left empty. */
void sg_mipmap_empty(struct sg_mipmap *mipmap);

/* sg_array_check, also for what only memory of graphics can be. */
CUresult sg_descriptor_check(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels,
                             bool graphics);
bool sg_is_tiled(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);

#endif
