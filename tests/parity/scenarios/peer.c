/*
 * Two devices: peer access, copies, mappings, pools, events and handles across them. Without a
 * second device these scenarios print nothing, so a recording of one device has none of their
 * lines.
 */
#include "../parity.h"

#define N ((size_t)4096)

/* `first` is device 0's primary context and current; `second` is device 1's. */
static CUcontext first, second;

static bool two_devices(void) {
    int count = 0;
    par_init();
    SETUP(cuDeviceGetCount, (&count));
    return count >= 2;
}

static bool two_contexts(void) {
    if (!two_devices())
        return false;
    SETUP(cuDevicePrimaryCtxRetain, (&first, 0));
    SETUP(cuDevicePrimaryCtxRetain, (&second, 1));
    NAME(first);
    NAME(second);
    par.primary = first;
    SETUP(cuCtxSetCurrent, (first));
    return true;
}

static void use(CUcontext ctx) {
    SETUP(cuCtxSetCurrent, (ctx));
}

/* Memory of a context's device, filled. */
static CUdeviceptr filled(CUcontext ctx, size_t size, unsigned word) {
    use(ctx);
    CUdeviceptr p = par_alloc(size);
    SETUP(cuMemsetD32_v2, (p, word, size / 4));
    SETUP(cuCtxSynchronize, ());
    use(first);
    return p;
}

static void content(const char *what, CUcontext ctx, CUdeviceptr p) {
    unsigned word = 0;
    use(ctx);
    if (par.api->cuMemcpyDtoH_v2(&word, p, 4) == CUDA_SUCCESS)
        par_see("content", "%s 0x%08x", what, word);
    else
        par_see("content", "%s cannot be read", what);
    use(first);
}

SCENARIO(topology, "peer/topology") {
    int n;
    if (!two_devices())
        return;
    CALLO(cuDeviceCanAccessPeer, "ok", (&n, 0, 1), OUT_I(n));
    CALLO(cuDeviceCanAccessPeer, "ok", (&n, 1, 0), OUT_I(n));
    CALLO(cuDeviceCanAccessPeer, "same-device", (&n, 1, 1), OUT_I(n));
    CALLO(cuDeviceCanAccessPeer, "bad-device", (&n, -1, 1), OUT_I(n));
    for (int a = 0; a <= 6; a++) {
        par_note("%d", a);
        CALLO(cuDeviceGetP2PAttribute, a >= 1 && a <= 5 ? "ok" : "bad-attribute",
              (&n, (CUdevice_P2PAttribute)a, 0, 1), OUT_I(n));
        par_note("%d", a);
        CALLO(cuDeviceGetP2PAttribute, a >= 1 && a <= 5 ? "back" : "bad-attribute",
              (&n, (CUdevice_P2PAttribute)a, 1, 0), OUT_I(n));
        par_note("%d", a);
        CALLO(cuDeviceGetP2PAttribute, "same-device", (&n, (CUdevice_P2PAttribute)a, 1, 1),
              OUT_I(n));
        par_note("%d", a);
        CALLO(cuDeviceGetP2PAttribute, "bad-device", (&n, (CUdevice_P2PAttribute)a, 1, 99),
              OUT_I(n));
    }
}

SCENARIO(atomics, "peer/atomics") {
    CUatomicOperation operation;
    unsigned capability;
    if (!two_devices())
        return;
    for (int o = -1; o <= 14; o++) {
        operation = (CUatomicOperation)o;
        par_note("%d", o);
        CALLO(cuDeviceGetP2PAtomicCapabilities, o >= 0 && o <= 13 ? "ok" : "bad-operation",
              (&capability, &operation, 1, 0, 1), OUT_X(capability));
        par_note("%d", o);
        CALLO(cuDeviceGetHostAtomicCapabilities, o >= 0 && o <= 13 ? "ok" : "bad-operation",
              (&capability, &operation, 1, 1), OUT_X(capability));
    }
    operation = CU_ATOMIC_OPERATION_INTEGER_ADD;
    CALLO(cuDeviceGetP2PAtomicCapabilities, "same-device", (&capability, &operation, 1, 1, 1),
          OUT_X(capability));
    CALLO(cuDeviceGetP2PAtomicCapabilities, "bad-device", (&capability, &operation, 1, 0, 99),
          OUT_X(capability));
    CALLO(cuDeviceGetP2PAtomicCapabilities, "zero-count", (&capability, &operation, 0, 0, 1),
          OUT_X(capability));
    CALL(cuDeviceGetP2PAtomicCapabilities, "null-out", (NULL, &operation, 1, 0, 1));
    CALLO(cuDeviceGetP2PAtomicCapabilities, "null-operations", (&capability, NULL, 1, 0, 1),
          OUT_X(capability));
}

