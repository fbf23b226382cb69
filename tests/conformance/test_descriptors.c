/*
 * Programs that have closed standard descriptors: what softgpu opens, for itself and for the
 * program, is none of 0, 1 and 2, and is closed by exec. A line printed there lands nowhere.
 */
#include "harness.h"
#include "temporary.h"

#include <dirent.h>
#include <fcntl.h>

#define PAGE     ((size_t)2 << 20)
#define STANDARD 3
#define FD       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

/* Exit statuses: what a child found wrong, since it cannot print. */
enum { GOOD = 0, REFUSED = 20, TOOK_STANDARD, KEPT_BY_EXEC, LOW_EXPORT, LINE_IN_MEMORY };

#define TRY(call)                                                                                  \
    do {                                                                                           \
        if ((call) != CUDA_SUCCESS)                                                                \
            return REFUSED;                                                                        \
    } while (0)

/* GOOD, or what is wrong with the descriptors of this process. `closed` are bits. */
static int judge(int closed) {
    for (int fd = 0; fd < STANDARD; fd++)
        if ((closed & 1 << fd) && fcntl(fd, F_GETFD) >= 0)
            return TOOK_STANDARD;
    for (int fd = STANDARD; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags >= 0 && !(flags & FD_CLOEXEC))
            return KEPT_BY_EXEC;
    }
    return GOOD;
}

static int share_memory(void) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = FD,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev}};
    CUmemGenericAllocationHandle handle, imported;
    int fd = -1;
    TRY(cu.cuMemCreate(&handle, PAGE, &prop, 0));
    TRY(cu.cuMemExportToShareableHandle(&fd, handle, FD, 0));
    if (fd < STANDARD)
        return LOW_EXPORT;
    TRY(cu.cuMemRelease(handle));
    TRY(cu.cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd, FD));
    close(fd);
    return GOOD;
}

static int share_pool(void) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = FD,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev}};
    CUmemoryPool pool, imported;
    CUdeviceptr p;
    int fd = -1;
    TRY(cu.cuMemPoolCreate(&pool, &props));
    TRY(cu.cuMemAllocFromPoolAsync(&p, PAGE, pool, NULL));
    TRY(cu.cuMemPoolExportToShareableHandle(&fd, pool, FD, 0));
    if (fd < STANDARD)
        return LOW_EXPORT;
    TRY(cu.cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd, FD, 0));
    close(fd);
    return GOOD;
}

static int share_by_name(CUdeviceptr p) {
    CUipcMemHandle memory;
    CUipcEventHandle name;
    CUevent event;
    TRY(cu.cuIpcGetMemHandle(&memory, p));
    TRY(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    TRY(cu.cuIpcGetEventHandle(&name, event));
    return soft->semaphore_create(SOFTGPU_SEMAPHORE_BINARY, 0) < STANDARD ? LOW_EXPORT : GOOD;
}

/* The file is the folder's; the log is asked for and the trace runs since cuInit. */
static int write_reports(const char *folder) {
    CUgraph graph;
    CUdeviceptr p;
    char path[128];
    TRY(cu.cuGraphCreate(&graph, 0));
    snprintf(path, sizeof path, "%s/graph.dot", folder);
    TRY(cu.cuGraphDebugDotPrint(graph, path, 0));
    if (cu.cuMemAlloc_v2(&p, 0) == CUDA_SUCCESS) /* refused, and so in the log */
        return REFUSED;
    snprintf(path, sizeof path, "%s/dumped", folder);
    return cu.cuLogsDumpToFile(NULL, path, 0) == CUDA_SUCCESS ? GOOD : REFUSED;
}

/* Prints where a program would, and looks for it in the first and the last word of memory. */
static int print_over(CUdeviceptr p, const unsigned char *pinned) {
    static const char line[] = "a line that somebody prints\n";
    unsigned char bytes[sizeof line] = {0};
    for (int fd = 0; fd < STANDARD; fd++)
        if (write(fd, line, sizeof line - 1) >= 0)
            return TOOK_STANDARD;
    TRY(cu.cuMemcpyDtoH_v2(bytes, p, sizeof bytes));
    return memcmp(bytes, line, 8) == 0 || memcmp(pinned, line, 8) == 0 ? LINE_IN_MEMORY : GOOD;
}

/* close BITS FOLDER: by exec, because softgpu opens files as soon as it is loaded. */
CHILD(close_and_begin) {
    char *const arguments[] = {
        argv[0], (char *)test_file(), (char *)"--child", (char *)"use", argv[1], argv[2], NULL};
    if (argc != 3)
        return 2;
    for (int fd = 0; fd < STANDARD; fd++)
        if (atoi(argv[1]) & 1 << fd)
            close(fd);
    for (int fd = STANDARD; fd < 256; fd++) /* what this process inherited */
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    execv("/proc/self/exe", arguments);
    return 3;
}

/* use BITS FOLDER */
CHILD(use) {
    if (argc != 3)
        return 2;
    int closed = atoi(argv[1]);
    init_driver();
    CUdeviceptr p;
    void *pinned;
    TRY(cu.cuMemAlloc_v2(&p, 2 * PAGE));
    TRY(cu.cuMemHostAlloc(&pinned, PAGE, 0));
    int wrong = share_memory();
    if (wrong == GOOD)
        wrong = share_pool();
    if (wrong == GOOD)
        wrong = share_by_name(p);
    if (wrong == GOOD)
        wrong = write_reports(argv[2]);
    if (wrong == GOOD)
        wrong = judge(closed);
    if (wrong == GOOD && closed == 7)
        wrong = print_over(p, pinned);
    return wrong;
}

static void remove_folder(const char *folder) {
    static const char *const names[] = {"graph.dot", "dumped", "trace", "log"};
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[TEMPORARY_ROOM + 16];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
}

TEST_WHERE(the_driver_never_opens_a_standard_descriptor, NEEDS_POOL_DESCRIPTORS()) {
    NEEDS_DESCRIPTORS();
    NEEDS_SOFTGPU("where another driver puts its descriptors is its own choice");
    for (int closed = 0; closed < 8; closed++) {
        char folder[TEMPORARY_ROOM], path[TEMPORARY_ROOM + 8], bits[12];
        assert_non_null(temporary_folder(folder, "softgpu-descriptors"));
        snprintf(path, sizeof path, "%s/trace", folder);
        setenv("SOFTGPU_TRACE", path, 1);
        snprintf(path, sizeof path, "%s/log", folder);
        setenv("CUDA_LOG_FILE", path, 1);
        snprintf(bits, sizeof bits, "%d", closed);
        int status = run_child("close_and_begin", bits, folder, NULL);
        unsetenv("SOFTGPU_TRACE");
        unsetenv("CUDA_LOG_FILE");
        if (status != GOOD)
            print_error("closed: %s%s%s\n", closed & 1 ? "0 " : "", closed & 2 ? "1 " : "",
                        closed & 4 ? "2" : "");
        assert_int_equal(status, GOOD);
        remove_folder(folder);
    }
}
