/* Shadows: what is remembered of memory, by lines of 64 bytes and by words. */
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
    if (shadow->last && shadow->last->number == number)
        return shadow->last;
    struct sg_shadow_area *area = shadow->room ? shadow->areas[slot_of(shadow, number)] : NULL;
    if (area)
        shadow->last = area;
    return area;
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
    shadow->last = area;
    return area;
}

struct sg_shadow_page *sg_shadow_page_new(uint64_t *bytes) {
    struct sg_shadow_page *page = aligned_alloc(64, (sizeof *page + 63) / 64 * 64);
    if (!page)
        return NULL;
    memset(page, 0, sizeof *page);
    *bytes += sizeof *page;
    return page;
}

void sg_shadow_page_free(struct sg_shadow_page *page) {
    if (page)
        free(page->words);
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

struct sg_cell *sg_shadow_split(struct sg_shadow_page *page, unsigned line, uint64_t *bytes) {
    size_t all = (size_t)SG_PAGE_LINES * SG_LINE_WORDS * sizeof(struct sg_cell);
    if (!page->words) {
        page->words = aligned_alloc(64, all);
        if (!page->words)
            return NULL;
        *bytes += all;
    }
    struct sg_cell *words = page->words + (size_t)line * SG_LINE_WORDS;
    if (page->split >> line & 1)
        return words;
    page->split |= UINT64_C(1) << line;
    const struct sg_cell *whole = &page->lines[line];
    for (unsigned w = 0; w < SG_LINE_WORDS; w++)
        for (unsigned s = 0; s < SG_SEEN_SLOTS; s++) {
            struct sg_seen seen = whole->seen[s];
            uint32_t lane = SG_SEEN_LANE(seen.what) + (w * 4 >> SG_SEEN_BYTES(seen.what));
            if (!(page->runs[line][s] >> w & 1))
                seen.launch = 0;
            seen.what = SG_SEEN_WITH_BYTES(SG_SEEN_WITH_LANE(seen.what, lane), 15);
            words[w].seen[s] = seen;
        }
    return words;
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
    shadow->last = NULL;
    shadow->count = 0;
    shadow->bytes = 0;
}

static void clear_line(struct sg_shadow_page *page, uint64_t address) {
    unsigned line = (unsigned)(address % SG_PAGE_BYTES / SG_LINE_BYTES);
    memset(&page->lines[line], 0, sizeof page->lines[line]);
    page->split &= ~(UINT64_C(1) << line);
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
