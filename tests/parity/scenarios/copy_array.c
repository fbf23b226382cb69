/* Copies to and from arrays: which ends go together, offsets, edges, batches, graphs. */
#include "../parity.h"

#define U8   CU_AD_FORMAT_UNSIGNED_INT8
#define F32  CU_AD_FORMAT_FLOAT
#define ROWS ((size_t)32)
#define ROW  ((size_t)256) /* bytes: 64 elements of 4 */
#define ALL  (ROWS * ROW)

static CUDA_ARRAY3D_DESCRIPTOR form(size_t w, size_t h, size_t d, CUarray_format format,
                                    unsigned channels, unsigned flags) {
    return (CUDA_ARRAY3D_DESCRIPTOR){SIZE_3D(w, h, d), TEXELS(format, channels), .Flags = flags};
}

static CUarray make(size_t w, size_t h, size_t d, CUarray_format format, unsigned channels,
                    unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR a = form(w, h, d, format, channels, flags);
    return PAR_MADE(CUarray, cuArray3DCreate_v2, &a);
}

typedef struct ends {
    CUarray line, plane, other, solid; /* 1D of 256, 2D of 64 x 32, the same, 3D of 16 x 8 x 4 */
    CUdeviceptr d;                     /* ALL bytes */
    unsigned char *plain, *back, *pinned;
    CUstream s;
} ends;

static ends make_ends(void) {
    ends at;
    par_context();
    at.line = make(256, 0, 0, U8, 1, 0);
    at.plane = make(64, ROWS, 0, U8, 4, 0);
    at.other = make(64, ROWS, 0, U8, 4, 0);
    at.solid = make(16, 8, 4, U8, 1, 0);
    at.d = par_alloc(ALL);
    at.plain = malloc(ALL);
    at.back = malloc(ALL);
    at.pinned = par_pinned(ALL);
    at.s = par_stream();
    for (size_t i = 0; i < ALL; i++)
        at.plain[i] = (unsigned char)(i * 7 + i / 256);
    memset(at.back, 0xEE, ALL);
    return at;
}

static void see_bytes(const char *what, const unsigned char *bytes, size_t size) {
    uint64_t hash = 14695981039346656037ull;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 1099511628211ull;
    par_see(what, "%02x %02x %02x %02x .. %02x of %zu: %016llx", bytes[0], bytes[1], bytes[2],
            bytes[3], bytes[size - 1], size, (unsigned long long)hash);
}

/* ---- One dimension --------------------------------------------------------------------------- */

SCENARIO(one_dimension, "copy-array/one-dimension") {
    ends at = make_ends();
    CUarray second = make(256, 0, 0, U8, 1, 0);
    CALL(cuMemcpyHtoA_v2, "ok", (at.line, 0, at.plain, 256));
    CALL(cuMemcpyAtoH_v2, "ok", (at.back, at.line, 0, 256));
    see_bytes("content", at.back, 256);
    CALL(cuMemcpyHtoA_v2, "offset", (at.line, 100, at.plain, 17));
    CALL(cuMemcpyAtoH_v2, "offset", (at.back, at.line, 99, 19));
    see_bytes("content", at.back, 19);
    CALL(cuMemcpyHtoAAsync_v2, "ok", (at.line, 8, at.plain, 24, at.s));
    CALL(cuMemcpyAtoHAsync_v2, "ok", (at.back, at.line, 0, 40, at.s));
    CALL(cuStreamSynchronize, "ok", (at.s));
    see_bytes("content", at.back, 40);
    CALL(cuMemcpyHtoD_v2, "ok", (at.d, at.plain, ALL));
    CALL(cuMemcpyDtoA_v2, "ok", (at.line, 3, at.d, 33));
    CALL(cuMemcpyAtoA_v2, "ok", (second, 0, at.line, 0, 256));
    CALL(cuMemcpyAtoA_v2, "offsets", (second, 200, at.line, 3, 50));
    CALL(cuMemcpyAtoD_v2, "ok", (at.d + 1, second, 0, 256));
    CALL(cuMemcpyDtoH_v2, "ok", (at.back, at.d, 300));
    see_bytes("content", at.back, 300);
    CALL(cuMemcpyAtoA_v2, "itself-apart", (at.line, 0, at.line, 128, 100));
    CALL(cuMemcpyAtoA_v2, "itself-overlap", (at.line, 0, at.line, 50, 100));
    CALL(cuMemcpyHtoA_v2, "one-past-end", (at.line, 0, at.plain, 257));
    CALL(cuMemcpyHtoA_v2, "offset-past-end", (at.line, 250, at.plain, 10));
    CALL(cuMemcpyHtoA_v2, "offset-at-end-zero", (at.line, 256, at.plain, 0));
    CALL(cuMemcpyHtoA_v2, "offset-behind-end-zero", (at.line, 300, at.plain, 0));
    CALL(cuMemcpyHtoA_v2, "zero-size", (at.line, 0, at.plain, 0));
    CALL(cuMemcpyHtoA_v2, "zero-size-null", (NULL, 0, NULL, 0));
    CALL(cuMemcpyHtoA_v2, "wraps", (at.line, ~(size_t)0, at.plain, 2));
    CALL(cuMemcpyAtoH_v2, "one-past-end", (at.back, at.line, 0, 257));
    CALL(cuMemcpyAtoH_v2, "zero-size", (at.back, at.line, 0, 0));
    CALL(cuMemcpyAtoD_v2, "one-past-end", (at.d, at.line, 0, 257));
    CALL(cuMemcpyAtoD_v2, "device-past-end", (at.d + ALL - 8, at.line, 0, 16));
    CALL(cuMemcpyAtoD_v2, "device-null", (0, at.line, 0, 16));
    CALL(cuMemcpyAtoD_v2, "device-random", (0x1000, at.line, 0, 16));
    CALL(cuMemcpyAtoD_v2, "device-is-host", ((CUdeviceptr)(uintptr_t)at.back, at.line, 0, 16));
    CALL(cuMemcpyAtoD_v2, "zero-size", (at.d, at.line, 0, 0));
    CALL(cuMemcpyDtoA_v2, "one-past-end", (at.line, 0, at.d, 257));
    CALL(cuMemcpyDtoA_v2, "device-null", (at.line, 0, 0, 16));
    CALL(cuMemcpyDtoA_v2, "device-past-end", (at.line, 0, at.d + ALL - 8, 16));
    CALL(cuMemcpyDtoA_v2, "zero-size", (at.line, 0, at.d, 0));
    CALL(cuMemcpyAtoA_v2, "one-past-end", (second, 0, at.line, 0, 257));
    CALL(cuMemcpyAtoA_v2, "zero-size", (second, 0, at.line, 0, 0));
    CALL(cuMemcpyHtoAAsync_v2, "one-past-end", (at.line, 0, at.plain, 257, at.s));
    CALL(cuMemcpyHtoAAsync_v2, "zero-size", (at.line, 0, at.plain, 0, at.s));
    CALL(cuMemcpyAtoHAsync_v2, "one-past-end", (at.back, at.line, 0, 257, at.s));
    CALL(cuMemcpyAtoHAsync_v2, "zero-size", (at.back, at.line, 0, 0, at.s));
    CALL(cuMemcpyHtoAAsync_v2, "null-stream", (at.line, 0, at.plain, 4, NULL));
    CALL(cuMemcpyAtoHAsync_v2, "legacy-stream", (at.back, at.line, 0, 4, CU_STREAM_LEGACY));
    CALL(cuStreamSynchronize, "after", (at.s));
    CALL(cuCtxSynchronize, "after", ());
}

