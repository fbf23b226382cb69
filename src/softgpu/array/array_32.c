/*
 * Arrays of CUDA 2 to 3.1. As on H200, these functions work only in contexts of that time, which in
 * turn refuse today's cuArrayCreate.
 */
#include "softgpu/array/internal.h"
#include "softgpu/context/address_32.h"
#include "softgpu/core/calls.h"

CUresult sg_cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray) {
    struct sg_context *context;
    CUresult result = sg_context_current_32(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pAllocateArray)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = pAllocateArray->Width,
                                                .Height = pAllocateArray->Height,
                                                .Format = pAllocateArray->Format,
                                                .NumChannels = pAllocateArray->NumChannels};
    return sg_array_create(context, &descriptor, pHandle);
}

CUresult sg_cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray) {
    struct sg_context *context;
    CUresult result = sg_context_current_32(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pAllocateArray)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = pAllocateArray->Width,
                                                .Height = pAllocateArray->Height,
                                                .Depth = pAllocateArray->Depth,
                                                .Format = pAllocateArray->Format,
                                                .NumChannels = pAllocateArray->NumChannels,
                                                .Flags = pAllocateArray->Flags};
    return sg_array_create(context, &descriptor, pHandle);
}

/* The array's context decides, not the current one. */
static CUresult find(CUarray handle, struct sg_array **array) {
    CUresult result = sg_array_find(handle, array);
    if (result != CUDA_SUCCESS)
        return result;
    return sg_context_has_32_bit_addresses((*array)->context) ? CUDA_SUCCESS
                                                              : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sg_cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray) {
    struct sg_array *array;
    CUresult result = find(hArray, &array);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pArrayDescriptor)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR *d = &array->descriptor;
    *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR_v1){.Width = (unsigned)d->Width,
                                                   .Height = (unsigned)d->Height,
                                                   .Format = d->Format,
                                                   .NumChannels = d->NumChannels};
    return CUDA_SUCCESS;
}

CUresult sg_cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray) {
    struct sg_array *array;
    CUresult result = find(hArray, &array);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pArrayDescriptor)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR *d = &array->descriptor;
    *pArrayDescriptor = (CUDA_ARRAY3D_DESCRIPTOR_v1){.Width = (unsigned)d->Width,
                                                     .Height = (unsigned)d->Height,
                                                     .Depth = (unsigned)d->Depth,
                                                     .Format = d->Format,
                                                     .NumChannels = d->NumChannels,
                                                     .Flags = d->Flags};
    return CUDA_SUCCESS;
}
