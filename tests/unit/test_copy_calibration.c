/* Calibration: the plan is what the timings say, and holds only what was measured. */
#include "mapped/copy/copy.h"
#include "test.h"

#include <time.h>

#define SIZE ((size_t)1 << 16)

static _Alignas(64) unsigned char mapped[SIZE], pageable[SIZE], pinned[SIZE];
static const size_t sizes[] = {8, 64, 4096, SIZE};
#define SIZES ((unsigned)(sizeof sizes / sizeof sizes[0]))

struct driver {
    unsigned stores, loads;
    unsigned fail_at; /* the call that fails, from 1; 0 none */
};

static bool driver_store(void *user, void *host, size_t bytes) {
    struct driver *driver = user;
    memcpy(mapped, host, bytes);
    return ++driver->stores + driver->loads != driver->fail_at;
}

static bool driver_load(void *user, void *host, size_t bytes) {
    struct driver *driver = user;
    memcpy(host, mapped, bytes);
    return driver->stores + ++driver->loads != driver->fail_at;
}

static struct gm_copy_subject subject_of(struct driver *driver) {
    return (struct gm_copy_subject){.mapped = mapped,
                                    .pageable = pageable,
                                    .pinned = pinned,
                                    .size = SIZE,
                                    .driver_store = driver ? driver_store : NULL,
                                    .driver_load = driver ? driver_load : NULL,
                                    .user = driver,
                                    .nanoseconds = 100000};
}

static void check_choice(const struct gm_copy_timing *timings, enum gm_copy_kernel kernel,
                         unsigned direction) {
    double chosen = direction == GM_COPY_STORE ? timings[kernel].store : timings[kernel].load;
    assert_true(gm_copy_kernel_can(kernel, direction));
    assert_true(chosen > 0);
    for (int i = 0; i < GM_COPY_KERNEL_COUNT; i++) {
        double other = direction == GM_COPY_STORE ? timings[i].store : timings[i].load;
        assert_int_equal(other >= 0, gm_copy_kernel_can((enum gm_copy_kernel)i, direction));
        assert_false(other >= 0 && other < chosen);
    }
}

TEST(calibration_picks_the_fastest_measured_kernels) {
    struct driver driver = {0};
    struct gm_copy_subject subject = subject_of(&driver);
    struct gm_copy_plan plan;
    struct gm_copy_timings timings;
    assert_int_equal(gm_copy_calibrate(&subject, sizes, SIZES, &plan, &timings), GM_COPY_MEASURED);
    assert_int_equal(plan.class_count, SIZES);
    for (unsigned i = 0; i < SIZES; i++) {
        assert_int_equal(plan.classes[i].bytes, sizes[i]);
        check_choice(timings.kernels[i], plan.classes[i].store, GM_COPY_STORE);
        check_choice(timings.kernels[i], plan.classes[i].load, GM_COPY_LOAD);
        assert_true(timings.driver_pinned[i].store > 0 && timings.driver_pinned[i].load > 0);
        assert_true(timings.driver_pageable[i].store > 0 && timings.driver_pageable[i].load > 0);
    }
    assert_true(driver.stores >= 2 * 3 * SIZES && driver.loads >= 2 * 3 * SIZES);
}

TEST(without_a_driver_no_copy_goes_to_the_driver) {
    struct gm_copy_subject subject = subject_of(NULL);
    struct gm_copy_plan plan;
    assert_int_equal(gm_copy_calibrate(&subject, sizes, SIZES, &plan, NULL), GM_COPY_MEASURED);
    assert_true(plan.store.pinned == GM_COPY_NEVER && plan.store.pageable == GM_COPY_NEVER);
    assert_true(plan.load.pinned == GM_COPY_NEVER && plan.load.pageable == GM_COPY_NEVER);
}

TEST(without_pinned_memory_pageable_memory_is_measured) {
    struct driver driver = {0};
    struct gm_copy_subject subject = subject_of(&driver);
    struct gm_copy_plan plan;
    struct gm_copy_timings timings;
    subject.pinned = NULL;
    assert_int_equal(gm_copy_calibrate(&subject, sizes, SIZES, &plan, &timings), GM_COPY_MEASURED);
    assert_true(plan.store.pinned == GM_COPY_NEVER && plan.load.pinned == GM_COPY_NEVER);
    assert_true(timings.driver_pinned[0].store < 0 && timings.driver_pageable[0].store > 0);
}

