/*
 * Calls for virtual buffers, on buffers of the library's wrappers that have a buffer of their own
 * inside (alignment, fallback). The outer buffer knows the streams, holds and watches, the inner
 * one the memory: what concerns both is done outside first, as for growth and shrinks.
 */
#include "memory/virtual/virtual_through.h"

#include "memory/core/driver_error.h"
#include "memory/core/stream_waits.h"
#include "memory/object/buffer.h"
#include "memory/object/watch.h"
#include "memory/virtual/virtual_resource.h"

gpumem_buffer *gm_through(const gpumem_buffer *buffer) {
    const gpumem_resource *resource = buffer->resource;
    while (resource && !resource->apart)
        resource = resource->upstream;
    return resource && !resource->users ? buffer->allocation.buffer : NULL;
}

static size_t shift_of(const gpumem_buffer *outer, const gpumem_buffer *inner) {
    return (size_t)(outer->allocation.pointer - inner->allocation.pointer);
}

/* What the outer buffer's end leaves over belongs to it. */
static size_t length_of(const gpumem_buffer *outer, const gpumem_buffer *inner, size_t offset,
                        size_t bytes) {
    if (offset + bytes < outer->allocation.bytes)
        return bytes;
    return inner->allocation.bytes - shift_of(outer, inner) - offset;
}

static gpumem_status check(gpumem_buffer *outer, size_t offset, size_t bytes, const char *call) {
    const gpumem_buffer *innermost = gm_buffer_innermost(outer);
    if (!innermost || !gm_virtual_behind(innermost->resource))
        return gm_virtual_missing(outer, call);
    return gm_virtual_check_range(outer, offset, bytes, call);
}

/* The outer buffer's lock is held. */
static void note(gpumem_buffer *outer, const gpumem_buffer *inner) {
    gpumem_allocation changed = outer->allocation;
    changed.committed_bytes = inner->allocation.committed_bytes;
    gm_buffer_take_over(outer, &changed);
}

static gpumem_status wait(gpumem_buffer *outer, CUstream stream, const char *what) {
    gpumem_status status = gm_buffer_not_held(outer, what);
    return status == GPUMEM_OK ? gm_buffer_wait(outer, stream, what) : status;
}

gpumem_status gm_through_decommit(gpumem_buffer *outer, gpumem_buffer *inner, size_t offset,
                                  size_t bytes, CUstream stream, size_t *released) {
    gpumem_status status = check(outer, offset, bytes, "gpumem_buffer_decommit");
    if (status == GPUMEM_OK)
        status = wait(outer, stream, "decommit");
    if (status != GPUMEM_OK)
        return status;
    gm_watches_tell(outer, offset, bytes, GPUMEM_WATCH_DECOMMIT);
    pthread_mutex_lock(&outer->lock);
    status = gm_buffer_not_held(outer, "decommit");
    if (status == GPUMEM_OK)
        status = gpumem_buffer_decommit(inner, offset + shift_of(outer, inner),
                                        length_of(outer, inner, offset, bytes), NULL, released);
    note(outer, inner);
    pthread_mutex_unlock(&outer->lock);
    return status;
}

gpumem_status gm_through_recommit(gpumem_buffer *outer, gpumem_buffer *inner, size_t offset,
                                  size_t bytes) {
    gpumem_status status = check(outer, offset, bytes, "gpumem_buffer_recommit");
    if (status != GPUMEM_OK)
        return status;
    pthread_mutex_lock(&outer->lock);
    status = gpumem_buffer_recommit(inner, offset + shift_of(outer, inner),
                                    length_of(outer, inner, offset, bytes));
    note(outer, inner);
    pthread_mutex_unlock(&outer->lock);
    return status;
}

gpumem_status gm_through_set_access(gpumem_buffer *outer, gpumem_buffer *inner, size_t offset,
                                    size_t bytes, int device, gpumem_access access,
                                    CUstream stream) {
    int takes = access != GPUMEM_ACCESS_READ_WRITE;
    gpumem_status status = check(outer, offset, bytes, "gpumem_buffer_set_access");
    if (status == GPUMEM_OK && takes)
        status = wait(outer, stream, "take access away");
    if (status != GPUMEM_OK)
        return status;
    if (takes)
        gm_watches_tell(outer, offset, bytes, GPUMEM_WATCH_ACCESS);
    pthread_mutex_lock(&outer->lock);
    status = takes ? gm_buffer_not_held(outer, "take access away") : GPUMEM_OK;
    if (status == GPUMEM_OK)
        status =
            gpumem_buffer_set_access(inner, offset + shift_of(outer, inner),
                                     length_of(outer, inner, offset, bytes), device, access, NULL);
    pthread_mutex_unlock(&outer->lock);
    return status;
}

