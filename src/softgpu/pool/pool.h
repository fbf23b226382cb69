/*
 * Stream-ordered memory pools, as the other chapters see them. Everything requires the lock.
 */
#ifndef SG_POOL_POOL_H
#define SG_POOL_POOL_H

#include "softgpu/address/memory.h"
#include "softgpu/core/chapter.h"
#include "softgpu/stream/stream.h"

struct sg_pool;

extern const struct sg_chapter sg_pool_chapter;

#endif
