/* The open descriptors of this process, counted and shown. */
#ifndef TESTS_FUZZ_LEAKED_DESCRIPTORS_H
#define TESTS_FUZZ_LEAKED_DESCRIPTORS_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Without pipes: libFuzzer opens two to its symbolizer when it likes. Prints each when `show`. */
static inline unsigned count_descriptors(int show) {
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        abort();
    for (struct dirent *entry; (entry = readdir(folder));) {
        char target[256] = "";
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        if (length <= 0 || strncmp(target, "pipe:", 5) == 0)
            continue;
        count++;
        if (show)
            fprintf(stderr, "descriptor %s: %s\n", entry->d_name, target);
    }
    closedir(folder);
    return count;
}

#endif
