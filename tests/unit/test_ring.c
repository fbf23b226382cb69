/* Rings of chunks: their order, how they hold producers back, time-outs, release behind several
 * streams and events, and what is refused. */
#include "ring_test.h"

#include <sys/wait.h>
#include <time.h>

#define CHUNK ((size_t)4096)

static int setup(void **state) {
    return begin_ring(state, CHUNK, 3);
}

EACH_TEST(setup, teardown);

static gpumem_ring_chunk acquire(void) {
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    OK(gpumem_ring_acquire(ring, 0, 0, &chunk));
    return chunk;
}

static gpumem_ring_chunk consume(void) {
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    OK(gpumem_ring_consume(ring, 0, &chunk));
    return chunk;
}

/* A chunk that is ready to be released. */
static uint64_t consumed(void) {
    OK(gpumem_ring_commit(ring, acquire().sequence, CHUNK));
    return consume().sequence;
}

static gpumem_status try_acquire(int timeout_ms) {
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    return gpumem_ring_acquire(ring, 0, timeout_ms, &chunk);
}

static gpumem_status try_consume(int timeout_ms) {
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    return gpumem_ring_consume(ring, timeout_ms, &chunk);
}

static gpumem_ring_info info_of(void) {
    gpumem_ring_info info = {.size = sizeof info};
    OK(gpumem_ring_get_info(ring, &info));
    return info;
}

static long long now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (long long)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

/* ---- Order and bytes ------------------------------------------------------------------------- */

TEST(chunks_are_contiguous) {
    const gpumem_ring_chunk first = acquire(), second = acquire();
    assert_int_equal(first.sequence, 0);
    assert_int_equal(second.sequence, 1);
    assert_ptr_equal(second.host, (unsigned char *)first.host + CHUNK);
    assert_true(second.device == first.device + CHUNK);
    assert_int_equal(first.bytes, CHUNK);
    assert_int_equal(second.offset, CHUNK);
    OK(gpumem_ring_abandon(ring, 0));
    OK(gpumem_ring_abandon(ring, 1));
}

/* Not those that it was rounded up to: whoever commits them all sends no old bytes. */
TEST(a_chunk_of_no_size_has_the_bytes_of_the_options) {
    const size_t sizes[] = {1, 1000, 4095, 4096, 4097};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        gpumem_ring *odd = MADE(gpumem_ring *, gpumem_ring_create, mapped,
                                GPUMEM_RING_OPTIONS(.chunk_bytes = sizes[i], .chunk_count = 2));
        gpumem_ring_chunk first = {.size = sizeof first}, second = first;
        OK(gpumem_ring_acquire(odd, 0, 0, &first));
        assert_int_equal(first.bytes, sizes[i]);
        FAILS(INVALID_ARGUMENT, gpumem_ring_commit(odd, first.sequence, sizes[i] + 1));
        OK(gpumem_ring_acquire(odd, sizes[i], 0, &second));
        assert_int_equal(second.bytes, sizes[i]);
        OK(gpumem_ring_abandon(odd, first.sequence));
        OK(gpumem_ring_abandon(odd, second.sequence));
        OK(gpumem_ring_destroy(odd));
    }
}

TEST(chunks_are_consumed_in_order_of_acquisition) {
    for (int i = 0; i < 3; i++)
        memset(acquire().host, 'a' + i, CHUNK);
    OK(gpumem_ring_commit(ring, 2, 1));
    FAILS_SAYING(TIMED_OUT, "chunk 0", try_consume(0));
    OK(gpumem_ring_commit(ring, 0, CHUNK));
    assert_int_equal(consume().sequence, 0);
    FAILS(TIMED_OUT, try_consume(0));
    OK(gpumem_ring_commit(ring, 1, 100));
    assert_int_equal(consume().bytes, 100);
    const gpumem_ring_chunk last = consume();
    MEMBERS(last, (sequence, 2), (bytes, 1));
    for (uint64_t i = 0; i < 3; i++)
        OK(gpumem_ring_release(ring, i, NULL, 0, NULL, 0));
}

