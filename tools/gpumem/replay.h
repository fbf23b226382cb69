/* gpumem replay: the contents of a log, and the result of running it on a resource. */
#ifndef CLI_REPLAY_H
#define CLI_REPLAY_H

#include <gpumem/gpumem.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum replay_kind { REPLAY_ALLOCATE, REPLAY_RESIZE, REPLAY_FREE };

struct replay_event {
    enum replay_kind kind;
    uint32_t buffer, stream, line;
    uint64_t bytes, alignment, capacity;
};

/* Buffers, streams and threads are numbered from 0. Stream 0 is the default one. */
struct replay_log {
    const char *path;
    struct replay_event *events; /* successful ones, in order */
    size_t count;
    size_t buffers, streams, threads;
    uint64_t failed, notes, allocations, resizes;
    uint64_t alive; /* at the end of the log */
    uint64_t peak_bytes;
    double seconds; /* from its beginning to its last line */
};

/* Reads and checks the whole log. CLI_OK, or an exit status after printing the line and the error.
 * The caller clears the log. */
int replay_read(const char *path, struct replay_log *log);
void replay_clear(struct replay_log *log);

struct replay_result {
    const char *resource;
    bool done;
    uint32_t failed_line; /* line of the log at which it failed */
    gpumem_status status; /* why */
    char message[256];
    double seconds;          /* the median run */
    uint64_t peak_committed; /* memory taken from the driver, caches and rounding included */
    uint64_t moved;          /* resizes that took a new allocation */
};

/* The resources by name, ended by NULL. */
extern const char *const replay_resources[];

/* Runs the log `repeat` times for the time, and once more to measure memory, each time on a new
 * resource. Failures are in the result. `name` is one of replay_resources. */
void replay_run(const struct replay_log *log, gpumem_device *device, const char *name, int repeat,
                struct replay_result *result);

#endif