SCENARIO(enable, "peer/enable") {
    if (!two_contexts())
        return;
    CALL(cuCtxDisablePeerAccess, "never-enabled", (second));
    CALL(cuCtxEnablePeerAccess, "bad-flags", (second, 1));
    CALL(cuCtxEnablePeerAccess, "ok", (second, 0));
    CALL(cuCtxEnablePeerAccess, "again", (second, 0));
    CALL(cuCtxEnablePeerAccess, "again-bad-flags", (second, 1));
    CALL(cuCtxDisablePeerAccess, "ok", (second));
    CALL(cuCtxDisablePeerAccess, "again", (second));
    CALL(cuCtxEnablePeerAccess, "after-disable", (second, 0));
    CUcontext user = PAR_MADE(CUcontext, cuCtxCreate_v2, 0, 1);
    NAME(user);
    CALL(cuCtxEnablePeerAccess, "back", (first, 0));
    CALL(cuCtxEnablePeerAccess, "same-device", (second, 0));
    CALL(cuCtxEnablePeerAccess, "itself", (user, 0));
    use(first);
    CALL(cuCtxEnablePeerAccess, "second-of-device", (user, 0));
    SETUP(cuCtxDestroy_v2, (user));
    CALL(cuCtxDisablePeerAccess, "destroyed", (user));
    CUcontext gone = PAR_MADE(CUcontext, cuCtxCreate_v2, 0, 1);
    SETUP(cuCtxDestroy_v2, (gone));
    use(NULL);
    CALL(cuCtxEnablePeerAccess, "no-context", (second, 0));
    CALL(cuCtxDisablePeerAccess, "no-context", (second));
}

SCENARIO(enable_stale, "peer/enable-stale") {
    if (!two_contexts())
        return;
    CUcontext gone = PAR_MADE(CUcontext, cuCtxCreate_v2, 0, 1);
    SETUP(cuCtxDestroy_v2, (gone));
    use(first);
    CALL(cuCtxEnablePeerAccess, "destroyed", (gone, 0));
    CALL(cuCtxDisablePeerAccess, "destroyed", (gone));
}

/* A context that was created, destroyed while it had access, and created again has none. */
SCENARIO(enable_ends, "peer/enable-ends") {
    if (!two_contexts())
        return;
    CUcontext user = PAR_MADE(CUcontext, cuCtxCreate_v2, 0, 1);
    CALL(cuCtxEnablePeerAccess, "from-user-context", (first, 0));
    SETUP(cuCtxDestroy_v2, (user));
    SETUP(cuCtxCreate_v2, (&user, 0, 1));
    CALL(cuCtxDisablePeerAccess, "new-context", (first));
    CALL(cuCtxEnablePeerAccess, "new-context", (first, 0));
    SETUP(cuDevicePrimaryCtxRelease_v2, (0));
    CALL(cuCtxDisablePeerAccess, "peer-released", (first));
}

