/*
 * Pools between processes, once more: of host memory, what the driver tells of imported pools and
 * pointers, what becomes of descriptors, and an import beside the free of the one before. Both
 * sides are one process, which an H200 takes (pool-share/import-here).
 */
#include "../parity.h"

#include <fcntl.h>

static CUmemoryPool make_pool(CUmemLocationType location) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location.type = location,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
    CUmemoryPool pool = par_pool(&props);
    return pool;
}

static void see_pointer(CUdeviceptr p) {
    static const CUpointer_attribute asked[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,  CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,   CU_POINTER_ATTRIBUTE_MAPPED};
    CUdeviceptr base;
    size_t size;
    for (unsigned i = 0; i < COUNT(asked); i++) {
        unsigned long long value = 0;
        par_note("attribute=%d", (int)asked[i]);
        CALL(cuPointerGetAttribute, "imported-pointer", (&value, asked[i], p));
        if (par_last() == CUDA_SUCCESS)
            par_see("value", "%s", value == p ? "the address" : value ? "another" : "zero");
        if (par_last() == CUDA_SUCCESS && asked[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
            par_see("size", "%llu", value);
    }
    CALLO(cuMemGetAddressRange_v2, "imported-pointer", (&base, &size, p), OUT_P(base), OUT_U(size));
}

static void see_access(const char *cls, CUmemoryPool pool, CUmemLocationType type) {
    CUmemLocation where = {.type = type, .id = 0};
    CUmemAccess_flags flags;
    par_note("location=%d", (int)type);
    CALLO(cuMemPoolGetAccess, cls, (&flags, pool, &where), OUT_I(flags));
}

static void see_descriptor(const char *what, int fd) {
    par_see("descriptor", "%s %s", what, fcntl(fd, F_GETFD) < 0 ? "closed" : "open");
}

static void imported(CUmemLocationType location) {
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUmemoryPool pool;
    CUdeviceptr p, q;
    par_context();
    CUmemoryPool own = make_pool(location);
    int fd = PAR_MADE(int, cuMemPoolExportToShareableHandle, own,
                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    SETUP(cuMemPoolSetAccess, (own, &access, 1));
    SETUP(cuMemAllocFromPoolAsync, (&p, 10000, own, NULL));
    SETUP(cuMemsetD8_v2, (p, 0x37, 10000));
    CUmemPoolPtrExportData data = PAR_MADE(CUmemPoolPtrExportData, cuMemPoolExportPointer, p);
    CALLO(cuMemPoolImportFromShareableHandle, "imported",
          (&pool, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_H(pool));
    see_descriptor("imported", fd);
    see_access("imported", pool, CU_MEM_LOCATION_TYPE_DEVICE);
    see_access("imported", pool, CU_MEM_LOCATION_TYPE_HOST);
    see_access("imported", pool, CU_MEM_LOCATION_TYPE_HOST_NUMA);
    CALLO(cuMemPoolImportPointer, "imported", (&q, pool, &data), OUT_R(q, 10000));
    see_pointer(q);
    CALL(cuMemsetD8_v2, "imported-before-access", (q, 0x38, 16));
    CALL(cuMemPoolSetAccess, "imported", (pool, &access, 1));
    see_access("after-set", pool, CU_MEM_LOCATION_TYPE_DEVICE);
    CALL(cuMemsetD8_v2, "imported-after-access", (q, 0x39, 16));
    see_pointer(q);
    if (location != CU_MEM_LOCATION_TYPE_DEVICE)
        par_see("content", "%02x %02x", ((unsigned char *)(uintptr_t)p)[0],
                ((unsigned char *)(uintptr_t)q)[9999]);
    CALL(cuMemFree_v2, "imported", (q));
    CALL(cuMemPoolDestroy, "imported", (pool));
    close(fd);
}

SCENARIO_IS(device, "pool-import/device", imported(CU_MEM_LOCATION_TYPE_DEVICE));
SCENARIO_IS(host_numa, "pool-import/host-numa", imported(CU_MEM_LOCATION_TYPE_HOST_NUMA));

/* The free of an import waits in a held stream while the same is imported again. */
SCENARIO(beside_a_free, "pool-import/beside-a-free", par_context) {
    CUmemoryPool pool;
    CUdeviceptr p, q, again;
    CUmemoryPool own = make_pool(CU_MEM_LOCATION_TYPE_DEVICE);
    int fd = PAR_MADE(int, cuMemPoolExportToShareableHandle, own,
                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    SETUP(cuMemAllocFromPoolAsync, (&p, PAR_2M, own, NULL));
    CUmemPoolPtrExportData data = PAR_MADE(CUmemPoolPtrExportData, cuMemPoolExportPointer, p);
    SETUP(cuMemPoolImportFromShareableHandle,
          (&pool, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    SETUP(cuMemPoolImportPointer, (&q, pool, &data));
    NAME_R(q, PAR_2M);
    CUstream s = par_stream();
    par_hold(s);
    CALL(cuMemFreeAsync, "imported-held", (q, s));
    CALLO(cuMemPoolImportPointer, "beside-a-free", (&again, pool, &data), OUT_P(again));
    par_release();
    SETUP(cuStreamSynchronize, (s));
    CALL(cuMemsetD8_v2, "imported-again", (again, 1, 16));
    CALL(cuMemFreeAsync, "imported-again", (again, s));
    CALL(cuStreamSynchronize, "ok", (s));
    CALLO(cuMemPoolImportPointer, "after-a-free", (&again, pool, &data), OUT_C(again));
    close(fd);
}

SCENARIO(descriptors, "pool-import/descriptors", par_context) {
    CUmemoryPool pool;
    int ends[2];
    if (pipe(ends) != 0)
        return;
    CALLO(cuMemPoolImportFromShareableHandle, "pipe",
          (&pool, (void *)(intptr_t)ends[0], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          OUT_H(pool));
    see_descriptor("pipe", ends[0]);
}

/* The driver's own pool of host memory is opened to the device. */
SCENARIO(default_access, "pool-import/default-access", par_context) {
    CUmemLocation where = {.type = CU_MEM_LOCATION_TYPE_HOST};
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUmemoryPool pool;
    SETUP(cuMemGetMemPool, (&pool, &where, CU_MEM_ALLOCATION_TYPE_PINNED));
    CALL(cuMemPoolSetAccess, "default-host", (pool, &access, 1));
    see_access("default-host", pool, CU_MEM_LOCATION_TYPE_DEVICE);
    CUdeviceptr p = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, 4096, pool, NULL);
    CALL(cuMemsetD8Async, "default-host", (p, 7, 4096, NULL));
    CALL(cuStreamSynchronize, "ok", (NULL));
    CALL(cuMemFreeAsync, "default-host", (p, NULL));
}

/* Host memory for a captured stream, and for another while one captures. */
static void captured(CUstreamCaptureMode mode) {
    CUdeviceptr p;
    CUgraph graph;
    CUstreamCaptureStatus status;
    par_context();
    CUstream s = par_stream(), other = par_stream();
    CUmemoryPool pool = make_pool(CU_MEM_LOCATION_TYPE_HOST_NUMA);
    SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    par_note("mode=%d", (int)mode);
    CALL(cuThreadExchangeStreamCaptureMode, "host-pool", (&mode));
    CALLO(cuMemAllocFromPoolAsync, "beside-a-capture", (&p, 4096, pool, other), OUT_C(p));
    CALLO(cuStreamIsCapturing, "beside-a-capture", (s, &status), OUT_I(status));
    CALLO(cuMemAllocFromPoolAsync, "captured-host-pool", (&p, 4096, pool, s), OUT_C(p));
    CALLO(cuStreamIsCapturing, "captured-host-pool", (s, &status), OUT_I(status));
    CALLO(cuStreamEndCapture, "captured-host-pool", (s, &graph), OUT_C(graph));
}

SCENARIO_IS(captured_relaxed, "pool-import/captured-relaxed",
            captured(CU_STREAM_CAPTURE_MODE_RELAXED));
SCENARIO_IS(captured_global, "pool-import/captured-global",
            captured(CU_STREAM_CAPTURE_MODE_GLOBAL));
