/* Device faults: memory that goes away under queued work, and what each call says afterwards. */
#include "../parity.h"

/* A stream is held, a set of mapped memory queued behind, the memory unmapped, the stream let go.
 */
static CUstream fault(void) {
    CUstream s = par_stream();
    CUdeviceptr m = par_mapped(PAR_2M);
    par_hold(s);
    CALL(cuMemsetD8Async, "held", (m, 1, PAR_2M, s));
    CALL(cuMemUnmap, "under-work", (m, PAR_2M));
    PAR_DRAIN("faulted", s);
    return s;
}

typedef struct things {
    CUdeviceptr p, q;
    void *host;
    CUevent e, f;
    CUstream t;
    CUmemoryPool pool;
    CUmemGenericAllocationHandle h;
    CUdeviceptr reserved, mapped;
} things;

static things make_things(void) {
    par_context();
    things x = {.p = par_alloc(4096)};
    SETUP(cuMemAllocAsync, (&x.q, 4096, NULL));
    x.host = par_pinned(4096);
    SETUP(cuEventCreate, (&x.e, 0));
    SETUP(cuEventCreate, (&x.f, 0));
    SETUP(cuEventRecord, (x.f, NULL));
    x.t = par_stream();
    SETUP(cuDeviceGetDefaultMemPool, (&x.pool, 0));
    x.h = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
    x.reserved = par_reserve(PAR_2M);
    x.mapped = par_mapped(PAR_2M);
    SETUP(cuCtxSynchronize, ());
    return x;
}

SCENARIO(after_contexts, "fault/after-contexts") {
    CUcontext ctx;
    CUdevice dev;
    unsigned flags;
    int n, active;
    size_t size;
    unsigned long long id;
    things x = make_things();
    CUstream s = fault();
    (void)x;
    CALL(cuStreamSynchronize, "faulted-again", (s));
    CALL(cuStreamQuery, "faulted", (s));
    CALLO(cuCtxGetCurrent, "faulted", (&ctx), OUT_H(ctx));
    CALLO(cuCtxGetDevice, "faulted", (&dev), OUT_I(dev));
    CALLO(cuCtxGetFlags, "faulted", (&flags), OUT_U(flags));
    CALLO(cuCtxGetApiVersion, "faulted", (par.primary, &flags), OUT_U(flags));
    CALLO(cuCtxGetId, "faulted", (par.primary, &id), OUT_C(id));
    CALLO(cuCtxGetLimit, "faulted", (&size, CU_LIMIT_STACK_SIZE), OUT_U(size));
    CALL(cuCtxSetLimit, "faulted", (CU_LIMIT_STACK_SIZE, 2048));
    CALLO(cuCtxGetStreamPriorityRange, "faulted", (&n, &active), OUT_I(n), OUT_I(active));
    CALL(cuCtxSynchronize, "faulted", ());
    CALL(cuCtxSetCurrent, "faulted", (par.primary));
    CALL(cuCtxPushCurrent_v2, "faulted", (par.primary));
    CALLO(cuCtxPopCurrent_v2, "faulted", (&ctx), OUT_H(ctx));
    CALL(cuInit, "faulted", (0));
    CALLO(cuDeviceGetCount, "faulted", (&n), OUT_I(n));
    CALLO(cuDeviceGetAttribute, "faulted", (&n, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), OUT_I(n));
    CALLO(cuDeviceTotalMem_v2, "faulted", (&size, 0), OUT_U(size));
    CALLO(cuDevicePrimaryCtxGetState, "faulted", (0, &flags, &active), OUT_U(flags), OUT_I(active));
    CALLO(cuDevicePrimaryCtxRetain, "faulted", (&ctx, 0), OUT_H(ctx));
    CALLO(cuCtxCreate_v2, "faulted", (&ctx, 0, 0), OUT_H(ctx));
}

