#include "softgpu/memory/allocation.h"

#include "softgpu/address/phys.h"
#include "softgpu/stream/stream.h"

#include <limits.h>
#include <stdlib.h>

static CUresult take_slot(struct sg_allocation *made, int place) {
    struct sg_range *range = &made->range;
    CUresult result = sg_small_take(place, range->size, &made->chunk, &range->start);
    if (result != CUDA_SUCCESS)
        return result;
    const struct sg_segment *segment = sg_small_segment(made->chunk);
    range->phys = segment->phys;
    range->phys_offset = (size_t)(range->start - segment->address);
    sg_poison(range->phys->host + range->phys_offset, range->size, SG_POISON_FRESH);
    return CUDA_SUCCESS;
}

static CUresult take_pages(struct sg_allocation *made, int device) {
    struct sg_range *range = &made->range;
    CUmemAllocationProp prop = sg_plain_prop(device);
    size_t size = (range->size + SG_PAGE - 1) / SG_PAGE * SG_PAGE;
    if (size < range->size)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct sg_phys *phys;
    CUresult result = sg_phys_create(&prop, size, &phys);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_segment_map(phys, (1u << SG_MAX_DEVICES) - 1, &made->segment);
    sg_phys_unref(phys);
    range->start = made->segment.address;
    range->phys = made->segment.phys;
    return result;
}

#define OWN_PAGES INT_MIN

/* `place`: of small memory, or OWN_PAGES. */
static CUresult allocate(struct sg_range about, int place, struct sg_range **range) {
    struct sg_allocation *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->range = about;
    made->range.owner = made;
    CUresult result = place == OWN_PAGES ? take_pages(made, about.device) : take_slot(made, place);
    if (result != CUDA_SUCCESS) {
        free(made);
        return result;
    }
    sg_range_insert(&made->range);
    sg_context_ref(about.context);
    *range = &made->range;
    return CUDA_SUCCESS;
}

CUresult sg_allocate(struct sg_context *context, int device, size_t size, unsigned flags,
                     struct sg_range **range) {
    const struct sg_range about = {.size = size,
                                   .kind = device < 0 ? SG_RANGE_HOST : SG_RANGE_DEVICE,
                                   .device = device,
                                   .context = context,
                                   .flags = flags};
    return allocate(about, size <= SG_SMALL_LIMIT ? device : OWN_PAGES, range);
}

CUresult sg_allocate_variable(struct sg_context *context, size_t size, uint64_t alignment,
                              struct sg_range **range) {
    int device = context->device;
    const struct sg_range about = {.size = size,
                                   .kind = SG_RANGE_DEVICE,
                                   .device = device,
                                   .context = context,
                                   .variable = true};
    bool small = size <= SG_SMALL_LIMIT && alignment <= SG_SMALL_VARIABLE_STEP;
    return allocate(about, small ? SG_SMALL_VARIABLES(device) : OWN_PAGES, range);
}

void sg_allocation_free(struct sg_range *range) {
    sg_range_remove(range);
    sg_allocation_end(range);
}

void sg_allocation_end(struct sg_range *range) {
    struct sg_allocation *made = range->owner;
    if (made->exported)
        sg_live_end(&made->live);
    if (made->chunk) {
        sg_poison(range->phys->host + range->phys_offset, range->size, SG_POISON_FREED);
        sg_small_give(made->chunk, range->start, range->size);
    } else {
        sg_segment_unmap(&made->segment);
    }
    sg_context_unref(range->context);
    free(made);
}

CUresult sg_allocation_wait(struct sg_range **range) {
    CUdeviceptr start = (*range)->start;
    uint64_t id = (*range)->buffer_id;
    struct sg_context *context = (*range)->context;
    sg_context_ref(context);
    CUresult result = sg_context_wait(context);
    sg_context_unref(context);
    if (result != CUDA_SUCCESS)
        return result;
    *range = sg_range_find(start);
    return *range && (*range)->buffer_id == id ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

struct sg_range *sg_range_at(CUdeviceptr address, enum sg_range_kind kind) {
    struct sg_range *range = sg_range_find(address);
    return range && range->start == address && range->kind == kind ? range : NULL;
}
