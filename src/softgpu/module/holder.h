/* Code that cannot run here: in which file of the process it is, which profiles could run it. */
#ifndef SG_MODULE_HOLDER_H
#define SG_MODULE_HOLDER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * "libfoo.so holds machine code for sm_80, PTX for compute_120; it runs with
 * SOFTGPU_PROFILE=rtx5090",
 * from malloc. NULL when the image is no fatbin in a file of the process, and when out of memory.
 * With the lock.
 */
char *sg_holder_text(const void *image, size_t size, bool wrapped);

#endif
