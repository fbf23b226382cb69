/* A cache over virtual memory on a small device with few addresses. */
#include "caching_test.h"

static int begin(void **state) {
    setenv("SOFTGPU_ADDRESS_SPACE", "64G", 1);
    setenv("SOFTGPU_MEMORY", "512M", 1);
    return open_device(state);
}

ALL_TESTS(begin, close_device);

#define STREAMS 2000

/* Ranges of the usual sizes for each would be 2,500 GiB. */
TEST(thousands_of_streams_share_few_addresses) {
    gpumem_resource *upstream = NEW_VIRTUAL(), *cache = NEW_CACHING(upstream);
    CUstream *streams = calloc(STREAMS, sizeof *streams);
    for (size_t i = 0; i < STREAMS; i++) {
        streams[i] = NEW_STREAM();
        gpumem_buffer *buffers[] = {allocate_on(cache, 4 * KIB, streams[i]),
                                    allocate_on(cache, 3 * MIB, streams[i])};
        OK(gpumem_buffer_fill(buffers[1], 0, 3 * MIB, 1, streams[i]));
        DESTROY_EACH(buffers, COUNT(buffers));
        synchronize(streams[i]);
    }
    assert_true(stats_of(cache).committed_high <= 32 * MIB);
    for (size_t i = 0; i < STREAMS; i++)
        DESTROY(streams[i]);
    OK(gpumem_resource_trim(cache, 0));
    assert_int_equal(stats_of(cache).reserved_bytes, 0);
    free(streams);
    DESTROY(cache, upstream);
}

#define PARTS 32

/* None of its segments is wholly free. */
TEST(pressure_from_other_resources_takes_any_free_page) {
    gpumem_resource *upstream = NEW_VIRTUAL(), *cache = NEW_CACHING(upstream);
    gpumem_resource *others[] = {NEW_VIRTUAL(), new_own_pool()};
    gpumem_buffer *parts[PARTS];
    for (size_t i = 0; i < PARTS; i++)
        parts[i] = allocate_on(cache, 12 * MIB, NULL);
    for (size_t i = 0; i < PARTS; i++)
        if (i % 4) {
            OK(gpumem_buffer_free(parts[i], NULL));
            parts[i] = NULL;
        }
    synchronize(NULL);
    for (size_t i = 0; i < COUNT(others); i++)
        DESTROY(allocate_on(others[i], 320 * MIB, NULL), others[i]);
    assert_true(stats_of(cache).committed_bytes <= 160 * MIB);
    DESTROY_EACH(parts, PARTS);
    DESTROY(cache, upstream);
}
