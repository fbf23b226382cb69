/* gpumem replay: repeats a program's allocations on the resources that it could have used. */
#include "cli.h"
#include "json.h"
#include "replay.h"
#include "terminal.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESOURCES_MOST 6
#define REPEAT_MOST    99

const char cmd_replay_usage[] =
    "usage: gpumem replay [OPTION...] LOG\n"
    "\n"
    "Repeats the log of a trace resource: each allocation, resize and free, in the\n"
    "order of the log, in one thread, with a stream for each stream of the log.\n"
    "Nothing is copied, and operations that failed when the log was written are left\n"
    "out.\n"
    "\n"
    "  --resource LIST   of these, separated by commas; default caching,pool,driver\n"
    "                      caching          the caching resource over a device pool\n"
    "                      caching-virtual  the same over virtual memory\n"
    "                      pool             a device pool through the library\n"
    "                      driver           the same by cuMemAllocFromPoolAsync, no\n"
    "                                       library\n"
    "                      virtual          virtual memory: buffers that grow in\n"
    "                                       place\n"
    "                      pinned           host memory\n"
    "  --repeat N        timed runs, 1 to 99, of which the median counts; default 3\n"
    "  --driver CHOICE   nvidia, softgpu or a path\n"
    "  --device N        default 0\n"
    "  --json            one object on standard output\n"
    "\n"
    "For each resource it prints the time of all calls; the most memory taken from\n"
    "the driver; the smallest share of it that was in no buffer (1 - peak in use /\n"
    "peak committed); and how often a resize had to move. Memory is measured in a\n"
    "separate run.\n"
    "\n"
    "Exit status: 0 run on all of them, 2 wrong usage, 3 no driver or device, 4 the\n"
    "log cannot be read or a line is invalid (the message says which), 6 a resource\n"
    "ran out of memory, 1 anything else.\n";

struct arguments {
    const char *driver, *path;
    const char *resources[RESOURCES_MOST];
    size_t resource_count;
    int device, repeat;
    bool json;
};

static double fragmentation(const struct replay_log *log, const struct replay_result *result) {
    if (result->peak_committed <= log->peak_bytes)
        return 0;
    return 1 - (double)log->peak_bytes / (double)result->peak_committed;
}

/* ---- Output ---------------------------------------------------------------------------------- */

static void print_row(const struct replay_log *log, const struct replay_result *r) {
    char size[32];
    double each = log->count ? r->seconds / (double)log->count : 0;
    if (r->done)
        cli_line(stdout, "%-15s %9.3f ms %8.3f us %15s %13.1f %% %7llu", r->resource,
                 1e3 * r->seconds, 1e6 * each, cli_format_size(r->peak_committed, size),
                 100 * fragmentation(log, r), (unsigned long long)r->moved);
    else if (r->failed_line)
        cli_line(stdout, "%-15s ended at line %u: %s", r->resource, r->failed_line, r->message);
    else
        cli_line(stdout, "%-15s cannot be used: %s", r->resource, r->message);
}

static void print_text(const struct replay_log *log, const struct replay_result *results,
                       size_t count) {
    char size[32];
    cli_line(stdout, "log       %s", log->path);
    cli_line(stdout, "          %zu events in %.3f s: %llu %s, %zu %s, %zu %s", log->count,
             log->seconds, (unsigned long long)log->allocations,
             cli_plural(log->allocations, "buffer", "buffers"), log->streams,
             cli_plural(log->streams, "stream", "streams"), log->threads,
             cli_plural(log->threads, "thread", "threads"));
    cli_line(stdout, "in use    %s at most; %llu %s failed, %llu %s not freed",
             cli_format_size(log->peak_bytes, size), (unsigned long long)log->failed,
             cli_plural(log->failed, "request", "requests"), (unsigned long long)log->alive,
             cli_plural(log->alive, "buffer", "buffers"));
    cli_line(stdout, "%s", "");
    cli_line(stdout, "resource        %12s %11s %15s %15s %7s", "time", "per event",
             "peak committed", "fragmentation", "moved");
    for (size_t i = 0; i < count; i++)
        print_row(log, &results[i]);
}

static void print_result(struct json *json, const struct replay_log *log,
                         const struct replay_result *r) {
    json_open(json, NULL, '{');
    json_string(json, "resource", r->resource);
    json_bool(json, "done", r->done);
    if (r->done) {
        json_number(json, "seconds", r->seconds);
        json_unsigned(json, "peak_committed", r->peak_committed);
        json_number(json, "fragmentation", fragmentation(log, r));
        json_unsigned(json, "moved", r->moved);
    } else {
        json_string(json, "status", gpumem_status_name(r->status));
        json_string(json, "message", r->message);
        if (r->failed_line)
            json_unsigned(json, "line", r->failed_line);
    }
    json_close(json, '}');
}

static int print_json(const struct replay_log *log, const struct replay_result *results,
                      size_t count) {
    struct json json;
    json_begin(&json);
    json_open(&json, NULL, '{');
    json_string(&json, "log", log->path);
    json_unsigned(&json, "events", log->count);
    json_number(&json, "logged_seconds", log->seconds);
    json_unsigned(&json, "allocations", log->allocations);
    json_unsigned(&json, "resizes", log->resizes);
    json_unsigned(&json, "streams", log->streams);
    json_unsigned(&json, "threads", log->threads);
    json_unsigned(&json, "failed", log->failed);
    json_unsigned(&json, "notes", log->notes);
    json_unsigned(&json, "not_freed", log->alive);
    json_unsigned(&json, "peak_in_use", log->peak_bytes);
    json_open(&json, "resources", '[');
    for (size_t i = 0; i < count; i++)
        print_result(&json, log, &results[i]);
    json_close(&json, ']');
    json_close(&json, '}');
    return json_print(&json);
}

