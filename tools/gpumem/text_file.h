/* Files of text that are read whole. */
#ifndef CLI_TEXT_FILE_H
#define CLI_TEXT_FILE_H

#include <stddef.h>
#include <stdio.h>

/* Terminated by 0, which `size` does not count; its owner frees `text`. */
struct cli_text {
    char *text;
    size_t size;
};

/* Reads the rest of `file`, which messages call `path`. It ends at a zero byte, which no text has,
 * or after `most` bytes: a device like /dev/zero answers without end. CLI_OK, or an exit status
 * after reporting why, with *text empty. */
int cli_read_text(FILE *file, const char *path, size_t most, struct cli_text *text);

#endif
