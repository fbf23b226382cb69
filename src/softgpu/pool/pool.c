/* Pools: creation, destruction, and the default and current pool of each place. */
#include "softgpu/core/text.h"
#include "softgpu/device/device.h"
#include "softgpu/device/numa.h"
#include "softgpu/pool/internal.h"
#include "softgpu/process/fabric.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sg_pool *sg_pools;

/* A place has a default pool, created on first request, and a current one. */
#define NUMA_NODES 16
/* A pool reserves addresses for its maximum: H200 refuses 2^50 bytes with OUT_OF_MEMORY. The
 * address space of x86_64 is 2^47 bytes. */
#define LARGEST    ((size_t)1 << 47)
#define HOST_PLACE SG_MAX_DEVICES
#define NODE_PLACE (HOST_PLACE + 1)
#define ANYWHERE   (NODE_PLACE + NUMA_NODES) /* managed memory without a preferred place */
#define PLACES     (ANYWHERE + 1)
static struct place {
    struct sg_pool *fallback;
    struct sg_pool *current; /* NULL: the default */
} pinned_places[PLACES], managed_places[PLACES];

static struct place *places_of(CUmemAllocationType type) {
    return type == CU_MEM_ALLOCATION_TYPE_MANAGED ? managed_places : pinned_places;
}

/* The index of a place, or -1 if a pool cannot be there. */
static int place_of(const CUmemLocation *location, CUmemAllocationType type) {
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return sg_device(location->id) ? location->id : -1;
    case CU_MEM_LOCATION_TYPE_HOST:
        return HOST_PLACE;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return location->id < NUMA_NODES && sg_numa_node_exists(location->id)
                   ? NODE_PLACE + location->id
                   : -1;
    case CU_MEM_LOCATION_TYPE_NONE:
        return type == CU_MEM_ALLOCATION_TYPE_MANAGED ? ANYWHERE : -1;
    default:
        return -1;
    }
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* On H200 a pool for FABRIC handles can be created and used without an IMEX channel; only its
 * export is refused. */
