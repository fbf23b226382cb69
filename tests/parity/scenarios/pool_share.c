/* Memory pools between processes: handles of pools, exported pointers. */
#include "../parity.h"

static CUmemoryPool make_pool(int handle_type) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location.type = CU_MEM_LOCATION_TYPE_DEVICE,
                            .handleTypes = (CUmemAllocationHandleType)handle_type};
    CUmemoryPool pool = par_pool(&props);
    return pool;
}

SCENARIO(export_types, "pool-share/export-types", par_context) {
    CUmemoryPool plain, shared, fallback;
    int fd;
    plain = make_pool(0);
    shared = make_pool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    SETUP(cuDeviceGetDefaultMemPool, (&fallback, 0));
#define EXPORT(cls, pool, type, flags)                                                             \
    CALLO(cuMemPoolExportToShareableHandle, cls, (&fd, pool, type, flags), OUT_D(fd))
    EXPORT("ok", shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    EXPORT("again", shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    EXPORT("not-exportable", plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    EXPORT("default-pool", fallback, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    EXPORT("type-none", shared, CU_MEM_HANDLE_TYPE_NONE, 0);
    EXPORT("type-win32", shared, CU_MEM_HANDLE_TYPE_WIN32, 0);
    EXPORT("type-fabric", shared, CU_MEM_HANDLE_TYPE_FABRIC, 0);
    EXPORT("bad-flags", shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1);
    EXPORT("null-pool", NULL, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    CALL(cuMemPoolExportToShareableHandle, "null-out",
         (NULL, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
}

SCENARIO(export_pointers, "pool-share/export-pointers", par_context) {
    CUmemPoolPtrExportData data;
    CUmemoryPool plain = make_pool(0);
    CUmemoryPool shared = make_pool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CUdeviceptr p = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, 4096, plain, NULL);
    CUdeviceptr q = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, 4096, shared, NULL);
    CALLO(cuMemPoolExportPointer, "ok", (&data, q), OUT_C(data));
    CALLO(cuMemPoolExportPointer, "interior", (&data, q + 256), OUT_C(data));
    CALLO(cuMemPoolExportPointer, "not-exportable", (&data, p), OUT_C(data));
    CALLO(cuMemPoolExportPointer, "plain-allocation", (&data, par_alloc(4096)), OUT_C(data));
    CALLO(cuMemPoolExportPointer, "null", (&data, 0), OUT_C(data));
    CALLO(cuMemPoolExportPointer, "random", (&data, 0x1000), OUT_C(data));
    CALL(cuMemPoolExportPointer, "null-out", (NULL, q));
    SETUP(cuMemFreeAsync, (q, NULL));
    SETUP(cuCtxSynchronize, ());
    CALLO(cuMemPoolExportPointer, "freed", (&data, q), OUT_C(data));
}

SCENARIO(import_here, "pool-share/import-here", par_context) {
    CUmemoryPool shared, imported;
    CUdeviceptr p, q;
    shared = make_pool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    NAME(shared);
    int fd = PAR_MADE(int, cuMemPoolExportToShareableHandle, shared,
                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    SETUP(cuMemAllocFromPoolAsync, (&p, 4096, shared, NULL));
    CUmemPoolPtrExportData data = PAR_MADE(CUmemPoolPtrExportData, cuMemPoolExportPointer, p);
    NAME(p);
    CALLO(cuMemPoolImportFromShareableHandle, "same-process",
          (&imported, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          OUT_H(imported));
    CALLO(cuMemPoolImportPointer, "same-process", (&q, imported, &data), OUT_P(q));
    CALLO(cuMemPoolImportPointer, "into-exporter", (&q, shared, &data), OUT_P(q));
}

SCENARIO(import_bad, "pool-share/import-bad", par_context) {
    CUmemoryPool pool;
    CUdeviceptr p;
    int ends[2];
    CUmemPoolPtrExportData zero = {0};
    if (pipe(ends) != 0)
        return;
#define IMPORT(cls, handle, type, flags)                                                           \
    CALLO(cuMemPoolImportFromShareableHandle, cls,                                                 \
          (&pool, (void *)(intptr_t)(handle), type, flags), OUT_H(pool))
    IMPORT("bad-fd", 9999, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    IMPORT("negative-fd", -1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    IMPORT("pipe-fd", ends[0], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    IMPORT("bad-flags", ends[0], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1);
    IMPORT("type-none", ends[0], CU_MEM_HANDLE_TYPE_NONE, 0);
    IMPORT("type-win32", ends[0], CU_MEM_HANDLE_TYPE_WIN32, 0);
    CALL(cuMemPoolImportFromShareableHandle, "null-out",
         (NULL, (void *)(intptr_t)ends[0], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    pool = make_pool(0);
    CALLO(cuMemPoolImportPointer, "not-imported-pool", (&p, pool, &zero), OUT_P(p));
    CALLO(cuMemPoolImportPointer, "null-pool", (&p, NULL, &zero), OUT_P(p));
    CALL(cuMemPoolImportPointer, "null-out", (NULL, pool, &zero));
    CALLO(cuMemPoolImportPointer, "null-data", (&p, pool, NULL), OUT_P(p));
}

typedef struct message {
    CUmemPoolPtrExportData data;
} message;

SCENARIO(to_peer, "pool-share/to-peer") {
    message m;
    char answer;
    unsigned word = 0;
    int fd, peer = par_spawn("pool-import");
    par_context();
    CUmemoryPool pool = make_pool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CUdeviceptr p = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, PAR_2M, pool, NULL);
    SETUP(cuMemsetD32_v2, (p, 0x31323334, 64));
    SETUP(cuCtxSynchronize, ());
    SETUP(cuMemPoolExportToShareableHandle,
          (&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    SETUP(cuMemPoolExportPointer, (&m.data, p));
    par_send(peer, &m, sizeof(m), fd);
    close(fd);
    par_receive(peer, &answer, 1, NULL);
    CALL(cuMemcpyDtoH_v2, "written-by-peer", (&word, p, 4));
    par_see("content", "0x%08x", word);
    CALL(cuMemFreeAsync, "freed-by-peer", (p, NULL));
    CALL(cuCtxSynchronize, "ok", ());
    CALL(cuMemPoolDestroy, "imported-by-peer", (pool));
    par_send(peer, "d", 1, -1);
    par_join();
}

HELPER(helper_import, "pool-import") {
    CUmemoryPool pool;
    CUdeviceptr p, q;
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUmemAccess_flags flags;
    message m;
    uint64_t value = 0;
    unsigned word = 0, mine = 0x41424344;
    char byte;
    int fd;
    par_record_start("pool-share/to-peer:peer");
    par_context();
    if (!par_receive(par.peer_fd, &m, sizeof(m), &fd))
        return;
    CALLO(cuMemPoolImportFromShareableHandle, "other-process",
          (&pool, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_H(pool));
    CALLO(cuMemPoolGetAccess, "imported", (&flags, pool, &access.location), OUT_I(flags));
    CALLO(cuMemPoolImportPointer, "ok", (&p, pool, &m.data), OUT_R(p, PAR_2M));
    CALLO(cuMemPoolImportPointer, "twice", (&q, pool, &m.data), OUT_P(q));
    CALL(cuMemPoolSetAccess, "imported", (pool, &access, 1));
    CALL(cuMemcpyDtoH_v2, "imported", (&word, p, 4));
    par_see("content", "0x%08x", word);
    CALL(cuMemcpyHtoD_v2, "imported", (p, &mine, 4));
    CALLO(cuMemAllocFromPoolAsync, "imported-pool", (&q, 4096, pool, NULL), OUT_P(q));
    CALLO(cuMemPoolGetAttribute, "imported-pool", (pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value),
          OUT_U(value));
    CALL(cuMemPoolSetAttribute, "imported-pool", (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    CALL(cuMemPoolTrimTo, "imported-pool", (pool, 0));
    CALLO(cuMemPoolExportToShareableHandle, "imported-pool",
          (&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_D(fd));
    CALLO(cuMemPoolExportPointer, "imported", (&m.data, p), OUT_C(m.data));
    CALL(cuDeviceSetMemPool, "imported-pool", (0, pool));
    CALL(cuMemFreeAsync, "imported", (p, NULL));
    CALL(cuMemFreeAsync, "imported-twice", (p, NULL));
    CALL(cuCtxSynchronize, "ok", ());
    par_send(par.peer_fd, "w", 1, -1);
    if (par_receive(par.peer_fd, &byte, 1, NULL))
        CALL(cuMemPoolDestroy, "imported-pool", (pool));
}
