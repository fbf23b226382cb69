/* Fabric handles: refused where there is no channel of a fabric; between processes of one machine
 * where softgpu's profile has one. */
#include "harness.h"
#include "temporary.h"

#include <fcntl.h>

#define PAGE   ((size_t)2 << 20)
#define FABRIC CU_MEM_HANDLE_TYPE_FABRIC

static CUmemAllocationProp device_prop(void) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    prop.location = device_location(dev);
    prop.requestedHandleTypes = FABRIC;
    return prop;
}

static CUmemPoolProps pool_props(void) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = FABRIC,
                            .location = device_location(dev)};
    return props;
}

#define HAS_A_FABRIC 77

static void create_is_refused(void) {
    CUmemAllocationProp prop = device_prop();
    CUmemGenericAllocationHandle memory = 5;
    CUresult result = cu.cuMemCreate(&memory, PAGE, &prop, 0);
    if (result == CUDA_SUCCESS)
        exit(HAS_A_FABRIC);
    FAILS_CU(NOT_PERMITTED, result);
    assert_int_equal(memory, 5);
}

static void import_is_refused(void) {
    CUmemGenericAllocationHandle memory = 5;
    CUmemFabricHandle handle;
    memset(&handle, 0x5c, sizeof handle);
    FAILS_CU(NOT_SUPPORTED, cu.cuMemImportFromShareableHandle(&memory, &handle, FABRIC));
    FAILS_CU(INVALID_VALUE, cu.cuMemImportFromShareableHandle(&memory, NULL, FABRIC));
    assert_int_equal(memory, 5);
}

static void export_is_refused(void) {
    CUmemPoolProps props = pool_props();
    CUmemFabricHandle handle;
    CUmemoryPool pool = MADE_CU(CUmemoryPool, cuMemPoolCreate, &props);
    FAILS_CU(NOT_PERMITTED, cu.cuMemPoolExportToShareableHandle(&handle, pool, FABRIC, 0));
}

/* refused NAME: in a process that asked nothing else of the fabric, as on H200 when it was
 * recorded. */
CHILD(refused) {
    if (argc != 2)
        return 9;
    init_driver();
    if (strcmp(argv[1], "create") == 0)
        create_is_refused();
    else if (strcmp(argv[1], "import") == 0)
        import_is_refused();
    else
        export_is_refused();
    return 0;
}

/* A machine with a channel is not what this is about. */
TEST(fabric_handles_without_a_channel_are_refused) {
    int status = run_child("refused", "create", NULL);
    if (status == HAS_A_FABRIC)
        SKIP("this machine has a fabric");
    assert_int_equal(status, 0);
    assert_int_equal(run_child("refused", "import", NULL), 0);
    assert_int_equal(run_child("refused", "export", NULL), 0);
}

static CUdeviceptr map(CUmemGenericAllocationHandle handle) {
    CUmemAccessDesc desc = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    desc.location = device_location(dev);
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAddressReserve, PAGE, 0, 0, 0);
    OK_CU(cu.cuMemMap(p, PAGE, 0, handle, 0));
    OK_CU(cu.cuMemSetAccess(p, PAGE, &desc, 1));
    return p;
}

struct message {
    CUmemFabricHandle memory, pool;
    CUmemPoolPtrExportData pointer;
};

static void read_message(const char *fd, struct message *message) {
    assert_int_equal(pread(atoi(fd), message, sizeof *message, 0), sizeof *message);
}

