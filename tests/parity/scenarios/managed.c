/* Managed memory: making it, its bytes, what the rest of the driver says of it, pools of it. */
#include "../parity.h"

#include <sys/mman.h>

#define PAGE ((size_t)4096)
#undef MIB /* recorded lines have it in this form */
#define MIB(n) ((size_t)(n) << 20)

static CUdeviceptr managed(size_t size) {
    return PAR_MADE(CUdeviceptr, cuMemAllocManaged, size, CU_MEM_ATTACH_GLOBAL);
}

static unsigned char *bytes_of(CUdeviceptr p) {
    return (unsigned char *)(uintptr_t)p;
}

/* ---- Making and ending ----------------------------------------------------------------------- */

SCENARIO(sizes, "managed/sizes", par_context) {
    CUdeviceptr p, a, b, c, d, e, f;
    CALLO(cuMemAllocManaged, "too-large", (&p, (size_t)1 << 46, 1), OUT_C(p));
    CALLO(cuMemAllocManaged, "too-large", (&p, ~(size_t)0, 1), OUT_P(p));
    CALLO(cuMemAllocManaged, "bad-flags", (&p, 4096, 5), OUT_P(p));
    CALLO(cuMemAllocManaged, "bad-flags", (&p, 4096, 0x80000001u), OUT_P(p));
    CALLO(cuMemAllocManaged, "bad-flags-zero-size", (&p, 0, 0), OUT_P(p));
    CALLO(cuMemAllocManaged, "ok", (&a, 1, 1), OUT_R(a, 1 << 21));
    CALLO(cuMemAllocManaged, "neighbour", (&b, 1, 1), OUT_R(b, 1));
    CALLO(cuMemAllocManaged, "neighbour", (&c, 700, 1), OUT_R(c, 1));
    CALLO(cuMemAllocManaged, "neighbour", (&d, 70000, 1), OUT_R(d, 1));
    CALLO(cuMemAllocManaged, "neighbour", (&e, 512, 2), OUT_R(e, 1));
    CALLO(cuMemAllocManaged, "large", (&f, MIB(3), 1), OUT_R(f, 1));
    CALLO(cuMemAllocManaged, "ok", (&p, MIB(1), 1), OUT_C(p));
    par_see("align", "%d", (int)(p % MIB(2) == 0));
    CALL(cuMemFree_v2, "ok", (b));
    FORGET(b);
    CALLO(cuMemAllocManaged, "after-free", (&b, 1, 1), OUT_R(b, 1));
}

SCENARIO(frees, "managed/frees", par_context) {
    CUstream s = par_stream();
    CUdeviceptr m = managed(8192);
    CUdeviceptr n = managed(8192);
    CUdeviceptr o = managed(8192);
    CALL(cuMemFree_v2, "interior", (m + 4096));
    CALL(cuMemFreeHost, "managed", ((void *)(uintptr_t)m));
    CALL(cuMemHostUnregister, "managed", ((void *)(uintptr_t)m));
    CALL(cuMemFreeAsync, "interior", (m + 4096, s));
    CALL(cuMemFreeAsync, "managed", (m, s));
    CALL(cuStreamSynchronize, "after", (s));
    CALL(cuMemFree_v2, "after-free-async", (m));
    CALL(cuMemFree_v2, "ok", (n));
    CALL(cuMemFree_v2, "twice", (n));
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuMemFree_v2, "no-context", (o));
}

