/* Segments: memory taken from the wrapped resource and given back to it. */
#include "cache/cache.h"

#include "memory/core/driver_error.h"
#include "memory/core/stream_waits.h"
#include "memory/object/watch.h"

#include <stdlib.h>

#define SMALLEST_SEGMENT ((size_t)2 << 20)

/* Requests grow with a lane's memory, up to this factor, so that the number of segments grows only
 * with its logarithm. */
#define GROWTH_DIVISOR 4

static size_t round_up(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

/* The size worth requesting; at least `bytes`. */
static size_t wanted(const struct gm_cache *cache, const struct gm_lane *lane, enum gm_kind kind,
                     size_t bytes) {
    size_t most = cache->segment_bytes;
    if (bytes > most / 2)
        return bytes;
    size_t size = lane->bytes / GROWTH_DIVISOR;
    int modest = kind == GM_KIND_SMALL || lane->pool || most < 8 * SMALLEST_SEGMENT;
    size_t least = modest ? SMALLEST_SEGMENT : 8 * SMALLEST_SEGMENT;
    size = size < least ? least : size > most ? most : size;
    return round_up(size < bytes ? bytes : size, SMALLEST_SEGMENT);
}

static uint64_t used_bytes(const struct gm_cache *cache) {
    uint64_t used = 0;
    for (const struct gm_lane *lane = cache->lanes; lane; lane = lane->next)
        for (const struct gm_segment *segment = lane->segments; segment; segment = segment->next)
            used += segment->area.used;
    return used;
}

static gpumem_status reserve(struct gm_cache *cache, size_t bytes) {
    pthread_mutex_lock(&cache->lock);
    uint64_t taken = cache->taken;
    int over = cache->maximum_bytes &&
               (taken > cache->maximum_bytes || bytes > cache->maximum_bytes - taken);
    uint64_t used = over ? used_bytes(cache) : 0;
    if (!over)
        cache->taken += bytes;
    pthread_mutex_unlock(&cache->lock);
    if (!over)
        return GPUMEM_OK;
    return gm_fail(
        GPUMEM_ERROR_OUT_OF_CAPACITY,
        "%zu more bytes would bring the caching resource from %llu above its maximum of %llu; "
        "blocks have %llu, the rest is free in pieces that are too small, or held by queued work",
        bytes, (unsigned long long)taken, (unsigned long long)cache->maximum_bytes,
        (unsigned long long)used);
}

static void unreserve(struct gm_cache *cache, size_t bytes) {
    pthread_mutex_lock(&cache->lock);
    cache->taken -= bytes;
    pthread_mutex_unlock(&cache->lock);
}

/* The stream for requests to a stream-ordered resource: it has no other work. */
static gpumem_status own_stream(struct gm_cache *cache) {
    if (cache->stream || !cache->upstream->properties.stream_ordered)
        return GPUMEM_OK;
    const gpumem_driver_api *cu = cache->device->cu;
    CUstream made = NULL;
    CUresult result = cu->cuStreamCreate(&made, CU_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS) {
        cache->stream = made;
        return GPUMEM_OK;
    }
    gpumem_status status = gm_cu_fail(cu, result, "cuStreamCreate",
                                      "no stream for the caching resource to allocate on");
    if (made && cu->cuStreamDestroy_v2(made) != CUDA_SUCCESS)
        gm_meter_quarantine(&cache->device->meter, 0);
    return status;
}

static void count(struct gm_cache *cache, const gpumem_allocation *allocation, int sign) {
    static const enum gm_count counts[] = {GM_COMMITTED, GM_RESERVED};
    struct gm_meter *meter = &cache->resource->meter;
    for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (sign > 0)
            gm_meter_add(meter, counts[i], allocation->committed_bytes);
        else
            gm_meter_subtract(meter, counts[i], allocation->committed_bytes);
    }
    gm_meter_count_whole(meter, allocation->bytes, sign);
}

/* Memory of a stream-ordered resource is usable on other streams once its stream has passed. */
static gpumem_status ask(struct gm_cache *cache, size_t bytes, gpumem_allocation *allocation) {
    gpumem_resource *upstream = cache->upstream;
    gpumem_request request = {.size = sizeof request,
                              .bytes = bytes,
                              .alignment = GM_CLASS_UNIT,
                              .stream = cache->stream};
    gpumem_status status = upstream->ops.allocate(upstream->user, &request, allocation);
    if (status != GPUMEM_OK || !cache->stream)
        return status;
    CUresult result = cache->device->cu->cuStreamSynchronize(cache->stream);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    upstream->ops.deallocate(upstream->user, allocation, cache->stream);
    return gm_cu_fail(cache->device->cu, result, "cuStreamSynchronize",
                      "the caching resource's memory did not become usable");
}

