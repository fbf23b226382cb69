/* A load by one reader, with a fault behind each driver call. */
#include "load_sweep.h"

ALL_TESTS(begin, end);

TEST_IS(a_faulted_load_by_one_reader_is_all_or_nothing,
        sweep_load("load by one reader", SWEEP_FAULTED, 1, NULL));
