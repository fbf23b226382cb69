/*
 * Keeps the free runs of numbered pages; adjacent runs merge. Used for device addresses (page
 * number = address / 2 MiB) and for the pages of a memory file.
 *
 * Requires the lock. Giving back never fails: taking sets aside the node that it may need.
 */
#ifndef SG_ADDRESS_EXTENT_H
#define SG_ADDRESS_EXTENT_H

#include "softgpu/address/tree.h"

#include <stdbool.h>

struct sg_extent;

struct sg_extents {
    struct sg_tree by_start, by_size; /* free runs, twice */
    struct sg_extent *spare;          /* unused nodes */
    size_t nodes;                     /* nodes made: free runs and spare */
    size_t live;                      /* runs taken, and regions added */
};

/* Adds fresh pages, merging them with adjacent runs. False when out of memory. */
bool sg_extents_add(struct sg_extents *extents, uint64_t start, uint64_t pages);
/* Takes `pages` at a multiple of `align` pages (a power of two). False if no free run fits or
 * memory is short. */
bool sg_extents_take(struct sg_extents *extents, uint64_t pages, uint64_t align, uint64_t *start);
/* The same, but from a run of exactly that size or else from the largest; other free runs are left
 * alone. */
bool sg_extents_take_apart(struct sg_extents *extents, uint64_t pages, uint64_t align,
                           uint64_t *start);
/* Takes exactly these pages. False if they are not all free or memory is short. */
bool sg_extents_take_at(struct sg_extents *extents, uint64_t start, uint64_t pages);
/* Gives back what one take took. */
void sg_extents_give(struct sg_extents *extents, uint64_t start, uint64_t pages);
/* Are all of these free? */
bool sg_extents_free_at(const struct sg_extents *extents, uint64_t start, uint64_t pages);

#endif
