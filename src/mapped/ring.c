/* Rings of chunks: creation, destruction, state and information. */
#include "mapped/ring.h"

#include "base/cancel.h"
#include "base/options.h"
#include "mapped/incoherent.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"
#include "memory/object/device.h"
#include "memory/virtual/virtual_resource.h"

#include <stdlib.h>

#define ALIGNMENT ((size_t)256)

/* ---- State ----------------------------------------------------------------------------------- */

static const char *const states[GM_RING_STATES] = {
    "not out",  "being filled",   "being committed",      "committed and not consumed",
    "consumed", "being released", "released or abandoned"};

gpumem_status gm_ring_find(gpumem_ring *ring, uint64_t sequence, enum gm_ring_state state,
                           const char *call, struct gm_ring_slot **slot) {
    enum gm_ring_state found = GM_RING_FREE;
    if (sequence >= ring->tail && sequence < ring->head) {
        *slot = gm_ring_slot(ring, sequence);
        found = (*slot)->state;
    }
    if (found == state)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "%s: chunk %llu is %s, not %s", call,
                   (unsigned long long)sequence, states[found], states[state]);
}

size_t gm_ring_count(const gpumem_ring *ring, enum gm_ring_state state) {
    size_t count = 0;
    for (uint64_t i = ring->tail; i < ring->head; i++)
        count += gm_ring_slot(ring, i)->state == state;
    return count;
}

static void drop_waits(gpumem_ring *ring, struct gm_ring_slot *slot) {
    for (size_t i = 0; i < slot->wait_count; i++)
        gm_wait_drop(ring->device, &slot->waits[i]);
    free(slot->waits);
    slot->waits = NULL;
    slot->wait_count = 0;
}

static bool has_passed(gpumem_ring *ring, struct gm_ring_slot *slot, bool block) {
    for (size_t i = 0; i < slot->wait_count; i++)
        if (!gm_wait_passed(ring->device, &slot->waits[i], block))
            return false;
    return true;
}

void gm_ring_reclaim(gpumem_ring *ring, bool asks) {
    while (ring->tail < ring->head) {
        struct gm_ring_slot *slot = gm_ring_slot(ring, ring->tail);
        if (slot->state != GM_RING_RELEASED ||
            (slot->wait_count && (!asks || !has_passed(ring, slot, false))))
            break;
        drop_waits(ring, slot);
        slot->state = GM_RING_FREE;
        ring->used -= slot->room;
        ring->tail++;
        if (ring->next < ring->tail) /* it was abandoned */
            ring->next = ring->tail;
    }
}

/* ---- Making ---------------------------------------------------------------------------------- */

static gpumem_status check(const gpumem_ring_options *o) {
    static const char call[] = "gpumem_ring_create";
    GM_REQUIRE(o->chunk_bytes, "%s: chunk_bytes is 0", call);
    GM_REQUIRE(o->chunk_count >= 2,
               "%s: chunk_count is %zu; 2 at least, one to fill and one to use", call,
               o->chunk_count);
    GM_REQUIRE((o->alignment & (o->alignment - 1)) == 0, "%s: alignment %zu is no power of two",
               call, o->alignment);
    return GPUMEM_OK;
}

/* The next multiple; 0 if there is none. */
static size_t round_up(size_t bytes, size_t unit) {
    return bytes > SIZE_MAX - unit ? 0 : (bytes + unit - 1) / unit * unit;
}

/* Computes sizes and places of the chunks from the alignment. */
static gpumem_status plan(gpumem_ring *ring, gpumem_resource *resource,
                          const gpumem_ring_options *o) {
    size_t granularity = resource->properties.granularity;
    GM_REQUIRE(!o->mirrored || !granularity || granularity % ring->alignment == 0,
               "gpumem_ring_create: alignment %zu is above the granularity %zu", ring->alignment,
               granularity);
    ring->asked_bytes = o->chunk_bytes;
    ring->chunk_bytes = round_up(o->chunk_bytes, ring->alignment);
    if (__builtin_mul_overflow(ring->chunk_bytes, o->chunk_count, &ring->bytes))
        ring->bytes = 0;
    if (o->mirrored && granularity && ring->bytes)
        ring->bytes = round_up(ring->bytes, granularity);
    if (!ring->chunk_bytes || !ring->bytes || ring->bytes > SIZE_MAX / 2)
        return gm_fail(GPUMEM_ERROR_OUT_OF_CAPACITY, "%zu chunks of %zu bytes: no memory is as big",
                       o->chunk_count, o->chunk_bytes);
    return GPUMEM_OK;
}

