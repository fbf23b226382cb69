/*
 * Locking, checkpointing and restoring a process, the own one and others. Nobody has asked
 * hardware: the answers are the documentation's.
 */
#include "harness.h"
#include "temporary.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define NEEDS() NEEDS_SOFTGPU("a checkpoint stops a device that others use")

static CUprocessState state_of(int pid) {
    CUprocessState state = (CUprocessState)77;
    OK_CU(cu.cuCheckpointProcessGetState(pid, &state));
    return state;
}

static void lock(int pid) {
    OK_CU(cu.cuCheckpointProcessLock(pid, NULL));
    assert_int_equal(state_of(pid), CU_PROCESS_STATE_LOCKED);
}

static void unlock(int pid) {
    OK_CU(cu.cuCheckpointProcessUnlock(pid, NULL));
    assert_int_equal(state_of(pid), CU_PROCESS_STATE_RUNNING);
}

/* For what comes at once or not at all: a turn of a loop that waits, and the test's failure when it
 * has waited for long. */
#define PATIENCE 5 /* s */

static time_t seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void be_patient(time_t since) {
    assert_true(seconds() - since <= PATIENCE);
    sched_yield();
}

/* ---- States ---------------------------------------------------------------------------------- */

TEST(each_checkpoint_step_requires_its_state) {
    NEEDS();
    int pid = getpid();
    assert_int_equal(state_of(pid), CU_PROCESS_STATE_RUNNING);
    FAILS_CU(ILLEGAL_STATE, cu.cuCheckpointProcessUnlock(pid, NULL));
    FAILS_CU(ILLEGAL_STATE, cu.cuCheckpointProcessCheckpoint(pid, NULL));
    FAILS_CU(ILLEGAL_STATE, cu.cuCheckpointProcessRestore(pid, NULL));
    lock(pid);
    FAILS_CU(ILLEGAL_STATE, cu.cuCheckpointProcessLock(pid, NULL));
    FAILS_CU(ILLEGAL_STATE, cu.cuCheckpointProcessRestore(pid, NULL));
    OK_CU(cu.cuCheckpointProcessCheckpoint(pid, NULL));
    assert_int_equal(state_of(pid), CU_PROCESS_STATE_CHECKPOINTED);
    FAILS_CU(ILLEGAL_STATE, cu.cuCheckpointProcessCheckpoint(pid, NULL));
    FAILS_CU(ILLEGAL_STATE, cu.cuCheckpointProcessLock(pid, NULL));
    FAILS_CU(ILLEGAL_STATE, cu.cuCheckpointProcessUnlock(pid, NULL));
    OK_CU(cu.cuCheckpointProcessRestore(pid, NULL));
    assert_int_equal(state_of(pid), CU_PROCESS_STATE_LOCKED);
    unlock(pid);
}

TEST(invalid_arguments_are_refused) {
    NEEDS();
    int pid = getpid(), tid;
    CUprocessState found;
    CUcheckpointLockArgs locks = {.reserved0 = 1};
    CUcheckpointCheckpointArgs checkpoints = {.reserved = {0, 1}};
    CUcheckpointRestoreArgs restores = {.gpuPairsCount = 1};
    CUcheckpointUnlockArgs unlocks = {.reserved = {1}};
    FAILS_CU(INVALID_VALUE, cu.cuCheckpointProcessGetState(pid, NULL));
    FAILS_CU(OPERATING_SYSTEM, cu.cuCheckpointProcessGetState(0, &found));
    FAILS_CU(OPERATING_SYSTEM, cu.cuCheckpointProcessGetState(-1, &found));
    FAILS_CU(OPERATING_SYSTEM, cu.cuCheckpointProcessGetState(INT_MAX, &found));
    FAILS_CU(OPERATING_SYSTEM, cu.cuCheckpointProcessLock(INT_MAX, NULL));
    FAILS_CU(INVALID_VALUE, cu.cuCheckpointProcessLock(pid, &locks));
    FAILS_CU(INVALID_VALUE, cu.cuCheckpointProcessUnlock(pid, &unlocks));
    FAILS_CU(INVALID_VALUE, cu.cuCheckpointProcessCheckpoint(pid, &checkpoints));
    FAILS_CU(INVALID_VALUE, cu.cuCheckpointProcessRestore(pid, &restores));
    FAILS_CU(INVALID_VALUE, cu.cuCheckpointProcessGetRestoreThreadId(pid, NULL));
    FAILS_CU(OPERATING_SYSTEM, cu.cuCheckpointProcessGetRestoreThreadId(INT_MAX, &tid));
    assert_int_equal(state_of(pid), CU_PROCESS_STATE_RUNNING);
}

