/* Shared by the files of gpumem map. */
#ifndef CLI_MAP_H
#define CLI_MAP_H

#include "text_file.h"

#include <stdbool.h>
#include <stddef.h>

/* Browsers do not accept a string of 512 MiB. */
#define MAP_TEXT_MOST ((size_t)256 << 20)

/* map_read.c. Reads a whole file, "-" for standard input, of at most MAP_TEXT_MOST. CLI_OK, or an
 * exit status after reporting why. */
int map_read(const char *path, struct cli_text *text);

/* Writes a file. CLI_OK, or an exit status after reporting why; a half-written file is removed. */
int map_write(const char *path, const char *text, size_t size);

/* Whether the text is one JSON value, and the members "schema" (a string, as it is written) and
 * "version" of that object. */
struct map_facts {
    bool valid;
    size_t line; /* of the first error, from 1 */
    char schema[32];
    long version;
};
struct map_facts map_check(const char *text);

/* map_demo.c. Allocates every kind of memory and takes a snapshot; the history is CSV. */
int map_demo(const char *driver, int device, struct cli_text *snapshot, struct cli_text *history);

/* The parts of the page, made from map/ when the command is built; each ends with 0. */
extern const char map_page_html[], map_page_css[], map_page_js[];

#endif
