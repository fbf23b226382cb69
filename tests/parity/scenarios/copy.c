/* Copies: every direction, synchronous and not, sizes, ends of memory, pitches. */
#include "../parity.h"

#define N ((size_t)4096)

typedef struct places {
    CUdeviceptr d, e, freed;
    char *pinned, *plain, *other;
    CUstream s;
} places;

static places make_places(void) {
    places at;
    par_context();
    at.d = par_alloc(N);
    at.e = par_alloc(N);
    at.freed = par_alloc(4 * PAR_2M);
    SETUP(cuMemFree_v2, (at.freed));
    at.pinned = par_pinned(N);
    at.plain = calloc(2, N);
    at.other = calloc(2, N);
    at.s = par_stream();
    SETUP(cuMemsetD8_v2, (at.d, 7, N));
    return at;
}

SCENARIO(host_and_device, "copy/host-and-device") {
    places at = make_places();
    memset(at.plain, 42, N);
    CALL(cuMemcpyHtoD_v2, "plain", (at.d, at.plain, N));
    CALL(cuMemcpyDtoH_v2, "plain", (at.other, at.d, N));
    par_see("content", "%d %d", at.other[0], at.other[N - 1]);
    CALL(cuMemcpyHtoD_v2, "pinned", (at.d, at.pinned, N));
    CALL(cuMemcpyDtoH_v2, "pinned", (at.pinned, at.d, N));
    CALL(cuMemcpyDtoD_v2, "ok", (at.e, at.d, N));
    CALL(cuMemcpyDtoD_v2, "same", (at.d, at.d, N));
    CALL(cuMemcpyDtoD_v2, "overlapping", (at.d, at.d + 8, N - 8));
    CALL(cuMemcpy, "device-device", (at.e, at.d, N));
    CALL(cuMemcpy, "host-device", (at.e, (CUdeviceptr)(uintptr_t)at.plain, N));
    CALL(cuMemcpy, "device-host", ((CUdeviceptr)(uintptr_t)at.plain, at.e, N));
    CALL(cuMemcpy, "host-host",
         ((CUdeviceptr)(uintptr_t)at.plain, (CUdeviceptr)(uintptr_t)at.other, N));
    CALL(cuMemcpyHtoD_v2, "host-to-pinned", ((CUdeviceptr)(uintptr_t)at.pinned, at.plain, N));
    CALL(cuMemcpyHtoD_v2, "host-to-plain", ((CUdeviceptr)(uintptr_t)at.other, at.plain, N));
    CALL(cuMemcpyHtoD_v2, "device-as-host", (at.d, (void *)(uintptr_t)at.e, N));
    CALL(cuMemcpyDtoH_v2, "host-as-device", (at.other, (CUdeviceptr)(uintptr_t)at.plain, N));
    CALL(cuMemcpyDtoH_v2, "device-as-host", ((void *)(uintptr_t)at.e, at.d, N));
    CALL(cuMemcpyDtoD_v2, "pinned-as-device", (at.d, (CUdeviceptr)(uintptr_t)at.pinned, N));
    CALL(cuMemcpyDtoD_v2, "plain-as-device", (at.d, (CUdeviceptr)(uintptr_t)at.plain, N));
}

SCENARIO(zero_size, "copy/zero-size") {
    places at = make_places();
    CALL(cuMemcpyHtoD_v2, "zero-size", (at.d, at.plain, 0));
    CALL(cuMemcpyHtoD_v2, "zero-size-null", (0, NULL, 0));
    CALL(cuMemcpyDtoH_v2, "zero-size", (at.plain, at.d, 0));
    CALL(cuMemcpyDtoH_v2, "zero-size-null", (NULL, 0, 0));
    CALL(cuMemcpyDtoD_v2, "zero-size", (at.e, at.d, 0));
    CALL(cuMemcpyDtoD_v2, "zero-size-null", (0, 0, 0));
    CALL(cuMemcpyDtoD_v2, "zero-size-random", (0x1000, 0x2000, 0));
    CALL(cuMemcpy, "zero-size-null", (0, 0, 0));
    CALL(cuMemcpyAsync, "zero-size-null", (0, 0, 0, at.s));
    CALL(cuMemcpyHtoDAsync_v2, "zero-size-null", (0, NULL, 0, at.s));
    CALL(cuMemcpyDtoHAsync_v2, "zero-size-null", (NULL, 0, 0, at.s));
    CALL(cuMemcpyDtoDAsync_v2, "zero-size-null", (0, 0, 0, at.s));
    CALL(cuMemcpyPeer, "zero-size-null", (0, par.primary, 0, par.primary, 0));
}

