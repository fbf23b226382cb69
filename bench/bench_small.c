/*
 * Small allocations: the caching resource compared with the driver's pool and a thread-local
 * control loop, with one thread and with many, all in one run.
 */
#include "check.h"
#include "table.h"

#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS       9
#define MOST_THREADS 16

static const gpumem_driver_api *cu;
static gpumem_device *device;
static CUmemoryPool driver_pool;

struct job {
    gpumem_resource *resource; /* NULL: another way */
    int driver;                /* 1: the bare driver's pool; 0: the control loop */
    CUstream stream;
    size_t bytes;
    unsigned pairs;
    double seconds;
    pthread_barrier_t *start;
};

static void library_pairs(const struct job *job) {
    gpumem_buffer_options options = {.size = sizeof options, .stream = job->stream};
    for (unsigned i = 0; i < job->pairs; i++) {
        gpumem_buffer *buffer = NULL;
        if (gpumem_buffer_allocate(job->resource, job->bytes, &options, &buffer) != GPUMEM_OK)
            bench_fail("allocate: %s", gpumem_last_error()->message);
        gpumem_buffer_free(buffer, job->stream == GPUMEM_STREAM_NONE ? NULL : job->stream);
    }
}

static void driver_pairs(const struct job *job) {
    for (unsigned i = 0; i < job->pairs; i++) {
        CUdeviceptr pointer = 0;
        MUST(cu->cuMemAllocFromPoolAsync(&pointer, job->bytes, driver_pool, job->stream), "alloc");
        MUST(cu->cuMemFreeAsync(pointer, job->stream), "free");
    }
}

/* The scaling that the machine offers: the same number of steps on memory of the thread's own. */
static void control_pairs(const struct job *job) {
    volatile unsigned long cell[8] = {0};
    for (unsigned i = 0; i < job->pairs; i++)
        for (unsigned step = 0; step < 32; step++)
            cell[step % 8]++;
}

static void *work(void *data) {
    struct job *job = data;
    MUST(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)), "cuCtxPushCurrent");
    struct job warm = *job;
    warm.pairs = job->pairs / 10 + 1;
    void (*pairs)(const struct job *) = job->resource ? library_pairs
                                        : job->driver ? driver_pairs
                                                      : control_pairs;
    pairs(&warm);
    pthread_barrier_wait(job->start);
    double start = bench_now();
    pairs(job);
    job->seconds = bench_now() - start;
    CUcontext popped;
    MUST(cu->cuCtxPopCurrent_v2(&popped), "cuCtxPopCurrent");
    return NULL;
}

/* Pairs per second of all threads together, the median of the rounds. */
static double rate(const struct job *like, unsigned threads) {
    double rates[ROUNDS];
    for (unsigned round = 0; round < ROUNDS; round++) {
        pthread_barrier_t start;
        pthread_t ids[MOST_THREADS];
        struct job jobs[MOST_THREADS];
        pthread_barrier_init(&start, NULL, threads);
        for (unsigned i = 0; i < threads; i++) {
            jobs[i] = *like;
            jobs[i].start = &start;
            jobs[i].stream = like->stream;
            if (!like->stream)
                MUST(cu->cuStreamCreate(&jobs[i].stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
            if (pthread_create(&ids[i], NULL, work, &jobs[i]) != 0)
                bench_fail("no thread");
        }
        double slowest = 0;
        for (unsigned i = 0; i < threads; i++) {
            pthread_join(ids[i], NULL);
            if (jobs[i].seconds > slowest)
                slowest = jobs[i].seconds;
            if (!like->stream)
                ok(gpumem_stream_destroy(device, jobs[i].stream), "stream");
        }
        rates[round] = threads * (double)like->pairs / slowest;
        pthread_barrier_destroy(&start);
    }
    return bench_median(rates, ROUNDS);
}

static void single(gpumem_resource *cache) {
    static const size_t sizes[] = {256, 4096, 65536, 1 << 20};
    bench_header("allocate + free, one thread, one stream, microseconds a pair", "bare pool");
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct job job = {.bytes = sizes[i], .pairs = 200000, .driver = 1};
        double bare = 1e6 / rate(&job, 1);
        char what[64];
        job.resource = cache;
        job.pairs = 2000000;
        snprintf(what, sizeof what, "caching resource, %zu bytes", sizes[i]);
        bench_row(what, 1e6 / rate(&job, 1), bare, "us");
    }
}

/* The resource without a cache, compared with the calls that it makes. */
static void device_pool(gpumem_resource *pool) {
    static const size_t sizes[] = {4096, 1 << 20};
    bench_header("device pool resource, allocate + free, one thread", "bare pool");
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct job job = {.bytes = sizes[i], .pairs = 200000, .driver = 1};
        double bare = 1e6 / rate(&job, 1);
        char what[64];
        job.resource = pool;
        snprintf(what, sizeof what, "device pool, %zu bytes", sizes[i]);
        bench_row(what, 1e6 / rate(&job, 1), bare, "us");
    }
}

/* ---- Frees in another thread ----------------------------------------------------------------- */

#define RING 256

/* From the thread that allocates to the one that frees. */
struct ring {
    _Alignas(64) atomic_uint written;
    _Alignas(64) atomic_uint read;
    gpumem_buffer *places[RING];
    unsigned pairs;
};

