/* Allocations known by their address alone. */
#ifndef GM_MEMORY_BY_POINTER_H
#define GM_MEMORY_BY_POINTER_H

#include "memory/core/objects.h"

/* Frees the table of a resource that is destroyed. */
void gm_pointers_discard(gpumem_resource *resource);

#endif
