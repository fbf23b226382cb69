/* Where softgpu is looked for, and in which order: which file there is, the test says. */
#include "library_test.h"

#include "driver/find_softgpu.h"

#include <fcntl.h>
#include <limits.h>

static const char *there;
static char asked[32][PATH_MAX];
static size_t asked_count;

/* Instead of libc's, for the object under test. */
static bool stands_in;

int access(const char *path, int mode) {
    if (!stands_in)
        return faccessat(AT_FDCWD, path, mode, 0);
    assert_true(asked_count < COUNT(asked));
    strcpy(asked[asked_count++], path);
    return there && strcmp(path, there) == 0 ? 0 : -1;
}

static int found(const char *place, char *path) {
    there = place;
    stands_in = true;
    asked_count = 0;
    int result = gm_find_softgpu(path, PATH_MAX);
    stands_in = false;
    return result;
}

TEST(softgpu_is_found_beside_the_program) {
    char program[PATH_MAX], path[PATH_MAX], place[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(length > 0);
    program[length] = 0;
    *strrchr(program, '/') = 0;
    snprintf(place, sizeof place, "%s/gpumem/softgpu/libsoftgpu.so.0", program);
    assert_true(found(place, path));
    assert_string_equal(path, place);
    assert_int_equal(asked_count, 1);
    snprintf(place, sizeof place, "%s/../lib/gpumem/softgpu/libsoftgpu.so.0", program);
    assert_true(found(place, path));
    assert_int_equal(asked_count, 2);
}

TEST(softgpu_is_found_in_the_configured_folder) {
    static const char last[] = GPUMEM_INSTALL_LIBDIR "/gpumem/softgpu/libsoftgpu.so.0";
    char path[PATH_MAX];
    assert_int_equal(last[0], '/');
    assert_true(found(last, path));
    assert_string_equal(path, last);
}

/* The program's run path is the build's lib/, which its build gave it. */
TEST(softgpu_is_searched_on_the_programs_library_path) {
    char path[PATH_MAX];
    assert_false(found(NULL, path));
    assert_true(asked_count > 4);
    size_t searched = 0;
    for (size_t i = 3; i + 1 < asked_count; i++)
        searched += strstr(asked[i], "/lib/gpumem/softgpu/libsoftgpu.so.0") != NULL;
    assert_true(searched > 0);
    assert_string_equal(asked[asked_count - 1],
                        GPUMEM_INSTALL_LIBDIR "/gpumem/softgpu/libsoftgpu.so.0");
}

TEST(a_path_too_long_for_its_buffer_is_not_found) {
    char path[20];
    there = GPUMEM_INSTALL_LIBDIR "/gpumem/softgpu/libsoftgpu.so.0";
    asked_count = 0;
    assert_false(gm_find_softgpu(path, sizeof path));
}
