/*
 * Memory pools: which freed block a stream gets that comes after the free, in pools that have
 * memory to spare, and the reuse rules one by one. The blocks of pool-alloc/reuse-* fill a whole
 * step of growth, so that nothing was to spare, and some of them were synchronized before they were
 * asked.
 */
#include "../parity.h"

static CUmemoryPool pool;
static CUstream s, t, u;

static CUmemoryPool make_pool(CUmemAllocationHandleType handles, size_t most) {
    uint64_t keep = ~0ull;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location.type = CU_MEM_LOCATION_TYPE_DEVICE,
                            .handleTypes = handles,
                            .maxSize = most};
    CUmemoryPool made = par_pool(&props);
    SETUP(cuMemPoolSetAttribute, (made, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    return made;
}

static void set_rules(int follow, int opportunistic, int internal) {
    SETUP(cuMemPoolSetAttribute, (pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &follow));
    SETUP(cuMemPoolSetAttribute, (pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &opportunistic));
    SETUP(cuMemPoolSetAttribute,
          (pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &internal));
}

static void begin(int follow, int opportunistic) {
    pool = make_pool(CU_MEM_HANDLE_TYPE_NONE, 0);
    set_rules(follow, opportunistic, 0);
    s = par_stream();
    t = par_stream();
    u = par_stream();
}

static CUdeviceptr take(size_t size, CUstream stream) {
    return PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, size, pool, stream);
}

static CUevent record(CUstream stream) {
    CUevent e = par_event(CU_EVENT_DISABLE_TIMING);
    SETUP(cuEventRecord, (e, stream));
    return e;
}

/* Memory of a stream that is held, freed behind work on it. */
static CUdeviceptr freed_held(size_t size, CUstream stream) {
    CUdeviceptr p = take(size, stream);
    par_hold(stream);
    SETUP(cuMemsetD8Async, (p, 1, size, stream));
    SETUP(cuMemFreeAsync, (p, stream));
    return p;
}

