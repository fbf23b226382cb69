/* What the host can give, read from planted trees of control groups of both versions. */
#include "library_test.h"
#include "planted_files.h"

#include "base/host_memory.h"

#include <fcntl.h>

#define UNKNOWN GM_HOST_MEMORY_UNKNOWN

static int make(void **state) {
    gm_host_memory_set_root(planted_root);
    return planted_make();
}

static int end(void **state) {
    gm_host_memory_set_root("");
    return planted_remove();
}

EACH_TEST(make, end);

static struct gm_host_memory now(void) {
    struct gm_host_memory memory;
    gm_host_memory_read(&memory);
    return memory;
}

TEST(without_system_files_host_memory_is_unknown) {
    MEMBERS(now(), (machine, UNKNOWN), (available, UNKNOWN), (groups, UNKNOWN),
            (groups_left, UNKNOWN));
    struct gm_host_memory memory = now();
    assert_int_equal(gm_host_memory_left(&memory), UNKNOWN);
    plant("/proc/self/cgroup", "0::/gone\n4:memory:/gone\nnonsense\n7:\n");
    plant("/proc/self/mountinfo", "1 2\n - \n3 2 0:1 / /sys/fs/cgroup rw - cgroup2\n");
    plant("/proc/meminfo", "\nMemTotal:\nMemAvailable: much kB\nHugePages_Total: 5\n");
    MEMBERS(now(), (groups_left, UNKNOWN), (machine, UNKNOWN));
}

TEST(total_and_available_memory_are_read_from_meminfo) {
    plant("/proc/meminfo", "MemTotal:       8 kB\nMemFree: 1 kB\nMemAvailable:    3 kB\n");
    struct gm_host_memory memory = now();
    MEMBERS(memory, (machine, 8192), (available, 3072));
    assert_int_equal(gm_host_memory_left(&memory), 3072);
}

