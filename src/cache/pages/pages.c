/* A cache whose memory moves: requests that need more, and memory that is given back. */
#include "cache/cache.h"

#include "base/growing_array.h"
#include "memory/core/driver_error.h"
#include "memory/core/stream_waits.h"

#include <math.h>
#include <stdlib.h>

/* The allowance is filled in so many parts: pages move before the next is begun, which is for
 * memory that cannot, because live bytes are on the same page. Of five programs' traces four end
 * within the first two parts, one within the third. Queued work is waited for before more than so
 * many are begun: when all work passed 2,000 calls late, waiting only at the end took 1.050 times
 * the most in use, and this takes 1.024 to 1.037, with about twice the waits. */
#define PARTS              4
#define PARTS_BEFORE_WAITS 2

gpumem_status gm_pages_begin(const gpumem_resource *upstream, double ratio, int never_waits,
                             struct gm_pages **made) {
    struct gm_virtual_resource *v = gm_virtual_of_device(upstream);
    *made = NULL;
    if (!v || isinf(ratio))
        return GPUMEM_OK;
    struct gm_pages *pages = calloc(1, sizeof *pages);
    if (!pages)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    pages->v = v;
    pages->unit = v->granularity;
    pages->ratio = ratio;
    pages->never_waits = never_waits;
    *made = pages;
    return GPUMEM_OK;
}

void gm_pages_end(struct gm_cache *cache) {
    while (cache->pages && cache->pages->loose) { /* the driver kept them */
        struct gm_page *page = cache->pages->loose;
        cache->pages->loose = page->next;
        gm_meter_quarantine(&cache->device->meter, page->chunk.bytes);
        free(page);
    }
    free(cache->pages);
}

void gm_pages_abandon(struct gm_cache *cache, struct gm_segment *segment) {
    if (!segment->table)
        return;
    gm_wait_drop(cache->device, &segment->idle);
    for (size_t offset = 0; offset < segment->area.bytes; offset += segment->unit) {
        struct gm_page *page = segment->table[offset / segment->unit];
        if (page && page->offset == offset)
            free(page);
    }
    gm_area_end(&segment->area);
    free(segment->table);
    free(segment);
}

void gm_pages_loosen(struct gm_pages *pages, struct gm_page *page) {
    struct gm_page **at = &pages->loose;
    while (*at && (*at)->chunk.bytes > page->chunk.bytes)
        at = &(*at)->next;
    page->next = *at;
    *at = page;
    pages->loose_bytes += page->chunk.bytes;
}

void gm_pages_freed(struct gm_pages *pages, const struct gm_block *block) {
    const uint64_t clock = ++pages->clock;
    const struct gm_segment *segment = block->segment;
    struct gm_turns *turns = &segment->lane->turns;
    /* What a stream that has ended did is marked for the last time. */
    const uint64_t turn = turns->now + !segment->lane->ended;
    const struct gm_piece *piece = block->piece;
    const size_t unit = segment->unit;
    for (size_t at = piece->offset; at < piece->offset + piece->bytes;) {
        struct gm_page *page = segment->table[at / unit];
        page->freed = turn;
        page->clock = clock;
        at = page->offset + page->chunk.bytes;
    }
    turns->freed = 1;
}

/* ---- Reserving ------------------------------------------------------------------------------- */

/* As many pages as there are of the most ever in use, when that is this much. */
static size_t reserved_page(const struct gm_pages *pages, uint64_t bytes) {
    size_t size = pages->unit;
    while (size < ((size_t)64 << 20) && size < bytes / 256)
        size *= 2;
    return size;
}

static gpumem_status reserve_one(struct gm_cache *cache, size_t bytes) {
    struct gm_page *page = calloc(1, sizeof *page);
    if (!page)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record a page");
    page->chunk.bytes = bytes;
    gpumem_status status = gm_page_create(cache, &page->chunk);
    if (status != GPUMEM_OK) {
        free(page);
        return status;
    }
    pthread_mutex_lock(&cache->lock);
    gm_pages_loosen(cache->pages, page);
    cache->taken += bytes;
    pthread_mutex_unlock(&cache->lock);
    return GPUMEM_OK;
}

