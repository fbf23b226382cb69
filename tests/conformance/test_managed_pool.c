/* Pools of managed memory. */
#include "harness.h"

#define SIZE ((size_t)100000)

#define NEEDS_POOLS()                                                                              \
    do {                                                                                           \
        NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);                            \
        if (!gpumem_driver_has(driver, GPUMEM_FN_cuMemGetMemPool))                                 \
            SKIP("the driver is older than 13.0");                                                 \
    } while (0)

static CUmemPoolProps props_of(CUmemLocationType type, int id) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED};
    props.location.type = type;
    props.location.id = id;
    return props;
}

TEST_WHERE(the_cpu_reads_and_writes_memory_of_a_managed_pool, NEEDS_POOLS()) {
    CUmemPoolProps props = props_of(CU_MEM_LOCATION_TYPE_DEVICE, dev);
    CUmemoryPool told = NULL;
    unsigned char plain[8];
    int where = 77;
    CUstream s = new_stream();
    CUmemoryPool pool = new_pool(&props);
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAllocFromPoolAsync, SIZE, pool, s);
    OK_CU(cu.cuStreamSynchronize(s));
    unsigned managed = MADE_CU(unsigned, cuPointerGetAttribute, CU_POINTER_ATTRIBUTE_IS_MANAGED, p);
    assert_int_equal(managed, 1);
    OK_CU(cu.cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    assert_ptr_equal(told, pool);
    unsigned char *bytes = (unsigned char *)(uintptr_t)p;
    fill_pattern(bytes, SIZE, 3);
    OK_CU(cu.cuMemcpyDtoH_v2(plain, p + SIZE - 8, 8));
    assert_memory_equal(plain, bytes + SIZE - 8, 8);
    set_bytes(p, 5, SIZE);
    assert_int_equal(bytes[SIZE - 1], 5);
    OK_CU(cu.cuMemRangeGetAttribute(&where, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, SIZE));
    assert_int_equal(where, dev);
    OK_CU(cu.cuMemPrefetchAsync(p, SIZE, CU_DEVICE_CPU, s));
    OK_CU(cu.cuMemRangeGetAttribute(&where, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p,
                                    SIZE));
    assert_int_equal(where, CU_DEVICE_CPU);
    FAILS_CU(NOT_SUPPORTED, cu.cuMemAdvise(p, SIZE, CU_MEM_ADVISE_SET_READ_MOSTLY, dev));
    FAILS_CU(INVALID_VALUE, cu.cuStreamAttachMemAsync(s, p, 0, CU_MEM_ATTACH_SINGLE));
    OK_CU(cu.cuMemFreeAsync(p, s));
    OK_CU(cu.cuStreamSynchronize(s));
}

TEST_WHERE(each_allocation_type_has_its_own_current_pool, NEEDS_POOLS()) {
    const CUmemAllocationType kind = CU_MEM_ALLOCATION_TYPE_MANAGED;
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUmemPoolProps props = props_of(CU_MEM_LOCATION_TYPE_DEVICE, dev);
    CUmemoryPool usual, got, pinned, after;
    here.id = dev;
    CUmemoryPool pool = new_pool(&props);
    OK_CU(cu.cuMemGetDefaultMemPool(&usual, &here, kind));
    OK_CU(cu.cuMemGetMemPool(&pinned, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_not_equal(usual, pinned);
    OK_CU(cu.cuMemSetMemPool(&here, kind, pool));
    OK_CU(cu.cuMemGetMemPool(&got, &here, kind));
    assert_ptr_equal(got, pool);
    OK_CU(cu.cuMemGetMemPool(&after, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(after, pinned);
    FAILS_CU(INVALID_VALUE, cu.cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
    FAILS_CU(INVALID_VALUE, cu.cuMemSetMemPool(&here, kind, pinned));
    OK_CU(cu.cuMemSetMemPool(&here, kind, usual));
}

TEST_WHERE(invalid_managed_pools_are_refused, NEEDS_POOLS()) {
    CUmemoryPool pool;
    CUmemPoolProps props = props_of(CU_MEM_LOCATION_TYPE_DEVICE, 99);
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolCreate(&pool, &props));
    props = props_of((CUmemLocationType)9, 0);
    FAILS_CU(NOT_SUPPORTED, cu.cuMemPoolCreate(&pool, &props));
    props = props_of(CU_MEM_LOCATION_TYPE_DEVICE, dev);
    props.maxSize = SIZE;
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolCreate(&pool, &props));
    props.maxSize = 0;
    props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolCreate(&pool, &props));
    static const CUmemLocationType places[] = {CU_MEM_LOCATION_TYPE_NONE, CU_MEM_LOCATION_TYPE_HOST,
                                               CU_MEM_LOCATION_TYPE_HOST_NUMA,
                                               CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT};
    for (size_t i = 0; i < COUNT(places); i++) {
        props = props_of(places[i], 0);
        OK_CU(cu.cuMemPoolCreate(&pool, &props));
        OK_CU(cu.cuMemPoolDestroy(pool));
    }
}

TEST_WHERE(access_to_a_managed_pool_is_reported_as_advice, NEEDS_POOLS()) {
    CUmemPoolProps props = props_of(CU_MEM_LOCATION_TYPE_HOST, 0);
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    int list[2] = {77, 77};
    access.location = device_location(99);
    CUmemoryPool pool = new_pool(&props);
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAllocFromPoolAsync, SIZE, pool, NULL);
    FAILS_CU(INVALID_DEVICE, cu.cuMemPoolSetAccess(pool, &access, 1));
    access.location.id = dev;
    OK_CU(cu.cuMemPoolSetAccess(pool, &access, 1));
    OK_CU(cu.cuMemRangeGetAttribute(list, 8, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, SIZE));
    assert_int_equal(list[0], dev);
    assert_int_equal(list[1], CU_DEVICE_INVALID);
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    OK_CU(cu.cuMemPoolSetAccess(pool, &access, 1));
    OK_CU(cu.cuMemRangeGetAttribute(list, 8, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, SIZE));
    assert_int_equal(list[0], CU_DEVICE_INVALID);
    OK_CU(cu.cuMemFreeAsync(p, NULL));
    OK_CU(cu.cuCtxSynchronize());
}