/* Arrays of more dimensions and of larger elements, by the functions for one. */
SCENARIO(one_dimension_others, "copy-array/one-dimension-others") {
    ends at = make_ends();
    CUarray wide = make(64, 0, 0, U8, 4, 0), large = make(64, 0, 0, F32, 4, 0);
    CUarray layers = make(64, 0, 3, U8, 1, 1), flat_layers = make(64, 4, 3, U8, 1, 1);
    CALL(cuMemcpyHtoA_v2, "4-bytes", (wide, 0, at.plain, 256));
    CALL(cuMemcpyHtoA_v2, "4-bytes-offset-2", (wide, 2, at.plain, 4));
    CALL(cuMemcpyHtoA_v2, "4-bytes-size-6", (wide, 4, at.plain, 6));
    CALL(cuMemcpyHtoA_v2, "4-bytes-size-1", (wide, 0, at.plain, 1));
    CALL(cuMemcpyAtoH_v2, "4-bytes-offset-2", (at.back, wide, 2, 4));
    CALL(cuMemcpyAtoH_v2, "4-bytes-size-6", (at.back, wide, 4, 6));
    CALL(cuMemcpyHtoA_v2, "16-bytes", (large, 0, at.plain, 1024));
    CALL(cuMemcpyHtoA_v2, "16-bytes-offset-8", (large, 8, at.plain, 16));
    CALL(cuMemcpyHtoA_v2, "16-bytes-size-8", (large, 16, at.plain, 8));
    CALL(cuMemcpyAtoA_v2, "element-sizes-differ", (large, 0, wide, 0, 64));
    CALL(cuMemcpyAtoA_v2, "element-sizes-differ-offset", (wide, 4, large, 16, 32));
    CALL(cuMemcpyAtoD_v2, "16-bytes-offset-8", (at.d, large, 8, 16));
    CALL(cuMemcpyAtoD_v2, "device-unaligned", (at.d + 3, large, 0, 16));
    CALL(cuMemcpyDtoA_v2, "16-bytes-size-8", (large, 0, at.d, 8));
    CALL(cuMemcpyHtoA_v2, "2d-one-row", (at.plane, 0, at.plain, ROW));
    CALL(cuMemcpyHtoA_v2, "2d-two-rows", (at.plane, 0, at.plain, 2 * ROW));
    CALL(cuMemcpyHtoA_v2, "2d-all", (at.plane, 0, at.plain, ALL));
    CALL(cuMemcpyHtoA_v2, "2d-one-past-end", (at.plane, 0, at.plain, ALL + 4));
    CALL(cuMemcpyHtoA_v2, "2d-across-row-end", (at.plane, ROW - 8, at.plain, 16));
    CALL(cuMemcpyHtoA_v2, "2d-second-row", (at.plane, ROW, at.plain, 16));
    CALL(cuMemcpyAtoH_v2, "2d-one-row", (at.back, at.plane, 0, ROW));
    CALL(cuMemcpyAtoH_v2, "2d-two-rows", (at.back, at.plane, 0, 2 * ROW));
    CALL(cuMemcpyAtoH_v2, "2d-all", (at.back, at.plane, 0, ALL));
    if (par_last() == CUDA_SUCCESS)
        see_bytes("content", at.back, ALL);
    CALL(cuMemcpyHtoA_v2, "3d-one-row", (at.solid, 0, at.plain, 16));
    CALL(cuMemcpyHtoA_v2, "3d-one-slice", (at.solid, 0, at.plain, 128));
    CALL(cuMemcpyHtoA_v2, "3d-all", (at.solid, 0, at.plain, 512));
    CALL(cuMemcpyHtoA_v2, "3d-past-end", (at.solid, 0, at.plain, 513));
    CALL(cuMemcpyHtoA_v2, "1d-layered-one", (layers, 0, at.plain, 64));
    CALL(cuMemcpyHtoA_v2, "1d-layered-all", (layers, 0, at.plain, 192));
    CALL(cuMemcpyHtoA_v2, "2d-layered-row", (flat_layers, 0, at.plain, 64));
    CALL(cuMemcpyHtoA_v2, "2d-layered-all", (flat_layers, 0, at.plain, 768));
    CALL(cuCtxSynchronize, "after", ());
}