gpumem_status gm_pages_reserve(struct gm_cache *cache, uint64_t bytes) {
    gpumem_status status = GPUMEM_OK;
    while (status == GPUMEM_OK && cache->taken < bytes)
        status = reserve_one(cache, reserved_page(cache->pages, bytes));
    if (status != GPUMEM_OK)
        gm_pages_trim(cache, 0, 0);
    return status;
}

/* ---- Growing --------------------------------------------------------------------------------- */

/* What is tried in turn while more would be committed than is allowed. */
enum stage {
    FREELY, /* pages that are free and whose work has passed move */
    JOINED, /* the caches of threads are emptied */
    WAITED, /* queued work is waited for */
    ANYHOW,
};

struct growth {
    struct gm_cache *cache;
    struct gm_lane *lane;
    const gpumem_request *request;
    int kind;
    size_t bytes, alignment;
    enum stage stage;
    unsigned part;       /* of the allowance */
    int short_of_memory; /* the driver has no more */
};

static uint64_t allowed(const struct growth *growth) {
    struct gm_cache *cache = growth->cache;
    double ratio = cache->pages->ratio;
    if (growth->short_of_memory)
        return cache->taken;
    if (growth->stage == ANYHOW)
        return cache->maximum_bytes ? cache->maximum_bytes : UINT64_MAX;
    return gm_pages_allowed(cache, growth->request->bytes, 1 + (ratio - 1) * growth->part / PARTS);
}

static unsigned parts_of(const struct growth *growth) {
    int waits_later = growth->stage < WAITED && !growth->cache->pages->never_waits;
    return waits_later ? PARTS_BEFORE_WAITS : PARTS;
}

/* Goes on to what may help. */
static void try_harder(struct growth *growth) {
    struct gm_cache *cache = growth->cache;
    if (growth->stage == WAITED && !cache->pages->never_waits && gm_pages_wait(cache)) {
        (void)gm_pending_poll(cache, NULL);
        return;
    }
    if (growth->part < parts_of(growth)) {
        growth->part++;
        return;
    }
    if (growth->stage == FREELY) {
        gm_threads_flush(cache);
        (void)gm_pending_poll(cache, NULL);
        gm_lanes_join(cache);
        gm_pages_mark(cache);
    }
    growth->stage++;
}

static gpumem_status over_maximum(const struct gm_cache *cache, const struct gm_plan *plan) {
    uint64_t used = 0, graphs = 0, movable = gm_pages_movable(cache);
    for (const struct gm_lane *lane = cache->lanes; lane; lane = lane->next)
        for (const struct gm_segment *segment = lane->segments; segment; segment = segment->next)
            *(lane->pool ? &graphs : &used) +=
                lane->pool ? segment->allocation.committed_bytes : segment->area.used;
    return gm_fail(
        GPUMEM_ERROR_OUT_OF_CAPACITY,
        "%llu more bytes would bring the caching resource from %llu above its maximum "
        "of %llu; blocks have %llu, capture pools %llu, pages that are free, but perhaps "
        "not yet for queued work, %llu, and free bytes on pages with blocks %llu",
        (unsigned long long)plan->fresh, (unsigned long long)cache->taken,
        (unsigned long long)cache->maximum_bytes, (unsigned long long)used,
        (unsigned long long)graphs, (unsigned long long)movable,
        (unsigned long long)(cache->taken - used - graphs - movable));
}

/* One plan, if it can be carried out. OK: what it brought, or what else to try, is in place. */
static gpumem_status step(struct growth *growth) {
    struct gm_cache *cache = growth->cache;
    struct gm_plan plan = {.keeps = growth->short_of_memory};
    int made = gm_plan_make(cache, growth->lane, growth->kind, growth->bytes, growth->alignment,
                            allowed(growth), &plan);
    gpumem_status status = GPUMEM_OK;
    if (made < 0)
        status = gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record what pages move");
    else if (made == 0)
        status = gm_pages_open(cache, growth->lane, growth->kind,
                               growth->bytes + growth->alignment - GM_CLASS_UNIT);
    else if (plan.excess && growth->stage < ANYHOW)
        try_harder(growth);
    else if (plan.excess && !growth->short_of_memory)
        status = over_maximum(cache, &plan);
    else
        status = gm_plan_carry_out(cache, &plan);
    gm_plan_drop(cache, &plan);
    return status;
}

