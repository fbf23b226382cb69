#include "replay_print.h"

#include "cli.h"
#include "json.h"
#include "terminal.h"

#include <stdlib.h>
#include <string.h>

#define NAME_WIDTH 15
#define CELL       24 /* bytes of a cell's text */

static double ratio(uint64_t bytes, uint64_t in_use) {
    return in_use ? (double)bytes / (double)in_use : 0;
}

static double fragmentation(const struct replay_log *log, const struct replay_result *result) {
    if (result->peak_committed <= log->peak_bytes)
        return 0;
    return 1 - (double)log->peak_bytes / (double)result->peak_committed;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of the ratios at the ends of steps; 0 if there are none. */
static double median(const struct replay_result *r) {
    double *sorted = r->steps ? malloc(r->steps * sizeof *sorted) : NULL;
    if (!sorted)
        return 0;
    memcpy(sorted, r->step_ratios, r->steps * sizeof *sorted);
    qsort(sorted, r->steps, sizeof *sorted, by_value);
    double middle = sorted[r->steps / 2];
    free(sorted);
    return middle;
}

/* Nanoseconds of an operation; 0 if they were not measured. */
static double each(const struct replay_log *log, double seconds) {
    return log->operations ? 1e9 * seconds / (double)log->operations : 0;
}

/* ---- Text ------------------------------------------------------------------------------------ */

static const char *ratio_cell(double value, char text[CELL]) {
    snprintf(text, CELL, value > 0 ? value < 10 ? "%.3f" : "%.1f" : "-", value);
    return text;
}

static const char *ns_cell(double value, char text[CELL]) {
    snprintf(text, CELL, value > 0 ? "%.0f" : "-", value);
    return text;
}

static const char *count_cell(bool known, uint64_t value, char text[CELL]) {
    snprintf(text, CELL, known ? "%llu" : "-", (unsigned long long)value);
    return text;
}

static void print_cells(const struct replay_log *log, const char *name,
                        const struct replay_result *r) {
    char size[32], peak[CELL], steps[CELL], least[CELL], first[CELL], second[CELL], moved[CELL],
        waits[CELL];
    cli_line(
        stdout, "%-*s %10s %6s %6s %6s %8s %8s %7s %6s", NAME_WIDTH, name,
        cli_format_size(r->peak_committed, size),
        ratio_cell(ratio(r->peak_committed, log->peak_bytes), peak), ratio_cell(median(r), steps),
        ratio_cell(ratio(r->least_limit, log->peak_bytes), least),
        ns_cell(each(log, r->first_seconds), first), ns_cell(each(log, r->second_seconds), second),
        count_cell(r->caches, r->pages_moved, moved), count_cell(r->caches, r->waits, waits));
}

static void print_row(const struct replay_log *log, const char *const *paths, size_t paths_count,
                      const struct replay_result *r) {
    const char *of = paths_count > 1 ? " of " : "";
    const char *path = paths_count > 1 ? paths[r->failed_source] : "";
    const char *name = r->resource;
    if (strlen(name) > NAME_WIDTH) {
        cli_line(stdout, "%s", name);
        name = "";
    }
    if (r->done)
        print_cells(log, name, r);
    else if (r->failed_line)
        cli_line(stdout, "%-*s ended at line %u%s%s: %s", NAME_WIDTH, name, r->failed_line, of,
                 path, r->message);
    else
        cli_line(stdout, "%-*s cannot be used: %s", NAME_WIDTH, name, r->message);
}

void replay_print_text(const struct replay_log *log, const char *const *paths, size_t paths_count,
                       const struct replay_result *results, size_t count) {
    char size[32];
    for (size_t i = 0; i < paths_count; i++)
        cli_line(stdout, "log       %s", paths[i]);
    cli_line(stdout, "          %zu %s in %llu %s: %llu %s, %zu %s, %zu %s", log->operations,
             cli_plural(log->operations, "operation", "operations"), (unsigned long long)log->steps,
             cli_plural(log->steps, "step", "steps"), (unsigned long long)log->allocations,
             cli_plural(log->allocations, "buffer", "buffers"), log->streams,
             cli_plural(log->streams, "stream", "streams"), log->threads,
             cli_plural(log->threads, "thread", "threads"));
    cli_line(stdout, "in use    %s at most; %llu %s failed, %llu %s not freed",
             cli_format_size(log->peak_bytes, size), (unsigned long long)log->failed,
             cli_plural(log->failed, "request", "requests"), (unsigned long long)log->alive,
             cli_plural(log->alive, "buffer", "buffers"));
    cli_line(stdout, "%s", "");
    cli_line(stdout, "%-*s %10s %13s %6s %17s %7s", NAME_WIDTH, "", "", "/ in use  ", "least",
             "ns per operation", "pages");
    cli_line(stdout, "%-*s %10s %6s %6s %6s %8s %8s %7s %6s", NAME_WIDTH, "resource", "committed",
             "peak", "steps", "limit", "first", "second", "moved", "waits");
    for (size_t i = 0; i < count; i++)
        print_row(log, paths, paths_count, &results[i]);
    for (size_t i = 0; i < count; i++)
        if (results[i].done && results[i].moved)
            cli_line(stdout, "%s: %llu of %llu resizes took a new buffer", results[i].resource,
                     (unsigned long long)results[i].moved, (unsigned long long)log->resizes);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void print_done(struct json *json, const struct replay_log *log,
                       const struct replay_result *r) {
    if (r->first_seconds > 0) {
        json_number(json, "seconds", r->first_seconds);
        json_number(json, "second_seconds", r->second_seconds);
        json_number(json, "first_ns", each(log, r->first_seconds));
        json_number(json, "second_ns", each(log, r->second_seconds));
    }
    json_unsigned(json, "peak_committed", r->peak_committed);
    json_number(json, "ratio", ratio(r->peak_committed, log->peak_bytes));
    json_number(json, "fragmentation", fragmentation(log, r));
    json_unsigned(json, "moved", r->moved);
    if (r->least_limit) {
        json_unsigned(json, "least_limit", r->least_limit);
        json_number(json, "least_limit_ratio", ratio(r->least_limit, log->peak_bytes));
    }
    if (r->caches) {
        json_unsigned(json, "pages_moved", r->pages_moved);
        json_unsigned(json, "waits", r->waits);
    }
    json_open(json, "step_ratios", '[');
    for (size_t i = 0; i < r->steps; i++)
        json_number(json, NULL, r->step_ratios[i]);
    json_close(json, ']');
}

static void print_result(struct json *json, const struct replay_log *log, const char *const *paths,
                         size_t paths_count, const struct replay_result *r) {
    json_open(json, NULL, '{');
    json_string(json, "resource", r->resource);
    json_bool(json, "done", r->done);
    if (r->done) {
        print_done(json, log, r);
    } else {
        json_string(json, "status", gpumem_status_name(r->status));
        json_string(json, "message", r->message);
        if (r->failed_line)
            json_unsigned(json, "line", r->failed_line);
        if (r->failed_line && paths_count > 1)
            json_string(json, "log", paths[r->failed_source]);
    }
    json_close(json, '}');
}

int replay_print_json(const struct replay_log *log, const char *const *paths, size_t paths_count,
                      const struct replay_result *results, size_t count) {
    struct json json;
    json_begin(&json);
    json_open(&json, NULL, '{');
    json_string(&json, "log", paths[0]);
    json_open(&json, "logs", '[');
    for (size_t i = 0; i < paths_count; i++)
        json_string(&json, NULL, paths[i]);
    json_close(&json, ']');
    json_unsigned(&json, "events", log->operations);
    json_number(&json, "logged_seconds", log->seconds);
    json_unsigned(&json, "allocations", log->allocations);
    json_unsigned(&json, "resizes", log->resizes);
    json_unsigned(&json, "steps", log->steps);
    json_unsigned(&json, "streams", log->streams);
    json_unsigned(&json, "threads", log->threads);
    json_unsigned(&json, "failed", log->failed);
    json_unsigned(&json, "notes", log->notes);
    json_unsigned(&json, "not_freed", log->alive);
    json_unsigned(&json, "peak_in_use", log->peak_bytes);
    json_open(&json, "resources", '[');
    for (size_t i = 0; i < count; i++)
        print_result(&json, log, paths, paths_count, &results[i]);
    json_close(&json, ']');
    json_close(&json, '}');
    return json_print(&json);
}