static void copies(bool access) {
    unsigned word = 0;
    if (!two_contexts())
        return;
    CUdeviceptr a = filled(first, N, 0x0a0a0a0a);
    CUdeviceptr b = filled(second, N, 0x0b0b0b0b);
    CUstream s = par_stream();
    if (access)
        SETUP(cuCtxEnablePeerAccess, (second, 0));
    CALL(cuMemcpyPeer, "ok", (b, second, a, first, 64));
    content("peer", second, b);
    CALL(cuMemcpyPeer, "back", (a + 64, first, b + 128, second, 64));
    content("back", first, a + 64);
    CALL(cuMemcpyPeerAsync, "ok", (b + 256, second, a, first, 64, s));
    CALL(cuStreamSynchronize, "ok", (s));
    content("async", second, b + 256);
    CALL(cuMemcpyPeer, "wrong-contexts", (b + 512, first, a, second, 64));
    CALL(cuMemcpyPeer, "same-context-twice", (b + 512, first, a, first, 64));
    CALL(cuMemcpy, "across", (b + 512, a, 64));
    content("unified", second, b + 512);
    CALL(cuMemcpyDtoD_v2, "across", (b + 576, a, 64));
    content("device-to-device", second, b + 576);
    CALL(cuMemcpyDtoDAsync_v2, "across", (a + 576, b + 1024, 64, s));
    CALL(cuStreamSynchronize, "ok", (s));
    content("device-to-device-async", first, a + 576);
    CALL(cuMemcpyDtoH_v2, "other-device", (&word, b + 1024, 4));
    par_see("content", "read 0x%08x", word);
    word = 0x0c0c0c0c;
    CALL(cuMemcpyHtoD_v2, "other-device", (b + 1024, &word, 4));
    SETUP(cuCtxSynchronize, ());
    content("written", second, b + 1024);
    CALL(cuMemcpyDtoDAsync_v2, "past-end", (b + N - 32, a, 64, s));
    CUDA_MEMCPY3D_PEER box = {FROM_DEVICE(a),       TO_DEVICE(b + 2048), .srcContext = first,
                              .dstContext = second, .srcPitch = 32,      .dstPitch = 32,
                              .srcHeight = 2,       .dstHeight = 2,      EXTENT_3D(16, 2, 2)};
    CALL(cuMemcpy3DPeer, "ok", (&box));
    content("box", second, b + 2048);
    box.dstDevice = b + 3072;
    CALL(cuMemcpy3DPeerAsync, "ok", (&box, s));
    CALL(cuStreamSynchronize, "ok", (s));
    content("box-async", second, b + 3072);
}

SCENARIO_IS(copies_plain, "peer/copies", copies(false));
SCENARIO_IS(copies_enabled, "peer/copies-enabled", copies(true));

SCENARIO(sets_enabled, "peer/sets-enabled") {
    if (!two_contexts())
        return;
    CUdeviceptr b = filled(second, N, 0x0b0b0b0b);
    CUstream s = par_stream();
    SETUP(cuCtxEnablePeerAccess, (second, 0));
    CALL(cuMemsetD32_v2, "other-device", (b, 0x1a1a1a1a, 4));
    content("set", second, b);
    CALL(cuMemsetD32Async, "other-device", (b + 64, 0x2a2a2a2a, 4, s));
    CALL(cuStreamSynchronize, "ok", (s));
    content("set-async", second, b + 64);
    CALL(cuStreamWriteValue32_v2, "other-device", (s, b + 128, 7, 0));
    CALL(cuStreamWaitValue32_v2, "other-device", (s, b + 128, 7, CU_STREAM_WAIT_VALUE_EQ));
    CALL(cuStreamSynchronize, "ok", (s));
    content("written", second, b + 128);
}

SCENARIO(set_plain, "peer/set") {
    if (!two_contexts())
        return;
    CUdeviceptr b = filled(second, N, 0x0b0b0b0b);
    CALL(cuMemsetD32_v2, "other-device-no-access", (b, 0x1a1a1a1a, 4));
    CALL(cuCtxSynchronize, "after", ());
    content("set", second, b);
}

SCENARIO(write_value_plain, "peer/write-value") {
    if (!two_contexts())
        return;
    CUdeviceptr b = filled(second, N, 0x0b0b0b0b);
    CUstream s = par_stream();
    CALL(cuStreamWriteValue32_v2, "other-device-no-access", (s, b, 7, 0));
    CALL(cuStreamSynchronize, "after", (s));
    content("written", second, b);
}