SCENARIO(one_dimension_twins, "copy-array/one-dimension-twins") {
    ends at = make_ends();
    CALL(cuMemcpyHtoA_v2_ptds, "ok", (at.line, 0, at.plain, 256));
    CALL(cuMemcpyAtoH_v2_ptds, "ok", (at.back, at.line, 0, 256));
    see_bytes("content", at.back, 256);
    CALL(cuMemcpyAtoD_v2_ptds, "ok", (at.d, at.line, 0, 256));
    CALL(cuMemcpyDtoA_v2_ptds, "ok", (at.line, 1, at.d, 200));
    CALL(cuMemcpyAtoA_v2_ptds, "ok", (at.line, 200, at.line, 0, 50));
    CALL(cuMemcpyHtoAAsync_v2_ptsz, "ok", (at.line, 4, at.plain, 16, NULL));
    CALL(cuMemcpyAtoHAsync_v2_ptsz, "ok", (at.back, at.line, 0, 256, NULL));
    CALL(cuStreamSynchronize, "per-thread", (CU_STREAM_PER_THREAD));
    see_bytes("content", at.back, 256);
}

SCENARIO(one_dimension_old, "copy-array/one-dimension-old") {
    ends at = make_ends();
    CALL(cuMemcpyHtoA, "v1", (at.line, 0, at.plain, 16));
    CALL(cuMemcpyAtoH, "v1", (at.back, at.line, 0, 16));
    CALL(cuMemcpyAtoD, "v1", (0x1000, at.line, 0, 16));
    CALL(cuMemcpyDtoA, "v1", (at.line, 0, 0x1000, 16));
    CALL(cuMemcpyAtoA, "v1", (at.line, 0, at.line, 32, 16));
    CALL(cuMemcpyHtoAAsync, "v1", (at.line, 0, at.plain, 16, at.s));
    CALL(cuMemcpyAtoHAsync, "v1", (at.back, at.line, 0, 16, at.s));
    CALL(cuMemcpyHtoA, "v1-zero-size", (at.line, 0, at.plain, 0));
    CALL(cuMemcpyHtoA, "v1-null-array", (NULL, 0, at.plain, 16));
}

SCENARIO(one_dimension_nulls, "copy-array/one-dimension-nulls") {
    ends at = make_ends();
    CALL(cuMemcpyHtoA_v2, "null-array", (NULL, 0, at.plain, 16));
    CALL(cuMemcpyAtoH_v2, "null-array", (at.back, NULL, 0, 16));
    CALL(cuMemcpyAtoD_v2, "null-array", (at.d, NULL, 0, 16));
    CALL(cuMemcpyDtoA_v2, "null-array", (NULL, 0, at.d, 16));
    CALL(cuMemcpyAtoA_v2, "null-source", (at.line, 0, NULL, 0, 16));
    CALL(cuMemcpyAtoA_v2, "null-target", (NULL, 0, at.line, 0, 16));
    CALL(cuMemcpyHtoAAsync_v2, "null-array", (NULL, 0, at.plain, 16, at.s));
    CALL(cuMemcpyAtoHAsync_v2, "null-array", (at.back, NULL, 0, 16, at.s));
    CALL(cuMemcpyHtoA_v2, "null-host", (at.line, 0, NULL, 16));
    CALL(cuMemcpyAtoH_v2, "null-host", (NULL, at.line, 0, 16));
    CALL(cuMemcpyHtoAAsync_v2, "null-host", (at.line, 0, NULL, 16, at.s));
    CALL(cuMemcpyAtoHAsync_v2, "null-host", (NULL, at.line, 0, 16, at.s));
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuMemcpyHtoA_v2, "no-context", (at.line, 0, at.plain, 16));
    CALL(cuMemcpyAtoH_v2, "no-context", (at.back, at.line, 0, 16));
    CALL(cuMemcpyAtoA_v2, "no-context", (at.line, 0, at.line, 32, 16));
    CALL(cuMemcpyHtoAAsync_v2, "no-context", (at.line, 0, at.plain, 16, at.s));
    CALL(cuMemcpyHtoA_v2, "no-context-zero-size", (at.line, 0, at.plain, 0));
}

