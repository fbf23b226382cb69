/*
 * Memory that the current device may not reach: pools of another device and mappings without
 * access, with every kind of copy, set, node and question; and copies of which one end alone is
 * wrong.
 */
#include "../parity.h"

#define N ((size_t)4096)

static CUcontext first, second;
static CUdeviceptr here, managed; /* of device 0, of both */
static CUstream s, other;         /* of device 0, of device 1 */
static char *plain, *pinned;

static bool two_devices(void) {
    int count = 0;
    par_init();
    SETUP(cuDeviceGetCount, (&count));
    if (count < 2)
        return false;
    SETUP(cuDevicePrimaryCtxRetain, (&first, 0));
    SETUP(cuDevicePrimaryCtxRetain, (&second, 1));
    NAME(first);
    NAME(second);
    par.primary = first;
    SETUP(cuCtxSetCurrent, (second));
    other = par_stream();
    SETUP(cuCtxSetCurrent, (first));
    return true;
}

static void own_ends(void) {
    here = par_alloc(N);
    SETUP(cuMemAllocManaged, (&managed, N, CU_MEM_ATTACH_GLOBAL));
    s = par_stream();
    plain = calloc(1, N);
    pinned = par_pinned(N);
}

static CUmemoryPool pool_of(int device, CUmemAllocationType type) {
    CUmemPoolProps props = {.allocType = type, AT_DEVICE(device)};
    CUmemoryPool pool = par_pool(&props);
    return pool;
}

static void give(CUmemoryPool pool, CUmemAccess_flags flags) {
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags};
    SETUP(cuMemPoolSetAccess, (pool, &access, 1));
}

/* ---- Every call that takes an address -------------------------------------------------------- */

static void rows(const char *cls, CUdeviceptr p) {
    CUdeviceptr host = (CUdeviceptr)(uintptr_t)plain;
    CALL(cuMemcpyHtoD_v2, cls, (p, plain, 64));
    CALL(cuMemcpyHtoD_v2, cls, (p, pinned, 64));
    CALL(cuMemcpyHtoDAsync_v2, cls, (p, pinned, 64, s));
    CALL(cuMemcpyHtoDAsync_v2, cls, (p, pinned, 64, other));
    CALL(cuMemcpyDtoH_v2, cls, (plain, p, 64));
    CALL(cuMemcpyDtoH_v2, cls, (pinned, p, 64));
    CALL(cuMemcpyDtoHAsync_v2, cls, (pinned, p, 64, s));
    CALL(cuMemcpyDtoHAsync_v2, cls, (pinned, p, 64, other));
    CALL(cuMemcpyDtoD_v2, cls, (p, here, 64));
    CALL(cuMemcpyDtoD_v2, cls, (here, p, 64));
    CALL(cuMemcpyDtoDAsync_v2, cls, (here, p, 64, s));
    CALL(cuMemcpyDtoDAsync_v2, cls, (here, p, 64, other));
    CALL(cuMemcpyDtoD_v2, cls, (p, p + 128, 64));
    CALL(cuMemcpyDtoD_v2, cls, (managed, p, 64));
    CALL(cuMemcpy, cls, (p, here, 64));
    CALL(cuMemcpy, cls, (here, p, 64));
    CALL(cuMemcpy, cls, (host, p, 64));
    CALL(cuMemcpy, cls, (p, managed, 64));
    CALL(cuMemcpyAsync, cls, (p, here, 64, s));
    CALL(cuMemcpyAsync, cls, (p, here, 64, other));
    CALL(cuMemcpyAsync, cls, (managed, p, 64, s));
    CALL(cuMemcpyDtoD_v2, "empty", (here, p, 0));
    CALL(cuCtxSynchronize, "after", ());
    CALL(cuStreamSynchronize, "other-device", (other));
}

