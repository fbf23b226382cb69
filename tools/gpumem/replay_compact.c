/* The compact form of a trace: a line for each event, in which buffers are counted from the newest
 * one backwards (docs/replay.md). */
#include "cli.h"
#include "replay.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct compact {
    struct replay_log *log;
    const char *at, *end;
    uint32_t line;
    size_t made;
    struct holding {
        uint64_t bytes; /* 0: freed */
        uint32_t stream;
    } * buffers;
    uint64_t in_use;
    struct replay_numbers streams;
};

static int refuse(const struct compact *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int refuse(const struct compact *c, const char *format, ...) {
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)cli_error(CLI_FILE, "%s:%u: %s", c->log->path, c->line, text);
    return CLI_FILE;
}

static int no_memory(void) {
    (void)cli_error(CLI_NO_MEMORY, "replay: no memory for the log");
    return CLI_NO_MEMORY;
}

/* A decimal number that begins at *at, which goes past it. */
static bool take_number(const char **at, uint64_t *value) {
    const char *digits = *at;
    *value = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        uint64_t digit = (uint64_t)(**at - '0');
        if (*value > (UINT64_MAX - digit) / 10)
            return false;
        *value = 10 * *value + digit;
    }
    return *at > digits;
}

static int take_stream(struct compact *c, uint32_t *stream) {
    uint64_t name = 0;
    if (*c->at == '@' && (c->at++, !take_number(&c->at, &name)))
        return refuse(c, "after '@' stands the number of a stream");
    *stream = replay_number(&c->streams, name);
    if (*stream == UINT32_MAX)
        return no_memory();
    if (*stream >= REPLAY_STREAMS_MOST)
        return refuse(c, "more than %d streams", REPLAY_STREAMS_MOST);
    return CLI_OK;
}

static int take_allocation(struct compact *c, struct replay_event *event) {
    if (!take_number(&c->at, &event->bytes) || !event->bytes || event->bytes > SIZE_MAX)
        return refuse(c, "after '+' stands the number of bytes, from 1 to %zu", (size_t)SIZE_MAX);
    if (event->bytes > UINT64_MAX - c->in_use)
        return refuse(c, "%llu bytes overflow the total", (unsigned long long)event->bytes);
    int result = take_stream(c, &event->stream);
    c->in_use += event->bytes;
    event->buffer = (uint32_t)c->made;
    c->buffers[c->made++] = (struct holding){event->bytes, event->stream};
    return result;
}

/* The buffer of a free or a use. */
static int take_buffer(struct compact *c, struct replay_event *event) {
    uint64_t back = 0;
    char mark = c->at[-1];
    if (!take_number(&c->at, &back) || !back)
        return refuse(c, "after '%c' stands which allocation, 1 for the newest", mark);
    if (back > c->made)
        return refuse(c, "%llu allocations back there is none: %zu were made",
                      (unsigned long long)back, c->made);
    size_t buffer = c->made - (size_t)back;
    if (!c->buffers[buffer].bytes)
        return refuse(c, "the allocation is freed already");
    event->buffer = (uint32_t)buffer;
    event->stream = c->buffers[buffer].stream;
    return CLI_OK;
}

static int take_free(struct compact *c, struct replay_event *event) {
    int result = take_buffer(c, event);
    if (result == CLI_OK) {
        c->in_use -= c->buffers[event->buffer].bytes;
        c->buffers[event->buffer].bytes = 0;
    }
    return result;
}

static int take_use(struct compact *c, struct replay_event *event) {
    int result = take_buffer(c, event);
    if (result == CLI_OK && *c->at != '@')
        return refuse(c, "a use names its stream after '@'");
    return result == CLI_OK ? take_stream(c, &event->stream) : result;
}

static int take_line(struct compact *c) {
    struct replay_event event = {.line = c->line};
    int result = CLI_OK;
    switch (*c->at++) {
    case '+':
        event.kind = REPLAY_ALLOCATE;
        result = take_allocation(c, &event);
        break;
    case '-':
        event.kind = REPLAY_FREE;
        result = take_free(c, &event);
        break;
    case '*':
        event.kind = REPLAY_USE;
        result = take_use(c, &event);
        break;
    case '=':
        event.kind = REPLAY_STEP;
        break;
    case '!':
        event.kind = REPLAY_EMPTY;
        break;
    case '#':
        c->at += strcspn(c->at, "\n") + 1;
        return CLI_OK;
    default:
        return refuse(c, "a line begins with one of + - * = ! #");
    }
    if (result == CLI_OK && *c->at++ != '\n')
        return refuse(c, "more than an event on a line");
    c->log->events[c->log->count++] = event;
    return result;
}

static int take_lines(struct compact *c) {
    size_t lines = 0;
    for (const char *at = c->at; at < c->end; at++)
        lines += *at == '\n';
    if (lines > UINT32_MAX / 2)
        return cli_error(CLI_FILE, "%s: %zu lines are too many", c->log->path, lines);
    c->log->events = calloc(lines + 1, sizeof *c->log->events);
    c->buffers = calloc(lines + 1, sizeof *c->buffers);
    if (!c->log->events || !c->buffers || replay_number(&c->streams, 0) != 0)
        return no_memory();
    int result = CLI_OK;
    for (c->line = 1; result == CLI_OK && c->at < c->end; c->line++)
        result =
            c->line > lines ? refuse(c, "incomplete line; was the trace truncated?") : take_line(c);
    c->log->buffers = c->made;
    c->log->streams = c->streams.count;
    c->log->threads = 1;
    return result != CLI_OK || replay_count(c->log) ? result : no_memory();
}

int replay_read_compact(const char *text, size_t size, struct replay_log *log) {
    struct compact c = {.log = log, .at = text, .end = text + size};
    int result = take_lines(&c);
    free(c.buffers);
    replay_numbers_clear(&c.streams);
    return result;
}

/* ---- Printing -------------------------------------------------------------------------------- */

static void print_stream(uint32_t stream) {
    if (stream)
        printf("@%u", stream);
    putchar('\n');
}

/* `numbers` are those of the buffers' allocations, from 1. */
static void print_event(const struct replay_event *event, size_t *numbers, size_t *made) {
    size_t *number = event->kind < REPLAY_EMPTY ? &numbers[event->buffer] : NULL;
    switch (event->kind) {
    case REPLAY_RESIZE:
    case REPLAY_ALLOCATE:
        printf("+%llu", (unsigned long long)event->bytes);
        print_stream(event->stream);
        ++*made;
        if (event->kind == REPLAY_RESIZE)
            printf("-%zu\n", *made - *number + 1);
        *number = *made;
        break;
    case REPLAY_FREE:
        printf("-%zu\n", *made - *number + 1);
        break;
    case REPLAY_USE:
        printf("*%zu@%u\n", *made - *number + 1, event->stream);
        break;
    case REPLAY_EMPTY:
        puts("!");
        break;
    case REPLAY_STEP:
        puts("=");
        break;
    }
}

int replay_print_compact(const struct replay_log *log) {
    size_t *numbers = calloc(log->buffers + 1, sizeof *numbers), made = 0;
    if (!numbers)
        return no_memory();
    for (size_t i = 0; i < log->count; i++)
        print_event(&log->events[i], numbers, &made);
    free(numbers);
    if (fflush(stdout) != 0 || ferror(stdout))
        return cli_error(CLI_FAILED, "replay: cannot write: %s", strerror(errno));
    return CLI_OK;
}
