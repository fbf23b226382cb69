/*
 * The first version of the API, with 32-bit addresses. A context of its time gives out such
 * addresses; any other context refuses the calls.
 */
#include "../parity.h"

#define N 4096u

typedef struct old {
    CUcontext ctx;
    CUdeviceptr_v1 a, b;
    char *host;
    CUstream s;
} old;

static old make_old(void) {
    par_init();
    old o = {.host = calloc(2, N)};
    CALLO(cuCtxCreate, "ok", (&o.ctx, 0, 0), OUT_H(o.ctx));
    CALLO(cuMemAlloc, "old-context", (&o.a, N), OUT_C(o.a));
    CALLO(cuMemAlloc, "old-context", (&o.b, N), OUT_C(o.b));
    return o;
}

SCENARIO(allocations, "old/allocations") {
    CUdeviceptr_v1 p, base;
    CUdeviceptr wide;
    unsigned pitch, size, freed, total;
    void *host;
    size_t bytes;
    old o = make_old();
    CALLO(cuMemAlloc, "zero-size", (&p, 0), OUT_C(p));
    CALLO(cuMemAlloc, "too-large", (&p, 0xffffffffu), OUT_C(p));
    CALL(cuMemAlloc, "null-out", (NULL, N));
    CALLO(cuMemGetInfo, "old-context", (&freed, &total), OUT_C(freed), OUT_C(total));
    CALL(cuMemGetInfo, "null-both", (NULL, NULL));
    CALLO(cuMemGetAddressRange, "old-context", (&base, &size, o.a + 100), OUT_C(base), OUT_U(size));
    par_see("range-base", base == o.a ? "base" : "other");
    CALLO(cuMemGetAddressRange, "random", (&base, &size, 0x1000), OUT_C(base), OUT_C(size));
    CALLO(cuMemAllocPitch, "old-context", (&p, &pitch, 100, 2, 4), OUT_C(p), OUT_U(pitch));
    CALLO(cuMemAllocPitch, "bad-element", (&p, &pitch, 100, 2, 3), OUT_C(p), OUT_U(pitch));
    CALLO(cuMemAllocHost, "old-context", (&host, N), OUT_C(host));
    CALLO(cuMemHostGetDevicePointer, "old-context", (&p, host, 0), OUT_C(p));
    CALLO(cuMemHostAlloc, "old-context", (&host, N, CU_MEMHOSTALLOC_DEVICEMAP), OUT_C(host));
    CALLO(cuMemHostGetDevicePointer, "old-context-mapped", (&p, host, 0), OUT_C(p));
    CALLO(cuMemHostGetDevicePointer, "plain-memory", (&p, o.host, 0), OUT_C(p));
    CALLO(cuMemAlloc_v2, "old-context", (&wide, N), OUT_C(wide));
    CALLO(cuMemGetAddressRange_v2, "old-context", (&wide, &bytes, o.a), OUT_C(wide), OUT_U(bytes));
    CALLO(cuDeviceTotalMem, "bad-device", (&size, 99), OUT_C(size));
    CALL(cuDeviceTotalMem, "null-out", (NULL, 0));
    CALL(cuMemFree, "old-context", (o.a));
    CALL(cuMemFree, "twice", (o.a));
    CALL(cuMemFree, "random", (0x1000));
    CALL(cuMemFree, "null", (0));
}

SCENARIO(copies, "old/copies") {
    old o = make_old();
    memset(o.host, 7, N);
    SETUP(cuStreamCreate, (&o.s, 0));
    CALL(cuMemcpyHtoD, "old-context", (o.a, o.host, N));
    CALL(cuMemcpyDtoD, "old-context", (o.b, o.a, N));
    memset(o.host, 0, N);
    CALL(cuMemcpyDtoH, "old-context", (o.host, o.b, N));
    par_see("content", "%d", o.host[N - 1]);
    CALL(cuMemcpyHtoDAsync, "old-context", (o.a, o.host, N, o.s));
    CALL(cuMemcpyDtoDAsync, "old-context", (o.b, o.a, N, o.s));
    CALL(cuMemcpyDtoHAsync, "old-context", (o.host, o.b, N, o.s));
    CALL(cuMemcpyHtoD, "random", (0x1000, o.host, 16));
    CALL(cuMemcpyDtoH, "random", (o.host, 0x1000, 16));
    CALL(cuMemcpyDtoD, "random", (o.a, 0x1000, 16));
    CALL(cuMemcpyHtoD, "one-past-end", (o.a, o.host, N + 1));
    CALL(cuMemcpyHtoDAsync, "random", (0x1000, o.host, 16, o.s));
    CALL(cuMemcpyDtoHAsync, "random", (o.host, 0x1000, 16, o.s));
    CALL(cuMemcpyDtoDAsync, "random", (o.a, 0x1000, 16, o.s));
    CALL(cuCtxSynchronize, "after", ());
}

