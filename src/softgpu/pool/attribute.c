/* Attributes and access rights of pools. */
#include "softgpu/pool/internal.h"

static bool *reuse_flag(struct sg_pool *pool, CUmemPool_attribute attr) {
    switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        return &pool->reuse_follow;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        return &pool->reuse_opportunistic;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        return &pool->reuse_internal;
    default:
        return NULL;
    }
}

CUresult sg_cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value) {
    struct sg_pool *pool = sg_pool_get(handle);
    if (!pool || !value)
        return CUDA_ERROR_INVALID_VALUE;
    const bool *flag = reuse_flag(pool, attr);
    if (flag) {
        *(int *)value = *flag;
        return CUDA_SUCCESS;
    }
    uint64_t *number = value;
    switch (attr) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *number = pool->threshold;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        *number = pool->reserved;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        *number = pool->reserved_high;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *number = pool->used;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *number = pool->used_high;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* A high mark can only be reset, and begins again at what is held now. */
static CUresult reset(uint64_t *high, uint64_t now, uint64_t value) {
    if (value != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *high = now;
    return CUDA_SUCCESS;
}

CUresult sg_cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value) {
    struct sg_pool *pool = sg_pool_get(handle);
    if (!pool || !value)
        return CUDA_ERROR_INVALID_VALUE;
    bool *flag = reuse_flag(pool, attr);
    if (flag) {
        *flag = *(const int *)value != 0;
        return CUDA_SUCCESS;
    }
    switch (attr) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool->threshold = *(const uint64_t *)value;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return reset(&pool->reserved_high, pool->reserved, *(const uint64_t *)value);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return reset(&pool->used_high, pool->used, *(const uint64_t *)value);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult sg_cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
    struct sg_pool *pool = sg_pool_get(handle);
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    sg_pool_promote(pool);
    sg_pool_shrink(pool, keep);
    return CUDA_SUCCESS;
}

/* ---- Access -------------------------------------------------------------------------------------
 */

static bool is_host(const CUmemLocation *location) {
    return location->type == CU_MEM_LOCATION_TYPE_HOST ||
           location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

static bool rights_of(CUmemAccess_flags flags, unsigned *rights) {
    *rights = 0;
    if (flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
        *rights = SG_READ;
    else if (flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        *rights = SG_READ | SG_WRITE;
    return *rights != 0 || flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

static CUresult check_access(const struct sg_pool *pool, const CUmemAccessDesc *desc) {
    unsigned rights;
    if (!rights_of(desc->flags, &rights))
        return CUDA_ERROR_INVALID_VALUE;
    if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_device *device = sg_device(desc->location.id);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (pool->device == desc->location.id)
        /* The pool's own device keeps its access. */
        return rights == (SG_READ | SG_WRITE) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (pool->device >= 0 && !device->links.peer_access)
        return CUDA_ERROR_INVALID_DEVICE;
    return CUDA_SUCCESS;
}

static void set_rights(struct sg_pool *pool, int device, unsigned rights) {
    if (pool->rights[device] == rights)
        return;
    pool->rights[device] = rights;
    for (struct sg_pool_segment *segment = pool->first; segment; segment = segment->next)
        sg_segment_access(&segment->map, device, rights);
}

CUresult sg_cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *map, size_t count) {
    struct sg_pool *pool = sg_pool_get(handle);
    if (!pool || (!map && count > 0))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        CUresult result = check_access(pool, &map[i]);
        if (result != CUDA_SUCCESS)
            return result;
    }
    for (size_t i = 0; i < count; i++) {
        unsigned rights;
        rights_of(map[i].flags, &rights);
        set_rights(pool, map[i].location.id, rights);
    }
    return CUDA_SUCCESS;
}

static CUmemAccess_flags flags_of(unsigned rights) {
    if (rights == (SG_READ | SG_WRITE))
        return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return rights == SG_READ ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

CUresult sg_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool handle,
                               CUmemLocation *location) {
    struct sg_pool *pool = sg_pool_get(handle);
    if (!pool || !flags || !location)
        return CUDA_ERROR_INVALID_VALUE;
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE) {
        if (!sg_device(location->id))
            return CUDA_ERROR_INVALID_DEVICE;
        *flags = flags_of(pool->rights[location->id]);
        return CUDA_SUCCESS;
    }
    if (!is_host(location))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = pool->device < 0 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

/* ---- What pointers tell of their pool -----------------------------------------------------------
 */

static const struct sg_pool *pool_of(const struct sg_range *range) {
    const struct sg_block *block = range->owner;
    return block->segment->pool;
}

uint64_t sg_pool_handle(const struct sg_range *range) {
    return pool_of(range)->handle;
}

const CUmemPoolProps *sg_pool_props(const struct sg_range *range) {
    return &pool_of(range)->props;
}

unsigned sg_pool_rights(const struct sg_range *range, int device) {
    return pool_of(range)->rights[device];
}