/* What a copy between devices may say of memory that is mapped for neither, one or both. */
static CUdeviceptr mapped_on(int device, unsigned access_bits, size_t size) {
    CUmemAllocationProp prop = par_device_prop();
    CUmemAccessDesc access[2];
    size_t count = 0;
    CUdeviceptr p = par_reserve(size);
    prop.location.id = device;
    CUmemGenericAllocationHandle h = par_create_as(size, &prop);
    SETUP(cuMemMap, (p, size, 0, h, 0));
    SETUP(cuMemRelease, (h));
    for (int d = 0; d < 2; d++) {
        if ((access_bits >> d & 1) != 0) {
            access[count].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
            access[count].location.id = d;
            access[count++].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        }
    }
    if (count > 0)
        SETUP(cuMemSetAccess, (p, size, access, count));
    return p;
}

SCENARIO(mappings, "peer/mappings") {
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemAccessDesc access[2] = {
        {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READ},
        {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    unsigned long long flags;
    if (!two_contexts())
        return;
    CUdeviceptr p = mapped_on(1, 0, PAR_2M);
    for (int round = 0; round < 3; round++) {
        for (int d = 0; d < 2; d++) {
            location.id = d;
            par_note("round=%d device=%d", round, d);
            CALLO(cuMemGetAccess, "other-device", (&flags, &location, p), OUT_X(flags));
        }
        if (round == 0) {
            CALL(cuMemSetAccess, "both", (p, PAR_2M, access, 2));
        } else {
            access[0].flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
            CALL(cuMemSetAccess, "none", (p, PAR_2M, access, 1));
        }
    }
    access[0].location.id = 99;
    CALL(cuMemSetAccess, "bad-device", (p, PAR_2M, access, 2));
    access[0].location.id = 0;
    access[0].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CALL(cuMemSetAccess, "ok", (p, PAR_2M, access, 1));
    CALL(cuMemsetD32_v2, "other-device-mapped", (p, 0x3a3a3a3a, 16));
    SETUP(cuCtxSynchronize, ());
    content("from-peer", first, p);
    content("from-owner", second, p);
    CALL(cuMemUnmap, "ok", (p, PAR_2M));
}

SCENARIO(mapping_owner_only, "peer/mapping-owner-only") {
    unsigned word = 0;
    if (!two_contexts())
        return;
    CUdeviceptr p = mapped_on(1, 2, PAR_2M);
    use(second);
    CALL(cuMemsetD32_v2, "owner", (p, 0x4a4a4a4a, 16));
    SETUP(cuCtxSynchronize, ());
    use(first);
    CALL(cuMemcpyDtoH_v2, "not-mapped-here", (&word, p, 4));
    par_see("content", "0x%08x", word);
    CALL(cuMemsetD32_v2, "not-mapped-here", (p, 0x5a5a5a5a, 16));
    CALL(cuCtxSynchronize, "after", ());
}

SCENARIO(mapping_peer_only, "peer/mapping-peer-only") {
    if (!two_contexts())
        return;
    CUdeviceptr p = mapped_on(1, 1, PAR_2M);
    CALL(cuMemsetD32_v2, "mapped-here-only", (p, 0x6a6a6a6a, 16));
    CALL(cuCtxSynchronize, "after", ());
    use(second);
    CALL(cuMemsetD32_v2, "owner-without-access", (p, 0x7a7a7a7a, 16));
    CALL(cuCtxSynchronize, "after", ());
}

static CUmemoryPool make_pool(int device) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, AT_DEVICE(device)};
    return PAR_MADE(CUmemoryPool, cuMemPoolCreate, &props);
}

