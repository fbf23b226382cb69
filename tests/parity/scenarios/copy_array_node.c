/* Captured copies and sets: which nodes they become, and with which parameters. */
#include "../parity.h"

#define U8 CU_AD_FORMAT_UNSIGNED_INT8
#define N  ((size_t)4096)

typedef struct ends {
    CUarray line, plane, other;
    CUdeviceptr d, e;
    unsigned char *plain, *pinned;
    CUstream s;
} ends;

static ends make_ends(void) {
    ends at;
    CUDA_ARRAY3D_DESCRIPTOR a = {.Width = 256, .Format = U8, .NumChannels = 1};
    par_context();
    SETUP(cuArray3DCreate_v2, (&at.line, &a));
    a.Width = 64;
    a.Height = 32;
    a.NumChannels = 4;
    SETUP(cuArray3DCreate_v2, (&at.plane, &a));
    SETUP(cuArray3DCreate_v2, (&at.other, &a));
    at.d = par_alloc(N);
    at.e = par_alloc(N);
    at.plain = calloc(1, N);
    at.pinned = par_pinned(N);
    at.s = par_stream();
    NAME(at.line);
    NAME(at.plane);
    NAME(at.other);
    NAME_R(at.d, N);
    NAME_R(at.e, N);
    NAME_R(at.pinned, N);
    NAME_R(at.plain, N);
    return at;
}

static void begin(const ends *at) {
    SETUP(cuStreamBeginCapture_v2, (at->s, CU_STREAM_CAPTURE_MODE_RELAXED));
}

static void show_copy(CUgraphNode node) {
    CUDA_MEMCPY3D p;
    CALLO(cuGraphMemcpyNodeGetParams, "captured", (node, &p), OUT_U(p.srcXInBytes), OUT_U(p.srcY),
          OUT_U(p.srcZ), OUT_U(p.srcLOD), OUT_I(p.srcMemoryType), OUT_R(p.srcHost, N),
          OUT_R(p.srcDevice, N), OUT_H(p.srcArray), OUT_C(p.reserved0), OUT_U(p.srcPitch),
          OUT_U(p.srcHeight), OUT_U(p.dstXInBytes), OUT_U(p.dstY), OUT_U(p.dstZ), OUT_U(p.dstLOD),
          OUT_I(p.dstMemoryType), OUT_R(p.dstHost, N), OUT_R(p.dstDevice, N), OUT_H(p.dstArray),
          OUT_C(p.reserved1), OUT_U(p.dstPitch), OUT_U(p.dstHeight), OUT_U(p.WidthInBytes),
          OUT_U(p.Height), OUT_U(p.Depth));
}

static void show_set(CUgraphNode node) {
    CUDA_MEMSET_NODE_PARAMS p;
    CALLO(cuGraphMemsetNodeGetParams, "captured", (node, &p), OUT_R(p.dst, N), OUT_U(p.pitch),
          OUT_X(p.value), OUT_U(p.elementSize), OUT_U(p.width), OUT_U(p.height));
}

/* Ends the capture and shows its nodes. */
static void end(const ends *at, const char *cls) {
    CUgraph g = NULL;
    CUgraphNode nodes[4];
    size_t count = 4;
    CALLO(cuStreamEndCapture, cls, (at->s, &g), OUT_C(g));
    if (par_last() != CUDA_SUCCESS)
        return;
    SETUP(cuGraphGetNodes, (g, nodes, &count));
    par_see("nodes", "%zu", count);
    for (size_t i = 0; i < count && i < 4; i++) {
        CUgraphNodeType type = PAR_GOT(CUgraphNodeType, cuGraphNodeGetType, nodes[i]);
        par_see("type", "%d", (int)type);
        if (type == CU_GRAPH_NODE_TYPE_MEMCPY)
            show_copy(nodes[i]);
        if (type == CU_GRAPH_NODE_TYPE_MEMSET)
            show_set(nodes[i]);
    }
    SETUP(cuGraphDestroy, (g));
}

