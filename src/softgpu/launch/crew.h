/*
 * Threads that help to advance a kernel. The thread that runs the kernel's operation calls them for
 * one slice, takes part itself, and waits for those that came; between slices they sleep.
 */
#ifndef SG_LAUNCH_CREW_H
#define SG_LAUNCH_CREW_H

#include "softgpu/engine/engine.h"

/* Threads that may advance one kernel, including the caller: SOFTGPU_KERNEL_WORKERS; 1 under a
 * schedule that runs one operation at a time. */
unsigned sg_crew_size(void);
/*
 * Advances a grid for about `budget` warp instructions in each thread; true: it is over. Uses as
 * many threads as find work in it, unless they are helping another grid. Without the lock, between
 * sg_work_begin and sg_work_end. No other thread advances the grid when it returns.
 */
bool sg_crew_advance(struct sg_grid *grid, uint64_t budget);

#endif
