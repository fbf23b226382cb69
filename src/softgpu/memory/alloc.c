/*
 * cuMemAlloc and its kin. As recorded on H200: outputs are zeroed by a call that is refused,
 * freeing needs no current context, and every output of the queries is optional.
 */
#include "softgpu/address/pagetable.h"
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/external/external.h"
#include "softgpu/graph/graph.h"
#include "softgpu/managed/managed.h"
#include "softgpu/memory/allocation.h"
#include "softgpu/pool/pool.h"

/* TEXTURE_PITCH_ALIGNMENT of H200 is 32, but cuMemAllocPitch there rounds rows to 512. */
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
    if (!dptr || !pPitch || !element || WidthInBytes == 0 || Height == 0)
        return CUDA_ERROR_INVALID_VALUE;
    *pPitch = pitch;
    if (pitch < WidthInBytes || __builtin_mul_overflow(pitch, Height, &total))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return sg_cuMemAlloc_v2(dptr, total);
}

CUresult sg_cuMemFree_v2(CUdeviceptr dptr) {
    if (dptr == 0)
        return CUDA_SUCCESS;
    struct sg_range *range = sg_range_at(dptr, SG_RANGE_POOL);
    if (range)
        return sg_pool_free(range);
    range = sg_range_at(dptr, SG_RANGE_GRAPH);
    if (range)
        return sg_graph_memory_free(range);
    range = sg_range_at(dptr, SG_RANGE_DEVICE);
    if (!range)
        range = sg_range_at(dptr, SG_RANGE_MANAGED);
    if (!range)
        range = sg_range_at(dptr, SG_RANGE_EXTERNAL);
    if (!range || range->variable)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_allocation_wait(&range);
    if (result != CUDA_SUCCESS)
        return result;
    if (range->kind == SG_RANGE_MANAGED)
        sg_managed_free(range);
    else if (range->kind == SG_RANGE_EXTERNAL)
        sg_external_buffer_free(range);
    else
        sg_allocation_free(range);
    return CUDA_SUCCESS;
}

/* What cuMemGetAddressRange knows. On H200 it finds neither memory of a host pool nor what the
 * current device does not see; what the CPU was given does not count. */
static bool has_address_range(const struct sg_context *context, const struct sg_range *range) {
    bool host_pool = range->kind == SG_RANGE_POOL && range->device < 0;
    return !host_pool && sg_range_seen(context, range);
}

/* As recorded: a mapping of host memory has a size, and 0 for its base. */
static CUdeviceptr base_of(const struct sg_range *range) {
    return range->kind == SG_RANGE_MAPPING && range->device < 0 ? 0 : range->start;
}

CUresult sg_cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr) {
    struct sg_context *context;
    if (!pbase && !psize)
        return CUDA_SUCCESS;
    CUresult result =
        atomic_load(&sg_initialized) ? sg_context_current(&context) : CUDA_ERROR_NOT_INITIALIZED;
    const struct sg_range *range = result == CUDA_SUCCESS ? sg_range_find(dptr) : NULL;
    if (range && !has_address_range(context, range))
        range = NULL;
    if (pbase)
        *pbase = range ? base_of(range) : 0;
    if (psize)
        *psize = range ? range->size : 0;
    return result == CUDA_SUCCESS && !range ? CUDA_ERROR_NOT_FOUND : result;
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
