/* Versioned structs: options that callers pass in, results that they have filled. */
#ifndef GM_BASE_OPTIONS_H
#define GM_BASE_OPTIONS_H

#include "base/error.h"

/*
 * Copies what the caller gave into `options`, which has `known` bytes; missing members are zero.
 * `given` may be NULL. All public structs are as they were first published, so `known` is also the
 * least that a caller can have. `what` names the struct in messages.
 */
gpumem_status gm_options_read(const char *what, const void *given, void *options, size_t known);

/* Copies a filled result out, as much as the caller's struct holds, and leaves its size alone. */
gpumem_status gm_result_write(const char *what, void *result, const void *filled, size_t known);

#endif
