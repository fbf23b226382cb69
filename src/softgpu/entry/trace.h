/* SOFTGPU_TRACE: a line for each call, "seconds thread function result". */
#ifndef SG_ENTRY_TRACE_H
#define SG_ENTRY_TRACE_H

#include <gpumem/driver.h>
#include <stdbool.h>
#include <stddef.h>

/* False, and what is wrong in `why`, when it cannot be written. "-" is standard error; a file is
 * appended to, so that child processes may share it. */
bool sg_trace_open(const char *file, char *why, size_t size);
/* Whether sg_trace_open would succeed; creates the file. */
bool sg_trace_possible(const char *file, char *why, size_t size);
void sg_trace_call(gpumem_driver_fn fn, CUresult result);

#endif
