/* Memory pools and stream-ordered allocation. */
#include "world.h"

static void got_pool(CUmemoryPool pool) {
    remember(POOLS, (uintptr_t)pool);
}

static void pool_create(void) {
    CUmemoryPool made = NULL;
    unsigned pick = byte();
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = draw_location()};
    if (pick & 1)
        props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (pick & 2)
        props.maxSize = draw_size();
    if (pick >= 0xf0) {
        props.allocType = (CUmemAllocationType)byte();
        props.handleTypes = (CUmemAllocationHandleType)byte();
        props.usage = byte();
        props.reserved[byte() % sizeof props.reserved] = byte();
    }
    cuMemPoolCreate(maybe(&made), maybe(&props));
    got_pool(made);
}

static void pool_destroy(void) {
    cuMemPoolDestroy(POOL());
}

static void pool_trim(void) {
    cuMemPoolTrimTo(POOL(), draw_size());
}

static void pool_get(void) {
    _Alignas(8) unsigned char value[64];
    cuMemPoolGetAttribute(POOL(), (CUmemPool_attribute)(byte() % 14), maybe(value));
}

static void pool_set(void) {
    uint64_t value[8] = {byte() & 1 ? draw_size() : byte() & 1u};
    cuMemPoolSetAttribute(POOL(), (CUmemPool_attribute)(byte() % 14), maybe(value));
}

static void pool_access(void) {
    CUmemAccessDesc access[2];
    CUmemLocation location = draw_location();
    CUmemAccess_flags flags;
    for (unsigned i = 0; i < 2; i++)
        access[i] = (CUmemAccessDesc){.location = draw_location(),
                                      .flags = (CUmemAccess_flags)(byte() & 3)};
    if (byte() & 1)
        cuMemPoolSetAccess(POOL(), maybe(access), byte() % 3);
    else
        cuMemPoolGetAccess(maybe(&flags), POOL(), maybe(&location));
}

static void pool_current(void) {
    CUmemoryPool pool = NULL;
    CUmemLocation location = draw_location();
    switch (byte() % 6) {
    case 0:
        cuDeviceGetDefaultMemPool(maybe(&pool), draw_device());
        break;
    case 1:
        cuDeviceGetMemPool(maybe(&pool), draw_device());
        break;
    case 2:
        cuDeviceSetMemPool(draw_device(), POOL());
        break;
    case 3:
        cuMemGetDefaultMemPool(maybe(&pool), maybe(&location), CU_MEM_ALLOCATION_TYPE_PINNED);
        break;
    case 4:
        cuMemGetMemPool(maybe(&pool), maybe(&location), (CUmemAllocationType)(byte() & 3));
        break;
    default:
        cuMemSetMemPool(maybe(&location), CU_MEM_ALLOCATION_TYPE_PINNED, POOL());
        break;
    }
    got_pool(pool);
}

static void alloc_async(void) {
    CUdeviceptr made = 0;
    cuMemAllocAsync(maybe(&made), draw_size(), STREAM());
    remember(ADDRESSES, made);
}

static void alloc_from_pool(void) {
    CUdeviceptr made = 0;
    cuMemAllocFromPoolAsync(maybe(&made), draw_size(), POOL(), STREAM());
    remember(ADDRESSES, made);
}

static void free_async(void) {
    cuMemFreeAsync(draw_any_address(), STREAM());
}

static const call_fn list[] = {
    pool_create,  pool_destroy, pool_trim,       pool_get,   pool_set,   pool_access,
    pool_current, alloc_async,  alloc_from_pool, free_async, free_async,
};
const struct calls pool_calls = {list, sizeof list / sizeof list[0]};
