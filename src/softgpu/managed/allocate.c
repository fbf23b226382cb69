/* Managed memory and its end. */
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/managed/managed.h"
#include "softgpu/memory/allocation.h"

#include <stdlib.h>

/* What range->owner is. */
struct managed {
    struct sg_range range;
    struct sg_segment segment;
    struct sg_pages pages;
};

static CUresult map_bytes(struct managed *made) {
    CUmemAllocationProp prop = sg_plain_prop(-1);
    size_t size = (made->range.size + SG_PAGE - 1) / SG_PAGE * SG_PAGE;
    if (size < made->range.size)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct sg_phys *phys;
    CUresult result = sg_phys_create(&prop, size, &phys);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_segment_map(phys, (1u << SG_MAX_DEVICES) - 1, &made->segment);
    sg_phys_unref(phys);
    return result;
}

static CUresult make(struct managed *made) {
    CUresult result = map_bytes(made);
    if (result != CUDA_SUCCESS)
        return result;
    made->range.start = made->segment.address;
    made->range.phys = made->segment.phys;
    if (sg_pages_begin(&made->pages, made->range.start, made->range.size))
        return CUDA_SUCCESS;
    sg_segment_unmap(&made->segment);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sg_managed_allocate(struct sg_context *context, size_t size, unsigned flags,
                             struct sg_range **range) {
    struct managed *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->range = (struct sg_range){.size = size,
                                    .kind = SG_RANGE_MANAGED,
                                    .device = context->device,
                                    .context = context,
                                    .flags = flags,
                                    .owner = made};
    CUresult result = make(made);
    if (result != CUDA_SUCCESS) {
        free(made);
        return result;
    }
    sg_range_insert(&made->range);
    sg_context_ref(context);
    *range = &made->range;
    return CUDA_SUCCESS;
}

void sg_managed_free(struct sg_range *range) {
    struct managed *made = range->owner;
    sg_range_remove(range);
    sg_pages_end(&made->pages);
    sg_segment_unmap(&made->segment);
    sg_context_unref(range->context);
    free(made);
}

struct sg_pages *sg_managed_pages(CUdeviceptr address, size_t size) {
    struct sg_range *range = sg_range_find(address);
    if (!range || range->kind != SG_RANGE_MANAGED)
        return NULL;
    struct managed *made = range->owner;
    return size <= range->size - (size_t)(address - range->start) ? &made->pages : NULL;
}

CUresult sg_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
    struct sg_context *context;
    if (dptr)
        *dptr = 0;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_device(context->device)->attributes[CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY])
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!dptr || bytesize == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_range *range;
    result = sg_managed_allocate(context, bytesize, flags, &range);
    if (result == CUDA_SUCCESS)
        *dptr = range->start;
    return result;
}
