#include "memory/virtual/range_cache.h"

#include "base/growing_array.h"
#include "base/json.h"
#include "memory/core/capture.h"
#include "memory/core/driver_error.h"
#include "memory/core/stream_waits.h"
#include "memory/core/vmm_calls.h"

#include <stdlib.h>
#include <string.h>

/* How many ranges of one size, or old ones, are checked for being idle: each costs a driver
 * call. */
#define MOST_ASKED 8

void gm_range_cache_init(struct gm_range_cache *cache) {
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->returned, NULL);
}

void gm_range_cache_end(struct gm_range_cache *cache) {
    free(cache->chunks);
    pthread_cond_destroy(&cache->returned);
    pthread_mutex_destroy(&cache->lock);
}

/* ---- Lists; the lock is held ----------------------------------------------------------------- */

static struct gm_range **bucket_of(struct gm_range_cache *cache, size_t capacity,
                                   size_t committed) {
    uint64_t key = (uint64_t)capacity * 31 + committed;
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return &cache->buckets[key >> 58];
}

static void count(struct gm_range_cache *cache, size_t bytes, size_t reserved) {
    cache->bytes += bytes;
    gm_meter_add(cache->meter, GM_COMMITTED, bytes);
    gm_meter_add(cache->meter, GM_CACHED, bytes);
    gm_meter_add(cache->meter, GM_RESERVED, reserved);
}

static void uncount(struct gm_range_cache *cache, size_t bytes, size_t reserved) {
    cache->bytes -= bytes;
    gm_meter_subtract(cache->meter, GM_COMMITTED, bytes);
    gm_meter_subtract(cache->meter, GM_CACHED, bytes);
    gm_meter_subtract(cache->meter, GM_RESERVED, reserved);
}

static void put_in(struct gm_range_cache *cache, struct gm_range *range) {
    struct gm_range **bucket = bucket_of(cache, range->extent.capacity, range->extent.committed);
    range->bucket_previous = NULL;
    range->bucket_next = *bucket;
    if (*bucket)
        (*bucket)->bucket_previous = range;
    *bucket = range;
    range->newer = NULL;
    range->older = cache->newest;
    if (cache->newest)
        cache->newest->newer = range;
    else
        cache->oldest = range;
    cache->newest = range;
    range->state = GM_RANGE_CACHED;
    count(cache, range->extent.committed, range->extent.capacity);
}

static void take_out(struct gm_range_cache *cache, struct gm_range *range) {
    struct gm_range **bucket = bucket_of(cache, range->extent.capacity, range->extent.committed);
    if (range->bucket_next)
        range->bucket_next->bucket_previous = range->bucket_previous;
    if (range->bucket_previous)
        range->bucket_previous->bucket_next = range->bucket_next;
    else
        *bucket = range->bucket_next;
    if (range->newer)
        range->newer->older = range->older;
    else
        cache->newest = range->older;
    if (range->older)
        range->older->newer = range->newer;
    else
        cache->oldest = range->newer;
    range->state = GM_RANGE_ENDING;
    uncount(cache, range->extent.committed, range->extent.capacity);
}

/* Only queries: whoever takes the range out releases the event, without the lock. */
static int is_idle(const struct gm_range_cache *cache, struct gm_range *range) {
    if (range->last.state == GM_WAIT_EVENT) {
        CUresult result = cache->device->cu->cuEventQuery(range->last.event);
        if (result == CUDA_SUCCESS || gm_code_is_sticky(result))
            range->last.state = GM_WAIT_PASSED;
    }
    return range->last.state == GM_WAIT_PASSED;
}

/* ---- Handing out ----------------------------------------------------------------------------- */

/* The requested stream, identified when first needed: two driver calls. */
struct asker {
    gpumem_device *device;
    CUstream stream;
    struct gm_late *late;
    struct gm_wait wait;
    int named, usable;
};

static int is_next_on(struct asker *asker, const struct gm_range *range) {
    const struct gm_wait *last = &range->last;
    if (!asker->named) {
        asker->named = 1;
        asker->wait = gm_wait_for(asker->device, asker->stream, 1);
        /* A graph captured now can later run on any stream. */
        asker->usable = gm_is_legacy(asker->stream) ||
                        gm_capture_state(asker->device->cu, asker->stream, NULL) == GM_CAPTURE_NONE;
    }
    int is_special = gm_is_legacy(asker->stream) || asker->stream == CU_STREAM_PER_THREAD;
    return asker->usable && gm_wait_same(last, &asker->wait) &&
           (is_special || (last->id && last->id == asker->wait.id));
}

