/* Stream memory operations: waits and writes of 32 and 64 bits, batches. */
#include "../parity.h"

typedef struct cells {
    CUstream s;
    volatile uint64_t *host; /* pinned */
    CUdeviceptr at;          /* its device address */
    CUdeviceptr device;      /* 64 bytes of zeroed device memory */
} cells;

static cells make_cells(void) {
    cells c;
    par_context();
    c.s = par_stream();
    c.host = par_pinned(4096);
    SETUP(cuMemHostGetDevicePointer_v2, (&c.at, (void *)(uintptr_t)c.host, 0));
    c.device = par_alloc(64);
    SETUP(cuMemsetD8_v2, (c.device, 0, 64));
    return c;
}

SCENARIO(writes, "memop/writes") {
    cells c = make_cells();
    CALL(cuStreamWriteValue32_v2, "pinned", (c.s, c.at, 0x11, 0));
    CALL(cuStreamWriteValue64_v2, "pinned", (c.s, c.at + 8, 0x2200000022ull, 0));
    CALL(cuStreamWriteValue32_v2, "device", (c.s, c.device, 0x33, 0));
    CALL(cuStreamWriteValue64_v2, "device", (c.s, c.device + 8, 0x44, 0));
    CALL(cuStreamWriteValue32_v2, "no-barrier", (c.s, c.at + 16, 5, 1));
    CALL(cuStreamWriteValue32_v2, "bad-flags", (c.s, c.at, 1, 2));
    CALL(cuStreamWriteValue64_v2, "bad-flags", (c.s, c.at, 1, 0x80));
    CALL(cuStreamWriteValue32_v2, "misaligned", (c.s, c.at + 2, 1, 0));
    CALL(cuStreamWriteValue64_v2, "misaligned", (c.s, c.at + 4, 1, 0));
    CALL(cuStreamWriteValue32_v2, "null", (c.s, 0, 1, 0));
    CALL(cuStreamWriteValue32_v2, "random", (c.s, 0x1000, 1, 0));
    CALL(cuStreamWriteValue32_v2, "plain-host", (c.s, (CUdeviceptr)(uintptr_t)&c, 1, 0));
    CALL(cuStreamWriteValue32_v2, "null-stream", (NULL, c.at, 0x66, 0));
    CALL(cuStreamWriteValue32_v2, "legacy-stream", (CU_STREAM_LEGACY, c.at, 0x66, 0));
    CALL(cuStreamWriteValue32_v2, "per-thread-stream", (CU_STREAM_PER_THREAD, c.at, 0x66, 0));
    CALL(cuStreamWriteValue32_v2, "mapped", (c.s, par_mapped(PAR_2M), 1, 0));
    CALL(cuStreamWriteValue32_v2, "reserved", (c.s, par_reserve(PAR_2M), 1, 0));
    CALL(cuCtxSynchronize, "ok", ());
    par_see("content", "0x%llx 0x%llx 0x%llx", (unsigned long long)c.host[0],
            (unsigned long long)c.host[1], (unsigned long long)c.host[2]);
}

SCENARIO(old_versions, "memop/old-versions") {
    cells c = make_cells();
    CALL(cuStreamWriteValue32, "v1", (c.s, c.at, 1, 0));
    CALL(cuStreamWriteValue64, "v1", (c.s, c.at, 1, 0));
    CALL(cuStreamWaitValue32, "v1", (c.s, c.at, 0, 0));
    CALL(cuStreamWaitValue64, "v1", (c.s, c.at, 0, 0));
    CALL(cuStreamWriteValue32_ptsz, "v1", (NULL, c.at, 1, 0));
    CALL(cuStreamWriteValue64_ptsz, "v1", (NULL, c.at, 1, 0));
    CALL(cuStreamWaitValue32_ptsz, "v1", (NULL, c.at, 0, 0));
    CALL(cuStreamWaitValue64_ptsz, "v1", (NULL, c.at, 0, 0));
    CALL(cuStreamWriteValue32_v2_ptsz, "ok", (NULL, c.at, 1, 0));
    CALL(cuStreamWriteValue64_v2_ptsz, "ok", (NULL, c.at, 1, 0));
    CALL(cuStreamWaitValue32_v2_ptsz, "ok", (NULL, c.at, 0, 0));
    CALL(cuStreamWaitValue64_v2_ptsz, "ok", (NULL, c.at, 0, 0));
    CALL(cuCtxSynchronize, "ok", ());
}

