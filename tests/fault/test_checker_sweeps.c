/*
 * Checkers where the host's memory ends: of work that they watch each allocation fails in turn,
 * their own among them. What is then not known is not reported: a call says that there is no
 * memory, or all is as it should be.
 */
#include "sweep.h"

#include "checked_work.h"
#include "refused_memory.h"
#include "temporary.h"

#include <errno.h>
#include <sys/wait.h>

/* What a process answers. */
enum { FAILED = 1, REFUSED = 2, FAULTED = 4, OFFENDED = 8, BAD = 64 };

/* One run, in which the n-th allocation of its work fails. An error of the kernel itself, for which
 * the host had no memory, ends its context, and the process can have no other. */
static CUresult do_right(struct work *work) {
    CUresult result = work_take(work);
    return result == CUDA_SUCCESS ? work_queue(work) : result;
}

/* A write behind an allocation, and a read of what nothing has written. */
static CUresult do_wrong(struct work *work) {
    void *params[] = {&work->in};
    CUresult result = cu.cuMemAlloc_v2(&work->in, WORK_BYTES);
    if (result == CUDA_SUCCESS)
        result = work_launch(work, "over", 1, params);
    if (result == CUDA_SUCCESS)
        result = work_launch(work, "raw", 1, params);
    CUresult waited = cu.cuStreamSynchronize(work->stream);
    return result == CUDA_SUCCESS ? waited : result;
}

static int work(long n, bool offends) {
    struct work work = {.salt = (uint32_t)n};
    gpumem_driver *driver;
    CUcontext context;
    if (gpumem_driver_open("softgpu", &driver) != GPUMEM_OK)
        return BAD;
    cu = *gpumem_driver_table(driver);
    if (cu.cuInit(0) != CUDA_SUCCESS || cu.cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS ||
        cu.cuStreamCreate(&work.stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
        cu.cuModuleLoadData(&work.module, work_text) != CUDA_SUCCESS)
        return BAD | 1;
    refuse_memory_in_libraries(n);
    CUresult result = offends ? do_wrong(&work) : do_right(&work);
    end_refusal();
    if (result == CUDA_SUCCESS ? !offends && !work_is_right(&work) : !memory_was_refused())
        return BAD | 2;
    bool faulted = cu.cuStreamSynchronize(work.stream) != CUDA_SUCCESS;
    if (!faulted && work_give(&work) != CUDA_SUCCESS)
        return BAD | 3;
    if (cu.cuCtxDestroy_v2(context) != CUDA_SUCCESS)
        return BAD | 4;
    return (memory_was_refused() ? FAILED : 0) | (result != CUDA_SUCCESS ? REFUSED : 0) |
           (faulted ? FAULTED : 0) | (offends ? OFFENDED : 0);
}

/* What is said must follow from what was refused. */
static const char *must_not_be(const char *text, int answer) {
    static const struct {
        const char *kind;
        int allowed; /* where the process answers so */
    } kinds[] = {
        {"out-of-bounds", OFFENDED}, {"uninitialized", OFFENDED}, {"use-after", 0},
        {"double-free", 0},          {"misaligned", 0},           {"illegal-instruction", 0},
        {"api-error", REFUSED},      {"unused-memory", REFUSED},  {"leak", FAULTED},
        {"host-memory", FAULTED},
    };
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *found = strstr(text, kinds[i].kind);
        if (found && !(kinds[i].allowed & answer))
            return found;
    }
    /* Where both are counted, both are written. */
    if (strstr(text, "checked: 2 errors") && (answer & OFFENDED) && !(answer & FAULTED) &&
        !(strstr(text, "error 1 (memory, out-of-bounds)") &&
          strstr(text, "error 2 (init, uninitialized)")))
        return text;
    return strstr(text, "softgpu: checked: ") ? NULL : "no summary";
}

/* In a process of its own, whose end is part of it. */
static int run(long n, bool offends) {
    static char text[1 << 16];
    char path[TEMPORARY_ROOM];
    int file = temporary_file(path, "hazards"), status;
    assert_true(file >= 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("SOFTGPU_CHECK", "memory,init", 1);
        setenv("SOFTGPU_CHECK_OUTPUT", path, 1);
        setenv("SOFTGPU_SCHEDULE", "late", 1); /* whoever waits works */
        setenv("SOFTGPU_LOG", "off", 1);
        exit(work(n, offends));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    ssize_t got = read(file, text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    close(file);
    unlink(path);
    if (!WIFEXITED(status) || WEXITSTATUS(status) >= BAD)
        fail_msg("allocation %ld: status %x\n%s", n, (unsigned)status, text);
    const char *wrong = must_not_be(text, WEXITSTATUS(status));
    if (wrong)
        fail_msg("allocation %ld, answer %d: %s", n, WEXITSTATUS(status), wrong);
    return WEXITSTATUS(status);
}

/* How often an allocation failed, and how often the work went on without it. */
static void sweep(bool offends, long *failures, long *others) {
    if (!CAN_REFUSE_LIBRARIES) {
        fprintf(stderr, "skip: a sanitizer has the allocator\n");
        skip();
    }
    *failures = *others = 0;
    for (long n = 1;; n++) {
        int answer = run(n, offends);
        if (!(answer & FAILED))
            break;
        ++*failures;
        *others += !(answer & REFUSED);
        assert_in_range(n, 1, 10000);
    }
    print_message("%ld allocations failed, %ld times without an error\n", *failures, *others);
}

TEST(checkers_without_memory_report_nothing_false) {
    long failures, others;
    sweep(false, &failures, &others);
    assert_in_range(failures - others, 40, 10000);
    assert_in_range(others, 20, 10000);
}

TEST(reporting_a_hazard_without_memory_fails_cleanly) {
    long failures, others;
    sweep(true, &failures, &others);
    assert_in_range(failures - others, 5, 10000);
    assert_in_range(others, 10, 10000);
}
