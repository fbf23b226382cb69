/*
 * Resources: multiprocessors of a device, as the application carries them around in a struct that
 * softgpu fills and has to recognise again.
 */
#ifndef SG_GREEN_RESOURCE_H
#define SG_GREEN_RESOURCE_H

#include "softgpu/core/chapter.h"
#include "softgpu/core/state.h"

#include <stdint.h>

#define SG_RESOURCE_WORDS 8 /* multiprocessors of one device, 32 in a word */

/* A set of multiprocessors. Which is which cannot be observed, only that parts are disjoint. */
struct sg_multiprocessors {
    int device;
    uint32_t set[SG_RESOURCE_WORDS];
};

/* What a green context knows of itself. */
struct sg_green {
    struct sg_multiprocessors of;
    bool retains; /* its hold on the primary context is still to be given back */
};

unsigned sg_multiprocessors_count(const struct sg_multiprocessors *of);
/* All of a device. False when it has more than a set can hold. */
bool sg_multiprocessors_all(int device, struct sg_multiprocessors *all);

/* Multiprocessors per step of a partition, and the least of one: by compute capability. */
struct sg_partition_rule {
    unsigned least, step;
};
struct sg_partition_rule sg_partition_rule(int device, unsigned flags);

/* The struct for the application. Those with a `split` come from a split, all of the same call with
 * the same number, and cannot be split again; 0 is for those of devices and contexts. */
void sg_resource_write(CUdevResource *resource, const struct sg_multiprocessors *of,
                       uint64_t split);
/* The reverse: INVALID_RESOURCE_TYPE for another type, INVALID_RESOURCE_CONFIGURATION for what
 * softgpu did not write. */
CUresult sg_resource_read(const CUdevResource *resource, struct sg_multiprocessors *of,
                          uint64_t *split);

/* The set that a description stands for, or NULL when the value is none. */
const struct sg_multiprocessors *sg_description_get(CUdevResourceDesc handle);

extern const struct sg_chapter sg_green_chapter;

#endif
