/*
 * CUDA arrays: storage with a format and up to three dimensions. Everything here requires the lock.
 *
 * An array's bytes are at an address of softgpu's that no range of the application covers, so that
 * copies can treat arrays as boxes of rows: `pitch` bytes from row to row, `layer` from slice to
 * slice. Sparse arrays have storage only where tiles are mapped, and arrays of deferred mapping
 * only once memory is mapped: these have a `view` of pieces instead of an address (tiles.h).
 */
#ifndef SG_ARRAY_ARRAY_H
#define SG_ARRAY_ARRAY_H

#include "softgpu/address/memory.h"
#include "softgpu/context/context.h"
#include "softgpu/core/chapter.h"

struct sg_mipmap;
struct sg_array_storage;
struct sg_tile_view;

struct sg_array {
    uint64_t handle;
    struct sg_context *context; /* whose end is the array's; referenced */
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    unsigned element;    /* bytes of an element: format times channels; compressed: of a block */
    CUdeviceptr address; /* of element (0, 0, 0); 0 for sparse arrays */
    size_t width_bytes, rows, slices; /* as stored: block-compressed formats count blocks */
    size_t pitch, layer;
    struct sg_mipmap *mipmap; /* of which it is a level, or NULL */
    unsigned level;
    unsigned users; /* texture and surface objects, external memory, graph nodes */

    bool gone;                        /* its context has ended: only the handle remains */
    struct sg_array_storage *storage; /* owned; NULL for levels and planes */
    struct sg_tile_view *view;        /* of sparse and deferred arrays, else NULL */
    struct sg_array *whole;           /* of which it is a plane, or NULL */
    struct sg_array *planes;          /* plane_count of them; handles work as for levels */
    unsigned plane_count;
};

struct sg_mipmap {
    uint64_t handle;
    struct sg_context *context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    bool gone; /* its context has ended: only the handle remains */
    unsigned level_count;
    struct sg_array *levels;          /* level_count of them; handles are made on first request */
    struct sg_array_storage *storage; /* owned; NULL for memory of others and for tiles */
    struct sg_tiles *tiles;           /* of sparse and deferred arrays */
};

/* NULL if the handle is not an array's, or its context has ended. */
struct sg_array *sg_array_get(CUarray handle);
struct sg_mipmap *sg_mipmap_get(CUmipmappedArray handle);
/* The same, with the reason: INVALID_HANDLE or CONTEXT_IS_DESTROYED. */
CUresult sg_array_find(CUarray handle, struct sg_array **array);

/* Bytes per element of a format with that many channels, or 0 if the pair is invalid. */
unsigned sg_array_element(CUarray_format format, unsigned channels);

/* The unit, in bytes, that copies begin and end at: a block of a compressed format, else 1. */
unsigned sg_array_unit(const struct sg_array *array);

/*
 * Checks a descriptor as cuArray3DCreate and cuMipmappedArrayCreate do (`levels` 0 for an array).
 */
CUresult sg_array_check(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels);

/*
 * Creates a mipmapped array over existing memory, for external memory: level after level, starting
 * at `address`. All or nothing.
 */
CUresult sg_mipmap_over(struct sg_context *context, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                        unsigned levels, CUdeviceptr address, size_t size,
                        struct sg_mipmap **mipmap);

/* Ends the arrays and mipmapped arrays of a context. */
void sg_arrays_context_end(struct sg_context *context);

extern const struct sg_chapter sg_array_chapter;

#endif
