/* What is said of a kernel's fault: in the log, and in the report of a core dump. */
#ifndef SG_LAUNCH_KERNEL_REPORT_H
#define SG_LAUNCH_KERNEL_REPORT_H

#include "softgpu/context/context.h"
#include "softgpu/engine/engine.h"

#define SG_KERNEL_REPORT 6144 /* bytes that hold any report */

/*
 * Lines: kernel and kind; PTX and source line, block and thread; where the address is to the
 * nearest allocation; where lanes wait. `ptx` is the text that the program was made of, or NULL.
 * With the lock.
 */
void sg_kernel_report(const struct sg_context *context, const struct sg_program *program,
                      const char *ptx, const struct sg_grid_fault *fault, char *text, size_t size);

/* Logs a text of several lines, which are then no longer apart in it. */
void sg_kernel_say(int level, char *text);

/* By the names of the errors; where hardware was asked, as it answered. */
CUresult sg_kernel_error(const struct sg_grid_fault *fault);

#endif
