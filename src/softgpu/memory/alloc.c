/*
 * cuMemAlloc and its kin. As recorded on H200: a call that is refused zeroes its outputs, freeing
 * needs no current context, and every output of the queries is optional.
 */
#include "softgpu/context/where.h"
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/memory/allocation.h"

/* TEXTURE_PITCH_ALIGNMENT of H200 is 32, but its cuMemAllocPitch rounds rows to 512. */
#define PITCH ((size_t)512)

CUresult sg_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
    struct sg_context *context;
    if (dptr)
        *dptr = 0;
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

CUresult sg_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
                               size_t Height, unsigned int ElementSizeBytes) {
    bool element = ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16;
    size_t pitch = (WidthInBytes + PITCH - 1) & ~(PITCH - 1), total;
    struct sg_context *context;
    if (dptr)
        *dptr = 0;
    if (pPitch)
        *pPitch = 0;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    bool fits = !__builtin_mul_overflow(pitch, Height, &total);
    /* What wraps round to nothing is nothing to allocate on an H200. */
    if (!dptr || !pPitch || !element || WidthInBytes == 0 || Height == 0 || total == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fits || pitch < WidthInBytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pPitch = pitch;
    return sg_cuMemAlloc_v2(dptr, total);
}

CUresult sg_cuMemFree_v2(CUdeviceptr dptr) {
    if (dptr == 0)
        return CUDA_SUCCESS;
    struct sg_range *range = sg_range_find(dptr);
    if (!range || range->start != dptr || range->variable || !range->ops->free)
        return CUDA_ERROR_INVALID_VALUE;
    return range->ops->free(range);
}

/* On H200 cuMemGetAddressRange finds neither memory of a host pool nor memory that the current
 * device does not see; the CPU's rights do not count. */
static bool find_address_range(const struct sg_context *context, CUdeviceptr address,
                               CUdeviceptr *base, size_t *size) {
    const struct sg_range *range = sg_range_find(address);
    struct sg_range_facts facts = {.has_address_range = false};
    if (range && sg_range_seen(context, range))
        sg_range_describe(range, context->device, &facts);
    *base = facts.has_address_range ? facts.base : 0;
    *size = facts.has_address_range ? range->size : 0;
    return facts.has_address_range;
}

CUresult sg_cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr) {
    struct sg_context *context;
    if (!pbase && !psize)
        return CUDA_SUCCESS;
    CUresult result =
        atomic_load(&sg_initialized) ? sg_context_current(&context) : CUDA_ERROR_NOT_INITIALIZED;
    CUdeviceptr base = 0;
    size_t size = 0;
    if (result == CUDA_SUCCESS && !find_address_range(context, dptr, &base, &size))
        result = CUDA_ERROR_NOT_FOUND;
    if (pbase)
        *pbase = base;
    if (psize)
        *psize = size;
    return result;
}

CUresult sg_cuMemGetInfo_v2(size_t *free, size_t *total) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    const struct sg_device *device = result == CUDA_SUCCESS ? sg_device(context->device) : NULL;
    if (free)
        *free = device ? (size_t)(device->limit - sg_memory_used(context->device)) : 0;
    if (total)
        *total = device ? (size_t)device->total_memory : 0;
    return result;
}