/* importer FD: the handles are bytes in a file. */
CHILD(importer) {
    CUmemGenericAllocationHandle memory;
    CUmemoryPool pool;
    struct message message;
    CUdeviceptr block;
    if (argc != 2)
        return 9;
    read_message(argv[1], &message);
    init_driver();
    OK_CU(cu.cuMemImportFromShareableHandle(&memory, &message.memory, FABRIC));
    CUdeviceptr p = map(memory);
    assert_int_equal(word_at(p), 0x11112222);
    OK_CU(cu.cuMemsetD32_v2(p, 0x33334444, 1));
    OK_CU(cu.cuMemPoolImportFromShareableHandle(&pool, &message.pool, FABRIC, 0));
    OK_CU(cu.cuMemPoolImportPointer(&block, pool, &message.pointer));
    assert_int_equal(word_at(block), 0x55556666);
    OK_CU(cu.cuCtxSynchronize());
    /* One kind of handle is not the other's, and what was imported is not handed on. */
    CUmemGenericAllocationHandle wrong;
    FAILS_CU(INVALID_VALUE, cu.cuMemImportFromShareableHandle(&wrong, &message.pool, FABRIC));
    FAILS_CU(INVALID_VALUE, cu.cuMemExportToShareableHandle(&message.memory, memory, FABRIC, 0));
    memset(&message.memory, 0x5c, sizeof message.memory);
    FAILS_CU(INVALID_VALUE, cu.cuMemImportFromShareableHandle(&wrong, &message.memory, FABRIC));
    return 0;
}

/* late FD: the memory is gone. */
CHILD(late) {
    CUmemGenericAllocationHandle memory;
    struct message message;
    if (argc != 2)
        return 9;
    read_message(argv[1], &message);
    init_driver();
    FAILS_CU(INVALID_VALUE, cu.cuMemImportFromShareableHandle(&memory, &message.memory, FABRIC));
    return 0;
}

CHILD_THAT_ENDS(exporter) {
    CUmemAllocationProp prop = device_prop();
    CUmemPoolProps props = pool_props();
    CUmemGenericAllocationHandle memory;
    struct message message;
    char path[TEMPORARY_ROOM], text[16];
    init_driver();
    OK_CU(cu.cuMemCreate(&memory, PAGE, &prop, 0));
    CUdeviceptr p = map(memory);
    OK_CU(cu.cuMemsetD32_v2(p, 0x11112222, 1));
    OK_CU(cu.cuMemExportToShareableHandle(&message.memory, memory, FABRIC, 0));
    int refused = -1;
    FAILS_CU(INVALID_VALUE, cu.cuMemExportToShareableHandle(
                                &refused, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CUmemoryPool pool = MADE_CU(CUmemoryPool, cuMemPoolCreate, &props);
    CUdeviceptr block = MADE_CU(CUdeviceptr, cuMemAllocFromPoolAsync, 4096, pool, NULL);
    set_words(block, 0x55556666, 1);
    OK_CU(cu.cuMemPoolExportToShareableHandle(&message.pool, pool, FABRIC, 0));
    OK_CU(cu.cuMemPoolExportPointer(&message.pointer, block));
    int fd = temporary_file(path, "softgpu-fabric");
    assert_true(fd >= 0);
    unlink(path);
    assert_int_equal(pwrite(fd, &message, sizeof message, 0), sizeof message);
    snprintf(text, sizeof text, "%d", fd);
    assert_int_equal(run_child("importer", text, NULL), 0);
    assert_int_equal(word_at(p), 0x33334444);
    OK_CU(cu.cuMemUnmap(p, PAGE));
    OK_CU(cu.cuMemRelease(memory));
    assert_int_equal(run_child("late", text, NULL), 0);
}

TEST_WHERE(memory_is_shared_between_processes_by_fabric_handle, NEEDS_SOFTGPU("its profiles")) {
    static const char profile[] = "[device]\nlike = h200\nmemory = 64M\n[links]\nfabric = 1\n";
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "softgpu-profile");
    assert_true(fd >= 0);
    assert_int_equal(write(fd, profile, sizeof profile - 1), sizeof profile - 1);
    close(fd);
    setenv("SOFTGPU_PROFILE", path, 1);
    int status = run_child("exporter", NULL);
    unsetenv("SOFTGPU_PROFILE");
    unlink(path);
    assert_int_equal(status, 0);
}