SCENARIO(pools, "peer/pools") {
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAccess_flags flags;
    CUdeviceptr p, q;
    if (!two_contexts())
        return;
    CUmemoryPool pool = make_pool(1);
    CUstream s = par_stream();
    for (int d = 0; d < 2; d++) {
        location.id = d;
        par_note("device=%d", d);
        CALLO(cuMemPoolGetAccess, "fresh", (&flags, pool, &location), OUT_I(flags));
    }
    CALLO(cuMemAllocFromPoolAsync, "pool-of-other-device", (&p, N, pool, s), OUT_P(p));
    CALL(cuMemPoolSetAccess, "read-write", (pool, &access, 1));
    location.id = 0;
    CALLO(cuMemPoolGetAccess, "given", (&flags, pool, &location), OUT_I(flags));
    CALLO(cuMemAllocFromPoolAsync, "pool-of-other-device-accessible", (&q, N, pool, s), OUT_P(q));
    CALL(cuMemsetD32Async, "accessible", (q, 0x0d0d0d0d, 16, s));
    CALL(cuStreamSynchronize, "ok", (s));
    content("accessible", second, q);
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    CALL(cuMemPoolSetAccess, "read-only", (pool, &access, 1));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CALL(cuMemPoolSetAccess, "none", (pool, &access, 1));
    access.location.id = 1;
    CALL(cuMemPoolSetAccess, "none-for-owner", (pool, &access, 1));
    access.location.id = 99;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CALL(cuMemPoolSetAccess, "bad-device", (pool, &access, 1));
    CALL(cuMemFreeAsync, "other-device", (p, s));
    CALL(cuMemFreeAsync, "other-device", (q, s));
    CALL(cuStreamSynchronize, "ok", (s));
    CALL(cuMemPoolDestroy, "other-device", (pool));
}

SCENARIO(pool_without_access, "peer/pool-without-access") {
    CUdeviceptr p;
    if (!two_contexts())
        return;
    CUmemoryPool pool = make_pool(1);
    CUstream s = par_stream();
    CALLO(cuMemAllocFromPoolAsync, "pool-of-other-device", (&p, N, pool, s), OUT_P(p));
    CALL(cuMemsetD32Async, "not-accessible", (p, 0x0d0d0d0d, 16, s));
    CALL(cuStreamSynchronize, "after", (s));
}

SCENARIO(pool_defaults, "peer/pool-defaults") {
    CUmemoryPool zero, one, got;
    CUdeviceptr p;
    int ordinal;
    if (!two_contexts())
        return;
    CALLO(cuDeviceGetDefaultMemPool, "first", (&zero, 0), OUT_H(zero));
    CALLO(cuDeviceGetDefaultMemPool, "second", (&one, 1), OUT_H(one));
    CALL(cuDeviceSetMemPool, "of-other-device", (0, one));
    CALLO(cuDeviceGetMemPool, "second", (&got, 1), OUT_H(got));
    use(second);
    CUstream s = par_stream();
    use(first);
    CALLO(cuMemAllocAsync, "stream-of-other-device", (&p, N, s), OUT_P(p));
    if (par_last() == CUDA_SUCCESS) {
        CALLO(cuPointerGetAttribute, "of-stream",
              (&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p), OUT_I(ordinal));
        CALL(cuMemFreeAsync, "other-stream", (p, par_stream()));
    }
}

SCENARIO(pointers, "peer/pointers") {
    CUcontext ctx;
    int ordinal;
    unsigned type;
    if (!two_contexts())
        return;
    CUdeviceptr b = filled(second, N, 1);
    CALLO(cuPointerGetAttribute, "other-device", (&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, b),
          OUT_I(ordinal));
    CALLO(cuPointerGetAttribute, "other-device", (&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, b),
          OUT_H(ctx));
    CALLO(cuPointerGetAttribute, "other-device", (&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, b),
          OUT_U(type));
    CALL(cuMemFree_v2, "other-device", (b));
    CALL(cuMemFree_v2, "other-device-again", (b));
}

/* Pinned memory of one device's context as seen by the other. */
SCENARIO(pinned, "peer/pinned") {
    CUdeviceptr d;
    if (!two_contexts())
        return;
    void *h = PAR_MADE(void *, cuMemHostAlloc, N, 0);
    memset(h, 0x3c, N);
    NAME_R(h, N);
    use(second);
    CALLO(cuMemHostGetDevicePointer_v2, "other-device", (&d, h, 0), OUT_R(d, N));
    CALL(cuMemsetD32_v2, "pinned-of-other", ((CUdeviceptr)(uintptr_t)h, 0x0e0e0e0e, 4));
    CALL(cuCtxSynchronize, "ok", ());
    par_see("content", "0x%08x", *(unsigned *)h);
    CALL(cuMemFreeHost, "other-device", (h));
}