static gpumem_status map_twice(gpumem_ring *ring) {
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, ring->device);
    if (status != GPUMEM_OK)
        return status;
    status = gm_ring_map_twice(ring->buffer);
    gm_current_leave(&current);
    return status;
}

static gpumem_status check_reach(const gpumem_ring *ring) {
    if (ring->host)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                   "gpumem_ring_create: the CPU does not reach memory of a %s resource",
                   ring->buffer->resource->kind);
}

static gpumem_status make_memory(gpumem_ring *ring, gpumem_resource *resource) {
    const gpumem_buffer_options options = {.size = sizeof options,
                                           .stream = GPUMEM_STREAM_NONE,
                                           .alignment =
                                               ring->alignment > ALIGNMENT ? ring->alignment : 0,
                                           .capacity = ring->mirrored ? 2 * ring->bytes : 0};
    if (ring->mirrored && !gm_virtual_behind(resource))
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "gpumem_ring_create: memory of this %s resource cannot be mapped twice",
                       resource->kind);
    gpumem_status status = gpumem_buffer_allocate(resource, ring->bytes, &options, &ring->buffer);
    if (status != GPUMEM_OK)
        return status;
    ring->host = gpumem_buffer_host_pointer(ring->buffer);
    ring->address = gpumem_buffer_pointer(ring->buffer);
    status = check_reach(ring);
    if (status == GPUMEM_OK && ring->mirrored)
        status = map_twice(ring);
    if (status != GPUMEM_OK) {
        struct gm_error_record saved;
        gm_error_save(&saved);
        (void)gpumem_buffer_free(ring->buffer, NULL);
        gm_error_restore(&saved);
    }
    return status;
}

/* Chunks share no atom. The atom is known only from the memory, which a wrapper may have got
 * anywhere. */
static gpumem_status make_aligned(gpumem_ring *ring, gpumem_resource *resource,
                                  const gpumem_ring_options *o) {
    ring->alignment = o->alignment ? o->alignment : ALIGNMENT;
    for (;;) {
        gpumem_status status = plan(ring, resource, o);
        if (status == GPUMEM_OK)
            status = make_memory(ring, resource);
        if (status != GPUMEM_OK)
            return status;
        size_t atom = gm_incoherent_atom(ring->host);
        if (atom <= ring->alignment)
            return GPUMEM_OK;
        (void)gpumem_buffer_free(ring->buffer, NULL);
        ring->alignment = atom;
    }
}

static gpumem_status make(gpumem_ring *ring, gpumem_resource *resource,
                          const gpumem_ring_options *o) {
    ring->mirrored = o->mirrored;
    ring->slot_count = o->chunk_count;
    ring->slots = calloc(ring->slot_count, sizeof *ring->slots);
    if (!ring->slots)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to note %zu chunks",
                       ring->slot_count);
    return make_aligned(ring, resource, o);
}

