/*
 * nanosleep: the lanes of a group sleep for about as long as the longest of them asks, and the rest
 * of the grid runs meanwhile. PTX allows from nothing to twice the time; an H200 takes the time,
 * and 1.04 ms for all that is longer than a millisecond, the most that PTX permits.
 */
#include "softgpu/core/state.h"
#include "softgpu/engine/inside.h"

#define LONGEST 1000000u /* ns */

const struct sg_step *sg_run_nanosleep(struct sg_warp *warp, const struct sg_step *step) {
    uint32_t taken = sg_taken(warp, step), longest = 0;
    const uint32_t *asked = sg_place(warp, step->a);
    for (uint32_t left = taken; left; left &= left - 1) {
        uint32_t one = asked[__builtin_ctz(left)];
        longest = one > longest ? one : longest;
    }
    if (!taken)
        return step + 1;
    warp->polls = warp->slept = true;
    if (!longest) {
        warp->left = 0; /* it yields at the next basic block */
        return step + 1;
    }
    /* Lanes for which its guard is false sleep with the others: they are not parted by it. */
    sg_group_add(warp, warp->mask, (uint32_t)(step - warp->grid->code->steps) + 1, warp->path);
    struct sg_group *group = &warp->groups[warp->group_count - 1];
    group->state = SG_GROUP_SLEEP;
    group->wake = sg_now() + (longest < LONGEST ? longest : LONGEST);
    warp->ready--;
    warp->asleep++;
    return sg_group_next(warp);
}

void sg_warp_wake(struct sg_warp *warp) {
    if (!warp->asleep)
        return;
    uint64_t now = sg_now();
    for (unsigned i = 0; i < warp->group_count; i++) {
        struct sg_group *group = &warp->groups[i];
        if (group->state != SG_GROUP_SLEEP || group->wake > now)
            continue;
        group->state = SG_GROUP_READY;
        warp->asleep--;
        warp->ready++;
    }
}
