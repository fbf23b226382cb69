/* The driver's own threads take no signals: a program's handlers run on its own. */
#include "harness.h"

#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#define MOST_THREADS 256

struct threads {
    size_t count;
    long ids[MOST_THREADS];
};

static struct threads list_threads(void) {
    struct threads threads = {0};
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    const struct dirent *entry;
    while ((entry = readdir(folder))) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        assert_true(threads.count < MOST_THREADS);
        threads.ids[threads.count++] = strtol(entry->d_name, NULL, 10);
    }
    closedir(folder);
    return threads;
}

static bool has(const struct threads *threads, long id) {
    for (size_t i = 0; i < threads->count; i++)
        if (threads->ids[i] == id)
            return true;
    return false;
}

/* What the kernel says that a thread blocks; all of it where there is no such thread any more. */
static uint64_t blocked_by(long id) {
    char path[64], line[256];
    uint64_t blocked = UINT64_MAX;
    snprintf(path, sizeof path, "/proc/self/task/%ld/status", id);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "SigBlk:", 7) == 0)
            blocked = strtoull(line + 7, NULL, 16);
    if (file)
        fclose(file);
    return blocked;
}

/* All but SIGKILL and SIGSTOP, which cannot be blocked, and the two that the C library keeps for
 * itself. */
static bool blocks_all(long id) {
    const uint64_t never =
        (uint64_t)1 << (SIGKILL - 1) | (uint64_t)1 << (SIGSTOP - 1) | (uint64_t)3 << 31;
    return (blocked_by(id) | never) == UINT64_MAX;
}

/* ---- What has threads ------------------------------------------------------------------------ */

static atomic_uint hosts, destroyed;

static void CUDAAPI in_host_function(void *user) {
    atomic_fetch_add(&hosts, 1);
}

static void CUDAAPI destroy(void *user) {
    atomic_fetch_add(&destroyed, 1);
}

static void CUDAAPI hear(CUasyncNotificationInfo *info, void *user, CUasyncCallbackHandle handle) {
}

static void until(atomic_uint *count, unsigned wanted) {
    while (atomic_load(count) < wanted)
        sched_yield();
}

/* The last reference to the object goes with the work of a graph that is no more, and nobody waits
 * for that work. */
static void end_an_object(CUstream stream) {
    CUuserObject object;
    OK_CU(cu.cuUserObjectCreate(&object, NULL, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    CUgraph graph = MADE_CU(CUgraph, cuGraphCreate, 0);
    (void)MADE_CU(CUgraphNode, cuGraphAddEmptyNode, graph, NULL, 0);
    OK_CU(cu.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    CUgraphExec exec = MADE_CU(CUgraphExec, cuGraphInstantiateWithFlags, graph, 0);
    struct gate gate = hold(stream);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    DESTROY_CU(exec, graph);
    gate_release(&gate);
    until(&destroyed, 1);
}

static void use_threads(CUstream stream) {
    OK_CU(cu.cuLaunchHostFunc(stream, in_host_function, NULL));
    until(&hosts, 1);
    end_an_object(stream);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* A child, so that what was there before the driver is the program's or a sanitizer's. */
CHILD_TEST_WHERE(every_thread_of_the_driver_blocks_all_signals,
                 NEEDS_SOFTGPU("what other drivers' threads block is theirs")) {
    struct threads before = list_threads();
    CUasyncCallbackHandle callback;
    init_driver();
    CUstream stream = new_stream();
    OK_CU(cu.cuDeviceRegisterAsyncNotification(dev, hear, NULL, &callback));
    use_threads(stream);
    struct threads after = list_threads();
    size_t made = 0;
    for (size_t i = 0; i < after.count; i++) {
        if (has(&before, after.ids[i]))
            continue;
        made++;
        if (!blocks_all(after.ids[i])) {
            print_error("thread %ld blocks 0x%llx\n", after.ids[i],
                        (unsigned long long)blocked_by(after.ids[i]));
            return 1;
        }
    }
    /* Workers, the notifier, the one for objects, the one that restores. */
    assert_true(made >= 4);
    OK_CU(cu.cuDeviceUnregisterAsyncNotification(dev, callback));
    return 0;
}
