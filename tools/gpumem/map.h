/* Shared by the files of gpumem map. */
#ifndef CLI_MAP_H
#define CLI_MAP_H

#include <stdbool.h>
#include <stddef.h>

/* A text in memory, terminated by 0; its owner frees `text`. */
struct map_text {
    char *text;
    size_t size;
};

/* map_read.c. Reads a whole file, "-" for standard input. CLI_OK, or an exit status after reporting
 * why. */
int map_read(const char *path, struct map_text *text);

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
int map_demo(const char *driver, int device, struct map_text *snapshot, struct map_text *history);

/* The parts of the page, made from map/ when the command is built; each ends with 0. */
extern const char map_page_html[], map_page_css[], map_page_js[];

#endif
