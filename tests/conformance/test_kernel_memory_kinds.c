/*
 * Kernels on memory of every kind: what they write is there for the host, for copies, and at the
 * memory's other addresses; what they may not reach is a fault.
 */
#include "kernels.h"

enum { WORDS = 70000, THREADS = 256 };
#define BYTES ((size_t)4 * WORDS)
#define PAGE  ((size_t)2 << 20)

/* p[i] += i + by */
static const char text[] = KERNELS_HEAD
    ".visible .entry probe() { ret; }\n"
    ".visible .entry add(.param .u64 p, .param .u32 n, .param .u32 by) {\n"
    ".reg .pred %q; .reg .b32 %r<9>; .reg .b64 %d<4>;\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "mad.lo.u32 %r4, %r1, %r2, %r3; ld.param.u32 %r5, [n]; setp.ge.u32 %q, %r4, %r5;\n"
    "@%q bra END; ld.param.u64 %d1, [p]; mul.wide.u32 %d2, %r4, 4; add.u64 %d3, %d1, %d2;\n"
    "ld.global.u32 %r6, [%d3]; ld.param.u32 %r7, [by]; add.u32 %r8, %r4, %r7;\n"
    "add.u32 %r6, %r6, %r8; st.global.u32 [%d3], %r6;\n"
    "END: ret; }\n"
    /* begun[0] = 1, then reads p until it is not 0 */
    ".visible .entry look(.param .u64 p, .param .u64 begun) { .reg .pred %q; .reg .b32 %r;\n"
    ".reg .b64 %p, %b; ld.param.u64 %p, [p]; ld.param.u64 %b, [begun]; mov.u32 %r, 1;\n"
    "AGAIN: ld.volatile.global.u32 %r, [%p]; st.volatile.global.u32 [%b], 1;\n"
    "setp.eq.u32 %q, %r, 0; @%q bra AGAIN; ret; }\n";

static void add(CUdeviceptr p, unsigned by) {
    unsigned n = WORDS;
    void *params[] = {&p, &n, &by};
    OK_CU(cu.cuLaunchKernel(kernel("add"), (WORDS + THREADS - 1) / THREADS, 1, 1, THREADS, 1, 1, 0,
                            NULL, params, NULL));
    OK_CU(cu.cuCtxSynchronize());
}

static void host_has(const unsigned *words, unsigned plus) {
    for (unsigned i = 0; i < WORDS; i++)
        assert_int_equal(words[i], i + plus);
}

static void memory_has(CUdeviceptr p, unsigned plus) {
    unsigned *copy = malloc(BYTES);
    OK_CU(cu.cuMemcpyDtoH_v2(copy, p, BYTES));
    host_has(copy, plus);
    free(copy);
}

TEST(kernels_reach_plain_and_pool_memory) {
    kernels_open(text);
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, BYTES);
    OK_CU(cu.cuMemsetD32_v2(p, 5, WORDS));
    add(p, 2);
    memory_has(p, 7);
    OK_CU(cu.cuMemFree_v2(p));
    OK_CU(cu.cuMemAllocAsync(&p, BYTES, NULL));
    OK_CU(cu.cuMemsetD32Async(p, 6, WORDS, NULL));
    add(p, 2);
    memory_has(p, 8);
    OK_CU(cu.cuMemFreeAsync(p, NULL));
    OK_CU(cu.cuCtxSynchronize());
}

TEST_WHERE(kernels_reach_managed_memory, NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)) {
    kernels_open(text);
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAllocManaged, BYTES, CU_MEM_ATTACH_GLOBAL);
    unsigned *words = (unsigned *)(uintptr_t)p;
    memset(words, 0, BYTES);
    add(p, 1);
    host_has(words, 1);
    words[9] += 100; /* and back */
    add(p, 0);
    assert_int_equal(words[9], 2 * 9 + 1 + 100);
    assert_int_equal(words[WORDS - 1], 2 * (WORDS - 1) + 1);
    OK_CU(cu.cuMemFree_v2(p));
}