SCENARIO(sets, "old/sets") {
    old o = make_old();
    CALL(cuMemsetD8, "old-context", (o.a, 1, N));
    CALL(cuMemsetD16, "old-context", (o.a, 0x202, N / 2));
    CALL(cuMemsetD32, "old-context", (o.a, 0x3030303, N / 4));
    CALL(cuMemsetD2D8, "old-context", (o.a, 128, 1, 64, 8));
    CALL(cuMemsetD2D16, "old-context", (o.a, 128, 1, 32, 8));
    CALL(cuMemsetD2D32, "old-context", (o.a, 128, 1, 16, 8));
    CALL(cuMemsetD8, "random", (0x1000, 1, 16));
    CALL(cuMemsetD16, "misaligned", (o.a + 1, 1, 16));
    CALL(cuMemsetD32, "misaligned", (o.a + 2, 1, 16));
    CALL(cuMemsetD2D8, "pitch-below-width", (o.a, 32, 1, 64, 8));
    CALL(cuMemsetD2D16, "misaligned", (o.a + 1, 128, 1, 32, 8));
    CALL(cuMemsetD2D32, "one-past-end", (o.a, 128, 1, 16, 33));
    CALL(cuCtxSynchronize, "after", ());
}

static CUDA_MEMCPY2D_v1 plane(const old *o) {
    return (CUDA_MEMCPY2D_v1){FROM_HOST(o->host), .srcPitch = 64, TO_DEVICE(o->a), .dstPitch = 128,
                              EXTENT(32, 8)};
}

static CUDA_MEMCPY3D_v1 box(const old *o) {
    return (CUDA_MEMCPY3D_v1){FROM_HOST(o->host), .srcPitch = 64, .srcHeight = 4,
                              TO_DEVICE(o->a),    .dstPitch = 64, .dstHeight = 8,
                              EXTENT_3D(32, 4, 2)};
}

SCENARIO(planes, "old/planes") {
    old o = make_old();
    CUDA_MEMCPY2D_v1 flat = plane(&o);
    CUDA_MEMCPY3D_v1 deep = box(&o);
    SETUP(cuStreamCreate, (&o.s, 0));
    CALL(cuMemcpy2D, "old-context", (&flat));
    CALL(cuMemcpy2DUnaligned, "old-context", (&flat));
    CALL(cuMemcpy2DAsync, "old-context", (&flat, o.s));
    CALL(cuMemcpy3D, "old-context", (&deep));
    CALL(cuMemcpy3DAsync, "old-context", (&deep, o.s));
    flat.dstPitch = 16;
    deep.dstPitch = 16;
    CALL(cuMemcpy2D, "pitch-below-width", (&flat));
    CALL(cuMemcpy2DUnaligned, "pitch-below-width", (&flat));
    CALL(cuMemcpy2DAsync, "pitch-below-width", (&flat, o.s));
    CALL(cuMemcpy3D, "pitch-below-width", (&deep));
    CALL(cuMemcpy3DAsync, "pitch-below-width", (&deep, o.s));
    CALL(cuStreamSynchronize, "after", (o.s));
}

/* In a context of today: nothing in it has an address of 32 bits. */
SCENARIO(planes_today, "old/planes-today", par_context) {
    old o = {0};
    o.host = calloc(2, N);
    o.s = par_stream();
    CUDA_MEMCPY2D_v1 flat = plane(&o);
    CUDA_MEMCPY3D_v1 deep = box(&o);
    CALL(cuMemcpy2D, "v1", (&flat));
    CALL(cuMemcpy2DUnaligned, "v1", (&flat));
    CALL(cuMemcpy2DAsync, "v1", (&flat, o.s));
    CALL(cuMemcpy3D, "v1", (&deep));
    CALL(cuMemcpy3DAsync, "v1", (&deep, o.s));
    flat.dstMemoryType = CU_MEMORYTYPE_HOST;
    flat.dstHost = o.host + N;
    deep.dstMemoryType = CU_MEMORYTYPE_HOST;
    deep.dstHost = o.host + N;
    CALL(cuMemcpy2D, "v1-host-host", (&flat));
    CALL(cuMemcpy3D, "v1-host-host", (&deep));
}

SCENARIO(contexts_today, "old/contexts-today") {
    CUdeviceptr d;
    CUstream s;
    old o = make_old();
    (void)o;
    CALLO(cuStreamCreate, "old-context", (&s, 0), OUT_C(s));
    CALLO(cuMemAllocAsync, "old-context", (&d, N, NULL), OUT_C(d));
    CALLO(cuMemAddressReserve, "old-context", (&d, PAR_2M, 0, 0, 0), OUT_C(d));
    CALL(cuCtxSynchronize, "old-context", ());
    CALL(cuCtxDestroy, "old-context", (o.ctx));
    CALL(cuCtxSynchronize, "old-context-destroyed", ());
}

