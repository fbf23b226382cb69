/*
 * The sweeps over the caching resource, over device memory, while queued work waits: frees find
 * their streams busy. Of the faults those that leave the device well; behind the others nothing
 * queued would run any more.
 */
#include "caching_sweeps.h"

static int begin(void **state) {
    part = SWEEP_REFUSED;
    return open_late_device(state);
}

ALL_TESTS(begin, end_sweeps);

TEST_CASE(a_cache_over_a_pool_is_all_or_nothing);
TEST_CASE(a_cache_over_virtual_memory_is_all_or_nothing);
