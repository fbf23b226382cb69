/* Prefetching and discarding managed memory: one range, batches, order, capture. */
#include "../parity.h"

#define PAGE ((size_t)4096)

static const CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
static const CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};

static CUdeviceptr managed(size_t size) {
    return PAR_MADE(CUdeviceptr, cuMemAllocManaged, size, CU_MEM_ATTACH_GLOBAL);
}

static void last_of(const char *cls, CUdeviceptr p, size_t size) {
    int n;
    CALLO(cuMemRangeGetAttribute, cls,
          (&n, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, size), OUT_I(n));
    CALLO(cuMemRangeGetAttribute, cls,
          (&n, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, p, size), OUT_I(n));
    CALLO(cuMemRangeGetAttribute, cls,
          (&n, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID, p, size), OUT_I(n));
}

SCENARIO(locations, "prefetch/locations", par_context) {
    static const CUdevice devices[] = {0, 1, 99, -1, -2, -3};
    static const CUmemLocation all[] = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                        {CU_MEM_LOCATION_TYPE_DEVICE, 99},
                                        {CU_MEM_LOCATION_TYPE_DEVICE, -1},
                                        {CU_MEM_LOCATION_TYPE_HOST, 0},
                                        {CU_MEM_LOCATION_TYPE_HOST, 7},
                                        {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0},
                                        {CU_MEM_LOCATION_TYPE_HOST_NUMA, 1},
                                        {CU_MEM_LOCATION_TYPE_HOST_NUMA, 99},
                                        {CU_MEM_LOCATION_TYPE_HOST_NUMA, -1},
                                        {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0},
                                        {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 5},
                                        {CU_MEM_LOCATION_TYPE_INVALID, 0},
                                        {(CUmemLocationType)9, 0}};
    CUstream s = par_stream();
    CUdeviceptr m = managed(65536);
    last_of("fresh", m, 65536);
    for (size_t i = 0; i < COUNT(devices); i++) {
        par_note("device=%d", devices[i]);
        CALL(cuMemPrefetchAsync, "managed", (m, 65536, devices[i], s));
        if (par_last() == CUDA_SUCCESS)
            last_of("prefetched", m, 65536);
    }
    for (size_t i = 0; i < COUNT(all); i++) {
        par_note("location=%d id=%d", (int)all[i].type, all[i].id);
        CALL(cuMemPrefetchAsync_v2, "managed", (m, 65536, all[i], 0, s));
        if (par_last() == CUDA_SUCCESS)
            last_of("prefetched-v2", m, 65536);
    }
    CALL(cuMemPrefetchAsync_v2, "bad-flags", (m, 65536, device, 1, s));
    CALL(cuMemPrefetchAsync_v2, "bad-flags", (m, 65536, device, 0x80000000u, s));
    CALL(cuStreamSynchronize, "after", (s));
}

