/* The caching resource: what it hands out again, to whom, and when. */
#include "library_test.h"

#include <pthread.h>
#include <sys/wait.h>

static gpumem_resource *pool, *pinned;

static int setup(void **state) {
    if (open_device(state) != 0)
        return -1;
    return gpumem_device_pool_resource_create(
               device, GPUMEM_DEVICE_POOL_OPTIONS(.pool = GPUMEM_POOL_OWN), &pool) == GPUMEM_OK &&
                   gpumem_pinned_resource_create(device, NULL, &pinned) == GPUMEM_OK
               ? 0
               : -1;
}

static int teardown(void **state) {
    if (gpumem_resource_destroy(pool) != GPUMEM_OK ||
        gpumem_resource_destroy(pinned) != GPUMEM_OK) {
        print_error("%s\n", gpumem_last_error()->message);
        return -1;
    }
    return close_device(state);
}

ALL_TESTS(setup, teardown);

static gpumem_resource *cache_of(gpumem_resource *upstream, uint64_t maximum) {
    return NEW_CACHING_WITH(upstream, .maximum_bytes = maximum);
}

static gpumem_status try_allocate(gpumem_resource *cache, size_t bytes, CUstream stream,
                                  gpumem_buffer **buffer) {
    return gpumem_buffer_allocate(cache, bytes, GPUMEM_BUFFER_OPTIONS(.stream = stream), buffer);
}

/* ---- Stale handles --------------------------------------------------------------------------- */

TEST(a_debug_build_finds_a_stale_free) {
#ifndef GPUMEM_DEBUG
    print_message("skip: only builds with CMAKE_BUILD_TYPE Debug find it\n");
    skip();
#endif
    gpumem_resource *cache = cache_of(pool, 0);
    CUstream streams[6];
    for (size_t i = 0; i < COUNT(streams); i++)
        streams[i] = NEW_STREAM();
    const size_t sizes[] = {256, MIB, 3 * MIB};
    for (size_t i = 0; i < 2 * COUNT(sizes); i++) {
        size_t bytes = sizes[i / 2];
        int named = i % 2; /* more streams than an object has room for */
        gpumem_buffer *stale = allocate_on(cache, bytes, NULL);
        for (size_t j = 0; named && j < COUNT(streams); j++)
            OK(gpumem_buffer_use(stale, streams[j]));
        CUdeviceptr address = gpumem_buffer_pointer(stale);
        OK(gpumem_buffer_free(stale, NULL));
        gpumem_buffer *next = allocate_on(cache, bytes, NULL);
        assert_true(named || gpumem_buffer_pointer(next) == address);
        FAILS_SAYING(INVALID_ARGUMENT, "destroyed", gpumem_buffer_free(stale, NULL));
        FAILS(INVALID_ARGUMENT, gpumem_buffer_fill(stale, 0, 1, 1, NULL));
        OK(gpumem_buffer_fill(next, 0, bytes, 1, NULL));
        OK(gpumem_buffer_free(next, NULL));
    }
    DESTROY_EACH(streams, COUNT(streams));
    OK(gpumem_resource_destroy(cache));
}

/* ---- Device memory: the order of streams ----------------------------------------------------- */

TEST(freed_memory_is_reused_at_once_on_its_own_stream) {
    gpumem_resource *cache = cache_of(pool, 0);
    struct gate gate = gate_with_stream();
    const size_t sizes[] = {1, 256, 5000, MIB, 3 * MIB, 100 * MIB};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        gpumem_buffer *buffer = allocate_on(cache, sizes[i], gate.stream);
        CUdeviceptr address = gpumem_buffer_pointer(buffer);
        OK(gpumem_buffer_fill(buffer, 0, sizes[i], 1, gate.stream));
        OK(gpumem_buffer_free(buffer, NULL));
        gpumem_buffer *again = allocate_on(cache, sizes[i], gate.stream);
        assert_true(gpumem_buffer_pointer(again) == address);
        assert_int_equal(gpumem_buffer_size(again), sizes[i]);
        OK(gpumem_buffer_free(again, gate.stream));
    }
    gate_drain(&gate);
    DESTROY(cache, &gate);
}

struct asking {
    gpumem_resource *cache;
    CUstream stream;
    gpumem_status status;
};

static void *ask_for_a_mib(void *data) {
    struct asking *asking = data;
    gpumem_buffer *buffer = NULL;
    asking->status = try_allocate(asking->cache, MIB, asking->stream, &buffer);
    gpumem_buffer_free(buffer, NULL);
    return NULL;
}

