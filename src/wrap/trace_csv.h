/*
 * The text of a trace, described in docs/wrappers.md. Lines are buffered and written whole.
 */
#ifndef GM_WRAP_TRACE_CSV_H
#define GM_WRAP_TRACE_CSV_H

#include "base/error.h"

#include <gpumem/wrappers.h>
#include <pthread.h>

#define GM_TRACE_LINE_MOST 4096 /* bytes of one line; a note of 1,000 may double by its quotes */

struct gm_trace_line {
    const char *event;
    uint64_t thread;
    uint64_t buffer;
    size_t bytes, alignment, capacity;
    CUstream stream;
    CUdeviceptr pointer;
    size_t committed;
    uint64_t took_ns;
    gpumem_status status;
    const char *note; /* NULL: none */
};

struct gm_trace_file {
    pthread_mutex_t lock; /* everything below */
    int fd;               /* -1: `write` */
    gpumem_write_fn write;
    void *user;
    char *text;
    size_t used, room;
    uint64_t sequence, begin_ns;
    int error;         /* errno of the failed write; nothing is written after it */
    uint64_t missing;  /* lines that were not written */
    uint64_t gathered; /* lines in `text` */
};

/* Creates the file and buffers its first lines; `what` becomes a note. `options` are checked. */
gpumem_status gm_trace_open(struct gm_trace_file *file, const gpumem_trace_options *options,
                            const char *what);
void gm_trace_add(struct gm_trace_file *file, const struct gm_trace_line *line);
/* Writes the buffered lines: 0, or the errno of this write or of an earlier one. */
int gm_trace_write(struct gm_trace_file *file);
/* Writes the rest and closes; a failure is logged. */
void gm_trace_close(struct gm_trace_file *file);

#endif