SCENARIO(bounds, "prefetch/bounds", par_context) {
    CUstream s = par_stream();
    CUstream gone = par_blocking_stream();
    SETUP(cuStreamDestroy_v2, (gone));
    CUdeviceptr m = managed(16 * PAGE + 100);
    CUdeviceptr f = managed(8192);
    SETUP(cuMemFree_v2, (f));
    CALL(cuMemPrefetchAsync, "zero-size", (m, 0, 0, s));
    CALL(cuMemPrefetchAsync, "null", (0, PAGE, 0, s));
    CALL(cuMemPrefetchAsync, "one-byte", (m + 5 * PAGE + 9, 1, 0, s));
    last_of("page-of-byte", m + 5 * PAGE, PAGE);
    last_of("next-page", m + 6 * PAGE, PAGE);
    CALL(cuMemPrefetchAsync, "whole", (m, 16 * PAGE + 100, 0, s));
    CALL(cuMemPrefetchAsync, "one-past-end", (m, 16 * PAGE + 101, 0, s));
    CALL(cuMemPrefetchAsync, "to-page-end", (m, 17 * PAGE, 0, s));
    CALL(cuMemPrefetchAsync, "one-page-past", (m, 18 * PAGE, 0, s));
    CALL(cuMemPrefetchAsync, "to-mapping-end", (m, PAR_2M, 0, s));
    CALL(cuMemPrefetchAsync, "past-mapping", (m, 3 * PAR_2M, 0, s));
    CALL(cuMemPrefetchAsync, "huge", (m, ~(size_t)0, 0, s));
    CALL(cuMemPrefetchAsync, "freed", (f, 8192, 0, s));
    CALL(cuMemPrefetchAsync_v2, "zero-size", (m, 0, device, 0, s));
    CALL(cuMemPrefetchAsync_v2, "one-past-end", (m, 16 * PAGE + 101, device, 0, s));
    CALL(cuMemPrefetchAsync_v2, "past-mapping", (m, 3 * PAR_2M, device, 0, s));
    CALL(cuMemPrefetchAsync, "null-stream", (m, PAGE, 0, NULL));
    CALL(cuMemPrefetchAsync, "legacy-stream", (m, PAGE, 0, CU_STREAM_LEGACY));
    CALL(cuMemPrefetchAsync, "per-thread-stream", (m, PAGE, 0, CU_STREAM_PER_THREAD));
    CALL(cuMemPrefetchAsync, "stale-stream", (m, PAGE, 0, gone));
    CALL(cuMemPrefetchAsync, "stale-stream-bad-device", (m, PAGE, 99, gone));
    CALL(cuMemPrefetchAsync, "stale-stream-null", (0, PAGE, 0, gone));
    CALL(cuStreamSynchronize, "after", (s));
}

SCENARIO(order, "prefetch/order", par_context) {
    CUstream s = par_stream();
    CUdeviceptr m = managed(65536);
    *(unsigned char *)(uintptr_t)m = 3;
    par_hold(s);
    CALL(cuMemPrefetchAsync, "held", (m, 65536, 0, s));
    CALL(cuStreamQuery, "held", (s));
    last_of("held", m, 65536);
    PAR_DRAIN("after", s);
    last_of("after", m, 65536);
    par_see("content", "%d", *(unsigned char *)(uintptr_t)m);
}

/* ---- Batches --------------------------------------------------------------------------------- */

