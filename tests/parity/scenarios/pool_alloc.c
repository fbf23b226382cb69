/* Memory pools: stream-ordered allocation, freeing, reuse, what is reserved and used. */
#include "../parity.h"

static CUmemoryPool make_pool(int location, size_t max_size) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location.type = (CUmemLocationType)location,
                            .maxSize = max_size};
    CUmemoryPool pool = par_pool(&props);
    return pool;
}

static void show_counters(const char *when, CUmemoryPool pool) {
    uint64_t value[4];
    for (int i = 0; i < 4; i++)
        SETUP(cuMemPoolGetAttribute,
              (pool, (CUmemPool_attribute)(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT + i), &value[i]));
    par_see("counters", "%s reserved=%llu high=%llu used=%llu high=%llu", when,
            (unsigned long long)value[0], (unsigned long long)value[1],
            (unsigned long long)value[2], (unsigned long long)value[3]);
}

SCENARIO(sizes, "pool-alloc/sizes", par_context) {
    static const size_t tries[] = {1,
                                   255,
                                   512,
                                   513,
                                   4096,
                                   65536,
                                   PAR_2M - 1,
                                   PAR_2M,
                                   PAR_2M + 1,
                                   (size_t)32 << 20,
                                   ((size_t)32 << 20) + 1,
                                   (size_t)256 << 20};
    CUdeviceptr p;
    CUmemoryPool pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUstream s = par_stream();
    show_counters("empty", pool);
    for (size_t i = 0; i < COUNT(tries); i++) {
        par_note("size=%zu", tries[i]);
        CALLO(cuMemAllocFromPoolAsync, "size", (&p, tries[i], pool, s), OUT_R(p, tries[i]));
        par_note("size=%zu", tries[i]);
        show_counters("allocated", pool);
        SETUP(cuMemFreeAsync, (p, s));
        par_note("size=%zu", tries[i]);
        show_counters("freed", pool);
        SETUP(cuStreamSynchronize, (s));
        par_note("size=%zu", tries[i]);
        show_counters("synchronized", pool);
        FORGET(p);
    }
}

SCENARIO(bad, "pool-alloc/bad", par_context) {
    CUdeviceptr p;
    CUmemoryPool pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUstream s = par_stream();
    CALLO(cuMemAllocAsync, "zero-size", (&p, 0, s), OUT_P(p));
    CALL(cuMemAllocAsync, "null-out", (NULL, 4096, s));
    CALLO(cuMemAllocAsync, "too-large", (&p, (size_t)1 << 44, s), OUT_P(p));
    CALLO(cuMemAllocAsync, "too-large", (&p, ~(size_t)0, s), OUT_P(p));
    CALLO(cuMemAllocFromPoolAsync, "zero-size", (&p, 0, pool, s), OUT_P(p));
    CALLO(cuMemAllocFromPoolAsync, "null-pool", (&p, 4096, NULL, s), OUT_P(p));
    CALL(cuMemAllocFromPoolAsync, "null-out", (NULL, 4096, pool, s));
    CALLO(cuMemAllocFromPoolAsync, "too-large", (&p, (size_t)1 << 44, pool, s), OUT_P(p));
    CALLO(cuMemAllocAsync, "legacy-stream", (&p, 4096, CU_STREAM_LEGACY), OUT_P(p));
    CALLO(cuMemAllocAsync, "per-thread-stream", (&p, 4096, CU_STREAM_PER_THREAD), OUT_P(p));
    CALLO(cuMemAllocAsync_ptsz, "ok", (&p, 4096, NULL), OUT_P(p));
    CALLO(cuMemAllocFromPoolAsync_ptsz, "ok", (&p, 4096, pool, NULL), OUT_P(p));
    CALL(cuMemFreeAsync_ptsz, "ok", (p, NULL));
    SETUP(cuCtxSetCurrent, (NULL));
    CALLO(cuMemAllocAsync, "no-context", (&p, 4096, NULL), OUT_P(p));
    CALLO(cuMemAllocAsync, "no-context-stream", (&p, 4096, s), OUT_P(p));
    CALLO(cuMemAllocFromPoolAsync, "no-context-stream", (&p, 4096, pool, s), OUT_P(p));
}

