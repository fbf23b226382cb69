/* Shadows: what is remembered of memory, by lines and by words. */
#include "softgpu/check/race_inside.h"

#include <stdlib.h>
#include <string.h>

static size_t slot_of(const struct sg_shadow *shadow, uint64_t number) {
    size_t mask = shadow->room - 1;
    size_t at = (size_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (shadow->areas[at] && shadow->areas[at]->number != number)
        at = (at + 1) & mask;
    return at;
}

static bool grow(struct sg_shadow *shadow) {
    struct sg_shadow bigger = *shadow;
    bigger.room = shadow->room ? 2 * shadow->room : 64;
    bigger.areas = calloc(bigger.room, sizeof(struct sg_shadow_area *));
    if (!bigger.areas)
        return false;
    for (size_t i = 0; i < shadow->room; i++)
        if (shadow->areas[i])
            bigger.areas[slot_of(&bigger, shadow->areas[i]->number)] = shadow->areas[i];
    free(shadow->areas);
    *shadow = bigger;
    return true;
}

static struct sg_shadow_area *area_of(struct sg_shadow *shadow, uint64_t number) {
    struct sg_shadow_area **near = &shadow->near[number % SG_NEAR_AREAS];
    if (!*near || (*near)->number != number) {
        if (!shadow->room || !shadow->areas[slot_of(shadow, number)])
            return NULL;
        *near = shadow->areas[slot_of(shadow, number)];
    }
    return *near;
}

static struct sg_shadow_area *area_new(struct sg_shadow *shadow, uint64_t number) {
    if (2 * (shadow->count + 1) > shadow->room && !grow(shadow))
        return NULL;
    struct sg_shadow_area *area = calloc(1, sizeof *area);
    if (!area)
        return NULL;
    area->number = number;
    shadow->areas[slot_of(shadow, number)] = area;
    shadow->count++;
    shadow->bytes += sizeof *area;
    shadow->near[number % SG_NEAR_AREAS] = area;
    return area;
}

_Static_assert(sizeof(struct sg_shadow_page) % 64 == 0, "a page fills lines of the cache");
_Static_assert(SG_LINE_WORDS == 32 && SG_PAGE_LINES <= 64, "there is a bit for each");

/* Not at multiples of a power of two: the processor's cache has few places for those. */
struct sg_shadow_page *sg_shadow_page_new(uint64_t *bytes) {
    struct sg_shadow_page *page = aligned_alloc(64, sizeof *page);
    if (!page)
        return NULL;
    memset(page, 0, sizeof *page);
    *bytes += sizeof *page;
    return page;
}

void sg_shadow_page_free(struct sg_shadow_page *page) {
    if (page) {
        free(page->words);
        free(page->singles);
    }
    free(page);
}

struct sg_shadow_page *sg_shadow_page_of(struct sg_shadow *shadow, uint64_t address) {
    const struct sg_shadow_area *area = area_of(shadow, address / SG_AREA_BYTES);
    return area ? area->pages[address % SG_AREA_BYTES / SG_PAGE_BYTES] : NULL;
}

struct sg_shadow_page *sg_shadow_page_at(struct sg_shadow *shadow, uint64_t address) {
    uint64_t number = address / SG_AREA_BYTES, index = address % SG_AREA_BYTES / SG_PAGE_BYTES;
    struct sg_shadow_area *area = area_of(shadow, number);
    if (area && area->pages[index])
        return area->pages[index];
    if (shadow->bytes > shadow->most) {
        sg_shadow_clear(shadow);
        shadow->full++;
        area = NULL;
    }
    if (!area)
        area = area_new(shadow, number);
    return area ? area->pages[index] = sg_shadow_page_new(&shadow->bytes) : NULL;
}

#define PAGE_WORDS ((size_t)SG_PAGE_LINES * SG_LINE_WORDS)

/* The words that a line has of a slot. */
static uint32_t run_of(const struct sg_shadow_page *page, unsigned line, unsigned slot) {
    return page->used[slot] >> line & 1 ? page->runs[slot][line] : 0;
}

/* Lanes of a run that access parts of words have a word together. */
static bool has_overlap(const struct sg_shadow_page *page, unsigned line) {
    uint32_t all = 0;
    for (unsigned s = 0; s < SG_SEEN_SLOTS; s++) {
        uint32_t run = run_of(page, line, s);
        if (all & run || (run && SG_SEEN_BYTES(page->lines[s][line].what) < 2))
            return true;
        all |= run;
    }
    return false;
}

/* A line's access, as an access of one of its words; `part`: the bytes, from 0. */
static struct sg_seen of_word(const struct sg_seen *run, unsigned word, unsigned part) {
    struct sg_seen seen = *run;
    unsigned power = SG_SEEN_BYTES(run->what);
    uint32_t lane = SG_SEEN_LANE(run->what) + ((word * 4 + part) >> power);
    unsigned bytes = power >= 2 ? 15u : ((1u << (1u << power)) - 1) << part;
    seen.what = SG_SEEN_WITH_BYTES(SG_SEEN_WITH_LANE(run->what, lane), bytes);
    return seen;
}

bool sg_shadow_split(struct sg_shadow_page *page, unsigned line, uint64_t *bytes) {
    if (has_overlap(page, line))
        return sg_shadow_fill(page, line, bytes);
    if (!page->singles) {
        page->singles = aligned_alloc(64, PAGE_WORDS * sizeof *page->singles);
        if (!page->singles)
            return false;
        *bytes += PAGE_WORDS * sizeof *page->singles;
    }
    struct sg_seen *words = page->singles + (size_t)line * SG_LINE_WORDS;
    memset(words, 0, SG_LINE_WORDS * sizeof *words);
    for (unsigned s = 0; s < SG_SEEN_SLOTS; s++) {
        const struct sg_seen *run = &page->lines[s][line];
        for (uint32_t left = run_of(page, line, s); left; left &= left - 1) {
            unsigned w = (unsigned)__builtin_ctz(left);
            words[w] = of_word(run, w, 0);
        }
    }
    page->split |= UINT64_C(1) << line;
    return true;
}

/* Without room the last one is replaced. */
static void put(struct sg_cell *cell, struct sg_seen seen) {
    unsigned s = 0;
    while (s < SG_SEEN_SLOTS - 1 && cell->seen[s].launch)
        s++;
    cell->seen[s] = seen;
}

static void fill_from_line(const struct sg_shadow_page *page, unsigned line,
                           struct sg_cell *words) {
    for (unsigned s = 0; s < SG_SEEN_SLOTS; s++) {
        const struct sg_seen *run = &page->lines[s][line];
        unsigned step = 1u << (SG_SEEN_BYTES(run->what) < 2 ? SG_SEEN_BYTES(run->what) : 2);
        for (uint32_t left = run_of(page, line, s); left; left &= left - 1) {
            unsigned w = (unsigned)__builtin_ctz(left);
            for (unsigned part = 0; part < 4; part += step)
                put(&words[w], of_word(run, w, part));
        }
    }
}

bool sg_shadow_fill(struct sg_shadow_page *page, unsigned line, uint64_t *bytes) {
    if (!page->words) {
        page->words = aligned_alloc(64, PAGE_WORDS * sizeof *page->words);
        if (!page->words)
            return false;
        *bytes += PAGE_WORDS * sizeof *page->words;
    }
    struct sg_cell *words = page->words + (size_t)line * SG_LINE_WORDS;
    memset(words, 0, SG_LINE_WORDS * sizeof *words);
    if (page->split >> line & 1)
        for (unsigned w = 0; w < SG_LINE_WORDS; w++)
            words[w].seen[0] = page->singles[(size_t)line * SG_LINE_WORDS + w];
    else
        fill_from_line(page, line, words);
    page->split |= UINT64_C(1) << line;
    page->full |= UINT64_C(1) << line;
    return true;
}

static void area_free(struct sg_shadow_area *area) {
    for (size_t p = 0; area && p < SG_AREA_PAGES; p++)
        sg_shadow_page_free(area->pages[p]);
    free(area);
}

void sg_shadow_clear(struct sg_shadow *shadow) {
    for (size_t i = 0; i < shadow->room; i++) {
        area_free(shadow->areas[i]);
        shadow->areas[i] = NULL;
    }
    memset(shadow->near, 0, sizeof shadow->near);
    shadow->count = 0;
    shadow->bytes = 0;
}

static void clear_line(struct sg_shadow_page *page, uint64_t address) {
    unsigned line = (unsigned)(address % SG_PAGE_BYTES / SG_LINE_BYTES);
    for (unsigned s = 0; s < SG_SEEN_SLOTS; s++)
        page->used[s] &= ~(UINT64_C(1) << line);
    page->split &= ~(UINT64_C(1) << line);
    page->full &= ~(UINT64_C(1) << line);
}

void sg_shadow_clear_range(struct sg_shadow *shadow, uint64_t address, uint64_t size) {
    uint64_t end = address + size;
    for (uint64_t at = address & ~(uint64_t)(SG_LINE_BYTES - 1); at < end;) {
        if (!area_of(shadow, at / SG_AREA_BYTES)) {
            at = (at / SG_AREA_BYTES + 1) * SG_AREA_BYTES;
            continue;
        }
        struct sg_shadow_page *page = sg_shadow_page_of(shadow, at);
        if (page)
            clear_line(page, at);
        at = page ? at + SG_LINE_BYTES : (at / SG_PAGE_BYTES + 1) * SG_PAGE_BYTES;
    }
}

void sg_shadow_free(struct sg_shadow *shadow) {
    sg_shadow_clear(shadow);
    free(shadow->areas);
    shadow->areas = NULL;
    shadow->room = 0;
}

/* ---- addresses of accesses ------------------------------------------------------------------- */

uint64_t sg_race_address(const struct sg_race_grid *grid, const struct sg_race_block *block,
                         const struct sg_watched_access *access, unsigned lane) {
    uint64_t address = access->address[lane];
    return access->space == SG_IN_SHARED && !sg_race_is_own(grid, access)
               ? sg_race_shared_address(grid, block, address)
               : address;
}

uint64_t sg_race_shared_address(const struct sg_race_grid *grid, const struct sg_race_block *block,
                                uint64_t address) {
    if (grid->cluster_size == 1)
        return address;
    return UINT64_C(1) << 63 | (uint64_t)(grid->launch & 0x7ff) << 52 |
           (sg_race_cluster_of(grid, block->index) & 0xffffff) << 28 | (address & 0xfffffff);
}
