/* What is always so between two steps of a cache whose memory moves. */
#include "cache/cache.h"

#include <stdlib.h>

static void must(int holds) {
    if (!holds)
        abort();
}

/* A piece that has memory lies on pages without gaps; a bare one touches none. */
static void check_piece(const struct gm_segment *segment, const struct gm_piece *piece) {
    const size_t unit = segment->unit, end = piece->offset + piece->bytes;
    for (size_t at = piece->offset / unit * unit; at < end; at += unit) {
        const struct gm_page *page = segment->table[at / unit];
        if (piece->state == GM_PIECE_BARE)
            must(!page && at >= piece->offset && at + unit <= end);
        else if (piece->state != GM_PIECE_MOVING)
            must(page && !page->stuck);
    }
}

/* Returns the bytes of its pages. */
static uint64_t check_segment(const struct gm_segment *segment) {
    const size_t unit = segment->unit;
    uint64_t bytes = 0;
    for (size_t at = 0; at < segment->area.bytes;) {
        const struct gm_page *page = segment->table[at / unit];
        if (!page) {
            at += unit;
            continue;
        }
        must(page->offset == at && page->chunk.bytes && page->chunk.bytes % unit == 0);
        for (size_t end = at + page->chunk.bytes; at < end; at += unit)
            must(segment->table[at / unit] == page);
        bytes += page->chunk.bytes;
    }
    gm_area_check(&segment->area);
    for (const struct gm_piece *piece = segment->area.first; piece; piece = piece->after)
        check_piece(segment, piece);
    must(bytes == segment->allocation.committed_bytes);
    return bytes;
}

void gm_pages_check(const struct gm_cache *cache) {
    uint64_t bytes = 0, loose = 0;
    for (const struct gm_lane *lane = cache->lanes; lane; lane = lane->next)
        for (const struct gm_segment *segment = lane->segments; segment; segment = segment->next)
            bytes += check_segment(segment);
    for (const struct gm_page *page = cache->pages->loose; page; page = page->next)
        loose += page->chunk.bytes;
    must(loose == cache->pages->loose_bytes);
    must(bytes + loose == cache->taken);
}
