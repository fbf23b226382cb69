/* The resource of examples/arena.c, as it stands there. */
#ifndef CONFORMANCE_ARENA_H
#define CONFORMANCE_ARENA_H

#include <gpumem/gpumem.h>

gpumem_status make_arena(gpumem_resource *upstream, size_t block_bytes, gpumem_resource **resource);

#endif
