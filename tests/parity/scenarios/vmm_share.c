/* Virtual memory between processes: export, import, in one process and in another. */
#include "../parity.h"

#include <fcntl.h>

SCENARIO(export_types, "vmm-share/export-types", par_context) {
    int fd;
    unsigned char fabric[64];
    CUmemGenericAllocationHandle plain = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
    CUmemGenericAllocationHandle fd_able =
        par_create(PAR_2M, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CALLO(cuMemExportToShareableHandle, "ok",
          (&fd, fd_able, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_D(fd));
    CALLO(cuMemExportToShareableHandle, "again",
          (&fd, fd_able, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_D(fd));
    CALLO(cuMemExportToShareableHandle, "not-exportable",
          (&fd, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_D(fd));
    CALLO(cuMemExportToShareableHandle, "type-none", (&fd, fd_able, CU_MEM_HANDLE_TYPE_NONE, 0),
          OUT_D(fd));
    CALLO(cuMemExportToShareableHandle, "type-win32", (&fd, fd_able, CU_MEM_HANDLE_TYPE_WIN32, 0),
          OUT_D(fd));
    CALLO(cuMemExportToShareableHandle, "type-fabric",
          (fabric, fd_able, CU_MEM_HANDLE_TYPE_FABRIC, 0), OUT_C(fabric));
    CALLO(cuMemExportToShareableHandle, "type-bad",
          (&fd, fd_able, (CUmemAllocationHandleType)64, 0), OUT_D(fd));
    CALLO(cuMemExportToShareableHandle, "bad-flags",
          (&fd, fd_able, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1), OUT_D(fd));
    CALL(cuMemExportToShareableHandle, "null-out",
         (NULL, fd_able, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CALLO(cuMemExportToShareableHandle, "zero-handle",
          (&fd, 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_D(fd));
    CALLO(cuMemExportToShareableHandle, "random-handle",
          (&fd, 0x12345, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_D(fd));
    SETUP(cuMemRelease, (fd_able));
    CALLO(cuMemExportToShareableHandle, "released-handle",
          (&fd, fd_able, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_D(fd));
}

SCENARIO(import_here, "vmm-share/import-here", par_context) {
    CUmemGenericAllocationHandle h, imported, again;
    CUmemAllocationProp prop;
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    unsigned word = 0;
    int fd;
    h = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    NAME(h);
    SETUP(cuMemExportToShareableHandle, (&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CALLO(cuMemImportFromShareableHandle, "same-process",
          (&imported, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
          OUT_H(imported));
    CALLO(cuMemImportFromShareableHandle, "again",
          (&again, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), OUT_H(again));
    CALLO(cuMemGetAllocationPropertiesFromHandle, "imported", (&prop, imported), OUT_I(prop.type),
          OUT_I(prop.requestedHandleTypes), OUT_I(prop.location.type), OUT_I(prop.location.id));
    CUdeviceptr a = par_reserve(PAR_2M);
    CUdeviceptr b = par_reserve(PAR_2M);
    SETUP(cuMemMap, (a, PAR_2M, 0, h, 0));
    CALL(cuMemMap, "imported", (b, PAR_2M, 0, imported, 0));
    SETUP(cuMemSetAccess, (a, PAR_2M, &access, 1));
    CALL(cuMemSetAccess, "imported", (b, PAR_2M, &access, 1));
    SETUP(cuMemsetD32_v2, (a, 0xabcdef01, 16));
    CALL(cuMemcpyDtoH_v2, "imported", (&word, b, 4));
    par_see("content", "0x%08x", word);
    CALL(cuMemRelease, "original", (h));
    CALL(cuMemRelease, "imported", (imported));
    CALL(cuMemRelease, "imported-again", (again));
    close(fd);
    CALL(cuMemcpyDtoH_v2, "all-released", (&word, b, 4));
}

SCENARIO(import_bad, "vmm-share/import-bad", par_context) {
    CUmemGenericAllocationHandle h;
    int null_fd = open("/dev/null", O_RDWR), ends[2];
    unsigned char fabric[64] = {0};
    CALLO(cuMemImportFromShareableHandle, "bad-fd",
          (&h, (void *)(uintptr_t)9999, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), OUT_H(h));
    CALLO(cuMemImportFromShareableHandle, "negative-fd",
          (&h, (void *)(intptr_t)-1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), OUT_H(h));
    CALLO(cuMemImportFromShareableHandle, "foreign-fd",
          (&h, (void *)(uintptr_t)null_fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), OUT_H(h));
    if (pipe(ends) == 0)
        CALLO(cuMemImportFromShareableHandle, "pipe-fd",
              (&h, (void *)(uintptr_t)ends[0], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), OUT_H(h));
    CALLO(cuMemImportFromShareableHandle, "type-none",
          (&h, (void *)(uintptr_t)null_fd, CU_MEM_HANDLE_TYPE_NONE), OUT_H(h));
    CALLO(cuMemImportFromShareableHandle, "type-win32",
          (&h, (void *)(uintptr_t)null_fd, CU_MEM_HANDLE_TYPE_WIN32), OUT_H(h));
    CALLO(cuMemImportFromShareableHandle, "type-fabric-zeros",
          (&h, fabric, CU_MEM_HANDLE_TYPE_FABRIC), OUT_H(h));
    CALL(cuMemImportFromShareableHandle, "null-out",
         (NULL, (void *)(uintptr_t)null_fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
}

/* Exported, imported by another process, which reads, writes and leaves. */
SCENARIO(to_other_process, "vmm-share/to-other-process") {
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    unsigned word = 0;
    int fd, peer = par_spawn("vmm-import");
    par_context();
    CUmemGenericAllocationHandle h =
        par_create(2 * PAR_2M, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CUdeviceptr a = par_reserve(2 * PAR_2M);
    SETUP(cuMemMap, (a, 2 * PAR_2M, 0, h, 0));
    SETUP(cuMemSetAccess, (a, 2 * PAR_2M, &access, 1));
    SETUP(cuMemsetD32_v2, (a, 0x01020304, 16));
    SETUP(cuMemExportToShareableHandle, (&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    SETUP(cuCtxSynchronize, ());
    par_send(peer, "m", 1, fd);
    close(fd);
    char answer;
    par_receive(peer, &answer, 1, NULL);
    CALL(cuMemcpyDtoH_v2, "written-by-peer", (&word, a, 4));
    par_see("content", "0x%08x", word);
    CALL(cuMemUnmap, "ok", (a, 2 * PAR_2M));
    CALL(cuMemRelease, "ok", (h));
    par_send(peer, "r", 1, -1);
    par_join();
}

HELPER(helper_import, "vmm-import") {
    CUmemGenericAllocationHandle h;
    CUmemAllocationProp prop;
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    char byte;
    unsigned word = 0, mine = 0x99aabbcc;
    int fd;
    par_record_start("vmm-share/to-other-process:peer");
    par_context();
    if (!par_receive(par.peer_fd, &byte, 1, &fd))
        return;
    CALLO(cuMemImportFromShareableHandle, "other-process",
          (&h, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), OUT_H(h));
    close(fd);
    CALLO(cuMemGetAllocationPropertiesFromHandle, "imported", (&prop, h), OUT_I(prop.type),
          OUT_I(prop.requestedHandleTypes), OUT_I(prop.location.type), OUT_I(prop.location.id));
    CUdeviceptr a = par_reserve(2 * PAR_2M);
    CALL(cuMemMap, "imported-part", (a, PAR_2M, 0, h, 0));
    CALL(cuMemUnmap, "imported-part", (a, PAR_2M));
    CALL(cuMemMap, "imported", (a, 2 * PAR_2M, 0, h, 0));
    CALL(cuMemSetAccess, "imported", (a, 2 * PAR_2M, &access, 1));
    CALL(cuMemcpyDtoH_v2, "imported", (&word, a, 4));
    par_see("content", "0x%08x", word);
    CALL(cuMemcpyHtoD_v2, "imported", (a, &mine, 4));
    CALLO(cuMemExportToShareableHandle, "imported",
          (&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_D(fd));
    par_send(par.peer_fd, "w", 1, -1);
    if (par_receive(par.peer_fd, &byte, 1, NULL)) {
        CALL(cuMemcpyDtoH_v2, "exporter-released", (&word, a, 4));
        par_see("content", "0x%08x", word);
        CALL(cuMemUnmap, "ok", (a, 2 * PAR_2M));
        CALL(cuMemRelease, "ok", (h));
    }
}

/* to_other_process with the wait that it lacks: the importer's small copy from pageable memory
 * returns before it has reached the device. */
SCENARIO(waited, "vmm-share/waited") {
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    unsigned word = 0;
    char answer;
    int fd, peer = par_spawn("vmm-waited");
    par_context();
    CUmemGenericAllocationHandle h = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CUdeviceptr a = par_reserve(PAR_2M);
    SETUP(cuMemMap, (a, PAR_2M, 0, h, 0));
    SETUP(cuMemSetAccess, (a, PAR_2M, &access, 1));
    SETUP(cuMemExportToShareableHandle, (&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    par_send(peer, "m", 1, fd);
    close(fd);
    par_receive(peer, &answer, 1, NULL);
    CALL(cuMemcpyDtoH_v2, "written-by-peer", (&word, a, 4));
    par_see("content", "0x%08x", word);
    par_join();
}

HELPER(helper_waited, "vmm-waited") {
    CUmemGenericAllocationHandle h;
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    char byte;
    unsigned mine = 0x99aabbcc;
    int fd;
    par_record_start("vmm-share/waited:peer");
    par_context();
    if (!par_receive(par.peer_fd, &byte, 1, &fd))
        return;
    SETUP(cuMemImportFromShareableHandle,
          (&h, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    CUdeviceptr a = par_reserve(PAR_2M);
    SETUP(cuMemMap, (a, PAR_2M, 0, h, 0));
    SETUP(cuMemSetAccess, (a, PAR_2M, &access, 1));
    CALL(cuMemcpyHtoD_v2, "imported", (a, &mine, 4));
    CALL(cuCtxSynchronize, "written", ());
    par_send(par.peer_fd, "w", 1, -1);
}
