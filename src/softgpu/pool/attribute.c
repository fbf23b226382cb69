/* Attributes and access rights of pools. */
#include "softgpu/address/pagetable.h"
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
    if (!pool || pool->imported || !value)
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

/* A high mark can only be reset; it restarts from the current value. */
static CUresult reset(uint64_t *high, uint64_t now, uint64_t value) {
    if (value != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *high = now;
    return CUDA_SUCCESS;
}

CUresult sg_cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value) {
    struct sg_pool *pool = sg_pool_get(handle);
    if (!pool || pool->imported || !value)
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
    if (!pool || pool->imported)
        return CUDA_ERROR_INVALID_VALUE;
    (void)sg_pool_let_go(pool);
    sg_pool_promote(pool);
    sg_pool_shrink(pool, keep);
    return CUDA_SUCCESS;
}

/* ---- Access ---------------------------------------------------------------------------------- */

static bool is_host(const CUmemLocation *location) {
    return location->type == CU_MEM_LOCATION_TYPE_HOST ||
           location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

/* All results here are as on H200. Read-only access cannot be granted. */
static CUresult check_host_access(const struct sg_pool *pool, const CUmemAccessDesc *desc) {
    if (pool->device >= 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!is_host(&desc->location))
        return CUDA_ERROR_INVALID_VALUE;
    /* The CPU always has access: the memory is mapped for it. */
    return desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? CUDA_SUCCESS
                                                             : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult check_access(const struct sg_pool *pool, const CUmemAccessDesc *desc) {
    if (desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
        return CUDA_ERROR_NOT_SUPPORTED;
    bool none = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
    if (!none && desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
    if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return check_host_access(pool, desc);
    if (!sg_device(desc->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    if (pool->device == desc->location.id)
        return none ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
    bool reachable = pool->device < 0 || sg_device_reaches(desc->location.id, pool->device);
    return reachable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static void set_access(struct sg_pool *pool, int device, bool access) {
    unsigned bit = 1u << device;
    if (((pool->devices & bit) != 0) == access)
        return;
    pool->devices ^= bit;
    for (struct sg_pool_segment *segment = pool->first; segment; segment = segment->next)
        for (size_t i = 0; i < segment->step_count; i++)
            if (segment->steps[i].phys)
                sg_table_rights(segment->address + segment->steps[i].offset, segment->steps[i].size,
                                sg_rights_of(device, SG_READ | SG_WRITE),
                                sg_rights_of(device, access ? SG_READ | SG_WRITE : 0));
}

/* Everyone can access managed memory anyway; at first nobody is reported to have access. */
static CUresult tell_access(struct sg_pool *pool, const CUmemAccessDesc *desc, bool check_only) {
    if (desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
        return CUDA_ERROR_NOT_SUPPORTED;
    bool on_device = desc->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (on_device && !sg_device(desc->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!on_device && !is_host(&desc->location))
        return CUDA_ERROR_INVALID_VALUE;
    bool both = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (!both && desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
        return CUDA_ERROR_INVALID_VALUE;
    uint32_t bit = on_device ? 1u << desc->location.id : SG_ACCESSED_BY_CPU;
    if (!check_only)
        pool->told = both ? pool->told | bit : pool->told & ~bit;
    return CUDA_SUCCESS;
}

CUresult sg_cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *map, size_t count) {
    struct sg_pool *pool = sg_pool_get(handle);
    if (!pool || !map)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        CUresult result =
            pool->managed ? tell_access(pool, &map[i], true) : check_access(pool, &map[i]);
        if (result != CUDA_SUCCESS)
            return result;
    }
    for (size_t i = 0; i < count; i++)
        if (pool->managed)
            tell_access(pool, &map[i], false);
        else if (map[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
            set_access(pool, map[i].location.id, map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE);
    return CUDA_SUCCESS;
}

CUresult sg_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool handle,
                               CUmemLocation *location) {
    struct sg_pool *pool = sg_pool_get(handle);
    if (!pool || !flags || !location)
        return CUDA_ERROR_INVALID_VALUE;
    bool access;
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE && sg_device(location->id))
        access = (pool->managed ? pool->told : pool->devices) >> location->id & 1;
    else if (is_host(location))
        access = pool->managed ? (pool->told & SG_ACCESSED_BY_CPU) != 0 : pool->device < 0;
    else
        return CUDA_ERROR_INVALID_VALUE;
    *flags = access ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}
