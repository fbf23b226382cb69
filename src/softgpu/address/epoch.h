/*
 * Deferred reclaim: the epoch counts retirements. Work is stamped when it begins; objects retired
 * since then may still be visible to it and are reclaimed when the last such work has ended.
 *
 * Requires the lock.
 */
#ifndef SG_ADDRESS_EPOCH_H
#define SG_ADDRESS_EPOCH_H

#include "softgpu/address/memory.h"

struct sg_retired {
    struct sg_retired *next;
    uint64_t epoch;
    void (*reclaim)(struct sg_retired *retired);
};

/* Calls reclaim (with the lock) as soon as no work that is running now can see the object:
 * immediately if none runs. */
void sg_retire(struct sg_retired *retired, void (*reclaim)(struct sg_retired *));
/* A point in time: work that begins later does not see what was removed before it. */
uint64_t sg_epoch_mark(void);
/* Has all work that was running at that time ended? */
bool sg_epoch_passed(uint64_t mark);
/* Blocks until it has; the lock is released meanwhile. */
void sg_epoch_wait(uint64_t mark);

#endif
