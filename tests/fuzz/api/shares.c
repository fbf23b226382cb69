/* What crosses processes: descriptors, inter-process handles, exported pointers. */
#include "world.h"

static void got_descriptor(int fd) {
    if (fd > 0)
        remember(DESCRIPTORS, (uint64_t)fd);
}

static void *descriptor(void) {
    /* Never one that only happens to have this number. */
    unsigned count = world.counts[DESCRIPTORS], pick = byte();
    if (pick >= 0xf0 || count == 0)
        return (void *)(intptr_t)(pick & 1 ? -1 : 99999);
    return (void *)(uintptr_t)world.values[DESCRIPTORS][pick % count];
}

static CUmemAllocationHandleType handle_type(void) {
    return byte() < 0xe0 ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
                         : (CUmemAllocationHandleType)(byte() & 15);
}

static void export_handle(void) {
    int fd[16] = {-1};
    cuMemExportToShareableHandle(maybe(fd), HANDLE(), handle_type(), byte() < 0xf0 ? 0 : byte());
    got_descriptor(fd[0]);
}

static void import_handle(void) {
    CUmemGenericAllocationHandle handle = 0;
    void *from = descriptor();
    cuMemImportFromShareableHandle(maybe(&handle), from, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    remember(HANDLES, handle);
}

static void export_pool(void) {
    int fd[16] = {-1};
    cuMemPoolExportToShareableHandle(maybe(fd), POOL(), handle_type(), byte() < 0xf0 ? 0 : byte());
    got_descriptor(fd[0]);
}

static void import_pool(void) {
    CUmemoryPool pool = NULL;
    void *from = descriptor();
    cuMemPoolImportFromShareableHandle(maybe(&pool), from, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                       byte() < 0xf0 ? 0 : byte());
    remember(POOLS, (uintptr_t)pool);
}

static void export_pointer(void) {
    cuMemPoolExportPointer(&world.pointer, draw_any_address());
}

static void import_pointer(void) {
    CUdeviceptr made = 0;
    cuMemPoolImportPointer(maybe(&made), POOL(), maybe(&world.pointer));
    remember(ADDRESSES, made);
}

static void ipc_memory(void) {
    CUdeviceptr made = 0;
    switch (byte() % 3) {
    case 0:
        cuIpcGetMemHandle(&world.ipc_memory, draw_any_address());
        break;
    case 1:
        cuIpcOpenMemHandle_v2(maybe(&made), world.ipc_memory, byte() & 3);
        remember(ADDRESSES, made);
        break;
    default:
        cuIpcCloseMemHandle(draw_any_address());
        break;
    }
}

static void ipc_event(void) {
    CUevent made = NULL;
    if (byte() & 1) {
        cuIpcGetEventHandle(&world.ipc_event, EVENT());
    } else {
        cuIpcOpenEventHandle(maybe(&made), world.ipc_event);
        remember(EVENTS, (uintptr_t)made);
    }
}

/* What the other process sends need not be what was exported. */
static void damage(void) {
    unsigned pick = byte();
    unsigned char *bytes = pick % 3 == 0   ? (unsigned char *)&world.ipc_memory
                           : pick % 3 == 1 ? (unsigned char *)&world.ipc_event
                                           : (unsigned char *)&world.pointer;
    for (unsigned i = 0; i < 1 + pick / 64; i++)
        bytes[byte() % 64] ^= byte();
}

static const call_fn list[] = {
    export_handle,  import_handle, export_pool, import_pool, export_pointer,
    import_pointer, ipc_memory,    ipc_event,   damage,
};
const struct calls share_calls = {list, sizeof list / sizeof list[0]};
