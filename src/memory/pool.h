/* Pools of the driver, device or host: the stream-ordered resources. */
#ifndef GM_MEMORY_POOL_H
#define GM_MEMORY_POOL_H

#include "memory/objects.h"

struct gm_pool_settings {
    const char *kind;
    CUmemoryPool pool;
    int own; /* destroyed with the resource */
    int host;
    uint64_t maximum; /* of an own pool; 0: none */
    gpumem_location location;
    gpumem_handle_type handle_type;
};

/* Takes the pool over, an own one also on failure. */
gpumem_status gm_pool_resource(gpumem_device *device, const struct gm_pool_settings *settings,
                               gpumem_resource **resource);

/* cuMemPoolCreate with its threshold set; whole or nothing. */
gpumem_status gm_pool_create(gpumem_device *device, const CUmemPoolProps *props,
                             uint64_t release_threshold, CUmemoryPool *pool);

#endif
