/*
 * Two openings of the library share the device: what one of them keeps for its next allocation, the
 * other one gets when it runs out.
 */
#include "library_test.h"
#include "run_threads.h"

#include <pthread.h>
#include <stdatomic.h>

#define HALF_AND_MORE (600 * MIB) /* of a device of 1 GiB */

/* The other opening, which the harness does not know. */
static gpumem_library *second_library;
static gpumem_device *second;

static int setup(void **state) {
    if (open_device(state) != 0 ||
        gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "softgpu"), &second_library) != GPUMEM_OK)
        return -1;
    OK(gpumem_device_open(second_library, 0, &second));
    return 0;
}

AFTER(close_device) {
    OK(gpumem_device_close(second));
    OK(gpumem_close(second_library));
}

EACH_TEST(setup, after);

static gpumem_resource *with_cache(gpumem_device *of) {
    gpumem_resource *made;
    OK(gpumem_virtual_resource_create(of, GPUMEM_VIRTUAL_OPTIONS(.cache_bytes = GIB), &made));
    return made;
}

static void fill_cache(gpumem_resource *resource, size_t bytes) {
    gpumem_buffer *buffer = NEW_BUFFER(resource, bytes);
    OK(gpumem_buffer_free(buffer, NULL));
}

static uint64_t cached(gpumem_device *of) {
    gpumem_stats stats = {.size = sizeof stats};
    OK(gpumem_device_get_stats(of, &stats));
    return stats.cached_bytes;
}

/* Allocates more than the rest of the device through the harness's opening, and looks at bytes. */
static void take_more_than_half(void) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = NEW_BUFFER(resource, HALF_AND_MORE);
    OK(gpumem_buffer_fill(buffer, 0, HALF_AND_MORE, 0x77, NULL));
    assert_int_equal(byte_of(buffer, HALF_AND_MORE - 1), 0x77);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_device_trim(device, 1));
    OK(gpumem_resource_destroy(resource));
}

TEST(cached_ranges_of_another_library_handle_are_released) {
    gpumem_resource *other = with_cache(second);
    fill_cache(other, HALF_AND_MORE);
    assert_int_equal(cached(second), HALF_AND_MORE);
    take_more_than_half();
    assert_int_equal(cached(second), 0);
    OK(gpumem_resource_destroy(other));
}

TEST(a_pool_of_another_library_handle_is_trimmed) {
    gpumem_resource *other = MADE(gpumem_resource *, gpumem_device_pool_resource_create, second,
                                  GPUMEM_DEVICE_POOL_OPTIONS(.pool = GPUMEM_POOL_OWN));
    fill_cache(other, HALF_AND_MORE);
    OK(gpumem_stream_synchronize(second, NULL));
    assert_true(cached(second) >= HALF_AND_MORE);
    take_more_than_half();
    assert_int_equal(cached(second), 0);
    OK(gpumem_resource_destroy(other));
}

TEST(a_cache_of_another_library_handle_is_emptied) {
    gpumem_resource *upstream;
    OK(gpumem_virtual_resource_create(second, NULL, &upstream));
    gpumem_resource *other = NEW_CACHING(upstream);
    gpumem_buffer *held[600];
    for (size_t i = 0; i < COUNT(held); i++)
        held[i] = NEW_BUFFER(other, MIB);
    DESTROY_EACH(held, COUNT(held));
    take_more_than_half();
    DESTROY(other, upstream);
}

/* What the other freed and queued work still holds back is waited for. */
TEST(deferred_frees_of_another_library_handle_are_waited_for) {
    gpumem_resource *other = MADE(gpumem_resource *, gpumem_virtual_resource_create, second, NULL);
    CUstream stream = MADE(CUstream, gpumem_stream_create, second, NULL);
    gpumem_buffer *buffer = NEW_BUFFER(other, HALF_AND_MORE);
    OK(gpumem_buffer_fill(buffer, 0, HALF_AND_MORE, 1, stream));
    OK(gpumem_buffer_free(buffer, stream));
    take_more_than_half();
    OK(gpumem_resource_destroy(other));
    OK(gpumem_stream_destroy(second, stream));
}

