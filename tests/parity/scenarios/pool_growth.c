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

/* ---- Pieces: what is freed in parts and asked for as one ------------------------------------ */

#define PIECE ((size_t)64 << 20)

/* Five pieces are all that the pool may have; all are freed behind work that is held. */
static void ask_behind_work(bool same) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location.type = CU_MEM_LOCATION_TYPE_DEVICE,
                            .maxSize = 5 * PIECE};
    CUdeviceptr p[5], q;
    par_context();
    CUmemoryPool pool = par_pool(&props);
    keep(pool, UINT64_MAX);
    CUstream s = par_stream(), other = same ? s : par_stream();
    for (size_t i = 0; i < COUNT(p); i++)
        SETUP(cuMemAllocFromPoolAsync, (&p[i], PIECE, pool, s));
    SETUP(cuStreamSynchronize, (s));
    par_hold(s);
    for (size_t i = 0; i < COUNT(p); i++)
        SETUP(cuMemFreeAsync, (p[i], s));
    counters("pending", pool);
    CALLO(cuMemAllocFromPoolAsync, "two-pieces", (&q, 2 * PIECE, pool, other), OUT_C(q));
    counters("two", pool);
    CALLO(cuMemAllocFromPoolAsync, "three-pieces", (&q, 3 * PIECE, pool, other), OUT_C(q));
    counters("all", pool);
    CALLO(cuMemAllocFromPoolAsync, "one-more", (&q, PIECE, pool, other), OUT_C(q));
    PAR_DRAIN("held", s);
}

SCENARIO_IS(pieces_same, "pool-growth/pieces-behind-work", ask_behind_work(true));
SCENARIO_IS(pieces_other, "pool-growth/pieces-behind-work-of-another", ask_behind_work(false));

/* Whole steps that fit the threshold stay, after the host has seen the frees. */
SCENARIO(steps_kept, "pool-growth/steps-within-threshold", par_context) {
    static const uint64_t thresholds[] = {0,          1,          32u << 20,  33u << 20,
                                          100u << 20, 128u << 20, 191u << 20, 192u << 20};
    CUdeviceptr p[3];
    CUstream s = par_stream();
    for (size_t i = 0; i < COUNT(thresholds); i++) {
        CUmemoryPool pool = make_pool(CU_MEM_HANDLE_TYPE_NONE);
        keep(pool, thresholds[i]);
        for (size_t k = 0; k < COUNT(p); k++)
            SETUP(cuMemAllocFromPoolAsync, (&p[k], PIECE, pool, s));
        SETUP(cuMemFreeAsync, (p[0], s));
        SETUP(cuMemFreeAsync, (p[1], s));
        SETUP(cuStreamSynchronize, (s));
        par_note("threshold=%llu", (unsigned long long)thresholds[i]);
        counters("one in use", pool);
        SETUP(cuMemFreeAsync, (p[2], s));
        SETUP(cuStreamSynchronize, (s));
        par_note("threshold=%llu", (unsigned long long)thresholds[i]);
        counters("none in use", pool);
        SETUP(cuMemPoolDestroy, (pool));
    }
}

/* Which parts of a pool's blocks are exported as DMA buffers: a block of 80 MiB and one of 64. */
static void export_parts(CUmemAllocationHandleType handles) {
    static const struct {
        const char *cls;
        size_t offset, size;
    } parts[] = {{"first-page", 0, 4096},
                 {"page-within", 4096, 4096},
                 {"large-page", 65536, 65536},
                 {"first-chunk", 0, PAR_2M},
                 {"second-chunk", PAR_2M, PAR_2M},
                 {"first-step", 0, 16 * PAR_2M},
                 {"step-and-chunk", 0, 17 * PAR_2M},
                 {"second-step", 16 * PAR_2M, PAR_2M},
                 {"both-steps", 0, 32 * PAR_2M},
                 {"over-steps", 15 * PAR_2M, 2 * PAR_2M},
                 {"last-half-step", 32 * PAR_2M, 8 * PAR_2M},
                 {"block", 0, 40 * PAR_2M},
                 {"next", 40 * PAR_2M, 32 * PAR_2M},
                 {"next-chunk", 40 * PAR_2M, PAR_2M},
                 {"to-the-next", 39 * PAR_2M, 2 * PAR_2M},
                 {"both", 0, 72 * PAR_2M}};
    CUdeviceptr p, q;
    int fd;
    par_context();
    CUmemoryPool pool = make_pool(handles);
    keep(pool, UINT64_MAX);
    CUstream s = par_stream();
    SETUP(cuMemAllocFromPoolAsync, (&p, 40 * PAR_2M, pool, s));
    SETUP(cuMemAllocFromPoolAsync, (&q, 32 * PAR_2M, pool, s));
    SETUP(cuStreamSynchronize, (s));
    par_see("distance", "%lld", (long long)(q - p));
    for (size_t i = 0; i < COUNT(parts); i++)
        CALLO(cuMemGetHandleForAddressRange, parts[i].cls,
              (&fd, p + parts[i].offset, parts[i].size, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
              OUT_D(fd));
    SETUP(cuMemFreeAsync, (p, s));
    CALLO(cuMemGetHandleForAddressRange, "freed",
          (&fd, p, 40 * PAR_2M, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), OUT_D(fd));
    SETUP(cuStreamSynchronize, (s));
    CALLO(cuMemGetHandleForAddressRange, "freed-and-seen",
          (&fd, p, 40 * PAR_2M, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), OUT_D(fd));
}

SCENARIO_IS(dma_parts, "pool-growth/dma-buffers", export_parts(CU_MEM_HANDLE_TYPE_NONE));
SCENARIO_IS(dma_parts_shared, "pool-growth/dma-buffers-shared",
            export_parts(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));

/* Two blocks that lie apart, freed and taken as one. */
SCENARIO(dma_moved, "pool-growth/dma-buffers-moved", par_context) {
    const size_t step = 16 * PAR_2M;
    CUdeviceptr p[4], q;
    int fd;
    CUmemoryPool pool = make_pool(CU_MEM_HANDLE_TYPE_NONE);
    keep(pool, UINT64_MAX);
    CUstream s = par_stream();
    for (size_t i = 0; i < COUNT(p); i++)
        SETUP(cuMemAllocFromPoolAsync, (&p[i], step, pool, s));
    SETUP(cuMemFreeAsync, (p[0], s));
    SETUP(cuMemFreeAsync, (p[2], s));
    SETUP(cuStreamSynchronize, (s));
    SETUP(cuMemAllocFromPoolAsync, (&q, 2 * step, pool, s));
    SETUP(cuStreamSynchronize, (s));
    counters("moved", pool);
    CALLO(cuMemGetHandleForAddressRange, "whole",
          (&fd, q, 2 * step, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), OUT_D(fd));
    CALLO(cuMemGetHandleForAddressRange, "second-step",
          (&fd, q + step, step, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), OUT_D(fd));
    CALLO(cuMemGetHandleForAddressRange, "over-steps",
          (&fd, q + step - PAR_2M, 2 * PAR_2M, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), OUT_D(fd));
}
