/*
 * cp.async: 4, 8 or 16 bytes from global into shared memory, done at once; so groups have nothing
 * to wait for. What is beyond the source's size is zero.
 */
#include "softgpu/engine/inside.h"

#include <string.h>

static uint64_t lane_of(const struct sg_warp *warp, uint32_t place, bool wide, unsigned l) {
    return wide ? ((const uint64_t *)sg_place(warp, place))[l]
                : ((const uint32_t *)sg_place(warp, place))[l];
}

/* a, b: addresses in shared (`second`: of 64 bits) and global memory; list: their offsets, low and
 * high words; c: bytes of the source, or nowhere; count: bytes. */
const struct sg_step *sg_run_copy_async(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *list = warp->grid->code->list + step->list;
    uint64_t to_offset = (uint64_t)list[1] << 32 | list[0];
    uint64_t from_offset = (uint64_t)list[3] << 32 | list[2];
    uint64_t size = step->count;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        uint64_t to = lane_of(warp, step->a, step->second, l) + to_offset;
        uint64_t from = lane_of(warp, step->b, true, l) + from_offset;
        uint64_t bytes = size;
        if (step->c != SG_NOWHERE)
            bytes = ((const uint32_t *)sg_place(warp, step->c))[l];
        bytes = bytes < size ? bytes : size;
        to = step->second ? to : (uint32_t)to;
        if ((to | from) & (size - 1))
            return sg_warp_fault(warp, step, SG_FAULT_MISALIGNED, l, from & (size - 1) ? from : to,
                                 size);
        if (size > warp->shared_size || to > warp->shared_size - size)
            return sg_warp_fault(warp, step, SG_FAULT_SPACE, l, to, size);
        memset(warp->shared + to, 0, size);
        if (bytes == 0)
            continue;
        const struct sg_range_cache *cache = &warp->caches[step->cache];
        uint64_t offset = from - cache->low;
        const unsigned char *source =
            bytes <= cache->length && offset <= cache->length - bytes
                ? (const unsigned char *)(uintptr_t)(from + cache->distance)
                : sg_reach_global(warp, step, l, from, bytes);
        if (!source)
            return NULL;
        memcpy(warp->shared + to, source, bytes);
    }
    return step + 1;
}
