/* The plan of mapped copies: measured when asked, kept for later processes, never in the way. */
#include "mapped_copies.h"
#include "planted_files.h"
#include "run_threads.h"

#include <fcntl.h>
#include <pthread.h>

static gpumem_resource *mapped;

/* Little of each, so that a run takes some milliseconds. */
static const gpumem_mapped_calibrate_options quick = {
    .size = sizeof quick, .maximum_bytes = 65536, .run_nanoseconds = 1000};

static gpumem_resource *make(void) {
    return NEW_MAPPED(.method = GPUMEM_MAPPED_DESCRIPTOR, .method_strict = 1);
}

static int setup(void **state) {
    if (planted_make() != 0 || open_device(state) != 0)
        return -1;
    setenv("XDG_CACHE_HOME", planted_root, 1);
    gm_plans_for_tests();
    mapped = make();
    return 0;
}

static int teardown(void **state) {
    OK(gpumem_resource_destroy(mapped));
    assert_int_equal(device_stats().allocations, 0);
    return close_device(state) | planted_remove();
}

EACH_TEST(setup, teardown);

static gpumem_measured source_of(gpumem_resource *resource) {
    gpumem_mapped_info info = {.size = sizeof info};
    OK(gpumem_mapped_get_info(resource, &info));
    return info.copy_measured;
}

/* What the next process has. */
static gpumem_measured source_later(void) {
    gm_plans_for_tests();
    gpumem_resource *later = make();
    gpumem_measured source = source_of(later);
    OK(gpumem_resource_destroy(later));
    return source;
}

TEST(a_calibration_is_measured_on_request_and_stored) {
    char name[600];
    gpumem_resource *second = make();
    assert_int_equal(source_of(mapped), GPUMEM_MEASURED_NEVER);
    OK(gpumem_mapped_calibrate(mapped, &quick));
    assert_int_equal(source_of(mapped), GPUMEM_MEASURED_HERE);
    assert_int_equal(source_of(second), GPUMEM_MEASURED_HERE); /* the device and method are its */
    assert_int_equal(planted_count("/gpumem", name, sizeof name), 1);
    const struct gm_copy_plan measured = gm_plan_now(mapped->engine->plans)->plan;
    assert_int_equal(source_later(), GPUMEM_MEASURED_BEFORE);
    OK(gpumem_resource_destroy(second));
    second = make();
    const struct gm_copy_plan *kept = &gm_plan_now(second->engine->plans)->plan;
    assert_int_equal(kept->class_count, measured.class_count);
    for (unsigned i = 0; i < measured.class_count; i++) {
        MEMBERS(kept->classes[i], (bytes, measured.classes[i].bytes),
                (store, measured.classes[i].store), (load, measured.classes[i].load));
    }
    assert_true(kept->store.pinned == measured.store.pinned);
    assert_true(kept->store.pageable == measured.store.pageable);
    assert_true(kept->load.pinned == measured.load.pinned);
    assert_true(kept->load.pageable == measured.load.pageable);
    OK(gpumem_resource_destroy(second));
}

/* Copies are right by what was measured, whatever that is here. */
TEST(copies_by_the_measured_plan_are_correct) {
    struct copies c;
    OK(gpumem_mapped_calibrate(mapped, &quick));
    gpumem_buffer *buffer = NEW_BUFFER(mapped, COPIES_ROOM);
    copies_begin(&c, buffer, mapped->engine);
    copies_many(&c, 500, "the measured plan");
    copies_end(&c);
    OK(gpumem_buffer_free(buffer, NULL));
}

TEST(a_calibration_may_apply_to_this_process_only) {
    char name[600];
    gpumem_mapped_calibrate_options options = quick;
    options.keep_nothing = 1;
    OK(gpumem_mapped_calibrate(mapped, &options));
    assert_int_equal(source_of(mapped), GPUMEM_MEASURED_HERE);
    assert_int_equal(planted_count("/gpumem", name, sizeof name), 0);
    assert_int_equal(source_later(), GPUMEM_MEASURED_NEVER);
}

/* The largest plan, of the default options, is a text that the cache takes. */
TEST(the_largest_plan_is_stored) {
    struct gm_copy_plan plan = gm_copy_plan_default();
    plan.class_count = 25;
    for (unsigned i = 0; i < plan.class_count; i++)
        plan.classes[i] = (struct gm_copy_class){
            (uint64_t)8 << i, GM_COPY_AVX512, GM_COPY_AVX512}; /* long names, if not the longest */
    if (!gm_copy_kernel_can(GM_COPY_AVX512, GM_COPY_STORE))
        for (unsigned i = 0; i < plan.class_count; i++)
            plan.classes[i].store = plan.classes[i].load = GM_COPY_MEMCPY;
    plan.store.pinned = plan.store.pageable = plan.load.pinned = plan.load.pageable = 67108864;
    gm_plans_keep(mapped->engine->plans, &plan);
    assert_int_equal(source_later(), GPUMEM_MEASURED_BEFORE);
}

