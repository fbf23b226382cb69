/* Resources, devices and libraries that end with the last of what they have, whoever gives it
 * back. */
#include "library_test.h"

#include <gpumem/vmm.h>
#include <pthread.h>
#include <stdatomic.h>

static gpumem_library *own;
static gpumem_device *one;

static void open_own(void) {
    OK(gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "softgpu"), &own));
    OK(gpumem_device_open(own, 0, &one));
}

EACH_TEST(open_device, close_device);

/* Every resource has ended: else the device cannot be closed. */
static void nothing_is_left(void) {
    OK(gpumem_device_trim(device, true)); /* what queued work held back */
    assert_int_equal(close_device(NULL), 0);
    assert_int_equal(open_device(NULL), 0);
}

/* The kinds of resources, made anew. */
static gpumem_resource *make_kind(size_t i) {
    switch (i) {
    case 0:
        return NEW_VIRTUAL(.capacity = 8 * MIB);
    case 1:
        return NEW_VIRTUAL(.cache_bytes = 64 * MIB);
    case 2:
        return NEW_POOL(.pool = GPUMEM_POOL_OWN);
    case 3:
        return NEW_PINNED();
    case 4:
        return NEW_MAPPED(.method = GPUMEM_MAPPED_DESCRIPTOR);
    default:
        return NULL;
    }
}

static void each_kind(void (*test)(gpumem_resource *)) {
    for (size_t i = 0; i < 5; i++) {
        test(make_kind(i));
        nothing_is_left();
    }
}

static void end_unused(gpumem_resource *resource) {
    OK(gpumem_resource_close_later(resource));
}

TEST_IS(an_unused_resource_ends_at_once, each_kind(end_unused));

static void end_with_the_last(gpumem_resource *resource) {
    gpumem_buffer *buffer = NEW_BUFFER(resource, 4096), *other = NEW_BUFFER(resource, MIB);
    gpumem_buffer *view = NEW_VIEW(buffer, 16, 16);
    OK(gpumem_resource_close_later(resource));
    FAILS_SAYING(INVALID_ARGUMENT, "closed", gpumem_resource_close_later(resource));
    FAILS_SAYING(INVALID_ARGUMENT, "closed", gpumem_resource_destroy(resource));
    OK(gpumem_buffer_hold(other));
    DESTROY(buffer, other);
    OK(gpumem_buffer_release(other));
    synchronize(NULL);
    OK(gpumem_buffer_free(view, NULL));
}

TEST_IS(a_resource_ends_with_its_last_buffer_view_and_hold, each_kind(end_with_the_last));

static void end_a_chain(gpumem_resource *resource) {
    gpumem_resource *limit = NEW_LIMIT(resource, GIB), *cache = NEW_CACHING(limit);
    CUstream stream = NEW_STREAM();
    gpumem_buffer *small = NEW_BUFFER_WITH(cache, 256, .stream = stream);
    gpumem_buffer *large = NEW_BUFFER_WITH(limit, 4 * MIB, .stream = stream);
    OK(gpumem_resource_close_later(resource)); /* from below */
    OK(gpumem_resource_close_later(limit));
    OK(gpumem_resource_close_later(cache));
    DESTROY(large);
    synchronize(stream);
    DESTROY(small);
    OK(gpumem_device_trim(device, true));
    OK(gpumem_stream_destroy(device, stream));
}

TEST_IS(wrappers_and_caches_keep_what_is_below_them, each_kind(end_a_chain));

static void destroy_the_upper(gpumem_resource *resource) {
    gpumem_resource *limit = NEW_LIMIT(resource, GIB);
    OK(gpumem_resource_close_later(resource));
    gpumem_buffer *buffer = NEW_BUFFER(limit, 4096); /* the wrapper goes on */
    DESTROY(buffer);
    synchronize(NULL);
    OK(gpumem_resource_destroy(limit));
}

TEST_IS(destroying_a_wrapper_ends_what_it_kept, each_kind(destroy_the_upper));

static void end_after_queued_work(gpumem_resource *resource) {
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = NEW_BUFFER_WITH(resource, 2 * MIB, .stream = gate.stream);
    OK(gpumem_buffer_free(buffer, gate.stream));
    OK(gpumem_resource_close_later(resource)); /* waits for nothing */
    gate_drain(&gate);
    gate_remove(&gate);
}

