/*
 * The memory of one device (or of the host side): a sparse memory file and a view of it. Runs of
 * pages are contiguous in both. If the application has closed the file's descriptor, the view
 * remains valid, and later growth uses a new file.
 *
 * The view grows in regions of at most 64 GiB (more only for a single run that is larger), because
 * a ThreadSanitizer process has about 3 TiB of addresses in all. Only the part of a region that has
 * been handed out so far is accessible, so that an mlockall by the application does not populate
 * the rest.
 */
#ifndef SG_ADDRESS_ARENA_H
#define SG_ADDRESS_ARENA_H

#include "base/kept_file.h"
#include "softgpu/address/extent.h"

#define SG_ARENA_REGIONS 512
/* Up to this many bytes of freed pages keep their memory, for reuse without page faults. */
#define SG_ARENA_CACHE ((uint64_t)256 << 20)

struct sg_arena_region {
    uint64_t first, pages; /* in the file */
    uint64_t open;         /* pages from the first that are accessible */
    struct gm_kept_file file;
    unsigned char *view;
    uint64_t *dirty; /* a bit per page: free, but holding memory */
};

struct sg_arena {
    const char *name;
    struct gm_kept_file file; /* of the newest region; none until first used */
    struct sg_extents free;
    struct sg_arena_region regions[SG_ARENA_REGIONS];
    int region_count;
    uint64_t dirty_pages;
};

#define SG_ARENA_INIT(text)                                                                        \
    { .name = (text), .file = GM_NO_KEPT_FILE }

/* A run of pages: its number in the file, and its bytes. False when out of memory. */
bool sg_arena_take(struct sg_arena *arena, uint64_t pages, uint64_t *page, unsigned char **host);
void sg_arena_give(struct sg_arena *arena, uint64_t page, uint64_t pages);
/* The file that a page is in, at the offset of its number. */
const struct gm_kept_file *sg_arena_file(struct sg_arena *arena, uint64_t page);

#endif