TEST(kernels_reach_pinned_and_registered_memory) {
    kernels_open(text);
    void *host = MADE_CU(void *, cuMemHostAlloc, BYTES, CU_MEMHOSTALLOC_DEVICEMAP);
    memset(host, 0, BYTES);
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemHostGetDevicePointer_v2, host, 0);
    add(p, 3);
    host_has(host, 3);
    OK_CU(cu.cuMemFreeHost(host));
    unsigned char *own = aligned_alloc(4096, (BYTES + 8191) / 4096 * 4096);
    assert_non_null(own);
    memset(own, 0, (BYTES + 8191) / 4096 * 4096);
    OK_CU(cu.cuMemHostRegister_v2(own, (BYTES + 8191) / 4096 * 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
    OK_CU(cu.cuMemHostGetDevicePointer_v2(&p, own, 0));
    add(p + 4096, 4); /* in the midst */
    host_has((unsigned *)(own + 4096), 4);
    assert_int_equal(own[4095], 0);
    OK_CU(cu.cuMemHostUnregister(own));
    free(own);
}

/* Adds to 512 bytes. */
static void add_to_unit(CUdeviceptr p, CUstream stream) {
    unsigned n = 128, by = 1;
    void *params[] = {&p, &n, &by};
    OK_CU(cu.cuLaunchKernel(kernel("add"), 1, 1, 1, n, 1, 1, 0, stream, params, NULL));
}

/* Hardware knows no bounds but those of its pages. softgpu lets kernels touch what is nobody
 * else's: programs write 16 integers into 40 bytes and are never told. */
TEST(kernels_may_use_what_an_allocation_is_rounded_up_to) {
    enum { SIZE = 40 };
    kernels_open(text);
    CUstream stream = new_stream();
    CUdeviceptr plain = MADE_CU(CUdeviceptr, cuMemAlloc_v2, SIZE), beside = new_memory(SIZE);
    CUdeviceptr pool = MADE_CU(CUdeviceptr, cuMemAllocAsync, SIZE, stream);
    void *host = new_pinned(SIZE, CU_MEMHOSTALLOC_DEVICEMAP);
    CUdeviceptr pinned = MADE_CU(CUdeviceptr, cuMemHostGetDevicePointer_v2, host, 0);
    OK_CU(cu.cuMemsetD32_v2(beside, 77, SIZE / 4));
    add_to_unit(plain, stream);
    add_to_unit(pinned, stream);
    struct gate gate = hold(stream);
    add_to_unit(pool, stream); /* also when its free stands behind the kernel */
    OK_CU(cu.cuMemFreeAsync(pool, stream));
    gate_drain(&gate, stream);
    assert_int_equal(word_at(beside), 77);
    OK_CU(cu.cuMemFree_v2(plain));
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.bytesize = SIZE};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location = device_location(dev);
    CUgraph graph = MADE_CU(CUgraph, cuGraphCreate, 0);
    CUgraphNode made = NULL;
    OK_CU(cu.cuGraphAddMemAllocNode(&made, graph, NULL, 0, &params));
    CUgraphExec exec = MADE_CU(CUgraphExec, cuGraphInstantiateWithFlags, graph, 0);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    add_to_unit(params.dptr, stream);
    OK_CU(cu.cuMemFreeAsync(params.dptr, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    destroy_exec(exec);
    destroy_graph(graph);
    OK_CU(cu.cuDeviceGraphMemTrim(dev));
}

/* ---- mapped by hand -------------------------------------------------------------------------- */

static CUmemGenericAllocationHandle memory_on(int device) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemGenericAllocationHandle handle;
    prop.location = device_location(device);
    OK_CU(cu.cuMemCreate(&handle, PAGE, &prop, 0));
    return handle;
}

static void give(CUdeviceptr p, size_t size, int device, CUmemAccess_flags rights) {
    CUmemAccessDesc access = {.flags = rights};
    access.location = device_location(device);
    OK_CU(cu.cuMemSetAccess(p, size, &access, 1));
}

static CUdeviceptr map(const CUmemGenericAllocationHandle *handles, unsigned count) {
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAddressReserve, PAGE * count, 0, 0, 0);
    for (unsigned i = 0; i < count; i++)
        OK_CU(cu.cuMemMap(p + i * PAGE, PAGE, 0, handles[i], 0));
    give(p, PAGE * count, dev, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    return p;
}

static void unmap(CUdeviceptr p, unsigned count) {
    OK_CU(cu.cuMemUnmap(p, PAGE * count));
    OK_CU(cu.cuMemAddressFree(p, PAGE * count));
}

/* A warp's access lies in two pieces of memory; the second piece is mapped once more. */
TEST(a_warp_access_may_cross_two_mappings) {
    kernels_open(text);
    const CUmemGenericAllocationHandle two[2] = {memory_on(dev), memory_on(dev)};
    CUdeviceptr p = map(two, 2), again = map(&two[1], 1);
    CUdeviceptr at = p + PAGE - BYTES / 8 * 4 - 20; /* WORDS / 2 words and 5 before the border */
    OK_CU(cu.cuMemsetD8_v2(p, 0, 2 * PAGE));
    add(at, 9);
    memory_has(at, 9);
    assert_int_equal(word_at(again), WORDS / 2 + 5 + 9);
    unmap(p, 2);
    unmap(again, 1);
    for (int i = 0; i < 2; i++)
        OK_CU(cu.cuMemRelease(two[i]));
}

/* ---- another device's ------------------------------------------------------------------------ */

TEST_WHERE(kernels_reach_peer_memory, NEEDS_PEERS()) {
    kernels_open(text);
    CUcontext other = MADE_CU(CUcontext, cuDevicePrimaryCtxRetain, 1);
    OK_CU(cu.cuCtxPushCurrent_v2(other));
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, BYTES);
    set_words(p, 1, WORDS);
    OK_CU(cu.cuCtxPopCurrent_v2(NULL));
    OK_CU(cu.cuCtxEnablePeerAccess(other, 0));
    add(p, 1);
    memory_has(p, 2);
    OK_CU(cu.cuCtxDisablePeerAccess(other));
    OK_CU(cu.cuCtxPushCurrent_v2(other));
    OK_CU(cu.cuMemFree_v2(p));
    OK_CU(cu.cuCtxPopCurrent_v2(NULL));
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(1));
}

