/* Runs a log in its order, in one thread, with a stream for each of its streams. */
#include "cli.h"
#include "replay.h"
#include "replay_target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const replay_resources[] = {"caching", "caching-virtual", "pool", "driver",
                                        "virtual", "pinned",          NULL};

struct run {
    const struct replay_log *log;
    struct replay_target target;
    struct replay_slot *slots;
    CUstream *streams; /* [0] is the default one */
    struct replay_result *result;
    bool look; /* measure memory instead of time */
};

static void note_failure(struct run *run, gpumem_status status, uint32_t line) {
    if (run->result->status != GPUMEM_OK)
        return; /* a consequence of the first failure */
    run->result->status = status;
    run->result->failed_line = line;
    snprintf(run->result->message, sizeof run->result->message, "%s", gpumem_last_error()->message);
}

/* A buffer that cannot grow in place is moved. Its bytes are not copied. */
static gpumem_status move(struct run *run, const struct replay_event *event, CUstream stream) {
    struct replay_slot *slot = &run->slots[event->buffer], fresh = {0};
    const struct replay_target_ops *ops = run->target.ops;
    gpumem_status status = ops->allocate(&run->target, event, event->bytes, stream, &fresh);
    if (status != GPUMEM_OK)
        return status;
    status = ops->free(&run->target, slot, stream);
    *slot = fresh;
    run->result->moved += run->look;
    return status;
}

static gpumem_status step(struct run *run, const struct replay_event *event) {
    struct replay_slot *slot = &run->slots[event->buffer];
    CUstream stream = run->streams[event->stream];
    const struct replay_target_ops *ops = run->target.ops;
    if (event->kind == REPLAY_ALLOCATE)
        return ops->allocate(&run->target, event, event->bytes, stream, slot);
    if (event->kind == REPLAY_RESIZE && run->target.resizes)
        return ops->resize(&run->target, slot, event->bytes, stream);
    if (event->kind == REPLAY_RESIZE)
        return move(run, event, stream);
    gpumem_status status = ops->free(&run->target, slot, stream);
    slot->bytes = 0;
    return status;
}

static gpumem_status look(struct run *run) {
    uint64_t now = 0;
    gpumem_status status = run->target.ops->committed(&run->target, &now);
    if (now > run->result->peak_committed)
        run->result->peak_committed = now;
    return status;
}

static void run_events(struct run *run) {
    for (size_t i = 0; i < run->log->count; i++) {
        const struct replay_event *event = &run->log->events[i];
        gpumem_status status = step(run, event);
        if (status == GPUMEM_OK && run->look && event->kind != REPLAY_FREE)
            status = look(run);
        if (status != GPUMEM_OK) {
            note_failure(run, status, event->line);
            return;
        }
    }
}

static void synchronize(struct run *run) {
    for (size_t i = 0; i < run->log->streams; i++) {
        gpumem_status status = gpumem_stream_synchronize(run->target.device, run->streams[i]);
        if (status != GPUMEM_OK)
            note_failure(run, status, 0);
    }
}

/* Frees what the log did not free, or a failure left. */
static void free_rest(struct run *run) {
    for (size_t i = 0; i < run->log->buffers; i++) {
        struct replay_slot *slot = &run->slots[i];
        if (!slot->buffer && !slot->base)
            continue;
        gpumem_status status = run->target.ops->free(&run->target, slot, NULL);
        if (status != GPUMEM_OK)
            note_failure(run, status, 0);
    }
}

/* Seconds of a run on a new resource. */
static double run_once(struct run *run, const char *name) {
    memset(run->slots, 0, (run->log->buffers + 1) * sizeof *run->slots);
    run->target.upstream = run->target.resource = NULL;
    gpumem_status status = run->target.ops->begin(&run->target, name);
    if (status != GPUMEM_OK) {
        note_failure(run, status, 0);
        return 0;
    }
    double begin = cli_now();
    run_events(run);
    double seconds = cli_now() - begin;
    free_rest(run);
    synchronize(run);
    status = run->target.ops->end(&run->target);
    if (status != GPUMEM_OK)
        note_failure(run, status, 0);
    return seconds;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run_all(struct run *run, const char *name, int repeat) {
    double seconds[99];
    int count = 0;
    while (count < repeat && run->result->status == GPUMEM_OK)
        seconds[count++] = run_once(run, name);
    if (run->result->status == GPUMEM_OK) {
        qsort(seconds, (size_t)count, sizeof *seconds, by_value);
        run->result->seconds = seconds[count / 2];
        run->look = true;
        (void)run_once(run, name);
    }
    run->result->done = run->result->status == GPUMEM_OK;
}

static size_t make_streams(struct run *run) {
    size_t made = 1;
    while (made < run->log->streams) {
        gpumem_status status = gpumem_stream_create(run->target.device, NULL, &run->streams[made]);
        if (status != GPUMEM_OK) {
            note_failure(run, status, 0);
            break;
        }
        made++;
    }
    return made;
}

void replay_run(const struct replay_log *log, gpumem_device *device, const char *name, int repeat,
                struct replay_result *result) {
    *result = (struct replay_result){.resource = name};
    struct run run = {.log = log, .result = result};
    run.target.device = device;
    run.target.ops = strcmp(name, "driver") == 0 ? &replay_driver : &replay_library;
    run.slots = calloc(log->buffers + 1, sizeof *run.slots);
    run.streams = calloc(log->streams, sizeof(CUstream));
    if (!run.slots || !run.streams) {
        result->status = GPUMEM_ERROR_OUT_OF_HOST_MEMORY;
        snprintf(result->message, sizeof result->message, "no memory to run the log");
    } else {
        size_t made = make_streams(&run);
        if (result->status == GPUMEM_OK)
            run_all(&run, name, repeat);
        while (made > 1)
            (void)gpumem_stream_destroy(device, run.streams[--made]);
    }
    free(run.slots);
    free(run.streams);
}
