/* Advice on managed memory and what is read back of it; address ranges of all kinds of memory. */
#include "../parity.h"

#include <sys/mman.h>

#define PAGE ((size_t)4096)

static const CUmemLocation locations[] = {
    {CU_MEM_LOCATION_TYPE_DEVICE, 0},
    {CU_MEM_LOCATION_TYPE_DEVICE, 99},
    {CU_MEM_LOCATION_TYPE_DEVICE, -1},
    {CU_MEM_LOCATION_TYPE_DEVICE, -2},
    {CU_MEM_LOCATION_TYPE_HOST, 0},
    {CU_MEM_LOCATION_TYPE_HOST, 7},
    {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0},
    {CU_MEM_LOCATION_TYPE_HOST_NUMA, 99},
    {CU_MEM_LOCATION_TYPE_HOST_NUMA, -1},
    {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0},
    {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 5},
    {CU_MEM_LOCATION_TYPE_INVALID, 0},
    {(CUmemLocationType)9, 0},
};
#define LOCATIONS (COUNT(locations))

static CUdeviceptr managed(size_t size) {
    return PAR_MADE(CUdeviceptr, cuMemAllocManaged, size, CU_MEM_ATTACH_GLOBAL);
}

/* All attributes of a range, in one line for each. */
static void all_of(const char *cls, CUdeviceptr p, size_t size) {
    int n, list[3];
    for (int a = 1; a <= 8; a++) {
        par_note("attribute=%d", a);
        if (a == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
            CALLO(cuMemRangeGetAttribute, cls, (list, 12, (CUmem_range_attribute)a, p, size),
                  OUT_I(list[0]), OUT_I(list[1]), OUT_I(list[2]));
        else
            CALLO(cuMemRangeGetAttribute, cls, (&n, 4, (CUmem_range_attribute)a, p, size),
                  OUT_I(n));
    }
}

/* ---- Advice ---------------------------------------------------------------------------------- */

static void read_back(CUdeviceptr m, int advice) {
    int n, list[3];
    switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        CALLO(cuMemRangeGetAttribute, "advised",
              (&n, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, 65536), OUT_I(n));
        break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        CALLO(cuMemRangeGetAttribute, "advised",
              (list, 12, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, m, 65536), OUT_I(list[0]),
              OUT_I(list[1]), OUT_I(list[2]));
        break;
    default:
        CALLO(cuMemRangeGetAttribute, "advised",
              (&n, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, m, 65536), OUT_I(n));
        CALLO(cuMemRangeGetAttribute, "advised",
              (&n, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, m, 65536), OUT_I(n));
        CALLO(cuMemRangeGetAttribute, "advised",
              (&n, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, m, 65536), OUT_I(n));
    }
}

SCENARIO(advise, "range/advise", par_context) {
    static const CUdevice devices[] = {0, 1, 99, -1, -2, -3};
    CUdeviceptr m = managed(65536);
    all_of("fresh", m, 65536);
    for (int advice = 0; advice <= 7; advice++) {
        for (size_t i = 0; i < COUNT(devices); i++) {
            par_note("advice=%d device=%d", advice, devices[i]);
            CALL(cuMemAdvise, "managed", (m, 65536, (CUmem_advise)advice, devices[i]));
            if (par_last() == CUDA_SUCCESS)
                read_back(m, advice);
        }
    }
}

SCENARIO(advise_v2, "range/advise-v2", par_context) {
    CUdeviceptr m = managed(65536);
    for (int advice = 0; advice <= 7; advice++) {
        for (size_t i = 0; i < LOCATIONS; i++) {
            par_note("advice=%d location=%d id=%d", advice, (int)locations[i].type,
                     locations[i].id);
            CALL(cuMemAdvise_v2, "managed", (m, 65536, (CUmem_advise)advice, locations[i]));
            if (par_last() == CUDA_SUCCESS)
                read_back(m, advice);
        }
    }
}

