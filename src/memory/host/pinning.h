/*
 * Asking before host memory is pinned. Memory that nobody has is not refused by the kernel: it
 * kills, and the program has no error to handle.
 */
#ifndef GM_MEMORY_PINNING_H
#define GM_MEMORY_PINNING_H

#include "base/error.h"

#include <stddef.h>

/*
 * OK when `bytes` more can be had; they then count as taken until gm_pinning_end, so that two
 * threads do not get the same rest. OUT_OF_HOST_MEMORY otherwise, with a message that names who
 * limits. While other threads pin, and only their bytes are in the way, it waits for them: what
 * they have touched is counted twice meanwhile. Thread-safe, no cancellation point.
 */
gpumem_status gm_pinning_begin(size_t bytes);

/* When the memory is there, or was refused. */
void gm_pinning_end(size_t bytes);

#endif
