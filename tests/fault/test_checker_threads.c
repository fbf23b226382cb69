/*
 * Checkers while several threads work: each has a stream, allocates, launches, copies and frees,
 * and what is right is never reported; then each also has hazards, all of which are counted. For
 * builds with sanitizers, which look at the checkers themselves.
 */
#include "sweep.h"

#include "checked_work.h"
#include "temporary.h"

#include <pthread.h>
#include <sys/wait.h>

/* Who called: a sanitizer stands before the program's own functions. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CALLER "lib"
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define CALLER "lib"
#endif
#endif
#ifndef CALLER
#define CALLER "run+0x"
#endif

enum { THREADS = 4, ROUNDS = 10 };

static CUcontext context;
static CUmodule module;

struct worker {
    pthread_t thread;
    unsigned number;
    bool hazards, good;
};

/* One word behind an allocation is written, and one of it read that nothing has written; it is
 * freed twice; and a call is refused. */
static CUresult offend(struct work *work) {
    CUdeviceptr at;
    CUresult result = cu.cuMemAlloc_v2(&at, WORK_BYTES);
    void *params[] = {&at};
    if (result != CUDA_SUCCESS)
        return result;
    result = work_launch(work, "over", 1, params);
    if (result == CUDA_SUCCESS)
        result = work_launch(work, "raw", 1, params);
    CUresult waited = cu.cuStreamSynchronize(work->stream), freed = cu.cuMemFree_v2(at);
    if (cu.cuMemFree_v2(at) != CUDA_ERROR_INVALID_VALUE || /* twice */
        cu.cuMemsetD8_v2(5, 0, 1) != CUDA_ERROR_INVALID_VALUE)
        return CUDA_ERROR_UNKNOWN;
    return result != CUDA_SUCCESS ? result : waited != CUDA_SUCCESS ? waited : freed;
}

static bool round_of(const struct worker *worker, CUstream stream, unsigned number) {
    struct work work = {
        .module = module, .stream = stream, .salt = worker->number << 8 | number << 4};
    CUresult result = work_take(&work);
    if (result == CUDA_SUCCESS)
        result = work_queue(&work);
    bool good = result == CUDA_SUCCESS && work_is_right(&work);
    if (good && worker->hazards)
        good = offend(&work) == CUDA_SUCCESS;
    return work_give(&work) == CUDA_SUCCESS && good;
}

static void *run(void *argument) {
    struct worker *worker = argument;
    CUstream stream;
    worker->good = cu.cuCtxSetCurrent(context) == CUDA_SUCCESS &&
                   cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS;
    for (unsigned i = 0; i < ROUNDS && worker->good; i++)
        worker->good = round_of(worker, stream, i);
    worker->good = worker->good && cu.cuStreamDestroy_v2(stream) == CUDA_SUCCESS;
    return NULL;
}

/* The whole of a process: 0 if all went well. */
static int process(bool hazards) {
    struct worker workers[THREADS] = {{0}};
    static gpumem_driver *driver; /* open to the end, which reports */
    bool good = true;
    if (gpumem_driver_open("softgpu", &driver) != GPUMEM_OK)
        return 1;
    cu = *gpumem_driver_table(driver);
    if (cu.cuInit(0) != CUDA_SUCCESS || cu.cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS ||
        cu.cuModuleLoadData(&module, work_text) != CUDA_SUCCESS)
        return 2;
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].number = i;
        workers[i].hazards = hazards;
        if (pthread_create(&workers[i].thread, NULL, run, &workers[i]) != 0)
            return 3;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        good = good && workers[i].good;
    }
    bool ended =
        cu.cuModuleUnload(module) == CUDA_SUCCESS && cu.cuCtxDestroy_v2(context) == CUDA_SUCCESS;
    return good && ended ? 0 : 4;
}

/* In a process of its own, whose end is part of it: what it reports, into `text`. */
static void reports(const char *checks, const char *schedule, bool hazards, char *text,
                    size_t size) {
    char path[TEMPORARY_ROOM];
    int file = temporary_file(path, "hazards"), status;
    assert_true(file >= 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("SOFTGPU_CHECK", checks, 1);
        setenv("SOFTGPU_CHECK_OUTPUT", path, 1);
        setenv("SOFTGPU_SCHEDULE", schedule, 1);
        setenv("SOFTGPU_SEED", "7", 1);
        exit(process(hazards));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    ssize_t got = read(file, text, size - 1);
    text[got > 0 ? got : 0] = '\0';
    close(file);
    unlink(path);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("status %x\n%s", (unsigned)status, text);
}

static void ends_with(const char *text, const char *wanted) {
    size_t length = strlen(text), room = strlen(wanted);
    if (length < room || strcmp(text + length - room, wanted) != 0)
        fail_msg("%s\nnot\n%s", length > 400 ? text + length - 400 : text, wanted);
}

static const char *const schedules[] = {"eager", "late", "random"};

TEST(correct_work_of_several_threads_is_not_reported) {
    static char text[1 << 18];
    for (unsigned i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        reports("memory,init,race,sync", schedules[i], false, text, sizeof text);
        assert_string_equal(text, "softgpu: checked: 0 errors, 0 warnings, 0 remarks\n");
    }
}

TEST(each_hazard_of_several_threads_is_counted) {
    static char text[1 << 18], wanted[80];
    snprintf(wanted, sizeof wanted, "softgpu: checked: %d errors, %d warnings, 0 remarks\n",
             3 * THREADS * ROUNDS, THREADS * ROUNDS);
    for (unsigned i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        reports("memory,init", schedules[i], true, text, sizeof text);
        ends_with(text, wanted);
        assert_non_null(strstr(text, "(memory, out-of-bounds): kernel over: "));
        assert_non_null(strstr(text, "(init, uninitialized): kernel raw: "));
        assert_non_null(strstr(text, "(memory, double-free): "));
        /* With the calls that led there. */
        assert_non_null(strstr(text, "answered CUDA_ERROR_INVALID_VALUE\n"
                                     "  called by cuMemsetD8_v2 from " CALLER));
        assert_non_null(strstr(text, "made by cuMemAlloc_v2 from " CALLER));
    }
}