gpumem_status gm_through_get_access(gpumem_buffer *outer, gpumem_buffer *inner, size_t offset,
                                    int device, gpumem_access *access) {
    gpumem_status status = check(outer, offset, 1, "gpumem_buffer_get_access");
    return status == GPUMEM_OK
               ? gpumem_buffer_get_access(inner, offset + shift_of(outer, inner), device, access)
               : status;
}

/* ---- Moving ---------------------------------------------------------------------------------- */

/* The old addresses stay for the streams that use the outer buffer. Both locks are held. */
static gpumem_status name_streams(const gpumem_buffer *outer, gpumem_buffer *inner) {
    if (gm_buffer_reserve_waits(inner, outer->wait_count + 2) != 0)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record streams");
    for (size_t i = 0; i < outer->wait_count; i++) {
        const struct gm_wait *wait = &outer->waits[i];
        size_t j = 0;
        while (j < inner->wait_count && !gm_wait_same(&inner->waits[j], wait))
            j++;
        if (j == inner->wait_count)
            inner->waits[inner->wait_count++] = (struct gm_wait){
                .stream = wait->stream, .id = wait->id, .namer = wait->namer, .task = wait->task};
    }
    return GPUMEM_OK;
}

/* New addresses are multiples of the virtual resource's alignment, and no more. */
static gpumem_status check_multiple(gpumem_buffer *outer, const gpumem_buffer *inner) {
    const gpumem_buffer *innermost = gm_buffer_innermost(outer);
    const struct gm_virtual_resource *v = gm_virtual_behind(innermost->resource);
    const gpumem_resource *resource = outer->resource;
    size_t multiple = 1;
    for (; resource; resource = resource->upstream)
        multiple = resource->multiple > multiple ? resource->multiple : multiple;
    if (!shift_of(outer, inner) && v->granularity % multiple == 0)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                   "the buffer cannot be moved: addresses at multiples of %zu are promised for it, "
                   "and new ones are at multiples of %zu",
                   multiple, v->granularity);
}

/* The outer buffer's lock is held. */
static gpumem_status move(gpumem_buffer *outer, gpumem_buffer *inner, size_t capacity,
                          CUstream stream) {
    CUdeviceptr address;
    gpumem_status status = gm_buffer_not_held(outer, "move");
    pthread_mutex_lock(&inner->lock);
    if (status == GPUMEM_OK)
        status = name_streams(outer, inner);
    pthread_mutex_unlock(&inner->lock);
    if (status == GPUMEM_OK)
        status = gpumem_buffer_move_to_capacity(inner, capacity, stream, &address);
    if (status == GPUMEM_OK)
        gm_buffer_moved(outer, address, inner->allocation.capacity);
    return status;
}

gpumem_status gm_through_move(gpumem_buffer *outer, gpumem_buffer *inner, size_t capacity,
                              CUstream stream, CUdeviceptr *address) {
    static const char call[] = "gpumem_buffer_move_to_capacity";
    size_t bytes = outer->allocation.bytes;
    CUdeviceptr from = outer->allocation.pointer;
    gpumem_status status = check(outer, 0, bytes, call);
    GM_REQUIRE(capacity >= bytes, "%s: capacity %zu is less than the size %zu", call, capacity,
               bytes);
    if (status == GPUMEM_OK)
        status = check_multiple(outer, inner);
    if (status == GPUMEM_OK && stream)
        status = gpumem_buffer_use(outer, stream);
    if (status != GPUMEM_OK)
        return status;
    if (capacity < inner->allocation.bytes)
        capacity = inner->allocation.bytes;
    gm_watches_tell(outer, 0, bytes, GPUMEM_WATCH_MOVE);
    pthread_mutex_lock(&outer->lock);
    status = move(outer, inner, capacity, stream);
    pthread_mutex_unlock(&outer->lock);
    if (status != GPUMEM_OK)
        return status;
    gm_virtual_tell_wrappers(outer, from);
    *address = outer->allocation.pointer;
    return GPUMEM_OK;
}