SCENARIO(events, "peer/events") {
    float ms;
    if (!two_contexts())
        return;
    CUstream s = par_stream();
    CUevent e = par_event(CU_EVENT_DEFAULT);
    CUevent plain = par_event(CU_EVENT_DISABLE_TIMING);
    use(second);
    CUstream t = par_stream();
    CUevent f = par_event(CU_EVENT_DEFAULT);
    use(first);
    CALL(cuEventRecord, "own-stream", (e, s));
    CALL(cuEventRecord, "stream-of-other-device", (e, t));
    CALL(cuEventRecord, "stream-of-other-device", (plain, t));
    use(second);
    CALL(cuEventRecord, "own-stream", (f, t));
    CALL(cuStreamWaitEvent, "event-of-other-device", (t, e, 0));
    CALL(cuEventSynchronize, "event-of-other-device", (e));
    CALL(cuEventQuery, "event-of-other-device", (e));
    CALL(cuEventSynchronize, "ok", (f));
    CALLO(cuEventElapsedTime_v2, "across-devices", (&ms, e, f), OUT_F(ms));
    CALL(cuEventDestroy_v2, "other-device", (e));
}

SCENARIO(order, "peer/order") {
    if (!two_contexts())
        return;
    CUdeviceptr a = filled(first, N, 0x01010101);
    CUdeviceptr b = filled(second, N, 0x02020202);
    CUstream s = par_stream();
    CUevent e = par_event(CU_EVENT_DISABLE_TIMING);
    use(second);
    CUstream t = par_stream();
    use(first);
    par_hold(s);
    CALL(cuMemsetD32Async, "held", (a, 0x03030303, 4, s));
    CALL(cuEventRecord, "held", (e, s));
    use(second);
    CALL(cuStreamWaitEvent, "event-of-other-device", (t, e, 0));
    CALL(cuMemcpyPeerAsync, "behind-event", (b, second, a, first, 16, t));
    CALL(cuStreamQuery, "behind-event", (t));
    PAR_DRAIN("released", t);
    content("ordered", second, b);
}

/* Streams and memory of a context that is not current. */
SCENARIO(contexts, "peer/contexts") {
    CUcontext of;
    CUdevice d;
    unsigned flags;
    int active;
    if (!two_contexts())
        return;
    CUdeviceptr a = filled(first, N, 1);
    CUdeviceptr b = filled(second, N, 2);
    use(second);
    CUstream t = par_stream();
    CALLO(cuCtxGetDevice, "second", (&d), OUT_I(d));
    use(first);
    CALLO(cuCtxGetDevice, "first", (&d), OUT_I(d));
    CALLO(cuStreamGetCtx, "other-device", (t, &of), OUT_H(of));
    CALLO(cuStreamGetDevice, "other-device", (t, &d), OUT_I(d));
    CALLO(cuDevicePrimaryCtxGetState, "second", (1, &flags, &active), OUT_X(flags), OUT_I(active));
    CALL(cuMemsetD32Async, "own-memory-other-stream", (a, 5, 4, t));
    CALL(cuStreamSynchronize, "after", (t));
    content("own-memory-other-stream", first, a);
    CALL(cuMemsetD32Async, "stream-and-memory-of-other", (b, 6, 4, t));
    CALL(cuStreamSynchronize, "after", (t));
    content("stream-and-memory-of-other", second, b);
    CALL(cuStreamDestroy_v2, "other-device", (t));
}

SCENARIO(released_second, "peer/released-second") {
    unsigned word = 0;
    if (!two_contexts())
        return;
    CUdeviceptr b = filled(second, N, 0x0b0b0b0b);
    CALL(cuDevicePrimaryCtxRelease_v2, "second", (1));
    CALL(cuMemcpyDtoH_v2, "released-other-device", (&word, b, 4));
    CALL(cuMemFree_v2, "released-other-device", (b));
}

/* ---- Another process ------------------------------------------------------------------------- */

struct message {
    CUipcMemHandle memory;
    CUipcEventHandle event;
};

