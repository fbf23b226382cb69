/*
 * Which allocations with a legacy handle still live, for other processes to look up: a memory file
 * of one number for each, odd while it lives. A handle names the file, the place and the number, so
 * that it is refused when its allocation was freed, whatever lies there since.
 */
#ifndef SG_PROCESS_LIVE_H
#define SG_PROCESS_LIVE_H

#include "softgpu/process/process.h"

struct sg_live {
    uint32_t table; /* descriptor of the file, in the process that made the handle */
    uint32_t slot, generation;
};

/* With the lock. False when out of memory or places. */
bool sg_live_begin(struct sg_live *live);
void sg_live_end(const struct sg_live *live);
/* Does it live in that process? */
bool sg_live_is(const struct sg_process_fd *process, const struct sg_live *live);

#endif
