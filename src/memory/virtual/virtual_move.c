/* A buffer that has outgrown its capacity gets new addresses; its memory stays. */
#include "base/cancel.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/core/stream_waits.h"
#include "memory/core/vmm_calls.h"
#include "memory/object/buffer.h"
#include "memory/object/deferred_frees.h"
#include "memory/object/watch.h"
#include "memory/virtual/virtual_resource.h"
#include "memory/virtual/virtual_through.h"

#include <stdlib.h>
#include <string.h>

/* ---- What is left at the old address --------------------------------------------------------- */

/*
 * A freed buffer of the same resource that has the old mappings but no memory: it ends when the
 * streams that used the buffer have passed this point.
 */
static gpumem_status make_remains(struct gm_virtual_resource *v, const gpumem_buffer *buffer,
                                  gpumem_buffer **remains) {
    gpumem_buffer *made = NULL;
    gpumem_status status = gm_buffer_make(v->resource, GPUMEM_STREAM_NONE, &made);
    if (status != GPUMEM_OK)
        return status;
    if (buffer->wait_count > made->wait_room) {
        made->waits = malloc(buffer->wait_count * sizeof *made->waits);
        if (!made->waits) {
            made->waits = made->inline_waits;
            gm_buffer_discard(made);
            return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record streams");
        }
        made->wait_room = buffer->wait_count;
    }
    made->freed = GM_FREED;
    atomic_init(&made->listed.state, GM_LISTED_DEFERRED);
    *remains = made;
    return GPUMEM_OK;
}

static void copy_streams(gpumem_buffer *remains, const gpumem_buffer *buffer) {
    for (size_t i = 0; i < buffer->wait_count; i++)
        remains->waits[i] = (struct gm_wait){.stream = buffer->waits[i].stream,
                                             .id = buffer->waits[i].id,
                                             .namer = buffer->waits[i].namer,
                                             .task = buffer->waits[i].task};
    remains->wait_count = buffer->wait_count;
}

static void leave(struct gm_virtual_resource *v, gpumem_buffer *remains) {
    gpumem_resource *resource = v->resource;
    atomic_fetch_add(&resource->live, 1);
    gm_meter_add(&resource->meter, GM_RESERVED, remains->allocation.capacity);
    gm_roll_add(remains, GPUMEM_STREAM_NONE);
    if (gm_waits_mark(remains))
        gm_buffer_finish(remains, GPUMEM_STREAM_NONE);
    else
        gm_defer(remains);
}

/* ---- The new place --------------------------------------------------------------------------- */

static gpumem_status map_there(struct gm_extent *there, const struct gm_extent *extent) {
    there->given = NULL;
    if (extent->given) {
        there->given = malloc(extent->room * sizeof *there->given);
        if (!there->given)
            return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record who has access");
        memcpy(there->given, extent->given, extent->count * sizeof *there->given);
    }
    return gm_extent_double(there, extent);
}

/* Addresses for `capacity`, with the memory of `extent` mapped there as well. */
static gpumem_status make_place(struct gm_virtual_resource *v, const struct gm_extent *extent,
                                size_t capacity, struct gm_range **made) {
    struct gm_range *range = calloc(1, sizeof *range);
    if (!range)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a virtual allocation");
    struct gm_extent *there = &range->extent;
    range->last.state = GM_WAIT_PASSED;
    there->device = extent->device;
    there->meter = extent->meter;
    there->access = extent->access;
    there->access_count = extent->access_count;
    there->cache = extent->cache;
    /* An alignment that the address has by chance need not be kept. */
    gpumem_status status = gm_extent_init(there, capacity, v->alignment, 0);
    if (status != GPUMEM_OK) {
        free(range);
        return status;
    }
    status = map_there(there, extent);
    if (status != GPUMEM_OK) {
        gm_extent_destroy(there);
        free(range);
        return status;
    }
    *made = range;
    return GPUMEM_OK;
}

/* The range keeps its buffer and gets the new addresses; the memory stays with it. The old
 * addresses become the other range's, which is `ending`. */
static void exchange(struct gm_range *range, struct gm_range *old) {
    struct gm_extent there = old->extent;
    int shared = atomic_load(&range->extent.shared);
    old->extent = range->extent;
    old->extent.borrowed = 1;
    old->extent.cache = NULL;
    old->state = GM_RANGE_ENDING;
    range->extent = there;
    range->extent.borrowed = 0;
    atomic_store(&range->extent.shared, shared);
}