#define CAPTURED(fn, cls, args)                                                                    \
    do {                                                                                           \
        begin(&at);                                                                                \
        CALL(fn, cls, args);                                                                       \
        end(&at, cls);                                                                             \
    } while (0)

SCENARIO(linear, "copy-array-node/linear") {
    ends at = make_ends();
    CAPTURED(cuMemcpyAsync, "device-device", (at.e, at.d, 100, at.s));
    CAPTURED(cuMemcpyAsync, "device-device-offsets", (at.e + 8, at.d + 16, 100, at.s));
    CAPTURED(cuMemcpyAsync, "pinned-device", (at.d, (CUdeviceptr)(uintptr_t)at.pinned, 100, at.s));
    CAPTURED(cuMemcpyAsync, "device-pinned", ((CUdeviceptr)(uintptr_t)at.pinned, at.d, 100, at.s));
    CAPTURED(cuMemcpyAsync, "plain-device", (at.d, (CUdeviceptr)(uintptr_t)at.plain, 100, at.s));
    CAPTURED(cuMemcpyAsync, "device-plain", ((CUdeviceptr)(uintptr_t)at.plain, at.d, 100, at.s));
    CAPTURED(cuMemcpyHtoDAsync_v2, "pinned", (at.d, at.pinned, 100, at.s));
    CAPTURED(cuMemcpyHtoDAsync_v2, "plain", (at.d, at.plain, 100, at.s));
    CAPTURED(cuMemcpyDtoHAsync_v2, "pinned", (at.pinned, at.d, 100, at.s));
    CAPTURED(cuMemcpyDtoHAsync_v2, "plain", (at.plain, at.d, 100, at.s));
    CAPTURED(cuMemcpyDtoDAsync_v2, "ok", (at.e, at.d, 100, at.s));
    CAPTURED(cuMemcpyPeerAsync, "ok", (at.e, par.primary, at.d, par.primary, 100, at.s));
    CAPTURED(cuMemcpyAsync, "zero-size", (at.e, at.d, 0, at.s));
    CAPTURED(cuMemcpyHtoDAsync_v2, "zero-size", (at.d, at.plain, 0, at.s));
    CAPTURED(cuMemcpyDtoDAsync_v2, "one-past-end", (at.e, at.d, N * 1024, at.s));
    CAPTURED(cuMemcpyDtoDAsync_v2, "null-device", (0, at.d, 100, at.s));
    CAPTURED(cuMemcpyAsync_ptsz, "twin", (at.e, at.d, 100, at.s));
}

