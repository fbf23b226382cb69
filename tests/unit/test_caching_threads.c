/*
 * The caching resource under sixteen threads: every block is written by its owner and checked
 * before it is given up, half of them by another thread than the one that allocated it, while one
 * more thread trims. A sanitizer's build does fewer rounds.
 */
#include "library_test.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 16

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS 3000
#else
#define ROUNDS 20000
#endif

/* Where threads leave buffers for others. */
struct exchange {
    _Atomic(gpumem_buffer *) places[64];
};

struct worker {
    gpumem_resource *cache;
    struct exchange *exchange;
    CUstream stream;
    unsigned seed;
    int host;
    unsigned char *scratch; /* pinned */
    const char *failed;
};

static atomic_int running;

static int setup(void **state) {
    return open_device(state);
}

ALL_TESTS(setup, close_device);

static unsigned next(struct worker *worker, unsigned below) {
    worker->seed = worker->seed * 1664525u + 1013904223u;
    return (worker->seed >> 8) % below;
}

static size_t some_size(struct worker *worker) {
    static const size_t most[] = {256, 4096, 65536, 300000};
    return 1 + next(worker, (unsigned)most[next(worker, 4)]);
}

/* The byte that a buffer is filled with follows from its address, which no other has. */
static unsigned char mark_of(const gpumem_buffer *buffer) {
    return (unsigned char)(gpumem_buffer_pointer(buffer) >> 8) ^ (unsigned char)0x5a;
}

static size_t checked(const gpumem_buffer *buffer) {
    size_t size = gpumem_buffer_size(buffer);
    return size < 64 ? size : 64;
}

static int write_mark(struct worker *worker, gpumem_buffer *buffer, CUstream stream) {
    if (worker->host) {
        memset(gpumem_buffer_host_pointer(buffer), mark_of(buffer), checked(buffer));
        return 1;
    }
    return gpumem_buffer_fill(buffer, 0, checked(buffer), mark_of(buffer), stream) == GPUMEM_OK;
}

static int has_mark(struct worker *worker, gpumem_buffer *buffer, CUstream stream) {
    const unsigned char *bytes = worker->scratch;
    if (worker->host)
        bytes = gpumem_buffer_host_pointer(buffer);
    else if (gpumem_buffer_read(buffer, 0, worker->scratch, checked(buffer), stream) != GPUMEM_OK ||
             gpumem_stream_synchronize(device, stream) != GPUMEM_OK)
        return 0;
    for (size_t i = 0; i < checked(buffer); i++)
        if (bytes[i] != mark_of(buffer))
            return 0;
    return 1;
}

/* Leaves the buffer for anybody and takes what another thread left there, or keeps its own. */
static gpumem_buffer *swap(struct worker *worker, gpumem_buffer *buffer) {
    if (next(worker, 2))
        return buffer;
    /* Whoever takes it uses another stream: its bytes must be there before. */
    if (!worker->host && gpumem_stream_synchronize(device, worker->stream) != GPUMEM_OK)
        worker->failed = "synchronize";
    return atomic_exchange(&worker->exchange->places[next(worker, 64)], buffer);
}

static const char *round_of(struct worker *worker) {
    gpumem_buffer *buffer = NULL;
    CUstream stream = worker->stream;
    if (worker->host && next(worker, 2))
        stream = GPUMEM_STREAM_NONE;
    if (gpumem_buffer_allocate(worker->cache, some_size(worker),
                               GPUMEM_BUFFER_OPTIONS(.stream = stream), &buffer) != GPUMEM_OK)
        return "allocate";
    if (!write_mark(worker, buffer, worker->stream))
        return "write";
    buffer = swap(worker, buffer);
    if (!buffer)
        return worker->failed;
    if (!has_mark(worker, buffer, worker->stream))
        return "somebody else wrote here";
    if (gpumem_buffer_free(buffer, worker->host ? NULL : worker->stream) != GPUMEM_OK)
        return "free";
    return worker->failed;
}

static void *work(void *data) {
    struct worker *worker = data;
    for (unsigned i = 0; i < ROUNDS && !worker->failed; i++)
        worker->failed = round_of(worker);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void *trim(void *data) {
    gpumem_resource *cache = data;
    gpumem_stats stats = {.size = sizeof stats};
    gpumem_caching_info info = {.size = sizeof info};
    while (atomic_load(&running)) {
        if (gpumem_resource_trim(cache, 0) != GPUMEM_OK ||
            gpumem_resource_get_stats(cache, &stats) != GPUMEM_OK ||
            gpumem_caching_get_info(cache, &info) != GPUMEM_OK)
            return "trim";
        const struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void run_workers(gpumem_resource *cache, int host) {
    struct worker workers[THREADS];
    struct exchange exchange = {.places = {NULL}};
    pthread_t threads[THREADS], trimmer;
    void *failed = NULL;
    atomic_store(&running, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){
            .cache = cache, .exchange = &exchange, .seed = i * 7919 + 1, .host = host};
        workers[i].stream = NEW_STREAM();
        use_context();
        void *scratch = MADE_CU(void *, cuMemHostAlloc, 4096, 0);
        leave_context();
        workers[i].scratch = scratch;
    }
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    assert_int_equal(pthread_create(&trimmer, NULL, trim, cache), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        if (workers[i].failed)
            fail_msg("thread %u: %s (%s)", i, workers[i].failed, gpumem_last_error()->message);
    }
    assert_int_equal(pthread_join(trimmer, &failed), 0);
    assert_null(failed);
    for (size_t i = 0; i < COUNT(exchange.places); i++)
        OK(gpumem_buffer_free(atomic_load(&exchange.places[i]), NULL));
    gpumem_stats stats = stats_of(cache);
    MEMBERS(stats, (allocations, 0), (in_use_bytes, 0), (allocations_total, THREADS * ROUNDS));
    OK(gpumem_resource_destroy(cache));
    for (unsigned i = 0; i < THREADS; i++) {
        OK(gpumem_stream_destroy(device, workers[i].stream));
        use_context();
        OK_CU(cu->cuMemFreeHost(workers[i].scratch));
        leave_context();
    }
}

static gpumem_resource *small_cache(gpumem_resource *upstream) {
    /* Little room for a thread, so that magazines overflow and come back all the time. */
    return NEW_CACHING_WITH(upstream, .thread_bytes = MIB);
}

TEST(threads_never_share_a_block_of_device_memory) {
    gpumem_resource *pool = NEW_POOL();
    run_workers(small_cache(pool), 0);
    OK(gpumem_resource_destroy(pool));
}

TEST(threads_never_share_a_block_of_pinned_memory) {
    gpumem_resource *pinned = NEW_PINNED(.slab_bytes = 4 * MIB);
    run_workers(small_cache(pinned), 1);
    OK(gpumem_resource_destroy(pinned));
}
