/* Mapped memory: the same bytes for the CPU and the device, growing in place on both sides. */
#include "kept_driver.h"
#include "library_test.h"

#include <pthread.h>

static gpumem_resource *mapped;

BEFORE(open_device) {
    mapped = NEW_MAPPED(.method = GPUMEM_MAPPED_DESCRIPTOR, .method_strict = 1,
                        .capacity = 64 * MIB, .maximum_chunk_bytes = 4 * MIB);
}

AFTER(close_device) {
    OK(gpumem_resource_destroy(mapped));
}

ALL_TESTS(before, after);

static unsigned char *host_of(gpumem_buffer *buffer) {
    unsigned char *host = gpumem_buffer_host_pointer(buffer);
    assert_non_null(host);
    return host;
}

TEST(host_and_device_see_the_same_bytes) {
    gpumem_buffer *buffer = NEW_BUFFER(mapped, 3 * MIB);
    unsigned char *host = host_of(buffer);
    assert_true((CUdeviceptr)(uintptr_t)host != gpumem_buffer_pointer(buffer));
    OK(fill_now(buffer, 0, 3 * MIB, 7, NULL));
    for (size_t i = 0; i < 3 * MIB; i += 4093)
        assert_int_equal(host[i], 7);
    memset(host + MIB, 9, MIB);
    OK(gpumem_mapped_flush(buffer, MIB, MIB));
    assert_int_equal(byte_of(buffer, MIB - 1), 7);
    assert_int_equal(byte_of(buffer, MIB), 9);
    assert_int_equal(byte_of(buffer, 2 * MIB - 1), 9);
    assert_int_equal(byte_of(buffer, 2 * MIB), 7);
    OK(gpumem_buffer_free(buffer, NULL));
}

TEST(a_mapped_buffer_grows_and_shrinks_in_place) {
    gpumem_buffer *buffer = NEW_BUFFER(mapped, 2 * MIB);
    unsigned char *host = host_of(buffer);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    memset(host, 1, 2 * MIB);
    for (size_t bytes = 4 * MIB; bytes <= 64 * MIB; bytes *= 2) {
        OK(gpumem_buffer_grow(buffer, bytes, NULL));
        assert_ptr_equal(host_of(buffer), host);
        assert_true(gpumem_buffer_pointer(buffer) == address);
        memset(host + bytes / 2, (int)(bytes / MIB), bytes / 2);
        assert_int_equal(byte_of(buffer, bytes - 1), bytes / MIB & 0xff);
    }
    assert_int_equal(byte_of(buffer, 0), 1);
    assert_int_equal(byte_of(buffer, 3 * MIB), 4);
    OK(gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
    assert_int_equal(host[2 * MIB - 1], 1);
    OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL));
    host[8 * MIB - 1] = 5;
    assert_int_equal(byte_of(buffer, 8 * MIB - 1), 5);
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(device_stats().committed_bytes, 0);
}

TEST(decommitting_and_recommitting_work_on_both_sides) {
    gpumem_buffer *buffer = NEW_BUFFER(mapped, 16 * MIB);
    unsigned char *host = host_of(buffer);
    memset(host, 3, 16 * MIB);
    size_t released = MADE(size_t, gpumem_buffer_decommit, buffer, 4 * MIB, 8 * MIB, NULL);
    assert_true(released >= 4 * MIB);
    OK(gpumem_buffer_recommit(buffer, 4 * MIB, 8 * MIB));
    host[5 * MIB] = 4;
    assert_int_equal(byte_of(buffer, 5 * MIB), 4);
    assert_int_equal(byte_of(buffer, 0), 3);
    assert_int_equal(byte_of(buffer, 16 * MIB - 1), 3);
    OK(gpumem_buffer_free(buffer, NULL));
}

TEST(moving_a_mapped_buffer_is_refused) {
    CUdeviceptr address;
    gpumem_buffer *buffer = NEW_BUFFER(mapped, 2 * MIB);
    FAILS(NOT_SUPPORTED, gpumem_buffer_move_to_capacity(buffer, 128 * MIB, NULL, &address));
    assert_non_null(strstr(gpumem_last_error()->message, "mapped for the CPU"));
    OK(gpumem_buffer_free(buffer, NULL));
}

TEST(freed_buffers_stay_mapped_in_the_cache) {
    gpumem_resource *cached =
        NEW_MAPPED(.method = GPUMEM_MAPPED_DESCRIPTOR, .cache_bytes = 16 * MIB);
    gpumem_buffer *buffer = NEW_BUFFER(cached, 2 * MIB);
    void *host = host_of(buffer);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_stream_synchronize(device, NULL));
    buffer = NEW_BUFFER(cached, 2 * MIB);
    assert_ptr_equal(host_of(buffer), host);
    host_of(buffer)[12] = 34;
    assert_int_equal(byte_of(buffer, 12), 34);
    DESTROY(buffer, cached);
    assert_int_equal(device_stats().committed_bytes, 0);
}

