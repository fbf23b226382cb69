/* Threads that end: destructors that still allocate, what the driver is asked, and a libgpumem that
 * is closed before its last thread. */
#include "caching_test.h"

#include <dlfcn.h>
#include <threads.h>

ALL_TESTS(open_device, close_device);

/* ---- Destructors that allocate --------------------------------------------------------------- */

static pthread_key_t late;
static gpumem_resource *late_cache;
static int late_runs, late_failures;

/* ThreadSanitizer knows nothing any more of a thread in the last round of its destructors. */
#if defined(__SANITIZE_THREAD__)
#define MOST_RUNS 2
#else
#define MOST_RUNS 100
#endif

/* Comes again as long as the C library runs destructors. */
static void allocate_late(void *left) {
    gpumem_buffer *buffers[100];
    late_runs++;
    for (size_t i = 0; i < COUNT(buffers); i++)
        late_failures += gpumem_buffer_allocate(late_cache, 4096, NULL, &buffers[i]) != GPUMEM_OK;
    for (size_t i = 0; i < COUNT(buffers); i++)
        late_failures += gpumem_buffer_free(buffers[i], NULL) != GPUMEM_OK;
    if (late_runs < MOST_RUNS)
        pthread_setspecific(late, left);
}

static void *end_late(void *unused) {
    gpumem_buffer *buffer = NULL;
    if (gpumem_buffer_allocate(late_cache, 4096, NULL, &buffer) != GPUMEM_OK)
        return "allocate";
    gpumem_buffer_free(buffer, NULL);
    return pthread_setspecific(late, &late) == 0 ? NULL : "no value";
}

static void destructors_may_allocate(gpumem_resource *upstream) {
    gpumem_resource *cache = NEW_CACHING(upstream);
    OK(gpumem_buffer_free(allocate_on(cache, 4096, NULL),
                          NULL)); /* the library's destructor is first */
    late_cache = cache;
    late_runs = late_failures = 0;
    assert_int_equal(pthread_key_create(&late, allocate_late), 0);
    run_thread(end_late, NULL);
    assert_int_equal(pthread_key_delete(late), 0);
    assert_true(late_runs > 1);
    assert_int_equal(late_failures, 0);
    assert_int_equal(caching_info_of(cache).threads, 1);
    assert_int_equal(stats_of(cache).allocations, 0);
    DESTROY(cache, upstream);
}

TEST_IS(thread_destructors_may_allocate_device_memory, destructors_may_allocate(new_own_pool()));
TEST_IS(thread_destructors_may_allocate_pinned_memory, destructors_may_allocate(NEW_PINNED()));

/* ---- What the driver is asked ---------------------------------------------------------------- */

static int use_and_end(void *cache) {
    gpumem_buffer *buffer = NULL;
    if (gpumem_buffer_allocate(cache, 4096, NULL, &buffer) != GPUMEM_OK)
        return 1;
    gpumem_buffer_free(buffer, NULL);
    /* From here on every call would be counted. */
    return soft->fault_arm("*", 0, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_BEFORE);
}

/* The driver may have ended its part of the thread before. */
TEST(an_ending_thread_makes_no_driver_call_for_device_memory) {
#if defined(__SANITIZE_THREAD__)
    print_message("skip: ThreadSanitizer does not know the threads of C11\n");
    skip();
#endif
    gpumem_resource *pool = new_own_pool(), *cache = NEW_CACHING(pool);
    OK(gpumem_buffer_free(allocate_on(cache, 4096, NULL), NULL));
    thrd_t thread;
    int result;
    assert_int_equal(thrd_create(&thread, use_and_end, cache), thrd_success);
    assert_int_equal(thrd_join(thread, &result), thrd_success);
    assert_int_equal(soft->fault_disarm(), 0);
    assert_int_equal(result, 0);
    assert_int_equal(caching_info_of(cache).threads, 1);
    DESTROY(cache, pool);
}

/* ---- A library that is closed ---------------------------------------------------------------- */

/* Of a copy of the library beside the one that this program is linked with. */
struct copy {
    void *handle;
    __typeof__(&gpumem_open) open;
    __typeof__(&gpumem_close) close;
    __typeof__(&gpumem_device_open) device_open;
    __typeof__(&gpumem_device_close) device_close;
    __typeof__(&gpumem_managed_resource_create) managed;
    __typeof__(&gpumem_caching_resource_create) caching;
    __typeof__(&gpumem_resource_destroy) destroy;
    __typeof__(&gpumem_buffer_allocate) allocate;
    __typeof__(&gpumem_buffer_free) free;
    gpumem_resource *cache;
    pthread_barrier_t used, closed;
};

static void find(const struct copy *copy, const char *name, void *pointer) {
    void *symbol = dlsym(copy->handle, name);
    assert_non_null(symbol);
    memcpy(pointer, &symbol, sizeof symbol);
}

static void find_all(struct copy *copy) {
    find(copy, "gpumem_open", &copy->open);
    find(copy, "gpumem_close", &copy->close);
    find(copy, "gpumem_device_open", &copy->device_open);
    find(copy, "gpumem_device_close", &copy->device_close);
    find(copy, "gpumem_managed_resource_create", &copy->managed);
    find(copy, "gpumem_caching_resource_create", &copy->caching);
    find(copy, "gpumem_resource_destroy", &copy->destroy);
    find(copy, "gpumem_buffer_allocate", &copy->allocate);
    find(copy, "gpumem_buffer_free", &copy->free);
}

static void *outlive(void *data) {
    struct copy *copy = data;
    gpumem_buffer *buffer = NULL;
    int failed =
        copy->allocate(copy->cache, 4096, GPUMEM_BUFFER_OPTIONS(.stream = GPUMEM_STREAM_NONE),
                       &buffer) != GPUMEM_OK;
    if (!failed)
        copy->free(buffer, NULL);
    pthread_barrier_wait(&copy->used);
    pthread_barrier_wait(&copy->closed);
    return failed ? "allocate" : NULL;
}

/* Opens and ends everything while a thread lives that has used it. */
static void use_copy(struct copy *copy) {
    gpumem_library *opened;
    gpumem_device *first;
    gpumem_resource *managed;
    OK(copy->open(GPUMEM_OPEN_OPTIONS(.driver = "softgpu"), &opened));
    OK(copy->device_open(opened, 0, &first));
    OK(copy->managed(first, NULL, &managed));
    OK(copy->caching(managed, NULL, &copy->cache));
    pthread_t thread;
    void *failed;
    assert_int_equal(pthread_create(&thread, NULL, outlive, copy), 0);
    pthread_barrier_wait(&copy->used);
    OK(copy->destroy(copy->cache));
    OK(copy->destroy(managed));
    OK(copy->device_close(first));
    OK(copy->close(opened));
    assert_int_equal(dlclose(copy->handle), 0);
    pthread_barrier_wait(&copy->closed);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
}

TEST(a_thread_may_outlive_the_library) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    assert_true(length > 0);
    path[length] = 0;
    for (int i = 0; i < 3; i++) /* tests/unit/name */
        *strrchr(path, '/') = 0;
    strcat(path, "/lib/libgpumem.so.0");
    struct copy copy = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (!copy.handle) {
        print_message("skip: no shared library: %s\n", dlerror());
        skip();
    }
    find_all(&copy);
    pthread_barrier_init(&copy.used, NULL, 2);
    pthread_barrier_init(&copy.closed, NULL, 2);
    use_copy(&copy);
    pthread_barrier_destroy(&copy.used);
    pthread_barrier_destroy(&copy.closed);
}
