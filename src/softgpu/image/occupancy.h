/* How many blocks of a function fit on a multiprocessor: the published rules, with what the
 * device's attributes say. Pure arithmetic, but for the device's attributes. */
#ifndef SG_IMAGE_OCCUPANCY_H
#define SG_IMAGE_OCCUPANCY_H

#include "softgpu/image/function.h"

/* A thread's; of PTX what the profile has for it (docs/softgpu.md). */
unsigned sg_occupancy_registers(const struct sg_image_function *function, int device);
/* The largest block that a launch may have. */
unsigned sg_occupancy_most_threads(const struct sg_image_function *function, int device);
/* Blocks of `threads` and `dynamic` bytes of shared memory on one multiprocessor; 0 when none fits.
 */
unsigned sg_occupancy_blocks(const struct sg_image_function *function, int device, unsigned threads,
                             size_t dynamic);
/* Bytes of dynamic shared memory that each of `blocks` blocks can have beside the others. */
size_t sg_occupancy_available(const struct sg_image_function *function, int device,
                              unsigned blocks);

#endif
