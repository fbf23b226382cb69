/* Pinned host memory. */
#include "softgpu/context/address_32.h"
#include "softgpu/core/calls.h"
#include "softgpu/memory/allocation.h"

#define ALLOC_FLAGS                                                                                \
    (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)

static CUdeviceptr address_of(const void *p) {
    return (CUdeviceptr)(uintptr_t)p;
}

CUresult sg_cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) {
    struct sg_context *context;
    if (pp)
        *pp = NULL;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pp || (Flags & ~(unsigned)ALLOC_FLAGS) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytesize == 0)
        return CUDA_SUCCESS;
    struct sg_range *range;
    /* With unified addresses everything is mapped for the device, and says so. */
    unsigned mapped = sg_context_has_32_bit_addresses(context) ? 0 : CU_MEMHOSTALLOC_DEVICEMAP;
    result = sg_allocate(context, -1, bytesize, Flags | mapped, &range);
    if (result == CUDA_SUCCESS)
        *pp = (void *)(uintptr_t)range->start;
    return result;
}

CUresult sg_cuMemAllocHost_v2(void **pp, size_t bytesize) {
    return sg_cuMemHostAlloc(pp, bytesize, 0);
}

CUresult sg_cuMemFreeHost(void *p) {
    if (!p)
        return CUDA_SUCCESS;
    struct sg_range *range = sg_range_at(address_of(p), SG_RANGE_HOST);
    if (!range)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_allocation_wait(&range);
    if (result == CUDA_SUCCESS)
        sg_allocation_free(range);
    return result;
}

static struct sg_range *pinned_at(const void *p) {
    struct sg_range *range = sg_range_find(address_of(p));
    bool pinned = range && (range->kind == SG_RANGE_HOST || range->kind == SG_RANGE_REGISTERED);
    return pinned ? range : NULL;
}

CUresult sg_cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags) {
    struct sg_context *context;
    if (pdptr)
        *pdptr = 0;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pdptr || Flags != 0 || !pinned_at(p))
        return CUDA_ERROR_INVALID_VALUE;
    *pdptr = address_of(p);
    return CUDA_SUCCESS;
}

CUresult sg_cuMemHostGetFlags(unsigned int *pFlags, void *p) {
    struct sg_context *context;
    if (!pFlags)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    const struct sg_range *range = sg_range_find(address_of(p));
    if (range && range->kind == SG_RANGE_MANAGED) {
        *pFlags = CU_MEMHOSTALLOC_DEVICEMAP;
        return CUDA_SUCCESS;
    }
    range = pinned_at(p);
    if (!range)
        return CUDA_ERROR_INVALID_VALUE;
    /* PORTABLE, DEVICEMAP and WRITECOMBINED; that a registration is read-only is not told. */
    *pFlags = range->flags & (unsigned)ALLOC_FLAGS;
    return CUDA_SUCCESS;
}
