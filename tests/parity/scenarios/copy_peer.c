/* Copies between contexts in three dimensions, batches, prefetching and advice on device memory. */
#include "../parity.h"

#define N ((size_t)4096)

typedef struct places {
    CUdeviceptr d, e;
    char *pinned, *plain;
    CUstream s;
} places;

static places make_places(void) {
    places at;
    par_context();
    at.d = par_alloc(N);
    at.e = par_alloc(N);
    at.pinned = par_pinned(N);
    at.plain = calloc(2, N);
    at.s = par_stream();
    SETUP(cuMemsetD8_v2, (at.d, 7, N));
    SETUP(cuCtxSynchronize, ());
    return at;
}

static CUDA_MEMCPY3D_PEER box(const places *at) {
    CUDA_MEMCPY3D_PEER c = {FROM_DEVICE(at->d),        TO_DEVICE(at->e), .srcContext = par.primary,
                            .dstContext = par.primary, .srcPitch = 64,   .srcHeight = 4,
                            .dstPitch = 128,           .dstHeight = 8,   EXTENT_3D(32, 4, 2)};
    return c;
}

SCENARIO(peer_good, "copy-peer/good") {
    places at = make_places();
    CUDA_MEMCPY3D_PEER c = box(&at);
    CALL(cuMemcpy3DPeer, "ok", (&c));
    CALL(cuMemcpy3DPeer_ptds, "ok", (&c));
    CALL(cuMemcpy3DPeerAsync, "ok", (&c, at.s));
    CALL(cuMemcpy3DPeerAsync_ptsz, "ok", (&c, NULL));
    CALL(cuCtxSynchronize, "after", ());
    CALL(cuMemcpyDtoH_v2, "read-back", (at.plain, at.e, N));
    par_see("content", "%d %d %d", at.plain[0], at.plain[32], at.plain[8 * 128]);
}

SCENARIO(peer_bad, "copy-peer/bad") {
    places at = make_places();
    CUDA_MEMCPY3D_PEER c;
#define PEER(cls, change)                                                                          \
    do {                                                                                           \
        c = box(&at);                                                                              \
        change;                                                                                    \
        CALL(cuMemcpy3DPeer, cls, (&c));                                                           \
        CALL(cuMemcpy3DPeerAsync, cls, (&c, at.s));                                                \
    } while (0)
    PEER("zero-width", c.WidthInBytes = 0);
    PEER("zero-height", c.Height = 0);
    PEER("zero-depth", c.Depth = 0);
    PEER("src-pitch-below-width", c.srcPitch = 16);
    PEER("dst-height-below", c.dstHeight = 2);
    PEER("src-type-zero", c.srcMemoryType = (CUmemorytype)0);
    PEER("dst-random", c.dstDevice = 0x1000);
    PEER("src-null", c.srcDevice = 0);
    PEER("past-end", c.Depth = 9);
    PEER("null-src-ctx", c.srcContext = NULL);
    PEER("null-dst-ctx", c.dstContext = NULL);
    PEER("unified-types", c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_UNIFIED);
    PEER("host-source", (c.srcMemoryType = CU_MEMORYTYPE_HOST, c.srcHost = at.plain));
    PEER("lod-set", c.srcLOD = 1);
    c = box(&at);
    c.srcPitch = 16;
    CALL(cuMemcpy3DPeer_ptds, "src-pitch-below-width", (&c));
    CALL(cuMemcpy3DPeerAsync_ptsz, "src-pitch-below-width", (&c, NULL));
    CALL(cuStreamSynchronize, "after", (at.s));
}

SCENARIO(peer_contexts, "copy-peer/contexts") {
    places at = make_places();
    CUDA_MEMCPY3D_PEER c = box(&at);
    CUcontext other = par_new_context();
    c.dstContext = other;
    CALL(cuMemcpy3DPeer, "foreign-ctx", (&c));
    CALL(cuMemcpy3DPeerAsync, "stream-of-other-ctx", (&c, at.s));
    CALL(cuMemcpyPeerAsync, "foreign-ctx", (at.e, other, at.d, par.primary, N, at.s));
    CALL(cuMemcpyPeerAsync, "null-ctx", (at.e, NULL, at.d, NULL, N, at.s));
    CALL(cuMemcpyPeerAsync, "one-past-end", (at.e, other, at.d, par.primary, N + 1, at.s));
    CALL(cuMemcpyPeerAsync, "random", (0x1000, other, at.d, par.primary, N, at.s));
    CALL(cuMemcpyPeer, "random", (at.e, other, 0x1000, par.primary, N));
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuMemcpy3DPeer, "no-context", (&c));
    CALL(cuMemcpy3DPeerAsync, "no-context", (&c, at.s));
}

