/*
 * griddepcontrol: grids that begin before the one that they depend on has ended. The engine counts
 * the blocks that have released dependent grids, and holds lanes that wait for the other grid; the
 * caller knows which grid depends on which.
 */
#include "softgpu/engine/watching.h"

/* Any thread of a block releases the dependents for the whole block: PTX says "the CTA issues". */
const struct sg_step *sg_run_launch_dependents(struct sg_warp *warp, const struct sg_step *step) {
    if (sg_taken(warp, step))
        sg_block_triggers(warp->block);
    return step + 1;
}

void sg_block_triggers(struct sg_block *block) {
    if (block->triggered)
        return;
    block->triggered = true;
    atomic_fetch_add(&block->warps[0].grid->triggered, 1);
}

/* Waiting lanes stay at the step and check again at their next turn. */
const struct sg_step *sg_run_dependency_wait(struct sg_warp *warp, const struct sg_step *step) {
    uint32_t taken = sg_taken(warp, step);
    if (!taken || !atomic_load(&warp->grid->held)) {
        if (taken && warp->grid->code->watched)
            sg_watch_depends(warp, taken);
        return step + 1;
    }
    uint32_t here = (uint32_t)(step - warp->grid->code->steps);
    if (warp->mask & ~taken)
        sg_group_add(warp, warp->mask & ~taken, here + 1, warp->path);
    sg_group_add(warp, taken, here, warp->path);
    warp->polls = true;
    warp->left = -1;
    warp->stop = SG_STOP_YIELD;
    return NULL;
}

bool sg_grid_all_begun(const struct sg_grid *grid) {
    return grid->begun == grid->blocks;
}

bool sg_grid_triggered(const struct sg_grid *grid) {
    return atomic_load(&grid->triggered) == grid->blocks;
}

void sg_grid_release(struct sg_grid *grid) {
    atomic_store(&grid->held, false);
}