SCENARIO(wait_bad, "memop/wait-bad") {
    cells c = make_cells();
    CALL(cuStreamWaitValue32_v2, "bad-flags", (c.s, c.at, 0, 4));
    CALL(cuStreamWaitValue32_v2, "bad-flags", (c.s, c.at, 0, 0x80));
    CALL(cuStreamWaitValue64_v2, "bad-flags", (c.s, c.at, 0, 4));
    CALL(cuStreamWaitValue32_v2, "misaligned", (c.s, c.at + 2, 0, 0));
    CALL(cuStreamWaitValue64_v2, "misaligned", (c.s, c.at + 4, 0, 0));
    CALL(cuStreamWaitValue32_v2, "null", (c.s, 0, 0, 0));
    CALL(cuStreamWaitValue32_v2, "random", (c.s, 0x1000, 0, 0));
    CALL(cuStreamWaitValue32_v2, "plain-host", (c.s, (CUdeviceptr)(uintptr_t)&c, 0, 0));
    CALL(cuStreamWaitValue32_v2, "flush", (c.s, c.at, 0, CU_STREAM_WAIT_VALUE_FLUSH));
    CALL(cuStreamSynchronize, "after", (c.s));
}

/* One wait: held at the first value, through at the second. */
static void condition32(cells *c, const char *cls, unsigned flags, uint32_t wanted, uint32_t before,
                        uint32_t after) {
    __atomic_store_n((uint32_t *)(uintptr_t)c->host, before, __ATOMIC_SEQ_CST);
    par_note("wanted=%u before=%u after=%u", wanted, before, after);
    CALL(cuStreamWaitValue32_v2, cls, (c->s, c->at, wanted, flags));
    CALL(cuStreamQuery, "before", (c->s));
    __atomic_store_n((uint32_t *)(uintptr_t)c->host, after, __ATOMIC_SEQ_CST);
    CALL(cuStreamSynchronize, "after", (c->s));
}

static void condition64(cells *c, const char *cls, unsigned flags, uint64_t wanted, uint64_t before,
                        uint64_t after) {
    __atomic_store_n((uint64_t *)(uintptr_t)c->host, before, __ATOMIC_SEQ_CST);
    par_note("wanted=%llu before=%llu after=%llu", (unsigned long long)wanted,
             (unsigned long long)before, (unsigned long long)after);
    CALL(cuStreamWaitValue64_v2, cls, (c->s, c->at, wanted, flags));
    CALL(cuStreamQuery, "before", (c->s));
    __atomic_store_n((uint64_t *)(uintptr_t)c->host, after, __ATOMIC_SEQ_CST);
    CALL(cuStreamSynchronize, "after", (c->s));
}

SCENARIO(conditions32, "memop/conditions-32") {
    cells c = make_cells();
    condition32(&c, "geq", CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 5);
    condition32(&c, "geq-greater", CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 9);
    condition32(&c, "geq-wraps", CU_STREAM_WAIT_VALUE_GEQ, 5, 0x80000006u, 5);
    condition32(&c, "eq", CU_STREAM_WAIT_VALUE_EQ, 5, 6, 5);
    condition32(&c, "and", CU_STREAM_WAIT_VALUE_AND, 6, 9, 2);
    condition32(&c, "nor", CU_STREAM_WAIT_VALUE_NOR, 0xfffffff0u, 0xf, 0);
}

