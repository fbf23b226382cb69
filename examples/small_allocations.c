/*
 * Small device memory for many threads, which a caching resource hands out without a lock and
 * without a driver call: docs/small-allocations.md explains it.
 *
 *     GPUMEM_DRIVER=softgpu build/examples/small_allocations
 */
#include <gpumem/gpumem.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4
#define ROUNDS  1000
#define AT_ONCE 16

static void check(gpumem_status status) {
    if (status == GPUMEM_OK)
        return;
    fprintf(stderr, "%s\n", gpumem_last_error()->message);
    exit(1);
}

struct worker {
    pthread_t thread;
    gpumem_device *device;
    gpumem_resource *cache;
    unsigned number;
    unsigned wrong;
};

/* Each step takes a few buffers, uses them on its stream, and frees them at once: memory freed on a
 * stream can be reused on the same stream, after the work that is queued. */
static void step(struct worker *worker, CUstream stream, unsigned round) {
    gpumem_buffer *buffers[AT_ONCE];
    unsigned char value = (unsigned char)(round + worker->number), seen;
    for (unsigned i = 0; i < AT_ONCE; i++) {
        size_t bytes = (size_t)256 << (i % 8); /* 256 bytes to 32 KiB */
        check(gpumem_buffer_allocate(worker->cache, bytes, GPUMEM_BUFFER_OPTIONS(.stream = stream),
                                     &buffers[i]));
        check(gpumem_buffer_fill(buffers[i], 0, bytes, value, stream));
    }
    check(gpumem_buffer_read(buffers[round % AT_ONCE], 0, &seen, 1, stream));
    check(gpumem_stream_synchronize(gpumem_resource_device(worker->cache), stream));
    worker->wrong += seen != value;
    for (unsigned i = 0; i < AT_ONCE; i++)
        check(gpumem_buffer_free(buffers[i], NULL)); /* NULL: on the stream of allocation */
}

static void *work(void *argument) {
    struct worker *worker = argument;
    CUstream stream;
    check(gpumem_stream_create(worker->device, NULL, &stream));
    for (unsigned round = 0; round < ROUNDS; round++)
        step(worker, stream, round);
    check(gpumem_stream_destroy(worker->device, stream));
    return NULL;
}

static unsigned run(gpumem_device *device, gpumem_resource *cache) {
    struct worker workers[THREADS];
    unsigned wrong = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.device = device, .cache = cache, .number = i};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            exit(1);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        wrong += workers[i].wrong;
    }
    return wrong;
}

int main(void) {
    gpumem_library *library;
    gpumem_device *device;
    gpumem_resource *pool, *cache;
    check(gpumem_open(NULL, &library)); /* GPUMEM_DRIVER=softgpu where there is no GPU */
    check(gpumem_device_open(library, 0, &device));
    check(gpumem_device_pool_resource_create(device, NULL, &pool));
    check(gpumem_caching_resource_create(pool, NULL, &cache));

    unsigned wrong = run(device, cache);
    gpumem_stats stats = {.size = sizeof stats};
    gpumem_caching_info info = {.size = sizeof info};
    check(gpumem_resource_get_stats(cache, &stats));
    check(gpumem_caching_get_info(cache, &info));
    printf("%llu allocations, %u of the values that were read are wrong\n",
           (unsigned long long)stats.allocations_total, wrong);
    printf("taken from the pool: %s\n", info.segments <= (size_t)2 * THREADS
                                            ? "at most two segments for each stream"
                                            : "more than was expected");
    check(gpumem_resource_trim(cache, 0)); /* reaches the caches of all threads */
    check(gpumem_caching_get_info(cache, &info));
    printf("kept after a trim: %zu bytes\n", info.segment_bytes);

    check(gpumem_resource_destroy(cache));
    check(gpumem_resource_destroy(pool));
    check(gpumem_device_close(device));
    return gpumem_close(library) == GPUMEM_OK && !wrong ? 0 : 1;
}
