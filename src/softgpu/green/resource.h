/*
 * Resources: multiprocessors of a device, which the application passes around in a struct that
 * softgpu fills in and must recognise again.
 */
#ifndef SG_GREEN_RESOURCE_H
#define SG_GREEN_RESOURCE_H

#include "softgpu/core/chapter.h"
#include "softgpu/core/state.h"

#include <stdint.h>

#define SG_RESOURCE_WORDS 8 /* multiprocessors of one device, 32 per word */

/* A set of multiprocessors. Which one is which cannot be observed, only that parts are disjoint. */
struct sg_multiprocessors {
    int device;
    uint32_t set[SG_RESOURCE_WORDS];
};

/* What a green context knows about itself. */
struct sg_green {
    struct sg_multiprocessors of;
    bool retains; /* it still has to release its hold on the primary context */
};

unsigned sg_multiprocessors_count(const struct sg_multiprocessors *of);
/* All of a device. False when it has more than a set can hold. */
bool sg_multiprocessors_all(int device, struct sg_multiprocessors *all);

/* The step and the minimum of a partition, in multiprocessors, by compute capability. */
struct sg_partition_rule {
    unsigned least, step;
};
struct sg_partition_rule sg_partition_rule(int device, unsigned flags);

/* Fills in the application's struct. Resources with a `split` come from a split, all of one call
 * with the same number, and cannot be split again; 0 is for those of devices and contexts. */
void sg_resource_write(CUdevResource *resource, const struct sg_multiprocessors *of,
                       uint64_t split);
/* The reverse: INVALID_RESOURCE_TYPE for another type, INVALID_RESOURCE_CONFIGURATION if softgpu
 * did not write it. */
CUresult sg_resource_read(const CUdevResource *resource, struct sg_multiprocessors *of,
                          uint64_t *split);

/* The set that a description stands for, or NULL if the value is not a description. */
const struct sg_multiprocessors *sg_description_get(CUdevResourceDesc handle);

extern const struct sg_chapter sg_green_chapter;

#endif