static void between(const char *cls, CUdeviceptr p) {
    CUDA_MEMCPY3D_PEER c = {FROM_DEVICE(p), TO_DEVICE(here), .srcContext = second,
                            .dstContext = first, EXTENT_3D(64, 1, 1)};
    CALL(cuMemcpyPeer, cls, (here, first, p, second, 64));
    CALL(cuMemcpyPeer, cls, (p, second, here, first, 64));
    CALL(cuMemcpyPeerAsync, cls, (here, first, p, second, 64, s));
    CALL(cuMemcpyPeerAsync, cls, (p, second, here, first, 64, s));
    CALL(cuMemcpyPeerAsync, cls, (p, second, here, first, 64, other));
    CALL(cuMemcpyPeerAsync, "both-first", (here, first, p, first, 64, s));
    CALL(cuMemcpyPeerAsync, "both-second", (here, second, p, second, 64, s));
    CALL(cuMemcpyPeerAsync, "swapped", (here, second, p, first, 64, s));
    CALL(cuMemcpyPeer, "both-first", (here, first, p, first, 64));
    CALL(cuMemcpy3DPeer, cls, (&c));
    CALL(cuMemcpy3DPeerAsync, cls, (&c, s));
    c.srcContext = first;
    CALL(cuMemcpy3DPeer, "both-first", (&c));
    CALL(cuMemcpy3DPeerAsync, "both-first", (&c, s));
    CALL(cuCtxSynchronize, "after", ());
    CALL(cuStreamSynchronize, "other-device", (other));
}

