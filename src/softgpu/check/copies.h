/* What copies and sets do to areas, and copies of what nothing has written to the host. */
#ifndef SG_CHECK_COPIES_H
#define SG_CHECK_COPIES_H

#include <gpumem/cuda_api.h>

#include <stdbool.h>

/* Told of what copies and sets read and write, without the lock; NULL: nobody. */
extern void (*sg_copies_race)(CUdeviceptr address, size_t size, bool write);
/* `init`: copies to the host are looked at. */
void sg_copies_begin(bool init);

#endif
