/* What a log contains, and one log of several programs that take turns. */
#include "cli.h"
#include "replay.h"

#include <stdlib.h>
#include <string.h>

static bool count_event(struct replay_log *log, const struct replay_event *event, uint64_t *sizes,
                        uint64_t *in_use) {
    if (event->kind == REPLAY_STEP)
        log->steps++;
    if (event->kind == REPLAY_STEP || event->kind == REPLAY_EMPTY)
        return true;
    log->operations++;
    log->allocations += event->kind == REPLAY_ALLOCATE;
    log->resizes += event->kind == REPLAY_RESIZE;
    if (event->kind == REPLAY_USE)
        return true;
    uint64_t *size = &sizes[event->buffer];
    uint64_t now = event->kind == REPLAY_FREE ? 0 : event->bytes;
    if (now > *size && now - *size > UINT64_MAX - *in_use)
        return false;
    log->alive += (now != 0) - (uint64_t)(*size != 0);
    *in_use += now - *size;
    *size = now;
    if (*in_use > log->peak_bytes)
        log->peak_bytes = *in_use;
    return true;
}

bool replay_count(struct replay_log *log) {
    uint64_t *sizes = calloc(log->buffers + 1, sizeof *sizes), in_use = 0;
    log->operations = 0;
    log->allocations = log->resizes = log->steps = log->alive = log->peak_bytes = 0;
    bool fits = sizes && log->events;
    for (size_t i = 0; fits && i < log->count; i++)
        fits = count_event(log, &log->events[i], sizes, &in_use);
    free(sizes);
    return fits;
}

/* ---- Turns ----------------------------------------------------------------------------------- */

struct turn {
    const struct replay_log *log;
    size_t next;
    uint32_t source, first_buffer, first_stream;
};

/* Up to and with the end of the next step, or of the log. */
static void append_step(struct turn *turn, struct replay_log *merged) {
    while (turn->next < turn->log->count) {
        struct replay_event *event = &merged->events[merged->count++];
        *event = turn->log->events[turn->next++];
        event->source = turn->source;
        event->buffer += turn->first_buffer;
        event->stream += turn->first_stream;
        if (event->kind == REPLAY_STEP)
            return;
    }
}

static void take_turns(struct turn *all, size_t count, const unsigned *turns,
                       struct replay_log *merged) {
    bool left = true;
    while (left) {
        left = false;
        for (size_t i = 0; i < count; i++) {
            for (unsigned steps = turns[i]; steps > 0; steps--)
                append_step(&all[i], merged);
            left |= all[i].next < all[i].log->count;
        }
    }
}

int replay_merge(const struct replay_log *logs, size_t count, const unsigned *turns,
                 struct replay_log *merged) {
    size_t events = 0;
    *merged = (struct replay_log){.path = logs[0].path};
    struct turn *all = calloc(count, sizeof *all);
    for (size_t i = 0; all && i < count; i++) {
        all[i] = (struct turn){.log = &logs[i],
                               .source = (uint32_t)i,
                               .first_buffer = (uint32_t)merged->buffers,
                               .first_stream = (uint32_t)merged->streams};
        events += logs[i].count;
        merged->buffers += logs[i].buffers;
        merged->streams += logs[i].streams;
        merged->threads += logs[i].threads;
        merged->failed += logs[i].failed;
        merged->notes += logs[i].notes;
        merged->seconds += logs[i].seconds;
    }
    if (merged->buffers <= UINT32_MAX && merged->streams <= REPLAY_STREAMS_MOST)
        merged->events = calloc(events + 1, sizeof *merged->events);
    int result = CLI_OK;
    if (!all || !merged->events)
        result = cli_error(CLI_NO_MEMORY, "replay: no memory for the logs, or too many streams");
    else
        take_turns(all, count, turns, merged);
    free(all);
    if (result == CLI_OK && !replay_count(merged))
        result = cli_error(CLI_FILE, "replay: together the logs use more than 2^64 bytes");
    return result;
}
