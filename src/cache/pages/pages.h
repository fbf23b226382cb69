/*
 * Pages: how a cache over virtual memory comes to its memory, and why.
 *
 *     segment    a range of addresses of one stream and one kind of block, mostly without memory
 *     page       a handle of 2 to 64 MiB, mapped whole somewhere in a segment
 *     loose page one that is mapped nowhere: left by a failure, or reserved
 *
 * Memory in place cannot be had with less than a tenth of waste: on five programs' traces the best
 * fit took up to 1.11 times what was in use at its peak, because free bytes lie between blocks that
 * stay. Here a request that no free piece holds is given the addresses of its stream that lack the
 * least memory, and the pages missing there are created as long as all of them are within the
 * allowance, and beyond that moved there from wherever a page is wholly free. Live bytes are never
 * copied and addresses never change. Moving a page costs 56 us on an H200 whatever its size (unmap
 * 19, map 1, access 29), so pages are as large as the whole allows: a 128th of the most ever in
 * use, and several small ones are given back for a large one that is created (unmap 19, release 13;
 * create 11, map 1, access 29). A page with one live byte stays, and counts whole.
 *
 * Order. The lock `grow` is held from the look at the pieces until the pages are where they belong;
 * only its holder changes what memory a segment has. Under the cache's lock it decides (plan.c),
 * and takes the pieces from which memory goes, and those to which it comes, out of everybody's
 * reach: they are MOVING. The driver is called with that lock free, so that threads which find
 * memory do not wait (move.c). Then, under the lock again, the pieces become what they are now. The
 * virtual resource's lock is taken for reading around the calls, so that a change of rights for all
 * of it comes before or after. Whoever is told of memory that goes is told with the cache's lock
 * free, and may allocate: `grow` is recursive. So is who must agree to memory that comes: a refusal
 * is a failure like the driver's.
 *
 * Failure. What the driver has unmapped when a later call fails is loose afterwards: still the
 * cache's, and taken first by the next request. Blocks, and what is committed, are as they were. A
 * page that the driver maps and then refuses to give access to and to unmap stays MOVING until the
 * segment ends.
 *
 * Queued work. Nothing is unmapped under it: a page whose pieces were freed in the order of a
 * stream moves when that stream has passed. Streams are marked by events whenever a request needs
 * memory mapped, if anything was freed since the last mark, and not at frees, which make no call.
 * A page knows the turn between two marks in which it was freed last.
 */
#ifndef GM_CACHE_PAGES_H
#define GM_CACHE_PAGES_H

#include "memory/core/current_context.h"
#include "memory/virtual/virtual_range.h"

struct gm_cache;
struct gm_lane;
struct gm_segment;
struct gm_block;

struct gm_page {
    struct gm_chunk chunk;
    size_t offset;        /* in its segment */
    uint64_t freed;       /* the turn of its lane in which a block in it was freed last, or 0 */
    uint64_t clock;       /* counts frees in the cache: when that was */
    uint64_t moves;       /* ever */
    int stuck;            /* mapped, of no use, and the driver refuses to unmap it */
    struct gm_page *next; /* of the loose ones */
};

#define GM_MARKS 8

/* What a stream did between two marks is one turn. */
struct gm_turns {
    uint64_t now;    /* less 1; turns before it are marked */
    uint64_t passed; /* it and those before are done */
    int freed;       /* something was, in this turn */
    int refuses;     /* it cannot be waited for */
    unsigned count;
    struct {
        uint64_t turn;
        struct gm_wait wait;
    } marks[GM_MARKS]; /* ascending */
};

struct gm_pages {
    struct gm_virtual_resource *v;
    size_t unit; /* of pages */
    double ratio;
    int never_waits;
    int stuck;             /* a page was, ever */
    struct gm_page *loose; /* the largest first */
    uint64_t loose_bytes, moved, waits, clock;
};

/* What there is for large blocks. The cache's lock is held. */
size_t gm_pages_movable(const struct gm_cache *cache);

/* NULL in *pages: memory stays in place over this resource. */
gpumem_status gm_pages_begin(const gpumem_resource *upstream, double ratio, int never_waits,
                             struct gm_pages **pages);
void gm_pages_end(struct gm_cache *cache);

/* Forgets a segment whose memory the driver keeps, in a cache that ends. The range is the virtual
 * resource's. */
