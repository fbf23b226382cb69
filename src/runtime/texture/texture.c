/* Arrays, textures and surfaces. */
#include "runtime/texture/texture.h"

#include <string.h>

/* ---- Channels -------------------------------------------------------------------------------- */

RT_EXPORT cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                      cudaChannelFormatKind f);

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
    return (cudaChannelFormatDesc){x, y, z, w, f};
}

static const struct format {
    CUarray_format format;
    cudaChannelFormatKind kind;
    int bits;
} formats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, cudaChannelFormatKindUnsigned, 8},
    {CU_AD_FORMAT_UNSIGNED_INT16, cudaChannelFormatKindUnsigned, 16},
    {CU_AD_FORMAT_UNSIGNED_INT32, cudaChannelFormatKindUnsigned, 32},
    {CU_AD_FORMAT_SIGNED_INT8, cudaChannelFormatKindSigned, 8},
    {CU_AD_FORMAT_SIGNED_INT16, cudaChannelFormatKindSigned, 16},
    {CU_AD_FORMAT_SIGNED_INT32, cudaChannelFormatKindSigned, 32},
    {CU_AD_FORMAT_HALF, cudaChannelFormatKindFloat, 16},
    {CU_AD_FORMAT_FLOAT, cudaChannelFormatKindFloat, 32},
};
enum { FORMATS = sizeof formats / sizeof *formats };

/* All channels have the bits of the first, and there are one, two or four. */
static bool channels_of(const cudaChannelFormatDesc *desc, CUarray_format *format,
                        unsigned *count) {
    int bits[4] = {desc->x, desc->y, desc->z, desc->w};
    unsigned used = 0;
    while (used < 4 && bits[used])
        used++;
    for (unsigned i = 0; i < 4; i++)
        if (bits[i] != (i < used ? bits[0] : 0))
            return false;
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].kind == desc->f && formats[i].bits == bits[0]) {
            *format = formats[i].format;
            *count = used;
            return used == 1 || used == 2 || used == 4;
        }
    return false;
}

static cudaChannelFormatDesc desc_of(CUarray_format format, unsigned count) {
    cudaChannelFormatDesc desc = {0, 0, 0, 0, cudaChannelFormatKindNone};
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].format == format) {
            int bits = formats[i].bits;
            desc = (cudaChannelFormatDesc){bits, count > 1 ? bits : 0, count > 2 ? bits : 0,
                                           count > 3 ? bits : 0, formats[i].kind};
        }
    return desc;
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

cudaError_t rt_array_shape(const cudaChannelFormatDesc *desc, cudaExtent extent, unsigned flags,
                           CUDA_ARRAY3D_DESCRIPTOR *shape) {
    *shape = (CUDA_ARRAY3D_DESCRIPTOR){
        .Width = extent.width, .Height = extent.height, .Depth = extent.depth, .Flags = flags};
    return channels_of(desc, &shape->Format, &shape->NumChannels)
               ? cudaSuccess
               : cudaErrorInvalidChannelDescriptor;
}

cudaError_t rt_cudaMalloc3DArray(cudaArray_t *array, const cudaChannelFormatDesc *desc,
                                 cudaExtent extent, unsigned int flags) {
    CUDA_ARRAY3D_DESCRIPTOR shape;
    CUarray made = NULL;
    if (!array || !desc)
        return cudaErrorInvalidValue;
    cudaError_t error = rt_array_shape(desc, extent, flags, &shape);
    if (error == cudaSuccess)
        error = rt_error(CU(cuArray3DCreate_v2)(&made, &shape));
    if (error == cudaSuccess)
        *array = made;
    return error;
}

cudaError_t rt_cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *desc, size_t width,
                               size_t height, unsigned int flags) {
    return rt_cudaMalloc3DArray(array, desc, (cudaExtent){width, height, 0}, flags);
}

cudaError_t rt_cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmappedArray,
                                        const cudaChannelFormatDesc *desc, cudaExtent extent,
                                        unsigned int numLevels, unsigned int flags) {
    CUDA_ARRAY3D_DESCRIPTOR shape;
    CUmipmappedArray made = NULL;
    if (!mipmappedArray || !desc)
        return cudaErrorInvalidValue;
    cudaError_t error = rt_array_shape(desc, extent, flags, &shape);
    if (error == cudaSuccess)
        error = rt_error(CU(cuMipmappedArrayCreate)(&made, &shape, numLevels));
    if (error == cudaSuccess)
        *mipmappedArray = made;
    return error;
}

cudaError_t rt_cudaFreeArray(cudaArray_t array) {
    return array ? rt_error(CU(cuArrayDestroy)(array)) : cudaSuccess;
}

cudaError_t rt_cudaFreeMipmappedArray(cudaMipmappedArray_t mipmappedArray) {
    return mipmappedArray ? rt_error(CU(cuMipmappedArrayDestroy)(mipmappedArray)) : cudaSuccess;
}

cudaError_t rt_cudaGetMipmappedArrayLevel(cudaArray_t *levelArray,
                                          cudaMipmappedArray_const_t mipmappedArray,
                                          unsigned int level) {
    return rt_error(CU(cuMipmappedArrayGetLevel)(levelArray, mipmappedArray, level));
}