gpumem_status gpumem_ring_create(gpumem_resource *resource, const gpumem_ring_options *given,
                                 gpumem_ring **ring) {
    GM_UNCANCELLED;
    gpumem_ring_options options;
    GM_CHECK(resource, "gpumem_ring_create");
    GM_REQUIRE(ring, "gpumem_ring_create: ring is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_ring_options, given, &options);
    if (status == GPUMEM_OK)
        status = check(&options);
    if (status != GPUMEM_OK)
        return status;
    gpumem_ring *made = calloc(1, sizeof *made);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a ring");
    made->generation = resource->generation;
    made->device = resource->device;
    status = make(made, resource, &options);
    if (status != GPUMEM_OK) {
        free(made->slots);
        free(made);
        return status;
    }
    gm_ring_init_waiting(made);
    *ring = made;
    return GPUMEM_OK;
}

/* ---- Ending ---------------------------------------------------------------------------------- */

static gpumem_status nobody_uses(const gpumem_ring *ring) {
    size_t filling = gm_ring_count(ring, GM_RING_FILLING) + gm_ring_count(ring, GM_RING_COMMITTING);
    size_t consumed =
        gm_ring_count(ring, GM_RING_CONSUMED) + gm_ring_count(ring, GM_RING_RELEASING);
    if (ring->waiting)
        return gm_fail(GPUMEM_ERROR_BUSY,
                       "gpumem_ring_destroy: %zu threads wait in the ring; gpumem_ring_close "
                       "wakes them",
                       ring->waiting);
    if (filling || consumed)
        return gm_fail(GPUMEM_ERROR_BUSY,
                       "gpumem_ring_destroy: %zu chunks are being filled (commit or abandon them) "
                       "and %zu are consumed (release them)",
                       filling, consumed);
    return GPUMEM_OK;
}

/* Waits for all work on released chunks; the driver may be refusing every call. */
static gpumem_status wait_for_streams(gpumem_ring *ring) {
    for (uint64_t i = ring->tail; i < ring->head; i++)
        if (!has_passed(ring, gm_ring_slot(ring, i), true))
            return gm_fail(GPUMEM_ERROR_BUSY,
                           "gpumem_ring_destroy: the driver does not say whether the work on "
                           "chunk %llu is done; try again",
                           (unsigned long long)i);
    return GPUMEM_OK;
}

static void end_driver_objects(gpumem_ring *ring) {
    for (uint64_t i = ring->tail; i < ring->head; i++)
        drop_waits(ring, gm_ring_slot(ring, i));
    if (ring->stream && ring->device->cu->cuStreamDestroy_v2(ring->stream) != CUDA_SUCCESS)
        gm_meter_quarantine(&ring->device->meter, 0);
}

static gpumem_status end(gpumem_ring *ring) {
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, ring->device);
    if (status != GPUMEM_OK)
        return status;
    status = wait_for_streams(ring);
    if (status == GPUMEM_OK)
        end_driver_objects(ring);
    gm_current_leave(&current);
    return status;
}

gpumem_status gpumem_ring_destroy(gpumem_ring *ring) {
    GM_UNCANCELLED;
    if (!ring)
        return GPUMEM_OK;
    GM_CHECK(ring, "gpumem_ring_destroy");
    pthread_mutex_lock(&ring->lock);
    gpumem_status status = nobody_uses(ring);
    if (status == GPUMEM_OK)
        status = end(ring);
    pthread_mutex_unlock(&ring->lock);
    if (status != GPUMEM_OK)
        return status;
    (void)gpumem_buffer_free(ring->buffer, NULL);
    gm_ring_end_waiting(ring);
    free(ring->slots);
    gm_bury(ring);
    return GPUMEM_OK;
}

gpumem_status gpumem_ring_close(gpumem_ring *ring) {
    GM_UNCANCELLED;
    GM_CHECK(ring, "gpumem_ring_close");
    pthread_mutex_lock(&ring->lock);
    ring->closed = true;
    pthread_cond_broadcast(&ring->space);
    pthread_cond_broadcast(&ring->ready);
    pthread_mutex_unlock(&ring->lock);
    return GPUMEM_OK;
}

/* ---- What is known of it --------------------------------------------------------------------- */

/* Abandoned chunks wait for no work, and are not counted. */
static size_t count_pending(const gpumem_ring *ring) {
    size_t count = 0;
    for (uint64_t i = ring->tail; i < ring->head; i++) {
        const struct gm_ring_slot *slot = gm_ring_slot(ring, i);
        count += slot->state == GM_RING_RELEASED && slot->wait_count;
    }
    return count;
}

gpumem_status gpumem_ring_get_info(gpumem_ring *ring, gpumem_ring_info *info) {
    GM_UNCANCELLED;
    GM_CHECK(ring, "gpumem_ring_get_info");
    GM_REQUIRE(info, "gpumem_ring_get_info: info is NULL");
    pthread_mutex_lock(&ring->lock);
    const gpumem_ring_info found = {
        .size = sizeof found,
        .bytes = ring->bytes,
        .chunk_bytes = ring->chunk_bytes,
        .chunk_count = ring->slot_count,
        .mirrored = ring->mirrored,
        .closed = ring->closed,
        .host = ring->host,
        .device = ring->address,
        .filling = gm_ring_count(ring, GM_RING_FILLING) + gm_ring_count(ring, GM_RING_COMMITTING),
        .committed = gm_ring_count(ring, GM_RING_COMMITTED),
        .consumed = gm_ring_count(ring, GM_RING_CONSUMED) + gm_ring_count(ring, GM_RING_RELEASING),
        .pending = count_pending(ring),
        .acquired = ring->head,
        .abandoned = ring->abandoned,
        .released = ring->released,
        .waits = ring->waits,
        .time_outs = ring->time_outs,
    };
    pthread_mutex_unlock(&ring->lock);
    return GM_RESULT_WRITE(gpumem_ring_info, info, &found);
}
