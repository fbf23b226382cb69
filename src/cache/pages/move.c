/* Pages go where a plan has them. Called with `grow` and the cache's lock held; the latter is free
 * while the driver is called. */
#include "cache/cache.h"

#include "memory/core/driver_error.h"
#include "memory/core/stream_waits.h"
#include "memory/core/vmm_calls.h"
#include "memory/object/watch.h"

#include <stdlib.h>

static void count(struct gm_cache *cache, uint64_t bytes, int sign) {
    struct gm_meter *meter = &cache->resource->meter;
    if (sign > 0)
        gm_meter_add(meter, GM_COMMITTED, bytes);
    else
        gm_meter_subtract(meter, GM_COMMITTED, bytes);
    gm_meter_count_whole(meter, bytes, sign);
}

void gm_page_release(struct gm_cache *cache, const struct gm_chunk *chunk) {
    struct gm_meter *meter = &cache->pages->v->resource->meter;
    count(cache, chunk->bytes, -1);
    gm_vmm_release(cache->device, meter, chunk->handle, chunk->bytes);
    gm_meter_gave_back(&cache->resource->meter, chunk->bytes);
}

gpumem_status gm_page_create(struct gm_cache *cache, struct gm_chunk *chunk) {
    struct gm_virtual_resource *v = cache->pages->v;
    gpumem_status status =
        gm_vmm_create(cache->device, &v->resource->meter, chunk->bytes, &v->prop, &chunk->handle);
    if (status == GPUMEM_OK)
        count(cache, chunk->bytes, 1);
    return status;
}

static void set_table(struct gm_cache *cache, struct gm_segment *segment, size_t offset,
                      size_t bytes, struct gm_page *page) {
    const size_t unit = cache->pages->unit;
    for (size_t at = offset; at < offset + bytes; at += unit)
        segment->table[at / unit] = page;
}

/* ---- Out of everybody's reach, and back ------------------------------------------------------ */

/* Needs no memory: the part is one piece already. */
static void become(struct gm_segment *segment, size_t offset, size_t bytes,
                   enum gm_piece_state state) {
    (void)gm_area_set(&segment->area, offset, bytes, state);
}

static int is_taken(const struct gm_source *source) {
    return source->segment && source->fate != GM_SOURCE_STAYS;
}

static enum gm_piece_state state_of(const struct gm_source *source) {
    if (source->unmapped)
        return GM_PIECE_BARE;
    return source->page->stuck ? GM_PIECE_MOVING : GM_PIECE_FREE;
}

static void return_sources(const struct gm_plan *plan, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct gm_source *source = &plan->sources.list[i];
        if (is_taken(source))
            become(source->segment, source->page->offset, source->page->chunk.bytes,
                   state_of(source));
    }
}

static void return_gaps(const struct gm_plan *plan, size_t count) {
    for (size_t i = 0; i < count; i++)
        become(plan->segment, plan->gaps[i].offset, plan->gaps[i].bytes,
               plan->gaps[i].origin == GM_ORIGIN_THERE ? GM_PIECE_FREE : GM_PIECE_BARE);
}

static gpumem_status reach(struct gm_plan *plan) {
    size_t i = 0, k = 0;
    for (; i < plan->sources.count; i++) {
        const struct gm_source *source = &plan->sources.list[i];
        if (is_taken(source) && gm_area_set(&source->segment->area, source->page->offset,
                                            source->page->chunk.bytes, GM_PIECE_MOVING) != 0)
            break;
    }
    for (; i == plan->sources.count && k < plan->gap_count; k++)
        if (gm_area_set(&plan->segment->area, plan->gaps[k].offset, plan->gaps[k].bytes,
                        GM_PIECE_MOVING) != 0)
            break;
    if (i == plan->sources.count && k == plan->gap_count)
        return GPUMEM_OK;
    return_sources(plan, i);
    return_gaps(plan, k);
    return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record what pages move");
}

/* ---- The driver's part; the cache's lock is free --------------------------------------------- */

gpumem_allocation gm_page_range(const struct gm_segment *segment, size_t offset, size_t bytes) {
    return (gpumem_allocation){.size = sizeof(gpumem_allocation),
                               .pointer = segment->allocation.pointer + offset,
                               .bytes = bytes,
                               .committed_bytes = bytes};
}

static void tell(struct gm_cache *cache, const struct gm_segment *segment, size_t offset,
                 size_t bytes) {
    const gpumem_allocation range = gm_page_range(segment, offset, bytes);
    gm_watches_tell_segment(cache->resource, &range, NULL);
}

