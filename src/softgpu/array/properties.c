/* The memory requirements of sparse and deferred arrays. */
#include "softgpu/array/internal.h"
#include "softgpu/core/calls.h"

#include <string.h>

static CUresult sparse_properties(const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                  const struct sg_tiles *tiles, unsigned levels,
                                  CUDA_ARRAY_SPARSE_PROPERTIES *properties) {
    if (!(descriptor->Flags & CUDA_ARRAY3D_SPARSE))
        return CUDA_ERROR_INVALID_VALUE;
    /* `reserved` is left unchanged, as on H200. */
    properties->tileExtent.width = tiles->tile_width;
    properties->tileExtent.height = tiles->tile_height;
    properties->tileExtent.depth = tiles->tile_depth;
    properties->miptailFirstLevel = tiles->tail_bytes ? tiles->tail_level : levels;
    properties->miptailSize = tiles->tail_bytes;
    properties->flags =
        tiles->tail_bytes && tiles->single_tail ? CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL : 0;
    return CUDA_SUCCESS;
}

CUresult sg_cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties,
                                       CUarray array) {
    const struct sg_array *found = sg_array_get(array);
    if (!sparseProperties || !found || found->mipmap || !found->view)
        return CUDA_ERROR_INVALID_VALUE;
    return sparse_properties(&found->descriptor, found->view->tiles, 0, sparseProperties);
}

CUresult sg_cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties,
                                                CUmipmappedArray mipmap) {
    const struct sg_mipmap *found = sg_mipmap_get(mipmap);
    if (!sparseProperties || !found || !found->tiles)
        return CUDA_ERROR_INVALID_VALUE;
    return sparse_properties(&found->descriptor, found->tiles, found->level_count,
                             sparseProperties);
}

static CUresult requirements(const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                             const struct sg_tiles *tiles, CUDA_ARRAY_MEMORY_REQUIREMENTS *answer) {
    if (!(descriptor->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING))
        return CUDA_ERROR_INVALID_VALUE;
    memset(answer, 0, sizeof *answer);
    answer->size = tiles->count * SG_TILE;
    answer->alignment = SG_TILE;
    return CUDA_SUCCESS;
}

CUresult sg_cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                         CUarray array, CUdevice device) {
    (void)device; /* H200 accepts any number */
    const struct sg_array *found = sg_array_get(array);
    if (!memoryRequirements || !found || found->mipmap || !found->view)
        return CUDA_ERROR_INVALID_VALUE;
    return requirements(&found->descriptor, found->view->tiles, memoryRequirements);
}

CUresult
sg_cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                         CUmipmappedArray mipmap, CUdevice device) {
    (void)device;
    const struct sg_mipmap *found = sg_mipmap_get(mipmap);
    if (!memoryRequirements || !found || !found->tiles)
        return CUDA_ERROR_INVALID_VALUE;
    return requirements(&found->descriptor, found->tiles, memoryRequirements);
}
