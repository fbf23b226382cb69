/*
 * CUDA arrays: storage with a format and up to three dimensions. Everything here wants the lock.
 *
 * An array's bytes lie at an address of softgpu's that no range of the application's covers, so
 * that copies treat arrays as boxes of rows: `pitch` bytes from row to row, `layer` from slice to
 * slice. Sparse arrays have storage only where tiles are mapped, and arrays of deferred mapping as
 * soon as memory is mapped: these have a `view` of pieces instead of an address (tiles.h).
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
    struct sg_context *context; /* that it dies with, referenced */
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    unsigned element;    /* bytes of an element: format times channels; of a block, if compressed */
    CUdeviceptr address; /* of element (0, 0, 0); 0 for sparse arrays */
    size_t width_bytes, rows, slices; /* as stored: block-compressed formats count blocks */
    size_t pitch, layer;
    struct sg_mipmap *mipmap; /* whose level it is, or NULL */
    unsigned level;
    unsigned users; /* texture and surface objects, external memory, graph nodes */

    bool gone;                        /* its context has ended: only the handle is left */
    struct sg_array_storage *storage; /* owned: its own, of no level or plane */
    struct sg_tile_view *view;        /* of sparse and deferred arrays, else NULL */
    struct sg_array *whole;           /* whose plane it is, or NULL */
    struct sg_array *planes;          /* plane_count of them; handles like those of levels */
    unsigned plane_count;
};

struct sg_mipmap {
    uint64_t handle;
    struct sg_context *context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    bool gone; /* its context has ended: only the handle is left */
    unsigned level_count;
    struct sg_array *levels; /* level_count of them; handles are made when first asked for */
    struct sg_array_storage *storage; /* owned; NULL over memory of others, and for tiles */
    struct sg_tiles *tiles;           /* sparse and deferred ones */
};

/* NULL for a handle that is none, or whose context has ended. */
struct sg_array *sg_array_get(CUarray handle);
struct sg_mipmap *sg_mipmap_get(CUmipmappedArray handle);
/* The same with the reason: INVALID_HANDLE or CONTEXT_IS_DESTROYED. */
CUresult sg_array_find(CUarray handle, struct sg_array **array);

/* Bytes of one element of a format with that many channels, or 0 when the pair is not valid. */
unsigned sg_array_element(CUarray_format format, unsigned channels);

/* What copies begin and end at, in bytes: a block of a compressed format, else 1. */
unsigned sg_array_unit(const struct sg_array *array);

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

/* Ends the arrays and mipmapped arrays of a context. */
void sg_arrays_context_end(struct sg_context *context);

extern const struct sg_chapter sg_array_chapter;

#endif