/* Kernels reach the members' own addresses; those of the object are for multimem alone. */
static CUmemGenericAllocationHandle multicast(CUmemGenericAllocationHandle memory) {
    CUmulticastObjectProp prop = {.numDevices = 1, .size = PAGE};
    CUmemGenericAllocationHandle object;
    OK_CU(cu.cuMulticastCreate(&object, &prop));
    OK_CU(cu.cuMulticastAddDevice(object, dev));
    OK_CU(cu.cuMulticastBindMem(object, 0, memory, 0, PAGE, 0));
    return object;
}

TEST(kernels_write_through_a_multicast_object) {
    NEEDS_SOFTGPU("multicast is not tried on hardware");
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);
    kernels_open(text);
    CUmemGenericAllocationHandle memory = memory_on(dev), object = multicast(memory);
    CUdeviceptr own = map(&memory, 1), all = map(&object, 1);
    OK_CU(cu.cuMemsetD32_v2(all, 11, WORDS));
    add(own, 1);
    memory_has(own, 12);
    OK_CU(cu.cuMemsetD32_v2(all, 40, WORDS));
    add(own, 2); /* sees what the object's address brought meanwhile */
    memory_has(own, 42);
    unmap(all, 1);
    unmap(own, 1);
    OK_CU(cu.cuMemRelease(object));
    OK_CU(cu.cuMemRelease(memory));
}

/* ---- what is a fault ------------------------------------------------------------------------- */