/* What the driver no longer has may be free elsewhere in the cache. */
static int can_try_without(struct growth *growth, gpumem_status status) {
    if (status != GPUMEM_ERROR_OUT_OF_MEMORY || growth->short_of_memory)
        return 0;
    growth->short_of_memory = 1;
    growth->stage = FREELY;
    growth->part = PARTS;
    return 1;
}

gpumem_status gm_pages_grow(struct gm_cache *cache, struct gm_lane *lane,
                            const gpumem_request *request, int kind, size_t bytes,
                            struct gm_block **block) {
    struct growth growth = {.cache = cache,
                            .lane = lane,
                            .request = request,
                            .kind = kind,
                            .part = 1,
                            .bytes = (bytes + GM_CLASS_UNIT - 1) / GM_CLASS_UNIT * GM_CLASS_UNIT,
                            .alignment = request->alignment > GM_CLASS_UNIT ? request->alignment
                                                                            : GM_CLASS_UNIT};
    gpumem_status status = GPUMEM_OK;
    if (bytes > SIZE_MAX / 8)
        return gm_fail(GPUMEM_ERROR_OUT_OF_MEMORY, "%zu bytes is too large", bytes);
    pthread_mutex_lock(&cache->lock);
    struct gm_thread_cache *thread = gm_thread_cache_known(cache);
    if (thread) /* so that the most in use is known */
        gm_thread_report(cache, thread);
    gm_pages_mark(cache);
    while (status == GPUMEM_OK && !(*block = gm_cache_from_lane(cache, lane, request))) {
        status = step(&growth);
        if (can_try_without(&growth, status))
            status = GPUMEM_OK;
    }
    gm_pages_close(cache, 0);
    pthread_mutex_unlock(&cache->lock);
    return status;
}

/* ---- Giving back ----------------------------------------------------------------------------- */

static int add_loose(struct gm_cache *cache, struct gm_sources *sources) {
    struct gm_pages *pages = cache->pages;
    while (pages->loose) {
        struct gm_page *page = pages->loose;
        if (!GM_RESERVE(sources->list, sources->room, sources->count + 1))
            return -1;
        pages->loose = page->next;
        pages->loose_bytes -= page->chunk.bytes;
        sources->list[sources->count++] = (struct gm_source){.page = page};
    }
    return 0;
}

static void give_back(struct gm_cache *cache, size_t keep) {
    struct gm_plan plan = {0};
    struct gm_error_record saved;
    gm_error_save(&saved);
    if (add_loose(cache, &plan.sources) == 0)
        (void)gm_pages_find(cache, &plan.sources);
    uint64_t free_bytes = 0;
    for (size_t i = 0; i < plan.sources.count; i++)
        free_bytes += plan.sources.list[i].page->chunk.bytes;
    for (size_t i = 0; i < plan.sources.count; i++) {
        struct gm_source *source = &plan.sources.list[i];
        if (free_bytes > keep) {
            source->fate = GM_SOURCE_GOES;
            free_bytes -= source->page->chunk.bytes;
        } else if (!source->segment) {
            gm_pages_loosen(cache->pages, source->page);
        }
    }
    (void)gm_plan_carry_out(cache, &plan);
    gm_plan_drop(cache, &plan);
    gm_pages_close(cache, 1);
    gm_error_restore(&saved);
}

void gm_pages_trim(struct gm_cache *cache, size_t keep, int wait) {
    pthread_mutex_lock(&cache->grow);
    pthread_mutex_lock(&cache->lock);
    gm_pages_mark(cache);
    while (wait && gm_pages_wait(cache)) {
    }
    give_back(cache, keep);
    pthread_mutex_unlock(&cache->lock);
    pthread_mutex_unlock(&cache->grow);
}
