/*
 * The device runtime: functions that kernels call and no PTX defines. printf goes to the context's
 * fifo, malloc and free to its heap, an assertion's message to standard error before it ends the
 * context, cudaGraphSetConditional to the launch of the kernel's graph.
 */
#ifndef SG_LAUNCH_DEVICE_RUNTIME_H
#define SG_LAUNCH_DEVICE_RUNTIME_H

#include "softgpu/context/context.h"
#include "softgpu/engine/device_call.h"
#include "softgpu/launch/device_conditions.h"

/* What a launch provides to its kernel. */
struct sg_device_runtime {
    struct sg_context *context;
    struct sg_conditions *conditions; /* of the graph that the kernel is in, or NULL */
};

/* With the lock, before a program is launched: makes the parts that it uses, which fixes their
 * limits. OUT_OF_MEMORY. */
CUresult sg_device_runtime_begin(struct sg_context *context, const struct sg_program *program);
/* For sg_grid_launch.device_call; the user is a struct sg_device_runtime. Without the lock. */
void sg_device_runtime_call(void *user, struct sg_device_call *call);
/* Part of the launch chapter: frees what belongs to a context. */
void sg_device_runtime_streams_end(struct sg_context *context);
void sg_device_runtime_memory_end(struct sg_context *context);
void sg_device_runtime_free(struct sg_context *context);
/* Before a host function of a context; without the lock. */
void sg_device_runtime_host_function(struct sg_context *context);

#endif
