#include "softgpu/context/where.h"

#include "softgpu/address/range.h"
#include "softgpu/address/window.h"

/* Does [address, address + size) stay inside what begins with `range`? VMM mappings that touch
 * count as one; every other allocation is a bound. */
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

/* Memory of a host pool that was not made accessible is no argument for the device's work: on H200
 * such a call is refused at once. */
static bool hidden(const struct sg_range *range) {
    const struct sg_context *current = sg_context_peek();
    return range->ops->accessible && current && !range->ops->accessible(range, current->device);
}

bool sg_memory_in_host_pool(CUdeviceptr address, size_t size) {
    struct sg_range *range = sg_range_find(address);
    return range && range->ops->accessible && range->device < 0 &&
           stays_inside(range, address, size);
}

enum sg_where sg_memory_where(CUdeviceptr address, size_t size, int *device) {
    struct sg_range *range = sg_range_find(address);
    if (!range)
        return sg_window_find(address) ? SG_WHERE_INVALID : SG_WHERE_PAGEABLE;
    if (!stays_inside(range, address, size))
        return SG_WHERE_INVALID;
    if (range->device < 0)
        return hidden(range) ? SG_WHERE_INVALID : SG_WHERE_HOST;
    if (device)
        *device = range->device;
    return SG_WHERE_DEVICE;
}

bool sg_memory_allows(CUdeviceptr address, size_t size, unsigned rights) {
    const struct sg_range *range = sg_range_find(address);
    return !range || !range->ops->allows || range->ops->allows(range, address, size, rights);
}

bool sg_memory_mapped(int device, CUdeviceptr address, size_t size, unsigned rights) {
    const struct sg_range *range = sg_range_find(address);
    return !range || !range->ops->mapped || range->ops->mapped(device, address, size, rights);
}

static bool opened(const struct sg_range *range, int device) {
    return !range->ops->accessible || range->device < 0 || range->ops->accessible(range, device);
}

bool sg_memory_pool_open(int device, CUdeviceptr address) {
    const struct sg_range *range = sg_range_find(address);
    return !range || opened(range, device);
}

bool sg_range_seen(const struct sg_context *context, const struct sg_range *range) {
    return !range->ops->seen || range->ops->seen(context, range);
}

bool sg_range_seen_by_peers(const struct sg_context *context, const struct sg_range *range) {
    return range->device == context->device ||
           (range->context && sg_context_may_access(context, range->context));
}

bool sg_memory_reachable(const struct sg_context *context, CUdeviceptr address, size_t size,
                         unsigned rights) {
    const struct sg_range *range = sg_range_find(address);
    if (range && range->ops->reachable)
        return range->ops->reachable(context, range, address, size, rights);
    return !range || sg_range_seen(context, range);
}