/* A limit leaves no other memory: the call waits for the first stream, and then has it. */
TEST(at_the_limit_another_stream_waits_for_freed_memory) {
    gpumem_resource *cache = cache_of(pool, 2 * MIB);
    struct asking asking = {.cache = cache, .stream = NEW_STREAM()};
    struct gate gate = gate_with_stream();
    gpumem_buffer *first = allocate_on(cache, MIB, gate.stream);
    gpumem_buffer *second = allocate_on(cache, MIB, gate.stream);
    DESTROY(first, second);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ask_for_a_mib, &asking), 0);
    gate_drain(&gate);
    assert_int_equal(pthread_join(thread, NULL), 0);
    OK(asking.status);
    assert_int_equal(caching_info_of(cache).segment_bytes, 2 * MIB);
    DESTROY(cache, asking.stream, &gate);
}

TEST(without_a_limit_another_stream_gets_different_memory) {
    gpumem_resource *cache = cache_of(pool, 0);
    CUstream stream = NEW_STREAM();
    struct gate gate = gate_with_stream();
    gpumem_buffer *first = allocate_on(cache, MIB, gate.stream);
    CUdeviceptr address = gpumem_buffer_pointer(first);
    OK(gpumem_buffer_free(first, NULL));
    gpumem_buffer *second = allocate_on(cache, MIB, stream);
    assert_false(gpumem_buffer_pointer(second) == address);
    OK(gpumem_buffer_free(second, NULL));
    gate_drain(&gate);
    DESTROY(cache, stream, &gate);
}

TEST(freed_memory_is_not_reused_before_named_streams_pass) {
    gpumem_resource *cache = cache_of(pool, 0);
    CUstream own = NEW_STREAM();
    for (int named_at_free = 0; named_at_free < 2; named_at_free++) {
        struct gate gate = gate_with_stream();
        gpumem_buffer *buffer = allocate_on(cache, 4096, own);
        CUdeviceptr address = gpumem_buffer_pointer(buffer);
        if (!named_at_free)
            OK(gpumem_buffer_use(buffer, gate.stream));
        OK(gpumem_buffer_free(buffer, named_at_free ? gate.stream : NULL));
        assert_true(caching_info_of(cache).pending_bytes == 4096);
        gpumem_buffer *others[100];
        for (size_t i = 0; i < COUNT(others); i++) {
            others[i] = allocate_on(cache, 4096, own);
            assert_false(gpumem_buffer_pointer(others[i]) == address);
        }
        gate_drain(&gate);
        OK(gpumem_resource_trim(cache, SIZE_MAX));
        assert_int_equal(caching_info_of(cache).pending_bytes, 0);
        DESTROY_EACH(others, COUNT(others));
        gate_remove(&gate);
    }
    DESTROY(cache, own);
}

TEST(device_memory_for_an_unordered_stream_is_refused) {
    gpumem_resource *cache = cache_of(pool, 0);
    gpumem_buffer *buffer = NULL;
    FAILS(INVALID_ARGUMENT, try_allocate(cache, 1, GPUMEM_STREAM_NONE, &buffer));
    FAILS(INVALID_ARGUMENT, try_allocate(cache, 1, GPUMEM_STREAM_PER_THREAD, &buffer));
    SAYS("per-thread");
    assert_null(buffer);
    OK(gpumem_resource_destroy(cache));
}

TEST(memory_of_a_forgotten_stream_is_not_reused_before_it_passes) {
    gpumem_resource *cache = cache_of(pool, 0);
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate_on(cache, 4096, gate.stream);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_caching_forget_stream(cache, gate.stream));
    assert_int_equal(caching_info_of(cache).thread_bytes, 0);
    /* As if the handle were a new stream's. */
    gpumem_buffer *next = allocate_on(cache, 4096, gate.stream);
    assert_false(gpumem_buffer_pointer(next) == address);
    OK(gpumem_buffer_free(next, NULL));
    OK(gpumem_resource_trim(cache, 0));
    assert_true(caching_info_of(cache).segments > 0);
    gate_drain(&gate);
    OK(gpumem_resource_trim(cache, 0));
    assert_int_equal(caching_info_of(cache).segments, 0);
    DESTROY(cache, &gate);
}

/* ---- What the numbers say -------------------------------------------------------------------- */

