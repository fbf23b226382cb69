/* A load by three readers, of which each driver call is refused. */
#include "load_sweep.h"

ALL_TESTS(begin, end);

TEST(a_refused_load_by_three_readers_is_all_or_nothing) {
    gpumem_resource *pinned = NEW_PINNED(.keep_nothing = 1, .slab_bytes = 4 * MIB);
    sweep_load("load by three readers", SWEEP_REFUSED, 3, pinned);
    OK(gpumem_resource_destroy(pinned));
}
