/* How many threads touch pinned memory: measured once, kept for later processes, never in the way.
 */
#include "library_test.h"
#include "planted_files.h"

#include "memory/pinned/pinned_slab.h"
#include "memory/pinned/touch_calibration.h"

#include <fcntl.h>

#define folder planted_root

static int setup(void **state) {
    if (planted_make() != 0 || open_device(state) != 0)
        return -1;
    setenv("XDG_CACHE_HOME", folder, 1);
    gm_calibration_for_tests(64 * MIB, MIB); /* 64 MiB are enough to measure on */
    return 0;
}

static int teardown(void **state) {
    gm_calibration_for_tests(0, 0);
    return close_device(state) | planted_remove();
}

EACH_TEST(setup, teardown);

TEST_WITH(the_fewest_threads_near_the_best_time_are_chosen, NULL, NULL) {
    const unsigned counts[] = {2, 4, 8, 16};
    const uint64_t clear[] = {800, 400, 200, 100}, flat[] = {100, 101, 102, 105},
                   middle[] = {800, 100, 150, 300}, border[] = {900, 106, 100, 106},
                   smallest[] = {100, 200, 300, 400};
    assert_int_equal(gm_calibration_choose(counts, clear, 4), 16);
    assert_int_equal(gm_calibration_choose(counts, flat, 4), 16); /* within 5 % */
    assert_int_equal(gm_calibration_choose(counts, middle, 4), 4);
    assert_int_equal(gm_calibration_choose(counts, border, 4), 8);
    assert_int_equal(gm_calibration_choose(counts, smallest, 4), 2);
    assert_int_equal(gm_calibration_choose(counts, middle, 1), 2);
}

TEST_WITH(the_candidate_thread_counts_end_at_the_maximum, NULL, NULL) {
    const unsigned wanted[][5] = {
        {1, 1}, {2, 1, 2}, {3, 1, 2, 3}, {6, 1, 2, 3, 6}, {16, 2, 4, 8, 16}};
    for (size_t i = 0; i < COUNT(wanted); i++) {
        unsigned counts[GM_MOST_CANDIDATES] = {0};
        size_t count = gm_calibration_candidates(wanted[i][0], counts);
        for (size_t j = 0; j < count; j++)
            assert_int_equal(counts[j], wanted[i][1 + j]);
        assert_int_equal(counts[count - 1], wanted[i][0]);
    }
}

static gpumem_pinned_info pin(size_t bytes, unsigned threads) {
    gpumem_resource *resource = NEW_PINNED(.method = GPUMEM_PINNED_REGISTERED,
                                           .slab_bytes = 2 * MIB, .touch_threads = threads);
    gpumem_buffer *buffer = NEW_BUFFER(resource, bytes);
    unsigned char *host = gpumem_buffer_host_pointer(buffer);
    OK(gpumem_buffer_fill(buffer, 0, bytes, 0x21, NULL));
    synchronize(NULL);
    for (size_t i = 0; i < bytes; i += 4096)
        assert_int_equal(host[i], 0x21);
    gpumem_pinned_info info = pinned_info_of(resource);
    DESTROY(buffer, resource);
    return info;
}

#define NEEDS_THREADS()                                                                            \
    do {                                                                                           \
        if (gm_slab_default_threads() < 2) {                                                       \
            print_message("skip: one processor leaves nothing to choose\n");                       \
            skip();                                                                                \
        }                                                                                          \
    } while (0)

TEST_WHERE(the_thread_count_is_measured_once_and_stored, NEEDS_THREADS()) {
    char name[600];
    gpumem_pinned_info info = pin(8 * MIB, 0);
    assert_int_equal(info.touch_measured, GPUMEM_MEASURED_NEVER); /* too small to tell */
    assert_int_equal(info.touch_threads, gm_slab_default_threads());
    assert_int_equal(planted_count("/gpumem", name, sizeof name), 0);
    info = pin(64 * MIB, 3);
    assert_int_equal(info.touch_threads, 3); /* as was asked: nothing to measure */
    assert_int_equal(info.touch_measured, GPUMEM_MEASURED_NEVER);
    assert_int_equal(planted_count("/gpumem", name, sizeof name), 0);
    info = pin(64 * MIB, 0);
    assert_int_equal(info.touch_measured, GPUMEM_MEASURED_HERE);
    assert_true(info.touch_threads >= 1 && info.touch_threads <= gm_slab_default_threads());
    assert_int_equal(planted_count("/gpumem", name, sizeof name), 1);
    unsigned threads = info.touch_threads;
    gm_calibration_for_tests(64 * MIB, MIB); /* as another process */
    info = pin(8 * MIB, 0);
    MEMBERS(info, (touch_measured, GPUMEM_MEASURED_BEFORE), (touch_threads, threads));
    info = pin(64 * MIB, 0);
    assert_int_equal(info.touch_measured, GPUMEM_MEASURED_BEFORE);
}

/* The file says whose it is: of another machine, driver or GPU it is none, whatever its name. */
TEST_WHERE(a_calibration_file_of_another_machine_is_ignored, NEEDS_THREADS()) {
    char name[600], text[1000] = "";
    (void)pin(64 * MIB, 0);
    assert_int_equal(planted_count("/gpumem", name, sizeof name), 1);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    assert_non_null(strstr(text, "\ncpu "));
    assert_non_null(strstr(text, "\ndriver softgpu 1"));
    assert_non_null(strstr(text, "\ngpu "));
    char *gpu = strstr(text, "\ngpu ") + 5, sum[18];
    gpu[0]++;
    uint64_t hash = 0xcbf29ce484222325u; /* with a checksum that fits */
    for (const char *at = text + 17; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    snprintf(sum, sizeof sum, "%016llx", (unsigned long long)hash);
    memcpy(text, sum, 16);
    fd = open(name, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    gm_calibration_for_tests(64 * MIB, MIB);
    assert_int_equal(pin(8 * MIB, 0).touch_measured, GPUMEM_MEASURED_NEVER);
    assert_int_equal(pin(64 * MIB, 0).touch_measured, GPUMEM_MEASURED_HERE);
    gm_calibration_for_tests(64 * MIB, MIB);
    assert_int_equal(pin(8 * MIB, 0).touch_measured, GPUMEM_MEASURED_BEFORE); /* replaced */
}

TEST_WHERE(calibration_works_without_a_writable_cache_folder, NEEDS_THREADS()) {
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
    assert_int_equal(pin(64 * MIB, 0).touch_measured, GPUMEM_MEASURED_HERE);
    assert_int_equal(pin(8 * MIB, 0).touch_measured, GPUMEM_MEASURED_HERE); /* in this process */
    gm_calibration_for_tests(64 * MIB, MIB);
    assert_int_equal(pin(8 * MIB, 0).touch_measured, GPUMEM_MEASURED_NEVER);
}