TEST(the_device_sees_what_was_written) {
    unsigned char back[CHUNK];
    for (int lap = 0; lap < 4; lap++) {
        const gpumem_ring_chunk chunk = acquire();
        memset(chunk.host, lap, CHUNK);
        OK(gpumem_ring_write(ring, chunk.sequence, 7, "bytes", 5));
        OK(gpumem_ring_flush(ring, chunk.sequence, 0, CHUNK));
        OK(gpumem_ring_commit(ring, chunk.sequence, CHUNK));
        const gpumem_ring_chunk full = consume();
        OK(copy_bytes(device, (CUdeviceptr)(uintptr_t)back, full.device, CHUNK, NULL));
        synchronize(NULL);
        assert_int_equal(back[6], lap);
        assert_memory_equal(back + 7, "bytes", 5);
        assert_int_equal(back[CHUNK - 1], lap);
        OK(gpumem_ring_release(ring, full.sequence, NULL, 0, NULL, 0));
    }
}

TEST(an_abandoned_chunk_is_skipped) {
    (void)acquire();
    (void)acquire();
    OK(gpumem_ring_commit(ring, 1, CHUNK));
    FAILS(TIMED_OUT, try_consume(0));
    OK(gpumem_ring_abandon(ring, 0));
    assert_int_equal(consume().sequence, 1);
    FAILS(INVALID_ARGUMENT, gpumem_ring_commit(ring, 0, CHUNK));
    OK(gpumem_ring_release(ring, 1, NULL, 0, NULL, 0));
    const gpumem_ring_info info = info_of();
    MEMBERS(info, (abandoned, 1), (released, 1));
    for (uint64_t i = 2; i < 5; i++)
        assert_int_equal(acquire().sequence, i);
    for (uint64_t i = 2; i < 5; i++)
        OK(gpumem_ring_abandon(ring, i));
}

/* ---- Back-pressure --------------------------------------------------------------------------- */

TEST(producers_wait_until_all_streams_have_passed) {
    struct gate first = gate_with_stream(), second = gate_with_stream();
    const CUstream both[] = {first.stream, second.stream};
    OK(gpumem_ring_release(ring, consumed(), both, 2, NULL, 0));
    (void)consumed();
    (void)consumed();
    FAILS(TIMED_OUT, try_acquire(0));
    assert_int_equal(info_of().pending, 1);
    gate_drain(&first);
    FAILS(TIMED_OUT, try_acquire(2));
    gate_drain(&second);
    OK(try_acquire(0));
    OK(gpumem_ring_abandon(ring, 3));
    OK(gpumem_ring_release(ring, 1, both, 2, NULL, 0));
    OK(gpumem_ring_release(ring, 2, both, 2, NULL, 0));
    gate_remove(&first);
    gate_remove(&second);
}

/* What was released later and has passed waits for what was acquired before it. */
TEST(chunk_space_is_reused_in_order) {
    (void)consumed();
    (void)consumed();
    (void)consumed();
    OK(gpumem_ring_release(ring, 1, NULL, 0, NULL, 0));
    FAILS(TIMED_OUT, try_acquire(0));
    OK(gpumem_ring_release(ring, 0, NULL, 0, NULL, 0));
    MEMBERS(acquire(), (offset, 0), (offset, CHUNK));
    FAILS(TIMED_OUT, try_acquire(0));
    OK(gpumem_ring_abandon(ring, 3));
    OK(gpumem_ring_abandon(ring, 4));
    OK(gpumem_ring_release(ring, 2, NULL, 0, NULL, 0));
}

