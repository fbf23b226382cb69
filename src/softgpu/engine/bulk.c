/*
 * cp.async.bulk, cp.reduce.async.bulk, st.async, red.async: submits each lane's copy; the schedule
 * decides when it is performed (pending.c).
 */
#include "softgpu/engine/watching.h"

#include <string.h>

#define ALIGNMENT 16u /* of addresses and sizes of bulk copies */

static uint32_t thread_of(const struct sg_warp *warp, unsigned lane) {
    return warp->block->rank * warp->grid->threads + warp->number * SG_LANES + lane;
}

/* A lane's address, in global memory or in the cluster. */
static bool address_of(struct sg_warp *warp, const struct sg_step *step, const uint32_t *where,
                       unsigned lane, uint64_t alignment, uint64_t *address) {
    if (where[1] >> 8 != SG_IN_GLOBAL)
        return sg_where_shared(warp, step, where, lane, alignment, address);
    *address = sg_where_address(warp, where, lane);
    return !(*address & (alignment - 1)) ||
           sg_warp_fault(warp, step, SG_FAULT_MISALIGNED, lane, *address, alignment);
}

static bool submit(struct sg_warp *warp, const struct sg_pending *what) {
    if (warp->grid->code->watched)
        sg_watch_issues_bulk(warp, what, what->thread % warp->grid->threads % SG_LANES);
    return sg_pending_submit(warp, what);
}

/* To each block that the mask names, at the same offsets. */
static bool to_many(struct sg_warp *warp, struct sg_pending *what, uint32_t ranks) {
    uint64_t to = SG_RANK_OFFSET(what->to), mbarrier = SG_RANK_OFFSET(what->mbarrier);
    for (; ranks; ranks &= ranks - 1) {
        uint64_t rank = (uint64_t)__builtin_ctz(ranks) << SG_RANK_SHIFT;
        what->to = rank | to;
        what->mbarrier = rank | mbarrier;
        if (!submit(warp, what))
            return false;
    }
    return true;
}

/* list: to, from, mbarrier; a: bytes; b: mask of destination ranks, or nowhere; choice and type:
 * the reduction; second: it completes on an mbarrier. */
const struct sg_step *sg_run_bulk(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *list = warp->grid->code->list + step->list;
    const uint32_t *size = sg_place(warp, step->a);
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        struct sg_pending what = {.step = step,
                                  .kind = SG_PENDING_BULK,
                                  .size = size[l],
                                  .bytes = size[l],
                                  .thread = thread_of(warp, l),
                                  .operation = step->choice,
                                  .type = step->type,
                                  .to_global = list[1] >> 8 == SG_IN_GLOBAL,
                                  .from_global = list[5] >> 8 == SG_IN_GLOBAL,
                                  .tells = step->second,
                                  .grouped = !step->second};
        if (!address_of(warp, step, list, l, ALIGNMENT, &what.to) ||
            !address_of(warp, step, list + 4, l, ALIGNMENT, &what.from) ||
            (what.tells && !address_of(warp, step, list + 8, l, 8, &what.mbarrier)))
            return NULL;
        if (what.size % ALIGNMENT)
            return sg_warp_fault(warp, step, SG_FAULT_MISALIGNED, l, what.from, what.size);
        bool good = step->b == SG_NOWHERE
                        ? submit(warp, &what)
                        : to_many(warp, &what, ((const uint16_t *)sg_place(warp, step->b))[l]);
        if (!good)
            return NULL;
    }
    return step + 1;
}

/* list: to, mbarrier, then the elements' places; count: elements; type: theirs; choice: the
 * reduction of red.async. */
const struct sg_step *sg_run_store_async(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *list = warp->grid->code->list + step->list;
    unsigned width = sg_type_bits(step->type) / 8;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        struct sg_pending what = {.step = step,
                                  .kind = SG_PENDING_BULK,
                                  .size = width * step->count,
                                  .bytes = width * step->count,
                                  .thread = thread_of(warp, l),
                                  .operation = step->choice,
                                  .type = step->type,
                                  .tells = true,
                                  .from_value = true};
        for (unsigned i = 0; i < step->count; i++)
            memcpy(what.value + (size_t)i * width,
                   (const unsigned char *)sg_place(warp, list[8 + i]) + (size_t)l * width, width);
        if (!sg_where_shared(warp, step, list, l, what.size, &what.to) ||
            !sg_where_shared(warp, step, list + 4, l, 8, &what.mbarrier) || !submit(warp, &what))
            return NULL;
    }
    return step + 1;
}
