/* The error log: lines about refused calls, read back and told to callbacks. */
#include "harness.h"
#include "temporary.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#define ROOM 65536

static void refuse(void) {
    CUdeviceptr p;
    FAILS_CU(INVALID_VALUE, cu.cuMemAlloc_v2(&p, 0));
}

static CUlogIterator now(void) {
    CUlogIterator iterator = 0xdeadbeef;
    OK_CU(cu.cuLogsCurrent(&iterator, 0));
    assert_int_not_equal(iterator, 0xdeadbeef);
    return iterator;
}

static unsigned count_lines(const char *text, size_t size) {
    unsigned lines = 0;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    return lines;
}

TEST(a_refused_call_is_logged) {
    static char text[ROOM];
    CUlogIterator before = now();
    size_t size = sizeof text;
    OK_CU(cu.cuLogsDumpToMemory(&before, text, &size, 0));
    assert_int_equal(size, 0);
    refuse();
    assert_int_not_equal(now(), before);
    CUlogIterator iterator = before;
    size = sizeof text;
    OK_CU(cu.cuLogsDumpToMemory(&iterator, text, &size, 0));
    assert_int_equal(iterator, now());
    assert_int_equal(count_lines(text, size), iterator - before);
    assert_int_equal(strlen(text), size);
    if (soft) {
        assert_non_null(strstr(text, "cuMemAlloc_v2 answered CUDA_ERROR_INVALID_VALUE (1)"));
        assert_non_null(strstr(text, "cuMemAlloc_v2 was called with 0x"));
    }
    size = sizeof text;
    OK_CU(cu.cuLogsDumpToMemory(&iterator, text, &size, 0));
    assert_int_equal(size, 0);
}

TEST(a_successful_call_is_not_logged) {
    CUlogIterator before = now();
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 64);
    OK_CU(cu.cuMemFree_v2(p));
    assert_int_equal(now(), before);
}

TEST(not_ready_is_not_logged) {
    CUstream stream = new_stream();
    struct gate gate = hold(stream);
    CUlogIterator before = now();
    FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
    assert_int_equal(now(), before);
    gate_drain(&gate, stream);
}

TEST(the_last_hundred_lines_are_kept) {
    static char text[ROOM];
    size_t size = sizeof text;
    CUlogIterator first = now();
    for (int i = 0; i < 120; i++)
        refuse();
    assert_true(now() - first >= 120);
    OK_CU(cu.cuLogsDumpToMemory(NULL, text, &size, 0));
    assert_int_equal(count_lines(text, size), 101); /* and one that says that others are gone */
    size = sizeof text;
    OK_CU(cu.cuLogsDumpToMemory(&first, text, &size, 0));
    if (soft)
        assert_int_equal(count_lines(text, size), 101);
    assert_int_equal(first, now());
}

TEST(a_small_buffer_gets_the_newest_lines) {
    static char all[ROOM], some[ROOM];
    for (int i = 0; i < 10; i++)
        refuse();
    size_t size = sizeof all, part = 600;
    OK_CU(cu.cuLogsDumpToMemory(NULL, all, &size, 0));
    memset(some, 'x', sizeof some);
    OK_CU(cu.cuLogsDumpToMemory(NULL, some, &part, 0));
    assert_true(part > 0 && part < 600);
    assert_int_equal(some[part], 0);
    assert_int_equal(some[600], 'x');
    const char *last = strchr(some, '\n') + 1; /* behind the line that says that it is cut */
    assert_string_equal(last, all + size - strlen(last));
    for (size_t room = 0; room < 17; room++) {
        part = room;
        some[room] = 'x';
        FAILS_CU(INVALID_VALUE, cu.cuLogsDumpToMemory(NULL, some, &part, 0));
        assert_int_equal(part, 0);
        assert_int_equal(some[room], 'x');
    }
}

TEST(a_log_file_gets_the_same_lines) {
    static char text[ROOM], file[ROOM];
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "gpumem-test-log");
    assert_true(fd >= 0);
    CUlogIterator before = now(), iterator = before;
    refuse();
    size_t size = sizeof text;
    OK_CU(cu.cuLogsDumpToMemory(&iterator, text, &size, 0));
    iterator = before;
    OK_CU(cu.cuLogsDumpToFile(&iterator, path, 0));
    assert_int_equal(iterator, now());
    ssize_t got = read(fd, file, sizeof file - 1);
    assert_int_equal(got, size);
    file[got] = '\0';
    assert_string_equal(file, text);
    close(fd);
    unlink(path);
    iterator = before;
    FAILS_CU(INVALID_VALUE, cu.cuLogsDumpToFile(&iterator, "/tmp", 0));
    FAILS_CU(INVALID_VALUE, cu.cuLogsDumpToFile(&iterator, "/nonexistent/file", 0));
    assert_int_equal(iterator, before);
}

/* ---- Callbacks ------------------------------------------------------------------------------- */

struct heard {
    atomic_uint calls;
    pthread_t thread;
    CUlogLevel level;
    bool whole;
    CUlogsCallbackHandle own;
    CUresult inside;
};

static void CUDAAPI listen(void *data, CUlogLevel level, char *message, size_t length) {
    static pthread_mutex_t lock =
        PTHREAD_MUTEX_INITIALIZER; /* each thread tells of its own calls */
    struct heard *heard = data;
    pthread_mutex_lock(&lock);
    heard->thread = pthread_self();
    heard->level = level;
    heard->whole = strlen(message) == length && length > 0;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&heard->calls, 1);
}