SCENARIO(batch, "prefetch/batch", par_context) {
    CUmemLocation places[2] = {device, host};
    size_t sizes[3] = {16 * PAGE, 16 * PAGE, 16 * PAGE}, index[2] = {0, 2};
    CUdeviceptr m[3], backwards[2];
    CUstream s = par_stream();
    for (int i = 0; i < 3; i++)
        m[i] = managed(16 * PAGE);
    CALL(cuMemPrefetchBatchAsync, "ok", (m, sizes, 3, places, index, 2, 0, s));
    last_of("first", m[0], 16 * PAGE);
    last_of("second", m[1], 16 * PAGE);
    last_of("third", m[2], 16 * PAGE);
    CALL(cuMemPrefetchBatchAsync_ptsz, "ok", (m, sizes, 3, places, index, 2, 0, s));
    CALL(cuMemPrefetchBatchAsync_ptsz, "null-stream", (m, sizes, 3, places, index, 2, 0, NULL));
    CALL(cuMemPrefetchBatchAsync, "null-stream", (m, sizes, 3, places, index, 2, 0, NULL));
    CALL(cuMemPrefetchBatchAsync, "legacy-stream",
         (m, sizes, 3, places, index, 2, 0, CU_STREAM_LEGACY));
    CALL(cuMemPrefetchBatchAsync, "per-thread-stream",
         (m, sizes, 3, places, index, 2, 0, CU_STREAM_PER_THREAD));
    CALL(cuMemPrefetchBatchAsync, "bad-stream",
         (m, sizes, 3, places, index, 2, 0, (CUstream)0x1234));
    CALL(cuMemPrefetchBatchAsync, "zero-count", (m, sizes, 0, places, index, 2, 0, s));
    CALL(cuMemPrefetchBatchAsync, "null-pointers", (NULL, sizes, 3, places, index, 2, 0, s));
    CALL(cuMemPrefetchBatchAsync, "null-sizes", (m, NULL, 3, places, index, 2, 0, s));
    CALL(cuMemPrefetchBatchAsync, "null-locations", (m, sizes, 3, NULL, index, 2, 0, s));
    CALL(cuMemPrefetchBatchAsync, "null-index", (m, sizes, 3, places, NULL, 2, 0, s));
    CALL(cuMemPrefetchBatchAsync, "zero-locations", (m, sizes, 3, places, index, 0, 0, s));
    CALL(cuMemPrefetchBatchAsync, "more-locations", (m, sizes, 1, places, index, 2, 0, s));
    CALL(cuMemPrefetchBatchAsync, "bad-flags", (m, sizes, 3, places, index, 2, 1, s));
    index[0] = 1;
    CALL(cuMemPrefetchBatchAsync, "index-not-from-0", (m, sizes, 3, places, index, 2, 0, s));
    index[0] = 0, index[1] = 0;
    CALL(cuMemPrefetchBatchAsync, "index-not-rising", (m, sizes, 3, places, index, 2, 0, s));
    index[1] = 3;
    CALL(cuMemPrefetchBatchAsync, "index-past-end", (m, sizes, 3, places, index, 2, 0, s));
    index[1] = 2;
    places[1].type = CU_MEM_LOCATION_TYPE_INVALID;
    CALL(cuMemPrefetchBatchAsync, "bad-location", (m, sizes, 3, places, index, 2, 0, s));
    places[1] = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 99};
    CALL(cuMemPrefetchBatchAsync, "bad-device", (m, sizes, 3, places, index, 2, 0, s));
    places[1] = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    CALL(cuMemPrefetchBatchAsync, "node", (m, sizes, 3, places, index, 2, 0, s));
    last_of("node", m[2], 16 * PAGE);
    places[0] = host, places[1] = host;
    sizes[1] = 0;
    CALL(cuMemPrefetchBatchAsync, "zero-size", (m, sizes, 3, places, index, 2, 0, s));
    sizes[1] = 3 * PAR_2M;
    CALL(cuMemPrefetchBatchAsync, "past-end", (m, sizes, 3, places, index, 2, 0, s));
    last_of("before-the-bad-one", m[0], 16 * PAGE);
    sizes[1] = 100;
    CALL(cuMemPrefetchBatchAsync, "small-size", (m, sizes, 3, places, index, 2, 0, s));
    CUdeviceptr kept = m[1];
    m[1] = kept + 100;
    CALL(cuMemPrefetchBatchAsync, "unaligned", (m, sizes, 3, places, index, 2, 0, s));
    sizes[1] = 16 * PAGE;
    m[1] = par_alloc(16 * PAGE);
    CALL(cuMemPrefetchBatchAsync, "device-memory", (m, sizes, 3, places, index, 2, 0, s));
    m[1] = 0;
    CALL(cuMemPrefetchBatchAsync, "null", (m, sizes, 3, places, index, 2, 0, s));
    backwards[0] = backwards[1] = kept;
    index[1] = 1;
    CALL(cuMemPrefetchBatchAsync, "same-twice", (backwards, sizes, 2, places, index, 2, 0, s));
    CALL(cuStreamSynchronize, "after", (s));
}