TEST(producers_wait_for_the_programs_events) {
    struct gate gate = gate_with_stream();
    CUevent events[2];
    for (int i = 0; i < 2; i++)
        events[i] = NEW_EVENT();
    OK(gpumem_event_record(device, events[0], gate.stream));
    OK(gpumem_ring_release(ring, consumed(), NULL, 0, events, 2)); /* the other marks nothing */
    /* They are the program's again. */
    OK(gpumem_event_record(device, events[0], NULL));
    OK(gpumem_event_destroy(device, events[0]));
    (void)consumed();
    (void)consumed();
    FAILS(TIMED_OUT, try_acquire(0));
    gate_drain(&gate);
    OK(try_acquire(1000));
    OK(gpumem_ring_abandon(ring, 3));
    OK(gpumem_ring_release(ring, 1, NULL, 0, &events[1], 1));
    OK(gpumem_ring_release(ring, 2, NULL, 0, NULL, 0));
    OK(gpumem_event_destroy(device, events[1]));
    gate_remove(&gate);
}

/* Ten streams' work behind each chunk, laps without end. */
TEST(a_chunk_may_be_released_behind_many_streams) {
    CUstream streams[10];
    for (size_t i = 0; i < COUNT(streams); i++)
        streams[i] = NEW_STREAM();
    streams[9] = (OK(gpumem_stream_destroy(device, streams[9])), NULL);
    for (int lap = 0; lap < 50; lap++) {
        gpumem_ring_chunk chunk = {.size = sizeof chunk};
        OK(gpumem_ring_acquire(ring, 0, -1, &chunk));
        OK(gpumem_ring_commit(ring, chunk.sequence, CHUNK));
        chunk = consume();
        for (size_t i = 0; i < COUNT(streams); i++)
            OK(fill_bytes(device, chunk.device, CHUNK, 1, streams[i]));
        OK(gpumem_ring_release(ring, chunk.sequence, streams, COUNT(streams), NULL, 0));
    }
    for (size_t i = 0; i + 1 < COUNT(streams); i++)
        OK(gpumem_stream_destroy(device, streams[i]));
}

TEST(a_stream_may_be_destroyed_after_a_release_behind_it) {
    struct gate gate = gate_with_stream();
    CUstream stream = NEW_STREAM();
    CUevent event = NEW_EVENT();
    OK(gpumem_event_record(device, event, gate.stream));
    OK(gpumem_stream_wait_event(device, stream, event));
    OK(gpumem_ring_release(ring, consumed(), &stream, 1, NULL, 0));
    OK(gpumem_stream_destroy(device, stream));
    (void)consumed();
    (void)consumed();
    FAILS(TIMED_OUT, try_acquire(0));
    gate_drain(&gate);
    OK(try_acquire(1000));
    OK(gpumem_ring_abandon(ring, 3));
    FAILS_SAYING(INVALID_ARGUMENT, "does not exist",
                 gpumem_ring_release(ring, 1, &stream, 1, NULL, 0));
    OK(gpumem_ring_release(ring, 1, NULL, 0, NULL, 0));
    OK(gpumem_ring_release(ring, 2, NULL, 0, NULL, 0));
    OK(gpumem_event_destroy(device, event));
    gate_remove(&gate);
}

/* ---- Time-outs and closing ------------------------------------------------------------------- */

TEST(timeouts_are_respected) {
    struct gate gate = gate_with_stream();
    OK(gpumem_ring_release(ring, consumed(), &gate.stream, 1, NULL, 0));
    for (int i = 0; i < 2; i++)
        (void)acquire();
    for (int limit = 0; limit <= 20; limit += 10) {
        long long begin = now_us();
        FAILS(TIMED_OUT, try_acquire(limit));
        assert_true(now_us() - begin >= limit * 1000LL);
        begin = now_us();
        FAILS(TIMED_OUT, try_consume(limit));
        assert_true(now_us() - begin >= limit * 1000LL);
    }
    const gpumem_ring_info info = info_of();
    assert_int_equal(info.time_outs, 6);
    assert_int_equal(info.waits, 4); /* without those that may not wait */
    assert_int_equal(info.filling, 2);
    FAILS_SAYING(TIMED_OUT, "2 are being filled", try_acquire(0));
    SAYS("1 released");
    gate_drain(&gate);
    gate_remove(&gate);
    OK(gpumem_ring_abandon(ring, 1));
    OK(gpumem_ring_abandon(ring, 2));
}

