#include "softgpu/address/arena.h"

#include "softgpu/address/memfile.h"
#include "softgpu/core/config.h"
#include "softgpu/core/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define REGION_PAGES (((uint64_t)64 << 30) / SG_PAGE)
/* Accessibility advances in steps of 256 MiB: one mprotect for many takes. */
#define OPEN_STEP (((uint64_t)256 << 20) / SG_PAGE)

static struct sg_arena_region *region_of(struct sg_arena *arena, uint64_t page) {
    for (int i = arena->region_count - 1; i >= 0; i--)
        if (page >= arena->regions[i].first)
            return &arena->regions[i];
    return NULL;
}

/* Regions are a page apart in the file, so that no run of pages crosses from one view to the next.
 */
static uint64_t next_first(const struct sg_arena *arena) {
    if (arena->region_count == 0)
        return 0;
    const struct sg_arena_region *last = &arena->regions[arena->region_count - 1];
    return last->first + last->pages + 1;
}

/* The process may have called mlockall(MCL_FUTURE): map without access (nothing to populate),
 * unlock, then open what is needed. */
static unsigned char *map_view(const struct gm_kept_file *file, uint64_t offset, size_t size) {
    unsigned char *view = sg_addresses_reserve(size, SG_PAGE);
    if (!view)
        return NULL;
    if (!sg_memfile_map_at(file, offset, view, size, PROT_NONE)) {
        sg_addresses_end(view, size);
        return NULL;
    }
    if (munlock(view, size) != 0)
        sg_log(SG_LOG_WARNING, "%zu bytes for device memory stay locked: %s", size,
               strerror(errno));
    return view;
}

static bool make_file(struct sg_arena *arena, uint64_t size) {
    if (gm_kept_file_is_open(&arena->file))
        return sg_memfile_grow(&arena->file, size);
    if (arena->file.fd >= 0)
        sg_log(SG_LOG_WARNING,
               "somebody has closed descriptor %d, which was that of %s memory: what is added "
               "is of a new one",
               arena->file.fd, arena->name);
    return sg_memfile_new(arena->name, size, &arena->file);
}

static bool add_region(struct sg_arena *arena, uint64_t pages) {
    struct sg_arena_region region = {.first = next_first(arena), .pages = pages};
    if (arena->region_count == SG_ARENA_REGIONS)
        return false;
    if (!make_file(arena, (region.first + pages) * SG_PAGE))
        return false;
    region.dirty = calloc((pages + 63) / 64, sizeof *region.dirty);
    if (!region.dirty)
        return false;
    region.file = arena->file;
    region.view = map_view(&region.file, region.first * SG_PAGE, pages * SG_PAGE);
    if (region.view && sg_extents_add(&arena->free, region.first, pages)) {
        arena->regions[arena->region_count++] = region;
        return true;
    }
    if (region.view)
        sg_addresses_end(region.view, pages * SG_PAGE);
    free(region.dirty);
    return false;
}

/* Makes pages of the region accessible up to `end` (counted from its first). */
static bool open_to(struct sg_arena_region *region, uint64_t end) {
    if (end <= region->open)
        return true;
    uint64_t open = (end + OPEN_STEP - 1) / OPEN_STEP * OPEN_STEP;
    if (open > region->pages)
        open = region->pages;
    if (mprotect(region->view, open * SG_PAGE, PROT_READ | PROT_WRITE) != 0) {
        sg_log(SG_LOG_ERROR, "cannot make %llu bytes of device memory accessible",
               (unsigned long long)open * SG_PAGE);
        return false;
    }
    region->open = open;
    return true;
}

static uint64_t clear_dirty(struct sg_arena_region *region, uint64_t first, uint64_t pages) {
    uint64_t cleared = 0;
    for (uint64_t i = first; i < first + pages; i++) {
        uint64_t bit = (uint64_t)1 << (i % 64);
        cleared += (region->dirty[i / 64] & bit) != 0;
        region->dirty[i / 64] &= ~bit;
    }
    return cleared;
}

static void set_dirty(struct sg_arena_region *region, uint64_t first, uint64_t pages) {
    for (uint64_t i = first; i < first + pages; i++)
        region->dirty[i / 64] |= (uint64_t)1 << (i % 64);
}

bool sg_arena_take(struct sg_arena *arena, uint64_t pages, uint64_t *page, unsigned char **host) {
    if (!sg_extents_take(&arena->free, pages, 1, page)) {
        if (!add_region(arena, pages > REGION_PAGES ? pages : REGION_PAGES) ||
            !sg_extents_take(&arena->free, pages, 1, page))
            return false;
    }
    struct sg_arena_region *region = region_of(arena, *page);
    uint64_t first = *page - region->first;
    if (!open_to(region, first + pages)) {
        sg_extents_give(&arena->free, *page, pages);
        return false;
    }
    arena->dirty_pages -= clear_dirty(region, first, pages);
    *host = region->view + first * SG_PAGE;
    return true;
}

void sg_arena_give(struct sg_arena *arena, uint64_t page, uint64_t pages) {
    struct sg_arena_region *region = region_of(arena, page);
    uint64_t first = page - region->first;
    /* Pages that the machine does not take back are kept for later takes. */
    bool keep = (arena->dirty_pages + pages) * SG_PAGE <= SG_ARENA_CACHE;
    if (keep || !sg_memfile_give_back(&region->file, page * SG_PAGE, region->view + first * SG_PAGE,
                                      pages * SG_PAGE)) {
        set_dirty(region, first, pages);
        arena->dirty_pages += pages;
    }
    sg_extents_give(&arena->free, page, pages);
}

const struct gm_kept_file *sg_arena_file(struct sg_arena *arena, uint64_t page) {
    return &region_of(arena, page)->file;
}
