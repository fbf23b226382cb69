/* The allocator of page runs: nothing is handed out twice, everything comes back, neighbours merge.
 */
#include "softgpu/address/extent.h"

#include "test.h"

#define PAGES 4096
#define RUNS  600

static unsigned random_number(void) {
    static uint64_t x = 362436069362436069u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (unsigned)(x >> 20);
}

static bool taken[PAGES];

static void mark(uint64_t start, uint64_t pages, bool to) {
    for (uint64_t i = start; i < start + pages; i++) {
        assert_true(i < PAGES);
        assert_true(taken[i] != to);
        taken[i] = to;
    }
}

TEST(random_allocations_never_overlap) {
    static struct sg_extents extents;
    uint64_t start[RUNS] = {0}, pages[RUNS] = {0};
    assert_true(sg_extents_add(&extents, 0, PAGES));
    for (unsigned round = 0; round < 20000; round++) {
        unsigned i = random_number() % RUNS;
        if (pages[i]) {
            mark(start[i], pages[i], false);
            sg_extents_give(&extents, start[i], pages[i]);
            pages[i] = 0;
            continue;
        }
        uint64_t want = random_number() % 20 + 1, align = 1u << random_number() % 5;
        bool got = random_number() % 2 ? sg_extents_take(&extents, want, align, &start[i])
                                       : sg_extents_take_apart(&extents, want, align, &start[i]);
        if (!got)
            continue;
        assert_int_equal(start[i] % align, 0);
        pages[i] = want;
        mark(start[i], want, true);
    }
    for (unsigned i = 0; i < RUNS; i++)
        if (pages[i])
            sg_extents_give(&extents, start[i], pages[i]);
    uint64_t all;
    assert_true(sg_extents_free_at(&extents, 0, PAGES));
    assert_true(sg_extents_take(&extents, PAGES, 1, &all));
    assert_int_equal(extents.by_start.count, 0);
}

TEST(a_requested_range_is_given_if_it_is_free) {
    static struct sg_extents extents;
    uint64_t start;
    assert_true(sg_extents_add(&extents, 100, 50));
    assert_true(sg_extents_take_at(&extents, 110, 10));
    assert_false(sg_extents_take_at(&extents, 119, 2));
    assert_false(sg_extents_take_at(&extents, 145, 10));
    assert_false(sg_extents_take_at(&extents, 90, 20));
    assert_true(sg_extents_take(&extents, 10, 1, &start));
    assert_int_equal(start, 100);
    sg_extents_give(&extents, 110, 10);
    assert_true(sg_extents_take(&extents, 40, 1, &start));
    assert_int_equal(start, 110);
}

TEST(adjacent_regions_merge) {
    static struct sg_extents extents;
    uint64_t start;
    assert_true(sg_extents_add(&extents, 0, 10));
    assert_true(sg_extents_add(&extents, 20, 10));
    assert_false(sg_extents_take(&extents, 25, 1, &start));
    assert_true(sg_extents_add(&extents, 10, 10));
    assert_true(sg_extents_take(&extents, 30, 1, &start));
    assert_int_equal(start, 0);
}

/* The smallest hole that fits, or none but one of the very size: the two ways of choosing. */
TEST(allocation_takes_the_smallest_hole_that_fits) {
    static struct sg_extents extents;
    uint64_t start;
    assert_true(sg_extents_add(&extents, 0, 1000));
    assert_true(sg_extents_take_at(&extents, 4, 1));
    assert_true(sg_extents_take_at(&extents, 13, 1));
    assert_true(sg_extents_take_apart(&extents, 2, 1, &start));
    assert_int_equal(start, 14);
    assert_true(sg_extents_take_apart(&extents, 4, 1, &start));
    assert_int_equal(start, 0);
    assert_true(sg_extents_take(&extents, 2, 1, &start));
    assert_int_equal(start, 5);
}
