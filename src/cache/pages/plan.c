/* Which addresses get memory for a request, and which pages. The cache's lock is held. */
#include "cache/cache.h"

#include "base/growing_array.h"

#include <stdlib.h>

/* Taken before anything is in use that could be measured. */
#define FIRST_BYTES ((uint64_t)4 << 20)

#define LARGEST_PAGE ((size_t)64 << 20)

/* A page is at most one part in so many of the most ever in use, or of the block that it is created
 * for, if that is more; one that is most of a huge block would fit few others. On five programs'
 * traces half the size made a third more driver calls, and twice the size brought some of them
 * above 1.05 times what they used. */
#define PAGES_OF_ALL        128
#define PAGES_OF_ALL_SMALL  4096 /* one small block keeps a page */
#define PAGES_OF_BLOCK      16
#define PAGES_OF_HUGE_BLOCK 3 /* at least */

static size_t round_down(size_t bytes, size_t unit) {
    return bytes / unit * unit;
}

static size_t round_up(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t power_below(size_t bytes) {
    return (size_t)1 << (63 - __builtin_clzll((unsigned long long)bytes));
}

/* The most ever in use, this request included. */
static uint64_t most_in_use(const struct gm_cache *cache, size_t bytes) {
    const struct gm_meter *meter = &cache->resource->meter;
    uint64_t now = atomic_load_explicit(&meter->now[GM_IN_USE], memory_order_relaxed);
    uint64_t high = atomic_load_explicit(&meter->high[GM_IN_USE], memory_order_relaxed);
    now = now > INT64_MAX ? bytes : now + bytes;
    return now > high ? now : high;
}

uint64_t gm_pages_allowed(struct gm_cache *cache, size_t bytes, double ratio) {
    uint64_t allowed = (uint64_t)(ratio * (double)most_in_use(cache, bytes));
    allowed = allowed < FIRST_BYTES ? FIRST_BYTES : allowed;
    return cache->maximum_bytes && cache->maximum_bytes < allowed ? cache->maximum_bytes : allowed;
}

/* ---- Pages that are wholly free -------------------------------------------------------------- */

static int add_source(struct gm_sources *sources, struct gm_segment *segment,
                      struct gm_page *page) {
    if (!GM_RESERVE(sources->list, sources->room, sources->count + 1))
        return -1;
    sources->list[sources->count++] =
        (struct gm_source){.segment = segment, .page = page, .bytes = page->chunk.bytes};
    return 0;
}

/* Those within a free piece. */
static int find_in_piece(const struct gm_cache *cache, struct gm_segment *segment,
                         const struct gm_piece *piece, struct gm_sources *sources) {
    const size_t unit = cache->pages->unit;
    size_t end = piece->offset + piece->bytes;
    for (size_t at = round_up(piece->offset, unit); at < end;) {
        struct gm_page *page = segment->table[at / unit];
        at = page->offset + page->chunk.bytes;
        if (page->offset >= piece->offset && at <= end &&
            page->freed <= segment->lane->turns.passed && add_source(sources, segment, page) != 0)
            return -1;
    }
    return 0;
}

/* A page that the driver would not unmap is tried again. */
static int is_stuck(const struct gm_segment *segment, const struct gm_piece *piece, size_t unit) {
    const struct gm_page *page =
        piece->state == GM_PIECE_MOVING ? segment->table[piece->offset / unit] : NULL;
    return page && page->stuck;
}

static int find_stuck(const struct gm_cache *cache, struct gm_lane *lane,
                      struct gm_sources *sources) {
    for (struct gm_segment *segment = lane->segments; segment; segment = segment->next)
        for (const struct gm_piece *piece = segment->area.first; piece; piece = piece->after)
            if (is_stuck(segment, piece, cache->pages->unit) &&
                find_in_piece(cache, segment, piece, sources) != 0)
                return -1;
    return 0;
}

/* Only pieces that can have a whole page are looked at. */
static int find_in_lane(const struct gm_cache *cache, struct gm_lane *lane,
                        struct gm_sources *sources) {
    for (int kind = 0; kind < GM_KINDS; kind++)
        for (const struct gm_piece *piece = NULL;
             (piece = gm_index_next(&lane->free[kind], cache->pages->unit, piece)) != NULL;)
            if (find_in_piece(cache, piece->area->user, piece, sources) != 0)
                return -1;
    return cache->pages->stuck ? find_stuck(cache, lane, sources) : 0;
}

/* Those of ended streams first. */
int gm_pages_find(struct gm_cache *cache, struct gm_sources *sources) {
    for (int ended = 1; ended >= 0; ended--)
        for (struct gm_lane *lane = cache->lanes; lane; lane = lane->next)
            if (!lane->pool && !lane->ended == !ended && find_in_lane(cache, lane, sources) != 0)
                return -1;
    return 0;
}

size_t gm_pages_movable(const struct gm_cache *cache) {
    size_t bytes = (size_t)cache->pages->loose_bytes, unit = cache->pages->unit;
    for (const struct gm_lane *lane = cache->lanes; lane; lane = lane->next)
        for (const struct gm_segment *segment = lane->segments; segment && !lane->pool;
             segment = segment->next)
            for (size_t at = 0; at < segment->area.bytes && !gm_range_is_shared(segment->range);) {
                const struct gm_page *page = segment->table[at / unit];
                const struct gm_piece *piece = page ? gm_area_find(&segment->area, NULL, at) : NULL;
                size_t size = page ? page->chunk.bytes : unit;
                if (piece && piece->state == GM_PIECE_FREE &&
                    piece->offset + piece->bytes >= at + size)
                    bytes += size;
                at += size;
            }
    return bytes;
}

/* ---- The addresses --------------------------------------------------------------------------- */

struct block {
    size_t bytes, alignment, unit;
};

struct window {
    struct gm_segment *segment;
    struct gm_piece *first;
    size_t offset, missing;
};

static int is_open(const struct gm_piece *piece) {
    return piece && (piece->state == GM_PIECE_FREE || piece->state == GM_PIECE_BARE);
}

/* The part of a bare piece that [offset, end) needs, in whole units. */
static size_t needed(const struct gm_piece *piece, size_t offset, size_t end, size_t unit,
                     size_t *from) {
    size_t lo = piece->offset > offset ? piece->offset : round_down(offset, unit);
    size_t hi = smaller(piece->offset + piece->bytes, round_up(end, unit));
    *from = lo;
    return hi - lo;
}

/* What is missing of `bytes` from the aligned start of a piece on, or SIZE_MAX if something is in
 * the way, or it is at least `most`. */
static size_t missing_at(const struct gm_piece *first, size_t offset, size_t bytes, size_t unit,
                         size_t most) {
    size_t missing = 0, end = offset + bytes, from;
    const struct gm_piece *piece = first;
    for (; is_open(piece) && missing < most; piece = piece->after) {
        if (piece->state == GM_PIECE_BARE)
            missing += needed(piece, offset, end, unit, &from);
        if (piece->offset + piece->bytes >= end)
            return missing < most ? missing : SIZE_MAX;
    }
    return SIZE_MAX;
}

/* Of windows that lack as much, the one with the lowest offset in the first segment. */
static void look_at(struct gm_segment *segment, struct gm_piece *piece, const struct block *block,
                    struct window *best) {
    uintptr_t address = segment->area.base + piece->offset;
    size_t offset = piece->offset + (size_t)(-address & (uintptr_t)(block->alignment - 1));
    if (offset >= piece->offset + piece->bytes || offset > segment->area.bytes ||
        block->bytes > segment->area.bytes - offset)
        return;
    size_t most = best->missing;
    if (best->segment == segment && offset < best->offset)
        most++;
    size_t missing = missing_at(piece, offset, block->bytes, block->unit, most);
    if (missing < most)
        *best = (struct window){segment, piece, offset, missing};
}

/* A window has a bare piece; it begins there, or in the free one before. What is free alone and
 * large enough would have been taken. */
static void look_at_segment(struct gm_segment *segment, const struct block *block,
                            struct window *best) {
    for (struct gm_piece *bare = segment->area.bare_ones; bare; bare = bare->right) {
        look_at(segment, bare, block, best);
        if (bare->before && bare->before->state == GM_PIECE_FREE)
            look_at(segment, bare->before, block, best);
    }
}

/* ---- The pages ------------------------------------------------------------------------------- */

struct fill {
    struct gm_pages *pages;
    struct gm_plan *plan;
    size_t largest; /* page to create */
    uint64_t room;  /* to create within what is allowed */
};

static int add_gap(struct gm_plan *plan, size_t offset, size_t bytes, struct gm_page *page,
                   enum gm_origin origin) {
    if (!GM_RESERVE(plan->gaps, plan->gap_room, plan->gap_count + 1))
        return -1;
    plan->gaps[plan->gap_count++] = (struct gm_gap){offset, bytes, page, origin};
    return 0;
}

static struct gm_page *take_loose(struct gm_pages *pages, size_t most) {
    struct gm_page **at = &pages->loose;
    while (*at && (*at)->chunk.bytes > most)
        at = &(*at)->next;
    struct gm_page *page = *at;
    if (page) {
        *at = page->next;
        pages->loose_bytes -= page->chunk.bytes;
    }
    return page;
}

static int is_within(const struct gm_source *source, const struct gm_plan *plan) {
    return source->segment == plan->segment && source->page->offset < plan->offset + plan->bytes &&
           source->page->offset + source->page->chunk.bytes > plan->offset;
}

static int is_shared(const struct gm_source *source) {
    return source->segment && gm_range_is_shared(source->segment->range);
}

/* The largest of at most `most` bytes, and of these the one that has been free the longest. */
static struct gm_source *best_source(const struct gm_plan *plan, size_t most) {
    struct gm_source *best = NULL;
    for (size_t i = plan->sources.count; i-- > 0;) {
        struct gm_source *source = &plan->sources.list[i];
        const size_t bytes = source->bytes;
        if (source->fate == GM_SOURCE_STAYS && bytes <= most &&
            (!best || bytes > best->bytes ||
             (bytes == best->bytes && source->page->clock < best->page->clock)) &&
            !is_shared(source) && !is_within(source, plan))
            best = source;
    }
    return best;
}

static int add_fresh(struct fill *fill, size_t offset, size_t bytes) {
    struct gm_page *page = calloc(1, sizeof *page);
    if (page)
        page->chunk.bytes = bytes;
    if (!page || add_gap(fill->plan, offset, bytes, page, GM_ORIGIN_FRESH) != 0) {
        free(page);
        return -1;
    }
    fill->plan->fresh += bytes;
    fill->room -= bytes < fill->room ? bytes : fill->room;
    return 0;
}

/*
 * One page at `offset`, where `left` bytes are missing; returns its bytes, or 0 without memory.
 * Above the allowance a page moves that is as large as one created there would be. If there are
 * only smaller ones, it is created, and they are given back (`balance`): the price is one of each
 * call for every page, whatever its size, and from then on there are fewer. What is left at the end
 * of a block is one page of just that size, which fits the next block like it.
 */
static size_t fill_some(struct fill *fill, size_t offset, size_t left) {
    struct gm_page *loose = take_loose(fill->pages, left);
    if (loose) {
        if (add_gap(fill->plan, offset, loose->chunk.bytes, loose, GM_ORIGIN_LOOSE) == 0)
            return loose->chunk.bytes;
        gm_pages_loosen(fill->pages, loose);
        return 0;
    }
    size_t bytes = smaller(fill->largest, left);
    struct gm_source *source = bytes > fill->room ? best_source(fill->plan, left) : NULL;
    if (!source || (source->page->chunk.bytes < bytes && !fill->plan->keeps))
        return add_fresh(fill, offset, bytes) == 0 ? bytes : 0;
    if (add_gap(fill->plan, offset, source->page->chunk.bytes, source->page, GM_ORIGIN_MOVED) != 0)
        return 0;
    source->fate = GM_SOURCE_MOVES;
    return source->page->chunk.bytes;
}

static int fill_gap(struct fill *fill, size_t from, size_t bytes) {
    while (bytes) {
        size_t some = fill_some(fill, from, bytes);
        if (!some)
            return -1;
        from += some;
        bytes -= some;
    }
    return 0;
}

static int fill_window(struct fill *fill, const struct window *window, size_t extra) {
    size_t end = window->offset + fill->plan->bytes, from;
    for (const struct gm_piece *piece = window->first; piece && piece->offset < end;
         piece = piece->after) {
        if (piece->state == GM_PIECE_FREE) {
            from = piece->offset > window->offset ? piece->offset : window->offset;
            size_t to = smaller(piece->offset + piece->bytes, end);
            if (add_gap(fill->plan, from, to - from, NULL, GM_ORIGIN_THERE) != 0)
                return -1;
            continue;
        }
        size_t bytes = needed(piece, window->offset, end, fill->pages->unit, &from);
        int last = piece->offset + piece->bytes >= end;
        if (fill_gap(fill, from, bytes + (last ? extra : 0)) != 0)
            return -1;
    }
    return 0;
}

/* While there is room, a page is not made smaller than it could be: what follows is for the next
 * request. A huge block has its pages for itself. */
static size_t extra_of(const struct fill *fill, const struct window *window) {
    size_t end = window->offset + fill->plan->bytes, from;
    const struct gm_piece *last = window->first;
    while (last->offset + last->bytes < end)
        last = last->after;
    if (fill->plan->segment->kind == GM_KIND_HUGE || last->state != GM_PIECE_BARE ||
        window->missing >= fill->largest || fill->room < fill->largest)
        return 0;
    size_t used = needed(last, window->offset, end, fill->pages->unit, &from);
    return smaller(fill->largest - window->missing, last->offset + last->bytes - from - used);
}

/* What is created beyond the room is given back elsewhere: pages that fit nowhere, the smallest one
 * that is enough. A page whose handle others have would stay the device's. */
static struct gm_source *to_give_back(const struct gm_plan *plan, uint64_t enough) {
    struct gm_source *best = NULL;
    for (size_t i = plan->sources.count; i-- > 0;) {
        struct gm_source *source = &plan->sources.list[i];
        const size_t bytes = source->bytes, of_best = best ? best->bytes : 0;
        if (source->fate == GM_SOURCE_STAYS &&
            (!best || (bytes >= enough ? of_best < enough || bytes < of_best : bytes > of_best)) &&
            !is_shared(source) && !is_within(source, plan))
            best = source;
    }
    return best;
}

/* The same of those that are mapped nowhere. 0: there is none, or no host memory. */
static size_t give_loose_back(struct gm_pages *pages, struct gm_plan *plan, uint64_t enough) {
    struct gm_page **at = &pages->loose;
    struct gm_sources *sources = &plan->sources;
    if (!*at || !GM_RESERVE(sources->list, sources->room, sources->count + 1))
        return 0;
    while ((*at)->next && (*at)->next->chunk.bytes >= enough)
        at = &(*at)->next;
    struct gm_page *page = *at;
    *at = page->next;
    pages->loose_bytes -= page->chunk.bytes;
    sources->list[sources->count++] = (struct gm_source){.page = page, .fate = GM_SOURCE_GOES};
    return page->chunk.bytes;
}

static void balance(struct gm_cache *cache, uint64_t allowed, struct gm_plan *plan) {
    uint64_t sum = cache->taken + plan->fresh;
    struct gm_source *source;
    while (plan->fresh && sum > allowed) {
        size_t loose = give_loose_back(cache->pages, plan, sum - allowed);
        if (!loose)
            break;
        sum -= loose;
    }
    while (plan->fresh && sum > allowed && (source = to_give_back(plan, sum - allowed))) {
        source->fate = GM_SOURCE_GOES;
        sum -= source->page->chunk.bytes;
    }
    plan->excess = plan->fresh && sum > allowed ? sum - allowed : 0;
}

static size_t largest_page(struct gm_cache *cache, int kind, size_t bytes) {
    const size_t unit = cache->pages->unit;
    size_t share = (size_t)(most_in_use(cache, bytes) /
                            (kind == GM_KIND_SMALL ? PAGES_OF_ALL_SMALL : PAGES_OF_ALL));
    if (share < bytes / PAGES_OF_BLOCK)
        share = bytes / PAGES_OF_BLOCK;
    if (kind == GM_KIND_HUGE)
        share = smaller(share, bytes / PAGES_OF_HUGE_BLOCK);
    share = power_below(smaller(share < unit ? unit : share, LARGEST_PAGE));
    return share < unit ? unit : share;
}

int gm_plan_make(struct gm_cache *cache, const struct gm_lane *lane, int kind, size_t bytes,
                 size_t alignment, uint64_t allowed, struct gm_plan *plan) {
    struct gm_pages *pages = cache->pages;
    struct window best = {.missing = SIZE_MAX};
    for (struct gm_segment *segment = lane->segments; segment; segment = segment->next)
        if ((int)segment->kind == kind)
            look_at_segment(segment, &(struct block){bytes, alignment, pages->unit}, &best);
    if (!best.segment)
        return 0;
    *plan = (struct gm_plan){.segment = best.segment,
                             .offset = best.offset,
                             .bytes = bytes,
                             .missing = best.missing,
                             .keeps = plan->keeps};
    struct fill fill = {.pages = pages,
                        .plan = plan,
                        .largest = largest_page(cache, kind, bytes),
                        .room = allowed > cache->taken ? allowed - cache->taken : 0};
    if (best.missing > fill.room && gm_pages_find(cache, &plan->sources) != 0)
        return -1;
    if (fill_window(&fill, &best, extra_of(&fill, &best)) != 0)
        return -1;
    balance(cache, allowed, plan);
    return 1;
}

void gm_plan_drop(struct gm_cache *cache, struct gm_plan *plan) {
    for (size_t i = 0; i < plan->gap_count; i++) {
        if (plan->gaps[i].page && plan->gaps[i].origin == GM_ORIGIN_FRESH)
            free(plan->gaps[i].page);
        else if (plan->gaps[i].page && plan->gaps[i].origin == GM_ORIGIN_LOOSE)
            gm_pages_loosen(cache->pages, plan->gaps[i].page);
    }
    for (size_t i = 0; i < plan->sources.count; i++)
        if (!plan->sources.list[i].segment && plan->sources.list[i].fate == GM_SOURCE_GOES)
            gm_pages_loosen(cache->pages, plan->sources.list[i].page);
    free(plan->gaps);
    free(plan->sources.list);
    *plan = (struct gm_plan){0};
}
