/*
 * Whole or nothing: sweeps over the caching resource over device memory. Whichever driver call
 * fails, in whichever way, all is as it was once caches are emptied.
 */
#include "caching_sweeps.h"

ALL_TESTS(begin_sweeps, end_sweeps);

TEST_CASE(a_cache_over_a_pool_is_all_or_nothing);
TEST_CASE(a_cache_over_virtual_memory_is_all_or_nothing);
