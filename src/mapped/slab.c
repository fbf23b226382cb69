/*
 * Slabs: a caching resource over the mapped one, which the program notices only because small
 * buffers are cheap. The CPU writes this memory, so the cache reuses it only when the streams that
 * used it have passed.
 */
#include "mapped/slab.h"

#include "memory/core/driver_error.h"
#include "memory/object/resource.h"

#include <gpumem/caching.h>

#define SLAB_BYTES ((size_t)2 << 20) /* the default, and the minimum */
#define SHARE      4                 /* of a slab: larger buffers have memory of their own */
#define CLASS_MOST ((size_t)1 << 20) /* the limit of maximum_small_bytes */

gpumem_status gm_slabs_check(size_t slab_bytes) {
    GM_REQUIRE(!slab_bytes || slab_bytes >= SLAB_BYTES,
               "mapped resource: slab_bytes is %zu; 2 MiB is the least", slab_bytes);
    GM_REQUIRE(slab_bytes <= SIZE_MAX / 4 || slab_bytes == SIZE_MAX,
               "mapped resource: slab_bytes is %zu, which no memory has", slab_bytes);
    return GPUMEM_OK;
}

/* With two buffers in one atom, invalidating one would undo stores to the other. */
static int fits(const gpumem_resource *slabs, size_t atom) {
    return slabs->properties.granularity % atom == 0;
}

gpumem_status gm_slabs_add(gpumem_resource *resource, size_t slab_bytes, size_t atom) {
    if (slab_bytes == SIZE_MAX)
        return GPUMEM_OK;
    size_t bytes = slab_bytes ? slab_bytes : SLAB_BYTES, most = bytes / SHARE;
    gpumem_resource *slabs = NULL;
    gpumem_status status = gpumem_caching_resource_create(
        resource,
        GPUMEM_CACHING_OPTIONS(.segment_bytes = bytes,
                               .maximum_small_bytes = most < CLASS_MOST ? most : CLASS_MOST,
                               .thread_bytes = bytes),
        &slabs);
    if (status != GPUMEM_OK)
        return status;
    if (fits(slabs, atom)) {
        gm_resource_set_slabs(resource, slabs, most);
        return GPUMEM_OK;
    }
    size_t unit = slabs->properties.granularity;
    gm_resource_discard(slabs);
    if (!slab_bytes)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                   "mapped resource: no slabs (slab_bytes is %zu): memory is flushed in atoms of "
                   "%zu bytes, and buffers in slabs lie at multiples of %zu",
                   slab_bytes, atom, unit);
}