TEST(a_cache_over_mapped_memory_gives_small_buffers) {
    gpumem_buffer *buffers[100];
    gpumem_resource *cache = NEW_CACHING(mapped);
    for (size_t i = 0; i < 100; i++) {
        buffers[i] = NEW_BUFFER(cache, 100);
        memset(host_of(buffers[i]), (int)i, 100);
    }
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(byte_of(buffers[i], 99), i);
    uint32_t word = 77;
    OK(gpumem_mapped_write(buffers[5], 4, &word, sizeof word));
    assert_int_equal(byte_of(buffers[5], 4), 77);
    DESTROY_EACH(buffers, 100);
    OK(gpumem_resource_destroy(cache));
}

TEST(writes_and_reads_outside_the_buffer_are_refused) {
    gpumem_buffer *buffer = NEW_BUFFER(mapped, 5000);
    unsigned char bytes[5000], back[5000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7);
    OK(gpumem_mapped_write(buffer, 0, bytes, sizeof bytes));
    OK(gpumem_mapped_read(buffer, 0, back, sizeof back));
    assert_memory_equal(back, bytes, sizeof bytes);
    gpumem_buffer *part = NEW_VIEW(buffer, 1000, 100);
    OK(gpumem_mapped_write(part, 99, "x", 1));
    assert_int_equal(byte_of(buffer, 1099), 'x');
    FAILS(INVALID_ARGUMENT, gpumem_mapped_write(part, 99, "xy", 2));
    FAILS(INVALID_ARGUMENT, gpumem_mapped_write(buffer, 4999, bytes, 2));
    FAILS(INVALID_ARGUMENT, gpumem_mapped_read(buffer, SIZE_MAX, back, 2));
    FAILS(INVALID_ARGUMENT, gpumem_mapped_write(buffer, 0, NULL, 1));
    OK(gpumem_mapped_write(buffer, 5000, NULL, 0));
    DESTROY(part, buffer);
}

TEST(memory_without_host_access_is_refused) {
    gpumem_resource *plain = NEW_VIRTUAL();
    gpumem_buffer *buffer = NEW_BUFFER(plain, 100);
    FAILS(NOT_SUPPORTED, gpumem_mapped_write(buffer, 0, "x", 1));
    FAILS(NOT_SUPPORTED, gpumem_mapped_flush(buffer, 0, 1));
    OK(gpumem_buffer_free(buffer, NULL));
    gpumem_mapped_info info = {.size = sizeof info};
    FAILS(INVALID_ARGUMENT, gpumem_mapped_get_info(plain, &info));
    OK(gpumem_resource_destroy(plain));
}

TEST(publishing_writes_the_payload_and_the_flag) {
    gpumem_buffer *buffer = NEW_BUFFER(mapped, 4096);
    OK(fill_now(buffer, 0, 4096, 0, NULL));
    OK(gpumem_mapped_publish(buffer, 0, "payload", 8, 1024, 1));
    char payload[8];
    OK(read_now(buffer, 0, payload, 8, NULL));
    assert_string_equal(payload, "payload");
    assert_int_equal(byte_of(buffer, 1024), 1);
    FAILS(INVALID_ARGUMENT, gpumem_mapped_publish(buffer, 0, "payload", 8, 1026, 1));
    FAILS(INVALID_ARGUMENT, gpumem_mapped_publish(buffer, 0, "payload", 8, 4, 1));
    FAILS(INVALID_ARGUMENT, gpumem_mapped_publish(buffer, 0, "payload", 8, 4094, 1));
    OK(gpumem_buffer_free(buffer, NULL));
}

TEST(the_chosen_method_and_the_refused_ones_are_reported) {
    gpumem_mapped_info info = {.size = sizeof info};
    gpumem_resource *any = NEW_MAPPED();
    OK(gpumem_mapped_get_info(any, &info));
    assert_int_not_equal(info.method, GPUMEM_MAPPED_ANY);
    assert_int_not_equal(info.method, GPUMEM_MAPPED_HOST);
    if (info.method == GPUMEM_MAPPED_DESCRIPTOR) {
        assert_non_null(strstr(info.refusals, "vulkan-import: "));
        assert_non_null(strstr(info.refusals, "dma-buf: "));
    }
    assert_true(info.coherent && info.atom == 1);
    assert_non_null(strstr(info.refusals, "coherent: "));
    OK(gpumem_resource_destroy(any));
    assert_string_equal(gpumem_mapped_method_name((gpumem_mapped_method)99), "unknown");
}

