/*
 * Two faults in one call: which is named? And the documented errors that need a situation of their
 * own.
 */
#include "../parity.h"

SCENARIO(memory, "precedence/memory", par_context) {
    size_t size;
    CALL(cuMemAlloc_v2, "null-out-and-too-large", (NULL, (size_t)1 << 50));
    CALL(cuMemHostAlloc, "null-out-and-bad-flags", (NULL, 4096, ~0u));
    void *host;
    CALLO(cuMemHostAlloc, "zero-size-and-bad-flags", (&host, 0, ~0u), OUT_P(host));
    CALLO(cuMemHostAlloc, "too-large-and-bad-flags", (&host, (size_t)1 << 50, ~0u), OUT_P(host));
    CUdeviceptr p;
    CALLO(cuMemAllocPitch_v2, "zero-width-and-bad-element", (&p, &size, 0, 1, 3), OUT_P(p),
          OUT_U(size));
    CALL(cuMemHostRegister_v2, "null-and-bad-flags", (NULL, 4096, ~0u));
    CALL(cuMemHostRegister_v2, "zero-size-and-bad-flags", (&p, 0, ~0u));
    CALLO(cuMemHostGetDevicePointer_v2, "null-and-bad-flags", (&p, NULL, 1), OUT_P(p));
    CALL(cuPointerGetAttribute, "null-out-and-bad-attribute",
         (NULL, (CUpointer_attribute)999, par_alloc(64)));
    CALL(cuPointerGetAttribute, "null-out-and-null", (NULL, CU_POINTER_ATTRIBUTE_CONTEXT, 0));
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuMemAlloc_v2, "no-context-and-null-out", (NULL, 4096));
    CALLO(cuMemAlloc_v2, "no-context-and-zero-size", (&p, 0), OUT_P(p));
    CALL(cuMemHostAlloc, "no-context-and-null-out", (NULL, 4096, 0));
    CALLO(cuMemHostAlloc, "no-context-and-bad-flags", (&host, 4096, ~0u), OUT_P(host));
    CALL(cuMemFree_v2, "no-context-and-random", (0x1000));
    CALL(cuMemFreeHost, "no-context-and-random", (&p));
    CALL(cuMemHostUnregister, "no-context-and-null", (NULL));
    CALL(cuMemGetInfo_v2, "no-context-and-null-both", (NULL, NULL));
    CALL(cuMemcpyHtoD_v2, "no-context-and-null", (0, NULL, 16));
    CALL(cuMemcpyHtoD_v2, "no-context-and-zero-size", (0, NULL, 0));
    CALL(cuMemsetD32_v2, "no-context-and-misaligned", (1, 1, 1));
    CALL(cuMemsetD8_v2, "no-context-and-zero-count", (0, 1, 0));
}

