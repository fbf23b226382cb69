#include "softgpu/address/memory.h"

#include "softgpu/address/pagetable.h"
#include "softgpu/address/window.h"
#include "softgpu/context/context.h"
#include "softgpu/pool/pool.h"

/* Does [address, address + size) stay inside what begins with `range`? VMM mappings that touch
 * count as one; every other allocation is a bound. */
static bool stays_inside(struct sg_range *range, CUdeviceptr address, size_t size) {
    CUdeviceptr end = address + size;
    if (end < address)
        return false;
    while (end > range->start + range->size) {
        struct sg_range *next = sg_range_next(range);
        bool joined = next && next->start == range->start + range->size &&
                      range->kind == SG_RANGE_MAPPING && next->kind == SG_RANGE_MAPPING;
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
    return range->kind == SG_RANGE_POOL && current && !sg_pool_accessible(range, current->device);
}

bool sg_memory_in_host_pool(CUdeviceptr address, size_t size) {
    struct sg_range *range = sg_range_find(address);
    return range && range->kind == SG_RANGE_POOL && range->device < 0 &&
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

static bool page_allows(CUdeviceptr address, int device, int owner, unsigned rights) {
    sg_rights all = sg_table_get(address, NULL);
    sg_rights need = sg_rights_of(device, rights), owners = sg_rights_of(owner, rights);
    return (all & need) == need || (all & owners) == owners;
}

bool sg_memory_allows(CUdeviceptr address, size_t size, unsigned rights) {
    const struct sg_range *range = sg_range_find(address);
    if (range && range->kind == SG_RANGE_REGISTERED)
        return !(rights & SG_WRITE) || !(range->flags & CU_MEMHOSTREGISTER_READ_ONLY);
    if (!range || range->kind != SG_RANGE_MAPPING)
        return true;
    /* What a load through a multicast mapping answers is undefined. */
    if (range->phys->ops && (rights & SG_READ))
        return false;
    const struct sg_context *context = sg_context_peek();
    int device = context ? context->device : range->device < 0 ? 0 : range->device;
    int owner = range->device < 0 ? device : range->device;
    for (CUdeviceptr at = address & ~(CUdeviceptr)(SG_PAGE - 1); at < address + size; at += SG_PAGE)
        if (!page_allows(at, device, owner, rights))
            return false;
    return true;
}

bool sg_memory_mapped(int device, CUdeviceptr address, size_t size, unsigned rights) {
    const struct sg_range *range = sg_range_find(address);
    if (!range || range->kind != SG_RANGE_MAPPING)
        return true;
    for (CUdeviceptr at = address & ~(CUdeviceptr)(SG_PAGE - 1); at < address + size; at += SG_PAGE)
        if (!page_allows(at, device, device, rights))
            return false;
    return true;
}

bool sg_memory_pool_open(int device, CUdeviceptr address) {
    const struct sg_range *range = sg_range_find(address);
    return !range || range->kind != SG_RANGE_POOL || range->device < 0 || sg_pool_pages(range) ||
           sg_pool_accessible(range, device);
}

bool sg_range_seen(const struct sg_context *context, const struct sg_range *range) {
    switch (range->kind) {
    case SG_RANGE_MAPPING:
        return (sg_table_get(range->start, NULL) >> (2 * context->device) & 3u) != 0;
    case SG_RANGE_DEVICE:
    case SG_RANGE_IPC:
        return range->device == context->device ||
               (range->context && sg_context_may_access(context, range->context));
    case SG_RANGE_POOL:
        return sg_pool_pages(range) || sg_pool_accessible(range, context->device);
    default:
        return true;
    }
}

bool sg_memory_reachable(const struct sg_context *context, CUdeviceptr address, size_t size,
                         unsigned rights) {
    const struct sg_range *range = sg_range_find(address);
    if (!range)
        return true;
    switch (range->kind) {
    case SG_RANGE_MAPPING:
        return sg_memory_mapped(context->device, address, size, rights);
    case SG_RANGE_EXTERNAL:
        return range->context == (context->owner ? context->owner : context);
    case SG_RANGE_POOL:
        return sg_memory_pool_open(context->device, address);
    default:
        return sg_range_seen(context, range);
    }
}
