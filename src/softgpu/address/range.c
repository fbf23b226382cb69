#include "softgpu/address/range.h"

#include "softgpu/address/pagetable.h"
#include "softgpu/core/site.h"

static struct sg_tree ranges;
const struct sg_range_watch *sg_range_watch;

static struct sg_range *of_node(struct sg_tree_node *node) {
    return SG_TREE_OWNER(node, struct sg_range, node);
}

struct sg_range *sg_range_find(CUdeviceptr address) {
    struct sg_range *range = of_node(sg_tree_at_most(&ranges, address));
    return range && address - range->start < range->size ? range : NULL;
}

struct sg_range *sg_range_before(CUdeviceptr address) {
    return of_node(sg_tree_at_most(&ranges, address));
}

struct sg_range *sg_range_from(CUdeviceptr address) {
    return of_node(sg_tree_at_least(&ranges, address));
}

struct sg_range *sg_range_next(struct sg_range *range) {
    return of_node(sg_tree_next(&range->node));
}

bool sg_range_insert(struct sg_range *range) {
    static uint64_t last_id;
    struct sg_range *before = of_node(sg_tree_at_most(&ranges, range->start));
    struct sg_range *after = before ? sg_range_next(before) : sg_range_from(range->start);
    if (before && range->start - before->start < before->size)
        return false;
    if (after && after->start - range->start < range->size)
        return false;
    range->node.key = range->start;
    range->buffer_id = ++last_id;
    range->origin = sg_origin_here();
    sg_tree_insert(&ranges, &range->node);
    if (sg_range_watch)
        sg_range_watch->inserted(range);
    return true;
}

/* For reports: who uses what is freed mostly does so soon. */
#define PASTS 256u
static struct sg_range_past pasts[PASTS];
static unsigned past_count;

void sg_range_remove(struct sg_range *range) {
    if (sg_range_watch)
        sg_range_watch->removed(range);
    sg_tree_remove(&ranges, &range->node);
    pasts[past_count++ % PASTS] = (struct sg_range_past){range->start, range->size};
}

bool sg_range_was(CUdeviceptr address, struct sg_range_past *past) {
    for (unsigned i = 1; i <= PASTS && i <= past_count; i++) {
        const struct sg_range_past *one = &pasts[(past_count - i) % PASTS];
        if (address - one->start < one->size) {
            *past = *one;
            return true;
        }
    }
    return false;
}

struct sg_range *sg_range_at(CUdeviceptr address, const struct sg_range_ops *ops) {
    struct sg_range *range = sg_range_find(address);
    return range && range->start == address && range->ops == ops ? range : NULL;
}

struct sg_phys *sg_range_phys_at(const struct sg_range *range, CUdeviceptr address,
                                 size_t *offset) {
    if (range->ops->phys_at)
        return range->ops->phys_at(range, address, offset);
    *offset = range->phys_offset + (size_t)(address - range->start);
    return range->phys;
}

void sg_range_describe(const struct sg_range *range, int device, struct sg_range_facts *facts) {
    const struct sg_phys *phys = range->phys;
    *facts = (struct sg_range_facts){
        .start = range->start,
        .size = range->size,
        .has_address_range = true,
        .base = range->start,
        .mapping_base = range->start - range->phys_offset,
        .mapping_size = phys ? phys->size : range->size,
        .handle_types = phys ? (uint64_t)phys->prop.requestedHandleTypes : 0,
        .rights = sg_table_get(range->start, NULL) >> (2 * device) & (SG_READ | SG_WRITE),
        .host_flags = -1,
        .host_pointer = range->device < 0,
        .sync_memops = range->device >= 0,
    };
    if (range->ops->describe)
        range->ops->describe(range, facts);
}