static CUDA_MEMCPY3D_BATCH_OP operation(const places *at) {
    CUDA_MEMCPY3D_BATCH_OP op;
    memset(&op, 0, sizeof(op));
    op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = at->d;
    op.dst.op.ptr.ptr = at->e;
    op.src.op.ptr.rowLength = op.dst.op.ptr.rowLength = 64;
    op.src.op.ptr.layerHeight = op.dst.op.ptr.layerHeight = 4;
    op.extent.width = 32;
    op.extent.height = 4;
    op.extent.depth = 2;
    op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    return op;
}

SCENARIO(batch_3d, "copy-batch/three-dimensions") {
    places at = make_places();
    CUDA_MEMCPY3D_BATCH_OP op = operation(&at);
    size_t failed;
    CALLO(cuMemcpy3DBatchAsync, "ok", (1, &op, &failed, 0, at.s), OUT_U(failed));
    CALLO(cuMemcpy3DBatchAsync_ptsz, "created-stream", (1, &op, &failed, 0, at.s), OUT_U(failed));
    CALL(cuMemcpy3DBatchAsync_v2, "ok", (1, &op, 0, at.s));
    CALL(cuMemcpy3DBatchAsync_v2_ptsz, "created-stream", (1, &op, 0, at.s));
#define BATCH(cls, change)                                                                         \
    do {                                                                                           \
        op = operation(&at);                                                                       \
        change;                                                                                    \
        CALLO(cuMemcpy3DBatchAsync, cls, (1, &op, &failed, 0, at.s), OUT_U(failed));               \
        CALL(cuMemcpy3DBatchAsync_v2, cls, (1, &op, 0, at.s));                                     \
    } while (0)
    BATCH("zero-width", op.extent.width = 0);
    BATCH("zero-height", op.extent.height = 0);
    BATCH("zero-depth", op.extent.depth = 0);
    BATCH("tight-rows", op.src.op.ptr.rowLength = op.dst.op.ptr.rowLength = 0);
    BATCH("tight-layers", op.src.op.ptr.layerHeight = op.dst.op.ptr.layerHeight = 0);
    BATCH("row-below-width", op.src.op.ptr.rowLength = 16);
    BATCH("layer-below-height", op.dst.op.ptr.layerHeight = 2);
    BATCH("src-type-zero", op.src.type = (CUmemcpy3DOperandType)0);
    BATCH("bad-order", op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID);
    BATCH("bad-op-flags", op.flags = 8);
    op = operation(&at);
    CALLO(cuMemcpy3DBatchAsync, "zero-count", (0, &op, &failed, 0, at.s), OUT_U(failed));
    CALL(cuMemcpy3DBatchAsync_v2, "zero-count", (0, &op, 0, at.s));
    CALLO(cuMemcpy3DBatchAsync, "null-list", (1, NULL, &failed, 0, at.s), OUT_U(failed));
    CALL(cuMemcpy3DBatchAsync_v2, "null-list", (1, NULL, 0, at.s));
    CALLO(cuMemcpy3DBatchAsync, "bad-flags", (1, &op, &failed, 1, at.s), OUT_U(failed));
    CALL(cuMemcpy3DBatchAsync_v2, "bad-flags", (1, &op, 1, at.s));
    CALLO(cuMemcpy3DBatchAsync, "null-stream", (1, &op, &failed, 0, NULL), OUT_U(failed));
    CALL(cuMemcpy3DBatchAsync_v2, "null-stream", (1, &op, 0, NULL));
    CALL(cuMemcpy3DBatchAsync_v2, "per-thread-stream", (1, &op, 0, CU_STREAM_PER_THREAD));
    CALLO(cuMemcpy3DBatchAsync_ptsz, "null-stream", (1, &op, &failed, 0, NULL), OUT_U(failed));
    CALL(cuMemcpy3DBatchAsync_v2_ptsz, "null-stream", (1, &op, 0, NULL));
    CALL(cuMemcpy3DBatchAsync, "null-fail-index", (1, &op, NULL, 0, at.s));
    CALL(cuStreamSynchronize, "after", (at.s));
}

/* What is not refused at the call faults the context: each in a process of its own. */
static void batch_3d_address(const char *cls, CUdeviceptr to, size_t depth) {
    places at = make_places();
    CUDA_MEMCPY3D_BATCH_OP op = operation(&at);
    op.dst.op.ptr.ptr = to == 1 ? at.e : to;
    op.extent.depth = depth;
    CALL(cuMemcpy3DBatchAsync_v2, cls, (1, &op, 0, at.s));
    CALL(cuStreamSynchronize, cls, (at.s));
}

