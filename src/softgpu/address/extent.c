#include "softgpu/address/extent.h"

#include <stdlib.h>

#define NODES_AT_ONCE 64
/* An aligned search tries this many runs that might fit before it asks for one that must. */
#define ALIGNED_TRIES 16

struct sg_extent {
    struct sg_tree_node start; /* key: first page */
    struct sg_tree_node size;  /* key: pages << 32 | first page (addresses have 26 bits of page) */
    struct sg_extent *next_spare;
    uint64_t pages;
};

static uint64_t size_key(uint64_t pages, uint64_t start) {
    return pages << 32 | start;
}

static struct sg_extent *of_start(struct sg_tree_node *node) {
    return SG_TREE_OWNER(node, struct sg_extent, start);
}

static struct sg_extent *of_size(struct sg_tree_node *node) {
    return SG_TREE_OWNER(node, struct sg_extent, size);
}

/* Free runs are never adjacent, so there are at most as many as taken runs and regions, plus one
 * for the take that is about to split a run. */
static bool prepare(struct sg_extents *extents) {
    if (extents->nodes >= extents->live + 2)
        return true;
    struct sg_extent *nodes = calloc(NODES_AT_ONCE, sizeof *nodes);
    if (!nodes)
        return false;
    for (size_t i = 0; i < NODES_AT_ONCE; i++) {
        nodes[i].next_spare = extents->spare;
        extents->spare = &nodes[i];
    }
    extents->nodes += NODES_AT_ONCE;
    return true;
}

static void link_run(struct sg_extents *extents, uint64_t start, uint64_t pages) {
    struct sg_extent *run = extents->spare;
    extents->spare = run->next_spare;
    run->pages = pages;
    run->start.key = start;
    run->size.key = size_key(pages, start);
    sg_tree_insert(&extents->by_start, &run->start);
    sg_tree_insert(&extents->by_size, &run->size);
}

static void unlink_run(struct sg_extents *extents, struct sg_extent *run) {
    sg_tree_remove(&extents->by_start, &run->start);
    sg_tree_remove(&extents->by_size, &run->size);
    run->next_spare = extents->spare;
    extents->spare = run;
}

/* The run keeps its place in the order of starts: there is no other run between the old and new
 * bounds. */
static void resize(struct sg_extents *extents, struct sg_extent *run, uint64_t start,
                   uint64_t pages) {
    sg_tree_remove(&extents->by_size, &run->size);
    run->start.key = start;
    run->pages = pages;
    run->size.key = size_key(pages, start);
    sg_tree_insert(&extents->by_size, &run->size);
}

static void insert_free(struct sg_extents *extents, uint64_t start, uint64_t pages) {
    struct sg_extent *before = of_start(sg_tree_at_most(&extents->by_start, start));
    struct sg_extent *after = before ? of_start(sg_tree_next(&before->start))
                                     : of_start(sg_tree_at_least(&extents->by_start, start));
    bool joins_before = before && before->start.key + before->pages == start;
    bool joins_after = after && start + pages == after->start.key;
    if (joins_before && joins_after) {
        uint64_t behind = after->pages;
        unlink_run(extents, after);
        resize(extents, before, before->start.key, before->pages + pages + behind);
    } else if (joins_before) {
        resize(extents, before, before->start.key, before->pages + pages);
    } else if (joins_after) {
        resize(extents, after, start, pages + after->pages);
    } else {
        link_run(extents, start, pages);
    }
}

/* Cuts [start, start + pages) out of a free run that holds it. */
static void cut(struct sg_extents *extents, struct sg_extent *run, uint64_t start, uint64_t pages) {
    uint64_t first = run->start.key, end = first + run->pages;
    uint64_t before = start - first, after = end - (start + pages);
    if (before) {
        resize(extents, run, first, before);
        if (after)
            link_run(extents, start + pages, after);
    } else if (after) {
        resize(extents, run, start + pages, after);
    } else {
        unlink_run(extents, run);
    }
    extents->live++;
}

static uint64_t align_up(uint64_t value, uint64_t align) {
    return (value + align - 1) & ~(align - 1);
}

static bool fits(const struct sg_extent *run, uint64_t pages, uint64_t align, uint64_t *start) {
    *start = align_up(run->start.key, align);
    return *start + pages <= run->start.key + run->pages;
}

static struct sg_extent *find(struct sg_extents *extents, uint64_t pages, uint64_t align,
                              uint64_t *start) {
    struct sg_extent *run = of_size(sg_tree_at_least(&extents->by_size, size_key(pages, 0)));
    for (int i = 0; run && i < ALIGNED_TRIES; i++) {
        if (fits(run, pages, align, start))
            return run;
        run = of_size(sg_tree_next(&run->size));
    }
    run = of_size(sg_tree_at_least(&extents->by_size, size_key(pages + align - 1, 0)));
    return run && fits(run, pages, align, start) ? run : NULL;
}

bool sg_extents_add(struct sg_extents *extents, uint64_t start, uint64_t pages) {
    if (!prepare(extents))
        return false;
    insert_free(extents, start, pages);
    extents->live++;
    return true;
}

bool sg_extents_take(struct sg_extents *extents, uint64_t pages, uint64_t align, uint64_t *start) {
    struct sg_extent *run = find(extents, pages, align, start);
    if (!run || !prepare(extents))
        return false;
    cut(extents, run, *start, pages);
    return true;
}

static struct sg_extent *largest(const struct sg_extents *extents) {
    return of_size(sg_tree_at_most(&extents->by_size, UINT64_MAX));
}

bool sg_extents_take_apart(struct sg_extents *extents, uint64_t pages, uint64_t align,
                           uint64_t *start) {
    struct sg_extent *run = of_size(sg_tree_at_least(&extents->by_size, size_key(pages, 0)));
    bool same = run && run->pages == pages && fits(run, pages, align, start);
    if (!same)
        run = largest(extents);
    if (!run || !fits(run, pages, align, start))
        return sg_extents_take(extents, pages, align, start);
    if (!prepare(extents))
        return false;
    cut(extents, run, *start, pages);
    return true;
}

static struct sg_extent *holder(const struct sg_extents *extents, uint64_t start, uint64_t pages) {
    struct sg_extent *run = of_start(sg_tree_at_most(&extents->by_start, start));
    return run && start + pages <= run->start.key + run->pages ? run : NULL;
}

bool sg_extents_free_at(const struct sg_extents *extents, uint64_t start, uint64_t pages) {
    return holder(extents, start, pages) != NULL;
}

bool sg_extents_take_at(struct sg_extents *extents, uint64_t start, uint64_t pages) {
    struct sg_extent *run = holder(extents, start, pages);
    if (!run || !prepare(extents))
        return false;
    cut(extents, run, start, pages);
    return true;
}

void sg_extents_give(struct sg_extents *extents, uint64_t start, uint64_t pages) {
    insert_free(extents, start, pages);
    extents->live--;
}