TEST_IS(a_resource_ends_once_queued_work_has_passed, each_kind(end_after_queued_work));

TEST(exports_and_capture_pools_keep_a_closed_resource) {
    gpumem_resource *resource = NEW_VIRTUAL(.handle_type = GPUMEM_HANDLE_POSIX_FD);
    gpumem_buffer *buffer = NEW_BUFFER(resource, 2 * MIB);
    gpumem_export *exported = NEW_EXPORT(buffer);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_resource_close_later(resource));
    OK(gpumem_export_destroy(exported));
    nothing_is_left();
    gpumem_resource *pool = NEW_POOL(), *cache = NEW_CACHING(pool);
    gpumem_capture_pool *captures = MADE(gpumem_capture_pool *, gpumem_capture_pool_create, cache);
    OK(gpumem_resource_close_later(pool));
    OK(gpumem_resource_close_later(cache));
    OK(gpumem_capture_pool_destroy(captures, GPUMEM_STREAM_NONE));
    nothing_is_left();
}

TEST(a_device_and_its_library_end_with_the_last_object) {
    char *before = soft->state_dump();
    open_own();
    gpumem_resource *resource;
    gpumem_buffer *buffer;
    gpumem_reservation *range;
    OK(gpumem_virtual_resource_create(one, NULL, &resource));
    OK(gpumem_buffer_allocate(resource, 2 * MIB, NULL, &buffer));
    OK(gpumem_reservation_create(one, 2 * MIB, NULL, &range));
    OK(gpumem_close_later(own));
    OK(gpumem_device_close_later(one));
    FAILS_SAYING(INVALID_ARGUMENT, "as often", gpumem_device_close_later(one));
    FAILS_SAYING(INVALID_ARGUMENT, "as often", gpumem_device_close(one));
    FAILS_SAYING(INVALID_ARGUMENT, "closed", gpumem_close(own));
    OK(gpumem_resource_close_later(resource));
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_reservation_destroy(range));
    SAME_STATE(before);
}

TEST(a_device_that_is_opened_again_stays) {
    open_own();
    gpumem_resource *resource;
    OK(gpumem_virtual_resource_create(one, NULL, &resource));
    OK(gpumem_device_close_later(one));
    gpumem_device *again;
    OK(gpumem_device_open(own, 0, &again));
    assert_ptr_equal(again, one);
    OK(gpumem_resource_destroy(resource));
    OK(gpumem_virtual_resource_create(again, NULL, &resource)); /* it did not end */
    OK(gpumem_resource_destroy(resource));
    OK(gpumem_device_close_later(again));
    OK(gpumem_close(own));
}

TEST(a_library_without_devices_ends_at_once) {
    OK(gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "softgpu"), &own));
    OK(gpumem_close_later(own));
    OK(gpumem_close_later(NULL));
    OK(gpumem_device_close_later(NULL));
    OK(gpumem_resource_close_later(NULL));
}

/* ---- Threads --------------------------------------------------------------------------------- */

#define THREADS 8
#define EACH    64
static gpumem_buffer *shared[THREADS][EACH];

static void *give_back(void *argument) {
    gpumem_buffer **mine = shared[(uintptr_t)argument];
    for (size_t i = 0; i < EACH; i++)
        OK(gpumem_buffer_free(mine[i], NULL));
    return NULL;
}

static void free_by_threads(gpumem_resource *resource) {
    pthread_t threads[THREADS];
    gpumem_resource *cache = NEW_CACHING(resource);
    for (size_t t = 0; t < THREADS; t++)
        for (size_t i = 0; i < EACH; i++)
            shared[t][i] = NEW_BUFFER(i % 2 ? cache : resource, (size_t)512 << i % 5);
    OK(gpumem_resource_close_later(resource));
    OK(gpumem_resource_close_later(cache));
    for (uintptr_t t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, give_back, (void *)t), 0);
    for (size_t t = 0; t < THREADS; t++)
        assert_int_equal(pthread_join(threads[t], NULL), 0);
}

TEST_IS(threads_free_the_buffers_of_closed_resources, each_kind(free_by_threads));

