/* Mipmapped arrays: levels of half the size each, in one block of memory. */
#include "softgpu/array/array.h"

#include "softgpu/array/internal.h"
#include "softgpu/context/address_32.h"
#include "softgpu/core/calls.h"
#include "softgpu/stream/stream.h"

#include <stdlib.h>

/* On failure INVALID_HANDLE or CONTEXT_IS_DESTROYED. */
static CUresult find(CUmipmappedArray handle, struct sg_mipmap **mipmap) {
    *mipmap = sg_handle_get(SG_KIND_MIPMAP, SG_HANDLE_VALUE(handle));
    if (!*mipmap)
        return CUDA_ERROR_INVALID_HANDLE;
    return (*mipmap)->gone ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

struct sg_mipmap *sg_mipmap_get(CUmipmappedArray handle) {
    struct sg_mipmap *mipmap;
    return find(handle, &mipmap) == CUDA_SUCCESS ? mipmap : NULL;
}

static void free_mipmap(struct sg_mipmap *mipmap) {
    sg_mipmap_empty(mipmap);
    free(mipmap);
}

/* With its levels, which have no memory yet; NULL when out of memory. */
static struct sg_mipmap *shaped(struct sg_context *context,
                                const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels) {
    struct sg_mipmap *mipmap = calloc(1, sizeof *mipmap);
    if (!mipmap)
        return NULL;
    mipmap->context = context;
    mipmap->descriptor = *descriptor;
    sg_context_ref(context);
    mipmap->levels = calloc(levels, sizeof *mipmap->levels);
    for (; mipmap->levels && mipmap->level_count < levels; mipmap->level_count++) {
        struct sg_array *level = &mipmap->levels[mipmap->level_count];
        CUDA_ARRAY3D_DESCRIPTOR d = sg_level_descriptor(descriptor, mipmap->level_count);
        if (sg_array_init(level, context, &d) != CUDA_SUCCESS)
            break;
        level->mipmap = mipmap;
        level->level = mipmap->level_count;
    }
    if (mipmap->level_count == levels)
        return mipmap;
    free_mipmap(mipmap);
    return NULL;
}

static size_t bytes_of(const struct sg_mipmap *mipmap) {
    size_t bytes = 0;
    for (unsigned i = 0; i < mipmap->level_count; i++)
        bytes += sg_array_bytes(&mipmap->levels[i]);
    return bytes;
}

static void place(struct sg_mipmap *mipmap, CUdeviceptr address) {
    for (unsigned i = 0; i < mipmap->level_count; i++) {
        sg_array_place(&mipmap->levels[i], address);
        address += sg_array_bytes(&mipmap->levels[i]);
    }
}

static CUresult publish(struct sg_mipmap *mipmap) {
    mipmap->handle = sg_handle_new(SG_KIND_MIPMAP, mipmap);
    return mipmap->handle ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult give_memory(struct sg_mipmap *mipmap) {
    if (sg_is_tiled(&mipmap->descriptor))
        return sg_tiles_for(&mipmap->descriptor, mipmap->levels, mipmap->level_count,
                            &mipmap->tiles);
    CUresult result = sg_storage_new(mipmap->context->device, bytes_of(mipmap), &mipmap->storage);
    if (result == CUDA_SUCCESS)
        place(mipmap, sg_storage_address(mipmap->storage));
    return result;
}

CUresult sg_mipmap_over(struct sg_context *context, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                        unsigned levels, CUdeviceptr address, size_t size,
                        struct sg_mipmap **mipmap) {
    CUresult result = sg_descriptor_check(descriptor, levels, true);
    if (result != CUDA_SUCCESS)
        return result;
    if (levels == 0 || levels > sg_level_limit(descriptor))
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_mipmap *made = shaped(context, descriptor, levels);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (bytes_of(made) > size)
        result = CUDA_ERROR_INVALID_VALUE;
    else
        result = publish(made);
    if (result != CUDA_SUCCESS) {
        free_mipmap(made);
        return result;
    }
    place(made, address);
    *mipmap = made;
    return CUDA_SUCCESS;
}

void sg_mipmap_empty(struct sg_mipmap *mipmap) {
    for (unsigned i = 0; i < mipmap->level_count; i++)
        sg_array_end(&mipmap->levels[i]);
    free(mipmap->levels);
    sg_storage_free(mipmap->storage, mipmap->context);
    sg_tiles_unref(mipmap->tiles);
    if (mipmap->handle)
        sg_handle_drop(SG_KIND_MIPMAP, mipmap->handle);
    sg_context_unref(mipmap->context);
    *mipmap = (struct sg_mipmap){0};
}

/* ---- Rows of functions.def ------------------------------------------------------------------- */

CUresult sg_cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
                                   const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                   unsigned int numMipmapLevels) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result == CUDA_SUCCESS && sg_context_has_32_bit_addresses(context))
        result = CUDA_ERROR_INVALID_CONTEXT;
    if (result != CUDA_SUCCESS)
        return result;
    if (!pHandle || !pMipmappedArrayDesc)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR taken = sg_descriptor_taken(pMipmappedArrayDesc);
    unsigned most = sg_level_limit(&taken);
    unsigned levels = numMipmapLevels < most ? numMipmapLevels : most;
    if (levels == 0)
        levels = 1;
    result = sg_array_check(&taken, levels);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_mipmap *mipmap = shaped(context, &taken, levels);
    if (!mipmap)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = give_memory(mipmap);
    if (result == CUDA_SUCCESS)
        result = publish(mipmap);
    if (result == CUDA_SUCCESS)
        *pHandle = SG_HANDLE_POINTER(CUmipmappedArray, mipmap->handle);
    else
        free_mipmap(mipmap);
    return result;
}

CUresult sg_cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray) {
    struct sg_mipmap *mipmap;
    CUresult result = find(hMipmappedArray, &mipmap);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_context *context = mipmap->context;
    result = sg_context_wait_to_free(context);
    if (result == CUDA_SUCCESS)
        result = find(hMipmappedArray, &mipmap);
    if (result == CUDA_SUCCESS)
        free_mipmap(mipmap);
    return result;
}

CUresult sg_cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray,
                                     unsigned int level) {
    struct sg_mipmap *mipmap;
    CUresult result = find(hMipmappedArray, &mipmap);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pLevelArray || level >= mipmap->level_count)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t handle = sg_array_handle(&mipmap->levels[level]);
    if (!handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pLevelArray = SG_HANDLE_POINTER(CUarray, handle);
    return CUDA_SUCCESS;
}
