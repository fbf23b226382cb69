/* How many blocks of a function fit on a multiprocessor: the published rules, with what the
 * device's attributes say. Pure arithmetic, but for the device's attributes. */
#ifndef SG_MODULE_OCCUPANCY_H
#define SG_MODULE_OCCUPANCY_H

#include "softgpu/module/function.h"

/* A thread's; of PTX what the profile has for it (docs/softgpu.md). */
unsigned sg_occupancy_registers(const struct sg_image_function *function, int device);
/* The largest block that device and directives allow. */
unsigned sg_occupancy_allowed_threads(const struct sg_image_function *function, int device);
/* The same, and the registers are enough for. */
unsigned sg_occupancy_most_threads(const struct sg_image_function *function, int device);
/* Blocks of `threads` and `dynamic` bytes of shared memory on one multiprocessor; 0 when none fits.
 * `carveout`: percent of the memory that is to be shared memory rather than cache; -1 for all. */
unsigned sg_occupancy_blocks(const struct sg_image_function *function, int device, unsigned threads,
                             size_t dynamic, int carveout);
/* Bytes of dynamic shared memory that each of `blocks` blocks can have beside the others. */
size_t sg_occupancy_available(const struct sg_image_function *function, int device,
                              unsigned blocks);
/* Clusters of `size` blocks at a time on the device, when `blocks` fit on a multiprocessor. A
 * cluster stays within a group of multiprocessors that has at least as many as it has blocks. */
unsigned sg_occupancy_clusters(int device, unsigned size, unsigned blocks);

#endif
