/*
 * Accesses word by word. A line that is split has one access for each word, and where that is not
 * enough, a cell of four.
 */
#include "softgpu/check/race_actor.h"

#include <stdlib.h>

/* ---- memory ---------------------------------------------------------------------------------- */

static struct sg_shadow_page *own_page(struct sg_race_actor *a, uint64_t number) {
    struct sg_race_block *block = a->block;
    if (number >= block->shared_pages) {
        struct sg_shadow_page **more =
            realloc(block->shared, (size_t)(number + 1) * sizeof(struct sg_shadow_page *));
        if (!more)
            return NULL;
        for (size_t i = block->shared_pages; i <= number; i++)
            more[i] = NULL;
        block->shared = more;
        block->shared_pages = (size_t)number + 1;
    }
    if (!block->shared[number])
        block->shared[number] = sg_shadow_page_new(&(uint64_t){0});
    return block->shared[number];
}

struct sg_shadow_page *sg_race_page_new(struct sg_race_actor *a, uint64_t address) {
    uint64_t number = address / SG_PAGE_BYTES;
    struct sg_shadow_page *page =
        a->own ? own_page(a, number) : sg_shadow_page_at(&a->grid->race->shadow, address);
    a->grid->lost = a->grid->lost || !page;
    return page;
}

/* ---- cells ----------------------------------------------------------------------------------- */

unsigned sg_race_victim(const struct sg_race_actor *a, const struct sg_seen *slots, size_t apart) {
    uint32_t turn = a->grid->turn++;
    for (unsigned s = 0; s < SG_SEEN_SLOTS; s++)
        if (slots[s * apart].warp == a->seen.warp && !sg_race_writes(slots[s * apart].what))
            return s;
    for (unsigned i = 0; i < SG_SEEN_SLOTS; i++)
        if (!sg_race_writes(slots[(turn + i) % SG_SEEN_SLOTS * apart].what))
            return (turn + i) % SG_SEEN_SLOTS;
    return turn % SG_SEEN_SLOTS;
}

/*
 * The frequent cases of an access to a whole word, in a line with one access per word: there is
 * none, it is of an earlier block or of a launch that comes before, it is the same kind of strong
 * access, or a barrier is between them. False: look closely.
 */
static inline bool quick_access(const struct sg_race_actor *a, struct sg_seen *old, uint32_t what) {
    bool supersedes = a->writes || !sg_race_writes(old->what);
    bool block = old->warp >> 5 == a->seen.warp >> 5;
    if (!sg_race_is_stale(a, old) && old->launch == a->seen.launch) {
        bool alike = a->strong && SG_SEEN_MANNER(old->what) == SG_SEEN_MANNER(what);
        if (!(alike && (block || a->far)) && !(block && supersedes && old->moment <= a->block->met))
            return false;
    } else if (old->launch && !a->own &&
               !(old->launch == a->grid->ordered && supersedes && !sg_race_is_early(a))) {
        return false;
    }
    *old = a->seen;
    old->what = what;
    return true;
}

static void cell_access(struct sg_race_actor *a, struct sg_cell *cell, uint64_t word,
                        unsigned bytes, unsigned lane) {
    unsigned place = SG_SEEN_SLOTS;
    for (unsigned s = 0; s < SG_SEEN_SLOTS; s++) {
        struct sg_seen *old = &cell->seen[s];
        if (!old->launch || sg_race_is_stale(a, old)) {
            old->launch = 0;
            place = s;
            continue;
        }
        unsigned old_bytes = SG_SEEN_BYTES(old->what), old_lane = SG_SEEN_LANE(old->what);
        if (!(old_bytes & bytes))
            continue;
        bool before = sg_race_is_before(a, old, old_lane, lane);
        bool raced = !before && sg_race_conflicts(a, old);
        if (raced)
            sg_race_report(a, old, old_lane, lane, word, old_bytes & bytes);
        if (!(old_bytes & ~bytes) && sg_race_is_superseded(a, old, before, raced)) {
            old->launch = 0;
            place = s;
        }
    }
    struct sg_seen *new =
        &cell->seen[place < SG_SEEN_SLOTS ? place : sg_race_victim(a, cell->seen, 1)];
    *new = a->seen;
    new->what = SG_SEEN_WITH_BYTES(SG_SEEN_WITH_LANE(a->seen.what, lane), bytes);
}

