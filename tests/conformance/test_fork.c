/* Forked children: what needs the driver answers NOT_INITIALIZED, whatever the parent's threads are
 * doing. */
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define LIMIT_SECONDS 20

static int status_of(pid_t pid) {
    int status;
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* In the child: the number of calls that answered something else. */
static int calls_that_answer(void) {
    CUdeviceptr memory;
    CUcontext current;
    int count;
    const char *name;
    void *function;
    bool pure = cu.cuDriverGetVersion(&count) == CUDA_SUCCESS &&
                cu.cuGetErrorName(CUDA_ERROR_UNKNOWN, &name) == CUDA_SUCCESS &&
                cu.cuGetProcAddress_v2("cuInit", &function, 12000, 0, NULL) == CUDA_SUCCESS;
    return !pure + (cu.cuInit(0) != CUDA_ERROR_NOT_INITIALIZED) +
           (cu.cuMemAlloc_v2(&memory, 100) != CUDA_ERROR_NOT_INITIALIZED) +
           (cu.cuCtxGetCurrent(&current) != CUDA_ERROR_NOT_INITIALIZED) +
           (cu.cuDeviceGetCount(&count) != CUDA_ERROR_NOT_INITIALIZED) +
           (cu.cuCtxSynchronize() != CUDA_ERROR_NOT_INITIALIZED);
}

TEST(a_forked_child_is_not_initialized) {
    pid_t pid = fork();
    if (pid == 0) {
        alarm(LIMIT_SECONDS);
        _exit(calls_that_answer());
    }
    assert_int_equal(status_of(pid), 0);
    int count = 0;
    OK_CU(cu.cuDeviceGetCount(&count));
    assert_int_equal(count, device_count);
}

static atomic_bool stop;

static void *keep_calling(void *argument) {
    OK_CU(cu.cuCtxSetCurrent(ctx));
    while (!atomic_load(&stop)) {
        CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4096);
        OK_CU(cu.cuMemsetD8_v2(memory, 1, 4096));
        OK_CU(cu.cuMemFree_v2(memory));
    }
    return NULL;
}

TEST(a_forked_child_never_finds_a_lock_held) {
    pthread_t threads[2];
    atomic_store(&stop, false);
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_calling, NULL), 0);
    int bad = 0;
    for (int i = 0; i < 30; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(LIMIT_SECONDS);
            char *dump = soft ? soft->state_dump() : NULL;
            _exit(calls_that_answer() + (dump != NULL));
        }
        bad += status_of(pid) != 0;
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(bad, 0);
}

TEST(pinned_memory_stays_shared_with_a_forked_child) {
    void *memory = new_pinned(4096, 0);
    volatile int *word = memory;
    *word = 1;
    pid_t pid = fork();
    if (pid == 0) {
        bool seen = *word == 1;
        *word = 2;
        _exit(seen ? 0 : 1);
    }
    assert_int_equal(status_of(pid), 0);
    assert_int_equal(*word, 2);
}

/* A parent that only loaded the driver leaves its children free to use it. */
CHILD_TEST(a_child_forked_before_cuinit_may_call_it) {
    int version = 0;
    OK_CU(cu.cuDriverGetVersion(&version));
    pid_t pid = fork();
    if (pid == 0) {
        alarm(LIMIT_SECONDS);
        int count = 0;
        _exit(cu.cuInit(0) == CUDA_SUCCESS && cu.cuDeviceGetCount(&count) == CUDA_SUCCESS ? 0 : 1);
    }
    int status = status_of(pid);
    OK_CU(cu.cuInit(0));
    return status;
}
