/* Arrays that grow: room, what is kept, and what happens when there is no more. */
#include "base/growing_array.h"

#include "refused_memory.h"

#include "test.h"
#include <stdalign.h>

TEST(growing_keeps_the_items) {
    unsigned *list = NULL;
    size_t room = 0;
    for (unsigned i = 0; i < 10000; i++) {
        assert_true(GM_RESERVE(list, room, (size_t)i + 1));
        assert_true(room > i);
        list[i] = i * 7;
    }
    for (unsigned i = 0; i < 10000; i++)
        assert_int_equal(list[i], i * 7);
    free(list);
}

TEST(growing_copies_a_logarithmic_number_of_times) {
    char *list = NULL;
    size_t room = 0;
    unsigned grown = 0;
    for (size_t i = 1; i <= 1 << 20; i++) {
        size_t before = room;
        assert_true(GM_RESERVE(list, room, i));
        grown += room != before;
        assert_true(room == before || room >= 2 * before);
    }
    assert_in_range(grown, 1, 20);
    free(list);
}

TEST(reserving_less_than_the_room_changes_nothing) {
    long *list = NULL;
    size_t room = 0;
    assert_true(GM_RESERVE(list, room, 0));
    assert_null(list);
    assert_int_equal(room, 0);
    assert_true(GM_RESERVE(list, room, 100));
    const long *before = list;
    size_t had = room;
    assert_true(GM_RESERVE(list, room, 1));
    assert_true(GM_RESERVE(list, room, had));
    assert_ptr_equal(list, before);
    assert_int_equal(room, had);
    free(list);
}

TEST(reserving_many_items_at_once_makes_room_for_all) {
    short *list = NULL;
    size_t room = 0;
    assert_true(GM_RESERVE(list, room, 1));
    assert_true(GM_RESERVE(list, room, 12345));
    assert_true(room >= 12345);
    list[12344] = 3;
    free(list);
}

TEST(items_are_aligned_for_any_type) {
    max_align_t *list = NULL;
    size_t room = 0;
    for (size_t i = 1; i < 1000; i++) {
        assert_true(GM_RESERVE(list, room, i));
        assert_int_equal((uintptr_t)list % alignof(max_align_t), 0);
    }
    free(list);
}

struct large {
    char bytes[1000];
};

TEST(a_size_that_overflows_is_refused) {
    struct large *list = NULL;
    size_t room = 0;
    assert_false(GM_RESERVE(list, room, SIZE_MAX));
    assert_false(GM_RESERVE(list, room, SIZE_MAX / sizeof *list + 1));
    assert_null(list);
    assert_int_equal(room, 0);
    assert_true(GM_RESERVE(list, room, 2));
    struct large *before = list;
    size_t had = room;
    list[1].bytes[999] = 42;
    assert_false(GM_RESERVE(list, room, SIZE_MAX / sizeof *list + 1));
    assert_ptr_equal(list, before);
    assert_int_equal(room, had);
    assert_int_equal(list[1].bytes[999], 42);
    free(list);
}

TEST(a_failed_allocation_leaves_the_array_unchanged) {
    int *list = NULL;
    size_t room = 0;
    refuse_memory_of_threads(1);
    assert_false(GM_RESERVE(list, room, 1));
    assert_true(end_refusal());
    assert_null(list);
    assert_int_equal(room, 0);
    assert_true(GM_RESERVE(list, room, 1));
    int *before = list;
    size_t had = room;
    list[0] = 42;
    refuse_memory_of_threads(1);
    assert_false(GM_RESERVE(list, room, had + 1));
    assert_true(end_refusal());
    assert_ptr_equal(list, before);
    assert_int_equal(room, had);
    assert_int_equal(list[0], 42);
    assert_true(GM_RESERVE(list, room, had + 1));
    assert_int_equal(list[0], 42);
    free(list);
}
