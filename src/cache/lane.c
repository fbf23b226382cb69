/* Lanes: the segments of a stream, and the free blocks of its threads. The cache's lock is held. */
#include "cache/cache.h"

#include "memory/core/stream_waits.h"
#include "memory/object/buffer.h"

#include <stdlib.h>

/* When more memory is taken, free segments may keep up to one part in this many of the memory in
 * use. */
#define IDLE_SHARE 4

struct gm_lane *gm_lane_of(struct gm_cache *cache, CUstream stream) {
    if (cache->shared)
        return cache->shared;
    struct gm_lane **at = &cache->lanes;
    while (*at && ((*at)->stream != stream || (*at)->ended || (*at)->pool))
        at = &(*at)->next;
    struct gm_lane *lane = *at;
    if (lane)
        *at = lane->next; /* to the front: the next thread will look for it too */
    else
        lane = calloc(1, sizeof *lane);
    if (!lane)
        return NULL;
    lane->stream = stream;
    lane->next = cache->lanes;
    cache->lanes = lane;
    return lane;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static struct gm_block *make_block(struct gm_cache *cache) {
    struct gm_block *block = cache->spare;
    if (block) {
        cache->spare = block->next;
        return block;
    }
    block = calloc(1, sizeof *block);
    if (block)
        gm_buffer_init(&block->buffer, cache->resource, NULL);
    return block;
}

static inline void check(const struct gm_area *area) {
#ifdef GPUMEM_DEBUG
    gm_area_check(area);
#else
    (void)area;
#endif
}

/* A block of one kind that fits best among the lane's free pieces, or NULL. */
static struct gm_block *cut(struct gm_cache *cache, struct gm_lane *lane, enum gm_kind kind,
                            size_t bytes, size_t alignment) {
    struct gm_block *block = make_block(cache);
    if (!block)
        return NULL;
    struct gm_piece *piece = gm_index_take(&lane->free[kind], bytes, alignment);
    if (!piece) {
        block->next = cache->spare;
        cache->spare = block;
        return NULL;
    }
    struct gm_segment *segment = piece->area->user;
    check(piece->area);
    segment->marked = 0;
    block->segment = segment;
    block->piece = piece;
    block->class = GM_CLASS_COUNT;
    gpumem_allocation *allocation = &block->buffer.allocation;
    unsigned char *host = segment->allocation.host_pointer;
    *allocation = (gpumem_allocation){
        .size = sizeof *allocation,
        .pointer = segment->allocation.pointer + piece->offset,
        .host_pointer = host ? host + piece->offset : NULL,
        .committed_bytes = piece->bytes,
        .cookie = block,
    };
    return block;
}

void gm_block_end(struct gm_cache *cache, struct gm_block *block) {
    block->segment->marked = 0;
    if (block->segment->range)
        gm_pages_freed(cache->pages, block);
    gm_piece_give(block->piece);
    check(&block->segment->area);
    block->next = cache->spare;
    cache->spare = block;
}

struct gm_block *gm_lane_cut(struct gm_cache *cache, struct gm_lane *lane, enum gm_kind kind,
                             size_t bytes, size_t alignment) {
    return cut(cache, lane, kind, bytes, alignment);
}

struct gm_block *gm_lane_take(struct gm_cache *cache, struct gm_lane *lane, unsigned class,
                              unsigned want) {
    struct gm_block *chain = lane->parcels[class];
    if (chain) {
        lane->parcels[class] = chain->next_parcel;
        return chain;
    }
    unsigned count = 0;
    for (; count < want; count++) {
        struct gm_block *block = cut(cache, lane, GM_KIND_SMALL, gm_class_bytes(class), 1);
        if (!block)
            break;
        block->class = class;
        block->next = chain;
        chain = block;
    }
    if (chain)
        chain->count = count;
    return chain;
}

void gm_lane_give(struct gm_lane *lane, struct gm_block *chain, unsigned count) {
    chain->count = count;
    chain->next_parcel = lane->parcels[chain->class];
    lane->parcels[chain->class] = chain;
}

void gm_lanes_join(struct gm_cache *cache) {
    for (struct gm_lane *lane = cache->lanes; lane; lane = lane->next) {
        for (unsigned class = 0; class < GM_CLASS_COUNT; class ++) {
            struct gm_block *parcel = lane->parcels[class], *next_parcel, *next;
            lane->parcels[class] = NULL;
            for (; parcel; parcel = next_parcel) {
                next_parcel = parcel->next_parcel;
                for (struct gm_block *block = parcel; block; block = next) {
                    next = block->next;
                    gm_block_end(cache, block);
                }
            }
        }
    }
}

/* ---- Segments that are wholly free ----------------------------------------------------------- */

/* Whether all work that used the segment is done. Memory that the CPU writes was waited for when it
 * was freed; a destroyed stream was marked for the last time at its end. */
static int has_passed(struct gm_cache *cache, struct gm_segment *segment, struct gm_late *late) {
    if (cache->host && !segment->lane->ended)
        return 1;
    int marked = segment->marked || segment->lane->ended;
    if (marked && segment->idle.state == GM_WAIT_PASSED)
        return 1;
    if (gm_late_enter(late) != GPUMEM_OK)
        return 0;
    if (!marked) {
        gm_wait_drop(cache->device, &segment->idle);
        segment->idle = (struct gm_wait){.stream = segment->lane->stream};
        gm_wait_mark(cache->device, &segment->idle);
        segment->marked = 1;
    }
    return gm_wait_passed(cache->device, &segment->idle, 0);
}

void gm_lane_unlink(struct gm_segment **at) {
    struct gm_segment *segment = *at;
    *at = segment->next;
    segment->lane->bytes -= segment->area.bytes;
    segment->next = NULL;
    gm_area_move(&segment->area, &segment->apart);
}

/* The most of a segment of another kind that small blocks take: one that stays makes all of it
 * useless for large ones. */
#define SMALL_MOST ((size_t)4 << 20)

/* The lane's own order is kept whatever its memory is used for. A pool's memory stays in the pool,
 * and changes streams only between captures. */
static int can_adopt(struct gm_cache *cache, const struct gm_lane *lane, enum gm_kind kind,
                     struct gm_segment *segment, struct gm_late *late) {
    const struct gm_lane *other = segment->lane;
    if (kind == GM_KIND_SMALL && segment->kind != kind && segment->area.bytes > SMALL_MOST)
        return 0;
    if (other == lane)
        return segment->kind != kind;
    if (other->pool)
        return other->pool == lane->pool && !other->begun;
    return has_passed(cache, segment, late);
}

/* Whether a segment is the next best after one of `bytes` at `address`. */
static int is_after(const struct gm_segment *segment, size_t bytes, CUdeviceptr address) {
    if (segment->area.bytes != bytes)
        return segment->area.bytes > bytes;
    return segment->allocation.pointer > address;
}

/* The wholly free segment that follows in the order of sizes; where the link to it is. */
static struct gm_segment **next_free(struct gm_cache *cache, size_t bytes, CUdeviceptr address) {
    struct gm_segment **best = NULL;
    for (struct gm_lane *lane = cache->lanes; lane; lane = lane->next)
        for (struct gm_segment **at = &lane->segments; *at; at = &(*at)->next)
            if (!(*at)->area.used && is_after(*at, bytes, address) &&
                (!best || is_after(*best, (*at)->area.bytes, (*at)->allocation.pointer)))
                best = at;
    return best;
}

int gm_lane_adopt(struct gm_cache *cache, struct gm_lane *lane, enum gm_kind kind, size_t bytes,
                  struct gm_late *late) {
    struct gm_segment **at = cache->pages ? NULL : next_free(cache, bytes, 0);
    while (at && !can_adopt(cache, lane, kind, *at, late))
        at = next_free(cache, (*at)->area.bytes, (*at)->allocation.pointer);
    if (!at)
        return 0;
    struct gm_segment *segment = *at;
    gm_lane_unlink(at);
    segment->kind = kind;
    gm_lane_link(lane, segment);
    return 1;
}

static size_t free_bytes(const struct gm_cache *cache) {
    size_t sum = 0;
    for (const struct gm_lane *lane = cache->lanes; lane; lane = lane->next)
        for (const struct gm_segment *segment = lane->segments; segment; segment = segment->next)
            if (!segment->area.used && !lane->pool)
                sum += segment->area.bytes;
    return sum;
}

size_t gm_lanes_keep(const struct gm_cache *cache) {
    if (cache->idle_bytes)
        return cache->idle_bytes;
    size_t used = (size_t)cache->taken - free_bytes(cache);
    return used / IDLE_SHARE > cache->segment_bytes ? used / IDLE_SHARE : cache->segment_bytes;
}

struct gm_segment *gm_lanes_surplus(struct gm_cache *cache, size_t keep, int unpassed,
                                    struct gm_late *late) {
    struct gm_segment *taken = NULL;
    size_t left = free_bytes(cache);
    for (struct gm_lane *lane = cache->lanes; lane && left > keep; lane = lane->next) {
        if (lane->pool)
            continue;
        for (struct gm_segment **at = &lane->segments; *at && left > keep;) {
            struct gm_segment *segment = *at;
            if (segment->area.used || segment->held ||
                (!has_passed(cache, segment, late) && !unpassed)) {
                at = &segment->next;
                continue;
            }
            left -= segment->area.bytes;
            gm_lane_unlink(at);
            lane->away++;
            cache->away++;
            segment->next = taken;
            taken = segment;
        }
    }
    return taken;
}

void gm_lane_link(struct gm_lane *lane, struct gm_segment *segment) {
    segment->lane = lane;
    segment->next = lane->segments;
    lane->segments = segment;
    gm_area_move(&segment->area, &lane->free[segment->kind]);
    lane->bytes += segment->area.bytes;
}

/* ---- Streams that end ------------------------------------------------------------------------ */

void gm_lane_end(struct gm_cache *cache, struct gm_lane *lane) {
    lane->ended = 1;
    if (cache->pages) {
        gm_pages_lane_ends(cache, lane);
        return;
    }
    for (struct gm_segment *segment = lane->segments; segment; segment = segment->next) {
        gm_wait_drop(cache->device, &segment->idle);
        segment->idle = gm_wait_for(cache->device, lane->stream, 0);
        if (lane->stream == GPUMEM_STREAM_NONE)
            segment->idle.state = GM_WAIT_PASSED;
        else
            gm_wait_end(cache->device, &segment->idle);
    }
}

static int is_empty(const struct gm_lane *lane) {
    for (unsigned class = 0; class < GM_CLASS_COUNT; class ++)
        if (lane->parcels[class])
            return 0;
    return !lane->segments && !lane->away;
}

void gm_lanes_prune(struct gm_cache *cache) {
    for (struct gm_lane **at = &cache->lanes; *at;) {
        struct gm_lane *lane = *at;
        if (!lane->ended || !is_empty(lane)) {
            at = &lane->next;
            continue;
        }
        *at = lane->next;
        gm_pages_drop_marks(cache, lane);
        free(lane);
    }
}
