/* Common parts of wrappers. The data of each begins with the resource that it wraps. */
#ifndef GM_WRAP_WRAPPER_H
#define GM_WRAP_WRAPPER_H

#include "memory/core/describe.h"
#include "memory/core/objects.h"

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

/* The functions of a wrapper's own; the rest are those of the wrapped resource. */
struct gm_wrapper_ops {
    const char *kind;
    gpumem_status (*allocate)(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation);
    void (*deallocate)(void *user, const gpumem_allocation *allocation, CUstream stream);
    /* For what can be resized. */
    gpumem_status (*resize)(void *user, gpumem_allocation *allocation, size_t bytes,
                            CUstream stream);
    void (*moved)(void *user, CUdeviceptr from, const gpumem_allocation *allocation); /* or NULL */
    void (*destroy)(void *user);
    int transparent;                        /* has no limit of its own */
    const struct gm_describe_ops *describe; /* or NULL */
};

/* Creates the resource. Its data begins with `wrapper`, and is taken over even on failure. */
gpumem_status gm_wrapper_make(struct gm_wrapper *wrapper, gpumem_resource *upstream,
                              const struct gm_wrapper_ops *own, gpumem_resource **resource);

/* The kernel's id of the calling thread. */
uint64_t gm_thread_id(void);

/* Of the monotonic clock. */
uint64_t gm_now_ns(void);

#endif
