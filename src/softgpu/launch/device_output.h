/*
 * What kernels print: a fifo for each context, as large as its limit says, in which the newest
 * drives out the oldest. It is written where hardware writes it: when a kernel is launched (with
 * CUDA_LAUNCH_BLOCKING also when that has ended), when the host has waited, by blocking copies,
 * when modules come and go, before callbacks, and when the context ends or fails; and not at the
 * end of the process. Texts of assertions go to standard error, in the same order.
 */
#ifndef SG_LAUNCH_DEVICE_OUTPUT_H
#define SG_LAUNCH_DEVICE_OUTPUT_H

#include "softgpu/context/context.h"
#include "softgpu/core/rows.h"
#include "softgpu/launch/device_print.h"

/* With the lock. Takes the record over; false where it is larger than the whole fifo. */
bool sg_output_add(struct sg_context *context, struct sg_print *print);
/* With the lock: what is in the fifo is to be written by the next call that leaves the driver. */
void sg_output_flush(struct sg_context *context);
/* With the lock: the context's memory for it ends. Nothing runs in it any more. */
void sg_output_free(struct sg_context *context);

/* Without the lock: a call is about to leave. Writes what it is the call to write. Only while
 * SG_WATCH_OUTPUT is set. */
void sg_output_leave(gpumem_driver_fn fn);
/* Without the lock: writes what is flushed. */
void sg_output_write(void);

#endif
