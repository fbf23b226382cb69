/*
 * Looks after kernels that do not end: one that has only waited for what others write is named in
 * the log after 10 s, with the places of its lanes; SOFTGPU_KERNEL_LIMIT ends any, as a device's
 * watchdog does.
 */
#ifndef SG_LAUNCH_KERNEL_WATCH_H
#define SG_LAUNCH_KERNEL_WATCH_H

#include "softgpu/engine/engine.h"

#define SG_KERNEL_SPIN_NS UINT64_C(10000000000)

struct sg_kernel_watch {
    uint64_t began;    /* at the first look; 0 before */
    uint64_t moved;    /* when it last got on */
    uint64_t progress; /* sg_grid_progress at that time */
    bool said;
};

/* After each slice, without the lock. True: the grid's time is up, and it has its fault. */
bool sg_kernel_watch(struct sg_kernel_watch *watch, struct sg_grid *grid,
                     const struct sg_program *program);

#endif
