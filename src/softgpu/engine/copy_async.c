/*
 * cp.async: 4, 8 or 16 bytes from global into shared memory. Bytes beyond the source's size are
 * zeros.
 */
#include "softgpu/engine/watching.h"

#include <string.h>

/* Under the eager schedule everything completes at once. */
static bool at_once(struct sg_warp *warp, const struct sg_step *step, unsigned lane, uint64_t to,
                    uint64_t from, uint64_t size, uint64_t bytes) {
    unsigned char *target = sg_reach_shared(warp, step, lane, to, size);
    if (!target)
        return false;
    const struct sg_range_cache *cache = &warp->caches[step->cache];
    uint64_t offset = from - cache->low;
    const unsigned char *source = bytes == 0 ? target
                                  : bytes <= cache->length && offset <= cache->length - bytes
                                      ? (const unsigned char *)(uintptr_t)(from + cache->distance)
                                      : sg_reach_global(warp, step, lane, from, bytes);
    if (!source)
        return false;
    if (bytes)
        memcpy(target, source, bytes);
    memset(target + bytes, 0, size - bytes);
    return true;
}

static uint64_t bytes_of(const struct sg_warp *warp, const struct sg_step *step, unsigned lane) {
    if (step->c == SG_NOWHERE)
        return step->count;
    if (step->choice)
        return sg_predicate(warp, step->c) >> lane & 1 ? 0 : step->count;
    uint32_t bytes = ((const uint32_t *)sg_place(warp, step->c))[lane];
    return bytes < step->count ? bytes : step->count;
}

/* list: destination, source; c: bytes of the source, or nowhere (with `choice` a predicate: ignore
 * the source); count: bytes. */
const struct sg_step *sg_run_copy_async(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *list = warp->grid->code->list + step->list;
    uint64_t size = step->count;
    bool eager = warp->grid->launch.schedule == SG_GRID_EAGER && !warp->grid->code->watched;
    if (warp->grid->code->watched)
        sg_watch_issues(warp, step, list);
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        uint64_t to, from = sg_where_address(warp, list + SG_WHERE_WORDS, l);
        uint64_t bytes = bytes_of(warp, step, l);
        if (!sg_where_shared(warp, step, list, l, size, &to))
            return NULL;
        if (from & (size - 1))
            return sg_warp_fault(warp, step, SG_FAULT_MISALIGNED, l, from, size);
        if (eager) {
            if (!at_once(warp, step, l, to, from, size, bytes))
                return NULL;
            continue;
        }
        struct sg_pending what = {.step = step,
                                  .kind = SG_PENDING_COPY,
                                  .to = to,
                                  .from = from,
                                  .from_global = true,
                                  .size = (uint32_t)size,
                                  .bytes = (uint32_t)bytes,
                                  .thread = warp->block->rank * warp->grid->threads +
                                            warp->number * SG_LANES + l};
        if (!sg_pending_submit(warp, &what))
            return NULL;
    }
    return step + 1;
}

/* cp.async.mbarrier.arrive: an arrival once the thread's copies are complete. list: the mbarrier;
 * choice: .noinc, the arrival is already pending. */
const struct sg_step *sg_run_copy_arrive(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *list = warp->grid->code->list + step->list;
    if (warp->grid->code->watched)
        sg_watch_hands_over(warp, step, list);
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        struct sg_pending what = {.step = step,
                                  .kind = SG_PENDING_ARRIVE,
                                  .thread = warp->block->rank * warp->grid->threads +
                                            warp->number * SG_LANES + l};
        if (!sg_where_shared(warp, step, list, l, 8, &what.mbarrier) ||
            (!step->choice && !sg_mbarrier_more(warp, step, l, what.mbarrier)) ||
            !sg_pending_submit(warp, &what))
            return NULL;
    }
    return step + 1;
}
