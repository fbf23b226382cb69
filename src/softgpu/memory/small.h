/*
 * Small allocations share 2 MiB chunks, as on hardware: a chunk holds slots of one size class. The
 * classes are 512 bytes times a power of two, and one and a half times that.
 */
#ifndef SG_MEMORY_SMALL_H
#define SG_MEMORY_SMALL_H

#include "softgpu/memory/memory.h"

/* Larger requests get pages of their own. */
#define SG_SMALL_LIMIT ((size_t)1 << 20)

struct sg_chunk;

/* Takes a slot in memory of `device` (-1: host), readable and writable by all devices. */
CUresult sg_small_take(int device, size_t size, struct sg_chunk **chunk, CUdeviceptr *address);
void sg_small_give(struct sg_chunk *chunk, CUdeviceptr address);
const struct sg_segment *sg_small_segment(const struct sg_chunk *chunk);

#endif
