/* A folder of planted files that replaces /proc and /sys. Header only; for cmocka programs. */
#ifndef TESTS_PLANTED_FILES_H
#define TESTS_PLANTED_FILES_H

#include "temporary.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char planted_root[TEMPORARY_ROOM];

/* Returns 0 or -1. */
static inline int planted_make(void) {
    return temporary_folder(planted_root, "gpumem-planted") ? 0 : -1;
}

static inline int planted_remove_one(const char *path, const struct stat *info, int type,
                                     struct FTW *where) {
    return remove(path);
}

static inline int planted_remove(void) {
    return nftw(planted_root, planted_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Writes a file below the root, creating its folders. */
static inline void plant(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s%s", planted_root, name);
    for (char *slash = path + strlen(planted_root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Files in a folder below the root, hidden ones left out; `name` receives the path of the last. */
static inline size_t planted_count(const char *folder, char *name, size_t room) {
    char path[TEMPORARY_ROOM + 16];
    size_t count = 0;
    snprintf(path, sizeof path, "%s%s", planted_root, folder);
    DIR *open = opendir(path);
    for (struct dirent *entry; open && (entry = readdir(open));)
        if (entry->d_name[0] != '.' && ++count)
            snprintf(name, room, "%s/%s", path, entry->d_name);
    if (open)
        closedir(open);
    return count;
}

#endif
