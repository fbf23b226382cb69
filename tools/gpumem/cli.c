#include "cli.h"

#include "json.h"
#include "terminal.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The first error, for --json; later ones are only printed. */
static struct {
    char *text;
    bool of_library; /* the members below are set */
    gpumem_status status;
    int driver_code, system_code;
    char call[64];
} first_error;

static bool json_wanted, help_wanted;

int cli_error(int status, const char *format, ...) {
    va_list args;
    char *text = NULL;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    cli_line_painted(stderr, CLI_RED, strlen("gpumem:"), "gpumem: %s", text ? text : format);
    if (first_error.text)
        free(text);
    else
        first_error.text = text;
    return status;
}

static int exit_status(gpumem_status status) {
    switch (status) {
    case GPUMEM_OK:
        return CLI_OK;
    case GPUMEM_ERROR_INVALID_ARGUMENT:
        return CLI_USAGE;
    case GPUMEM_ERROR_NO_DRIVER:
    case GPUMEM_ERROR_NO_DEVICE:
        return CLI_NO_DEVICE;
    case GPUMEM_ERROR_OUT_OF_MEMORY:
    case GPUMEM_ERROR_OUT_OF_HOST_MEMORY:
    case GPUMEM_ERROR_OUT_OF_CAPACITY:
        return CLI_NO_MEMORY;
    case GPUMEM_ERROR_PEER:
        return CLI_PEER;
    case GPUMEM_ERROR_CANCELLED:
        return CLI_INTERRUPTED;
    default:
        return CLI_FAILED;
    }
}

gpumem_driver_info cli_driver_info(const gpumem_driver *driver) {
    gpumem_driver_info info = {.size = sizeof info};
    (void)gpumem_driver_get_info(driver, &info); /* cannot fail with this size */
    return info;
}

int cli_fail(gpumem_status status) {
    const gpumem_error *error = gpumem_last_error();
    const char *text = error->message[0] ? error->message : gpumem_status_name(status);
    if (!first_error.text) {
        first_error.of_library = true;
        first_error.status = status;
        first_error.driver_code = error->driver_code;
        first_error.system_code = error->system_code;
        snprintf(first_error.call, sizeof first_error.call, "%s", error->call);
    }
    return cli_error(exit_status(status), "%s", text);
}

void cli_json_wanted(void) {
    json_wanted = true;
}

void cli_print_failure(int status) {
    if (!json_wanted || json_was_printed())
        return;
    struct json json;
    json_begin(&json);
    json_open(&json, NULL, '{');
    json_string(&json, "error", first_error.text ? first_error.text : "failed");
    json_integer(&json, "code", status);
    if (first_error.of_library) {
        json_string(&json, "status", gpumem_status_name(first_error.status));
        json_string(&json, "call", first_error.call[0] ? first_error.call : NULL);
        json_integer(&json, "driver_code", first_error.driver_code);
        json_integer(&json, "system_code", first_error.system_code);
    }
    json_close(&json, '}');
    (void)json_print(&json);
}

/* ---- Options --------------------------------------------------------------------------------- */

static size_t count_matches(const struct option *options, const char *word, size_t length) {
    size_t count = 0;
    for (const struct option *at = options; at->name; at++)
        count += strncmp(at->name, word, length) == 0;
    return count;
}

/* getopt does not report what was wrong, only which kind of error it may have been. */
static void refuse_option(const char *command, char **argv, const struct option *options,
                          bool value_missing) {
    const char *word = argv[optind - 1];
    if (optopt > 0 && optopt < 256)
        cli_error(CLI_USAGE, "%s: unknown option '-%c'; try 'gpumem help %s'", command, optopt,
                  command);
    else if (value_missing)
        cli_error(CLI_USAGE, "%s: option '%s' needs a value", command, word);
    else if (optopt)
        cli_error(CLI_USAGE, "%s: option '%.*s' takes no value", command, (int)strcspn(word, "="),
                  word);
    else if (count_matches(options, word + 2, strcspn(word + 2, "=")) > 1)
        cli_error(CLI_USAGE, "%s: option '%s' is ambiguous; try 'gpumem help %s'", command, word,
                  command);
    else
        cli_error(CLI_USAGE, "%s: unknown option '%s'; try 'gpumem help %s'", command, word,
                  command);
}

int cli_option(const char *command, int argc, char **argv, const struct option *options,
               bool stop) {
    opterr = 0;
    int option = getopt_long(argc, argv, stop ? "+:" : ":", options, NULL);
    if (option != '?' && option != ':')
        return option;
    const char *word = argv[optind - 1];
    help_wanted = optopt == 'h' || strcmp(word, "--help") == 0;
    if (help_wanted)
        return '?';
    refuse_option(command, argv, options, option == ':');
    return '?';
}

bool cli_help_wanted(void) {
    return help_wanted;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

bool cli_parse_size(const char *text, uint64_t *bytes) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || text[0] == '-')
        return false;
    unsigned shift = 0;
    const char *suffixes = "KMGT";
    const char *suffix = *end ? strchr(suffixes, *end & ~0x20) : NULL;
    if (suffix) {
        shift = 10 * (unsigned)(suffix - suffixes + 1);
        end++;
        if (strcmp(end, "iB") == 0)
            end += 2;
    }
    if (*end || value > UINT64_MAX >> shift)
        return false;
    *bytes = (uint64_t)value << shift;
    return true;
}

bool cli_parse_ordinal(const char *text, int *ordinal) {
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 4 || text[digits])
        return false;
    *ordinal = atoi(text);
    return true;
}

double cli_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

char *cli_format_size(uint64_t bytes, char *text) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    unsigned unit = 0;
    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    snprintf(text, 32, unit ? "%.2f %s" : "%.0f %s", value, units[unit]);
    return text;
}

char *cli_format_rate(uint64_t bytes, double seconds, char *text) {
    char size[32];
    double rate = seconds > 0 ? (double)bytes / seconds : 0;
    if (rate > 0 && rate < 1e18)
        snprintf(text, 40, "%s/s", cli_format_size((uint64_t)rate, size));
    else
        snprintf(text, 40, "-");
    return text;
}

const char *cli_plural(uint64_t count, const char *one, const char *many) {
    return count == 1 ? one : many;
}

const char *cli_vulkan_reason(const char *reason, bool verbose) {
    return verbose || !strstr(reason, "; ") ? reason : "see --verbose";
}
