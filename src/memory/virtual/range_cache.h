/*
 * The freed memory that a virtual resource keeps: whole ranges, still mapped, and single chunks
 * that are not mapped. A range can be handed to the stream whose work used it last at once, and to
 * others when that work is done; a chunk is idle. One number of bytes limits them all: above it
 * chunks go first, which are cheap to create again, then the oldest idle ranges.
 */
#ifndef GM_MEMORY_RANGE_CACHE_H
#define GM_MEMORY_RANGE_CACHE_H

#include "memory/core/current_context.h"
#include "memory/virtual/extent.h"

#define GM_RANGE_BUCKETS 64

enum gm_range_state {
    GM_RANGE_LIVE,   /* has a buffer, or is part of another resource's memory */
    GM_RANGE_ENDING, /* freed, and held back by queued work */
    GM_RANGE_CACHED,
};

struct gm_range {
    struct gm_extent extent; /* first: what the resource's `chunks` reads */
    struct gm_mirror *host;  /* the CPU's mapping, where the resource makes one */
    void *host_pointer;      /* where that begins */
    enum gm_range_state state;
    gpumem_buffer *buffer; /* while LIVE; NULL: belongs to a resource over this one */
    uint64_t given;        /* counts the ranges put into the cache */
    uint64_t handed;       /* counts the ranges handed out */
    struct gm_wait last;   /* of the work that used it before it was handed out, or freed */
    struct gm_range *next, *previous; /* all of the resource */
    struct gm_range *newer, *older;   /* cached ones */
    struct gm_range *bucket_next, *bucket_previous;
};

struct gm_range_cache {
    gpumem_device *device;
    struct gm_meter *meter;
    uint64_t maximum; /* 0: keeps nothing */
    /* Takes the range out of the resource and gives its memory back. */
    void (*discard)(void *user, struct gm_range *range);
    void *user;
    pthread_mutex_t lock; /* the rest */
    pthread_cond_t returned;
    uint64_t bytes, given;
    struct gm_range *newest, *oldest;
    struct gm_range *buckets[GM_RANGE_BUCKETS]; /* by size; the newest first */
    struct gm_chunk *chunks;                    /* the oldest first */
    size_t chunk_count, chunk_room;
    size_t away; /* ranges that settle waits for */
};

void gm_range_cache_init(struct gm_range_cache *cache);
/* Empty by then. */
void gm_range_cache_end(struct gm_range_cache *cache);

/*
 * A range of exactly these sizes that `stream` may use, or NULL. Its `last` has passed, or `stream`
 * is ordered after it. The context is made current where it is needed; for all others of these it
 * is.
 */
struct gm_range *gm_range_cache_take(struct gm_range_cache *cache, size_t capacity,
                                     size_t committed, size_t alignment, CUstream stream,
                                     struct gm_late *late);

/* Keeps the range, whose `last` has passed or is an event. 0 if there is no room: the caller still
 * owns it. */
int gm_range_cache_give(struct gm_range_cache *cache, struct gm_range *range, struct gm_late *late);

/* The same for one unmapped chunk of `chunk->bytes`. */
int gm_range_cache_take_chunk(struct gm_range_cache *cache, struct gm_chunk *chunk);
int gm_range_cache_give_chunk(struct gm_range_cache *cache, const struct gm_chunk *chunk);

/* Gives idle memory back until at most `keep` bytes are left. */
void gm_range_cache_trim(struct gm_range_cache *cache, uint64_t keep);

/* Waits, by events, for the work that used the cached ranges. No lock is held. `mapped` is locked
 * for reading when a range leaves or returns, so that a writer sees all. */
void gm_range_cache_settle(struct gm_range_cache *cache, struct gm_mapped *mapped);

/* With `mapped` locked for writing: whether everything cached is idle and present. */
int gm_range_cache_is_idle(struct gm_range_cache *cache);

/* Members "ranges" and "chunks" of an open object: what is currently kept. */
struct gm_json;
void gm_range_cache_describe(struct gm_range_cache *cache, struct gm_json *json);

#endif
