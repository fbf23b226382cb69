/*
 * Allocation and free of pool memory by the short way: what the driver is asked, what is counted,
 * and that everything which is not simple goes the usual way.
 */
#include "library_test.h"
#include "run_threads.h"

#include <pthread.h>

EACH_TEST(open_device, close_device);

#define PAIRS 1000

static void pairs(gpumem_resource *resource, size_t bytes, CUstream stream) {
    for (int i = 0; i < PAIRS; i++)
        OK(gpumem_buffer_free(allocate_on(resource, bytes, stream), NULL));
}

/* ---- The driver ------------------------------------------------------------------------------ */

/* The two that do the work, and the capture mode relaxed and put back around each. */
TEST(an_allocation_and_its_free_make_six_driver_calls) {
    gpumem_resource *pool = new_own_pool();
    CUstream stream = NEW_STREAM();
    pairs(pool, 4096, stream);
    uint64_t exchanges = soft->call_count("cuThreadExchangeStreamCaptureMode");
    uint64_t before = soft->call_count(NULL);
    pairs(pool, 4096, stream);
    assert_int_equal(soft->call_count(NULL) - before, 6 * PAIRS);
    assert_int_equal(soft->call_count("cuThreadExchangeStreamCaptureMode") - exchanges, 4 * PAIRS);
    DESTROY(stream, pool);
}

/* Each asks for the context and whether the stream captures; where another is current, or none, the
 * device's is made current and put back, which asks once more. */
TEST(the_default_stream_takes_two_calls_more_and_five_where_no_context_is_current) {
    gpumem_resource *pool = new_own_pool();
    for (int current = 0; current < 2; current++) {
        if (current)
            OK_CU(cu->cuCtxSetCurrent(gpumem_device_context(device)));
        pairs(pool, 4096, NULL);
        uint64_t before = soft->call_count(NULL);
        pairs(pool, 4096, NULL);
        assert_int_equal(soft->call_count(NULL) - before, (current ? 10 : 16) * PAIRS);
    }
    OK_CU(cu->cuCtxSetCurrent(NULL));
    DESTROY(pool);
}

/* The general path tries again, and nothing has failed for the caller. */
TEST(a_context_that_cannot_be_entered_at_once_leaves_the_last_error_alone) {
    gpumem_resource *pool = new_own_pool();
    gpumem_buffer *buffer = allocate_on(pool, 4096, NULL), *none = NULL;
    FAILS(INVALID_ARGUMENT, gpumem_buffer_allocate(NULL, 1, NULL, &none));
    for (int i = 0; i < 2; i++) {
        OK_CU(soft->fault_arm(i ? "cuCtxPushCurrent_v2" : "cuCtxGetCurrent", 1, CUDA_ERROR_UNKNOWN,
                              SOFTGPU_FAULT_BEFORE));
        OK(gpumem_buffer_free(buffer, NULL));
        assert_int_equal(soft->fault_disarm(), 1);
        assert_int_equal(gpumem_last_error()->status, GPUMEM_ERROR_INVALID_ARGUMENT);
        buffer = allocate_on(pool, 4096, NULL);
    }
    DESTROY(buffer, pool);
}

