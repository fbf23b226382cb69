/*
 * The device runtime: what kernels call that no text of theirs holds. printf goes to the context's
 * fifo, malloc and free to its heap, an assertion's text to standard error before it ends the
 * context, cudaGraphSetConditional to the launch of the graph that the kernel belongs to.
 */
#ifndef SG_LAUNCH_DEVICE_RUNTIME_H
#define SG_LAUNCH_DEVICE_RUNTIME_H

#include "softgpu/context/context.h"
#include "softgpu/engine/device_call.h"
#include "softgpu/launch/device_conditions.h"

/* What a launch gives to its kernel. */
struct sg_device_runtime {
    struct sg_context *context;
    struct sg_conditions *conditions; /* of the graph that the kernel is in, or NULL */
};

/* With the lock, before a program is launched: makes what it uses, and fixes the limits on it.
 * OUT_OF_MEMORY. */
CUresult sg_device_runtime_begin(struct sg_context *context, const struct sg_program *program);
/* For sg_grid_launch.device_call; the user is a struct sg_device_runtime. Without the lock. */
void sg_device_runtime_call(void *user, struct sg_device_call *call);
/* Part of the launch chapter: what ends with a context. */
void sg_device_runtime_streams_end(struct sg_context *context);
void sg_device_runtime_memory_end(struct sg_context *context);
void sg_device_runtime_free(struct sg_context *context);
/* Before a host function of a context; without the lock. */
void sg_device_runtime_host_function(struct sg_context *context);

#endif
