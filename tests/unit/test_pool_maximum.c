/* A pool's maximum is kept for the bytes of its buffers, to the byte; what refuses is said. */
#include "library_test.h"
#include "run_threads.h"

#include <stdatomic.h>

EACH_TEST(open_device, close_device);

static gpumem_resource *bounded(int host, uint64_t maximum) {
    return host ? NEW_PINNED(.method = GPUMEM_PINNED_POOL, .maximum_bytes = maximum)
                : NEW_POOL(.maximum_bytes = maximum);
}

static void refused(gpumem_resource *pool, size_t bytes, CUstream stream, const char *text) {
    gpumem_buffer *none = NULL;
    FAILS_SAYING(
        OUT_OF_CAPACITY, text,
        gpumem_buffer_allocate(pool, bytes, GPUMEM_BUFFER_OPTIONS(.stream = stream), &none));
    assert_null(none);
}

TEST(a_pool_hands_out_no_more_than_its_maximum) {
    static const size_t maxima[] = {1, 33};
    CUstream stream = NEW_STREAM();
    const CUstream streams[] = {stream, NULL, GPUMEM_STREAM_NONE};
    for (int host = 0; host < 2; host++)
        for (size_t m = 0; m < COUNT(maxima); m++)
            for (size_t s = 0; s < COUNT(streams); s++) {
                size_t maximum = maxima[m] * MIB;
                gpumem_resource *pool = bounded(host, maximum);
                refused(pool, maximum + 1, streams[s], "0 are in use");
                gpumem_buffer *most = allocate_on(pool, maximum - 4096, streams[s]);
                refused(pool, 4097, streams[s], "are in use");
                gpumem_buffer *rest = allocate_on(pool, 4096, streams[s]);
                refused(pool, 1, streams[s], "above its maximum of");
                SAYS("reserved");
                OK(gpumem_buffer_free(rest, NULL));
                rest = allocate_on(pool, 4096, streams[s]);
                assert_int_equal(stats_of(pool).allocations_failed, 3);
                DESTROY(most, rest);
                OK(gpumem_buffer_free(allocate_on(pool, maximum, streams[s]), NULL));
                OK(gpumem_resource_destroy(pool));
            }
    OK(gpumem_stream_destroy(device, stream));
}

/* What is freed makes room at once, whatever the stream still does: it is no reason to wait. */
TEST(a_maximum_does_not_wait_for_what_the_driver_holds_back) {
    gpumem_resource *pool = bounded(0, 8 * MIB);
    struct gate gate = gate_with_stream();
    gpumem_buffer *held = allocate_on(pool, 4 * MIB, gate.stream);
    gpumem_buffer *kept = allocate_on(pool, 4 * MIB, gate.stream);
    OK(gpumem_buffer_free(held, NULL));
    refused(pool, 5 * MIB, NULL, "4194304 are in use");
    gpumem_buffer *next = allocate_on(pool, 4 * MIB, NULL);
    DESTROY(kept, next);
    gate_drain(&gate);
    DESTROY(&gate, pool);
}

/* Half of 256 MiB is in use, but no piece has 24: that is the maximum, not the device. */
TEST(a_pool_in_pieces_at_its_maximum_is_out_of_capacity) {
    for (int host = 0; host < 2; host++) {
        gpumem_resource *pool = bounded(host, 256 * MIB);
        gpumem_buffer *buffers[16];
        for (size_t i = 0; i < COUNT(buffers); i++)
            buffers[i] = allocate_on(pool, 16 * MIB, NULL);
        for (size_t i = 0; i < COUNT(buffers); i += 2)
            OK(gpumem_buffer_free(buffers[i], NULL));
        refused(pool, 24 * MIB, NULL,
                "maximum of 268435456: 134217728 are in use, 268435456 reserved");
        for (size_t i = 1; i < COUNT(buffers); i += 2)
            OK(gpumem_buffer_free(buffers[i], NULL));
        OK(gpumem_resource_destroy(pool));
    }
}