SCENARIO(stale_array, "copy-array/stale") {
    ends at = make_ends();
    SETUP(cuArrayDestroy, (at.line));
    CALL(cuMemcpyHtoA_v2, "stale-array", (at.line, 0, at.plain, 16));
}

SCENARIO(stale_array_2d, "copy-array/stale-2d") {
    ends at = make_ends();
    CUDA_MEMCPY2D c = {FROM_HOST(at.plain), TO_ARRAY(at.plane), EXTENT(16, 1)};
    SETUP(cuArrayDestroy, (at.plane));
    CALL(cuMemcpy2D_v2, "stale-array", (&c));
}

SCENARIO(other_contexts, "copy-array/other-contexts") {
    ends at = make_ends();
    SETUP(cuMemcpyHtoA_v2, (at.line, 0, at.plain, 256));
    CUcontext other = par_new_context();
    CALL(cuMemcpyHtoA_v2, "foreign-ctx", (at.line, 0, at.plain, 16));
    CALL(cuMemcpyAtoH_v2, "foreign-ctx", (at.back, at.line, 0, 16));
    CALL(cuMemcpyHtoAAsync_v2, "stream-of-its-ctx", (at.line, 0, at.plain, 16, at.s));
    CUDA_MEMCPY3D_PEER p = {FROM_ARRAY(at.plane), TO_ARRAY(at.other), .srcContext = par.primary,
                            .dstContext = par.primary, EXTENT_3D(64, 4, 1)};
    CALL(cuMemcpy3DPeer, "its-ctx", (&p));
    p.dstContext = other;
    CALL(cuMemcpy3DPeer, "other-ctx", (&p));
    CALL(cuMemcpy3DPeerAsync, "other-ctx", (&p, NULL));
    CALL(cuMemcpy3DPeer_ptds, "other-ctx", (&p));
    CALL(cuMemcpy3DPeerAsync_ptsz, "other-ctx", (&p, NULL));
    p.WidthInBytes = ROW + 4;
    CALL(cuMemcpy3DPeer, "wider-than-row", (&p));
    CALL(cuCtxSynchronize, "after", ());
}

/* ---- Two dimensions -------------------------------------------------------------------------- */

static CUDA_MEMCPY2D plane_in(const ends *at) {
    return (CUDA_MEMCPY2D){FROM_HOST(at->plain), .srcPitch = ROW, TO_ARRAY(at->plane),
                           EXTENT(64, 8)};
}

static CUDA_MEMCPY2D plane_out(const ends *at) {
    return (CUDA_MEMCPY2D){FROM_ARRAY(at->plane), TO_HOST(at->back), .dstPitch = ROW,
                           EXTENT(ROW, ROWS)};
}

static void see_plane(const ends *at) {
    CUDA_MEMCPY2D c = plane_out(at);
    SETUP(cuMemcpy2D_v2, (&c));
    see_bytes("plane", at->back, ALL);
}

