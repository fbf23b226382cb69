/*
 * CUDA runtimes over this driver, which name the function that a thread is in: the driver's calls
 * below it are reported as its own. softgpu.h describes how they attach themselves. The names of
 * the runtime's functions and errors are known here by its tables, so that settings can be checked
 * before any runtime is there.
 */
#ifndef SG_CORE_RUNTIME_CALLS_H
#define SG_CORE_RUNTIME_CALLS_H

#include <gpumem/softgpu.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False when there are too many. Thread-safe. */
bool sg_runtime_add(const softgpu_runtime *runtime);
/* The runtime's function that this thread is in, or NULL. The text is there for good. */
const char *sg_runtime_call(void);
/* Whether the code of a runtime is at the address. */
bool sg_runtime_has_code(const void *address);

/* What a runtime tells of each call, as bits; the word that it looks at is `sg_runtime_watched`. */
#define SG_RUNTIME_FAULT 1u
#define SG_RUNTIME_TRACE 2u
extern unsigned sg_runtime_watched; /* changed and read atomically */
void sg_runtime_watch(unsigned bit, bool on);

/* Whether a runtime of CUDA 12 or 13 has a function of this name. */
bool sg_runtime_has_function(const char *name);
/* Whether its result is an earlier call's. */
bool sg_runtime_returns_last_error(const char *function);
/* The value of "cudaErrorInvalidValue". False if there is none. */
bool sg_runtime_error_parse(const char *name, int *value);
/* NULL for a value that the runtime does not have. */
const char *sg_runtime_error_name(int value);
const char *sg_runtime_error_text(int value);

#endif