SCENARIO(regions, "copy-array-node/regions") {
    ends at = make_ends();
    CUDA_MEMCPY2D c = {FROM_HOST(at.pinned), .srcPitch = 128, .srcXInBytes = 4, .srcY = 1,
                       TO_DEVICE(at.d),      .dstPitch = 64,  EXTENT(32, 4)};
    CAPTURED(cuMemcpy2DAsync_v2, "host-device", (&c, at.s));
    c.Height = 1;
    CAPTURED(cuMemcpy2DAsync_v2, "one-row", (&c, at.s));
    c.Height = 0;
    CAPTURED(cuMemcpy2DAsync_v2, "zero-height", (&c, at.s));
    c.Height = 4;
    c.srcPitch = c.dstPitch = 0;
    c.srcXInBytes = 0;
    CAPTURED(cuMemcpy2DAsync_v2, "pitches-zero", (&c, at.s));
    c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    c.srcDevice = at.e;
    c.srcPitch = c.dstPitch = 64;
    CAPTURED(cuMemcpy2DAsync_v2, "unified", (&c, at.s));
    c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    c.dstArray = at.plane;
    c.dstXInBytes = 8;
    c.dstY = 3;
    CAPTURED(cuMemcpy2DAsync_v2, "to-array", (&c, at.s));
    c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    c.srcArray = at.other;
    CAPTURED(cuMemcpy2DAsync_v2, "array-array", (&c, at.s));
    c.dstXInBytes = 2;
    CAPTURED(cuMemcpy2DAsync_v2, "x-inside-element", (&c, at.s));
    CUDA_MEMCPY3D b = {FROM_HOST(at.pinned), .srcPitch = 64, .srcHeight = 8, .srcZ = 1,
                       TO_DEVICE(at.d),      .dstPitch = 32, .dstHeight = 4, EXTENT_3D(32, 4, 2)};
    CAPTURED(cuMemcpy3DAsync_v2, "host-device", (&b, at.s));
    b.srcLOD = 2;
    CAPTURED(cuMemcpy3DAsync_v2, "lod", (&b, at.s));
    b.Depth = 0;
    CAPTURED(cuMemcpy3DAsync_v2, "zero-depth", (&b, at.s));
    CUDA_MEMCPY3D_PEER p = {FROM_DEVICE(at.d),
                            TO_DEVICE(at.e),
                            .srcContext = par.primary,
                            .dstContext = par.primary,
                            .srcPitch = 64,
                            .dstPitch = 64,
                            .srcHeight = 4,
                            .dstHeight = 4,
                            EXTENT_3D(32, 4, 2)};
    CAPTURED(cuMemcpy3DPeerAsync, "ok", (&p, at.s));
    CAPTURED(cuMemcpyHtoAAsync_v2, "pinned", (at.line, 16, at.pinned, 100, at.s));
    CAPTURED(cuMemcpyHtoAAsync_v2, "plain", (at.line, 16, at.plain, 100, at.s));
    CAPTURED(cuMemcpyAtoHAsync_v2, "pinned", (at.pinned, at.line, 16, 100, at.s));
    CAPTURED(cuMemcpyHtoAAsync_v2, "past-end", (at.line, 200, at.pinned, 100, at.s));
    CAPTURED(cuMemcpyHtoAAsync_v2, "zero-size", (at.line, 0, at.pinned, 0, at.s));
}

SCENARIO(sets, "copy-array-node/sets") {
    ends at = make_ends();
    CAPTURED(cuMemsetD8Async, "ok", (at.d, 0x85, 100, at.s));
    CAPTURED(cuMemsetD16Async, "ok", (at.d, 0x8581, 100, at.s));
    CAPTURED(cuMemsetD32Async, "ok", (at.d, 0x81828384, 100, at.s));
    CAPTURED(cuMemsetD8Async, "pinned", ((CUdeviceptr)(uintptr_t)at.pinned, 1, 100, at.s));
    CAPTURED(cuMemsetD2D8Async, "ok", (at.d, 64, 0x85, 10, 4, at.s));
    CAPTURED(cuMemsetD2D16Async, "ok", (at.d, 64, 0x8581, 10, 4, at.s));
    CAPTURED(cuMemsetD2D32Async, "ok", (at.d, 64, 0x81828384, 10, 4, at.s));
    CAPTURED(cuMemsetD2D32Async, "one-row", (at.d, 64, 1, 10, 1, at.s));
    CAPTURED(cuMemsetD2D32Async, "rows-joined", (at.d, 40, 1, 10, 4, at.s));
    CAPTURED(cuMemsetD8Async, "zero-size", (at.d, 1, 0, at.s));
    CAPTURED(cuMemsetD2D8Async, "zero-height", (at.d, 64, 1, 10, 0, at.s));
    CAPTURED(cuMemsetD32Async, "unaligned", (at.d + 2, 1, 10, at.s));
    CAPTURED(cuMemsetD32Async, "past-end", (at.d, 1, N * 1024, at.s));
    CAPTURED(cuMemsetD8Async, "null", (0, 1, 10, at.s));
}

