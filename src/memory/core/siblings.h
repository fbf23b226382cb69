/*
 * Openings of one device of one driver in this process, by libraries that do not know of each
 * other: what one caches, another one may run out of.
 */
#ifndef GM_MEMORY_SIBLINGS_H
#define GM_MEMORY_SIBLINGS_H

#include "memory/core/objects.h"

/* For a device that has its context. */
void gm_siblings_join(gpumem_device *device);

/* Before its end: waits, for a moment, until no thread of another opening looks at it. No resource
 * of it is left. */
void gm_siblings_leave(gpumem_device *device);

/* Calls `visit` for each other opening, with no lock held. */
void gm_siblings_visit(gpumem_device *device, void (*visit)(gpumem_device *, void *), void *data);

#endif
