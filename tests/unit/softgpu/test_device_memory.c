/* How large a device is: the profile, the machine, control groups of both versions. */
#include "softgpu/device/profile.h"

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define GIB ((uint64_t)1 << 30)

static char root[64];

static int make_root(void **state) {
    (void)state;
    strcpy(root, "/tmp/softgpu-machine-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where) {
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

static int remove_root(void **state) {
    (void)state;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Writes a file below the root, making its folders. */
static void put(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void machine(void **state) {
    (void)state;
    put("/proc/meminfo", "MemFree: 5 kB\nMemTotal:       8388608 kB\n");
    assert_int_equal(sg_machine_half_at(root), 4 * GIB);
}

static void version_2(void **state) {
    (void)state;
    put("/proc/meminfo", "MemTotal: 8388608 kB\n");
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    assert_int_equal(sg_machine_half_at(root), 4 * GIB);
    put("/sys/fs/cgroup/a/memory.max", "2147483648\n");
    assert_int_equal(sg_machine_half_at(root), GIB);
    put("/sys/fs/cgroup/a/b/memory.max", "1073741824\n");
    assert_int_equal(sg_machine_half_at(root), GIB / 2);
}

static void version_1(void **state) {
    (void)state;
    put("/proc/meminfo", "MemTotal: 8388608 kB\n");
    put("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/job\n");
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "3221225472\n");
    assert_int_equal(sg_machine_half_at(root), 3 * GIB / 2);
}

/* A container may show the host's path, of which only the root is mounted. */
static void path_of_the_host(void **state) {
    (void)state;
    put("/proc/meminfo", "MemTotal: 8388608 kB\n");
    put("/proc/self/cgroup", "0::/docker/0123456789\n");
    put("/sys/fs/cgroup/memory.max", "2147483648\n");
    assert_int_equal(sg_machine_half_at(root), GIB);
}

static void greater_than_the_machine(void **state) {
    (void)state;
    put("/proc/meminfo", "MemTotal: 8388608 kB\n");
    put("/proc/self/cgroup", "4:memory:/\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(sg_machine_half_at(root), 4 * GIB);
}

static void limit_is_the_smaller(void **state) {
    (void)state;
    assert_int_equal(sg_device_limit(140 * GIB, 0, 8 * GIB, 1), 8 * GIB);
    assert_int_equal(sg_device_limit(4 * GIB, 0, 8 * GIB, 1), 4 * GIB);
    assert_int_equal(sg_device_limit(140 * GIB, 0, 8 * GIB, 4), 2 * GIB);
}

static void limit_asked_for_is_given(void **state) {
    (void)state;
    assert_int_equal(sg_device_limit(4 * GIB, 16 * GIB, 8 * GIB, 2), 16 * GIB);
    assert_int_equal(sg_device_limit(4 * GIB, 3 * SG_PAGE + 5, 8 * GIB, 2), 3 * SG_PAGE + 5);
    assert_int_equal(sg_device_limit(4 * GIB, 1, 8 * GIB, 2), SG_PAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(machine, make_root, remove_root),
        cmocka_unit_test_setup_teardown(version_2, make_root, remove_root),
        cmocka_unit_test_setup_teardown(version_1, make_root, remove_root),
        cmocka_unit_test_setup_teardown(path_of_the_host, make_root, remove_root),
        cmocka_unit_test_setup_teardown(greater_than_the_machine, make_root, remove_root),
        cmocka_unit_test(limit_is_the_smaller),
        cmocka_unit_test(limit_asked_for_is_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
