/* The caching resource's bounds and numbers: what a thread keeps, what marks say when frees are
 * counted before allocations, and that one stream that stands still holds up nobody else. */
#include "caching_test.h"
#include "memory/core/objects.h"
#include "sleeping_thread.h"

#include <sched.h>
#include <stdatomic.h>

ALL_TESTS(open_device, close_device);

struct gift {
    gpumem_resource *cache;
    gpumem_buffer *buffer;
};

static void *free_gift(void *data) {
    struct gift *gift = data;
    return gpumem_buffer_free(gift->buffer, NULL) == GPUMEM_OK ? NULL : "free";
}

static void *allocate_gift(void *data) {
    struct gift *gift = data;
    return gpumem_buffer_allocate(gift->cache, 10, NULL, &gift->buffer) == GPUMEM_OK ? NULL
                                                                                     : "allocate";
}

/* Threads report late: the free below is counted before the allocation. */
TEST(a_free_counted_before_its_allocation_raises_no_high_mark) {
    gpumem_resource *pool = new_own_pool(), *cache = NEW_CACHING(pool);
    struct gift first = {.cache = cache, .buffer = allocate_on(cache, 1000, NULL)}, second = first;
    run_thread(free_gift, &first);
    run_thread(allocate_gift, &second);
    const gpumem_stats all[] = {stats_of(cache), device_stats()};
    for (size_t i = 0; i < COUNT(all); i++) {
        MEMBERS(all[i], (in_use_bytes, 10), (allocations, 1));
        assert_in_range(all[i].in_use_high, 10, 1010);
    }
    DESTROY(second.buffer, cache, pool);
}

TEST(a_thread_caches_at_most_its_configured_bytes) {
    gpumem_resource *pool = new_own_pool();
    const size_t most = 256 * KIB;
    gpumem_resource *cache = NEW_CACHING_WITH(pool, .thread_bytes = most);
    gpumem_buffer *buffers[44];
    for (size_t i = 0; i < COUNT(buffers); i++) {
        size_t bytes = i < 4 ? (i + 1) * 256 : (size_t)1024 << ((i - 4) / 4);
        buffers[i] = allocate_on(cache, bytes, NULL);
        assert_true(caching_info_of(cache).thread_bytes <= most);
    }
    for (size_t i = 0; i < COUNT(buffers); i++) {
        OK(gpumem_buffer_free(buffers[i], NULL));
        assert_true(caching_info_of(cache).thread_bytes <= most);
    }
    DESTROY(cache, pool);
}

TEST(a_blocked_stream_does_not_delay_memory_of_another) {
    gpumem_resource *pool = new_own_pool(), *cache = NEW_CACHING(pool);
    CUstream own = NEW_STREAM();
    struct gate still = gate_with_stream(), passing = gate_with_stream();
    for (int i = 0; i < 20; i++)
        OK(gpumem_buffer_free(allocate_on(cache, 4096, own),
                              i < 19 ? still.stream : passing.stream));
    assert_int_equal(caching_info_of(cache).pending_bytes, 20 * 4096);
    gate_drain(&passing);
    OK(gpumem_resource_trim(cache, SIZE_MAX));
    assert_int_equal(caching_info_of(cache).pending_bytes, 19 * 4096);
    gate_drain(&still);
    OK(gpumem_resource_trim(cache, SIZE_MAX));
    assert_int_equal(caching_info_of(cache).pending_bytes, 0);
    DESTROY(cache, pool, own, &still);
    gate_remove(&passing);
}

#define THREADS 16
#define EACH    64

struct hungry {
    gpumem_resource *cache;
    pthread_barrier_t *start;
};

static void *take_many(void *data) {
    struct hungry *hungry = data;
    gpumem_buffer *buffers[EACH];
    pthread_barrier_wait(hungry->start);
    for (int i = 0; i < EACH; i++)
        if (gpumem_buffer_allocate(hungry->cache, MIB, NULL, &buffers[i]) != GPUMEM_OK)
            return "allocate";
    for (int i = 0; i < EACH; i++)
        gpumem_buffer_free(buffers[i], NULL);
    return NULL;
}

