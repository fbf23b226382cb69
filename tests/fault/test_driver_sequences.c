/*
 * Sweeps over bare driver sequences, written as a careful program writes them: what a call has
 * handed out is given back also when the call reports an error, for it may report an earlier one.
 * They show that softgpu can be swept, and what a refused call leaves behind: nothing.
 */
#include "driver_calls.h"

BEFORE(open_softgpu) {
    sweep_with(soft);
}

static void sweep_all(const char *name, int (*act)(void *), void (*recover)(void *),
                      void (*undo)(void *), void *user) {
    sweep_run(
        &(struct sweep){.name = name, .act = act, .recover = recover, .undo = undo, .user = user});
}

/* ---- Virtual memory -------------------------------------------------------------------------- */

struct region {
    CUdeviceptr address;
    CUmemGenericAllocationHandle memory;
    size_t size;
    bool mapped;
};

/* What has been given back is forgotten. */
static int give_back(struct region *region) {
    int result = (int)cu.cuMemUnmap(region->address, region->size);
    if (result)
        return result;
    region->mapped = false;
    result = (int)cu.cuMemRelease(region->memory);
    if (result)
        return result;
    region->memory = 0;
    result = (int)cu.cuMemAddressFree(region->address, region->size);
    if (!result)
        region->address = 0;
    return result;
}

static int map_region(void *user) {
    struct region *region = user;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemAccessDesc access = {.location = prop.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    *region = (struct region){.size = 4 * MIB};
    int result = (int)cu.cuMemAddressReserve(&region->address, region->size, 0, 0, 0);
    if (!result)
        result = (int)cu.cuMemCreate(&region->memory, region->size, &prop, 0);
    if (!result) {
        result = (int)cu.cuMemMap(region->address, region->size, 0, region->memory, 0);
        region->mapped = true;
    }
    if (!result)
        result = (int)cu.cuMemSetAccess(region->address, region->size, &access, 1);
    return result;
}

/* A call that took effect and reported an error is made again here, and refused: no harm. */
static void end_region(void *user) {
    struct region *region = user;
    if (region->mapped)
        cu.cuMemUnmap(region->address, region->size);
    if (region->memory)
        cu.cuMemRelease(region->memory);
    if (region->address)
        cu.cuMemAddressFree(region->address, region->size);
    *region = (struct region){.size = 0};
}

static int map_and_give_back(void *user) {
    struct region *region = user;
    int result = map_region(user);
    return result ? result : give_back(region);
}

static void nothing(void *user) {
}

TEST(a_refused_mapping_leaks_nothing) {
    struct region region = {.size = 0};
    sweep_all("reserve, create, map, access", map_region, end_region, end_region, &region);
}

TEST(mapping_and_unmapping_leak_nothing) {
    struct region region = {.size = 0};
    sweep_all("reserve to free", map_and_give_back, end_region, nothing, &region);
}

/* ---- Pools ----------------------------------------------------------------------------------- */

struct pooled {
    CUmemoryPool pool;
    CUstream stream;
    CUdeviceptr memory;
};

static int use_pool(void *user) {
    struct pooled *p = user;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    uint64_t keep = UINT64_MAX;
    *p = (struct pooled){.pool = NULL};
    int result = (int)cu.cuMemPoolCreate(&p->pool, &props);
    if (!result)
        result = (int)cu.cuMemPoolSetAttribute(p->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
    if (!result)
        result = (int)cu.cuStreamCreate(&p->stream, CU_STREAM_NON_BLOCKING);
    if (!result)
        result = (int)cu.cuMemAllocFromPoolAsync(&p->memory, 3 * MIB, p->pool, p->stream);
    if (!result)
        result = (int)cu.cuMemsetD8Async(p->memory, 1, 3 * MIB, p->stream);
    if (!result)
        result = (int)cu.cuStreamSynchronize(p->stream);
    return result;
}

static void end_pool(void *user) {
    struct pooled *p = user;
    if (p->memory)
        cu.cuMemFreeAsync(p->memory, p->stream);
    if (p->stream) {
        cu.cuStreamSynchronize(p->stream);
        cu.cuStreamDestroy_v2(p->stream);
    }
    if (p->pool)
        cu.cuMemPoolDestroy(p->pool);
}

TEST(refused_pool_calls_leak_nothing) {
    struct pooled pooled = {.pool = NULL};
    sweep_all("pool", use_pool, end_pool, end_pool, &pooled);
}

/* ---- Contexts -------------------------------------------------------------------------------- */

struct places {
    CUcontext made;
    CUdeviceptr memory;
    void *pinned;
    CUevent event;
};

static int use_context(void *user) {
    struct places *p = user;
    *p = (struct places){.made = NULL};
    int result = (int)cu.cuCtxCreate_v2(&p->made, 0, 0);
    if (!result)
        result = (int)cu.cuMemAlloc_v2(&p->memory, MIB);
    if (!result)
        result = (int)cu.cuMemHostAlloc(&p->pinned, 65536, CU_MEMHOSTALLOC_PORTABLE);
    if (!result)
        result = (int)cu.cuEventCreate(&p->event, CU_EVENT_DISABLE_TIMING);
    if (!result)
        result = (int)cu.cuEventRecord(p->event, NULL);
    return result;
}

/* Its memory and events go with it. */
static void end_context(void *user) {
    struct places *p = user;
    if (p->made)
        cu.cuCtxDestroy_v2(p->made);
    cu.cuCtxSetCurrent(context);
}

TEST(refused_context_calls_leak_nothing) {
    struct places places = {.made = NULL};
    sweep_all("context", use_context, end_context, end_context, &places);
}

static int end(void **state) {
    CUresult result = cu.cuDevicePrimaryCtxRelease_v2(0);
    gpumem_driver_close(driver);
    return result == CUDA_SUCCESS ? 0 : -1;
}

ALL_TESTS(before, end);