TEST(host_memory_is_the_last_choice_and_can_be_required) {
    gpumem_mapped_info info = {.size = sizeof info};
    gpumem_resource *host =
        NEW_MAPPED(.method = GPUMEM_MAPPED_HOST, .method_strict = 1, .capacity = 8 * MIB);
    OK(gpumem_mapped_get_info(host, &info));
    assert_int_equal(info.method, GPUMEM_MAPPED_HOST);
    gpumem_buffer *buffer = NEW_BUFFER(host, MIB);
    OK(gpumem_mapped_write(buffer, 10, "z", 1));
    assert_int_equal(byte_of(buffer, 10), 'z');
    OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL));
    host_of(buffer)[8 * MIB - 1] = 6;
    assert_int_equal(byte_of(buffer, 8 * MIB - 1), 6);
    DESTROY(buffer, host);
}

TEST(invalid_options_are_refused) {
    gpumem_resource *made;
    FAILS(INVALID_ARGUMENT,
          gpumem_mapped_resource_create(
              device, GPUMEM_MAPPED_OPTIONS(.method = (gpumem_mapped_method)9), &made));
    FAILS(INVALID_ARGUMENT,
          gpumem_mapped_resource_create(device, GPUMEM_MAPPED_OPTIONS(.method_strict = 1), &made));
    FAILS(
        INVALID_ARGUMENT,
        gpumem_mapped_resource_create(
            device, GPUMEM_MAPPED_OPTIONS(.require_coherent = 1, .force_non_coherent = 1), &made));
    FAILS(INVALID_ARGUMENT, gpumem_mapped_resource_create(device, NULL, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_mapped_resource_create(NULL, NULL, &made));
}

/* ---- Views ----------------------------------------------------------------------------------- */

TEST(a_view_of_a_buffer_follows_its_growth) {
    gpumem_resource *plain = NEW_VIRTUAL(.capacity = 32 * MIB, .maximum_chunk_bytes = 2 * MIB);
    gpumem_buffer *buffer = NEW_BUFFER(plain, 4 * MIB);
    OK(fill_now(buffer, 0, 4 * MIB, 8, NULL));
    gpumem_buffer *view = MADE(gpumem_buffer *, gpumem_buffer_host_view, buffer, NULL);
    unsigned char *host = gpumem_buffer_host_pointer(view);
    assert_int_equal(host[4 * MIB - 1], 8);
    OK(gpumem_buffer_grow(buffer, 32 * MIB, NULL));
    assert_ptr_equal(gpumem_buffer_host_pointer(view), host);
    host[32 * MIB - 1] = 2;
    OK(gpumem_mapped_flush(view, 32 * MIB - 1, 1));
    assert_int_equal(byte_of(buffer, 32 * MIB - 1), 2);
    gpumem_buffer *second = MADE(gpumem_buffer *, gpumem_buffer_host_view, buffer, NULL);
    assert_int_equal(((unsigned char *)gpumem_buffer_host_pointer(second))[32 * MIB - 1], 2);
    FAILS(BUSY, gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
    DESTROY(second, buffer);
    host[0] = 1; /* the view holds the memory */
    FAILS(BUSY, gpumem_resource_destroy(plain));
    OK(gpumem_buffer_free(NULL, NULL));
    DESTROY(view, plain);
    assert_int_equal(device_stats().committed_bytes, 0);
}

TEST(buffers_that_cannot_be_viewed_are_refused) {
    gpumem_buffer *view;
    gpumem_resource *plain = NEW_VIRTUAL(.handle_type = GPUMEM_HANDLE_NONE);
    gpumem_buffer *buffer = NEW_BUFFER(plain, MIB);
    FAILS(NOT_SUPPORTED, gpumem_buffer_host_view(buffer, NULL, &view));
    DESTROY(buffer, plain);
    gpumem_resource *pool = NEW_POOL();
    buffer = NEW_BUFFER(pool, MIB);
    FAILS(NOT_SUPPORTED, gpumem_buffer_host_view(buffer, NULL, &view));
    DESTROY(buffer, pool);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_host_view(NULL, NULL, &view));
}

/* ---- Threads --------------------------------------------------------------------------------- */

#define THREADS 8
#define ROUNDS  60

static void *write_and_grow(void *argument) {
    unsigned char mine = (unsigned char)(uintptr_t)argument;
    for (int round = 0; round < ROUNDS; round++) {
        gpumem_buffer *buffer = NEW_BUFFER(mapped, 2 * MIB);
        memset(host_of(buffer), mine, 4096);
        OK(gpumem_buffer_grow(buffer, 6 * MIB, NULL));
        OK(gpumem_mapped_write(buffer, 6 * MIB - 1, &mine, 1));
        assert_int_equal(byte_of(buffer, 4095), mine);
        assert_int_equal(byte_of(buffer, 6 * MIB - 1), mine);
        OK(gpumem_buffer_free(buffer, NULL));
    }
    return NULL;
}

TEST(threads_allocate_and_grow_mapped_memory_concurrently) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_and_grow, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(device_stats().allocations, 0);
}

BEFORE_TESTS_DO(keep_lavapipe_loaded());