/* What of today's API answers in an old context, about memory of that time and of this. */
SCENARIO(mixed, "old/mixed") {
    CUdeviceptr wide, managed;
    CUstream s;
    CUevent e;
    CUcontext primary;
    size_t bytes, total;
    unsigned version, freed, all, value = 0;
    void *host, *pinned;
    old o = make_old();
    memset(o.host, 3, N);
    par_see("range", "%s", o.a != 0 && o.b != 0 && o.a % 512 == 0 ? "aligned" : "other");
    CALLO(cuCtxGetApiVersion, "old-context", (o.ctx, &version), OUT_U(version));
    CALLO(cuCtxGetApiVersion, "old-context-null", (NULL, &version), OUT_U(version));
    CALLO(cuMemAlloc_v2, "old-context", (&wide, N), OUT_C(wide));
    CALLO(cuMemAllocPitch_v2, "old-context", (&wide, &bytes, 64, 4, 4), OUT_C(wide));
    CALLO(cuMemAllocManaged, "old-context", (&managed, N, CU_MEM_ATTACH_GLOBAL), OUT_C(managed));
    CALLO(cuMemGetInfo_v2, "old-context", (&bytes, &total), OUT_C(bytes), OUT_C(total));
    SETUP(cuMemGetInfo, (&freed, &all));
    par_see("total", "%s", all == 0xffffffffu ? "clamped" : all == 0 ? "zero" : "other");
    CALLO(cuMemHostAlloc, "old-context", (&pinned, N, CU_MEMHOSTALLOC_DEVICEMAP), OUT_C(pinned));
    CALLO(cuMemHostGetDevicePointer_v2, "old-context", (&wide, pinned, 0), OUT_C(wide));
    CALLO(cuMemAllocHost_v2, "old-context", (&host, N), OUT_C(host));
    CALL(cuMemFreeHost, "old-context", (host));
    CALL(cuMemHostRegister_v2, "old-context", (o.host, N, 0));
    CALL(cuMemHostUnregister, "old-context", (o.host));
    CALL(cuMemcpyHtoD_v2, "old-context", (o.a, o.host, 16));
    CALL(cuMemcpyDtoH_v2, "old-context", (o.host, o.a, 16));
    CALL(cuMemcpyDtoD_v2, "old-context", (o.b, o.a, 16));
    CALL(cuMemcpy, "old-context", (o.b, o.a, 16));
    CALL(cuMemsetD8_v2, "old-context", (o.a, 9, 16));
    CALL(cuMemsetD32_v2, "old-context", (o.a, 9, 4));
    CALL(cuMemFree_v2, "old-context", (o.b));
    CALL(cuMemFree_v2, "old-context-null", (0));
    CALLO(cuStreamCreate, "old-context", (&s, 0), OUT_C(s));
    CALLO(cuEventCreate, "old-context", (&e, 0), OUT_C(e));
    CALL(cuMemcpyAsync, "old-context", (o.b, o.a, 16, s));
    CALL(cuMemcpyHtoDAsync_v2, "old-context", (o.a, pinned, 16, s));
    CALL(cuMemsetD8Async, "old-context", (o.a, 9, 16, s));
    CALL(cuMemcpyDtoH, "old-context", (&value, o.a, 4));
    par_see("content", "0x%x", value);
    CALL(cuEventRecord, "old-context", (e, s));
    CALL(cuStreamSynchronize, "old-context", (s));
    CALLO(cuPointerGetAttribute, "old-context", (&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, o.a),
          OUT_U(value));
    CALLO(cuMemAllocAsync, "old-context", (&wide, N, s), OUT_C(wide));
    CALL(cuMemsetD8Async, "old-context-pool", (wide, 1, 16, s));
    CALL(cuMemFreeAsync, "old-context-pool", (wide, s));
    SETUP(cuDevicePrimaryCtxRetain, (&primary, 0));
    SETUP(cuCtxPushCurrent_v2, (primary));
    CALL(cuMemcpyDtoH_v2, "old-memory-today", (o.host, o.a, 16));
    CALL(cuMemsetD8_v2, "old-memory-today", (o.a, 5, 16));
    CALLO(cuMemGetAddressRange_v2, "old-memory-today", (&wide, &bytes, o.a), OUT_C(wide),
          OUT_U(bytes));
    CALL(cuMemcpyDtoH, "old-memory-today", (o.host, o.a, 16));
    CALL(cuMemFree, "old-memory-today", (o.a));
    CALL(cuMemsetD8, "old-memory-today", (o.a, 5, 16));
    SETUP(cuMemAlloc_v2, (&wide, N));
    SETUP(cuCtxPopCurrent_v2, (NULL));
    CALL(cuMemcpyDtoD, "truncated", (o.a, (CUdeviceptr_v1)wide, 16));
    CALL(cuMemcpy, "todays-memory", (o.a, wide, 16));
    CALL(cuMemFree_v2, "todays-memory", (wide));
    CALL(cuMemFree, "end", (o.a));
}