SCENARIO(after_memory, "fault/after-memory") {
    CUdeviceptr p, base;
    void *host;
    char bytes[64] = {0};
    size_t size, total;
    unsigned n;
    things x = make_things();
    fault();
    CALLO(cuMemAlloc_v2, "faulted", (&p, 4096), OUT_P(p));
    CALL(cuMemcpyHtoD_v2, "faulted", (x.p, bytes, 64));
    CALL(cuMemcpyDtoH_v2, "faulted", (bytes, x.p, 64));
    CALL(cuMemcpyDtoDAsync_v2, "faulted", (x.p, x.p + 64, 64, x.t));
    CALL(cuMemsetD8_v2, "faulted", (x.p, 1, 64));
    CALLO(cuMemGetInfo_v2, "faulted", (&size, &total), OUT_C(size), OUT_C(total));
    CALLO(cuMemGetAddressRange_v2, "faulted", (&base, &size, x.p), OUT_C(base), OUT_C(size));
    CALLO(cuMemHostAlloc, "faulted", (&host, 4096, 0), OUT_P(host));
    CALLO(cuMemHostGetDevicePointer_v2, "faulted", (&p, x.host, 0), OUT_C(p));
    CALLO(cuMemHostGetFlags, "faulted", (&n, x.host), OUT_U(n));
    CALLO(cuPointerGetAttribute, "faulted", (&n, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, x.p), OUT_U(n));
    CALL(cuMemFreeHost, "faulted", (x.host));
    CALL(cuMemFree_v2, "faulted", (x.p));
    CALL(cuMemFree_v2, "faulted-null", (0));
    CALL(cuMemAlloc_v2, "faulted-null-out", (NULL, 4096));
    CALLO(cuMemAlloc_v2, "faulted-zero-size", (&p, 0), OUT_P(p));
    CALLO(cuMemAllocAsync, "faulted", (&p, 4096, x.t), OUT_P(p));
    CALL(cuMemFreeAsync, "faulted", (x.q, x.t));
}

SCENARIO(after_vmm, "fault/after-vmm") {
    CUmemAllocationProp prop = par_device_prop();
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUmemGenericAllocationHandle h;
    CUdeviceptr p;
    size_t size;
    unsigned long long flags;
    things x = make_things();
    fault();
    CALLO(cuMemGetAllocationGranularity, "faulted",
          (&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM), OUT_U(size));
    CALLO(cuMemAddressReserve, "faulted", (&p, PAR_2M, 0, 0, 0), OUT_C(p));
    CALLO(cuMemCreate, "faulted", (&h, PAR_2M, &prop, 0), OUT_C(h));
    CALL(cuMemMap, "faulted", (x.reserved, PAR_2M, 0, x.h, 0));
    CALL(cuMemSetAccess, "faulted", (x.reserved, PAR_2M, &access, 1));
    CALLO(cuMemGetAccess, "faulted", (&flags, &access.location, x.mapped), OUT_U(flags));
    CALLO(cuMemRetainAllocationHandle, "faulted", (&h, (void *)(uintptr_t)x.mapped), OUT_C(h));
    CALL(cuMemUnmap, "faulted", (x.mapped, PAR_2M));
    CALL(cuMemUnmap, "faulted", (x.reserved, PAR_2M));
    CALL(cuMemRelease, "faulted", (x.h));
    CALL(cuMemAddressFree, "faulted", (x.reserved, PAR_2M));
}

SCENARIO(after_streams, "fault/after-streams") {
    CUstream s;
    CUevent e;
    float ms;
    uint64_t value;
    unsigned flags;
    things x = make_things();
    fault();
    CALLO(cuStreamCreate, "faulted", (&s, 0), OUT_C(s));
    CALL(cuStreamQuery, "faulted-other-stream", (x.t));
    CALL(cuStreamSynchronize, "faulted-other-stream", (x.t));
    CALLO(cuStreamGetFlags, "faulted", (x.t, &flags), OUT_U(flags));
    CALL(cuStreamWaitEvent, "faulted", (x.t, x.f, 0));
    CALLO(cuEventCreate, "faulted", (&e, 0), OUT_C(e));
    CALL(cuEventRecord, "faulted", (x.e, x.t));
    CALL(cuEventQuery, "faulted-never-recorded", (x.e));
    CALL(cuEventQuery, "faulted-complete", (x.f));
    CALL(cuEventSynchronize, "faulted-complete", (x.f));
    CALLO(cuEventElapsedTime, "faulted", (&ms, x.f, x.f), OUT_F(ms));
    CALLO(cuMemPoolGetAttribute, "faulted", (x.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value),
          OUT_U(value));
    CALL(cuMemPoolTrimTo, "faulted", (x.pool, 0));
    CALL(cuStreamWriteValue32_v2, "faulted", (x.t, x.p, 1, 0));
    CALL(cuEventDestroy_v2, "faulted", (x.e));
    CALL(cuStreamDestroy_v2, "faulted", (x.t));
}

