/*
 * Mapped memory on any driver, by each method that the machine has: bytes on both sides, growth,
 * views, flushes, small buffers, a maximum, rings, and rings without a seam. Prints which methods
 * work and why others do not.
 */
#include "kept_driver.h"
#include "library.h"

static const gpumem_mapped_method methods[] = {
    GPUMEM_MAPPED_COHERENT,      GPUMEM_MAPPED_VULKAN_IMPORT, GPUMEM_MAPPED_DMA_BUF,
    GPUMEM_MAPPED_VULKAN_EXPORT, GPUMEM_MAPPED_DESCRIPTOR,    GPUMEM_MAPPED_HOST};

static gpumem_resource *make(const gpumem_mapped_options *options) {
    gpumem_resource *resource = NULL;
    gpumem_status status = gpumem_mapped_resource_create(device, options, &resource);
    if (status == GPUMEM_OK)
        return resource;
    if (status != GPUMEM_ERROR_NOT_SUPPORTED)
        fail_msg("answered %s: %s", gpumem_status_name(status), gpumem_last_error()->message);
    assert_true(strlen(gpumem_last_error()->message) > 0);
    return NULL;
}

static gpumem_mapped_info info_of(gpumem_resource *resource) {
    gpumem_mapped_info info = {.size = sizeof info};
    OK(gpumem_mapped_get_info(resource, &info));
    return info;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static unsigned char value(size_t seed, size_t i) {
    return (unsigned char)(seed * 31 + i * 7 + i / 4096);
}

static void store(void *host, size_t seed, size_t bytes) {
    unsigned char *to = host;
    for (size_t i = 0; i < bytes; i++)
        to[i] = value(seed, i);
}

/* What a copy by the device finds there. */
static void check_device(CUdeviceptr address, size_t seed, size_t bytes) {
    unsigned char *back = malloc(bytes);
    assert_non_null(back);
    OK(copy_bytes(device, (CUdeviceptr)(uintptr_t)back, address, bytes, NULL));
    OK(gpumem_stream_synchronize(device, NULL));
    for (size_t i = 0; i < bytes; i++)
        if (back[i] != value(seed, i))
            fail_msg("the device has %d at %zu of %zu, not %d", back[i], i, bytes, value(seed, i));
    free(back);
}

/* Reads cross the bus: some bytes of each page. */
static void check_host(const volatile unsigned char *host, unsigned char wanted, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 4093)
        if (host[i] != wanted)
            fail_msg("the CPU reads %d at %zu of %zu, not %d", host[i], i, bytes, wanted);
}

static void both_ways(gpumem_buffer *buffer, size_t seed) {
    size_t bytes = gpumem_buffer_size(buffer);
    unsigned char *host = gpumem_buffer_host_pointer(buffer);
    assert_non_null(host);
    store(host, seed, bytes);
    OK(gpumem_mapped_flush(buffer, 0, bytes));
    check_device(gpumem_buffer_pointer(buffer), seed, bytes);
    OK(fill_now(buffer, 0, bytes, (unsigned char)seed, NULL));
    OK(gpumem_mapped_invalidate(buffer, 0, bytes));
    check_host(host, (unsigned char)seed, bytes);
}

static void written_and_published(gpumem_buffer *buffer) {
    unsigned char data[5000], back[5000];
    uint32_t flag = 0;
    store(data, 9, sizeof data);
    OK(gpumem_mapped_write(buffer, 3, data, sizeof data));
    check_device(gpumem_buffer_pointer(buffer) + 3, 9, sizeof data);
    OK(gpumem_mapped_read(buffer, 3, back, sizeof back));
    assert_memory_equal(back, data, sizeof data);
    OK(gpumem_mapped_publish(buffer, 8192, data, 64, 8256, 77));
    check_device(gpumem_buffer_pointer(buffer) + 8192, 9, 64);
    OK(read_now(buffer, 8256, &flag, sizeof flag, NULL));
    assert_int_equal(flag, 77);
}

