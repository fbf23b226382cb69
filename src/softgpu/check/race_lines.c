/*
 * Accesses line by line: consecutive lanes that access consecutive words, of which a line remembers
 * runs (struct sg_shadow_page). A line with a race, perhaps only in some words, is split.
 */
#include "softgpu/check/race_actor.h"

static unsigned lane_of(unsigned lane, unsigned power, unsigned byte) {
    return (lane + (byte >> power)) & 31;
}

/* Whether both are accesses of the same lanes. */
static inline bool is_same_run(const struct sg_race_actor *a, const struct sg_seen *old,
                               const struct sg_race_part *part) {
    return old->warp == a->seen.warp && old->launch == a->seen.launch &&
           SG_SEEN_LANE(old->what) == part->lane && SG_SEEN_BYTES(old->what) == part->power;
}

static bool is_run_before(const struct sg_race_actor *a, const struct sg_seen *old, uint32_t both,
                          const struct sg_race_part *part) {
    unsigned lane = SG_SEEN_LANE(old->what), power = SG_SEEN_BYTES(old->what);
    if (is_same_run(a, old, part) || sg_race_is_before_all(a, old))
        return true;
    if (old->launch != a->seen.launch || !a->block->knows)
        return false;
    unsigned least = power < part->power ? power : part->power;
    unsigned step = least < 2 ? 1u << least : SG_WORD_BYTES;
    for (unsigned byte = 0; byte < SG_LINE_BYTES; byte += step)
        if (both >> byte / SG_WORD_BYTES & 1 &&
            !sg_race_is_before(a, old, lane_of(lane, power, byte),
                               lane_of(part->lane, part->power, byte)))
            return false;
    return true;
}

static inline void put(const struct sg_race_actor *a, struct sg_shadow_page *page, unsigned line,
                       unsigned slot, const struct sg_race_part *part) {
    struct sg_seen *seen = &page->lines[slot][line];
    *seen = a->seen;
    seen->what = SG_SEEN_WITH_BYTES(SG_SEEN_WITH_LANE(a->seen.what, part->lane), part->power);
    page->runs[slot][line] = part->words;
    page->used[slot] |= UINT64_C(1) << line;
}

/* A read of the block's own shared memory: only writes since the last barrier of all matter. False:
 * there is one. */
static bool own_read(struct sg_race_actor *a, struct sg_shadow_page *page, unsigned line,
                     const struct sg_race_part *part) {
    unsigned place = SG_SEEN_SLOTS;
    for (unsigned s = SG_SEEN_SLOTS; s-- > 0;) {
        const struct sg_seen *old = &page->lines[s][line];
        if (!(page->used[s] >> line & 1) || sg_race_is_stale(a, old) ||
            (page->runs[s][line] == part->words && !sg_race_writes(old->what) &&
             is_same_run(a, old, part)))
            place = s;
        else if (sg_race_writes(old->what))
            return false;
    }
    put(a, page, line, place < SG_SEEN_SLOTS ? place : a->grid->turn++ % SG_SEEN_SLOTS, part);
    return true;
}

/* Whether what a slot has of the line may be forgotten for this access; *raced: they may race. */
static inline bool gives_way(const struct sg_race_actor *a, const struct sg_seen *old, uint32_t run,
                             const struct sg_race_part *part, bool *raced) {
    uint32_t both = run & part->words;
    bool covered = !(run & ~part->words);
    if (sg_race_is_stale(a, old))
        return true;
    if (!both)
        return false;
    if (!a->writes && !sg_race_writes(old->what))
        return covered && (is_same_run(a, old, part) || sg_race_is_before_all(a, old));
    bool before = is_run_before(a, old, both, part);
    *raced = *raced || (!before && sg_race_conflicts(a, old));
    return covered && sg_race_is_superseded(a, old, before, false);
}

/* True: it is done. False: something races, perhaps only in some words. */
static bool whole_access(struct sg_race_actor *a, struct sg_shadow_page *page,
                         const struct sg_race_part *part) {
    unsigned line = (unsigned)(part->line % SG_PAGE_BYTES / SG_LINE_BYTES);
    unsigned place = SG_SEEN_SLOTS;
    bool raced = false;
    if (a->own && !a->writes && own_read(a, page, line, part))
        return true;
    for (unsigned s = SG_SEEN_SLOTS; s-- > 0;) {
        bool used = page->used[s] >> line & 1;
        if (used && !gives_way(a, &page->lines[s][line], page->runs[s][line], part, &raced))
            continue;
        if (raced)
            return false;
        page->used[s] &= ~(UINT64_C(1) << line);
        place = s;
    }
    if (raced)
        return false;
    put(a, page, line,
        place < SG_SEEN_SLOTS ? place : sg_race_victim(a, &page->lines[0][line], SG_PAGE_LINES),
        part);
    return true;
}

