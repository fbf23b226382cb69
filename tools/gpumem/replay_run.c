/* Runs a log in its order, in one thread, with a stream for each of its streams. */
#include "cli.h"
#include "replay.h"
#include "replay_delay.h"
#include "replay_target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum purpose { TIME, LOOK, TRY }; /* how long it takes, how much memory, whether it completes */

struct run {
    const struct replay_log *log;
    struct replay_target target;
    struct replay_slot *slots;
    CUstream *streams; /* [0] is the default one */
    struct replay_result *result;
    struct replay_delay *delay; /* or NULL */
    enum purpose purpose;
    uint64_t in_use;
};

static void note_failure(struct run *run, gpumem_status status, const struct replay_event *event) {
    if (run->result->status != GPUMEM_OK)
        return; /* a consequence of the first failure */
    run->result->status = status;
    run->result->failed_line = event ? event->line : 0;
    run->result->failed_source = event ? event->source : 0;
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
    run->result->moved += run->purpose == LOOK;
    return status;
}

/* Frees go to the stream of the event; those of a trace name that of the allocation. */
static gpumem_status operate(struct run *run, const struct replay_event *event) {
    struct replay_slot *slot = &run->slots[event->buffer];
    CUstream stream = run->streams[event->stream];
    const struct replay_target_ops *ops = run->target.ops;
    gpumem_status status = GPUMEM_OK;
    if (run->delay)
        status = replay_delay_operation(run->delay, stream, event->stream);
    if (status != GPUMEM_OK)
        return status;
    switch (event->kind) {
    case REPLAY_ALLOCATE:
        return ops->allocate(&run->target, event, event->bytes, stream, slot);
    case REPLAY_RESIZE:
        return run->target.resizes ? ops->resize(&run->target, slot, event->bytes, stream)
                                   : move(run, event, stream);
    case REPLAY_USE:
        return ops->use ? ops->use(&run->target, slot, stream) : GPUMEM_OK;
    default:
        status = ops->free(&run->target, slot, stream);
        slot->bytes = 0;
        return status;
    }
}

static gpumem_status take(struct run *run, const struct replay_event *event) {
    if (event->kind == REPLAY_STEP)
        return GPUMEM_OK;
    if (event->kind == REPLAY_EMPTY)
        return run->target.ops->empty(&run->target);
    return operate(run, event);
}

static gpumem_status look(struct run *run, const struct replay_event *event, uint64_t before) {
    struct replay_result *result = run->result;
    uint64_t now = 0;
    if (event->kind < REPLAY_USE)
        run->in_use += run->slots[event->buffer].bytes - before;
    if (event->kind == REPLAY_FREE)
        return GPUMEM_OK;
    gpumem_status status = run->target.ops->committed(&run->target, &now);
    if (now > result->peak_committed)
        result->peak_committed = now;
    if (event->kind == REPLAY_STEP && run->in_use)
        result->step_ratios[result->steps++] = (double)now / (double)run->in_use;
    return status;
}

static void run_events(struct run *run) {
    run->in_use = 0;
    for (size_t i = 0; i < run->log->count; i++) {
        const struct replay_event *event = &run->log->events[i];
        uint64_t before = run->slots[event->buffer].bytes;
        gpumem_status status = take(run, event);
        if (status == GPUMEM_OK && run->purpose == LOOK)
            status = look(run, event, before);
        if (status != GPUMEM_OK) {
            note_failure(run, status, event);
            return;
        }
    }
}

static void synchronize(struct run *run) {
    for (size_t i = 0; i < run->log->streams; i++) {
        gpumem_status status = gpumem_stream_synchronize(run->target.device, run->streams[i]);
        if (status != GPUMEM_OK)
            note_failure(run, status, NULL);
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
            note_failure(run, status, NULL);
    }
}

static double run_pass(struct run *run) {
    double begin = cli_now();
    run_events(run);
    double seconds = cli_now() - begin;
    replay_delay_release(run->delay);
    free_rest(run);
    return seconds;
}

static void ask_cache(struct run *run) {
    gpumem_resource *cache = replay_cache_of(&run->target);
    gpumem_caching_info info = {.size = sizeof info};
    if (!cache || run->result->status != GPUMEM_OK)
        return;
    gpumem_status status = gpumem_caching_get_info(cache, &info);
    if (status != GPUMEM_OK)
        note_failure(run, status, NULL);
    run->result->caches = true;
    run->result->pages_moved = info.pages_moved;
    run->result->waits = info.waits;
}

/* Seconds of the passes on a new resource. */
static void run_once(struct run *run, double seconds[2]) {
    memset(run->slots, 0, (run->log->buffers + 1) * sizeof *run->slots);
    gpumem_status status = run->target.ops->begin(&run->target);
    if (status != GPUMEM_OK) {
        note_failure(run, status, NULL);
        return;
    }
    seconds[0] = run_pass(run);
    if (run->purpose == LOOK)
        ask_cache(run);
    if (run->purpose == TIME && run->result->status == GPUMEM_OK)
        seconds[1] = run_pass(run);
    synchronize(run);
    status = run->target.ops->end(&run->target);
    if (status != GPUMEM_OK)
        note_failure(run, status, NULL);
}