SCENARIO(batches, "copy-array-node/batches") {
    ends at = make_ends();
    CUdeviceptr to[2] = {at.d, at.d + 512}, from[2] = {at.e, at.e + 512};
    size_t sizes[2] = {64, 64}, index = 0, failed;
    CUmemcpyAttributes attribute = {CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, {0}, {0}, 0};
    CUDA_MEMCPY3D_BATCH_OP op;
    CAPTURED(cuMemcpyBatchAsync, "captured",
             (to, from, sizes, 2, &attribute, &index, 1, &failed, at.s));
    CAPTURED(cuMemcpyBatchAsync_v2, "captured", (to, from, sizes, 2, &attribute, &index, 1, at.s));
    attribute.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    CAPTURED(cuMemcpyBatchAsync, "during-call",
             (to, from, sizes, 2, &attribute, &index, 1, &failed, at.s));
    sizes[1] = 0;
    CAPTURED(cuMemcpyBatchAsync, "bad", (to, from, sizes, 2, &attribute, &index, 1, &failed, at.s));
    memset(&op, 0, sizeof op);
    op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = at.d;
    op.dst.op.ptr.ptr = at.e;
    op.extent.width = 16;
    op.extent.height = 2;
    op.extent.depth = 1;
    op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    CAPTURED(cuMemcpy3DBatchAsync, "captured", (1, &op, &failed, 0, at.s));
    CAPTURED(cuMemcpy3DBatchAsync_v2, "captured", (1, &op, 0, at.s));
    op.dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
    memset(&op.dst.op, 0, sizeof op.dst.op);
    op.dst.op.array.array = at.plane;
    CAPTURED(cuMemcpy3DBatchAsync, "array", (1, &op, &failed, 0, at.s));
}

/* Nodes of arrays: what is checked when, and what a launch does. */
SCENARIO(array_nodes, "copy-array-node/array-nodes") {
    ends at = make_ends();
    CUgraphNode node, two;
    CUgraphExec exec;
    unsigned char out[256];
    CUgraph g = par_graph();
    CUDA_MEMCPY3D c = {FROM_HOST(at.pinned), TO_ARRAY(at.line), EXTENT_3D(256, 1, 1)};
    CALLO(cuGraphAddMemcpyNode, "to-array", (&node, g, NULL, 0, &c, par.primary), OUT_C(node));
    show_copy(node);
    c.WidthInBytes = 257;
    CALLO(cuGraphAddMemcpyNode, "past-end", (&two, g, NULL, 0, &c, par.primary), OUT_C(two));
    c.WidthInBytes = 0;
    CALLO(cuGraphAddMemcpyNode, "zero-width", (&two, g, NULL, 0, &c, par.primary), OUT_C(two));
    c.WidthInBytes = 16;
    c.dstArray = NULL;
    CALLO(cuGraphAddMemcpyNode, "null-array", (&two, g, NULL, 0, &c, par.primary), OUT_C(two));
    c.dstArray = at.plane;
    c.dstXInBytes = 2;
    CALLO(cuGraphAddMemcpyNode, "x-inside-element", (&two, g, NULL, 0, &c, par.primary),
          OUT_C(two));
    c.dstXInBytes = 0;
    c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    c.srcArray = at.other;
    CALLO(cuGraphAddMemcpyNode, "array-array", (&two, g, NULL, 0, &c, par.primary), OUT_C(two));
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = NULL;
    CALLO(cuGraphAddMemcpyNode, "null-host", (&two, g, NULL, 0, &c, par.primary), OUT_C(two));
    c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = 0x1000;
    CALLO(cuGraphAddMemcpyNode, "random-device", (&two, g, NULL, 0, &c, par.primary), OUT_C(two));
    memset(at.pinned, 9, N);
    CALLO(cuGraphInstantiateWithFlags, "array-nodes", (&exec, g, 0), OUT_C(exec));
    CALL(cuGraphLaunch, "array-nodes", (exec, at.s));
    CALL(cuStreamSynchronize, "array-nodes", (at.s));
    SETUP(cuMemcpyAtoH_v2, (out, at.line, 0, 256));
    par_see("content", "%d %d", out[0], out[255]);
    CALL(cuArrayDestroy, "in-a-graph", (at.line));
    CALL(cuGraphLaunch, "array-destroyed", (exec, at.s));
    CALL(cuStreamSynchronize, "array-destroyed", (at.s));
}