/* The file says whose it is: of another GPU or method it is none, whatever its name. */
TEST(a_calibration_file_of_another_gpu_or_method_is_ignored) {
    char name[600];
    struct gm_copy_plan plan = gm_copy_plan_default();
    gm_plans_keep(mapped->engine->plans, &plan);
    assert_int_equal(planted_count("/gpumem", name, sizeof name), 1);
    assert_non_null(strstr(name, "/copy-"));
    assert_int_equal(source_later(), GPUMEM_MEASURED_BEFORE);
    /* The text of another GPU under this one's name, whole in itself. */
    struct gm_plans other = {.key = mapped->engine->plans->key};
    other.key.gpu[0]++;
    char mine[600], theirs[600] = "", path[600];
    snprintf(mine, sizeof mine, "%s", name);
    assert_int_equal(unlink(mine), 0);
    gm_plans_keep(&other, &plan);
    assert_int_equal(planted_count("/gpumem", theirs, sizeof theirs), 1);
    assert_string_not_equal(theirs, mine);
    snprintf(path, sizeof path, "%s", theirs);
    assert_int_equal(rename(path, mine), 0);
    assert_int_equal(source_later(), GPUMEM_MEASURED_NEVER);
    OK(gpumem_mapped_calibrate(mapped, &quick)); /* replaces it */
    assert_int_equal(source_later(), GPUMEM_MEASURED_BEFORE);
}

TEST(a_modified_calibration_file_is_ignored) {
    char name[600], byte;
    struct gm_copy_plan plan = gm_copy_plan_default();
    gm_plans_keep(mapped->engine->plans, &plan);
    assert_int_equal(planted_count("/gpumem", name, sizeof name), 1);
    int fd = open(name, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, &byte, 1, 60), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, 60), 1);
    close(fd);
    assert_int_equal(source_later(), GPUMEM_MEASURED_NEVER);
}

TEST(calibration_works_without_a_writable_cache_folder) {
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
    OK(gpumem_mapped_calibrate(mapped, &quick));
    assert_int_equal(source_of(mapped), GPUMEM_MEASURED_HERE);
    assert_int_equal(source_later(), GPUMEM_MEASURED_NEVER);
}

TEST(each_mapping_method_has_its_own_calibration) {
    gpumem_resource *host = NEW_MAPPED(.method = GPUMEM_MAPPED_HOST, .method_strict = 1);
    OK(gpumem_mapped_calibrate(mapped, &quick));
    assert_int_equal(source_of(host), GPUMEM_MEASURED_NEVER);
    FAILS_SAYING(NOT_SUPPORTED, "mapped", gpumem_mapped_calibrate(host, NULL));
    OK(gpumem_resource_destroy(host));
}

TEST(wrappers_and_views_use_the_calibration_of_their_memory) {
    gpumem_mapped_info info = {.size = sizeof info};
    gpumem_resource *cache = NEW_CACHING(mapped);
    OK(gpumem_mapped_calibrate(cache, &quick));
    OK(gpumem_resource_destroy(cache));
    assert_int_equal(source_of(mapped), GPUMEM_MEASURED_HERE);
    gpumem_resource *plain = NEW_VIRTUAL();
    gpumem_buffer *buffer = NEW_BUFFER(plain, MIB);
    gpumem_buffer *view =
        MADE(gpumem_buffer *, gpumem_buffer_host_view, buffer,
             GPUMEM_HOST_VIEW_OPTIONS(.method = GPUMEM_MAPPED_DESCRIPTOR, .method_strict = 1));
    OK(gpumem_buffer_get_mapped_info(view, &info));
    assert_int_equal(info.copy_measured, GPUMEM_MEASURED_HERE);
    DESTROY(view, buffer);
    FAILS(NOT_SUPPORTED, gpumem_mapped_calibrate(plain, NULL));
    OK(gpumem_resource_destroy(plain));
}

/* Sizes that are no power of two, the smallest, and what is refused. */
TEST(the_largest_measured_size_is_configurable) {
    static const size_t sizes[] = {8, 9, 16, 1000, 4096};
    gpumem_mapped_calibrate_options options = quick;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        options.maximum_bytes = sizes[i];
        OK(gpumem_mapped_calibrate(mapped, &options));
        const struct gm_copy_plan *plan = &gm_plan_now(mapped->engine->plans)->plan;
        assert_int_equal(plan->classes[plan->class_count - 1].bytes, sizes[i]);
    }
    options.maximum_bytes = 7;
    FAILS(INVALID_ARGUMENT, gpumem_mapped_calibrate(mapped, &options));
    FAILS(INVALID_ARGUMENT, gpumem_mapped_calibrate(NULL, NULL));
    options.maximum_bytes = (size_t)1 << 50;
    assert_int_not_equal(gpumem_mapped_calibrate(mapped, &options), GPUMEM_OK);
    assert_int_equal(source_of(mapped), GPUMEM_MEASURED_HERE); /* that before */
}

static void *calibrate(void *argument) {
    OK(gpumem_mapped_calibrate(mapped, &quick));
    return NULL;
}

TEST(threads_may_calibrate_concurrently) {
    run_threads(4, calibrate, NULL, 0);
    assert_int_equal(source_of(mapped), GPUMEM_MEASURED_HERE);
}