/* Each thread closes what another still frees from. */
static void *come_and_go(void *unused) {
    for (int i = 0; i < 50; i++) {
        gpumem_resource *resource = NEW_VIRTUAL(), *limit = NEW_LIMIT(resource, GIB);
        gpumem_buffer *buffer = NEW_BUFFER(limit, 4096);
        OK(gpumem_resource_close_later(limit));
        OK(gpumem_buffer_free(buffer, NULL));
        OK(gpumem_resource_close_later(resource));
    }
    return unused;
}

static void *come_and_go_cached(void *unused) {
    for (int i = 0; i < 50; i++) {
        gpumem_resource *resource = NEW_VIRTUAL(), *cache = NEW_CACHING(resource);
        gpumem_buffer *buffer = NEW_BUFFER(cache, 4096);
        OK(gpumem_resource_close_later(resource));
        OK(gpumem_resource_close_later(cache));
        OK(gpumem_buffer_free(buffer, NULL));
    }
    return unused;
}

TEST(threads_close_resources_at_once) {
    pthread_t threads[THREADS];
    for (size_t t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, come_and_go, NULL), 0);
    for (size_t t = 0; t < THREADS; t++)
        assert_int_equal(pthread_join(threads[t], NULL), 0);
    nothing_is_left();
}

/* Memory runs out again and again, so that other resources are trimmed while they end. */
static void *run_out(void *stop) {
    gpumem_resource *mine = NEW_VIRTUAL(), *cache = NEW_CACHING(mine);
    while (!atomic_load((atomic_int *)stop)) {
        gpumem_buffer *none = NULL;
        OK(gpumem_buffer_free(NEW_BUFFER(cache, MIB), NULL));
        FAILS(OUT_OF_MEMORY, gpumem_buffer_allocate(mine, (size_t)1 << 45, NULL, &none));
    }
    DESTROY(cache, mine);
    return NULL;
}

TEST(resources_end_while_others_are_trimmed) {
    pthread_t threads[3];
    atomic_int stop = 0;
    assert_int_equal(pthread_create(&threads[0], NULL, run_out, &stop), 0);
    for (size_t t = 1; t < COUNT(threads); t++)
        assert_int_equal(pthread_create(&threads[t], NULL, come_and_go_cached, NULL), 0);
    for (size_t t = 1; t < COUNT(threads); t++)
        assert_int_equal(pthread_join(threads[t], NULL), 0);
    atomic_store(&stop, 1);
    assert_int_equal(pthread_join(threads[0], NULL), 0);
    nothing_is_left();
}

/* ---- A resource of the program's ------------------------------------------------------------- */

static gpumem_resource *inner;

static gpumem_status take(void *user, const gpumem_request *request, gpumem_allocation *made) {
    (void)user;
    gpumem_buffer *buffer;
    gpumem_status status = gpumem_buffer_allocate(inner, request->bytes, NULL, &buffer);
    if (status == GPUMEM_OK)
        *made = (gpumem_allocation){.size = sizeof *made,
                                    .pointer = gpumem_buffer_pointer(buffer),
                                    .bytes = request->bytes,
                                    .committed_bytes = request->bytes,
                                    .capacity = request->bytes,
                                    .cookie = buffer};
    return status;
}

static void give(void *user, const gpumem_allocation *allocation, CUstream stream) {
    (void)user;
    OK(gpumem_buffer_free(allocation->cookie, stream));
}

static void describe(void *user, gpumem_resource_properties *properties) {
    (void)user;
    properties->device_accessible = true;
}

/* Closes another one as it ends. */
static void end(void *user) {
    OK(gpumem_resource_close_later(inner));
    *(int *)user += 1;
}

TEST(a_resource_may_close_another_as_it_ends) {
    int ended = 0;
    const gpumem_resource_ops ops = {.size = sizeof ops,
                                     .allocate = take,
                                     .deallocate = give,
                                     .properties = describe,
                                     .destroy = end};
    inner = NEW_VIRTUAL();
    gpumem_resource *outer;
    OK(gpumem_resource_create(device, &ops, &ended, &outer));
    gpumem_buffer *buffer = NEW_BUFFER(outer, 4096);
    OK(gpumem_resource_close_later(outer));
    assert_int_equal(ended, 0);
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(ended, 1);
    nothing_is_left();
}