SCENARIO(bad_device_end, "copy/bad-device-end") {
    places at = make_places();
    CALL(cuMemcpyHtoD_v2, "one-past-end", (at.d, at.plain, N + 1));
    CALL(cuMemcpyDtoH_v2, "one-past-end", (at.plain, at.d, N + 1));
    CALL(cuMemcpyDtoD_v2, "dst-one-past-end", (at.d, at.freed - PAR_2M, N + 1));
    CALL(cuMemcpyDtoD_v2, "one-past-end", (at.e, at.d, N + 1));
    CALL(cuMemcpyHtoD_v2, "offset-past-end", (at.d + 1, at.plain, N));
    CALL(cuMemcpyHtoD_v2, "null-device", (0, at.plain, N));
    CALL(cuMemcpyDtoH_v2, "null-device", (at.plain, 0, N));
    CALL(cuMemcpyDtoD_v2, "null-device", (0, at.d, N));
    CALL(cuMemcpyDtoD_v2, "null-device", (at.d, 0, N));
    CALL(cuMemcpyHtoD_v2, "random-device", (0x1000, at.plain, N));
    CALL(cuMemcpyHtoD_v2, "freed-device", (at.freed, at.plain, N));
    CALL(cuMemcpyDtoH_v2, "freed-device", (at.plain, at.freed, N));
    CALL(cuMemcpyDtoD_v2, "freed-device", (at.d, at.freed, N));
    CALL(cuMemcpy, "freed-device", (at.d, at.freed, N));
    CALL(cuMemcpyHtoD_v2, "huge", (at.d, at.plain, (size_t)1 << 40));
    CALL(cuMemcpyHtoD_v2, "wraps", (at.d, at.plain, ~(size_t)0));
    CALL(cuCtxSynchronize, "after-refusals", ());
}

SCENARIO(bad_device_end_async, "copy/bad-device-end-async") {
    places at = make_places();
    CALL(cuMemcpyHtoDAsync_v2, "one-past-end", (at.d, at.plain, N + 1, at.s));
    CALL(cuMemcpyDtoHAsync_v2, "one-past-end", (at.plain, at.d, N + 1, at.s));
    CALL(cuMemcpyDtoDAsync_v2, "one-past-end", (at.e, at.d, N + 1, at.s));
    CALL(cuMemcpyAsync, "one-past-end", (at.e, at.d, N + 1, at.s));
    CALL(cuMemcpyHtoDAsync_v2, "null-device", (0, at.plain, N, at.s));
    CALL(cuMemcpyDtoHAsync_v2, "random-device", (at.plain, 0x1000, N, at.s));
    CALL(cuMemcpyHtoDAsync_v2, "freed-device", (at.freed, at.pinned, N, at.s));
    CALL(cuMemcpyDtoDAsync_v2, "freed-device", (at.d, at.freed, N, at.s));
    CALL(cuMemcpyAsync, "null-both", (0, 0, N, at.s));
    CALL(cuStreamSynchronize, "after-refusals", (at.s));
}

SCENARIO(null_host_to_device, "copy/null-host-to-device") {
    places at = make_places();
    CALL(cuMemcpyHtoD_v2, "null-host", (at.d, NULL, N));
}

SCENARIO(null_host_from_device, "copy/null-host-from-device") {
    places at = make_places();
    CALL(cuMemcpyDtoH_v2, "null-host", (NULL, at.d, N));
}

SCENARIO(bad_host_from_device, "copy/bad-host-from-device") {
    places at = make_places();
    CALL(cuMemcpyDtoH_v2, "unmapped-host", ((void *)0x10000, at.d, N));
}