SCENARIO(vmm, "precedence/vmm", par_context) {
    CUmemAllocationProp prop = par_device_prop();
    CUmemAccessDesc access = par_device_access((CUmemAccess_flags)9);
    CUmemGenericAllocationHandle h;
    CUdeviceptr a;
    int fd;
    CALL(cuMemAddressReserve, "null-out-and-zero-size", (NULL, 0, 0, 0, 0));
    CALLO(cuMemAddressReserve, "zero-size-and-bad-flags", (&a, 0, 0, 0, 4), OUT_P(a));
    CALLO(cuMemAddressReserve, "bad-size-and-bad-alignment", (&a, 4096, 3, 0, 0), OUT_P(a));
    CALLO(cuMemAddressReserve, "huge-and-bad-alignment", (&a, (size_t)1 << 50, 3, 0, 0), OUT_P(a));
    prop.location.id = 99;
    CALLO(cuMemCreate, "bad-device-and-bad-size", (&h, 1, &prop, 0), OUT_H(h));
    CALLO(cuMemCreate, "bad-device-and-bad-flags", (&h, PAR_2M, &prop, 1), OUT_H(h));
    prop.requestedHandleTypes = (CUmemAllocationHandleType)64;
    CALLO(cuMemCreate, "bad-device-and-bad-handle-type", (&h, PAR_2M, &prop, 0), OUT_H(h));
    prop = par_device_prop();
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32;
    CALLO(cuMemCreate, "win32-and-bad-size", (&h, 1, &prop, 0), OUT_H(h));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    CALLO(cuMemCreate, "fabric-and-bad-size", (&h, 1, &prop, 0), OUT_H(h));
    prop = par_device_prop();
    prop.type = (CUmemAllocationType)7;
    prop.location.id = 99;
    CALLO(cuMemCreate, "bad-type-and-bad-device", (&h, PAR_2M, &prop, 0), OUT_H(h));
    prop = par_device_prop();
    CALLO(cuMemCreate, "too-large-and-bad-flags", (&h, (size_t)1 << 44, &prop, 1), OUT_H(h));
    CALL(cuMemCreate, "null-out-and-null-prop", (NULL, PAR_2M, NULL, 0));
    a = par_reserve(2 * PAR_2M);
    h = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
    CALL(cuMemMap, "zero-handle-and-not-reserved", (0x10000000, PAR_2M, 0, 0, 0));
    CALL(cuMemMap, "zero-handle-and-bad-flags", (a, PAR_2M, 0, 0, 1));
    CALL(cuMemMap, "not-reserved-and-bad-flags", (0x10000000, PAR_2M, 0, h, 1));
    CALL(cuMemMap, "bad-offset-and-past-end", (a, PAR_2M, PAR_2M + 4096, h, 0));
    CALL(cuMemMap, "zero-size-and-bad-flags", (a, 0, 0, h, 1));
    CALL(cuMemUnmap, "unaligned-and-not-mapped", (a + 4096, PAR_2M));
    CALL(cuMemSetAccess, "not-mapped-and-bad-flags", (a, PAR_2M, &access, 1));
    access.location.id = 99;
    CALL(cuMemSetAccess, "bad-device-and-bad-flags", (a, PAR_2M, &access, 1));
    CALL(cuMemSetAccess, "not-mapped-and-bad-size", (a, 4096, &access, 1));
    CALLO(cuMemExportToShareableHandle, "not-exportable-and-bad-flags",
          (&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1), OUT_D(fd));
    CALL(cuMemExportToShareableHandle, "null-out-and-zero-handle",
         (NULL, 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CALL(cuMemImportFromShareableHandle, "null-out-and-bad-type",
         (NULL, NULL, CU_MEM_HANDLE_TYPE_NONE));
    SETUP(cuMemMap, (a, PAR_2M, 0, h, 0));
    CALL(cuMemMap, "mapped-and-bad-flags", (a, PAR_2M, 0, h, 1));
    CALL(cuMemMap, "mapped-and-zero-handle", (a, PAR_2M, 0, 0, 0));
    CALL(cuMemAddressFree, "mapped-and-bad-size", (a, PAR_2M));
}

SCENARIO(pool, "precedence/pool", par_context) {
    CUmemoryPool pool;
    CUdeviceptr p;
    CUstream s = par_stream();
    CUmemPoolProps props = {AT_DEVICE(99), .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_WIN32};
    CALLO(cuMemPoolCreate, "bad-device-and-win32", (&pool, &props), OUT_H(pool));
    props.allocType = (CUmemAllocationType)7;
    CALLO(cuMemPoolCreate, "bad-type-and-bad-device", (&pool, &props), OUT_H(pool));
    CALL(cuMemPoolCreate, "null-out-and-null-props", (NULL, NULL));
    CALLO(cuMemAllocAsync, "zero-size-no-stream", (&p, 0, NULL), OUT_P(p));
    CALL(cuMemAllocAsync, "null-out-and-zero-size", (NULL, 0, s));
    CALL(cuMemAllocAsync, "null-out-and-too-large", (NULL, (size_t)1 << 50, s));
    CALL(cuMemAllocFromPoolAsync, "null-out-and-null-pool", (NULL, 4096, NULL, s));
    CALLO(cuMemAllocFromPoolAsync, "null-pool-and-zero-size", (&p, 0, NULL, s), OUT_P(p));
    CALL(cuMemPoolGetAttribute, "null-pool-and-bad-attribute", (NULL, (CUmemPool_attribute)99, &p));
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuMemAllocAsync, "no-context-and-null-out", (NULL, 4096, NULL));
    CALLO(cuMemAllocAsync, "no-context-and-zero-size", (&p, 0, NULL), OUT_P(p));
    CALL(cuMemFreeAsync, "no-context-and-null", (0, NULL));
    CALL(cuMemFreeAsync, "no-context-and-random", (0x1000, NULL));
    CALL(cuMemFreeAsync, "no-context-and-random-stream", (0x1000, s));
}

SCENARIO(streams, "precedence/streams", par_context) {
    CALL(cuStreamCreate, "null-out-and-bad-flags", (NULL, ~0u));
    CALL(cuEventCreate, "null-out-and-bad-flags", (NULL, ~0u));
    CUstream s = par_stream();
    CALL(cuEventRecordWithFlags, "null-and-bad-flags", (NULL, s, 9));
    CALL(cuStreamWaitEvent, "null-and-bad-flags", (s, NULL, 9));
    CALL(cuEventElapsedTime, "all-null", (NULL, NULL, NULL));
    CALL(cuEventElapsedTime_v2, "all-null", (NULL, NULL, NULL));
    CALL(cuStreamWaitValue32_v2, "null-and-bad-flags", (s, 0, 0, 0x80));
    CALL(cuStreamWaitValue32_v2, "misaligned-and-random", (s, 0x1001, 0, 0));
    CALL(cuStreamAddCallback, "null-and-bad-flags", (s, NULL, NULL, 1));
    CUevent e = par_event(0);
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuStreamCreate, "no-context-and-null-out", (NULL, 0));
    CALL(cuStreamCreate, "no-context-and-bad-flags", (&s, ~0u));
    CALL(cuEventCreate, "no-context-and-null-out", (NULL, 0));
    CALL(cuEventCreate, "no-context-and-bad-flags", (&e, ~0u));
    CALL(cuEventRecord, "no-context-and-null", (NULL, NULL));
    CALL(cuEventQuery, "no-context-and-null", (NULL));
    CALL(cuEventSynchronize, "no-context-and-null", (NULL));
    CALL(cuEventDestroy_v2, "no-context-and-null", (NULL));
    CALL(cuStreamQuery, "no-context-null-stream", (NULL));
    CALL(cuStreamQuery, "no-context-legacy-stream", (CU_STREAM_LEGACY));
    CALL(cuStreamQuery, "no-context-per-thread-stream", (CU_STREAM_PER_THREAD));
    CALL(cuStreamWaitEvent, "no-context-and-null", (NULL, NULL, 0));
    CALL(cuLaunchHostFunc, "no-context-and-null", (NULL, NULL, NULL));
    CALL(cuStreamAddCallback, "no-context-and-null", (NULL, NULL, NULL, 0));
    CALL(cuStreamDestroy_v2, "no-context-and-null", (NULL));
}

