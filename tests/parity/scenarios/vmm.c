/* Virtual memory: granularity, reserving, creating, mapping, releasing. */
#include "../parity.h"

SCENARIO(granularity, "vmm/granularity", par_init) {
    static const int location_types[] = {1, 2, 3, 4, 0, 5};
    static const int handle_types[] = {0, 1, 8, 2, 4, 9, 16};
    size_t granularity;
    for (size_t l = 0; l < COUNT(location_types); l++) {
        for (size_t h = 0; h < COUNT(handle_types); h++) {
            for (int option = 0; option <= 1; option++) {
                CUmemAllocationProp prop = par_device_prop();
                prop.location.type = (CUmemLocationType)location_types[l];
                prop.requestedHandleTypes = (CUmemAllocationHandleType)handle_types[h];
                par_note("location=%d handles=%d option=%d", location_types[l], handle_types[h],
                         option);
                CALLO(cuMemGetAllocationGranularity, "location-handle",
                      (&granularity, &prop, (CUmemAllocationGranularity_flags)option),
                      OUT_U(granularity));
            }
        }
    }
}

SCENARIO(granularity_bad, "vmm/granularity-bad", par_init) {
    size_t granularity;
    CUmemAllocationProp prop = par_device_prop();
    CALL(cuMemGetAllocationGranularity, "null-out",
         (NULL, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CALLO(cuMemGetAllocationGranularity, "null-prop",
          (&granularity, NULL, CU_MEM_ALLOC_GRANULARITY_MINIMUM), OUT_U(granularity));
#define BAD_GRANULARITY(cls, change, option)                                                       \
    do {                                                                                           \
        prop = par_device_prop();                                                                  \
        change;                                                                                    \
        CALLO(cuMemGetAllocationGranularity, cls,                                                  \
              (&granularity, &prop, (CUmemAllocationGranularity_flags)(option)),                   \
              OUT_U(granularity));                                                                 \
    } while (0)
    BAD_GRANULARITY("bad-option", (void)0, 2);
    BAD_GRANULARITY("bad-option", (void)0, -1);
    BAD_GRANULARITY("bad-device", prop.location.id = 99, 0);
    BAD_GRANULARITY("bad-device", prop.location.id = -1, 0);
    BAD_GRANULARITY("type-zero", prop.type = (CUmemAllocationType)0, 0);
    BAD_GRANULARITY("type-managed", prop.type = CU_MEM_ALLOCATION_TYPE_MANAGED, 0);
    BAD_GRANULARITY("type-bad", prop.type = (CUmemAllocationType)7, 0);
    BAD_GRANULARITY("compression", prop.allocFlags.compressionType = 1, 0);
    BAD_GRANULARITY("compression-bad", prop.allocFlags.compressionType = 2, 0);
    BAD_GRANULARITY("rdma", prop.allocFlags.gpuDirectRDMACapable = 1, 0);
    BAD_GRANULARITY("rdma-bad", prop.allocFlags.gpuDirectRDMACapable = 2, 0);
    BAD_GRANULARITY("usage-tile-pool", prop.allocFlags.usage = 1, 0);
    BAD_GRANULARITY("usage-decompress", prop.allocFlags.usage = 2, 0);
    BAD_GRANULARITY("usage-bad", prop.allocFlags.usage = 0x80, 0);
    BAD_GRANULARITY("reserved-set", prop.allocFlags.reserved[0] = 1, 0);
    BAD_GRANULARITY("win32-set", prop.win32HandleMetaData = &prop, 0);
}

SCENARIO(granularity_before_context, "vmm/granularity-before-init") {
    size_t granularity;
    CUmemAllocationProp prop = par_device_prop();
    CALLO(cuMemGetAllocationGranularity, "not-initialized",
          (&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM), OUT_U(granularity));
}

static void reserve_one(const char *cls, size_t size, size_t alignment, CUdeviceptr hint,
                        unsigned long long flags) {
    CUdeviceptr p;
    par_note("size=%zu alignment=%zu hint=%s flags=%llu", size, alignment, hint != 0 ? "set" : "0",
             flags);
    CALLO(cuMemAddressReserve, cls, (&p, size, alignment, hint, flags), OUT_P(p));
    if (par_last() == CUDA_SUCCESS) {
        par_note("size=%zu alignment=%zu", size, alignment);
        CALL(cuMemAddressFree, "reserved", (p, size));
        FORGET(p);
    }
}

SCENARIO(reserve_sizes, "vmm/reserve-sizes", par_init) {
    static const size_t sizes[] = {0,
                                   1,
                                   4096,
                                   65536,
                                   PAR_2M - 1,
                                   PAR_2M,
                                   PAR_2M + 4096,
                                   3 * PAR_2M,
                                   (size_t)1 << 30,
                                   (size_t)1 << 40,
                                   (size_t)1 << 44,
                                   (size_t)1 << 46,
                                   (size_t)1 << 48,
                                   ~(size_t)0,
                                   (size_t)1 << 63};
    static const size_t alignments[] = {1,
                                        2,
                                        3,
                                        4096,
                                        65536,
                                        PAR_2M,
                                        2 * PAR_2M,
                                        3 * PAR_2M,
                                        (size_t)1 << 30,
                                        (size_t)1 << 40,
                                        (size_t)1 << 50,
                                        (size_t)1 << 63};
    for (size_t i = 0; i < COUNT(sizes); i++)
        reserve_one("size", sizes[i], 0, 0, 0);
    for (size_t i = 0; i < COUNT(alignments); i++)
        reserve_one("alignment", PAR_2M, alignments[i], 0, 0);
    for (unsigned long long flags = 1; flags <= 4; flags *= 2)
        reserve_one("flags", PAR_2M, 0, 0, flags);
    reserve_one("flags", PAR_2M, 0, 0, ~0ull);
}

SCENARIO(reserve_hints, "vmm/reserve-hints", par_init) {
    CUdeviceptr a, b;
    CALL(cuMemAddressReserve, "null-out", (NULL, PAR_2M, 0, 0, 0));
    CALLO(cuMemAddressReserve, "ok", (&a, 8 * PAR_2M, 0, 0, 0), OUT_R(a, 8 * PAR_2M));
    CALLO(cuMemAddressReserve, "hint-taken", (&b, PAR_2M, 0, a, 0), OUT_P(b));
    par_see("hint-taken", b == a ? "honoured" : "elsewhere");
    CALL(cuMemAddressFree, "ok", (b, PAR_2M));
    SETUP(cuMemAddressFree, (a, 8 * PAR_2M));
    CALLO(cuMemAddressReserve, "hint-free", (&b, 4 * PAR_2M, 0, a, 0), OUT_P(b));
    par_see("hint-free", b == a ? "honoured" : "elsewhere");
    SETUP(cuMemAddressFree, (b, 4 * PAR_2M));
    CALLO(cuMemAddressReserve, "hint-interior", (&b, 4 * PAR_2M, 0, a + PAR_2M, 0), OUT_P(b));
    par_see("hint-interior", b == a + PAR_2M ? "honoured" : "elsewhere");
    SETUP(cuMemAddressFree, (b, 4 * PAR_2M));
    CALLO(cuMemAddressReserve, "hint-unaligned", (&b, PAR_2M, 0, a + 4096, 0), OUT_C(b));
    CALLO(cuMemAddressReserve, "hint-low", (&b, PAR_2M, 0, 4096, 0), OUT_C(b));
    CALLO(cuMemAddressReserve, "hint-kernel", (&b, PAR_2M, 0, 0xffff800000000000ull, 0), OUT_C(b));
}

/* Growing in place: is the address behind a reservation given when it is asked for? */
SCENARIO(reserve_behind, "vmm/reserve-behind", par_init) {
    CUdeviceptr a, b;
    SETUP(cuMemAddressReserve, (&a, 8 * PAR_2M, 0, 0, 0));
    SETUP(cuMemAddressFree, (a, 8 * PAR_2M));
    NAME_R(a, 8 * PAR_2M);
    CALLO(cuMemAddressReserve, "first-half", (&b, 4 * PAR_2M, 0, a, 0), OUT_P(b));
    CALLO(cuMemAddressReserve, "behind-it", (&b, 4 * PAR_2M, 0, a + 4 * PAR_2M, 0), OUT_P(b));
    par_see("behind-it", b == a + 4 * PAR_2M ? "honoured" : "elsewhere");
    CALL(cuMemAddressFree, "both-at-once", (a, 8 * PAR_2M));
}

SCENARIO(address_free, "vmm/address-free", par_context) {
    CUdeviceptr a = par_reserve(4 * PAR_2M);
    CALL(cuMemAddressFree, "size-too-small", (a, PAR_2M));
    CALL(cuMemAddressFree, "size-too-large", (a, 8 * PAR_2M));
    CALL(cuMemAddressFree, "size-zero", (a, 0));
    CALL(cuMemAddressFree, "interior", (a + PAR_2M, 3 * PAR_2M));
    CALL(cuMemAddressFree, "null", (0, PAR_2M));
    CALL(cuMemAddressFree, "null-zero", (0, 0));
    CALL(cuMemAddressFree, "random", (0x10000000, PAR_2M));
    CALL(cuMemAddressFree, "ok", (a, 4 * PAR_2M));
    CALL(cuMemAddressFree, "twice", (a, 4 * PAR_2M));
    CUdeviceptr m = par_mapped(PAR_2M);
    CALL(cuMemAddressFree, "mapped", (m, PAR_2M));
    CALL(cuMemUnmap, "after-refused-free", (m, PAR_2M));
    CALL(cuMemAddressFree, "unmapped", (m, PAR_2M));
    CALL(cuMemAddressFree, "allocation", (par_alloc(PAR_2M), PAR_2M));
}

static void create_one(const char *cls, const CUmemAllocationProp *prop, size_t size,
                       unsigned long long flags) {
    CUmemGenericAllocationHandle handle;
    CALLO(cuMemCreate, cls, (&handle, size, prop, flags), OUT_H(handle));
    if (par_last() == CUDA_SUCCESS) {
        SETUP(cuMemRelease, (handle));
        FORGET(handle);
    }
}

SCENARIO(create_sizes, "vmm/create-sizes", par_context) {
    static const size_t sizes[] = {0,
                                   1,
                                   4096,
                                   65536,
                                   PAR_2M - 1,
                                   PAR_2M,
                                   PAR_2M + 1,
                                   3 * PAR_2M,
                                   (size_t)64 << 20,
                                   (size_t)1 << 40,
                                   (size_t)1 << 48,
                                   ~(size_t)0};
    CUmemAllocationProp prop = par_device_prop();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        par_note("size=%zu", sizes[i]);
        create_one("size", &prop, sizes[i], 0);
    }
    CALL(cuMemCreate, "null-out", (NULL, PAR_2M, &prop, 0));
    create_one("null-prop", NULL, PAR_2M, 0);
    create_one("bad-flags", &prop, PAR_2M, 1);
    create_one("bad-flags", &prop, PAR_2M, ~0ull);
}

SCENARIO(create_props, "vmm/create-props", par_context) {
    static const int handle_types[] = {0, 1, 2, 4, 8, 3, 9, 16, -1};
    CUmemAllocationProp prop;
    for (size_t h = 0; h < COUNT(handle_types); h++) {
        prop = par_device_prop();
        prop.requestedHandleTypes = (CUmemAllocationHandleType)handle_types[h];
        par_note("handles=%d", handle_types[h]);
        create_one("handle-type", &prop, PAR_2M, 0);
    }
#define CREATE(cls, change)                                                                        \
    do {                                                                                           \
        prop = par_device_prop();                                                                  \
        change;                                                                                    \
        create_one(cls, &prop, PAR_2M, 0);                                                         \
    } while (0)
    CREATE("type-zero", prop.type = (CUmemAllocationType)0);
    CREATE("type-managed", prop.type = CU_MEM_ALLOCATION_TYPE_MANAGED);
    CREATE("type-bad", prop.type = (CUmemAllocationType)7);
    CREATE("bad-device", prop.location.id = 99);
    CREATE("bad-device", prop.location.id = -1);
    CREATE("location-zero", prop.location.type = (CUmemLocationType)0);
    CREATE("location-bad", prop.location.type = (CUmemLocationType)9);
    CREATE("compression", prop.allocFlags.compressionType = 1);
    CREATE("compression-bad", prop.allocFlags.compressionType = 2);
    CREATE("rdma", prop.allocFlags.gpuDirectRDMACapable = 1);
    CREATE("rdma-two", prop.allocFlags.gpuDirectRDMACapable = 2);
    CREATE("usage-tile-pool", prop.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL);
    CREATE("usage-decompress", prop.allocFlags.usage = CU_MEM_CREATE_USAGE_HW_DECOMPRESS);
    CREATE("usage-bad", prop.allocFlags.usage = 0x80);
    CREATE("reserved-set", prop.allocFlags.reserved[0] = 1);
    CREATE("win32-set", prop.win32HandleMetaData = &prop);
}

SCENARIO(create_host, "vmm/create-host", par_context) {
    static const int types[] = {CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA,
                                CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT};
    static const int handles[] = {0, 1, 8};
    static const int ids[] = {0, 1, 99, -1};
    for (size_t t = 0; t < 3; t++) {
        for (size_t h = 0; h < 3; h++) {
            for (size_t i = 0; i < 4; i++) {
                CUmemAllocationProp prop = par_device_prop();
                prop.location.type = (CUmemLocationType)types[t];
                prop.location.id = ids[i];
                prop.requestedHandleTypes = (CUmemAllocationHandleType)handles[h];
                par_note("location=%d id=%d handles=%d", types[t], ids[i], handles[h]);
                create_one("host-location", &prop, PAR_2M, 0);
            }
        }
    }
}

SCENARIO(create_without_context, "vmm/create-without-context", par_init) {
    CUmemAllocationProp prop = par_device_prop();
    create_one("no-context", &prop, PAR_2M, 0);
}

SCENARIO(releases, "vmm/releases", par_context) {
    CUmemGenericAllocationHandle h = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
    CALL(cuMemRelease, "ok", (h));
    CALL(cuMemRelease, "twice", (h));
    CALL(cuMemRelease, "zero", (0));
    CALL(cuMemRelease, "random", (0x12345));
    CALL(cuMemRelease, "random-high", (0x7123456789abcdefull));
}

SCENARIO(release_mapped, "vmm/release-mapped", par_context) {
    CUmemGenericAllocationHandle h, again;
    CUmemAllocationProp prop;
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUdeviceptr a = par_reserve(PAR_2M);
    CUdeviceptr b = par_reserve(PAR_2M);
    h = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
    NAME(h);
    CALL(cuMemMap, "ok", (a, PAR_2M, 0, h, 0));
    CALL(cuMemRelease, "mapped", (h));
    CALL(cuMemSetAccess, "released", (a, PAR_2M, &access, 1));
    CALL(cuMemsetD8_v2, "released", (a, 1, PAR_2M));
    CALL(cuMemMap, "released-handle", (b, PAR_2M, 0, h, 0));
    CALLO(cuMemGetAllocationPropertiesFromHandle, "released-handle", (&prop, h), OUT_I(prop.type));
    CALLO(cuMemRetainAllocationHandle, "released-mapped", (&again, (void *)(uintptr_t)a),
          OUT_H(again));
    CALL(cuMemMap, "retained-handle", (b, PAR_2M, 0, again, 0));
    CALL(cuMemRelease, "retained", (again));
    CALL(cuMemRelease, "once-more", (again));
    CALL(cuMemUnmap, "ok", (a, PAR_2M));
    CALL(cuMemRelease, "after-unmap", (h));
}

SCENARIO(retains, "vmm/retains", par_context) {
    CUmemGenericAllocationHandle h, r;
    CUdeviceptr a = par_reserve(2 * PAR_2M);
    h = par_create(2 * PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
    NAME(h);
    SETUP(cuMemMap, (a, 2 * PAR_2M, 0, h, 0));
    CUdeviceptr reserved = par_reserve(PAR_2M);
    CUdeviceptr plain = par_alloc(PAR_2M);
    CALLO(cuMemRetainAllocationHandle, "base", (&r, (void *)(uintptr_t)a), OUT_H(r));
    CALLO(cuMemRetainAllocationHandle, "interior", (&r, (void *)(uintptr_t)(a + PAR_2M + 5)),
          OUT_H(r));
    CALLO(cuMemRetainAllocationHandle, "reserved", (&r, (void *)(uintptr_t)reserved), OUT_H(r));
    CALLO(cuMemRetainAllocationHandle, "allocation", (&r, (void *)(uintptr_t)plain), OUT_H(r));
    CALLO(cuMemRetainAllocationHandle, "null", (&r, NULL), OUT_H(r));
    CALLO(cuMemRetainAllocationHandle, "host", (&r, &h), OUT_H(r));
    CALL(cuMemRetainAllocationHandle, "null-out", (NULL, (void *)(uintptr_t)a));
    CALL(cuMemRelease, "first", (h));
    CALL(cuMemRelease, "second", (h));
    CALL(cuMemRelease, "third", (h));
    CALL(cuMemRelease, "fourth", (h));
    SETUP(cuMemUnmap, (a, 2 * PAR_2M));
    CALLO(cuMemRetainAllocationHandle, "unmapped", (&r, (void *)(uintptr_t)a), OUT_H(r));
}

static void show_properties(const char *cls, CUmemGenericAllocationHandle h) {
    CUmemAllocationProp prop;
    CALLO(cuMemGetAllocationPropertiesFromHandle, cls, (&prop, h), OUT_I(prop.type),
          OUT_I(prop.requestedHandleTypes), OUT_I(prop.location.type), OUT_I(prop.location.id),
          OUT_C(prop.win32HandleMetaData), OUT_U(prop.allocFlags.compressionType),
          OUT_U(prop.allocFlags.gpuDirectRDMACapable), OUT_U(prop.allocFlags.usage),
          OUT_C(prop.allocFlags.reserved));
}

SCENARIO(properties, "vmm/properties", par_context) {
    CUmemAllocationProp prop = par_device_prop();
    show_properties("device", par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE));
    show_properties("device-fd", par_create(PAR_2M, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    prop.allocFlags.gpuDirectRDMACapable = 1;
    CUmemGenericAllocationHandle h = par_create_as(PAR_2M, &prop);
    show_properties("device-rdma", h);
    CALL(cuMemGetAllocationPropertiesFromHandle, "null-out", (NULL, h));
    show_properties("zero-handle", 0);
    show_properties("random-handle", 0x12345);
    prop = par_device_prop();
    prop.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
    SETUP(cuMemCreate, (&h, PAR_2M, &prop, 0));
    show_properties("device-compressed", h);
    prop = par_device_prop();
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    SETUP(cuMemCreate, (&h, PAR_2M, &prop, 0));
    show_properties("host-numa", h);
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
    SETUP(cuMemCreate, (&h, PAR_2M, &prop, 0));
    show_properties("host", h);
}

SCENARIO(map_bad, "vmm/map-bad", par_context) {
    CUdeviceptr a = par_reserve(4 * PAR_2M);
    CUmemGenericAllocationHandle h = par_create(2 * PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
    CALL(cuMemMap, "zero-size", (a, 0, 0, h, 0));
    CALL(cuMemMap, "size-unaligned", (a, 4096, 0, h, 0));
    CALL(cuMemMap, "size-over-handle", (a, 4 * PAR_2M, 0, h, 0));
    CALL(cuMemMap, "address-unaligned", (a + 4096, PAR_2M, 0, h, 0));
    CALL(cuMemMap, "offset-set", (a, PAR_2M, PAR_2M, h, 0));
    CALL(cuMemUnmap, "after-offset", (a, PAR_2M));
    CALL(cuMemMap, "offset-unaligned", (a, PAR_2M, 4096, h, 0));
    CALL(cuMemMap, "offset-past-end", (a, PAR_2M, 2 * PAR_2M, h, 0));
    CALL(cuMemMap, "offset-and-size-past-end", (a, 2 * PAR_2M, PAR_2M, h, 0));
    CALL(cuMemMap, "part-of-handle", (a, PAR_2M, 0, h, 0));
    CALL(cuMemUnmap, "after-part", (a, PAR_2M));
    CALL(cuMemMap, "bad-flags", (a, 2 * PAR_2M, 0, h, 1));
    CALL(cuMemMap, "zero-handle", (a, PAR_2M, 0, 0, 0));
    CALL(cuMemMap, "random-handle", (a, PAR_2M, 0, 0x12345, 0));
    CALL(cuMemMap, "null", (0, 2 * PAR_2M, 0, h, 0));
    CALL(cuMemMap, "not-reserved", (0x10000000, 2 * PAR_2M, 0, h, 0));
    CALL(cuMemMap, "past-reservation", (a + 3 * PAR_2M, 2 * PAR_2M, 0, h, 0));
    CALL(cuMemMap, "ok", (a, 2 * PAR_2M, 0, h, 0));
    CALL(cuMemMap, "twice", (a, 2 * PAR_2M, 0, h, 0));
    CALL(cuMemMap, "overlapping", (a + PAR_2M, 2 * PAR_2M, 0, h, 0));
    CALL(cuMemMap, "same-handle-elsewhere", (a + 2 * PAR_2M, 2 * PAR_2M, 0, h, 0));
    CALL(cuMemMap, "allocation", (par_alloc(2 * PAR_2M), 2 * PAR_2M, 0, h, 0));
}

SCENARIO(map_across_reservations, "vmm/map-across-reservations", par_context) {
    CUdeviceptr a, b, c;
    a = par_reserve(4 * PAR_2M);
    SETUP(cuMemAddressFree, (a, 4 * PAR_2M));
    SETUP(cuMemAddressReserve, (&b, 2 * PAR_2M, 0, a, 0));
    SETUP(cuMemAddressReserve, (&c, 2 * PAR_2M, 0, a + 2 * PAR_2M, 0));
    par_see("adjacent", c == b + 2 * PAR_2M ? "yes" : "no");
    CUmemGenericAllocationHandle h = par_create(2 * PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
    CALL(cuMemMap, "across-reservations", (b + PAR_2M, 2 * PAR_2M, 0, h, 0));
}

SCENARIO(unmaps, "vmm/unmaps", par_context) {
    CUdeviceptr a = par_reserve(8 * PAR_2M);
    CUmemGenericAllocationHandle h = par_create(4 * PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
    CUmemGenericAllocationHandle k = par_create(2 * PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
    SETUP(cuMemMap, (a, 4 * PAR_2M, 0, h, 0));
    SETUP(cuMemMap, (a + 4 * PAR_2M, 2 * PAR_2M, 0, k, 0));
    CALL(cuMemUnmap, "first-part-of-mapping", (a, PAR_2M));
    CALL(cuMemUnmap, "last-part-of-mapping", (a + 3 * PAR_2M, PAR_2M));
    CALL(cuMemUnmap, "half-of-two-mappings", (a + 2 * PAR_2M, 4 * PAR_2M));
    CALL(cuMemUnmap, "zero-size", (a, 0));
    CALL(cuMemUnmap, "address-unaligned", (a + 4096, 4 * PAR_2M));
    CALL(cuMemUnmap, "size-unaligned", (a, 4 * PAR_2M + 4096));
    CALL(cuMemUnmap, "null", (0, PAR_2M));
    CALL(cuMemUnmap, "not-reserved", (0x10000000, PAR_2M));
    CALL(cuMemUnmap, "past-reservation", (a, 16 * PAR_2M));
    CALL(cuMemUnmap, "two-mappings-and-hole", (a, 8 * PAR_2M));
    CALL(cuMemUnmap, "twice", (a, 4 * PAR_2M));
    CALL(cuMemUnmap, "never-mapped", (a + 6 * PAR_2M, 2 * PAR_2M));
    CALL(cuMemMap, "after-unmap", (a + 2 * PAR_2M, 4 * PAR_2M, 0, h, 0));
    CALL(cuMemUnmap, "starts-in-hole", (a, 6 * PAR_2M));
    CALL(cuMemUnmap, "allocation", (par_alloc(PAR_2M), PAR_2M));
    SETUP(cuMemAddressFree, (a, 8 * PAR_2M));
    CALL(cuMemUnmap, "freed-reservation", (a, 4 * PAR_2M));
}

/* When is the memory given back? */
SCENARIO(charges, "vmm/charges", par_context, PAR_ALONE) {
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    par_free_mark();
    CUdeviceptr a = par_reserve((size_t)256 << 20);
    par_free_delta("reserve");
    CUmemGenericAllocationHandle h = par_create((size_t)64 << 20, CU_MEM_HANDLE_TYPE_NONE);
    par_free_delta("create");
    SETUP(cuMemMap, (a, (size_t)64 << 20, 0, h, 0));
    par_free_delta("map");
    SETUP(cuMemSetAccess, (a, (size_t)64 << 20, &access, 1));
    par_free_delta("set-access");
    SETUP(cuMemRelease, (h));
    par_free_delta("release-mapped");
    SETUP(cuMemUnmap, (a, (size_t)64 << 20));
    par_free_delta("unmap-released");
    SETUP(cuMemAddressFree, (a, (size_t)256 << 20));
    par_free_delta("address-free");
}
