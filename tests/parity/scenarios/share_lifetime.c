/* Sharing with another process, further: host memory by descriptor, imports twice, order of
 * leaving. */
#include "../parity.h"

static CUmemAllocationProp numa_prop(void) {
    CUmemAllocationProp prop = par_device_prop();
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    prop.location.id = 0;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return prop;
}

SCENARIO(numa_here, "share/numa-here", par_context) {
    CUmemAllocationProp prop = numa_prop(), got;
    CUmemGenericAllocationHandle h, imported;
    int fd = -1;
    CALLO(cuMemCreate, "host-numa-fd", (&h, PAR_2M, &prop, 0), OUT_H(h));
    CALLO(cuMemExportToShareableHandle, "host-numa",
          (&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_D(fd));
    CALLO(cuMemImportFromShareableHandle, "host-numa",
          (&imported, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
          OUT_C(imported));
    CALLO(cuMemGetAllocationPropertiesFromHandle, "host-numa-imported", (&got, imported),
          OUT_I(got.type), OUT_I(got.requestedHandleTypes), OUT_I(got.location.type),
          OUT_I(got.location.id));
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
    CALLO(cuMemCreate, "host-fd", (&h, PAR_2M, &prop, 0), OUT_H(h));
}

static CUmemoryPool make_pool(CUmemLocationType location) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location.type = location};
    CUmemoryPool pool = par_pool(&props);
    return pool;
}