/* softgpu leaves memory where it is, so a device comes back as itself or not at all. */
TEST_WHERE(a_device_is_restored_only_as_itself, NEEDS_UUID()) {
    NEEDS();
    int pid = getpid();
    CUcheckpointGpuPair pair;
    CUcheckpointRestoreArgs args = {.gpuPairs = &pair, .gpuPairsCount = 1};
    OK_CU(cu.cuDeviceGetUuid_v2(&pair.oldUuid, dev));
    pair.newUuid = pair.oldUuid;
    lock(pid);
    OK_CU(cu.cuCheckpointProcessCheckpoint(pid, NULL));
    pair.newUuid.bytes[3] ^= 1;
    FAILS_CU(NOT_SUPPORTED, cu.cuCheckpointProcessRestore(pid, &args));
    pair.newUuid = pair.oldUuid;
    OK_CU(cu.cuCheckpointProcessRestore(pid, &args));
    unlock(pid);
}

/* ---- Calls of a locked process --------------------------------------------------------------- */

struct caller {
    pthread_t thread;
    CUdeviceptr to;
    atomic_int tid, done;
    CUresult result;
};

static void *call(void *argument) {
    struct caller *caller = argument;
    CUresult result = CUDA_ERROR_UNKNOWN;
    atomic_store(&caller->tid, (int)syscall(SYS_gettid));
    result = cu.cuCtxSetCurrent(ctx);
    if (result == CUDA_SUCCESS)
        result = cu.cuMemsetD8_v2(caller->to, 0x77, 64);
    caller->result = result;
    atomic_store(&caller->done, 1);
    return NULL;
}

static char thread_state(int pid, int tid) {
    char path[64], text[512], state = '?';
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    FILE *file = fopen(path, "r");
    if (!file)
        return '?';
    if (fgets(text, sizeof text, file) && strrchr(text, ')'))
        state = strrchr(text, ')')[2];
    fclose(file);
    return state;
}

/* The thread sleeps, and it has nothing to sleep for but the lock of its process. */
static void until_blocked(struct caller *caller) {
    time_t begun = seconds();
    while (!atomic_load(&caller->tid) || thread_state(getpid(), atomic_load(&caller->tid)) != 'S') {
        assert_int_equal(atomic_load(&caller->done), 0);
        be_patient(begun);
    }
    assert_int_equal(atomic_load(&caller->done), 0);
}

static void start(struct caller *caller, CUdeviceptr to) {
    *caller = (struct caller){.to = to};
    assert_int_equal(pthread_create(&caller->thread, NULL, call, caller), 0);
}

TEST(calls_wait_during_a_checkpoint_and_memory_is_kept) {
    NEEDS();
    int pid = getpid();
    struct caller caller;
    unsigned char bytes[128];
    CUdeviceptr p = new_memory(sizeof bytes);
    OK_CU(cu.cuMemsetD8_v2(p, 0x11, sizeof bytes));
    lock(pid);
    start(&caller, p);
    until_blocked(&caller);
    OK_CU(cu.cuCheckpointProcessCheckpoint(pid, NULL));
    until_blocked(&caller);
    OK_CU(cu.cuCheckpointProcessRestore(pid, NULL));
    until_blocked(&caller);
    unlock(pid);
    pthread_join(caller.thread, NULL);
    assert_int_equal(caller.result, CUDA_SUCCESS);
    OK_CU(cu.cuMemcpyDtoH_v2(bytes, p, sizeof bytes));
    assert_int_equal(bytes[63], 0x77);
    assert_int_equal(bytes[64], 0x11);
}

