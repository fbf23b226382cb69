/* What the files of array/ share. Everything here requires the lock. */
#ifndef SG_ARRAY_INTERNAL_H
#define SG_ARRAY_INTERNAL_H

#include "softgpu/array/array.h"
#include "softgpu/array/tiles.h"

/* ---- Formats (format.c) ---------------------------------------------------------------------- */

/* One plane of a planar format: its size is that of the whole, shifted right. */
struct sg_plane_form {
    unsigned char channels, width_shift, height_shift;
};

struct sg_format {
    CUarray_format format;
    unsigned char channels; /* required number; 0: 1, 2 or 4 */
    unsigned char bytes;    /* of a channel (channels 0), an element, a block, a plane's channel */
    unsigned char block;    /* texels per side of a block; 1 unless compressed */
    bool video;             /* requires CUDA_ARRAY3D_VIDEO_ENCODE_DECODE */
    unsigned char plane_count;
    struct sg_plane_form planes[3];
};
/* NULL for an unknown format. */
const struct sg_format *sg_format_find(CUarray_format format);

/* ---- Shapes and storage (shape.c, storage.c) ------------------------------------------------- */

/* Sets what follows from the descriptor: element, width_bytes, rows, slices, pitch, layer. False
 * when a size overflows. */
bool sg_array_shape(struct sg_array *array);
/* Bytes it takes, planes included, rounded up to where the next level may begin. */
size_t sg_array_bytes(const struct sg_array *array);
/* The same as a GPU lays it out, in blocks of gobs: the size that sparse and deferred arrays
 * require. For layered arrays, of one slice. */
size_t sg_array_block_bytes(const struct sg_array *array);
/* The size of the block that layers are aligned to. */
size_t sg_array_block(const struct sg_array *array);
/* The descriptor of a level of a mipmapped array. */
CUDA_ARRAY3D_DESCRIPTOR sg_level_descriptor(const CUDA_ARRAY3D_DESCRIPTOR *whole, unsigned level);
/* The number of levels that an array of that size can have. */
unsigned sg_level_limit(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
/* The sizes as H200 takes them: their lower 32 bits. */
CUDA_ARRAY3D_DESCRIPTOR sg_descriptor_taken(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
/* Whether the flags make it layered: depth is then the number of layers. */
bool sg_is_layered(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);

/* Bytes of device memory without a range; OUT_OF_MEMORY. */
CUresult sg_storage_new(int device, size_t size, struct sg_array_storage **storage);
CUdeviceptr sg_storage_address(const struct sg_array_storage *storage);
/* `of`: whose storage it is. NULL storage is allowed. */
void sg_storage_free(struct sg_array_storage *storage, const struct sg_context *of);

/* ---- Objects (array.c, mipmap.c) ------------------------------------------------------------- */

/* Creates an array with a handle, as cuArray3DCreate does. All or nothing. */
CUresult sg_array_create(struct sg_context *context, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                         CUarray *handle);
/* Fills in `array` from a checked descriptor: shape, context, planes. No handle yet. */
CUresult sg_array_init(struct sg_array *array, struct sg_context *context,
                       const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
/* Gives it and its planes their addresses. */
void sg_array_place(struct sg_array *array, CUdeviceptr address);
/* Ends handles, planes and the reference to the context; not the storage. */
void sg_array_end(struct sg_array *array);
/* The handle, created now if there is none; 0 when out of memory. */
uint64_t sg_array_handle(struct sg_array *array);

/* Ends everything that a mipmapped array has, and its handle; the object remains, empty. */
void sg_mipmap_empty(struct sg_mipmap *mipmap);

/* sg_array_check, also for arrays that only graphics memory can hold. */
CUresult sg_descriptor_check(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels,
                             bool graphics);
bool sg_is_tiled(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);

#endif