/* The best of some tries, since the machine may do something else: less than a millisecond late,
 * also while the oldest chunk's streams are asked again and again. */
TEST(timeouts_are_less_than_a_millisecond_late) {
    struct gate gate = gate_with_stream();
    long long late_room = 1000000, late_chunk = 1000000;
    OK(gpumem_ring_release(ring, consumed(), &gate.stream, 1, NULL, 0));
    for (int i = 0; i < 2; i++)
        (void)acquire();
    for (int i = 0; i < 50; i++) {
        long long begin = now_us();
        FAILS(TIMED_OUT, try_acquire(3));
        long long between = now_us();
        FAILS(TIMED_OUT, try_consume(3));
        if (between - begin - 3000 < late_room)
            late_room = between - begin - 3000;
        if (now_us() - between - 3000 < late_chunk)
            late_chunk = now_us() - between - 3000;
    }
    assert_in_range(late_room, 0, 999);
    assert_in_range(late_chunk, 0, 999);
    gate_drain(&gate);
    gate_remove(&gate);
    OK(gpumem_ring_abandon(ring, 1));
    OK(gpumem_ring_abandon(ring, 2));
}

TEST(a_closed_ring_can_be_drained) {
    (void)acquire();
    (void)acquire();
    OK(gpumem_ring_commit(ring, 0, CHUNK));
    OK(gpumem_ring_close(ring));
    OK(gpumem_ring_close(ring));
    FAILS(CANCELLED, try_acquire(-1));
    assert_int_equal(consume().sequence, 0);
    FAILS(TIMED_OUT, try_consume(0)); /* the other is still being filled */
    OK(gpumem_ring_commit(ring, 1, CHUNK));
    assert_int_equal(consume().sequence, 1);
    FAILS(CANCELLED, try_consume(-1));
    assert_int_equal(info_of().closed, 1);
    OK(gpumem_ring_release(ring, 0, NULL, 0, NULL, 0));
    OK(gpumem_ring_release(ring, 1, NULL, 0, NULL, 0));
}

/* ---- The end --------------------------------------------------------------------------------- */

TEST(a_ring_with_chunks_in_use_cannot_be_destroyed) {
    (void)acquire();
    FAILS_SAYING(BUSY, "1 chunks are being filled", gpumem_ring_destroy(ring));
    OK(gpumem_ring_commit(ring, 0, CHUNK));
    (void)consume();
    FAILS_SAYING(BUSY, "1 are consumed", gpumem_ring_destroy(ring));
    FAILS(BUSY, gpumem_resource_destroy(mapped));
    OK(gpumem_ring_release(ring, 0, NULL, 0, NULL, 0));
    OK(gpumem_ring_commit(ring, acquire().sequence, 1)); /* dropped */
}

static void open_later(void *flag) {
    __atomic_store_n((uint32_t *)flag, 1, __ATOMIC_SEQ_CST);
}

/* Memory never goes while a stream may read it. */
TEST(destroying_a_ring_waits_for_its_streams) {
    gpumem_ring *other = ring;
    struct gate gate = gate_with_stream();
    OK(gpumem_ring_create(mapped, GPUMEM_RING_OPTIONS(.chunk_bytes = 1, .chunk_count = 2), &ring));
    const gpumem_ring_chunk chunk = acquire();
    memset(chunk.host, 9, 1);
    OK(gpumem_ring_commit(ring, chunk.sequence, 1));
    (void)consume();
    OK(fill_bytes(device, chunk.device, 1, 7, gate.stream));
    OK(gpumem_ring_release(ring, 0, &gate.stream, 1, NULL, 0));
    CUstream opener = NEW_STREAM();
    use_context();
    OK_CU(cu->cuLaunchHostFunc(opener, open_later, gate.flag));
    leave_context();
    OK(gpumem_ring_destroy(ring));
    assert_int_equal(__atomic_load_n(gate.flag, __ATOMIC_SEQ_CST), 1);
    synchronize(gate.stream); /* it found its memory */
    synchronize(opener);
    DESTROY(opener, &gate);
    ring = other;
}