SCENARIO(conditions64, "memop/conditions-64") {
    cells c = make_cells();
    condition64(&c, "geq", CU_STREAM_WAIT_VALUE_GEQ, 5ull << 32, 4ull << 32, 5ull << 32);
    condition64(&c, "geq-wraps", CU_STREAM_WAIT_VALUE_GEQ, 5, (1ull << 63) + 6, 5);
    condition64(&c, "eq", CU_STREAM_WAIT_VALUE_EQ, 5, 6, 5);
    condition64(&c, "and", CU_STREAM_WAIT_VALUE_AND, 6ull << 40, 9, 2ull << 40);
    condition64(&c, "nor", CU_STREAM_WAIT_VALUE_NOR, ~0ull << 4, 0xf, 0);
}

SCENARIO(written_by_stream, "memop/written-by-stream") {
    cells c = make_cells();
    CUstream t = par_stream();
    CALL(cuStreamWaitValue32_v2, "device", (c.s, c.device, 7, CU_STREAM_WAIT_VALUE_EQ));
    CALL(cuStreamQuery, "before", (c.s));
    CALL(cuStreamWriteValue32_v2, "other-stream", (t, c.device, 7, 0));
    CALL(cuStreamSynchronize, "after", (c.s));
    CALL(cuStreamWaitValue32_v2, "device", (c.s, c.device, 0x09090909, CU_STREAM_WAIT_VALUE_EQ));
    CALL(cuMemsetD8Async, "other-stream", (c.device, 9, 4, t));
    CALL(cuStreamSynchronize, "after", (c.s));
}