static void boxes(const char *cls, CUdeviceptr p) {
    CUDA_ARRAY_DESCRIPTOR d = {64, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    CUdeviceptr dsts[2] = {here, here + 128}, srcs[2] = {here + 256, p};
    size_t lengths[2] = {64, 64}, index[1] = {0}, failed;
    CUmemcpyAttributes attribute = {CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, {0}, {0}, 0};
    CUDA_MEMCPY2D c = {FROM_DEVICE(p), TO_HOST(pinned), EXTENT(32, 2)};
    c.srcPitch = c.dstPitch = 32;
    CALL(cuMemcpy2D_v2, cls, (&c));
    CALL(cuMemcpy2DAsync_v2, cls, (&c, s));
    c.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    CALL(cuMemcpy2D_v2, "unified", (&c));
    CUDA_MEMCPY3D b = {FROM_DEVICE(here), TO_DEVICE(p), .WidthInBytes = 32};
    b.Height = b.Depth = 1;
    CALL(cuMemcpy3D_v2, cls, (&b));
    CALL(cuMemcpy3DAsync_v2, cls, (&b, s));
    CUarray array = PAR_MADE(CUarray, cuArrayCreate_v2, &d);
    CALL(cuMemcpyDtoA_v2, cls, (array, 0, p, 64));
    CALL(cuMemcpyAtoD_v2, cls, (p, array, 0, 64));
    CALLO(cuMemcpyBatchAsync, cls, (dsts, srcs, lengths, 2, &attribute, index, 1, &failed, s),
          OUT_U(failed));
    CALL(cuMemcpyBatchAsync_v2, cls, (dsts, srcs, lengths, 2, &attribute, index, 1, s));
    CALL(cuCtxSynchronize, "after", ());
}

static void sets(const char *cls, CUdeviceptr p) {
    CALL(cuMemsetD8_v2, cls, (p, 1, 64));
    CALL(cuMemsetD32Async, cls, (p, 1, 16, s));
    CALL(cuMemsetD32Async, "stream-of-owner", (p, 1, 16, other));
    CALL(cuMemsetD2D8_v2, cls, (p, 64, 1, 32, 2));
    CALL(cuStreamWriteValue32_v2, cls, (s, p, 7, 0));
    CALL(cuStreamWaitValue32_v2, cls, (s, p, 0, CU_STREAM_WAIT_VALUE_GEQ));
    CALL(cuStreamWriteValue32_v2, "stream-of-owner", (other, p, 7, 0));
    CALL(cuCtxSynchronize, "after", ());
    CALL(cuStreamSynchronize, "other-device", (other));
}

/* As nodes: by the call for a graph, in a capture, when instantiated and launched. */
static void nodes(const char *cls, CUdeviceptr p) {
    CUgraph graph, captured = NULL;
    CUgraphNode node;
    CUgraphExec exec;
    CUDA_MEMSET_NODE_PARAMS set = {p, 0, 1, 4, 16, 1};
    CUDA_MEMCPY3D b = {FROM_DEVICE(here), TO_DEVICE(p), EXTENT_3D(32, 1, 1)};
    SETUP(cuGraphCreate, (&graph, 0));
    CALL(cuGraphAddMemcpyNode, cls, (&node, graph, NULL, 0, &b, first));
    CALL(cuGraphAddMemcpyNode, "context-of-owner", (&node, graph, NULL, 0, &b, second));
    CALL(cuGraphAddMemsetNode, cls, (&node, graph, NULL, 0, &set, first));
    CALL(cuGraphAddMemsetNode, "context-of-owner", (&node, graph, NULL, 0, &set, second));
    CALLO(cuGraphInstantiateWithFlags, cls, (&exec, graph, 0), OUT_C(exec));
    if (par_last() == CUDA_SUCCESS) {
        CALL(cuGraphLaunch, cls, (exec, s));
        CALL(cuStreamSynchronize, "launched", (s));
    }
    SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALL(cuMemcpyDtoDAsync_v2, "captured", (here, p, 64, s));
    CALLO(cuStreamEndCapture, "captured", (s, &captured), OUT_C(captured));
    s = par_stream();
    SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALL(cuMemsetD32Async, "captured", (p, 1, 16, s));
    CALLO(cuStreamEndCapture, "captured", (s, &captured), OUT_C(captured));
    s = par_stream();
}

static void questions(const char *cls, CUdeviceptr p) {
    CUdeviceptr base, got;
    size_t size;
    unsigned number;
    CALLO(cuMemGetAddressRange_v2, cls, (&base, &size, p + 4), OUT_C(base), OUT_U(size));
    CALLO(cuPointerGetAttribute, cls, (&got, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p), OUT_C(got));
    CALLO(cuPointerGetAttribute, cls, (&number, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, p),
          OUT_U(number));
    CALLO(cuPointerGetAttribute, cls, (&number, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p),
          OUT_U(number));
    CALLO(cuPointerGetAttribute, cls, (&number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p),
          OUT_U(number));
    CALLO(cuPointerGetAttribute, cls, (&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p), OUT_U(size));
}

typedef void (*subject)(const char *cls, CUdeviceptr p);

/* Before a grant, with it, and after it was taken back. */
static void of_pool(subject ask, CUmemAllocationType type) {
    if (!two_devices())
        return;
    own_ends();
    CUmemoryPool pool = pool_of(1, type);
    CUdeviceptr p = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, N, pool, other);
    SETUP(cuStreamSynchronize, (other));
    ask("never-given", p);
    give(pool, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    ask("given", p);
    give(pool, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    ask("taken-back", p);
}

/* The same of plain memory of the other device. */
static void of_memory(subject ask) {
    if (!two_devices())
        return;
    own_ends();
    SETUP(cuCtxSetCurrent, (second));
    CUdeviceptr p = par_alloc(N);
    SETUP(cuCtxSetCurrent, (first));
    ask("no-peer-access", p);
    SETUP(cuCtxEnablePeerAccess, (second, 0));
    ask("peer-access", p);
}

#define SUBJECT(name)                                                                              \
    SCENARIO(name##_of_pool, "near-access/pool-" #name) {                                          \
        of_pool(name, CU_MEM_ALLOCATION_TYPE_PINNED);                                              \
    }                                                                                              \
    SCENARIO(name##_of_memory, "near-access/memory-" #name) {                                      \
        of_memory(name);                                                                           \
    }
SUBJECT(rows)
SUBJECT(between)
SUBJECT(boxes)
SUBJECT(sets)
SUBJECT(nodes)
SUBJECT(questions)

SCENARIO_IS(managed_pool, "near-access/managed-pool-rows",
            of_pool(rows, CU_MEM_ALLOCATION_TYPE_MANAGED));

/* ---- Mappings of one device ------------------------------------------------------------------ */

static CUdeviceptr map(CUmemGenericAllocationHandle h) {
    CUdeviceptr p = par_reserve(PAR_2M);
    SETUP(cuMemMap, (p, PAR_2M, 0, h, 0));
    return p;
}

static void access_of(CUdeviceptr p, CUmemLocationType type, int id, CUmemAccess_flags flags) {
    CUmemAccessDesc access = {{type, id}, flags};
    SETUP(cuMemSetAccess, (p, PAR_2M, &access, 1));
}

#define DEVICE CU_MEM_LOCATION_TYPE_DEVICE
#define BOTH   CU_MEM_ACCESS_FLAGS_PROT_READWRITE
#define NONE   CU_MEM_ACCESS_FLAGS_PROT_NONE

static void range_of(const char *cls, CUdeviceptr p) {
    CUdeviceptr base;
    size_t size;
    int fd;
    CALLO(cuMemGetAddressRange_v2, cls, (&base, &size, p), OUT_C(base), OUT_U(size));
    CALLO(cuMemGetAddressRange_v2, "inside", (&base, &size, p + 100), OUT_C(base), OUT_U(size));
    CALLO(cuMemGetHandleForAddressRange, cls,
          (&fd, p, PAR_2M, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), OUT_D(fd));
}

SCENARIO(range_one, "near-access/range", par_context) {
    CUdeviceptr p = map(par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE));
    range_of("never-given", p);
    access_of(p, DEVICE, 0, CU_MEM_ACCESS_FLAGS_PROT_READ);
    range_of("read-only", p);
    access_of(p, DEVICE, 0, BOTH);
    range_of("given", p);
    access_of(p, DEVICE, 0, NONE);
    range_of("taken-back", p);
    access_of(p, DEVICE, 0, BOTH);
    range_of("given-again", p);
}

SCENARIO(range_two, "near-access/range-of-two", par_context) {
    CUmemGenericAllocationHandle h = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
    CUdeviceptr a = map(h), b = map(h);
    access_of(a, DEVICE, 0, BOTH);
    range_of("second-never-given", b);
    access_of(b, DEVICE, 0, BOTH);
    range_of("second-given", b);
    access_of(b, DEVICE, 0, NONE);
    range_of("second-taken-back", b);
    range_of("first-given", a);
    access_of(b, DEVICE, 0, BOTH);
    access_of(a, DEVICE, 0, NONE);
    range_of("first-taken-back", a);
    range_of("second-still-given", b);
    questions("first-taken-back", a);
}

/* Two mappings side by side, of which one has access. */
SCENARIO(range_beside, "near-access/range-beside", par_context) {
    CUdeviceptr a = par_reserve(2 * PAR_2M), base;
    size_t size;
    SETUP(cuMemMap, (a, PAR_2M, 0, par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE), 0));
    SETUP(cuMemMap, (a + PAR_2M, PAR_2M, 0, par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE), 0));
    NAME_R(a, 2 * PAR_2M);
    access_of(a, DEVICE, 0, BOTH);
    CALLO(cuMemGetAddressRange_v2, "with", (&base, &size, a + 8), OUT_P(base), OUT_U(size));
    CALLO(cuMemGetAddressRange_v2, "without", (&base, &size, a + PAR_2M + 8), OUT_P(base),
          OUT_U(size));
    access_of(a + PAR_2M, DEVICE, 0, BOTH);
    CALLO(cuMemGetAddressRange_v2, "both", (&base, &size, a + PAR_2M + 8), OUT_P(base),
          OUT_U(size));
}

