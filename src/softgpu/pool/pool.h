/*
 * Stream-ordered memory pools, as the other chapters know them. Everything wants the lock.
 */
#ifndef SG_POOL_POOL_H
#define SG_POOL_POOL_H

#include "softgpu/address/memory.h"
#include "softgpu/core/chapter.h"
#include "softgpu/stream/stream.h"

struct sg_pool;

/* ---- For memory/ ----------------------------------------------------------------------------- */

/*
 * cuMemFree of a range of kind SG_RANGE_POOL. Waits for nothing: the driver's documentation of
 * cuMemFree leaves that to the caller. Bytes that earlier work may still touch, because the block
 * was handed on in stream order, are not reused before that work ends.
 */
CUresult sg_pool_free(struct sg_range *range);

/* What cuPointerGetAttribute tells of a range of kind SG_RANGE_POOL. The handle stays
 * what it was when the pool is destroyed, as on H200. */
uint64_t sg_pool_handle(const struct sg_range *range);
const CUmemPoolProps *sg_pool_props(const struct sg_range *range);
/* What is told of the pages of a pool of managed memory; NULL for other pools. */
struct sg_pages;
struct sg_pages *sg_pool_pages(const struct sg_range *range);
/* May the device read and write it? Host pools begin without access from any device. */
bool sg_pool_accessible(const struct sg_range *range, int device);
/* Of managed memory: who was given access by cuMemPoolSetAccess, as bits of `accessed_by`. */
uint32_t sg_pool_told(const struct sg_range *range);

extern const struct sg_chapter sg_pool_chapter;

#endif
