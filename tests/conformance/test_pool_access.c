/* Who may read and write the memory of a pool. */
#include "pools.h"

static CUmemAccess_flags access_of(CUmemoryPool pool, CUmemLocationType type, int id) {
    CUmemLocation location = {.type = type, .id = id};
    CUmemAccess_flags flags = (CUmemAccess_flags)77;
    OK_CU(cu.cuMemPoolGetAccess(&flags, pool, &location));
    return flags;
}

static CUresult set_access(CUmemoryPool pool, int device, CUmemAccess_flags flags) {
    CUmemAccessDesc desc = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                            .flags = flags};
    return cu.cuMemPoolSetAccess(pool, &desc, 1);
}

TEST(the_device_of_a_pool_always_has_access) {
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_DEVICE, dev), 3);
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_HOST, 0), 0);
    OK_CU(set_access(pool, dev, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    FAILS_CU(INVALID_DEVICE, set_access(pool, dev, CU_MEM_ACCESS_FLAGS_PROT_NONE));
    FAILS_CU(NOT_SUPPORTED, set_access(pool, dev, CU_MEM_ACCESS_FLAGS_PROT_READ));
    FAILS_CU(INVALID_DEVICE, set_access(pool, 99, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    FAILS_CU(INVALID_VALUE, set_access(pool, dev, (CUmemAccess_flags)2));
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_DEVICE, dev), 3);
}

/* The rights hold for what is allocated already and for what comes later. */
TEST(a_device_gains_access_to_a_host_pool) {
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_HOST, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUstream stream = new_stream();
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_HOST, 0), 3);
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_DEVICE, dev), 0);
    CUdeviceptr p = pool_take(pool, 4096, stream);
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD8Async(p, 0x21, 4096, stream));
    OK_CU(set_access(pool, dev, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_DEVICE, dev), 3);
    CUdeviceptr q = pool_take(pool, 64 * MIB, stream);
    OK_CU(cu.cuMemsetD8Async(p, 0x21, 4096, stream));
    OK_CU(cu.cuMemsetD8Async(q, 0x22, 4096, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(*(volatile unsigned char *)(uintptr_t)(p + 4095), 0x21);
    assert_int_equal(*(volatile unsigned char *)(uintptr_t)q, 0x22);
    OK_CU(set_access(pool, dev, CU_MEM_ACCESS_FLAGS_PROT_NONE));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD8Async(q, 0x23, 4096, stream));
    OK_CU(cu.cuMemFreeAsync(p, stream));
    OK_CU(cu.cuMemFreeAsync(q, stream));
}

TEST_WHERE(a_peer_has_access_until_it_is_revoked, NEEDS_PEERS()) {
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUdeviceptr p = pool_take(pool, 4096, NULL);
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_DEVICE, 1), 0);
    OK_CU(set_access(pool, 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_DEVICE, 1), 3);
    CUcontext other = MADE_CU(CUcontext, cuDevicePrimaryCtxRetain, 1);
    OK_CU(cu.cuCtxSetCurrent(other));
    set_bytes(p, 0x31, 4096);
    OK_CU(cu.cuCtxSetCurrent(ctx));
    assert_int_equal(byte_at(p), 0x31);
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(1));
    OK_CU(cu.cuMemFreeAsync(p, NULL));
}

/* ---- Pool memory of another device ----------------------------------------------------------- */

enum { COPIED = 64 };

/* What the copies and sets of one device are made with. */
struct ends {
    CUcontext first, second; /* of device 0, which works, and of device 1, which has the pool */
    CUdeviceptr there, here, managed;
    unsigned char bytes[COPIED];
    CUstream stream;
};

static struct ends ends_make(CUmemoryPool *pool) {
    struct ends ends = {.first = ctx};
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}};
    OK_CU(cu.cuDevicePrimaryCtxRetain(&ends.second, 1));
    OK_CU(cu.cuMemPoolCreate(pool, &props));
    ends.stream = new_stream();
    OK_CU(cu.cuCtxPushCurrent_v2(ends.second));
    OK_CU(cu.cuMemAllocFromPoolAsync(&ends.there, 4096, *pool, NULL));
    set_bytes(ends.there, 0x11, 4096);
    OK_CU(cu.cuCtxPopCurrent_v2(NULL));
    OK_CU(cu.cuMemAlloc_v2(&ends.here, 4096));
    OK_CU(cu.cuMemAllocManaged(&ends.managed, 4096, CU_MEM_ATTACH_GLOBAL));
    return ends;
}