SCENARIO(limited, "pool-alloc/limited", par_context) {
    CUdeviceptr p, q;
    CUmemoryPool pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE, (size_t)64 << 20);
    CUstream s = par_stream();
    CALLO(cuMemAllocFromPoolAsync, "over-maximum", (&p, (size_t)128 << 20, pool, s), OUT_P(p));
    CALLO(cuMemAllocFromPoolAsync, "under-maximum", (&p, (size_t)40 << 20, pool, s), OUT_P(p));
    show_counters("one", pool);
    CALLO(cuMemAllocFromPoolAsync, "sum-over-maximum", (&q, (size_t)40 << 20, pool, s), OUT_P(q));
    CALL(cuMemFreeAsync, "ok", (p, s));
    CALLO(cuMemAllocFromPoolAsync, "after-free", (&q, (size_t)40 << 20, pool, s), OUT_P(q));
    show_counters("end", pool);
}

SCENARIO(frees, "pool-alloc/frees", par_context) {
    CUdeviceptr p, plain;
    CUstream s = par_stream();
    plain = par_alloc(4096);
    SETUP(cuMemAllocAsync, (&p, 4096, s));
    CALL(cuMemFreeAsync, "null", (0, s));
    CALL(cuMemFreeAsync, "interior", (p + 256, s));
    CALL(cuMemFreeAsync, "random", (0x1000, s));
    CALL(cuMemFreeAsync, "pinned", ((CUdeviceptr)(uintptr_t)par_pinned(4096), s));
    CALL(cuMemFreeAsync, "mapped", (par_mapped(PAR_2M), s));
    CALL(cuMemFreeAsync, "ok", (p, s));
    CALL(cuMemFreeAsync, "twice", (p, s));
    CALL(cuMemFreeAsync, "plain-allocation", (plain, s));
    CALL(cuStreamSynchronize, "after", (s));
    CALL(cuMemFreeAsync, "plain-allocation-again", (plain, s));
    SETUP(cuMemAllocAsync, (&p, 4096, s));
    CALL(cuMemFree_v2, "pool-allocation", (p));
    CALL(cuMemFreeAsync, "after-plain-free", (p, s));
    SETUP(cuMemAllocAsync, (&p, 4096, s));
    CALL(cuMemFreeAsync, "other-stream", (p, par_stream()));
    CALL(cuCtxSynchronize, "after", ());
}

SCENARIO(reuse_same_stream, "pool-alloc/reuse-same-stream", par_context) {
    CUdeviceptr a, b, c;
    CUmemoryPool pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUstream s = par_stream();
    CALLO(cuMemAllocFromPoolAsync, "first", (&a, PAR_2M, pool, s), OUT_P(a));
    CALL(cuMemFreeAsync, "ok", (a, s));
    CALLO(cuMemAllocFromPoolAsync, "after-free-same-size", (&b, PAR_2M, pool, s), OUT_P(b));
    par_see("same-address", a == b ? "yes" : "no");
    CALL(cuMemFreeAsync, "ok", (b, s));
    CALLO(cuMemAllocFromPoolAsync, "after-free-smaller", (&c, 4096, pool, s), OUT_P(c));
    show_counters("end", pool);
}