SCENARIO(range_host, "near-access/range-host", par_context) {
    CUmemAllocationProp prop = par_device_prop();
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    CUmemGenericAllocationHandle h = par_create_as(PAR_2M, &prop);
    CUdeviceptr p = map(h);
    range_of("host-never-given", p);
    access_of(p, CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, BOTH);
    range_of("host-cpu-only", p);
    access_of(p, DEVICE, 0, BOTH);
    range_of("host-both", p);
    access_of(p, DEVICE, 0, NONE);
    range_of("host-device-taken-back", p);
}

SCENARIO(range_devices, "near-access/range-devices") {
    if (!two_devices())
        return;
    CUdeviceptr p = map(par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE));
    access_of(p, DEVICE, 1, BOTH);
    range_of("other-device-only", p);
    SETUP(cuCtxSetCurrent, (second));
    range_of("from-other-device", p);
    access_of(p, DEVICE, 0, BOTH);
    access_of(p, DEVICE, 1, NONE);
    range_of("owner-only", p);
}

/* What vmm-access/work-without did not ask. */
SCENARIO(work, "near-access/mapping-work", par_context) {
    own_ends();
    other = s;
    second = first = par.primary;
    CUdeviceptr p = map(par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE));
    rows("mapping-never-given", p);
    boxes("mapping-never-given", p);
    sets("mapping-never-given", p);
    nodes("mapping-never-given", p);
    access_of(p, DEVICE, 0, BOTH);
    access_of(p, DEVICE, 0, NONE);
    rows("mapping-taken-back", p);
    sets("mapping-taken-back", p);
}

/* ---- One wrong end --------------------------------------------------------------------------- */

