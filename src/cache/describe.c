/* The description of a caching resource in a snapshot: its segments, and the state of their
 * pieces. */
#include "cache/cache.h"

#include "memory/core/describe.h"

enum mark { IN_USE = 0, OF_THREAD, OF_LANE, PENDING, OF_GRAPH };

static void mark_chain(struct gm_block *chain, enum mark mark) {
    for (struct gm_block *block = chain; block; block = block->next)
        if (block->piece)
            block->piece->mark = (int)mark;
}

static void clear_marks(const struct gm_lane *lane) {
    for (struct gm_segment *segment = lane->segments; segment; segment = segment->next)
        for (struct gm_piece *piece = segment->area.first; piece; piece = piece->after)
            piece->mark = IN_USE;
}

static void mark_lane(const struct gm_lane *lane) {
    for (unsigned class = 0; class < GM_CLASS_COUNT; class ++)
        for (struct gm_block *parcel = lane->parcels[class]; parcel; parcel = parcel->next_parcel)
            mark_chain(parcel, OF_LANE);
    mark_chain(lane->held, OF_GRAPH);
}

static void mark_thread(struct gm_thread_cache *thread) {
    for (unsigned i = 0; i < GM_SLOTS; i++) {
        for (unsigned class = 0; class < GM_CLASS_COUNT; class ++) {
            mark_chain(thread->slots[i].bins[class].head, OF_THREAD);
            mark_chain(thread->slots[i].bins[class].spare, OF_THREAD);
        }
        mark_chain(thread->holds[i].filling, PENDING);
        mark_chain(thread->holds[i].marked, PENDING);
    }
}

/* With the cache's lock held and all threads stopped, so that the marks are consistent. */
static void mark_all(struct gm_cache *cache) {
    gm_threads_stop(cache);
    for (const struct gm_lane *lane = cache->lanes; lane; lane = lane->next)
        clear_marks(lane);
    for (const struct gm_lane *lane = cache->lanes; lane; lane = lane->next)
        mark_lane(lane);
    for (struct gm_thread_cache *thread = cache->threads; thread; thread = thread->next_of_cache)
        mark_thread(thread);
    for (struct gm_block *batch = cache->pending; batch; batch = batch->next_parcel)
        mark_chain(batch, PENDING);
    gm_threads_resume(cache);
}

static const char *state(const struct gm_piece *piece) {
    static const char *const names[] = {[IN_USE] = "in_use",
                                        [OF_THREAD] = "thread",
                                        [OF_LANE] = "stream",
                                        [PENDING] = "pending",
                                        [OF_GRAPH] = "graph"};
    if (piece->state == GM_PIECE_USED)
        return names[piece->mark];
    return piece->state == GM_PIECE_FREE ? "free" : "bare";
}

/* Neighbours of the same size and state are one member, with their number. */
static void describe_pieces(const struct gm_area *area, struct gm_json *json) {
    gm_json_open(json, "pieces", '[');
    for (const struct gm_piece *piece = area->first, *next; piece; piece = next) {
        const char *name = state(piece); /* one of a few literals */
        uint64_t count = 1;
        for (next = piece->after; next && next->bytes == piece->bytes && state(next) == name;
             next = next->after)
            count++;
        gm_json_open(json, NULL, '{');
        gm_json_number(json, "offset", piece->offset);
        gm_json_number(json, "bytes", piece->bytes);
        if (count > 1)
            gm_json_number(json, "count", count);
        gm_json_string(json, "state", name);
        gm_json_close(json, '}');
    }
    gm_json_close(json, ']');
}

static void describe_pages(const struct gm_segment *segment, struct gm_json *json) {
    gm_json_open(json, "pages", '[');
    for (size_t at = 0; at < segment->area.bytes;) {
        const struct gm_page *page = segment->table[at / segment->unit];
        at += page ? page->chunk.bytes : segment->unit;
        if (!page)
            continue;
        gm_json_open(json, NULL, '{');
        gm_json_number(json, "offset", page->offset);
        gm_json_number(json, "bytes", page->chunk.bytes);
        gm_json_number(json, "moves", page->moves);
        gm_json_close(json, '}');
    }
    gm_json_close(json, ']');
}

static const char *const kinds[GM_KINDS] = {"small", "large", "large"};

/* `shared`: by all streams. */
static void describe_segment(const struct gm_segment *segment, const struct gm_lane *lane,
                             int shared, struct gm_json *json, int pieces) {
    const struct gm_area *area = &segment->area;
    gm_json_open(json, NULL, '{');
    gm_json_address(json, "address", segment->allocation.pointer);
    gm_json_number(json, "bytes", area->bytes);
    if (shared)
        gm_json_null(json, "stream");
    else
        gm_json_address(json, "stream", (uintptr_t)lane->stream);
    gm_json_string(json, "kind", lane->pool ? "capture" : kinds[segment->kind]);
    if (lane->pool)
        gm_json_address(json, "capture_pool", (uintptr_t)lane->pool);
    gm_json_bool(json, "stream_ended", lane->ended);
    gm_json_number(json, "free_bytes", segment->allocation.committed_bytes - area->used);
    gm_json_number(json, "largest_free_bytes", gm_area_largest(area));
    if (pieces)
        describe_pieces(area, json);
    if (pieces && segment->table)
        describe_pages(segment, json);
    gm_json_close(json, '}');
}

static void describe_totals(const gpumem_caching_info *info, struct gm_json *json) {
    gm_json_number(json, "segment_bytes", info->segment_bytes);
    gm_json_number(json, "free_bytes", info->free_bytes);
    gm_json_number(json, "largest_free_bytes", info->largest_free_bytes);
    gm_json_number(json, "stream_bytes", info->parcel_bytes);
    gm_json_number(json, "thread_bytes", info->thread_bytes);
    gm_json_number(json, "pending_bytes", info->pending_bytes);
    gm_json_number(json, "threads", info->threads);
    gm_json_number(json, "streams", info->streams);
}

static void describe(gpumem_resource *resource, struct gm_json *json,
                     const gpumem_snapshot_options *options) {
    int pieces = !options->without_pieces;
    struct gm_cache *cache = gm_cache_of(resource);
    gpumem_caching_info info = {.size = sizeof info};
    (void)gpumem_caching_get_info(resource, &info); /* takes the lock itself; cannot fail here */
    gm_json_open(json, "cache", '{');
    describe_totals(&info, json);
    gm_json_open(json, "segments", '[');
    pthread_mutex_lock(&cache->lock);
    if (pieces)
        mark_all(cache);
    for (const struct gm_lane *lane = cache->lanes; lane; lane = lane->next)
        for (const struct gm_segment *s = lane->segments; s; s = s->next)
            describe_segment(s, lane, lane == cache->shared, json, pieces);
    size_t pools = cache->pools;
    pthread_mutex_unlock(&cache->lock);
    gm_json_close(json, ']');
    gm_json_number(json, "capture_pools", pools);
    gm_json_close(json, '}');
}

static const struct gm_describe_ops description = {.resource = describe};

void gm_cache_describe(struct gm_cache *cache) {
    gm_describe_set(cache->resource, &description);
}
