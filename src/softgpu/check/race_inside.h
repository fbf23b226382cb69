/*
 * The race checker's own structures. Everything needs its lock, except a grid and its blocks, which
 * belong to one thread at a time: accesses to a block's own shared memory do not take it.
 */
#ifndef SG_CHECK_RACE_INSIDE_H
#define SG_CHECK_RACE_INSIDE_H

#include "softgpu/check/race.h"
#include "softgpu/check/race_clock.h"
#include "softgpu/program/program.h"

#include <pthread.h>

/* ---- remembered accesses --------------------------------------------------------------------- */

/*
 * An access: the warp and its moment (`since`), and packed: the instruction, the lane (for a line,
 * that of its first word), kind, strength and scope, and for a word the bytes, for a line the size
 * of each lane's access as a power of two.
 */
struct sg_seen {
    uint32_t launch; /* 0: none */
    uint32_t warp;   /* block << 5 | warp */
    uint32_t moment;
    uint32_t what;
};

#define SG_SEEN_INSTRUCTION(what)       ((what)&0x3ffffu)
#define SG_SEEN_LANE(what)              ((what) >> 18 & 31u)
#define SG_SEEN_KIND(what)              ((what) >> 23 & 3u)
#define SG_SEEN_STRONG(what)            ((what) >> 25 & 1u)
#define SG_SEEN_SCOPE(what)             ((what) >> 26 & 3u)
#define SG_SEEN_BYTES(what)             ((what) >> 28)
#define SG_SEEN_WITH_LANE(what, lane)   (((what) & ~(31u << 18)) | ((uint32_t)(lane)&31u) << 18)
#define SG_SEEN_WITH_BYTES(what, bytes) (((what)&0x0fffffffu) | (uint32_t)(bytes) << 28)
#define SG_SEEN_MOST                    0x3ffffu
/* As `kind`: a read by all lanes of half a warp, or of the whole warp, starting at the lane. */
#define SG_SEEN_SHARED_READ 3u
/* Kind, strength, scope and bytes. */
#define SG_SEEN_MANNER(what) ((what) >> 23)
#define SG_SEEN_COPY         UINT32_MAX /* as `warp`: not a thread's access */

#define SG_SEEN_SLOTS 4
struct sg_cell {
    struct sg_seen seen[SG_SEEN_SLOTS];
};

#define SG_WORD_BYTES 4u
#define SG_LINE_BYTES 128u /* what a warp accesses together, most of the time */
#define SG_LINE_WORDS (SG_LINE_BYTES / SG_WORD_BYTES)
#define SG_LINE_WHOLE UINT32_MAX /* a bit for each word */
#define SG_PAGE_BYTES 4096u
#define SG_PAGE_LINES (SG_PAGE_BYTES / SG_LINE_BYTES)
#define SG_AREA_BYTES ((uint64_t)1 << 21)
#define SG_AREA_PAGES (SG_AREA_BYTES / SG_PAGE_BYTES)

/*
 * The shadow of 4 KiB.
 *
 * What is remembered of a whole line are runs: accesses of consecutive lanes to consecutive words,
 * which `runs` has. They are slot by slot, since most lines need one: then an eighth of a line of
 * the processor's cache goes with each line of memory. A line that is split has an access for each
 * word, and one that is full as well, a cell for each word.
 */
struct sg_shadow_page {
    uint64_t split, full;         /* a bit for each line */
    uint64_t used[SG_SEEN_SLOTS]; /* the same: other slots hold anything */
    struct sg_seen *singles;      /* NULL until a line is split; of lines that are not: anything */
    struct sg_cell *words;        /* the same of lines that are full */
    uint32_t runs[SG_SEEN_SLOTS][SG_PAGE_LINES];
    struct sg_seen lines[SG_SEEN_SLOTS][SG_PAGE_LINES];
};

struct sg_shadow_area {
    uint64_t number; /* address / SG_AREA_BYTES */
    struct sg_shadow_page *pages[SG_AREA_PAGES];
};

#define SG_NEAR_AREAS 16u
struct sg_shadow {
    struct sg_shadow_area **areas; /* hashed by number */
    size_t count, room;
    struct sg_shadow_area *near[SG_NEAR_AREAS]; /* cache of look-ups, by number */
    uint64_t bytes, most, full;
};

