/* Resources of the user's whose functions call the library, or take their time. */
#include "library_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

EACH_TEST(open_device, close_device);

#define PATIENCE 10 /* seconds; a deadlock ends the test by SIGALRM */

static void wait_a_little(void) {
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static void own_properties(void *user, gpumem_resource_properties *properties) {
    properties->device_accessible = 1;
}

/* ---- A cache over another resource: one freed allocation is kept for the next ---------------- */

struct cache {
    gpumem_resource *upstream;
    pthread_mutex_t lock;
    gpumem_buffer *kept;
};

static gpumem_buffer *take_kept(struct cache *cache) {
    pthread_mutex_lock(&cache->lock);
    gpumem_buffer *kept = cache->kept;
    cache->kept = NULL;
    pthread_mutex_unlock(&cache->lock);
    return kept;
}

static gpumem_status cache_allocate(void *user, const gpumem_request *request,
                                    gpumem_allocation *allocation) {
    struct cache *cache = user;
    gpumem_buffer *buffer = take_kept(cache);
    if (buffer && gpumem_buffer_size(buffer) < request->bytes) {
        (void)gpumem_buffer_free(buffer, NULL);
        buffer = NULL;
    }
    if (!buffer) {
        gpumem_status status =
            gpumem_buffer_allocate(cache->upstream, request->bytes, NULL, &buffer);
        if (status != GPUMEM_OK)
            return status;
    }
    allocation->pointer = gpumem_buffer_pointer(buffer);
    allocation->bytes = request->bytes;
    allocation->committed_bytes = request->bytes;
    allocation->capacity = request->bytes;
    allocation->cookie = buffer;
    return GPUMEM_OK;
}

static void cache_trim(void *user, size_t keep_bytes) {
    (void)gpumem_buffer_free(take_kept(user), NULL);
}

static void cache_deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    struct cache *cache = user;
    cache_trim(user, 0);
    pthread_mutex_lock(&cache->lock);
    cache->kept = allocation->cookie;
    pthread_mutex_unlock(&cache->lock);
}

static void cache_stats(void *user, gpumem_stats *stats) {
    struct cache *cache = user;
    pthread_mutex_lock(&cache->lock);
    stats->cached_bytes += cache->kept ? gpumem_buffer_size(cache->kept) : 0;
    pthread_mutex_unlock(&cache->lock);
}

TEST(a_cache_over_another_resource_is_trimmed) {
    alarm(PATIENCE);
    struct cache cache = {.lock = PTHREAD_MUTEX_INITIALIZER};
    gpumem_resource *resource;
    cache.upstream = NEW_VIRTUAL();
    const gpumem_resource_ops ops = {
        .size = sizeof ops,
        .kind = "cache",
        .allocate = cache_allocate,
        .deallocate = cache_deallocate,
        .properties = own_properties,
        .stats = cache_stats,
        .trim = cache_trim,
    };
    OK(gpumem_resource_create(device, &ops, &cache, &resource));
    gpumem_buffer *buffer = NEW_BUFFER(resource, 4 * MIB);
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(device_stats().cached_bytes, 4 * MIB);
    OK(gpumem_device_trim(device, 0));
    assert_int_equal(device_stats().cached_bytes, 0);
    /* Also when memory runs out, from inside another allocation. */
    buffer = NEW_BUFFER(resource, 4 * MIB);
    OK(gpumem_buffer_free(buffer, NULL));
    FAILS(OUT_OF_MEMORY, gpumem_buffer_allocate(cache.upstream, (size_t)1 << 46, NULL, &buffer));
    assert_int_equal(device_stats().cached_bytes, 0);
    DESTROY(resource, cache.upstream);
    alarm(0);
}

/* ---- Whose name it is ------------------------------------------------------------------------ */

/* As a wrapper does that copies the properties of what it wraps. */
static void named_properties(void *user, gpumem_resource_properties *properties) {
    properties->kind = "copied from another";
}

static gpumem_status refuse(void *user, const gpumem_request *request,
                            gpumem_allocation *allocation) {
    return gpumem_set_last_error(GPUMEM_ERROR_OUT_OF_MEMORY, "nothing to give");
}

static void take_nothing(void *user, const gpumem_allocation *allocation, CUstream stream) {
}

TEST(the_kind_comes_from_the_operations) {
    const struct { const char *given, *wanted; } kinds[] = {{"mine", "mine"}, {NULL, "user"}};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        gpumem_resource *resource;
        gpumem_buffer *buffer;
        const gpumem_resource_ops ops = {
            .size = sizeof ops,
            .kind = kinds[i].given,
            .allocate = refuse,
            .deallocate = take_nothing,
            .properties = named_properties,
        };
        OK(gpumem_resource_create(device, &ops, NULL, &resource));
        gpumem_resource_properties properties = properties_of(resource);
        assert_string_equal(properties.kind, kinds[i].wanted);
        FAILS_SAYING(
            NOT_SUPPORTED, kinds[i].wanted,
            gpumem_buffer_allocate(resource, 1, GPUMEM_BUFFER_OPTIONS(.capacity = 2), &buffer));
        OK(gpumem_resource_destroy(resource));
    }
}