cudaError_t rt_cudaArrayGetInfo(cudaChannelFormatDesc *desc, cudaExtent *extent,
                                unsigned int *flags, cudaArray_t array) {
    CUDA_ARRAY3D_DESCRIPTOR shape = {0};
    cudaError_t error = rt_error(CU(cuArray3DGetDescriptor_v2)(&shape, array));
    if (error != cudaSuccess)
        return error;
    if (desc)
        *desc = desc_of(shape.Format, shape.NumChannels);
    if (extent)
        *extent = (cudaExtent){shape.Width, shape.Height, shape.Depth};
    if (flags)
        *flags = shape.Flags;
    return cudaSuccess;
}

cudaError_t rt_cudaGetChannelDesc(cudaChannelFormatDesc *desc, cudaArray_const_t array) {
    return desc ? rt_cudaArrayGetInfo(desc, NULL, NULL, array) : cudaErrorInvalidValue;
}

/* ---- Objects --------------------------------------------------------------------------------- */

static cudaError_t resource_of(const cudaResourceDesc *desc, CUDA_RESOURCE_DESC *resource) {
    bool known = true;
    memset(resource, 0, sizeof *resource);
    resource->resType = (CUresourcetype)desc->resType;
    switch (desc->resType) {
    case cudaResourceTypeArray:
        resource->res.array.hArray = desc->res.array.array;
        return desc->res.array.array ? cudaSuccess : cudaErrorInvalidResourceHandle;
    case cudaResourceTypeMipmappedArray:
        resource->res.mipmap.hMipmappedArray = desc->res.mipmap.mipmap;
        return desc->res.mipmap.mipmap ? cudaSuccess : cudaErrorInvalidResourceHandle;
    case cudaResourceTypeLinear:
        resource->res.linear.devPtr = RT_ADDRESS(desc->res.linear.devPtr);
        resource->res.linear.sizeInBytes = desc->res.linear.sizeInBytes;
        known = channels_of(&desc->res.linear.desc, &resource->res.linear.format,
                            &resource->res.linear.numChannels);
        break;
    case cudaResourceTypePitch2D:
        resource->res.pitch2D.devPtr = RT_ADDRESS(desc->res.pitch2D.devPtr);
        resource->res.pitch2D.width = desc->res.pitch2D.width;
        resource->res.pitch2D.height = desc->res.pitch2D.height;
        resource->res.pitch2D.pitchInBytes = desc->res.pitch2D.pitchInBytes;
        known = channels_of(&desc->res.pitch2D.desc, &resource->res.pitch2D.format,
                            &resource->res.pitch2D.numChannels);
        break;
    default:
        return cudaErrorInvalidValue;
    }
    return known ? cudaSuccess : cudaErrorInvalidChannelDescriptor;
}

static void desc_of_resource(const CUDA_RESOURCE_DESC *resource, cudaResourceDesc *desc) {
    memset(desc, 0, sizeof *desc);
    desc->resType = (cudaResourceType)resource->resType;
    switch (desc->resType) {
    case cudaResourceTypeArray:
        desc->res.array.array = resource->res.array.hArray;
        break;
    case cudaResourceTypeMipmappedArray:
        desc->res.mipmap.mipmap = resource->res.mipmap.hMipmappedArray;
        break;
    case cudaResourceTypeLinear:
        desc->res.linear.devPtr = (void *)(uintptr_t)resource->res.linear.devPtr;
        desc->res.linear.sizeInBytes = resource->res.linear.sizeInBytes;
        desc->res.linear.desc =
            desc_of(resource->res.linear.format, resource->res.linear.numChannels);
        break;
    case cudaResourceTypePitch2D:
        desc->res.pitch2D.devPtr = (void *)(uintptr_t)resource->res.pitch2D.devPtr;
        desc->res.pitch2D.width = resource->res.pitch2D.width;
        desc->res.pitch2D.height = resource->res.pitch2D.height;
        desc->res.pitch2D.pitchInBytes = resource->res.pitch2D.pitchInBytes;
        desc->res.pitch2D.desc =
            desc_of(resource->res.pitch2D.format, resource->res.pitch2D.numChannels);
        break;
    }
}

/* The driver reads elements as numbers of their own kind only when that is asked for. */
static CUDA_TEXTURE_DESC sampling_of(const cudaTextureDesc *desc) {
    CUDA_TEXTURE_DESC sampling = {
        .addressMode = {desc->addressMode[0], desc->addressMode[1], desc->addressMode[2]},
        .filterMode = desc->filterMode,
        .flags =
            (desc->readMode == 0 ? CU_TRSF_READ_AS_INTEGER : 0u) |
            (desc->normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0u) |
            (desc->sRGB ? CU_TRSF_SRGB : 0u) |
            (desc->disableTrilinearOptimization ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0u) |
            (desc->seamlessCubemap ? CU_TRSF_SEAMLESS_CUBEMAP : 0u),
        .maxAnisotropy = desc->maxAnisotropy,
        .mipmapFilterMode = desc->mipmapFilterMode,
        .mipmapLevelBias = desc->mipmapLevelBias,
        .minMipmapLevelClamp = desc->minMipmapLevelClamp,
        .maxMipmapLevelClamp = desc->maxMipmapLevelClamp,
    };
    memcpy(sampling.borderColor, desc->borderColor, sizeof sampling.borderColor);
    return sampling;
}

