/* A load by one reader, of which each driver call is refused. */
#include "load_sweep.h"

ALL_TESTS(begin, end);

TEST_IS(a_refused_load_by_one_reader_is_all_or_nothing,
        sweep_load("load by one reader", SWEEP_REFUSED, 1, NULL));
