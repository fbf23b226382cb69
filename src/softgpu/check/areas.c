#include "softgpu/check/areas.h"

#include "softgpu/address/pagetable.h"
#include "softgpu/check/bits.h"
#include "softgpu/context/context.h"
#include "softgpu/core/config.h"
#include "softgpu/core/site.h"
#include "softgpu/stream/leaving.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Freed areas that are remembered. */
#define FREED_MOST 65536u

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sg_tree live, freed;
static struct sg_area *oldest, *newest; /* of the freed areas */
static bool writes_matter, blocks_lost;
void (*sg_area_begins)(CUdeviceptr start, size_t size);
static atomic_uint_fast64_t state = 1;
void (*sg_area_ends)(const struct sg_area *area, bool lost);
void (*sg_area_forgotten)(const struct sg_area *area);

static struct sg_area *of_node(struct sg_tree_node *node) {
    return SG_TREE_OWNER(node, struct sg_area, node);
}

uint64_t sg_areas_state(void) {
    return atomic_load_explicit(&state, memory_order_acquire);
}

void sg_areas_lock(void) {
    pthread_mutex_lock(&mutex);
}

void sg_areas_unlock(void) {
    pthread_mutex_unlock(&mutex);
}

static struct sg_area *find_in(const struct sg_tree *tree, CUdeviceptr address) {
    struct sg_area *area = of_node(sg_tree_at_most(tree, address));
    return area && address - area->start < area->size ? area : NULL;
}

struct sg_area *sg_area_find(CUdeviceptr address) {
    return find_in(&live, address);
}

struct sg_area *sg_area_freed(CUdeviceptr address) {
    return find_in(&freed, address);
}

struct sg_area *sg_area_before(CUdeviceptr address) {
    return of_node(sg_tree_at_most(&live, address));
}

bool sg_areas_know_heap(void) {
    return !blocks_lost;
}

struct sg_area *sg_area_from(CUdeviceptr address) {
    return of_node(sg_tree_at_least(&live, address));
}

bool sg_area_shares_page(CUdeviceptr address) {
    CUdeviceptr page = address & ~(CUdeviceptr)(SG_PAGE - 1);
    const struct sg_area *area = of_node(sg_tree_at_most(&live, page + SG_PAGE - 1));
    if (area && area->start + area->size > page)
        return true;
    area = of_node(sg_tree_at_most(&freed, page + SG_PAGE - 1));
    return !area || !area->kept || area->start + area->size <= page;
}

struct sg_area *sg_area_freed_before(CUdeviceptr address) {
    struct sg_area *area = of_node(sg_tree_at_most(&freed, address));
    return area && address - (area->start + area->size) < SG_RED_ZONE ? area : NULL;
}

/* ---- which bytes have been written ----------------------------------------------------------- */

/*
 * The CPU writes pinned and managed memory without a call. To detect its stores, such memory begins
 * with bytes derived from their address: a byte that no longer has its value was written.
 */
static unsigned char pattern_at(CUdeviceptr address) {
    uint64_t mixed = (uint64_t)address * 0x9e3779b97f4a7c15u;
    return (unsigned char)(0x80 | mixed >> 57);
}

static void fill(const struct sg_area *area) {
    unsigned char *bytes = (unsigned char *)(uintptr_t)area->start;
    for (size_t i = 0; i < area->size; i++)
        bytes[i] = pattern_at(area->start + i);
}

static bool has_pattern(const struct sg_area *area, size_t offset) {
    const unsigned char *byte = (const unsigned char *)(uintptr_t)(area->start + offset);
    return __atomic_load_n(byte, __ATOMIC_RELAXED) == pattern_at(area->start + offset);
}

void sg_area_write(struct sg_area *area, size_t offset, size_t size) {
    if (!area->tracked || area->all)
        return;
    if (offset == 0 && size == area->size) {
        area->all = true;
        free(area->bits);
        area->bits = NULL;
        return;
    }
    if (!area->bits)
        area->bits = calloc(area->size / 64 + 1, sizeof *area->bits);
    if (area->bits)
        sg_bits_set(area->bits, offset, size, true);
    else
        area->tracked = false; /* out of memory: nothing is known any more */
}

static bool has_bit(const struct sg_area *area, size_t offset) {
    return area->bits && sg_bit(area->bits, offset);
}