void gm_pages_abandon(struct gm_cache *cache, struct gm_segment *segment);
/* Loose pages of at least so many bytes in all, or none. Nobody else has the cache yet; the context
 * is current. */
gpumem_status gm_pages_reserve(struct gm_cache *cache, uint64_t bytes);

/* The block's memory is free in the order of its lane. The cache's lock is held, as for the next.
 */
void gm_pages_freed(struct gm_pages *pages, const struct gm_block *block);
/* The stream may be gone after this. */
void gm_pages_drop_marks(struct gm_cache *cache, struct gm_lane *lane);
void gm_pages_lane_ends(struct gm_cache *cache, struct gm_lane *lane);

/* A block for `lane` that it does not have: pages are mapped where they are missing. `bytes` of
 * this kind are what it needs. The lock `grow` is held, the context current. */
gpumem_status gm_pages_grow(struct gm_cache *cache, struct gm_lane *lane,
                            const gpumem_request *request, int kind, size_t bytes,
                            struct gm_block **block);

/* Gives free pages back until at most `keep` bytes are left, and segments without memory; with
 * `wait` also those that queued work still uses, when it is done. No lock but `grow` is held. */
void gm_pages_trim(struct gm_cache *cache, size_t keep, int wait);

/* ---- Inside ---------------------------------------------------------------------------------- */

/* pages.c */
void gm_pages_loosen(struct gm_pages *pages, struct gm_page *page);

/* marks.c; the cache's lock is held. */
void gm_pages_mark(struct gm_cache *cache);
/* Waits for the oldest mark of the lane with the most memory behind marks; the lock is free
 * meanwhile. 0: nothing to wait for. */
int gm_pages_wait(struct gm_cache *cache);

/* A page that is wholly free, and where it is. */
struct gm_source {
    struct gm_segment *segment;
    struct gm_page *page;
    size_t bytes; /* of the page */
    enum { GM_SOURCE_STAYS, GM_SOURCE_MOVES, GM_SOURCE_GOES } fate;
    int unmapped;
};

struct gm_sources {
    struct gm_source *list;
    size_t count, room;
};

/* A part of the addresses that a plan is for, and which page comes there. */
enum gm_origin {
    GM_ORIGIN_THERE, /* it has memory; NULL */
    GM_ORIGIN_LOOSE,
    GM_ORIGIN_MOVED,
    GM_ORIGIN_FRESH, /* to be created */
};

struct gm_gap {
    size_t offset, bytes;
    struct gm_page *page;
    enum gm_origin origin;
};

struct gm_plan {
    struct gm_segment *segment;
    size_t offset, bytes; /* the addresses that are to have memory */
    struct gm_sources sources;
    struct gm_gap *gaps;
    size_t gap_count, gap_room;
    uint64_t missing, fresh; /* bytes */
    uint64_t excess;         /* above what is allowed */
    int keeps;               /* the driver may not give again what it is given back */
};

/* plan.c; the cache's lock is held. */
uint64_t gm_pages_allowed(struct gm_cache *cache, size_t bytes, double ratio);
/* All free pages whose work has passed; 0, or -1 without host memory. */
int gm_pages_find(struct gm_cache *cache, struct gm_sources *sources);
/* 1: there is a plan; 0: no addresses of the lane are enough; -1: no host memory. The plan is empty
 * but for `keeps`. */
int gm_plan_make(struct gm_cache *cache, const struct gm_lane *lane, int kind, size_t bytes,
                 size_t alignment, uint64_t allowed, struct gm_plan *plan);
void gm_plan_drop(struct gm_cache *cache, struct gm_plan *plan);

/* move.c */
gpumem_status gm_page_create(struct gm_cache *cache, struct gm_chunk *chunk);
void gm_page_release(struct gm_cache *cache, const struct gm_chunk *chunk);
/* What a watch is told of. */
gpumem_allocation gm_page_range(const struct gm_segment *segment, size_t offset, size_t bytes);
/* Called with the cache's lock held, which is free meanwhile. */
gpumem_status gm_plan_carry_out(struct gm_cache *cache, struct gm_plan *plan);
gpumem_status gm_pages_open(struct gm_cache *cache, struct gm_lane *lane, int kind, size_t bytes);
/* Closes segments without memory: of streams that have ended, or all. */
void gm_pages_close(struct gm_cache *cache, int all);

/* check.c: aborts where tables, pieces and sums contradict each other. `grow` and the cache's lock
 * are held. */
void gm_pages_check(const struct gm_cache *cache);

#endif
