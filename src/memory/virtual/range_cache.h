/*
 * What a virtual resource keeps of freed memory: whole ranges, mapped as they were, and single
 * chunks that are mapped nowhere. A range may be handed to the stream whose work used it last at
 * once, and to others when that work is done; a chunk is idle. Bounded by one number of bytes:
 * above it chunks go first, which cost little to make anew, then the oldest idle ranges.
 */
#ifndef GM_MEMORY_RANGE_CACHE_H
#define GM_MEMORY_RANGE_CACHE_H

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
    gpumem_buffer *buffer; /* while LIVE; NULL: of a resource that was built over this one */
    uint64_t given;        /* counts what the cache was given */
    uint64_t handed;       /* counts what was handed out */
    struct gm_wait last;   /* of the work that used it before it was handed out, or freed */
    struct gm_range *next, *previous; /* all of the resource */
    struct gm_range *newer, *older;   /* cached ones */
    struct gm_range *bucket_next, *bucket_previous;
};

struct gm_range_cache {
    gpumem_device *device;
    struct gm_meter *meter;
    uint64_t maximum; /* 0: nothing is kept */
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
 * A range of exactly these sizes that `stream` may use, or NULL. Its `last` is passed, or is of
 * work that the stream comes after. With the context current, like all of these.
 */
struct gm_range *gm_range_cache_take(struct gm_range_cache *cache, size_t capacity,
                                     size_t committed, size_t alignment, CUstream stream);

/* Keeps the range, whose `last` is passed or an event. 0 where there is no room: it stays the
 * caller's. */
int gm_range_cache_give(struct gm_range_cache *cache, struct gm_range *range);

/* The same for one chunk, of `chunk->bytes`, that is mapped nowhere. */
int gm_range_cache_take_chunk(struct gm_range_cache *cache, struct gm_chunk *chunk);
int gm_range_cache_give_chunk(struct gm_range_cache *cache, const struct gm_chunk *chunk);

/* Gives idle memory back until at most `keep` bytes are left. */
void gm_range_cache_trim(struct gm_range_cache *cache, uint64_t keep);

/* Waits, by events, for the work that used the cached ranges. No lock is held. `mapped` is locked
 * for reading when a range leaves or comes back, so that who has it for writing sees all. */
void gm_range_cache_settle(struct gm_range_cache *cache, struct gm_mapped *mapped);

/* With `mapped` locked for writing: whether all that is cached is idle and here. */
int gm_range_cache_is_idle(struct gm_range_cache *cache);

/* Members "ranges" and "chunks" of an open object: what is kept just now. */
struct gm_json;
void gm_range_cache_describe(struct gm_range_cache *cache, struct gm_json *json);

#endif
