/* What wrappers share. The data of each begins with the resource that it wraps. */
#ifndef GM_WRAP_WRAPPER_H
#define GM_WRAP_WRAPPER_H

#include "memory/objects.h"

struct gm_wrapper {
    gpumem_resource *upstream;
};

static inline void gm_wrapper_properties(void *user, gpumem_resource_properties *out) {
    const struct gm_wrapper *wrapper = user;
    *out = wrapper->upstream->properties;
}

static inline void gm_wrapper_trim(void *user, size_t keep_bytes) {
    const struct gm_wrapper *wrapper = user;
    gpumem_resource *upstream = wrapper->upstream;
    if (upstream->ops.trim)
        upstream->ops.trim(upstream->user, keep_bytes);
}

/* The kernel's id of the calling thread. */
uint64_t gm_thread_id(void);

/* Of the monotonic clock. */
uint64_t gm_now_ns(void);

#endif
