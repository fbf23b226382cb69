/* gpumem replay: repeats a program's allocations on the resources that it could have used. */
#include "cli.h"
#include "json.h"
#include "replay.h"
#include "replay_print.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define RESOURCES_MOST 16
#define LOGS_MOST      16
#define REPEAT_MOST    99
#define STEPS_MOST     1000000
#define DEFER_MOST     1000000000

const char cmd_replay_usage[] =
    "usage: gpumem replay [OPTION...] LOG...\n"
    "\n"
    "Repeats a program's allocations, resizes and frees on resources that it could\n"
    "have used: in the order of the log, in one thread, with a stream for each\n"
    "stream of the log. Nothing is copied, and operations that failed when the log\n"
    "was written are left out. Several logs take turns, each on streams of its own.\n"
    "\n"
    "LOG is the log of a trace resource, a compact trace (docs/replay.md), a memory\n"
    "snapshot of PyTorch (the pickle of torch.cuda.memory._dump_snapshot, or JSON of\n"
    "the same), or one of these packed by xz. Snapshots and packed files need\n"
    "python3; nothing that a pickle names is imported or called.\n"
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
    "  --least-limit     searches the least limit under which the log completes, to\n"
    "                    0.1 % of what is in use at the peak\n"
    "  --defer N         streams are N operations behind the host, as work on a GPU\n"
    "                    is: a free passes that much later; times are not measured\n"
    "  --turns SPEC      steps that each log takes at a time, as in 3,1; default 1\n"
    "                    each; what has no steps is one\n"
    "  --of-device N     of a snapshot with traces of several devices\n"
    "  --convert         prints the log as a compact trace and replays nothing\n"
    "  --repeat N        timed runs, 1 to 99, of which the median counts; default 3\n"
    "  --driver CHOICE   nvidia, softgpu or a path\n"
    "  --device N        default 0\n"
    "  --json            one object on standard output\n"
    "\n"
    "Options of a resource follow it after colons, and what it wraps after a slash:\n"
    "\n"
    "    caching-virtual:committed_ratio=1.2:reserve_bytes=2G\n"
    "    caching:maximum_bytes=8G/log/virtual\n"
    "\n"
    "caching takes committed_ratio, reserve_bytes, never_waits (without a value),\n"
    "segment_bytes, maximum_bytes, maximum_small_bytes, thread_bytes and idle_bytes;\n"
    "pool maximum_bytes and release_threshold; virtual maximum_chunk_bytes and\n"
    "cache_bytes; the wrapper limit maximum_bytes, the wrapper log nothing.\n"
    "\n"
    "For each resource it prints the most memory taken from the driver (committed)\n"
    "and its ratio to the most bytes in use at a time; the median of that ratio at\n"
    "the ends of steps; the least limit by the same peak; nanoseconds per operation\n"
    "on a new resource, and when the log is repeated on it; free pages that moved,\n"
    "and waits for queued work before they could. Memory is measured in a separate\n"
    "run.\n"
    "\n"
    "Exit status: 0 run on all of them, 2 wrong usage, 3 no driver or device, 4 a\n"
    "log cannot be read or a line is invalid (the message says which), 6 a resource\n"
    "ran out of memory, 1 anything else.\n";

struct arguments {
    const char *driver;
    const char *const *paths;
    size_t path_count;
    struct replay_description resources[RESOURCES_MOST];
    size_t resource_count;
    struct replay_settings settings;
    unsigned turns[LOGS_MOST];
    size_t turn_count;
    int device, of_device;
    bool json, convert;
};

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
        replay_run(log, device, &arguments->resources[i], &arguments->settings, &results[i]);
    int printed = CLI_OK, status = exit_status(results, count);
    if (arguments->json)
        printed = replay_print_json(log, arguments->paths, arguments->path_count, results, count);
    else
        replay_print_text(log, arguments->paths, arguments->path_count, results, count);
    for (size_t i = 0; i < count; i++)
        replay_result_clear(&results[i]);
    return printed != CLI_OK ? printed : status;
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

static int with_logs(const struct arguments *arguments, struct replay_log *logs) {
    struct replay_log merged = {0};
    const struct replay_log *log = logs;
    int result = CLI_OK;
    for (size_t i = 0; result == CLI_OK && i < arguments->path_count; i++)
        result = replay_read(arguments->paths[i], arguments->of_device, &logs[i]);
    if (result == CLI_OK && arguments->path_count > 1) {
        result = replay_merge(logs, arguments->path_count, arguments->turns, &merged);
        log = &merged;
    }
    if (result == CLI_OK)
        result = arguments->convert ? replay_print_compact(log) : with_log(arguments, log);
    replay_clear(&merged);
    for (size_t i = 0; i < arguments->path_count; i++)
        replay_clear(&logs[i]);
    return result;
}

/* ---- Arguments ------------------------------------------------------------------------------- */

static int parse_resources(struct arguments *arguments, const char *list) {
    while (true) {
        size_t length = strcspn(list, ","), count = arguments->resource_count;
        if (count == RESOURCES_MOST)
            return cli_error(CLI_USAGE, "replay: more than %d resources", RESOURCES_MOST);
        if (!replay_describe(list, length, &arguments->resources[count]))
            return CLI_USAGE;
        bool known = false;
        for (size_t i = 0; i < count; i++)
            known |= strcmp(arguments->resources[i].name, arguments->resources[count].name) == 0;
        arguments->resource_count += !known;
        if (!list[length])
            return CLI_OK;
        list += length + 1;
    }
}

