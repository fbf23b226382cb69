#include "softgpu/entry/trace.h"

#include "base/descriptor.h"
#include "base/kept_file.h"
#include "base/printable.h"
#include "softgpu/core/results.h"
#include "softgpu/core/rows.h"
#include "softgpu/core/runtime_calls.h"
#include "softgpu/core/state.h"
#include "softgpu/entry/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct gm_kept_file trace = GM_NO_KEPT_FILE;
static uint64_t trace_start;

static int open_file(const char *file, char *why, size_t size) {
    int fd = gm_fd_open(file, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd < 0)
        snprintf(why, size, "SOFTGPU_TRACE='%.200s' cannot be written: %s", file, strerror(errno));
    return fd;
}

bool sg_trace_possible(const char *file, char *why, size_t size) {
    if (strcmp(file, "-") == 0)
        return true;
    int fd = open_file(file, why, size);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

bool sg_trace_open(const char *file, char *why, size_t size) {
    sg_runtime_watch(SG_RUNTIME_TRACE, true);
    trace_start = sg_now();
    return strcmp(file, "-") == 0 || gm_kept_file_set(open_file(file, why, size), &trace);
}

/* -1 if the file is closed: some programs close all descriptors that they do not know. */
static int descriptor(void) {
    if (trace.fd < 0)
        return STDERR_FILENO;
    return gm_kept_file_is_open(&trace) ? trace.fd : -1;
}

/* An object that a call made, identified by where it was stored. Only a successful call has made
 * one, and only then is the pointer known to be good. */
static bool made(const struct sg_value *value, size_t index) {
    return value->bits && ((value->kind == SG_VALUE_MADE && index == 0) ||
                           (value->kind == SG_VALUE_GRAPH && index == 1));
}

static int write_text(char *to, size_t size, const char *text) {
    char shown[64];
    bool whole = strlen(text) == gm_printable(text, shown, sizeof shown);
    return snprintf(to, size, "\"%s\"%s", shown, whole ? "" : "...");
}

static int write_value(char *to, size_t size, const struct sg_value *value, bool success) {
    if (value->kind == SG_VALUE_TEXT && success && value->bits)
        return write_text(to, size, (const char *)value->bits);
    switch (value->kind) {
    case SG_VALUE_SIGNED:
        return snprintf(to, size, "%lld", (long long)(intptr_t)value->bits);
    case SG_VALUE_UNSIGNED:
        return snprintf(to, size, "%llu", (unsigned long long)value->bits);
    case SG_VALUE_FLOAT:
        return snprintf(to, size, "%g", (double)value->real);
    case SG_VALUE_STRUCT:
        return snprintf(to, size, "{...}");
    case SG_VALUE_TEXT:
    case SG_VALUE_ADDRESS:
    case SG_VALUE_MADE:
    case SG_VALUE_GRAPH:
        break;
    }
    return snprintf(to, size, value->bits ? "0x%llx" : "NULL", (unsigned long long)value->bits);
}

/* At most 16 of at most 94 characters each: 2048 bytes hold them. */
static size_t write_values(char *to, size_t size, const struct sg_call *call, bool success) {
    size_t used = 0;
    for (size_t i = 0; i < call->value_count && used < size; i++) {
        used += (size_t)snprintf(to + used, size - used, "%s", i ? ", " : "");
        used += (size_t)write_value(to + used, size - used, &call->values[i], success);
        if (success && made(&call->values[i], i))
            used += (size_t)snprintf(to + used, size - used, " -> 0x%llx",
                                     *(const unsigned long long *)call->values[i].bits);
    }
    return used;
}

/* Written immediately and whole: the last line before a crash is the important one. */
static void write_line(const char *function, const char *values, const char *name, int result) {
    uint64_t now = sg_now() - trace_start;
    const char *label = sg_thread()->label, *runtime = sg_runtime_call();
    char number[16], line[2400 + SG_LABEL_ROOM];
    if (!name) {
        snprintf(number, sizeof number, "%d", result);
        name = number;
    }
    int length = snprintf(line, sizeof line, "%" PRIu64 ".%06" PRIu64 " %ld %s(%s) %s%s%s%s%s\n",
                          now / 1000000000u, now / 1000u % 1000000u, syscall(SYS_gettid), function,
                          values, name, runtime ? ", of " : "", runtime ? runtime : "",
                          label[0] ? ", in " : "", label);
    if (length > 0 && (size_t)length < sizeof line) /* a full disk must not make the program fail */
        (void)gm_fd_write(descriptor(), line, (size_t)length);
}

void sg_trace_call(const struct sg_call *call, CUresult result) {
    char values[2048] = "";
    (void)write_values(values, sizeof values, call, result == CUDA_SUCCESS && call->inside);
    write_line(sg_rows[call->fn].symbol, values, sg_result_name(result), (int)result);
}

void sg_trace_runtime(const char *function, const char *arguments, int error) {
    write_line(function, arguments, sg_runtime_error_name(error), error);
}
