/* Which of two operations goes first: by priority until they have begun, in turns afterwards. */
#include "softgpu/stream/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct sg_stream low = {.priority = 0}, high = {.priority = -3};

static void priorities_count_before_the_beginning(void **state) {
    (void)state;
    struct sg_op a = {.stream = &low}, b = {.stream = &high};
    assert_false(sg_schedule_before(&a, &b));
    assert_true(sg_schedule_before(&b, &a));
    assert_false(sg_schedule_before(&a, &a));
}

static void a_priority_of_its_own_counts_more_than_the_streams(void **state) {
    (void)state;
    struct sg_op a = {.stream = &low, .has_priority = true, .priority = -5}, b = {.stream = &high};
    assert_true(sg_schedule_before(&a, &b));
    b.has_priority = true; /* 0, the least */
    a.priority = -1;
    assert_true(sg_schedule_before(&a, &b));
    assert_false(sg_schedule_before(&b, &a));
}

static void what_has_begun_takes_turns(void **state) {
    (void)state;
    struct sg_op a = {.stream = &low, .turn = 7}, b = {.stream = &high, .turn = 8};
    assert_true(sg_schedule_before(&a, &b));
    assert_false(sg_schedule_before(&b, &a));
    a.turn = 9;
    assert_true(sg_schedule_before(&b, &a));
    struct sg_op fresh = {.stream = &low};
    assert_true(sg_schedule_before(&fresh, &b));
    assert_false(sg_schedule_before(&b, &fresh));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(priorities_count_before_the_beginning),
        cmocka_unit_test(a_priority_of_its_own_counts_more_than_the_streams),
        cmocka_unit_test(what_has_begun_takes_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
