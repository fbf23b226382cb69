/*
 * Stream-ordered memory pools, as the other chapters see them. Everything requires the lock.
 */
#ifndef SG_POOL_POOL_H
#define SG_POOL_POOL_H

#include "softgpu/address/memory.h"
#include "softgpu/core/chapter.h"
#include "softgpu/stream/stream.h"

struct sg_pool;

/*
 * The extent around an address as an operation sees it that was submitted as number `serial` of
 * all: that of a block which was freed after the submission, if the free has not been reached yet.
 * False: there is none; the address map holds.
 */
bool sg_pool_left(CUdeviceptr address, uint64_t serial, uint64_t *low, uint64_t *length);

extern const struct sg_chapter sg_pool_chapter;

#endif
