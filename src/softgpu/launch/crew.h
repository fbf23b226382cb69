/*
 * Threads that help to advance a kernel. Whoever runs the kernel's operation asks them for the time
 * of one slice, takes part, and waits for those that came; between slices they sleep.
 */
#ifndef SG_LAUNCH_CREW_H
#define SG_LAUNCH_CREW_H

#include "softgpu/engine/engine.h"

/* How many threads may advance one kernel, with the caller: SOFTGPU_KERNEL_WORKERS; one where a
 * schedule is chosen that runs one operation at a time. */
unsigned sg_crew_size(void);
/*
 * Advances a grid for about `budget` instructions of each thread; true: it is over. Helps itself to
 * as many threads as find work in it, unless they help another grid at the moment. Without the
 * lock, inside sg_work_begin and sg_work_end; no other thread advances the grid when it returns.
 */
bool sg_crew_advance(struct sg_grid *grid, uint64_t budget);

#endif
