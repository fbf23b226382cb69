/* A load by one reader, with a fault behind each driver call. */
#include "load_sweep.h"

static void a_faulted_load_by_one_reader_is_whole_or_nothing(void **state) {
    (void)state;
    sweep_load("load by one reader", SWEEP_FAULTED, 1, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_faulted_load_by_one_reader_is_whole_or_nothing)};
    return cmocka_run_group_tests(tests, begin, end);
}
