/* External memory and semaphores: which descriptors are taken, from what, and in which order the
 * arguments are looked at. There is no graphics driver beside the GPU: what is imported here is the
 * driver's own export, or is refused. */
#include "../parity.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#define OPAQUE   CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD
#define BINARY   CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD
#define TIMELINE CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD

static CUDA_EXTERNAL_MEMORY_HANDLE_DESC memory_of(int fd, unsigned long long size) {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;
    memset(&desc, 0, sizeof(desc));
    desc.type = OPAQUE;
    desc.handle.fd = fd;
    desc.size = size;
    return desc;
}

static CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC semaphore_of(CUexternalSemaphoreHandleType type,
                                                        int fd) {
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc;
    memset(&desc, 0, sizeof(desc));
    desc.type = type;
    desc.handle.fd = fd;
    return desc;
}

static int plain_memfd(size_t size, bool sealed) {
    int fd = memfd_create("parity", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0 ||
        (sealed && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
        par_see("setup", "SETUP_FAILED memfd");
        _exit(4);
    }
    return fd;
}

static int exported(CUmemGenericAllocationHandle h) {
    int fd = -1;
    SETUP(cuMemExportToShareableHandle, (&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    return fd;
}

static const char *descriptor(int fd) {
    return fcntl(fd, F_GETFD) >= 0 ? "open" : errno == EBADF ? "closed" : "?";
}

SCENARIO(memory_bad, "external/memory-bad", par_context) {
    CUexternalMemory m;
    int null_fd = open("/dev/null", O_RDWR), ends[2];
    if (null_fd < 0 || pipe(ends) != 0)
        return;
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = memory_of(-1, PAR_2M);
    CALLO(cuImportExternalMemory, "negative-fd", (&m, &desc), OUT_C(m));
    desc = memory_of(9999, PAR_2M);
    CALLO(cuImportExternalMemory, "closed-fd", (&m, &desc), OUT_C(m));
    desc = memory_of(null_fd, PAR_2M);
    CALLO(cuImportExternalMemory, "null-device", (&m, &desc), OUT_C(m));
    par_see("descriptor", "null-device %s", descriptor(null_fd));
    desc = memory_of(ends[0], PAR_2M);
    CALLO(cuImportExternalMemory, "pipe", (&m, &desc), OUT_C(m));
    par_see("descriptor", "pipe %s", descriptor(ends[0]));
    desc = memory_of(-1, 0);
    CALLO(cuImportExternalMemory, "negative-fd-and-zero-size", (&m, &desc), OUT_C(m));
    desc.flags = 2;
    CALLO(cuImportExternalMemory, "negative-fd-and-bad-flags", (&m, &desc), OUT_C(m));
    CALL(cuImportExternalMemory, "null-out", (NULL, &desc));
    CALLO(cuImportExternalMemory, "null-desc", (&m, NULL), OUT_C(m));
    SETUP(cuCtxSetCurrent, (NULL));
    CALLO(cuImportExternalMemory, "no-context", (&m, &desc), OUT_C(m));
    CALL(cuImportExternalMemory, "no-context-null", (NULL, NULL));
}

SCENARIO(memory_types, "external/memory-types", par_context) {
    CUexternalMemory m;
    int fd = open("/dev/null", O_RDWR);
    for (int type = -1; type <= 11; type++) {
        if (type == 8) { /* would be followed as a pointer */
            continue;
        }
        CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = memory_of(fd, PAR_2M);
        desc.type = (CUexternalMemoryHandleType)type;
        if (type >= 2 && type <= 7)
            desc.handle.win32.handle = NULL;
        par_note("type=%d", type);
        CALLO(cuImportExternalMemory, "type", (&m, &desc), OUT_C(m));
        desc.flags = CUDA_EXTERNAL_MEMORY_DEDICATED;
        par_note("type=%d", type);
        CALLO(cuImportExternalMemory, "type-dedicated", (&m, &desc), OUT_C(m));
    }
}

SCENARIO(memory_nvsci_null, "external/memory-nvsci-null", par_context) {
    CUexternalMemory m;
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = memory_of(0, PAR_2M);
    desc.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF;
    desc.handle.nvSciBufObject = NULL;
    CALLO(cuImportExternalMemory, "nvscibuf-null", (&m, &desc), OUT_C(m));
}

SCENARIO(memory_memfd, "external/memory-memfd", par_context) {
    CUexternalMemory m;
    int open_fd = plain_memfd(PAR_2M, false), sealed = plain_memfd(PAR_2M, true);
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = memory_of(open_fd, PAR_2M);
    CALLO(cuImportExternalMemory, "memfd-unsealed", (&m, &desc), OUT_C(m));
    par_see("descriptor", "unsealed %s", descriptor(open_fd));
    desc = memory_of(sealed, PAR_2M);
    CALLO(cuImportExternalMemory, "memfd", (&m, &desc), OUT_C(m));
    par_see("descriptor", "sealed %s", descriptor(sealed));
}

/* The driver's own exports: is a descriptor of cuMemExportToShareableHandle external memory? */
SCENARIO(memory_own, "external/memory-own", par_context) {
    CUexternalMemory m = NULL, second = NULL;
    CUmemGenericAllocationHandle h =
        par_create(2 * PAR_2M, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    int fd = exported(h);
    int other = exported(h);
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = memory_of(fd, 2 * PAR_2M);
    CALLO(cuImportExternalMemory, "own-export", (&m, &desc), OUT_H(m));
    par_see("descriptor", "imported %s", descriptor(fd));
    desc = memory_of(other, 2 * PAR_2M);
    desc.flags = CUDA_EXTERNAL_MEMORY_DEDICATED;
    CALLO(cuImportExternalMemory, "own-export-dedicated", (&second, &desc), OUT_H(second));
    par_see("descriptor", "dedicated %s", descriptor(other));
    if (m != NULL) {
        CALL(cuDestroyExternalMemory, "own-export", (m));
        CALL(cuDestroyExternalMemory, "own-export-dedicated", (second));
    }
}

SCENARIO(memory_own_sizes, "external/memory-own-sizes", par_context) {
    static const unsigned long long sizes[] = {0, 1, 4096, 2097152, 4194303, 4194305, 8388608};
    CUmemGenericAllocationHandle h =
        par_create(2 * PAR_2M, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        CUexternalMemory m;
        int fd = exported(h);
        CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = memory_of(fd, sizes[i]);
        par_note("size=%llu", sizes[i]);
        CALLO(cuImportExternalMemory, "own-export-size", (&m, &desc), OUT_C(m));
        desc.flags = 2;
        desc.handle.fd = exported(h);
        par_note("size=%llu", sizes[i]);
        CALLO(cuImportExternalMemory, "own-export-bad-flags", (&m, &desc), OUT_C(m));
    }
}

static CUexternalMemory own_memory(CUmemGenericAllocationHandle *h, size_t size, unsigned flags) {
    CUexternalMemory m = NULL;
    *h = par_create(size, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = memory_of(exported(*h), size);
    desc.flags = flags;
    return par.api->cuImportExternalMemory(&m, &desc) == CUDA_SUCCESS ? m : NULL;
}

SCENARIO(memory_buffer, "external/memory-buffer", par_context) {
    CUmemGenericAllocationHandle h;
    CUdeviceptr p, q, base;
    size_t size;
    unsigned word = 0;
    CUexternalMemory m = own_memory(&h, 2 * PAR_2M, 0);
    if (m == NULL)
        return;
    NAME(m);
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC desc = {.size = 2 * PAR_2M};
    CALLO(cuExternalMemoryGetMappedBuffer, "ok", (&p, m, &desc), OUT_R(p, 2 * PAR_2M));
    CALLO(cuExternalMemoryGetMappedBuffer, "again", (&q, m, &desc), OUT_P(q));
    CALLO(cuMemGetAddressRange_v2, "external", (&base, &size, p + 4), OUT_P(base), OUT_U(size));
    CALL(cuMemsetD32_v2, "external", (p, 0x11223344, 16));
    CALL(cuMemcpyDtoH_v2, "other-mapping", (&word, q, 4));
    par_see("content", "0x%08x", word);
    CALL(cuMemFree_v2, "external", (q));
    CALL(cuDestroyExternalMemory, "mapped", (m));
    CALL(cuMemcpyDtoH_v2, "destroyed", (&word, p, 4));
    par_see("content", "0x%08x", word);
    CALL(cuMemFree_v2, "external", (p));
    CALL(cuMemFree_v2, "external-again", (p));
}

SCENARIO(memory_buffer_bad, "external/memory-buffer-bad", par_context) {
    CUmemGenericAllocationHandle h;
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC desc;
    CUdeviceptr p;
    CUexternalMemory m = own_memory(&h, 2 * PAR_2M, 0);
    if (m == NULL)
        return;
#define BUFFER(cls, o, s, f)                                                                       \
    do {                                                                                           \
        memset(&desc, 0, sizeof(desc));                                                            \
        desc.offset = (o);                                                                         \
        desc.size = (s);                                                                           \
        desc.flags = (f);                                                                          \
        CALLO(cuExternalMemoryGetMappedBuffer, cls, (&p, m, &desc), OUT_C(p));                     \
    } while (0)
    BUFFER("zero-size", 0, 0, 0);
    BUFFER("flags", 0, PAR_2M, 1);
    BUFFER("past-end", 0, 2 * PAR_2M + 1, 0);
    BUFFER("offset-past-end", PAR_2M, 2 * PAR_2M, 0);
    BUFFER("offset-is-end", 2 * PAR_2M, PAR_2M, 0);
    BUFFER("wraps", ~0ull - 4095, 8192, 0);
    BUFFER("offset-page", PAR_2M, PAR_2M, 0);
    BUFFER("offset-64k", 65536, 65536, 0);
    BUFFER("offset-4k", 4096, 4096, 0);
    BUFFER("offset-odd", 1, 100, 0);
    BUFFER("small", 0, 100, 0);
    CALL(cuExternalMemoryGetMappedBuffer, "null-out", (NULL, m, &desc));
    CALLO(cuExternalMemoryGetMappedBuffer, "null-desc", (&p, m, NULL), OUT_C(p));
    SETUP(cuCtxSetCurrent, (NULL));
    CALLO(cuExternalMemoryGetMappedBuffer, "no-context", (&p, m, &desc), OUT_C(p));
    CALL(cuDestroyExternalMemory, "no-context", (m));
}

SCENARIO(memory_mipmap, "external/memory-mipmap", par_context) {
    CUmemGenericAllocationHandle h;
    CUmipmappedArray mipmap;
    CUarray level;
    CUexternalMemory m = own_memory(&h, 2 * PAR_2M, CUDA_EXTERNAL_MEMORY_DEDICATED);
    if (m == NULL)
        return;
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC desc = {.arrayDesc.Width = 64,
                                                      .arrayDesc.Height = 64,
                                                      .arrayDesc.Format =
                                                          CU_AD_FORMAT_UNSIGNED_INT8,
                                                      .arrayDesc.NumChannels = 4,
                                                      .numLevels = 1};
    CALLO(cuExternalMemoryGetMappedMipmappedArray, "one-level", (&mipmap, m, &desc), OUT_H(mipmap));
    if (par_last() == CUDA_SUCCESS) {
        CALLO(cuMipmappedArrayGetLevel, "external", (&level, mipmap, 0), OUT_H(level));
        CALL(cuMipmappedArrayDestroy, "external", (mipmap));
    }
    desc.numLevels = 4;
    CALLO(cuExternalMemoryGetMappedMipmappedArray, "levels", (&mipmap, m, &desc), OUT_C(mipmap));
    desc.numLevels = 0;
    CALLO(cuExternalMemoryGetMappedMipmappedArray, "no-level", (&mipmap, m, &desc), OUT_C(mipmap));
    desc.numLevels = 1;
    desc.arrayDesc.Width = 0;
    CALLO(cuExternalMemoryGetMappedMipmappedArray, "zero-width", (&mipmap, m, &desc),
          OUT_C(mipmap));
    desc.arrayDesc.Width = 16384;
    desc.arrayDesc.Height = 16384;
    CALLO(cuExternalMemoryGetMappedMipmappedArray, "past-end", (&mipmap, m, &desc), OUT_C(mipmap));
    CALL(cuExternalMemoryGetMappedMipmappedArray, "null-out", (NULL, m, &desc));
    CALLO(cuExternalMemoryGetMappedMipmappedArray, "null-desc", (&mipmap, m, NULL), OUT_C(mipmap));
}

/* A range of device memory as a DMA buffer, where the kernel has them. */
SCENARIO(memory_dmabuf, "external/memory-dmabuf", par_context) {
    CUexternalMemory m;
    int fd = -1;
    CUdeviceptr p = par_mapped(PAR_2M);
    if (par.api->cuMemGetHandleForAddressRange(&fd, p, PAR_2M, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                               0) != CUDA_SUCCESS) {
        return;
    }
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = memory_of(fd, PAR_2M);
    desc.type = (CUexternalMemoryHandleType)9;
    CALLO(cuImportExternalMemory, "dma-buf", (&m, &desc), OUT_C(m));
    par_see("descriptor", "dma-buf %s", descriptor(fd));
}

SCENARIO(semaphore_bad, "external/semaphore-bad", par_context) {
    CUexternalSemaphore s;
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc;
    int null_fd = open("/dev/null", O_RDWR), counter = eventfd(0, EFD_CLOEXEC);
    int sealed = plain_memfd(4096, true);
    for (int i = 0; i < 2; i++) {
        CUexternalSemaphoreHandleType type = i == 0 ? BINARY : TIMELINE;
        par_note("type=%d", (int)type);
        desc = semaphore_of(type, -1);
        CALLO(cuImportExternalSemaphore, "negative-fd", (&s, &desc), OUT_C(s));
        par_note("type=%d", (int)type);
        desc = semaphore_of(type, 9999);
        CALLO(cuImportExternalSemaphore, "closed-fd", (&s, &desc), OUT_C(s));
        par_note("type=%d", (int)type);
        desc = semaphore_of(type, null_fd);
        CALLO(cuImportExternalSemaphore, "null-device", (&s, &desc), OUT_C(s));
        par_note("type=%d", (int)type);
        desc = semaphore_of(type, counter);
        CALLO(cuImportExternalSemaphore, "eventfd", (&s, &desc), OUT_C(s));
        par_note("type=%d", (int)type);
        desc = semaphore_of(type, sealed);
        CALLO(cuImportExternalSemaphore, "memfd", (&s, &desc), OUT_C(s));
        par_see("descriptors", "%s %s %s", descriptor(null_fd), descriptor(counter),
                descriptor(sealed));
        par_note("type=%d", (int)type);
        desc = semaphore_of(type, -1);
        desc.flags = 1;
        CALLO(cuImportExternalSemaphore, "negative-fd-and-bad-flags", (&s, &desc), OUT_C(s));
    }
    CALL(cuImportExternalSemaphore, "null-out", (NULL, &desc));
    CALLO(cuImportExternalSemaphore, "null-desc", (&s, NULL), OUT_C(s));
    SETUP(cuCtxSetCurrent, (NULL));
    CALLO(cuImportExternalSemaphore, "no-context", (&s, &desc), OUT_C(s));
    CALL(cuImportExternalSemaphore, "no-context-null", (NULL, NULL));
}

SCENARIO(semaphore_types, "external/semaphore-types", par_context) {
    CUexternalSemaphore s;
    for (int type = -1; type <= 12; type++) {
        CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc = semaphore_of(BINARY, -1);
        desc.type = (CUexternalSemaphoreHandleType)type;
        if (type >= 2 && type <= 8)
            desc.handle.win32.handle = NULL;
        if (type == 6) { /* would be followed as a pointer */
            continue;
        }
        par_note("type=%d", type);
        CALLO(cuImportExternalSemaphore, "type", (&s, &desc), OUT_C(s));
        desc.flags = 1;
        par_note("type=%d", type);
        CALLO(cuImportExternalSemaphore, "type-flags", (&s, &desc), OUT_C(s));
    }
}

SCENARIO(semaphore_nvsci_null, "external/semaphore-nvsci-null", par_context) {
    CUexternalSemaphore s;
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc =
        semaphore_of(CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_NVSCISYNC, 0);
    desc.handle.nvSciSyncObj = NULL;
    CALLO(cuImportExternalSemaphore, "nvscisync-null", (&s, &desc), OUT_C(s));
}

/* A descriptor of memory is no semaphore. */
SCENARIO(semaphore_memory, "external/semaphore-memory", par_context) {
    CUexternalSemaphore s;
    CUmemGenericAllocationHandle h = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc = semaphore_of(BINARY, exported(h));
    CALLO(cuImportExternalSemaphore, "memory-fd", (&s, &desc), OUT_C(s));
    desc = semaphore_of(TIMELINE, exported(h));
    CALLO(cuImportExternalSemaphore, "memory-fd-timeline", (&s, &desc), OUT_C(s));
}

/* Arguments of signals and waits that are refused before a semaphore is looked at. */
SCENARIO(operations_bad, "external/operations-bad", par_context) {
    CUexternalSemaphore none[2] = {NULL, NULL};
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal[2];
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait[2];
    CUstream s = par_stream();
    memset(signal, 0, sizeof(signal));
    memset(wait, 0, sizeof(wait));
    CALL(cuSignalExternalSemaphoresAsync, "zero-count", (none, signal, 0, s));
    CALL(cuWaitExternalSemaphoresAsync, "zero-count", (none, wait, 0, s));
    CALL(cuSignalExternalSemaphoresAsync, "null-list", (NULL, signal, 1, s));
    CALL(cuWaitExternalSemaphoresAsync, "null-list", (NULL, wait, 1, s));
    CALL(cuSignalExternalSemaphoresAsync, "null-params", (none, NULL, 1, s));
    CALL(cuWaitExternalSemaphoresAsync, "null-params", (none, NULL, 1, s));
    CALL(cuSignalExternalSemaphoresAsync, "all-null-zero-count", (NULL, NULL, 0, s));
    CALL(cuWaitExternalSemaphoresAsync, "all-null-zero-count", (NULL, NULL, 0, s));
    CALL(cuSignalExternalSemaphoresAsync_ptsz, "zero-count", (none, signal, 0, NULL));
    CALL(cuWaitExternalSemaphoresAsync_ptsz, "zero-count", (none, wait, 0, NULL));
    CALL(cuSignalExternalSemaphoresAsync, "stale-stream",
         (none, signal, 0, (CUstream)(uintptr_t)0x1234560));
}

SCENARIO(semaphore_null_handle, "external/signal-null", par_context) {
    CUexternalSemaphore none[2] = {NULL, NULL};
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal[2];
    CUstream s = par_stream();
    memset(signal, 0, sizeof(signal));
    CALL(cuSignalExternalSemaphoresAsync, "null-semaphore", (none, signal, 1, s));
}

SCENARIO(semaphore_wait_null_handle, "external/wait-null", par_context) {
    CUexternalSemaphore none[2] = {NULL, NULL};
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait[2];
    CUstream s = par_stream();
    memset(wait, 0, sizeof(wait));
    CALL(cuWaitExternalSemaphoresAsync, "null-semaphore", (none, wait, 1, s));
}

SCENARIO(null_handles, "external/null-handles", par_context) {
    CUdeviceptr p;
    CUmipmappedArray mipmap;
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = PAR_2M};
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC array = {.arrayDesc.Width = 16,
                                                       .arrayDesc.Format =
                                                           CU_AD_FORMAT_UNSIGNED_INT8,
                                                       .arrayDesc.NumChannels = 1,
                                                       .numLevels = 1};
    CALLO(cuExternalMemoryGetMappedBuffer, "null-memory", (&p, NULL, &buffer), OUT_C(p));
    CALLO(cuExternalMemoryGetMappedMipmappedArray, "null-memory", (&mipmap, NULL, &array),
          OUT_C(mipmap));
    CALL(cuDestroyExternalMemory, "null", (NULL));
    CALL(cuDestroyExternalSemaphore, "null", (NULL));
}

SCENARIO(destroyed_memory, "external/destroyed-memory", par_context) {
    CUmemGenericAllocationHandle h;
    CUdeviceptr p;
    CUexternalMemory m = own_memory(&h, PAR_2M, 0);
    if (m == NULL)
        return;
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = PAR_2M};
    SETUP(cuDestroyExternalMemory, (m));
    CALLO(cuExternalMemoryGetMappedBuffer, "stale-handle", (&p, m, &buffer), OUT_C(p));
    CALL(cuDestroyExternalMemory, "stale-handle", (m));
}

/* ---- What the first answers left open -------------------------------------------------------- */

/* Sizes are believed at the import: of memory that is smaller, what can be mapped? */
SCENARIO(memory_larger, "external/memory-larger", par_context) {
    CUexternalMemory m = NULL;
    CUdeviceptr p;
    CUmemGenericAllocationHandle h = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = memory_of(exported(h), 4 * PAR_2M);
    CALLO(cuImportExternalMemory, "larger-than-memory", (&m, &desc), OUT_C(m));
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = PAR_2M};
    CALLO(cuExternalMemoryGetMappedBuffer, "inside", (&p, m, &buffer), OUT_C(p));
    buffer.size = PAR_2M + 1;
    CALLO(cuExternalMemoryGetMappedBuffer, "past-the-memory", (&p, m, &buffer), OUT_C(p));
    buffer.offset = PAR_2M;
    buffer.size = PAR_2M;
    CALLO(cuExternalMemoryGetMappedBuffer, "behind-the-memory", (&p, m, &buffer), OUT_C(p));
}

SCENARIO(buffer_places, "external/buffer-places", par_context) {
    CUmemGenericAllocationHandle h;
    CUdeviceptr whole, part, base;
    size_t size;
    unsigned word = 0;
    CUexternalMemory m = own_memory(&h, 2 * PAR_2M, 0);
    if (m == NULL)
        return;
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC desc = {.size = 2 * PAR_2M};
    SETUP(cuExternalMemoryGetMappedBuffer, (&whole, m, &desc));
    NAME_R(whole, 2 * PAR_2M);
    SETUP(cuMemsetD32_v2, (whole, 1, 2 * PAR_2M / 4));
    SETUP(cuMemsetD32_v2, (whole + 65536, 0x77, 1));
    SETUP(cuMemsetD32_v2, (whole + PAR_2M + 256, 0x88, 1));
    desc.offset = 65536;
    desc.size = 65536;
    CALLO(cuExternalMemoryGetMappedBuffer, "offset-64k", (&part, m, &desc), OUT_R(part, 65536));
    CALL(cuMemcpyDtoH_v2, "offset-64k", (&word, part, 4));
    par_see("content", "offset-64k 0x%x", word);
    CALLO(cuMemGetAddressRange_v2, "offset-64k", (&base, &size, part), OUT_P(base), OUT_U(size));
    CALL(cuMemcpyDtoH_v2, "past-buffer", (&word, part + 65536, 4));
    CALL(cuMemFree_v2, "interior", (part + 256));
    CALL(cuMemFree_v2, "offset-64k", (part));
    desc.offset = PAR_2M + 256;
    desc.size = 100;
    CALLO(cuExternalMemoryGetMappedBuffer, "offset-256", (&part, m, &desc), OUT_R(part, 100));
    CALL(cuMemcpyDtoH_v2, "offset-256", (&word, part, 4));
    par_see("content", "offset-256 0x%x", word);
    CALLO(cuMemGetAddressRange_v2, "offset-256", (&base, &size, part), OUT_P(base), OUT_U(size));
    CALL(cuMemFreeAsync, "external", (part, NULL));
    CALL(cuCtxSynchronize, "after", ());
    CALL(cuMemFree_v2, "offset-256", (part));
}

SCENARIO(buffer_attributes, "external/buffer-attributes", par_context) {
    static const CUpointer_attribute numbers[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                  CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                                  CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                                  CU_POINTER_ATTRIBUTE_MAPPED,
                                                  CU_POINTER_ATTRIBUTE_ACCESS_FLAGS,
                                                  CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE,
                                                  CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
    static const CUpointer_attribute words[] = {CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                                CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
                                                CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES};
    CUmemGenericAllocationHandle h, retained;
    CUipcMemHandle ipc;
    CUdeviceptr p, start;
    CUcontext ctx;
    CUexternalMemory m = own_memory(&h, 2 * PAR_2M, 0);
    if (m == NULL)
        return;
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC desc = {.offset = 65536, .size = 100000};
    SETUP(cuExternalMemoryGetMappedBuffer, (&p, m, &desc));
    NAME_R(p, 100000);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        int n = 0;
        par_note("%d", (int)numbers[i]);
        CALLO(cuPointerGetAttribute, "external", (&n, numbers[i], p), OUT_I(n));
    }
    for (size_t i = 0; i < COUNT(words); i++) {
        unsigned long long n = 0;
        par_note("%d", (int)words[i]);
        CALLO(cuPointerGetAttribute, "external", (&n, words[i], p), OUT_U(n));
    }
    CALLO(cuPointerGetAttribute, "external", (&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, p), OUT_H(ctx));
    CALLO(cuPointerGetAttribute, "external",
          (&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 4096), OUT_P(start));
    CALLO(cuIpcGetMemHandle, "external", (&ipc, p), OUT_C(ipc));
    CALLO(cuMemRetainAllocationHandle, "external", (&retained, (void *)(uintptr_t)p),
          OUT_C(retained));
}

/* Of which context are memory and buffers? */
SCENARIO(memory_contexts, "external/memory-contexts", par_context) {
    CUmemGenericAllocationHandle h;
    CUcontext other, ctx;
    CUdeviceptr p;
    unsigned word = 0;
    SETUP(cuCtxCreate_v2, (&other, 0, 0));
    NAME(other);
    CUexternalMemory m = own_memory(&h, PAR_2M, 0);
    if (m == NULL)
        return;
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC desc = {.size = PAR_2M};
    SETUP(cuCtxSetCurrent, (par.primary));
    CALLO(cuExternalMemoryGetMappedBuffer, "imported-in-other", (&p, m, &desc), OUT_R(p, PAR_2M));
    CALLO(cuPointerGetAttribute, "imported-in-other", (&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, p),
          OUT_H(ctx));
    CALL(cuMemsetD32_v2, "imported-in-other", (p, 5, 4));
    CALL(cuCtxSynchronize, "after", ());
    SETUP(cuCtxDestroy_v2, (other));
    CALL(cuMemcpyDtoH_v2, "context-destroyed", (&word, p, 4));
    CALL(cuMemFree_v2, "context-destroyed", (p));
}

SCENARIO(mipmap_bytes, "external/mipmap-bytes", par_context) {
    CUmemGenericAllocationHandle h;
    CUDA_ARRAY3D_DESCRIPTOR told;
    CUmipmappedArray mipmap;
    CUarray level;
    unsigned char row[64], back[64];
    CUexternalMemory m = own_memory(&h, 2 * PAR_2M, CUDA_EXTERNAL_MEMORY_DEDICATED);
    if (m == NULL)
        return;
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC desc = {.arrayDesc.Width = 64,
                                                      .arrayDesc.Height = 64,
                                                      .arrayDesc.Format =
                                                          CU_AD_FORMAT_UNSIGNED_INT8,
                                                      .arrayDesc.NumChannels = 1,
                                                      .numLevels = 3};
    CALLO(cuExternalMemoryGetMappedMipmappedArray, "three-levels", (&mipmap, m, &desc),
          OUT_H(mipmap));
    for (unsigned i = 0; i < 4; i++) {
        par_note("level=%u", i);
        CALLO(cuMipmappedArrayGetLevel, "external", (&level, mipmap, i), OUT_C(level));
        if (par_last() == CUDA_SUCCESS) {
            par_note("level=%u", i);
            CALLO(cuArray3DGetDescriptor_v2, "external", (&told, level), OUT_U(told.Width),
                  OUT_U(told.Height), OUT_U(told.Depth), OUT_X(told.Flags));
        }
    }
    SETUP(cuMipmappedArrayGetLevel, (&level, mipmap, 0));
    for (unsigned i = 0; i < sizeof(row); i++)
        row[i] = (unsigned char)(i + 1);
    CALL(cuMemcpyHtoA_v2, "external", (level, 0, row, sizeof(row)));
    memset(back, 0, sizeof(back));
    CALL(cuMemcpyAtoH_v2, "external", (back, level, 0, sizeof(back)));
    par_see("content", "%s", memcmp(row, back, sizeof(row)) == 0 ? "same" : "other");
    CALL(cuDestroyExternalMemory, "array-live", (m));
    CALL(cuMipmappedArrayDestroy, "memory-destroyed", (mipmap));
}

SCENARIO(mipmap_bad, "external/mipmap-bad", par_context) {
    CUmemGenericAllocationHandle h;
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC desc;
    CUmipmappedArray mipmap;
    CUexternalMemory m = own_memory(&h, 2 * PAR_2M, 0);
    if (m == NULL)
        return;
#define MIPMAP(cls, change)                                                                        \
    do {                                                                                           \
        memset(&desc, 0, sizeof(desc));                                                            \
        desc.arrayDesc.Width = 64;                                                                 \
        desc.arrayDesc.Height = 64;                                                                \
        desc.arrayDesc.Format = CU_AD_FORMAT_UNSIGNED_INT8;                                        \
        desc.arrayDesc.NumChannels = 1;                                                            \
        desc.numLevels = 1;                                                                        \
        change;                                                                                    \
        CALLO(cuExternalMemoryGetMappedMipmappedArray, cls, (&mipmap, m, &desc), OUT_C(mipmap));   \
    } while (0)
    MIPMAP("not-dedicated", (void)0);
    MIPMAP("offset-at-end", desc.offset = 2 * PAR_2M);
    MIPMAP("offset-past-end", desc.offset = 3 * PAR_2M);
    MIPMAP("offset-odd", desc.offset = 1);
    MIPMAP("offset-512", desc.offset = 512);
    MIPMAP("offset-64k", desc.offset = 65536);
    MIPMAP("too-many-levels", desc.numLevels = 8);
    MIPMAP("bad-channels", desc.arrayDesc.NumChannels = 3);
    MIPMAP("bad-format", desc.arrayDesc.Format = (CUarray_format)0);
    MIPMAP("depth", desc.arrayDesc.Depth = 4);
    MIPMAP("color-attachment", desc.arrayDesc.Flags = CUDA_ARRAY3D_COLOR_ATTACHMENT);
    MIPMAP("sparse", desc.arrayDesc.Flags = CUDA_ARRAY3D_SPARSE);
    MIPMAP("deferred", desc.arrayDesc.Flags = CUDA_ARRAY3D_DEFERRED_MAPPING);
    MIPMAP("bad-flags", desc.arrayDesc.Flags = 0x10000);
}