/* What asks about nothing of the process answers all the same. */
TEST(calls_that_need_no_device_work_while_locked) {
    NEEDS();
    int version = 0;
    lock(getpid());
    OK_CU(cu.cuDriverGetVersion(&version));
    (void)GOT_CU(const char *, cuGetErrorName, CUDA_ERROR_INVALID_VALUE);
    assert_true(version > 0);
    unlock(getpid());
}

TEST(locking_waits_for_queued_work) {
    NEEDS();
    CUcheckpointLockArgs args = {.timeoutMs = 5};
    CUstream stream = new_stream();
    struct gate gate = hold(stream);
    FAILS_CU(NOT_READY, cu.cuCheckpointProcessLock(getpid(), &args));
    assert_int_equal(state_of(getpid()), CU_PROCESS_STATE_RUNNING);
    FAILS_CU(NOT_READY, cu.cuStreamQuery(stream)); /* and calls go on */
    gate_release(&gate);
    lock(getpid());
    unlock(getpid());
    OK_CU(cu.cuStreamQuery(stream));
}

/* A call that waits holds up the lock, too, until it has ended. */
static void *synchronize(void *argument) {
    struct caller *caller = argument;
    atomic_store(&caller->tid, (int)syscall(SYS_gettid));
    caller->result = cu.cuStreamSynchronize((CUstream)(uintptr_t)caller->to);
    return NULL;
}

TEST(locking_waits_for_running_calls) {
    NEEDS();
    CUcheckpointLockArgs args = {.timeoutMs = 5};
    struct caller caller = {.done = 0};
    CUstream stream = new_stream();
    struct gate gate = hold(stream);
    caller.to = (uintptr_t)stream;
    assert_int_equal(pthread_create(&caller.thread, NULL, synchronize, &caller), 0);
    FAILS_CU(NOT_READY, cu.cuCheckpointProcessLock(getpid(), &args));
    gate_release(&gate);
    lock(getpid());
    unlock(getpid());
    pthread_join(caller.thread, NULL);
    assert_int_equal(caller.result, CUDA_SUCCESS);
}

static void CUDA_CB ask(void *result) {
    CUprocessState state;
    *(CUresult *)result = cu.cuCheckpointProcessGetState(getpid(), &state);
}

TEST(host_functions_may_not_checkpoint) {
    NEEDS();
    CUresult result = CUDA_SUCCESS;
    OK_CU(cu.cuLaunchHostFunc(CU_STREAM_LEGACY, ask, &result));
    OK_CU(cu.cuStreamSynchronize(CU_STREAM_LEGACY));
    assert_int_equal(result, CUDA_ERROR_NOT_PERMITTED);
}

/* ---- Other processes ------------------------------------------------------------------------- */

struct page {
    atomic_int ready, stop;
    atomic_ulong calls;
};

static struct page *map_page(const char *path) {
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    struct page *page =
        mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    assert_true(page != MAP_FAILED);
    fclose(file);
    return page;
}

static struct page *make_page(char path[TEMPORARY_ROOM]) {
    int fd = temporary_file(path, "checkpoint");
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, sizeof(struct page)), 0);
    close(fd);
    return map_page(path);
}

/* Calls until it is told to stop. */
CHILD_THAT_ENDS(works) {
    struct page *page = map_page(argv[1]);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody else tells it to stop */
    init_driver();
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4096);
    atomic_store(&page->ready, 1);
    while (!atomic_load(&page->stop)) {
        OK_CU(cu.cuMemsetD8_v2(p, 5, 4096));
        atomic_fetch_add(&page->calls, 1);
    }
    OK_CU(cu.cuMemFree_v2(p));
}

static void wait_for(atomic_int *flag) {
    time_t begun = seconds();
    while (!atomic_load(flag))
        be_patient(begun);
}

/* Another process that calls, and the page that it shares with this one. */
struct worker {
    char path[TEMPORARY_ROOM];
    struct page *page;
    int pid;
};

