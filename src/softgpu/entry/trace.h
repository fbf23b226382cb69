/*
 * SOFTGPU_TRACE: a line for each call, "seconds thread function(arguments) result", behind it
 * ", of cudaMalloc" for the calls of a runtime, which has a line of its own after them, and
 * ", in LABEL" where the thread has one. Addresses and handles are in hexadecimal; what a
 * successful call made follows "->".
 */
#ifndef SG_ENTRY_TRACE_H
#define SG_ENTRY_TRACE_H

#include "softgpu/entry/entry.h"

#include <stdbool.h>
#include <stddef.h>

/* False if it cannot be written, with the reason in `why`. "-" is standard error; a file is
 * appended to, so that child processes may share it. */
bool sg_trace_open(const char *file, char *why, size_t size);
/* Whether sg_trace_open would succeed; creates the file. */
bool sg_trace_possible(const char *file, char *why, size_t size);
void sg_trace_call(const struct sg_call *call, CUresult result);
/* Of a runtime's function, whose arguments are text. */
void sg_trace_runtime(const char *function, const char *arguments, int error);

#endif