static bool is_of(const struct sg_race_actor *a, const struct sg_seen *seen) {
    return seen->launch == a->seen.launch && seen->warp == a->seen.warp &&
           seen->moment == a->seen.moment && sg_race_writes(seen->what);
}

/* A line whose words all have only this write becomes whole again. */
static void join_line(struct sg_shadow_page *page, const struct sg_race_actor *a,
                      const struct sg_race_part *part) {
    unsigned line = (unsigned)(part->line % SG_PAGE_BYTES / SG_LINE_BYTES);
    size_t first = (size_t)line * SG_LINE_WORDS;
    bool full = page->full >> line & 1;
    for (size_t w = first; w < first + SG_LINE_WORDS; w++)
        for (unsigned s = 0; s < (full ? SG_SEEN_SLOTS : 1); s++) {
            const struct sg_seen *seen = full ? &page->words[w].seen[s] : &page->singles[w];
            if (seen->launch && !is_of(a, seen))
                return;
        }
    for (unsigned s = 1; s < SG_SEEN_SLOTS; s++)
        page->used[s] &= ~(UINT64_C(1) << line);
    put(a, page, line, 0, part);
    page->split &= ~(UINT64_C(1) << line);
    page->full &= ~(UINT64_C(1) << line);
}

static void by_words(struct sg_race_actor *a, struct sg_shadow_page *page,
                     const struct sg_race_part *part) {
    unsigned step = part->power < 2 ? 1u << part->power : SG_WORD_BYTES;
    unsigned ones = (1u << step) - 1;
    for (uint32_t left = part->words; left && !a->grid->lost; left &= left - 1) {
        unsigned byte = (unsigned)__builtin_ctz(left) * SG_WORD_BYTES;
        for (unsigned b = 0; b < SG_WORD_BYTES; b += step)
            sg_race_word_access(a, page, part->line + byte, ones << b,
                                lane_of(part->lane, part->power, byte + b));
    }
}

#define AHEAD (8u * SG_LINE_BYTES)

/* Most kernels go through memory upwards: what is next is on its way before it is needed. */
static inline void fetch_ahead(const struct sg_race_actor *a, uint64_t address) {
    if (address / SG_LINE_BYTES % 4) /* four lines' slots lie together */
        return;
    uint64_t next = address + AHEAD;
    unsigned line = (unsigned)(next % SG_PAGE_BYTES / SG_LINE_BYTES);
    const struct sg_shadow_page *page = sg_shadow_page_near(&a->grid->race->shadow, next);
    if (!page)
        return;
    __builtin_prefetch(&page->lines[0][line], 1);
    __builtin_prefetch(&page->lines[1][line], 1);
    if (line < 4) {
        __builtin_prefetch(page, 1);
        __builtin_prefetch(&page->runs[0][0], 1);
        __builtin_prefetch(&page->runs[0][16], 1);
        __builtin_prefetch(&page->runs[1][0], 1);
    }
}

void sg_race_part_access(struct sg_race_actor *a, const struct sg_race_part *part) {
    struct sg_shadow_page *page = sg_race_page_at(a, part->line);
    if (!page)
        return;
    if (!a->own)
        fetch_ahead(a, part->line);
    unsigned line = (unsigned)(part->line % SG_PAGE_BYTES / SG_LINE_BYTES), raced = a->raced;
    if (!(page->split >> line & 1) && whole_access(a, page, part))
        return;
    by_words(a, page, part);
    if (a->writes && part->words == SG_LINE_WHOLE && a->raced == raced)
        join_line(page, a, part);
}

void sg_race_run_access(struct sg_race_actor *a, uint64_t address, unsigned lane, unsigned lanes) {
    unsigned power = (unsigned)__builtin_ctz(a->access->size);
    uint64_t end = address + ((uint64_t)lanes << power);
    while (address < end) {
        uint64_t line = address & ~(uint64_t)(SG_LINE_BYTES - 1);
        uint64_t last = line + SG_LINE_BYTES < end ? line + SG_LINE_BYTES : end;
        unsigned from = (unsigned)(address - line) / SG_WORD_BYTES;
        unsigned to = (unsigned)(last - line) / SG_WORD_BYTES;
        struct sg_race_part part = {.line = line,
                                    .words = (SG_LINE_WHOLE >> (SG_LINE_WORDS - (to - from)))
                                             << from,
                                    .lane = (lane - (from * SG_WORD_BYTES >> power)) & 31,
                                    .power = power};
        sg_race_part_access(a, &part);
        lane += (unsigned)(last - address) >> power;
        address = last;
    }
}
