/* Pools between processes: a descriptor through a socket, pointers as 64 bytes beside it. */
#include "pools.h"

#include <fcntl.h>
#include <sys/socket.h>

#define SIZE (3 * MIB)

struct offer {
    CUmemPoolPtrExportData first, second;
};

static bool send_offer(int socket, int fd, const struct offer *offer) {
    struct iovec part = {.iov_base = (void *)(uintptr_t)offer, .iov_len = sizeof *offer};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    return sendmsg(socket, &message, 0) == (ssize_t)sizeof *offer;
}

static int receive_offer(int socket, struct offer *offer) {
    struct iovec part = {.iov_base = offer, .iov_len = sizeof *offer};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    int fd = -1;
    if (recvmsg(socket, &message, MSG_WAITALL) != (ssize_t)sizeof *offer)
        return -1;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head && head->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(head), sizeof fd);
    return fd;
}

static CUmemoryPool import_pool(int fd) {
    CUmemoryPool pool = NULL;
    OK_CU(cu.cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_non_null(pool);
    close(fd);
    return pool;
}

static CUdeviceptr import_pointer(CUmemoryPool pool, CUmemPoolPtrExportData *data) {
    CUdeviceptr p = 0;
    OK_CU(cu.cuMemPoolImportPointer(&p, pool, data));
    assert_int_not_equal(p, 0);
    return p;
}

static bool holds(CUdeviceptr p, unsigned seed) {
    unsigned char *bytes = malloc(SIZE);
    assert_non_null(bytes);
    OK_CU(cu.cuMemcpyDtoH_v2(bytes, p, SIZE));
    bool same = has_pattern(bytes, SIZE, seed);
    free(bytes);
    return same;
}

static void write_pattern(CUdeviceptr p, unsigned seed) {
    unsigned char *bytes = malloc(SIZE);
    assert_non_null(bytes);
    fill_pattern(bytes, SIZE, seed);
    OK_CU(cu.cuMemcpyHtoD_v2(p, bytes, SIZE));
    free(bytes);
}

/* What an imported pool cannot do. */
static int refusals(CUmemoryPool pool, CUdeviceptr p, struct offer *offer) {
    CUdeviceptr q;
    CUmemPoolPtrExportData data = offer->first;
    uint64_t value = 0;
    int fd;
    data.reserved[20] ^= 1;
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolImportPointer(&q, pool, &data));
    memset(&data, 0, sizeof data);
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolImportPointer(&q, pool, &data));
    FAILS_CU(INVALID_VALUE, cu.cuMemAllocFromPoolAsync(&q, 4096, pool, NULL));
    FAILS_CU(INVALID_VALUE, cu.cuDeviceSetMemPool(dev, pool));
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolTrimTo(pool, 0));
    FAILS_CU(INVALID_VALUE,
             cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolExportPointer(&data, p));
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolExportToShareableHandle(
                                &fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    return 0;
}

/* argv[1]: the socket. Reads what the parent wrote, answers with a pattern of its own. */
CHILD_THAT_ENDS(importer) {
    struct offer offer;
    char byte;
    assert_int_equal(argc, 2);
    int socket = atoi(argv[1]);
    init_driver();
    int fd = receive_offer(socket, &offer);
    assert_true(fd >= 0);
    CUmemoryPool pool = import_pool(fd);
    CUdeviceptr p = import_pointer(pool, &offer.first);
    CUdeviceptr q = import_pointer(pool, &offer.second);
    assert_true(holds(p, 1));
    assert_true(holds(q, 2));
    /* The same pointer again is the same address. */
    assert_int_equal(import_pointer(pool, &offer.first), p);
    refusals(pool, p, &offer);
    write_pattern(p, 3);
    OK_CU(cu.cuMemFreeAsync(p, NULL));
    FAILS_CU(INVALID_VALUE, cu.cuMemFreeAsync(p, NULL));
    OK_CU(cu.cuCtxSynchronize());
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoH_v2(&byte, p, 1));
    assert_int_equal(write(socket, "d", 1), 1);
    /* The exporter's end leaves what is mapped here as it is. */
    assert_int_equal(read(socket, &byte, 1), 0);
    assert_true(holds(q, 2));
    OK_CU(cu.cuMemFree_v2(q));
    pool_destroy(pool);
    if (soft) {
        char *leaks = soft->leak_report();
        assert_null(strstr(leaks, "pool"));
        soft->free_text(leaks);
    }
}