/* Where the mode is relaxed already, nothing has to be put back. */
TEST(a_thread_in_relaxed_capture_mode_makes_two_calls_fewer) {
    gpumem_resource *pool = new_own_pool();
    CUstream stream = NEW_STREAM();
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    OK_CU(cu->cuThreadExchangeStreamCaptureMode(&mode));
    uint64_t before = soft->call_count(NULL);
    pairs(pool, 4096, stream);
    assert_int_equal(soft->call_count(NULL) - before, 4 * PAIRS);
    OK_CU(cu->cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    DESTROY(stream, pool);
}

static CUcontext current(void) {
    CUcontext now = NULL;
    OK_CU(cu->cuCtxGetCurrent(&now));
    return now;
}

static void fill_and_check(gpumem_buffer *buffer, CUstream stream) {
    unsigned char back = 0;
    OK(gpumem_buffer_fill(buffer, 0, 64, 0x5a, stream));
    OK(gpumem_buffer_read(buffer, 63, &back, 1, stream));
    synchronize(stream);
    assert_int_equal(back, 0x5a);
}

/* A stream brings its context; the default stream has that of the device, whatever is current. */
TEST(pool_memory_works_with_any_current_context) {
    gpumem_resource *pool = new_own_pool();
    CUstream streams[] = {NEW_STREAM(), NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};
    CUcontext other = NULL, popped = NULL;
    for (int with_other = 0; with_other < 2; with_other++) {
        if (with_other)
            OK_CU(cu->cuCtxCreate_v2(&other, 0, gpumem_device_handle(device)));
        for (size_t i = 0; i < COUNT(streams); i++) {
            uint64_t pushes = soft->call_count("cuCtxPushCurrent_v2");
            gpumem_buffer *buffer = allocate_on(pool, MIB, streams[i]);
            assert_int_equal(soft->call_count("cuCtxPushCurrent_v2") - pushes, i > 0);
            fill_and_check(buffer, streams[i]);
            OK(gpumem_buffer_free(buffer, NULL));
            assert_ptr_equal(current(), other);
        }
    }
    OK_CU(cu->cuCtxPopCurrent_v2(&popped));
    OK_CU(cu->cuCtxDestroy_v2(other));
    DESTROY(streams[0], pool);
}

/* A driver that wants the context after all is asked again with it. */
TEST(a_driver_that_needs_the_context_is_called_again_with_it) {
    static const CUresult codes[] = {CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED};
    gpumem_resource *pool = new_own_pool();
    CUstream stream = NEW_STREAM();
    for (size_t i = 0; i < COUNT(codes); i++) {
        uint64_t pushes = soft->call_count("cuCtxPushCurrent_v2");
        soft->fault_arm("cuMemAllocFromPoolAsync", 1, (int)codes[i], SOFTGPU_FAULT_BEFORE);
        gpumem_buffer *buffer = allocate_on(pool, MIB, stream);
        assert_int_equal(soft->fault_disarm(), 1);
        soft->fault_arm("cuMemFreeAsync", 1, (int)codes[i], SOFTGPU_FAULT_BEFORE);
        OK(gpumem_buffer_free(buffer, NULL));
        assert_int_equal(soft->fault_disarm(), 1);
        assert_int_equal(soft->call_count("cuCtxPushCurrent_v2") - pushes, 2);
        MEMBERS(stats_of(pool), (allocations, 0), (quarantined, 0));
    }
    uint64_t used = 1;
    OK(gpumem_pool_get_attribute(pool, GPUMEM_POOL_USED_CURRENT, &used));
    assert_int_equal(used, 0);
    DESTROY(stream, pool);
}

/* It gave memory, and said that it wants the context. */
TEST(memory_returned_with_an_error_is_freed) {
    gpumem_resource *pool = new_own_pool();
    CUstream stream = NEW_STREAM();
    gpumem_buffer *buffer = NULL;
    uint64_t used = 1;
    soft->fault_arm("cuMemAllocFromPoolAsync", 1, CUDA_ERROR_INVALID_CONTEXT, SOFTGPU_FAULT_AFTER);
    FAILS(DRIVER,
          gpumem_buffer_allocate(pool, MIB, GPUMEM_BUFFER_OPTIONS(.stream = stream), &buffer));
    assert_int_equal(soft->fault_disarm(), 1);
    OK(gpumem_pool_get_attribute(pool, GPUMEM_POOL_USED_CURRENT, &used));
    assert_int_equal(used, 0);
    DESTROY(stream, pool);
}

TEST(driver_refusals_are_reported_and_counted) {
    gpumem_resource *pool = new_own_pool();
    CUstream stream = NEW_STREAM();
    gpumem_buffer *buffer = NULL;
    pairs(pool, 4096, stream);
    soft->fault_arm("cuMemAllocFromPoolAsync", 1, CUDA_ERROR_NOT_PERMITTED, SOFTGPU_FAULT_AFTER);
    FAILS_SAYING(
        NOT_PERMITTED, "cuMemAllocFromPoolAsync",
        gpumem_buffer_allocate(pool, MIB, GPUMEM_BUFFER_OPTIONS(.stream = stream), &buffer));
    assert_int_equal(soft->fault_disarm(), 1);
    assert_null(buffer);
    assert_int_equal(stats_of(pool).allocations_failed, 1);
    buffer = allocate_on(pool, MIB, stream);
    soft->fault_arm("cuMemFreeAsync", 1, CUDA_ERROR_NOT_PERMITTED, SOFTGPU_FAULT_BEFORE);
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(soft->fault_disarm(), 1);
    gpumem_stats stats = stats_of(pool);
    MEMBERS(stats, (quarantined, 1), (quarantined_bytes, MIB), (allocations, 0), (in_use_bytes, 0));
    DESTROY(stream, pool);
}

/* ---- Counting -------------------------------------------------------------------------------- */

TEST(statistics_of_one_thread_are_exact) {
    gpumem_resource *pool = new_own_pool();
    CUstream stream = NEW_STREAM();
    gpumem_buffer *a = allocate_on(pool, 3 * MIB, stream), *b = allocate_on(pool, 5000, stream);
    OK(gpumem_buffer_free(a, NULL));
    gpumem_stats stats = stats_of(pool), all = device_stats();
    MEMBERS(stats, (in_use_bytes, 5000), (in_use_high, 3 * MIB + 5000),
            (committed_high, all.committed_high), (allocations, 1), (allocations_total, 2));
    assert_int_equal(all.in_use_bytes, 5000);
    /* What was the highest before does not count again. */
    gpumem_buffer *c = allocate_on(pool, MIB, stream);
    assert_int_equal(stats_of(pool).in_use_high, 3 * MIB + 5000);
    gpumem_buffer *d = allocate_on(pool, 200 * MIB, stream), *e = allocate_on(pool, MIB, stream);
    OK(gpumem_buffer_free(d, NULL));
    stats = stats_of(pool);
    MEMBERS(stats, (in_use_high, 202 * MIB + 5000), (in_use_bytes, 2 * MIB + 5000),
            (reserved_bytes, 2 * MIB + 5000));
    FAILS_SAYING(BUSY, "3 buffers", gpumem_resource_destroy(pool));
    DESTROY(b, c, e, stream, pool);
}

/* Allocated by the one way and freed by the other, in either order. */
TEST(statistics_of_the_fast_and_the_general_path_add_up) {
    gpumem_resource *pool = new_own_pool();
    CUstream stream = NEW_STREAM(), other = NEW_STREAM();
    gpumem_buffer *short_way = allocate_on(pool, MIB, stream);
    gpumem_buffer *usual_way = NEW_BUFFER_WITH(pool, MIB, .stream = stream, .alignment = 4096);
    assert_int_equal(stats_of(pool).allocations, 2);
    OK(gpumem_buffer_free(short_way, other)); /* two streams are joined */
    OK(gpumem_buffer_free(usual_way, NULL));
    gpumem_stats stats = stats_of(pool);
    MEMBERS(stats, (allocations, 0), (in_use_bytes, 0), (reserved_bytes, 0),
            (allocations_total, 2));
    DESTROY(stream, other, pool);
}

#define THREADS 6
#define KEPT    20

struct worker {
    gpumem_resource *pool;
    CUstream stream;
    gpumem_buffer *kept[KEPT];
};

static void *work(void *data) {
    struct worker *worker = data;
    for (int i = 0; i < 5 * PAIRS; i++) {
        gpumem_buffer *buffer = allocate_on(worker->pool, 256 + (size_t)i, worker->stream);
        OK(gpumem_buffer_free(buffer, NULL));
        if (i % 500 == 0)
            (void)stats_of(worker->pool); /* tells the meters of all threads */
    }
    for (int i = 0; i < KEPT; i++)
        worker->kept[i] = allocate_on(worker->pool, 1000, worker->stream);
    return NULL;
}

static void *free_kept(void *data) {
    struct worker *worker = data;
    DESTROY_EACH(worker->kept, KEPT);
    return NULL;
}

static void run(void *(*body)(void *), struct worker *workers) {
    run_threads(THREADS, body, workers, sizeof *workers);
}

/* What ended threads have counted stays counted, and others free what they left. */
TEST(statistics_of_all_threads_add_up) {
    struct worker workers[THREADS];
    gpumem_resource *pool = new_own_pool();
    for (int i = 0; i < THREADS; i++)
        workers[i] = (struct worker){.pool = pool, .stream = NEW_STREAM()};
    run(work, workers);
    gpumem_stats stats = stats_of(pool);
    MEMBERS(stats, (allocations, THREADS * KEPT), (in_use_bytes, THREADS * KEPT * 1000),
            (allocations_total, THREADS * (5 * PAIRS + KEPT)));
    FAILS(BUSY, gpumem_resource_destroy(pool));
    run(free_kept, workers);
    stats = stats_of(pool);
    MEMBERS(stats, (allocations, 0), (in_use_bytes, 0));
    for (int i = 0; i < THREADS; i++)
        OK(gpumem_stream_destroy(device, workers[i].stream));
    OK(gpumem_resource_destroy(pool));
}

/* More pools than a thread has places for counts; and pools that end while it has them. */
TEST(one_thread_may_use_more_pools_than_it_has_counters) {
    enum { POOLS = 20 };
    gpumem_resource *pools[POOLS];
    gpumem_buffer *buffers[POOLS];
    CUstream stream = NEW_STREAM();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < POOLS; i++)
            pools[i] = new_own_pool();
        for (int i = 0; i < POOLS; i++)
            buffers[i] = allocate_on(pools[i], 1000, stream);
        for (int i = 0; i < POOLS; i++)
            assert_int_equal(stats_of(pools[i]).in_use_bytes, 1000);
        DESTROY_EACH(buffers, POOLS);
        for (int i = 0; i < POOLS; i++) {
            assert_int_equal(stats_of(pools[i]).in_use_high, 1000);
            OK(gpumem_resource_destroy(pools[i]));
        }
    }
    assert_int_equal(device_stats().allocations, 0);
    OK(gpumem_stream_destroy(device, stream));
}