/* ---- A resource that takes its time ---------------------------------------------------------- */

struct slow {
    atomic_int inside;          /* deallocate or resize has begun */
    gpumem_buffer *held;        /* by another thread, during a shrink */
    atomic_int hold_has_passed; /* that thread has its hold */
    int passed_during_resize;
    pthread_t thread;
};

static gpumem_status slow_allocate(void *user, const gpumem_request *request,
                                   gpumem_allocation *allocation) {
    size_t bytes = request->bytes;
    allocation->pointer = 4096; /* nobody touches it */
    allocation->bytes = allocation->committed_bytes = bytes;
    allocation->capacity = request->capacity ? request->capacity : bytes;
    return GPUMEM_OK;
}

static void slow_deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    struct slow *slow = user;
    atomic_store(&slow->inside, 1);
    wait_a_little();
}

static void *hold(void *user) {
    struct slow *slow = user;
    gpumem_status status = gpumem_buffer_hold(slow->held);
    atomic_store(&slow->hold_has_passed, 1);
    return (void *)(uintptr_t)status;
}

static gpumem_status slow_resize(void *user, gpumem_allocation *allocation, size_t bytes,
                                 CUstream stream) {
    struct slow *slow = user;
    if (pthread_create(&slow->thread, NULL, hold, slow) != 0)
        return gpumem_set_last_error(GPUMEM_ERROR_SYSTEM, "no thread");
    wait_a_little();
    slow->passed_during_resize = atomic_load(&slow->hold_has_passed);
    allocation->bytes = allocation->committed_bytes = bytes;
    return GPUMEM_OK;
}

static void slow_properties(void *user, gpumem_resource_properties *properties) {
    own_properties(user, properties);
    properties->can_resize = 1;
}

static gpumem_resource *make_slow(struct slow *slow) {
    const gpumem_resource_ops ops = {
        .size = sizeof ops,
        .kind = "slow",
        .allocate = slow_allocate,
        .deallocate = slow_deallocate,
        .resize = slow_resize,
        .properties = slow_properties,
    };
    return MADE(gpumem_resource *, gpumem_resource_create, device, &ops, slow);
}

static void *work_off(void *unused) {
    return (void *)(uintptr_t)gpumem_device_trim(device, 0);
}

/* Its owner has freed all its buffers: that another thread is just taking one back is no reason to
 * refuse. */
TEST(a_resource_may_be_destroyed_during_another_threads_deallocation) {
    alarm(PATIENCE);
    struct slow slow = {0};
    gpumem_resource *resource = make_slow(&slow);
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = NEW_BUFFER(resource, 64);
    OK(gpumem_buffer_free(buffer, gate.stream));
    assert_int_equal(device_stats().deferred_frees, 1);
    gate_drain(&gate);
    pthread_t thread;
    void *trimmed = NULL;
    assert_int_equal(pthread_create(&thread, NULL, work_off, NULL), 0);
    while (!atomic_load(&slow.inside))
        sched_yield();
    OK(gpumem_resource_destroy(resource));
    pthread_join(thread, &trimmed);
    assert_null(trimmed);
    gate_remove(&gate);
    alarm(0);
}

TEST(a_hold_waits_for_a_running_shrink) {
    alarm(PATIENCE);
    struct slow slow = {0};
    gpumem_resource *resource = make_slow(&slow);
    slow.held = NEW_BUFFER(resource, 64);
    OK(gpumem_buffer_shrink(slow.held, 32, NULL));
    assert_false(slow.passed_during_resize);
    void *status = NULL;
    pthread_join(slow.thread, &status);
    assert_null(status);
    FAILS(BUSY, gpumem_buffer_shrink(slow.held, 16, NULL));
    OK(gpumem_buffer_release(slow.held));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_release(slow.held)); /* one hold, one release */
    assert_int_equal(gpumem_buffer_size(slow.held), 32);
    DESTROY(slow.held, resource);
    alarm(0);
}

TEST(an_unknown_log_level_is_refused) {
    gpumem_resource *none;
    gpumem_resource *pool = NEW_POOL();
    FAILS_SAYING(INVALID_ARGUMENT, "unknown level -1",
                 gpumem_logging_resource_create(
                     pool, GPUMEM_LOGGING_OPTIONS(.level = (gpumem_log_level)-1), &none));
    OK(gpumem_resource_destroy(pool));
}
