/*
 * Whole or nothing: sweeps over the caching resource over device memory. Whichever driver call
 * fails, in whichever way, all is as it was once caches are emptied.
 */
#include "caching_sweeps.h"

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_a_pool),
        cmocka_unit_test(over_virtual_memory),
    };
    return cmocka_run_group_tests(tests, begin_sweeps, end_sweeps);
}
