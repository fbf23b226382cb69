/*
 * Kernels that run, with SOFTGPU_KERNELS=1 as long as not all of PTX does. A launch becomes an
 * operation of its stream, which advances the grid in slices, so that a kernel never owns its
 * thread.
 */
#ifndef SG_LAUNCH_LAUNCH_RUN_H
#define SG_LAUNCH_LAUNCH_RUN_H

#include "softgpu/launch/launch.h"
#include "softgpu/stream/stream.h"

/* Queues it. NOT_SUPPORTED, and one line of the log that says why, for what the engine does not
 * run: machine code, an instruction, clusters; OUT_OF_MEMORY. With the lock. */
/* Once, before any launch. */
void sg_launch_run_begin(void);

CUresult sg_launch_run(struct sg_stream *stream, struct sg_function *function,
                       const struct sg_launch *launch);

#endif