static CUDA_RESOURCE_VIEW_DESC view_of(const cudaResourceViewDesc *desc) {
    return (CUDA_RESOURCE_VIEW_DESC){
        .format = desc->format,
        .width = desc->width,
        .height = desc->height,
        .depth = desc->depth,
        .firstMipmapLevel = desc->firstMipmapLevel,
        .lastMipmapLevel = desc->lastMipmapLevel,
        .firstLayer = desc->firstLayer,
        .lastLayer = desc->lastLayer,
    };
}

cudaError_t rt_cudaCreateTextureObject(cudaTextureObject_t *pTexObject,
                                       const cudaResourceDesc *pResDesc,
                                       const cudaTextureDesc *pTexDesc,
                                       const cudaResourceViewDesc *pResViewDesc) {
    CUDA_RESOURCE_DESC resource;
    CUDA_RESOURCE_VIEW_DESC view;
    CUtexObject made = 0;
    if (!pResDesc)
        return cudaErrorInvalidValue;
    cudaError_t error = resource_of(pResDesc, &resource);
    if (error == cudaSuccess && (!pTexObject || !pTexDesc))
        error = cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return error;
    CUDA_TEXTURE_DESC sampling = sampling_of(pTexDesc);
    if (pResViewDesc)
        view = view_of(pResViewDesc);
    error =
        rt_error(CU(cuTexObjectCreate)(&made, &resource, &sampling, pResViewDesc ? &view : NULL));
    if (error == cudaSuccess)
        *pTexObject = made;
    return error;
}

cudaError_t rt_cudaCreateSurfaceObject(cudaSurfaceObject_t *pSurfObject,
                                       const cudaResourceDesc *pResDesc) {
    CUDA_RESOURCE_DESC resource;
    CUsurfObject made = 0;
    if (!pSurfObject || !pResDesc)
        return cudaErrorInvalidValue;
    cudaError_t error = resource_of(pResDesc, &resource);
    if (error == cudaSuccess)
        error = rt_error(CU(cuSurfObjectCreate)(&made, &resource));
    if (error == cudaSuccess)
        *pSurfObject = made;
    return error;
}

cudaError_t rt_cudaGetTextureObjectResourceDesc(cudaResourceDesc *pResDesc,
                                                cudaTextureObject_t texObject) {
    CUDA_RESOURCE_DESC resource;
    if (!pResDesc)
        return cudaErrorInvalidValue;
    cudaError_t error = rt_error(CU(cuTexObjectGetResourceDesc)(&resource, texObject));
    if (error == cudaSuccess)
        desc_of_resource(&resource, pResDesc);
    return error;
}

cudaError_t rt_cudaGetSurfaceObjectResourceDesc(cudaResourceDesc *pResDesc,
                                                cudaSurfaceObject_t surfObject) {
    CUDA_RESOURCE_DESC resource;
    if (!pResDesc)
        return cudaErrorInvalidValue;
    cudaError_t error = rt_error(CU(cuSurfObjectGetResourceDesc)(&resource, surfObject));
    if (error == cudaSuccess)
        desc_of_resource(&resource, pResDesc);
    return error;
}

cudaError_t rt_cudaGetTextureObjectTextureDesc(cudaTextureDesc *pTexDesc,
                                               cudaTextureObject_t texObject) {
    CUDA_TEXTURE_DESC sampling;
    if (!pTexDesc)
        return cudaErrorInvalidResourceHandle; /* an H200's answer */
    cudaError_t error = rt_error(CU(cuTexObjectGetTextureDesc)(&sampling, texObject));
    if (error != cudaSuccess)
        return error;
    *pTexDesc = (cudaTextureDesc){
        .addressMode = {sampling.addressMode[0], sampling.addressMode[1], sampling.addressMode[2]},
        .filterMode = sampling.filterMode,
        .readMode = !(sampling.flags & CU_TRSF_READ_AS_INTEGER),
        .sRGB = !!(sampling.flags & CU_TRSF_SRGB),
        .normalizedCoords = !!(sampling.flags & CU_TRSF_NORMALIZED_COORDINATES),
        .maxAnisotropy = sampling.maxAnisotropy,
        .mipmapFilterMode = sampling.mipmapFilterMode,
        .mipmapLevelBias = sampling.mipmapLevelBias,
        .minMipmapLevelClamp = sampling.minMipmapLevelClamp,
        .maxMipmapLevelClamp = sampling.maxMipmapLevelClamp,
        .disableTrilinearOptimization = !!(sampling.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION),
        .seamlessCubemap = !!(sampling.flags & CU_TRSF_SEAMLESS_CUBEMAP),
    };
    memcpy(pTexDesc->borderColor, sampling.borderColor, sizeof pTexDesc->borderColor);
    return cudaSuccess;
}