static gpumem_status add(struct gm_cache *cache, const struct gm_segment *segment, size_t offset,
                         size_t bytes) {
    const gpumem_allocation range = gm_page_range(segment, offset, bytes);
    return gm_watches_add_segment(cache->resource, &range);
}

/* What was told to go stays: it comes again, or nobody can have it. */
static void keep(struct gm_cache *cache, struct gm_source *source) {
    struct gm_page *page = source->page;
    struct gm_error_record saved;
    gm_error_save(&saved);
    page->stuck = add(cache, source->segment, page->offset, page->chunk.bytes) != GPUMEM_OK;
    cache->pages->stuck |= page->stuck;
    gm_error_restore(&saved);
}

static gpumem_status detach(struct gm_cache *cache, struct gm_source *source) {
    if (source->segment) {
        struct gm_page *page = source->page;
        if (!page->stuck)
            tell(cache, source->segment, page->offset, page->chunk.bytes);
        gpumem_status status = gm_range_unmap(cache->pages->v, source->segment->range, page->offset,
                                              page->chunk.bytes, source->fate == GM_SOURCE_MOVES);
        if (status != GPUMEM_OK) {
            if (!page->stuck)
                keep(cache, source);
            return status;
        }
    }
    source->unmapped = 1;
    if (source->fate == GM_SOURCE_GOES)
        gm_page_release(cache, &source->page->chunk);
    return GPUMEM_OK;
}

static gpumem_status gather(struct gm_cache *cache, struct gm_plan *plan) {
    gpumem_status status = GPUMEM_OK;
    for (size_t i = 0; i < plan->sources.count && status == GPUMEM_OK; i++)
        if (plan->sources.list[i].fate != GM_SOURCE_STAYS)
            status = detach(cache, &plan->sources.list[i]);
    for (size_t i = 0; i < plan->gap_count && status == GPUMEM_OK; i++)
        if (plan->gaps[i].origin == GM_ORIGIN_FRESH)
            status = gm_page_create(cache, &plan->gaps[i].page->chunk);
    return status;
}

/* What was created in vain goes back: as much is committed as before. */
static void undo_fresh(struct gm_cache *cache, struct gm_plan *plan, size_t stuck) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    for (size_t i = 0; i < plan->gap_count; i++) {
        struct gm_gap *gap = &plan->gaps[i];
        if (!gap->page || (stuck && stuck--))
            continue;
        if (gap->origin == GM_ORIGIN_FRESH && gap->page->chunk.handle)
            gm_page_release(cache, &gap->page->chunk);
        if (gap->origin == GM_ORIGIN_FRESH)
            gap->page->chunk.handle = 0;
    }
    gm_error_restore(&saved);
}

/* All who watch agree to the new pages, or they are unmapped again; the driver keeps the first
 * *stuck. */
static gpumem_status announce(struct gm_cache *cache, const struct gm_plan *plan,
                              const struct gm_placed *placed, size_t count, size_t *stuck) {
    gpumem_status status = GPUMEM_OK;
    size_t told = 0;
    for (; told < count && status == GPUMEM_OK; told += status == GPUMEM_OK)
        status = add(cache, plan->segment, placed[told].offset, placed[told].chunk.bytes);
    if (status == GPUMEM_OK)
        return GPUMEM_OK;
    struct gm_error_record saved;
    gm_error_save(&saved);
    while (told--)
        tell(cache, plan->segment, placed[told].offset, placed[told].chunk.bytes);
    *stuck = count;
    while (*stuck &&
           gm_range_unmap(cache->pages->v, plan->segment->range, placed[*stuck - 1].offset,
                          placed[*stuck - 1].chunk.bytes, 0) == GPUMEM_OK)
        --*stuck;
    gm_error_restore(&saved);
    return status;
}

static gpumem_status attach(struct gm_cache *cache, struct gm_plan *plan, struct gm_placed *placed,
                            size_t *stuck) {
    size_t count = 0;
    for (size_t i = 0; i < plan->gap_count; i++)
        if (plan->gaps[i].page)
            placed[count++] = (struct gm_placed){plan->gaps[i].offset, plan->gaps[i].page->chunk};
    if (!count)
        return GPUMEM_OK;
    gpumem_status status =
        gm_range_map(cache->pages->v, plan->segment->range, placed, count, stuck);
    return status == GPUMEM_OK ? announce(cache, plan, placed, count, stuck) : status;
}

/* ---- What is so now -------------------------------------------------------------------------- */

