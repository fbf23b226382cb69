/* What tests of rings share: a ring of a few chunks, on softgpu's mappable memory. Header only. */
#ifndef UNIT_RING_TEST_H
#define UNIT_RING_TEST_H

#include "library_test.h"

static gpumem_resource *mapped;
static gpumem_ring *ring;

/* For cmocka's setup. */
static inline int begin_ring(void **state, size_t chunk_bytes, size_t chunk_count) {
    if (open_device(state) != 0)
        return -1;
    mapped = NEW_MAPPED(.method = GPUMEM_MAPPED_DESCRIPTOR, .method_strict = 1);
    OK(gpumem_ring_create(
        mapped, GPUMEM_RING_OPTIONS(.chunk_bytes = chunk_bytes, .chunk_count = chunk_count),
        &ring));
    return 0;
}

/* For its teardown: nothing is left of the ring. */
static inline int teardown(void **state) {
    OK(gpumem_ring_destroy(ring));
    OK(gpumem_resource_destroy(mapped));
    assert_int_equal(device_stats().committed_bytes, 0);
    return close_device(state);
}

#endif
