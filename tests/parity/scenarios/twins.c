/* The twins for per-thread default streams of stream, event and memory operations: success and
 * errors. */
#include "../parity.h"

static int runs;

static void CUDAAPI count_run(void *unused) {
    runs++;
}

static void CUDAAPI count_callback(CUstream stream, CUresult status, void *unused) {
    runs++;
}

SCENARIO(streams, "twins/streams", par_context) {
    CUstreamAttrValue value;
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUstream s = par_stream();
    CUstream t = par_stream();
    CUevent e = par_event(0);
    memset(&value, 0, sizeof(value));
    CALLO(cuStreamGetAttribute_ptsz, "ok", (s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value),
          OUT_I(value.priority));
    CALLO(cuStreamGetAttribute_ptsz, "bad-attribute", (s, (CUstreamAttrID)99, &value),
          OUT_I(value.priority));
    memset(&value, 0, sizeof(value));
    value.syncPolicy = CU_SYNC_POLICY_YIELD;
    CALL(cuStreamSetAttribute_ptsz, "ok", (s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    CALL(cuStreamSetAttribute_ptsz, "bad-attribute", (s, (CUstreamAttrID)99, &value));
    CALL(cuStreamSetAttribute, "null-stream",
         (NULL, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    CALL(cuStreamSetAttribute, "bad-attribute", (s, (CUstreamAttrID)99, &value));
    CALL(cuStreamCopyAttributes_ptsz, "ok", (t, s));
    CALL(cuStreamCopyAttributes_ptsz, "null-both", (NULL, NULL));
    CALL(cuStreamCopyAttributes, "null-both", (NULL, NULL));
    CALL(cuStreamCopyAttributes, "to-null-stream", (NULL, s));
    CALL(cuStreamCopyAttributes, "from-legacy-stream", (s, CU_STREAM_LEGACY));
    CALL(cuStreamGetFlags_ptsz, "null-out", (s, NULL));
    CALL(cuStreamGetPriority_ptsz, "null-out", (s, NULL));
    CALL(cuStreamGetCtx_ptsz, "null-out", (s, NULL));
    CALL(cuStreamGetCtx_v2, "null-both", (s, NULL, NULL));
    CALL(cuStreamGetCtx_v2_ptsz, "null-both", (s, NULL, NULL));
    CALL(cuStreamGetDevice_ptsz, "null-out", (s, NULL));
    CALL(cuStreamGetId_ptsz, "null-out", (s, NULL));
    CALL(cuStreamIsCapturing_ptsz, "null-out", (s, NULL));
    CALLO(cuStreamGetCaptureInfo_ptsz, "not-capturing", (s, &status, &id), OUT_I(status),
          OUT_C(id));
    CALL(cuStreamGetCaptureInfo, "null-status", (s, NULL, NULL));
    CALL(cuStreamGetCaptureInfo_ptsz, "null-status", (s, NULL, NULL));
    CALLO(cuStreamGetCaptureInfo, "null-id", (s, &status, NULL), OUT_I(status));
    CALLO(cuStreamGetCaptureInfo, "legacy-stream", (CU_STREAM_LEGACY, &status, &id), OUT_I(status));
    CALLO(cuStreamGetCaptureInfo_v2, "not-capturing", (s, &status, &id, NULL, NULL, NULL),
          OUT_I(status));
    CALLO(cuStreamGetCaptureInfo_v2_ptsz, "not-capturing", (s, &status, &id, NULL, NULL, NULL),
          OUT_I(status));
    CALLO(cuStreamGetCaptureInfo_v3, "not-capturing", (s, &status, &id, NULL, NULL, NULL, NULL),
          OUT_I(status));
    CALLO(cuStreamGetCaptureInfo_v3_ptsz, "not-capturing",
          (s, &status, &id, NULL, NULL, NULL, NULL), OUT_I(status));
    CALL(cuStreamWaitEvent_ptsz, "ok", (s, e, 0));
    CALL(cuStreamWaitEvent_ptsz, "null", (s, NULL, 0));
    CALL(cuStreamWaitEvent_ptsz, "bad-flags", (s, e, 8));
    CALL(cuLaunchHostFunc_ptsz, "null-stream", (NULL, count_run, NULL));
    CALL(cuLaunchHostFunc_ptsz, "null-function", (s, NULL, NULL));
    CALL(cuStreamAddCallback_ptsz, "ok", (s, count_callback, NULL, 0));
    CALL(cuStreamAddCallback_ptsz, "bad-flags", (s, count_callback, NULL, 1));
    CALL(cuStreamSynchronize_ptsz, "null-stream", (NULL));
    CALL(cuStreamSynchronize, "ok", (s));
    par_see("runs", "%d", runs);
}

SCENARIO(events, "twins/events", par_context) {
    CUstream s = par_stream();
    CUevent e = par_event(0);
    CALL(cuEventRecord_ptsz, "ok", (e, s));
    CALL(cuEventRecord_ptsz, "null", (NULL, s));
    CALL(cuEventRecordWithFlags_ptsz, "created-stream", (e, s, 0));
    CALL(cuEventRecordWithFlags_ptsz, "null", (NULL, s, 0));
    CALL(cuEventRecordWithFlags_ptsz, "bad-flags", (e, s, 9));
    CALL(cuEventRecordWithFlags_ptsz, "external", (e, s, CU_EVENT_RECORD_EXTERNAL));
    CALL(cuEventDestroy, "null", (NULL));
    CALL(cuStreamDestroy, "null-stream", (NULL));
    CALL(cuStreamSynchronize, "ok", (s));
}

SCENARIO(memory_operations, "twins/memory-operations", par_context) {
    CUstreamBatchMemOpParams ops[1];
    CUstream s = par_stream();
    CUdeviceptr at = PAR_MADE(CUdeviceptr, cuMemHostGetDevicePointer_v2, par_pinned(4096), 0);
    memset(ops, 0, sizeof(ops));
    ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[0].writeValue.address = at;
    CALL(cuStreamBatchMemOp_v2, "write", (s, 1, ops, 0));
    CALL(cuStreamBatchMemOp_v2_ptsz, "write", (s, 1, ops, 0));
    ops[0].writeValue.address = 0x1000;
    CALL(cuStreamBatchMemOp_v2, "write-random", (s, 1, ops, 0));
    CALL(cuStreamBatchMemOp_v2_ptsz, "write-random", (s, 1, ops, 0));
    CALL(cuStreamBatchMemOp, "write-random", (s, 1, ops, 0));
    ops[0].writeValue.address = at + 2;
    CALL(cuStreamBatchMemOp_v2, "write-misaligned", (s, 1, ops, 0));
    CALL(cuStreamBatchMemOp_v2_ptsz, "bad-flags", (s, 1, ops, 7));
    CALL(cuStreamWriteValue32_v2_ptsz, "random", (s, 0x1000, 1, 0));
    CALL(cuStreamWriteValue64_v2_ptsz, "misaligned", (s, at + 4, 1, 0));
    CALL(cuStreamWaitValue32_v2_ptsz, "bad-flags", (s, at, 0, 0x80));
    CALL(cuStreamWaitValue64_v2_ptsz, "misaligned", (s, at + 4, 0, 0));
    CALL(cuStreamWaitValue64_v2, "ok", (s, at, 0, CU_STREAM_WAIT_VALUE_GEQ));
    CALL(cuStreamSynchronize, "ok", (s));
}

static void batch_of(unsigned count) {
    static CUstreamBatchMemOpParams ops[300];
    par_context();
    CUstream s = par_stream();
    CUdeviceptr at = PAR_MADE(CUdeviceptr, cuMemHostGetDevicePointer_v2, par_pinned(4096), 0);
    for (unsigned i = 0; i < count; i++) {
        ops[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        ops[i].writeValue.address = at + 4 * (uint64_t)i;
        ops[i].writeValue.value = i;
    }
    par_note("count=%u", count);
    CALL(cuStreamBatchMemOp_v2, "many", (s, count, ops, 0));
    CALL(cuStreamSynchronize, "after", (s));
}

SCENARIO_IS(batch_256, "twins/batch-256", batch_of(256));
SCENARIO_IS(batch_257, "twins/batch-257", batch_of(257));

SCENARIO(pools, "twins/pools", par_context) {
    CUdeviceptr p;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUmemoryPool pool = par_pool(&props);
    CALL(cuMemAllocAsync_ptsz, "null-out", (NULL, 4096, NULL));
    CALLO(cuMemAllocAsync_ptsz, "zero-size", (&p, 0, NULL), OUT_P(p));
    CALL(cuMemAllocFromPoolAsync_ptsz, "null-out", (NULL, 4096, pool, NULL));
    CALLO(cuMemAllocFromPoolAsync_ptsz, "null-pool", (&p, 4096, NULL, NULL), OUT_P(p));
    CALL(cuMemFreeAsync_ptsz, "random", (0x1000, NULL));
    CALL(cuMemFreeAsync_ptsz, "null", (0, NULL));
}
