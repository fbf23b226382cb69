/* A chunk's life in a ring: acquired, filled, committed, consumed. */
#include "base/cancel.h"
#include "base/options.h"
#include "mapped/engine.h"
#include "mapped/incoherent.h"
#include "mapped/mapper.h"
#include "mapped/ring.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"

/* How often a waiting producer queries the oldest chunk's events: at first, and after a while. No
 * event can wake a thread within a time-out. */
#define FIRST_LOOK_NS 20000L
#define LAST_LOOK_NS  200000L

static gpumem_status check_result(const gpumem_ring_chunk *chunk, const char *call) {
    GM_REQUIRE(chunk, "%s: chunk is NULL", call);
    return GM_RESULT_CHECK(gpumem_ring_chunk, chunk);
}

/* The slot does not change while the caller owns the chunk. */
static gpumem_status tell(const gpumem_ring *ring, uint64_t sequence,
                          const struct gm_ring_slot *slot, gpumem_ring_chunk *chunk) {
    const gpumem_ring_chunk found = {.size = sizeof found,
                                     .sequence = sequence,
                                     .host = ring->host + slot->offset,
                                     .device = ring->address + slot->offset,
                                     .bytes = slot->bytes,
                                     .offset = slot->offset};
    return GM_RESULT_WRITE(gpumem_ring_chunk, chunk, &found);
}

static gpumem_status timed_out(gpumem_ring *ring, const struct gm_ring_until *until,
                               const char *what, uint64_t sequence) {
    ring->time_outs++;
    return gm_fail(GPUMEM_ERROR_TIMED_OUT,
                   "%s %llu in %d ms: of %zu, %zu are being filled, %zu committed, %zu consumed "
                   "and %zu released, waiting for streams",
                   what, (unsigned long long)sequence, until->timeout_ms, ring->slot_count,
                   gm_ring_count(ring, GM_RING_FILLING) + gm_ring_count(ring, GM_RING_COMMITTING),
                   gm_ring_count(ring, GM_RING_COMMITTED),
                   gm_ring_count(ring, GM_RING_CONSUMED) + gm_ring_count(ring, GM_RING_RELEASING),
                   gm_ring_count(ring, GM_RING_RELEASED));
}

/* ---- Acquiring ------------------------------------------------------------------------------- */

/* Bytes of the ring that a chunk of this size occupies; 0: the size is not possible. */
static size_t room_for(const gpumem_ring *ring, size_t bytes) {
    size_t most = ring->mirrored ? ring->bytes : ring->chunk_bytes;
    if (bytes > most)
        return 0;
    if (!ring->mirrored)
        return ring->chunk_bytes;
    return (bytes + ring->alignment - 1) / ring->alignment * ring->alignment;
}

static bool fits(const gpumem_ring *ring, size_t room) {
    return ring->head - ring->tail < ring->slot_count && room <= ring->bytes - ring->used;
}

/* With the lock held and the context current. */
static gpumem_status wait_for_room(gpumem_ring *ring, size_t room,
                                   const struct gm_ring_until *until) {
    long look = FIRST_LOOK_NS;
    for (bool waited = false;; waited = true) {
        gm_ring_reclaim(ring, true);
        if (ring->closed)
            return gm_fail(GPUMEM_ERROR_CANCELLED, "gpumem_ring_acquire: the ring is closed");
        if (fits(ring, room))
            return GPUMEM_OK;
        bool looks = gm_ring_slot(ring, ring->tail)->state == GM_RING_RELEASED;
        ring->waits += !waited && until->timeout_ms != 0;
        if (!gm_ring_sleep(ring, &ring->space, until, looks ? look : 0))
            return timed_out(ring, until, "no room for chunk", ring->head);
        look = !looks ? FIRST_LOOK_NS : look < LAST_LOOK_NS ? 2 * look : look;
    }
}

static gpumem_status get_room(gpumem_ring *ring, size_t room, const struct gm_ring_until *until) {
    struct gm_current current;
    gm_ring_reclaim(ring, false);
    if (!ring->closed && fits(ring, room))
        return GPUMEM_OK;
    /* The lock is the ring's own: entering a context waits for no other thread. */
    gpumem_status status = gm_current_enter(&current, ring->device);
    if (status != GPUMEM_OK)
        return status;
    status = wait_for_room(ring, room, until);
    gm_current_leave(&current);
    return status;
}