static int export_pool(CUmemoryPool pool) {
    int fd = -1;
    OK_CU(cu.cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                              0));
    assert_true(fd >= 0);
    return fd;
}

/* The first stays in this process; the second goes to a child. */
static void make_ends(int ends[2]) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFD, FD_CLOEXEC), 0);
}

static int start_importer(int ends[2]) {
    char number[16];
    make_ends(ends);
    snprintf(number, sizeof number, "%d", ends[1]);
    int pid = start_child("importer", number, NULL);
    close(ends[1]);
    return pid;
}

static void to_a_child(CUmemLocationType location) {
    CUmemoryPool pool = pool_make(location, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK_CU(cu.cuMemPoolSetAccess(pool, &access, 1));
    struct offer offer;
    int ends[2], fd = export_pool(pool);
    char byte = 0;
    int pid = start_importer(ends);
    CUdeviceptr p = pool_take(pool, SIZE, NULL), q = pool_take(pool, SIZE, NULL);
    write_pattern(p, 1);
    write_pattern(q, 2);
    OK_CU(cu.cuMemPoolExportPointer(&offer.first, p));
    OK_CU(cu.cuMemPoolExportPointer(&offer.second, q));
    assert_true(send_offer(ends[0], fd, &offer));
    close(fd);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_true(holds(p, 3));
    close(ends[0]);
    assert_int_equal(wait_child(pid), 0);
    OK_CU(cu.cuMemFreeAsync(p, NULL));
    OK_CU(cu.cuMemFreeAsync(q, NULL));
    pool_end(pool);
}

TEST_WHERE(a_device_pool_is_shared_with_a_child, NEEDS_POOL_DESCRIPTORS()) {
    to_a_child(CU_MEM_LOCATION_TYPE_DEVICE);
}

/* The exporter ends first, with a child of its own as exporter. */
CHILD(exporter) {
    assert_int_equal(argc, 2);
    struct offer offer;
    char byte;
    int socket = atoi(argv[1]);
    init_driver();
    CUmemoryPool pool =
        pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    int fd = export_pool(pool);
    CUdeviceptr p = pool_take(pool, SIZE, NULL);
    write_pattern(p, 5);
    OK_CU(cu.cuMemPoolExportPointer(&offer.first, p));
    offer.second = offer.first;
    assert_true(send_offer(socket, fd, &offer));
    assert_int_equal(read(socket, &byte, 1), 1);
    _exit(0);
}

TEST_WHERE(imported_pool_memory_outlives_its_exporter, NEEDS_POOL_DESCRIPTORS()) {
    NEEDS_SOFTGPU("what becomes of the memory of a dead exporter is not documented");
    struct offer offer;
    char number[16];
    int ends[2];
    make_ends(ends);
    snprintf(number, sizeof number, "%d", ends[1]);
    int pid = start_child("exporter", number, NULL);
    close(ends[1]);
    int fd = receive_offer(ends[0], &offer);
    assert_true(fd >= 0);
    CUmemoryPool pool = import_pool(fd);
    CUdeviceptr p = import_pointer(pool, &offer.first);
    assert_int_equal(write(ends[0], "d", 1), 1);
    assert_int_equal(wait_child(pid), 0);
    close(ends[0]);
    assert_true(holds(p, 5));
    OK_CU(cu.cuMemFreeAsync(p, NULL));
    OK_CU(cu.cuCtxSynchronize());
    /* The pool can be asked for its pointers also now. */
    p = import_pointer(pool, &offer.first);
    assert_true(holds(p, 5));
    OK_CU(cu.cuMemFree_v2(p));
    pool_destroy(pool);
}

TEST_WHERE(exports_of_unshareable_memory_are_refused, NEEDS_POOL_DESCRIPTORS()) {
    CUmemoryPool plain = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUmemoryPool shared =
        pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    CUmemPoolPtrExportData data;
    int fd;
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolExportToShareableHandle(
                                &fd, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    FAILS_CU(INVALID_VALUE,
             cu.cuMemPoolExportToShareableHandle(&fd, shared, CU_MEM_HANDLE_TYPE_NONE, 0));
    CUdeviceptr p = pool_take(plain, 4096, NULL), q = pool_take(shared, 4096, NULL);
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolExportPointer(&data, p));
    /* Its pool must have been exported first. */
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolExportPointer(&data, q));
    close(export_pool(shared));
    OK_CU(cu.cuMemPoolExportPointer(&data, q));
    OK_CU(cu.cuMemFreeAsync(p, NULL));
    OK_CU(cu.cuMemFreeAsync(q, NULL));
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolExportPointer(&data, q));
}

