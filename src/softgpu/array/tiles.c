#include "softgpu/array/internal.h"

#include <stdlib.h>

void sg_tiles_ref(struct sg_tiles *tiles) {
    tiles->refs++;
}

void sg_tiles_unref(struct sg_tiles *tiles) {
    if (!tiles || --tiles->refs)
        return;
    /* Only as far as something is mapped: an array of terabytes may have nothing, and gigabytes of
     * pieces that nobody has touched. */
    for (size_t i = 0; i < tiles->count && tiles->mapped > 0; i++)
        if (tiles->pieces[i].phys) {
            sg_phys_unref(tiles->pieces[i].phys);
            tiles->mapped--;
        }
    free(tiles->pieces);
    free(tiles->views);
    free(tiles);
}

/* ---- Looking up ------------------------------------------------------------------------------ */

/* A place in the pieces, and how many bytes from there on are in one row of one piece. */
struct spot {
    size_t piece, offset, left;
};

static struct spot linear_spot(const struct sg_tile_view *view, size_t z, size_t in_slice) {
    size_t at = view->base + z * view->slice + in_slice;
    return (struct spot){view->first + at / SG_TILE, at % SG_TILE, SG_TILE - at % SG_TILE};
}

static struct spot tiled_spot(const struct sg_tile_view *view, size_t z, size_t in_slice) {
    size_t y = in_slice / view->pitch, x = in_slice % view->pitch;
    size_t tile = (z / view->tile_slices * view->down + y / view->tile_rows) * view->across +
                  x / view->tile_bytes;
    size_t row = z % view->tile_slices * view->tile_rows + y % view->tile_rows;
    size_t in_row = x % view->tile_bytes, left = view->tile_bytes - in_row;
    if (left > view->pitch - x)
        left = view->pitch - x;
    return (struct spot){view->first + tile, row * view->tile_bytes + in_row, left};
}

unsigned char *sg_tile_bytes(const struct sg_tile_view *view, size_t offset, size_t want,
                             size_t *span) {
    size_t z = offset / view->layer, in_slice = offset % view->layer;
    struct spot spot =
        view->linear ? linear_spot(view, z, in_slice) : tiled_spot(view, z, in_slice);
    /* Slices of a tail are not adjacent. */
    if (spot.left > view->layer - in_slice)
        spot.left = view->layer - in_slice;
    *span = spot.left < want ? spot.left : want;
    unsigned char *bytes =
        atomic_load_explicit(&view->tiles->pieces[spot.piece].bytes, memory_order_acquire);
    return bytes ? bytes + spot.offset : NULL;
}

/* ---- Laying out ------------------------------------------------------------------------------ */

static unsigned log2_of(size_t bytes) {
    unsigned log = 0;
    while (bytes >>= 1)
        log++;
    return log;
}

/* 64 KiB of elements: the usual shapes, which H200 has too. */
static void choose_tile(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, size_t element,
                        struct sg_tiles *tiles) {
    static const unsigned short flat[][3] = {
        {256, 256, 1}, {256, 128, 1}, {128, 128, 1}, {128, 64, 1}, {64, 64, 1}};
    static const unsigned short deep[][3] = {
        {64, 32, 32}, {32, 32, 32}, {32, 32, 16}, {32, 16, 16}, {16, 16, 16}};
    bool three = descriptor->Depth && !sg_is_layered(descriptor);
    const unsigned short *shape = (three ? deep : flat)[log2_of(element)];
    unsigned block = sg_format_find(descriptor->Format)->block;
    tiles->tile_width = shape[0] * block;
    tiles->tile_height = shape[1] * block;
    tiles->tile_depth = shape[2];
}

static size_t tiles_over(size_t size, size_t tile) {
    return (size + tile - 1) / tile;
}

static bool fills_a_tile(const CUDA_ARRAY3D_DESCRIPTOR *d, const struct sg_tiles *tiles) {
    bool deep = sg_is_layered(d) || d->Depth == 0 || d->Depth >= tiles->tile_depth;
    return d->Width >= tiles->tile_width && d->Height >= tiles->tile_height && deep;
}

