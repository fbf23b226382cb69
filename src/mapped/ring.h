/* The ring's internals, shared by its parts: creation and destruction, producers, consumers,
 * release. */
#ifndef GM_MAPPED_RING_H
#define GM_MAPPED_RING_H

#include "memory/core/stream_waits.h"

#include <gpumem/ring.h>
#include <stdbool.h>
#include <time.h>

enum gm_ring_state {
    GM_RING_FREE,
    GM_RING_FILLING,
    GM_RING_COMMITTING, /* a thread is flushing it */
    GM_RING_COMMITTED,
    GM_RING_CONSUMED,
    GM_RING_RELEASING, /* a thread is marking its streams */
    GM_RING_RELEASED,  /* or abandoned: free once its waits have passed */
    GM_RING_STATES
};

struct gm_ring_slot {
    enum gm_ring_state state;
    size_t offset, bytes; /* offset in the ring; bytes as acquired, then as committed */
    size_t room;          /* bytes of the ring that it occupies */
    struct gm_wait *waits;
    size_t wait_count;
};

struct gpumem_ring {
    unsigned generation;
    gpumem_device *device;
    gpumem_buffer *buffer;
    unsigned char *host;
    CUdeviceptr address;
    size_t bytes, alignment;
    size_t asked_bytes; /* of a chunk, by the options */
    size_t chunk_bytes; /* these rounded up to the alignment: from one chunk to the next */
    size_t slot_count;
    bool mirrored;
    pthread_mutex_t lock;       /* guards everything below */
    pthread_cond_t space;       /* a place may be free, or the ring is closed */
    pthread_cond_t ready;       /* a chunk may be ready to be consumed, or the ring is closed */
    struct gm_ring_slot *slots; /* by number, modulo their count */
    /* tail <= next <= head: chunks before tail are free, those before next consumed or abandoned.
     */
    uint64_t tail, next, head;
    size_t end, used; /* mirrored ring: where the next chunk begins, and bytes in use */
    size_t waiting;   /* threads */
    bool closed;
    CUstream stream; /* waits for events of the program; NULL until needed */
    uint64_t abandoned, released, waits, time_outs;
};

/* ---- Memory: ring_memory.c ------------------------------------------------------------------- */

/* Maps the buffer's memory a second time, right after itself, for the device and the CPU. The
 * buffer must have no other user. All or nothing; the context must be current. */
gpumem_status gm_ring_map_twice(gpumem_buffer *buffer);

/* ---- Chunks: ring.c -------------------------------------------------------------------------- */

/* The lock must be held for all of these. */

static inline struct gm_ring_slot *gm_ring_slot(const gpumem_ring *ring, uint64_t sequence) {
    return &ring->slots[sequence % ring->slot_count];
}

/* Finds the slot of a chunk that must be in this state; INVALID_ARGUMENT reports its actual state.
 */
gpumem_status gm_ring_find(gpumem_ring *ring, uint64_t sequence, enum gm_ring_state state,
                           const char *call, struct gm_ring_slot **slot);
size_t gm_ring_count(const gpumem_ring *ring, enum gm_ring_state state);

/* Frees places from the tail on. With `asks` the context must be current, and the driver is asked
 * which streams have passed; otherwise only places that wait for no work are freed. */
void gm_ring_reclaim(gpumem_ring *ring, bool asks);

/* ---- Waiting: ring_wait.c -------------------------------------------------------------------- */

struct gm_ring_until {
    int timeout_ms; /* as the caller gave it */
    struct timespec time;
};

struct gm_ring_until gm_ring_until(int timeout_ms);

/* Sleeps until `cond` is signalled, `most_ns` (0: no such limit) have passed, or the time-out.
 * Returns false, immediately, if the time-out had already expired. */
bool gm_ring_sleep(gpumem_ring *ring, pthread_cond_t *cond, const struct gm_ring_until *until,
                   long most_ns);

void gm_ring_init_waiting(gpumem_ring *ring);
void gm_ring_end_waiting(gpumem_ring *ring);

#endif
