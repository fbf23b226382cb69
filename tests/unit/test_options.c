/* How versioned structs are read and written. */
#include "base/options.h"
#include "library_test.h"

struct grown {
    gpumem_buffer_options known;
    size_t future;
};

static void null_and_zero_mean_default(void **state) {
    (void)state;
    gpumem_buffer_options out, zero = {0};
    OK(gm_options_read("options", NULL, &out, sizeof out));
    assert_int_equal(out.size, sizeof out);
    assert_int_equal(out.capacity, 0);
    OK(gm_options_read("options", &zero, &out, sizeof out));
    assert_int_equal(out.size, sizeof out);
}

static void a_missing_size_is_noticed(void **state) {
    (void)state;
    gpumem_buffer_options out, given = {.capacity = 1};
    FAILS(INVALID_ARGUMENT, gm_options_read("options", &given, &out, sizeof out));
    SAYS("size is 0");
    given.size = 8;
    FAILS(INVALID_ARGUMENT, gm_options_read("options", &given, &out, sizeof out));
}

static void later_versions_are_read_as_far_as_they_are_known(void **state) {
    (void)state;
    gpumem_buffer_options out;
    struct grown given = {.known = {.size = sizeof given, .capacity = 5}};
    OK(gm_options_read("options", &given, &out, sizeof out));
    assert_int_equal(out.capacity, 5);
    assert_int_equal(out.size, sizeof out);
    given.future = 1;
    FAILS(INVALID_ARGUMENT, gm_options_read("options", &given, &out, sizeof out));
    SAYS("does not know");
}

static void results_keep_the_callers_size(void **state) {
    (void)state;
    struct grown result = {.known = {.size = sizeof result}, .future = 9};
    gpumem_buffer_options filled = {.size = sizeof filled, .capacity = 5};
    OK(gm_result_write("result", &result, &filled, sizeof filled));
    assert_int_equal(result.known.size, sizeof result);
    assert_int_equal(result.known.capacity, 5);
    assert_int_equal(result.future, 9);
    FAILS(INVALID_ARGUMENT, gm_result_write("result", NULL, &filled, sizeof filled));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_and_zero_mean_default),
        cmocka_unit_test(a_missing_size_is_noticed),
        cmocka_unit_test(later_versions_are_read_as_far_as_they_are_known),
        cmocka_unit_test(results_keep_the_callers_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
