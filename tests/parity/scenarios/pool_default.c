/* The default pools of each location: who may use what is allocated from them. */
#include "../parity.h"

static void see_attributes(CUdeviceptr p) {
    static const CUpointer_attribute asked[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,         CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,      CU_POINTER_ATTRIBUTE_ACCESS_FLAGS,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER,      CU_POINTER_ATTRIBUTE_HOST_POINTER,
        CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES};
    for (unsigned i = 0; i < COUNT(asked); i++) {
        unsigned long long value = 0;
        par_note("attribute=%d", (int)asked[i]);
        CALL(cuPointerGetAttribute, "default-pool", (&value, asked[i], p));
        bool address = asked[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
                       asked[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER;
        if (par_last() == CUDA_SUCCESS && address)
            par_see("value", "%s", value == p ? "the address" : "another");
        else if (par_last() == CUDA_SUCCESS)
            par_see("value", "%u", (unsigned)value);
    }
}

static void use(CUmemoryPool pool, CUstream stream) {
    CUdeviceptr p, device = par_alloc(4096);
    unsigned char *pinned = par_pinned(4096);
    CALLO(cuMemAllocFromPoolAsync, "default-pool", (&p, 4096, pool, stream), OUT_C(p));
    if (par_last() != CUDA_SUCCESS)
        return;
    SETUP(cuStreamSynchronize, (stream));
    see_attributes(p);
    CALL(cuMemsetD8Async, "default-pool", (p, 0x2c, 4096, stream));
    CALL(cuMemcpyAsync, "to-device", (device, p, 4096, stream));
    CALL(cuMemcpyAsync, "to-pinned", ((CUdeviceptr)(uintptr_t)pinned, p, 4096, stream));
    CALL(cuMemcpyAsync, "from-device", (p, device, 4096, stream));
    CALL(cuMemcpyDtoHAsync_v2, "to-pinned", (pinned, p, 4096, stream));
    CALL(cuMemcpyHtoDAsync_v2, "from-pinned", (p, pinned, 4096, stream));
    CALL(cuStreamSynchronize, "default-pool", (stream));
    par_see("content", "%02x", pinned[9]);
    CALL(cuMemFreeAsync, "default-pool", (p, stream));
    CALL(cuStreamSynchronize, "default-pool", (stream));
}

static void of_location(CUmemLocationType type, int id, CUmemAllocationType kind, bool current) {
    CUmemLocation where = {.type = type, .id = id}, device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool pool;
    CUmemAccess_flags flags;
    int value;
    cuuint64_t wide;
    par_context();
    CUstream stream = par_stream();
    if (current)
        CALLO(cuMemGetMemPool, "default", (&pool, &where, kind), OUT_H(pool));
    else
        CALLO(cuMemGetDefaultMemPool, "default", (&pool, &where, kind), OUT_H(pool));
    if (par_last() != CUDA_SUCCESS)
        return;
    CALLO(cuMemPoolGetAccess, "device", (&flags, pool, &device), OUT_I(flags));
    CALLO(cuMemPoolGetAccess, "own-location", (&flags, pool, &where), OUT_I(flags));
    CALLO(cuMemPoolGetAttribute, "default",
          (pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &value), OUT_I(value));
    CALLO(cuMemPoolGetAttribute, "default", (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &wide),
          OUT_X(wide));
    use(pool, stream);
}

SCENARIO_IS(host, "pool-default/host",
            of_location(CU_MEM_LOCATION_TYPE_HOST, 0, CU_MEM_ALLOCATION_TYPE_PINNED, false));
SCENARIO_IS(host_current, "pool-default/host-current",
            of_location(CU_MEM_LOCATION_TYPE_HOST, 0, CU_MEM_ALLOCATION_TYPE_PINNED, true));
SCENARIO_IS(host_numa, "pool-default/host-numa",
            of_location(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, CU_MEM_ALLOCATION_TYPE_PINNED, false));
SCENARIO_IS(device, "pool-default/device",
            of_location(CU_MEM_LOCATION_TYPE_DEVICE, 0, CU_MEM_ALLOCATION_TYPE_PINNED, false));
SCENARIO_IS(host_managed, "pool-default/host-managed",
            of_location(CU_MEM_LOCATION_TYPE_HOST, 0, CU_MEM_ALLOCATION_TYPE_MANAGED, false));
SCENARIO_IS(host_numa_managed, "pool-default/host-numa-managed",
            of_location(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, CU_MEM_ALLOCATION_TYPE_MANAGED, false));
SCENARIO_IS(device_managed, "pool-default/device-managed",
            of_location(CU_MEM_LOCATION_TYPE_DEVICE, 0, CU_MEM_ALLOCATION_TYPE_MANAGED, true));
SCENARIO_IS(nowhere_managed, "pool-default/nowhere-managed",
            of_location(CU_MEM_LOCATION_TYPE_INVALID, 0, CU_MEM_ALLOCATION_TYPE_MANAGED, true));

/* A pool of the application's own, used by a device that was given nothing. */
SCENARIO(host_created, "pool-default/host-created", par_context) {
    CUstream stream = par_stream();
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location.type = CU_MEM_LOCATION_TYPE_HOST};
    CUmemoryPool pool = par_pool(&props);
    use(pool, stream);
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CALL(cuMemPoolSetAccess, "device", (pool, &access, 1));
    use(pool, stream);
}
