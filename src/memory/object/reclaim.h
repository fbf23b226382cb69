/* Reclaims memory for an allocation that found none: from deferred frees, and caches. */
#ifndef GM_MEMORY_RECLAIM_H
#define GM_MEMORY_RECLAIM_H

#include "memory/core/objects.h"

/* State of one allocation, growth or load: what it requests, and which steps it has taken. */
struct gm_reclaim {
    gpumem_device *device;
    const gpumem_resource *resource; /* NULL: the device itself ran out */
    const gpumem_resource *within;   /* only memory that counts against this one; NULL: of the
                                      * device */
    uint64_t bytes;
    int by_driver; /* the driver refused: what a pool's driver has taken and holds back counts; a
                    * limit of the library's counts only what it holds back itself */
    int host;      /* host memory ran out */
    int begun;
    int settled;         /* caching resources have waited */
    unsigned overtaken;  /* how often others took what came back */
    uint64_t given_back; /* ever, before the last attempt */
};

/* Made before the first attempt. */
struct gm_reclaim gm_reclaim_for(const gpumem_resource *resource, uint64_t bytes);
struct gm_reclaim gm_reclaim_for_device(gpumem_device *device, uint64_t bytes);

/*
 * After an attempt that returned `status`: whether another one is worthwhile because something came
 * back. Completes frees that are done, then empties caches, then waits for deferred frees, one at a
 * time, whichever completes first: with OUT_OF_MEMORY for those of the device, unless all of them
 * would not be enough, with OUT_OF_CAPACITY only for those that count against the resource's own
 * limit. No lock is held meanwhile. The caller's error record is kept; when nothing came back, its
 * message is completed (shortage.h).
 */
int gm_reclaim_more(struct gm_reclaim *reclaim, gpumem_status status);

/* Whether the status means too little memory of any kind. */
int gm_ran_out(gpumem_status status);

/* Waits for the frees held back by caching resources of the device. */
void gm_settle_all(gpumem_device *device);

/* Empties the caches of all resources of the device. */
void gm_trim_all(gpumem_device *device);

#endif
