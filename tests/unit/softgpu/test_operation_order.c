/* Which of two operations goes first: by priority until they have begun, in turns afterwards. */
#include "softgpu/stream/schedule.h"

#include "test.h"

static struct sg_stream low = {.priority = 0}, high = {.priority = -3};

TEST(priority_decides_between_operations_not_yet_begun) {
    struct sg_op a = {.stream = &low}, b = {.stream = &high};
    assert_false(sg_schedule_before(&a, &b));
    assert_true(sg_schedule_before(&b, &a));
    assert_false(sg_schedule_before(&a, &a));
}

TEST(an_operations_own_priority_overrides_its_streams) {
    struct sg_op a = {.stream = &low, .has_priority = true, .priority = -5}, b = {.stream = &high};
    assert_true(sg_schedule_before(&a, &b));
    b.has_priority = true; /* 0, the least */
    a.priority = -1;
    assert_true(sg_schedule_before(&a, &b));
    assert_false(sg_schedule_before(&b, &a));
}

TEST(operations_that_have_begun_take_turns) {
    struct sg_op a = {.stream = &low, .turn = 7}, b = {.stream = &high, .turn = 8};
    assert_true(sg_schedule_before(&a, &b));
    assert_false(sg_schedule_before(&b, &a));
    a.turn = 9;
    assert_true(sg_schedule_before(&b, &a));
    struct sg_op fresh = {.stream = &low};
    assert_true(sg_schedule_before(&fresh, &b));
    assert_false(sg_schedule_before(&b, &fresh));
}
