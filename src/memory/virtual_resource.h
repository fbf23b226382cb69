/* The virtual resource's inside, which its parts share: making, access, holes, moving. */
#ifndef GM_MEMORY_VIRTUAL_RESOURCE_H
#define GM_MEMORY_VIRTUAL_RESOURCE_H

#include "memory/range_cache.h"

struct gm_virtual_resource {
    gpumem_device *device;
    gpumem_resource *resource;
    gpumem_virtual_options options;
    gpumem_handle_type handle_type; /* what it settled on */
    int rdma, compression;          /* likewise */
    CUmemAllocationProp prop;
    size_t granularity, alignment;
    CUmemAccessDesc *access;
    size_t access_count;
    int host_accessible;
    char note[192];
    struct gm_range_cache cache;
    struct gm_mapped mapped;
    pthread_mutex_t lock; /* ranges */
    struct gm_range *ranges;
};

/* Reads the options into what this machine gives. */
gpumem_status gm_virtual_settle(struct gm_virtual_resource *v);

/* Of the device, or of the host where the memory is the host's. */
static inline int gm_virtual_is_short(gpumem_status status) {
    return status == GPUMEM_ERROR_OUT_OF_MEMORY || status == GPUMEM_ERROR_OUT_OF_HOST_MEMORY;
}

#endif
