/* cuMemAlloc and its kin. */
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/memory/allocation.h"
#include "softgpu/pool/pool.h"

/* TEXTURE_PITCH_ALIGNMENT of H200 is 32, but cuMemAllocPitch there rounds rows to 512. */
#define PITCH ((size_t)512)

CUresult sg_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!dptr || bytesize == 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_range *range;
    result = sg_allocate(context, context->device, bytesize, 0, &range);
    if (result == CUDA_SUCCESS)
        *dptr = range->start;
    return result;
}

static bool pitch_of(size_t width, size_t height, size_t *pitch) {
    size_t total;
    *pitch = (width + PITCH - 1) & ~(PITCH - 1);
    return *pitch >= width && !__builtin_mul_overflow(*pitch, height, &total);
}

CUresult sg_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
                               size_t Height, unsigned int ElementSizeBytes) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    bool element = ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16;
    if (!dptr || !pPitch || !element || WidthInBytes == 0 || Height == 0)
        return CUDA_ERROR_INVALID_VALUE;
    size_t pitch;
    if (!pitch_of(WidthInBytes, Height, &pitch))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = sg_cuMemAlloc_v2(dptr, pitch * Height);
    if (result == CUDA_SUCCESS)
        *pPitch = pitch;
    return result;
}

CUresult sg_cuMemFree_v2(CUdeviceptr dptr) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (dptr == 0)
        return CUDA_SUCCESS;
    struct sg_range *range = sg_range_at(dptr, SG_RANGE_POOL);
    if (range)
        return sg_pool_free(range);
    range = sg_range_at(dptr, SG_RANGE_DEVICE);
    if (!range)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_allocation_wait(&range);
    if (result == CUDA_SUCCESS)
        sg_allocation_free(range);
    return result;
}

CUresult sg_cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_range *range = sg_range_find(dptr);
    if (!range)
        return CUDA_ERROR_NOT_FOUND;
    if (pbase)
        *pbase = range->start;
    if (psize)
        *psize = range->size;
    return CUDA_SUCCESS;
}

CUresult sg_cuMemGetInfo_v2(size_t *free, size_t *total) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!free || !total)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_device *device = sg_device(context->device);
    *free = (size_t)(device->limit - sg_memory_used(context->device));
    *total = (size_t)device->total_memory;
    return CUDA_SUCCESS;
}
