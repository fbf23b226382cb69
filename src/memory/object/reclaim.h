/* What an allocation does when there is no more: frees that are held back, and caches. */
#ifndef GM_MEMORY_RECLAIM_H
#define GM_MEMORY_RECLAIM_H

#include "memory/core/objects.h"

/* Of one allocation, growth or load: what it asks for, and how far it has gone. */
struct gm_reclaim {
    gpumem_device *device;
    const gpumem_resource *resource; /* NULL: the device itself ran out */
    const gpumem_resource *within;   /* only what counts against this one; NULL: of the device */
    uint64_t bytes;
    int host; /* host memory is short */
    int begun;
    int settled; /* caching resources have waited */
};

struct gm_reclaim gm_reclaim_for(const gpumem_resource *resource, uint64_t bytes);
struct gm_reclaim gm_reclaim_for_device(gpumem_device *device, uint64_t bytes);

/*
 * After an attempt that answered `status`: whether another one is worth it, because something came
 * back. Takes what is free to take, then empties caches, then waits for held-back frees, one at a
 * time and whichever is done first: OUT_OF_MEMORY for those of the device, unless all of them
 * would not be enough, OUT_OF_CAPACITY only for those that count against the resource's own limit.
 * No lock is held meanwhile. The error record of the caller stays.
 */
int gm_reclaim_more(struct gm_reclaim *reclaim, gpumem_status status);

/* Whether it is memory, of whatever kind, that there was too little of. */
int gm_ran_out(gpumem_status status);

/* Waits for the frees that caching resources of the device hold back. */
void gm_settle_all(gpumem_device *device);

/* Empties the caches of all resources of the device. */
void gm_trim_all(gpumem_device *device);

#endif
