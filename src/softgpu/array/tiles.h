/*
 * Memory in pieces: what sparse and deferred arrays have instead of an address.
 *
 * A piece is 64 KiB of the array, mapped or not: one tile of a sparse array, or the next 64 KiB of
 * a mip tail or of a deferred array. The pieces of a mipmapped array are numbered across all its
 * levels. Copies look them up while they run, without the lock: mapping replaces one pointer, and
 * memory that was mapped is reused only after the work that may still see it (sg_phys_unref).
 */
#ifndef SG_ARRAY_TILES_H
#define SG_ARRAY_TILES_H

#include "softgpu/array/array.h"

#define SG_TILE ((size_t)64 << 10)

struct sg_piece {
    _Atomic(unsigned char *) bytes; /* NULL where nothing is mapped */
    struct sg_phys *phys;           /* referenced; NULL where nothing is mapped */
};

struct sg_tiles {
    unsigned refs;        /* the array's, and those of pending copies and mappings */
    size_t count, mapped; /* pieces, and those that have memory */
    struct sg_piece *pieces;
    struct sg_tile_view *views; /* one per level */
    /* The sparse properties and, for deferred arrays, all there is. */
    unsigned tile_width, tile_height, tile_depth; /* in elements; 0 for deferred arrays */
    unsigned tail_level;                          /* the first level in the tail */
    size_t tail_bytes;                            /* of one tail, a multiple of SG_TILE; or 0 */
    size_t tail_first;                            /* its first piece */
    bool single_tail;                             /* one tail for all layers */
    bool faults; /* deferred arrays: access to unmapped pieces faults instead of being ignored */
};

/* Where one array or level is in the pieces. Offsets count bytes as if the array were linear: z *
 * layer + y * pitch + x. */
struct sg_tile_view {
    struct sg_tiles *tiles; /* whose view it is; lives as long */
    size_t pitch, layer;    /* of the linear offsets */
    size_t first;           /* its first piece */
    bool linear;            /* in a tail or deferred: bytes are consecutive */
    size_t base, slice;     /* linear: of the first byte in the pieces; from slice to slice */
    size_t tile_bytes, tile_rows, tile_slices; /* not linear: of one tile */
    size_t across, down;                       /* tiles in a row of tiles, and rows of tiles */
};

void sg_tiles_ref(struct sg_tiles *tiles);
/* Unmaps all pieces when the count reaches 0. */
void sg_tiles_unref(struct sg_tiles *tiles);

/* Creates the pieces, with one reference, and the views of an array or of all levels of a mipmapped
 * array. */
CUresult sg_tiles_for(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, struct sg_array *levels,
                      unsigned count, struct sg_tiles **tiles);

/*
 * For running work, without the lock: the bytes at a linear offset, or NULL where nothing is
 * mapped; *span (<= want) is the number of bytes for which that holds.
 */
unsigned char *sg_tile_bytes(const struct sg_tile_view *view, size_t offset, size_t want,
                             size_t *span);

#endif