/* The level with the least left binds, which is not the one with the smallest limit. */
TEST(cgroup_v2_limits_apply_at_every_level) {
    plant("/proc/self/cgroup", "0::/a/b/c\n");
    plant("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
    plant("/sys/fs/cgroup/a/b/c/memory.current", "300\n");
    assert_int_equal(now().groups, UNKNOWN);
    plant("/sys/fs/cgroup/a/b/memory.max", "1000\n");
    plant("/sys/fs/cgroup/a/b/memory.current", "300\n");
    assert_int_equal(now().groups_left, 700);
    plant("/sys/fs/cgroup/a/memory.max", "5000\n");
    plant("/sys/fs/cgroup/a/memory.current", "4900\n");
    struct gm_host_memory memory = now();
    MEMBERS(memory, (groups, 1000), (groups_left, 100), (groups_level, 5000));
    /* A sibling's limit is no matter. */
    plant("/sys/fs/cgroup/d/memory.max", "1\n");
    assert_int_equal(now().groups_left, 100);
}

TEST(cgroup_v1_limits_apply_at_every_level) {
    plant("/proc/self/cgroup", "9:name=systemd:/x\n5:cpu,cpuacct:/x\n4:hugetlb,memory:/job/part\n");
    plant("/sys/fs/cgroup/memory/job/part/memory.limit_in_bytes", "9223372036854771712\n");
    plant("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "3000\n");
    plant("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1000\n");
    MEMBERS(now(), (groups, 3000), (groups_left, 2000));
    plant("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2500\n");
    plant("/sys/fs/cgroup/memory/memory.usage_in_bytes", "2400\n");
    assert_int_equal(now().groups_left, 100);
}

TEST(reclaimable_page_cache_does_not_count_as_used) {
    plant("/proc/self/cgroup", "0::/a\n4:memory:/b\n");
    plant("/sys/fs/cgroup/a/memory.max", "1000\n");
    plant("/sys/fs/cgroup/a/memory.current", "990\n");
    plant("/sys/fs/cgroup/a/memory.stat",
          "anon 50\nfile 900\nactive_anon 7\ninactive_file 500\nactive_file 300\nshmem 70\n");
    assert_int_equal(now().groups_left, 810);
    /* Version 1 says it for the group alone, and for all below it, of which the usage is. */
    plant("/sys/fs/cgroup/memory/b/memory.limit_in_bytes", "1000\n");
    plant("/sys/fs/cgroup/memory/b/memory.usage_in_bytes", "990\n");
    plant("/sys/fs/cgroup/memory/b/memory.stat",
          "inactive_file 1\nactive_file 1\ntotal_inactive_file 400\ntotal_active_file 200\n");
    assert_int_equal(now().groups_left, 610);
    /* Read one after the other, the numbers need not fit. */
    plant("/sys/fs/cgroup/a/memory.current", "700\n");
    plant("/sys/fs/cgroup/memory/b/memory.usage_in_bytes", "500\n");
    assert_int_equal(now().groups_left, 1000);
    plant("/sys/fs/cgroup/a/memory.current", "5000\n");
    assert_int_equal(now().groups_left, 0);
}

TEST(both_cgroup_versions_are_read_together) {
    plant("/proc/self/cgroup", "4:memory:/one\n0::/two\n");
    plant("/proc/self/mountinfo",
          "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
          "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
          "36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
          "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
    plant("/sys/fs/cgroup/memory/one/memory.limit_in_bytes", "2000\n");
    assert_int_equal(now().groups_left, 2000);
    plant("/sys/fs/cgroup/unified/two/memory.max", "1500\n");
    assert_int_equal(now().groups_left, 1500);
    /* What is not mounted there is not looked at. */
    plant("/sys/fs/cgroup/two/memory.max", "1\n");
    plant("/sys/fs/cgroup/cpu/one/memory.limit_in_bytes", "1\n");
    assert_int_equal(now().groups_left, 1500);
}

TEST(cgroups_are_found_at_their_mount_point) {
    plant("/proc/self/cgroup", "0::/a\n");
    plant("/proc/self/mountinfo", "41 31 0:38 / /my\\040groups rw - cgroup2 none rw\n");
    plant("/my groups/a/memory.max", "70\n");
    assert_int_equal(now().groups_left, 70);
}

/* The part of the hierarchy that a container sees, with the host's path for the process. */
TEST(a_partly_mounted_cgroup_hierarchy_is_found) {
    plant("/proc/self/cgroup", "4:memory:/docker/0123/inner\n");
    plant("/proc/self/mountinfo",
          "35 31 0:32 /docker/0123 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    plant("/sys/fs/cgroup/memory/memory.limit_in_bytes", "900\n");
    assert_int_equal(now().groups_left, 900);
    plant("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "800\n");
    assert_int_equal(now().groups_left, 800);
    /* Nothing but the top, and a path that is not below it. */
    plant("/proc/self/cgroup", "4:memory:/docker/01234\n");
    assert_int_equal(now().groups_left, 900);
}

/* In a namespace the path is relative to its root, and may lead out of it. */
TEST(a_cgroup_path_is_relative_to_its_namespace_root) {
    plant("/proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
    plant("/proc/self/cgroup", "0::/\n");
    plant("/sys/fs/cgroup/memory.max", "600\n");
    plant("/sys/fs/cgroup/memory.current", "100\n");
    assert_int_equal(now().groups_left, 500);
    plant("/proc/self/cgroup", "0::/../other\n");
    plant("/sys/fs/memory.max", "1\n");
    plant("/sys/fs/other/memory.max", "1\n");
    assert_int_equal(now().groups_left, 500);
    plant("/proc/self/mountinfo", "41 31 0:38 /.. /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
    plant("/sys/fs/cgroup/other/memory.max", "300\n");
    assert_int_equal(now().groups_left, 300);
    /* Dots alone do not lead anywhere. */
    plant("/proc/self/cgroup", "0::/..a/b..\n");
    plant("/sys/fs/cgroup/..a/b../memory.max", "200\n");
    assert_int_equal(now().groups_left, 200);
}

/* Limits above what a container shows are told by version 1. */
TEST(limits_of_hidden_cgroup_levels_apply) {
    plant("/proc/self/cgroup", "4:memory:/\n");
    plant("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    plant("/sys/fs/cgroup/memory/memory.usage_in_bytes", "100\n");
    plant("/sys/fs/cgroup/memory/memory.stat", "cache 5\nhierarchical_memory_limit 1000\n");
    assert_int_equal(now().groups_left, 900);
}

TEST(free_memory_is_the_smaller_of_machine_and_cgroup) {
    plant("/proc/meminfo", "MemTotal: 8 kB\nMemAvailable: 2 kB\n");
    plant("/proc/self/cgroup", "0::/a\n");
    plant("/sys/fs/cgroup/a/memory.max", "4096\n");
    struct gm_host_memory memory = now();
    assert_int_equal(gm_host_memory_left(&memory), 2048);
    plant("/sys/fs/cgroup/a/memory.max", "1024\n");
    memory = now();
    assert_int_equal(gm_host_memory_left(&memory), 1024 - 1024 / 16);
    plant("/proc/meminfo", "");
    memory = now();
    assert_int_equal(gm_host_memory_left(&memory), 1024 - 1024 / 16);
    plant("/sys/fs/cgroup/a/memory.current", "1000\n");
    memory = now();
    assert_int_equal(gm_host_memory_left(&memory), 0);
}

/* What the groups give is less than what they have left, but never much less. */
TEST(at_most_32_mib_of_a_cgroup_are_kept_free) {
    struct gm_host_memory memory = {.groups_left = (uint64_t)1 << 33,
                                    .groups_level = (uint64_t)1 << 34};
    assert_int_equal(gm_host_memory_groups_give(&memory),
                     ((uint64_t)1 << 33) - ((uint64_t)32 << 20));
    memory.groups_left = UNKNOWN;
    assert_int_equal(gm_host_memory_groups_give(&memory), UNKNOWN);
}

static size_t descriptors(void) {
    size_t count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

TEST(reading_host_memory_leaks_no_descriptor) {
    plant("/proc/meminfo", "MemTotal: 8 kB\n");
    plant("/proc/self/cgroup", "0::/a\n");
    plant("/proc/self/mountinfo", "41 31 0:38 / /g rw - cgroup2 none rw\n");
    plant("/g/a/memory.max", "1\n");
    size_t before = descriptors();
    (void)now();
    assert_int_equal(descriptors(), before);
}
