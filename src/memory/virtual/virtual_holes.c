/* Giving back memory in the middle of a buffer, and getting it again. */
#include "base/cancel.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"
#include "memory/object/deferred_frees.h"
#include "memory/object/reclaim.h"
#include "memory/object/watch.h"
#include "memory/virtual/virtual_resource.h"
#include "memory/virtual/virtual_through.h"

static struct gm_extent *extent_of(const gpumem_buffer *buffer) {
    return &((struct gm_range *)buffer->allocation.cookie)->extent;
}

/* The chunks that are in [offset, offset + bytes), wholly or partly. Memory after the size, from
 * growth in advance, belongs to the end. */
static void find_chunks(const gpumem_buffer *buffer, size_t offset, size_t bytes, int wholly,
                        size_t *first, size_t *count) {
    const struct gm_extent *extent = extent_of(buffer);
    size_t end = offset + bytes, at = 0;
    if (end == buffer->allocation.bytes)
        end = extent->committed;
    *first = *count = 0;
    for (size_t i = 0; i < extent->count; i++) {
        size_t next = at + extent->chunks[i].bytes;
        if (wholly ? at >= offset && next <= end : next > offset && at < end) {
            *first = *count ? *first : i;
            ++*count;
        }
        at = next;
    }
}

static int any_memory(const struct gm_extent *extent, size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++)
        if (extent->chunks[i].handle)
            return 1;
    return 0;
}

/* With the buffer's lock. */
static void note(gpumem_buffer *buffer) {
    const struct gm_extent *extent = extent_of(buffer);
    gpumem_allocation changed = buffer->allocation;
    changed.committed_bytes = extent->committed - extent->holes;
    gm_buffer_take_over(buffer, &changed);
}

static gpumem_status punch(struct gm_virtual_resource *v, gpumem_buffer *buffer, size_t first,
                           size_t count, size_t *released) {
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, v->device);
    if (status != GPUMEM_OK)
        return status;
    pthread_mutex_lock(&buffer->lock);
    pthread_rwlock_rdlock(&v->mapped.lock);
    status = gm_buffer_not_held(buffer, "decommit");
    if (status == GPUMEM_OK) {
        status = gm_extent_punch(extent_of(buffer), first, count, released);
        note(buffer);
    }
    pthread_rwlock_unlock(&v->mapped.lock);
    pthread_mutex_unlock(&buffer->lock);
    gm_current_leave(&current);
    return status;
}

gpumem_status gpumem_buffer_decommit(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                     CUstream stream, size_t *released) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_buffer_decommit";
    GM_CHECK(buffer, call);
    gpumem_buffer *inner = gm_through(buffer);
    if (inner)
        return gm_through_decommit(buffer, inner, offset, bytes, stream, released);
    struct gm_virtual_resource *v = gm_virtual_behind(buffer->resource);
    if (!v)
        return gm_virtual_missing(buffer, call);
    gpumem_status status = gm_virtual_check_range(buffer, offset, bytes, call);
    if (status != GPUMEM_OK)
        return status;
    size_t first, count, given = 0;
    find_chunks(buffer, offset, bytes, 1, &first, &count);
    if (any_memory(extent_of(buffer), first, count)) {
        status = gm_buffer_not_held(buffer, "decommit");
        if (status == GPUMEM_OK)
            status = gm_buffer_wait(buffer, stream, "decommit");
        if (status == GPUMEM_OK)
            gm_watches_tell(buffer, offset, bytes, GPUMEM_WATCH_DECOMMIT);
        gm_work_off(v->device); /* a former address of the buffer would keep the memory */
        if (status == GPUMEM_OK)
            status = punch(v, buffer, first, count, &given);
    }
    if (status == GPUMEM_OK && released)
        *released = given;
    return status;
}

static gpumem_status fill(struct gm_virtual_resource *v, gpumem_buffer *buffer, size_t first,
                          size_t count) {
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, v->device);
    if (status != GPUMEM_OK)
        return status;
    pthread_mutex_lock(&buffer->lock);
    pthread_rwlock_rdlock(&v->mapped.lock);
    status = gm_extent_fill(extent_of(buffer), &v->prop, first, count);
    note(buffer);
    pthread_rwlock_unlock(&v->mapped.lock);
    pthread_mutex_unlock(&buffer->lock);
    gm_current_leave(&current);
    return status;
}

gpumem_status gpumem_buffer_recommit(gpumem_buffer *buffer, size_t offset, size_t bytes) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_buffer_recommit";
    GM_CHECK(buffer, call);
    gpumem_buffer *inner = gm_through(buffer);
    if (inner)
        return gm_through_recommit(buffer, inner, offset, bytes);
    struct gm_virtual_resource *v = gm_virtual_behind(buffer->resource);
    if (!v)
        return gm_virtual_missing(buffer, call);
    gpumem_status status = gm_virtual_check_range(buffer, offset, bytes, call);
    if (status != GPUMEM_OK || !extent_of(buffer)->holes)
        return status;
    size_t first, count;
    find_chunks(buffer, offset, bytes, 0, &first, &count);
    gm_work_off(v->device);
    struct gm_reclaim reclaim = gm_reclaim_for(buffer->resource, extent_of(buffer)->holes);
    status = fill(v, buffer, first, count);
    while (gm_reclaim_more(&reclaim, status))
        status = fill(v, buffer, first, count);
    if (status != GPUMEM_OK)
        gm_meter_add(&buffer->resource->meter, GM_ALLOCATIONS_FAILED, 1);
    return status;
}
