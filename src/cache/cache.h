/*
 * The caching resource: small allocations from per-thread magazines, over memory that it takes from
 * another resource in segments.
 *
 *     thread cache    a slot per stream, in it two magazines of blocks per size class
 *     lane            memory in the order of one stream: parcels of free blocks, and segments
 *        |            (the cache's lock)
 *     segment         taken from the wrapped resource, divided into pieces (placement/area.h); over
 *                     virtual memory, addresses to which memory moves (pages/pages.h)
 *
 * Memory that only the device touches belongs to the lane of one stream while any of its segment is
 * in use: memory freed there can be reused at once, because the stream itself keeps the order.
 * Memory that the CPU writes has a single lane, and is reused only when the streams that used it
 * have passed: the CPU would overwrite data that a queued copy has yet to read.
 *
 * A thread cache belongs to its thread, which uses it without a lock on the fast path. Other
 * threads, and the thread itself off the fast path, hold the cache's lock; others also stop the
 * thread. The wrapped resource is called with no lock held that a trim takes.
 *
 * Functions with a `late` may call the driver, and make the context current where they do: memory
 * that is at hand costs no call. NULL: the context is current.
 */
#ifndef GM_CACHE_CACHE_H
#define GM_CACHE_CACHE_H

#include "cache/classes.h"
#include "cache/pages/pages.h"
#include "cache/placement/area.h"
#include "memory/core/current_context.h"
#include "memory/core/objects.h"

/* Where memory moves, blocks of at least this are apart from those which a page holds several of.
 */
#define GM_HUGE_BYTES ((size_t)32 << 20)

#define GM_SLOTS 4 /* streams for which one thread keeps blocks at a time */

/* Blocks of different kinds are in different segments: a small one that stays would keep a large
 * piece from being whole again. */
enum gm_kind {
    GM_KIND_SMALL, /* cut into classes */
    GM_KIND_LARGE,
    GM_KIND_HUGE, /* only of a cache whose memory moves */
    GM_KINDS
};

/* A buffer of the cache, which is also its block: the object is made once and reused. */
struct gm_block {
    struct gpumem_buffer buffer; /* first */
    struct gm_segment *segment;
    struct gm_piece *piece;
    unsigned class; /* GM_CLASS_COUNT: too large for a class, or of a capture pool */
    unsigned count; /* of the head of a parcel: its blocks */
    struct gm_block *next;
    struct gm_block *next_parcel; /* of the head of a parcel or of a pending batch */
};

/* Two magazines, so that alternating around the edge of one does not involve the cache. */
struct gm_bin {
    struct gm_block *head, *spare;
    unsigned count, spare_count;
};

struct gm_slot {
    CUstream stream;
    struct gm_lane *lane; /* NULL: the slot is unused */
    struct gm_bin bins[GM_CLASS_COUNT];
};

/* Blocks that the CPU writes, freed while a stream might still read them. */
struct gm_hold {
    CUstream stream;
    int used;
    unsigned count;
    struct gm_block *filling; /* freed since the mark */
    struct gm_block *marked;  /* behind an event, which the first block has */
};

struct gm_thread_cache {
    atomic_int busy, stopped;
    unsigned generation; /* base/fork.h */
    uint64_t serial;     /* of the cache; never reused, so that a stale one is noticed */
    struct gm_cache *cache;
    size_t bytes; /* in slots and holds */
    /* Not yet added to the resource's meter. */
    int64_t in_use, allocations;
    uint64_t total;
    unsigned slot_victim, hold_victim;
    struct gm_thread_cache *next_of_cache, *next_of_thread;
    struct gm_hold holds[GM_SLOTS];
    struct gm_slot slots[GM_SLOTS];
};

struct gm_segment {
    gpumem_allocation allocation;
    struct gm_area area;
    struct gm_index apart; /* its pieces while it is in no lane */
    struct gm_lane *lane;
    enum gm_kind kind;   /* of its blocks */
    int held;            /* stays while a watch is told of what there is */
    int marked;          /* `idle` marks everything that was freed here */
    struct gm_wait idle; /* the stream's position after the last free */
    struct gm_segment *next;
    /* Of a cache whose memory moves; else NULL. */
    struct gm_range *range;
    struct gm_page **table; /* the page that has each unit, or NULL */
    size_t unit;
};