static CUresult check_handle_types(const CUmemPoolProps *props) {
    const unsigned known = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC;
    unsigned types = (unsigned)props->handleTypes;
    if (types & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    if ((types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) && sg_device(0)->no_pool_descriptors)
        return CUDA_ERROR_INVALID_VALUE; /* as reported of WSL, despite its attributes */
    /* Host memory without a node cannot be shared. */
    if (types != CU_MEM_HANDLE_TYPE_NONE && props->location.type == CU_MEM_LOCATION_TYPE_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static bool all_zero(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return false;
    return true;
}

/* Managed memory is not shared and has no limit. A pool of it may be on the thread's own node,
 * which has no default one. */
static CUresult check_managed(const CUmemPoolProps *props) {
    if (props->location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
        return CUDA_ERROR_NOT_SUPPORTED;
    bool here = props->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT ||
                place_of(&props->location, props->allocType) >= 0;
    bool plain = props->handleTypes == CU_MEM_HANDLE_TYPE_NONE && props->maxSize == 0;
    return here && plain ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* H200 ignores `usage` and, on Linux, win32SecurityAttributes. */
static CUresult check_props(const CUmemPoolProps *props) {
    if (!all_zero(props->reserved, sizeof props->reserved))
        return CUDA_ERROR_INVALID_VALUE;
    if (props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED)
        return check_managed(props);
    if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        place_of(&props->location, props->allocType) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_handle_types(props);
    if (result == CUDA_SUCCESS && props->maxSize > LARGEST)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return result;
}

static uint64_t limit_of(const CUmemPoolProps *props) {
    if (props->maxSize == 0)
        return UINT64_MAX;
    return (props->maxSize + SG_POOL_STEP - 1) / SG_POOL_STEP * SG_POOL_STEP;
}

struct sg_pool *sg_pool_new(const CUmemPoolProps *props) {
    static uint64_t last_id;
    struct sg_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    bool on_device = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    pool->id = ++last_id;
    pool->props = *props;
    pool->managed = props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
    pool->device = on_device ? props->location.id : -1;
    if (on_device)
        pool->devices = 1u << pool->device;
    if (pool->managed) {
        /* As H200 reports it, wherever the pool is; all devices can reach it. */
        pool->device = on_device ? props->location.id : 0;
        pool->devices = (1u << SG_MAX_DEVICES) - 1;
    }
    pool->reuse_follow = pool->reuse_opportunistic = pool->reuse_internal = true;
    pool->limit = limit_of(props);
    pool->file = (struct gm_kept_file)GM_NO_KEPT_FILE;
    struct sg_pool **end = &sg_pools;
    while (*end)
        end = &(*end)->next;
    *end = pool;
    return pool;
}

static void end_pool(struct sg_pool *pool) {
    sg_pool_shrink(pool, 0);
    struct sg_pool **link = &sg_pools;
    while (*link != pool)
        link = &(*link)->next;
    *link = pool->next;
    gm_kept_file_close(&pool->file);
    free(pool->spare);
    free(pool);
}

CUresult sg_pool_publish(struct sg_pool *pool, CUmemoryPool *handle) {
    pool->handle = sg_handle_new(SG_KIND_POOL, pool);
    if (!pool->handle) {
        end_pool(pool);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = SG_HANDLE_POINTER(CUmemoryPool, pool->handle);
    return CUDA_SUCCESS;
}

CUresult sg_cuMemPoolCreate(CUmemoryPool *handle, const CUmemPoolProps *props) {
    if (!handle || !props)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_props(props);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_pool *pool = sg_pool_new(props);
    if (!pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    bool fabric = ((unsigned)props->handleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0;
    if ((props->handleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) ||
        (fabric && sg_fabric_permitted())) {
        result = sg_pool_file_create(pool);
        if (result != CUDA_SUCCESS) {
            end_pool(pool);
            return result;
        }
    }
    return sg_pool_publish(pool, handle);
}

/* ---- Ending ---------------------------------------------------------------------------------- */

struct sg_pool *sg_pool_get(CUmemoryPool handle) {
    return sg_handle_get(SG_KIND_POOL, SG_HANDLE_VALUE(handle));
}

void sg_pool_collect(struct sg_pool *pool) {
    if (!pool->destroyed || pool->live > 0)
        return;
    (void)sg_pool_let_go(pool);
    sg_pool_promote(pool);
    if (!pool->caches && pool->kept == 0)
        end_pool(pool);
    else
        sg_pool_shrink(pool, 0);
}

CUresult sg_cuMemPoolDestroy(CUmemoryPool handle) {
    struct sg_pool *pool = sg_pool_get(handle);
    if (!pool || pool->is_default)
        return CUDA_ERROR_INVALID_VALUE;
    struct place *places = places_of(pool->props.allocType);
    for (int i = 0; i < PLACES; i++)
        if (places[i].current == pool)
            places[i].current = NULL;
    sg_handle_drop(SG_KIND_POOL, pool->handle);
    pool->destroyed = true;
    /* What remains is given back as soon as it is free. */
    pool->threshold = 0;
    sg_pool_collect(pool);
    return CUDA_SUCCESS;
}

/* ---- Default and current --------------------------------------------------------------------- */

static CUresult default_of(const CUmemLocation *location, CUmemAllocationType type,
                           struct sg_pool **out) {
    struct place *places = places_of(type);
    int place = place_of(location, type);
    if (place < 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!places[place].fallback) {
        CUmemPoolProps props = {.allocType = type, .location = *location};
        CUmemoryPool handle;
        struct sg_pool *pool = sg_pool_new(&props);
        if (!pool || sg_pool_publish(pool, &handle) != CUDA_SUCCESS)
            return CUDA_ERROR_OUT_OF_MEMORY;
        pool->is_default = true;
        places[place].fallback = pool;
    }
    *out = places[place].fallback;
    return CUDA_SUCCESS;
}

static CUresult current_of(const CUmemLocation *location, CUmemAllocationType type,
                           struct sg_pool **out) {
    int place = place_of(location, type);
    struct sg_pool *current = place >= 0 ? places_of(type)[place].current : NULL;
    if (!current)
        return default_of(location, type, out);
    *out = current;
    return CUDA_SUCCESS;
}

static CUresult set_current(const CUmemLocation *location, struct sg_pool *pool) {
    if (!pool || pool->imported)
        return CUDA_ERROR_INVALID_VALUE;
    CUmemAllocationType type = pool->props.allocType;
    int place = place_of(location, type);
    if (place < 0 || place_of(&pool->props.location, type) != place)
        return CUDA_ERROR_INVALID_VALUE;
    places_of(type)[place].current = pool->is_default ? NULL : pool;
    return CUDA_SUCCESS;
}

static CUmemLocation device_location(int device) {
    return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

CUresult sg_pool_current(int device, struct sg_pool **pool) {
    CUmemLocation location = device_location(device);
    return current_of(&location, CU_MEM_ALLOCATION_TYPE_PINNED, pool);
}

typedef CUresult (*lookup)(const CUmemLocation *location, CUmemAllocationType type,
                           struct sg_pool **pool);

static CUresult answer(lookup of, CUmemoryPool *out, const CUmemLocation *location,
                       CUmemAllocationType type) {
    struct sg_pool *pool;
    CUresult result = of(location, type, &pool);
    if (result == CUDA_SUCCESS)
        *out = SG_HANDLE_POINTER(CUmemoryPool, pool->handle);
    return result;
}

static CUresult answer_for_device(lookup of, CUmemoryPool *out, CUdevice dev) {
    CUmemLocation location = device_location(dev);
    return out ? answer(of, out, &location, CU_MEM_ALLOCATION_TYPE_PINNED)
               : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_location(const CUmemLocation *location, CUmemAllocationType type) {
    if (!location)
        return CUDA_ERROR_INVALID_VALUE;
    if (location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
        return CUDA_ERROR_NOT_SUPPORTED;
    bool known = type == CU_MEM_ALLOCATION_TYPE_PINNED || type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult answer_for_location(lookup of, CUmemoryPool *out, const CUmemLocation *location,
                                    CUmemAllocationType type) {
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_location(location, type);
    return result == CUDA_SUCCESS ? answer(of, out, location, type) : result;
}

CUresult sg_cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev) {
    /* On H200 only this one of the three says what is wrong. */
    if (!sg_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    return answer_for_device(default_of, pool_out, dev);
}

CUresult sg_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev) {
    return answer_for_device(current_of, pool, dev);
}

CUresult sg_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool handle) {
    CUmemLocation location = device_location(dev);
    return set_current(&location, sg_pool_get(handle));
}

CUresult sg_cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
                                   CUmemAllocationType type) {
    return answer_for_location(default_of, pool_out, location, type);
}

CUresult sg_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
    return answer_for_location(current_of, pool, location, type);
}

CUresult sg_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type,
                            CUmemoryPool handle) {
    CUresult result = check_location(location, type);
    struct sg_pool *pool = sg_pool_get(handle);
    if (result == CUDA_SUCCESS && pool && pool->props.allocType != type)
        result = CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? set_current(location, pool) : result;
}

void sg_pools_dump_current(struct sg_text *text) {
    for (int i = 0; i < PLACES; i++) {
        if (pinned_places[i].current)
            sg_text_line(text, "place %d: pool %llu is current", i,
                         (unsigned long long)pinned_places[i].current->id);
        if (managed_places[i].current)
            sg_text_line(text, "place %d: managed pool %llu is current", i,
                         (unsigned long long)managed_places[i].current->id);
    }
}