/* ---- The command ----------------------------------------------------------------------------- */

static int exit_status(const struct replay_result *results, size_t count) {
    int status = CLI_OK;
    for (size_t i = 0; i < count; i++) {
        gpumem_status s = results[i].status;
        if (s == GPUMEM_ERROR_OUT_OF_MEMORY || s == GPUMEM_ERROR_OUT_OF_HOST_MEMORY ||
            s == GPUMEM_ERROR_OUT_OF_CAPACITY)
            status = status == CLI_OK ? CLI_NO_MEMORY : status;
        else if (s != GPUMEM_OK)
            status = CLI_FAILED;
    }
    return status;
}

static int with_device(const struct arguments *arguments, const struct replay_log *log,
                       gpumem_device *device) {
    struct replay_result results[RESOURCES_MOST];
    size_t count = arguments->resource_count;
    for (size_t i = 0; i < count; i++)
        replay_run(log, device, arguments->resources[i], arguments->repeat, &results[i]);
    int printed = CLI_OK;
    if (arguments->json)
        printed = print_json(log, results, count);
    else
        print_text(log, results, count);
    return printed != CLI_OK ? printed : exit_status(results, count);
}

static int with_log(const struct arguments *arguments, const struct replay_log *log) {
    gpumem_library *library = NULL;
    gpumem_device *device = NULL;
    gpumem_status status =
        gpumem_open(GPUMEM_OPTIONS(gpumem_open_options, .driver = arguments->driver), &library);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    int result = CLI_OK;
    status = gpumem_device_open(library, arguments->device, &device);
    if (status != GPUMEM_OK)
        result = cli_fail(status);
    else
        result = with_device(arguments, log, device);
    status = gpumem_device_close(device);
    if (status == GPUMEM_OK)
        status = gpumem_close(library);
    return result == CLI_OK && status != GPUMEM_OK ? cli_fail(status) : result;
}

static bool add_resource(struct arguments *arguments, const char *name, size_t length) {
    for (size_t i = 0; i < arguments->resource_count; i++)
        if (strlen(arguments->resources[i]) == length &&
            strncmp(arguments->resources[i], name, length) == 0)
            return true;
    for (size_t i = 0; replay_resources[i]; i++) {
        if (strlen(replay_resources[i]) == length &&
            strncmp(replay_resources[i], name, length) == 0) {
            arguments->resources[arguments->resource_count++] = replay_resources[i];
            return true;
        }
    }
    return false;
}

static int parse_resources(struct arguments *arguments, const char *list) {
    while (true) {
        size_t length = strcspn(list, ",");
        if (!add_resource(arguments, list, length))
            return cli_error(CLI_USAGE,
                             "replay: '%.*s' is not a resource; try 'gpumem help replay'",
                             (int)(length < 40 ? length : 40), list);
        if (!list[length])
            return CLI_OK;
        list += length + 1;
    }
}

static int parse(int argc, char **argv, struct arguments *arguments) {
    enum { DRIVER = 256, DEVICE, RESOURCE, REPEAT, JSON };
    static const struct option options[] = {
        {"driver", required_argument, NULL, DRIVER},
        {"device", required_argument, NULL, DEVICE},
        {"resource", required_argument, NULL, RESOURCE},
        {"repeat", required_argument, NULL, REPEAT},
        {"json", no_argument, NULL, JSON},
        {0},
    };
    int option;
    while ((option = cli_option("replay", argc, argv, options, false)) != -1) {
        switch (option) {
        case DRIVER:
            arguments->driver = optarg;
            break;
        case DEVICE:
            if (!cli_parse_ordinal(optarg, &arguments->device))
                return cli_error(CLI_USAGE, "replay: '%s' is not a device number", optarg);
            break;
        case RESOURCE:
            if (parse_resources(arguments, optarg) != CLI_OK)
                return CLI_USAGE;
            break;
        case REPEAT:
            if (!cli_parse_ordinal(optarg, &arguments->repeat) || arguments->repeat < 1 ||
                arguments->repeat > REPEAT_MOST)
                return cli_error(CLI_USAGE, "replay: --repeat is 1 to %d, not '%s'", REPEAT_MOST,
                                 optarg);
            break;
        case JSON:
            arguments->json = true;
            cli_json_wanted();
            break;
        default:
            return CLI_USAGE;
        }
    }
    if (optind != argc - 1)
        return cli_error(CLI_USAGE, "replay: give one LOG; try 'gpumem help replay'");
    arguments->path = argv[optind];
    return arguments->resource_count ? CLI_OK : parse_resources(arguments, "caching,pool,driver");
}

int cmd_replay(int argc, char **argv) {
    struct arguments arguments = {.repeat = 3};
    struct replay_log log;
    int result = parse(argc, argv, &arguments);
    if (result != CLI_OK)
        return result;
    result = replay_read(arguments.path, &log);
    if (result == CLI_OK)
        result = with_log(&arguments, &log);
    replay_clear(&log);
    return result;
}