/* All that the cache has taken is in a buffer, kept, or held back. */
static void check_held_back(gpumem_resource *cache, size_t blocks, size_t bytes) {
    gpumem_caching_info info = caching_info_of(cache);
    gpumem_stats stats = stats_of(cache);
    assert_int_equal(info.pending_bytes, bytes);
    assert_int_equal(stats.deferred_bytes, bytes);
    assert_int_equal(stats.deferred_frees, blocks);
    assert_int_equal(stats.in_use_bytes, 0);
    assert_int_equal(stats.cached_bytes + bytes, info.segment_bytes);
    assert_int_equal(info.free_bytes + info.parcel_bytes + info.thread_bytes + bytes,
                     info.segment_bytes);
    assert_true(device_stats().deferred_bytes == bytes);
}

TEST(memory_that_waits_for_queued_work_is_counted_as_held_back) {
    gpumem_resource *cache = cache_of(pinned, 0);
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffers[70]; /* two marked batches and a rest */
    for (size_t i = 0; i < COUNT(buffers); i++)
        buffers[i] = allocate_on(cache, 4096, gate.stream);
    gpumem_buffer *large = allocate_on(cache, 3 * MIB, gate.stream);
    DESTROY_EACH(buffers, COUNT(buffers));
    OK(gpumem_buffer_free(large, NULL));
    size_t bytes = COUNT(buffers) * 4096 + 3 * MIB;
    check_held_back(cache, COUNT(buffers) + 1, bytes);
    OK(gpumem_resource_trim(cache, 0)); /* gives nothing of it back */
    check_held_back(cache, COUNT(buffers) + 1, bytes);
    gate_drain(&gate);
    OK(gpumem_resource_trim(cache, 0));
    check_held_back(cache, 0, 0);
    assert_int_equal(caching_info_of(cache).segment_bytes, 0);
    DESTROY(cache, &gate);
}

/* ---- Memory that the CPU writes -------------------------------------------------------------- */

TEST(host_memory_is_not_reused_before_queued_copies_finish) {
    gpumem_resource *cache = cache_of(pinned, 0);
    struct gate gate = gate_with_stream();
    CUdeviceptr addresses[200];
    for (size_t i = 0; i < COUNT(addresses); i++) {
        gpumem_buffer *buffer = allocate_on(cache, 4096, gate.stream);
        addresses[i] = gpumem_buffer_pointer(buffer);
        assert_non_null(gpumem_buffer_host_pointer(buffer));
        for (size_t j = 0; j < i; j++)
            assert_false(addresses[i] == addresses[j]);
        OK(gpumem_buffer_free(buffer, NULL));
    }
    gate_drain(&gate);
    size_t reused = 0;
    gpumem_buffer *buffers[200];
    for (size_t i = 0; i < COUNT(addresses); i++) {
        buffers[i] = allocate_on(cache, 4096, GPUMEM_STREAM_NONE);
        for (size_t j = 0; j < COUNT(addresses); j++)
            reused += addresses[j] == gpumem_buffer_pointer(buffers[i]);
    }
    assert_true(reused > 100);
    DESTROY_EACH(buffers, COUNT(addresses));
    DESTROY(cache, &gate);
}

TEST(host_memory_freed_without_a_stream_is_reused_at_once) {
    gpumem_resource *cache = cache_of(pinned, 0);
    gpumem_buffer *buffer = allocate_on(cache, MIB, GPUMEM_STREAM_NONE);
    unsigned char *host = gpumem_buffer_host_pointer(buffer);
    memset(host, 7, MIB);
    OK(gpumem_buffer_free(buffer, NULL));
    buffer = allocate_on(cache, MIB, GPUMEM_STREAM_NONE);
    assert_ptr_equal(gpumem_buffer_host_pointer(buffer), host);
    /* A copy names its stream all the same. */
    struct gate gate = gate_with_stream();
    gpumem_buffer *target = allocate_on(pool, MIB, gate.stream);
    OK(gpumem_buffer_copy(target, 0, buffer, 0, MIB, gate.stream));
    OK(gpumem_buffer_free(buffer, NULL));
    buffer = allocate_on(cache, MIB, GPUMEM_STREAM_NONE);
    assert_ptr_not_equal(gpumem_buffer_host_pointer(buffer), host);
    gate_drain(&gate);
    DESTROY(buffer, target, cache, &gate);
}

/* ---- Sizes, limits, numbers ------------------------------------------------------------------ */