static gpumem_status move_locked(struct gm_virtual_resource *v, gpumem_buffer *buffer,
                                 size_t capacity, gpumem_buffer *remains) {
    struct gm_range *range = buffer->allocation.cookie, *old = NULL;
    gpumem_status status = gm_buffer_not_held(buffer, "move"); /* by a host view, for a while */
    if (status == GPUMEM_OK && range->extent.mirrors)
        status = gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "a buffer that is mapped for the CPU cannot "
                                                     "be moved: its host pointer must not change");
    if (status == GPUMEM_OK)
        status = make_place(v, &range->extent, capacity, &old);
    if (status != GPUMEM_OK)
        return status;
    exchange(range, old);
    gm_virtual_enlist(v, old);
    remains->allocation = buffer->allocation;
    remains->allocation.bytes = remains->allocation.committed_bytes = 0;
    remains->allocation.cookie = old;
    copy_streams(remains, buffer);
    gm_buffer_moved(buffer, range->extent.address, capacity);
    return GPUMEM_OK;
}

void gm_virtual_tell_wrappers(const gpumem_buffer *buffer, CUdeviceptr from) {
    const gpumem_resource *resource = buffer->resource;
    for (; resource && !resource->apart; resource = resource->upstream)
        if (resource->moved)
            resource->moved(resource->user, from, &buffer->allocation);
}

static gpumem_status move(struct gm_virtual_resource *v, gpumem_buffer *buffer, size_t capacity,
                          gpumem_buffer *remains) {
    pthread_mutex_lock(&buffer->lock);
    pthread_rwlock_rdlock(&v->mapped.lock);
    gpumem_status status = move_locked(v, buffer, capacity, remains);
    pthread_rwlock_unlock(&v->mapped.lock);
    pthread_mutex_unlock(&buffer->lock);
    if (status != GPUMEM_OK) {
        gm_buffer_discard(remains);
        return status;
    }
    /* Before the old address can be reused. */
    gm_virtual_tell_wrappers(buffer, remains->allocation.pointer);
    leave(v, remains);
    return GPUMEM_OK;
}

static gpumem_status check(const struct gm_virtual_resource *v, size_t bytes, size_t *capacity) {
    GM_REQUIRE(*capacity >= bytes,
               "gpumem_buffer_move_to_capacity: capacity %zu is less than the size %zu", *capacity,
               bytes);
    if (*capacity > SIZE_MAX - v->granularity)
        return gm_fail(GPUMEM_ERROR_OUT_OF_CAPACITY, "%zu bytes exceeds the address space",
                       *capacity);
    *capacity = (*capacity + v->granularity - 1) / v->granularity * v->granularity;
    return GPUMEM_OK;
}

gpumem_status gpumem_buffer_move_to_capacity(gpumem_buffer *buffer, size_t capacity,
                                             CUstream stream, CUdeviceptr *address) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_buffer_move_to_capacity";
    GM_CHECK(buffer, call);
    GM_REQUIRE(address, "%s: address is NULL", call);
    gpumem_buffer *inner = gm_through(buffer);
    if (inner)
        return gm_through_move(buffer, inner, capacity, stream, address);
    struct gm_virtual_resource *v = gm_virtual_behind(buffer->resource);
    if (!v)
        return gm_virtual_missing(buffer, call);
    gpumem_status status = check(v, buffer->allocation.bytes, &capacity);
    const struct gm_extent *extent = &((struct gm_range *)buffer->allocation.cookie)->extent;
    if (status == GPUMEM_OK && capacity < extent->committed)
        capacity = extent->committed; /* memory from growth in advance moves too */
    if (status == GPUMEM_OK && stream)
        status = gpumem_buffer_use(buffer, stream);
    gpumem_buffer *remains = NULL;
    if (status == GPUMEM_OK)
        status = make_remains(v, buffer, &remains);
    struct gm_current current;
    if (status != GPUMEM_OK)
        return status;
    gm_work_off(v->device);
    status = gm_current_enter(&current, v->device);
    if (status != GPUMEM_OK) {
        gm_buffer_discard(remains);
        return status;
    }
    gm_watches_tell(buffer, 0, buffer->allocation.bytes, GPUMEM_WATCH_MOVE);
    status = move(v, buffer, capacity, remains);
    gm_current_leave(&current);
    if (status == GPUMEM_OK)
        *address = buffer->allocation.pointer;
    return status;
}
