/*
 * Small allocations share 2 MiB chunks, sizes mixed, in steps of 512 bytes, each in the hole that
 * it fits most closely and from the lowest address up: as on H200, where 1, 1, 700 and 512 bytes
 * lie at 0, 512, 1024 and 2048, and 1 MiB is the largest that shares.
 *
 * Variables of modules share chunks of their own, in steps of 256 bytes: an H200 gives 256 as the
 * alignment of some, and the addresses of two modules' variables, loaded one after the other, are
 * those of such steps.
 */
#ifndef SG_ADDRESS_SMALL_H
#define SG_ADDRESS_SMALL_H

#include "softgpu/address/memory.h"

/* Larger requests get pages of their own. */
#define SG_SMALL_LIMIT ((size_t)1 << 20)

struct sg_chunk;

/* For managed memory, which lies in host memory and apart from what is pinned. */
#define SG_SMALL_MANAGED (-2)
/* For variables in memory of a device. */
#define SG_SMALL_VARIABLES(device) (SG_MAX_DEVICES + (device))
/* Their steps. */
#define SG_SMALL_VARIABLE_STEP ((size_t)256)

/* Takes bytes in memory of a device (-1: the host), or one of the above, readable and writable by
 * all devices. */
CUresult sg_small_take(int place, size_t size, struct sg_chunk **chunk, CUdeviceptr *address);
/* Address and size are those of the take. */
void sg_small_give(struct sg_chunk *chunk, CUdeviceptr address, size_t size);
const struct sg_segment *sg_small_segment(const struct sg_chunk *chunk);

#endif