TEST(requested_sizes_and_alignments_are_respected) {
    gpumem_resource *cache = cache_of(pool, 0);
    gpumem_buffer *buffers[22];
    for (size_t i = 0; i < COUNT(buffers); i++) {
        size_t alignment = (size_t)1 << i;
        buffers[i] = NEW_BUFFER_WITH(cache, 1000 + i, .alignment = alignment);
        assert_int_equal(gpumem_buffer_pointer(buffers[i]) % alignment, 0);
        assert_int_equal(gpumem_buffer_pointer(buffers[i]) % 256, 0);
        assert_int_equal(gpumem_buffer_size(buffers[i]), 1000 + i);
        OK(gpumem_buffer_fill(buffers[i], 0, 1000 + i, (unsigned char)i, NULL));
    }
    for (size_t i = 0; i < COUNT(buffers); i++) {
        unsigned char bytes[1100];
        OK(gpumem_buffer_read(buffers[i], 0, bytes, 1000 + i, NULL));
        synchronize(NULL);
        for (size_t j = 0; j < 1000 + i; j++)
            assert_int_equal(bytes[j], i);
        OK(gpumem_buffer_free(buffers[i], NULL));
    }
    gpumem_buffer *none = NULL;
    FAILS(INVALID_ARGUMENT, gpumem_buffer_allocate(cache, 0, NULL, &none));
    FAILS(INVALID_ARGUMENT,
          gpumem_buffer_allocate(cache, 1, GPUMEM_BUFFER_OPTIONS(.alignment = 3), &none));
    FAILS(NOT_SUPPORTED,
          gpumem_buffer_allocate(cache, 1, GPUMEM_BUFFER_OPTIONS(.capacity = 100), &none));
    OK(gpumem_resource_destroy(cache));
}

TEST(adjacent_free_blocks_merge) {
    gpumem_resource *cache = cache_of(pool, 0);
    gpumem_buffer *parts[8];
    for (size_t i = 0; i < COUNT(parts); i++)
        parts[i] = allocate_on(cache, 2 * MIB, NULL);
    size_t segments = caching_info_of(cache).segments;
    for (size_t i = 0; i < COUNT(parts); i += 2)
        OK(gpumem_buffer_free(parts[i], NULL));
    gpumem_caching_info info = caching_info_of(cache);
    assert_true(info.free_bytes >= 8 * MIB);
    for (size_t i = 1; i < COUNT(parts); i += 2)
        OK(gpumem_buffer_free(parts[i], NULL));
    info = caching_info_of(cache);
    assert_int_equal(info.free_bytes, info.segment_bytes);
    assert_int_equal(info.largest_free_bytes, info.segment_bytes / info.segments);
    gpumem_buffer *whole = allocate_on(cache, info.largest_free_bytes, NULL);
    assert_int_equal(caching_info_of(cache).segments, segments);
    DESTROY(whole, cache);
}

TEST(a_maximum_is_enforced_and_named_in_the_error) {
    gpumem_resource *cache = cache_of(pool, 64 * MIB);
    gpumem_buffer *buffers[64], *more = NULL;
    for (size_t i = 0; i < COUNT(buffers); i++)
        buffers[i] = allocate_on(cache, MIB, NULL);
    FAILS_SAYING(OUT_OF_CAPACITY, "maximum of 67108864", try_allocate(cache, 1, NULL, &more));
    assert_int_equal(stats_of(cache).allocations_failed, 1);
    DESTROY_EACH(buffers, COUNT(buffers));
    more = allocate_on(cache, 2 * MIB, NULL); /* small blocks make room for a large one */
    DESTROY(more, cache);
}

TEST(statistics_of_cache_and_device_add_up) {
    gpumem_resource *cache = cache_of(pool, 0);
    gpumem_buffer *small = allocate_on(cache, 1000, NULL),
                  *large = allocate_on(cache, 3 * MIB, NULL);
    gpumem_stats stats = stats_of(cache), all = device_stats();
    MEMBERS(stats, (allocations, 2), (allocations_total, 2), (in_use_bytes, 1000 + 3 * MIB),
            (in_use_high, 1000 + 3 * MIB), (committed_bytes, caching_info_of(cache).segment_bytes),
            (cached_bytes, stats.committed_bytes - 1024 - 3 * MIB));
    MEMBERS(all, (in_use_bytes, 1000 + 3 * MIB), (allocations, 2));
    assert_true(all.committed_bytes >= stats.committed_bytes); /* the pool keeps memory too */
    FAILS_SAYING(BUSY, "2 buffers", gpumem_resource_destroy(cache));
    DESTROY(small, large);
    stats = stats_of(cache);
    assert_int_equal(stats.allocations + stats.in_use_bytes, 0);
    assert_int_equal(stats.cached_bytes, stats.committed_bytes);
    OK(gpumem_device_trim(device, 1));
    all = device_stats();
    assert_int_equal(all.committed_bytes + all.cached_bytes + all.reserved_bytes, 0);
    OK(gpumem_resource_destroy(cache));
}

