/* Two openings of the library on one device: what one keeps, the other gets when it runs out. */
#include "library.h"

static gpumem_library *second_library;
static gpumem_device *second;

static void open_both(void) {
    open_library();
    OK(gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = soft ? "softgpu" : NULL), &second_library));
    OK(gpumem_device_open(second_library, 0, &second));
}

static void close_both(void) {
    OK(gpumem_device_close(second));
    OK(gpumem_close(second_library));
}

/* More than half of what is free, so that it is there once and not twice. */
static size_t more_than_half(void) {
    uint64_t free_bytes, total;
    OK(gpumem_device_get_memory(device, &free_bytes, &total));
    return (size_t)(free_bytes / 10 * 6) / (2 * MIB) * (2 * MIB);
}

static uint64_t cached(gpumem_device *of) {
    gpumem_stats stats = {.size = sizeof stats};
    OK(gpumem_device_get_stats(of, &stats));
    return stats.cached_bytes;
}

static void take_through_the_first(size_t bytes) {
    unsigned char last = 0;
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = NEW_BUFFER(resource, bytes);
    OK(gpumem_buffer_fill(buffer, bytes - MIB, MIB, 0x6b, NULL));
    OK(read_now(buffer, bytes - 1, &last, 1, NULL));
    assert_int_equal(last, 0x6b);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_device_trim(device, 1));
    OK(gpumem_resource_destroy(resource));
}

TEST(cached_ranges_are_released_to_another_library_handle) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
    open_both();
    size_t bytes = more_than_half();
    gpumem_resource *other = MADE(gpumem_resource *, gpumem_virtual_resource_create, second,
                                  GPUMEM_VIRTUAL_OPTIONS(.cache_bytes = bytes));
    gpumem_buffer *buffer = NEW_BUFFER(other, bytes);
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(cached(second), bytes);
    take_through_the_first(bytes);
    assert_int_equal(cached(second), 0);
    OK(gpumem_resource_destroy(other));
    close_both();
}

TEST(a_pool_is_trimmed_for_another_library_handle) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
    open_both();
    size_t bytes = more_than_half();
    gpumem_resource *other = MADE(gpumem_resource *, gpumem_device_pool_resource_create, second,
                                  GPUMEM_DEVICE_POOL_OPTIONS(.pool = GPUMEM_POOL_OWN));
    gpumem_buffer *buffer = NEW_BUFFER(other, bytes);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_stream_synchronize(second, NULL));
    assert_true(cached(second) >= bytes);
    take_through_the_first(bytes);
    assert_int_equal(cached(second), 0);
    OK(gpumem_resource_destroy(other));
    close_both();
}

BEFORE_TESTS_DO(setenv("SOFTGPU_MEMORY", "1G", 1));