/* Up to what chunks lie at multiples of. */
static void aligned_as_asked_for(gpumem_resource *resource) {
    for (size_t alignment = 1; alignment <= 2 * MIB; alignment *= 8) {
        gpumem_buffer *buffer = NEW_BUFFER_WITH(resource, 1000, .alignment = alignment);
        assert_int_equal(gpumem_buffer_pointer(buffer) % alignment, 0);
        store(gpumem_buffer_host_pointer(buffer), alignment, 1000);
        OK(gpumem_mapped_flush(buffer, 0, 1000));
        check_device(gpumem_buffer_pointer(buffer), alignment, 1000);
        OK(gpumem_buffer_free(buffer, NULL));
    }
}

/* ---- Rings ----------------------------------------------------------------------------------- */

/* Sizes of all kinds, so that mirrored ones cross the end; released behind two streams. */
static void go_round(gpumem_ring *ring, size_t most, size_t turns, const CUstream streams[2]) {
    for (size_t turn = 0; turn < turns; turn++) {
        gpumem_ring_chunk chunk = {.size = sizeof chunk};
        OK(gpumem_ring_acquire(ring, most / 2 + turn * 977 % (most / 2), 10000, &chunk));
        store(chunk.host, turn, chunk.bytes);
        OK(gpumem_ring_commit(ring, chunk.sequence, chunk.bytes));
        OK(gpumem_ring_consume(ring, 0, &chunk));
        check_device(chunk.device, turn, chunk.bytes);
        OK(gpumem_ring_release(ring, chunk.sequence, streams, 2, NULL, 0));
    }
}

static void through_rings(gpumem_resource *resource) {
    CUstream streams[2];
    for (int i = 0; i < 2; i++)
        OK(gpumem_stream_create(device, NULL, &streams[i]));
    gpumem_ring *ring = MADE(gpumem_ring *, gpumem_ring_create, resource,
                             GPUMEM_RING_OPTIONS(.chunk_bytes = 100000, .chunk_count = 3));
    go_round(ring, 100000, 10, streams);
    OK(gpumem_ring_destroy(ring));
    gpumem_status status = gpumem_ring_create(
        resource, GPUMEM_RING_OPTIONS(.chunk_bytes = MIB, .chunk_count = 3, .mirrored = 1), &ring);
    if (info_of(resource).method == GPUMEM_MAPPED_VULKAN_EXPORT) {
        assert_int_equal(status, GPUMEM_ERROR_NOT_SUPPORTED);
    } else {
        OK(status);
        go_round(ring, MIB, 12, streams);
        OK(gpumem_ring_destroy(ring));
    }
    for (int i = 0; i < 2; i++)
        OK(gpumem_stream_destroy(device, streams[i]));
}

static void producers_are_held_back(gpumem_resource *resource) {
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    CUstream stream = NEW_STREAM();
    gpumem_ring *ring = MADE(gpumem_ring *, gpumem_ring_create, resource,
                             GPUMEM_RING_OPTIONS(.chunk_bytes = 4096, .chunk_count = 2));
    struct gate gate = hold(stream);
    for (int i = 0; i < 2; i++) {
        OK(gpumem_ring_acquire(ring, 0, 0, &chunk));
        OK(gpumem_ring_commit(ring, chunk.sequence, 1));
        OK(gpumem_ring_consume(ring, 0, &chunk));
        OK(gpumem_ring_release(ring, chunk.sequence, &stream, 1, NULL, 0));
    }
    assert_int_equal(gpumem_ring_acquire(ring, 0, 5, &chunk), GPUMEM_ERROR_TIMED_OUT);
    gate_release(&gate);
    OK(gpumem_ring_acquire(ring, 0, 10000, &chunk));
    OK(gpumem_ring_abandon(ring, chunk.sequence));
    OK(gpumem_ring_destroy(ring));
    OK(gpumem_stream_synchronize(device, stream));
    OK(gpumem_stream_destroy(device, stream));
}

/* ---- Small buffers --------------------------------------------------------------------------- */

#define SMALL 2000

