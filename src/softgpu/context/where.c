#include "softgpu/context/where.h"

#include "softgpu/address/range.h"
#include "softgpu/address/window.h"

/* Whether [address, address + size) lies inside the memory that begins with `range`. Adjacent VMM
 * mappings count as one; every other allocation is a boundary. */
static bool stays_inside(struct sg_range *range, CUdeviceptr address, size_t size) {
    CUdeviceptr end = address + size;
    if (end < address)
        return false;
    while (end > range->start + range->size) {
        struct sg_range *next = sg_range_next(range);
        bool joined = next && next->start == range->start + range->size && range->ops->joins &&
                      next->ops == range->ops;
        if (!joined)
            return false;
        range = next;
    }
    return true;
}

/* Memory of a host pool that was not made accessible is not a valid argument for device work: on
 * H200 such a call is refused at once. */
static bool hidden(const struct sg_range *range) {
    const struct sg_context *current = sg_context_peek();
    return range->ops->accessible && current && !range->ops->accessible(range, current->device);
}

struct sg_place sg_place_at(CUdeviceptr address, size_t size) {
    struct sg_place place = {.address = address, .size = size, .device = -1};
    struct sg_range *range = sg_range_find(address);
    place.range = range;
    if (!range) {
        place.where = sg_window_find(address) ? SG_WHERE_INVALID : SG_WHERE_PAGEABLE;
        return place;
    }
    place.whole = stays_inside(range, address, size);
    if (!place.whole) {
        place.where = SG_WHERE_INVALID;
    } else if (range->device < 0) {
        place.where = hidden(range) ? SG_WHERE_INVALID : SG_WHERE_HOST;
    } else {
        place.where = SG_WHERE_DEVICE;
        place.device = range->device;
    }
    return place;
}

bool sg_place_in_host_pool(const struct sg_place *place) {
    const struct sg_range *range = place->range;
    return range && range->ops->accessible && range->device < 0 && place->whole;
}

bool sg_place_allows(const struct sg_place *place, unsigned rights) {
    const struct sg_range *range = place->range;
    return !range || !range->ops->allows ||
           range->ops->allows(range, place->address, place->size, rights);
}

bool sg_place_mapped(const struct sg_place *place, int device, unsigned rights) {
    const struct sg_range *range = place->range;
    return !range || !range->ops->mapped ||
           range->ops->mapped(device, place->address, place->size, rights);
}

bool sg_place_pool_open(const struct sg_place *place, int device) {
    const struct sg_range *range = place->range;
    return !range || !range->ops->accessible || range->device < 0 ||
           range->ops->accessible(range, device);
}

bool sg_place_reachable(const struct sg_place *place, const struct sg_context *context,
                        unsigned rights) {
    const struct sg_range *range = place->range;
    if (range && range->ops->reachable)
        return range->ops->reachable(context, range, place->address, place->size, rights);
    return !range || sg_range_seen(context, range);
}

bool sg_range_seen(const struct sg_context *context, const struct sg_range *range) {
    return !range->ops->seen || range->ops->seen(context, range);
}

bool sg_range_seen_by_peers(const struct sg_context *context, const struct sg_range *range) {
    return range->device == context->device ||
           (range->context && sg_context_may_access(context, range->context));
}