/* ---- Buffers that are used again ------------------------------------------------------------- */

/* Nothing of its last life is left in an object; and a use after the end is still told. */
TEST(reused_buffer_objects_keep_nothing_of_their_past) {
    gpumem_resource *pool = new_own_pool();
    CUstream stream = NEW_STREAM();
    gpumem_buffer *first = allocate_on(pool, 4096, stream);
    gpumem_layout layout = {.size = sizeof layout};
    OK(gpumem_buffer_get_layout(first, &layout, NULL, 0));
    OK(gpumem_buffer_free(first, NULL));
    FAILS_SAYING(INVALID_ARGUMENT, "was destroyed earlier", gpumem_buffer_free(first, NULL));
    gpumem_buffer *again = NULL;
    int lives = 0;
    while (again != first && lives++ < PAIRS) {
        again = allocate_on(pool, 100, stream);
        if (again != first)
            OK(gpumem_buffer_free(again, NULL));
    }
    assert_ptr_equal(again, first);
    assert_in_range(lives, 128, 300); /* so long its mark could be read */
    assert_int_equal(gpumem_buffer_size(again), 100);
    assert_int_equal(gpumem_buffer_capacity(again), 100);
    assert_ptr_equal(gpumem_buffer_resource(again), pool);
    assert_null(gpumem_buffer_host_pointer(again));
    fill_and_check(again, stream);
    OK(gpumem_buffer_hold(again));
    OK(gpumem_buffer_free(again, NULL));
    assert_int_equal(stats_of(pool).allocations, 1);
    OK(gpumem_buffer_release(again));
    assert_int_equal(stats_of(pool).allocations, 0);
    DESTROY(stream, pool);
}