static void *free_all(void *data) {
    struct ring *ring = data;
    for (unsigned i = 0; i < ring->pairs; i++) {
        while (atomic_load_explicit(&ring->written, memory_order_acquire) == i)
            sched_yield();
        gpumem_buffer_free(ring->places[i % RING], NULL);
        atomic_store_explicit(&ring->read, i + 1, memory_order_release);
    }
    return NULL;
}

static void allocate_all(gpumem_resource *cache, struct ring *ring, CUstream stream) {
    gpumem_buffer_options options = {.size = sizeof options, .stream = stream};
    for (unsigned i = 0; i < ring->pairs; i++) {
        while (i - atomic_load_explicit(&ring->read, memory_order_acquire) == RING)
            sched_yield();
        ok(gpumem_buffer_allocate(cache, 4096, &options, &ring->places[i % RING]), "allocate");
        atomic_store_explicit(&ring->written, i + 1, memory_order_release);
    }
}

/* Seconds of processor time, of both threads together. */
static double processor_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void foreign(gpumem_resource *cache) {
    static struct ring ring;
    double elapsed[ROUNDS], used[ROUNDS];
    CUstream stream = NULL;
    ok(gpumem_stream_create(device, NULL, &stream), "stream");
    for (unsigned round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        ring = (struct ring){.pairs = 500000};
        double start = bench_now(), before = processor_time();
        if (pthread_create(&thread, NULL, free_all, &ring) != 0)
            bench_fail("no thread");
        allocate_all(cache, &ring, stream);
        pthread_join(thread, NULL);
        elapsed[round] = 1e6 * (bench_now() - start) / ring.pairs;
        used[round] = 1e6 * (processor_time() - before) / ring.pairs;
    }
    bench_header("freed in another thread, 4096 bytes, microseconds a pair", "-");
    bench_row("elapsed", bench_median(elapsed, ROUNDS), 0, "us");
    bench_row("processor time of both, waits included", bench_median(used, ROUNDS), 0, "us");
    ok(gpumem_stream_destroy(device, stream), "stream");
}

static void many(gpumem_resource *cache, unsigned threads) {
    struct job control = {.pairs = 500000};
    struct job library = {.resource = cache, .bytes = 4096, .pairs = 2000000};
    struct job driver = {.bytes = 4096, .pairs = 20000, .driver = 1};
    double one = rate(&control, 1), all = rate(&control, threads);
    double cache_one = rate(&library, 1), cache_all = rate(&library, threads);
    double bare_one = rate(&driver, 1), bare = rate(&driver, threads);
    char what[64];
    bench_header("scaling", "bare pool");
    bench_row("caching resource, 1 thread", cache_one / 1e6, bare_one / 1e6, "M pairs/s");
    snprintf(what, sizeof what, "caching resource, %u threads", threads);
    bench_row(what, cache_all / 1e6, bare / 1e6, "M pairs/s");
    bench_header("scaling from one thread", "control loop");
    bench_row(what, cache_all / cache_one, all / one, "times");
    bench_row("bare pool", bare / bare_one, all / one, "times");
}

static void pinned(void) {
    gpumem_resource *slabs = NULL, *cache = NULL;
    ok(gpumem_pinned_resource_create(device, NULL, &slabs), "pinned");
    ok(gpumem_caching_resource_create(slabs, NULL, &cache), "cache");
    bench_header("pinned memory from a warm slab, 1 MiB, microseconds a pair", "no stream");
    struct job job = {
        .resource = cache, .bytes = 1 << 20, .pairs = 1000000, .stream = GPUMEM_STREAM_NONE};
    double none = 1e6 / rate(&job, 1);
    bench_row("no stream named", none, none, "us");
    job.stream = NULL;
    job.pairs = 200000;
    bench_row("a stream named, asked for in batches", 1e6 / rate(&job, 1), none, "us");
    ok(gpumem_resource_destroy(cache), "destroy");
    ok(gpumem_resource_destroy(slabs), "destroy");
}

int main(void) {
    gpumem_library *library = NULL;
    gpumem_resource *pool = NULL, *cache = NULL;
    ok(gpumem_open(NULL, &library), "open");
    ok(gpumem_device_open(library, 0, &device), "device");
    cu = gpumem_driver_table(gpumem_library_driver(library));
    MUST(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)), "cuCtxPushCurrent");
    MUST(cu->cuDeviceGetDefaultMemPool(&driver_pool, gpumem_device_handle(device)), "pool");
    cuuint64_t everything = UINT64_MAX;
    MUST(cu->cuMemPoolSetAttribute(driver_pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &everything),
         "threshold");
    ok(gpumem_device_pool_resource_create(device, NULL, &pool), "pool");
    ok(gpumem_caching_resource_create(pool, NULL, &cache), "cache");
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    single(cache);
    device_pool(pool);
    foreign(cache);
    many(cache, cpus >= MOST_THREADS ? MOST_THREADS : cpus < 2 ? 2 : (unsigned)cpus);
    pinned();
    ok(gpumem_resource_destroy(cache), "destroy");
    ok(gpumem_resource_destroy(pool), "destroy");
    ok(gpumem_device_close(device), "close");
    ok(gpumem_close(library), "close");
    return 0;
}
