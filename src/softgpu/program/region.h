/* The blocks where lanes that a branch has parted may be before they join again. */
#ifndef SG_PROGRAM_REGION_H
#define SG_PROGRAM_REGION_H

#include "softgpu/program/program.h"

struct sg_region {
    const struct sg_program *program;
    const struct sg_program_function *function;
    uint32_t *seen; /* by block: the walk that came there last */
    uint32_t walk;
    uint32_t *blocks, count; /* those of the last walk; indices in the program's */
};

/* False: out of memory. */
bool sg_region_begin(const struct sg_program *program, const struct sg_program_function *function,
                     struct sg_region *region);
/* Finds the blocks on all ways from the successors of `block` to its post-dominator, which is not
 * one of them; the block itself is one if it is in a loop that the ways go through. False: more
 * than `most`, and the list is cut off. */
bool sg_region_find(struct sg_region *region, uint32_t block, uint32_t most);
void sg_region_end(struct sg_region *region);

#endif
