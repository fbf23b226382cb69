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
    return mapped ? mapped->share(&innermost->allocation) : gm_virtual_missing(buffer, call);
}

static int is_in(const struct gm_range *range, CUdeviceptr address) {
    return range->state == GM_RANGE_LIVE && address >= range->extent.address &&
           address - range->extent.address < range->extent.capacity;
}

static void mark(gpumem_resource *resource, void *data) {
    const CUdeviceptr *address = data;
    struct gm_virtual_resource *v = gm_virtual_behind(resource);
    if (!v || v->resource != resource)
        return;
    pthread_rwlock_wrlock(&v->mapped.lock);
    for (struct gm_range *range = v->ranges; range; range = range->next)
        if (is_in(range, *address))
            atomic_store(&range->extent.shared, 1);
    pthread_rwlock_unlock(&v->mapped.lock);
}

void gm_virtual_mark_shared(gpumem_device *device, CUdeviceptr address) {
    gm_resources_visit(device, mark, &address);
}