struct gm_lane {
    CUstream stream;
    int ended; /* the stream may be gone: nothing more is handed out, and marks are waited for */
    struct gpumem_capture_pool *pool; /* the pool that owns the memory, or NULL */
    int begun;                        /* the pool is, on this stream */
    size_t bytes;
    size_t away; /* segments that a trim has taken out and may bring back */
    struct gm_segment *segments;
    struct gm_index free[GM_KINDS]; /* pieces of all its segments */
    struct gm_turns turns;
    struct gm_block *parcels[GM_CLASS_COUNT];
    struct gm_block *held; /* of a pool: freed, but used again by each launch of the graph */
    struct gm_lane *next;
};

struct gm_cache {
    gpumem_device *device;
    gpumem_resource *resource, *upstream;
    uint64_t serial;
    int host; /* the CPU writes the memory */
    size_t segment_bytes, maximum_small_bytes, thread_bytes, idle_bytes, granularity;
    uint64_t maximum_bytes;
    _Atomic(CUstream) stream; /* for requests to a stream-ordered resource; NULL until needed */
    pthread_mutex_t grow;     /* one thread at a time requests memory of the wrapped resource, or
                               * moves it; recursive, and taken before `lock` */
    pthread_mutex_t lock;     /* everything below */
    struct gm_lane *lanes;
    struct gm_lane *shared;                  /* of memory that the CPU writes, for all streams */
    struct gm_block *pending, **pending_end; /* batches behind events */
    struct gm_block *spare;                  /* block objects without memory */
    struct gm_thread_cache *threads;
    size_t pools;           /* capture pools */
    atomic_int capturing;   /* streams that have one */
    struct gm_pages *pages; /* NULL: memory stays in place */
    uint64_t taken;         /* bytes of all segments, or pages, and of those being taken */
    size_t away;            /* segments that a trim has taken out of their lanes */
    pthread_cond_t home;    /* one of them has been given back, or is in its lane again */
};

/* ---- thread.c -------------------------------------------------------------------------------- */

/* Caches that a thread finds with one load each; beyond that its list is searched. Small enough for
 * the static TLS space of a library loaded late, and so reached with one instruction. */
#define GM_DIRECT 32u
extern __thread struct gm_thread_cache *gm_thread_direct[GM_DIRECT]
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* 1: gm_thread_stop makes all threads of the process order their memory accesses, so that those on
 * the fast path need no fence of their own. */
extern int gm_thread_asymmetric __attribute__((visibility("hidden")));

/* Finds the calling thread's cache in its list, or makes it. NULL without memory. */
struct gm_thread_cache *gm_thread_cache_find(struct gm_cache *cache);
/* The same if it was made before, whatever is locked. */
struct gm_thread_cache *gm_thread_cache_known(const struct gm_cache *cache);

/* The calling thread's; made at the first use, for which the cache's lock must be free. */
static inline struct gm_thread_cache *gm_thread_cache_of(struct gm_cache *cache) {
    struct gm_thread_cache *thread = gm_thread_direct[cache->serial % GM_DIRECT];
    if (__builtin_expect(thread && thread->serial == cache->serial, 1))
        return thread;
    return gm_thread_cache_find(cache);
}

/* Waits until no other thread has stopped this one. */
void gm_thread_wait(struct gm_thread_cache *thread);

/*
 * The fast path of the owning thread, without the cache's lock. It sets a busy flag and checks
 * whether it must stop; a stopping thread sets the stop flag and checks whether it is busy. One of
 * the two sees the other, provided that neither's load overtakes its store: to ensure that, the
 * stopping side, which is rare, makes the kernel issue a barrier on every processor, and this side
 * needs none.
 */
static inline void gm_thread_enter(struct gm_thread_cache *thread) {
    for (;;) {
        if (__builtin_expect(gm_thread_asymmetric, 1)) {
            atomic_store_explicit(&thread->busy, 1, memory_order_relaxed);
            atomic_signal_fence(memory_order_seq_cst);
        } else {
            atomic_store(&thread->busy, 1);
        }
        if (__builtin_expect(!atomic_load(&thread->stopped), 1))
            return;
        atomic_store_explicit(&thread->busy, 0, memory_order_release);
        gm_thread_wait(thread);
    }
}

