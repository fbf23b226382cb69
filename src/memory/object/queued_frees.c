#include "memory/object/queued_frees.h"

#include "base/error.h"
#include "base/growing_array.h"
#include "memory/core/capture.h"
#include "memory/core/current_context.h"
#include "memory/core/siblings.h"
#include "memory/object/buffer.h"
#include "memory/object/deferred_frees.h"
#include "memory/object/resource.h"

#include <stdlib.h>

atomic_uint gm_streams_ended;

/* ---- Streams that are known to exist --------------------------------------------------------- */

void gm_queued_stream_made(gpumem_device *device, CUstream stream) {
    pthread_mutex_lock(&device->lock);
    if (GM_RESERVE(device->streams, device->stream_room, device->stream_count + 1))
        device->streams[device->stream_count++] = stream;
    pthread_mutex_unlock(&device->lock);
}

/* The device's lock is held. Its place among them, or their number. */
static size_t find_stream(const gpumem_device *device, CUstream stream) {
    size_t at = 0;
    while (at < device->stream_count && device->streams[at] != stream)
        at++;
    return at;
}

static enum gm_freed_kind kind_of(gpumem_device *device, CUstream stream) {
    if (!stream)
        return GM_FREED_KEPT;
    if (stream == CU_STREAM_PER_THREAD)
        return GM_FREED_OWN;
    pthread_mutex_lock(&device->lock);
    int known = find_stream(device, stream) < device->stream_count;
    pthread_mutex_unlock(&device->lock);
    return known ? GM_FREED_KEPT : GM_FREED_UNKNOWN;
}

/* ---- Marking --------------------------------------------------------------------------------- */

/* 0 if that is settled, -1 if it must be tried again: the stream is capturing, or memory is short.
 */
static int mark(gpumem_resource *resource, const struct gm_freed *taken) {
    gpumem_buffer *made;
    if (gm_buffer_make(resource, taken->stream, &made) != GPUMEM_OK)
        return -1;
    struct gm_wait *wait = &made->waits[0];
    /* Who frees need not be who begins captures on the stream: then it must not be queried. */
    if (taken->stream != CU_STREAM_PER_THREAD)
        gm_wait_is_shared(wait);
    if (gm_wait_mark(resource->device, wait) || wait->state != GM_WAIT_EVENT) {
        int settled = wait->state == GM_WAIT_PASSED || wait->state == GM_WAIT_LOST;
        gm_buffer_discard(made);
        return settled ? 0 : -1;
    }
    made->queued = 1;
    made->freed = GM_FREED;
    made->frees = GM_HELD_FREES(taken->held);
    made->allocation.committed_bytes = GM_HELD_BYTES(taken->held);
    gm_defer(made);
    return 0;
}

/* What has to be tried again may be marked by any thread, so it must be on a stream for which that
 * is possible. */
static void mark_each(gpumem_resource *resource, const struct gm_freed *taken, size_t count) {
    struct gm_error_record saved;
    struct gm_current current;
    gm_error_save(&saved);
    int entered = gm_current_enter(&current, resource->device) == GPUMEM_OK;
    for (size_t i = 0; i < count; i++)
        if ((!entered || mark(resource, &taken[i]) != 0) &&
            kind_of(resource->device, taken[i].stream) == GM_FREED_KEPT)
            gm_tally_put_freed(&resource->tally, taken[i].stream, taken[i].held);
    if (entered)
        gm_current_leave(&current);
    gm_error_restore(&saved);
}

/* More streams than that are left for the next time. */
#define AT_ONCE 64

static void mark_all_of(gpumem_resource *resource, struct gm_freed_what what) {
    struct gm_freed taken[AT_ONCE];
    size_t count = 0;
    while (count < AT_ONCE && gm_tally_take_freed(&resource->tally, what, &taken[count]))
        count++;
    if (count)
        mark_each(resource, taken, count);
}

static void mark_one(gpumem_resource *resource, void *what) {
    if (resource->tally.serial)
        mark_all_of(resource, *(struct gm_freed_what *)what);
}

static void mark_what(gpumem_device *device, struct gm_freed_what what) {
    gm_resources_visit(device, mark_one, &what);
}

void gm_queued_mark(gpumem_device *device, int all) {
    mark_what(device, (struct gm_freed_what){.all = all});
}