/* A decimal number of 1 to `most`, which ends at *end. */
static bool parse_count(const char *text, uint64_t most, uint64_t *count, const char **end) {
    *count = 0;
    for (*end = text; **end >= '0' && **end <= '9' && *count <= most; ++*end)
        *count = 10 * *count + (uint64_t)(**end - '0');
    return *count >= 1 && *count <= most;
}

static int parse_turns(struct arguments *arguments, const char *text) {
    uint64_t steps;
    const char *at = text, *end = text;
    for (arguments->turn_count = 0; arguments->turn_count < LOGS_MOST; at = end + 1) {
        if (!parse_count(at, STEPS_MOST, &steps, &end) || (*end && *end != ','))
            break;
        arguments->turns[arguments->turn_count++] = (unsigned)steps;
        if (!*end)
            return CLI_OK;
    }
    return cli_error(CLI_USAGE, "replay: --turns has a number of steps for each log, not '%s'",
                     text);
}

static int parse_defer(struct arguments *arguments, const char *text) {
    const char *end;
    if (!parse_count(text, DEFER_MOST, &arguments->settings.defer, &end) || *end)
        return cli_error(CLI_USAGE, "replay: --defer is 1 to %d, not '%s'", DEFER_MOST, text);
    return CLI_OK;
}

static int parse_ordinal(const char *text, int *ordinal) {
    if (!cli_parse_ordinal(text, ordinal))
        return cli_error(CLI_USAGE, "replay: '%s' is not a device number", text);
    return CLI_OK;
}

static int parse_repeat(struct arguments *arguments, const char *text) {
    int *repeat = &arguments->settings.repeat;
    if (!cli_parse_ordinal(text, repeat) || *repeat < 1 || *repeat > REPEAT_MOST)
        return cli_error(CLI_USAGE, "replay: --repeat is 1 to %d, not '%s'", REPEAT_MOST, text);
    return CLI_OK;
}

static int parse_rest(int argc, char **argv, struct arguments *arguments) {
    arguments->paths = (const char *const *)&argv[optind];
    arguments->path_count = (size_t)(argc - optind);
    if (!arguments->path_count || arguments->path_count > LOGS_MOST)
        return cli_error(CLI_USAGE, "replay: give a LOG, or up to %d; try 'gpumem help replay'",
                         LOGS_MOST);
    if (arguments->turn_count && arguments->turn_count != arguments->path_count)
        return cli_error(CLI_USAGE, "replay: --turns has %zu %s for %zu %s", arguments->turn_count,
                         cli_plural(arguments->turn_count, "number", "numbers"),
                         arguments->path_count, cli_plural(arguments->path_count, "log", "logs"));
    for (size_t i = arguments->turn_count; i < arguments->path_count; i++)
        arguments->turns[i] = 1;
    return arguments->resource_count ? CLI_OK : parse_resources(arguments, "caching,pool,driver");
}

static int parse(int argc, char **argv, struct arguments *arguments) {
    enum { DRIVER = 256, DEVICE, OF_DEVICE, RESOURCE, LEAST, DEFER, TURNS, CONVERT, REPEAT, JSON };
    static const struct option options[] = {
        {"driver", required_argument, NULL, DRIVER},
        {"device", required_argument, NULL, DEVICE},
        {"of-device", required_argument, NULL, OF_DEVICE},
        {"resource", required_argument, NULL, RESOURCE},
        {"least-limit", no_argument, NULL, LEAST},
        {"defer", required_argument, NULL, DEFER},
        {"turns", required_argument, NULL, TURNS},
        {"convert", no_argument, NULL, CONVERT},
        {"repeat", required_argument, NULL, REPEAT},
        {"json", no_argument, NULL, JSON},
        {0},
    };
    int option, result = CLI_OK;
    while (result == CLI_OK && (option = cli_option("replay", argc, argv, options, false)) != -1) {
        switch (option) {
        case DRIVER:
            arguments->driver = optarg;
            break;
        case DEVICE:
            result = parse_ordinal(optarg, &arguments->device);
            break;
        case OF_DEVICE:
            result = parse_ordinal(optarg, &arguments->of_device);
            break;
        case RESOURCE:
            result = parse_resources(arguments, optarg);
            break;
        case LEAST:
            arguments->settings.least_limit = true;
            break;
        case DEFER:
            result = parse_defer(arguments, optarg);
            break;
        case TURNS:
            result = parse_turns(arguments, optarg);
            break;
        case CONVERT:
            arguments->convert = true;
            break;
        case REPEAT:
            result = parse_repeat(arguments, optarg);
            break;
        case JSON:
            arguments->json = true;
            cli_json_wanted();
            break;
        default:
            return CLI_USAGE;
        }
    }
    return result == CLI_OK ? parse_rest(argc, argv, arguments) : result;
}

int cmd_replay(int argc, char **argv) {
    struct arguments *arguments = calloc(1, sizeof *arguments);
    struct replay_log logs[LOGS_MOST] = {0};
    if (!arguments)
        return cli_error(CLI_NO_MEMORY, "replay: no memory");
    arguments->settings.repeat = 3;
    arguments->of_device = -1;
    int result = parse(argc, argv, arguments);
    if (result == CLI_OK)
        result = with_logs(arguments, logs);
    free(arguments);
    return result;
}
