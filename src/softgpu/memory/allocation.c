#include "softgpu/memory/allocation.h"

#include "softgpu/stream/stream.h"

#include <limits.h>
#include <stdlib.h>

#define OWN_PAGES INT_MIN

/* `place`: of small memory, or OWN_PAGES. */
static CUresult allocate(struct sg_range about, int place, struct sg_range **range) {
    struct sg_allocation *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->range = about;
    made->range.owner = made;
    CUresult result = place == OWN_PAGES
                          ? sg_backing_take_pages(&made->backing, &made->range, about.device)
                          : sg_backing_take_slot(&made->backing, &made->range, place);
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
    sg_backing_give(&made->backing, range);
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
