/* Reads a log: that of a trace resource here, CSV according to RFC 4180, checked line by line; a
 * compact trace, or a snapshot that is made into one, in the files beside it. */
#include "cli.h"
#include "descriptor.h"
#include "replay.h"
#include "text_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum column {
    SEQUENCE,
    TIME,
    THREAD,
    EVENT,
    BUFFER,
    BYTES,
    ALIGNMENT,
    CAPACITY,
    STREAM,
    POINTER,
    COMMITTED,
    TOOK,
    STATUS,
    NOTE,
    COLUMNS
};

static const char *const names[COLUMNS] = {
    "sequence", "time_ns", "thread",  "event",     "buffer",  "bytes",  "alignment",
    "capacity", "stream",  "pointer", "committed", "took_ns", "status", "note"};

static const char first_line[] = "#gpumem-log,1\n";

/* The default stream has two names, which mean one stream. */
#define LEGACY_STREAM 1

/* Of a log, which is held in memory. */
#define MOST ((size_t)16 << 30)

struct reader {
    struct replay_log *log;
    char *text, *end, *at;
    uint32_t line;          /* of `at` */
    uint32_t begun;         /* line in which the record begins */
    size_t lines;           /* in the whole text */
    size_t fields[COLUMNS]; /* offsets in `text` of the record's fields */
    uint64_t sequence, time;
    uint64_t *sizes;     /* of each live buffer, by number from 1; 0 for others */
    unsigned char *seen; /* whether there has been a buffer of that number */
    uint64_t in_use;
    struct replay_numbers streams, threads;
};

static int refuse(const struct reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int refuse(const struct reader *r, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)cli_error(CLI_FILE, "%s:%u: %s", r->log->path, r->begun, text);
    return CLI_FILE;
}

static int no_memory(void) {
    (void)cli_error(CLI_NO_MEMORY, "replay: no memory for the log");
    return CLI_NO_MEMORY;
}

/* ---- Text ------------------------------------------------------------------------------------ */

/* Takes a field in quotes: the doubled ones inside become one, in place. False if it does not end
 * or something follows it. */
static bool take_quoted(struct reader *r, size_t *field) {
    char *to = ++r->at;
    *field = (size_t)(to - r->text);
    for (; r->at < r->end; r->at++) {
        if (*r->at == '\n')
            r->line++;
        if (*r->at == '"' && (++r->at == r->end || *r->at != '"')) {
            bool closed = r->at < r->end && (*r->at == ',' || *r->at == '\n');
            *to = 0;
            return closed;
        }
        *to++ = *r->at;
    }
    return false;
}

static bool take_plain(struct reader *r, size_t *field) {
    *field = (size_t)(r->at - r->text);
    while (r->at < r->end && *r->at != ',' && *r->at != '\n' && *r->at != '"')
        r->at++;
    return r->at < r->end && *r->at != '"';
}

static int take_record(struct reader *r) {
    r->begun = r->line;
    for (unsigned i = 0; i < COLUMNS; i++) {
        bool quoted = r->at < r->end && *r->at == '"';
        if (!(quoted ? take_quoted(r, &r->fields[i]) : take_plain(r, &r->fields[i]))) {
            if (r->at >= r->end)
                return refuse(r, "incomplete line; was the log truncated?");
            return refuse(r, "column '%s': misplaced quote", names[i]);
        }
        bool last = *r->at == '\n';
        if (last != (i == COLUMNS - 1))
            return refuse(r, "%s%u columns, not %d", last ? "" : "more than ", i + 1, (int)COLUMNS);
        *r->at++ = 0;
        r->line += last;
    }
    return CLI_OK;
}

static const char *field(const struct reader *r, unsigned column) {
    return r->text + r->fields[column];
}

static bool parse_number(const char *text, unsigned base, uint64_t *value) {
    if (base == 16) {
        if (text[0] != '0' || text[1] != 'x')
            return false;
        text += 2;
    }
    const char *digits = base == 16 ? "0123456789abcdef" : "0123456789";
    size_t length = strlen(text);
    if (!length || strspn(text, digits) != length)
        return false;
    errno = 0;
    *value = strtoull(text, NULL, (int)base);
    return errno == 0;
}

