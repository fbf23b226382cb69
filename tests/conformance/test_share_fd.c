/* Physical memory between processes by file descriptor. */
#include "harness.h"

#include <fcntl.h>
#include <sys/mman.h>

#define PAGE ((size_t)2 << 20)
#define FD   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static CUmemGenericAllocationHandle create(size_t size, CUmemAllocationHandleType type) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemGenericAllocationHandle handle;
    prop.location = device_location(dev);
    prop.requestedHandleTypes = type;
    OK_CU(cu.cuMemCreate(&handle, size, &prop, 0));
    return handle;
}

static CUdeviceptr map(CUmemGenericAllocationHandle handle, size_t size) {
    CUmemAccessDesc desc = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    desc.location = device_location(dev);
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAddressReserve, size, 0, 0, 0);
    OK_CU(cu.cuMemMap(p, size, 0, handle, 0));
    OK_CU(cu.cuMemSetAccess(p, size, &desc, 1));
    return p;
}

static void unmap(CUdeviceptr p, size_t size) {
    OK_CU(cu.cuMemUnmap(p, size));
    OK_CU(cu.cuMemAddressFree(p, size));
}

static void *as_handle(int fd) {
    return (void *)(intptr_t)fd;
}

TEST_WHERE(an_import_in_the_same_process_is_the_same_memory, NEEDS_DESCRIPTORS()) {
    CUmemGenericAllocationHandle handle = create(2 * PAGE, FD), imported, again;
    CUmemAllocationProp prop;
    int fd = -1, second = -1;
    OK_CU(cu.cuMemExportToShareableHandle(&fd, handle, FD, 0));
    OK_CU(cu.cuMemExportToShareableHandle(&second, handle, FD, 0));
    assert_true(fd >= 0 && second >= 0 && fd != second);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    OK_CU(cu.cuMemImportFromShareableHandle(&imported, as_handle(fd), FD));
    OK_CU(cu.cuMemImportFromShareableHandle(&again, as_handle(second), FD));
    close(fd);
    close(second);
    OK_CU(cu.cuMemGetAllocationPropertiesFromHandle(&prop, imported));
    assert_int_equal(prop.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    assert_int_equal(prop.requestedHandleTypes, 0);
    FAILS_CU(INVALID_VALUE, cu.cuMemExportToShareableHandle(&fd, imported, FD, 0));
    CUdeviceptr a = map(handle, 2 * PAGE), b = map(imported, 2 * PAGE);
    OK_CU(cu.cuMemsetD32_v2(a + PAGE, 0xabcdef01, 4));
    assert_int_equal(word_at(b + PAGE), 0xabcdef01);
    OK_CU(cu.cuMemRelease(handle));
    OK_CU(cu.cuMemRelease(imported));
    OK_CU(cu.cuMemRelease(again));
    unmap(a, 2 * PAGE);
    assert_int_equal(word_at(b + PAGE), 0xabcdef01);
    unmap(b, 2 * PAGE);
}

CHILD(importer) {
    CUmemGenericAllocationHandle handle;
    if (argc != 2)
        return 9;
    init_driver();
    OK_CU(cu.cuMemImportFromShareableHandle(&handle, as_handle(atoi(argv[1])), FD));
    close(atoi(argv[1]));
    CUdeviceptr p = map(handle, 2 * PAGE);
    unsigned seen = word_at(p + PAGE);
    set_words(p + PAGE + 4, 0x77665544, 1);
    unmap(p, 2 * PAGE);
    OK_CU(cu.cuMemRelease(handle));
    return seen == 0x01020304 ? 0 : 1;
}

static int inheritable(int fd) {
    int copy = fcntl(fd, F_DUPFD, 10);
    assert_true(copy >= 0);
    close(fd);
    return copy;
}

TEST_WHERE(another_process_reads_and_writes_imported_memory, NEEDS_DESCRIPTORS()) {
    CUmemGenericAllocationHandle handle = create(2 * PAGE, FD);
    CUdeviceptr p = map(handle, 2 * PAGE);
    char text[16];
    set_words(p + PAGE, 0x01020304, 1);
    int fd = MADE_CU(int, cuMemExportToShareableHandle, handle, FD, 0);
    fd = inheritable(fd);
    snprintf(text, sizeof text, "%d", fd);
    assert_int_equal(run_child("importer", text, NULL), 0);
    close(fd);
    assert_int_equal(word_at(p + PAGE + 4), 0x77665544);
    unmap(p, 2 * PAGE);
    OK_CU(cu.cuMemRelease(handle));
}

/* Exports, writes its descriptor's number to the pipe's parent through the file itself, and dies.
 */
CHILD(exporter) {
    if (argc != 2)
        return 9;
    init_driver();
    CUmemGenericAllocationHandle handle = create(PAGE, FD);
    CUdeviceptr p = map(handle, PAGE);
    set_words(p, 0x11aa22bb, 1);
    int fd = MADE_CU(int, cuMemExportToShareableHandle, handle, FD, 0);
    /* The parent finds it in /proc while this process waits to be killed. */
    if (dprintf(atoi(argv[1]), "%d %d\n", (int)getpid(), fd) < 0)
        return 1;
    pause();
    return 0;
}

TEST_WHERE(shared_memory_outlives_its_exporter, NEEDS_DESCRIPTORS()) {
    NEEDS_SOFTGPU("takes the descriptor out of /proc");
    CUmemGenericAllocationHandle imported;
    int ends[2], pid = 0, number = 0;
    char text[64], path[64];
    assert_int_equal(pipe(ends), 0);
    snprintf(text, sizeof text, "%d", ends[1]);
    int child = start_child("exporter", text, NULL);
    FILE *from = fdopen(ends[0], "r");
    assert_non_null(from);
    assert_non_null(fgets(text, sizeof text, from));
    assert_int_equal(sscanf(text, "%d %d", &pid, &number), 2);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    snprintf(text, sizeof text, "kill -9 %d", pid);
    assert_int_equal(system(text), 0);
    wait_child(child);
    OK_CU(cu.cuMemImportFromShareableHandle(&imported, as_handle(fd), FD));
    close(fd);
    CUdeviceptr p = map(imported, PAGE);
    assert_int_equal(word_at(p), 0x11aa22bb);
    unmap(p, PAGE);
    OK_CU(cu.cuMemRelease(imported));
    fclose(from);
    close(ends[1]);
}

TEST_WHERE(descriptors_that_are_not_exports_are_refused, NEEDS_DESCRIPTORS()) {
    CUmemGenericAllocationHandle handle = 7, plain = create(PAGE, CU_MEM_HANDLE_TYPE_NONE);
    int fd = -1, null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int foreign = memfd_create("foreign", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(foreign, (off_t)PAGE + 4096), 0);
    FAILS_CU(INVALID_VALUE, cu.cuMemExportToShareableHandle(&fd, plain, FD, 0));
    assert_int_equal(fd, -1);
    FAILS_CU(INVALID_VALUE, cu.cuMemImportFromShareableHandle(&handle, as_handle(0), FD));
    FAILS_CU(UNKNOWN, cu.cuMemImportFromShareableHandle(&handle, as_handle(9999), FD));
    FAILS_CU(UNKNOWN, cu.cuMemImportFromShareableHandle(&handle, as_handle(-1), FD));
    FAILS_CU(UNKNOWN, cu.cuMemImportFromShareableHandle(&handle, as_handle(null), FD));
    FAILS_CU(UNKNOWN, cu.cuMemImportFromShareableHandle(&handle, as_handle(foreign), FD));
    assert_int_equal(fcntl(foreign, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    FAILS_CU(UNKNOWN, cu.cuMemImportFromShareableHandle(&handle, as_handle(foreign), FD));
    FAILS_CU(INVALID_VALUE,
             cu.cuMemImportFromShareableHandle(&handle, as_handle(null), CU_MEM_HANDLE_TYPE_NONE));
    FAILS_CU(NOT_SUPPORTED,
             cu.cuMemImportFromShareableHandle(&handle, as_handle(null), CU_MEM_HANDLE_TYPE_WIN32));
    assert_int_equal(handle, 7);
    OK_CU(cu.cuMemRelease(plain));
    close(null);
    close(foreign);
}

/* The importer validates, and what is sealed cannot be cut off under it. */
TEST_WHERE(an_exported_file_cannot_be_truncated, NEEDS_DESCRIPTORS()) {
    NEEDS_SOFTGPU("the descriptor is a memory file only there");
    CUmemGenericAllocationHandle handle = create(PAGE, FD);
    int fd = MADE_CU(int, cuMemExportToShareableHandle, handle, FD, 0);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(ftruncate(fd, (off_t)1 << 40), -1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    close(fd);
    OK_CU(cu.cuMemRelease(handle));
}
