/*
 * Driver calls that make objects, where the host's memory ends: each request for memory fails in
 * turn. A call then answers that there is none, and has made nothing.
 */
#include "driver_calls.h"

#include "gate.h"

static int begin(void **state) {
    int status = open_softgpu(state);
    gate_use(&cu);
    return status;
}

ALL_TESTS(begin, NULL);

/* ---- Programs -------------------------------------------------------------------------------- */

static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                           ".visible .global .u32 g[4] = {1, 2, 3, 4};\n"
                           ".visible .global .u64 p = g;\n"
                           ".visible .global .attribute(.managed) .u32 m;\n"
                           ".visible .entry a(.param .u64 p) { ret; }\n"
                           ".visible .entry b() { .shared .u32 s[8]; ret; }\n";

struct made {
    CUmodule module;
    CUlibrary library;
    CUfunction function;
    CUstream stream;
    CUevent event;
    CUcontext context;
    CUmemoryPool pool;
    CUdeviceptr memory;
    void *host;
    CUmemGenericAllocationHandle handle;
    CUarray array;
    CUmipmappedArray mipmapped;
    CUgraph graph;
    CUtexObject texture;
    CUlinkState link;
};

/* What a call made, and how it is ended: call##_it and end_##call. */
#define CALL(name, make, destroy)                                                                  \
    static int name(void *user) {                                                                  \
        struct made *made = user;                                                                  \
        return (int)(make);                                                                        \
    }                                                                                              \
    static void end_##name(void *user) {                                                           \
        struct made *made = user;                                                                  \
        OK_CU(destroy);                                                                            \
    }

