/* The text written after a fault. */
#include "base/descriptor.h"
#include "softgpu/address/memory.h"
#include "softgpu/core/config.h"
#include "softgpu/core/results.h"
#include "softgpu/core/state.h"
#include "softgpu/core/watch.h"
#include "softgpu/coredump/coredump.h"
#include "softgpu/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct fault {
    struct fault *next;
    char file[SG_COREDUMP_NAME];
    int length;
    char text[8192];
};

/* Held while files are written, so that a second caller waits for them. Taken before the big lock,
 * never after it. */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static uint64_t work_stream, work_operation; /* guarded by the big lock; 0 for no queued work */
static const char *work_report;              /* guarded likewise */
static struct fault *faults;                 /* guarded by the big lock; the newest first */

void sg_coredump_work(uint64_t stream, uint64_t operation) {
    work_stream = stream;
    work_operation = operation;
}

void sg_coredump_report(const char *report) {
    work_report = report;
}

static void add(struct fault *fault, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct fault *fault, const char *format, ...) {
    va_list list;
    if (fault->length < 0 || (size_t)fault->length >= sizeof fault->text)
        return;
    va_start(list, format);
    fault->length += vsnprintf(fault->text + fault->length,
                               sizeof fault->text - (size_t)fault->length, format, list);
    va_end(list);
}

static void describe(struct fault *fault, const struct sg_faulted *faulted, CUresult error) {
    const char *name = sg_result_name(error), *meaning = sg_result_string(error);
    const struct sg_device *device = sg_device(faulted->device);
    add(fault,
        "softgpu fault report 1\n"
        "error %d %s: %s\n"
        "process %ld\n"
        "device %d %s, memory in use %" PRIu64 " bytes\n"
        "context %" PRIu64 " handle 0x%" PRIx64 " %s\n"
        "generation-flags 0x%x lightweight %u\n",
        (int)error, name ? name : "unknown", meaning ? meaning : "", (long)getpid(),
        faulted->device, device->name, sg_memory_used(faulted->device), faulted->id,
        faulted->handle, faulted->primary ? "primary" : "created", faulted->settings->flags,
        faulted->settings->lightweight);
    if (work_operation > 0)
        add(fault, "stream %" PRIu64 " operation %" PRIu64 "\n", work_stream, work_operation);
    if (work_report)
        add(fault, "%s", work_report);
}

void sg_coredump_fault(const struct sg_faulted *faulted, CUresult error) {
    if (!faulted->settings->on_exception)
        return;
    struct fault *fault = calloc(1, sizeof *fault);
    if (!fault) {
        sg_log(SG_LOG_WARNING, "no memory for the report of a fault");
        return;
    }
    memcpy(fault->file, faulted->settings->file, sizeof fault->file);
    describe(fault, faulted, error);
    fault->next = faults;
    faults = fault;
    sg_watch(SG_WATCH_COREDUMP, true);
}

static size_t expand_one(char code, char *out, size_t room) {
    int length;
    char host[256] = "";
    if (code == 'p')
        length = snprintf(out, room, "%ld", (long)getpid());
    else if (code == 't')
        length = snprintf(out, room, "%lld", (long long)time(NULL));
    else if (code == 'h' && gethostname(host, sizeof host - 1) == 0)
        length = snprintf(out, room, "%s", host);
    else if (code == '%')
        length = snprintf(out, room, "%%");
    else
        length = snprintf(out, room, "%%%c", code);
    return length > 0 ? (size_t)length : 0;
}

/* False when the name grows too long. */
static bool expand(const char *pattern, char *name, size_t room) {
    size_t length = 0;
    for (const char *at = pattern; *at && length < room; at++) {
        if (at[0] == '%' && at[1])
            length += expand_one(*++at, name + length, room - length);
        else
            name[length++] = *at;
    }
    if (length >= room)
        return false;
    name[length] = '\0';
    return true;
}

/* O_NONBLOCK: a pipe that nobody reads must not block a call. */
static void write_file(const struct fault *fault) {
    char name[2 * SG_COREDUMP_NAME];
    if (!expand(fault->file, name, sizeof name)) {
        sg_log(SG_LOG_WARNING, "the report of a fault has too long a file name");
        return;
    }
    int fd = gm_fd_open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_NONBLOCK, 0666);
    size_t length =
        (size_t)fault->length < sizeof fault->text ? (size_t)fault->length : sizeof fault->text - 1;
    if (fd < 0 || !gm_fd_write(fd, fault->text, length))
        sg_log(SG_LOG_WARNING, "the report of a fault cannot be written to %s: %s", name,
               strerror(errno));
    if (fd >= 0)
        close(fd);
}

/* The oldest first. The watch ends only when there is none left, so that no call returns before the
 * recorded faults are written. */
static struct fault *take_all(void) {
    struct fault *oldest_first = NULL;
    sg_lock();
    while (faults) {
        struct fault *fault = faults;
        faults = fault->next;
        fault->next = oldest_first;
        oldest_first = fault;
    }
    if (!oldest_first)
        sg_watch(SG_WATCH_COREDUMP, false);
    sg_unlock();
    return oldest_first;
}

void sg_coredumps_write(void) {
    struct fault *fault;
    pthread_mutex_lock(&writing);
    while ((fault = take_all()) != NULL)
        while (fault) {
            struct fault *done = fault;
            write_file(fault);
            fault = fault->next;
            free(done);
        }
    pthread_mutex_unlock(&writing);
}