void gm_queued_look(gpumem_device *device) {
    gm_queued_mark(device, 0);
    gm_work_off_queued(device);
}

/* At a free: the stream exists, whatever it is. Marks that have passed are given up here, or those
 * of a program that never asks for figures would become ever more. */
static void mark_now(gpumem_resource *resource, CUstream stream, uint64_t held) {
    const struct gm_freed taken = {.stream = stream, .held = held};
    if (!held)
        return;
    gm_work_off_queued(resource->device);
    mark_each(resource, &taken, 1);
}

void gm_free_was_queued(gpumem_resource *resource, CUstream stream, size_t bytes) {
    const uint64_t one = GM_HELD_ONE(bytes);
    const unsigned ended = atomic_load_explicit(&gm_streams_ended, memory_order_relaxed);
    if (!resource->tally.serial)
        return;
    stream = gm_canonical(stream);
    struct gm_tally_cell *cell = gm_tally_cell_of(&resource->tally);
    if (!cell) {
        mark_now(resource, stream, one);
        return;
    }
    struct gm_freed *freed = gm_freed_of(cell, stream);
    if (!freed->kind || freed->stream != stream || freed->ended != ended) {
        struct gm_freed before;
        freed =
            gm_tally_count_stream(cell, stream, kind_of(resource->device, stream), ended, &before);
        mark_now(resource, before.stream, before.held);
    }
    uint64_t held = atomic_fetch_add_explicit(&freed->held, one, memory_order_relaxed) + one;
    if (GM_HELD_FREES(held) >= GM_HELD_MANY ||
        (freed->kind != GM_FREED_KEPT && GM_HELD_BYTES(held) >= GM_QUEUED_MOST))
        mark_now(resource, stream, atomic_exchange_explicit(&freed->held, 0, memory_order_relaxed));
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void stream_ends(gpumem_device *device, void *stream) {
    pthread_mutex_lock(&device->lock);
    size_t at = find_stream(device, stream);
    int known = at < device->stream_count;
    if (known) /* first: what cannot be marked any more is given up */
        device->streams[at] = device->streams[--device->stream_count];
    pthread_mutex_unlock(&device->lock);
    if (known)
        mark_what(device, (struct gm_freed_what){.all = 1, .one = 1, .stream = stream});
}

void gm_queued_stream_ends(gpumem_device *device, CUstream stream) {
    stream_ends(device, stream);
    gm_siblings_visit(device, stream_ends, stream);
    atomic_fetch_add(&gm_streams_ended, 1);
}

/* ---- Pools that are gone --------------------------------------------------------------------- */

static gpumem_status refuse(void *user, const gpumem_request *request,
                            gpumem_allocation *allocation) {
    (void)user, (void)request, (void)allocation;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "the pool was destroyed");
}

static void nothing(void *user, const gpumem_allocation *allocation, CUstream stream) {
    (void)user, (void)allocation, (void)stream;
}

static void properties(void *user, gpumem_resource_properties *out) {
    (void)user;
    out->device_accessible = out->stream_ordered = 1;
    out->location = GPUMEM_LOCATION_DEVICE;
}

/* Has their marks, which are waited for when the device runs out of memory. NULL without host
 * memory. */
static gpumem_resource *ended_pools(gpumem_device *device) {
    static const gpumem_resource_ops ops = {.size = sizeof ops,
                                            .kind = "ended pool",
                                            .allocate = refuse,
                                            .deallocate = nothing,
                                            .properties = properties};
    gpumem_resource *made = NULL;
    pthread_mutex_lock(&device->lock);
    if (!device->ended_pools && gm_resource_make_hidden(device, &ops, NULL, &made) == GPUMEM_OK)
        device->ended_pools = made;
    made = device->ended_pools;
    pthread_mutex_unlock(&device->lock);
    return made;
}

void gm_queued_leave(gpumem_resource *resource) {
    if (!resource->tally.serial)
        return;
    struct gm_error_record saved;
    gm_error_save(&saved);
    mark_all_of(resource, (struct gm_freed_what){.all = 1});
    if (gm_has_queued(resource)) { /* may find no host memory */
        int on_device = resource->properties.location == GPUMEM_LOCATION_DEVICE;
        gm_move_queued(resource, on_device ? ended_pools(resource->device) : NULL);
    }
    gm_error_restore(&saved);
}