/* The page of an address, from the cache of look-ups; NULL: it may exist nevertheless. */
static inline struct sg_shadow_page *sg_shadow_page_near(const struct sg_shadow *shadow,
                                                         uint64_t address) {
    uint64_t number = address / SG_AREA_BYTES;
    const struct sg_shadow_area *near = shadow->near[number % SG_NEAR_AREAS];
    return near && near->number == number ? near->pages[address % SG_AREA_BYTES / SG_PAGE_BYTES]
                                          : NULL;
}
/* The page of an address, made if it does not exist; NULL: out of memory. */
struct sg_shadow_page *sg_shadow_page_at(struct sg_shadow *shadow, uint64_t address);
/* The page of an address, or NULL. */
struct sg_shadow_page *sg_shadow_page_of(struct sg_shadow *shadow, uint64_t address);
struct sg_shadow_page *sg_shadow_page_new(uint64_t *bytes);
void sg_shadow_page_free(struct sg_shadow_page *page);
/* Splits a line, or makes it full. False: out of memory, and it is unchanged. */
bool sg_shadow_split(struct sg_shadow_page *page, unsigned line, uint64_t *bytes);
bool sg_shadow_fill(struct sg_shadow_page *page, unsigned line, uint64_t *bytes);
void sg_shadow_clear(struct sg_shadow *shadow);
void sg_shadow_clear_range(struct sg_shadow *shadow, uint64_t address, uint64_t size);
void sg_shadow_free(struct sg_shadow *shadow);

/* ---- what has been released ------------------------------------------------------------------ */

/* What a strong write to an address has released to its readers. */
struct sg_released {
    uint64_t address;
    sg_clock clock;
    sg_clock over; /* of an mbarrier: what was there when its last phase ended */
    /* Read-modify-writes only add to the clock: a sequence, so that threads that poll the address
     * do not join all that they know already each time. */
    uint64_t sequence;
    uint32_t step;
    uint32_t launch, block;
    unsigned char scope;
    bool there;
};

struct sg_released_table {
    struct sg_released *slots;
    size_t count, room;
};

struct sg_released *sg_released_find(const struct sg_released_table *table, uint64_t address);
/* NULL: no memory. */
struct sg_released *sg_released_at(struct sg_released_table *table, uint64_t address);
void sg_released_free(struct sg_released_table *table);

/* ---- threads --------------------------------------------------------------------------------- */

/* What lanes of a warp know or have done individually, since they last synchronised. */
struct sg_race_lanes {
    sg_clock knows[32];  /* in addition to what the warp knows */
    sg_clock near[32];   /* read by relaxed accesses, of the own block: known after a fence */
    sg_clock far[32];    /* the same of other blocks: known after a fence of a wider scope */
    sg_clock fenced[32]; /* released by a fence, for later relaxed writes */
    unsigned char scope[32];
};

struct sg_race_warp {
    uint32_t since; /* the moment of its last release */
    uint32_t met;   /* the lanes know each other up to this moment */
    uint32_t live;
    bool touched;   /* it has accessed memory since the last barrier of the whole block */
    bool news;      /* lanes have fenced, or read what was released, since they last met */
    sg_clock knows; /* common to all its lanes */
    struct sg_race_lanes *lanes;
};

#define SG_RACE_BARRIERS 16u
struct sg_race_barrier {
    uint32_t arrived[32], waits[32]; /* lanes by warp */
    sg_clock clock;                  /* of the threads that arrived without waiting */
    bool used;
};

/* Plain reads of a block's shared memory since its last barrier of all. Until something is written
 * there is nothing that they could race with: they are put into the shadow when it is. */
struct sg_race_read {
    uint32_t moment, what, lanes;
    uint32_t size;
    unsigned warp;
    uint32_t at[32];
};
#define SG_RACE_READS 512u

struct sg_race_block {
    struct sg_race_block *next; /* in its bucket, or in the list of free ones */
    uint32_t index;
    uint32_t met; /* all threads know each other up to this moment */
    unsigned warp_count;
    bool knows;    /* a warp has a clock, or lanes by themselves */
    bool depended; /* a thread, or one that it comes after, has passed griddepcontrol.wait */
    bool news;     /* the same of its warps, since a barrier */
    bool left;     /* threads have exited after accesses that no barrier of all has ordered */
    struct sg_race_warp warps[32];
    struct sg_race_barrier barriers[SG_RACE_BARRIERS];
    struct sg_shadow_page **shared; /* by 4 KiB, of this block and of earlier ones */
    size_t shared_pages;
    struct sg_race_read *reads; /* NULL: none yet */
    unsigned read_count;
    bool wrote; /* since that barrier, or there was no room: reads are not put off */
    struct sg_released_table released; /* in shared memory */
};

/* A cluster's barrier. */
struct sg_race_cluster {
    struct sg_race_cluster *next;
    uint64_t index;
    sg_clock clock;
    bool complete;
};

/* An operation to which accesses in the shadows refer. */
struct sg_race_launch {
    const void *name;
    uint64_t stream, number, serial, floor;
    struct sg_race_after *after; /* sorted by stream */
    size_t after_count;
    bool kernel;      /* else a copy */
    uint32_t *beside; /* launches that it has synchronized with in memory */
    size_t beside_count, beside_room;
    bool runs;
};

