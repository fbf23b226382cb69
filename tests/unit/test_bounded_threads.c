/* Threads under a bound that leaves room for all of them: none is refused because another one is
 * just taking memory, giving it back or keeping it for the next time. */
#include "library_test.h"
#include "run_threads.h"

#include <pthread.h>

#define THREADS 8

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS 150
#else
#define ROUNDS 1500
#endif

struct worker {
    gpumem_resource *resource;
    CUstream stream;
    unsigned number;
    size_t most; /* bytes of one buffer */
    gpumem_status worst;
    char message[200];
};

/* Sizes that differ, so that what one gives back does not fit the next as it is. */
static gpumem_status allocate_once(struct worker *w, unsigned round) {
    gpumem_buffer *buffer = NULL;
    size_t bytes = w->most - (w->number * 7919 + round * 104729) % (w->most - 1);
    gpumem_status status = gpumem_buffer_allocate(
        w->resource, bytes, GPUMEM_BUFFER_OPTIONS(.stream = w->stream), &buffer);
    if (status != GPUMEM_OK) {
        snprintf(w->message, sizeof w->message, "%zu bytes, round %u: %.150s", bytes, round,
                 gpumem_last_error()->message);
        return status;
    }
    return gpumem_buffer_free(buffer, w->stream);
}

static void *work(void *user) {
    struct worker *w = user;
    for (unsigned i = 0; i < ROUNDS && w->worst == GPUMEM_OK; i++) {
        w->worst = allocate_once(w, i);
        if (i % 50 == 7)
            (void)gpumem_resource_trim(w->resource, 0);
    }
    return NULL;
}

static void hammer(gpumem_resource *resource, size_t most) {
    struct worker workers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.resource = resource, .number = i, .most = most};
        workers[i].stream = NEW_STREAM();
    }
    run_threads(THREADS, work, workers, sizeof *workers);
    OK(gpumem_device_trim(device, 1));
    OK(gpumem_resource_trim(resource, 0));
    for (size_t i = 0; i < THREADS; i++) {
        OK(gpumem_stream_destroy(device, workers[i].stream));
        if (workers[i].worst != GPUMEM_OK)
            fail_msg("thread %zu: %s", i, workers[i].message);
    }
}

static gpumem_resource *pinned(uint64_t maximum) {
    return NEW_PINNED(.slab_bytes = 2 * MIB, .maximum_bytes = maximum);
}

static gpumem_resource *virtual_memory(uint64_t cache_bytes) {
    return NEW_VIRTUAL(.cache_bytes = cache_bytes);
}

TEST(threads_share_the_slabs_of_pinned_memory) {
    gpumem_resource *resource = pinned(4 * MIB);
    hammer(resource, 200 * KIB);
    OK(gpumem_resource_destroy(resource));
}

TEST(threads_stay_within_a_limit_over_virtual_memory) {
    gpumem_resource *memory = virtual_memory(0);
    gpumem_resource *limited = NEW_LIMIT(memory, THREADS * MIB);
    hammer(limited, MIB);
    DESTROY(limited, memory);
}

static void hammer_cache(gpumem_resource *upstream) {
    gpumem_resource *cache =
        NEW_CACHING_WITH(upstream, .maximum_bytes = 32 * MIB, .segment_bytes = 2 * MIB);
    hammer(cache, 1000 * KIB);
    DESTROY(cache, upstream);
}

TEST_IS(threads_share_a_cache_over_pinned_memory, hammer_cache(pinned(0)));
TEST_IS(threads_share_a_cache_over_virtual_memory, hammer_cache(virtual_memory(0)));

/* The device has 36 MiB. */
TEST(threads_share_a_small_device_without_false_refusals) {
    gpumem_resource *memory = virtual_memory(GIB);
    hammer(memory, 3 * MIB);
    OK(gpumem_resource_destroy(memory));
}

TEST(threads_share_a_small_device_through_a_virtual_cache) {
    gpumem_resource *memory = virtual_memory(GIB);
    /* Segments that are no larger than they must be: a stream's memory is its own while it is used.
     */
    gpumem_resource *cache = NEW_CACHING_WITH(memory, .segment_bytes = 2 * MIB);
    hammer(cache, 3 * MIB);
    DESTROY(cache, memory);
}

TEST(threads_share_a_small_device_through_a_pool) {
    gpumem_resource *pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    gpumem_resource *cache = NEW_CACHING_WITH(pool, .segment_bytes = 4 * MIB);
    hammer(cache, MIB);
    DESTROY(cache, pool);
}

static int open_small_device(void **state) {
    setenv("SOFTGPU_MEMORY", "36M", 1);
    return open_device(state);
}

EACH_TEST(open_small_device, close_device);