/* Sets the view of a level in tiles of its own, from piece `next` on; returns the next piece. */
static size_t lay_level(struct sg_array *level, struct sg_tiles *tiles, size_t next) {
    struct sg_tile_view *view = level->view;
    unsigned block = sg_format_find(level->descriptor.Format)->block;
    view->first = next;
    view->tile_bytes = (size_t)tiles->tile_width / block * level->element;
    view->tile_rows = tiles->tile_height / block;
    view->tile_slices = sg_is_layered(&level->descriptor) ? 1 : tiles->tile_depth;
    view->across = tiles_over(level->width_bytes, view->tile_bytes);
    view->down = tiles_over(level->rows, view->tile_rows);
    return next + view->across * view->down * tiles_over(level->slices, view->tile_slices);
}

/* The levels from `from` on follow each other, once per layer if there are layers: in a tail per
 * layer, or in a tail of all layers if no level has tiles. */
static void lay_linear(struct sg_array *levels, unsigned from, unsigned count,
                       struct sg_tiles *tiles, size_t first) {
    bool layered = sg_is_layered(&levels[0].descriptor);
    size_t base = 0, layers = layered ? levels[0].slices : 1;
    for (unsigned i = from; i < count; i++) {
        levels[i].view->linear = true;
        levels[i].view->first = first;
        levels[i].view->base = base;
        base += sg_array_block_bytes(&levels[i]);
    }
    size_t block = sg_array_block(&levels[from]);
    if (layered)
        base = tiles_over(base, block) * block;
    tiles->single_tail = from == 0;
    tiles->tail_bytes = tiles_over(from == 0 ? base * layers : base, SG_TILE) * SG_TILE;
    for (unsigned i = from; i < count; i++)
        levels[i].view->slice = !layered ? levels[i].layer : from == 0 ? base : tiles->tail_bytes;
}

/* Assigns every level its place; returns the number of pieces. */
static size_t lay_out(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, struct sg_array *levels,
                      unsigned count, struct sg_tiles *tiles) {
    unsigned tail = 0;
    size_t next = 0;
    tiles->faults = (descriptor->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) != 0;
    if (descriptor->Flags & CUDA_ARRAY3D_SPARSE) {
        choose_tile(descriptor, levels[0].element, tiles);
        for (; tail < count && fills_a_tile(&levels[tail].descriptor, tiles); tail++)
            next = lay_level(&levels[tail], tiles, next);
    }
    tiles->tail_level = tail;
    tiles->tail_first = next;
    if (tail == count)
        return next;
    lay_linear(levels, tail, count, tiles, next);
    size_t tails = sg_is_layered(descriptor) && !tiles->single_tail ? levels[0].slices : 1;
    return next + tiles->tail_bytes / SG_TILE * tails;
}

static struct sg_tiles *make(struct sg_array *levels, unsigned count) {
    struct sg_tiles *tiles = calloc(1, sizeof *tiles);
    if (!tiles)
        return NULL;
    tiles->refs = 1;
    tiles->views = calloc(count, sizeof *tiles->views);
    for (unsigned i = 0; tiles->views && i < count; i++) {
        tiles->views[i].tiles = tiles;
        tiles->views[i].pitch = levels[i].pitch;
        tiles->views[i].layer = levels[i].layer;
        levels[i].view = &tiles->views[i];
    }
    return tiles;
}

CUresult sg_tiles_for(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, struct sg_array *levels,
                      unsigned count, struct sg_tiles **tiles) {
    struct sg_tiles *made = make(levels, count);
    if (made && made->views) {
        made->count = lay_out(descriptor, levels, count, made);
        /* Never allocates 0 bytes: every array has bytes. */
        made->pieces = calloc(made->count ? made->count : 1, sizeof *made->pieces);
    }
    if (made && made->pieces) {
        *tiles = made;
        return CUDA_SUCCESS;
    }
    for (unsigned i = 0; i < count; i++)
        levels[i].view = NULL;
    if (made)
        made->count = 0;
    sg_tiles_unref(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
}
