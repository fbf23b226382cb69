/* State that a context's kernels share with later ones: the fifo of printf, and the heap. */
#ifndef SG_LAUNCH_DEVICE_STATE_H
#define SG_LAUNCH_DEVICE_STATE_H

#include "softgpu/launch/device_heap.h"
#include "softgpu/launch/device_print.h"

struct sg_context;

struct sg_device_state {
    struct sg_print *first, *last;
    size_t used; /* bytes of the fifo */
    struct sg_device_heap heap;
};

/* With the lock: a context's state, made at first use; NULL: out of memory. */
struct sg_device_state *sg_device_state(struct sg_context *context);

#endif