SCENARIO(pinned_past_end, "copy/pinned-past-end") {
    places at = make_places();
    CALL(cuMemcpyHtoD_v2, "pinned-past-end", (at.freed - PAR_2M, at.pinned, N));
    CALL(cuMemcpyHtoDAsync_v2, "pinned-past-end", (at.d, at.pinned + 8, N, at.s));
    CALL(cuMemcpyDtoHAsync_v2, "pinned-past-end", (at.pinned + 8, at.d, N, at.s));
    CALL(cuStreamSynchronize, "after", (at.s));
}

SCENARIO(across_allocations, "copy/across-allocations", par_context) {
    char *host = calloc(1, 8192);
    CUdeviceptr a = par_alloc(1024);
    CUdeviceptr b = par_alloc(1024);
    CUdeviceptr low = a < b ? a : b;
    par_see("distance", "%llu", (unsigned long long)(a < b ? b - a : a - b));
    CALL(cuMemcpyHtoD_v2, "into-neighbour", (low, host, 1536));
    CALL(cuMemcpyDtoH_v2, "into-neighbour", (host, low, 2048));
    CALL(cuMemcpyDtoDAsync_v2, "into-neighbour", (low, low + 512, 1024, NULL));
    CALL(cuMemsetD8_v2, "into-neighbour", (low, 0, 1536));
    CALL(cuCtxSynchronize, "after", ());
}

SCENARIO(asynchronous, "copy/asynchronous") {
    places at = make_places();
    CALL(cuMemcpyHtoDAsync_v2, "pinned", (at.d, at.pinned, N, at.s));
    CALL(cuMemcpyHtoDAsync_v2, "plain", (at.d, at.plain, N, at.s));
    CALL(cuMemcpyDtoHAsync_v2, "pinned", (at.pinned, at.d, N, at.s));
    CALL(cuMemcpyDtoHAsync_v2, "plain", (at.plain, at.d, N, at.s));
    CALL(cuMemcpyDtoDAsync_v2, "ok", (at.e, at.d, N, at.s));
    CALL(cuMemcpyAsync, "device-device", (at.e, at.d, N, at.s));
    CALL(cuMemcpyAsync, "host-host",
         ((CUdeviceptr)(uintptr_t)at.plain, (CUdeviceptr)(uintptr_t)at.other, N, at.s));
    CALL(cuMemcpyAsync, "legacy-stream", (at.e, at.d, N, CU_STREAM_LEGACY));
    CALL(cuMemcpyAsync, "per-thread-stream", (at.e, at.d, N, CU_STREAM_PER_THREAD));
    CALL(cuMemcpyAsync, "null-stream", (at.e, at.d, N, NULL));
    CALL(cuStreamSynchronize, "ok", (at.s));
    CALL(cuCtxSynchronize, "ok", ());
}

SCENARIO(held_plain_host, "copy/held-plain-host") {
    places at = make_places();
    CUstream held = par_stream();
    memset(at.plain, 1, N);
    par_hold(held);
    CALL(cuMemcpyHtoDAsync_v2, "held-plain", (at.d, at.plain, N, held));
    memset(at.plain, 2, N);
    CALL(cuStreamQuery, "held", (held));
    PAR_DRAIN("released", held);
    CALL(cuMemcpyDtoH_v2, "read-back", (at.other, at.d, N));
    par_see("source-was-read", at.other[0] == 1 ? "at-the-call" : "in-stream-order");
}

SCENARIO(held_pinned_host, "copy/held-pinned-host") {
    places at = make_places();
    CUstream held = par_stream();
    memset(at.pinned, 1, N);
    par_hold(held);
    CALL(cuMemcpyHtoDAsync_v2, "held-pinned", (at.d, at.pinned, N, held));
    memset(at.pinned, 2, N);
    CALL(cuStreamQuery, "held", (held));
    PAR_DRAIN("released", held);
    CALL(cuMemcpyDtoH_v2, "read-back", (at.other, at.d, N));
    par_see("source-was-read", at.other[0] == 1 ? "at-the-call" : "in-stream-order");
}