/* Two writes whose bytes cannot be compared yet: the second is done by the next call. */
struct sg_race_doubt {
    struct sg_race_found found;
    const unsigned char *at;
    unsigned char bytes[SG_WORD_BYTES];
};

#define SG_RACE_DOUBTS  64u
#define SG_RACE_BUCKETS 256u
struct sg_race_grid {
    struct sg_race *race;
    uint32_t launch;
    unsigned threads, warps, levels;
    uint64_t blocks;
    unsigned grid[3], cluster[3], cluster_size;
    struct sg_race_block *buckets[SG_RACE_BUCKETS], *last;
    struct sg_race_cluster *clusters;
    uint32_t ordered, unordered; /* the launches that were asked about last */
    bool early;                  /* see struct sg_race_operation */
    bool depended;               /* a block is */
    bool lost;                   /* no memory: nothing more is checked */
    uint32_t turn;               /* which of a full cell's accesses is forgotten */
    struct sg_race_doubt doubts[SG_RACE_DOUBTS];
    unsigned doubt_count;
};

struct sg_race {
    struct sg_race_options options;
    pthread_mutex_t lock;
    struct sg_shadow shadow;
    struct sg_released_table released; /* in global memory */
    struct sg_race_launch *launches;   /* from 1 on */
    size_t launch_count, launch_room, running;
    uint32_t moment;
    uint64_t sequences; /* of clocks, so far */
    struct sg_race_block *spare;
};

/* ---- race_order.c ---------------------------------------------------------------------------- */

/* The number of a new operation; 0: out of memory. */
uint32_t sg_race_launch_new(struct sg_race *race, const struct sg_race_operation *operation);
void sg_race_launches_free(struct sg_race *race);
/* Whether the API, or synchronization through memory, orders launch `a` before launch `b`. */
bool sg_race_launch_before(const struct sg_race *race, uint32_t a, uint32_t b);
/* Whether `b` may have begun before `a` had ended. */
bool sg_race_launch_overlaps(const struct sg_race *race, uint32_t a, uint32_t b);
/* `b` has read what `a` has released. */
void sg_race_launch_meets(struct sg_race_grid *grid, uint32_t a);

/* ---- race_sync.c ----------------------------------------------------------------------------- */

struct sg_race_block *sg_race_block_of(struct sg_race_grid *grid, uint64_t block);
void sg_race_block_free(struct sg_race_block *block);
/* Forgets what a block knows; it keeps its shadows. */
void sg_race_block_clear(struct sg_race_block *block);
/* A strong access, before it is compared: what it acquires and releases. */
void sg_race_strong(struct sg_race_grid *grid, struct sg_race_block *block,
                    const struct sg_watched_access *access);
/* Of shared memory that only the block reaches: of code that knows nothing of clusters, too. */
static inline bool sg_race_is_own(const struct sg_race_grid *grid,
                                  const struct sg_watched_access *access) {
    return access->space == SG_IN_SHARED && (grid->cluster_size == 1 || access->warp->shared);
}
/* Whether the threads of two blocks are in each other's scope. */
bool sg_race_in_scope(const struct sg_race_grid *grid, uint32_t a, uint32_t b, unsigned scope);
uint64_t sg_race_cluster_of(const struct sg_race_grid *grid, uint64_t block);
void sg_race_arrives(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                     uint32_t lanes, unsigned number, bool waits);
void sg_race_completes(void *user, uint64_t block, unsigned number);
void sg_race_meet(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                  uint32_t lanes);
void sg_race_delivers(void *user, const struct sg_watched_access *mbarrier);
void sg_race_turns(void *user, uint64_t block, uint64_t address);
void sg_race_looks(void *user, const struct sg_watched_phase *phase);
void sg_race_depends(void *user, const struct sg_watched_warp *warp, uint32_t lanes);
void sg_race_fence(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                   uint32_t lanes, unsigned char order, unsigned char scope);

/* ---- race_shadow.c --------------------------------------------------------------------------- */

/* The address in the shadows: of shared memory of a cluster one that nothing else has. */
uint64_t sg_race_address(const struct sg_race_grid *grid, const struct sg_race_block *block,
                         const struct sg_watched_access *access, unsigned lane);
uint64_t sg_race_shared_address(const struct sg_race_grid *grid, const struct sg_race_block *block,
                                uint64_t address);

/* ---- race_access.c, race_found.c ------------------------------------------------------------- */

void sg_race_access(void *user, const struct sg_watched_access *access);
void sg_race_issues(void *user, const struct sg_watched_access *copy);
void sg_race_issues_bulk(void *user, const struct sg_watched_copy *copy);
/* The bytes that were not known are there now: reports. */
void sg_race_decide(struct sg_race_grid *grid);

#endif