static void *free_it(void *buffer) {
    OK(gpumem_buffer_free(buffer, NULL));
    return NULL;
}

/* What a thread leaves can be told like everything else. */
TEST(a_use_after_free_is_detected_after_the_freeing_thread_ended) {
    gpumem_resource *pool = new_own_pool();
    CUstream stream = NEW_STREAM();
    gpumem_buffer *buffer = allocate_on(pool, 4096, stream);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, free_it, buffer), 0);
    pthread_join(thread, NULL);
    FAILS_SAYING(INVALID_ARGUMENT, "was destroyed earlier", gpumem_buffer_free(buffer, NULL));
    DESTROY(stream, pool);
}

/* ---- What goes the usual way ----------------------------------------------------------------- */

/* Frees that are held back are worked off by the next call, as ever. */
TEST(later_calls_complete_deferred_frees) {
    gpumem_resource *pool = new_own_pool();
    gpumem_resource *pinned = NEW_PINNED();
    CUstream stream = NEW_STREAM();
    pairs(pool, 4096, stream);
    struct gate gate = gate_with_stream();
    gpumem_buffer *staging = allocate_on(pinned, 4096, gate.stream);
    OK(gpumem_buffer_free(staging, NULL));
    assert_int_equal(device_stats().deferred_frees, 1);
    gate_drain(&gate);
    OK(gpumem_buffer_free(allocate_on(pool, 4096, stream), NULL));
    assert_int_equal(device_stats().deferred_frees, 0);
    gate_remove(&gate);
    DESTROY(stream, pinned, pool);
}