/*
 * A byte of the CPU's data is the pattern's by chance once in 256 times, so one says nothing: eight
 * bytes from a multiple of eight on are looked at together, and half of them at least have to be
 * without a known write, and all those to have the pattern.
 */
static bool is_untouched(const struct sg_area *area, size_t offset) {
    size_t first = offset & ~(size_t)7, count = 0;
    for (size_t i = first; i < first + 8 && i < area->size; i++) {
        if (has_bit(area, i))
            continue;
        if (!has_pattern(area, i))
            return false;
        count++;
    }
    return count >= 4;
}

static bool is_written(struct sg_area *area, size_t offset) {
    if (has_bit(area, offset))
        return true;
    if (!area->pattern || is_untouched(area, offset))
        return false;
    sg_area_write(area, offset, 1);
    return true;
}

size_t sg_area_unwritten(struct sg_area *area, size_t offset, size_t size, size_t *first) {
    size_t count = 0;
    if (!area->tracked || area->all ||
        (area->bits && sg_bits_first(area->bits, offset, size, false) == size))
        return 0;
    for (size_t i = 0; i < size; i++)
        if (!is_written(area, offset + i) && count++ == 0)
            *first = offset + i;
    return area->tracked ? count : 0;
}

void sg_areas_lose(void) {
    sg_areas_lock();
    for (struct sg_area *area = sg_area_from(0); area; area = of_node(sg_tree_next(&area->node))) {
        area->used = true;
        area->tracked = false;
    }
    sg_areas_unlock();
}

void sg_area_copy(struct sg_area *to, size_t to_offset, struct sg_area *from, size_t from_offset,
                  size_t size) {
    size_t first;
    if (!to->tracked)
        return;
    if (sg_area_unwritten(from, from_offset, size, &first) == 0) {
        sg_area_write(to, to_offset, size);
        return;
    }
    if (to->all) { /* track byte by byte from now on */
        to->bits = malloc((to->size / 64 + 1) * sizeof *to->bits);
        to->tracked = to->bits != NULL;
        if (to->bits)
            memset(to->bits, 0xff, (to->size / 64 + 1) * sizeof *to->bits);
        to->all = false;
    }
    for (size_t i = 0; i < size && to->tracked; i++) {
        if (is_written(from, from_offset + i))
            sg_area_write(to, to_offset + i, 1);
        else if (to->bits)
            sg_bits_set(to->bits, to_offset + i, 1, false);
    }
}

