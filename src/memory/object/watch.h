/*
 * Who is told before memory goes. Whatever unmaps memory of a buffer, or takes access to it away,
 * tells them first, with no lock held.
 */
#ifndef GM_MEMORY_WATCH_H
#define GM_MEMORY_WATCH_H

#include "memory/core/objects.h"

#include <gpumem/layout.h>

/* Tells of a range of the buffer, which is widened to whole granules. Cheap when nobody watches. */
void gm_watches_tell(gpumem_buffer *buffer, size_t offset, size_t bytes, gpumem_leaving reason);

/* Before the memory goes back: tells, and lets go of the buffer's watches. */
void gm_watches_tell_end(gpumem_buffer *buffer);

/* Before a shrink to `bytes`: of the handles that lie wholly behind it. */
void gm_watches_tell_shrink(gpumem_buffer *buffer, size_t bytes);

/* Before a caching resource gives a segment back to the resource that it took it from. */
void gm_watches_tell_segment(gpumem_resource *cache, const gpumem_allocation *segment,
                             CUstream stream);

/* The resource ends: its watches are told nothing any more. */
void gm_watches_leave(gpumem_resource *resource);

/* How many watch this very buffer. Nothing else is locked under the lock of the watches. */
size_t gm_watches_of(const gpumem_buffer *buffer);

/* What memory of the buffer is mapped in. */
size_t gm_buffer_granularity(const gpumem_buffer *buffer);

#endif
