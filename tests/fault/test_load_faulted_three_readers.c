/* A load by three readers, with a fault behind each driver call. */
#include "load_sweep.h"

ALL_TESTS(begin, end);

TEST(a_faulted_load_by_three_readers_is_all_or_nothing) {
    gpumem_resource *pinned = NEW_PINNED(.keep_nothing = 1, .slab_bytes = 4 * MIB);
    sweep_load("load by three readers", SWEEP_FAULTED, 3, pinned);
    OK(gpumem_resource_destroy(pinned));
}
