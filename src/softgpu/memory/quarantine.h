/*
 * With SOFTGPU_CHECK=memory what is freed is kept for a while, so that its addresses are not given
 * out again and whoever still uses them is found. Everything here requires the lock.
 */
#ifndef SG_MEMORY_QUARANTINE_H
#define SG_MEMORY_QUARANTINE_H

#include "softgpu/memory/allocation.h"

/* Bytes of it, at most; the oldest goes first. */
#define SG_QUARANTINE_MOST ((size_t)256 << 20)

/* An allocation whose range has been removed: false when it is not kept, and ends now. `end` ends
 * it later. */
bool sg_quarantine_keep(struct sg_allocation *allocation, void (*end)(struct sg_range *range));
/* Ends what is kept of a context (NULL: of all): the bytes that were. */
uint64_t sg_quarantine_empty(const struct sg_context *context);

#endif