SCENARIO(batches, "memop/batches") {
    cells c = make_cells();
    CUstreamBatchMemOpParams ops[4];
    memset(ops, 0, sizeof(ops));
    ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[0].writeValue.address = c.at;
    ops[0].writeValue.value = 21;
    ops[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[1].waitValue.address = c.at;
    ops[1].waitValue.value = 21;
    ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    ops[2].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    ops[2].writeValue.address = c.at + 8;
    ops[2].writeValue.value64 = 22;
    CALL(cuStreamBatchMemOp_v2, "ok", (c.s, 3, ops, 0));
    CALL(cuStreamSynchronize, "ok", (c.s));
    par_see("content", "%llu %llu", (unsigned long long)c.host[0], (unsigned long long)c.host[1]);
    CALL(cuStreamBatchMemOp_v2, "zero-count", (c.s, 0, ops, 0));
    CALL(cuStreamBatchMemOp_v2, "zero-count-null", (c.s, 0, NULL, 0));
    CALL(cuStreamBatchMemOp_v2, "null-array", (c.s, 1, NULL, 0));
    CALL(cuStreamBatchMemOp_v2, "bad-flags", (c.s, 1, ops, 1));
    CALL(cuStreamBatchMemOp_v2, "count-257", (c.s, 257, NULL, 0));
    ops[1].operation = (CUstreamBatchMemOpType)99;
    c.host[0] = 0;
    CALL(cuStreamBatchMemOp_v2, "second-bad", (c.s, 2, ops, 0));
    CALL(cuStreamSynchronize, "ok", (c.s));
    par_see("first-of-refused-batch", "%llu", (unsigned long long)c.host[0]);
    memset(&ops[0], 0, sizeof(ops[0]));
    ops[0].flushRemoteWrites.operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
    CALL(cuStreamBatchMemOp_v2, "flush-remote-writes", (c.s, 1, ops, 0));
    ops[0].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
    CALL(cuStreamBatchMemOp_v2, "barrier-sys", (c.s, 1, ops, 0));
    ops[0].memoryBarrier.flags = CU_STREAM_MEMORY_BARRIER_TYPE_GPU;
    CALL(cuStreamBatchMemOp_v2, "barrier-gpu", (c.s, 1, ops, 0));
    ops[0].memoryBarrier.flags = 9;
    CALL(cuStreamBatchMemOp_v2, "barrier-bad", (c.s, 1, ops, 0));
    CALL(cuStreamBatchMemOp, "v1", (c.s, 1, &ops[2], 0));
    CALL(cuStreamBatchMemOp_ptsz, "v1", (NULL, 1, &ops[2], 0));
    CALL(cuStreamBatchMemOp_v2_ptsz, "ok", (NULL, 1, &ops[2], 0));
    CALL(cuCtxSynchronize, "ok", ());
}

/* The first version: what comes before the refusal. */
SCENARIO(old_arguments, "memop/old-arguments") {
    cells c = make_cells();
    CUstreamBatchMemOpParams op;
    memset(&op, 0, sizeof(op));
    CALL(cuStreamWriteValue32, "null", (c.s, 0, 1, 0));
    CALL(cuStreamWriteValue32, "bad-flags", (c.s, c.at, 1, 0x80));
    CALL(cuStreamWriteValue32, "no-barrier",
         (c.s, c.at, 1, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
    CALL(cuStreamWaitValue32, "bad-flags", (c.s, c.at, 1, 0x80));
    CALL(cuStreamWaitValue32, "flush", (c.s, c.at, 0, CU_STREAM_WAIT_VALUE_FLUSH));
    CALL(cuStreamWaitValue64, "misaligned", (c.s, c.at + 1, 1, 0));
    CALL(cuStreamBatchMemOp, "zero-count", (c.s, 0, &op, 0));
    CALL(cuStreamBatchMemOp, "zero-count-null", (c.s, 0, NULL, 0));
    CALL(cuStreamBatchMemOp, "bad-flags", (c.s, 1, &op, 4));
    CALL(cuStreamBatchMemOp, "count-257", (c.s, 257, NULL, 0));
    CALL(cuStreamWriteValue32, "per-thread-stream", (CU_STREAM_PER_THREAD, c.at, 1, 0));
    CALL(cuStreamWaitValue32, "stale-handle", ((CUstream)(uintptr_t)0, c.at, 1, 0));
    (void)PAR_MADE(CUcontext, cuCtxCreate, 0, 0);
    CUstream s = PAR_MADE(CUstream, cuStreamCreate, 0);
    CALL(cuStreamWriteValue32, "old-context", (s, c.at, 1, 0));
    CALL(cuStreamWriteValue32_v2, "old-context", (s, c.at, 1, 0));
    CALL(cuStreamWriteValue32_v2, "old-context-other-stream", (c.s, c.at, 1, 0));
    CALL(cuStreamBatchMemOp, "old-context", (s, 0, NULL, 0));
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuStreamWriteValue32, "no-context", (c.s, c.at, 1, 0));
    CALL(cuStreamBatchMemOp, "no-context", (c.s, 0, NULL, 0));
}

SCENARIO(old_in_capture, "memop/old-in-capture") {
    cells c = make_cells();
    CUgraph graph;
    CUstreamCaptureStatus status;
    SETUP(cuStreamBeginCapture_v2, (c.s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALL(cuStreamWriteValue32, "captured", (c.s, c.at, 1, 0));
    CALL(cuStreamWaitValue64, "captured", (c.s, c.at, 1, 0));
    CALLO(cuStreamIsCapturing, "captured", (c.s, &status), OUT_I(status));
    CALLO(cuStreamEndCapture, "captured", (c.s, &graph), OUT_C(graph));
}

/* In a context of the first version of the API: nothing else may be alive beside it. */
SCENARIO(old_context, "memop/old-context") {
    CUstreamBatchMemOpParams op;
    memset(&op, 0, sizeof(op));
    par_init();
    (void)PAR_MADE(CUcontext, cuCtxCreate, 0, 0);
    CUstream s = PAR_MADE(CUstream, cuStreamCreate, 0);
    void *host = PAR_MADE(void *, cuMemHostAlloc, 4096, CU_MEMHOSTALLOC_DEVICEMAP);
    CUdeviceptr_v1 at = PAR_MADE(CUdeviceptr_v1, cuMemHostGetDevicePointer, host, 0);
    CALL(cuStreamWriteValue32, "old-context", (s, at, 1, 0));
    CALL(cuStreamBatchMemOp, "old-context", (s, 0, NULL, 0));
    CALL(cuStreamWriteValue32_v2, "old-context", (s, at, 1, 0));
    CALL(cuStreamSynchronize, "old-context", (s));
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuStreamWriteValue32, "no-context", (s, at, 1, 0));
    CALL(cuStreamBatchMemOp, "no-context", (s, 0, NULL, 0));
}
