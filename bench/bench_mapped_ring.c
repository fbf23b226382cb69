/*
 * A ring of chunks in mapped memory: microseconds per chunk, and chunks per second, for acquire,
 * fill, commit, consume and release, compared with filling alone. With one producer, which also
 * consumes; with four producers, while the main thread consumes; and with a mirrored ring. Chunks
 * are released after no work, and after a stream without work.
 *
 * GPUMEM_MAPPED_METHOD chooses the method by its name; the default is the best that works.
 */
#include "mapped_method.h"
#include "table.h"

#include <gpumem/driver.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS    9
#define PRODUCERS 4
#define CHUNKS    64 /* of a ring */
#define LARGEST   8192

static gpumem_device *device;
static gpumem_resource *mapped;
static gpumem_mapped_method method;
static uint64_t turns; /* chunks per round */

static _Alignas(64) unsigned char data[LARGEST];

static void ok(gpumem_status status, const char *what) {
    if (status != GPUMEM_OK)
        bench_fail("%s: %s", what, gpumem_last_error()->message);
}

/* ---- Both sides ------------------------------------------------------------------------------ */

static void produce(gpumem_ring *ring, size_t bytes) {
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    ok(gpumem_ring_acquire(ring, bytes, -1, &chunk), "acquire");
    gpumem_store(chunk.host, data, bytes);
    ok(gpumem_ring_commit(ring, chunk.sequence, bytes), "commit");
}

static void consume(gpumem_ring *ring, const CUstream *streams, size_t count) {
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    ok(gpumem_ring_consume(ring, -1, &chunk), "consume");
    ok(gpumem_ring_release(ring, chunk.sequence, streams, count, NULL, 0), "release");
}

struct producer {
    pthread_t thread;
    gpumem_ring *ring;
    size_t bytes;
    uint64_t chunks;
};

static void *produce_all(void *user) {
    struct producer *producer = user;
    for (uint64_t i = 0; i < producer->chunks; i++)
        produce(producer->ring, producer->bytes);
    return NULL;
}

/* ---- One round: microseconds a chunk --------------------------------------------------------- */

struct setting {
    size_t bytes;
    int producers, mirrored, stream_count;
    CUstream stream;
};

static double by_one(gpumem_ring *ring, const struct setting *s) {
    double start = bench_now();
    for (uint64_t i = 0; i < turns; i++) {
        produce(ring, s->bytes);
        consume(ring, &s->stream, (size_t)s->stream_count);
    }
    return 1e6 * (bench_now() - start) / (double)turns;
}

static double by_several(gpumem_ring *ring, const struct setting *s) {
    struct producer producers[PRODUCERS];
    uint64_t each = turns / PRODUCERS;
    double start = bench_now();
    for (int i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){.ring = ring, .bytes = s->bytes, .chunks = each};
        if (pthread_create(&producers[i].thread, NULL, produce_all, &producers[i]) != 0)
            bench_fail("no thread for a producer");
    }
    for (uint64_t i = 0; i < each * PRODUCERS; i++)
        consume(ring, &s->stream, (size_t)s->stream_count);
    double seconds = bench_now() - start;
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(producers[i].thread, NULL);
    return 1e6 * seconds / (double)(each * PRODUCERS);
}

/* Filling alone, in as many places. */
static double fill_alone(size_t bytes) {
    gpumem_buffer *buffer = NULL;
    ok(gpumem_buffer_allocate(mapped, CHUNKS * LARGEST, NULL, &buffer), "allocate");
    unsigned char *host = gpumem_buffer_host_pointer(buffer);
    double values[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double start = bench_now();
        for (uint64_t i = 0; i < turns; i++) {
            gpumem_store(host + i % CHUNKS * LARGEST, data, bytes);
            gpumem_store_fence();
        }
        values[round] = 1e6 * (bench_now() - start) / (double)turns;
    }
    ok(gpumem_buffer_free(buffer, NULL), "free");
    return bench_median(values, ROUNDS);
}

static void row(const struct setting *s, double fill) {
    gpumem_ring *ring = NULL;
    double values[ROUNDS];
    ok(gpumem_ring_create(mapped,
                          GPUMEM_RING_OPTIONS(.chunk_bytes = s->bytes, .chunk_count = CHUNKS,
                                              .mirrored = s->mirrored),
                          &ring),
       "ring");
    for (int i = -1; i < ROUNDS; i++) /* the first is a warm-up */
        values[i < 0 ? 0 : i] = s->producers == 1 ? by_one(ring, s) : by_several(ring, s);
    ok(gpumem_ring_destroy(ring), "destroy");
    double us = bench_median(values, ROUNDS);
    char what[80];
    snprintf(what, sizeof what, "%zu B, %d producer%s%s%s, %.0f chunks/s", s->bytes, s->producers,
             s->producers == 1 ? "" : "s", s->mirrored ? ", mirrored" : "",
             s->stream_count ? ", a stream" : "", 1e6 / us);
    bench_row(what, us, fill, "us a chunk");
}

static void rows(CUstream stream) {
    static const size_t sizes[] = {64, LARGEST};
    bench_header("ring: acquire, fill, commit, consume, release", "fill alone");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double fill = fill_alone(sizes[i]);
        for (int mirrored = 0; mirrored < 2; mirrored++) {
            if (mirrored && method == GPUMEM_MAPPED_VULKAN_EXPORT)
                continue; /* such memory cannot be mapped twice */
            for (int producers = 1; producers <= PRODUCERS; producers += PRODUCERS - 1)
                for (int streams = 0; streams < 2; streams++)
                    row(&(struct setting){.bytes = sizes[i],
                                          .producers = producers,
                                          .mirrored = mirrored,
                                          .stream_count = streams,
                                          .stream = stream},
                        fill);
        }
    }
}

int main(void) {
    gpumem_library *library = NULL;
    CUstream stream = NULL;
    ok(gpumem_open(NULL, &library), "open");
    ok(gpumem_device_open(library, 0, &device), "device");
    gpumem_library_info info = {.size = sizeof info};
    ok(gpumem_library_get_info(library, &info), "info");
    turns = info.softgpu ? 2000 : 100000;
    printf("driver: %s, API %d\n", info.driver_path, info.driver_version);
    mapped = mapped_resource(device, &method);
    ok(gpumem_stream_create(device, NULL, &stream), "stream");
    rows(stream);
    ok(gpumem_stream_destroy(device, stream), "stream");
    ok(gpumem_resource_destroy(mapped), "destroy");
    ok(gpumem_device_close(device), "device close");
    ok(gpumem_close(library), "close");
    return 0;
}
