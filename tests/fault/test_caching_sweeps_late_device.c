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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cache_over_a_pool_is_whole_or_nothing),
        cmocka_unit_test(a_cache_over_virtual_memory_is_whole_or_nothing),
    };
    return cmocka_run_group_tests(tests, begin, end_sweeps);
}
