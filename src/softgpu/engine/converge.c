/* Instructions for a whole warp, .sync.aligned: all its lanes execute them together. */
#include "softgpu/engine/matrix.h"

/* Joins a group that waits here, or could go on here. */
static bool joins(struct sg_warp *warp, unsigned index, uint32_t here) {
    const struct sg_group *group = &warp->groups[index];
    bool waits = group->state == SG_GROUP_WARP && group->members == SG_ALL;
    if (group->step != here || group->path != warp->path ||
        (!waits && group->state != SG_GROUP_READY))
        return false;
    warp->mask |= group->lanes;
    warp->ready -= !waits;
    warp->groups[index] = warp->groups[--warp->group_count];
    return true;
}

const struct sg_step *sg_run_converge(struct sg_warp *warp, const struct sg_step *step) {
    if (warp->mask == warp->live)
        return step + 1;
    uint32_t here = (uint32_t)(step - warp->grid->code->steps);
    for (unsigned i = 0; i < warp->group_count;)
        i += !joins(warp, i, here);
    if (warp->mask == warp->live)
        return step + 1;
    sg_group_add(warp, warp->mask, here, warp->path);
    warp->ready--;
    warp->groups[warp->group_count - 1].state = SG_GROUP_WARP;
    warp->groups[warp->group_count - 1].members = SG_ALL;
    return sg_group_next(warp);
}
