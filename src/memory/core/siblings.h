/*
 * Openings of the same device of the same driver in this process, by libraries that do not know of
 * each other: what one caches, another may need.
 */
#ifndef GM_MEMORY_SIBLINGS_H
#define GM_MEMORY_SIBLINGS_H

#include "memory/core/objects.h"

/* Call this for a device that has its context. */
void gm_siblings_join(gpumem_device *device);

/* Call this before it is closed: waits briefly until no thread of another opening uses it. It has
 * no resources left. */
void gm_siblings_leave(gpumem_device *device);

/* Calls `visit` for each other opening, with no lock held. */
void gm_siblings_visit(gpumem_device *device, void (*visit)(gpumem_device *, void *), void *data);

#endif
