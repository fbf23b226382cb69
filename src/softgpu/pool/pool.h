/*
 * Stream-ordered memory pools, as the other chapters know them. Everything wants the lock.
 */
#ifndef SG_POOL_POOL_H
#define SG_POOL_POOL_H

#include "softgpu/address/memory.h"
#include "softgpu/stream/stream.h"

struct sg_pool;

/* ---- For memory/ ----------------------------------------------------------------------------- */

/*
 * Physical memory of `device` (-1: host memory) is short of `bytes`: pools give back segments that
 * nothing uses, until that much is free or there are no more. Returns the bytes given back. Free
 * operations that are not complete are not waited for.
 */
uint64_t sg_pools_reclaim(int device, uint64_t bytes);

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

/* ---- For stream/ ----------------------------------------------------------------------------- */

/*
 * A stream, event or context synchronize succeeded: frees that are complete in `stream` (NULL: in
 * any stream of the context) count as seen by the host, and pools give back what they hold above
 * their release threshold. On H200 what one stream freed stays when another is synchronized. Cheap
 * when no pool has anything to give back.
 */
void sg_pools_synchronized(struct sg_context *context, struct sg_stream *stream);

/* ---- For entry/ ------------------------------------------------------------------------------ */

/* Gives back what pools that were destroyed still hold and nothing uses any more. */
void sg_pools_collect(void);

#endif
