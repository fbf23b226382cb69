#include "softgpu/entry/trace.h"

#include "base/descriptor.h"
#include "base/kept_file.h"
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
    trace_start = sg_now();
    return strcmp(file, "-") == 0 || gm_kept_file_set(open_file(file, why, size), &trace);
}

/* -1 when the file is closed: that is somebody's who has closed all that it did not know. */
static int descriptor(void) {
    if (trace.fd < 0)
        return STDERR_FILENO;
    return gm_kept_file_is_open(&trace) ? trace.fd : -1;
}

/* Written at once and whole: the last line before a crash is the one that is wanted. */
void sg_trace_call(gpumem_driver_fn fn, CUresult result) {
    uint64_t now = sg_now() - trace_start;
    const char *name = sg_result_name(result);
    char number[16];
    if (!name) {
        snprintf(number, sizeof number, "%d", (int)result);
        name = number;
    }
    char line[192];
    int length =
        snprintf(line, sizeof line, "%" PRIu64 ".%06" PRIu64 " %ld %s %s\n", now / 1000000000u,
                 now / 1000u % 1000000u, syscall(SYS_gettid), sg_rows[fn].symbol, name);
    if (length > 0 && (size_t)length < sizeof line) {
        ssize_t written = write(descriptor(), line, (size_t)length);
        (void)written; /* a full disk must not fail the traced program */
    }
}
