/* A load by one reader, of which each driver call is refused. */
#include "load_sweep.h"

static void a_refused_load_by_one_reader_is_whole_or_nothing(void **state) {
    (void)state;
    sweep_load("load by one reader", SWEEP_REFUSED, 1, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_load_by_one_reader_is_whole_or_nothing)};
    return cmocka_run_group_tests(tests, begin, end);
}
