/*
 * Checks before host memory is pinned. The kernel does not refuse memory that is not available: it
 * kills, and the program gets no error to handle.
 */
#ifndef GM_MEMORY_PINNING_H
#define GM_MEMORY_PINNING_H

#include "base/error.h"

#include <stddef.h>

/*
 * OK if `bytes` more are available; they then count as taken until gm_pinning_end, so that two
 * threads do not get the same memory. OUT_OF_HOST_MEMORY otherwise, with a message that names the
 * limit. If only the bytes that other threads are pinning are in the way, it waits for them: what
 * they have touched is counted twice meanwhile. Thread-safe, no cancellation point.
 */
gpumem_status gm_pinning_begin(size_t bytes);

/* Call this when the memory has been pinned, or refused. */
void gm_pinning_end(size_t bytes);

#endif
