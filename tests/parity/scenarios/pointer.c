/* What the driver says about an address, for addresses of every kind. */
#include "../parity.h"

#include <sys/mman.h>

/* Every attribute has at most this much output. */
typedef union output {
    unsigned char bytes[64];
    uint64_t words[8];
} output;

static void attribute(const char *cls, int a, CUdeviceptr p) {
    output value;
    unsigned small;
    par_note("attribute=%d", a);
    switch (a) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        CALLO(cuPointerGetAttribute, cls, (&value, (CUpointer_attribute)a, p),
              OUT_H(value.words[0]));
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        CALLO(cuPointerGetAttribute, cls, (&value, (CUpointer_attribute)a, p),
              OUT_P(value.words[0]));
        break;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        CALLO(cuPointerGetAttribute, cls, (&value, (CUpointer_attribute)a, p),
              OUT_C(value.words[0]));
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        CALLO(cuPointerGetAttribute, cls, (&value, (CUpointer_attribute)a, p),
              OUT_U(value.words[0]));
        break;
    default: {
        memset(&value, PAR_SENTINEL, sizeof(value));
        CALLO(cuPointerGetAttribute, cls, (&small, (CUpointer_attribute)a, p), OUT_I(small));
        break;
    }
    }
}

static void attributes(const char *cls, CUdeviceptr p) {
    for (int a = 0; a <= 22; a++)
        attribute(cls, a, p);
}

SCENARIO(device_allocation, "pointer/device", par_context) {
    CUdeviceptr a = par_alloc(1000);
    NAME_R(a, 1000);
    attributes("base", a);
    attributes("interior", a + 600);
    SETUP(cuMemFree_v2, (a));
    attributes("freed", a);
}

SCENARIO(one_past_end, "pointer/one-past-end", par_context) {
    CUdeviceptr a = par_alloc(1000);
    NAME_R(a, 1000);
    attributes("one-past-end", a + 1000);
}

SCENARIO(pinned, "pointer/pinned", par_context) {
    void *h = par_pinned(10000);
    NAME_R(h, 10000);
    attributes("base", (CUdeviceptr)(uintptr_t)h);
    attributes("interior", (CUdeviceptr)(uintptr_t)h + 5000);
    SETUP(cuMemFreeHost, (h));
    attributes("freed", (CUdeviceptr)(uintptr_t)h);
}

SCENARIO(pinned_flags, "pointer/pinned-flags", par_context) {
    void *h;
    for (unsigned flags = 0; flags < 8; flags++) {
        SETUP(cuMemHostAlloc, (&h, 4096, flags));
        NAME_R(h, 4096);
        par_see("flags", "%u", flags);
        attribute("host-flags", CU_POINTER_ATTRIBUTE_CONTEXT, (CUdeviceptr)(uintptr_t)h);
        attribute("host-flags", CU_POINTER_ATTRIBUTE_DEVICE_POINTER, (CUdeviceptr)(uintptr_t)h);
        attribute("host-flags", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)h);
        FORGET(h);
    }
}

SCENARIO(registered, "pointer/registered", par_context) {
    char *h = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NAME_R(h, 16384);
    SETUP(cuMemHostRegister_v2, (h + 100, 9000, 0));
    attributes("registered", (CUdeviceptr)(uintptr_t)h + 100);
    attributes("interior", (CUdeviceptr)(uintptr_t)h + 5000);
    attributes("same-page-before", (CUdeviceptr)(uintptr_t)h + 50);
    SETUP(cuMemHostUnregister, (h + 100));
    attributes("unregistered", (CUdeviceptr)(uintptr_t)h + 100);
}

SCENARIO(mapped, "pointer/mapped", par_context) {
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUdeviceptr a = par_reserve(4 * PAR_2M);
    NAME_R(a, 4 * PAR_2M);
    SETUP(cuMemMap, (a, PAR_2M, 0, par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE), 0));
    SETUP(cuMemMap,
          (a + PAR_2M, PAR_2M, 0, par_create(PAR_2M, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), 0));
    attributes("mapped-no-access", a);
    SETUP(cuMemSetAccess, (a, 2 * PAR_2M, &access, 1));
    attributes("mapped", a);
    attributes("interior", a + 5000);
    attributes("mapped-fd", a + PAR_2M);
    attributes("reserved", a + 2 * PAR_2M);
    SETUP(cuMemUnmap, (a, PAR_2M));
    attributes("unmapped", a);
}

SCENARIO(mapped_host, "pointer/mapped-host", par_context) {
    CUmemAllocationProp prop = par_device_prop();
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    CUdeviceptr a = par_reserve(PAR_2M);
    NAME_R(a, PAR_2M);
    CUmemGenericAllocationHandle h = par_create_as(PAR_2M, &prop);
    SETUP(cuMemMap, (a, PAR_2M, 0, h, 0));
    SETUP(cuMemSetAccess, (a, PAR_2M, &access, 1));
    attributes("mapped-host-numa", a);
}

SCENARIO(pool, "pointer/pool", par_context) {
    CUmemoryPool fallback = PAR_MADE(CUmemoryPool, cuDeviceGetDefaultMemPool, 0);
    NAME(fallback);
    CUdeviceptr a = PAR_MADE(CUdeviceptr, cuMemAllocAsync, 10000, NULL);
    NAME_R(a, 10000);
    attributes("pool", a);
    attributes("interior", a + 5000);
    SETUP(cuMemFreeAsync, (a, NULL));
    attributes("freed-not-synchronized", a);
    SETUP(cuCtxSynchronize, ());
    attributes("freed", a);
}