static uint64_t take(gpumem_ring *ring, size_t bytes, size_t room) {
    uint64_t sequence = ring->head++;
    struct gm_ring_slot *slot = gm_ring_slot(ring, sequence);
    slot->state = GM_RING_FILLING;
    slot->bytes = bytes;
    slot->room = room;
    slot->offset = ring->end;
    ring->end = (ring->end + room) % ring->bytes;
    ring->used += room;
    return sequence;
}

gpumem_status gpumem_ring_acquire(gpumem_ring *ring, size_t bytes, int timeout_ms,
                                  gpumem_ring_chunk *chunk) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_ring_acquire";
    GM_CHECK(ring, call);
    gpumem_status status = check_result(chunk, call);
    if (status != GPUMEM_OK)
        return status;
    size_t wanted = bytes ? bytes : ring->asked_bytes, room = room_for(ring, wanted);
    GM_REQUIRE(room, "%s: %zu bytes; a chunk of this ring has %zu at most", call, bytes,
               ring->mirrored ? ring->bytes : ring->chunk_bytes);
    const struct gm_ring_until until = gm_ring_until(timeout_ms);
    uint64_t sequence = 0;
    pthread_mutex_lock(&ring->lock);
    status = get_room(ring, room, &until);
    if (status == GPUMEM_OK)
        sequence = take(ring, wanted, room);
    pthread_mutex_unlock(&ring->lock);
    if (status != GPUMEM_OK)
        return status;
    const struct gm_ring_slot *slot = gm_ring_slot(ring, sequence);
    /* The CPU may have cached older bytes of non-coherent memory, through this mapping or its twin.
     */
    status = gm_incoherent_invalidate(ring->host + slot->offset, slot->room);
    if (status == GPUMEM_OK)
        return tell(ring, sequence, slot, chunk);
    (void)gpumem_ring_abandon(ring, sequence);
    return status;
}

/* ---- Filling --------------------------------------------------------------------------------- */

/* Finds [offset, offset + bytes) of a chunk that is being filled. */
static gpumem_status locate(gpumem_ring *ring, uint64_t sequence, size_t offset, size_t bytes,
                            const char *call, unsigned char **begin) {
    struct gm_ring_slot *slot = NULL;
    size_t size = 0;
    GM_CHECK(ring, call);
    pthread_mutex_lock(&ring->lock);
    gpumem_status status = gm_ring_find(ring, sequence, GM_RING_FILLING, call, &slot);
    if (status == GPUMEM_OK) {
        size = slot->bytes;
        *begin = ring->host + slot->offset + offset;
    }
    pthread_mutex_unlock(&ring->lock);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(offset <= size && bytes <= size - offset,
               "%s: %zu bytes at offset %zu do not fit in the chunk's %zu", call, bytes, offset,
               size);
    return GPUMEM_OK;
}

static gpumem_status flush(const unsigned char *begin, size_t bytes) {
    gm_mapped_fence();
    return bytes ? gm_incoherent_flush(begin, bytes) : GPUMEM_OK;
}

gpumem_status gpumem_ring_write(gpumem_ring *ring, uint64_t sequence, size_t offset,
                                const void *data, size_t bytes) {
    GM_UNCANCELLED;
    unsigned char *begin = NULL;
    gpumem_status status = locate(ring, sequence, offset, bytes, "gpumem_ring_write", &begin);
    if (status != GPUMEM_OK || !bytes)
        return status;
    GM_REQUIRE(data, "gpumem_ring_write: data is NULL");
    gm_engine_store(gm_engine_of(ring->buffer), begin, data, bytes);
    return flush(begin, bytes);
}

gpumem_status gpumem_ring_flush(gpumem_ring *ring, uint64_t sequence, size_t offset, size_t bytes) {
    GM_UNCANCELLED;
    unsigned char *begin = NULL;
    gpumem_status status = locate(ring, sequence, offset, bytes, "gpumem_ring_flush", &begin);
    return status == GPUMEM_OK ? flush(begin, bytes) : status;
}

