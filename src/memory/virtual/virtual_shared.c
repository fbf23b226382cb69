/* Memory that others may map: kept out of the cache. */
#include "base/cancel.h"
#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"
#include "memory/object/resource.h"
#include "memory/virtual/virtual_resource.h"
#include "memory/virtual/virtual_through.h"

gpumem_status gpumem_buffer_mark_shared(gpumem_buffer *buffer) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_buffer_mark_shared";
    GM_CHECK(buffer, call);
    const gpumem_buffer *innermost = gm_through(buffer) ? gm_buffer_innermost(buffer) : buffer;
    const struct gm_mapped *mapped = innermost ? innermost->resource->mapped : NULL;
    if (mapped)
        return mapped->share(&innermost->allocation);
    /* A block of a cache lies in memory of the resource that the cache is over. */
    const gpumem_resource *below = innermost ? innermost->resource->upstream : NULL;
    mapped = below && innermost->resource->fast ? below->mapped : NULL;
    if (mapped && mapped->handle_taken(below->user, gpumem_buffer_pointer(innermost)))
        return GPUMEM_OK;
    return gm_virtual_missing(buffer, call);
}

static int is_in(const struct gm_range *range, CUdeviceptr address) {
    return range->state == GM_RANGE_LIVE && address >= range->extent.address &&
           address - range->extent.address < range->extent.capacity;
}

int gm_virtual_handle_taken(void *user, CUdeviceptr address) {
    struct gm_virtual_resource *v = user;
    int found = 0;
    pthread_rwlock_wrlock(&v->mapped.lock);
    for (struct gm_range *range = v->ranges; range; range = range->next) {
        if (!is_in(range, address))
            continue;
        atomic_store(&range->extent.shared, 1);
        found = 1;
    }
    pthread_rwlock_unlock(&v->mapped.lock);
    return found;
}
