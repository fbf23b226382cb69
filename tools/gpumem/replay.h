/* gpumem replay: what a program asked for, and what becomes of it on a resource. */
#ifndef CLI_REPLAY_H
#define CLI_REPLAY_H

#include <gpumem/gpumem.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum replay_kind {
    REPLAY_ALLOCATE,
    REPLAY_RESIZE,
    REPLAY_FREE,
    REPLAY_USE,   /* by another stream, before it is freed */
    REPLAY_EMPTY, /* the program emptied its allocator's cache */
    REPLAY_STEP,  /* the end of a step of the program */
};

struct replay_event {
    enum replay_kind kind;
    uint32_t buffer, stream, line, source;
    uint64_t bytes, alignment, capacity;
};

/* Buffers, streams and threads are numbered from 0. Stream 0 is the default one. */
struct replay_log {
    const char *path;
    struct replay_event *events; /* successful ones, in order */
    size_t count, operations;    /* operations: those that are neither EMPTY nor STEP */
    size_t buffers, streams, threads;
    uint64_t failed, notes, allocations, resizes, steps;
    uint64_t alive; /* at the end of the log */
    uint64_t peak_bytes;
    double seconds; /* from its beginning to its last line; 0 where it has no times */
};

/* Distinct values, numbered in order of appearance. */
struct replay_numbers {
    uint64_t *values;
    uint32_t *table; /* of 2 x `room` numbers + 1 */
    size_t count, room;
};

/* The number of `value`; UINT32_MAX without memory. */
uint32_t replay_number(struct replay_numbers *numbers, uint64_t value);
void replay_numbers_clear(struct replay_numbers *numbers);

/* Streams of one log. The driver makes thousands, at some 100 KiB each. */
#define REPLAY_STREAMS_MOST 4096

/* Reads and checks the whole log, trace or snapshot. `device`: of a snapshot with several, or -1.
 * CLI_OK, or an exit status after printing the line and the error. The caller clears the log. */
int replay_read(const char *path, int device, struct replay_log *log);
void replay_clear(struct replay_log *log);

/* A compact trace: takes what is in `text`, of `size` bytes and ended by 0. */
int replay_read_compact(const char *text, size_t size, struct replay_log *log);
/* Prints the log as a compact trace; resizes become an allocation and a free. */
int replay_print_compact(const struct replay_log *log);

/* The compact trace that Python makes of a snapshot of PyTorch, or unpacks. `file` is at any place
 * of it. The caller frees *text. */
struct cli_text;
int replay_convert(FILE *file, const char *path, int device, struct cli_text *text);

/* Counts what the events are. False: the sum of bytes in use overflows. */
bool replay_count(struct replay_log *log);

/* One log of several that take turns, `turns` steps of each at a time, on streams of their own. */
int replay_merge(const struct replay_log *logs, size_t count, const unsigned *turns,
                 struct replay_log *merged);

#define REPLAY_LAYERS_MOST 4

enum replay_layer_kind {
    REPLAY_CACHING,
    REPLAY_LIMIT,
    REPLAY_LOGGING,
    REPLAY_POOL,
    REPLAY_VIRTUAL,
    REPLAY_PINNED,
    REPLAY_DRIVER,
};

struct replay_layer {
    enum replay_layer_kind kind;
    gpumem_caching_options caching;
    gpumem_device_pool_options pool;
    gpumem_virtual_options virtual_memory;
    uint64_t limit;
};

/* A resource and those below it, the outermost first. */
struct replay_description {
    char name[128];
    struct replay_layer layers[REPLAY_LAYERS_MOST];
    size_t count;
};

/* Takes a description of `length` bytes. False after printing what is wrong with it. */
bool replay_describe(const char *text, size_t length, struct replay_description *description);
/* Sets the most that may be taken from the device; false: no layer has such a limit. */
bool replay_set_limit(struct replay_description *description, uint64_t bytes);

struct replay_settings {
    int repeat;
    uint64_t defer;   /* operations after which a free has passed on the device; 0: at once */
    bool least_limit; /* search for it */
};

struct replay_result {
    const char *resource;
    bool done;
    uint32_t failed_line, failed_source; /* line of the log at which it failed */
    gpumem_status status;                /* why */
    char message[256];
    double first_seconds, second_seconds; /* the median run, on a new resource and once more */
    uint64_t peak_committed; /* memory taken from the driver, caches and rounding included */
    uint64_t moved;          /* resizes that took a new allocation */
    uint64_t pages_moved, waits;
    bool caches;          /* pages_moved and waits are known */
    uint64_t least_limit; /* 0: not searched, or none found */
    double *step_ratios;  /* committed / in use at the end of steps with memory in use */
    size_t steps;
};

/* Runs the log `repeat` times for the time, and once more to measure memory, each time on a new
 * resource; with `defer` for memory alone. Failures are in the result, which is to be cleared. */
void replay_run(const struct replay_log *log, gpumem_device *device,
                const struct replay_description *description,
                const struct replay_settings *settings, struct replay_result *result);
void replay_result_clear(struct replay_result *result);

#endif