static void settle_sources(struct gm_cache *cache, struct gm_plan *plan) {
    for (size_t i = 0; i < plan->sources.count; i++) {
        struct gm_source *source = &plan->sources.list[i];
        struct gm_page *page = source->page;
        if (source->fate == GM_SOURCE_STAYS)
            continue;
        if (source->segment) {
            if (source->unmapped) {
                set_table(cache, source->segment, page->offset, page->chunk.bytes, NULL);
                source->segment->allocation.committed_bytes -= page->chunk.bytes;
            }
            become(source->segment, page->offset, page->chunk.bytes, state_of(source));
        }
        if (source->fate != GM_SOURCE_GOES)
            continue;
        if (source->unmapped) {
            cache->taken -= page->chunk.bytes;
            cache->pages->moved += plan->fresh && source->segment;
            free(page);
        } else if (!source->segment) {
            gm_pages_loosen(cache->pages, page);
        }
    }
}

static void settle_page(struct gm_cache *cache, struct gm_plan *plan, struct gm_gap *gap) {
    cache->taken += gap->origin == GM_ORIGIN_FRESH ? gap->bytes : 0;
    cache->pages->moved += gap->origin == GM_ORIGIN_MOVED;
    gap->page->moves += gap->origin == GM_ORIGIN_MOVED;
    gap->page->offset = gap->offset;
    gap->page->freed = 0;
    gap->page->stuck = 0;
    set_table(cache, plan->segment, gap->offset, gap->bytes, gap->page);
    plan->segment->allocation.committed_bytes += gap->bytes;
    gap->page = NULL; /* the segment's */
}

static int is_detached(const struct gm_plan *plan, const struct gm_page *page) {
    for (size_t i = 0; i < plan->sources.count; i++)
        if (plan->sources.list[i].page == page)
            return plan->sources.list[i].unmapped;
    return 0;
}

/* Of a plan that failed: the first `stuck` of its pages are where they should be, and useless. */
static void settle_failed(struct gm_cache *cache, struct gm_plan *plan, size_t stuck) {
    for (size_t i = 0; i < plan->gap_count; i++) {
        struct gm_gap *gap = &plan->gaps[i];
        struct gm_page *page = gap->page;
        if (page && stuck) {
            stuck--;
            settle_page(cache, plan, gap);
            page->stuck = 1;
            cache->pages->stuck = 1;
            continue;
        }
        become(plan->segment, gap->offset, gap->bytes,
               gap->origin == GM_ORIGIN_THERE ? GM_PIECE_FREE : GM_PIECE_BARE);
        if (gap->origin == GM_ORIGIN_MOVED && is_detached(plan, page))
            gm_pages_loosen(cache->pages, page);
    }
}

static void settle(struct gm_cache *cache, struct gm_plan *plan, gpumem_status status,
                   size_t stuck) {
    settle_sources(cache, plan);
    if (status != GPUMEM_OK) {
        settle_failed(cache, plan, stuck);
        return;
    }
    for (size_t i = 0; i < plan->gap_count; i++) {
        struct gm_gap *gap = &plan->gaps[i];
        if (gap->page)
            settle_page(cache, plan, gap);
        become(plan->segment, gap->offset, gap->bytes, GM_PIECE_FREE);
    }
}

gpumem_status gm_plan_carry_out(struct gm_cache *cache, struct gm_plan *plan) {
    struct gm_placed *placed = calloc(plan->gap_count + 1, sizeof *placed);
    size_t stuck = 0;
    gpumem_status status =
        placed ? reach(plan)
               : gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record what pages move");
    if (status == GPUMEM_OK) {
        pthread_mutex_unlock(&cache->lock);
        status = gather(cache, plan);
        if (status == GPUMEM_OK)
            status = attach(cache, plan, placed, &stuck);
        if (status != GPUMEM_OK)
            undo_fresh(cache, plan, stuck);
        pthread_mutex_lock(&cache->lock);
        settle(cache, plan, status, stuck);
#ifdef GPUMEM_DEBUG
        gm_pages_check(cache);
#endif
        plan->sources.count = 0; /* nothing of them is left to undo */
    }
    free(placed);
    return status;
}

/* ---- Segments -------------------------------------------------------------------------------- */

#define LEAST_SMALL    ((size_t)256 << 20)
#define LEAST_LARGE    ((size_t)1 << 30)
#define MOST_ADDRESSES ((size_t)256 << 30)

