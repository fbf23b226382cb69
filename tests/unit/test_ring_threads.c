/* Rings under threads: many producers fill out of order, consumers release behind streams, and
 * everybody is woken when it closes. */
#include "ring_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define CHUNK     ((size_t)1024)
#define PRODUCERS 4
#define CONSUMERS 2

static int setup(void **state) {
    return begin_ring(state, CHUNK, 5);
}

EACH_TEST(setup, teardown);

static pthread_t start(void *(*run)(void *), void *argument) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, argument), 0);
    return thread;
}

/* ---- Bytes through the ring ------------------------------------------------------------------ */

static atomic_uint_fast64_t committed, abandoned, received, wrong;

/* Two chunks at a time, of which the later is committed first; some are given up. */
static void produce_pair(int turn) {
    gpumem_ring_chunk chunks[2] = {{.size = sizeof chunks[0]}, {.size = sizeof chunks[1]}};
    gpumem_status status = gpumem_ring_acquire(ring, 0, -1, &chunks[0]);
    if (status != GPUMEM_OK) {
        atomic_fetch_add(&wrong, 1);
        return;
    }
    /* A thread that held one and waited without end for another could wait for itself. */
    int two = gpumem_ring_acquire(ring, 0, 0, &chunks[1]) == GPUMEM_OK;
    for (int i = two; i >= 0; i--) {
        memset(chunks[i].host, (int)(chunks[i].sequence & 0xff), CHUNK);
        int gives_up = (turn + i) % 7 == 0;
        status = gives_up ? gpumem_ring_abandon(ring, chunks[i].sequence)
                          : gpumem_ring_commit(ring, chunks[i].sequence, CHUNK);
        atomic_fetch_add(status != GPUMEM_OK ? &wrong : gives_up ? &abandoned : &committed, 1);
    }
}

static void *produce(void *argument) {
    for (int turn = 0; turn < *(int *)argument; turn++)
        produce_pair(turn);
    return NULL;
}

static int is_filled(const unsigned char *bytes, uint64_t sequence) {
    for (size_t i = 0; i < CHUNK; i++)
        if (bytes[i] != (unsigned char)sequence)
            return 0;
    return 1;
}

/* Copies on two streams, and looks at the bytes before the next. */
static void *consume(void *argument) {
    CUstream streams[2] = {NULL, NULL};
    unsigned char *bytes = malloc(2 * CHUNK);
    uint64_t last = 0;
    int first = 1;
    for (int i = 0; i < 2; i++)
        if (gpumem_stream_create(device, NULL, &streams[i]) != GPUMEM_OK)
            atomic_fetch_add(&wrong, 1);
    for (;;) {
        gpumem_ring_chunk chunk = {.size = sizeof chunk};
        if (gpumem_ring_consume(ring, -1, &chunk) != GPUMEM_OK)
            break;
        for (size_t i = 0; i < 2; i++)
            if (copy_bytes(device, (CUdeviceptr)(uintptr_t)(bytes + i * CHUNK), chunk.device, CHUNK,
                           streams[i]) != GPUMEM_OK)
                atomic_fetch_add(&wrong, 1);
        int in_order = first || chunk.sequence > last;
        first = 0;
        last = chunk.sequence;
        if (gpumem_ring_release(ring, chunk.sequence, streams, 2, NULL, 0) != GPUMEM_OK)
            atomic_fetch_add(&wrong, 1);
        for (int i = 0; i < 2; i++)
            (void)gpumem_stream_synchronize(device, streams[i]);
        if (!in_order || !is_filled(bytes, chunk.sequence) ||
            !is_filled(bytes + CHUNK, chunk.sequence))
            atomic_fetch_add(&wrong, 1);
        atomic_fetch_add(&received, 1);
    }
    for (int i = 0; i < 2; i++)
        (void)gpumem_stream_destroy(device, streams[i]);
    free(bytes);
    return NULL;
}

TEST(every_chunk_arrives_once_and_complete) {
    pthread_t producers[PRODUCERS], consumers[CONSUMERS];
    int turns = 400;
    for (int i = 0; i < CONSUMERS; i++)
        consumers[i] = start(consume, NULL);
    for (int i = 0; i < PRODUCERS; i++)
        producers[i] = start(produce, &turns);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(producers[i], NULL);
    OK(gpumem_ring_close(ring));
    for (int i = 0; i < CONSUMERS; i++)
        pthread_join(consumers[i], NULL);
    gpumem_ring_info info = {.size = sizeof info};
    OK(gpumem_ring_get_info(ring, &info));
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(atomic_load(&received), atomic_load(&committed));
    MEMBERS(info, (released, atomic_load(&committed)), (abandoned, atomic_load(&abandoned)),
            (acquired, info.released + info.abandoned));
    assert_true(info.waits > 0);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static void *wait_for_room(void *status) {
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    *(gpumem_status *)status = gpumem_ring_acquire(ring, 0, -1, &chunk);
    return NULL;
}

static void *wait_for_chunk(void *status) {
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    *(gpumem_status *)status = gpumem_ring_consume(ring, -1, &chunk);
    return NULL;
}

static void acquire_all(void) {
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    for (int i = 0; i < 5; i++)
        OK(gpumem_ring_acquire(ring, 0, 0, &chunk));
}

static void abandon_all(void) {
    for (uint64_t i = 0; i < 5; i++)
        OK(gpumem_ring_abandon(ring, i));
}

/* Until so many threads sleep in the ring: only that makes a destroy answer with them. */
static void await_waiters(const char *text) {
    const struct timespec pause = {.tv_nsec = 100000};
    for (;;) {
        FAILS(BUSY, gpumem_ring_destroy(ring));
        if (strstr(gpumem_last_error()->message, text))
            return;
        nanosleep(&pause, NULL);
    }
}

TEST(closing_wakes_waiting_threads) {
    gpumem_status statuses[3];
    pthread_t threads[3];
    acquire_all();
    for (int i = 0; i < 3; i++)
        threads[i] = start(wait_for_room, &statuses[i]);
    await_waiters("3 threads wait");
    OK(gpumem_ring_close(ring));
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        FAILS(CANCELLED, statuses[i]);
    }
    /* The consumer is told when the last that was being filled is given up. */
    threads[0] = start(wait_for_chunk, &statuses[0]);
    await_waiters("1 threads wait");
    abandon_all();
    pthread_join(threads[0], NULL);
    FAILS(CANCELLED, statuses[0]);
}

TEST(a_release_wakes_a_waiting_producer) {
    gpumem_status status;
    acquire_all();
    pthread_t thread = start(wait_for_room, &status);
    await_waiters("1 threads wait");
    OK(gpumem_ring_abandon(ring, 0));
    pthread_join(thread, NULL);
    OK(status);
    for (uint64_t i = 1; i < 6; i++)
        OK(gpumem_ring_abandon(ring, i));
}

TEST(a_passed_event_wakes_a_waiting_producer) {
    gpumem_status status;
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    struct gate gate = gate_with_stream();
    acquire_all();
    OK(gpumem_ring_commit(ring, 0, 1));
    OK(gpumem_ring_consume(ring, 0, &chunk));
    OK(gpumem_ring_release(ring, 0, &gate.stream, 1, NULL, 0));
    pthread_t thread = start(wait_for_room, &status);
    await_waiters("1 threads wait");
    gate_drain(&gate);
    pthread_join(thread, NULL);
    OK(status);
    for (uint64_t i = 1; i < 6; i++)
        OK(gpumem_ring_abandon(ring, i));
    gate_remove(&gate);
}