SCENARIO(numa_pool, "share/numa-pool", par_context) {
    CUmemoryPool pool, imported;
    CUmemPoolPtrExportData data;
    CUdeviceptr p;
    int fd = -1;
    pool = make_pool(CU_MEM_LOCATION_TYPE_HOST_NUMA);
    CALLO(cuMemPoolExportToShareableHandle, "host-numa",
          (&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_D(fd));
    CALLO(cuMemAllocFromPoolAsync, "host-numa-shared", (&p, 4096, pool, NULL), OUT_P(p));
    CALLO(cuMemPoolExportPointer, "host-numa", (&data, p), OUT_C(data));
    CALLO(cuMemPoolImportFromShareableHandle, "host-numa-same-process",
          (&imported, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          OUT_H(imported));
}

typedef struct message {
    CUmemPoolPtrExportData a, b;
    CUipcMemHandle ipc;
    CUipcEventHandle event;
} message;

static char wait_for(int fd) {
    char byte = 0;
    par_receive(fd, &byte, 1, NULL);
    return byte;
}

/* The exporter frees and destroys while the importer still holds everything. */
SCENARIO(exporter_leaves, "share/exporter-leaves") {
    CUdeviceptr a, b, plain;
    int fd = -1, peer = par_spawn("exporter-leaves");
    par_context();
    message m = {0};
    CUmemoryPool pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE);
    SETUP(cuMemAllocFromPoolAsync, (&a, 4096, pool, NULL));
    SETUP(cuMemAllocFromPoolAsync, (&b, PAR_2M, pool, NULL));
    SETUP(cuMemsetD32_v2, (a, 0x0a0a0a0a, 16));
    SETUP(cuMemsetD32_v2, (b, 0x0b0b0b0b, 16));
    plain = par_alloc(PAR_2M);
    SETUP(cuMemsetD32_v2, (plain, 0x0c0c0c0c, 16));
    CUevent e = par_event(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    SETUP(cuCtxSynchronize, ());
    SETUP(cuMemPoolExportToShareableHandle,
          (&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    SETUP(cuMemPoolExportPointer, (&m.a, a));
    SETUP(cuMemPoolExportPointer, (&m.b, b));
    SETUP(cuIpcGetMemHandle, (&m.ipc, plain));
    SETUP(cuIpcGetEventHandle, (&m.event, e));
    par_send(peer, &m, sizeof(m), fd);
    close(fd);
    wait_for(peer); /* all imported */
    CALL(cuEventDestroy_v2, "opened-by-peer", (e));
    CALL(cuMemFree_v2, "opened-by-peer", (plain));
    CALL(cuMemFreeAsync, "imported-by-peer", (a, NULL));
    CALL(cuMemPoolDestroy, "imported-by-peer-live", (pool));
    CALL(cuCtxSynchronize, "ok", ());
    par_send(peer, "f", 1, -1);
    wait_for(peer);
    CALL(cuMemFreeAsync, "pool-destroyed", (b, NULL));
    par_send(peer, "d", 1, -1);
    par_join();
}

static void read_word(const char *cls, CUdeviceptr p) {
    unsigned word = 0;
    CALL(cuMemcpyDtoH_v2, cls, (&word, p, 4));
    if (par_last() == CUDA_SUCCESS)
        par_see("content", "%s 0x%08x", cls, word);
}

HELPER(helper_exporter_leaves, "exporter-leaves") {
    CUmemoryPool pool, again;
    CUdeviceptr a, b, plain;
    CUevent e;
    message m;
    int fd = -1;
    par_record_start("share/exporter-leaves:peer");
    par_context();
    if (!par_receive(par.peer_fd, &m, sizeof(m), &fd))
        return;
    CALLO(cuMemPoolImportFromShareableHandle, "first",
          (&pool, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_H(pool));
    CALLO(cuMemPoolImportFromShareableHandle, "second",
          (&again, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          OUT_H(again));
    CALLO(cuMemPoolImportPointer, "first-block", (&a, pool, &m.a), OUT_P(a));
    CALLO(cuMemPoolImportPointer, "second-block", (&b, pool, &m.b), OUT_P(b));
    CALLO(cuIpcOpenMemHandle_v2, "first", (&plain, m.ipc, 1), OUT_P(plain));
    CALLO(cuIpcOpenEventHandle, "first", (&e, m.event), OUT_H(e));
    read_word("pool-live", a);
    read_word("plain-live", plain);
    par_send(par.peer_fd, "i", 1, -1);
    wait_for(par.peer_fd);
    /* What the exporter has freed is undefined to read; what it has not freed is not. */
    read_word("pool-destroyed-block-live", b);
    CALL(cuEventQuery, "exporter-destroyed", (e));
    CALL(cuEventRecord, "exporter-destroyed", (e, NULL));
    CALL(cuEventSynchronize, "exporter-destroyed", (e));
    CALL(cuEventDestroy_v2, "exporter-destroyed", (e));
    CALL(cuIpcCloseMemHandle, "exporter-freed", (plain));
    CALL(cuMemFreeAsync, "exporter-freed", (a, NULL));
    CALL(cuMemFreeAsync, "before-exporter", (b, NULL));
    CALL(cuCtxSynchronize, "ok", ());
    CALL(cuMemPoolDestroy, "exporter-destroyed", (pool));
    par_send(par.peer_fd, "c", 1, -1);
    wait_for(par.peer_fd);
}

/* The exporter ends without a word; descriptors and addresses stay good. */
SCENARIO(exporter_ends, "share/exporter-ends") {
    CUmemGenericAllocationHandle h;
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    char byte;
    int fd = -1, peer = par_spawn("exporter-ends");
    par_context();
    if (!par_receive(peer, &byte, 1, &fd)) {
        par_see("setup", "SETUP_FAILED receive");
        return;
    }
    par_join(); /* the exporter has ended */
    CALLO(cuMemImportFromShareableHandle, "exporter-ended",
          (&h, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), OUT_H(h));
    if (par_last() != CUDA_SUCCESS)
        return;
    CUdeviceptr a = par_reserve(PAR_2M);
    CALL(cuMemMap, "exporter-ended", (a, PAR_2M, 0, h, 0));
    CALL(cuMemSetAccess, "exporter-ended", (a, PAR_2M, &access, 1));
    read_word("exporter-ended", a);
    CALL(cuMemUnmap, "ok", (a, PAR_2M));
    CALL(cuMemRelease, "ok", (h));
}

HELPER(helper_exporter_ends, "exporter-ends") {
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    int fd = -1;
    par_context();
    CUmemGenericAllocationHandle h = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CUdeviceptr a = par_reserve(PAR_2M);
    SETUP(cuMemMap, (a, PAR_2M, 0, h, 0));
    SETUP(cuMemSetAccess, (a, PAR_2M, &access, 1));
    SETUP(cuMemsetD32_v2, (a, 0x0d0d0d0d, 16));
    SETUP(cuCtxSynchronize, ());
    SETUP(cuMemExportToShareableHandle, (&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    par_send(par.peer_fd, "x", 1, fd);
}

/* One descriptor imported twice, both mapped; closing one handle does not take the other. */
SCENARIO(imports_twice, "share/imports-twice", par_context) {
    CUmemGenericAllocationHandle h, i, j;
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    int fd = -1;
    h = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    SETUP(cuMemExportToShareableHandle, (&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    SETUP(cuMemImportFromShareableHandle,
          (&i, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    SETUP(cuMemImportFromShareableHandle,
          (&j, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    par_see("handles", "%s %s", i == j ? "imports-equal" : "imports-differ",
            i == h ? "first-is-original" : "first-is-new");
    CUdeviceptr a = par_reserve(PAR_2M);
    CUdeviceptr b = par_reserve(PAR_2M);
    CALL(cuMemMap, "first-import", (a, PAR_2M, 0, i, 0));
    CALL(cuMemMap, "second-import", (b, PAR_2M, 0, j, 0));
    SETUP(cuMemSetAccess, (a, PAR_2M, &access, 1));
    CALL(cuMemSetAccess, "second-import", (b, PAR_2M, &access, 1));
    SETUP(cuMemsetD32_v2, (a, 0x0e0e0e0e, 16));
    read_word("second-import", b);
    CALL(cuMemRelease, "original", (h));
    CALL(cuMemRelease, "first-import", (i));
    CALL(cuMemUnmap, "first-import", (a, PAR_2M));
    read_word("first-import-gone", b);
    CALL(cuMemRelease, "second-import", (j));
    CALL(cuMemUnmap, "second-import", (b, PAR_2M));
    CALLO(cuMemImportFromShareableHandle, "all-gone-descriptor-open",
          (&i, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), OUT_H(i));
    close(fd);
    CALLO(cuMemImportFromShareableHandle, "descriptor-closed",
          (&i, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), OUT_H(i));
}

/* Opening and closing a handle's memory again and again gives the same address? */
SCENARIO(ipc_reopens, "share/ipc-reopens") {
    int peer = par_spawn("ipc-reopens");
    par_context();
    message m = {0};
    CUdeviceptr p = par_alloc(4096);
    CUdeviceptr interior = par_alloc(4096);
    SETUP(cuMemsetD32_v2, (interior, 0x0f0f0f0f, 16));
    SETUP(cuCtxSynchronize, ());
    SETUP(cuIpcGetMemHandle, (&m.ipc, interior));
    par_send(peer, &m, sizeof(m), -1);
    wait_for(peer);
    CALL(cuIpcCloseMemHandle, "own-memory", (p));
    par_join();
}

HELPER(helper_ipc_reopens, "ipc-reopens") {
    CUdeviceptr p = 0, first = 0, base;
    size_t size;
    message m;
    par_record_start("share/ipc-reopens:peer");
    par_context();
    if (!par_receive(par.peer_fd, &m, sizeof(m), NULL))
        return;
    for (int turn = 0; turn < 3; turn++) {
        CALLO(cuIpcOpenMemHandle_v2, "small-allocation", (&p, m.ipc, 1), OUT_C(p));
        if (par_last() != CUDA_SUCCESS)
            break;
        par_see("same-address", "%s", turn == 0 ? "first" : p == first ? "yes" : "no");
        first = p;
        read_word("small-allocation", p);
        CALLO(cuMemGetAddressRange_v2, "small-allocation", (&base, &size, p), OUT_C(base),
              OUT_U(size));
        par_see("base", "%s", base == p ? "at-the-pointer" : "before-it");
        CALL(cuIpcCloseMemHandle, "ok", (p));
        CALL(cuIpcCloseMemHandle, "closed", (p));
    }
    par_send(par.peer_fd, "e", 1, -1);
}