static inline void gm_thread_leave(struct gm_thread_cache *thread) {
    atomic_store_explicit(&thread->busy, 0, memory_order_release);
}

/* Keeps the thread out of its fast path; unnecessary but harmless for the calling thread. The
 * cache's lock is held throughout. */
void gm_thread_stop(struct gm_thread_cache *thread);
void gm_thread_resume(struct gm_thread_cache *thread);

/* The same for all threads, with one barrier. */
void gm_threads_stop(struct gm_cache *cache);
void gm_threads_resume(struct gm_cache *cache);

/* Moves everything that the thread keeps to its lanes and to the pending batches. The cache's lock
 * is held. */
void gm_thread_flush(struct gm_cache *cache, struct gm_thread_cache *thread, struct gm_late *late);
/* The context is current. */
void gm_threads_flush(struct gm_cache *cache);

/* Moves the blocks of one slot to its lane. The thread is the calling one or stopped. */
void gm_slot_flush(struct gm_thread_cache *thread, struct gm_slot *slot);

/* Adds what the thread has counted to the resource's meter. The thread is the calling one or
 * stopped. */
void gm_thread_report(struct gm_cache *cache, struct gm_thread_cache *thread);

/* Detaches all threads from a cache that is destroyed. */
void gm_threads_end(struct gm_cache *cache);

/* ---- lane.c; the cache's lock is held -------------------------------------------------------- */

/* The lane of a stream, created if it is new. NULL without memory. */
struct gm_lane *gm_lane_of(struct gm_cache *cache, CUstream stream);

/* Up to `want` blocks of a class, as a chain; NULL if there is no room in the lane's segments. */
struct gm_block *gm_lane_take(struct gm_cache *cache, struct gm_lane *lane, unsigned class,
                              unsigned want);

/* One block of any size and alignment; NULL as above. */
struct gm_block *gm_lane_cut(struct gm_cache *cache, struct gm_lane *lane, enum gm_kind kind,
                             size_t bytes, size_t alignment);

/* A chain of `count` blocks of one class, free in the order of the lane. */
void gm_lane_give(struct gm_lane *lane, struct gm_block *chain, unsigned count);

/* The block's memory goes back to its segment. */
void gm_block_end(struct gm_cache *cache, struct gm_block *block);

/* All parcels of all lanes go back to their segments, so that pieces join. */
void gm_lanes_join(struct gm_cache *cache);

/* Gives the lane the smallest wholly free segment of at least `bytes`: another lane's whose stream
 * has passed, or one of its own that had blocks of another kind. Small blocks take no large one.
 * Returns whether there was one. */
int gm_lane_adopt(struct gm_cache *cache, struct gm_lane *lane, enum gm_kind kind, size_t bytes,
                  struct gm_late *late);

/* Bytes of wholly free segments to keep when more memory is taken. The lock is held. */
size_t gm_lanes_keep(const struct gm_cache *cache);
/* Takes wholly free segments out of their lanes until at most `keep` bytes of them are left: those
 * whose streams have passed, or with `unpassed` all. The caller releases them, or puts them back;
 * until then their lanes are kept. */
struct gm_segment *gm_lanes_surplus(struct gm_cache *cache, size_t keep, int unpassed,
                                    struct gm_late *late);

void gm_lane_link(struct gm_lane *lane, struct gm_segment *segment);
void gm_lane_unlink(struct gm_segment **at);
/* The stream may be gone after this: marks everything that it did for the last time. No thread has
 * a slot of the lane. */
void gm_lane_end(struct gm_cache *cache, struct gm_lane *lane);
/* Frees the lanes of ended streams that have no memory any more. */
void gm_lanes_prune(struct gm_cache *cache);

/* ---- segment.c ------------------------------------------------------------------------------- */

/* Takes memory for `bytes` more from the wrapped resource, not yet in a lane. Only the lock `grow`
 * is held; the context is current. */
gpumem_status gm_segment_take(struct gm_cache *cache, const struct gm_lane *lane, enum gm_kind kind,
                              size_t bytes, struct gm_segment **segment);
