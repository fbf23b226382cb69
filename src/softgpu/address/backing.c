#include "softgpu/address/backing.h"

#include "softgpu/address/phys.h"
#include "softgpu/core/config.h"

static size_t red_zone(void) {
    return sg_red_zone(sg_config());
}

CUresult sg_backing_take_slot(struct sg_backing *backing, struct sg_range *range, int place) {
    CUresult result =
        sg_small_take(place, range->size + red_zone(), &backing->chunk, &range->start);
    if (result != CUDA_SUCCESS)
        return result;
    const struct sg_segment *segment = sg_small_segment(backing->chunk);
    range->phys = segment->phys;
    range->phys_offset = (size_t)(range->start - segment->address);
    sg_poison(range->phys->host + range->phys_offset, range->size, SG_POISON_FRESH);
    return CUDA_SUCCESS;
}

CUresult sg_backing_take_pages(struct sg_backing *backing, struct sg_range *range, int device) {
    CUmemAllocationProp prop = sg_plain_prop(device);
    size_t size = (range->size + red_zone() + SG_PAGE - 1) / SG_PAGE * SG_PAGE;
    if (size < range->size)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct sg_phys *phys;
    CUresult result = sg_phys_create(&prop, size, &phys);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_segment_map(phys, (1u << SG_MAX_DEVICES) - 1, &backing->segment);
    sg_phys_unref(phys); /* the segment has its own reference */
    backing->chunk = NULL;
    range->start = backing->segment.address;
    range->phys = backing->segment.phys;
    return result;
}

void sg_backing_give(struct sg_backing *backing, const struct sg_range *range) {
    if (!backing->chunk) {
        sg_segment_unmap(&backing->segment);
        return;
    }
    if (!range->phys->pages_held) /* by a DMA buffer, whose bytes are its holder's */
        sg_poison(range->phys->host + range->phys_offset, range->size, SG_POISON_FREED);
    sg_small_give(backing->chunk, range->start, range->size + red_zone());
}

const struct sg_segment *sg_backing_segment(const struct sg_backing *backing) {
    return backing->chunk ? sg_small_segment(backing->chunk) : &backing->segment;
}
