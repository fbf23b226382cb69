/* Memory pools: creating, attributes, access, which pool is current. */
#include "../parity.h"

static CUmemPoolProps device_props(void) {
    return (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
}

static void create_one(const char *cls, const CUmemPoolProps *props) {
    CUmemoryPool pool;
    CALLO(cuMemPoolCreate, cls, (&pool, props), OUT_H(pool));
    if (par_last() == CUDA_SUCCESS) {
        CALL(cuMemPoolDestroy, "fresh", (pool));
        FORGET(pool);
    }
}

SCENARIO(creates, "pool/creates", par_context) {
    static const int handle_types[] = {0, 1, 2, 4, 8, 3, 9, 16};
    CUmemPoolProps props = device_props();
    CALL(cuMemPoolCreate, "null-out", (NULL, &props));
    create_one("null-props", NULL);
    for (size_t h = 0; h < COUNT(handle_types); h++) {
        props = device_props();
        props.handleTypes = (CUmemAllocationHandleType)handle_types[h];
        par_note("handles=%d", handle_types[h]);
        create_one("handle-type", &props);
    }
#define CREATE(cls, change)                                                                        \
    do {                                                                                           \
        props = device_props();                                                                    \
        change;                                                                                    \
        create_one(cls, &props);                                                                   \
    } while (0)
    CREATE("type-zero", props.allocType = (CUmemAllocationType)0);
    CREATE("type-bad", props.allocType = (CUmemAllocationType)7);
    CREATE("bad-device", props.location.id = 99);
    CREATE("bad-device", props.location.id = -1);
    CREATE("location-zero", props.location.type = (CUmemLocationType)0);
    CREATE("location-bad", props.location.type = (CUmemLocationType)9);
    CREATE("max-size-small", props.maxSize = 1);
    CREATE("max-size", props.maxSize = (size_t)64 << 20);
    CREATE("max-size-huge", props.maxSize = (size_t)1 << 50);
    CREATE("usage-decompress", props.usage = CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS);
    CREATE("usage-bad", props.usage = 0x80);
    CREATE("reserved-set", props.reserved[0] = 1);
    CREATE("win32-set", props.win32SecurityAttributes = &props);
}

SCENARIO(create_managed, "pool/create-managed", par_context) {
    CUmemPoolProps props = device_props();
    props.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    create_one("type-managed", &props);
}

SCENARIO(creates_host, "pool/creates-host", par_context) {
    static const int types[] = {CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA,
                                CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT};
    static const int ids[] = {0, 1, -1};
    for (size_t t = 0; t < 3; t++) {
        for (int handles = 0; handles <= 1; handles++) {
            for (size_t i = 0; i < 3; i++) {
                CUmemPoolProps props = device_props();
                props.location.type = (CUmemLocationType)types[t];
                props.location.id = ids[i];
                props.handleTypes = (CUmemAllocationHandleType)handles;
                par_note("location=%d id=%d handles=%d", types[t], ids[i], handles);
                create_one("host-location", &props);
            }
        }
    }
}

SCENARIO(create_without_context, "pool/create-without-context", par_init) {
    CUmemPoolProps props = device_props();
    uint64_t value;
    create_one("no-context", &props);
    CUmemoryPool pool = PAR_MADE(CUmemoryPool, cuDeviceGetDefaultMemPool, 0);
    CALLO(cuMemPoolGetAttribute, "no-context", (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value),
          OUT_U(value));
    CALL(cuMemPoolTrimTo, "no-context", (pool, 0));
}

static void show_attribute(const char *cls, CUmemoryPool pool, int attribute) {
    uint64_t value;
    int small;
    par_note("%d", attribute);
    if (attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
        CALLO(cuMemPoolGetAttribute, cls, (pool, (CUmemPool_attribute)attribute, &small),
              OUT_I(small));
    else
        CALLO(cuMemPoolGetAttribute, cls, (pool, (CUmemPool_attribute)attribute, &value),
              OUT_U(value));
}

static void set_attribute(const char *cls, CUmemoryPool pool, int attribute, uint64_t value) {
    par_note("%d value=%llu", attribute, (unsigned long long)value);
    CALL(cuMemPoolSetAttribute, cls, (pool, (CUmemPool_attribute)attribute, &value));
    show_attribute("after-set", pool, attribute);
}

static void attributes_of(CUmemoryPool pool) {
    for (int a = -1; a <= 14; a++)
        show_attribute(a >= 1 && a <= 8 ? "attribute" : "bad-attribute", pool, a);
    for (int a = 1; a <= 3; a++) {
        set_attribute("zero", pool, a, 0);
        set_attribute("one", pool, a, 1);
        set_attribute("other", pool, a, 7);
    }
    set_attribute("threshold", pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0);
    set_attribute("threshold", pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 1234567);
    set_attribute("threshold", pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, ~0ull);
    for (int a = 5; a <= 8; a++) {
        set_attribute("zero", pool, a, 0);
        set_attribute("non-zero", pool, a, 4096);
    }
    set_attribute("bad-attribute", pool, 0, 0);
    set_attribute("bad-attribute", pool, 9, 0);
}

SCENARIO(attributes_default, "pool/attributes-default", par_context) {
    CUmemoryPool pool = PAR_MADE(CUmemoryPool, cuDeviceGetDefaultMemPool, 0);
    attributes_of(pool);
}

SCENARIO(attributes_created, "pool/attributes-created", par_context) {
    CUmemPoolProps props = device_props();
    props.maxSize = (size_t)64 << 20;
    CUmemoryPool pool = par_pool(&props);
    attributes_of(pool);
}

SCENARIO(attributes_host, "pool/attributes-host", par_context) {
    CUmemPoolProps props = device_props();
    props.location.type = CU_MEM_LOCATION_TYPE_HOST;
    CUmemoryPool pool = par_pool(&props);
    attributes_of(pool);
}

SCENARIO(attribute_null, "pool/attribute-null", par_context) {
    uint64_t value = 0;
    CUmemoryPool pool = PAR_MADE(CUmemoryPool, cuDeviceGetDefaultMemPool, 0);
    CALLO(cuMemPoolGetAttribute, "null-pool", (NULL, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value),
          OUT_U(value));
    CALL(cuMemPoolGetAttribute, "null-out", (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL));
    CALL(cuMemPoolSetAttribute, "null-pool", (NULL, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    CALL(cuMemPoolSetAttribute, "null-value", (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL));
    CALL(cuMemPoolTrimTo, "null-pool", (NULL, 0));
    CALL(cuMemPoolDestroy, "null-pool", (NULL));
}

SCENARIO(random_pool, "pool/random-pool", par_context) {
    static uint64_t words[512];
    uint64_t value;
    CALLO(cuMemPoolGetAttribute, "foreign-pointer",
          ((CUmemoryPool)(void *)words, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value), OUT_U(value));
}

SCENARIO(destroyed_pool, "pool/destroyed-attribute", par_context) {
    CUmemPoolProps props = device_props();
    uint64_t value;
    CUmemoryPool pool = par_pool(&props);
    SETUP(cuMemPoolDestroy, (pool));
    CALLO(cuMemPoolGetAttribute, "stale-handle", (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value),
          OUT_U(value));
}

SCENARIO(destroyed_pool_destroy, "pool/destroyed-destroy", par_context) {
    CUmemPoolProps props = device_props();
    CUmemoryPool pool = par_pool(&props);
    CALL(cuMemPoolDestroy, "ok", (pool));
    CALL(cuMemPoolDestroy, "stale-handle", (pool));
}

SCENARIO(destroyed_pool_alloc, "pool/destroyed-alloc", par_context) {
    CUmemPoolProps props = device_props();
    CUdeviceptr p;
    CUmemoryPool pool = par_pool(&props);
    SETUP(cuMemPoolDestroy, (pool));
    CALLO(cuMemAllocFromPoolAsync, "stale-handle", (&p, 4096, pool, NULL), OUT_P(p));
}

static void show_access(const char *cls, CUmemoryPool pool, int type, int id) {
    CUmemLocation location = {(CUmemLocationType)type, id};
    CUmemAccess_flags flags;
    par_note("location=%d id=%d", type, id);
    CALLO(cuMemPoolGetAccess, cls, (&flags, pool, &location), OUT_I(flags));
}

static void accesses_of(CUmemoryPool pool) {
    CUmemAccessDesc d;
    CUmemLocation where = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemAccess_flags flags;
    show_access("device", pool, 1, 0);
    show_access("bad-device", pool, 1, 99);
    show_access("host", pool, 2, 0);
    show_access("host-numa", pool, 3, 0);
    show_access("host-numa-current", pool, 4, 0);
    show_access("location-zero", pool, 0, 0);
    CALL(cuMemPoolGetAccess, "null-out", (NULL, pool, &where));
    CALLO(cuMemPoolGetAccess, "null-pool", (&flags, NULL, &where), OUT_I(flags));
    CALLO(cuMemPoolGetAccess, "null-location", (&flags, pool, NULL), OUT_I(flags));
#define ACCESS(cls, loc, dev, prot)                                                                \
    do {                                                                                           \
        d = (CUmemAccessDesc){{(CUmemLocationType)(loc), (dev)}, (CUmemAccess_flags)(prot)};       \
        CALL(cuMemPoolSetAccess, cls, (pool, &d, 1));                                              \
        show_access("after-set", pool, (loc), (dev));                                              \
    } while (0)
    ACCESS("read-write", 1, 0, 3);
    ACCESS("read-only", 1, 0, 1);
    ACCESS("none", 1, 0, 0);
    ACCESS("bad-flags", 1, 0, 2);
    ACCESS("bad-flags", 1, 0, 7);
    ACCESS("bad-device", 1, 99, 3);
    ACCESS("host", 2, 0, 3);
    ACCESS("host-numa", 3, 0, 3);
    ACCESS("location-zero", 0, 0, 3);
    CALL(cuMemPoolSetAccess, "null-map", (pool, NULL, 1));
    CALL(cuMemPoolSetAccess, "zero-count", (pool, &d, 0));
    CALL(cuMemPoolSetAccess, "zero-count-null", (pool, NULL, 0));
    CALL(cuMemPoolSetAccess, "null-pool", (NULL, &d, 1));
}

SCENARIO(access_default, "pool/access-default", par_context) {
    CUmemoryPool pool = PAR_MADE(CUmemoryPool, cuDeviceGetDefaultMemPool, 0);
    accesses_of(pool);
}

SCENARIO(access_host, "pool/access-host", par_context) {
    CUmemPoolProps props = device_props();
    props.location.type = CU_MEM_LOCATION_TYPE_HOST;
    CUmemoryPool pool = par_pool(&props);
    accesses_of(pool);
}

SCENARIO(access_host_numa, "pool/access-host-numa", par_context) {
    CUmemPoolProps props = device_props();
    props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    CUmemoryPool pool = par_pool(&props);
    accesses_of(pool);
}

SCENARIO(current, "pool/current", par_context) {
    CUmemPoolProps props = device_props();
    CUmemoryPool fallback, pool, got;
    CUdeviceptr p;
    CALLO(cuDeviceGetDefaultMemPool, "ok", (&fallback, 0), OUT_H(fallback));
    CALLO(cuDeviceGetMemPool, "first", (&got, 0), OUT_H(got));
    CALL(cuMemPoolDestroy, "default-pool", (fallback));
    CALLO(cuMemPoolCreate, "ok", (&pool, &props), OUT_H(pool));
    CALL(cuDeviceSetMemPool, "ok", (0, pool));
    CALLO(cuDeviceGetMemPool, "after-set", (&got, 0), OUT_H(got));
    CALLO(cuMemAllocAsync, "from-current", (&p, 4096, NULL), OUT_P(p));
    CALLO(cuPointerGetAttribute, "pool-of-pointer", (&got, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p),
          OUT_H(got));
    SETUP(cuMemFreeAsync, (p, NULL));
    CALL(cuMemPoolDestroy, "current-pool", (pool));
    CALLO(cuDeviceGetMemPool, "after-destroy", (&got, 0), OUT_H(got));
    props.location.type = CU_MEM_LOCATION_TYPE_HOST;
    SETUP(cuMemPoolCreate, (&pool, &props));
    CALL(cuDeviceSetMemPool, "host-pool", (0, pool));
}

SCENARIO(of_location, "pool/of-location", par_context) {
    static const int types[] = {1, 2, 3, 4, 0};
    CUmemoryPool pool, got;
    for (size_t t = 0; t < COUNT(types); t++) {
        for (int kind = 0; kind <= 2; kind++) {
            CUmemLocation location = {(CUmemLocationType)types[t], 0};
            par_note("location=%d type=%d", types[t], kind);
            CALLO(cuMemGetDefaultMemPool, "location", (&pool, &location, (CUmemAllocationType)kind),
                  OUT_H(pool));
            par_note("location=%d type=%d", types[t], kind);
            CALLO(cuMemGetMemPool, "location", (&got, &location, (CUmemAllocationType)kind),
                  OUT_H(got));
        }
    }
    CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CALL(cuMemGetDefaultMemPool, "null-out", (NULL, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
    CALLO(cuMemGetDefaultMemPool, "null-location", (&pool, NULL, CU_MEM_ALLOCATION_TYPE_PINNED),
          OUT_H(pool));
    CALL(cuMemSetMemPool, "null-pool", (&device, CU_MEM_ALLOCATION_TYPE_PINNED, NULL));
    SETUP(cuDeviceGetDefaultMemPool, (&pool, 0));
    CALL(cuMemSetMemPool, "ok", (&device, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
}