static int is_fault(CUdeviceptr p) {
    unsigned n = 1, by = 0;
    void *params[] = {&p, &n, &by};
    OK_CU(cu.cuLaunchKernel(kernel("add"), 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    return cu.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS ? 0 : 1;
}

static void open_child(void) {
    OK_CU(cu.cuInit(0));
    OK_CU(cu.cuDevicePrimaryCtxRetain(&ctx, dev));
    OK_CU(cu.cuCtxSetCurrent(ctx));
    kernels_open(text);
}

/* After a kernel that may: the ranges that steps keep notice that rights changed. */
CHILD(taken_back) {
    open_child();
    CUmemGenericAllocationHandle memory = memory_on(dev);
    CUdeviceptr p = map(&memory, 1);
    bool all = argc > 1 && strcmp(argv[1], "none") == 0;
    OK_CU(cu.cuMemsetD8_v2(p, 0, PAGE));
    add(p, 0);
    give(p, PAGE, dev, all ? CU_MEM_ACCESS_FLAGS_PROT_NONE : CU_MEM_ACCESS_FLAGS_PROT_READ);
    return is_fault(p);
}

CHILD(unmapped) {
    open_child();
    CUmemGenericAllocationHandle memory = memory_on(dev);
    CUdeviceptr p = map(&memory, 1);
    OK_CU(cu.cuMemsetD8_v2(p, 0, PAGE));
    add(p, 0);
    OK_CU(cu.cuMemUnmap(p, PAGE));
    return is_fault(p);
}

CHILD(object_itself) {
    open_child();
    CUmemGenericAllocationHandle memory = memory_on(dev), object = multicast(memory);
    return is_fault(map(&object, 1));
}

CHILD(no_peer) {
    open_child();
    CUcontext other = MADE_CU(CUcontext, cuDevicePrimaryCtxRetain, 1);
    OK_CU(cu.cuCtxPushCurrent_v2(other));
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, BYTES);
    OK_CU(cu.cuCtxPopCurrent_v2(NULL));
    return is_fault(p);
}

/* Access that ends while a kernel that has used it runs. */
CHILD(peer_ends) {
    unsigned *flag;
    open_child();
    CUcontext other = MADE_CU(CUcontext, cuDevicePrimaryCtxRetain, 1);
    OK_CU(cu.cuCtxPushCurrent_v2(other));
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, BYTES);
    set_words(p, 0, WORDS);
    OK_CU(cu.cuCtxPopCurrent_v2(NULL));
    OK_CU(cu.cuCtxEnablePeerAccess(other, 0));
    OK_CU(cu.cuMemHostAlloc((void **)&flag, 4, 0));
    *flag = 0;
    CUdeviceptr begun = device_address(flag);
    void *params[] = {&p, &begun};
    OK_CU(cu.cuLaunchKernel(kernel("look"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        (void)cu.cuStreamQuery(NULL); /* gives the kernel a turn */
    OK_CU(cu.cuCtxDisablePeerAccess(other));
    return cu.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS ? 0 : 1;
}

TEST(accessing_revoked_or_unmapped_memory_is_a_fault) {
    kernels_open(text); /* skips without kernels */
    assert_int_equal(run_child("taken_back", "none", NULL), 0);
    assert_int_equal(run_child("taken_back", "write", NULL), 0);
    assert_int_equal(run_child("unmapped", NULL), 0);
}

TEST(loading_from_a_multicast_address_is_a_fault) {
    NEEDS_SOFTGPU("multicast is not tried on hardware");
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);
    kernels_open(text);
    assert_int_equal(run_child("object_itself", NULL), 0);
}

TEST_WHERE(a_peers_memory_without_access_is_a_fault, NEEDS_PEERS()) {
    kernels_open(text);
    assert_int_equal(run_child("no_peer", NULL), 0);
}

TEST(disabling_peer_access_during_a_kernel_is_a_fault) {
    NEEDS_SOFTGPU("hardware may wait for the kernel, which waits for ever");
    NEEDS_PEERS();
    kernels_open(text);
    assert_int_equal(run_child("peer_ends", NULL), 0);
}
