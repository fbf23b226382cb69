/* Clocks of the race checker, beside plain arrays. */
#include "kernel.h"

#include "softgpu/check/race_clock.h"

enum { BLOCKS = 40, WARPS = 3, THREADS = BLOCKS * WARPS * 32, CLOCKS = 6 };

static uint64_t random_state;

static uint32_t draw(uint32_t limit) {
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(random_state >> 33) % limit;
}

static uint64_t key_of(unsigned thread) {
    return SG_CLOCK_KEY(thread / 32 / WARPS, thread / 32 % WARPS, thread % 32);
}

static void raise_both(sg_clock *clock, uint32_t *plain, uint32_t moment, bool *failed) {
    unsigned thread = draw(THREADS), level = draw(3);
    unsigned span = level == SG_CLOCK_LANE ? 1 : level == SG_CLOCK_WARP ? 32 : 32 * WARPS;
    sg_clock_raise(clock, sg_clock_levels(BLOCKS), key_of(thread), level, moment, failed);
    for (unsigned t = thread / span * span; t < thread / span * span + span; t++)
        plain[t] = plain[t] > moment ? plain[t] : moment;
}

static void holds(sg_clock clock, const uint32_t *plain) {
    for (unsigned t = 0; t < THREADS; t++)
        if (sg_clock_of(clock, sg_clock_levels(BLOCKS), key_of(t)) != plain[t])
            fail_msg("thread %u: %u instead of %u", t,
                     sg_clock_of(clock, sg_clock_levels(BLOCKS), key_of(t)), plain[t]);
}

TEST(vector_clocks_agree_with_plain_arrays) {
    static uint32_t plain[CLOCKS][THREADS];
    sg_clock clocks[CLOCKS] = {0};
    bool failed = false;
    for (uint32_t turn = 1; turn < 600; turn++) {
        unsigned a = draw(CLOCKS), b = draw(CLOCKS);
        if (draw(3)) {
            raise_both(&clocks[a], plain[a], draw(turn) + 1, &failed);
        } else {
            sg_clock_add(&clocks[a], clocks[b], &failed);
            for (unsigned t = 0; t < THREADS; t++)
                plain[a][t] = plain[a][t] > plain[b][t] ? plain[a][t] : plain[b][t];
        }
        holds(clocks[a], plain[a]);
        holds(clocks[b], plain[b]);
    }
    assert_false(failed);
    for (unsigned i = 0; i < CLOCKS; i++)
        sg_clock_drop(clocks[i]);
}

TEST(joining_a_smaller_clock_returns_the_larger_one) {
    sg_clock big = 0, small = 0;
    bool failed = false;
    sg_clock_raise(&big, 4, key_of(5), SG_CLOCK_LANE, 9, &failed);
    sg_clock_raise(&small, 4, key_of(5), SG_CLOCK_LANE, 3, &failed);
    sg_clock joined = sg_clock_join(big, small, &failed);
    assert_true(joined == big);
    sg_clock_drop(joined);
    sg_clock_drop(big);
    sg_clock_drop(small);
    assert_false(failed);
}

/* A step of a sequence stands for the earlier ones, whichever is joined into which. */
TEST(joining_steps_of_one_sequence_keeps_the_later_step) {
    sg_clock first = 0, second = 0, other = 0;
    bool failed = false;
    sg_clock_raise(&first, 4, key_of(5), SG_CLOCK_LANE, 9, &failed);
    sg_clock_mark(first, 1, 1);
    sg_clock_raise(&other, 4, key_of(6), SG_CLOCK_LANE, 7, &failed);
    sg_clock_mark(other, 2, 1);
    second = sg_clock_join(first, other, &failed);
    assert_true(second != first && second != other);
    sg_clock_mark(second, 1, 2);
    sg_clock_mark(second, 2, 0); /* it stays where it is */
    sg_clock early = sg_clock_join(second, first, &failed);
    sg_clock late = sg_clock_join(first, second, &failed);
    assert_true(early == second && late == second);
    sg_clock both = sg_clock_join(second, other, &failed); /* of two sequences: compared */
    assert_int_equal(sg_clock_of(both, 4, key_of(5)), 9);
    assert_int_equal(sg_clock_of(both, 4, key_of(6)), 7);
    assert_false(failed);
    sg_clock all[] = {first, second, other, early, late, both};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        sg_clock_drop(all[i]);
}
