/*
 * Whole or nothing: sweeps over the caching resource over memory that the CPU writes. Whichever
 * driver call fails, in whichever way, all is as it was once caches are emptied.
 */
#include "caching_sweeps.h"

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_pinned_memory),
        cmocka_unit_test(over_managed_memory),
    };
    return cmocka_run_group_tests(tests, begin_sweeps, end_sweeps);
}
