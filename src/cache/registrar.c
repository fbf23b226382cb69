/* Watches of the cache's ranges: whoever begins one is told of all that there is. */
#include "cache/cache.h"

#include "base/cancel.h"
#include "base/growing_array.h"
#include "base/object.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/object/watch.h"

#include <stdlib.h>

struct ranges {
    gpumem_allocation *list;
    size_t count, room;
};

static int note(struct ranges *ranges, const gpumem_allocation *range) {
    if (!GM_RESERVE(ranges->list, ranges->room, ranges->count + 1))
        return -1;
    ranges->list[ranges->count++] = *range;
    return 0;
}

static int note_pages(struct ranges *ranges, const struct gm_segment *segment) {
    for (size_t at = 0; at < segment->area.bytes;) {
        const struct gm_page *page = segment->table[at / segment->unit];
        const size_t bytes = page ? page->chunk.bytes : segment->unit;
        const gpumem_allocation range = gm_page_range(segment, at, bytes);
        if (page && !page->stuck && note(ranges, &range) != 0)
            return -1;
        at += bytes;
    }
    return 0;
}

/* The cache's lock is held. */
static void hold_all(struct gm_cache *cache, int held) {
    for (struct gm_lane *lane = cache->lanes; lane; lane = lane->next)
        for (struct gm_segment *segment = lane->segments; segment; segment = segment->next)
            segment->held = held;
}

static int note_all(struct gm_cache *cache, struct ranges *ranges) {
    for (struct gm_lane *lane = cache->lanes; lane; lane = lane->next)
        for (struct gm_segment *segment = lane->segments; segment; segment = segment->next)
            if ((segment->table ? note_pages(ranges, segment)
                                : note(ranges, &segment->allocation)) != 0)
                return -1;
    return 0;
}

/* Nothing comes until `grow` is free again, and what there is stays: other threads have given back
 * what they took out, and pages go under `grow` alone. */
static void stop(struct gm_cache *cache) {
    for (;;) {
        pthread_mutex_lock(&cache->grow);
        pthread_mutex_lock(&cache->lock);
        if (!cache->away)
            break;
        pthread_mutex_unlock(&cache->grow); /* whom this waits for may need it */
        gm_segments_wait(cache);
        pthread_mutex_unlock(&cache->lock);
    }
    hold_all(cache, 1);
}

static gpumem_status begin(struct gm_cache *cache, gpumem_watch *watch) {
    struct ranges ranges = {0};
    gpumem_status status = GPUMEM_OK;
    stop(cache);
    if (note_all(cache, &ranges) != 0)
        status = gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to list a cache's memory");
    pthread_mutex_unlock(&cache->lock);
    if (status == GPUMEM_OK)
        status = gm_watch_tell_present(cache->resource, watch, ranges.list, ranges.count);
    if (status == GPUMEM_OK)
        gm_watch_begin(cache->resource, watch);
    pthread_mutex_lock(&cache->lock);
    hold_all(cache, 0);
    pthread_mutex_unlock(&cache->lock);
    pthread_mutex_unlock(&cache->grow);
    free(ranges.list);
    return status;
}

gpumem_status gpumem_resource_watch_ranges(gpumem_resource *resource, gpumem_add_fn added,
                                           gpumem_watch_fn gone, void *user, gpumem_watch **watch) {
    GM_UNCANCELLED;
    GM_CHECK(resource, "gpumem_resource_watch_ranges");
    GM_REQUIRE(added && gone && watch,
               "gpumem_resource_watch_ranges: added, gone or watch is NULL");
    GM_REQUIRE(!gm_watch_is_inside(),
               "gpumem_resource_watch_ranges: called in a function of a watch");
    struct gm_cache *cache = gm_cache_of(resource);
    if (!cache)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "gpumem_resource_watch_ranges: a %s resource is not a cache",
                       resource->kind);
    struct gm_current current;
    gpumem_watch *made = NULL;
    gpumem_status status = gm_current_enter(&current, cache->device);
    if (status != GPUMEM_OK)
        return status;
    status = gm_watch_make(resource, added, gone, user, &made);
    if (status == GPUMEM_OK)
        status = begin(cache, made);
    gm_current_leave(&current);
    if (status == GPUMEM_OK)
        *watch = made;
    else if (made)
        gm_watch_drop(made);
    return status;
}
