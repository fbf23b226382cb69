/* Small buffers of a mapped resource, cut out of slabs. */
#ifndef GM_MAPPED_SLAB_H
#define GM_MAPPED_SLAB_H

#include "memory/core/objects.h"

#include <gpumem/mapped.h>

/* Checks the option: INVALID_ARGUMENT for a size that slabs cannot have. */
gpumem_status gm_slabs_check(size_t slab_bytes);

/* Gives slabs to a resource that the program has not yet received. If atoms are too large for them
 * there are none, or NOT_SUPPORTED if the options set a size. */
gpumem_status gm_slabs_add(gpumem_resource *resource, size_t slab_bytes, size_t atom);

#endif