/* Freed on a held stream; asked for on another: which of the reuse rules gives it out? */
static void reuse_across(bool event, bool allow_event, bool allow_internal) {
    CUdeviceptr a, b;
    int off = 0;
    par_context();
    CUmemoryPool pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    uint64_t keep = ~0ull;
    SETUP(cuMemPoolSetAttribute, (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    if (!allow_event)
        SETUP(cuMemPoolSetAttribute, (pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &off));
    if (!allow_internal)
        SETUP(cuMemPoolSetAttribute,
              (pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off));
    CUstream s = par_stream();
    CUstream t = par_stream();
    CUevent e = par_event(CU_EVENT_DISABLE_TIMING);
    SETUP(cuMemAllocFromPoolAsync, (&a, (size_t)32 << 20, pool, s));
    NAME(a);
    SETUP(cuStreamSynchronize, (s));
    par_hold(s);
    CALL(cuMemFreeAsync, "held", (a, s));
    show_counters("freed-held", pool);
    if (event) {
        SETUP(cuEventRecord, (e, s));
        SETUP(cuStreamWaitEvent, (t, e, 0));
    }
    CALLO(cuMemAllocFromPoolAsync, "other-stream", (&b, (size_t)32 << 20, pool, t), OUT_C(b));
    par_see("same-address", a == b ? "yes" : "no");
    CALL(cuStreamQuery, "allocating-stream", (t));
    show_counters("allocated", pool);
    PAR_DRAIN("ok", t);
}

SCENARIO_IS(reuse_no_rule, "pool-alloc/reuse-no-rule", reuse_across(false, false, false));
SCENARIO_IS(reuse_internal, "pool-alloc/reuse-internal", reuse_across(false, false, true));
SCENARIO_IS(reuse_event, "pool-alloc/reuse-event", reuse_across(true, true, false));
SCENARIO_IS(reuse_event_off, "pool-alloc/reuse-event-off", reuse_across(true, false, false));

SCENARIO(reuse_finished, "pool-alloc/reuse-finished", par_context) {
    CUmemoryPool pool;
    CUdeviceptr a, b;
    CUstream s, t;
    int off = 0;
    for (int allow = 0; allow <= 1; allow++) {
        pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
        uint64_t keep = ~0ull;
        SETUP(cuMemPoolSetAttribute, (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
        if (allow == 0) {
            SETUP(cuMemPoolSetAttribute, (pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &off));
            SETUP(cuMemPoolSetAttribute,
                  (pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off));
        }
        s = par_stream();
        t = par_stream();
        SETUP(cuMemAllocFromPoolAsync, (&a, (size_t)32 << 20, pool, s));
        SETUP(cuMemFreeAsync, (a, s));
        SETUP(cuStreamSynchronize, (s));
        SETUP(cuMemAllocFromPoolAsync, (&b, (size_t)32 << 20, pool, t));
        par_note("opportunistic=%d", allow);
        par_see("same-address", a == b ? "yes" : "no");
        show_counters("end", pool);
    }
}

SCENARIO(trims, "pool-alloc/trims", par_context) {
    uint64_t keep = ~0ull, zero = 0;
    CUmemoryPool pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUstream s = par_stream();
    SETUP(cuMemPoolSetAttribute, (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    CALL(cuMemPoolTrimTo, "empty", (pool, 0));
    CUdeviceptr a = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, (size_t)64 << 20, pool, s);
    CUdeviceptr b = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, (size_t)64 << 20, pool, s);
    show_counters("two", pool);
    CALL(cuMemPoolTrimTo, "all-in-use", (pool, 0));
    show_counters("trimmed", pool);
    SETUP(cuMemFreeAsync, (a, s));
    SETUP(cuStreamSynchronize, (s));
    show_counters("one-freed", pool);
    CALL(cuMemPoolTrimTo, "keep-more", (pool, (size_t)1 << 40));
    show_counters("trimmed", pool);
    CALL(cuMemPoolTrimTo, "keep-100M", (pool, (size_t)100 << 20));
    show_counters("trimmed", pool);
    CALL(cuMemPoolTrimTo, "zero", (pool, 0));
    show_counters("trimmed", pool);
    SETUP(cuMemFreeAsync, (b, s));
    CALL(cuMemPoolTrimTo, "freed-not-synchronized", (pool, 0));
    SETUP(cuStreamSynchronize, (s));
    CALL(cuMemPoolTrimTo, "zero", (pool, 0));
    show_counters("empty", pool);
    CALL(cuMemPoolSetAttribute, "reset-high", (pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
    CALL(cuMemPoolSetAttribute, "reset-high", (pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    show_counters("reset", pool);
}

/* Which synchronization gives cached memory back at threshold zero? */
SCENARIO(released_when, "pool-alloc/released-when", par_context) {
    CUdeviceptr a;
    CUmemoryPool pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUstream s = par_stream();
    CUevent e = par_event(0);
#define AFTER(what, call)                                                                          \
    do {                                                                                           \
        SETUP(cuMemAllocFromPoolAsync, (&a, (size_t)32 << 20, pool, s));                           \
        SETUP(cuMemFreeAsync, (a, s));                                                             \
        call;                                                                                      \
        show_counters(what, pool);                                                                 \
        SETUP(cuStreamSynchronize, (s));                                                           \
    } while (0)
    AFTER("stream-synchronize", SETUP(cuStreamSynchronize, (s)));
    AFTER("context-synchronize", SETUP(cuCtxSynchronize, ()));
    AFTER("event-synchronize", (par.api->cuEventRecord(e, s), par.api->cuEventSynchronize(e)));
    AFTER("other-stream-synchronize", SETUP(cuStreamSynchronize, (par_stream())));
}

SCENARIO(destroy_with_live, "pool-alloc/destroy-with-live", par_context) {
    CUmemoryPool pool, got;
    pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    NAME(pool);
    CUstream s = par_stream();
    CUdeviceptr a = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, PAR_2M, pool, s);
    CALL(cuMemPoolDestroy, "live-allocation", (pool));
    CALL(cuMemsetD8Async, "pool-destroyed", (a, 1, PAR_2M, s));
    CALLO(cuPointerGetAttribute, "pool-destroyed", (&got, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a),
          OUT_H(got));
    CALL(cuMemFreeAsync, "pool-destroyed", (a, s));
    CALL(cuStreamSynchronize, "after", (s));
}

SCENARIO(use_after_free, "pool-alloc/use-after-free", par_context) {
    char host[16];
    CUstream s = par_stream();
    CUdeviceptr a = PAR_MADE(CUdeviceptr, cuMemAllocAsync, PAR_2M, s);
    SETUP(cuMemFreeAsync, (a, s));
    CALL(cuMemsetD8Async, "freed-not-synchronized", (a, 1, 16, s));
    CALL(cuStreamSynchronize, "after", (s));
    CALL(cuMemcpyDtoH_v2, "freed-synchronized", (host, a, 16));
    CALL(cuMemsetD8Async, "freed-synchronized", (a, 1, 16, s));
    CALL(cuStreamSynchronize, "after", (s));
}

SCENARIO(use_before_ordered, "pool-alloc/use-before-ordered", par_context) {
    CUdeviceptr a;
    CUstream s = par_stream();
    CUstream t = par_stream();
    par_hold(s);
    CALLO(cuMemAllocAsync, "held", (&a, PAR_2M, s), OUT_P(a));
    CALL(cuMemsetD8Async, "other-stream-before-allocation", (a, 1, 16, t));
    CALL(cuStreamSynchronize, "other-stream", (t));
    CALL(cuMemFreeAsync, "other-stream-before-allocation", (a, t));
    PAR_DRAIN("allocating-stream", s);
    CALL(cuStreamSynchronize, "other-stream", (t));
}

SCENARIO(charges, "pool-alloc/charges", par_context, PAR_ALONE) {
    CUmemoryPool pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUstream s = par_stream();
    par_free_mark();
    CUdeviceptr a = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, 4096, pool, s);
    SETUP(cuStreamSynchronize, (s));
    par_free_delta("4096");
    SETUP(cuMemFreeAsync, (a, s));
    SETUP(cuStreamSynchronize, (s));
    par_free_delta("freed");
    SETUP(cuMemAllocFromPoolAsync, (&a, (size_t)100 << 20, pool, s));
    SETUP(cuStreamSynchronize, (s));
    par_free_delta("100M");
    SETUP(cuMemFreeAsync, (a, s));
    SETUP(cuStreamSynchronize, (s));
    par_free_delta("freed");
    SETUP(cuMemPoolDestroy, (pool));
    par_free_delta("destroyed");
}

static void host_pool(int location) {
    CUdeviceptr p;
    par_context();
    CUmemoryPool pool = make_pool(location, 0);
    CUstream s = par_stream();
    CALLO(cuMemAllocFromPoolAsync, "host-pool", (&p, 4096, pool, s), OUT_P(p));
    show_counters("allocated", pool);
    CALL(cuMemsetD8Async, "host-pool", (p, 0x21, 4096, s));
    CALL(cuStreamSynchronize, "ok", (s));
    par_see("cpu-reads", "0x%x", *(volatile unsigned char *)(uintptr_t)p);
    CALL(cuMemFreeAsync, "ok", (p, s));
    CALL(cuStreamSynchronize, "ok", (s));
    show_counters("freed", pool);
    CALL(cuMemPoolDestroy, "ok", (pool));
}

SCENARIO_IS(host_pool_host, "pool-alloc/host", host_pool(CU_MEM_LOCATION_TYPE_HOST));
SCENARIO_IS(host_pool_numa, "pool-alloc/host-numa", host_pool(CU_MEM_LOCATION_TYPE_HOST_NUMA));
