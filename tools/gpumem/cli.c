#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int cli_error(int status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("gpumem: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
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

int cli_fail(gpumem_status status) {
    const gpumem_error *error = gpumem_last_error();
    const char *text = error->message[0] ? error->message : gpumem_status_string(status);
    return cli_error(exit_status(status), "%s", text);
}

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
