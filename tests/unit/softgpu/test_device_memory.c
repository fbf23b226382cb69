/* How large a device is: the profile, the machine, control groups of both versions. */
#include "base/host_memory.h"
#include "softgpu/device/profile.h"

#include "test.h"

#include "planted_files.h"

static int make_root(void **state) {
    gm_host_memory_set_root(planted_root);
    return planted_make();
}

static int remove_root(void **state) {
    gm_host_memory_set_root("");
    return planted_remove();
}

EACH_TEST(make_root, remove_root);

TEST(a_device_has_half_of_the_machine) {
    plant("/proc/meminfo", "MemFree: 5 kB\nMemTotal:       8388608 kB\n");
    assert_int_equal(sg_machine_half(), 4 * GIB);
}

TEST(limits_of_version_2_make_it_smaller) {
    plant("/proc/meminfo", "MemTotal: 8388608 kB\n");
    plant("/proc/self/cgroup", "0::/a/b\n");
    plant("/sys/fs/cgroup/a/b/memory.max", "max\n");
    assert_int_equal(sg_machine_half(), 4 * GIB);
    plant("/sys/fs/cgroup/a/memory.max", "2147483648\n");
    assert_int_equal(sg_machine_half(), GIB);
    plant("/sys/fs/cgroup/a/b/memory.max", "1073741824\n");
    assert_int_equal(sg_machine_half(), GIB / 2);
}

TEST(limits_of_version_1_make_it_smaller) {
    plant("/proc/meminfo", "MemTotal: 8388608 kB\n");
    plant("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/job\n");
    plant("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "3221225472\n");
    assert_int_equal(sg_machine_half(), 3 * GIB / 2);
}

/* A container may show the host's path, of which only the root is mounted. */
TEST(a_path_of_the_host_leads_to_the_root) {
    plant("/proc/meminfo", "MemTotal: 8388608 kB\n");
    plant("/proc/self/cgroup", "0::/docker/0123456789\n");
    plant("/sys/fs/cgroup/memory.max", "2147483648\n");
    assert_int_equal(sg_machine_half(), GIB);
}

TEST(a_limit_greater_than_the_machine_is_none) {
    plant("/proc/meminfo", "MemTotal: 8388608 kB\n");
    plant("/proc/self/cgroup", "4:memory:/\n");
    plant("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(sg_machine_half(), 4 * GIB);
}

/* The size stays, so that processes of a group see the same device; less of it is given out. */
TEST(what_others_use_leaves_the_size_and_lowers_what_is_left) {
    plant("/proc/meminfo", "MemTotal: 8388608 kB\n");
    plant("/proc/self/cgroup", "0::/a\n");
    plant("/sys/fs/cgroup/a/memory.max", "4294967296\n");
    plant("/sys/fs/cgroup/a/memory.current", "3221225472\n");
    assert_int_equal(sg_machine_half(), 2 * GIB);
    assert_int_equal(sg_machine_allows(2 * GIB, 1), 3 * GIB / 4);
    assert_int_equal(sg_machine_allows(GIB, 3), GIB / 4);
    assert_int_equal(sg_machine_allows(GIB / 2, 1), GIB / 2);
    plant("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 1073741824\nactive_file 4\n");
    assert_int_equal(sg_machine_allows(2 * GIB, 1), 3 * GIB / 2 + 3);
    plant("/sys/fs/cgroup/a/memory.current", "9223372036854771712\n");
    assert_int_equal(sg_machine_allows(2 * GIB, 1), SG_PAGE);
}

TEST(pinned_is_what_devices_leave) {
    plant("/proc/meminfo", "MemTotal: 8388608 kB\n");
    assert_int_equal(sg_machine_pinned(7 * GIB), 8 * GIB);
    plant("/proc/self/cgroup", "0::/a\n");
    plant("/sys/fs/cgroup/a/memory.max", "4294967296\n");
    assert_int_equal(sg_machine_pinned(2 * GIB), 2 * GIB);
    assert_int_equal(sg_machine_pinned(GIB), 3 * GIB);
    assert_int_equal(sg_machine_pinned(140 * GIB), GIB);
    plant("/sys/fs/cgroup/a/memory.current", "2147483648\n");
    assert_int_equal(sg_machine_pinned(2 * GIB), GIB / 2);
}

/* Looked at again once a quarter of what was left has been asked for. Not all is given. */
TEST(left_is_looked_at_again) {
    plant("/proc/self/cgroup", "0::/a\n");
    plant("/sys/fs/cgroup/a/memory.max", "4294967296\n");
    assert_int_equal(sg_machine_left(UINT64_MAX), 4 * GIB - 32 * MIB);
    plant("/sys/fs/cgroup/a/memory.current", "4261412863\n"); /* 4 GiB - 32 MiB - 1 */
    assert_int_equal(sg_machine_left(GIB / 2), UINT64_MAX);
    assert_int_equal(sg_machine_left(GIB / 2 - 8 * MIB), UINT64_MAX);
    assert_int_equal(sg_machine_left(1), 1);
    assert_int_equal(sg_machine_left(1), 1);
}

TEST(of_a_small_group_a_sixteenth_is_kept) {
    plant("/proc/self/cgroup", "0::/a\n");
    plant("/sys/fs/cgroup/a/memory.max", "67108864\n");
    plant("/sys/fs/cgroup/a/memory.current", "33554432\n");
    assert_int_equal(sg_machine_left(UINT64_MAX), 28 * MIB);
    plant("/sys/fs/cgroup/a/memory.current", "67108863\n");
    assert_int_equal(sg_machine_left(UINT64_MAX), 0);
}

TEST_WITH(limit_is_the_smaller, NULL, NULL) {
    assert_int_equal(sg_device_limit(140 * GIB, 0, 8 * GIB, 1), 8 * GIB);
    assert_int_equal(sg_device_limit(4 * GIB, 0, 8 * GIB, 1), 4 * GIB);
    assert_int_equal(sg_device_limit(140 * GIB, 0, 8 * GIB, 4), 2 * GIB);
}

TEST_WITH(limit_asked_for_is_given, NULL, NULL) {
    assert_int_equal(sg_device_limit(4 * GIB, 16 * GIB, 8 * GIB, 2), 16 * GIB);
    assert_int_equal(sg_device_limit(4 * GIB, 3 * SG_PAGE + 5, 8 * GIB, 2), 3 * SG_PAGE + 5);
    assert_int_equal(sg_device_limit(4 * GIB, 1, 8 * GIB, 2), SG_PAGE);
}
