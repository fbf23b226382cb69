#ifndef SG_ENGINE_ACCESS_H
#define SG_ENGINE_ACCESS_H

#include "softgpu/engine/inside.h"

/* A lane's address: that in a, plus `value`. */
uint64_t sg_access_address(const struct sg_warp *warp, const struct sg_step *step, unsigned lane);
/*
 * The host bytes of a lane's access of `size`, a power of two; its address must be a multiple of
 * it. *space: their state space. NULL: the warp has faulted.
 */
unsigned char *sg_access(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                         uint64_t size, unsigned *space);

/* The state space of a generic address, which becomes an offset there unless it is global. */
unsigned sg_generic_space(uint64_t *address);

#endif