/* A device to plain host copy on a held stream: does the call wait? A timeout says yes. */
SCENARIO(held_to_plain, "copy/held-to-plain") {
    places at = make_places();
    CUstream held = par_stream();
    par_hold(held);
    CALL(cuMemcpyDtoHAsync_v2, "held-plain", (at.plain, at.d, N, held));
    PAR_DRAIN("released", held);
}

SCENARIO(twins, "copy/twins") {
    places at = make_places();
    CALL(cuMemcpy_ptds, "ok", (at.e, at.d, N));
    CALL(cuMemcpyAsync_ptsz, "ok", (at.e, at.d, N, NULL));
    CALL(cuMemcpyHtoD_v2_ptds, "ok", (at.d, at.plain, N));
    CALL(cuMemcpyDtoH_v2_ptds, "ok", (at.plain, at.d, N));
    CALL(cuMemcpyDtoD_v2_ptds, "ok", (at.e, at.d, N));
    CALL(cuMemcpyHtoDAsync_v2_ptsz, "ok", (at.d, at.plain, N, NULL));
    CALL(cuMemcpyDtoHAsync_v2_ptsz, "ok", (at.plain, at.d, N, NULL));
    CALL(cuMemcpyDtoDAsync_v2_ptsz, "ok", (at.e, at.d, N, NULL));
    CALL(cuMemcpyPeer_ptds, "ok", (at.e, par.primary, at.d, par.primary, N));
    CALL(cuMemcpyPeerAsync_ptsz, "ok", (at.e, par.primary, at.d, par.primary, N, NULL));
    CALL(cuMemcpyHtoD_v2_ptds, "null-device", (0, at.plain, N));
    CALL(cuMemcpyDtoHAsync_v2_ptsz, "random-device", (at.plain, 0x1000, N, NULL));
    CALL(cuCtxSynchronize, "ok", ());
}

SCENARIO(old_versions, "copy/old-versions") {
    places at = make_places();
    CALL(cuMemcpyHtoD, "v1-random", (0x1000, at.plain, 16));
    CALL(cuMemcpyDtoH, "v1-random", (at.plain, 0x1000, 16));
    CALL(cuMemcpyDtoD, "v1-random", (0x1000, 0x2000, 16));
    CALL(cuMemcpyHtoD, "v1-zero-size", (0, at.plain, 0));
    CALL(cuMemcpyHtoDAsync, "v1-random", (0x1000, at.plain, 16, at.s));
    CALL(cuMemcpyDtoHAsync, "v1-random", (at.plain, 0x1000, 16, at.s));
    CALL(cuMemcpyDtoDAsync, "v1-random", (0x1000, 0x2000, 16, at.s));
}

SCENARIO(peer, "copy/peer") {
    places at = make_places();
    CALL(cuMemcpyPeer, "same-ctx", (at.e, par.primary, at.d, par.primary, N));
    CALL(cuMemcpyPeer, "null-ctx", (at.e, NULL, at.d, NULL, N));
    CALL(cuMemcpyPeer, "one-past-end", (at.e, par.primary, at.d, par.primary, N + 1));
    CALL(cuMemcpyPeerAsync, "same-ctx", (at.e, par.primary, at.d, par.primary, N, at.s));
    CUcontext other = par_new_context();
    CALL(cuMemcpyPeer, "foreign-ctx", (at.e, other, at.d, par.primary, N));
    CALL(cuMemcpyDtoD_v2, "memory-of-other-ctx", (at.e, at.d, N));
    CALL(cuMemcpyDtoDAsync_v2, "stream-of-other-ctx", (at.e, at.d, N, at.s));
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuMemcpyDtoD_v2, "no-context", (at.e, at.d, N));
    CALL(cuMemcpyHtoD_v2, "no-context", (at.e, at.plain, N));
    CALL(cuMemcpyDtoDAsync_v2, "no-context", (at.e, at.d, N, at.s));
}

static CUDA_MEMCPY2D plane(const places *at) {
    return (CUDA_MEMCPY2D){FROM_HOST(at->plain), .srcPitch = 64, TO_DEVICE(at->d), .dstPitch = 128,
                           EXTENT(32, 8)};
}