/* Gives segments that are in no lane back to the wrapped resource, after waiting for their streams.
 * No lock is held; the context is current. */
void gm_segments_release(struct gm_cache *cache, struct gm_segment *list);
/* Waits until other threads have given back what they took out. The cache's lock is held, and free
 * while it waits. */
void gm_segments_wait(struct gm_cache *cache);

/* ---- pending.c ------------------------------------------------------------------------------- */

/* A chain whose first block has marks of the streams to wait for. The cache's lock is held. */
void gm_pending_add(struct gm_cache *cache, struct gm_block *chain);
/* Frees the blocks of batches whose streams have passed; returns whether there were any. Queries
 * the driver only a few times, for different batches from call to call. The cache's lock is
 * held. */
int gm_pending_poll(struct gm_cache *cache, struct gm_late *late);
/* The stream is about to be destroyed: marks for the last time what has no event yet. The cache's
 * lock is held. */
void gm_pending_end_stream(struct gm_cache *cache, CUstream stream);
/* Ends them all, after waiting for their streams. No lock is held. */
void gm_pending_wait(struct gm_cache *cache);

/* ---- allocate.c ------------------------------------------------------------------------------ */

/* The memory for one buffer, from any source. */
gpumem_status gm_cache_take(struct gm_cache *cache, const gpumem_request *request,
                            struct gm_block **block);
/* From the lane as it is; NULL when nothing fits. The cache's lock is held. */
struct gm_block *gm_cache_from_lane(struct gm_cache *cache, struct gm_lane *lane,
                                    const gpumem_request *request);

/* ---- magazine.c ------------------------------------------------------------------------------ */

/* Blocks of one class that a magazine holds. */
static inline unsigned gm_magazine_size(unsigned class) {
    size_t blocks = ((size_t)128 << 10) / gm_class_bytes(class);
    return blocks > 32 ? 32 : blocks < 1 ? 1 : (unsigned)blocks;
}

/* A block for `bytes`, at most the small maximum, that the calling thread has cached, or NULL. */
struct gm_block *gm_magazine_pop(struct gm_cache *cache, size_t bytes, CUstream stream,
                                 int counted);
/* The same for memory that the CPU writes, uncounted: the cache's lock is held. */
struct gm_block *gm_magazine_pop_ready(struct gm_cache *cache, unsigned class);
/* Counts an allocation that did not come from gm_magazine_pop. */
void gm_magazine_count(struct gm_cache *cache, size_t bytes);
/* Takes back a block without remaining references; cannot fail. */
void gm_magazine_push(struct gm_cache *cache, struct gm_block *block);
/* The same for a block whose allocation was not counted. */
void gm_magazine_return(struct gm_cache *cache, struct gm_block *block);
/* Keeps a chain of one class for the calling thread; the cache's lock is held. */
void gm_magazine_fill(struct gm_cache *cache, struct gm_lane *lane, struct gm_block *chain);
/* Frees blocks of the calling thread's holds whose streams have passed, and marks those freed
 * since. The cache's lock is held. Returns whether anything came back. */
int gm_holds_settle(struct gm_cache *cache, struct gm_late *late);
/* Makes what a thread holds for one stream wait for it. The thread is stopped; the context is
 * current. */
void gm_holds_retire(struct gm_cache *cache, struct gm_thread_cache *thread, CUstream stream);

/* ---- caching_resource.c ---------------------------------------------------------------------- */

/* Gives back free segments whose streams have passed, down to `keep` bytes. `wait`: sleeps until
 * streams have passed. No lock is held; the device's context is current. */
void gm_cache_trim(struct gm_cache *cache, size_t keep, int wait);

/* NULL: not a caching resource. */
struct gm_cache *gm_cache_of(gpumem_resource *resource);

/* describe.c: its description in a snapshot. */
void gm_cache_describe(struct gm_cache *cache);

/* Removes a lane from all threads. The cache's lock is held. */
void gm_cache_flush_lane(struct gm_cache *cache, const struct gm_lane *lane);

/* ---- capture_pool.c -------------------------------------------------------------------------- */

/* The lane of the capture that has begun on the stream, or NULL. The cache's lock is held. */
struct gm_lane *gm_capture_lane(struct gm_cache *cache, CUstream stream);

#endif