SCENARIO(discard, "prefetch/discard", par_context) {
    size_t sizes[2] = {16 * PAGE, 16 * PAGE};
    CUdeviceptr m[2], kept;
    CUstream s = par_stream();
    m[0] = managed(16 * PAGE);
    m[1] = managed(16 * PAGE);
    SETUP(cuMemPrefetchAsync, (m[0], 16 * PAGE, 0, s));
    CALL(cuMemDiscardBatchAsync, "ok", (m, sizes, 2, 0, s));
    CALL(cuStreamSynchronize, "after", (s));
    last_of("discarded", m[0], 16 * PAGE);
    CALL(cuMemDiscardBatchAsync_ptsz, "ok", (m, sizes, 2, 0, s));
    CALL(cuMemDiscardBatchAsync_ptsz, "null-stream", (m, sizes, 2, 0, NULL));
    CALL(cuMemDiscardBatchAsync, "null-stream", (m, sizes, 2, 0, NULL));
    CALL(cuMemDiscardBatchAsync, "legacy-stream", (m, sizes, 2, 0, CU_STREAM_LEGACY));
    CALL(cuMemDiscardBatchAsync, "per-thread-stream", (m, sizes, 2, 0, CU_STREAM_PER_THREAD));
    CALL(cuMemDiscardBatchAsync, "bad-stream", (m, sizes, 2, 0, (CUstream)0x1234));
    CALL(cuMemDiscardBatchAsync, "zero-count", (m, sizes, 0, 0, s));
    CALL(cuMemDiscardBatchAsync, "null-pointers", (NULL, sizes, 2, 0, s));
    CALL(cuMemDiscardBatchAsync, "null-sizes", (m, NULL, 2, 0, s));
    CALL(cuMemDiscardBatchAsync, "bad-flags", (m, sizes, 2, 1, s));
    sizes[1] = 0;
    CALL(cuMemDiscardBatchAsync, "zero-size", (m, sizes, 2, 0, s));
    sizes[1] = 100;
    CALL(cuMemDiscardBatchAsync, "small-size", (m, sizes, 2, 0, s));
    sizes[1] = 17 * PAGE;
    CALL(cuMemDiscardBatchAsync, "page-past-end", (m, sizes, 2, 0, s));
    sizes[1] = 3 * PAR_2M;
    CALL(cuMemDiscardBatchAsync, "past-mapping", (m, sizes, 2, 0, s));
    sizes[1] = PAGE;
    kept = m[1];
    m[1] = kept + 100;
    CALL(cuMemDiscardBatchAsync, "unaligned", (m, sizes, 2, 0, s));
    m[1] = kept + PAGE;
    CALL(cuMemDiscardBatchAsync, "interior", (m, sizes, 2, 0, s));
    m[1] = par_alloc(16 * PAGE);
    CALL(cuMemDiscardBatchAsync, "device-memory", (m, sizes, 2, 0, s));
    m[1] = (CUdeviceptr)(uintptr_t)par_pinned(16 * PAGE);
    CALL(cuMemDiscardBatchAsync, "pinned", (m, sizes, 2, 0, s));
    m[1] = (CUdeviceptr)(uintptr_t)&sizes;
    CALL(cuMemDiscardBatchAsync, "pageable", (m, sizes, 2, 0, s));
    m[1] = 0;
    CALL(cuMemDiscardBatchAsync, "null", (m, sizes, 2, 0, s));
    CALL(cuStreamSynchronize, "after", (s));
}

