/* Memory for contexts with addresses of 32 bits. */
#include "softgpu/context/address_32.h"
#include "softgpu/core/calls.h"

#define ZERO(output)                                                                               \
    do {                                                                                           \
        if (output)                                                                                \
            *(output) = 0;                                                                         \
    } while (0)

/* Returns the 32-bit address of fresh memory, or frees it on failure. */
static CUresult give_out(CUdeviceptr wide, CUdeviceptr_v1 *address) {
    CUresult result = sg_address_32_of(sg_range_find(wide), address);
    if (result != CUDA_SUCCESS)
        sg_cuMemFree_v2(wide);
    return result;
}

CUresult sg_cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize) {
    struct sg_context *context;
    CUdeviceptr wide;
    ZERO(dptr);
    CUresult result = sg_context_current_32(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!dptr || bytesize == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytesize > SG_ADDRESS_32_ROOM)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = sg_cuMemAlloc_v2(&wide, bytesize);
    return result == CUDA_SUCCESS ? give_out(wide, dptr) : result;
}

CUresult sg_cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch, unsigned int WidthInBytes,
                            unsigned int Height, unsigned int ElementSizeBytes) {
    struct sg_context *context;
    CUdeviceptr wide;
    size_t pitch;
    ZERO(dptr);
    ZERO(pPitch);
    CUresult result = sg_context_current_32(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!dptr || !pPitch)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_cuMemAllocPitch_v2(&wide, &pitch, WidthInBytes, Height, ElementSizeBytes);
    if (result == CUDA_SUCCESS)
        result = give_out(wide, dptr);
    if (result == CUDA_SUCCESS)
        *pPitch = (unsigned)pitch;
    return result;
}

CUresult sg_cuMemFree(CUdeviceptr_v1 dptr) {
    struct sg_context *context;
    CUdeviceptr wide;
    if (dptr == 0 && !sg_context_peek())
        return CUDA_SUCCESS;
    CUresult result = sg_context_current_32(&context);
    if (result != CUDA_SUCCESS || dptr == 0)
        return result;
    result = sg_address_32_find(dptr, &wide);
    return result == CUDA_SUCCESS ? sg_cuMemFree_v2(wide) : result;
}

CUresult sg_cuMemGetAddressRange(CUdeviceptr_v1 *pbase, unsigned int *psize, CUdeviceptr_v1 dptr) {
    struct sg_context *context;
    if (!pbase && !psize)
        return CUDA_SUCCESS;
    ZERO(pbase);
    ZERO(psize);
    if (!atomic_load(&sg_initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = sg_context_current_32(&context);
    if (result != CUDA_SUCCESS)
        return result;
    CUdeviceptr_v1 start;
    const struct sg_range *range = sg_address_32_range(dptr, &start);
    if (!range)
        return CUDA_ERROR_NOT_FOUND;
    if (pbase)
        *pbase = start;
    if (psize)
        *psize = (unsigned)range->size;
    return CUDA_SUCCESS;
}

static unsigned clamped(size_t bytes) {
    return bytes > UINT32_MAX ? UINT32_MAX : (unsigned)bytes;
}

CUresult sg_cuMemGetInfo(unsigned int *free, unsigned int *total) {
    struct sg_context *context;
    size_t wide_free, wide_total;
    ZERO(free);
    ZERO(total);
    CUresult result = sg_context_current_32(&context);
    if (result == CUDA_SUCCESS)
        result = sg_cuMemGetInfo_v2(&wide_free, &wide_total);
    if (result != CUDA_SUCCESS)
        return result;
    if (free)
        *free = clamped(wide_free);
    if (total)
        *total = clamped(wide_total);
    return CUDA_SUCCESS;
}

CUresult sg_cuMemAllocHost(void **pp, unsigned int bytesize) {
    struct sg_context *context;
    ZERO(pp);
    CUresult result = sg_context_current_32(&context);
    return result == CUDA_SUCCESS ? sg_cuMemAllocHost_v2(pp, bytesize) : result;
}

CUresult sg_cuMemHostGetDevicePointer(CUdeviceptr_v1 *pdptr, void *p, unsigned int Flags) {
    struct sg_context *context;
    CUdeviceptr wide;
    ZERO(pdptr);
    CUresult result = sg_context_current_32(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pdptr)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_cuMemHostGetDevicePointer_v2(&wide, p, Flags);
    const struct sg_range *range = result == CUDA_SUCCESS ? sg_range_find(wide) : NULL;
    /* Without unified addresses, the device sees only memory that was to be mapped for it. */
    if (range && !(range->flags & CU_MEMHOSTALLOC_DEVICEMAP))
        return CUDA_ERROR_INVALID_VALUE;
    if (!range)
        return result;
    result = sg_address_32_of(range, pdptr);
    if (result == CUDA_SUCCESS)
        *pdptr += (CUdeviceptr_v1)(wide - range->start);
    return result;
}
