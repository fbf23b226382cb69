/*
 * CUDA arrays: storage with a format and up to three dimensions. Everything here wants the lock.
 *
 * An array's bytes lie at an address of softgpu's that no range of the application's covers, so
 * that copies treat arrays as boxes of rows: `pitch` bytes from row to row, `layer` from slice to
 * slice. Sparse arrays have storage only where tiles are mapped.
 */
#ifndef SG_ARRAY_ARRAY_H
#define SG_ARRAY_ARRAY_H

#include "softgpu/context/context.h"
#include "softgpu/memory/memory.h"

struct sg_mipmap;

struct sg_array {
    uint64_t handle;
    struct sg_context *context; /* that it dies with, referenced */
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    unsigned element;                 /* bytes of an element: format times channels */
    CUdeviceptr address;              /* of element (0, 0, 0); 0 for sparse arrays */
    size_t width_bytes, rows, slices; /* as stored: block-compressed formats count blocks */
    size_t pitch, layer;
    struct sg_mipmap *mipmap; /* whose level it is, or NULL */
    unsigned level;
    unsigned users; /* texture and surface objects, external memory, graph nodes */
};

struct sg_mipmap {
    uint64_t handle;
    struct sg_context *context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    unsigned level_count;
    struct sg_array *levels; /* level_count of them; handles are made when first asked for */
};

struct sg_array *sg_array_get(CUarray handle);
struct sg_mipmap *sg_mipmap_get(CUmipmappedArray handle);

/* Bytes of one element of a format with that many channels, or 0 when the pair is not valid. */
unsigned sg_array_element(CUarray_format format, unsigned channels);

/*
 * Checks a descriptor as cuArray3DCreate and cuMipmappedArrayCreate do (`levels` 0 for an array).
 */
CUresult sg_array_check(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels);

/*
 * A mipmapped array over memory that exists already, for external memory: level after level from
 * `address` on. Whole or nothing.
 */
CUresult sg_mipmap_over(struct sg_context *context, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                        unsigned levels, CUdeviceptr address, size_t size,
                        struct sg_mipmap **mipmap);
void sg_mipmap_free(struct sg_mipmap *mipmap);

#endif