TEST(trimming_leaves_the_requested_bytes) {
    gpumem_resource *cache = cache_of(pool, 0);
    gpumem_buffer *buffers[10];
    for (size_t i = 0; i < COUNT(buffers); i++)
        buffers[i] = allocate_on(cache, 100 * MIB, NULL);
    DESTROY_EACH(buffers, COUNT(buffers));
    OK(gpumem_resource_trim(cache, 300 * MIB));
    size_t left = caching_info_of(cache).segment_bytes;
    assert_true(left <= 300 * MIB && left >= 200 * MIB);
    OK(gpumem_resource_destroy(cache));
}

TEST(held_memory_is_not_reused) {
    gpumem_resource *cache = cache_of(pool, 0);
    gpumem_buffer *buffer = allocate_on(cache, 4096, NULL);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_hold(buffer));
    OK(gpumem_buffer_free(buffer, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_free(buffer, NULL));
    gpumem_buffer *other = allocate_on(cache, 4096, NULL);
    assert_false(gpumem_buffer_pointer(other) == address);
    OK(gpumem_buffer_release(buffer));
    gpumem_buffer *again = allocate_on(cache, 4096, NULL);
    assert_true(gpumem_buffer_pointer(again) == address);
    DESTROY(other, again, cache);
}

TEST(a_cache_works_between_a_wrapper_and_virtual_memory) {
    gpumem_resource *virtual = NEW_VIRTUAL();
    gpumem_resource *cache = cache_of(virtual, 0);
    gpumem_resource *limit = NEW_LIMIT(cache, 10 * MIB);
    gpumem_buffer *buffer = allocate_on(limit, 4096, NULL),
                  *large = allocate_on(limit, 4 * MIB, NULL);
    OK(gpumem_buffer_fill(large, 0, 4 * MIB, 3, NULL));
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_free(buffer, NULL));
    buffer = allocate_on(limit, 4096, NULL);
    assert_true(gpumem_buffer_pointer(buffer) == address);
    FAILS(BUSY, gpumem_resource_destroy(cache));
    DESTROY(buffer, large, limit);
    FAILS(BUSY, gpumem_resource_destroy(virtual));
    DESTROY(cache, virtual);
}

TEST(cached_memory_is_released_when_another_resource_needs_it) {
    uint64_t room = 0, total = 0;
    OK(gpumem_device_get_memory(device, &room, &total));
    gpumem_resource *virtual = NEW_VIRTUAL();
    gpumem_resource *cache = cache_of(virtual, 0);
    size_t most = (size_t)room / 3 / MIB * MIB;
    gpumem_buffer *first = allocate_on(cache, most, NULL), *second = allocate_on(cache, most, NULL);
    DESTROY(first, second);
    gpumem_buffer *other = allocate_on(virtual, 2 * most, NULL);
    DESTROY(other, cache, virtual);
}

/* ---- Threads and processes ------------------------------------------------------------------- */

static void *fill_and_end(void *data) {
    gpumem_resource *cache = data;
    gpumem_buffer *buffers[64];
    for (size_t i = 0; i < COUNT(buffers); i++)
        if (try_allocate(cache, 4096, NULL, &buffers[i]) != GPUMEM_OK)
            return "allocate";
    for (size_t i = 0; i < COUNT(buffers); i++)
        gpumem_buffer_free(buffers[i], NULL);
    return NULL;
}

TEST(an_ending_thread_returns_its_cached_blocks) {
    gpumem_resource *cache = cache_of(pool, 2 * MIB);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *failed;
        assert_int_equal(pthread_create(&thread, NULL, fill_and_end, cache), 0);
        assert_int_equal(pthread_join(thread, &failed), 0);
        assert_null(failed);
        gpumem_caching_info info = caching_info_of(cache);
        MEMBERS(info, (thread_bytes, 0), (threads, 0));
        MEMBERS(stats_of(cache), (allocations, 0), (allocations_total, 64 * (i + 1)));
    }
    OK(gpumem_resource_destroy(cache));
}