SCENARIO(after_reset, "fault/after-reset") {
    CUcontext ctx;
    CUdeviceptr p;
    things x = make_things();
    fault();
    (void)x;
    CALL(cuDevicePrimaryCtxReset_v2, "faulted", (0));
    CALL(cuCtxSynchronize, "faulted-reset", ());
    CALLO(cuDevicePrimaryCtxRetain, "faulted-reset", (&ctx, 0), OUT_C(ctx));
    if (par_last() == CUDA_SUCCESS)
        CALL(cuCtxSetCurrent, "faulted-reset", (ctx));
    CALLO(cuMemAlloc_v2, "faulted-reset", (&p, 4096), OUT_C(p));
}

SCENARIO(created_context, "fault/created-context", par_init) {
    CUdeviceptr p;
    CUcontext a = par_new_context();
    CUcontext b = par_new_context();
    fault();
    SETUP(cuCtxSetCurrent, (a));
    CALL(cuCtxSynchronize, "other-context", ());
    CALLO(cuMemAlloc_v2, "other-context", (&p, 4096), OUT_C(p));
    CALL(cuCtxDestroy_v2, "faulted", (b));
    CALL(cuCtxSynchronize, "faulted-destroyed", ());
    CALLO(cuCtxCreate_v2, "faulted-destroyed", (&b, 0, 0), OUT_C(b));
}

static int host_function_ran;

static void CUDAAPI note_run(void *unused) {
    host_function_ran++;
}

static int callback_status = -1;

static void CUDAAPI note_status(CUstream stream, CUresult status, void *unused) {
    callback_status = (int)status;
}

SCENARIO(work_behind, "fault/work-behind", par_context) {
    CUstream s = par_stream();
    CUdeviceptr m = par_mapped(PAR_2M);
    CUevent e = par_event(0);
    par_hold(s);
    SETUP(cuMemsetD8Async, (m, 1, PAR_2M, s));
    CALL(cuLaunchHostFunc, "behind-fault", (s, note_run, NULL));
    CALL(cuStreamAddCallback, "behind-fault", (s, note_status, NULL, 0));
    CALL(cuEventRecord, "behind-fault", (e, s));
    CALL(cuMemUnmap, "under-work", (m, PAR_2M));
    par_release();
    CALL(cuEventSynchronize, "behind-fault", (e));
    CALL(cuEventQuery, "behind-fault", (e));
    CALL(cuStreamQuery, "behind-fault", (s));
    CALL(cuStreamSynchronize, "behind-fault", (s));
    par_see("host-function-ran", "%d", host_function_ran);
    par_see("callback-status", "%d", callback_status);
}

SCENARIO(copy_from_unmapped, "fault/copy-from-unmapped", par_context) {
    CUstream s = par_stream();
    CUdeviceptr m = par_mapped(PAR_2M);
    void *host = par_pinned(4096);
    par_hold(s);
    CALL(cuMemcpyDtoHAsync_v2, "held", (host, m, 4096, s));
    CALL(cuMemUnmap, "under-work", (m, PAR_2M));
    PAR_DRAIN("faulted", s);
}

SCENARIO(access_taken, "fault/access-taken", par_context) {
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READ);
    CUstream s = par_stream();
    CUdeviceptr m = par_mapped(PAR_2M);
    par_hold(s);
    CALL(cuMemsetD8Async, "held", (m, 1, PAR_2M, s));
    CALL(cuMemSetAccess, "read-only-under-work", (m, PAR_2M, &access, 1));
    PAR_DRAIN("faulted", s);
}

SCENARIO(freed_under_work, "fault/freed-under-work", par_context) {
    CUstream s = par_stream();
    CUdeviceptr p = par_alloc((size_t)64 << 20);
    par_hold(s);
    CALL(cuMemsetD8Async, "held", (p, 1, (size_t)64 << 20, s));
    CALL(cuMemFree_v2, "under-work", (p));
    PAR_DRAIN("after", s);
}

SCENARIO(unregistered_under_work, "fault/unregistered-under-work") {
    static char memory[65536] __attribute__((aligned(4096)));
    par_context();
    CUstream s = par_stream();
    CUdeviceptr d = par_alloc(4096);
    SETUP(cuMemHostRegister_v2, (memory, 65536, 0));
    par_hold(s);
    CALL(cuMemcpyHtoDAsync_v2, "held", (d, memory, 4096, s));
    CALL(cuMemHostUnregister, "under-work", (memory));
    PAR_DRAIN("after", s);
}
