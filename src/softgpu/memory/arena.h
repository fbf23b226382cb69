/*
 * The memory of one device (or of the host side): a sparse memory file and a view of it. Runs of
 * pages are contiguous in both.
 *
 * The view grows in regions of at most 64 GiB (more only for a single run that is larger), because
 * a ThreadSanitizer process has about 3 TiB of addresses in all. Of a region only what has been
 * handed out so far is accessible, so that an mlockall of the application does not populate the
 * rest.
 */
#ifndef SG_MEMORY_ARENA_H
#define SG_MEMORY_ARENA_H

#include "softgpu/memory/extent.h"

#define SG_ARENA_REGIONS 512
/* Freed pages keep their memory up to this much, for reuse without page faults. */
#define SG_ARENA_CACHE ((uint64_t)256 << 20)

struct sg_arena_region {
    uint64_t first, pages; /* in the file */
    uint64_t open;         /* pages from the first that are accessible */
    unsigned char *view;
    uint64_t *dirty; /* a bit per page: free, but holding memory */
};

struct sg_arena {
    const char *name;
    int fd; /* -1 until first used */
    struct sg_extents free;
    struct sg_arena_region regions[SG_ARENA_REGIONS];
    int region_count;
    uint64_t dirty_pages;
};

#define SG_ARENA_INIT(text)                                                                        \
    { .name = (text), .fd = -1 }

/* A run of pages: its number in the file, and its bytes. False when out of memory. */
bool sg_arena_take(struct sg_arena *arena, uint64_t pages, uint64_t *page, unsigned char **host);
void sg_arena_give(struct sg_arena *arena, uint64_t page, uint64_t pages);

#endif
