/*
 * The same calls, with arguments that are good, in each state that the current context can be in:
 * fine, none, destroyed by another thread, poisoned by a device fault. Objects are the primary
 * context's, made while all was well.
 */
#include "../parity.h"

#include <pthread.h>

typedef struct objects {
    CUdeviceptr d, e, pooled, reserved, mapped, pinned_at;
    char *pinned, *plain;
    CUstream s;
    CUevent complete, never;
    CUmemoryPool pool;
    CUmemGenericAllocationHandle h;
} objects;

static char pageable[65536] __attribute__((aligned(4096)));

static objects make_objects(void) {
    objects o;
    par_context();
    o.d = par_alloc(65536);
    o.e = par_alloc(65536);
    SETUP(cuMemAllocAsync, (&o.pooled, 65536, NULL));
    o.pinned = par_pinned(65536);
    SETUP(cuMemHostGetDevicePointer_v2, (&o.pinned_at, o.pinned, 0));
    o.plain = pageable;
    o.s = par_stream();
    SETUP(cuEventCreate, (&o.complete, 0));
    SETUP(cuEventRecord, (o.complete, o.s));
    SETUP(cuEventCreate, (&o.never, 0));
    SETUP(cuDeviceGetDefaultMemPool, (&o.pool, 0));
    o.h = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    o.reserved = par_reserve(PAR_2M);
    o.mapped = par_mapped(PAR_2M);
    SETUP(cuCtxSynchronize, ());
    return o;
}

static void no_context(const objects *o) {
    SETUP(cuCtxSetCurrent, (NULL));
}

static void *destroy_context(void *ctx) {
    SETUP(cuCtxDestroy_v2, ((CUcontext)ctx));
    return NULL;
}

static void destroyed_context(const objects *o) {
    pthread_t thread;
    CUcontext other = par_new_context();
    NAME(other);
    pthread_create(&thread, NULL, destroy_context, other);
    pthread_join(thread, NULL);
}

static void poisoned_context(const objects *o) {
    CUdeviceptr m = par_mapped(PAR_2M);
    CUstream s = par_stream();
    par_hold(s);
    SETUP(cuMemsetD8Async, (m, 1, PAR_2M, s));
    SETUP(cuMemUnmap, (m, PAR_2M));
    par_release();
    if (par.api->cuStreamSynchronize(s) == CUDA_SUCCESS)
        par_see("setup", "SETUP_FAILED no fault");
}

static void all_good(const objects *o) {
}