static gpumem_status begin_commit(gpumem_ring *ring, uint64_t sequence, size_t bytes,
                                  struct gm_ring_slot **slot) {
    static const char call[] = "gpumem_ring_commit";
    gpumem_status status = gm_ring_find(ring, sequence, GM_RING_FILLING, call, slot);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(bytes <= (*slot)->bytes, "%s: %zu bytes; chunk %llu has %zu", call, bytes,
               (unsigned long long)sequence, (*slot)->bytes);
    (*slot)->state = GM_RING_COMMITTING;
    return GPUMEM_OK;
}

gpumem_status gpumem_ring_commit(gpumem_ring *ring, uint64_t sequence, size_t bytes) {
    GM_UNCANCELLED;
    struct gm_ring_slot *slot = NULL;
    GM_CHECK(ring, "gpumem_ring_commit");
    pthread_mutex_lock(&ring->lock);
    gpumem_status status = begin_commit(ring, sequence, bytes, &slot);
    pthread_mutex_unlock(&ring->lock);
    if (status != GPUMEM_OK)
        return status;
    status = flush(ring->host + slot->offset, bytes);
    pthread_mutex_lock(&ring->lock);
    slot->state = status == GPUMEM_OK ? GM_RING_COMMITTED : GM_RING_FILLING;
    if (status == GPUMEM_OK)
        slot->bytes = bytes;
    pthread_cond_broadcast(&ring->ready);
    pthread_mutex_unlock(&ring->lock);
    return status;
}

gpumem_status gpumem_ring_abandon(gpumem_ring *ring, uint64_t sequence) {
    GM_UNCANCELLED;
    struct gm_ring_slot *slot;
    GM_CHECK(ring, "gpumem_ring_abandon");
    pthread_mutex_lock(&ring->lock);
    gpumem_status status =
        gm_ring_find(ring, sequence, GM_RING_FILLING, "gpumem_ring_abandon", &slot);
    if (status == GPUMEM_OK) {
        slot->state = GM_RING_RELEASED;
        ring->abandoned++;
        pthread_cond_broadcast(&ring->space);
        pthread_cond_broadcast(&ring->ready); /* the chunk after it may be ready */
    }
    pthread_mutex_unlock(&ring->lock);
    return status;
}

/* ---- Consuming ------------------------------------------------------------------------------- */

/* The state of the next chunk; FREE if there is none. Skips abandoned ones. */
static enum gm_ring_state look_at_next(gpumem_ring *ring) {
    while (ring->next < ring->head && gm_ring_slot(ring, ring->next)->state == GM_RING_RELEASED)
        ring->next++;
    return ring->next < ring->head ? gm_ring_slot(ring, ring->next)->state : GM_RING_FREE;
}

static gpumem_status wait_for_next(gpumem_ring *ring, const struct gm_ring_until *until) {
    for (bool waited = false;; waited = true) {
        enum gm_ring_state state = look_at_next(ring);
        if (state == GM_RING_COMMITTED)
            return GPUMEM_OK;
        if (state == GM_RING_FREE && ring->closed)
            return gm_fail(GPUMEM_ERROR_CANCELLED,
                           "gpumem_ring_consume: the ring is closed, and nothing is left in it");
        ring->waits += !waited && until->timeout_ms != 0;
        if (!gm_ring_sleep(ring, &ring->ready, until, 0))
            return timed_out(ring, until, "not committed: chunk", ring->next);
    }
}

gpumem_status gpumem_ring_consume(gpumem_ring *ring, int timeout_ms, gpumem_ring_chunk *chunk) {
    GM_UNCANCELLED;
    GM_CHECK(ring, "gpumem_ring_consume");
    gpumem_status status = check_result(chunk, "gpumem_ring_consume");
    if (status != GPUMEM_OK)
        return status;
    const struct gm_ring_until until = gm_ring_until(timeout_ms);
    uint64_t sequence = 0;
    pthread_mutex_lock(&ring->lock);
    status = wait_for_next(ring, &until);
    if (status == GPUMEM_OK) {
        sequence = ring->next++;
        gm_ring_slot(ring, sequence)->state = GM_RING_CONSUMED;
        pthread_cond_broadcast(&ring->ready); /* for the consumer of the next chunk */
    }
    pthread_mutex_unlock(&ring->lock);
    return status == GPUMEM_OK ? tell(ring, sequence, gm_ring_slot(ring, sequence), chunk) : status;
}