/* What a discarded page reads is not defined; these are the answers of one driver. */
SCENARIO(discard_bytes, "prefetch/discard-bytes", par_context) {
    size_t size = PAR_2M, part = 65536;
    unsigned char plain[4];
    CUstream s = par_stream();
    CUdeviceptr m = managed(PAR_2M);
    CUdeviceptr n = managed(PAR_2M);
    memset((void *)(uintptr_t)m, 9, PAR_2M);
    memset((void *)(uintptr_t)n, 9, PAR_2M);
    par_hold(s);
    CALL(cuMemDiscardBatchAsync, "on-cpu", (&m, &size, 1, 0, s));
    CALL(cuStreamQuery, "held", (s));
    PAR_DRAIN("after", s);
    par_see("discarded-on-cpu", "%d", *(unsigned char *)(uintptr_t)m);
    SETUP(cuMemPrefetchAsync, (n, PAR_2M, 0, s));
    SETUP(cuMemDiscardBatchAsync, (&n, &part, 1, 0, s));
    SETUP(cuStreamSynchronize, (s));
    CALL(cuMemcpyDtoH_v2, "discarded", (plain, n + part, 4));
    par_see("kept", "%d", plain[0]);
    par_see("kept-for-cpu", "%d", *(unsigned char *)(uintptr_t)(n + part));
    memset((void *)(uintptr_t)n, 4, part);
    CALL(cuMemcpyDtoH_v2, "written-again", (plain, n + 100, 4));
    par_see("written-again", "%d", plain[0]);
}

SCENARIO(discard_and_prefetch, "prefetch/discard-and-prefetch", par_context) {
    CUmemLocation places[2] = {device, host};
    size_t sizes[2] = {16 * PAGE, 16 * PAGE}, index[2] = {0, 1};
    CUdeviceptr m[2], kept;
    CUstream s = par_stream();
    m[0] = managed(16 * PAGE);
    m[1] = managed(16 * PAGE);
    CALL(cuMemDiscardAndPrefetchBatchAsync, "ok", (m, sizes, 2, places, index, 2, 0, s));
    CALL(cuStreamSynchronize, "after", (s));
    last_of("device", m[0], 16 * PAGE);
    last_of("host", m[1], 16 * PAGE);
    CALL(cuMemDiscardAndPrefetchBatchAsync_ptsz, "ok", (m, sizes, 2, places, index, 2, 0, s));
    CALL(cuMemDiscardAndPrefetchBatchAsync_ptsz, "null-stream",
         (m, sizes, 2, places, index, 2, 0, NULL));
    CALL(cuMemDiscardAndPrefetchBatchAsync, "null-stream",
         (m, sizes, 2, places, index, 2, 0, NULL));
    CALL(cuMemDiscardAndPrefetchBatchAsync, "legacy-stream",
         (m, sizes, 2, places, index, 2, 0, CU_STREAM_LEGACY));
    CALL(cuMemDiscardAndPrefetchBatchAsync, "zero-count", (m, sizes, 0, places, index, 2, 0, s));
    CALL(cuMemDiscardAndPrefetchBatchAsync, "null-pointers",
         (NULL, sizes, 2, places, index, 2, 0, s));
    CALL(cuMemDiscardAndPrefetchBatchAsync, "null-sizes", (m, NULL, 2, places, index, 2, 0, s));
    CALL(cuMemDiscardAndPrefetchBatchAsync, "null-locations", (m, sizes, 2, NULL, index, 2, 0, s));
    CALL(cuMemDiscardAndPrefetchBatchAsync, "null-index", (m, sizes, 2, places, NULL, 2, 0, s));
    CALL(cuMemDiscardAndPrefetchBatchAsync, "zero-locations",
         (m, sizes, 2, places, index, 0, 0, s));
    CALL(cuMemDiscardAndPrefetchBatchAsync, "bad-flags", (m, sizes, 2, places, index, 2, 1, s));
    index[1] = 0;
    CALL(cuMemDiscardAndPrefetchBatchAsync, "index-not-rising",
         (m, sizes, 2, places, index, 2, 0, s));
    index[1] = 2;
    CALL(cuMemDiscardAndPrefetchBatchAsync, "index-past-end",
         (m, sizes, 2, places, index, 2, 0, s));
    index[1] = 1;
    places[1] = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 99};
    CALL(cuMemDiscardAndPrefetchBatchAsync, "bad-device", (m, sizes, 2, places, index, 2, 0, s));
    places[1] = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    CALL(cuMemDiscardAndPrefetchBatchAsync, "node", (m, sizes, 2, places, index, 2, 0, s));
    places[1] = host;
    sizes[1] = 0;
    CALL(cuMemDiscardAndPrefetchBatchAsync, "zero-size", (m, sizes, 2, places, index, 2, 0, s));
    sizes[1] = 100;
    CALL(cuMemDiscardAndPrefetchBatchAsync, "small-size", (m, sizes, 2, places, index, 2, 0, s));
    sizes[1] = 3 * PAR_2M;
    CALL(cuMemDiscardAndPrefetchBatchAsync, "past-mapping", (m, sizes, 2, places, index, 2, 0, s));
    sizes[1] = PAGE;
    kept = m[1];
    m[1] = kept + 100;
    CALL(cuMemDiscardAndPrefetchBatchAsync, "unaligned", (m, sizes, 2, places, index, 2, 0, s));
    m[1] = par_alloc(16 * PAGE);
    CALL(cuMemDiscardAndPrefetchBatchAsync, "device-memory", (m, sizes, 2, places, index, 2, 0, s));
    CALL(cuStreamSynchronize, "after", (s));
}

