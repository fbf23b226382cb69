/*
 * Files and folders that a test makes, in $TMPDIR, which the runner creates for each test and
 * empties afterwards, even if the test dies. Header only, for programs of every kind.
 */
#ifndef TESTS_TEMPORARY_H
#define TESTS_TEMPORARY_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TEMPORARY_ROOM 256

/* Writes a template that ends in six X. False if it does not fit. */
static inline int temporary_name(char path[TEMPORARY_ROOM], const char *name) {
    const char *folder = getenv("TMPDIR");
    int length =
        snprintf(path, TEMPORARY_ROOM, "%s/%s-XXXXXX", folder && *folder ? folder : "/tmp", name);
    return length > 0 && length < TEMPORARY_ROOM;
}

/* Makes an empty file, open for reading and writing: its descriptor, or -1. */
static inline int temporary_file(char path[TEMPORARY_ROOM], const char *name) {
    return temporary_name(path, name) ? mkstemp(path) : -1;
}

/* Makes an empty folder: `path`, or NULL. */
static inline char *temporary_folder(char path[TEMPORARY_ROOM], const char *name) {
    return temporary_name(path, name) ? mkdtemp(path) : NULL;
}

#endif