static const CUDA_ARRAY3D_DESCRIPTOR grid = {
    .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
static const CUmemPoolProps device_pool = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                           .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAllocationProp device_memory = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

CALL(load_module, cu.cuModuleLoadData(&made->module, text), cu.cuModuleUnload(made->module))
CALL(load_library, cu.cuLibraryLoadData(&made->library, text, NULL, NULL, 0, NULL, NULL, 0),
     cu.cuLibraryUnload(made->library))
CALL(make_stream, cu.cuStreamCreate(&made->stream, CU_STREAM_NON_BLOCKING),
     cu.cuStreamDestroy_v2(made->stream))
CALL(make_event, cu.cuEventCreate(&made->event, 0), cu.cuEventDestroy_v2(made->event))
CALL(make_pool, cu.cuMemPoolCreate(&made->pool, &device_pool), cu.cuMemPoolDestroy(made->pool))
CALL(allocate, cu.cuMemAlloc_v2(&made->memory, 4 * MIB), cu.cuMemFree_v2(made->memory))
CALL(allocate_managed, cu.cuMemAllocManaged(&made->memory, 4 * MIB, CU_MEM_ATTACH_GLOBAL),
     cu.cuMemFree_v2(made->memory))
CALL(allocate_host, cu.cuMemHostAlloc(&made->host, 64 * KIB, 0), cu.cuMemFreeHost(made->host))
CALL(create, cu.cuMemCreate(&made->handle, 2 * MIB, &device_memory, 0),
     cu.cuMemRelease(made->handle))
CALL(reserve, cu.cuMemAddressReserve(&made->memory, 8 * MIB, 0, 0, 0),
     cu.cuMemAddressFree(made->memory, 8 * MIB))
CALL(make_array, cu.cuArray3DCreate_v2(&made->array, &grid), cu.cuArrayDestroy(made->array))
CALL(make_mipmapped, cu.cuMipmappedArrayCreate(&made->mipmapped, &grid, 3),
     cu.cuMipmappedArrayDestroy(made->mipmapped))
CALL(make_graph, cu.cuGraphCreate(&made->graph, 0), cu.cuGraphDestroy(made->graph))
CALL(make_link, cu.cuLinkCreate_v2(0, NULL, NULL, &made->link), cu.cuLinkDestroy(made->link))

TEST_WHERE(a_call_that_gets_no_host_memory_makes_nothing, NEEDS_ALLOCATIONS_THAT_FAIL()) {
    static const struct {
        const char *name;
        int (*call)(void *);
        void (*end)(void *);
    } calls[] = {{"cuModuleLoadData", load_module, end_load_module},
                 {"cuLibraryLoadData", load_library, end_load_library},
                 {"cuStreamCreate", make_stream, end_make_stream},
                 {"cuEventCreate", make_event, end_make_event},
                 {"cuMemPoolCreate", make_pool, end_make_pool},
                 {"cuMemAlloc", allocate, end_allocate},
                 {"cuMemAllocManaged", allocate_managed, end_allocate_managed},
                 {"cuMemHostAlloc", allocate_host, end_allocate_host},
                 {"cuMemCreate", create, end_create},
                 {"cuMemAddressReserve", reserve, end_reserve},
                 {"cuArray3DCreate", make_array, end_make_array},
                 {"cuMipmappedArrayCreate", make_mipmapped, end_make_mipmapped},
                 {"cuGraphCreate", make_graph, end_make_graph},
                 {"cuLinkCreate", make_link, end_make_link}};
    struct made made = {0};
    for (size_t i = 0; i < COUNT(calls); i++) {
        assert_int_equal(calls[i].call(&made), 0); /* what is kept for the next is there */
        calls[i].end(&made);
        starve(calls[i].name, calls[i].call, calls[i].end, &made);
    }
}

/* ---- Frees in stream order ------------------------------------------------------------------- */

/* A free behind queued work, which has to be noted: without memory for that, the block is live. */
TEST_WHERE(a_free_that_cannot_be_noted_leaves_the_memory_live, NEEDS_ALLOCATIONS_THAT_FAIL()) {
    struct gate gate;
    gate_make(&gate);
    unsigned refusals = 0;
    for (long n = 1;; n++) {
        CUstream stream; /* a new one: the pool knows no frees of it */
        CUdeviceptr p;
        OK_CU(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        OK_CU(cu.cuMemAllocAsync(&p, MIB, stream));
        gate_hold(&gate, stream);
        refuse_memory_in_libraries(n);
        CUresult result = cu.cuMemFreeAsync(p, stream);
        bool refused = end_refusal();
        assert_int_equal(result, refused ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
        assert_int_equal(cu.cuMemFreeAsync(p, stream),
                         refused ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
        gate_release(&gate);
        OK_CU(cu.cuStreamSynchronize(stream));
        OK_CU(cu.cuStreamDestroy_v2(stream));
        refusals += refused;
        if (!refused)
            break;
        assert_in_range(n, 1, 100);
    }
    assert_true(refusals > 0);
    gate_free(&gate);
}

/* ---- Growth of pools ------------------------------------------------------------------------- */

/* A pool that grows by what is idle elsewhere: it may have less then, or have grown already, but
 * what lives stays. */
TEST_WHERE(a_pool_that_cannot_grow_has_what_it_had, NEEDS_ALLOCATIONS_THAT_FAIL()) {
    unsigned refusals = 0;
    bool refused = true;
    for (long n = 1; refused; n++) {
        struct made made = {0};
        CUdeviceptr piece[4], whole = 0;
        unsigned long long keep = ~0ull, reserved;
        unsigned word = 0;
        OK_CU(make_stream(&made));
        OK_CU(make_pool(&made));
        OK_CU(cu.cuMemPoolSetAttribute(made.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
        for (unsigned i = 0; i < 4; i++) {
            OK_CU(cu.cuMemAllocFromPoolAsync(&piece[i], 40 * MIB, made.pool, made.stream));
            OK_CU(cu.cuMemsetD32Async(piece[i], 10 + i, 10 * MIB, made.stream));
        }
        for (unsigned i = 0; i < 4; i += 2)
            OK_CU(cu.cuMemFreeAsync(piece[i], made.stream));
        OK_CU(cu.cuStreamSynchronize(made.stream));
        refuse_memory_in_libraries(n);
        CUresult result = cu.cuMemAllocFromPoolAsync(&whole, 100 * MIB, made.pool, made.stream);
        refused = end_refusal();
        /* One that only made the pool have less before it grew is made up for. */
        assert_true(result == CUDA_SUCCESS || (refused && result == CUDA_ERROR_OUT_OF_MEMORY));
        refusals += result != CUDA_SUCCESS;
        if (result != CUDA_SUCCESS) {
            OK_CU(cu.cuMemPoolGetAttribute(made.pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                                           &reserved));
            assert_in_range(reserved, 96 * MIB, 256 * MIB);
            OK_CU(cu.cuMemAllocFromPoolAsync(&whole, 100 * MIB, made.pool, made.stream));
        }
        for (unsigned i = 1; i < 4; i += 2) {
            OK_CU(cu.cuMemcpyDtoH_v2(&word, piece[i] + 40 * MIB - 4, 4));
            assert_int_equal(word, 10 + i);
            OK_CU(cu.cuMemFreeAsync(piece[i], made.stream));
        }
        OK_CU(cu.cuMemFreeAsync(whole, made.stream));
        OK_CU(cu.cuStreamSynchronize(made.stream));
        OK_CU(cu.cuMemPoolDestroy(made.pool));
        OK_CU(cu.cuStreamDestroy_v2(made.stream));
        assert_in_range(n, 1, 200);
    }
    assert_true(refusals > 0); /* most are made up for by a second try, of less */
}
