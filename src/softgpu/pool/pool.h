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
