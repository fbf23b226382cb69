/*
 * What the files race_*.c share that compare an access with those remembered of the same memory.
 * What most accesses need is inline.
 */
#ifndef SG_CHECK_RACE_ACTOR_H
#define SG_CHECK_RACE_ACTOR_H

#include "softgpu/check/race_inside.h"

/* A warp's access, or a copy, that is compared with what is remembered. */
struct sg_race_actor {
    struct sg_race_grid *grid;
    struct sg_race_block *block;
    const struct sg_race_warp *warp;
    const struct sg_watched_access *access;
    struct sg_seen seen; /* for lane 0, without bytes */
    bool own;            /* the block's own shared memory */
    bool writes, strong;
    bool far;       /* its scope includes all threads that can access this memory */
    unsigned raced; /* races so far */
};

static inline bool sg_race_writes(uint32_t what) {
    return SG_SEEN_KIND(what) == SG_WATCHED_WRITE || SG_SEEN_KIND(what) == SG_WATCHED_ATOMIC;
}

/* ---- race_before.c: what orders two accesses ------------------------------------------------- */

/* The launch before this one may not have ended. */
static inline bool sg_race_is_early(const struct sg_race_actor *a) {
    return a->grid->early && !a->block->depended;
}

bool sg_race_is_launch_before(const struct sg_race_actor *a, uint32_t launch);

/* For any lanes, by what the whole warp knows. */
static inline bool sg_race_is_before_all(const struct sg_race_actor *a, const struct sg_seen *old) {
    if (old->launch != a->seen.launch)
        return sg_race_is_launch_before(a, old->launch);
    if (old->warp >> 5 != a->seen.warp >> 5)
        return false;
    return old->moment <= a->block->met ||
           (old->warp == a->seen.warp && old->moment <= a->warp->met);
}

bool sg_race_is_before(const struct sg_race_actor *a, const struct sg_seen *old, unsigned old_lane,
                       unsigned lane);
/* Whether they would race if nothing orders them. */
bool sg_race_conflicts(const struct sg_race_actor *a, const struct sg_seen *old);

/* In the shadow of shared memory: an access of an earlier block, or one that happens before
 * everything that this block's threads do from now on. */
static inline bool sg_race_is_stale(const struct sg_race_actor *a, const struct sg_seen *old) {
    return a->own && (old->launch != a->seen.launch || old->warp >> 5 != a->seen.warp >> 5 ||
                      old->moment <= a->block->met);
}

/* Whether the remembered access is redundant, given the new one, which covers all its bytes. */
static inline bool sg_race_is_superseded(const struct sg_race_actor *a, const struct sg_seen *old,
                                         bool before, bool raced) {
    if (before)
        return a->writes || !sg_race_writes(old->what);
    return raced || (SG_SEEN_STRONG(old->what) && SG_SEEN_STRONG(a->seen.what) &&
                     SG_SEEN_KIND(old->what) == SG_SEEN_KIND(a->seen.what));
}

/* ---- race_found.c ---------------------------------------------------------------------------- */

/* Reports a race of a lane with what another did, in some bytes of a word. */
void sg_race_report(struct sg_race_actor *a, const struct sg_seen *old, unsigned old_lane,
                    unsigned lane, uint64_t word, unsigned bytes);

/* ---- race_words.c: accesses word by word ----------------------------------------------------- */

/* Makes the page of an address; NULL: out of memory, and the grid is lost. */
struct sg_shadow_page *sg_race_page_new(struct sg_race_actor *a, uint64_t address);

static inline struct sg_shadow_page *sg_race_page_at(struct sg_race_actor *a, uint64_t address) {
    uint64_t number = address / SG_PAGE_BYTES;
    struct sg_shadow_page *page = NULL;
    if (!a->own)
        page = sg_shadow_page_near(&a->grid->race->shadow, address);
    else if (number < a->block->shared_pages)
        page = a->block->shared[number];
    return page ? page : sg_race_page_new(a, address);
}

/* Which slot is given up if there is no room, slots lying so far apart: another access of the same
 * warp, or any other, but reads first. */
unsigned sg_race_victim(const struct sg_race_actor *a, const struct sg_seen *slots, size_t apart);
/* Bytes (a bit for each) of a word. */
void sg_race_word_access(struct sg_race_actor *a, struct sg_shadow_page *page, uint64_t word,
                         unsigned bytes, unsigned lane);
/* All that a lane accesses. */
void sg_race_lane_access(struct sg_race_actor *a, uint64_t address, unsigned lane);
/* Lanes that access words here and there: shadows are far apart, so all are prefetched before the
 * first is used. Returns the lanes that are left. */
uint32_t sg_race_scattered(struct sg_race_actor *a, const uint64_t *address, uint32_t lanes);

/* ---- race_lines.c: accesses line by line ----------------------------------------------------- */

/* A part of a run: words of one line, accessed by consecutive lanes. */
struct sg_race_part {
    uint64_t line; /* address */
    uint32_t words;
    unsigned lane, power;
};

void sg_race_part_access(struct sg_race_actor *a, const struct sg_race_part *part);
/* Consecutive lanes that access consecutive words, or aligned vectors of them. */
void sg_race_run_access(struct sg_race_actor *a, uint64_t address, unsigned lane, unsigned lanes);

/* ---- race_access.c --------------------------------------------------------------------------- */

/* The lanes of the actor's access, at these addresses. */
void sg_race_all_lanes(struct sg_race_actor *a, const uint64_t *address);
/* Packs what is remembered of an access, for lane 0 and without bytes. */
uint32_t sg_race_what_of(const struct sg_watched_access *access);

/* ---- race_reads.c ---------------------------------------------------------------------------- */

/* Whether a read of the block's own shared memory is put off: nothing is left to do. Else all reads
 * that were put off are remembered first. */
bool sg_race_is_put_off(const struct sg_race_actor *a, struct sg_race_block *block);

#endif
