/* cuMemcpy2D, cuMemcpy3D and their variants: boxes of memory and of arrays. */
#include "softgpu/copy/copy.h"
#include "softgpu/core/calls.h"

/* Levels of detail of memory and CU_DEVICE_ATTRIBUTE_MAX_PITCH are not checked, as on an H200. */

/* One end as the descriptors specify it. */
struct end {
    size_t x, y, z, level;
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    size_t pitch, height; /* height: rows per layer; 0 in two dimensions */
};

static CUresult base_of(const struct end *end, struct sg_side *side) {
    switch (end->type) {
    case CU_MEMORYTYPE_HOST:
        side->at.address = (uintptr_t)end->host;
        side->role = SG_ROLE_HOST;
        return CUDA_SUCCESS;
    case CU_MEMORYTYPE_DEVICE:
        side->at.address = end->device;
        side->role = SG_ROLE_DEVICE;
        return CUDA_SUCCESS;
    case CU_MEMORYTYPE_UNIFIED:
        side->at.address = end->device;
        side->role = SG_ROLE_ANY;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult sg_side_in_rows(struct sg_side *side, const struct sg_box *box, const size_t offset[3],
                         size_t pitch, size_t rows) {
    size_t x = offset[0], y = offset[1], z = offset[2];
    if (!pitch && __builtin_add_overflow(x, box->width, &pitch))
        return CUDA_ERROR_INVALID_VALUE;
    if (!rows && __builtin_add_overflow(y, box->height, &rows))
        return CUDA_ERROR_INVALID_VALUE;
    if (pitch < box->width || x > pitch - box->width)
        return CUDA_ERROR_INVALID_VALUE;
    if (rows < box->height || y > rows - box->height || !side->at.address)
        return CUDA_ERROR_INVALID_VALUE;
    size_t distance, part;
    bool overflow = __builtin_mul_overflow(pitch, rows, &side->layer) ||
                    __builtin_mul_overflow(z, side->layer, &distance) ||
                    __builtin_mul_overflow(y, pitch, &part) ||
                    __builtin_add_overflow(distance, part, &distance) ||
                    __builtin_add_overflow(distance, x, &distance) ||
                    __builtin_add_overflow(side->at.address, distance, &side->at.address);
    side->pitch = pitch;
    return overflow ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult place_of(const struct end *end, const struct sg_box *box, struct sg_side *side) {
    const size_t offset[3] = {end->x, end->y, end->z};
    if (end->type == CU_MEMORYTYPE_ARRAY && end->level)
        return CUDA_ERROR_INVALID_VALUE;
    if (end->type == CU_MEMORYTYPE_ARRAY)
        return sg_side_in_array(side, box, offset, end->array);
    CUresult result = base_of(end, side);
    if (result == CUDA_SUCCESS)
        result = sg_side_in_rows(side, box, offset, end->pitch, end->height);
    return result;
}

static bool empty(const struct sg_box *box) {
    return box->width == 0 || box->height == 0 || box->depth == 0;
}

static CUresult copy_ends(const struct end *to, const struct end *from, struct sg_box box,
                          CUstream stream, enum sg_sync_mode mode) {
    if (!empty(&box)) {
        /* As on an H200, whether the stream may be used comes before the ends. */
        struct sg_stream *found;
        CUresult result = sg_stream_find_valid(stream, &found);
        if (result == CUDA_SUCCESS)
            result = place_of(to, &box, &box.to);
        if (result == CUDA_SUCCESS)
            result = place_of(from, &box, &box.from);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return sg_copy(box, stream, mode);
}

static CUresult no_descriptor(void) {
    return sg_context_peek() ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
}

static void ends_of_3d(const CUDA_MEMCPY3D *copy, struct end *to, struct end *from,
                       struct sg_box *box) {
    *to = (struct end){.x = copy->dstXInBytes,
                       .y = copy->dstY,
                       .z = copy->dstZ,
                       .level = copy->dstLOD,
                       .type = copy->dstMemoryType,
                       .host = copy->dstHost,
                       .device = copy->dstDevice,
                       .array = copy->dstArray,
                       .pitch = copy->dstPitch,
                       .height = copy->dstHeight};
    *from = (struct end){.x = copy->srcXInBytes,
                         .y = copy->srcY,
                         .z = copy->srcZ,
                         .level = copy->srcLOD,
                         .type = copy->srcMemoryType,
                         .host = copy->srcHost,
                         .device = copy->srcDevice,
                         .array = copy->srcArray,
                         .pitch = copy->srcPitch,
                         .height = copy->srcHeight};
    *box =
        (struct sg_box){.width = copy->WidthInBytes, .height = copy->Height, .depth = copy->Depth};
}

static CUresult copy_3d(const CUDA_MEMCPY3D *copy, CUstream stream, enum sg_sync_mode mode) {
    struct end to, from;
    struct sg_box box;
    if (!copy)
        return no_descriptor();
    ends_of_3d(copy, &to, &from, &box);
    box.copy = copy;
    return copy_ends(&to, &from, box, stream, mode);
}

static CUDA_MEMCPY3D as_3d(const CUDA_MEMCPY2D *copy) {
    return (CUDA_MEMCPY3D){.srcXInBytes = copy->srcXInBytes,
                           .srcY = copy->srcY,
                           .srcMemoryType = copy->srcMemoryType,
                           .srcHost = copy->srcHost,
                           .srcDevice = copy->srcDevice,
                           .srcArray = copy->srcArray,
                           .srcPitch = copy->srcPitch,
                           .dstXInBytes = copy->dstXInBytes,
                           .dstY = copy->dstY,
                           .dstMemoryType = copy->dstMemoryType,
                           .dstHost = copy->dstHost,
                           .dstDevice = copy->dstDevice,
                           .dstArray = copy->dstArray,
                           .dstPitch = copy->dstPitch,
                           .WidthInBytes = copy->WidthInBytes,
                           .Height = copy->Height,
                           .Depth = 1};
}

static CUresult copy_2d(const CUDA_MEMCPY2D *copy, CUstream stream, enum sg_sync_mode mode) {
    if (!copy)
        return no_descriptor();
    CUDA_MEMCPY3D solid = as_3d(copy);
    return copy_3d(&solid, stream, mode);
}

/* ---- Nodes of graphs ------------------------------------------------------------------------ */

static CUresult box_of_3d(const CUDA_MEMCPY3D *copy, struct sg_box *box) {
    struct end to, from;
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    ends_of_3d(copy, &to, &from, box);
    if (empty(box))
        return CUDA_SUCCESS;
    CUresult result = place_of(&to, box, &box->to);
    return result == CUDA_SUCCESS ? place_of(&from, box, &box->from) : result;
}

static bool is_promised(const struct sg_side *side, sg_promised *promised) {
    return side->role != SG_ROLE_HOST && promised(side->at.address);
}

CUresult sg_copy_check_3d(CUcontext context, const CUDA_MEMCPY3D *copy, sg_promised *promised) {
    struct sg_box box;
    CUresult result = box_of_3d(copy, &box);
    if (result != CUDA_SUCCESS)
        return result;
    if (empty(&box))
        return CUDA_ERROR_INVALID_VALUE;
    if (is_promised(&box.to, promised) || is_promised(&box.from, promised))
        return CUDA_SUCCESS;
    result = sg_box_check(&box);
    const struct sg_context *found = sg_copy_node_context(context);
    bool closed = result == CUDA_SUCCESS && found && !sg_box_pools_open(found, &box);
    return closed ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult sg_copy_make_3d(struct sg_context *context, const CUDA_MEMCPY3D *copy, struct sg_op **op) {
    struct sg_box box;
    (void)context;
    CUresult result = box_of_3d(copy, &box);
    if (result != CUDA_SUCCESS)
        return result;
    if (empty(&box)) {
        *op = sg_op_new(NULL);
    } else {
        sg_box_look(&box);
        *op = sg_copy_op(&box);
    }
    return *op ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- Rows of functions.def ------------------------------------------------------------------ */

CUresult sg_cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy) {
    return copy_2d(pCopy, NULL, SG_SYNC);
}

/* Alignment does not matter here, so this is the same. */
CUresult sg_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy) {
    return copy_2d(pCopy, NULL, SG_SYNC);
}

CUresult sg_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream) {
    return copy_2d(pCopy, hStream, SG_ASYNC);
}

CUresult sg_cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy) {
    return copy_3d(pCopy, NULL, SG_SYNC);
}

CUresult sg_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream) {
    return copy_3d(pCopy, hStream, SG_ASYNC);
}

static CUresult copy_peer(const CUDA_MEMCPY3D_PEER *peer, CUstream stream, enum sg_sync_mode mode) {
    if (!peer)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_context *into, *out_of;
    CUresult result = sg_context_from_handle(peer->dstContext, &into);
    if (result == CUDA_SUCCESS)
        result = sg_context_from_handle(peer->srcContext, &out_of);
    if (result == CUDA_SUCCESS && mode == SG_ASYNC)
        result = sg_copy_refuse_capture(stream);
    if (result != CUDA_SUCCESS)
        return result;
    CUDA_MEMCPY3D copy = {.srcXInBytes = peer->srcXInBytes,
                          .srcY = peer->srcY,
                          .srcZ = peer->srcZ,
                          .srcLOD = peer->srcLOD,
                          .srcMemoryType = peer->srcMemoryType,
                          .srcHost = peer->srcHost,
                          .srcDevice = peer->srcDevice,
                          .srcArray = peer->srcArray,
                          .srcPitch = peer->srcPitch,
                          .srcHeight = peer->srcHeight,
                          .dstXInBytes = peer->dstXInBytes,
                          .dstY = peer->dstY,
                          .dstZ = peer->dstZ,
                          .dstLOD = peer->dstLOD,
                          .dstMemoryType = peer->dstMemoryType,
                          .dstHost = peer->dstHost,
                          .dstDevice = peer->dstDevice,
                          .dstArray = peer->dstArray,
                          .dstPitch = peer->dstPitch,
                          .dstHeight = peer->dstHeight,
                          .WidthInBytes = peer->WidthInBytes,
                          .Height = peer->Height,
                          .Depth = peer->Depth};
    struct end to, from;
    struct sg_box box;
    ends_of_3d(&copy, &to, &from, &box);
    box.copy = &copy;
    box.to.named = into;
    box.from.named = out_of;
    return copy_ends(&to, &from, box, stream, mode);
}

CUresult sg_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy) {
    return copy_peer(pCopy, NULL, SG_SYNC);
}

CUresult sg_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream) {
    return copy_peer(pCopy, hStream, SG_ASYNC);
}
