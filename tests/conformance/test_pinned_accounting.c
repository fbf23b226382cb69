/*
 * Whose memory pinned memory is: what the process and its control group are charged for memory that
 * is registered, and for memory that the driver allocates. The first is checked, since the library
 * relies on it; the second is the driver's own choice, and printed.
 */
#include "harness.h"

#include <inttypes.h>
#include <sys/mman.h>

#define SIZE ((size_t)64 << 20)

struct charged {
    int64_t anonymous, shared; /* of the process, bytes */
    int64_t group;             /* of its control group; -1: not told */
};

static int64_t first_number(const char *path) {
    int64_t number = -1;
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%" SCNd64, &number) != 1)
        number = -1;
    if (file)
        fclose(file);
    return number;
}

/* The group's own file, of version 2, or where a container has it of version 1. */
static int64_t group_usage(void) {
    char line[512], path[700];
    int64_t usage = -1;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && usage < 0 && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "0::", 3) != 0)
            continue;
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.current", line + 3);
        usage = first_number(path);
    }
    if (file)
        fclose(file);
    return usage >= 0 ? usage : first_number("/sys/fs/cgroup/memory/memory.usage_in_bytes");
}

static struct charged charged(void) {
    struct charged now = {.group = group_usage()};
    char line[256];
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file)) {
        int64_t kib;
        if (sscanf(line, "RssAnon: %" SCNd64, &kib) == 1)
            now.anonymous = kib << 10;
        else if (sscanf(line, "RssShmem: %" SCNd64, &kib) == 1)
            now.shared = kib << 10;
    }
    if (file)
        fclose(file);
    return now;
}

static void print(const char *way, struct charged before, struct charged after) {
    print_message("%s of 64 MiB: process %+.1f MiB anonymous, %+.1f shared; control group ", way,
                  (double)(after.anonymous - before.anonymous) / MIB,
                  (double)(after.shared - before.shared) / MIB);
    if (before.group < 0 || after.group < 0)
        print_message("not told\n");
    else
        print_message("%+.1f MiB\n", (double)(after.group - before.group) / MIB);
}

/* Pages of the process's own: their count is that of the process, so nobody else disturbs it. */
TEST(registered_memory_is_charged_to_the_process) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
    struct charged before = charged();
    if (!before.anonymous)
        SKIP("the system does not tell RssAnon");
    unsigned char *base =
        mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(base != MAP_FAILED);
    memset(base, 1, SIZE);
    OK_CU(cu.cuMemHostRegister_v2(base, SIZE, 0));
    struct charged after = charged();
    print("registering", before, after);
    assert_true(after.anonymous - before.anonymous >= (int64_t)SIZE / 16 * 15);
    OK_CU(cu.cuMemHostUnregister(base));
    assert_int_equal(munmap(base, SIZE), 0);
    assert_true(charged().anonymous - before.anonymous < (int64_t)SIZE / 2);
}

TEST(pinned_memory_of_the_driver_can_be_used) {
    struct charged before = charged();
    void *base = new_pinned(SIZE, 0);
    memset(base, 1, SIZE);
    print("cuMemHostAlloc", before, charged());
    assert_int_equal(((unsigned char *)base)[SIZE - 1], 1);
}
