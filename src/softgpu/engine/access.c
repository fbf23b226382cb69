/* The bytes of one lane's access, in any space, for instructions that run lane by lane. */
#include "softgpu/engine/access.h"

uint64_t sg_access_address(const struct sg_warp *warp, const struct sg_step *step, unsigned lane) {
    if (step->flags & SG_STEP_WIDE)
        return ((const uint64_t *)sg_place(warp, step->a))[lane] + (uint64_t)step->value;
    return (uint32_t)(((const uint32_t *)sg_place(warp, step->a))[lane] + (uint32_t)step->value);
}

unsigned sg_generic_space(uint64_t *address) {
    uint64_t window = *address & ~(uint64_t)UINT32_MAX;
    unsigned space = window == SG_SHARED_WINDOW      ? SG_IN_SHARED
                     : window == SG_LOCAL_WINDOW     ? SG_IN_LOCAL
                     : window == SG_PARAMETER_WINDOW ? SG_IN_PARAM
                                                     : SG_IN_GLOBAL;
    if (space != SG_IN_GLOBAL)
        *address &= UINT32_MAX;
    if (space == SG_IN_SHARED)
        *address = sg_shared_offset(*address);
    return space;
}

unsigned char *sg_access(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                         uint64_t size, unsigned *space) {
    uint64_t address = sg_access_address(warp, step, lane), room;
    unsigned char *bytes;
    if (address & (size - 1))
        return sg_warp_fault(warp, step, SG_FAULT_MISALIGNED, lane, address, size);
    *space = step->space == SG_IN_GENERIC ? sg_generic_space(&address) : step->space;
    switch (*space) {
    case SG_IN_SHARED:
        return sg_reach_shared(warp, step, lane, address, size);
    case SG_IN_LOCAL:
    case SG_IN_PARAM_FRAME:
        bytes = warp->local + lane * warp->local_size;
        room = warp->local_size;
        break;
    case SG_IN_PARAM:
        return sg_reach_parameters(warp, step, lane, address, size);
    default: {
        const struct sg_range_cache *cache = &warp->caches[step->cache];
        uint64_t offset = address - cache->low;
        if (size <= cache->length && offset <= cache->length - size)
            return (unsigned char *)(uintptr_t)(address + cache->distance);
        return sg_reach_global(warp, step, lane, address, size);
    }
    }
    if (size <= room && address <= room - size)
        return bytes + address;
    return sg_warp_fault(warp, step, SG_FAULT_SPACE, lane, address, size);
}