static int take_numbers(const struct reader *r, uint64_t values[COLUMNS]) {
    for (unsigned i = 0; i < STATUS; i++) {
        unsigned base = i == STREAM || i == POINTER ? 16 : 10;
        if (i != EVENT && !parse_number(field(r, i), base, &values[i]))
            return refuse(r, "column '%s': '%.40s' is not a %snumber", names[i], field(r, i),
                          base == 16 ? "hexadecimal " : "");
    }
    return CLI_OK;
}

/* ---- Meaning --------------------------------------------------------------------------------- */

/* Handles are compared by value; those that do not denote a separate stream are the default
 * stream's. */
static uint32_t stream_index(struct reader *r, uint64_t handle) {
    if (handle <= LEGACY_STREAM || handle == (uint64_t)(uintptr_t)GPUMEM_STREAM_NONE)
        handle = 0;
    return replay_number(&r->streams, handle);
}

static int check_allocate(struct reader *r, const uint64_t v[COLUMNS]) {
    if (!v[BUFFER] || v[BUFFER] > r->lines || r->seen[v[BUFFER]])
        return refuse(r, "buffer %llu: %s", (unsigned long long)v[BUFFER],
                      v[BUFFER] && v[BUFFER] <= r->lines ? "it was used before"
                                                         : "not a number of this log");
    if (!v[BYTES] || (v[ALIGNMENT] & (v[ALIGNMENT] - 1)) || (v[CAPACITY] && v[CAPACITY] < v[BYTES]))
        return refuse(r, "invalid allocation: %llu bytes, alignment %llu, capacity %llu",
                      (unsigned long long)v[BYTES], (unsigned long long)v[ALIGNMENT],
                      (unsigned long long)v[CAPACITY]);
    r->seen[v[BUFFER]] = 1;
    if (v[BUFFER] > r->log->buffers)
        r->log->buffers = (size_t)v[BUFFER];
    return CLI_OK;
}

/* Checks that buffers are allocated, resized and freed in a possible order. */
static int check_event(struct reader *r, enum replay_kind kind, const uint64_t v[COLUMNS]) {
    if (kind == REPLAY_ALLOCATE) {
        int result = check_allocate(r, v);
        if (result != CLI_OK)
            return result;
    } else if (!v[BUFFER] || v[BUFFER] > r->lines || !r->sizes[v[BUFFER]]) {
        return refuse(r, "there is no buffer %llu", (unsigned long long)v[BUFFER]);
    } else if (kind == REPLAY_RESIZE && !v[BYTES]) {
        return refuse(r, "a resize to 0 bytes");
    }
    uint64_t *size = &r->sizes[v[BUFFER]];
    uint64_t now = kind == REPLAY_FREE ? 0 : v[BYTES];
    if (now > *size && now - *size > UINT64_MAX - r->in_use)
        return refuse(r, "%llu bytes overflow the total", (unsigned long long)now);
    r->in_use += now - *size;
    *size = now;
    return CLI_OK;
}

static int add_event(struct reader *r, enum replay_kind kind, const uint64_t v[COLUMNS]) {
    int result = check_event(r, kind, v);
    if (result != CLI_OK)
        return result;
    uint32_t stream = stream_index(r, v[STREAM]);
    if (stream == UINT32_MAX)
        return no_memory();
    if (stream >= REPLAY_STREAMS_MOST)
        return refuse(r, "more than %d streams", REPLAY_STREAMS_MOST);
    r->log->events[r->log->count++] = (struct replay_event){.kind = kind,
                                                            .buffer = (uint32_t)v[BUFFER] - 1,
                                                            .stream = stream,
                                                            .line = r->begun,
                                                            .bytes = v[BYTES],
                                                            .alignment = v[ALIGNMENT],
                                                            .capacity = v[CAPACITY]};
    return CLI_OK;
}

/* A note "step", or one that begins with that word, is the end of a step of the program. */
static int take_note(struct reader *r) {
    const char *text = field(r, NOTE);
    r->log->notes++;
    if (strncmp(text, "step", 4) == 0 && (!text[4] || text[4] == ' '))
        r->log->events[r->log->count++] =
            (struct replay_event){.kind = REPLAY_STEP, .line = r->begun};
    return CLI_OK;
}