/* ---- Captures and forks ---------------------------------------------------------------------- */

TEST(releasing_behind_a_capturing_stream_is_refused) {
    struct gate gate = gate_with_stream();
    CUstream streams[2] = {gate.stream, NULL};
    streams[1] = NEW_STREAM();
    uint64_t chunk = consumed();
    use_context();
    OK_CU(cu->cuStreamBeginCapture_v2(streams[1], CU_STREAM_CAPTURE_MODE_GLOBAL));
    FAILS_SAYING(BUSY, "captures", gpumem_ring_release(ring, chunk, streams, 2, NULL, 0));
    assert_int_equal(info_of().consumed, 1);
    OK(gpumem_ring_release(ring, chunk, streams, 1, NULL, 0));
    for (int i = 0; i < 2; i++)
        (void)acquire();
    FAILS(TIMED_OUT, try_acquire(2)); /* nor does asking for events disturb it */
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, streams[1]);
    assert_non_null(graph);
    cu->cuGraphDestroy(graph);
    leave_context();
    gate_drain(&gate);
    gate_remove(&gate);
    OK(gpumem_ring_abandon(ring, 1));
    OK(gpumem_ring_abandon(ring, 2));
    OK(gpumem_stream_destroy(device, streams[1]));
}

TEST(releasing_behind_a_captured_event_is_refused) {
    CUgraph graph = NULL;
    CUstream stream = NEW_STREAM();
    CUevent event = NEW_EVENT();
    uint64_t chunk = consumed();
    use_context();
    OK_CU(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK_CU(cu->cuEventRecord(event, stream));
    FAILS(INVALID_ARGUMENT, gpumem_ring_release(ring, chunk, NULL, 0, &event, 1));
    (void)cu->cuStreamEndCapture(stream, &graph);
    if (graph)
        cu->cuGraphDestroy(graph);
    leave_context();
    OK(gpumem_ring_release(ring, chunk, NULL, 0, NULL, 0));
    DESTROY(event, stream);
}

TEST(a_forked_child_may_not_use_the_ring) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        gpumem_ring_info info = {.size = sizeof info};
        int good = try_acquire(-1) == GPUMEM_ERROR_FORKED &&
                   try_consume(-1) == GPUMEM_ERROR_FORKED &&
                   gpumem_ring_commit(ring, 0, 1) == GPUMEM_ERROR_FORKED &&
                   gpumem_ring_abandon(ring, 0) == GPUMEM_ERROR_FORKED &&
                   gpumem_ring_release(ring, 0, NULL, 0, NULL, 0) == GPUMEM_ERROR_FORKED &&
                   gpumem_ring_close(ring) == GPUMEM_ERROR_FORKED &&
                   gpumem_ring_get_info(ring, &info) == GPUMEM_ERROR_FORKED &&
                   gpumem_ring_destroy(ring) == GPUMEM_ERROR_FORKED;
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    OK(gpumem_ring_abandon(ring, acquire().sequence));
}

/* ---- Refusals -------------------------------------------------------------------------------- */

