/* How many blocks of a function fit on a multiprocessor, by the published rules. Pure arithmetic,
 * except that it reads the device's attributes. */
#ifndef SG_MODULE_OCCUPANCY_H
#define SG_MODULE_OCCUPANCY_H

#include "softgpu/module/function.h"

/* Per thread; for PTX, what the profile has (docs/softgpu.md). */
unsigned sg_occupancy_registers(const struct sg_image_function *function, int device);
/* The largest block that the device and the directives allow. */
unsigned sg_occupancy_allowed_threads(const struct sg_image_function *function, int device);
/* The same, also limited by registers. */
unsigned sg_occupancy_most_threads(const struct sg_image_function *function, int device);
/* How many blocks of `threads` with `dynamic` bytes of shared memory fit on one multiprocessor, or
 * 0. `carveout`: percentage of the memory to use as shared memory rather than cache; -1 for all. */
unsigned sg_occupancy_blocks(const struct sg_image_function *function, int device, unsigned threads,
                             size_t dynamic, int carveout);
/* Bytes of dynamic shared memory that each of `blocks` blocks on a multiprocessor can have. */
size_t sg_occupancy_available(const struct sg_image_function *function, int device,
                              unsigned blocks);
/*
 * How many clusters of `size` blocks run at once on the device, when `blocks` fit on a
 * multiprocessor. A cluster stays within a group of multiprocessors at least as many as its blocks.
 */
unsigned sg_occupancy_clusters(int device, unsigned size, unsigned blocks);

#endif
