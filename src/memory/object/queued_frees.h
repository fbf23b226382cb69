/*
 * Frees that the driver has taken in the order of a stream: its pool has the memory back once the
 * work queued before is done, and nobody says when. What each thread freed, and did not allocate
 * again, is counted by stream, without a driver call. Where it matters (memory runs out, a trim
 * waits, statistics are read) the streams are marked by events, and the marks join the device's
 * deferred frees, as buffers without memory: they are waited for and counted like any other.
 *
 * A stream may be destroyed after the free, and NVIDIA's driver does not survive a query of one
 * that is gone. So only those are marked later that are known to exist: the default stream, the
 * per-thread one in its thread, and streams made by gpumem_stream_create until
 * gpumem_stream_destroy. On others the free itself marks, as soon as GM_QUEUED_MOST bytes are
 * unmarked: less than that is not waited for.
 */
#ifndef GM_MEMORY_QUEUED_FREES_H
#define GM_MEMORY_QUEUED_FREES_H

#include "memory/object/thread_counts.h"

/* What an H200's pools take from the device at once: with less, nothing comes back. */
#define GM_QUEUED_MOST ((uint64_t)32 << 20)

/* In `held` of a struct gm_freed: bytes, rounded up to 256, above the number of frees. */
#define GM_HELD_SHIFT       24
#define GM_HELD_ONE(bytes)  (((((uint64_t)(bytes) + 255) >> 8) << GM_HELD_SHIFT) | 1)
#define GM_HELD_FREES(held) ((held) & ((1u << GM_HELD_SHIFT) - 1))
#define GM_HELD_BYTES(held) (((held) >> GM_HELD_SHIFT) << 8)
/* So many frees must not become more. */
#define GM_HELD_MANY ((uint64_t)1 << (GM_HELD_SHIFT - 1))

/* How often a stream was destroyed: what a thread knows of a stream holds until then. */
extern atomic_uint gm_streams_ended;

/* The thread's count for the stream (the legacy one is NULL), if it has one. */
static inline struct gm_freed *gm_freed_of(struct gm_tally_cell *cell, CUstream stream) {
    struct gm_freed *usual =
        &cell->freed[(((uintptr_t)stream >> 4) ^ ((uintptr_t)stream >> 9)) % GM_FREED_STREAMS];
    if (__builtin_expect(usual->stream == stream, 1))
        return usual;
    for (unsigned i = 0; i < GM_FREED_STREAMS; i++)
        if (cell->freed[i].stream == stream)
            return &cell->freed[i];
    return usual;
}

/* The general way: also for a thread without a cell, for streams that are not known yet, and for
 * those that are marked at the free. Behind the driver's free; the caller's error is kept. */
void gm_free_was_queued(gpumem_resource *resource, CUstream stream, size_t bytes);

/* The same for the fast path. */
static inline void gm_free_was_queued_here(gpumem_resource *resource, struct gm_tally_cell *cell,
                                           CUstream stream, size_t bytes) {
    struct gm_freed *freed = gm_freed_of(cell, stream);
    if (freed->kind == GM_FREED_KEPT && freed->stream == stream &&
        freed->ended == atomic_load_explicit(&gm_streams_ended, memory_order_relaxed)) {
        uint64_t before =
            atomic_fetch_add_explicit(&freed->held, GM_HELD_ONE(bytes), memory_order_relaxed);
        if (__builtin_expect(!(before & GM_HELD_MANY), 1))
            return;
    }
    gm_free_was_queued(resource, stream, bytes);
}

/* An allocation on the stream takes what was freed there first. */
static inline void gm_free_was_reused(struct gm_tally_cell *cell, CUstream stream, size_t bytes) {
    struct gm_freed *freed = gm_freed_of(cell, stream);
    uint64_t held = atomic_load_explicit(&freed->held, memory_order_relaxed);
    if (!held || freed->stream != stream)
        return;
    uint64_t one = GM_HELD_ONE(bytes);
    uint64_t less =
        GM_HELD_FREES(held) > 1 && GM_HELD_BYTES(held) > GM_HELD_BYTES(one) ? held - one : 0;
    /* Taken by another thread meanwhile: nothing is left to reduce. */
    (void)atomic_compare_exchange_strong_explicit(&freed->held, &held, less, memory_order_relaxed,
                                                  memory_order_relaxed);
}

/* Marks what was freed in pools of the device: on all streams that are known to exist, or (`all`
 * is 0) only on those that this thread freed on, and the default stream. */
void gm_queued_mark(gpumem_device *device, int all);

/* For statistics: the same for this thread, and forgets what has passed. Never waits. */
void gm_queued_look(gpumem_device *device);

/* A stream of gpumem_stream_create: from here on it is known to exist; and before its end, when
 * what was freed on it is marked. The device's context is current. */
void gm_queued_stream_made(gpumem_device *device, CUstream stream);
void gm_queued_stream_ends(gpumem_device *device, CUstream stream);

/* A resource is about to be destroyed: its driver gives the memory back later all the same. The
 * device's context is current. */
void gm_queued_leave(gpumem_resource *resource);

#endif