SCENARIO(one_end, "near-access/one-end", par_context) {
    CUdeviceptr list[2], from[2];
    size_t lengths[2] = {64, 64}, index[1] = {0}, failed;
    CUmemcpyAttributes attribute = {CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, {0}, {0}, 0};
    own_ends();
    CUdeviceptr large = par_alloc(PAR_2M), small = par_alloc(N);
    CALL(cuMemcpyDtoD_v2, "dst-one-past-end", (small, large, N + 1));
    CALL(cuMemcpyDtoD_v2, "src-one-past-end", (large, small, N + 1));
    CALL(cuMemcpy, "dst-one-past-end", (small, large, N + 1));
    CALL(cuMemcpy, "src-one-past-end", (large, small, N + 1));
    CALL(cuMemcpyDtoDAsync_v2, "dst-one-past-end", (small, large, N + 1, s));
    CALL(cuMemcpyDtoDAsync_v2, "src-one-past-end", (large, small, N + 1, s));
    CALL(cuMemcpyAsync, "null-dst", (0, large, N, s));
    CALL(cuMemcpyAsync, "null-src", (large, 0, N, s));
    CALL(cuMemcpyPeer, "dst-one-past-end", (small, par.primary, large, par.primary, N + 1));
    CALL(cuMemcpyPeer, "src-one-past-end", (large, par.primary, small, par.primary, N + 1));
    CALL(cuMemcpyHtoD_v2, "pinned-past-end", (large, pinned, N + 1));
    CALL(cuMemcpyDtoH_v2, "pinned-past-end", (pinned, large, N + 1));
    list[0] = large;
    list[1] = large + N;
    from[0] = small;
    from[1] = small;
    lengths[1] = N + 1;
    CALLO(cuMemcpyBatchAsync, "src-past-end",
          (list, from, lengths, 2, &attribute, index, 1, &failed, s), OUT_U(failed));
    CALLO(cuMemcpyBatchAsync, "dst-past-end",
          (from, list, lengths, 2, &attribute, index, 1, &failed, s), OUT_U(failed));
    lengths[1] = 64;
    CALLO(cuMemcpyBatchAsync, "no-attributes", (list, from, lengths, 2, NULL, index, 1, &failed, s),
          OUT_U(failed));
    CALLO(cuMemcpyBatchAsync, "no-index", (list, from, lengths, 2, &attribute, NULL, 1, &failed, s),
          OUT_U(failed));
    CALLO(cuMemcpyBatchAsync, "zero-attributes",
          (list, from, lengths, 2, &attribute, index, 0, &failed, s), OUT_U(failed));
    CALL(cuCtxSynchronize, "after", ());
}

/* More operations than may be, each of them good; and a handle that is really stale. */
SCENARIO(memops, "near-access/memops", par_context) {
    static CUstreamBatchMemOpParams ops[257];
    own_ends();
    for (int i = 0; i < 257; i++) {
        memset(&ops[i], 0, sizeof(ops[i]));
        ops[i].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        ops[i].writeValue.address = here + 4 * (unsigned)i;
    }
    CALL(cuStreamBatchMemOp_v2, "count-256", (s, 256, ops, 0));
    CALL(cuStreamBatchMemOp_v2, "count-257", (s, 257, ops, 0));
    CALL(cuStreamBatchMemOp, "count-256", (s, 256, ops, 0));
    CALL(cuStreamBatchMemOp, "count-257", (s, 257, ops, 0));
    CALL(cuStreamSynchronize, "after", (s));
}

static void write_and_wait(const char *cls, CUdeviceptr p) {
    CALL(cuStreamWriteValue32_v2, cls, (s, p, 7, 0));
    CALL(cuStreamWaitValue32_v2, cls, (s, p, 0, CU_STREAM_WAIT_VALUE_GEQ));
    CALL(cuStreamSynchronize, cls, (s));
}

/* Memory operations on each kind of memory that the device itself has or may use. */
SCENARIO(memops_of_kinds, "near-access/memops-of-kinds", par_context) {
    own_ends();
    write_and_wait("plain", here);
    write_and_wait("pinned", (CUdeviceptr)(uintptr_t)pinned);
    write_and_wait("managed", managed);
    CUdeviceptr p = PAR_MADE(CUdeviceptr, cuMemAllocAsync, N, s);
    write_and_wait("default-pool", p);
    SETUP(cuMemAllocFromPoolAsync, (&p, N, pool_of(0, CU_MEM_ALLOCATION_TYPE_PINNED), s));
    write_and_wait("own-pool", p);
    p = map(par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE));
    access_of(p, DEVICE, 0, BOTH);
    write_and_wait("mapping", p);
}

/* The same while memory operations are kept for a graph. */
SCENARIO(memops_captured, "near-access/memops-captured", par_context) {
    CUgraph captured;
    CUgraphExec exec;
    own_ends();
    CUdeviceptr p = PAR_MADE(CUdeviceptr, cuMemAllocAsync, N, s);
    SETUP(cuStreamSynchronize, (s));
    SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALL(cuStreamWriteValue32_v2, "default-pool", (s, p, 7, 0));
    CALLO(cuStreamEndCapture, "default-pool", (s, &captured), OUT_C(captured));
    if (par_last() == CUDA_SUCCESS)
        CALLO(cuGraphInstantiateWithFlags, "default-pool", (&exec, captured, 0), OUT_C(exec));
}
