/*
 * Whole or nothing: sweeps over the caching resource over device memory. Whichever driver call
 * fails, in whichever way, all is as it was once caches are emptied.
 */
#include "caching_sweeps.h"

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cache_over_a_pool_is_whole_or_nothing),
        cmocka_unit_test(a_cache_over_virtual_memory_is_whole_or_nothing),
    };
    return cmocka_run_group_tests(tests, begin_sweeps, end_sweeps);
}