/* 0 is no descriptor to the driver, whatever it is to the system; memory is no pool. */
TEST_WHERE(imports_of_invalid_descriptors_are_refused, NEEDS_POOL_DESCRIPTORS()) {
    CUmemoryPool pool;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
    int ends[2], memory = -1;
    prop.location = device_location(dev);
    CUmemGenericAllocationHandle handle =
        MADE_CU(CUmemGenericAllocationHandle, cuMemCreate, 2 * MIB, &prop, 0);
    OK_CU(cu.cuMemExportToShareableHandle(&memory, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                          0));
    assert_int_equal(pipe(ends), 0);
    const struct {
        int descriptor;
        CUresult result;
    } rows[] = {{ends[0], CUDA_ERROR_UNKNOWN},
                {9999, CUDA_ERROR_UNKNOWN},
                {-1, CUDA_ERROR_UNKNOWN},
                {0, CUDA_ERROR_INVALID_VALUE},
                {memory, CUDA_ERROR_NOT_SUPPORTED}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ANSWERS_CU(rows[i].result, cu.cuMemPoolImportFromShareableHandle(
                                       &pool, (void *)(intptr_t)rows[i].descriptor,
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK_CU(cu.cuMemRelease(handle));
    close(memory);
    close(ends[0]);
    close(ends[1]);
}

/* Less is left of the device than a pool likes to grow by. */
DRIVER_CHILD(nearly_full) {
    CUmemoryPool pool =
        pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    CUstream s = new_stream();
    CUdeviceptr rest, too_much;
    OK_CU(cu.cuMemAlloc_v2(&rest, 48 * MIB));
    CUdeviceptr p = pool_take(pool, 4 * MIB, s);
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemAllocFromPoolAsync(&too_much, 40 * MIB, pool, s));
    CUdeviceptr q = pool_take(pool, 4 * MIB, s);
    OK_CU(cu.cuMemsetD8Async(q, 7, 4 * MIB, s));
    OK_CU(cu.cuMemFreeAsync(p, s));
    OK_CU(cu.cuMemFreeAsync(q, s));
    pool_end(pool);
    OK_CU(cu.cuMemFree_v2(rest));
}

/* The file of a pool cannot shrink, and what was asked for in vain must not be in the way. */
TEST_WHERE(a_shareable_pool_uses_all_remaining_memory, NEEDS_POOL_DESCRIPTORS()) {
    NEEDS_SOFTGPU("a device of 64 MiB");
    setenv("SOFTGPU_MEMORY", "64M", 1);
    int status = run_child("nearly_full", NULL);
    unsetenv("SOFTGPU_MEMORY");
    assert_int_equal(status, 0);
}
