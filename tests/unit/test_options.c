/* How versioned structs are read and written. */
#include "base/options.h"
#include "library_test.h"

struct grown {
    gpumem_buffer_options known;
    size_t future;
};

TEST(null_and_zeroed_options_mean_the_defaults) {
    gpumem_buffer_options out, zero = {0};
    OK(GM_OPTIONS_READ(gpumem_buffer_options, NULL, &out));
    MEMBERS(out, (size, sizeof out), (capacity, 0));
    OK(GM_OPTIONS_READ(gpumem_buffer_options, &zero, &out));
    assert_int_equal(out.size, sizeof out);
}

TEST(options_without_a_size_are_refused) {
    gpumem_buffer_options out, given = {.capacity = 1};
    FAILS(INVALID_ARGUMENT, GM_OPTIONS_READ(gpumem_buffer_options, &given, &out));
    SAYS("size is 0");
    given.size = 8;
    FAILS(INVALID_ARGUMENT, GM_OPTIONS_READ(gpumem_buffer_options, &given, &out));
}

TEST(newer_options_are_read_if_their_unknown_members_are_zero) {
    gpumem_buffer_options out;
    struct grown given = {.known = {.size = sizeof given, .capacity = 5}};
    OK(GM_OPTIONS_READ(gpumem_buffer_options, &given.known, &out));
    MEMBERS(out, (capacity, 5), (size, sizeof out));
    given.future = 1;
    FAILS(INVALID_ARGUMENT, GM_OPTIONS_READ(gpumem_buffer_options, &given.known, &out));
    SAYS("does not know");
}

TEST(writing_a_result_keeps_the_callers_size) {
    struct grown result = {.known = {.size = sizeof result}, .future = 9};
    gpumem_buffer_options filled = {.size = sizeof filled, .capacity = 5};
    OK(GM_RESULT_WRITE(gpumem_buffer_options, &result.known, &filled));
    MEMBERS(result.known, (size, sizeof result), (capacity, 5));
    assert_int_equal(result.future, 9);
    FAILS(INVALID_ARGUMENT, GM_RESULT_WRITE(gpumem_buffer_options, NULL, &filled));
}

/* A struct that had 16 bytes when it was first released, and has 32 since. */
struct sample {
    size_t size, first, second, third;
};

static const struct gm_versioned sample = {"sample", 16, sizeof(struct sample)};

/* What lies behind an older struct is somebody else's. */
TEST(older_options_are_read_up_to_their_size) {
    struct sample given = {.first = 7, .second = 8, .third = 9}, out;
    for (size_t size = 16; size <= sizeof given; size += 8) {
        given.size = size;
        OK(gm_options_read(&sample, &given, &out));
        MEMBERS(out, (size, sizeof out), (first, 7), (second, size >= 24 ? 8 : 0),
                (third, size >= 32 ? 9 : 0));
    }
    for (given.size = 1; given.size < 16; given.size++) {
        FAILS_SAYING(INVALID_ARGUMENT, "sample: size is", gm_options_read(&sample, &given, &out));
        SAYS("less than 16");
    }
    given.size = 0;
    FAILS(INVALID_ARGUMENT, gm_options_read(&sample, &given, &out));
    given.first = 0; /* all zero, as far as every version goes */
    OK(gm_options_read(&sample, &given, &out));
    assert_int_equal(out.second + out.third, 0);
}

TEST(older_results_are_written_up_to_their_size) {
    const struct sample filled = {sizeof filled, 1, 2, 3};
    struct sample result;
    for (size_t size = 16; size <= sizeof result; size += 8) {
        result = (struct sample){size, 90, 91, 92};
        OK(gm_result_check(&sample, &result));
        OK(gm_result_write(&sample, &result, &filled));
        MEMBERS(result, (size, size), (first, 1), (second, size >= 24 ? 2 : 91),
                (third, size >= 32 ? 3 : 92));
    }
    result = (struct sample){15, 90, 91, 92};
    FAILS(INVALID_ARGUMENT, gm_result_check(&sample, &result));
    FAILS_SAYING(INVALID_ARGUMENT, "size is 15", gm_result_write(&sample, &result, &filled));
    assert_int_equal(result.first, 90);
}
