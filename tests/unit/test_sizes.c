/* Sizes near the end of what a size_t holds: refused with nothing left, never rounded to little. */
#include "library_test.h"

#include <limits.h>

EACH_TEST(open_device, close_device);

static const size_t huge[] = {SIZE_MAX, SIZE_MAX - 255, SIZE_MAX - 2 * MIB + 1, SIZE_MAX / 2 + 1,
                              SIZE_MAX / 4};

static int ran_out(gpumem_status status) {
    return status == GPUMEM_ERROR_OUT_OF_MEMORY || status == GPUMEM_ERROR_OUT_OF_HOST_MEMORY ||
           status == GPUMEM_ERROR_OUT_OF_CAPACITY;
}

static void check_refused(gpumem_resource *resource, size_t bytes, size_t alignment,
                          size_t capacity) {
    gpumem_buffer *none = (gpumem_buffer *)&huge;
    gpumem_status status = gpumem_buffer_allocate(
        resource, bytes, GPUMEM_BUFFER_OPTIONS(.alignment = alignment, .capacity = capacity),
        &none);
    if (!ran_out(status) && status != GPUMEM_ERROR_DRIVER)
        fail_msg("%zu bytes, alignment %zu, capacity %zu: %s, %s", bytes, alignment, capacity,
                 gpumem_status_name(status), gpumem_last_error()->message);
    assert_ptr_equal(none, &huge);
}

/* Destroys the resource. */
static void refuse_huge(gpumem_resource *resource) {
    uint64_t failed = device_stats().allocations_failed;
    OK(gpumem_device_trim(device, 0)); /* events of earlier frees: a refusal drops them too */
    char *before = soft->state_dump();
    for (size_t i = 0; i < COUNT(huge); i++) {
        check_refused(resource, huge[i], 0, 0);
        check_refused(resource, huge[i], 2 * MIB, 0);
        check_refused(resource, huge[i], (size_t)1 << 63, 0);
    }
    SAME_STATE(before);
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (allocations, 0), (in_use_bytes, 0), (committed_bytes, stats.cached_bytes),
            (reserved_bytes, 0), (quarantined, 0), (allocations_failed, failed + 3 * COUNT(huge)));
    OK(gpumem_resource_destroy(resource));
}

TEST(pools_refuse_impossible_sizes) {
    gpumem_resource *resource = NEW_POOL();
    refuse_huge(resource);
    resource = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    refuse_huge(resource);
    resource = NEW_PINNED(.method = GPUMEM_PINNED_POOL);
    refuse_huge(resource);
}

TEST(pinned_memory_refuses_impossible_sizes) {
    gpumem_resource *resource = NEW_PINNED();
    refuse_huge(resource);
    resource = NEW_PINNED(.method = GPUMEM_PINNED_ALLOCATED);
    refuse_huge(resource);
}

TEST(virtual_memory_refuses_impossible_sizes) {
    gpumem_resource *resource = NEW_VIRTUAL();
    for (size_t i = 0; i < COUNT(huge); i++)
        check_refused(resource, 2 * MIB, 0, huge[i]);
    gpumem_buffer *buffer = NEW_BUFFER(resource, 2 * MIB);
    for (size_t i = 0; i < COUNT(huge); i++)
        FAILS(OUT_OF_CAPACITY, gpumem_buffer_grow(buffer, huge[i], NULL));
    DESTROY(buffer, resource);
    resource = NEW_VIRTUAL();
    refuse_huge(resource);
}

TEST(a_limit_refuses_impossible_sizes) {
    gpumem_resource *pool = NEW_POOL();
    gpumem_resource *limit = NEW_LIMIT(pool, UINT64_MAX);
    refuse_huge(limit);
    OK(gpumem_resource_destroy(pool));
}

/* "As large as can be" is how a program says that it wants one handle. */
TEST(the_largest_chunk_and_growth_options_mean_unlimited) {
    gpumem_resource *resource = NEW_VIRTUAL(.maximum_chunk_bytes = SIZE_MAX - 2 * MIB + 1,
                                            .growth_percent = UINT_MAX, .capacity = 64 * MIB);
    gpumem_buffer *buffer = NEW_BUFFER(resource, 6 * MIB);
    assert_int_equal(chunks_of(buffer), 1);
    OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL));
    assert_int_equal(chunks_of(buffer), 2);
    OK(gpumem_buffer_fill(buffer, 0, 8 * MIB, 1, NULL));
    synchronize(NULL);
    DESTROY(buffer, resource);
}

TEST(low_level_objects_refuse_impossible_sizes) {
    gpumem_reservation *reservation;
    gpumem_physical *physical;
    gpumem_mapping *mapping;
    const size_t whole = SIZE_MAX - 2 * MIB + 1; /* a multiple of the granularity */
    assert_int_not_equal(gpumem_reservation_create(device, whole, NULL, &reservation), GPUMEM_OK);
    assert_int_not_equal(gpumem_physical_create(device, whole, NULL, &physical), GPUMEM_OK);
    OK(gpumem_reservation_create(device, 4 * MIB, NULL, &reservation));
    OK(gpumem_physical_create(device, 4 * MIB, NULL, &physical));
    FAILS(INVALID_ARGUMENT, gpumem_mapping_create(reservation, whole, physical, &mapping));
    DESTROY(physical, reservation);
}

/* What the driver allocates begins at a page, and not at a larger unit. */
TEST(a_buffer_of_a_whole_slab_can_be_aligned) {
    gpumem_buffer *buffers[4];
    gpumem_resource *resource =
        NEW_PINNED(.method = GPUMEM_PINNED_ALLOCATED, .slab_bytes = 2 * MIB);
    for (size_t i = 0; i < COUNT(buffers); i++) {
        buffers[i] = NEW_BUFFER_WITH(resource, 2 * MIB, .alignment = 2 * MIB);
        assert_int_equal(gpumem_buffer_pointer(buffers[i]) % (2 * MIB), 0);
    }
    DESTROY_EACH(buffers, COUNT(buffers));
    OK(gpumem_resource_destroy(resource));
}

TEST(options_with_an_uninitialized_size_are_refused) {
    gpumem_resource *none;
    gpumem_device_pool_options options = {.size = SIZE_MAX};
    FAILS(INVALID_ARGUMENT, gpumem_device_pool_resource_create(device, &options, &none));
    SAYS("sizeof(gpumem_device_pool_options)");
}