TEST(hitting_a_limit_does_not_touch_other_library_handles) {
    gpumem_resource *other = with_cache(second);
    gpumem_buffer *none;
    fill_cache(other, 64 * MIB);
    gpumem_resource *plain = NEW_VIRTUAL();
    gpumem_resource *limited = NEW_LIMIT(plain, 16 * MIB);
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_allocate(limited, 32 * MIB, NULL, &none));
    assert_int_equal(cached(second), 64 * MIB);
    DESTROY(limited, plain, other);
}

TEST(trimming_does_not_touch_other_library_handles) {
    gpumem_resource *other = with_cache(second);
    fill_cache(other, 64 * MIB);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(cached(second), 64 * MIB);
    OK(gpumem_resource_destroy(other));
}

TEST(other_devices_keep_their_caches) {
    gpumem_device *neighbour = MADE(gpumem_device *, gpumem_device_open, second_library, 1);
    gpumem_resource *apart = with_cache(neighbour), *other = with_cache(second);
    fill_cache(apart, 64 * MIB);
    fill_cache(other, HALF_AND_MORE);
    take_more_than_half();
    assert_int_equal(cached(neighbour), 64 * MIB);
    assert_int_equal(cached(second), 0);
    DESTROY(apart, other);
    OK(gpumem_device_close(neighbour));
}

/* What is in use stays, and too much is refused. */
TEST(memory_in_use_by_another_library_handle_is_kept) {
    gpumem_resource *other = with_cache(second);
    gpumem_buffer *none;
    gpumem_buffer *kept = NEW_BUFFER(other, HALF_AND_MORE);
    OK(gpumem_buffer_fill(kept, 0, HALF_AND_MORE, 3, NULL));
    gpumem_resource *mine = NEW_VIRTUAL();
    FAILS(OUT_OF_MEMORY, gpumem_buffer_allocate(mine, HALF_AND_MORE, NULL, &none));
    assert_int_equal(byte_of(kept, HALF_AND_MORE - 1), 3);
    DESTROY(kept, mine, other);
}

/* ---- Threads --------------------------------------------------------------------------------- */

#define ROUNDS 40

/* Opens, caches and closes again and again, while others run out and look at it. */
static void *come_and_go(void *argument) {
    atomic_size_t *failed = argument;
    for (int i = 0; i < ROUNDS; i++) {
        gpumem_library *mine = NULL;
        gpumem_device *of = NULL;
        gpumem_resource *resource = NULL;
        gpumem_buffer *buffer = NULL;
        int good = gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "softgpu"), &mine) == GPUMEM_OK &&
                   gpumem_device_open(mine, 0, &of) == GPUMEM_OK &&
                   gpumem_virtual_resource_create(of, GPUMEM_VIRTUAL_OPTIONS(.cache_bytes = GIB),
                                                  &resource) == GPUMEM_OK;
        if (good && gpumem_buffer_allocate(resource, 400 * MIB, NULL, &buffer) == GPUMEM_OK)
            good = gpumem_buffer_free(buffer, NULL) == GPUMEM_OK;
        if (gpumem_resource_destroy(resource) != GPUMEM_OK ||
            gpumem_device_close(of) != GPUMEM_OK || gpumem_close(mine) != GPUMEM_OK)
            good = 0;
        if (!good)
            atomic_fetch_add(failed, 1);
    }
    return NULL;
}

TEST(threads_open_and_close_libraries_concurrently) {
    atomic_size_t failed = 0;
    char *before = soft->state_dump();
    run_threads(3, come_and_go, &failed, 0);
    assert_int_equal(failed, 0);
    SAME_STATE(before);
}

BEFORE_TESTS {
    setenv("SOFTGPU_MEMORY", "1G", 1);
    setenv("SOFTGPU_DEVICES", "2", 1);
    return 0;
}