SCENARIO(advise_together, "range/advise-together", par_context) {
    CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    CUmemLocation node = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    int list[3];
    CUdeviceptr m = managed(65536);
    CALL(cuMemAdvise, "read-mostly", (m, 65536, CU_MEM_ADVISE_SET_READ_MOSTLY, -1));
    CALL(cuMemAdvise_v2, "preferred", (m, 65536, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
    CALL(cuMemAdvise_v2, "accessed-by", (m, 65536, CU_MEM_ADVISE_SET_ACCESSED_BY, host));
    CALL(cuMemAdvise_v2, "accessed-by", (m, 65536, CU_MEM_ADVISE_SET_ACCESSED_BY, device));
    all_of("all", m, 65536);
    for (size_t room = 4; room <= 12; room += 4) {
        par_note("room=%d", (int)room);
        CALLO(cuMemRangeGetAttribute, "accessed-by",
              (list, room, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, m, 65536), OUT_I(list[0]),
              OUT_I(list[1]), OUT_I(list[2]));
    }
    CALL(cuMemAdvise_v2, "preferred", (m, 65536, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, node));
    all_of("node", m, 65536);
    CALL(cuMemAdvise_v2, "unset", (m, 65536, CU_MEM_ADVISE_UNSET_ACCESSED_BY, device));
    CALL(cuMemAdvise_v2, "unset", (m, 65536, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, device));
    CALL(cuMemAdvise_v2, "unset", (m, 65536, CU_MEM_ADVISE_UNSET_READ_MOSTLY, device));
    all_of("unset", m, 65536);
}

SCENARIO(advise_bounds, "range/advise-bounds", par_context) {
    CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUdeviceptr m = managed(16 * PAGE + 100);
    CUdeviceptr n = managed(16 * PAGE);
    CUdeviceptr f = managed(8192);
    SETUP(cuMemFree_v2, (f));
    CALL(cuMemAdvise, "zero-size", (m, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CALL(cuMemAdvise, "null", (0, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CALL(cuMemAdvise, "one-byte", (m, 1, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CALL(cuMemAdvise, "unaligned", (m + 5, 100, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CALL(cuMemAdvise, "to-the-end", (m + PAGE, 15 * PAGE + 100, 1, 0));
    CALL(cuMemAdvise, "one-past-end", (m, 16 * PAGE + 101, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CALL(cuMemAdvise, "to-page-end", (m, 17 * PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CALL(cuMemAdvise, "one-page-past", (m, 18 * PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CALL(cuMemAdvise, "to-mapping-end", (m, PAR_2M, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CALL(cuMemAdvise, "past-mapping", (m, 3 * PAR_2M, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CALL(cuMemAdvise, "huge", (m, ~(size_t)0, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CALL(cuMemAdvise, "behind-end", (m + 16 * PAGE + 200, 8, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CALL(cuMemAdvise_v2, "zero-size", (m, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    CALL(cuMemAdvise_v2, "null", (0, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    CALL(cuMemAdvise_v2, "one-past-end", (m, 16 * PAGE + 101, 1, device));
    CALL(cuMemAdvise_v2, "past-mapping", (m, 3 * PAR_2M, 1, device));
    CALL(cuMemAdvise, "freed", (f, 8192, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CALL(cuMemAdvise, "zero-size-bad-device", (m, 0, CU_MEM_ADVISE_SET_ACCESSED_BY, 99));
    CALL(cuMemAdvise, "bad-advice-bad-device", (m, 4096, (CUmem_advise)99, 99));
    CALL(cuMemAdvise, "null-bad-device", (0, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, 99));
    par_see("neighbours", "%d", n > m);
    CALL(cuMemAdvise, "both", (m < n ? m : n, m < n ? n - m + PAGE : m - n + PAGE, 1, 0));
}

SCENARIO(advise_kinds, "range/advise-kinds", par_context) {
    CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    static char global[8192];
    char *heap = malloc(8192);
    char *registered = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CUdeviceptr pooled = PAR_MADE(CUdeviceptr, cuMemAllocAsync, 8192, NULL);
    SETUP(cuMemHostRegister_v2, (registered, 8192, 0));
    struct {
        const char *cls;
        CUdeviceptr at;
    } kinds[] = {
        {"device", par_alloc(8192)},
        {"pinned", (CUdeviceptr)(uintptr_t)par_pinned(8192)},
        {"registered", (CUdeviceptr)(uintptr_t)registered},
        {"heap", (CUdeviceptr)(uintptr_t)heap},
        {"global", (CUdeviceptr)(uintptr_t)global},
        {"pool", pooled},
        {"mapped", par_mapped(PAR_2M)},
        {"reserved", par_reserve(PAR_2M)},
        {"random", 0x1000},
    };
    for (size_t i = 0; i < COUNT(kinds); i++) {
        CUdeviceptr p = kinds[i].at;
        int n;
        CALL(cuMemAdvise, kinds[i].cls, (p, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
        CALL(cuMemAdvise, kinds[i].cls, (p, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, -1));
        CALL(cuMemAdvise, kinds[i].cls, (p, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0));
        CALL(cuMemAdvise_v2, kinds[i].cls, (p, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, device));
        CALL(cuMemAdvise_v2, kinds[i].cls, (p, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, host));
        CALLO(cuMemRangeGetAttribute, kinds[i].cls,
              (&n, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, 4096), OUT_I(n));
        CALL(cuMemPrefetchAsync, kinds[i].cls, (p, 4096, 0, NULL));
        CALL(cuMemPrefetchAsync, kinds[i].cls, (p, 4096, -1, NULL));
        CALL(cuMemPrefetchAsync_v2, kinds[i].cls, (p, 4096, host, 0, NULL));
    }
    free(heap);
}

SCENARIO(advise_parts, "range/advise-parts", par_context) {
    CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    CUdeviceptr m = managed(16 * PAGE);
    CALL(cuMemAdvise, "two-pages", (m + 4 * PAGE, 2 * PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    all_of("whole", m, 16 * PAGE);
    all_of("advised", m + 4 * PAGE, 2 * PAGE);
    all_of("bytes-of-advised", m + 4 * PAGE + 10, 20);
    all_of("one-more", m + 4 * PAGE, 3 * PAGE);
    all_of("before", m, 4 * PAGE);
    CALL(cuMemAdvise, "part-of-page", (m + 8 * PAGE + 10, PAGE, 1, 0));
    all_of("page-of-part", m + 8 * PAGE, PAGE);
    all_of("next-page-of-part", m + 9 * PAGE, PAGE);
    all_of("third-page-of-part", m + 10 * PAGE, PAGE);
    CALL(cuMemAdvise, "unset-one", (m + 5 * PAGE, PAGE, CU_MEM_ADVISE_UNSET_READ_MOSTLY, 0));
    all_of("left", m + 4 * PAGE, PAGE);
    all_of("unset", m + 5 * PAGE, PAGE);
    CALL(cuMemAdvise, "preferred", (m, 8 * PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0));
    CALL(cuMemAdvise, "preferred", (m + 8 * PAGE, 8 * PAGE, 3, -1));
    all_of("two-preferred", m, 16 * PAGE);
    all_of("first-preferred", m, 8 * PAGE);
    all_of("second-preferred", m + 8 * PAGE, 8 * PAGE);
    CALL(cuMemAdvise, "accessed-by", (m, 8 * PAGE, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
    CALL(cuMemAdvise_v2, "accessed-by", (m + 4 * PAGE, 8 * PAGE, 5, host));
    all_of("both-accessed", m + 4 * PAGE, 4 * PAGE);
    all_of("neither-accessed", m, 16 * PAGE);
    CALL(cuMemPrefetchAsync, "part", (m, 8 * PAGE, 0, NULL));
    CALL(cuMemPrefetchAsync, "part", (m + 8 * PAGE, 4 * PAGE, -1, NULL));
    SETUP(cuCtxSynchronize, ());
    all_of("two-prefetched", m, 12 * PAGE);
    all_of("first-prefetched", m, 8 * PAGE);
    all_of("second-prefetched", m + 8 * PAGE, 4 * PAGE);
    all_of("not-prefetched", m + 12 * PAGE, 4 * PAGE);
}

/* ---- Reading back ---------------------------------------------------------------------------- */

SCENARIO(get_sizes, "range/get-sizes", par_context) {
    int list[5];
    CUdeviceptr m = managed(65536);
    SETUP(cuMemAdvise, (m, 65536, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
    for (int a = 0; a <= 10; a++) {
        static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 8, 12, 16};
        for (size_t i = 0; i < COUNT(sizes); i++) {
            par_note("attribute=%d size=%d", a, (int)sizes[i]);
            CALLO(cuMemRangeGetAttribute, "size",
                  (list, sizes[i], (CUmem_range_attribute)a, m, 65536), OUT_I(list[0]),
                  OUT_I(list[1]), OUT_I(list[4]));
        }
    }
}

SCENARIO(get_bounds, "range/get-bounds", par_context) {
    int n;
    CUdeviceptr m = managed(16 * PAGE + 100);
    CUdeviceptr f = managed(8192);
    SETUP(cuMemFree_v2, (f));
#define GET(cls, p, size)                                                                          \
    CALLO(cuMemRangeGetAttribute, cls, (&n, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, size),       \
          OUT_I(n))
    GET("zero-size", m, 0);
    GET("one-byte", m, 1);
    GET("unaligned", m + 5000, 1);
    GET("whole", m, 16 * PAGE + 100);
    GET("one-past-end", m, 16 * PAGE + 101);
    GET("to-page-end", m, 17 * PAGE);
    GET("one-page-past", m, 18 * PAGE);
    GET("to-mapping-end", m, PAR_2M);
    GET("past-mapping", m, 3 * PAR_2M);
    GET("behind-end", m + 16 * PAGE + 100, 8);
    GET("huge", m, ~(size_t)0);
    GET("null", (CUdeviceptr)0, PAGE);
    GET("freed", f, PAGE);
    CALL(cuMemRangeGetAttribute, "null-out", (NULL, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, 1));
}

SCENARIO(get_many, "range/get-many", par_context) {
    CUmem_range_attribute which[3] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                      CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
                                      CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY};
    CUmem_range_attribute bad[3] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, (CUmem_range_attribute)99,
                                    CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY};
    size_t sizes[3] = {4, 4, 8}, wrong[3] = {4, 8, 8}, zero[3] = {4, 4, 0};
    int mostly, preferred, accessed[2];
    void *data[3] = {&mostly, &preferred, accessed}, *holes[3] = {&mostly, NULL, accessed};
    CUdeviceptr m = managed(65536);
    SETUP(cuMemAdvise, (m, 65536, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    SETUP(cuMemAdvise, (m, 65536, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0));
    SETUP(cuMemAdvise, (m, 65536, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
#define MANY(cls, args)                                                                            \
    CALLO(cuMemRangeGetAttributes, cls, args, OUT_I(mostly), OUT_I(preferred), OUT_I(accessed[0]), \
          OUT_I(accessed[1]))
    MANY("ok", (data, sizes, which, 3, m, 65536));
    MANY("part", (data, sizes, which, 2, m, 100));
    MANY("zero-count", (data, sizes, which, 0, m, 65536));
    MANY("bad-attribute", (data, sizes, bad, 3, m, 65536));
    MANY("bad-size", (data, wrong, which, 3, m, 65536));
    MANY("zero-data-size", (data, zero, which, 3, m, 65536));
    MANY("null-data-entry", (holes, sizes, which, 3, m, 65536));
    MANY("null-data", (NULL, sizes, which, 3, m, 65536));
    MANY("null-sizes", (data, NULL, which, 3, m, 65536));
    MANY("null-attributes", (data, sizes, NULL, 3, m, 65536));
    MANY("zero-size", (data, sizes, which, 3, m, 0));
    MANY("past-end", (data, sizes, which, 3, m, 3 * PAR_2M));
    MANY("device-memory", (data, sizes, which, 3, par_alloc(65536), 65536));
    MANY("null", (data, sizes, which, 3, 0, 65536));
}

/* ---- Address ranges of other kinds ----------------------------------------------------------- */

static void dma_buf(const char *cls, CUdeviceptr p, size_t size) {
    int fd;
    CALLO(cuMemGetHandleForAddressRange, cls, (&fd, p, size, 1, 0), OUT_D(fd));
}

SCENARIO(address_kinds, "range/address-kinds", par_context) {
    char *heap = malloc(8192);
    char *registered = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CUdeviceptr pooled, host_pooled, two;
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location.type = CU_MEM_LOCATION_TYPE_HOST};
    CUmemoryPool pool = par_pool(&props);
    SETUP(cuMemAllocFromPoolAsync, (&host_pooled, 65536, pool, NULL));
    SETUP(cuMemAllocAsync, (&pooled, 65536, NULL));
    SETUP(cuMemHostRegister_v2, (registered, 8192, 0));
    two = par_reserve(4 * PAR_2M);
    for (size_t i = 0; i < 2; i++) {
        CUmemGenericAllocationHandle h = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
        SETUP(cuMemMap, (two + i * PAR_2M, PAR_2M, 0, h, 0));
        SETUP(cuMemRelease, (h));
    }
    SETUP(cuMemSetAccess, (two, 2 * PAR_2M, &access, 1));
    struct {
        const char *cls;
        CUdeviceptr at;
        size_t size;
    } kinds[] = {
        {"device", par_alloc(65536), 65536},
        {"pinned", (CUdeviceptr)(uintptr_t)par_pinned(65536), 65536},
        {"registered", (CUdeviceptr)(uintptr_t)registered, 8192},
        {"heap", (CUdeviceptr)(uintptr_t)heap & ~(CUdeviceptr)4095, 4096},
        {"pool", pooled, 65536},
        {"pool-host", host_pooled, 65536},
        {"mapped", par_mapped(PAR_2M), PAR_2M},
        {"two-mappings", two, 2 * PAR_2M},
        {"mapped-and-reserved", two, 4 * PAR_2M},
        {"reserved", par_reserve(PAR_2M), PAR_2M},
        {"managed", managed(PAR_2M), PAR_2M},
    };
    for (size_t i = 0; i < COUNT(kinds); i++) {
        CUdeviceptr p = kinds[i].at, base;
        size_t bytes;
        NAME_R(p, kinds[i].size);
        CALLO(cuMemGetAddressRange_v2, kinds[i].cls, (&base, &bytes, p), OUT_P(base), OUT_U(bytes));
        CALLO(cuMemGetAddressRange_v2, kinds[i].cls, (&base, &bytes, p + kinds[i].size - 1),
              OUT_P(base), OUT_U(bytes));
        dma_buf(kinds[i].cls, p, kinds[i].size);
        FORGET(p);
    }
    CUdeviceptr d = par_alloc(65536);
    SETUP(cuMemFree_v2, (d));
    dma_buf("freed", d, 65536);
    d = par_alloc(65536);
    SETUP(cuCtxSetCurrent, (NULL));
    dma_buf("no-context", d, 65536);
    free(heap);
}

SCENARIO(dma_buf_order, "range/dma-buf-order", par_context) {
    int fd;
    CUdeviceptr small = par_alloc(4096);
    CUdeviceptr d = par_alloc(4 * PAR_2M);
#define DMA(cls, args) CALLO(cuMemGetHandleForAddressRange, cls, args, OUT_D(fd))
    DMA("small", (&fd, small, 4096, 1, 0));
    DMA("small-to-chunk", (&fd, small, PAR_2M, 1, 0));
    DMA("two-pages", (&fd, d, 8192, 1, 0));
    DMA("bad-type-zero", (&fd, d, PAR_2M, (CUmemRangeHandleType)0, 0));
    DMA("max-type", (&fd, d, PAR_2M, (CUmemRangeHandleType)0x7FFFFFFF, 0));
    DMA("bad-flags", (&fd, d, PAR_2M, 1, 3));
    DMA("bad-flags-high", (&fd, d, PAR_2M, 1, 1ull << 40));
    DMA("pcie-flag-bad-address", (&fd, 0x1000, PAR_2M, 1, 1));
    DMA("null-address", (&fd, 0, PAR_2M, 1, 0));
    DMA("huge", (&fd, d, ~(size_t)4095, 1, 0));
    DMA("whole", (&fd, d, 4 * PAR_2M, 1, 0));
    DMA("interior", (&fd, d + 4096, 4096, 1, 0));
}

SCENARIO(decompress, "range/decompress", par_context) {
    CUmemDecompressParams params[2];
    size_t failed;
    cuuint32_t actual = 0;
    CUstream s = par_stream();
    CUdeviceptr a = par_alloc(65536);
    CUdeviceptr b = par_alloc(65536);
    memset(params, 0, sizeof(params));
    for (int i = 0; i < 2; i++) {
        params[i].srcNumBytes = 100;
        params[i].dstNumBytes = 1000;
        params[i].dstActBytes = &actual;
        params[i].src = (void *)(uintptr_t)a;
        params[i].dst = (void *)(uintptr_t)b;
        params[i].algo = CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE;
    }
#define DECOMPRESS(cls, args) CALLO(cuMemBatchDecompressAsync, cls, args, OUT_U(failed))
    DECOMPRESS("deflate", (params, 1, 0, &failed, s));
    DECOMPRESS("two", (params, 2, 0, &failed, s));
    params[1].algo = CU_MEM_DECOMPRESS_ALGORITHM_LZ4;
    DECOMPRESS("lz4", (params, 2, 0, &failed, s));
    params[1].algo = (CUmemDecompressAlgorithm)64;
    DECOMPRESS("bad-algorithm", (params, 2, 0, &failed, s));
    DECOMPRESS("bad-flags", (params, 1, 1, &failed, s));
    DECOMPRESS("zero-count", (params, 0, 0, &failed, s));
    DECOMPRESS("null-params", (NULL, 1, 0, &failed, s));
    DECOMPRESS("null-stream", (params, 1, 0, &failed, NULL));
    DECOMPRESS("bad-stream", (params, 1, 0, &failed, (CUstream)0x1234));
    CALL(cuMemBatchDecompressAsync, "null-index", (params, 1, 0, NULL, s));
    CALL(cuMemBatchDecompressAsync_ptsz, "null-index", (params, 1, 0, NULL, NULL));
    CALL(cuStreamSynchronize, "after", (s));
}

SCENARIO(flush, "range/flush", par_context) {
    for (int target = 0; target <= 2; target++) {
        for (int scope = 0; scope <= 200; scope += 50) {
            par_note("target=%d scope=%d", target, scope);
            CALL(
                cuFlushGPUDirectRDMAWrites, "scope",
                ((CUflushGPUDirectRDMAWritesTarget)target, (CUflushGPUDirectRDMAWritesScope)scope));
        }
    }
}
