/*
 * The command's descriptors: 3 or above, and close-on-exec. We cannot move the driver's own, so the
 * standard descriptors are held from the start; tests/lint refuses calls that make descriptors
 * anywhere else.
 */
#ifndef CLI_DESCRIPTOR_H
#define CLI_DESCRIPTOR_H

#include <dirent.h>
#include <stdio.h>

/* If 0, 1 or 2 are closed, reading or writing them still fails, here and in programs that this one
 * starts, but no opened file gets their numbers. */
void cli_hold_standard(void);

/* NULL with errno. */
FILE *cli_open_text(const char *path);
/* Creates the file, or truncates it. NULL with errno. */
FILE *cli_make_text(const char *path);
/* For reading. NULL with errno. */
DIR *cli_open_folder(const char *path);
/* -1 with errno. */
int cli_make_memory(const char *name);
/* The same as a file to write and read; NULL with errno set. */
FILE *cli_make_memory_text(const char *name);
/* A file without a name, in TMPDIR or /tmp, or else in memory. -1 with errno. */
int cli_make_unnamed(void);
/* A connected pair, both above `floor`. 0 or an errno. */
int cli_make_pair(int floor, int pair[2]);

#endif