SCENARIO(two_dimensions, "copy-array/two-dimensions") {
    ends at = make_ends();
    CUDA_MEMCPY2D c = plane_in(&at), all = plane_in(&at);
    all.WidthInBytes = ROW;
    all.Height = ROWS;
    CALL(cuMemcpy2D_v2, "all", (&all));
    see_plane(&at);
#define IN(cls, change)                                                                            \
    do {                                                                                           \
        c = plane_in(&at);                                                                         \
        change;                                                                                    \
        CALL(cuMemcpy2D_v2, cls, (&c));                                                            \
        CALL(cuMemcpy2DUnaligned_v2, cls, (&c));                                                   \
        CALL(cuMemcpy2DAsync_v2, cls, (&c, at.s));                                                 \
        SETUP(cuStreamSynchronize, (at.s));                                                        \
    } while (0)
    IN("part", (void)0);
    see_plane(&at);
    IN("offsets", (c.dstXInBytes = 128, c.dstY = 20, c.srcXInBytes = 8, c.srcY = 3));
    see_plane(&at);
    IN("x-inside-element", c.dstXInBytes = 2);
    IN("width-inside-element", c.WidthInBytes = 62);
    IN("source-x-odd", c.srcXInBytes = 3);
    see_plane(&at);
    IN("wider-than-row", (c.WidthInBytes = ROW, c.dstXInBytes = 4));
    IN("higher", (c.Height = ROWS + 1));
    IN("y-past-end", c.dstY = ROWS);
    IN("y-and-height-past-end", c.dstY = ROWS - 7);
    IN("x-past-end", c.dstXInBytes = ROW);
    IN("zero-width", c.WidthInBytes = 0);
    IN("zero-height", c.Height = 0);
    IN("zero-width-bad-array", (c.WidthInBytes = 0, c.dstArray = NULL));
    IN("array-pitch-ignored", c.dstPitch = 3);
    IN("source-pitch-zero", (c.srcPitch = 0));
    IN("source-pitch-small", (c.srcPitch = 32));
    IN("null-array", c.dstArray = NULL);
    IN("one-row-of-1d", (c.dstArray = at.line, c.Height = 1));
    IN("two-rows-of-1d", (c.dstArray = at.line, c.Height = 2));
    IN("y-of-1d", (c.dstArray = at.line, c.Height = 1, c.dstY = 1));
    IN("slice-of-3d", (c.dstArray = at.solid, c.WidthInBytes = 16));
    IN("more-than-slice-of-3d", (c.dstArray = at.solid, c.WidthInBytes = 16, c.Height = 16));
    IN("source-device", (c.srcMemoryType = CU_MEMORYTYPE_DEVICE, c.srcDevice = at.d));
    IN("source-unified", (c.srcMemoryType = CU_MEMORYTYPE_UNIFIED, c.srcDevice = at.d));
    IN("source-pinned", c.srcHost = at.pinned);
    IN("source-array", (c.srcMemoryType = CU_MEMORYTYPE_ARRAY, c.srcArray = at.other));
    IN("source-itself",
       (c.srcMemoryType = CU_MEMORYTYPE_ARRAY, c.srcArray = at.plane, c.srcY = 16));
    IN("source-null-array", (c.srcMemoryType = CU_MEMORYTYPE_ARRAY));
    IN("source-array-past-end",
       (c.srcMemoryType = CU_MEMORYTYPE_ARRAY, c.srcArray = at.other, c.srcY = ROWS - 2));
    IN("source-array-1d-to-2d",
       (c.srcMemoryType = CU_MEMORYTYPE_ARRAY, c.srcArray = at.line, c.Height = 1));
    IN("type-zero", c.dstMemoryType = (CUmemorytype)0);
    c = plane_out(&at);
    CALL(cuMemcpy2D_v2, "out", (&c));
    CALL(cuMemcpy2DUnaligned_v2, "out", (&c));
    CALL(cuMemcpy2DAsync_v2, "out", (&c, at.s));
    CALL(cuMemcpy2D_v2_ptds, "out", (&c));
    CALL(cuMemcpy2DUnaligned_v2_ptds, "out", (&c));
    CALL(cuMemcpy2DAsync_v2_ptsz, "out", (&c, NULL));
    c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.dstDevice = at.d;
    CALL(cuMemcpy2D_v2, "out-to-device", (&c));
    c.dstPitch = ROW - 4;
    CALL(cuMemcpy2D_v2, "out-pitch-small", (&c));
    c.dstPitch = ROW + 4;
    CALL(cuMemcpy2D_v2, "out-past-allocation", (&c));
    CALL(cuCtxSynchronize, "after", ());
    see_plane(&at);
}

/* Elements of other sizes on the two sides, and formats in blocks. */
SCENARIO(elements, "copy-array/elements") {
    ends at = make_ends();
    CUarray wide = make(16, 8, 0, F32, 4, 0), bytes = make(256, 8, 0, U8, 1, 0);
    CUarray bc1 = make(64, 64, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0);
    CUarray bc7 = make(64, 64, 0, CU_AD_FORMAT_BC7_UNORM, 4, 0);
    CUDA_MEMCPY2D c = plane_in(&at);
    c.dstArray = wide;
    CALL(cuMemcpy2D_v2, "16-bytes", (&c));
    c.dstXInBytes = 8;
    CALL(cuMemcpy2D_v2, "16-bytes-x-8", (&c));
    c.dstXInBytes = 0;
    c.WidthInBytes = 24;
    CALL(cuMemcpy2D_v2, "16-bytes-width-24", (&c));
    c = plane_in(&at);
    c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    c.srcArray = wide;
    c.dstArray = bytes;
    CALL(cuMemcpy2D_v2, "16-bytes-to-1", (&c));
    c.dstXInBytes = 1;
    CALL(cuMemcpy2D_v2, "16-bytes-to-1-x-1", (&c));
    c.dstXInBytes = 0;
    c.srcArray = bytes;
    c.dstArray = wide;
    CALL(cuMemcpy2D_v2, "1-byte-to-16", (&c));
    static const struct {
        const char *cls;
        size_t x, y, width, height;
    } blocks[] = {{"all-blocks", 0, 0, 128, 16},       {"one-block", 0, 0, 8, 1},
                  {"half-block", 0, 0, 4, 1},          {"block-offset", 8, 4, 8, 4},
                  {"block-offset-inside", 4, 0, 8, 1}, {"rows-as-texels", 0, 0, 128, 64},
                  {"rows-17", 0, 0, 128, 17},          {"width-136", 0, 0, 136, 16},
                  {"width-256", 0, 0, 256, 16},        {"y-16", 0, 16, 8, 1}};
    for (size_t i = 0; i < COUNT(blocks); i++) {
        c = plane_in(&at);
        c.dstArray = bc1;
        c.srcPitch = 256;
        c.dstXInBytes = blocks[i].x;
        c.dstY = blocks[i].y;
        c.WidthInBytes = blocks[i].width;
        c.Height = blocks[i].height;
        par_note("bc1");
        CALL(cuMemcpy2D_v2, blocks[i].cls, (&c));
        c.dstArray = bc7;
        par_note("bc7");
        CALL(cuMemcpy2D_v2, blocks[i].cls, (&c));
    }
    c = plane_out(&at);
    c.srcArray = bc1;
    c.WidthInBytes = 128;
    c.Height = 16;
    CALL(cuMemcpy2D_v2, "bc1-out", (&c));
    CALL(cuCtxSynchronize, "after", ());
}

