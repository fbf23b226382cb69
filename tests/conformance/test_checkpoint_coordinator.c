/* Who locks and restores other processes need not use the driver itself: no cuInit. */
#include "harness.h"

#include <limits.h>
#include <pthread.h>
#include <sys/wait.h>

static CUprocessState state_of(int pid) {
    CUprocessState state = (CUprocessState)77;
    OK_CU(cu.cuCheckpointProcessGetState(pid, &state));
    return state;
}

static void is_not_initialized(void) {
    int count = 77;
    FAILS_CU(NOT_INITIALIZED, cu.cuDeviceGetCount(&count));
    assert_int_equal(count, 77);
}

/* ---- Children that never call cuInit --------------------------------------------------------- */

CHILD_THAT_ENDS(locks) {
    int pid = atoi(argv[1]), tid = -1;
    assert_int_equal(state_of(pid), CU_PROCESS_STATE_RUNNING);
    OK_CU(cu.cuCheckpointProcessGetRestoreThreadId(pid, &tid));
    assert_true(tid > 0 && tid != pid);
    OK_CU(cu.cuCheckpointProcessLock(pid, NULL));
    assert_int_equal(state_of(pid), CU_PROCESS_STATE_LOCKED);
    FAILS_CU(ILLEGAL_STATE, cu.cuCheckpointProcessLock(pid, NULL));
    OK_CU(cu.cuCheckpointProcessUnlock(pid, NULL));
    assert_int_equal(state_of(pid), CU_PROCESS_STATE_RUNNING);
    is_not_initialized();
}

CHILD_THAT_ENDS(restores) {
    int pid = atoi(argv[1]);
    OK_CU(cu.cuCheckpointProcessLock(pid, NULL));
    OK_CU(cu.cuCheckpointProcessCheckpoint(pid, NULL));
    assert_int_equal(state_of(pid), CU_PROCESS_STATE_CHECKPOINTED);
    OK_CU(cu.cuCheckpointProcessRestore(pid, NULL));
    assert_int_equal(state_of(pid), CU_PROCESS_STATE_LOCKED);
    OK_CU(cu.cuCheckpointProcessUnlock(pid, NULL));
    is_not_initialized();
}

/* A process is no user of the device before cuInit, and is one after it. */
static void all_answer(CUresult answer, int pid) {
    int tid = -1;
    CUprocessState state = (CUprocessState)77;
    assert_int_equal(cu.cuCheckpointProcessGetState(pid, &state), answer);
    assert_int_equal(cu.cuCheckpointProcessGetRestoreThreadId(pid, &tid), answer);
    assert_int_equal(cu.cuCheckpointProcessLock(pid, NULL), answer);
    assert_int_equal(cu.cuCheckpointProcessUnlock(pid, NULL), answer);
    assert_int_equal(state, 77);
    assert_int_equal(tid, -1);
}

static void numbers_of_none(void) {
    all_answer(CUDA_ERROR_OPERATING_SYSTEM, 0);
    all_answer(CUDA_ERROR_OPERATING_SYSTEM, -1);
    all_answer(CUDA_ERROR_OPERATING_SYSTEM, INT_MAX);
}

CHILD_TEST(a_process_without_cuinit_cannot_be_locked) {
    CUprocessState state;
    all_answer(CUDA_ERROR_NOT_INITIALIZED, getpid());
    numbers_of_none();
    FAILS_CU(INVALID_VALUE, cu.cuCheckpointProcessGetState(getpid(), NULL));
    FAILS_CU(INVALID_VALUE, cu.cuCheckpointProcessGetRestoreThreadId(getpid(), NULL));
    init_driver();
    assert_int_equal(state_of(getpid()), CU_PROCESS_STATE_RUNNING);
    numbers_of_none();
    FAILS_CU(INVALID_VALUE, cu.cuCheckpointProcessGetState(getpid(), NULL));
    /* A process that never heard of the driver. */
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ends[1]);
        dup2(ends[0], 0);
        execlp("cat", "cat", (char *)NULL);
        _exit(1);
    }
    FAILS_CU(NOT_INITIALIZED, cu.cuCheckpointProcessGetState(pid, &state));
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return 0;
}

static void *ask_parent(void *pid) {
    for (int i = 0; i < 200; i++) {
        assert_int_equal(state_of(*(int *)pid), CU_PROCESS_STATE_RUNNING);
        CUprocessState own;
        CUresult result = cu.cuCheckpointProcessGetState(getpid(), &own);
        assert_true(result == CUDA_ERROR_NOT_INITIALIZED || own == CU_PROCESS_STATE_RUNNING);
    }
    return NULL;
}

/* Threads that ask about others while another one begins to use the driver. */
CHILD_THAT_ENDS(initializes_meanwhile) {
    int pid = atoi(argv[1]);
    pthread_t threads[4];
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_parent, &pid), 0);
    init_driver();
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(state_of(getpid()), CU_PROCESS_STATE_RUNNING);
}

/* ---- The process that they act on ------------------------------------------------------------ */

static int child_with_pid(const char *name) {
    char pid[16];
    CUdeviceptr memory;
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    int status = run_child(name, pid, NULL);
    OK_CU(cu.cuMemAlloc_v2(&memory, 4096)); /* it is running again */
    OK_CU(cu.cuMemFree_v2(memory));
    return status;
}

TEST_IS(a_coordinator_locks_without_cuinit, assert_int_equal(child_with_pid("locks"), 0));

TEST(a_coordinator_restores_without_cuinit) {
    NEEDS_SOFTGPU("a checkpoint stops a device that others use");
    assert_int_equal(child_with_pid("restores"), 0);
}

TEST(a_process_may_call_cuinit_while_being_locked) {
    NEEDS_SOFTGPU("what hardware answers while cuInit runs has not been asked");
    assert_int_equal(child_with_pid("initializes_meanwhile"), 0);
}
