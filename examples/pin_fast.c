/*
 * A ring of pinned chunks between the CPU and the device: docs/pin-fast.md explains it.
 *
 *     GPUMEM_DRIVER=softgpu build/examples/pin_fast
 */
#include <gpumem/gpumem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB    ((size_t)1 << 20)
#define CHUNK  (4 * MIB)
#define CHUNKS 4
#define ROUNDS 8

static void check(gpumem_status status) {
    if (status == GPUMEM_OK)
        return;
    fprintf(stderr, "%s\n", gpumem_last_error()->message);
    exit(1);
}

struct chunk {
    gpumem_buffer *pinned;
    CUevent copied; /* passed once the CPU may write to the chunk again */
};

/* Stands in for a network card or a file: the CPU writes pinned memory directly. */
static void produce(void *where, unsigned round) {
    memset(where, (int)round + 1, CHUNK);
}

static void stream_through(gpumem_device *device, struct chunk *ring, gpumem_buffer *target,
                           CUstream stream) {
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct chunk *chunk = &ring[round % CHUNKS];
        check(gpumem_event_synchronize(device, chunk->copied)); /* at once in the first rounds */
        produce(gpumem_buffer_host_pointer(chunk->pinned), round);
        check(gpumem_buffer_copy(target, round * CHUNK, chunk->pinned, 0, CHUNK, stream));
        check(gpumem_event_record(device, chunk->copied, stream));
    }
    check(gpumem_stream_synchronize(device, stream));
}

static unsigned count_wrong(gpumem_device *device, gpumem_buffer *target) {
    unsigned wrong = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned char last;
        check(gpumem_buffer_read(target, (round + 1) * CHUNK - 1, &last, 1, NULL));
        check(gpumem_stream_synchronize(device, NULL));
        wrong += last != round + 1;
    }
    return wrong;
}

int main(void) {
    gpumem_library *library;
    gpumem_device *device;
    gpumem_resource *pinned, *pool;
    gpumem_buffer *target;
    struct chunk ring[CHUNKS];
    CUstream stream;
    check(gpumem_open(NULL, &library)); /* GPUMEM_DRIVER=softgpu where there is no GPU */
    check(gpumem_device_open(library, 0, &device));
    /* One slab is touched and registered; all chunks are cut from it. */
    check(gpumem_pinned_resource_create(device, GPUMEM_PINNED_OPTIONS(.slab_bytes = CHUNKS * CHUNK),
                                        &pinned));
    check(gpumem_device_pool_resource_create(device, NULL, &pool));
    check(gpumem_buffer_allocate(pool, ROUNDS * CHUNK, NULL, &target));
    check(gpumem_stream_synchronize(device, NULL)); /* the copies are on another stream */
    for (unsigned i = 0; i < CHUNKS; i++) {
        /* Names no stream: the program itself waits for what uses a chunk. */
        check(gpumem_buffer_allocate(
            pinned, CHUNK, GPUMEM_BUFFER_OPTIONS(.stream = GPUMEM_STREAM_NONE), &ring[i].pinned));
        check(gpumem_event_create(device, NULL, &ring[i].copied));
    }
    check(gpumem_stream_create(device, NULL, &stream));
    gpumem_stats stats = {.size = sizeof stats};
    check(gpumem_resource_get_stats(pinned, &stats));
    printf("%llu MiB pinned in %llu slab for %llu chunks\n",
           (unsigned long long)(stats.pinned_bytes / MIB), (unsigned long long)stats.chunks,
           (unsigned long long)stats.allocations);

    stream_through(device, ring, target, stream);
    unsigned wrong = count_wrong(device, target);
    printf("%zu MiB went through it, %u chunks arrived wrong\n", ROUNDS * CHUNK / MIB, wrong);

    for (unsigned i = 0; i < CHUNKS; i++) {
        check(gpumem_event_destroy(device, ring[i].copied));
        check(gpumem_buffer_free(ring[i].pinned, NULL));
    }
    check(gpumem_buffer_free(target, NULL));
    check(gpumem_stream_destroy(device, stream)); /* after the buffers that it used */
    check(gpumem_resource_destroy(pool));
    check(gpumem_resource_destroy(pinned));
    check(gpumem_device_close(device));
    return gpumem_close(library) == GPUMEM_OK && !wrong ? 0 : 1;
}