void sg_areas_touch(CUdeviceptr address, size_t size, bool wrote) {
    sg_areas_lock();
    while (size > 0) {
        struct sg_area *area = sg_area_find(address);
        if (!area)
            area = sg_area_freed(address);
        if (!area)
            break;
        size_t offset = (size_t)(address - area->start), room = area->size - offset;
        size_t part = size < room ? size : room;
        area->used = true;
        if (wrote)
            sg_area_write(area, offset, part);
        address += part;
        size -= part;
    }
    sg_areas_unlock();
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static void forget(struct sg_area *area) {
    /* What is queued before the free and has yet to run may use it. */
    if (sg_area_forgotten && !sg_leaving_overlaps(area->start, area->size))
        sg_area_forgotten(area);
    sg_tree_remove(&freed, &area->node);
    if (area->older)
        area->older->newer = area->newer;
    else
        oldest = area->newer;
    if (area->newer)
        area->newer->older = area->older;
    else
        newest = area->older;
    free(area->bits);
    free(area);
}

/* Forgets freed areas whose addresses are in use again. */
static void forget_within(CUdeviceptr start, size_t size) {
    struct sg_area *area = find_in(&freed, start);
    if (!area)
        area = of_node(sg_tree_at_least(&freed, start));
    while (area && area->start < start + size) {
        struct sg_area *next = of_node(sg_tree_next(&area->node));
        forget(area);
        area = next;
    }
}

void sg_areas_forget(void) {
    sg_areas_lock();
    while (oldest)
        forget(oldest);
    sg_areas_unlock();
}

static void describe(struct sg_area *area, const struct sg_range *range) {
    struct sg_range_facts facts;
    sg_range_describe(range, range->device < 0 ? 0 : range->device, &facts);
    bool device = facts.legacy_ipc && !range->variable && !range->ops->foreign;
    bool pool = facts.pool && !range->ops->foreign;
    bool host =
        range->ops->pinned && range->ops->name && strcmp(range->ops->name, "host allocation") == 0;
    bool managed = facts.managed && range->ops->free;
    area->kept = device || host;
    area->by_cpu = range->device < 0 || managed;
    area->by_application = (device || pool || host || managed) && !range->variable;
    bool imported = range->phys && range->phys->imported; /* others write it, too */
    area->tracked =
        writes_matter && area->by_application && (!pool || range->device >= 0) && !imported;
    /* Memory that is reused before its former owner's work is done may see writes of both owners:
     * which bytes are written is unknown. */
    if (pool && sg_leaving_overlaps(range->start, range->size))
        area->tracked = false;
    area->pattern = area->tracked && (host || managed);
}

static void describe_array(struct sg_area *area, const struct sg_range *range) {
    (void)range;
    area->array = area->by_application = true;
    area->tracked = writes_matter;
}

static void describe_block(struct sg_area *area, const struct sg_range *range) {
    (void)range;
    area->block = area->by_application = true;
    area->tracked = writes_matter;
}

static void begins(CUdeviceptr start, size_t size, uint32_t site,
                   void (*describe_it)(struct sg_area *area, const struct sg_range *range),
                   const struct sg_range *range) {
    if (sg_area_begins)
        sg_area_begins(start, size);
    struct sg_area *area = calloc(1, sizeof *area);
    sg_areas_lock();
    atomic_fetch_add(&state, 1);
    forget_within(start, size);
    if (area) {
        area->start = start;
        area->size = size;
        area->site = site;
        describe_it(area, range);
        if (area->pattern)
            fill(area);
        area->node.key = area->start;
        sg_tree_insert(&live, &area->node);
    }
    sg_areas_unlock();
}

static void inserted(const struct sg_range *range) {
    begins(range->start, range->size, range->origin.site, describe, range);
}

static void array_begins(CUdeviceptr address, size_t size) {
    begins(address, size, sg_site_here(), describe_array, NULL);
}

/* Without an area its accesses would be taken for accesses beside all blocks. */
static void block_begins(CUdeviceptr address, size_t size) {
    begins(address, size, 0, describe_block, NULL);
    sg_areas_lock();
    if (!sg_area_find(address))
        blocks_lost = true;
    sg_areas_unlock();
}

static void ends(CUdeviceptr start, bool lost) {
    sg_areas_lock();
    struct sg_area *area = sg_area_find(start);
    sg_areas_unlock();
    if (!area) /* out of memory when it began */
        return;
    if (sg_area_ends)
        sg_area_ends(area, lost);
    sg_areas_lock();
    atomic_fetch_add(&state, 1);
    sg_tree_remove(&live, &area->node);
    if (area->kept) { /* otherwise queued work may still read it */
        free(area->bits);
        area->bits = NULL;
        area->tracked = false;
    }
    area->freed = true;
    sg_tree_insert(&freed, &area->node);
    area->older = newest;
    if (newest)
        newest->newer = area;
    else
        oldest = area;
    newest = area;
    if (freed.count > FREED_MOST)
        forget(oldest);
    sg_areas_unlock();
}

static void removed(const struct sg_range *range) {
    ends(range->start, range->context && !range->context->alive);
}

static void stored(CUdeviceptr address, size_t size) {
    sg_areas_touch(address, size, true);
}

/* Writers that no checker sees may write parts of it: from now on it counts as written. */
static void exposed(CUdeviceptr address, size_t size) {
    sg_areas_lock();
    struct sg_area *area = sg_area_find(address);
    if (!area)
        area = sg_area_from(address);
    while (area && area->start < address + size) {
        area->used = true;
        area->tracked = false;
        area = of_node(sg_tree_next(&area->node));
    }
    sg_areas_unlock();
}

void sg_areas_begin(bool written) {
    static const struct sg_range_watch watch = {.inserted = inserted,
                                                .removed = removed,
                                                .stored = stored,
                                                .exposed = exposed,
                                                .array_begins = array_begins,
                                                .array_ends = ends,
                                                .block_begins = block_begins,
                                                .block_ends = ends};
    writes_matter = writes_matter || written;
    sg_range_watch = &watch;
}
