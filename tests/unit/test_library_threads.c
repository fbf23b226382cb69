/* Resources are used from many threads at once; the counts come out even. */
#include "library_test.h"

#include <pthread.h>

EACH_TEST(open_device, close_device);

#define THREADS 4
#define ROUNDS  200

static gpumem_resource *shared;

/* cmocka's checks belong to the main thread; a thread returns what went wrong. */
static void *allocate_and_free(void *argument) {
    size_t self = (size_t)(uintptr_t)argument;
    CUstream stream;
    if (gpumem_stream_create(device, NULL, &stream) != GPUMEM_OK)
        return "stream";
    gpumem_buffer *held[4] = {0};
    unsigned char value = 0;
    for (size_t round = 0; round < ROUNDS; round++) {
        gpumem_buffer **slot = &held[round % 4];
        if (gpumem_buffer_free(*slot, NULL) != GPUMEM_OK)
            return "free";
        if (gpumem_buffer_allocate(shared, 1 + (round * 977 + self * 131) % (64 * KIB),
                                   GPUMEM_BUFFER_OPTIONS(.stream = stream), slot) != GPUMEM_OK)
            return "allocate";
        size_t last = gpumem_buffer_size(*slot) - 1;
        if (gpumem_buffer_fill(*slot, 0, last + 1, (unsigned char)(self + 1), stream) != GPUMEM_OK)
            return "fill";
        if (round % 8 != 0)
            continue;
        if (gpumem_buffer_read(*slot, last, &value, 1, stream) != GPUMEM_OK ||
            gpumem_stream_synchronize(device, stream) != GPUMEM_OK)
            return "read";
        if (value != self + 1)
            return "another thread's bytes";
    }
    for (size_t i = 0; i < 4; i++)
        if (gpumem_buffer_free(held[i], NULL) != GPUMEM_OK)
            return "last free";
    if (gpumem_stream_synchronize(device, stream) != GPUMEM_OK)
        return "synchronize";
    if (gpumem_device_trim(device, 1) != GPUMEM_OK)
        return "trim";
    return gpumem_stream_destroy(device, stream) == GPUMEM_OK ? NULL : "destroy";
}

static void run_threads(void) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_free, (void *)(uintptr_t)i),
                         0);
    for (size_t i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        if (wrong)
            fail_msg("thread %zu: %s", i, (const char *)wrong);
    }
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (allocations, 0), (in_use_bytes, 0), (deferred_frees, 0), (quarantined, 0),
            (allocations_total, THREADS * ROUNDS));
    OK(gpumem_resource_destroy(shared));
    stats = device_stats();
    MEMBERS(stats, (committed_bytes, 0), (cached_bytes, 0), (pinned_bytes, 0), (chunks, 0));
}

TEST(threads_share_a_virtual_resource) {
    shared = NEW_VIRTUAL();
    run_threads();
}

TEST(threads_share_a_pinned_resource) {
    shared = NEW_PINNED(.slab_bytes = 2 * MIB);
    run_threads();
}

TEST(threads_share_a_pool) {
    shared = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    run_threads();
}