SCENARIO(contexts, "precedence/contexts", par_init) {
    CUcontext ctx;
    int n;
    CALL(cuDeviceGet, "null-out-and-bad-ordinal", (NULL, 99));
    CALL(cuDeviceGetAttribute, "null-out-and-bad-device",
         (NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99));
    CALLO(cuDeviceGetAttribute, "bad-attribute-and-bad-device", (&n, (CUdevice_attribute)0, 99),
          OUT_I(n));
    CALL(cuDeviceGetName, "null-out-and-bad-device", (NULL, 10, 99));
    CALL(cuDeviceTotalMem_v2, "null-out-and-bad-device", (NULL, 99));
    CALL(cuDevicePrimaryCtxRetain, "null-out-and-bad-device", (NULL, 99));
    CALL(cuDevicePrimaryCtxSetFlags_v2, "bad-flags-and-bad-device", (99, ~0u));
    CALL(cuDevicePrimaryCtxGetState, "null-both", (0, NULL, NULL));
    CALL(cuDevicePrimaryCtxGetState, "null-both-and-bad-device", (99, NULL, NULL));
    CALL(cuCtxCreate_v2, "null-out-and-bad-device", (NULL, 0, 99));
    CALLO(cuCtxCreate_v2, "bad-flags-and-bad-device", (&ctx, ~0u, 99), OUT_H(ctx));
    CALL(cuCtxCreate_v2, "null-out-and-bad-flags", (NULL, ~0u, 0));
    CALL(cuCtxGetDevice, "no-context-and-null-out", (NULL));
    CALL(cuCtxGetFlags, "no-context-and-null-out", (NULL));
    CALL(cuCtxGetLimit, "no-context-and-bad-limit", (NULL, (CUlimit)99));
    CALL(cuCtxSetLimit, "no-context-and-bad-limit", ((CUlimit)99, 0));
    CALL(cuCtxPopCurrent_v2, "empty-and-null-out", (NULL));
    CALL(cuDeviceGetDefaultMemPool, "null-out-and-bad-device", (NULL, 99));
    CALL(cuDeviceSetMemPool, "null-pool-and-bad-device", (99, NULL));
    CALL(cuDeviceCanAccessPeer, "null-out-and-bad-device", (NULL, 0, 99));
}