SCENARIO(ipc, "peer/ipc") {
    struct message m;
    char answer;
    int peer;
    if (!two_contexts())
        return;
    peer = par_spawn("peer-ipc");
    CUdeviceptr b = filled(second, PAR_2M, 0x0b0b0b0b);
    CALLO(cuIpcGetMemHandle, "other-device", (&m.memory, b), OUT_C(m.memory));
    use(second);
    CUevent e = par_event(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    use(first);
    CALLO(cuIpcGetEventHandle, "other-device", (&m.event, e), OUT_C(m.event));
    par_send(peer, &m, sizeof(m), -1);
    par_receive(peer, &answer, 1, NULL);
    content("written-by-peer", second, b);
    par_send(peer, "d", 1, -1);
    par_join();
}

HELPER(helper_ipc, "peer-ipc") {
    struct message m;
    CUdeviceptr p, q;
    CUevent e;
    int ordinal;
    char byte;
    par_record_start("peer/ipc:peer");
    if (!two_contexts() || !par_receive(par.peer_fd, &m, sizeof(m), NULL))
        return;
    CALLO(cuIpcOpenMemHandle_v2, "context-of-other-device", (&p, m.memory, 1), OUT_R(p, PAR_2M));
    if (par_last() == CUDA_SUCCESS) {
        CALLO(cuPointerGetAttribute, "imported", (&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p),
              OUT_I(ordinal));
        content("read-by-peer", first, p);
        CALL(cuMemsetD32_v2, "imported-of-other-device", (p, 0x1b1b1b1b, 4));
        CALL(cuCtxSynchronize, "ok", ());
    }
    use(second);
    CALLO(cuIpcOpenMemHandle_v2, "context-of-device", (&q, m.memory, 1), OUT_R(q, PAR_2M));
    CALLO(cuIpcOpenEventHandle, "context-of-device", (&e, m.event), OUT_C(e));
    CALL(cuMemsetD32_v2, "imported", (q, 0x2b2b2b2b, 4));
    CALL(cuCtxSynchronize, "ok", ());
    par_send(par.peer_fd, "w", 1, -1);
    if (par_receive(par.peer_fd, &byte, 1, NULL)) {
        CALL(cuIpcCloseMemHandle, "context-of-device", (q));
        use(first);
        CALL(cuIpcCloseMemHandle, "context-of-other-device", (p));
    }
}

SCENARIO(share, "peer/share") {
    CUmemAllocationProp prop = {0};
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    char answer;
    int fd = -1, peer;
    if (!two_contexts())
        return;
    peer = par_spawn("peer-share");
    prop = par_device_prop();
    prop.location.id = 1;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle h = par_create_as(PAR_2M, &prop);
    CUdeviceptr p = par_reserve(PAR_2M);
    SETUP(cuMemMap, (p, PAR_2M, 0, h, 0));
    SETUP(cuMemSetAccess, (p, PAR_2M, &access, 1));
    use(second);
    SETUP(cuMemsetD32_v2, (p, 0x0f0f0f0f, 16));
    SETUP(cuCtxSynchronize, ());
    CALLO(cuMemExportToShareableHandle, "other-device",
          (&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_D(fd));
    par_send(peer, "m", 1, fd);
    close(fd);
    par_receive(peer, &answer, 1, NULL);
    content("written-by-peer", second, p);
    par_join();
}

HELPER(helper_share, "peer-share") {
    CUmemGenericAllocationHandle h;
    CUmemAllocationProp prop;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    char byte;
    int fd = -1;
    par_record_start("peer/share:peer");
    if (!two_contexts() || !par_receive(par.peer_fd, &byte, 1, &fd))
        return;
    CALLO(cuMemImportFromShareableHandle, "other-device",
          (&h, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), OUT_H(h));
    CALLO(cuMemGetAllocationPropertiesFromHandle, "imported", (&prop, h), OUT_I(prop.location.type),
          OUT_I(prop.location.id));
    CUdeviceptr p = par_reserve(PAR_2M);
    CALL(cuMemMap, "imported", (p, PAR_2M, 0, h, 0));
    CALL(cuMemSetAccess, "peer-device", (p, PAR_2M, &access, 1));
    content("read-by-peer", first, p);
    CALL(cuMemsetD32_v2, "imported", (p, 0x1f1f1f1f, 4));
    CALL(cuCtxSynchronize, "ok", ());
    par_send(par.peer_fd, "w", 1, -1);
}
