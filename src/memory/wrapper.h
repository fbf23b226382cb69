/* What wrappers share. */
#ifndef GM_MEMORY_WRAPPER_H
#define GM_MEMORY_WRAPPER_H

#include "memory/objects.h"

static inline void gm_wrapper_trim(gpumem_resource *upstream, size_t keep_bytes) {
    if (upstream->ops.trim)
        upstream->ops.trim(upstream->user, keep_bytes);
}

#endif
