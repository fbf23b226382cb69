/* Reports of a kernel's fault, for the log and core dumps. */
#ifndef SG_LAUNCH_KERNEL_REPORT_H
#define SG_LAUNCH_KERNEL_REPORT_H

#include "softgpu/context/context.h"
#include "softgpu/engine/engine.h"

#define SG_KERNEL_REPORT 6144 /* bytes, enough for any report */

/*
 * Writes lines: kernel and kind; PTX and source line, block and thread; the address relative to the
 * nearest allocation; where lanes wait. `ptx` is the program's text, or NULL. With the lock.
 */
void sg_kernel_report(const struct sg_context *context, const struct sg_program *program,
                      const char *ptx, const struct sg_grid_fault *fault, char *text, size_t size);

/* Logs a text of several lines, line by line. Without the lock. */
void sg_kernel_say(int level, const char *text);

/* The error of a fault: as recorded from hardware, or else the one that is documented for it. */
CUresult sg_kernel_error(const struct sg_grid_fault *fault);

#endif