/* Planar formats: the whole, and its planes. */
static void planar_with(unsigned flags) {
    ends at = make_ends();
    CUarray x, luma, chroma;
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 32, 0, CU_AD_FORMAT_NV12, 3, flags);
    CALL(cuArray3DCreate_v2, "nv12", (&x, &a));
    if (par_last() != CUDA_SUCCESS)
        return;
    SETUP(cuArrayGetPlane, (&luma, x, 0));
    SETUP(cuArrayGetPlane, (&chroma, x, 1));
    CUDA_MEMCPY2D c = plane_in(&at);
    c.srcPitch = 64;
    c.dstArray = luma;
    c.WidthInBytes = 64;
    c.Height = 32;
    CALL(cuMemcpy2D_v2, "luma-in", (&c));
    c.Height = 33;
    CALL(cuMemcpy2D_v2, "luma-too-high", (&c));
    c.dstArray = chroma;
    c.Height = 16;
    c.srcHost = at.plain + 100;
    CALL(cuMemcpy2D_v2, "chroma-in", (&c));
    c.Height = 17;
    CALL(cuMemcpy2D_v2, "chroma-too-high", (&c));
    c = plane_out(&at);
    c.dstPitch = 64;
    c.WidthInBytes = 64;
    c.srcArray = luma;
    c.Height = 32;
    CALL(cuMemcpy2D_v2, "luma-out", (&c));
    see_bytes("luma", at.back, 64 * 32);
    c.srcArray = chroma;
    c.Height = 16;
    CALL(cuMemcpy2D_v2, "chroma-out", (&c));
    see_bytes("chroma", at.back, 64 * 16);
    c.srcArray = x;
    c.Height = 32;
    CALL(cuMemcpy2D_v2, "whole-out", (&c));
    if (par_last() == CUDA_SUCCESS)
        see_bytes("whole", at.back, 64 * 32);
    c.Height = 48;
    CALL(cuMemcpy2D_v2, "whole-both-planes-out", (&c));
    if (par_last() == CUDA_SUCCESS)
        see_bytes("whole", at.back, 64 * 48);
    CALL(cuCtxSynchronize, "after", ());
}

SCENARIO_IS(planar, "copy-array/planar", planar_with(0));
SCENARIO_IS(video, "copy-array/video", planar_with(CUDA_ARRAY3D_VIDEO_ENCODE_DECODE));

/* ---- Three dimensions ------------------------------------------------------------------------ */

static CUDA_MEMCPY3D solid_in(const ends *at) {
    return (CUDA_MEMCPY3D){FROM_HOST(at->plain), .srcPitch = 16, .srcHeight = 8,
                           TO_ARRAY(at->solid), EXTENT_3D(16, 8, 4)};
}

static void see_solid(const ends *at) {
    CUDA_MEMCPY3D c = {FROM_ARRAY(at->solid), TO_HOST(at->back), .dstPitch = 16, .dstHeight = 8,
                       EXTENT_3D(16, 8, 4)};
    SETUP(cuMemcpy3D_v2, (&c));
    see_bytes("solid", at->back, 512);
}