SCENARIO(copies, "precedence/copies", par_context) {
    char *host = calloc(1, 4096);
    CUdeviceptr d = par_alloc(4096);
    CUDA_MEMCPY2D c = {EXTENT(32, 0), .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE, .srcPitch = 16, .dstPitch = 16};
    CALL(cuMemcpy2D_v2, "zero-height-and-pitch-below-width", (&c));
    c.srcMemoryType = (CUmemorytype)9;
    CALL(cuMemcpy2D_v2, "zero-height-and-bad-type", (&c));
    CALL(cuMemcpyDtoD_v2, "null-and-past-end", (0, d, 1 << 20));
    CALL(cuMemcpyHtoD_v2, "null-both", (0, NULL, 16));
    CALL(cuMemsetD32_v2, "misaligned-and-null", (2, 1, 1));
    CALL(cuMemsetD32_v2, "misaligned-and-past-end", (d + 2, 1, 4096));
    CALL(cuMemsetD2D32_v2, "misaligned-and-pitch-below-width", (d + 2, 4, 1, 64, 4));
    CALL(cuMemsetD2D32_v2, "misaligned-and-zero-width", (d + 2, 128, 1, 0, 4));
    CALL(cuMemcpyHtoDAsync_v2, "null-and-zero-size", (0, host, 0, NULL));
}

/* Stream handles that are not valid, in each kind of work: the documented INVALID_HANDLE. */
static uint64_t words[1024];

SCENARIO(foreign_stream, "precedence/foreign-stream", par_context) {
    CUstream s = (CUstream)(void *)words;
    CUdeviceptr d = par_alloc(4096);
    void *pinned = par_pinned(4096);
    CUevent e = par_event(0);
    CALL(cuMemcpyAsync, "foreign-stream", (d, d + 64, 64, s));
    CALL(cuMemcpyHtoDAsync_v2, "foreign-stream", (d, pinned, 64, s));
    CALL(cuMemcpyDtoHAsync_v2, "foreign-stream", (pinned, d, 64, s));
    CALL(cuMemcpyDtoDAsync_v2, "foreign-stream", (d, d + 64, 64, s));
    CALL(cuMemcpyPeerAsync, "foreign-stream", (d, par.primary, d + 64, par.primary, 64, s));
    CALL(cuMemsetD8Async, "foreign-stream", (d, 1, 64, s));
    CALL(cuLaunchHostFunc, "foreign-stream", (s, NULL, NULL));
    CALL(cuStreamWaitEvent, "foreign-stream", (s, e, 0));
    CALL(cuEventRecord, "foreign-stream", (e, s));
    CALL(cuStreamWriteValue32_v2, "foreign-stream", (s, d, 1, 0));
    CALL(cuMemAllocAsync, "foreign-stream", (&d, 4096, s));
    CALL(cuMemFreeAsync, "foreign-stream", (d, s));
}

SCENARIO(queries_foreign_stream, "precedence/queries-foreign-stream", par_context) {
    CUstream s = (CUstream)(void *)words;
    unsigned flags;
    int priority;
    CUcontext ctx;
    unsigned long long id;
    CUstreamCaptureStatus status;
    CALLO(cuStreamGetFlags, "foreign-stream", (s, &flags), OUT_U(flags));
    CALLO(cuStreamGetPriority, "foreign-stream", (s, &priority), OUT_I(priority));
    CALLO(cuStreamGetCtx, "foreign-stream", (s, &ctx), OUT_H(ctx));
    CALLO(cuStreamGetId, "foreign-stream", (s, &id), OUT_C(id));
    CALLO(cuStreamIsCapturing, "foreign-stream", (s, &status), OUT_I(status));
    CALL(cuStreamSynchronize, "foreign-stream", (s));
    CALL(cuStreamCopyAttributes, "foreign-stream", (s, s));
}
