/*
 * Per-thread state, so that a thread's allocations and frees share nothing with those of other
 * threads: counts, which are added to the meters when they become large or on request, and buffer
 * objects for reuse.
 */
#ifndef GM_MEMORY_THREAD_COUNTS_H
#define GM_MEMORY_THREAD_COUNTS_H

#include "memory/core/stream_waits.h"

/* A thread whose counts differ this much from the meters updates them. High-water marks are
 * accurate to this much per thread; with one thread they are exact. */
#define GM_TALLY_QUANTUM ((int64_t)64 << 20)

/* What a thread may do with a stream that memory was freed on (memory/object/queued_frees.h). */
enum gm_freed_kind {
    GM_FREED_NONE = 0, /* no stream is counted */
    GM_FREED_KEPT,     /* known to exist, so it can be marked later, by any thread */
    GM_FREED_OWN,      /* the per-thread stream: only by its thread */
    GM_FREED_UNKNOWN,  /* the program's: only at a free */
};

/* What was freed on a stream, allocated there no more, and not marked yet. */
struct gm_freed {
    CUstream stream; /* it and the next two: changed by the thread, under the lock */
    enum gm_freed_kind kind;
    unsigned ended; /* gm_streams_ended when this was found out */
    _Atomic uint64_t held;
};

#define GM_FREED_STREAMS 8u

/* One thread's counts for one resource. The thread writes them, others read them. */
struct gm_tally_cell {
    uint64_t serial; /* of the resource; changed by the thread, under the lock */
    _Atomic int64_t in_use, committed, alive;
    _Atomic uint64_t total;
    _Atomic int64_t in_use_peak, committed_peak; /* since the meters were updated */
    atomic_uint epoch;                           /* how often they were updated; under the lock */
    unsigned seen;                               /* of that, by the thread */
    int64_t base;                                /* `committed` at that time */
    /* As known to the meters; under the lock. */
    int64_t told_in_use, told_committed, told_alive;
    uint64_t told_total;
    struct gm_freed freed[GM_FREED_STREAMS];
};

#define GM_TALLY_CELLS 8u

/* A destroyed object is recognised by its mark until this many more are destroyed
 * (base/object.h). */
#define GM_SPARES_RESTING 128u
#define GM_SPARES         256u

struct gm_thread {
    struct gm_tally_cell cells[GM_TALLY_CELLS];
    struct gm_thread *next; /* of all threads, under the lock */
    struct gm_wait self;    /* a wait on a stream of this thread, complete but for the stream */
    unsigned first, count;
    gpumem_buffer *spares[GM_SPARES]; /* from the oldest on */
};

extern __thread struct gm_thread *gm_thread_own
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Lets threads count for a resource, and ends that: their counts are then lost. */
void gm_tally_begin(struct gm_tally *tally, struct gm_meter *meter);
void gm_tally_end(struct gm_tally *tally);

/* Adds the counts of all threads to the meters. Returns how many of the allocations counted in this
 * way are alive. */
int64_t gm_tally_tell(struct gm_tally *tally);

/* The calling thread's counts, if not in the usual place; NULL without memory, or in a thread that
 * is about to end. */
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

/* Makes the thread's own cell count frees on the stream. What it counted in that place before, on a
 * stream that can be marked, is returned in *before. */
struct gm_freed *gm_tally_count_stream(struct gm_tally_cell *cell, CUstream stream,
                                       enum gm_freed_kind kind, unsigned ended,
                                       struct gm_freed *before);

/* Takes from the counts of frees what was freed on one stream, with the kind OWN if it was this
 * thread. 0: there is none left. */
struct gm_freed_what {
    int all; /* of all threads; 0: of this one, and on the default stream */
    int one; /* only on `stream` */
    CUstream stream;
};
int gm_tally_take_freed(struct gm_tally *tally, struct gm_freed_what what, struct gm_freed *taken);
/* Puts back what could not be marked now; any thread may mark the stream. */
void gm_tally_put_freed(struct gm_tally *tally, CUstream stream, uint64_t held);

/* An allocation (`alive` 1) or a free (-1). */
void gm_tally_count(struct gm_tally *tally, struct gm_tally_cell *cell,
                    const gpumem_allocation *allocation, int alive);

/* A buffer object that was destroyed long enough ago, reinitialised with the stream; or NULL. The
 * thread has a cell. */
gpumem_buffer *gm_spare_take(gpumem_resource *resource, CUstream stream);
/* Keeps a destroyed object, or frees it. */
void gm_spare_give(gpumem_buffer *buffer);

#endif