static struct gm_range *find(struct gm_range_cache *cache, size_t capacity, size_t committed,
                             size_t alignment, struct asker *asker) {
    struct gm_range *range = *bucket_of(cache, capacity, committed);
    for (int asked = 0; range && asked < MOST_ASKED; range = range->bucket_next) {
        if (range->extent.capacity != capacity || range->extent.committed != committed ||
            range->extent.address % alignment)
            continue;
        asked++;
        if (range->last.state == GM_WAIT_PASSED)
            return range;
        if (gm_late_enter(asker->late) != GPUMEM_OK)
            return NULL;
        if (is_idle(cache, range) || is_next_on(asker, range))
            return range;
    }
    return NULL;
}

struct gm_range *gm_range_cache_take(struct gm_range_cache *cache, size_t capacity,
                                     size_t committed, size_t alignment, CUstream stream,
                                     struct gm_late *late) {
    struct asker asker = {.device = cache->device, .stream = stream, .late = late};
    pthread_mutex_lock(&cache->lock);
    struct gm_range *range = find(cache, capacity, committed, alignment, &asker);
    if (range)
        take_out(cache, range);
    pthread_mutex_unlock(&cache->lock);
    if (range && range->last.state == GM_WAIT_PASSED)
        gm_wait_drop(cache->device, &range->last);
    return range;
}

/* ---- Giving back ----------------------------------------------------------------------------- */

/* The oldest idle range, out of the list. */
static struct gm_range *pop_idle(struct gm_range_cache *cache, size_t most_asked) {
    struct gm_range *range = cache->oldest;
    for (size_t asked = 0; range && asked < most_asked; asked++, range = range->newer) {
        if (is_idle(cache, range)) {
            take_out(cache, range);
            return range;
        }
    }
    return NULL;
}

static int pop_chunk(struct gm_range_cache *cache, struct gm_chunk *chunk) {
    if (!cache->chunk_count)
        return 0;
    *chunk = cache->chunks[0];
    memmove(cache->chunks, cache->chunks + 1, --cache->chunk_count * sizeof *chunk);
    uncount(cache, chunk->bytes, 0);
    return 1;
}

/* The lock is held, and dropped while the driver takes memory back. */
static int shrink_to(struct gm_range_cache *cache, uint64_t keep, size_t most_asked,
                     struct gm_late *late) {
    while (cache->bytes > keep) {
        if (gm_late_enter(late) != GPUMEM_OK)
            return 0;
        struct gm_chunk chunk = {0};
        struct gm_range *range = NULL;
        if (!pop_chunk(cache, &chunk))
            range = pop_idle(cache, most_asked);
        if (!chunk.handle && !range)
            return 0;
        pthread_mutex_unlock(&cache->lock);
        if (range)
            cache->discard(cache->user, range);
        else
            gm_vmm_release(cache->device, cache->meter, chunk.handle, chunk.bytes);
        pthread_mutex_lock(&cache->lock);
    }
    return 1;
}

int gm_range_cache_give(struct gm_range_cache *cache, struct gm_range *range,
                        struct gm_late *late) {
    size_t bytes = range->extent.committed;
    if (bytes > cache->maximum)
        return 0;
    pthread_mutex_lock(&cache->lock);
    int kept = shrink_to(cache, cache->maximum - bytes, MOST_ASKED, late);
    if (kept) {
        range->given = ++cache->given;
        put_in(cache, range);
    }
    pthread_mutex_unlock(&cache->lock);
    return kept;
}