SCENARIO(two_dimensions, "copy/two-dimensions") {
    places at = make_places();
    CUDA_MEMCPY2D c = plane(&at);
    CALL(cuMemcpy2D_v2, "ok", (&c));
    CALL(cuMemcpy2DUnaligned_v2, "ok", (&c));
    CALL(cuMemcpy2DAsync_v2, "ok", (&c, at.s));
    CALL(cuMemcpy2D_v2_ptds, "ok", (&c));
    CALL(cuMemcpy2DUnaligned_v2_ptds, "ok", (&c));
    CALL(cuMemcpy2DAsync_v2_ptsz, "ok", (&c, NULL));
#define BAD2D(cls, change)                                                                         \
    do {                                                                                           \
        c = plane(&at);                                                                            \
        change;                                                                                    \
        CALL(cuMemcpy2D_v2, cls, (&c));                                                            \
        CALL(cuMemcpy2DUnaligned_v2, cls, (&c));                                                   \
        CALL(cuMemcpy2DAsync_v2, cls, (&c, at.s));                                                 \
    } while (0)
    BAD2D("zero-width", c.WidthInBytes = 0);
    BAD2D("zero-height", c.Height = 0);
    BAD2D("src-pitch-below-width", c.srcPitch = 16);
    BAD2D("dst-pitch-below-width", c.dstPitch = 16);
    BAD2D("src-pitch-zero", c.srcPitch = 0);
    BAD2D("dst-pitch-zero", c.dstPitch = 0);
    BAD2D("pitch-zero-one-row", (c.srcPitch = c.dstPitch = 0, c.Height = 1));
    BAD2D("src-type-zero", c.srcMemoryType = (CUmemorytype)0);
    BAD2D("dst-type-bad", c.dstMemoryType = (CUmemorytype)9);
    BAD2D("src-null", c.srcHost = NULL);
    BAD2D("dst-null", c.dstDevice = 0);
    BAD2D("dst-random", c.dstDevice = 0x1000);
    BAD2D("dst-freed", c.dstDevice = at.freed);
    BAD2D("unified-types", (c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                            c.srcDevice = (CUdeviceptr)(uintptr_t)at.plain));
    BAD2D("one-row-past-end", c.Height = 33);
    BAD2D("last-row-ends-at-end", (c.Height = 32, c.dstPitch = 128));
    BAD2D("offsets", (c.dstXInBytes = 96, c.dstY = 1));
    BAD2D("x-and-width-past-pitch", c.dstXInBytes = 100);
    BAD2D("pitch-over-maximum", (c.dstPitch = (size_t)1 << 32, c.Height = 1));
    BAD2D("array-null", (c.dstMemoryType = CU_MEMORYTYPE_ARRAY, c.dstArray = NULL));
    CALL(cuStreamSynchronize, "after", (at.s));
}

SCENARIO(two_dimensions_null, "copy/two-dimensions-null") {
    places at = make_places();
    CALL(cuMemcpy2D_v2, "null-descriptor", (NULL));
    CALL(cuMemcpy2DAsync_v2, "null-descriptor", (NULL, at.s));
    CALL(cuMemcpy2DUnaligned_v2, "null-descriptor", (NULL));
}

static CUDA_MEMCPY3D box(const places *at) {
    return (CUDA_MEMCPY3D){FROM_HOST(at->plain), .srcPitch = 64, .srcHeight = 4,
                           TO_DEVICE(at->d),     .dstPitch = 64, .dstHeight = 8,
                           EXTENT_3D(32, 4, 2)};
}