static void ends_free(struct ends *ends, CUmemoryPool pool) {
    DESTROY_CU(ends->here, ends->managed, ends->there);
    pool_destroy(pool);
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(1));
}

static void copies_answer(struct ends *ends, CUresult want) {
    CUdeviceptr p = ends->there, q = ends->here, host = (CUdeviceptr)(uintptr_t)ends->bytes;
    CUstream s = ends->stream;
    ANSWERS_CU(want, cu.cuMemcpyHtoD_v2(p, ends->bytes, COPIED));
    ANSWERS_CU(want, cu.cuMemcpyHtoDAsync_v2(p, ends->bytes, COPIED, s));
    ANSWERS_CU(want, cu.cuMemcpyDtoH_v2(ends->bytes, p, COPIED));
    ANSWERS_CU(want, cu.cuMemcpyDtoHAsync_v2(ends->bytes, p, COPIED, s));
    ANSWERS_CU(want, cu.cuMemcpyDtoD_v2(p, q, COPIED));
    ANSWERS_CU(want, cu.cuMemcpyDtoD_v2(q, p, COPIED));
    ANSWERS_CU(want, cu.cuMemcpyDtoDAsync_v2(p, q, COPIED, s));
    ANSWERS_CU(want, cu.cuMemcpyDtoDAsync_v2(q, p, COPIED, s));
    ANSWERS_CU(want, cu.cuMemcpy(p, q, COPIED));
    ANSWERS_CU(want, cu.cuMemcpy(q, p, COPIED));
    ANSWERS_CU(want, cu.cuMemcpy(host, p, COPIED));
    ANSWERS_CU(want, cu.cuMemcpyAsync(p, host, COPIED, s));
    ANSWERS_CU(want, cu.cuMemcpy(ends->managed, p, COPIED));
    ANSWERS_CU(want, cu.cuMemcpy(p, ends->managed, COPIED));
    ANSWERS_CU(want, cu.cuMemcpyAsync(ends->managed, p, COPIED, s));
    OK_CU(cu.cuStreamSynchronize(s));
}

/* The same rule in the copies of boxes and lists. */
static void boxes_answer(struct ends *ends, CUresult want) {
    CUDA_MEMCPY2D plane = {FROM_DEVICE(ends->there), TO_DEVICE(ends->here), .srcPitch = 32,
                           .dstPitch = 32, EXTENT(16, 2)};
    CUDA_MEMCPY3D box = {FROM_UNIFIED(ends->here), TO_UNIFIED(ends->there), EXTENT_3D(16, 1, 1)};
    CUmemcpyAttributes order = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    size_t first = 0, size = COPIED, failed = 0;
    ANSWERS_CU(want, cu.cuMemcpy2D_v2(&plane));
    ANSWERS_CU(want, cu.cuMemcpy2DAsync_v2(&plane, ends->stream));
    ANSWERS_CU(want, cu.cuMemcpy3D_v2(&box));
    ANSWERS_CU(want, cu.cuMemcpyBatchAsync(&ends->here, &ends->there, &size, 1, &order, &first, 1,
                                           &failed, ends->stream));
    OK_CU(cu.cuStreamSynchronize(ends->stream));
}

static void nodes_answer(struct ends *ends, CUresult want) {
    CUDA_MEMCPY3D box = {FROM_DEVICE(ends->there), TO_DEVICE(ends->here), EXTENT_3D(16, 1, 1)};
    CUDA_MEMSET_NODE_PARAMS set = {
        .dst = ends->there, .value = 1, .elementSize = 4, .width = 4, .height = 1};
    CUgraphNode node;
    CUgraph graph = new_graph();
    ANSWERS_CU(want, cu.cuGraphAddMemcpyNode(&node, graph, NULL, 0, &box, ends->first));
    ANSWERS_CU(want, cu.cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, ends->first));
    OK_CU(cu.cuGraphAddMemcpyNode(&node, graph, NULL, 0, &box, ends->second));
    OK_CU(cu.cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, ends->second));
}

