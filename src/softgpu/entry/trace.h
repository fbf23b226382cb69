/*
 * SOFTGPU_TRACE: a line for each call, "seconds thread function(arguments) result", behind it
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

#endif
