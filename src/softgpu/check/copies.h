/* The effect of copies and memsets on areas, and copies of unwritten bytes to the host. */
#ifndef SG_CHECK_COPIES_H
#define SG_CHECK_COPIES_H

#include <gpumem/cuda_api.h>

#include <stdbool.h>

/* Called for what copies and memsets read and write, without the lock; may be NULL. */
extern void (*sg_copies_race)(CUdeviceptr address, size_t size, bool write);
/* `init`: checks copies to the host. */
void sg_copies_begin(bool init);

#endif