static void see_block(const char *what, CUdeviceptr got, CUdeviceptr wanted) {
    uint64_t reserved = 0;
    SETUP(cuMemPoolGetAttribute, (pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
    par_see(what, "%s reserved=%llu", got == wanted ? "same" : "other",
            (unsigned long long)reserved);
}

static void finish(void) {
    par_release();
    SETUP(cuCtxSynchronize, ());
}

SCENARIO(follow_spare, "near-pool/follow-spare", par_context) {
    static const size_t sizes[] = {512, 4096, 1 << 20, 8 << 20, 31 << 20, 32 << 20, 40 << 20};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        for (int rules = 0; rules < 4; rules++) {
            begin(rules & 1, rules >> 1);
            CUdeviceptr p = freed_held(sizes[i], s);
            CUevent e = record(s);
            SETUP(cuStreamWaitEvent, (t, e, 0));
            CUdeviceptr q = take(sizes[i], t);
            par_note("size=%zu follow=%d opportunistic=%d", sizes[i], rules & 1, rules >> 1);
            see_block("block", q, p);
            CALL(cuStreamQuery, "waiting", (t));
            SETUP(cuMemFreeAsync, (q, t));
            finish();
            SETUP(cuMemPoolDestroy, (pool));
        }
    }
}

/* What was recorded before the free, and in another stream, counts for nothing. */
SCENARIO(follow_early, "near-pool/follow-early", par_context) {
    begin(1, 1);
    CUdeviceptr p = take(MIB, s);
    par_hold(s);
    CUevent early = record(s);
    SETUP(cuMemsetD8Async, (p, 1, MIB, s));
    SETUP(cuMemFreeAsync, (p, s));
    SETUP(cuStreamWaitEvent, (t, early, 0));
    see_block("recorded-before", take(MIB, t), p);
    see_block("no-wait", take(MIB, u), p);
    SETUP(cuStreamWaitEvent, (t, record(s), 0));
    see_block("recorded-behind", take(MIB, t), p);
    finish();
}

SCENARIO(follow_chain, "near-pool/follow-chain", par_context) {
    begin(1, 1);
    CUdeviceptr p = freed_held(MIB, s);
    CUevent e = record(s);
    SETUP(cuStreamWaitEvent, (u, e, 0));
    SETUP(cuEventRecord, (e, u)); /* the same event, recorded again */
    SETUP(cuStreamWaitEvent, (t, e, 0));
    see_block("over-a-stream", take(MIB, t), p);
    finish();
    begin(1, 1);
    p = freed_held(MIB, s);
    e = record(s);
    SETUP(cuStreamWaitEvent, (t, e, 0));
    SETUP(cuEventDestroy_v2, (e));
    see_block("event-destroyed", take(MIB, t), p);
    finish();
    begin(1, 1);
    p = freed_held(MIB, s);
    SETUP(cuStreamWaitEvent, (t, record(s), 0));
    SETUP(cuStreamDestroy_v2, (s));
    see_block("stream-destroyed", take(MIB, t), p);
    finish();
    begin(1, 1);
    p = freed_held(MIB, s);
    SETUP(cuEventCreate, (&e, CU_EVENT_DISABLE_TIMING));
    SETUP(cuCtxRecordEvent, (par.primary, e));
    SETUP(cuStreamWaitEvent, (t, e, 0));
    see_block("context-recorded", take(MIB, t), p);
    finish();
    begin(1, 1);
    p = freed_held(MIB, s);
    SETUP(cuCtxWaitEvent, (par.primary, record(s)));
    see_block("context-waits", take(MIB, t), p);
    finish();
}

/* Without any event: the legacy stream joins the blocking ones. */
SCENARIO(follow_legacy, "near-pool/follow-legacy", par_context) {
    CUdeviceptr own = par_alloc(64);
    for (int joined = 0; joined < 2; joined++) {
        begin(1, 1);
        SETUP(cuStreamCreate, (&s, CU_STREAM_DEFAULT));
        SETUP(cuStreamCreate, (&t, CU_STREAM_DEFAULT));
        CUdeviceptr p = freed_held(MIB, s);
        if (joined)
            SETUP(cuMemsetD8Async, (own, 1, 64, NULL));
        par_note("joined=%d", joined);
        see_block("blocking", take(MIB, t), p);
        see_block("non-blocking", take(MIB, u), p);
        finish();
    }
    begin(1, 1);
    SETUP(cuStreamCreate, (&s, CU_STREAM_DEFAULT));
    CUdeviceptr p = freed_held(MIB, s);
    see_block("legacy-itself", take(MIB, NULL), p);
    finish();
    begin(1, 1);
    SETUP(cuStreamCreate, (&t, CU_STREAM_DEFAULT));
    p = freed_held(MIB, NULL);
    see_block("behind-legacy", take(MIB, t), p);
    finish();
}

/* Its own, what it comes after, and what is idle: which is taken? */
SCENARIO(follow_fit, "near-pool/follow-fit", par_context) {
    begin(1, 1);
    CUdeviceptr large = take(4 * MIB, s);
    take(512, s); /* a wall, so that what is freed does not join */
    CUdeviceptr small = take(2 * MIB, u);
    par_hold(s);
    SETUP(cuMemFreeAsync, (large, s));
    SETUP(cuStreamWaitEvent, (u, record(s), 0));
    SETUP(cuMemFreeAsync, (small, u));
    SETUP(cuStreamWaitEvent, (t, record(u), 0));
    see_block("smaller-of-two", take(MIB, t), small);
    see_block("larger-of-two", take(3 * MIB, t), large);
    finish();
    begin(1, 1);
    CUdeviceptr hole = take(MIB, s);
    take(512, s);
    SETUP(cuMemFreeAsync, (hole, s));
    SETUP(cuStreamSynchronize, (s));
    CUdeviceptr p = take(MIB, u);
    par_see("hole", "%s", p == hole ? "taken" : "left");
    large = take(2 * MIB, s);
    take(512, s);
    SETUP(cuMemFreeAsync, (p, u));
    SETUP(cuStreamSynchronize, (u));
    par_hold(s);
    SETUP(cuMemFreeAsync, (large, s));
    SETUP(cuStreamWaitEvent, (t, record(s), 0));
    CUdeviceptr q = take(MIB, t);
    par_see("exact-idle-or-followed", "%s", q == hole ? "idle" : q == large ? "followed" : "new");
    finish();
    begin(1, 1);
    CUdeviceptr a = take(MIB, s), b = take(MIB, s);
    take(512, s);
    par_hold(s);
    SETUP(cuMemFreeAsync, (a, s));
    SETUP(cuMemFreeAsync, (b, s));
    SETUP(cuStreamWaitEvent, (t, record(s), 0));
    see_block("two-joined", take(2 * MIB, t), a < b ? a : b);
    finish();
}

/* The work is over when the allocation is made, and no rule but the dependency may be used. */
SCENARIO(follow_complete, "near-pool/follow-complete", par_context) {
    for (int rules = 0; rules < 4; rules++) {
        begin(rules & 1, 0);
        CUdeviceptr p = freed_held(MIB, s);
        CUevent e = record(s);
        if (rules >> 1)
            SETUP(cuStreamWaitEvent, (t, e, 0));
        par_release();
        while (par.api->cuStreamQuery(s) == CUDA_ERROR_NOT_READY) {
        }
        par_note("follow=%d waited-before=%d", rules & 1, rules >> 1);
        see_block("complete", take(MIB, t), p);
        SETUP(cuStreamWaitEvent, (u, e, 0));
        see_block("waited-afterwards", take(MIB, u), p);
        finish();
    }
}

/* Freed and over, as polling tells: no synchronization, which would make it anyone's. */
SCENARIO(opportunistic, "near-pool/opportunistic", par_context) {
    static const size_t sizes[] = {4096, 1 << 20, 32 << 20};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        for (int allow = 0; allow < 2; allow++) {
            begin(0, allow);
            CUdeviceptr p = freed_held(sizes[i], s);
            par_release();
            while (par.api->cuStreamQuery(s) == CUDA_ERROR_NOT_READY) {
            }
            par_note("size=%zu opportunistic=%d", sizes[i], allow);
            see_block("polled", take(sizes[i], t), p);
            finish();
        }
    }
}