TEST(invalid_ring_sizes_are_refused) {
    gpumem_ring *made;
    FAILS_SAYING(INVALID_ARGUMENT, "chunk_bytes", gpumem_ring_create(mapped, NULL, &made));
    FAILS(
        INVALID_ARGUMENT,
        gpumem_ring_create(mapped, GPUMEM_RING_OPTIONS(.chunk_bytes = 1, .chunk_count = 1), &made));
    FAILS(INVALID_ARGUMENT,
          gpumem_ring_create(
              mapped, GPUMEM_RING_OPTIONS(.chunk_bytes = 1, .chunk_count = 2, .alignment = 3),
              &made));
    FAILS(OUT_OF_CAPACITY,
          gpumem_ring_create(
              mapped, GPUMEM_RING_OPTIONS(.chunk_bytes = SIZE_MAX / 4, .chunk_count = 8), &made));
    FAILS(INVALID_ARGUMENT, gpumem_ring_create(mapped, NULL, NULL));
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    FAILS(INVALID_ARGUMENT, gpumem_ring_acquire(ring, CHUNK + 1, 0, &chunk));
    chunk.size = 0;
    FAILS(INVALID_ARGUMENT, gpumem_ring_acquire(ring, 0, 0, &chunk));
    FAILS(INVALID_ARGUMENT, gpumem_ring_acquire(ring, 0, 0, NULL));
    assert_int_equal(info_of().acquired, 0);
}

TEST(operations_on_invalid_chunks_are_refused) {
    CUstream none = GPUMEM_STREAM_NONE;
    FAILS_SAYING(INVALID_ARGUMENT, "not out", gpumem_ring_commit(ring, 0, 1));
    uint64_t chunk = acquire().sequence;
    FAILS(INVALID_ARGUMENT, gpumem_ring_commit(ring, chunk, CHUNK + 1));
    FAILS(INVALID_ARGUMENT, gpumem_ring_write(ring, chunk, CHUNK, "x", 1));
    FAILS(INVALID_ARGUMENT, gpumem_ring_write(ring, chunk, SIZE_MAX, "x", 2));
    FAILS(INVALID_ARGUMENT, gpumem_ring_write(ring, chunk, 0, NULL, 1));
    FAILS(INVALID_ARGUMENT, gpumem_ring_flush(ring, chunk, 1, CHUNK));
    FAILS(INVALID_ARGUMENT, gpumem_ring_release(ring, chunk, NULL, 0, NULL, 0));
    OK(gpumem_ring_commit(ring, chunk, 0));
    FAILS(INVALID_ARGUMENT, gpumem_ring_commit(ring, chunk, 0));
    FAILS(INVALID_ARGUMENT, gpumem_ring_abandon(ring, chunk));
    assert_int_equal(consume().bytes, 0);
    FAILS(INVALID_ARGUMENT, gpumem_ring_release(ring, chunk, &none, 1, NULL, 0));
    FAILS(INVALID_ARGUMENT, gpumem_ring_release(ring, chunk, NULL, 1, NULL, 0));
    OK(gpumem_ring_release(ring, chunk, NULL, 0, NULL, 0));
    FAILS(INVALID_ARGUMENT, gpumem_ring_release(ring, chunk, NULL, 0, NULL, 0));
    FAILS(INVALID_ARGUMENT, gpumem_ring_release(ring, 77, NULL, 0, NULL, 0));
    OK(gpumem_ring_destroy(NULL));
}

TEST(a_ring_over_memory_without_host_access_is_refused) {
    gpumem_ring *made;
    gpumem_resource *plain = NEW_VIRTUAL();
    FAILS_SAYING(
        NOT_SUPPORTED, "does not reach",
        gpumem_ring_create(plain, GPUMEM_RING_OPTIONS(.chunk_bytes = 1, .chunk_count = 2), &made));
    OK(gpumem_resource_destroy(plain));
}

TEST(a_ring_works_over_pinned_memory) {
    gpumem_ring *other = ring;
    gpumem_resource *pinned = NEW_PINNED();
    OK(gpumem_ring_create(pinned, GPUMEM_RING_OPTIONS(.chunk_bytes = 100, .chunk_count = 2),
                          &ring));
    assert_int_equal(info_of().chunk_bytes, 256);
    memset(acquire().host, 1, 100);
    OK(gpumem_ring_commit(ring, 0, 100));
    OK(gpumem_ring_release(ring, consume().sequence, &(CUstream){NULL}, 1, NULL, 0));
    OK(gpumem_ring_destroy(ring));
    OK(gpumem_resource_destroy(pinned));
    ring = other;
}
