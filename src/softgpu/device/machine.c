/* How much memory this machine can give: the default size of a device. */
#include "base/descriptor.h"
#include "softgpu/device/profile.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number at the start of a file, or UINT64_MAX: no such file, or "max". */
static uint64_t read_limit(const char *path) {
    FILE *file = gm_fd_stream(path, "r");
    if (!file)
        return UINT64_MAX;
    unsigned long long value;
    int got = fscanf(file, "%llu", &value);
    fclose(file);
    return got == 1 ? value : UINT64_MAX;
}

static uint64_t total_memory(const char *root) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    FILE *file = gm_fd_stream(path, "r");
    if (!file)
        return UINT64_MAX;
    char line[256];
    unsigned long long kib;
    uint64_t total = UINT64_MAX;
    while (total == UINT64_MAX && fgets(line, sizeof line, file))
        if (sscanf(line, "MemTotal: %llu kB", &kib) == 1)
            total = (uint64_t)kib << 10;
    fclose(file);
    return total;
}

/* The smallest limit from a group up to the root of its hierarchy: each level binds. A container
 * may show the path of the host, of which only the root exists inside. */
static uint64_t group_limit(const char *root, const char *mount, const char *group,
                            const char *name) {
    char level[PATH_MAX];
    if ((size_t)snprintf(level, sizeof level, "%s", group) >= sizeof level)
        level[0] = 0;
    uint64_t least = UINT64_MAX;
    for (;;) {
        char path[2 * PATH_MAX];
        snprintf(path, sizeof path, "%s%s%s/%s", root, mount, level, name);
        uint64_t limit = read_limit(path);
        if (limit < least)
            least = limit;
        char *slash = strrchr(level, '/');
        if (!slash)
            return least;
        *slash = 0;
    }
}

/* "4:memory:/group" is version 1, "0::/group" version 2; several may hold. */
static uint64_t groups_limit(const char *root) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = gm_fd_stream(path, "r");
    if (!file)
        return UINT64_MAX;
    uint64_t least = UINT64_MAX;
    char line[PATH_MAX];
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        controllers++;
        uint64_t limit = UINT64_MAX;
        if (!controllers[0])
            limit = group_limit(root, "/sys/fs/cgroup", group, "memory.max");
        else if (strcmp(controllers, "memory") == 0)
            limit = group_limit(root, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
        if (limit < least)
            least = limit;
    }
    fclose(file);
    return least;
}

uint64_t sg_machine_half_at(const char *root) {
    uint64_t total = total_memory(root);
    uint64_t groups = groups_limit(root);
    return (total < groups ? total : groups) / 2;
}

uint64_t sg_machine_half(void) {
    return sg_machine_half_at("");
}

uint64_t sg_device_limit(uint64_t profile, uint64_t wanted, uint64_t machine, int count) {
    uint64_t share = machine / (uint64_t)(count > 0 ? count : 1);
    uint64_t limit = wanted ? wanted : profile < share ? profile : share;
    return limit > SG_PAGE ? limit : SG_PAGE;
}
