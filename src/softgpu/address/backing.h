/*
 * The memory under a plain allocation: a slot in a chunk shared by small allocations, or pages of
 * its own. Everything here requires the lock.
 */
#ifndef SG_ADDRESS_BACKING_H
#define SG_ADDRESS_BACKING_H

#include "softgpu/address/memory.h"
#include "softgpu/address/small.h"

struct sg_backing {
    struct sg_chunk *chunk;    /* the slot's; NULL if the segment below is used */
    struct sg_segment segment; /* pages of its own */
};

/* Takes a slot of `range->size` bytes (at most SG_SMALL_LIMIT) in the small memory of `place` (as
 * for sg_small_take), and sets the range's address and physical memory. */
CUresult sg_backing_take_slot(struct sg_backing *backing, struct sg_range *range, int place);
/* The same with whole pages on `device` (-1: of the host). */
CUresult sg_backing_take_pages(struct sg_backing *backing, struct sg_range *range, int device);
/* Gives either back, for the range as the take left it. */
void sg_backing_give(struct sg_backing *backing, const struct sg_range *range);
/* The addresses that contain it, in whole pages. */
const struct sg_segment *sg_backing_segment(const struct sg_backing *backing);

#endif
