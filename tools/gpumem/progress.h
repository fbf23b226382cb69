/* Shows progress: on a terminal a bar, overwritten in place; elsewhere a line per second. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
    const char *verb; /* "loading" */
    bool quiet;
    bool screen;    /* standard error takes a bar */
    size_t columns; /* width of the unfinished line on the screen; 0: none */
    double printed; /* when it was printed, in seconds */
};

/* `quiet` shows nothing. */
struct progress progress_begin(const char *verb, bool quiet);
/* `done` of `total` bytes, after `seconds`. */
void progress_show(struct progress *progress, uint64_t done, uint64_t total, double seconds);
/* The next output begins a new line. */
void progress_end(struct progress *progress);

#endif