SCENARIO(contents, "old/contents") {
    unsigned pitch, i, sum = 0;
    CUdeviceptr_v1 p;
    old o = make_old();
    for (i = 0; i < N; i++)
        o.host[i] = (char)i;
    CUDA_MEMCPY2D_v1 flat = plane(&o);
    CUDA_MEMCPY3D_v1 deep = box(&o);
    SETUP(cuStreamCreate, (&o.s, 0));
    CALL(cuMemsetD8, "ok", (o.a, 0x55, N));
    CALL(cuMemcpy2D, "ok", (&flat));
    CALL(cuMemcpyDtoH, "ok", (o.host + N, o.a, N));
    for (i = 0; i < N; i++)
        sum = sum * 31 + (unsigned char)o.host[N + i];
    par_see("sum", "0x%x", sum);
    CALL(cuMemcpy3D, "ok", (&deep));
    CALL(cuMemcpyDtoH, "ok", (o.host + N, o.a, N));
    for (sum = 0, i = 0; i < N; i++)
        sum = sum * 31 + (unsigned char)o.host[N + i];
    par_see("sum", "0x%x", sum);
    CALL(cuMemsetD16, "ok", (o.a, 0x1234, N / 2));
    CALL(cuMemsetD32, "ok", (o.a + 64, 0x89abcdef, 16));
    CALL(cuMemsetD2D8, "ok", (o.a + 256, 64, 1, 16, 4));
    CALL(cuMemsetD2D16, "ok", (o.a + 512, 64, 0x202, 16, 4));
    CALL(cuMemsetD2D32, "ok", (o.a + 1024, 128, 0x3030303, 16, 4));
    CALL(cuMemcpyDtoHAsync, "ok", (o.host + N, o.a, N, o.s));
    CALL(cuStreamSynchronize, "ok", (o.s));
    for (sum = 0, i = 0; i < N; i++)
        sum = sum * 31 + (unsigned char)o.host[N + i];
    par_see("sum", "0x%x", sum);
    CALLO(cuMemAllocPitch, "wide", (&p, &pitch, 1000, 3, 16), OUT_C(p), OUT_U(pitch));
    CALLO(cuMemAllocPitch, "zero-height", (&p, &pitch, 1000, 0, 4), OUT_C(p), OUT_U(pitch));
    CALL(cuMemsetD8, "zero", (o.a, 1, 0));
    CALL(cuMemcpyHtoD, "zero", (o.a, o.host, 0));
    CALL(cuMemcpyHtoD, "null-host", (o.a, NULL, 16));
    CALL(cuMemcpy2D, "null", (NULL));
    CALL(cuMemHostGetDevicePointer, "null-out", (NULL, o.host, 0));
    CALL(cuMemAllocHost, "null-out", (NULL, N));
    CALL(cuMemGetAddressRange, "null-both", (NULL, NULL, o.a));
}

SCENARIO(arrays, "old/arrays") {
    CUDA_ARRAY_DESCRIPTOR_v1 descriptor = {16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1}, got;
    CUarray array = NULL;
    old o = make_old();
    memset(o.host, 6, N);
    CALLO(cuArrayCreate, "old-context", (&array, &descriptor), OUT_C(array));
    CALLO(cuArrayGetDescriptor, "old-context", (&got, array), OUT_U(got.Width), OUT_U(got.Height));
    CALL(cuMemcpyHtoA, "old-context", (array, 0, o.host, 16));
    CALL(cuMemcpyAtoD, "old-context", (o.a, array, 0, 16));
    CALL(cuMemcpyDtoH, "old-context", (o.host + N, o.a, 16));
    par_see("content", "%d", o.host[N]);
    CALL(cuMemcpyAtoH, "old-context", (o.host + N, array, 16, 16));
    CALL(cuMemcpyDtoA, "old-context", (array, 0, o.a, 16));
    CALL(cuMemcpyAtoA, "old-context", (array, 16, array, 0, 16));
    CALL(cuMemcpyHtoAAsync, "old-context", (array, 0, o.host, 16, NULL));
    CALL(cuMemcpyAtoHAsync, "old-context", (o.host, array, 0, 16, NULL));
    CALL(cuArrayDestroy, "old-context", (array));
}