/* What comes for one thread, others must not take before it. */
TEST(threads_that_grow_the_cache_together_all_get_memory) {
    gpumem_resource *pool = new_own_pool();
    gpumem_resource *cache = NEW_CACHING_WITH(pool, .segment_bytes = 2 * MIB);
    pthread_barrier_t start;
    struct hungry hungry = {.cache = cache, .start = &start};
    pthread_barrier_init(&start, NULL, THREADS);
    for (int round = 0; round < 5; round++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, take_many, &hungry), 0);
        void *failed[THREADS];
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], &failed[i]), 0);
        for (int i = 0; i < THREADS; i++)
            assert_null(failed[i]);
        OK(gpumem_resource_trim(cache, 0));
    }
    pthread_barrier_destroy(&start);
    DESTROY(cache, pool);
}

/* Each buffer a little larger than the last, which is freed: none fits where another was. */
static size_t after_creeping_sizes(size_t idle_bytes) {
    gpumem_resource *pool = new_own_pool();
    gpumem_resource *cache =
        NEW_CACHING_WITH(pool, .segment_bytes = 4 * MIB, .idle_bytes = idle_bytes);
    gpumem_buffer *kept = allocate_on(cache, 8 * MIB, NULL), *buffer = NULL;
    for (size_t i = 0; i < 20; i++) {
        gpumem_buffer *larger = allocate_on(cache, (4 + i) * MIB, NULL);
        OK(gpumem_buffer_free(buffer, NULL));
        OK(gpumem_stream_synchronize(device, NULL));
        buffer = larger;
    }
    size_t taken = caching_info_of(cache).segment_bytes;
    DESTROY(buffer, kept, cache, pool);
    return taken;
}

TEST(growing_sizes_do_not_leave_a_segment_each) {
    const size_t in_use = (8 + 23 + 22) * MIB; /* at most, when the last is allocated */
    assert_in_range(after_creeping_sizes(0), 31 * MIB, in_use + in_use / 4);
    assert_in_range(after_creeping_sizes(16 * MIB), 31 * MIB, in_use + 16 * MIB);
    assert_true(after_creeping_sizes(SIZE_MAX) > 200 * MIB);
}

/* ---- What another thread is just giving back ------------------------------------------------- */

static const gpumem_driver_api *driver;
static atomic_int unmapping, may_unmap;

static CUresult gated_unmap(CUdeviceptr pointer, size_t bytes) {
    atomic_store(&unmapping, 1);
    while (!atomic_load(&may_unmap))
        sched_yield();
    return driver->cuMemUnmap(pointer, bytes);
}

static void *trim_it(void *data) {
    return gpumem_resource_trim(data, 0) == GPUMEM_OK ? NULL : "trim";
}

struct taker {
    gpumem_resource *cache;
    gpumem_buffer *buffer;
    gpumem_status status;
    atomic_int thread, done;
};

static void *take(void *data) {
    struct taker *taker = data;
    atomic_store(&taker->thread, gettid());
    taker->status = gpumem_buffer_allocate(taker->cache, 2 * MIB, NULL, &taker->buffer);
    if (taker->status != GPUMEM_OK)
        print_error("%s\n", gpumem_last_error()->message);
    atomic_store(&taker->done, 1);
    return NULL;
}

/* Under its maximum there is room for one of the two. */
TEST(an_allocation_waits_for_memory_being_returned) {
    gpumem_resource *memory = NEW_VIRTUAL();
    gpumem_resource *cache =
        NEW_CACHING_WITH(memory, .maximum_bytes = 2 * MIB, .segment_bytes = 2 * MIB);
    OK(gpumem_buffer_free(allocate_on(cache, 2 * MIB, NULL), NULL));
    gpumem_driver_api gated = *cu;
    driver = cu;
    gated.cuMemUnmap = gated_unmap;
    device->cu = &gated;
    struct taker taker = {.cache = cache};
    pthread_t trimming, taking;
    assert_int_equal(pthread_create(&trimming, NULL, trim_it, cache), 0);
    while (!atomic_load(&unmapping))
        sched_yield();
    assert_int_equal(pthread_create(&taking, NULL, take, &taker), 0);
    for (int asleep = 0; asleep < 1000 && !atomic_load(&taker.done); sched_yield()) {
        int thread = atomic_load(&taker.thread);
        asleep = thread && is_asleep(thread) ? asleep + 1 : 0;
    }
    atomic_store(&may_unmap, 1);
    void *failed = NULL;
    assert_int_equal(pthread_join(trimming, &failed), 0);
    assert_null(failed);
    assert_int_equal(pthread_join(taking, NULL), 0);
    device->cu = driver;
    OK(taker.status);
    DESTROY(taker.buffer, cache, memory);
}
