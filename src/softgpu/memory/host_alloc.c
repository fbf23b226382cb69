/* Pinned host memory. */
#include "softgpu/context/address_32.h"
#include "softgpu/core/calls.h"
#include "softgpu/memory/allocation.h"

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
    if (!pp || (Flags & ~SG_HOST_FLAGS) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytesize == 0)
        return CUDA_SUCCESS;
    struct sg_range *range;
    /* With unified addresses everything is mapped for the device, and the flags say so. */
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
    struct sg_range *range = sg_range_at(address_of(p), &sg_host_allocation_ops);
    if (!range)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_allocation_wait(&range);
    if (result == CUDA_SUCCESS)
        sg_allocation_free(range);
    return result;
}

static bool is_pinned(const void *p) {
    const struct sg_range *range = sg_range_find(address_of(p));
    return range && range->ops->pinned;
}

CUresult sg_cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags) {
    struct sg_context *context;
    if (pdptr)
        *pdptr = 0;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pdptr || Flags != 0 || !is_pinned(p))
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
    struct sg_range_facts facts = {.host_flags = -1};
    if (range)
        sg_range_describe(range, context->device, &facts);
    if (facts.host_flags < 0)
        return CUDA_ERROR_INVALID_VALUE;
    *pFlags = (unsigned)facts.host_flags;
    return CUDA_SUCCESS;
}