static void sets_answer(struct ends *ends, CUdeviceptr p, CUresult want) {
    ANSWERS_CU(want, cu.cuMemsetD8_v2(p, 0x22, COPIED));
    ANSWERS_CU(want, cu.cuMemsetD32Async(p, 0x22222222, 4, ends->stream));
    OK_CU(cu.cuCtxSynchronize());
}

/* Copies between named contexts take it at any time. */
static void between_contexts(struct ends *ends) {
    OK_CU(cu.cuMemcpyPeerAsync(ends->here, ends->first, ends->there, ends->second, COPIED,
                               ends->stream));
    OK_CU(cu.cuMemcpyPeerAsync(ends->there, ends->second, ends->here, ends->first, COPIED,
                               ends->stream));
    OK_CU(cu.cuStreamSynchronize(ends->stream));
}

/* As on two H200s, before a grant and after it was taken back. */
TEST_WHERE(pool_memory_of_another_device_is_refused_without_access, NEEDS_PEERS()) {
    CUmemoryPool pool;
    struct ends ends = ends_make(&pool);
    for (int round = 0; round < 2; round++) {
        copies_answer(&ends, CUDA_ERROR_INVALID_VALUE);
        if (soft) { /* not seen on hardware yet: near-access/pool-boxes, /pool-nodes ask it */
            boxes_answer(&ends, CUDA_ERROR_INVALID_VALUE);
            nodes_answer(&ends, CUDA_ERROR_INVALID_VALUE);
        }
        sets_answer(&ends, ends.there, CUDA_ERROR_INVALID_VALUE);
        between_contexts(&ends);
        assert_int_equal(byte_at(ends.here), round == 0 ? 0x11 : 0x22);
        OK_CU(set_access(pool, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        copies_answer(&ends, CUDA_SUCCESS);
        boxes_answer(&ends, CUDA_SUCCESS);
        if (soft)
            nodes_answer(&ends, CUDA_SUCCESS);
        sets_answer(&ends, ends.there, CUDA_SUCCESS);
        OK_CU(set_access(pool, 0, CU_MEM_ACCESS_FLAGS_PROT_NONE));
    }
    ends_free(&ends, pool);
}

/* Access is what pools ask for, not where the memory is. */
TEST_WHERE(memory_of_cumemalloc_on_another_device_is_copied_without_access, NEEDS_DEVICES(2)) {
    CUmemoryPool pool;
    struct ends ends = ends_make(&pool);
    CUdeviceptr plain, pooled = ends.there;
    OK_CU(cu.cuCtxPushCurrent_v2(ends.second));
    OK_CU(cu.cuMemAlloc_v2(&plain, 4096));
    set_bytes(plain, 0x33, 4096);
    OK_CU(cu.cuCtxPopCurrent_v2(NULL));
    ends.there = plain;
    OK_CU(cu.cuMemcpy(ends.here, plain, COPIED));
    OK_CU(cu.cuMemcpyAsync(ends.managed, plain, COPIED, ends.stream));
    OK_CU(cu.cuStreamSynchronize(ends.stream));
    assert_int_equal(byte_at(ends.here), 0x33);
    sets_answer(&ends, plain, CUDA_ERROR_INVALID_VALUE);
    ends.there = pooled;
    OK_CU(cu.cuMemFree_v2(plain));
    ends_free(&ends, pool);
}

TEST(access_changes_for_the_whole_list_or_not_at_all) {
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_HOST, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUmemAccessDesc desc[2] = {
        {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev},
         .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
        {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 99},
         .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
    };
    FAILS_CU(INVALID_DEVICE, cu.cuMemPoolSetAccess(pool, desc, 2));
    assert_int_equal(access_of(pool, CU_MEM_LOCATION_TYPE_DEVICE, dev), 0);
    OK_CU(cu.cuMemPoolSetAccess(pool, desc, 0));
}