TEST(callbacks_are_called_for_each_line) {
    struct heard one = {.whole = false}, two = {.whole = false};
    CUlogsCallbackHandle first = NULL, second = NULL;
    OK_CU(cu.cuLogsRegisterCallback(listen, &one, &first));
    CUlogIterator before = now();
    refuse();
    assert_int_equal(one.calls, now() - before);
    assert_true(one.calls > 0);
    assert_true(pthread_equal(one.thread, pthread_self()));
    assert_int_equal(one.level, CU_LOG_LEVEL_ERROR);
    assert_true(one.whole);
    OK_CU(cu.cuLogsRegisterCallback(listen, &two, &second));
    unsigned heard = one.calls;
    refuse();
    assert_int_equal(one.calls, 2 * heard);
    assert_int_equal(two.calls, heard);
    OK_CU(cu.cuLogsUnregisterCallback(first));
    refuse();
    assert_int_equal(one.calls, 2 * heard);
    assert_int_equal(two.calls, 2 * heard);
    OK_CU(cu.cuLogsUnregisterCallback(second));
    refuse();
    assert_int_equal(two.calls, 2 * heard);
    FAILS_CU(INVALID_VALUE, cu.cuLogsUnregisterCallback(NULL));
    FAILS_CU(INVALID_VALUE, cu.cuLogsRegisterCallback(NULL, NULL, &first));
}

TEST_WHERE(unregistered_callback_handles_are_refused, NEEDS_SOFTGPU("knows stale handles")) {
    struct heard one = {.whole = false};
    CUlogsCallbackHandle handle;
    OK_CU(cu.cuLogsRegisterCallback(listen, &one, &handle));
    char *leaks = soft->leak_report();
    assert_non_null(strstr(leaks, "log callback"));
    soft->free_text(leaks);
    OK_CU(cu.cuLogsUnregisterCallback(handle));
    FAILS_CU(INVALID_VALUE, cu.cuLogsUnregisterCallback(handle));
}

static void CUDAAPI call_driver(void *data, CUlogLevel level, char *message, size_t length) {
    struct heard *heard = data;
    CUdeviceptr p = 0;
    atomic_fetch_add(&heard->calls, 1);
    heard->inside = cu.cuMemAlloc_v2(&p, 64);
    if (heard->inside == CUDA_SUCCESS)
        heard->inside = cu.cuMemFree_v2(p);
    (void)cu.cuMemAlloc_v2(&p, 0); /* logged, and nobody is called */
    if (heard->own) {
        if (cu.cuLogsUnregisterCallback(heard->own) != CUDA_SUCCESS)
            heard->inside = CUDA_ERROR_UNKNOWN;
        heard->own = NULL;
    }
}

TEST_WHERE(callbacks_may_call_the_driver, NEEDS_SOFTGPU("says what callbacks may do")) {
    struct heard one = {.inside = CUDA_ERROR_UNKNOWN};
    CUlogsCallbackHandle handle;
    OK_CU(cu.cuLogsRegisterCallback(call_driver, &one, &handle));
    CUlogIterator before = now();
    cu.cuStreamCreate(NULL, 0); /* one line */
    MEMBERS(one, (calls, 1), (inside, CUDA_SUCCESS));
    assert_int_equal(now() - before, 3); /* that, and two of the one inside */
    one.own = handle;
    refuse();
    MEMBERS(one, (calls, 2), (inside, CUDA_SUCCESS));
    refuse();
    assert_int_equal(one.calls, 2);
}

static atomic_bool stop;

static void *refuse_until_stopped(void *unused) {
    CUdeviceptr p;
    while (!atomic_load(&stop))
        (void)cu.cuMemAlloc_v2(&p, 0);
    return NULL;
}

/* What a callback uses may be freed as soon as it is unregistered. */
TEST_WHERE(unregistering_waits_for_callbacks, NEEDS_SOFTGPU("says that it waits")) {
    pthread_t threads[2];
    atomic_store(&stop, false);
    for (unsigned i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, refuse_until_stopped, NULL), 0);
    for (int round = 0; round < 200; round++) {
        struct heard *heard = calloc(1, sizeof *heard);
        CUlogsCallbackHandle handle;
        OK_CU(cu.cuLogsRegisterCallback(listen, heard, &handle));
        OK_CU(cu.cuLogsUnregisterCallback(handle));
        memset(heard, 0xff, sizeof *heard);
        unsigned calls = atomic_load(&heard->calls);
        assert_int_equal(calls, ~0u);
        free(heard);
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
}

CHILD_TEST_WHERE(the_log_works_before_cuinit, NEEDS_SOFTGPU("logs before cuInit")) {
    static char text[ROOM];
    size_t size = sizeof text;
    CUlogIterator iterator = 7;
    OK_CU(cu.cuLogsCurrent(&iterator, 0));
    int count;
    FAILS_CU(NOT_INITIALIZED, cu.cuDeviceGetCount(&count));
    OK_CU(cu.cuLogsDumpToMemory(&iterator, text, &size, 0));
    return strstr(text, "CUDA_ERROR_NOT_INITIALIZED") ? 0 : 1;
}