static gpumem_status make(struct gm_cache *cache, size_t bytes, struct gm_segment **made) {
    struct gm_segment *segment = calloc(1, sizeof *segment);
    struct gm_page **table = calloc(bytes / cache->pages->unit, sizeof(struct gm_page *));
    gpumem_status status = GPUMEM_ERROR_OUT_OF_HOST_MEMORY;
    if (!segment || !table)
        (void)gm_fail(status, "no memory to record a segment");
    else
        status = gm_range_open(cache->pages->v, bytes, &segment->range);
    if (status == GPUMEM_OK &&
        gm_area_init(&segment->area, (uintptr_t)segment->range->extent.address, bytes,
                     &segment->apart, GM_PIECE_BARE) != 0) {
        gm_range_close(cache->pages->v, segment->range);
        status = gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record a segment");
    }
    if (status != GPUMEM_OK) {
        free(segment);
        free(table);
        return status;
    }
    segment->table = table;
    segment->unit = cache->pages->unit;
    segment->area.user = segment;
    segment->allocation = (gpumem_allocation){.size = sizeof segment->allocation,
                                              .pointer = segment->range->extent.address,
                                              .bytes = bytes,
                                              .capacity = bytes};
    segment->idle.state = GM_WAIT_PASSED;
    gm_meter_add(&cache->resource->meter, GM_RESERVED, bytes);
    *made = segment;
    return GPUMEM_OK;
}

/* Twice what the stream has for the kind: few ranges, and few addresses for streams that need
 * little. */
static size_t addresses_for(const struct gm_cache *cache, const struct gm_lane *lane, int kind,
                            size_t least) {
    size_t bytes = kind == GM_KIND_SMALL ? LEAST_SMALL : LEAST_LARGE, sum = 0;
    for (const struct gm_segment *segment = lane->segments; segment; segment = segment->next)
        sum += (int)segment->kind == kind ? segment->area.bytes : 0;
    bytes = bytes < 2 * sum ? 2 * sum : bytes;
    bytes = bytes < 4 * least ? 4 * least : bytes;
    bytes = bytes > MOST_ADDRESSES ? MOST_ADDRESSES : bytes;
    bytes = bytes < least ? least : bytes;
    size_t unit = cache->pages->unit;
    return (bytes + unit - 1) / unit * unit;
}

gpumem_status gm_pages_open(struct gm_cache *cache, struct gm_lane *lane, int kind, size_t bytes) {
    const size_t unit = cache->pages->unit;
    size_t least = (bytes + unit - 1) / unit * unit;
    size_t wanted = addresses_for(cache, lane, kind, least);
    struct gm_segment *segment = NULL;
    lane->away++;
    pthread_mutex_unlock(&cache->lock);
    gpumem_status status = make(cache, wanted, &segment);
    if (status != GPUMEM_OK && wanted > least)
        status = make(cache, least, &segment);
    pthread_mutex_lock(&cache->lock);
    if (status != GPUMEM_OK) { /* there may be no addresses left */
        gm_pages_close(cache, 1);
        pthread_mutex_unlock(&cache->lock);
        status = make(cache, least, &segment);
        pthread_mutex_lock(&cache->lock);
    }
    lane->away--;
    if (status != GPUMEM_OK)
        return status;
    segment->kind = (enum gm_kind)kind;
    gm_lane_link(lane, segment);
    return GPUMEM_OK;
}

static void close_one(struct gm_cache *cache, struct gm_segment *segment) {
    pthread_mutex_unlock(&cache->lock);
    gm_range_close(cache->pages->v, segment->range);
    gm_meter_subtract(&cache->resource->meter, GM_RESERVED, segment->area.bytes);
    gm_wait_drop(cache->device, &segment->idle);
    gm_area_end(&segment->area);
    free(segment->table);
    free(segment);
    pthread_mutex_lock(&cache->lock);
}

/* Stuck pages end with their range. */
static int is_bare(const struct gm_segment *segment) {
    return segment->area.bare == segment->area.bytes;
}

static struct gm_segment **first_bare(struct gm_cache *cache, int all) {
    for (struct gm_lane *lane = cache->lanes; lane; lane = lane->next)
        for (struct gm_segment **at = &lane->segments; *at && (all || lane->ended);
             at = &(*at)->next)
            if (is_bare(*at))
                return at;
    return NULL;
}

void gm_pages_close(struct gm_cache *cache, int all) {
    struct gm_segment **at;
    while ((at = first_bare(cache, all)) != NULL) {
        struct gm_segment *segment = *at;
        gm_lane_unlink(at);
        close_one(cache, segment);
    }
}
