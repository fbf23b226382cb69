/*
 * The command's descriptors: 3 or above, and close-on-exec. The driver's own cannot be moved by us,
 * so the standard descriptors are held from the start; tests/lint refuses calls that make
 * descriptors anywhere else.
 */
#ifndef CLI_DESCRIPTOR_H
#define CLI_DESCRIPTOR_H

#include <stdio.h>

/* Those of 0, 1 and 2 that are closed stay so for whoever reads or writes them, here and in the
 * programs that this one starts; but nothing that is opened gets their numbers. */
void cli_hold_standard(void);

/* NULL with errno. */
FILE *cli_open_text(const char *path);
/* Made, or emptied first. NULL with errno. */
FILE *cli_make_text(const char *path);
/* -1 with errno. */
int cli_make_memory(const char *name);
/* A connected pair, both above `floor`. 0 or an errno. */
int cli_make_pair(int floor, int pair[2]);

#endif
