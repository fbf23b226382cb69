/* Memory pools: by how much they grow, what they give back and when, where blocks lie. */
#include "../parity.h"

static CUmemoryPool make_pool(CUmemAllocationHandleType handles) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = handles,
                            .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUmemoryPool pool = par_pool(&props);
    return pool;
}

static uint64_t counter(CUmemoryPool pool, CUmemPool_attribute which) {
    return PAR_GOT(uint64_t, cuMemPoolGetAttribute, pool, which);
}

static void counters(const char *when, CUmemoryPool pool) {
    par_see("counters", "%s reserved=%llu used=%llu", when,
            (unsigned long long)counter(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
            (unsigned long long)counter(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
}

static void keep(CUmemoryPool pool, uint64_t bytes) {
    SETUP(cuMemPoolSetAttribute, (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}

static const size_t sizes[] = {256,
                               1 << 20,
                               PAR_2M,
                               PAR_2M + 1,
                               (size_t)16 << 20,
                               ((size_t)32 << 20) - 1,
                               (size_t)32 << 20,
                               ((size_t)32 << 20) + 1,
                               (size_t)33 << 20,
                               (size_t)34 << 20,
                               (size_t)64 << 20,
                               (size_t)65 << 20,
                               (size_t)100 << 20};

/* Each size in a pool of its own: reserved when allocated, freed, synchronized. */
static void grow_by(CUmemAllocationHandleType handles) {
    CUdeviceptr p;
    par_context();
    CUstream s = par_stream();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        CUmemoryPool pool = make_pool(handles);
        SETUP(cuMemAllocFromPoolAsync, (&p, sizes[i], pool, s));
        par_note("size=%zu", sizes[i]);
        counters("allocated", pool);
        SETUP(cuMemFreeAsync, (p, s));
        SETUP(cuStreamSynchronize, (s));
        par_note("size=%zu", sizes[i]);
        counters("freed", pool);
        SETUP(cuMemPoolDestroy, (pool));
    }
}

SCENARIO_IS(grow, "pool-growth/sizes", grow_by(CU_MEM_HANDLE_TYPE_NONE));
SCENARIO_IS(grow_shared, "pool-growth/sizes-shared",
            grow_by(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));

/* One pool that keeps everything: by how much does the next one make it grow? */
SCENARIO(grow_on, "pool-growth/one-pool", par_context) {
    static const size_t steps[] = {4096,    4096,  (size_t)31 << 20, (size_t)1 << 20,
                                   PAR_2M,  65536, (size_t)40 << 20, (size_t)20 << 20,
                                   1 << 20, 512,   (size_t)32 << 20, (size_t)5 << 20};
    CUdeviceptr p[12];
    CUmemoryPool pool = make_pool(CU_MEM_HANDLE_TYPE_NONE);
    keep(pool, ~0ull);
    CUstream s = par_stream();
    for (size_t i = 0; i < 12; i++) {
        SETUP(cuMemAllocFromPoolAsync, (&p[i], steps[i], pool, s));
        par_note("%zu size=%zu", i, steps[i]);
        counters("allocated", pool);
    }
    for (size_t i = 0; i < 12; i += 2)
        SETUP(cuMemFreeAsync, (p[i], s));
    SETUP(cuStreamSynchronize, (s));
    counters("half-freed", pool);
    CALL(cuMemPoolTrimTo, "half-freed", (pool, 0));
    counters("trimmed", pool);
    for (size_t i = 1; i < 12; i += 2)
        SETUP(cuMemFreeAsync, (p[i], s));
    SETUP(cuStreamSynchronize, (s));
    counters("all-freed", pool);
    CALL(cuMemPoolTrimTo, "over-half",
         (pool, counter(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) / 2));
    counters("trimmed", pool);
    CALL(cuMemPoolTrimTo, "one-byte", (pool, 1));
    counters("trimmed", pool);
    CALL(cuMemPoolTrimTo, "zero", (pool, 0));
    counters("trimmed", pool);
}

/* What a threshold between two sizes keeps, at which synchronization. */
SCENARIO(thresholds, "pool-growth/thresholds", par_context) {
    static const size_t limits[] = {0, 1, (size_t)32 << 20, (size_t)40 << 20, (size_t)96 << 20};
    CUstream s = par_stream();
    for (size_t i = 0; i < COUNT(limits); i++) {
        CUmemoryPool pool = make_pool(CU_MEM_HANDLE_TYPE_NONE);
        CUdeviceptr p[3];
        keep(pool, limits[i]);
        for (int k = 0; k < 3; k++)
            SETUP(cuMemAllocFromPoolAsync, (&p[k], (size_t)32 << 20, pool, s));
        for (int k = 0; k < 3; k++) {
            SETUP(cuMemFreeAsync, (p[k], s));
            SETUP(cuStreamSynchronize, (s));
            par_note("threshold=%zu freed=%d", limits[i], k + 1);
            counters("synchronized", pool);
        }
        SETUP(cuMemPoolDestroy, (pool));
    }
}

/* Lowering the threshold gives back at once, or with the next synchronization? */
SCENARIO(threshold_lowered, "pool-growth/threshold-lowered", par_context) {
    CUstream s = par_stream();
    CUmemoryPool pool = make_pool(CU_MEM_HANDLE_TYPE_NONE);
    keep(pool, ~0ull);
    CUdeviceptr p = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, (size_t)64 << 20, pool, s);
    SETUP(cuMemFreeAsync, (p, s));
    SETUP(cuStreamSynchronize, (s));
    counters("kept", pool);
    keep(pool, 0);
    counters("lowered", pool);
    SETUP(cuStreamSynchronize, (s));
    counters("synchronized", pool);
    SETUP(cuMemAllocFromPoolAsync, (&p, 4096, pool, s));
    counters("allocated-again", pool);
    SETUP(cuStreamSynchronize, (s));
    counters("synchronized-again", pool);
}

/* Places of blocks in one chunk: distances, and which hole is taken. */
SCENARIO(places, "pool-growth/places", par_context) {
    static const size_t small[] = {1, 256, 257, 512, 513, 4096, 65536, 1};
    CUdeviceptr p[8], q;
    CUstream s = par_stream();
    CUmemoryPool pool = make_pool(CU_MEM_HANDLE_TYPE_NONE);
    keep(pool, ~0ull);
    for (int i = 0; i < 8; i++) {
        SETUP(cuMemAllocFromPoolAsync, (&p[i], small[i], pool, s));
        par_note("size=%zu", small[i]);
        if (i > 0)
            par_see("distance", "%lld", (long long)(p[i] - p[i - 1]));
    }
    SETUP(cuMemFreeAsync, (p[1], s));
    SETUP(cuMemFreeAsync, (p[5], s));
    SETUP(cuMemFreeAsync, (p[3], s));
    for (int turn = 0; turn < 3; turn++) {
        SETUP(cuMemAllocFromPoolAsync, (&q, 256, pool, s));
        int which = -1;
        for (int i = 0; i < 8; i++)
            which = p[i] == q ? i : which;
        par_see("hole", "%d", which);
    }
    counters("end", pool);
}

static void place_order(size_t size) {
    CUdeviceptr p[5], q;
    par_context();
    CUstream s = par_stream();
    CUmemoryPool pool = make_pool(CU_MEM_HANDLE_TYPE_NONE);
    keep(pool, ~0ull);
    for (int i = 0; i < 5; i++)
        SETUP(cuMemAllocFromPoolAsync, (&p[i], size, pool, s));
    SETUP(cuMemFreeAsync, (p[3], s));
    SETUP(cuMemFreeAsync, (p[1], s));
    SETUP(cuStreamSynchronize, (s));
    for (int turn = 0; turn < 3; turn++) {
        SETUP(cuMemAllocFromPoolAsync, (&q, size, pool, s));
        par_note("size=%zu", size);
        par_see("reused", q == p[3] ? "first-freed" : q == p[1] ? "second-freed" : "new");
    }
    counters("end", pool);
}

SCENARIO_IS(order_small, "pool-growth/order-small", place_order(4096));
SCENARIO_IS(order_large, "pool-growth/order-large", place_order((size_t)8 << 20));

/* Freed on one stream, asked for on the same: at once the same address, without synchronization? */
SCENARIO(same_stream_sizes, "pool-growth/same-stream", par_context) {
    CUmemoryPool pool;
    CUdeviceptr a, b;
    CUstream s = par_stream();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        pool = make_pool(CU_MEM_HANDLE_TYPE_NONE);
        SETUP(cuMemAllocFromPoolAsync, (&a, sizes[i], pool, s));
        SETUP(cuMemFreeAsync, (a, s));
        SETUP(cuMemAllocFromPoolAsync, (&b, sizes[i], pool, s));
        par_note("size=%zu", sizes[i]);
        par_see("same-address", a == b ? "yes" : "no");
        SETUP(cuMemFreeAsync, (b, s));
        SETUP(cuStreamSynchronize, (s));
        SETUP(cuMemAllocFromPoolAsync, (&b, sizes[i], pool, s));
        par_note("size=%zu", sizes[i]);
        par_see("same-address-synchronized", a == b ? "yes" : "no");
        SETUP(cuMemFreeAsync, (b, s));
        SETUP(cuStreamSynchronize, (s));
        SETUP(cuMemPoolDestroy, (pool));
    }
}

/* The order of the stream: memory is there when the allocation's turn has come, not before. */
SCENARIO(stream_order, "pool-growth/stream-order", par_context) {
    CUdeviceptr a, b;
    unsigned word = 0;
    CUstream s = par_stream();
    CUstream t = par_stream();
    CUmemoryPool pool = make_pool(CU_MEM_HANDLE_TYPE_NONE);
    CUevent e = par_event(CU_EVENT_DISABLE_TIMING);
    par_hold(s);
    CALLO(cuMemAllocFromPoolAsync, "held", (&a, PAR_2M, pool, s), OUT_P(a));
    counters("allocated-held", pool);
    CALL(cuMemsetD32Async, "held", (a, 0x01010101, 16, s));
    CALL(cuEventRecord, "held", (e, s));
    CALL(cuStreamWaitEvent, "held", (t, e, 0));
    CALL(cuMemcpyDtoHAsync_v2, "ordered-by-event", (par_pinned(64), a, 64, t));
    CALL(cuMemFreeAsync, "ordered-by-event", (a, t));
    counters("freed-held", pool);
    CALLO(cuMemAllocFromPoolAsync, "freed-by-other-stream", (&b, PAR_2M, pool, t), OUT_C(b));
    par_see("same-address", a == b ? "yes" : "no");
    CALL(cuStreamQuery, "held", (t));
    PAR_DRAIN("released", t);
    CALL(cuMemcpyDtoH_v2, "freshly-allocated", (&word, b, 4));
    CALL(cuMemFreeAsync, "ok", (b, t));
    CALL(cuStreamSynchronize, "released", (s));
    CALL(cuStreamSynchronize, "released", (t));
    counters("end", pool);
}

/* Freed with a plain free, while the stream of its allocation is held? */
SCENARIO(plain_free, "pool-growth/plain-free", par_context) {
    CUstream s = par_stream();
    CUmemoryPool pool = make_pool(CU_MEM_HANDLE_TYPE_NONE);
    CUdeviceptr a = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, PAR_2M, pool, s);
    par_hold(s);
    CALL(cuMemFree_v2, "pool-allocation-stream-held", (a));
    counters("freed", pool);
    PAR_DRAIN("released", s);
    counters("synchronized", pool);
}