SCENARIO(contexts, "managed/contexts", par_context) {
    CUdeviceptr m, n, got;
    CUcontext other, owner;
    unsigned is;
    int value;
    NAME(par.primary);
    SETUP(cuCtxCreate_v2, (&other, 0, 0));
    NAME(other);
    m = managed(8192);
    n = managed(8192);
    SETUP(cuCtxSetCurrent, (par.primary));
    CALLO(cuPointerGetAttribute, "foreign-ctx", (&owner, CU_POINTER_ATTRIBUTE_CONTEXT, m),
          OUT_H(owner));
    CALL(cuMemAdvise, "foreign-ctx", (m, 8192, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CALL(cuMemPrefetchAsync, "foreign-ctx", (m, 8192, 0, NULL));
    CALL(cuMemFree_v2, "foreign-ctx", (m));
    SETUP(cuCtxDestroy_v2, (other));
    CALLO(cuPointerGetAttribute, "ctx-destroyed", (&is, CU_POINTER_ATTRIBUTE_IS_MANAGED, n),
          OUT_U(is));
    CALLO(cuPointerGetAttribute, "ctx-destroyed", (&got, CU_POINTER_ATTRIBUTE_HOST_POINTER, n),
          OUT_C(got));
    CALLO(cuMemRangeGetAttribute, "ctx-destroyed",
          (&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, n, 8192), OUT_I(value));
    CALL(cuMemPrefetchAsync, "ctx-destroyed", (n, 8192, 0, NULL));
    CALL(cuMemFree_v2, "ctx-destroyed", (n));
}

SCENARIO(no_context, "managed/no-context", par_context) {
    CUdeviceptr m, n;
    CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUpointer_attribute which[1] = {CU_POINTER_ATTRIBUTE_IS_MANAGED};
    size_t sizes[1] = {8192}, index[1] = {0};
    unsigned flag = 1, is;
    int value;
    void *data[1] = {&is};
    NAME(par.primary);
    m = managed(8192);
    NAME_R(m, 8192);
    SETUP(cuCtxSetCurrent, (NULL));
    CALLO(cuMemAllocManaged, "no-context", (&n, 8192, 1), OUT_P(n));
    CALLO(cuMemAllocManaged, "no-context-bad-flags", (&n, 8192, 8), OUT_P(n));
    CALL(cuMemAdvise, "no-context", (m, 8192, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CALL(cuMemAdvise_v2, "no-context", (m, 8192, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    CALL(cuMemPrefetchAsync, "no-context", (m, 8192, 0, NULL));
    CALL(cuMemPrefetchAsync_v2, "no-context", (m, 8192, device, 0, NULL));
    CALL(cuMemPrefetchBatchAsync, "no-context", (&m, sizes, 1, &device, index, 1, 0, NULL));
    CALL(cuMemDiscardBatchAsync, "no-context", (&m, sizes, 1, 0, NULL));
    CALLO(cuMemRangeGetAttribute, "no-context",
          (&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, 8192), OUT_I(value));
    CALL(cuStreamAttachMemAsync, "no-context", (NULL, m, 0, CU_MEM_ATTACH_GLOBAL));
    CALLO(cuPointerGetAttributes, "no-context", (1, which, data, m), OUT_U(is));
    CALL(cuPointerSetAttribute, "no-context", (&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, m));
}

/* ---- Memory in use --------------------------------------------------------------------------- */

SCENARIO(in_use, "managed/in-use", par_context, PAR_ALONE) {
    CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    size_t size = MIB(32), index[1] = {0};
    CUstream s = par_stream();
    par_free_mark();
    CUdeviceptr m = managed(size);
    par_free_delta("allocated");
    memset(bytes_of(m), 1, size);
    par_free_delta("written-by-cpu");
    SETUP(cuMemPrefetchAsync, (m, MIB(8), 0, s));
    SETUP(cuStreamSynchronize, (s));
    par_free_delta("quarter-prefetched");
    SETUP(cuMemPrefetchAsync, (m, size, 0, s));
    SETUP(cuStreamSynchronize, (s));
    par_free_delta("prefetched");
    SETUP(cuMemPrefetchAsync, (m, size, -1, s));
    SETUP(cuStreamSynchronize, (s));
    par_free_delta("prefetched-to-cpu");
    SETUP(cuMemsetD8_v2, (m, 5, size));
    SETUP(cuCtxSynchronize, ());
    par_free_delta("set-by-device");
    par_see("read-by-cpu", "%d", bytes_of(m)[MIB(5)]);
    par_free_delta("one-byte-read-by-cpu");
    SETUP(cuMemDiscardBatchAsync, (&m, &size, 1, 0, s));
    SETUP(cuStreamSynchronize, (s));
    par_free_delta("discarded");
    SETUP(cuMemDiscardAndPrefetchBatchAsync, (&m, &size, 1, &device, index, 1, 0, s));
    SETUP(cuStreamSynchronize, (s));
    par_free_delta("discarded-and-prefetched");
    SETUP(cuMemFree_v2, (m));
    par_free_delta("freed");
    CUdeviceptr n = managed(MIB(4));
    SETUP(cuMemsetD8_v2, (n, 5, 100));
    SETUP(cuCtxSynchronize, ());
    par_free_delta("100-bytes-set-by-device");
    SETUP(cuMemAdvise, (n, MIB(4), CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    SETUP(cuMemFree_v2, (n));
    par_free_delta("freed");
    m = managed(4096);
    n = managed(4096);
    SETUP(cuMemPrefetchAsync, (m, 4096, 0, s));
    SETUP(cuStreamSynchronize, (s));
    par_free_delta("4096-prefetched");
    SETUP(cuMemPrefetchAsync, (n, 4096, 0, s));
    SETUP(cuStreamSynchronize, (s));
    par_free_delta("another-4096-prefetched");
    SETUP(cuMemFree_v2, (m));
    SETUP(cuMemFree_v2, (n));
    par_free_delta("freed");
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

SCENARIO(bytes, "managed/bytes", par_context) {
    unsigned char plain[64];
    CUdeviceptr m = managed(3 * PAR_2M);
    CUdeviceptr d = par_alloc(PAR_2M);
    par_see("fresh", "%d", bytes_of(m)[123]);
    memset(bytes_of(m), 7, PAR_2M);
    CALL(cuMemcpyDtoH_v2, "managed", (plain, m + 100, 64));
    par_see("written-by-cpu", "%d", plain[63]);
    CALL(cuMemcpyHtoD_v2, "managed", (m + PAR_2M - 32, plain, 64));
    par_see("copied-in", "%d", bytes_of(m)[PAR_2M + 31]);
    CALL(cuMemsetD8_v2, "managed", (m + 8, 9, 2 * PAR_2M));
    SETUP(cuCtxSynchronize, ());
    par_see("set", "%d %d", bytes_of(m)[7], bytes_of(m)[PAR_2M]);
    CALL(cuMemcpyDtoD_v2, "managed-to-device", (d, m, PAR_2M));
    CALL(cuMemcpyDtoD_v2, "device-to-managed", (m + 2 * PAR_2M, d, PAR_2M));
    SETUP(cuCtxSynchronize, ());
    par_see("around", "%d", bytes_of(m)[2 * PAR_2M + 8]);
    CALL(cuMemcpy, "within-managed", (m, m + PAR_2M, PAR_2M));
    CALL(cuMemcpyDtoD_v2, "past-end", (d, m + 3 * PAR_2M - 8, 16));
    CALL(cuMemcpyHtoD_v2, "as-host", (d, bytes_of(m), 64));
    CALL(cuMemcpyDtoH_v2, "as-host", (bytes_of(m), d, 64));
    CALL(cuMemsetD32_v2, "unaligned", (m + 2, 1, 4));
    CALL(cuMemcpyPeer, "managed", (m, par.primary, d, par.primary, 64));
}

SCENARIO(copy_types, "managed/copy-types", par_context) {
    static const CUmemorytype types[] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE,
                                         CU_MEMORYTYPE_UNIFIED};
    CUdeviceptr m = managed(PAR_2M);
    CUdeviceptr d = par_alloc(PAR_2M);
    for (size_t i = 0; i < 3; i++) {
        CUDA_MEMCPY2D c;
        memset(&c, 0, sizeof(c));
        c.srcMemoryType = types[i];
        c.srcHost = bytes_of(m);
        c.srcDevice = m;
        c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        c.dstDevice = d;
        c.srcPitch = c.dstPitch = c.WidthInBytes = 64;
        c.Height = 4;
        par_note("type=%d", (int)types[i]);
        CALL(cuMemcpy2D_v2, "managed", (&c));
    }
}

SCENARIO(waits, "managed/waits", par_context) {
    CUstream s = par_stream();
    CUdeviceptr m = managed(8192);
    par_hold(s);
    CALL(cuMemsetD8Async, "managed", (m, 3, 8192, s));
    CALL(cuMemcpyHtoDAsync_v2, "managed", (m, "abcdefgh", 8, s));
    CALL(cuMemcpyDtoDAsync_v2, "managed", (m + 4096, m, 8, s));
    CALL(cuStreamQuery, "held", (s));
    PAR_DRAIN("after", s);
    par_see("content", "%d %d", bytes_of(m)[4096], bytes_of(m)[8000]);
    CALL(cuStreamWriteValue32_v2, "managed", (s, m, 77, 0));
    CALL(cuStreamWaitValue32_v2, "managed", (s, m, 77, CU_STREAM_WAIT_VALUE_EQ));
    CALL(cuStreamWriteValue64_v2, "managed", (s, m + 8, 78, 0));
    CALL(cuStreamSynchronize, "after", (s));
    par_see("content", "%d %d", bytes_of(m)[0], bytes_of(m)[8]);
}

/* ---- What the rest of the driver says -------------------------------------------------------- */

SCENARIO(others, "managed/others", par_context) {
    CUdeviceptr m, base, got;
    CUmemGenericAllocationHandle handle;
    CUipcMemHandle ipc;
    CUmemPoolPtrExportData exported;
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    unsigned long long rights;
    size_t size;
    unsigned flags;
    int fd;
    m = managed(2 * PAR_2M);
    NAME_R(m, 2 * PAR_2M);
    CALLO(cuMemGetAddressRange_v2, "managed", (&base, &size, m), OUT_P(base), OUT_U(size));
    CALLO(cuMemGetAddressRange_v2, "managed-interior", (&base, &size, m + 70000), OUT_P(base),
          OUT_U(size));
    CALLO(cuMemHostGetDevicePointer_v2, "managed", (&got, bytes_of(m), 0), OUT_P(got));
    CALLO(cuMemHostGetFlags, "managed", (&flags, bytes_of(m)), OUT_U(flags));
    CALL(cuMemHostRegister_v2, "managed", (bytes_of(m), 4096, 0));
    CALL(cuMemHostRegister_v2, "managed-part", (bytes_of(m) + 4096, 4096, 1));
    CALLO(cuIpcGetMemHandle, "managed", (&ipc, m), OUT_C(ipc));
    CALLO(cuMemRetainAllocationHandle, "managed", (&handle, bytes_of(m)), OUT_C(handle));
    CALLO(cuMemPoolExportPointer, "managed", (&exported, m), OUT_C(exported));
    CALLO(cuMemGetAccess, "managed", (&rights, &location, m), OUT_C(rights));
    CALL(cuMemSetAccess, "managed", (m, PAR_2M, &access, 1));
    CALL(cuMemUnmap, "managed", (m, PAR_2M));
    CALL(cuMemAddressFree, "managed", (m, 2 * PAR_2M));
    CALLO(cuMemGetHandleForAddressRange, "managed",
          (&fd, m, PAR_2M, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), OUT_D(fd));
    CALL(cuMemFree_v2, "ok", (m));
    CALLO(cuMemGetAddressRange_v2, "freed", (&base, &size, m), OUT_P(base), OUT_U(size));
    CALLO(cuPointerGetAttribute, "freed", (&flags, CU_POINTER_ATTRIBUTE_IS_MANAGED, m),
          OUT_U(flags));
}

static void one(const char *cls, int a, CUdeviceptr p) {
    uint64_t word;
    unsigned number;
    par_note("attribute=%d", a);
    if (a == CU_POINTER_ATTRIBUTE_CONTEXT || a == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE)
        CALLO(cuPointerGetAttribute, cls, (&word, (CUpointer_attribute)a, p), OUT_H(word));
    else if (a == CU_POINTER_ATTRIBUTE_DEVICE_POINTER || a == CU_POINTER_ATTRIBUTE_HOST_POINTER ||
             a == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
             a == CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR)
        CALLO(cuPointerGetAttribute, cls, (&word, (CUpointer_attribute)a, p), OUT_P(word));
    else if (a == CU_POINTER_ATTRIBUTE_BUFFER_ID || a == CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID)
        CALLO(cuPointerGetAttribute, cls, (&word, (CUpointer_attribute)a, p), OUT_C(word));
    else if (a == CU_POINTER_ATTRIBUTE_RANGE_SIZE || a == CU_POINTER_ATTRIBUTE_MAPPING_SIZE ||
             a == CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES)
        CALLO(cuPointerGetAttribute, cls, (&word, (CUpointer_attribute)a, p), OUT_U(word));
    else if (a != CU_POINTER_ATTRIBUTE_P2P_TOKENS)
        CALLO(cuPointerGetAttribute, cls, (&number, (CUpointer_attribute)a, p), OUT_I(number));
}

static void attributes(const char *cls, CUdeviceptr p) {
    for (int a = 1; a <= 21; a++)
        one(cls, a, p);
}

SCENARIO(pointers, "managed/pointers", par_context) {
    CUdeviceptr m, n;
    unsigned flag = 0, got;
    NAME(par.primary);
    SETUP(cuMemAllocManaged, (&m, 3 * PAR_2M + 5, CU_MEM_ATTACH_HOST));
    NAME_R(m, 3 * PAR_2M + 5);
    attributes("managed-host", m + PAR_2M + 7);
    CALL(cuPointerSetAttribute, "managed", (&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, m));
    CALLO(cuPointerGetAttribute, "after-set", (&got, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, m),
          OUT_U(got));
    SETUP(cuMemPrefetchAsync, (m, PAR_2M, 0, NULL));
    SETUP(cuCtxSynchronize, ());
    one("prefetched", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, m);
    one("prefetched", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, m);
    SETUP(cuMemPrefetchAsync, (m, PAR_2M, -1, NULL));
    SETUP(cuCtxSynchronize, ());
    one("prefetched-to-cpu", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, m);
    one("prefetched-to-cpu", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, m);
    n = managed(100);
    one("one-past-end", CU_POINTER_ATTRIBUTE_IS_MANAGED, n + 100);
    one("one-past-end", CU_POINTER_ATTRIBUTE_RANGE_SIZE, n + 99);
}

SCENARIO(set_by_kind, "managed/set-by-kind", par_context) {
    char *heap = malloc(8192);
    CUdeviceptr pooled, m, got;
    unsigned flag = 1;
    CUstream s = par_stream();
    m = managed(8192);
    SETUP(cuMemAllocAsync, (&pooled, 4096, s));
    CALL(cuPointerSetAttribute, "pool", (&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pooled));
    CALL(cuPointerSetAttribute, "heap",
         (&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)(uintptr_t)heap));
    SETUP(cuMemHostRegister_v2, (heap, 8192, 0));
    CALL(cuPointerSetAttribute, "registered",
         (&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)(uintptr_t)heap));
    CALL(cuPointerSetAttribute, "reserved",
         (&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, par_reserve(PAR_2M)));
    CALL(cuPointerSetAttribute, "managed-interior",
         (&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, m + 5000));
    for (int a = 1; a <= 22; a++) {
        if (a == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
            continue;
        par_note("attribute=%d", a);
        CALL(cuPointerSetAttribute, "managed-read-only", (&flag, (CUpointer_attribute)a, m));
    }
    CALLO(cuMemHostGetDevicePointer_v2, "registered", (&got, heap, 0), OUT_C(got));
    SETUP(cuMemHostUnregister, (heap));
    free(heap);
}

/* ---- Registration ---------------------------------------------------------------------------- */

static char *pages(size_t size, int protection) {
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, 1, size);
    mprotect(p, size, protection);
    return p;
}

SCENARIO(register_io, "managed/register-io", par_context) {
    char *p = pages(8192, PROT_READ | PROT_WRITE);
    char *r = pages(8192, PROT_READ);
    char *none = pages(8192, PROT_NONE);
    char *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned flags = 4; flags < 16; flags++) {
        if ((flags & CU_MEMHOSTREGISTER_IOMEMORY) == 0)
            continue;
        par_note("flags=%u", flags);
        CALL(cuMemHostRegister_v2, "io-memory", (p, 8192, flags));
    }
    for (unsigned flags = 0; flags < 16; flags++) {
        if ((flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0)
            continue;
        par_note("flags=%u", flags);
        CALL(cuMemHostRegister_v2, "read-only-pages", (r, 8192, flags));
        if (par_last() == CUDA_SUCCESS)
            SETUP(cuMemHostUnregister, (r));
    }
    CALL(cuMemHostRegister_v2, "io-memory-read-only-pages", (r, 8192, 4 | 8));
    CALL(cuMemHostRegister_v2, "no-rights", (none, 8192, 0));
    CALL(cuMemHostRegister_v2, "no-rights", (none, 8192, 8));
    CALL(cuMemHostRegister_v2, "shared", (shared, 8192, 0));
    CALL(cuMemHostUnregister, "shared", (shared));
    CALL(cuMemHostRegister_v2, "io-memory-zero-size", (p, 0, 4));
    CALL(cuMemHostRegister_v2, "io-memory-not-mapped", ((void *)0x10000, 4096, 4));
    munmap(shared, 8192);
    CALL(cuMemHostRegister_v2, "unmapped", (shared, 8192, 0));
}

SCENARIO(registered_read_only, "managed/registered-read-only", par_context) {
    char *p = pages(8192, PROT_READ | PROT_WRITE);
    unsigned flags;
    CUstream s = par_stream();
    CUdeviceptr r = (CUdeviceptr)(uintptr_t)p;
    CUdeviceptr d = par_alloc(8192);
    SETUP(cuMemsetD8_v2, (d, 4, 8192));
    SETUP(cuMemHostRegister_v2, (p, 8192, CU_MEMHOSTREGISTER_READ_ONLY));
    CALLO(cuPointerGetAttribute, "read-only", (&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, r),
          OUT_U(flags));
    CALL(cuMemcpyHtoD_v2, "read-only-registered", (d, p, 8192));
    CALL(cuMemcpyHtoDAsync_v2, "read-only-registered", (d, p, 8192, s));
    CALL(cuStreamSynchronize, "after", (s));
    CALL(cuMemcpyDtoH_v2, "read-only-registered", (p, d, 64));
    par_see("content", "%d", p[5]);
    CALL(cuStreamSynchronize, "after", (s));
    CALL(cuMemcpyDtoHAsync_v2, "read-only-registered", (p, d, 64, s));
    CALL(cuStreamSynchronize, "after", (s));
    CALL(cuMemsetD8_v2, "read-only-registered", (r, 6, 64));
    CALL(cuCtxSynchronize, "after", ());
}

/* ---- Pools ----------------------------------------------------------------------------------- */

static CUmemPoolProps pool_props(CUmemLocationType type, int id) {
    return (CUmemPoolProps){
        .allocType = CU_MEM_ALLOCATION_TYPE_MANAGED, .location.type = type, .location.id = id};
}

SCENARIO(pool_creates, "managed/pool-creates", par_context) {
    static const struct {
        CUmemLocationType type;
        int id;
    } at[] = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
              {CU_MEM_LOCATION_TYPE_DEVICE, 99},
              {CU_MEM_LOCATION_TYPE_DEVICE, -1},
              {CU_MEM_LOCATION_TYPE_HOST, 0},
              {CU_MEM_LOCATION_TYPE_HOST, 5},
              {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0},
              {CU_MEM_LOCATION_TYPE_HOST_NUMA, 99},
              {CU_MEM_LOCATION_TYPE_HOST_NUMA, -1},
              {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0},
              {CU_MEM_LOCATION_TYPE_INVALID, 0},
              {CU_MEM_LOCATION_TYPE_INVALID, 7},
              {(CUmemLocationType)9, 0}};
    CUmemoryPool pool;
    for (size_t i = 0; i < COUNT(at); i++) {
        CUmemPoolProps props = pool_props(at[i].type, at[i].id);
        par_note("location=%d id=%d", (int)at[i].type, at[i].id);
        CALLO(cuMemPoolCreate, "managed", (&pool, &props), OUT_C(pool));
        if (par_last() == CUDA_SUCCESS)
            SETUP(cuMemPoolDestroy, (pool));
    }
    for (int types = 1; types <= 8; types *= 2) {
        CUmemPoolProps props = pool_props(CU_MEM_LOCATION_TYPE_DEVICE, 0);
        props.handleTypes = (CUmemAllocationHandleType)types;
        par_note("handle-types=%d", types);
        CALLO(cuMemPoolCreate, "managed-shared", (&pool, &props), OUT_C(pool));
        if (par_last() == CUDA_SUCCESS)
            SETUP(cuMemPoolDestroy, (pool));
    }
    CUmemPoolProps props = pool_props(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    props.maxSize = MIB(64);
    CALLO(cuMemPoolCreate, "managed-max-size", (&pool, &props), OUT_C(pool));
    props.maxSize = ~(size_t)0;
    CALLO(cuMemPoolCreate, "managed-too-large", (&pool, &props), OUT_C(pool));
    props.maxSize = 0;
    props.reserved[3] = 1;
    CALLO(cuMemPoolCreate, "managed-reserved-set", (&pool, &props), OUT_C(pool));
}

static void pool_one(const char *cls, CUmemLocationType type, int id) {
    CUmemPoolProps props = pool_props(type, id);
    CUdeviceptr a, b;
    uint64_t word;
    unsigned char plain[8];
    int number;
    par_context();
    NAME(par.primary);
    CUstream s = par_stream();
    CUmemoryPool pool = par_pool(&props);
    NAME(pool);
    CALLO(cuMemAllocFromPoolAsync, cls, (&a, 100000, pool, s), OUT_R(a, 100000));
    CALLO(cuMemAllocFromPoolAsync, cls, (&b, 100, pool, s), OUT_R(b, 100));
    CALL(cuStreamSynchronize, "after", (s));
    attributes(cls, a);
    CALLO(cuMemPoolGetAttribute, cls, (pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &word),
          OUT_U(word));
    CALLO(cuMemPoolGetAttribute, cls, (pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &word), OUT_U(word));
    CALLO(cuMemPoolGetAttribute, cls, (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &word),
          OUT_U(word));
    bytes_of(a)[99999] = 42;
    CALL(cuMemcpyDtoH_v2, cls, (plain, a + 99992, 8));
    par_see("written-by-cpu", "%d", plain[7]);
    CALL(cuMemsetD8_v2, cls, (a, 17, 100000));
    SETUP(cuCtxSynchronize, ());
    par_see("set", "%d", bytes_of(a)[5]);
    for (int i = 1; i <= 8; i++) {
        par_note("attribute=%d", i);
        CALLO(cuMemRangeGetAttribute, cls, (&number, 4, (CUmem_range_attribute)i, a, 100000),
              OUT_I(number));
    }
    CALL(cuMemAdvise, cls, (a, 100000, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CALL(cuMemPrefetchAsync, cls, (a, 100000, 0, s));
    CALLO(cuMemRangeGetAttribute, "advised", (&number, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, a, 9),
          OUT_I(number));
    CALLO(cuMemRangeGetAttribute, "neighbour",
          (&number, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, b, 9), OUT_I(number));
    CALL(cuStreamAttachMemAsync, cls, (s, a, 0, CU_MEM_ATTACH_SINGLE));
    CALL(cuStreamSynchronize, "after", (s));
    CALL(cuMemFreeAsync, cls, (a, s));
    CALL(cuMemFree_v2, cls, (b));
    CALL(cuStreamSynchronize, "after", (s));
    FORGET(a);
    CALLO(cuMemAllocFromPoolAsync, "again", (&a, 100000, pool, s), OUT_C(a));
    CALLO(cuMemRangeGetAttribute, "allocated-again",
          (&number, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, a, 9), OUT_I(number));
    CALL(cuMemPoolDestroy, cls, (pool));
}

SCENARIO_IS(pool_device, "managed/pool-device",
            pool_one("managed-pool", CU_MEM_LOCATION_TYPE_DEVICE, 0));
SCENARIO_IS(pool_host, "managed/pool-host",
            pool_one("managed-pool-host", CU_MEM_LOCATION_TYPE_HOST, 0));
SCENARIO_IS(pool_anywhere, "managed/pool-anywhere",
            pool_one("managed-pool-none", CU_MEM_LOCATION_TYPE_INVALID, 0));

SCENARIO(pool_access, "managed/pool-access", par_context) {
    CUmemPoolProps props = pool_props(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemAccess_flags flags;
    CUmemPoolPtrExportData exported;
    int fd;
    CUmemoryPool pool = par_pool(&props);
    for (int type = 0; type <= 4; type++) {
        CUmemLocation location = {(CUmemLocationType)type, 0};
        CUmemAccessDesc none = {location, CU_MEM_ACCESS_FLAGS_PROT_NONE};
        CUmemAccessDesc read = {location, CU_MEM_ACCESS_FLAGS_PROT_READ};
        CUmemAccessDesc both = {location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        par_note("location=%d", type);
        CALLO(cuMemPoolGetAccess, "managed-pool", (&flags, pool, &location), OUT_I(flags));
        par_note("location=%d", type);
        CALL(cuMemPoolSetAccess, "managed-pool-both", (pool, &both, 1));
        par_note("location=%d", type);
        CALL(cuMemPoolSetAccess, "managed-pool-read", (pool, &read, 1));
        par_note("location=%d", type);
        CALL(cuMemPoolSetAccess, "managed-pool-none", (pool, &none, 1));
    }
    CALLO(cuMemPoolExportToShareableHandle, "managed-pool",
          (&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_C(fd));
    CUdeviceptr p = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, 4096, pool, NULL);
    CALLO(cuMemPoolExportPointer, "managed-pool", (&exported, p), OUT_C(exported));
    CALL(cuMemPoolTrimTo, "managed-pool", (pool, 0));
    CALL(cuMemFreeAsync, "managed-pool", (p, NULL));
    CALL(cuCtxSynchronize, "after", ());
    CALL(cuMemPoolDestroy, "managed-pool", (pool));
}

SCENARIO(pool_current, "managed/pool-current", par_context) {
    CUmemPoolProps props = pool_props(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemPoolProps pinned = pool_props(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    CUmemoryPool pool, plain, usual, got;
    CUdeviceptr p;
    uint64_t word;
    unsigned is;
    pinned.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    SETUP(cuMemPoolCreate, (&pool, &props));
    SETUP(cuMemPoolCreate, (&plain, &pinned));
    NAME(pool);
    NAME(plain);
    CALLO(cuMemGetDefaultMemPool, "managed", (&usual, &device, CU_MEM_ALLOCATION_TYPE_MANAGED),
          OUT_H(usual));
    CALLO(cuMemPoolGetAttribute, "managed-default",
          (usual, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &word), OUT_U(word));
    CALLO(cuMemPoolGetAttribute, "managed-default",
          (usual, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &word), OUT_U(word));
    CALL(cuMemSetMemPool, "managed", (&device, CU_MEM_ALLOCATION_TYPE_MANAGED, pool));
    CALLO(cuMemGetMemPool, "managed-set", (&got, &device, CU_MEM_ALLOCATION_TYPE_MANAGED),
          OUT_H(got));
    CALLO(cuMemGetMemPool, "pinned", (&got, &device, CU_MEM_ALLOCATION_TYPE_PINNED), OUT_C(got));
    par_see("pinned-is", "%s", got == pool ? "the managed pool" : "another");
    CALL(cuMemSetMemPool, "pinned-as-managed", (&device, CU_MEM_ALLOCATION_TYPE_MANAGED, plain));
    CALL(cuMemSetMemPool, "managed-as-pinned", (&device, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
    CALL(cuMemSetMemPool, "managed-elsewhere", (&host, CU_MEM_ALLOCATION_TYPE_MANAGED, pool));
    CALL(cuDeviceSetMemPool, "managed", (0, pool));
    CALLO(cuDeviceGetMemPool, "managed", (&got, 0), OUT_C(got));
    par_see("device-pool-is", "%s", got == pool ? "the managed pool" : "another");
    CALLO(cuMemAllocAsync, "managed", (&p, 4096, NULL), OUT_C(p));
    CALLO(cuPointerGetAttribute, "alloc-async", (&is, CU_POINTER_ATTRIBUTE_IS_MANAGED, p),
          OUT_U(is));
    CALL(cuMemFreeAsync, "ok", (p, NULL));
    CALLO(cuMemAllocFromPoolAsync, "managed-default", (&p, 4096, usual, NULL), OUT_C(p));
    CALLO(cuPointerGetAttribute, "managed-default", (&is, CU_POINTER_ATTRIBUTE_IS_MANAGED, p),
          OUT_U(is));
    CALL(cuMemFreeAsync, "ok", (p, NULL));
    CALL(cuMemPoolDestroy, "managed-default", (usual));
    CALL(cuMemPoolDestroy, "managed-current", (pool));
    CALLO(cuMemGetMemPool, "after-destroy", (&got, &device, CU_MEM_ALLOCATION_TYPE_MANAGED),
          OUT_C(got));
    par_see("current-is", "%s", got == usual ? "the default" : "another");
}

SCENARIO(pool_in_use, "managed/pool-in-use", par_context, PAR_ALONE) {
    CUmemPoolProps props = pool_props(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUstream s = par_stream();
    CUmemoryPool pool = par_pool(&props);
    par_free_mark();
    CUdeviceptr p = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, MIB(8), pool, s);
    SETUP(cuStreamSynchronize, (s));
    par_free_delta("allocated");
    SETUP(cuMemPrefetchAsync, (p, MIB(8), 0, s));
    SETUP(cuStreamSynchronize, (s));
    par_free_delta("prefetched");
    SETUP(cuMemFreeAsync, (p, s));
    SETUP(cuStreamSynchronize, (s));
    par_free_delta("freed");
    SETUP(cuMemPoolDestroy, (pool));
    par_free_delta("destroyed");
}

/* ---- More of pools --------------------------------------------------------------------------- */

SCENARIO_IS(pool_node, "managed/pool-node",
            pool_one("managed-pool-node", CU_MEM_LOCATION_TYPE_HOST_NUMA, 0));
SCENARIO_IS(pool_near, "managed/pool-near",
            pool_one("managed-pool-near", CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0));

static void accessors(const char *cls, CUmemoryPool pool, CUdeviceptr p) {
    CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    CUmemLocation node = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    CUmemAccess_flags flags;
    int list[2];
    CALLO(cuMemPoolGetAccess, cls, (&flags, pool, &device), OUT_I(flags));
    CALLO(cuMemPoolGetAccess, cls, (&flags, pool, &host), OUT_I(flags));
    CALLO(cuMemPoolGetAccess, cls, (&flags, pool, &node), OUT_I(flags));
    CALLO(cuMemRangeGetAttribute, cls, (list, 8, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 4096),
          OUT_I(list[0]), OUT_I(list[1]));
}

SCENARIO(pool_told, "managed/pool-told", par_context) {
    CUmemPoolProps props = pool_props(CU_MEM_LOCATION_TYPE_HOST, 0);
    CUmemAccessDesc device = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAccessDesc host = {{CU_MEM_LOCATION_TYPE_HOST, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAccessDesc bad = {{CU_MEM_LOCATION_TYPE_DEVICE, 99}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    int n;
    CUmemoryPool pool = par_pool(&props);
    CUdeviceptr p = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, 4096, pool, NULL);
    accessors("before", pool, p);
    CALL(cuMemPoolSetAccess, "bad-device", (pool, &bad, 1));
    CALL(cuMemPoolSetAccess, "device", (pool, &device, 1));
    accessors("device", pool, p);
    CALL(cuMemPoolSetAccess, "host", (pool, &host, 1));
    accessors("device-and-host", pool, p);
    device.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CALL(cuMemPoolSetAccess, "device-none", (pool, &device, 1));
    accessors("host", pool, p);
    SETUP(cuMemPrefetchAsync, (p, 4096, 0, NULL));
    CALL(cuMemFreeAsync, "ok", (p, NULL));
    CUdeviceptr q = PAR_MADE(CUdeviceptr, cuMemAllocFromPoolAsync, 4096, pool, NULL);
    par_see("same-address", "%d", p == q);
    CALLO(cuMemRangeGetAttribute, "allocated-again",
          (&n, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, q, 4096), OUT_I(n));
    SETUP(cuMemFreeAsync, (q, NULL));
    SETUP(cuCtxSynchronize, ());
    SETUP(cuMemPoolDestroy, (pool));
}

SCENARIO(pool_destroyed_current, "managed/pool-destroyed-current", par_context) {
    CUmemPoolProps props = pool_props(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool pool, usual, got, again;
    SETUP(cuMemPoolCreate, (&pool, &props));
    SETUP(cuMemGetDefaultMemPool, (&usual, &device, CU_MEM_ALLOCATION_TYPE_MANAGED));
    SETUP(cuMemSetMemPool, (&device, CU_MEM_ALLOCATION_TYPE_MANAGED, pool));
    SETUP(cuMemPoolDestroy, (pool));
    SETUP(cuMemGetMemPool, (&got, &device, CU_MEM_ALLOCATION_TYPE_MANAGED));
    SETUP(cuMemGetDefaultMemPool, (&again, &device, CU_MEM_ALLOCATION_TYPE_MANAGED));
    par_see("current", "%s", got == pool ? "destroyed" : got == usual ? "default" : "other");
    par_see("default", "%s", again == usual ? "the same" : "another");
    CALL(cuMemSetMemPool, "default", (&device, CU_MEM_ALLOCATION_TYPE_MANAGED, usual));
    SETUP(cuMemGetMemPool, (&got, &device, CU_MEM_ALLOCATION_TYPE_MANAGED));
    par_see("current", "%s", got == usual ? "default" : "other");
}

/* Small allocations share pages. */
SCENARIO(shared_pages, "managed/shared-pages", par_context) {
    int n;
    CUdeviceptr a = managed(600);
    CUdeviceptr b = managed(600);
    par_see("same-page", "%d", a / 4096 == b / 4096);
#define MOSTLY(cls, p)                                                                             \
    CALLO(cuMemRangeGetAttribute, cls, (&n, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 600),        \
          OUT_I(n))
    SETUP(cuMemAdvise, (a, 600, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    SETUP(cuMemPrefetchAsync, (a, 600, 0, NULL));
    MOSTLY("advised", a);
    MOSTLY("neighbour", b);
    SETUP(cuMemFree_v2, (a));
    MOSTLY("neighbour-freed", b);
    CUdeviceptr c = managed(600);
    par_see("same-address", "%d", a == c);
    MOSTLY("allocated-again", c);
    CALLO(cuMemRangeGetAttribute, "allocated-again",
          (&n, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, c, 600), OUT_I(n));
    SETUP(cuMemAdvise, (c, 600, CU_MEM_ADVISE_UNSET_READ_MOSTLY, 0));
    a = managed(300000);
    SETUP(cuMemAdvise, (a, 300000, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    SETUP(cuMemFree_v2, (a));
    a = managed(300000);
    CALLO(cuMemRangeGetAttribute, "pages-of-freed",
          (&n, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, a + 8192, 4096), OUT_I(n));
}

SCENARIO(batch_more, "managed/batch-more", par_context) {
    CUmemLocation places[2] = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, {CU_MEM_LOCATION_TYPE_HOST, 0}};
    size_t sizes[3] = {65536, 65536, 65536}, index[2] = {0, 0};
    CUmemPoolProps props = pool_props(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUdeviceptr m[3];
    int n;
    CUstream s = par_stream();
    for (int i = 0; i < 3; i++)
        m[i] = managed(65536);
    CALL(cuMemPrefetchBatchAsync, "index-twice", (m, sizes, 3, places, index, 2, 0, s));
    CALLO(cuMemRangeGetAttribute, "index-twice",
          (&n, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, m[0], 65536), OUT_I(n));
    CALL(cuMemPrefetchBatchAsync_ptsz, "legacy-stream",
         (m, sizes, 3, places, index, 2, 0, CU_STREAM_LEGACY));
    CALL(cuMemDiscardBatchAsync_ptsz, "legacy-stream", (m, sizes, 3, 0, CU_STREAM_LEGACY));
    CUmemoryPool pool = par_pool(&props);
    SETUP(cuMemAllocFromPoolAsync, (&m[1], 65536, pool, s));
    CALL(cuMemPrefetchBatchAsync, "pool", (m, sizes, 3, places, index, 1, 0, s));
    CALL(cuMemDiscardBatchAsync, "pool", (m, sizes, 3, 0, s));
    CALL(cuStreamSynchronize, "after", (s));
}

/* Last, because bytes of a context that is gone may be gone too. */
SCENARIO(bytes_after_context, "managed/bytes-after-context", par_context) {
    CUcontext other = par_new_context();
    CUdeviceptr m = managed(4096);
    bytes_of(m)[0] = 5;
    SETUP(cuCtxDestroy_v2, (other));
    CALL(cuCtxGetDevice, "bytes-next", (NULL));
    par_see("bytes", "%d", bytes_of(m)[0]);
}