/* Many in few slabs, each with its own bytes on both sides. */
static void small_buffers(gpumem_resource *resource) {
    static gpumem_buffer *buffers[SMALL];
    const gpumem_mapped_info info = info_of(resource);
    gpumem_stats stats = {.size = sizeof stats};
    OK(gpumem_resource_trim(resource, 0));
    OK(gpumem_resource_get_stats(resource, &stats));
    uint64_t before = stats.committed_bytes;
    for (size_t i = 0; i < SMALL; i++) {
        buffers[i] = NEW_BUFFER_WITH(resource, 64 + i % 500, .stream = GPUMEM_STREAM_NONE);
        assert_int_equal(gpumem_buffer_pointer(buffers[i]) % info.atom, 0);
        assert_ptr_equal(gpumem_buffer_resource(buffers[i]), resource);
        store(gpumem_buffer_host_pointer(buffers[i]), i, 64 + i % 500);
        OK(gpumem_mapped_flush(buffers[i], 0, 64 + i % 500));
    }
    OK(gpumem_resource_get_stats(resource, &stats));
    assert_true(stats.committed_bytes - before <= 4 * MIB);
    for (size_t i = 0; i < SMALL; i += 13)
        check_device(gpumem_buffer_pointer(buffers[i]), i, 64 + i % 500);
    for (size_t i = 0; i < SMALL; i++)
        OK(gpumem_buffer_free(buffers[i], NULL));
    OK(gpumem_resource_trim(resource, 0));
    OK(gpumem_resource_get_stats(resource, &stats));
    assert_int_equal(stats.committed_bytes, before);
}

/* A copy of one that was freed behind it gets the bytes that it was queued with. */
static void small_buffers_rest(gpumem_resource *resource) {
    gpumem_resource *plain; /* what is copied between host memory is copied at once */
    gpumem_buffer *copy, *buffer, *others[100];
    plain = NEW_VIRTUAL();
    CUstream stream = NEW_STREAM();
    copy = NEW_BUFFER(plain, MIB);
    OK(gpumem_buffer_allocate(resource, 500, GPUMEM_BUFFER_OPTIONS(.stream = stream), &buffer));
    store(gpumem_buffer_host_pointer(buffer), 5, 500);
    OK(gpumem_mapped_flush(buffer, 0, 500));
    struct gate gate = hold(stream);
    OK(copy_bytes(device, gpumem_buffer_pointer(copy), gpumem_buffer_pointer(buffer), 500, stream));
    OK(gpumem_buffer_free(buffer, stream));
    for (size_t i = 0; i < COUNT(others); i++) {
        others[i] = NEW_BUFFER_WITH(resource, 500, .stream = stream);
        store(gpumem_buffer_host_pointer(others[i]), 6, 500);
        OK(gpumem_mapped_flush(others[i], 0, 500));
    }
    gate_release(&gate);
    OK(gpumem_stream_synchronize(device, stream));
    check_device(gpumem_buffer_pointer(copy), 5, 500);
    for (size_t i = 0; i < COUNT(others); i++)
        OK(gpumem_buffer_free(others[i], NULL));
    DESTROY(copy, plain, stream);
}

static void a_maximum_bounds_all(gpumem_mapped_method method) {
    gpumem_resource *resource = make(
        GPUMEM_MAPPED_OPTIONS(.method = method, .method_strict = 1, .maximum_bytes = 32 * MIB));
    gpumem_buffer *small, *large, *more;
    assert_non_null(resource);
    small = NEW_BUFFER(resource, 100);
    OK(gpumem_buffer_allocate(resource, 16 * MIB, NULL, &large));
    assert_int_equal(gpumem_buffer_allocate(resource, 16 * MIB, NULL, &more),
                     GPUMEM_ERROR_OUT_OF_CAPACITY);
    OK(gpumem_buffer_free(small, NULL));
    OK(gpumem_buffer_allocate(resource, 16 * MIB, NULL, &more)); /* the slab has gone */
    DESTROY(more, large, resource);
}

/* ---- Each method ----------------------------------------------------------------------------- */