SCENARIO(three_dimensions, "copy-array/three-dimensions") {
    ends at = make_ends();
    CUDA_MEMCPY3D c;
    CUarray layers = make(16, 8, 4, U8, 1, 1), lines = make(16, 0, 4, U8, 1, 1);
    CUarray cube = make(8, 8, 6, U8, 1, 4);
#define IN3(cls, change)                                                                           \
    do {                                                                                           \
        c = solid_in(&at);                                                                         \
        change;                                                                                    \
        CALL(cuMemcpy3D_v2, cls, (&c));                                                            \
        CALL(cuMemcpy3DAsync_v2, cls, (&c, at.s));                                                 \
        SETUP(cuStreamSynchronize, (at.s));                                                        \
    } while (0)
    IN3("all", (void)0);
    see_solid(&at);
    IN3("corner",
        (c.dstXInBytes = 8, c.dstY = 4, c.dstZ = 2, c.WidthInBytes = 8, c.Height = 4, c.Depth = 2));
    see_solid(&at);
    IN3("source-offsets",
        (c.srcXInBytes = 4, c.srcY = 2, c.srcZ = 1, c.WidthInBytes = 8, c.Height = 4, c.Depth = 2));
    see_solid(&at);
    IN3("too-wide", c.WidthInBytes = 17);
    IN3("too-high", (c.Height = 9, c.srcHeight = 9));
    IN3("too-deep", c.Depth = 5);
    IN3("z-past-end", c.dstZ = 4);
    IN3("z-and-depth-past-end", c.dstZ = 1);
    IN3("zero-width", c.WidthInBytes = 0);
    IN3("zero-height", c.Height = 0);
    IN3("zero-depth", c.Depth = 0);
    IN3("lod-on-array", c.dstLOD = 1);
    IN3("lod-on-host", c.srcLOD = 1);
    IN3("reserved-0", c.reserved0 = at.plain);
    IN3("reserved-1", c.reserved1 = at.plain);
    IN3("array-pitch-ignored", (c.dstPitch = 3, c.dstHeight = 1));
    IN3("null-array", c.dstArray = NULL);
    IN3("1d", (c.dstArray = at.line, c.Height = 1, c.Depth = 1));
    IN3("1d-depth-two", (c.dstArray = at.line, c.Height = 1, c.Depth = 2));
    IN3("1d-z", (c.dstArray = at.line, c.Height = 1, c.Depth = 1, c.dstZ = 1));
    IN3("2d", (c.dstArray = at.plane, c.Depth = 1));
    IN3("2d-depth-two", (c.dstArray = at.plane, c.Depth = 2));
    IN3("2d-layered", c.dstArray = layers);
    IN3("2d-layered-last", (c.dstArray = layers, c.dstZ = 3, c.Depth = 1));
    IN3("2d-layered-past-end", (c.dstArray = layers, c.dstZ = 3, c.Depth = 2));
    IN3("1d-layered", (c.dstArray = lines, c.Height = 1));
    IN3("1d-layered-as-rows", (c.dstArray = lines, c.Height = 4, c.Depth = 1));
    IN3("1d-layered-last", (c.dstArray = lines, c.Height = 1, c.dstZ = 3, c.Depth = 1));
    IN3("1d-layered-past-end", (c.dstArray = lines, c.Height = 1, c.dstZ = 4, c.Depth = 1));
    IN3("cubemap-face", (c.dstArray = cube, c.WidthInBytes = 8, c.dstZ = 5, c.Depth = 1));
    IN3("cubemap-past-end", (c.dstArray = cube, c.WidthInBytes = 8, c.dstZ = 6, c.Depth = 1));
    IN3("3d-from-layered", (c.srcMemoryType = CU_MEMORYTYPE_ARRAY, c.srcArray = layers));
    IN3("3d-from-itself",
        (c.srcMemoryType = CU_MEMORYTYPE_ARRAY, c.srcArray = at.solid, c.Depth = 2, c.srcZ = 2));
    IN3("source-device", (c.srcMemoryType = CU_MEMORYTYPE_DEVICE, c.srcDevice = at.d));
    IN3("source-unified", (c.srcMemoryType = CU_MEMORYTYPE_UNIFIED, c.srcDevice = at.d));
    CALL(cuMemcpy3D_v2_ptds, "ok", (&c));
    CALL(cuMemcpy3DAsync_v2_ptsz, "ok", (&c, NULL));
    CALL(cuCtxSynchronize, "after", ());
}

/* ---- When a call returns --------------------------------------------------------------------- */

SCENARIO(held_from_pinned, "copy-array/held-from-pinned") {
    ends at = make_ends();
    memset(at.pinned, 1, 256);
    par_hold(at.s);
    CALL(cuMemcpyHtoAAsync_v2, "held-pinned", (at.line, 0, at.pinned, 256, at.s));
    memset(at.pinned, 2, 256);
    CALL(cuStreamQuery, "held", (at.s));
    PAR_DRAIN("released", at.s);
    CALL(cuMemcpyAtoH_v2, "read-back", (at.back, at.line, 0, 256));
    par_see("source-was-read", at.back[0] == 1 ? "at-the-call" : "in-stream-order");
}

SCENARIO(held_from_plain, "copy-array/held-from-plain") {
    ends at = make_ends();
    memset(at.plain, 1, 256);
    par_hold(at.s);
    CALL(cuMemcpyHtoAAsync_v2, "held-plain", (at.line, 0, at.plain, 256, at.s));
    memset(at.plain, 2, 256);
    CALL(cuStreamQuery, "held", (at.s));
    PAR_DRAIN("released", at.s);
    CALL(cuMemcpyAtoH_v2, "read-back", (at.back, at.line, 0, 256));
    par_see("source-was-read", at.back[0] == 1 ? "at-the-call" : "in-stream-order");
}

SCENARIO(held_between, "copy-array/held-between") {
    ends at = make_ends();
    CUDA_MEMCPY2D c = plane_in(&at);
    SETUP(cuMemcpy2D_v2, (&c));
    par_hold(at.s);
    c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    c.srcArray = at.other;
    CALL(cuMemcpy2DAsync_v2, "array-to-array", (&c, at.s));
    c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = at.d;
    CALL(cuMemcpy2DAsync_v2, "device-to-array", (&c, at.s));
    c = plane_out(&at);
    c.dstHost = at.pinned;
    CALL(cuMemcpy2DAsync_v2, "array-to-pinned", (&c, at.s));
    CALL(cuStreamQuery, "held", (at.s));
    PAR_DRAIN("released", at.s);
}

/* A timeout says that it waits. */
SCENARIO(held_to_plain, "copy-array/held-to-plain") {
    ends at = make_ends();
    par_hold(at.s);
    CALL(cuMemcpyAtoHAsync_v2, "held-plain", (at.back, at.line, 0, 256, at.s));
    PAR_DRAIN("released", at.s);
}