static void start_worker(struct worker *worker) {
    worker->page = make_page(worker->path);
    worker->pid = start_child("works", worker->path, NULL);
    wait_for(&worker->page->ready);
}

/* It has ended by itself (0) or of a signal. */
static void end_worker(struct worker *worker, int status) {
    atomic_store(&worker->page->stop, 1);
    assert_int_equal(wait_child(worker->pid), status);
    munmap(worker->page, sizeof *worker->page);
    unlink(worker->path);
}

TEST(another_process_can_be_locked_and_checkpointed) {
    NEEDS();
    struct worker worker;
    start_worker(&worker);
    struct page *page = worker.page;
    int pid = worker.pid;
    for (int round = 0; round < 20; round++) {
        time_t begun = seconds();
        lock(pid);
        while (thread_state(pid, pid) != 'S')
            be_patient(begun);
        unsigned long calls = atomic_load(&page->calls);
        OK_CU(cu.cuCheckpointProcessCheckpoint(pid, NULL));
        assert_int_equal(state_of(pid), CU_PROCESS_STATE_CHECKPOINTED);
        OK_CU(cu.cuCheckpointProcessRestore(pid, NULL));
        assert_true(atomic_load(&page->calls) == calls);
        unlock(pid);
        while (atomic_load(&page->calls) == calls)
            be_patient(begun);
    }
    end_worker(&worker, 0);
    CUprocessState found;
    FAILS_CU(OPERATING_SYSTEM, cu.cuCheckpointProcessGetState(pid, &found));
}

struct restoring {
    int pid;
    atomic_int tid, done;
    CUresult result;
    pthread_t thread;
};

static void *restore(void *argument) {
    struct restoring *restoring = argument;
    atomic_store(&restoring->tid, (int)syscall(SYS_gettid));
    restoring->result = cu.cuCheckpointProcessRestore(restoring->pid, NULL);
    atomic_store(&restoring->done, 1);
    return NULL;
}

/* Locks and checkpoints a process, stops it, and has another thread wait for its restoring. */
static void restore_while_stopped(struct restoring *restoring, int pid) {
    *restoring = (struct restoring){.pid = pid};
    lock(pid);
    OK_CU(cu.cuCheckpointProcessCheckpoint(pid, NULL));
    assert_int_equal(kill(pid, SIGSTOP), 0);
    time_t begun = seconds();
    while (thread_state(pid, pid) != 'T')
        be_patient(begun);
    assert_int_equal(pthread_create(&restoring->thread, NULL, restore, restoring), 0);
    while (!atomic_load(&restoring->tid) ||
           thread_state(getpid(), atomic_load(&restoring->tid)) != 'S')
        be_patient(begun);
    assert_int_equal(atomic_load(&restoring->done), 0);
    assert_int_equal(state_of(pid), CU_PROCESS_STATE_CHECKPOINTED);
}

/* While the process is stopped nobody restores it: the thread is one of its own. */
TEST(the_restore_thread_restores_a_process) {
    NEEDS();
    struct worker worker;
    struct restoring restoring;
    int tid = -1;
    start_worker(&worker);
    OK_CU(cu.cuCheckpointProcessGetRestoreThreadId(worker.pid, &tid));
    assert_int_not_equal(tid, worker.pid);
    assert_int_not_equal(thread_state(worker.pid, tid), '?');
    restore_while_stopped(&restoring, worker.pid);
    assert_int_equal(kill(worker.pid, SIGCONT), 0);
    pthread_join(restoring.thread, NULL);
    OK_CU(restoring.result);
    assert_int_equal(state_of(worker.pid), CU_PROCESS_STATE_LOCKED);
    unlock(worker.pid);
    end_worker(&worker, 0);
}

/* Who restores a process that dies meanwhile does not wait for it. */
TEST(restoring_a_process_that_dies_fails) {
    NEEDS();
    struct worker worker;
    struct restoring restoring;
    start_worker(&worker);
    restore_while_stopped(&restoring, worker.pid);
    assert_int_equal(kill(worker.pid, SIGKILL), 0);
    end_worker(&worker, 128 + SIGKILL);
    pthread_join(restoring.thread, NULL);
    assert_int_equal(restoring.result, CUDA_ERROR_OPERATING_SYSTEM);
}