static int take_event(struct reader *r) {
    static const char *const kinds[] = {"allocate", "resize", "free", "note"};
    uint64_t v[COLUMNS] = {0};
    int result = take_record(r);
    if (result == CLI_OK)
        result = take_numbers(r, v);
    if (result != CLI_OK)
        return result;
    if (v[SEQUENCE] != r->sequence + 1)
        return refuse(r, "number %llu follows %llu: lines are missing or out of order",
                      (unsigned long long)v[SEQUENCE], (unsigned long long)r->sequence);
    if (v[TIME] < r->time)
        return refuse(r, "the time decreases");
    r->sequence = v[SEQUENCE];
    r->time = v[TIME];
    unsigned kind = 0;
    while (kind < 4 && strcmp(field(r, EVENT), kinds[kind]) != 0)
        kind++;
    const char *status = field(r, STATUS);
    if (!*status || status[strspn(status, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_")])
        return refuse(r, "column 'status': '%.40s' is not a status", status);
    if (kind == 4)
        return refuse(r, "column 'event': '%.40s' is not an event", field(r, EVENT));
    if (replay_number(&r->threads, v[THREAD]) == UINT32_MAX)
        return no_memory();
    if (kind == 3)
        return take_note(r);
    if (strcmp(status, "OK") != 0) {
        r->log->failed++;
        return CLI_OK;
    }
    return add_event(r, (enum replay_kind)kind, v);
}

static int take_header(struct reader *r) {
    size_t length = strlen(first_line), bytes = (size_t)(r->end - r->text);
    r->begun = r->line = 1;
    if (bytes < length || memcmp(r->text, first_line, length) != 0)
        return refuse(r, "not a log of a trace resource in version 1: it does not begin with "
                         "'#gpumem-log,1'");
    r->at += length;
    r->line = 2;
    int result = take_record(r);
    for (unsigned i = 0; result == CLI_OK && i < COLUMNS; i++)
        if (strcmp(field(r, i), names[i]) != 0)
            return refuse(r, "column %u is '%.40s', not '%s'", i + 1, field(r, i), names[i]);
    return result;
}

static int take_all(struct reader *r) {
    struct replay_log *log = r->log;
    for (const char *at = r->text; at < r->end; at++)
        r->lines += *at == '\n';
    if (r->lines > UINT32_MAX / 2)
        return cli_error(CLI_FILE, "%s: %zu lines are too many", log->path, r->lines);
    log->events = calloc(r->lines + 1, sizeof *log->events);
    r->sizes = calloc(r->lines + 1, sizeof *r->sizes);
    r->seen = calloc(r->lines + 1, 1);
    if (!log->events || !r->sizes || !r->seen || stream_index(r, 0) != 0)
        return no_memory();
    int result = take_header(r);
    while (result == CLI_OK && r->at < r->end)
        result = take_event(r);
    log->streams = r->streams.count;
    log->threads = r->threads.count;
    log->seconds = 1e-9 * (double)r->time;
    return result != CLI_OK || replay_count(log) ? result : no_memory();
}

static int read_csv(const struct cli_text *text, struct replay_log *log) {
    struct reader reader = {
        .log = log, .text = text->text, .at = text->text, .end = text->text + text->size};
    int result = take_all(&reader);
    free(reader.sizes);
    free(reader.seen);
    replay_numbers_clear(&reader.streams);
    replay_numbers_clear(&reader.threads);
    return result;
}

/* ---- Which form it has ----------------------------------------------------------------------- */

/* The first bytes of packed files, of pickles since protocol 2, and of JSON. */
static bool is_converted(int first) {
    return first == 0xfd || first == 0x80 || first == '{';
}

static bool is_compact(const char *text) {
    return (text[0] && strchr("+-*=!", text[0])) ||
           (text[0] == '#' && strncmp(text, "#gpumem-log", 11) != 0);
}

static int load(FILE *file, const char *path, int device, struct replay_log *log) {
    struct cli_text text = {0};
    int first = getc(file);
    (void)ungetc(first, file);
    int result = is_converted(first) ? replay_convert(file, path, device, &text)
                                     : cli_read_text(file, path, MOST, &text);
    if (result == CLI_OK)
        result = is_compact(text.text) ? replay_read_compact(text.text, text.size, log)
                                       : read_csv(&text, log);
    free(text.text);
    return result;
}

int replay_read(const char *path, int device, struct replay_log *log) {
    *log = (struct replay_log){.path = path};
    FILE *file = cli_open_text(path);
    if (!file) {
        (void)cli_error(CLI_FILE, "%s: %s", path, strerror(errno));
        return CLI_FILE;
    }
    int result = load(file, path, device, log);
    fclose(file);
    return result;
}

void replay_clear(struct replay_log *log) {
    free(log->events);
    log->events = NULL;
}