struct meeting {
    gpumem_resource *cache;
    pthread_barrier_t used, destroyed;
    const char *failed;
};

static void *outlive(void *data) {
    struct meeting *meeting = data;
    meeting->failed = fill_and_end(meeting->cache);
    pthread_barrier_wait(&meeting->used);
    pthread_barrier_wait(&meeting->destroyed);
    return NULL;
}

TEST(a_thread_may_outlive_the_cache) {
    pthread_t thread;
    struct meeting meeting = {.cache = cache_of(pool, 0)};
    pthread_barrier_init(&meeting.used, NULL, 2);
    pthread_barrier_init(&meeting.destroyed, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, outlive, &meeting), 0);
    pthread_barrier_wait(&meeting.used);
    assert_null(meeting.failed);
    assert_true(caching_info_of(meeting.cache).thread_bytes > 0);
    OK(gpumem_resource_destroy(meeting.cache));
    pthread_barrier_wait(&meeting.destroyed);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_barrier_destroy(&meeting.used);
    pthread_barrier_destroy(&meeting.destroyed);
}

TEST(one_thread_may_use_many_caches) {
    gpumem_resource *caches[70];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT(caches); i++)
            caches[i] = cache_of(pool, 2 * MIB);
        for (size_t i = 0; i < 10 * COUNT(caches); i++)
            assert_null(fill_and_end(caches[i % COUNT(caches)]));
        DESTROY_EACH(caches, COUNT(caches));
    }
}

TEST(a_forked_child_may_not_use_the_cache) {
    gpumem_resource *cache = cache_of(pool, 0);
    gpumem_buffer *kept = allocate_on(cache, 4096, NULL);
    OK(gpumem_buffer_free(allocate_on(cache, 4096, NULL), NULL));
    pid_t child = fork();
    if (child == 0) {
        gpumem_buffer *buffer = NULL;
        int right = try_allocate(cache, 4096, NULL, &buffer) == GPUMEM_ERROR_FORKED &&
                    gpumem_buffer_free(kept, NULL) == GPUMEM_ERROR_FORKED;
        _exit(right ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    DESTROY(kept, cache);
}

/* ---- Captures -------------------------------------------------------------------------------- */

TEST(captured_memory_stays_with_its_graph) {
    gpumem_resource *cache = cache_of(pool, 0);
    CUstream stream = NEW_STREAM();
    gpumem_buffer *before = allocate_on(cache, 4096, stream);
    CUdeviceptr outside = gpumem_buffer_pointer(before);
    OK(gpumem_buffer_free(before, NULL));
    gpumem_capture_pool *captured = MADE(gpumem_capture_pool *, gpumem_capture_pool_create, cache);
    OK(gpumem_capture_pool_begin(captured, stream));
    FAILS(INVALID_ARGUMENT, gpumem_capture_pool_begin(captured, stream));
    gpumem_buffer *first = allocate_on(cache, 4096, stream);
    CUdeviceptr inside = gpumem_buffer_pointer(first);
    assert_false(inside == outside);
    OK(gpumem_buffer_free(first, NULL));
    first = allocate_on(cache, 4096, stream);
    assert_true(gpumem_buffer_pointer(first) == inside);
    OK(gpumem_buffer_free(first, NULL));
    FAILS(BUSY, gpumem_capture_pool_destroy(captured, stream));
    OK(gpumem_capture_pool_end(captured, stream));
    FAILS(INVALID_ARGUMENT, gpumem_capture_pool_end(captured, stream));
    gpumem_buffer *buffers[600];
    for (size_t i = 0; i < COUNT(buffers); i++) {
        buffers[i] = allocate_on(cache, 4096, stream);
        assert_false(gpumem_buffer_pointer(buffers[i]) == inside);
    }
    DESTROY_EACH(buffers, COUNT(buffers));
    size_t segments = caching_info_of(cache).segments;
    OK(gpumem_resource_trim(cache, 0));
    assert_int_equal(caching_info_of(cache).segments, 1);
    assert_true(segments > 1);
    OK(gpumem_capture_pool_destroy(captured, stream));
    OK(gpumem_resource_trim(cache, 0));
    assert_int_equal(caching_info_of(cache).segments, 0);
    DESTROY(cache, stream);
}
