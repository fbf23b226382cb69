/* Memory and semaphores of other libraries, multicast objects, fabric handles, decompression. */
#include "world.h"

#include <fcntl.h>
#include <unistd.h>

#define MEMORY()    OF(CUexternalMemory, EXTERNAL_MEMORIES)
#define SEMAPHORE() OF(CUexternalSemaphore, EXTERNAL_SEMAPHORES)

/* A duplicate, which an import takes when it succeeds. */
static int draw_descriptor(void) {
    unsigned count = world.counts[DESCRIPTORS], pick = byte();
    if (pick >= 0xf8 || count == 0)
        return -1;
    return fcntl((int)world.values[DESCRIPTORS][pick % count], F_DUPFD_CLOEXEC, 0);
}

static void import_memory(void) {
    CUexternalMemory made = NULL;
    int fd = draw_descriptor();
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {
        .type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
        .size = draw_size(),
        .flags = byte() < 0xc0 ? 0 : byte() & 3,
    };
    description.handle.fd = fd;
    if (byte() >= 0xf0) {
        description.type = (CUexternalMemoryHandleType)(byte() % 11);
        if (description.type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD &&
            description.type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD)
            memset(&description.handle, 0, sizeof description.handle);
    }
    CUresult result = cuImportExternalMemory(maybe(&made), maybe(&description));
    if (fd >= 0 && result != CUDA_SUCCESS && !made)
        close(fd);
    remember(EXTERNAL_MEMORIES, (uintptr_t)made);
}

static void map_memory(void) {
    CUdeviceptr address = 0;
    CUmipmappedArray mipmap = NULL;
    if (byte() & 1) {
        CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {
            byte() < 0xc0 ? 0 : draw_size(), draw_size(), byte() < 0xf8 ? 0 : 1, {0}};
        cuExternalMemoryGetMappedBuffer(maybe(&address), MEMORY(), maybe(&buffer));
        remember(ADDRESSES, address);
        return;
    }
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC shape = {.offset = byte() < 0xc0 ? 0 : draw_size(),
                                                       .arrayDesc = draw_shape(),
                                                       .numLevels = byte() & 3};
    cuExternalMemoryGetMappedMipmappedArray(maybe(&mipmap), MEMORY(), maybe(&shape));
    remember(MIPMAPS, (uintptr_t)mipmap);
}

static void destroy(void) {
    if (byte() & 1)
        cuDestroyExternalMemory(MEMORY());
    else
        cuDestroyExternalSemaphore(SEMAPHORE());
}

static void import_semaphore(void) {
    CUexternalSemaphore made = NULL;
    unsigned pick = byte();
    int fd = pick < 0xe0 ? fcntl(semaphore_files[pick & 1], F_DUPFD_CLOEXEC, 0) : draw_descriptor();
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC description = {
        .type = pick & 1 ? CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
                         : CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD,
        .flags = byte() < 0xf8 ? 0 : 1,
    };
    description.handle.fd = fd;
    if (pick >= 0xf0) {
        description.type = (CUexternalSemaphoreHandleType)(byte() % 12);
        if (description.type != CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD &&
            description.type != CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD)
            memset(&description.handle, 0, sizeof description.handle);
    }
    CUresult result = cuImportExternalSemaphore(maybe(&made), maybe(&description));
    if (fd >= 0 && result != CUDA_SUCCESS && !made)
        close(fd);
    remember(EXTERNAL_SEMAPHORES, (uintptr_t)made);
}

static void fences(void) {
    CUexternalSemaphore list[2];
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signals[2];
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS waits[2];
    draw_fences(list, signals, waits, 2);
    if (byte() & 1)
        cuSignalExternalSemaphoresAsync(maybe(list), maybe(signals), byte() % 3, STREAM());
    else
        cuWaitExternalSemaphoresAsync(maybe(list), maybe(waits), byte() % 3, STREAM());
}

static CUmulticastObjectProp draw_multicast(void) {
    return (CUmulticastObjectProp){byte() < 0xf0 ? 2 : byte() & 3, draw_size(),
                                   byte() < 0xc0 ? 0 : byte() & 9u, byte() < 0xf8 ? 0 : 1};
}

static void multicast(void) {
    CUmulticastObjectProp prop = draw_multicast();
    CUmemGenericAllocationHandle made = 0;
    size_t granularity;
    switch (byte() & 3) {
    case 0:
        cuMulticastGetGranularity(maybe(&granularity), maybe(&prop),
                                  (CUmulticastGranularity_flags)(byte() % 3));
        break;
    case 1:
        cuMulticastAddDevice(HANDLE(), draw_device());
        break;
    default:
        cuMulticastCreate(maybe(&made), maybe(&prop));
        remember(HANDLES, made);
        remember_multicast(made);
        if (byte() & 1) {
            cuMulticastAddDevice(made, 0);
            cuMulticastAddDevice(made, 1);
        }
        break;
    }
}

static void bind(void) {
    size_t offset = byte() < 0xc0 ? 0 : draw_size(), from = byte() < 0xc0 ? 0 : draw_size();
    switch (byte() % 3) {
    case 0:
        cuMulticastBindMem(HANDLE(), offset, HANDLE(), from, draw_size(), byte() < 0xf8 ? 0 : 1);
        break;
    case 1:
        cuMulticastBindAddr(HANDLE(), offset, draw_any_address(), draw_size(),
                            byte() < 0xf8 ? 0 : 1);
        break;
    default:
        cuMulticastUnbind(HANDLE(), draw_device(), offset, draw_size());
        break;
    }
}

static void fabric(void) {
    CUmemGenericAllocationHandle made = 0;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, byte() & 1}};
    switch (byte() & 3) {
    case 0:
        cuMemCreate(maybe(&made), draw_size(), &prop, 0);
        break;
    case 1:
        cuMemExportToShareableHandle(maybe(&world.fabric), HANDLE(), CU_MEM_HANDLE_TYPE_FABRIC, 0);
        break;
    case 2:
        cuMemImportFromShareableHandle(maybe(&made), maybe(&world.fabric),
                                       CU_MEM_HANDLE_TYPE_FABRIC);
        break;
    default:
        ((unsigned char *)&world.fabric)[byte() % sizeof world.fabric] ^= byte();
        break;
    }
    remember(HANDLES, made);
}

/* Into bytes that no stream waits on: what comes out may be anything. */
static void decompress(void) {
    static unsigned char from[4096], to[4096];
    static cuuint32_t actual[2];
    size_t bad;
    CUmemDecompressParams params[2];
    memset(params, 0, sizeof params);
    draw_bytes(&world.input, from, byte() & 63);
    for (unsigned i = 0; i < 2; i++) {
        unsigned pick = byte();
        params[i].srcNumBytes = byte();
        params[i].dstNumBytes = byte() < 0xe0 ? sizeof to : byte();
        params[i].dstActBytes = pick < 0xf0 ? &actual[i] : NULL;
        params[i].src = pick & 1 ? from : (void *)(uintptr_t)draw_any_address();
        params[i].dst = to;
        params[i].algo = (CUmemDecompressAlgorithm)(byte() < 0xf0 ? 1u << pick % 3 : byte());
    }
    cuMemBatchDecompressAsync(maybe(params), byte() % 3, byte() < 0xf8 ? 0 : 1, maybe(&bad),
                              STREAM());
}

static const call_fn list[] = {
    import_memory, import_memory,    map_memory,       map_memory,
    destroy,       import_semaphore, import_semaphore, fences,
    fences,        multicast,        multicast,        bind,
    bind,          fabric,           fabric,           decompress,
};
const struct calls external_calls = {list, sizeof list / sizeof list[0]};
