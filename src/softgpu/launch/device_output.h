/*
 * What kernels print: a fifo for each context, of its limit's size, in which new output replaces
 * the oldest. It is written when hardware writes it: by calls that wait for the device (with
 * CUDA_LAUNCH_BLOCKING launches are among them), by blocking copies and cuMemFree, when modules are
 * loaded and unloaded, before host functions, and when the context ends or fails; but not at the
 * end of the process. The messages of assertions go to standard error, in the same order.
 */
#ifndef SG_LAUNCH_DEVICE_OUTPUT_H
#define SG_LAUNCH_DEVICE_OUTPUT_H

#include "softgpu/context/context.h"
#include "softgpu/core/rows.h"
#include "softgpu/launch/device_print.h"

/* With the lock. Takes ownership of the record; false if it is larger than the whole fifo. */
bool sg_output_add(struct sg_context *context, struct sg_print *print);
/* With the lock: the next call that returns from the driver will write the fifo's contents. */
void sg_output_flush(struct sg_context *context);
/* With the lock: frees the context's fifo. Nothing may run in the context any more. */
void sg_output_free(struct sg_context *context);

/* Without the lock: a call is about to return; writes what this call has to write. Only while
 * SG_WATCH_OUTPUT is set. */
void sg_output_leave(gpumem_driver_fn fn);
/* Without the lock: writes what has been flushed. */
void sg_output_write(void);

#endif
