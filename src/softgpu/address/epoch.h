/*
 * Reclaim after running work: an epoch counts retirements. Work is stamped when it begins; what was
 * retired since then may still be seen by it and is reclaimed when the last such work has ended.
 *
 * Wants the lock.
 */
#ifndef SG_ADDRESS_EPOCH_H
#define SG_ADDRESS_EPOCH_H

#include "softgpu/address/memory.h"

struct sg_retired {
    struct sg_retired *next;
    uint64_t epoch;
    void (*reclaim)(struct sg_retired *retired);
};

/* Calls reclaim (with the lock) as soon as no work that is running now can see the object: at once
 * when none runs. */
void sg_retire(struct sg_retired *retired, void (*reclaim)(struct sg_retired *));
/* A moment: work that begins later does not see what was taken away before it. */
uint64_t sg_epoch_mark(void);
/* Has all work that ran at that moment ended? */
bool sg_epoch_passed(uint64_t mark);
/* Blocks until it has; the lock is released meanwhile. */
void sg_epoch_wait(uint64_t mark);

#endif
