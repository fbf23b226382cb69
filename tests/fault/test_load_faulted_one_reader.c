/* A load by one reader, with a fault behind each driver call. */
#include "load_sweep.h"

static void one_reader(void **state) {
    (void)state;
    sweep_load("load by one reader", SWEEP_FAULTED, 1, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_reader)};
    return cmocka_run_group_tests(tests, begin, end);
}