SCENARIO_IS(batch_3d_null, "copy-batch/3d-null", batch_3d_address("dst-null", 0, 2));
SCENARIO_IS(batch_3d_random, "copy-batch/3d-random", batch_3d_address("dst-random", 0x1000, 2));
SCENARIO_IS(batch_3d_past_end, "copy-batch/3d-past-end", batch_3d_address("past-end", 1, 17));

static void batch_row_address(const char *cls, CUdeviceptr to, CUdeviceptr from, size_t length) {
    places at = make_places();
    CUmemcpyAttributes a = {CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, {0}, {0}, 0};
    CUdeviceptr dsts[1] = {to == 1 ? at.e : to}, srcs[1] = {from == 1 ? at.d : from};
    size_t lengths[1] = {length}, index[1] = {0}, failed;
    CALLO(cuMemcpyBatchAsync, cls, (dsts, srcs, lengths, 1, &a, index, 1, &failed, at.s),
          OUT_U(failed));
    CALL(cuStreamSynchronize, cls, (at.s));
    CALL(cuMemcpyBatchAsync_v2, cls, (dsts, srcs, lengths, 1, &a, index, 1, at.s));
    CALL(cuStreamSynchronize, cls, (at.s));
}

SCENARIO_IS(batch_row_null_source, "copy-batch/null-source",
            batch_row_address("null-source", 1, 0, 64));
SCENARIO_IS(batch_row_random_source, "copy-batch/random-source",
            batch_row_address("random-source", 1, 0x1000, 64));
SCENARIO_IS(batch_row_null_destination, "copy-batch/null-destination",
            batch_row_address("null-destination", 0, 1, 64));
SCENARIO_IS(batch_row_past_end, "copy-batch/past-end", batch_row_address("past-end", 1, 1, N + 1));