/* A pool that may not grow: there is the one block only. */
SCENARIO(internal, "near-pool/internal", par_context) {
    CUdeviceptr q;
    for (int allow = 0; allow < 2; allow++) {
        pool = make_pool(CU_MEM_HANDLE_TYPE_NONE, 32 * MIB);
        set_rules(0, 0, allow);
        s = par_stream();
        t = par_stream();
        CUdeviceptr p = freed_held(32 * MIB, s);
        par_note("internal=%d", allow);
        CALLO(cuMemAllocFromPoolAsync, "full", (&q, 32 * MIB, pool, t), OUT_C(q));
        par_see("block", "%s", q == p ? "same" : "other");
        CALL(cuStreamQuery, "allocating-stream", (t));
        finish();
    }
}

/* One wrong argument each, with a pool that was imported and data that were exported. */
SCENARIO(import_pointer, "near-pool/import-pointer", par_context) {
    CUmemoryPool imported, other;
    CUmemPoolPtrExportData data, of_other, zero;
    pool = make_pool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    other = make_pool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    memset(&zero, 0, sizeof(zero));
    int fd = PAR_MADE(int, cuMemPoolExportToShareableHandle, pool,
                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    (void)PAR_MADE(int, cuMemPoolExportToShareableHandle, other,
                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    CUdeviceptr p = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, 4096, pool, NULL);
    SETUP(cuMemPoolExportPointer, (&data, p));
    CUdeviceptr q = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, 4096, other, NULL);
    SETUP(cuMemPoolExportPointer, (&of_other, q));
    CALLO(cuMemPoolImportFromShareableHandle, "same-process",
          (&imported, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          OUT_C(imported));
    if (par_last() != CUDA_SUCCESS)
        return;
    CALLO(cuMemPoolImportPointer, "not-imported-pool", (&q, pool, &data), OUT_C(q));
    CALLO(cuMemPoolImportPointer, "null-pool", (&q, NULL, &data), OUT_C(q));
    CALL(cuMemPoolImportPointer, "null-out", (NULL, imported, &data));
    CALLO(cuMemPoolImportPointer, "null-data", (&q, imported, NULL), OUT_C(q));
    CALLO(cuMemPoolImportPointer, "zero-data", (&q, imported, &zero), OUT_C(q));
    CALLO(cuMemPoolImportPointer, "data-of-other-pool", (&q, imported, &of_other), OUT_C(q));
    CALLO(cuMemPoolImportPointer, "ok", (&q, imported, &data), OUT_C(q));
}
