/*
 * Watches for kernels that do not end. One that has only polled memory for 10 s is named in the
 * log, with the places of its lanes; SOFTGPU_KERNEL_LIMIT ends any kernel, like a device's
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
};

/* After each slice, without the lock. True: the limit is reached, and the grid has the fault
 * TIME. */
bool sg_kernel_watch(struct sg_kernel_watch *watch, struct sg_grid *grid,
                     const struct sg_program *program);

#endif
