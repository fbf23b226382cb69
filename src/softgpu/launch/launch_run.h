/*
 * Running kernels. A launch becomes an operation of its stream, which advances the grid in slices,
 * so that a kernel never owns its thread. Everything here requires the lock.
 */
#ifndef SG_LAUNCH_LAUNCH_RUN_H
#define SG_LAUNCH_LAUNCH_RUN_H

#include "softgpu/launch/launch.h"
#include "softgpu/stream/stream.h"

/* Once, before any launch. */
void sg_launch_run_begin(void);

/* Finds memory of a graph, which is not a range while a launch of the graph uses it. Set by
 * graph. */
extern bool (*sg_launch_graph_extent)(CUdeviceptr address, uint64_t *low, uint64_t *length);

/*
 * Makes the operation of a launch whose arguments have been checked. It copies parameters and
 * shape, and ignores attributes that concern the stream. NOT_SUPPORTED, with one line in the log
 * that says why: the engine cannot run it (machine code, an instruction); OUT_OF_MEMORY. *op is set
 * on success only.
 */
CUresult sg_launch_make(struct sg_function *function, const struct sg_launch *launch,
                        struct sg_op **op);
/* Frees an operation that is not going to be queued. */
void sg_launch_discard(struct sg_op *op);

/* Whether the kernel samples a texture or surface reference of its module. */
bool sg_launch_has_references(struct sg_function *function);

/* For the body of a loop, which runs its operations itself: after `again` has returned false,
 * restarts the kernel with the same parameters. */
void sg_launch_rewind(struct sg_op *op);

/* Makes and queues the operation, with the events that its attributes name. All or nothing. */
CUresult sg_launch_run(struct sg_stream *stream, struct sg_function *function,
                       const struct sg_launch *launch);

#endif
