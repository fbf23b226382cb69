/*
 * Small allocations of mixed sizes share 2 MiB chunks, in steps of 512 bytes. Each takes the hole
 * that fits it most closely, from the lowest address up: as on H200, where 1, 1, 700 and 512 bytes
 * are at 0, 512, 1024 and 2048, and 1 MiB is the largest size that shares a chunk.
 *
 * Variables of modules share chunks of their own, in steps of 256 bytes: an H200 reports 256 as the
 * alignment of some, and the addresses of the variables of two modules loaded in succession are in
 * such steps.
 */
#ifndef SG_ADDRESS_SMALL_H
#define SG_ADDRESS_SMALL_H

#include "softgpu/address/memory.h"

/* Larger requests get pages of their own. */
#define SG_SMALL_LIMIT ((size_t)1 << 20)

struct sg_chunk;

/* For managed memory, which is in host memory, apart from pinned memory. */
#define SG_SMALL_MANAGED (-2)
/* For module variables in the memory of a device. */
#define SG_SMALL_VARIABLES(device) (SG_MAX_DEVICES + (device))
/* Their step size. */
#define SG_SMALL_VARIABLE_STEP ((size_t)256)

/* Takes bytes in memory of a device (-1: the host), or in one of the places above, readable and
 * writable by all devices. */
CUresult sg_small_take(int place, size_t size, struct sg_chunk **chunk, CUdeviceptr *address);
/* Address and size must be those of the take. */
void sg_small_give(struct sg_chunk *chunk, CUdeviceptr address, size_t size);
const struct sg_segment *sg_small_segment(const struct sg_chunk *chunk);

#endif