/* Each of the driver's copies in turn: the plan stays what it was. */
TEST(a_failing_driver_copy_ends_the_calibration) {
    for (unsigned call = 1; call < 200; call += call < 20 ? 1 : 37) {
        struct driver driver = {.fail_at = call};
        struct gm_copy_subject subject = subject_of(&driver);
        struct gm_copy_plan plan = {.class_count = 77};
        subject.nanoseconds = 0;
        enum gm_copy_outcome outcome = gm_copy_calibrate(&subject, sizes, SIZES, &plan, NULL);
        if (outcome == GM_COPY_MEASURED) {
            assert_true(driver.stores + driver.loads < call);
            break;
        }
        assert_int_equal(outcome, GM_COPY_DRIVER_FAILED);
        assert_int_equal(plan.class_count, 77);
        assert_int_equal(driver.stores + driver.loads, call);
    }
}

TEST(invalid_size_classes_are_refused) {
    static const size_t same[] = {8, 8}, falling[] = {64, 8}, zero[] = {0, 8},
                        large[] = {8, SIZE + 1};
    size_t many[GM_COPY_CLASS_LIMIT + 1];
    struct gm_copy_subject subject = subject_of(NULL);
    struct gm_copy_plan plan = {.class_count = 77};
    for (size_t i = 0; i <= GM_COPY_CLASS_LIMIT; i++)
        many[i] = i + 1;
    const struct {
        const size_t *sizes;
        unsigned count;
    } cases[] = {{sizes, 0}, {same, 2},  {falling, 2},
                 {zero, 2},  {large, 2}, {many, GM_COPY_CLASS_LIMIT + 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(gm_copy_calibrate(&subject, cases[i].sizes, cases[i].count, &plan, NULL),
                         GM_COPY_BAD_SIZES);
    assert_int_equal(plan.class_count, 77);
    assert_int_equal(gm_copy_calibrate(&subject, many, 1, &plan, NULL), GM_COPY_MEASURED);
    assert_int_equal(plan.class_count, 1);
}

/* Timings by hand: what is chosen does not depend on the machine. */
TEST(the_plan_follows_from_the_timings) {
    struct gm_copy_timings timings;
    for (unsigned i = 0; i < GM_COPY_CLASS_LIMIT; i++) {
        for (int j = 0; j < GM_COPY_KERNEL_COUNT; j++)
            timings.kernels[i][j] = (struct gm_copy_timing){.store = -1, .load = -1};
        timings.kernels[i][GM_COPY_PLAIN] = (struct gm_copy_timing){.store = 10, .load = 10};
        timings.driver_pinned[i] = timings.driver_pageable[i] =
            (struct gm_copy_timing){.store = -1, .load = -1};
    }
    timings.kernels[1][GM_COPY_AVX2].store = 9;
    timings.kernels[1][GM_COPY_SSE41].load = 11;
    timings.kernels[2][GM_COPY_AVX512] = (struct gm_copy_timing){.store = 5, .load = 4};
    timings.kernels[3][GM_COPY_AVX512] = (struct gm_copy_timing){.store = 10, .load = 10};
    /* The driver wins at 64 by chance, and from 4096 on. */
    const double stores[] = {99, 8, 7, 3}, loads[] = {99, 99, 3, 3};
    for (unsigned i = 0; i < SIZES; i++)
        timings.driver_pinned[i] = (struct gm_copy_timing){.store = stores[i], .load = loads[i]};
    timings.driver_pageable[3] = (struct gm_copy_timing){.store = 10, .load = 9.5};
    struct gm_copy_plan plan = gm_copy_plan_of(&timings, sizes, SIZES);
    assert_int_equal(plan.class_count, SIZES);
    assert_int_equal(plan.classes[0].store, GM_COPY_PLAIN);
    MEMBERS(plan.classes[1], (store, GM_COPY_AVX2), (load, GM_COPY_PLAIN));
    MEMBERS(plan.classes[2], (store, GM_COPY_AVX512), (load, GM_COPY_AVX512));
    assert_int_equal(plan.classes[3].store, GM_COPY_PLAIN); /* no faster is no reason */
    /* At 4096 it loses by 2, at 65536 it wins by 7: two ninths of the way. */
    assert_int_equal(plan.store.pinned, 4097 + (SIZE - 4097) * 2 / 9);
    assert_int_equal(plan.store.pageable, GM_COPY_NEVER); /* as fast is not faster */
    assert_int_equal(plan.load.pinned, 65 + (4096 - 65) * 89 / 90);
    assert_int_equal(plan.load.pageable, SIZE); /* not measured below */
}

/* Loads that take a hundred times as long as the driver's copy are not made for every size. */
TEST(a_hopelessly_slow_direction_is_left_to_the_driver) {
    struct gm_copy_timings timings;
    for (unsigned i = 0; i < SIZES; i++) {
        for (int j = 0; j < GM_COPY_KERNEL_COUNT; j++)
            timings.kernels[i][j] = (struct gm_copy_timing){.store = -1, .load = -1};
        timings.kernels[i][GM_COPY_PLAIN].store = 10;
        timings.driver_pinned[i] = timings.driver_pageable[i] =
            (struct gm_copy_timing){.store = 20, .load = 20};
    }
    timings.kernels[0][GM_COPY_PLAIN].load = 10;
    timings.kernels[1][GM_COPY_MEMCPY].load = 500;
    struct gm_copy_plan plan = gm_copy_plan_of(&timings, sizes, SIZES);
    assert_int_equal(plan.classes[0].load, GM_COPY_PLAIN);
    for (unsigned i = 1; i < SIZES; i++)
        assert_int_equal(plan.classes[i].load, GM_COPY_MEMCPY); /* the best that is known */
    assert_true(plan.load.pinned > 8 && plan.load.pinned <= 64);
    assert_true(plan.store.pinned == GM_COPY_NEVER && plan.store.pageable == GM_COPY_NEVER);
}

/* So large that copying it takes a hundred looks at the clock, also from the nearest cache. */
#define LARGE   ((size_t)1 << 20)
#define LARGEST (2 * LARGE)

/* Ten microseconds for little, and no time for much. */
static bool late_or_at_once(void *user, void *host, size_t bytes) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (bytes < LARGE &&
           (now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < 10000);
    return true;
}

TEST(a_hopelessly_slow_direction_is_not_measured_further) {
    static const size_t four[] = {8, 64, LARGE, LARGEST};
    struct gm_copy_subject subject = subject_of(NULL);
    subject.mapped = aligned_alloc(64, LARGEST);
    subject.pageable = aligned_alloc(64, LARGEST);
    subject.pinned = aligned_alloc(64, LARGEST);
    subject.size = LARGEST;
    assert_true(subject.mapped && subject.pageable && subject.pinned);
    memset(subject.mapped, 1, LARGEST);
    memset(subject.pageable, 1, LARGEST);
    memset(subject.pinned, 1, LARGEST);
    struct gm_copy_timings timings = {0};
    struct gm_copy_plan plan = gm_copy_plan_default();
    subject.driver_load = late_or_at_once;
    assert_int_equal(gm_copy_calibrate(&subject, four, 4, &plan, &timings), GM_COPY_MEASURED);
    assert_true(timings.kernels[3][GM_COPY_PLAIN].load < 0);
    assert_true(timings.kernels[2][GM_COPY_PLAIN].load > 0);
    assert_true(timings.kernels[3][GM_COPY_PLAIN].store > 0);
    assert_true(timings.driver_pinned[3].load > 0);
    assert_true(plan.load.pinned > 64 && plan.load.pinned <= LARGE);
    assert_true(plan.load.pageable > 64 && plan.load.pageable <= LARGE);
    assert_true(plan.store.pinned == GM_COPY_NEVER);
    free(subject.mapped);
    free(subject.pageable);
    free(subject.pinned);
}

TEST(each_copy_size_finds_its_class) {
    struct gm_copy_plan plan = {.classes = {{.bytes = 8}, {.bytes = 64}, {.bytes = 4096}},
                                .class_count = 3};
    static const struct {
        uint64_t bytes;
        int class;
    } cases[] = {{0, 0}, {8, 0}, {9, 1}, {64, 1}, {65, 2}, {4096, 2}, {4097, 2}, {UINT64_MAX, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_ptr_equal(gm_copy_plan_class(&plan, cases[i].bytes), &plan.classes[cases[i].class]);
}

TEST(the_default_plan_uses_only_kernels_of_the_cpu) {
    struct gm_copy_plan plan = gm_copy_plan_default();
    assert_true(plan.class_count >= 1);
    assert_true(plan.classes[plan.class_count - 1].bytes == UINT64_MAX);
    for (unsigned i = 0; i < plan.class_count; i++) {
        assert_true(gm_copy_kernel_can(plan.classes[i].store, GM_COPY_STORE));
        assert_true(gm_copy_kernel_can(plan.classes[i].load, GM_COPY_LOAD));
    }
    assert_int_equal(gm_copy_plan_class(&plan, 64)->store, GM_COPY_PLAIN);
#if defined(__x86_64__)
    assert_int_not_equal(gm_copy_plan_class(&plan, 65)->store, GM_COPY_PLAIN);
#endif
}
