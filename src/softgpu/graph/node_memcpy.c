/* Copy nodes: like copies in streams, except that empty ones are refused. */
#include "softgpu/copy/copy.h"
#include "softgpu/graph/dot.h"
#include "softgpu/graph/node_type.h"

#include <inttypes.h>

static CUresult resolve(struct sg_graph *graph, CUgraphNodeParams *params) {
    (void)graph;
    return sg_params_resolve_optional(&params->memcpy.copyCtx);
}

static CUresult check_operands(const CUgraphNodeParams *params) {
    return sg_copy_check_3d(params->memcpy.copyCtx, &params->memcpy.copyParams, sg_graph_memory_is);
}

static CUresult check_update(const CUgraphNodeParams *params) {
    const CUDA_MEMCPY3D *copy = &params->memcpy.copyParams;
    if (params->memcpy.flags || !copy->WidthInBytes || !copy->Height || !copy->Depth)
        return CUDA_ERROR_INVALID_VALUE;
    return check_operands(params);
}

static CUresult check(const CUgraphNodeParams *params) {
    return params->memcpy.reserved ? CUDA_ERROR_INVALID_VALUE : check_update(params);
}

/* ---- Updates keep memory kinds and the number of dimensions; of rows, the whole shape -------- */

static int dimensions(const CUDA_MEMCPY3D *copy) {
    return copy->Depth > 1 ? 3 : copy->Height > 1 ? 2 : 1;
}

static bool end_allows(CUmemorytype now_type, CUdeviceptr now, CUmemorytype type,
                       CUdeviceptr wanted) {
    return now_type == type && (type == CU_MEMORYTYPE_HOST || sg_params_same_device(now, wanted));
}

static bool same_rows(const CUDA_MEMCPY3D *now, const CUDA_MEMCPY3D *wanted) {
    return now->WidthInBytes == wanted->WidthInBytes && now->Height == wanted->Height &&
           now->Depth == wanted->Depth && now->srcXInBytes == wanted->srcXInBytes &&
           now->srcY == wanted->srcY && now->srcZ == wanted->srcZ &&
           now->srcPitch == wanted->srcPitch && now->srcHeight == wanted->srcHeight &&
           now->dstXInBytes == wanted->dstXInBytes && now->dstY == wanted->dstY &&
           now->dstZ == wanted->dstZ && now->dstPitch == wanted->dstPitch &&
           now->dstHeight == wanted->dstHeight;
}

static CUgraphExecUpdateResult compare(const CUgraphNodeParams *now_params,
                                       const CUgraphNodeParams *wanted_params) {
    const CUDA_MEMCPY3D *now = &now_params->memcpy.copyParams;
    const CUDA_MEMCPY3D *wanted = &wanted_params->memcpy.copyParams;
    return sg_params_judged(
        end_allows(now->dstMemoryType, now->dstDevice, wanted->dstMemoryType, wanted->dstDevice) &&
        end_allows(now->srcMemoryType, now->srcDevice, wanted->srcMemoryType, wanted->srcDevice) &&
        dimensions(now) == dimensions(wanted) && (dimensions(now) == 1 || same_rows(now, wanted)));
}

/* ---- Launches from the device ---------------------------------------------------------------- */

static bool reachable(CUmemorytype type, CUdeviceptr device, const void *host) {
    CUdeviceptr address = type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device;
    enum sg_where where = sg_place_at(address, 1).where;
    return type != CU_MEMORYTYPE_ARRAY && (where == SG_WHERE_DEVICE || where == SG_WHERE_HOST);
}

static bool device_reaches(const CUgraphNodeParams *params) {
    const CUDA_MEMCPY3D *copy = &params->memcpy.copyParams;
    return reachable(copy->dstMemoryType, copy->dstDevice, copy->dstHost) &&
           reachable(copy->srcMemoryType, copy->srcDevice, copy->srcHost);
}

/* ---- Work ------------------------------------------------------------------------------------ */

static CUresult make(struct sg_context *context, const struct sg_exec_node *node,
                     struct sg_op **op) {
    return sg_copy_make_3d(context, &node->params.memcpy.copyParams, op);
}

/* ---- As text --------------------------------------------------------------------------------- */

static const char *side(CUmemorytype type) {
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        return "host";
    case CU_MEMORYTYPE_DEVICE:
        return "device";
    case CU_MEMORYTYPE_ARRAY:
        return "array";
    default:
        return "unified";
    }
}

static void draw(const struct sg_picture *picture, const struct sg_node *node) {
    const CUDA_MEMCPY3D *copy = &node->params.memcpy.copyParams;
    fprintf(picture->out, "|%s to %s", side(copy->srcMemoryType), side(copy->dstMemoryType));
    if (!sg_picture_wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
        return;
    const void *host_from = copy->srcHost, *host_to = copy->dstHost;
    bool from_host = copy->srcMemoryType == CU_MEMORYTYPE_HOST;
    bool to_host = copy->dstMemoryType == CU_MEMORYTYPE_HOST;
    fprintf(picture->out, "|from: 0x%" PRIx64 " pitch %zu height %zu at %zu, %zu, %zu",
            (uint64_t)(from_host ? (uintptr_t)host_from : copy->srcDevice), copy->srcPitch,
            copy->srcHeight, copy->srcXInBytes, copy->srcY, copy->srcZ);
    fprintf(picture->out, "|to: 0x%" PRIx64 " pitch %zu height %zu at %zu, %zu, %zu",
            (uint64_t)(to_host ? (uintptr_t)host_to : copy->dstDevice), copy->dstPitch,
            copy->dstHeight, copy->dstXInBytes, copy->dstY, copy->dstZ);
    fprintf(picture->out, "|size: %zu, %zu, %zu", copy->WidthInBytes, copy->Height, copy->Depth);
}

const struct sg_node_type sg_node_memcpy = {
    .name = "MEMCPY",
    .runtime_name = "cudaGraphNodeTypeMemcpy",
    .size = SG_NODE_SIZE(memcpy),
    .context = SG_NODE_OFFSET(memcpy.copyCtx),
    .runs_in_context = true,
    .can_be_disabled = true,
    .launches_on_device = true,
    .flat = true,
    .resolve = resolve,
    .check = check,
    .check_update = check_update,
    .compare = compare,
    .draw = draw,
    .check_operands = check_operands,
    .device_reaches = device_reaches,
    .make = make,
    .discard = sg_copy_discard, /* it may contain the tiles of sparse arrays */
};
