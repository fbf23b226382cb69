/*
 * cuMemMapArrayAsync: maps memory of a tile pool under tiles of sparse arrays, mip tails and
 * deferred arrays. The list is checked as a whole; all edits are one operation of the stream.
 */
#include "base/growing_array.h"
#include "softgpu/array/internal.h"
#include "softgpu/core/calls.h"
#include "softgpu/memory/vmm.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/stream.h"

#include <stdlib.h>

/* One piece that will be mapped to `bytes`, or unmapped. */
struct edit {
    struct sg_tiles *tiles; /* referenced */
    size_t piece;
    struct sg_phys *phys; /* referenced */
    unsigned char *bytes;
};

struct edits {
    struct edit *list;
    size_t count, room;
};

static void drop_edits(struct edits *edits) {
    for (size_t i = 0; i < edits->count; i++) {
        if (edits->list[i].phys)
            sg_phys_unref(edits->list[i].phys);
        sg_tiles_unref(edits->list[i].tiles);
    }
    free(edits->list);
}

/* The memory of one entry of the list: pieces consume it in order. */
struct source {
    struct sg_phys *phys; /* NULL: unmap */
    size_t offset;
};

static CUresult add_edit(struct edits *edits, struct sg_tiles *tiles, size_t piece,
                         struct source *source) {
    if (source->phys && source->phys->size - source->offset < SG_TILE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!GM_RESERVE(edits->list, edits->room, edits->count + 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct edit *edit = &edits->list[edits->count++];
    *edit = (struct edit){.tiles = tiles, .piece = piece, .phys = source->phys};
    sg_tiles_ref(tiles);
    if (source->phys) {
        sg_phys_ref(source->phys);
        edit->bytes = source->phys->host + source->offset;
        source->offset += SG_TILE;
    }
    return CUDA_SUCCESS;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

/* What an entry refers to. */
struct target {
    const CUDA_ARRAY3D_DESCRIPTOR *descriptor;
    struct sg_array *levels;
    unsigned level_count;
    struct sg_tiles *tiles;
};

static CUresult find_target(const CUarrayMapInfo *info, struct target *target) {
    if (info->resourceType == CU_RESOURCE_TYPE_ARRAY) {
        struct sg_array *array = sg_array_get(info->resource.array);
        if (!array || !array->view || array->mipmap)
            return CUDA_ERROR_INVALID_VALUE;
        *target = (struct target){&array->descriptor, array, 1, array->view->tiles};
        return CUDA_SUCCESS;
    }
    if (info->resourceType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_mipmap *mipmap = sg_mipmap_get(info->resource.mipmap);
    if (!mipmap || !mipmap->tiles)
        return CUDA_ERROR_INVALID_VALUE;
    *target =
        (struct target){&mipmap->descriptor, mipmap->levels, mipmap->level_count, mipmap->tiles};
    return CUDA_SUCCESS;
}

static CUresult find_source(const CUarrayMapInfo *info, int device, struct source *source) {
    *source = (struct source){NULL, 0};
    if (info->memHandleType != CU_MEM_HANDLE_TYPE_GENERIC || info->flags || info->reserved[0] ||
        info->reserved[1] || info->deviceBitMask != 1u << device)
        return CUDA_ERROR_INVALID_VALUE;
    if (info->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
        return CUDA_SUCCESS; /* H200 does not check the handle */
    if (info->memOperationType != CU_MEM_OPERATION_TYPE_MAP)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_memory *memory = sg_memory_from_handle(info->memHandle.memHandle);
    if (!memory || !(memory->phys->prop.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) ||
        memory->phys->device != device)
        return CUDA_ERROR_INVALID_VALUE;
    if (info->offset % SG_TILE || info->offset >= memory->phys->size)
        return CUDA_ERROR_INVALID_VALUE;
    *source = (struct source){memory->phys, (size_t)info->offset};
    return CUDA_SUCCESS;
}

static bool on_tiles(unsigned offset, unsigned extent, unsigned tile, size_t size) {
    size_t end = (size_t)offset + extent;
    return extent && offset % tile == 0 && (end % tile == 0 || end == size) && end <= size;
}

static CUresult add_tiles(struct edits *edits, const struct target *target,
                          const CUarrayMapInfo *info, struct source *source) {
    const struct sg_tiles *tiles = target->tiles;
    unsigned level = info->subresource.sparseLevel.level;
    if (level >= target->level_count || level >= tiles->tail_level)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_array *array = &target->levels[level];
    const struct sg_tile_view *view = array->view;
    const CUDA_ARRAY3D_DESCRIPTOR *d = &array->descriptor;
    bool layered = sg_is_layered(d);
    unsigned layer = info->subresource.sparseLevel.layer;
    unsigned x = info->subresource.sparseLevel.offsetX, y = info->subresource.sparseLevel.offsetY,
             z = info->subresource.sparseLevel.offsetZ;
    unsigned width = info->subresource.sparseLevel.extentWidth,
             height = info->subresource.sparseLevel.extentHeight,
             depth = info->subresource.sparseLevel.extentDepth;
    if (layer >= (layered ? array->slices : 1) ||
        !on_tiles(x, width, tiles->tile_width, d->Width) ||
        !on_tiles(y, height, tiles->tile_height, d->Height) ||
        !on_tiles(z, depth, tiles->tile_depth, layered ? 1 : array->slices))
        return CUDA_ERROR_INVALID_VALUE;
    size_t left = x / tiles->tile_width, top = y / tiles->tile_height,
           front = layered ? layer : z / tiles->tile_depth;
    size_t across = (width + tiles->tile_width - 1) / tiles->tile_width,
           down = (height + tiles->tile_height - 1) / tiles->tile_height,
           deep = (depth + tiles->tile_depth - 1) / tiles->tile_depth;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < across * down * deep && result == CUDA_SUCCESS; i++) {
        size_t row = (front + i / (across * down)) * view->down + top + i / across % down;
        size_t piece = view->first + row * view->across + left + i % across;
        result = add_edit(edits, target->tiles, piece, source);
    }
    return result;
}

static CUresult add_pieces(struct edits *edits, struct sg_tiles *tiles, size_t first, size_t count,
                           struct source *source) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = add_edit(edits, tiles, first + i, source);
    return result;
}

static CUresult add_tail(struct edits *edits, const struct target *target,
                         const CUarrayMapInfo *info, struct source *source) {
    const struct sg_tiles *tiles = target->tiles;
    bool tails = sg_is_layered(target->descriptor) && !tiles->single_tail;
    size_t layers = tails ? target->levels[0].slices : 1;
    unsigned long long offset = info->subresource.miptail.offset,
                       size = info->subresource.miptail.size;
    unsigned layer = info->subresource.miptail.layer;
    if (!size || offset % SG_TILE || size % SG_TILE || layer >= layers ||
        offset >= tiles->tail_bytes || size > tiles->tail_bytes - offset)
        return CUDA_ERROR_INVALID_VALUE;
    size_t first = tiles->tail_first + layer * (tiles->tail_bytes / SG_TILE) + offset / SG_TILE;
    return add_pieces(edits, target->tiles, first, size / SG_TILE, source);
}

static CUresult add_entry(struct edits *edits, const CUarrayMapInfo *info, int device) {
    struct target target;
    struct source source;
    CUresult result = find_target(info, &target);
    if (result == CUDA_SUCCESS)
        result = find_source(info, device, &source);
    if (result != CUDA_SUCCESS)
        return result;
    if (target.descriptor->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING)
        return add_pieces(edits, target.tiles, 0, target.tiles->count, &source);
    switch (info->subresourceType) {
    case CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL:
        return add_tiles(edits, &target, info, &source);
    case CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL:
        return add_tail(edits, &target, info, &source);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* ---- The operation --------------------------------------------------------------------------- */

static struct edits *edits_of(struct sg_op *op) {
    return (void *)op->data.bytes;
}

/* Under the lock, when the stream gets there. The previous memory moves to the edit, which releases
 * it. */
static void apply(struct sg_op *op) {
    struct edits *edits = edits_of(op);
    for (size_t i = 0; i < edits->count; i++) {
        struct edit *edit = &edits->list[i];
        struct sg_piece *piece = &edit->tiles->pieces[edit->piece];
        struct sg_phys *before = piece->phys;
        atomic_store_explicit(&piece->bytes, edit->bytes, memory_order_release);
        edit->tiles->mapped += edit->phys ? 1 : 0;
        edit->tiles->mapped -= before ? 1 : 0;
        piece->phys = edit->phys;
        edit->phys = before;
    }
    drop_edits(edits);
}

static CUresult submit(struct sg_stream *stream, struct edits *edits) {
    struct sg_op *op = sg_op_new(NULL);
    if (!op) {
        drop_edits(edits);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *edits_of(op) = *edits;
    op->finish = apply;
    CUresult result = sg_stream_submit(stream, op);
    if (result != CUDA_SUCCESS)
        drop_edits(edits);
    sg_schedule_chance();
    return result;
}

CUresult sg_cuMemMapArrayAsync(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream) {
    struct sg_stream *stream;
    if (!mapInfoList || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_stream_from_handle(hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct edits edits = {NULL, 0, 0};
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = add_entry(&edits, &mapInfoList[i], stream->context->device);
    if (result != CUDA_SUCCESS) {
        drop_edits(&edits);
        return result;
    }
    if (stream->capture) {
        drop_edits(&edits);
        return sg_capture_refuse(stream);
    }
    return submit(stream, &edits);
}