/* It waits for what its driver holds back, where that is what is missing. */
TEST(a_pool_in_pieces_waits_for_what_its_driver_holds_back) {
    gpumem_resource *pool = bounded(0, 32 * MIB);
    CUstream stream = NEW_STREAM();
    gpumem_buffer *buffer = allocate_on(pool, 32 * MIB, stream);
    soft->schedule_set(SOFTGPU_SCHEDULE_LATE, 0);
    OK(gpumem_buffer_fill(buffer, 0, MIB, 1, stream));
    OK(gpumem_buffer_free(buffer, NULL));
    uint64_t no = 0;
    OK(gpumem_pool_set_attribute(pool, GPUMEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES, no));
    buffer = allocate_on(pool, 32 * MIB, NULL);
    soft->schedule_set(SOFTGPU_SCHEDULE_EAGER, 0);
    DESTROY(buffer, stream, pool);
}

/* The maximum leaves room, and the device has none. */
TEST(a_device_without_memory_is_not_the_maximum) {
    gpumem_buffer *none = NULL;
    gpumem_resource *pool = bounded(0, GIB);
    soft->fault_arm("cuMemAllocFromPoolAsync", 0, CUDA_ERROR_OUT_OF_MEMORY, SOFTGPU_FAULT_BEFORE);
    FAILS(OUT_OF_MEMORY, gpumem_buffer_allocate(pool, 60 * MIB, NULL, &none));
    assert_true(soft->fault_disarm() > 0);
    OK(gpumem_resource_destroy(pool));
}

/* Neither a refusal by the driver nor a capture loses room. */
TEST(refused_and_deferred_memory_keeps_the_count_right) {
    gpumem_resource *pool = bounded(0, MIB);
    CUstream stream = NEW_STREAM();
    gpumem_buffer *none = NULL, *buffer;
    static const softgpu_fault_mode moments[] = {SOFTGPU_FAULT_BEFORE, SOFTGPU_FAULT_AFTER};
    for (size_t i = 0; i < COUNT(moments); i++) {
        soft->fault_arm("cuMemAllocFromPoolAsync", 1, CUDA_ERROR_NOT_PERMITTED, moments[i]);
        FAILS(NOT_PERMITTED, gpumem_buffer_allocate(pool, MIB, NULL, &none));
        assert_int_equal(soft->fault_disarm(), 1);
    }
    buffer = allocate_on(pool, MIB, stream);
    CUgraph graph = NULL;
    OK_CU(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(gpumem_buffer_free(buffer, NULL)); /* held back until the capture has ended */
    refused(pool, 1, NULL, "1048576 are in use");
    OK_CU(cu->cuStreamEndCapture(stream, &graph));
    OK_CU(cu->cuGraphDestroy(graph));
    OK(gpumem_buffer_free(allocate_on(pool, MIB, NULL), NULL));
    DESTROY(stream, pool);
}

#define THREADS 4

struct worker {
    gpumem_resource *pool;
    atomic_size_t *held, *most;
};

static void *allocate_and_free(void *data) {
    const struct worker *worker = data;
    for (int i = 0; i < 2000; i++) {
        gpumem_buffer *buffer;
        if (gpumem_buffer_allocate(worker->pool, MIB, NULL, &buffer) != GPUMEM_OK)
            continue;
        size_t now = atomic_fetch_add(worker->held, 1) + 1, most = atomic_load(worker->most);
        while (now > most && !atomic_compare_exchange_weak(worker->most, &most, now))
            ;
        atomic_fetch_sub(worker->held, 1);
        OK(gpumem_buffer_free(buffer, NULL));
    }
    return NULL;
}

TEST(threads_together_stay_below_the_maximum) {
    atomic_size_t held = 0, most = 0;
    struct worker workers[THREADS];
    gpumem_resource *pool = bounded(0, 2 * MIB);
    for (int i = 0; i < THREADS; i++)
        workers[i] = (struct worker){pool, &held, &most};
    run_threads(THREADS, allocate_and_free, workers, sizeof workers[0]);
    assert_in_range(atomic_load(&most), 1, 2);
    gpumem_stats stats = stats_of(pool);
    assert_int_equal(stats.allocations, 0);
    assert_true(stats.committed_bytes <= 32 * MIB); /* the driver's step */
    OK(gpumem_buffer_free(allocate_on(pool, 2 * MIB, NULL), NULL));
    OK(gpumem_resource_destroy(pool));
}