static void device_calls(const objects *o, const char *cls) {
    int n, active;
    size_t size;
    unsigned flags;
    char name[64];
    CUdevice dev;
    CUuuid uuid;
    CUmemoryPool pool;
    CUcontext ctx;
    CALL(cuInit, cls, (0));
    CALLO(cuDriverGetVersion, cls, (&n), OUT_I(n));
    CALLO(cuDeviceGetCount, cls, (&n), OUT_I(n));
    CALLO(cuDeviceGet, cls, (&dev, 0), OUT_I(dev));
    CALLO(cuDeviceGetName, cls, (name, 64, 0), OUT_S(name));
    CALLO(cuDeviceGetUuid, cls, (&uuid, 0), OUT_C(uuid));
    CALLO(cuDeviceGetUuid_v2, cls, (&uuid, 0), OUT_C(uuid));
    CALLO(cuDeviceTotalMem_v2, cls, (&size, 0), OUT_U(size));
    CALLO(cuDeviceGetAttribute, cls, (&n, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), OUT_I(n));
    CALLO(cuDeviceComputeCapability, cls, (&n, &active, 0), OUT_I(n), OUT_I(active));
    CALLO(cuDeviceGetPCIBusId, cls, (name, 64, 0), OUT_C(name));
    CALLO(cuDeviceCanAccessPeer, cls, (&n, 0, 0), OUT_I(n));
    CALLO(cuDeviceGetDefaultMemPool, cls, (&pool, 0), OUT_H(pool));
    CALLO(cuDeviceGetMemPool, cls, (&pool, 0), OUT_H(pool));
    CALL(cuDeviceSetMemPool, cls, (0, o->pool));
    CALLO(cuDevicePrimaryCtxGetState, cls, (0, &flags, &active), OUT_U(flags), OUT_I(active));
    CALL(cuDevicePrimaryCtxSetFlags_v2, cls, (0, 0));
    CALLO(cuDevicePrimaryCtxRetain, cls, (&ctx, 0), OUT_C(ctx));
    CALL(cuDevicePrimaryCtxRelease_v2, cls, (0));
    CALL(cuFlushGPUDirectRDMAWrites, cls,
         (CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
          CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
}

static void context_calls(const objects *o, const char *cls) {
    CUcontext ctx;
    CUdevice dev;
    unsigned flags;
    unsigned long long id;
    size_t size;
    int least, greatest;
    CUfunc_cache cache;
    CUsharedconfig shared;
    CUexecAffinityParam affinity;
    CALLO(cuCtxGetCurrent, cls, (&ctx), OUT_H(ctx));
    CALLO(cuCtxGetDevice, cls, (&dev), OUT_I(dev));
    CALLO(cuCtxGetDevice_v2, cls, (&dev, NULL), OUT_I(dev));
    CALLO(cuCtxGetFlags, cls, (&flags), OUT_U(flags));
    CALL(cuCtxSetFlags, cls, (0));
    CALLO(cuCtxGetApiVersion, cls, (NULL, &flags), OUT_U(flags));
    CALLO(cuCtxGetId, cls, (NULL, &id), OUT_C(id));
    CALLO(cuCtxGetLimit, cls, (&size, CU_LIMIT_STACK_SIZE), OUT_U(size));
    CALL(cuCtxSetLimit, cls, (CU_LIMIT_STACK_SIZE, 2048));
    CALLO(cuCtxGetCacheConfig, cls, (&cache), OUT_I(cache));
    CALL(cuCtxSetCacheConfig, cls, (CU_FUNC_CACHE_PREFER_L1));
    CALLO(cuCtxGetSharedMemConfig, cls, (&shared), OUT_I(shared));
    CALL(cuCtxSetSharedMemConfig, cls, (CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE));
    CALLO(cuCtxGetStreamPriorityRange, cls, (&least, &greatest), OUT_I(least), OUT_I(greatest));
    CALLO(cuCtxGetExecAffinity, cls, (&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT),
          OUT_C(affinity.type));
    CALL(cuCtxResetPersistingL2Cache, cls, ());
    CALL(cuCtxSynchronize, cls, ());
    CALL(cuCtxSynchronize_v2, cls, (NULL));
    CALLO(cuCtxAttach, cls, (&ctx, 0), OUT_H(ctx));
    CALL(cuCtxPushCurrent_v2, cls, (par.primary));
    CALLO(cuCtxPopCurrent_v2, cls, (&ctx), OUT_H(ctx));
    CALLO(cuCtxPopCurrent_v2, cls, (&ctx), OUT_H(ctx));
    CALL(cuCtxSetCurrent, cls, (par.primary));
    CALLO(cuCtxCreate_v2, cls, (&ctx, 0, 0), OUT_C(ctx));
}

static void memory_calls(const objects *o, const char *cls) {
    CUdeviceptr p, base;
    size_t size, total;
    void *host;
    unsigned flags;
    CUipcMemHandle ipc;
    CALLO(cuMemAlloc_v2, cls, (&p, 4096), OUT_C(p));
    CALLO(cuMemAllocPitch_v2, cls, (&p, &size, 100, 10, 4), OUT_C(p), OUT_U(size));
    CALLO(cuMemGetInfo_v2, cls, (&size, &total), OUT_C(size), OUT_C(total));
    CALLO(cuMemGetAddressRange_v2, cls, (&base, &size, o->d), OUT_C(base), OUT_U(size));
    CALLO(cuMemHostAlloc, cls, (&host, 4096, 0), OUT_C(host));
    CALLO(cuMemAllocHost_v2, cls, (&host, 4096), OUT_C(host));
    CALLO(cuMemHostGetDevicePointer_v2, cls, (&p, o->pinned, 0), OUT_C(p));
    CALLO(cuMemHostGetFlags, cls, (&flags, o->pinned), OUT_U(flags));
    CALL(cuMemHostRegister_v2, cls, (o->plain, 4096, 0));
    CALL(cuMemHostUnregister, cls, (o->plain));
    CALLO(cuPointerGetAttribute, cls, (&flags, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, o->d),
          OUT_U(flags));
    flags = 1;
    CALL(cuPointerSetAttribute, cls, (&flags, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, o->d));
    CALLO(cuIpcGetMemHandle, cls, (&ipc, o->d), OUT_C(ipc));
    CALL(cuIpcCloseMemHandle, cls, (o->d));
    CALL(cuMemFreeHost, cls, (o->pinned));
    CALL(cuMemFree_v2, cls, (o->d));
}

static void vmm_calls(const objects *o, const char *cls) {
    CUmemAllocationProp prop = par_device_prop(), got;
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUmemGenericAllocationHandle h;
    CUdeviceptr p;
    unsigned long long flags;
    size_t size;
    int fd = -1;
    CALLO(cuMemGetAllocationGranularity, cls, (&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
          OUT_U(size));
    CALLO(cuMemAddressReserve, cls, (&p, PAR_2M, 0, 0, 0), OUT_C(p));
    CALLO(cuMemCreate, cls, (&h, PAR_2M, &prop, 0), OUT_C(h));
    CALLO(cuMemGetAllocationPropertiesFromHandle, cls, (&got, o->h), OUT_I(got.type));
    CALLO(cuMemExportToShareableHandle, cls,
          (&fd, o->h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_D(fd));
    CALLO(cuMemImportFromShareableHandle, cls,
          (&h, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), OUT_C(h));
    CALL(cuMemMap, cls, (o->reserved, PAR_2M, 0, o->h, 0));
    CALL(cuMemSetAccess, cls, (o->reserved, PAR_2M, &access, 1));
    CALLO(cuMemGetAccess, cls, (&flags, &access.location, o->mapped), OUT_U(flags));
    CALLO(cuMemRetainAllocationHandle, cls, (&h, (void *)(uintptr_t)o->mapped), OUT_C(h));
    CALL(cuMemUnmap, cls, (o->mapped, PAR_2M));
    CALL(cuMemRelease, cls, (o->h));
    CALL(cuMemUnmap, cls, (o->reserved, PAR_2M));
    CALL(cuMemAddressFree, cls, (o->reserved, PAR_2M));
}

static void pool_calls(const objects *o, const char *cls) {
    CUmemoryPool pool;
    CUdeviceptr p;
    uint64_t value = 0;
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUmemAccess_flags flags;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CALLO(cuMemPoolCreate, cls, (&pool, &props), OUT_C(pool));
    CALL(cuMemPoolSetAttribute, cls, (o->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    CALLO(cuMemPoolGetAttribute, cls, (o->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value),
          OUT_U(value));
    CALL(cuMemPoolSetAccess, cls, (o->pool, &access, 1));
    CALLO(cuMemPoolGetAccess, cls, (&flags, o->pool, &access.location), OUT_I(flags));
    CALL(cuMemPoolTrimTo, cls, (o->pool, 0));
    CALLO(cuMemAllocAsync, cls, (&p, 4096, NULL), OUT_C(p));
    CALLO(cuMemAllocAsync, cls, (&p, 4096, o->s), OUT_C(p));
    CALLO(cuMemAllocFromPoolAsync, cls, (&p, 4096, o->pool, NULL), OUT_C(p));
    CALLO(cuMemAllocFromPoolAsync, cls, (&p, 4096, o->pool, o->s), OUT_C(p));
    CALL(cuMemFreeAsync, cls, (o->pooled, o->s));
    CALL(cuMemFreeAsync, cls, (o->e, NULL));
}

static void copy_calls(const objects *o, const char *cls) {
    CUdeviceptr host = (CUdeviceptr)(uintptr_t)o->pinned;
    CUDA_MEMCPY2D flat = {FROM_DEVICE(o->d), TO_DEVICE(o->e), .srcPitch = 64, .dstPitch = 64,
                          EXTENT(32, 4)};
    CUDA_MEMCPY3D deep = {FROM_DEVICE(o->d), TO_DEVICE(o->e), .srcPitch = 64,     .dstPitch = 64,
                          .srcHeight = 4,    .dstHeight = 4,  EXTENT_3D(32, 4, 2)};
    CALL(cuMemcpy, cls, (o->e, o->d, 64));
    CALL(cuMemcpy, cls, (host, o->d, 64));
    CALL(cuMemcpyHtoD_v2, cls, (o->d, o->plain, 64));
    CALL(cuMemcpyDtoH_v2, cls, (o->plain, o->d, 64));
    CALL(cuMemcpyDtoD_v2, cls, (o->e, o->d, 64));
    CALL(cuMemcpyPeer, cls, (o->e, par.primary, o->d, par.primary, 64));
    CALL(cuMemcpyAsync, cls, (o->e, o->d, 64, o->s));
    CALL(cuMemcpyAsync, cls, (o->e, o->d, 64, NULL));
    CALL(cuMemcpyHtoDAsync_v2, cls, (o->d, o->pinned, 64, o->s));
    CALL(cuMemcpyDtoHAsync_v2, cls, (o->pinned, o->d, 64, o->s));
    CALL(cuMemcpyDtoDAsync_v2, cls, (o->e, o->d, 64, o->s));
    CALL(cuMemcpyDtoDAsync_v2, cls, (o->e, o->d, 64, NULL));
    CALL(cuMemcpyPeerAsync, cls, (o->e, par.primary, o->d, par.primary, 64, o->s));
    CALL(cuMemcpy2D_v2, cls, (&flat));
    CALL(cuMemcpy2DUnaligned_v2, cls, (&flat));
    CALL(cuMemcpy2DAsync_v2, cls, (&flat, o->s));
    CALL(cuMemcpy3D_v2, cls, (&deep));
    CALL(cuMemcpy3DAsync_v2, cls, (&deep, o->s));
    CALL(cuMemsetD8_v2, cls, (o->d, 1, 64));
    CALL(cuMemsetD16_v2, cls, (o->d, 1, 32));
    CALL(cuMemsetD32_v2, cls, (o->d, 1, 16));
    CALL(cuMemsetD2D8_v2, cls, (o->d, 64, 1, 32, 2));
    CALL(cuMemsetD2D16_v2, cls, (o->d, 64, 1, 16, 2));
    CALL(cuMemsetD2D32_v2, cls, (o->d, 64, 1, 8, 2));
    CALL(cuMemsetD8Async, cls, (o->d, 1, 64, o->s));
    CALL(cuMemsetD16Async, cls, (o->d, 1, 32, o->s));
    CALL(cuMemsetD32Async, cls, (o->d, 1, 16, o->s));
    CALL(cuMemsetD32Async, cls, (o->d, 1, 16, NULL));
    CALL(cuMemsetD2D8Async, cls, (o->d, 64, 1, 32, 2, o->s));
}

static void CUDAAPI nothing(void *unused) {
}

static void CUDAAPI no_callback(CUstream stream, CUresult status, void *unused) {
}

static void stream_calls(const objects *o, const char *cls) {
    CUstream s;
    CUevent e;
    CUcontext ctx;
    CUdevice dev;
    unsigned flags;
    int priority;
    unsigned long long id;
    float ms;
    CUstreamCaptureStatus status;
    CUstreamAttrValue value;
    memset(&value, 0, sizeof(value));
    CALLO(cuStreamCreate, cls, (&s, 0), OUT_C(s));
    CALLO(cuStreamCreateWithPriority, cls, (&s, 0, -1), OUT_C(s));
    CALLO(cuStreamGetFlags, cls, (o->s, &flags), OUT_U(flags));
    CALLO(cuStreamGetPriority, cls, (o->s, &priority), OUT_I(priority));
    CALLO(cuStreamGetCtx, cls, (o->s, &ctx), OUT_H(ctx));
    CALLO(cuStreamGetDevice, cls, (o->s, &dev), OUT_I(dev));
    CALLO(cuStreamGetId, cls, (o->s, &id), OUT_C(id));
    CALLO(cuStreamIsCapturing, cls, (o->s, &status), OUT_I(status));
    CALLO(cuStreamIsCapturing, cls, (NULL, &status), OUT_I(status));
    CALLO(cuStreamGetAttribute, cls, (o->s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value),
          OUT_I(value.priority));
    CALL(cuStreamSetAttribute, cls, (o->s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    CALL(cuStreamCopyAttributes, cls, (o->s, o->s));
    CALL(cuStreamQuery, cls, (o->s));
    CALL(cuStreamQuery, cls, (NULL));
    CALL(cuStreamSynchronize, cls, (o->s));
    CALL(cuStreamSynchronize, cls, (NULL));
    CALL(cuStreamWaitEvent, cls, (o->s, o->complete, 0));
    CALL(cuStreamWaitEvent, cls, (NULL, o->complete, 0));
    CALL(cuLaunchHostFunc, cls, (o->s, nothing, NULL));
    CALL(cuLaunchHostFunc, cls, (NULL, nothing, NULL));
    CALL(cuStreamAddCallback, cls, (o->s, no_callback, NULL, 0));
    CALL(cuStreamWriteValue32_v2, cls, (o->s, o->pinned_at, 1, 0));
    CALL(cuStreamWaitValue32_v2, cls, (o->s, o->pinned_at, 1, CU_STREAM_WAIT_VALUE_EQ));
    CALL(cuStreamWriteValue64_v2, cls, (o->s, o->pinned_at, 1, 0));
    CALL(cuStreamWaitValue64_v2, cls, (o->s, o->pinned_at, 1, CU_STREAM_WAIT_VALUE_EQ));
    CALL(cuStreamSynchronize, cls, (o->s));
    CALLO(cuEventCreate, cls, (&e, 0), OUT_C(e));
    CALL(cuEventQuery, cls, (o->complete));
    CALL(cuEventSynchronize, cls, (o->complete));
    CALL(cuEventQuery, cls, (o->never));
    CALL(cuEventSynchronize, cls, (o->never));
    CALLO(cuEventElapsedTime, cls, (&ms, o->complete, o->complete), OUT_F(ms));
    CALLO(cuEventElapsedTime_v2, cls, (&ms, o->complete, o->complete), OUT_F(ms));
    CALL(cuEventRecord, cls, (o->never, o->s));
    CALL(cuEventRecord, cls, (o->never, NULL));
    CALL(cuEventRecordWithFlags, cls, (o->never, o->s, 0));
    CALL(cuEventDestroy_v2, cls, (o->never));
    CALL(cuStreamDestroy_v2, cls, (o->s));
}

#define STATE(chapter, name, state)                                                                \
    SCENARIO(chapter##_##name, "states/" #chapter "-" #name) {                                     \
        objects o = make_objects();                                                                \
        state(&o);                                                                                 \
        chapter##_calls(&o, "ctx-" #name);                                                         \
    }
#define STATES(chapter)                                                                            \
    STATE(chapter, good, all_good)                                                                 \
    STATE(chapter, none, no_context)                                                               \
    STATE(chapter, destroyed, destroyed_context)                                                   \
    STATE(chapter, poisoned, poisoned_context)
STATES(device)
STATES(context)
STATES(memory)
STATES(vmm)
STATES(pool)
STATES(copy)
STATES(stream)
