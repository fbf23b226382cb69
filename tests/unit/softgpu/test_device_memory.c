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

TEST(a_device_gets_half_of_the_machines_memory) {
    plant("/proc/meminfo", "MemFree: 5 kB\nMemTotal:       8388608 kB\n");
    assert_int_equal(sg_machine_half(), 4 * GIB);
}

TEST(cgroup_v2_limits_make_the_device_smaller) {
    plant("/proc/meminfo", "MemTotal: 8388608 kB\n");
    plant("/proc/self/cgroup", "0::/a/b\n");
    plant("/sys/fs/cgroup/a/b/memory.max", "max\n");
    assert_int_equal(sg_machine_half(), 4 * GIB);
    plant("/sys/fs/cgroup/a/memory.max", "2147483648\n");
    assert_int_equal(sg_machine_half(), GIB);
    plant("/sys/fs/cgroup/a/b/memory.max", "1073741824\n");
    assert_int_equal(sg_machine_half(), GIB / 2);
}

TEST(cgroup_v1_limits_make_the_device_smaller) {
    plant("/proc/meminfo", "MemTotal: 8388608 kB\n");
    plant("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/job\n");
    plant("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "3221225472\n");
    assert_int_equal(sg_machine_half(), 3 * GIB / 2);
}

/* A container may show the host's path, of which only the root is mounted. */
TEST(a_host_cgroup_path_falls_back_to_the_mounted_root) {
    plant("/proc/meminfo", "MemTotal: 8388608 kB\n");
    plant("/proc/self/cgroup", "0::/docker/0123456789\n");
    plant("/sys/fs/cgroup/memory.max", "2147483648\n");
    assert_int_equal(sg_machine_half(), GIB);
}

TEST(a_cgroup_limit_above_the_machines_memory_is_ignored) {
    plant("/proc/meminfo", "MemTotal: 8388608 kB\n");
    plant("/proc/self/cgroup", "4:memory:/\n");
    plant("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(sg_machine_half(), 4 * GIB);
}

/* The size stays, so that processes of a group see the same device; less of it is given out. */
TEST(memory_used_by_others_lowers_what_is_free_but_not_the_size) {
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

TEST(pinned_memory_may_use_what_the_devices_leave) {
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
TEST(free_memory_is_read_again_after_a_quarter_was_requested) {
    plant("/proc/self/cgroup", "0::/a\n");
    plant("/sys/fs/cgroup/a/memory.max", "4294967296\n");
    assert_int_equal(sg_machine_left(UINT64_MAX), 4 * GIB - 32 * MIB);
    plant("/sys/fs/cgroup/a/memory.current", "4261412863\n"); /* 4 GiB - 32 MiB - 1 */
    assert_int_equal(sg_machine_left(GIB / 2), UINT64_MAX);
    assert_int_equal(sg_machine_left(GIB / 2 - 8 * MIB), UINT64_MAX);
    assert_int_equal(sg_machine_left(1), 1);
    assert_int_equal(sg_machine_left(1), 1);
}

TEST(a_sixteenth_of_a_small_cgroup_is_kept_free) {
    plant("/proc/self/cgroup", "0::/a\n");
    plant("/sys/fs/cgroup/a/memory.max", "67108864\n");
    plant("/sys/fs/cgroup/a/memory.current", "33554432\n");
    assert_int_equal(sg_machine_left(UINT64_MAX), 28 * MIB);
    plant("/sys/fs/cgroup/a/memory.current", "67108863\n");
    assert_int_equal(sg_machine_left(UINT64_MAX), 0);
}

TEST_WITH(the_default_device_size_is_the_smaller_of_profile_and_machine, NULL, NULL) {
    assert_int_equal(sg_device_limit(140 * GIB, 0, 8 * GIB, 1), 8 * GIB);
    assert_int_equal(sg_device_limit(4 * GIB, 0, 8 * GIB, 1), 4 * GIB);
    assert_int_equal(sg_device_limit(140 * GIB, 0, 8 * GIB, 4), 2 * GIB);
}

TEST_WITH(an_explicit_device_size_is_obeyed, NULL, NULL) {
    assert_int_equal(sg_device_limit(4 * GIB, 16 * GIB, 8 * GIB, 2), 16 * GIB);
    assert_int_equal(sg_device_limit(4 * GIB, 3 * SG_PAGE + 5, 8 * GIB, 2), 3 * SG_PAGE + 5);
    assert_int_equal(sg_device_limit(4 * GIB, 1, 8 * GIB, 2), SG_PAGE);
}
