#include "memory/host/numa.h"

#include "base/descriptor.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether a list in the kernel's format ("0-1,3\n") contains the number. */
static int in_list(const char *list, int number) {
    while (*list >= '0' && *list <= '9') {
        char *rest;
        long first = strtol(list, &rest, 10), last = first;
        if (*rest == '-')
            last = strtol(rest + 1, &rest, 10);
        if (number >= first && number <= last)
            return 1;
        list = *rest == ',' ? rest + 1 : rest;
    }
    return 0;
}

/* 0, or -1 if unknown. The line is without its newline. */
static int read_list(const char *path, char *list, int size) {
    FILE *file = gm_fd_stream(path, "r");
    int found = file && fgets(list, size, file);
    if (file)
        fclose(file);
    if (!found)
        return -1;
    list[strcspn(list, "\n")] = 0;
    return 0;
}

int gm_numa_current(void) {
    unsigned cpu = 0, node = 0;
    return syscall(SYS_getcpu, &cpu, &node, NULL) == 0 ? (int)node : 0;
}

gpumem_status gm_numa_check(int node, const char *what) {
    char list[256];
    if (node < 0 || node >= GM_NUMA_MOST_NODES)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "%s: there is no NUMA node %d", what, node);
    if (read_list("/sys/devices/system/node/has_memory", list, (int)sizeof list) != 0 ||
        in_list(list, node))
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                   "%s: there is no NUMA node %d with memory; this machine has %s", what, node,
                   list);
}

int gm_numa_only(void) {
    char list[256], *rest;
    if (read_list("/sys/devices/system/node/has_memory", list, (int)sizeof list) != 0)
        return -1;
    long node = strtol(list, &rest, 10);
    return rest != list && !*rest && node >= 0 && node < GM_NUMA_MOST_NODES ? (int)node : -1;
}

size_t gm_numa_free(int node) {
    char path[64], line[128];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", node);
    FILE *file = gm_fd_stream(path, "r");
    size_t sum = 0;
    int found = 0;
    while (file && fgets(line, (int)sizeof line, file)) {
        unsigned long long kib;
        if (sscanf(line, "Node %*d MemFree: %llu kB", &kib) == 1 ||
            sscanf(line, "Node %*d Inactive(file): %llu kB", &kib) == 1) {
            sum += (size_t)kib * 1024;
            found = 1;
        }
    }
    if (file)
        fclose(file);
    return found ? sum : SIZE_MAX;
}
