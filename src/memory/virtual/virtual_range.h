/*
 * Ranges of a virtual resource for a resource over it, which puts memory there and takes it away by
 * itself: pages, each a handle mapped whole, in any order, with the properties and the rights of
 * the virtual resource's memory. A change of rights for the whole virtual resource finds them. The
 * context is current in all of these; one thread at a time changes a range.
 */
#ifndef GM_MEMORY_VIRTUAL_RANGE_H
#define GM_MEMORY_VIRTUAL_RANGE_H

#include "memory/virtual/virtual_resource.h"

struct gm_placed {
    size_t offset;
    struct gm_chunk chunk;
};

/* NULL for others than a virtual resource itself, of device memory in chunks of any number of
 * granules, which the CPU does not map. */
struct gm_virtual_resource *gm_virtual_of_device(const gpumem_resource *resource);

/* Addresses without memory; `capacity` is a multiple of the granularity. */
gpumem_status gm_range_open(struct gm_virtual_resource *v, size_t capacity,
                            struct gm_range **range);
/* What is still mapped there is given back. Cannot fail. */
void gm_range_close(struct gm_virtual_resource *v, struct gm_range *range);

/*
 * Maps pages, in ascending order, where nothing is, and gives access to them: all or none, except
 * that the first *stuck of them remain which the driver has mapped and refuses to unmap. The range
 * has the handles of those that are mapped.
 */
gpumem_status gm_range_map(struct gm_virtual_resource *v, struct gm_range *range,
                           const struct gm_placed *pages, size_t count, size_t *stuck);
/* The caller has the handle back. On failure the page is still there: BUSY where `moves`, for use
 * elsewhere, and others may have handles. */
gpumem_status gm_range_unmap(struct gm_virtual_resource *v, struct gm_range *range, size_t offset,
                             size_t bytes, int moves);

/* Whether others may have handles of its memory: it must not serve anybody else. */
static inline int gm_range_is_shared(const struct gm_range *range) {
    return atomic_load(&range->extent.shared);
}

#endif
