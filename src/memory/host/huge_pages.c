#include "memory/host/huge_pages.h"

#include "base/descriptor.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* From linux/mman.h, which not every libc has: the logarithm of the size, next to the flag. */
#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif
#define TWO_MIB (21 << MAP_HUGE_SHIFT)

/* Without MAP_NORESERVE the pages are reserved here or refused here. */
static void *map_from_system(size_t bytes) {
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | TWO_MIB, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

static void *(*map)(size_t bytes) = map_from_system;
static const char *root = "";

void *gm_huge_map(size_t bytes, char *reason, size_t room) {
    if (bytes % GM_HUGE_PAGE) {
        snprintf(reason, room, "a slab of %zu bytes is not a whole number of huge pages", bytes);
        return NULL;
    }
    void *base = map(bytes);
    char text[64];
    if (!base)
        snprintf(reason, room, "mmap did not get %zu reserved huge pages of 2 MiB: %s",
                 bytes / GM_HUGE_PAGE, strerror_r(errno, text, sizeof text));
    return base;
}

/* "always [madvise] never": the brackets mark the current value. */
int gm_huge_transparent(char *reason, size_t room) {
    char path[PATH_MAX], line[64] = "";
    snprintf(path, sizeof path, "%s/sys/kernel/mm/transparent_hugepage/enabled", root);
    FILE *file = gm_fd_stream(path, "r");
    if (file) {
        if (!fgets(line, sizeof line, file))
            line[0] = 0;
        fclose(file);
    }
    if (strstr(line, "[always]") || strstr(line, "[madvise]"))
        return 1;
    if (strstr(line, "[never]"))
        snprintf(reason, room,
                 "transparent huge pages are off: transparent_hugepage/enabled is "
                 "never");
    else
        snprintf(reason, room,
                 "the system does not report whether transparent huge pages are enabled");
    return 0;
}

void gm_huge_for_tests(void *(*fn)(size_t bytes), const char *folder) {
    map = fn ? fn : map_from_system;
    root = folder;
}