/* ---- Capture --------------------------------------------------------------------------------- */

static CUstream capturing(void) {
    CUstream s = par_stream();
    SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_RELAXED));
    return s;
}

static void captured(CUstream s) {
    CUgraph g = NULL;
    size_t nodes = 0;
    CALLO(cuStreamEndCapture, "after", (s, &g), OUT_C(g));
    if (par_last() == CUDA_SUCCESS)
        CALLO(cuGraphGetNodes, "captured", (g, NULL, &nodes), OUT_U(nodes));
}

SCENARIO(capture, "prefetch/capture", par_context) {
    CUmemLocation place = device;
    size_t size = 65536, index = 0;
    CUmemDecompressParams params;
    memset(&params, 0, sizeof(params));
    CUdeviceptr m = managed(65536);
    CUstream s = capturing();
    CALL(cuMemPrefetchAsync, "capturing", (m, size, 0, s));
    captured(s);
    s = capturing();
    CALL(cuMemPrefetchAsync, "capturing-bad-device", (m, size, 99, s));
    captured(s);
    s = capturing();
    CALL(cuMemPrefetchAsync_v2, "capturing", (m, size, host, 0, s));
    captured(s);
    s = capturing();
    CALL(cuMemPrefetchBatchAsync, "capturing", (&m, &size, 1, &place, &index, 1, 0, s));
    captured(s);
    s = capturing();
    CALL(cuMemDiscardBatchAsync, "capturing", (&m, &size, 1, 0, s));
    captured(s);
    s = capturing();
    CALL(cuMemDiscardAndPrefetchBatchAsync, "capturing", (&m, &size, 1, &place, &index, 1, 0, s));
    captured(s);
    s = capturing();
    CALL(cuStreamAttachMemAsync, "capturing", (s, m, 0, CU_MEM_ATTACH_SINGLE));
    captured(s);
    s = capturing();
    CALL(cuMemBatchDecompressAsync, "capturing", (&params, 1, 0, &index, s));
    captured(s);
    s = capturing();
    CALL(cuMemAdvise, "capturing", (m, size, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    captured(s);
}

SCENARIO(capture_global, "prefetch/capture-global", par_context) {
    CUdeviceptr m, n;
    int value;
    unsigned flag = 1;
    m = managed(65536);
    CUstream s = par_stream();
    SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALLO(cuMemRangeGetAttribute, "capturing", (&value, 4, 1, m, 65536), OUT_I(value));
    captured(s);
    SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(cuMemAdvise, "capturing", (m, 65536, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    captured(s);
    SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(cuPointerSetAttribute, "capturing", (&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, m));
    captured(s);
    SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALLO(cuMemAllocManaged, "capturing", (&n, 4096, 1), OUT_C(n));
    captured(s);
    SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(cuFlushGPUDirectRDMAWrites, "capturing",
         (CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
          CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
    captured(s);
}