static gpumem_status make(struct gm_cache *cache, size_t bytes, struct gm_segment **made) {
    struct gm_segment *segment = calloc(1, sizeof *segment);
    if (!segment)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record a segment");
    segment->allocation.size = sizeof segment->allocation;
    gpumem_status status = ask(cache, bytes, &segment->allocation);
    if (status != GPUMEM_OK) {
        free(segment);
        return status;
    }
    if (gm_area_init(&segment->area, (uintptr_t)segment->allocation.pointer, bytes, &segment->apart,
                     GM_PIECE_FREE) != 0) {
        cache->upstream->ops.deallocate(cache->upstream->user, &segment->allocation, cache->stream);
        free(segment);
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record a segment");
    }
    segment->area.user = segment;
    count(cache, &segment->allocation, 1);
    segment->idle.state = GM_WAIT_PASSED; /* nothing has used it */
    *made = segment;
    return GPUMEM_OK;
}

static gpumem_status take(struct gm_cache *cache, size_t bytes, struct gm_segment **segment) {
    gpumem_status status = reserve(cache, bytes);
    if (status != GPUMEM_OK)
        return status;
    status = make(cache, bytes, segment);
    if (status != GPUMEM_OK)
        unreserve(cache, bytes);
    return status;
}

/* The memory was used by nobody. */
static void undo(struct gm_cache *cache, struct gm_segment *segment) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    size_t bytes = segment->area.bytes;
    gm_area_end(&segment->area);
    count(cache, &segment->allocation, -1);
    cache->upstream->ops.deallocate(cache->upstream->user, &segment->allocation, cache->stream);
    free(segment);
    unreserve(cache, bytes);
    gm_error_restore(&saved);
}

gpumem_status gm_segment_take(struct gm_cache *cache, const struct gm_lane *lane, enum gm_kind kind,
                              size_t bytes, struct gm_segment **segment) {
    if (bytes > SIZE_MAX / 2)
        return gm_fail(GPUMEM_ERROR_OUT_OF_MEMORY, "%zu bytes is too large", bytes);
    size_t least = round_up(bytes, cache->granularity);
    pthread_mutex_lock(&cache->lock);
    size_t size = round_up(wanted(cache, lane, kind, bytes), cache->granularity);
    pthread_mutex_unlock(&cache->lock);
    gpumem_status status = own_stream(cache);
    if (status != GPUMEM_OK)
        return status;
    status = take(cache, size, segment);
    /* When memory is short, the bytes actually needed may still be available. */
    if (status != GPUMEM_OK && size > least)
        status = take(cache, least, segment);
    if (status != GPUMEM_OK)
        return status;
    (*segment)->kind = kind;
    status = gm_watches_add_segment(cache->resource, &(*segment)->allocation);
    if (status != GPUMEM_OK) {
        undo(cache, *segment);
        *segment = NULL;
    }
    return status;
}

/* The cache's lock is held. */
static void come_home(struct gm_cache *cache, struct gm_lane *lane) {
    lane->away--;
    cache->away--;
    pthread_cond_broadcast(&cache->home);
}

static void release(struct gm_cache *cache, struct gm_segment *segment) {
    gpumem_resource *upstream = cache->upstream;
    size_t bytes = segment->area.bytes;
    gm_wait_drop(cache->device, &segment->idle);
    gm_area_end(&segment->area);
    gm_watches_tell_segment(cache->resource, &segment->allocation, cache->stream);
    count(cache, &segment->allocation, -1);
    upstream->ops.deallocate(upstream->user, &segment->allocation, cache->stream);
    gm_meter_gave_back(&cache->resource->meter, bytes);
    pthread_mutex_lock(&cache->lock);
    cache->taken -= bytes;
    come_home(cache, segment->lane);
    pthread_mutex_unlock(&cache->lock);
    free(segment);
}

/* Set while this thread gives segments back: what is called meanwhile, a watch for example, may
 * allocate, and must not wait for itself. */
static __thread int releasing;

void gm_segments_release(struct gm_cache *cache, struct gm_segment *list) {
    releasing++;
    while (list) {
        struct gm_segment *segment = list;
        list = segment->next;
        /* If the driver does not report whether a stream has passed, the memory is kept. */
        if (gm_wait_passed(cache->device, &segment->idle, 1)) {
            release(cache, segment);
            continue;
        }
        pthread_mutex_lock(&cache->lock);
        gm_lane_link(segment->lane, segment);
        come_home(cache, segment->lane);
        pthread_mutex_unlock(&cache->lock);
    }
    releasing--;
}

void gm_segments_wait(struct gm_cache *cache) {
    while (cache->away && !releasing)
        pthread_cond_wait(&cache->home, &cache->lock);
}