SCENARIO(destroyed_while_copied, "copy-array/destroyed-while-copied") {
    ends at = make_ends();
    par_hold(at.s);
    CALL(cuMemcpyHtoAAsync_v2, "held", (at.line, 0, at.pinned, 256, at.s));
    CALL(cuArrayDestroy, "copy-waits", (at.line));
    PAR_DRAIN("released", at.s);
}

/* ---- Batches --------------------------------------------------------------------------------- */

static CUDA_MEMCPY3D_BATCH_OP batch_op(const ends *at, CUarray x) {
    CUDA_MEMCPY3D_BATCH_OP op;
    memset(&op, 0, sizeof op);
    op.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = (CUdeviceptr)(uintptr_t)at->pinned;
    op.dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
    op.dst.op.array.array = x;
    op.extent.width = 8;
    op.extent.height = 4;
    op.extent.depth = 1;
    op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    return op;
}

SCENARIO(batches, "copy-array/batches") {
    ends at = make_ends();
    CUDA_MEMCPY3D_BATCH_OP op;
    size_t failed;
    CUarray wide = make(64, ROWS, 0, F32, 4, 0);
    memcpy(at.pinned, at.plain, ALL);
    CUDA_MEMCPY2D fill = plane_in(&at);
    fill.WidthInBytes = ROW;
    fill.Height = ROWS;
    SETUP(cuMemcpy2D_v2, (&fill));
#define BATCH(cls, change)                                                                         \
    do {                                                                                           \
        op = batch_op(&at, at.plane);                                                              \
        change;                                                                                    \
        CALLO(cuMemcpy3DBatchAsync, cls, (1, &op, &failed, 0, at.s), OUT_U(failed));               \
        CALL(cuMemcpy3DBatchAsync_v2, cls, (1, &op, 0, at.s));                                     \
    } while (0)
    BATCH("to-array", (void)0);
    SETUP(cuStreamSynchronize, (at.s));
    see_plane(&at);
    BATCH("to-array-offset", (op.dst.op.array.offset.x = 4, op.dst.op.array.offset.y = 2));
    SETUP(cuStreamSynchronize, (at.s));
    see_plane(&at);
    BATCH("row-length", (op.src.op.ptr.rowLength = 16));
    SETUP(cuStreamSynchronize, (at.s));
    see_plane(&at);
    BATCH("row-length-small", (op.src.op.ptr.rowLength = 4));
    BATCH("layer-height-small", (op.src.op.ptr.layerHeight = 2));
    BATCH("whole-row", (op.extent.width = 64));
    BATCH("too-wide", (op.extent.width = 65));
    BATCH("too-high", (op.extent.height = ROWS + 1));
    BATCH("depth-zero", (op.extent.depth = 0));
    BATCH("depth-two", (op.extent.depth = 2));
    BATCH("offset-z", (op.dst.op.array.offset.z = 1));
    BATCH("offset-past-end", (op.dst.op.array.offset.x = 60));
    BATCH("null-array", (op.dst.op.array.array = NULL));
    BATCH("type-zero", (op.dst.type = (CUmemcpy3DOperandType)0));
    BATCH("type-unknown", (op.dst.type = (CUmemcpy3DOperandType)5));
    BATCH("source-array",
          (op.src.type = CU_MEMCPY_OPERAND_TYPE_ARRAY, memset(&op.src.op, 0, sizeof op.src.op),
           op.src.op.array.array = at.other));
    BATCH("elements-differ",
          (op.src.type = CU_MEMCPY_OPERAND_TYPE_ARRAY, memset(&op.src.op, 0, sizeof op.src.op),
           op.src.op.array.array = wide));
    BATCH("array-to-pointer", (op.src = op.dst, op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER,
                               memset(&op.dst.op, 0, sizeof op.dst.op), op.dst.op.ptr.ptr = at.d));
    BATCH("past-allocation", (op.src.op.ptr.ptr = at.d + ALL - 64));
    BATCH("1d-array", (op.dst.op.array.array = at.line, op.extent.height = 1));
    BATCH("3d-array", (op.dst.op.array.array = at.solid, op.extent.depth = 4));
    BATCH("during-call-plain", (op.src.op.ptr.ptr = (CUdeviceptr)(uintptr_t)at.plain,
                                op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL));
    BATCH("pointer-to-pointer",
          (op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER, memset(&op.dst.op, 0, sizeof op.dst.op),
           op.dst.op.ptr.ptr = at.d));
    BATCH("flags", (op.flags = 1));
    BATCH("flags-unknown", (op.flags = 2));
    CALL(cuStreamSynchronize, "after", (at.s));
    see_plane(&at);
    op = batch_op(&at, at.plane);
    CALLO(cuMemcpy3DBatchAsync_ptsz, "per-thread", (1, &op, &failed, 0, CU_STREAM_PER_THREAD),
          OUT_U(failed));
    CALL(cuMemcpy3DBatchAsync_v2_ptsz, "per-thread", (1, &op, 0, CU_STREAM_PER_THREAD));
}