/* Locks its parent, however often that must be tried. */
CHILD(locks) {
    CUresult result;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    OK_CU(cu.cuInit(0));
    do
        result = cu.cuCheckpointProcessLock(atoi(argv[1]), NULL);
    while (result == CUDA_ERROR_ILLEGAL_STATE);
    return 1; /* not reached: it is killed while it waits */
}

TEST(a_process_that_dies_while_locking_leaves_no_lock) {
    NEEDS();
    CUcheckpointLockArgs args = {.timeoutMs = 1};
    char self[16];
    CUresult result;
    snprintf(self, sizeof self, "%d", getpid());
    CUstream stream = new_stream();
    struct gate gate = hold(stream);
    int pid = start_child("locks", self, NULL);
    time_t begun = seconds();
    while ((result = cu.cuCheckpointProcessLock(getpid(), &args)) == CUDA_ERROR_NOT_READY)
        be_patient(begun);
    assert_int_equal(result, CUDA_ERROR_ILLEGAL_STATE); /* the child's turn */
    kill(pid, SIGKILL);
    assert_int_equal(wait_child(pid), 128 + SIGKILL);
    FAILS_CU(ILLEGAL_STATE, cu.cuCheckpointProcessUnlock(getpid(), NULL));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
    gate_drain(&gate, stream);
}

/* It has its parent's descriptors, and is not its parent. It may ask for it, and lock it. */
static int act_as_child(int parent) {
    CUprocessState state = (CUprocessState)77;
    if (cu.cuCheckpointProcessGetState(getpid(), &state) != CUDA_ERROR_NOT_INITIALIZED ||
        cu.cuCheckpointProcessLock(getpid(), NULL) != CUDA_ERROR_NOT_INITIALIZED || state != 77)
        return 1;
    if (cu.cuCheckpointProcessGetState(parent, &state) != CUDA_SUCCESS ||
        state != CU_PROCESS_STATE_RUNNING)
        return 2;
    if (cu.cuCheckpointProcessLock(parent, NULL) != CUDA_SUCCESS ||
        cu.cuCheckpointProcessGetState(parent, &state) != CUDA_SUCCESS ||
        state != CU_PROCESS_STATE_LOCKED)
        return 3;
    return cu.cuCheckpointProcessUnlock(parent, NULL) == CUDA_SUCCESS ? 0 : 4;
}

TEST(a_forked_child_cannot_be_checkpointed_as_its_parent) {
    NEEDS();
    int ends[2], status = 0;
    CUprocessState found;
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int failed = act_as_child(getppid());
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? failed : 5);
    }
    FAILS_CU(NOT_INITIALIZED, cu.cuCheckpointProcessGetState(pid, &found));
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    OK_CU(cu.cuCtxSynchronize()); /* nobody left it locked */
}

/* It is there until somebody asks how it ended, and uses nothing any more. */
TEST(an_ended_process_is_refused) {
    NEEDS();
    CUprocessState found;
    siginfo_t info;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    FAILS_CU(OPERATING_SYSTEM, cu.cuCheckpointProcessGetState(pid, &found));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    FAILS_CU(OPERATING_SYSTEM, cu.cuCheckpointProcessGetState(pid, &found));
}

/* A test that failed may leave the process locked, and then no call of the harness would return. */
AFTER(test_end) {
    CUprocessState now = CU_PROCESS_STATE_RUNNING;
    if (soft) {
        cu.cuCheckpointProcessRestore(getpid(), NULL);
        cu.cuCheckpointProcessUnlock(getpid(), NULL);
        if (cu.cuCheckpointProcessGetState(getpid(), &now) != CUDA_SUCCESS)
            now = CU_PROCESS_STATE_FAILED;
    }
    if (now != CU_PROCESS_STATE_RUNNING) {
        print_error("the process is still locked\n");
        _exit(1);
    }
}

EACH_TEST(test_begin, after);