void gm_range_cache_trim(struct gm_range_cache *cache, uint64_t keep) {
    pthread_mutex_lock(&cache->lock);
    (void)shrink_to(cache, keep, SIZE_MAX, NULL);
    pthread_mutex_unlock(&cache->lock);
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

static int has_chunk_room(struct gm_range_cache *cache) {
    return GM_RESERVE(cache->chunks, cache->chunk_room, cache->chunk_count + 1);
}

int gm_range_cache_give_chunk(struct gm_range_cache *cache, const struct gm_chunk *chunk) {
    if (chunk->bytes > cache->maximum)
        return 0;
    pthread_mutex_lock(&cache->lock);
    int kept =
        shrink_to(cache, cache->maximum - chunk->bytes, MOST_ASKED, NULL) && has_chunk_room(cache);
    if (kept) {
        cache->chunks[cache->chunk_count++] = *chunk;
        count(cache, chunk->bytes, 0);
    }
    pthread_mutex_unlock(&cache->lock);
    return kept;
}

int gm_range_cache_take_chunk(struct gm_range_cache *cache, struct gm_chunk *chunk) {
    int found = 0;
    pthread_mutex_lock(&cache->lock);
    for (size_t i = cache->chunk_count; i-- && !found;) {
        if (cache->chunks[i].bytes != chunk->bytes)
            continue;
        *chunk = cache->chunks[i];
        memmove(cache->chunks + i, cache->chunks + i + 1,
                (--cache->chunk_count - i) * sizeof *chunk);
        uncount(cache, chunk->bytes, 0);
        found = 1;
    }
    pthread_mutex_unlock(&cache->lock);
    return found;
}

/* ---- For the snapshot ------------------------------------------------------------------------ */

void gm_range_cache_describe(struct gm_range_cache *cache, struct gm_json *json) {
    pthread_mutex_lock(&cache->lock);
    gm_json_number(json, "bytes", cache->bytes);
    gm_json_open(json, "ranges", '[');
    for (const struct gm_range *range = cache->newest; range; range = range->older) {
        gm_json_open(json, NULL, '{');
        gm_json_address(json, "address", range->extent.address);
        gm_json_number(json, "committed_bytes", range->extent.committed);
        gm_json_number(json, "capacity", range->extent.capacity);
        gm_json_string(json, "state", range->last.state == GM_WAIT_PASSED ? "idle" : "ordered");
        if (range->last.state != GM_WAIT_PASSED)
            gm_json_address(json, "stream", (uintptr_t)range->last.stream);
        gm_json_close(json, '}');
    }
    gm_json_close(json, ']');
    gm_json_open(json, "chunks", '[');
    for (size_t i = 0; i < cache->chunk_count; i++) {
        gm_json_open(json, NULL, '{');
        gm_json_address(json, "handle", cache->chunks[i].handle);
        gm_json_number(json, "bytes", cache->chunks[i].bytes);
        gm_json_close(json, '}');
    }
    gm_json_close(json, ']');
    pthread_mutex_unlock(&cache->lock);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static struct gm_range *pop_busy(struct gm_range_cache *cache, uint64_t last) {
    struct gm_range *range = cache->oldest;
    while (range && (range->last.state == GM_WAIT_PASSED || range->given > last))
        range = range->newer;
    if (range) {
        take_out(cache, range);
        range->state = GM_RANGE_CACHED; /* it comes back */
        cache->away++;
    }
    return range;
}

/* One that existed when settling began: others may continue to free. */
static struct gm_range *take_busy(struct gm_range_cache *cache, struct gm_mapped *mapped,
                                  uint64_t last) {
    pthread_rwlock_rdlock(&mapped->lock);
    pthread_mutex_lock(&cache->lock);
    struct gm_range *range = pop_busy(cache, last);
    pthread_mutex_unlock(&cache->lock);
    pthread_rwlock_unlock(&mapped->lock);
    return range;
}

static void bring_back(struct gm_range_cache *cache, struct gm_mapped *mapped,
                       struct gm_range *range) {
    pthread_rwlock_rdlock(&mapped->lock);
    pthread_mutex_lock(&cache->lock);
    cache->away--;
    put_in(cache, range);
    pthread_cond_broadcast(&cache->returned);
    pthread_mutex_unlock(&cache->lock);
    pthread_rwlock_unlock(&mapped->lock);
}

void gm_range_cache_settle(struct gm_range_cache *cache, struct gm_mapped *mapped) {
    struct gm_range *range;
    int passed = 1;
    pthread_mutex_lock(&cache->lock);
    uint64_t last = cache->given;
    pthread_mutex_unlock(&cache->lock);
    while (passed && (range = take_busy(cache, mapped, last))) {
        passed = gm_wait_passed(cache->device, &range->last, 1);
        bring_back(cache, mapped, range);
    }
    pthread_mutex_lock(&cache->lock);
    while (cache->away) /* for others wait */
        pthread_cond_wait(&cache->returned, &cache->lock);
    pthread_mutex_unlock(&cache->lock);
}

int gm_range_cache_is_idle(struct gm_range_cache *cache) {
    int idle = 1;
    pthread_mutex_lock(&cache->lock);
    for (struct gm_range *range = cache->oldest; range && idle; range = range->newer)
        idle = is_idle(cache, range);
    idle = idle && cache->away == 0;
    pthread_mutex_unlock(&cache->lock);
    return idle;
}