/* The same on streams that are behind. */
static void run_behind(struct run *run, uint64_t behind, double seconds[2]) {
    if (behind) {
        run->delay = replay_delay_begin(run->target.device, behind, run->log->streams);
        if (!run->delay) {
            note_failure(run, gpumem_last_error()->status, NULL);
            return;
        }
    }
    run_once(run, seconds);
    replay_delay_end(run->delay);
    run->delay = NULL;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A delay costs calls of the driver, which are not the resource's. */
static void measure_time(struct run *run, int repeat) {
    double first[99], second[99], seconds[2] = {0};
    int count = 0;
    run->purpose = TIME;
    for (; count < repeat && run->result->status == GPUMEM_OK; count++) {
        run_once(run, seconds);
        first[count] = seconds[0];
        second[count] = seconds[1];
    }
    if (run->result->status != GPUMEM_OK)
        return;
    qsort(first, (size_t)count, sizeof *first, by_value);
    qsort(second, (size_t)count, sizeof *second, by_value);
    run->result->first_seconds = first[count / 2];
    run->result->second_seconds = second[count / 2];
}

/* ---- The least limit ------------------------------------------------------------------------- */

/* Finer than the bars that are judged by it, in parts of the peak. */
#define LIMIT_PARTS 1000
#define LIMIT_MOST  (4 * LIMIT_PARTS) /* as many times the peak as are tried */

/* Whether the log completes under `parts` of its peak; failures other than of room are errors. */
static bool completes(struct run *run, const struct replay_settings *settings, unsigned parts,
                      uint64_t *limit) {
    struct replay_description limited = *run->target.description;
    struct replay_result result = {.resource = limited.name};
    struct run trial = *run;
    double seconds[2];
    *limit = run->log->peak_bytes / LIMIT_PARTS * parts +
             run->log->peak_bytes % LIMIT_PARTS * parts / LIMIT_PARTS;
    (void)replay_set_limit(&limited, *limit);
    trial.target.description = &limited;
    trial.result = &result;
    trial.purpose = TRY;
    run_behind(&trial, settings->defer, seconds);
    if (result.status != GPUMEM_OK && result.status != GPUMEM_ERROR_OUT_OF_CAPACITY &&
        result.status != GPUMEM_ERROR_OUT_OF_MEMORY) {
        *run->result = (struct replay_result){.resource = run->result->resource,
                                              .status = result.status,
                                              .failed_line = result.failed_line,
                                              .failed_source = result.failed_source,
                                              .step_ratios = run->result->step_ratios};
        memcpy(run->result->message, result.message, sizeof result.message);
    }
    return result.status == GPUMEM_OK;
}

static void find_least_limit(struct run *run, const struct replay_settings *settings) {
    struct replay_description limited = *run->target.description;
    if (!run->log->peak_bytes || run->log->peak_bytes > UINT64_MAX / 8 ||
        !replay_set_limit(&limited, 1))
        return;
    unsigned fails = LIMIT_PARTS - 1; /* less than is in use */
    unsigned fits =
        (unsigned)(run->result->peak_committed / (run->log->peak_bytes / LIMIT_PARTS + 1));
    uint64_t limit = 0, least = 0;
    fits = fits < LIMIT_PARTS ? LIMIT_PARTS : fits + 1;
    while (run->result->status == GPUMEM_OK && fits <= LIMIT_MOST &&
           !completes(run, settings, fits, &limit)) {
        fails = fits;
        fits += 1 + (fits - LIMIT_PARTS) / 2;
    }
    if (run->result->status != GPUMEM_OK || fits > LIMIT_MOST)
        return;
    for (least = limit; fits - fails > 1 && run->result->status == GPUMEM_OK;) {
        unsigned middle = fails + (fits - fails) / 2;
        if (completes(run, settings, middle, &limit)) {
            fits = middle;
            least = limit;
        } else {
            fails = middle;
        }
    }
    run->result->least_limit = least;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void run_all(struct run *run, const struct replay_settings *settings) {
    double seconds[2];
    if (!settings->defer)
        measure_time(run, settings->repeat);
    run->purpose = LOOK;
    if (run->result->status == GPUMEM_OK)
        run_behind(run, settings->defer, seconds);
    if (run->result->status == GPUMEM_OK && settings->least_limit)
        find_least_limit(run, settings);
    run->result->done = run->result->status == GPUMEM_OK;
}

static size_t make_streams(struct run *run) {
    size_t made = 1;
    while (made < run->log->streams) {
        gpumem_status status = gpumem_stream_create(run->target.device, NULL, &run->streams[made]);
        if (status != GPUMEM_OK) {
            note_failure(run, status, NULL);
            break;
        }
        made++;
    }
    return made;
}

void replay_run(const struct replay_log *log, gpumem_device *device,
                const struct replay_description *description,
                const struct replay_settings *settings, struct replay_result *result) {
    *result = (struct replay_result){.resource = description->name};
    struct run run = {.log = log, .result = result};
    run.target.device = device;
    run.target.description = description;
    run.target.ops =
        description->layers[0].kind == REPLAY_DRIVER ? &replay_driver : &replay_library;
    run.slots = calloc(log->buffers + 1, sizeof *run.slots);
    run.streams = calloc(log->streams, sizeof(CUstream));
    result->step_ratios = calloc(log->steps + 1, sizeof *result->step_ratios);
    if (!run.slots || !run.streams || !result->step_ratios) {
        result->status = GPUMEM_ERROR_OUT_OF_HOST_MEMORY;
        snprintf(result->message, sizeof result->message, "no memory to run the log");
    } else {
        size_t made = make_streams(&run);
        if (result->status == GPUMEM_OK)
            run_all(&run, settings);
        while (made > 1)
            (void)gpumem_stream_destroy(device, run.streams[--made]);
    }
    free(run.slots);
    free(run.streams);
}

void replay_result_clear(struct replay_result *result) {
    free(result->step_ratios);
    result->step_ratios = NULL;
}