static void grows_on_both_sides(gpumem_buffer *buffer) {
    void *host = gpumem_buffer_host_pointer(buffer);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    for (size_t bytes = 4 * MIB; bytes <= 16 * MIB; bytes *= 2) {
        OK(gpumem_buffer_grow(buffer, bytes, NULL));
        assert_ptr_equal(gpumem_buffer_host_pointer(buffer), host);
        assert_true(gpumem_buffer_pointer(buffer) == address);
        both_ways(buffer, bytes / MIB);
    }
    OK(gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
    both_ways(buffer, 3);
}

static void everything_of(gpumem_resource *resource) {
    bool grows = info_of(resource).method != GPUMEM_MAPPED_VULKAN_EXPORT;
    gpumem_buffer *buffer = NEW_BUFFER_WITH(resource, 2 * MIB, .capacity = grows ? 16 * MIB : 0);
    both_ways(buffer, 1);
    written_and_published(buffer);
    if (grows)
        grows_on_both_sides(buffer);
    OK(gpumem_buffer_free(buffer, NULL));
    aligned_as_asked_for(resource);
    through_rings(resource);
    producers_are_held_back(resource);
    small_buffers(resource);
    small_buffers_rest(resource);
}

TEST(every_available_method_supports_all_operations) {
    open_library();
    for (size_t i = 0; i < COUNT(methods); i++) {
        const char *name = gpumem_mapped_method_name(methods[i]);
        gpumem_resource *resource =
            make(GPUMEM_MAPPED_OPTIONS(.method = methods[i], .method_strict = 1));
        print_message("# %s: %s\n", name, resource ? "works" : gpumem_last_error()->message);
        if (!resource)
            continue;
        assert_int_equal(info_of(resource).method, methods[i]);
        everything_of(resource);
        OK(gpumem_resource_destroy(resource));
        a_maximum_bounds_all(methods[i]);
        assert_int_equal(device_stats().quarantined, 0);
    }
}

TEST(the_best_method_is_chosen_and_refusals_are_explained) {
    open_library();
    gpumem_resource *resource = make(NULL);
    assert_non_null(resource); /* host memory at least */
    const gpumem_mapped_info info = info_of(resource);
    print_message("# chosen: %s, coherent %d, atom %zu, budget %llu MiB\n",
                  gpumem_mapped_method_name(info.method), info.coherent, info.atom,
                  (unsigned long long)info.budget_bytes / MIB);
    printf("# refused: %s\n", info.refusals); /* print_message has room for 1,023 bytes */
    assert_true(info.method == GPUMEM_MAPPED_COHERENT || strlen(info.refusals) > 0);
    OK(gpumem_resource_destroy(resource));
}

TEST(forced_non_coherent_writes_reach_the_device) {
    open_library();
    gpumem_resource *resource = make(GPUMEM_MAPPED_OPTIONS(.force_non_coherent = 1));
    assert_non_null(resource);
    const gpumem_mapped_info info = info_of(resource);
    print_message("# with force_non_coherent: %s, coherent %d, atom %zu\n",
                  gpumem_mapped_method_name(info.method), info.coherent, info.atom);
    everything_of(resource);
    OK(gpumem_resource_destroy(resource));
}

/* ---- Views ----------------------------------------------------------------------------------- */

static void view_follows(gpumem_buffer *buffer, gpumem_buffer *view) {
    unsigned char *host = gpumem_buffer_host_pointer(view);
    for (size_t bytes = 2 * MIB; bytes <= 16 * MIB; bytes *= 2) {
        OK(gpumem_buffer_grow(buffer, bytes, NULL));
        assert_ptr_equal(gpumem_buffer_host_pointer(view), host);
        store(host, bytes / MIB, bytes);
        OK(gpumem_mapped_flush(view, 0, bytes));
        check_device(gpumem_buffer_pointer(buffer), bytes / MIB, bytes);
        OK(fill_now(buffer, 0, bytes, 5, NULL));
        OK(gpumem_mapped_invalidate(view, 0, bytes));
        check_host(host, 5, bytes);
    }
}

TEST(a_host_view_maps_an_existing_buffer) {
    gpumem_buffer *view = NULL;
    open_library();
    gpumem_resource *memory = NEW_VIRTUAL(.capacity = 16 * MIB);
    gpumem_buffer *buffer = NEW_BUFFER(memory, 2 * MIB);
    gpumem_status status = gpumem_buffer_host_view(buffer, NULL, &view);
    bool works = status == GPUMEM_OK;
    if (works) {
        view_follows(buffer, view);
        assert_int_equal(gpumem_buffer_shrink(buffer, 2 * MIB, NULL), GPUMEM_ERROR_BUSY);
        OK(gpumem_buffer_free(view, NULL));
    } else {
        print_message("skip: only host memory can be shared: %s\n", gpumem_last_error()->message);
    }
    DESTROY(buffer, memory);
    close_library();
    if (!works) {
        assert_int_equal(status, GPUMEM_ERROR_NOT_SUPPORTED);
        skip();
    }
}

BEFORE_TESTS_DO(keep_lavapipe_loaded());