SCENARIO(three_dimensions, "copy/three-dimensions") {
    places at = make_places();
    CUDA_MEMCPY3D c = box(&at);
    CALL(cuMemcpy3D_v2, "ok", (&c));
    CALL(cuMemcpy3DAsync_v2, "ok", (&c, at.s));
    CALL(cuMemcpy3D_v2_ptds, "ok", (&c));
    CALL(cuMemcpy3DAsync_v2_ptsz, "ok", (&c, NULL));
#define BAD3D(cls, change)                                                                         \
    do {                                                                                           \
        c = box(&at);                                                                              \
        change;                                                                                    \
        CALL(cuMemcpy3D_v2, cls, (&c));                                                            \
        CALL(cuMemcpy3DAsync_v2, cls, (&c, at.s));                                                 \
    } while (0)
    BAD3D("zero-width", c.WidthInBytes = 0);
    BAD3D("zero-height", c.Height = 0);
    BAD3D("zero-depth", c.Depth = 0);
    BAD3D("src-pitch-below-width", c.srcPitch = 16);
    BAD3D("dst-pitch-zero", c.dstPitch = 0);
    BAD3D("src-height-below", c.srcHeight = 2);
    BAD3D("dst-height-zero", c.dstHeight = 0);
    BAD3D("height-zero-one-layer", (c.dstHeight = c.srcHeight = 0, c.Depth = 1));
    BAD3D("src-type-zero", c.srcMemoryType = (CUmemorytype)0);
    BAD3D("src-null", c.srcHost = NULL);
    BAD3D("dst-random", c.dstDevice = 0x1000);
    BAD3D("past-end", c.Depth = 9);
    BAD3D("reserved-set", c.reserved0 = at.plain);
    BAD3D("lod-set", c.srcLOD = 1);
    BAD3D("offsets", (c.dstXInBytes = 32, c.dstY = 4, c.dstZ = 1));
    CALL(cuStreamSynchronize, "after", (at.s));
}

SCENARIO(three_dimensions_null, "copy/three-dimensions-null") {
    places at = make_places();
    CALL(cuMemcpy3D_v2, "null-descriptor", (NULL));
    CALL(cuMemcpy3DAsync_v2, "null-descriptor", (NULL, at.s));
    CALL(cuMemcpy3DPeer, "null-descriptor", (NULL));
}

SCENARIO(batch, "copy/batch") {
    places at = make_places();
    CUdeviceptr dsts[2] = {at.d, at.e}, srcs[2];
    size_t lengths[2] = {64, 64}, index[1] = {0}, failed;
    CUmemcpyAttributes attribute = {CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, {0}, {0}, 0};
    srcs[0] = srcs[1] = (CUdeviceptr)(uintptr_t)at.pinned;
    CALLO(cuMemcpyBatchAsync, "ok", (dsts, srcs, lengths, 2, &attribute, index, 1, &failed, at.s),
          OUT_U(failed));
    CALLO(cuMemcpyBatchAsync, "zero-count",
          (dsts, srcs, lengths, 0, &attribute, index, 1, &failed, at.s), OUT_U(failed));
    CALLO(cuMemcpyBatchAsync, "no-attributes",
          (dsts, srcs, lengths, 2, NULL, NULL, 0, &failed, at.s), OUT_U(failed));
    CALLO(cuMemcpyBatchAsync, "null-stream",
          (dsts, srcs, lengths, 2, &attribute, index, 1, &failed, NULL), OUT_U(failed));
    CALLO(cuMemcpyBatchAsync, "legacy-stream",
          (dsts, srcs, lengths, 2, &attribute, index, 1, &failed, CU_STREAM_LEGACY), OUT_U(failed));
    lengths[1] = 0;
    CALLO(cuMemcpyBatchAsync, "zero-size",
          (dsts, srcs, lengths, 2, &attribute, index, 1, &failed, at.s), OUT_U(failed));
    lengths[1] = N + 1;
    CALLO(cuMemcpyBatchAsync, "second-past-end",
          (dsts, srcs, lengths, 2, &attribute, index, 1, &failed, at.s), OUT_U(failed));
    lengths[1] = 64;
    attribute.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
    CALLO(cuMemcpyBatchAsync, "bad-order",
          (dsts, srcs, lengths, 2, &attribute, index, 1, &failed, at.s), OUT_U(failed));
    attribute.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
    CALL(cuMemcpyBatchAsync_v2, "ok", (dsts, srcs, lengths, 2, &attribute, index, 1, at.s));
    CALL(cuStreamSynchronize, "after", (at.s));
}
