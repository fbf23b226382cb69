/*
 * Which allocations with a legacy handle are still live, for other processes to look up: a memory
 * file with one number for each, odd while it is live. A handle names the file, the slot and the
 * number, so that it is refused once its allocation was freed, whatever occupies the slot since.
 */
#ifndef SG_PROCESS_LIVE_H
#define SG_PROCESS_LIVE_H

#include "softgpu/process/process.h"

struct sg_live {
    uint32_t table; /* descriptor of the file, in the process that made the handle */
    uint32_t slot, generation;
};

/* With the lock. False when out of memory or slots. */
bool sg_live_begin(struct sg_live *live);
void sg_live_end(const struct sg_live *live);
/* Is it live in that process? */
bool sg_live_is(const struct sg_process_fd *process, const struct sg_live *live);

#endif