/* False: the word needs a cell. */
static bool single_access(struct sg_race_actor *a, struct sg_seen *old, uint64_t word,
                          unsigned bytes, unsigned lane) {
    if (old->launch && !sg_race_is_stale(a, old)) {
        unsigned old_bytes = SG_SEEN_BYTES(old->what), old_lane = SG_SEEN_LANE(old->what);
        if (old_bytes & ~bytes)
            return false;
        bool before = sg_race_is_before(a, old, old_lane, lane);
        bool raced = !before && sg_race_conflicts(a, old);
        if (!sg_race_is_superseded(a, old, before, raced))
            return false;
        if (raced)
            sg_race_report(a, old, old_lane, lane, word, bytes & old_bytes);
    }
    *old = a->seen;
    old->what = SG_SEEN_WITH_BYTES(SG_SEEN_WITH_LANE(a->seen.what, lane), bytes);
    return true;
}

static uint64_t *counted(struct sg_race_actor *a) {
    static _Thread_local uint64_t not_counted; /* the shadows of blocks are not limited */
    return a->own ? &not_counted : &a->grid->race->shadow.bytes;
}

void sg_race_word_access(struct sg_race_actor *a, struct sg_shadow_page *page, uint64_t word,
                         unsigned bytes, unsigned lane) {
    unsigned line = (unsigned)(word % SG_PAGE_BYTES / SG_LINE_BYTES);
    size_t at = word % SG_PAGE_BYTES / SG_WORD_BYTES;
    bool there = page->split >> line & 1;
    if (there && bytes == 15 && !(page->full >> line & 1) &&
        quick_access(a, &page->singles[at],
                     SG_SEEN_WITH_BYTES(SG_SEEN_WITH_LANE(a->seen.what, lane), 15)))
        return;
    there = there || sg_shadow_split(page, line, counted(a));
    if (there && !(page->full >> line & 1)) {
        if (single_access(a, &page->singles[at], word, bytes, lane))
            return;
        there = sg_shadow_fill(page, line, counted(a));
    }
    if (there)
        cell_access(a, &page->words[at], word, bytes, lane);
    else
        a->grid->lost = true;
}

void sg_race_lane_access(struct sg_race_actor *a, uint64_t address, unsigned lane) {
    uint64_t end = address + a->access->size;
    struct sg_shadow_page *only;
    if (a->access->size == SG_WORD_BYTES && address % SG_WORD_BYTES == 0) {
        if ((only = sg_race_page_at(a, address)))
            sg_race_word_access(a, only, address, 15, lane);
        return;
    }
    for (uint64_t word = address & ~UINT64_C(3); word < end; word += SG_WORD_BYTES) {
        unsigned bytes = 15;
        if (word < address)
            bytes &= 15u << (address - word);
        if (word + SG_WORD_BYTES > end)
            bytes &= 15u >> (word + SG_WORD_BYTES - end);
        struct sg_shadow_page *page = sg_race_page_at(a, word);
        if (!page)
            return;
        sg_race_word_access(a, page, word, bytes, lane);
    }
}

/* ---- words here and there -------------------------------------------------------------------- */

/* The access of a whole word that is remembered, where its line has one of each; NULL: look
 * closely. */
static struct sg_seen *single_at(const struct sg_race_actor *a, uint64_t address) {
    uint64_t number = address / SG_PAGE_BYTES;
    const struct sg_shadow_page *page = NULL;
    if (!a->own)
        page = sg_shadow_page_near(&a->grid->race->shadow, address);
    else if (number < a->block->shared_pages)
        page = a->block->shared[number];
    unsigned line = (unsigned)(address % SG_PAGE_BYTES / SG_LINE_BYTES);
    return page && (page->split & ~page->full) >> line & 1 && address % SG_WORD_BYTES == 0
               ? &page->singles[address % SG_PAGE_BYTES / SG_WORD_BYTES]
               : NULL;
}

uint32_t sg_race_scattered(struct sg_race_actor *a, const uint64_t *address, uint32_t lanes) {
    struct sg_seen *at[32];
    uint32_t quick = 0;
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        at[l] = single_at(a, address[l]);
        __builtin_prefetch(at[l], 1);
        quick |= (uint32_t)(at[l] != NULL) << l;
    }
    for (uint32_t left = quick; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        uint32_t what = SG_SEEN_WITH_BYTES(SG_SEEN_WITH_LANE(a->seen.what, l), 15);
        if (quick_access(a, at[l], what))
            lanes &= ~(UINT32_C(1) << l);
    }
    return lanes;
}
