/*
 * What a thread has to itself, so that its allocations and frees share nothing with those of other
 * threads: counts, which go to the meters when they have become much or when somebody asks, and
 * buffer objects to be used again.
 */
#ifndef GM_MEMORY_THREAD_COUNTS_H
#define GM_MEMORY_THREAD_COUNTS_H

#include "memory/core/stream_waits.h"

/* A thread that has counted this much more or less than the meters know tells them. High-water
 * marks are exact to this much a thread; with one thread they are exact. */
#define GM_TALLY_QUANTUM ((int64_t)64 << 20)

/* One thread's counts for one resource. The thread writes them, others read them. */
struct gm_tally_cell {
    uint64_t serial; /* of the resource; changed by the thread, under the lock */
    _Atomic int64_t in_use, committed, alive;
    _Atomic uint64_t total;
    _Atomic int64_t in_use_peak, committed_peak; /* since the meters were told */
    atomic_uint epoch;                           /* how often they were told; under the lock */
    unsigned seen;                               /* of that, by the thread */
    int64_t base;                                /* `committed` at that time */
    /* What the meters know; under the lock. */
    int64_t told_in_use, told_committed, told_alive;
    uint64_t told_total;
};

#define GM_TALLY_CELLS 8u

/* What is destroyed can be told by its mark until so many more are (base/object.h). */
#define GM_SPARES_RESTING 128u
#define GM_SPARES         256u

struct gm_thread {
    struct gm_tally_cell cells[GM_TALLY_CELLS];
    struct gm_thread *next; /* of all threads, under the lock */
    struct gm_wait self;    /* a stream that this thread names; all but which one */
    unsigned first, count;
    gpumem_buffer *spares[GM_SPARES]; /* from the oldest on */
};

extern __thread struct gm_thread *gm_thread_own
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Lets threads count for a resource, and ends that: what they have counted is lost then. */
void gm_tally_begin(struct gm_tally *tally, struct gm_meter *meter);
void gm_tally_end(struct gm_tally *tally);

/* What all threads have counted goes to the meters. Returns how many allocations are alive of those
 * that were counted like this. */
int64_t gm_tally_tell(struct gm_tally *tally);

/* The calling thread's counts, where they are not in their usual place; NULL without memory, or in
 * a thread that is about to end. */
struct gm_tally_cell *gm_tally_find(struct gm_tally *tally);

static inline struct gm_tally_cell *gm_tally_cell_of(struct gm_tally *tally) {
    struct gm_thread *own = gm_thread_own;
    if (__builtin_expect(own != NULL, 1)) {
        struct gm_tally_cell *cell = &own->cells[tally->serial % GM_TALLY_CELLS];
        if (__builtin_expect(cell->serial == tally->serial, 1))
            return cell;
    }
    return gm_tally_find(tally);
}

/* An allocation (`alive` 1) or a free (-1). */
void gm_tally_count(struct gm_tally *tally, struct gm_tally_cell *cell,
                    const gpumem_allocation *allocation, int alive);

/* A buffer that was destroyed long enough ago, as if it were new, with the stream named; or NULL.
 * The thread has a cell. */
gpumem_buffer *gm_spare_take(gpumem_resource *resource, CUstream stream);
/* Keeps an object that has come to its end, or frees it. */
void gm_spare_give(gpumem_buffer *buffer);

#endif
