/* Versioned structs: options that callers pass in, and results that are filled in for them. */
#ifndef GM_BASE_OPTIONS_H
#define GM_BASE_OPTIONS_H

#include "base/error.h"

/*
 * Copies the caller's struct into `options`, which has `known` bytes; missing members are zero.
 * `given` may be NULL. All public structs are as first published, so `known` is also the smallest
 * size that a caller can have. `what` names the struct in messages.
 */
gpumem_status gm_options_read(const char *what, const void *given, void *options, size_t known);

/* Copies a result to the caller, as much as the caller's struct holds, without changing its
 * size. */
gpumem_status gm_result_write(const char *what, void *result, const void *filled, size_t known);

#endif
