/*
 * Watches for kernels that do not end. One that has only polled memory for 10 s is named in the
 * log, with the places of its lanes, and so is one that the end of its context, or a call that
 * frees something, waits for so long; SOFTGPU_KERNEL_LIMIT ends any kernel, like a device's
 * watchdog.
 */
#ifndef SG_LAUNCH_KERNEL_WATCH_H
#define SG_LAUNCH_KERNEL_WATCH_H

#include "softgpu/engine/engine.h"

#define SG_KERNEL_SPIN_NS UINT64_C(10000000000)

struct sg_kernel_watch {
    uint64_t began;    /* time of the first slice; 0 before it */
    uint64_t moved;    /* when it last made progress */
    uint64_t progress; /* sg_grid_progress at that time */
    bool said;
    uint64_t awaited; /* since when something waits for it to destroy or free; 0: nothing does */
    bool awaited_said;
};

/* After each slice, without the lock. True: the limit is reached, and the grid has the fault
 * TIME. */
bool sg_kernel_watch(struct sg_kernel_watch *watch, struct sg_grid *grid,
                     const struct sg_program *program);

struct sg_watched_launch {
    uint64_t number, stream; /* the process's launches are numbered from 1 */
    unsigned grid[3], block[3];
};

/* After each slice, where something waits for the kernel to destroy or free, or nothing does. */
void sg_kernel_awaited(struct sg_kernel_watch *watch, bool awaited, const struct sg_grid *grid,
                       const struct sg_program *program, const struct sg_watched_launch *launch);

#endif