SCENARIO(pool_host, "pointer/pool-host", par_context) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location.type = CU_MEM_LOCATION_TYPE_HOST};
    CUmemoryPool host = par_pool(&props);
    NAME(host);
    CUdeviceptr a = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, 10000, host, NULL);
    NAME_R(a, 10000);
    attributes("host-pool", a);
}

SCENARIO(unknown, "pointer/unknown", par_context) {
    static char global[64];
    char *heap = malloc(64);
    NAME_R(heap, 64);
    NAME_R(global, 64);
    attributes("heap", (CUdeviceptr)(uintptr_t)heap);
    attributes("global", (CUdeviceptr)(uintptr_t)global);
    attributes("null", 0);
    attributes("random", 0x1000);
    attributes("random-high", 0x7123456789000ull);
    CALL(cuPointerGetAttribute, "null-out",
         (NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, par_alloc(64)));
    free(heap);
}

SCENARIO(without_context, "pointer/without-context", par_context) {
    CUdeviceptr a = par_alloc(1000);
    NAME_R(a, 1000);
    SETUP(cuCtxSetCurrent, (NULL));
    attributes("no-context", a);
    attributes("no-context-null", 0);
}

SCENARIO(managed, "pointer/managed", par_context) {
    CUdeviceptr a = par_managed(10000);
    NAME_R(a, 10000);
    attributes("managed", a);
}

static void several_at(const char *cls, CUdeviceptr p) {
    CUpointer_attribute which[4] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_CONTEXT,
                                    CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    unsigned type;
    CUcontext ctx;
    size_t size;
    int ordinal;
    void *data[4] = {&type, &ctx, &size, &ordinal};
    CALLO(cuPointerGetAttributes, cls, (4, which, data, p), OUT_U(type), OUT_H(ctx), OUT_U(size),
          OUT_I(ordinal));
}

SCENARIO(several, "pointer/several", par_context) {
    int on_stack, n;
    void *data[1] = {&n};
    CUpointer_attribute bad[1] = {(CUpointer_attribute)999};
    CUpointer_attribute good[1] = {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    CUdeviceptr a = par_alloc(1000);
    CUdeviceptr r = par_reserve(PAR_2M);
    several_at("device", a);
    several_at("plain-host", (CUdeviceptr)(uintptr_t)&on_stack);
    several_at("pinned", (CUdeviceptr)(uintptr_t)par_pinned(4096));
    several_at("reserved", r);
    several_at("null", 0);
    SETUP(cuMemFree_v2, (a));
    several_at("freed", a);
    CALLO(cuPointerGetAttributes, "bad-attribute", (1, bad, data, r), OUT_I(n));
    CALLO(cuPointerGetAttributes, "zero-count", (0, good, data, r), OUT_I(n));
    CALLO(cuPointerGetAttributes, "null-attributes", (1, NULL, data, r), OUT_I(n));
    CALLO(cuPointerGetAttributes, "null-data", (1, good, NULL, r), OUT_I(n));
}

SCENARIO(set_attribute, "pointer/set", par_context) {
    unsigned flag, got;
    uint64_t word = 1;
    CUdeviceptr a = par_alloc(1000);
    for (unsigned v = 0; v <= 2; v++) {
        flag = v;
        par_note("value=%u", v);
        CALL(cuPointerSetAttribute, "sync-memops", (&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a));
        CALLO(cuPointerGetAttribute, "after-set", (&got, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a),
              OUT_U(got));
    }
    for (int attr = 0; attr <= 22; attr++) {
        if (attr != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
            par_note("attribute=%d", attr);
            CALL(cuPointerSetAttribute, "read-only", (&word, (CUpointer_attribute)attr, a));
        }
    }
    flag = 1;
    CALL(cuPointerSetAttribute, "interior", (&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a + 512));
    CALL(cuPointerSetAttribute, "null-value", (NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a));
    CALL(cuPointerSetAttribute, "null", (&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 0));
    CALL(cuPointerSetAttribute, "pinned",
         (&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)(uintptr_t)par_pinned(4096)));
    CALL(cuPointerSetAttribute, "mapped",
         (&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, par_mapped(PAR_2M)));
    SETUP(cuMemFree_v2, (a));
    CALL(cuPointerSetAttribute, "freed", (&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a));
}

SCENARIO(buffer_ids, "pointer/buffer-ids", par_context) {
    unsigned long long first, second, again;
    CUdeviceptr a = par_alloc(1000);
    CUdeviceptr b = par_alloc(1000);
    SETUP(cuPointerGetAttribute, (&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, a));
    SETUP(cuPointerGetAttribute, (&second, CU_POINTER_ATTRIBUTE_BUFFER_ID, b));
    par_see("neighbours", first == second ? "same-id" : second > first ? "rising" : "falling");
    SETUP(cuPointerGetAttribute, (&again, CU_POINTER_ATTRIBUTE_BUFFER_ID, a + 100));
    par_see("interior", again == first ? "same-id" : "other-id");
    SETUP(cuMemFree_v2, (a));
    a = par_alloc(1000);
    SETUP(cuPointerGetAttribute, (&again, CU_POINTER_ATTRIBUTE_BUFFER_ID, a));
    par_see("allocated-again", again == first ? "same-id" : "other-id");
}