static void note(void *user, const gpumem_watch_event *event) {
    size_t *bytes = user;
    *bytes += event->bytes;
}

TEST(watches_are_notified) {
    gpumem_resource *pool = new_own_pool();
    CUstream stream = NEW_STREAM();
    size_t left = 0;
    pairs(pool, 4096, stream);
    gpumem_watch *watch;
    OK(gpumem_resource_watch(pool, note, &left, &watch));
    OK(gpumem_buffer_free(allocate_on(pool, 4096, stream), NULL));
    assert_int_equal(left, 4096);
    OK(gpumem_watch_destroy(watch));
    gpumem_buffer *buffer = allocate_on(pool, 4096, stream);
    OK(gpumem_buffer_watch(buffer, note, &left, &watch));
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(left, 2 * 4096);
    OK(gpumem_watch_destroy(watch));
    DESTROY(stream, pool);
}

/* Wrong arguments have the messages that they have everywhere. */
TEST(invalid_arguments_are_refused_with_a_reason) {
    gpumem_resource *pool = new_own_pool();
    gpumem_buffer *buffer;
    FAILS_SAYING(INVALID_ARGUMENT, "0 bytes", gpumem_buffer_allocate(pool, 0, NULL, &buffer));
    FAILS_SAYING(INVALID_ARGUMENT, "power of two",
                 gpumem_buffer_allocate(pool, 1, GPUMEM_BUFFER_OPTIONS(.alignment = 3), &buffer));
    FAILS(NOT_SUPPORTED,
          gpumem_buffer_allocate(pool, 1, GPUMEM_BUFFER_OPTIONS(.capacity = 2), &buffer));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_allocate(pool, 1, NULL, NULL));
    OK(gpumem_resource_destroy(pool));
}