SCENARIO(batch_rows, "copy-batch/rows") {
    places at = make_places();
    CUdeviceptr dsts[2] = {at.d, at.e}, srcs[2];
    size_t lengths[2] = {64, 64}, index[2] = {0, 1}, failed;
    CUmemcpyAttributes a[2];
    memset(a, 0, sizeof(a));
    a[0].srcAccessOrder = a[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    srcs[0] = srcs[1] = (CUdeviceptr)(uintptr_t)at.pinned;
#define ROWS(cls, count, attributes)                                                               \
    do {                                                                                           \
        CALLO(cuMemcpyBatchAsync, cls,                                                             \
              (dsts, srcs, lengths, count, a, index, attributes, &failed, at.s), OUT_U(failed));   \
        CALL(cuMemcpyBatchAsync_v2, cls,                                                           \
             (dsts, srcs, lengths, count, a, index, attributes, at.s));                            \
    } while (0)
    ROWS("two-attributes", 2, 2);
    ROWS("more-attributes-than-copies", 1, 2);
    ROWS("zero-count", 0, 1);
    index[0] = 1;
    ROWS("first-index-not-zero", 2, 1);
    index[0] = index[1] = 0;
    ROWS("index-repeated", 2, 2);
    index[1] = 5;
    ROWS("index-past-end", 2, 2);
    index[1] = 1;
    a[0].flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;
    ROWS("overlap-flag", 2, 2);
    a[0].flags = 8;
    ROWS("bad-attribute-flags", 2, 2);
    a[0].flags = 0;
    a[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    ROWS("during-call", 2, 2);
    srcs[0] = (CUdeviceptr)(uintptr_t)at.plain;
    ROWS("plain-source", 2, 2);
    a[0].srcAccessOrder = (CUmemcpySrcAccessOrder)7;
    ROWS("bad-order", 2, 2);
    a[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
    srcs[0] = at.e;
    ROWS("device-source", 2, 2);
    CALLO(cuMemcpyBatchAsync, "null-destinations",
          (NULL, srcs, lengths, 2, a, index, 1, &failed, at.s), OUT_U(failed));
    CALLO(cuMemcpyBatchAsync, "null-sources", (dsts, NULL, lengths, 2, a, index, 1, &failed, at.s),
          OUT_U(failed));
    CALLO(cuMemcpyBatchAsync, "null-sizes", (dsts, srcs, NULL, 2, a, index, 1, &failed, at.s),
          OUT_U(failed));
    CALLO(cuMemcpyBatchAsync_ptsz, "null-stream",
          (dsts, srcs, lengths, 2, a, index, 1, &failed, NULL), OUT_U(failed));
    CALL(cuMemcpyBatchAsync_v2_ptsz, "null-stream", (dsts, srcs, lengths, 2, a, index, 1, NULL));
    CALLO(cuMemcpyBatchAsync_ptsz, "created-stream",
          (dsts, srcs, lengths, 2, a, index, 1, &failed, at.s), OUT_U(failed));
    CALL(cuMemcpyBatchAsync_v2_ptsz, "created-stream", (dsts, srcs, lengths, 2, a, index, 1, at.s));
    CALL(cuMemcpyBatchAsync_v2, "null-stream", (dsts, srcs, lengths, 2, a, index, 1, NULL));
    CALL(cuMemcpyBatchAsync_v2, "null-sizes", (dsts, srcs, NULL, 2, a, index, 1, at.s));
    CALL(cuStreamSynchronize, "after", (at.s));
}

/* For managed memory; what they say of memory that is not. */
SCENARIO(prefetch, "copy-prefetch/device") {
    places at = make_places();
    CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemLocation bad = {CU_MEM_LOCATION_TYPE_DEVICE, 99};
    CUdeviceptr many[1] = {at.d};
    size_t sizes[1] = {N}, index[1] = {0};
    int value;
    CALL(cuMemPrefetchAsync, "device-memory", (at.d, N, 0, at.s));
    CALL(cuMemPrefetchAsync, "bad-device", (at.d, N, 99, at.s));
    CALL(cuMemPrefetchAsync_v2, "device-memory", (at.d, N, device, 0, at.s));
    CALL(cuMemPrefetchAsync_v2, "bad-device", (at.d, N, bad, 0, at.s));
    CALL(cuMemPrefetchAsync_v2, "bad-flags", (at.d, N, device, 1, at.s));
    CALL(cuMemPrefetchAsync_ptsz, "device-memory", (at.d, N, 0, NULL));
    CALL(cuMemPrefetchAsync_v2_ptsz, "device-memory", (at.d, N, device, 0, NULL));
    CALL(cuMemAdvise, "device-memory", (at.d, N, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CALL(cuMemAdvise, "bad-device", (at.d, N, CU_MEM_ADVISE_SET_ACCESSED_BY, 99));
    CALL(cuMemAdvise_v2, "device-memory", (at.d, N, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    CALLO(cuMemRangeGetAttribute, "device-memory",
          (&value, sizeof(value), CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at.d, N), OUT_I(value));
    CALL(cuMemPrefetchBatchAsync, "device-memory", (many, sizes, 1, &device, index, 1, 0, at.s));
    CALL(cuMemDiscardBatchAsync, "device-memory", (many, sizes, 1, 0, at.s));
    CALL(cuMemDiscardAndPrefetchBatchAsync, "device-memory",
         (many, sizes, 1, &device, index, 1, 0, at.s));
    CALL(cuStreamSynchronize, "after", (at.s));
}

/* A few KiB of managed memory: the success lines of functions that this project does not do. */
SCENARIO(prefetch_managed, "copy-prefetch/managed") {
    places at = make_places();
    CUdeviceptr m;
    CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    CUmemLocation bad = {CU_MEM_LOCATION_TYPE_DEVICE, 99};
    int value;
    CALLO(cuMemAllocManaged, "ok", (&m, 65536, CU_MEM_ATTACH_GLOBAL), OUT_P(m));
    CALL(cuMemPrefetchAsync, "managed", (m, 65536, 0, at.s));
    CALL(cuMemPrefetchAsync, "managed-to-host", (m, 65536, -1, at.s));
    CALL(cuMemPrefetchAsync, "managed-bad-device", (m, 65536, 99, at.s));
    CALL(cuMemPrefetchAsync_v2, "managed", (m, 65536, device, 0, at.s));
    CALL(cuMemPrefetchAsync_v2, "managed-to-host", (m, 65536, host, 0, at.s));
    CALL(cuMemPrefetchAsync_v2, "managed-bad-device", (m, 65536, bad, 0, at.s));
    CALL(cuMemPrefetchAsync_ptsz, "managed", (m, 65536, 0, NULL));
    CALL(cuMemPrefetchAsync_v2_ptsz, "managed", (m, 65536, device, 0, NULL));
    CALL(cuMemAdvise, "managed", (m, 65536, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CALL(cuMemAdvise, "managed-bad-device", (m, 65536, CU_MEM_ADVISE_SET_ACCESSED_BY, 99));
    CALL(cuMemAdvise, "bad-advice", (m, 65536, (CUmem_advise)99, 0));
    CALL(cuMemAdvise_v2, "managed", (m, 65536, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
    CALL(cuMemAdvise_v2, "managed-bad-device", (m, 65536, CU_MEM_ADVISE_SET_ACCESSED_BY, bad));
    CALLO(cuMemRangeGetAttribute, "managed",
          (&value, sizeof(value), CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, 65536), OUT_I(value));
    CALL(cuStreamSynchronize, "after", (at.s));
    CALL(cuMemFree_v2, "managed", (m));
}

SCENARIO(twin_errors, "copy-twins/errors") {
    places at = make_places();
    CUdeviceptr plain = (CUdeviceptr)(uintptr_t)at.plain;
    CUDA_MEMCPY2D flat = {FROM_DEVICE(at.d), TO_DEVICE(at.e), EXTENT(32, 2), .srcPitch = 16,
                          .dstPitch = 16};
    CUDA_MEMCPY3D deep = {FROM_DEVICE(at.d), TO_DEVICE(at.e), EXTENT_3D(32, 2, 2), .srcPitch = 16,
                          .dstPitch = 16};
    CALL(cuMemcpy, "one-past-end", (at.e, at.d, N + 1));
    CALL(cuMemcpy, "null-both", (0, 0, N));
    CALL(cuMemcpy_ptds, "one-past-end", (at.e, at.d, N + 1));
    CALL(cuMemcpyAsync_ptsz, "one-past-end", (at.e, at.d, N + 1, NULL));
    CALL(cuMemcpyHtoD_v2_ptds, "one-past-end", (at.d, at.plain, N + 1));
    CALL(cuMemcpyDtoH_v2_ptds, "one-past-end", (at.plain, at.d, N + 1));
    CALL(cuMemcpyDtoD_v2_ptds, "one-past-end", (at.e, at.d, N + 1));
    CALL(cuMemcpyHtoDAsync_v2_ptsz, "one-past-end", (at.d, at.plain, N + 1, NULL));
    CALL(cuMemcpyDtoHAsync_v2_ptsz, "one-past-end", (at.plain, at.d, N + 1, NULL));
    CALL(cuMemcpyDtoDAsync_v2_ptsz, "one-past-end", (at.e, at.d, N + 1, NULL));
    CALL(cuMemcpyPeer_ptds, "one-past-end", (at.e, par.primary, at.d, par.primary, N + 1));
    CALL(cuMemcpyPeerAsync_ptsz, "one-past-end",
         (at.e, par.primary, at.d, par.primary, N + 1, NULL));
    CALL(cuMemcpy2D_v2_ptds, "pitch-below-width", (&flat));
    CALL(cuMemcpy2DUnaligned_v2_ptds, "pitch-below-width", (&flat));
    CALL(cuMemcpy2DAsync_v2_ptsz, "pitch-below-width", (&flat, NULL));
    CALL(cuMemcpy3D_v2_ptds, "pitch-below-width", (&deep));
    CALL(cuMemcpy3DAsync_v2_ptsz, "pitch-below-width", (&deep, NULL));
    CALL(cuMemsetD8_v2_ptds, "one-past-end", (at.d, 1, N + 1));
    CALL(cuMemsetD16_v2_ptds, "misaligned", (at.d + 1, 1, 4));
    CALL(cuMemsetD32_v2_ptds, "misaligned", (at.d + 2, 1, 4));
    CALL(cuMemsetD8Async_ptsz, "one-past-end", (at.d, 1, N + 1, NULL));
    CALL(cuMemsetD16Async_ptsz, "misaligned", (at.d + 1, 1, 4, NULL));
    CALL(cuMemsetD2D8_v2_ptds, "pitch-below-width", (at.d, 32, 1, 64, 8));
    CALL(cuMemsetD2D16_v2_ptds, "misaligned", (at.d + 1, 128, 1, 32, 8));
    CALL(cuMemsetD2D32_v2_ptds, "misaligned", (at.d + 2, 128, 1, 16, 8));
    CALL(cuMemsetD2D8Async_ptsz, "pitch-below-width", (at.d, 32, 1, 64, 8, NULL));
    CALL(cuMemsetD2D16Async_ptsz, "misaligned", (at.d + 1, 128, 1, 32, 8, NULL));
    CALL(cuMemsetD2D32Async_ptsz, "misaligned", (at.d + 2, 128, 1, 16, 8, NULL));
    CALL(cuMemcpyHtoD_v2_ptds, "host-to-plain", (plain, at.plain + N, N));
    CALL(cuCtxSynchronize, "after", ());
}
