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
        cmocka_unit_test(over_a_pool),
        cmocka_unit_test(over_virtual_memory),
    };
    return cmocka_run_group_tests(tests, begin, end_sweeps);
}
