#include "softgpu/report/error_log.h"

#include "base/descriptor.h"
#include "base/kept_file.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/config.h"
#include "softgpu/core/results.h"
#include "softgpu/core/rows.h"
#include "softgpu/core/runtime_calls.h"
#include "softgpu/core/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A line at the head of an incomplete dump. */
static const char left_out[] = "[older messages are left out]\n";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Text is formatted only when it is read: programs make calls that they expect to be refused, such
 * as asking for the kind of a host pointer, and most never read the log. */
struct entry {
    struct timespec when;
    pid_t process, thread;
    gpumem_driver_fn fn;
    const char *runtime; /* the runtime's function that called it, or NULL */
    CUresult result;
    struct sg_arguments arguments;
    enum detail { WHAT, WITH, RUNTIME } detail; /* result, arguments; the runtime's own result */
    bool in_context, in_host_function;
    char label[SG_LABEL_ROOM]; /* the thread's */
};
static struct entry entries[SG_LOG_ENTRIES];
static uint64_t next; /* lines so far; an iterator is its low 32 bits */

void sg_error_log_lock(void) {
    pthread_mutex_lock(&lock);
}

void sg_error_log_unlock(void) {
    pthread_mutex_unlock(&lock);
}

void sg_error_log_wait(pthread_cond_t *cond) {
    pthread_cond_wait(cond, &lock);
}

static _Thread_local pid_t own_thread;

static void in_child(void) {
    own_thread = 0;
    sg_error_log_unlock();
}

/* A child of a process that has not begun to use the driver may use it. */
__attribute__((constructor(101))) static void watch_forks(void) {
    pthread_atfork(sg_error_log_lock, sg_error_log_unlock, in_child);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void add(const struct entry *entry) {
    sg_error_log_lock();
    entries[next++ % SG_LOG_ENTRIES] = *entry;
    sg_error_log_unlock();
}

static pid_t this_thread(void) {
    if (!own_thread)
        own_thread = (pid_t)syscall(SYS_gettid);
    return own_thread;
}

/* "cuMemAlloc_v2", "cuMemAlloc_v2, of cudaMalloc,", or the runtime's function alone. */
static void write_function(const struct entry *entry, char *text, size_t room) {
    if (entry->detail == RUNTIME)
        snprintf(text, room, "%s", entry->runtime);
    else if (entry->runtime)
        snprintf(text, room, "%s, of %s,", sg_rows[entry->fn].symbol, entry->runtime);
    else
        snprintf(text, room, "%s", sg_rows[entry->fn].symbol);
}

static size_t write_message(const struct entry *entry, char *text, size_t room) {
    char function[160];
    int length;
    write_function(entry, function, sizeof function);
    if (entry->detail != WITH) {
        bool own = entry->detail == RUNTIME;
        const char *name = own ? sg_runtime_error_name((int)entry->result)
                               : sg_result_name(entry->result),
                   *meaning = own ? sg_runtime_error_text((int)entry->result)
                                  : sg_result_string(entry->result);
        length = snprintf(text, room, "%s answered %s (%d): %s", function,
                          name ? name : "an unknown result", (int)entry->result,
                          meaning ? meaning : "no description");
    } else
        length = snprintf(
            text, room, "%s was called with 0x%" PRIxPTR ", 0x%" PRIxPTR ", %s a current context%s",
            function, entry->arguments.first, entry->arguments.second,
            entry->in_context ? "with" : "without",
            entry->in_host_function ? ", in a host function" : "");
    if (length > 0 && (size_t)length < room && entry->label[0])
        length += snprintf(text + length, room - (size_t)length, ", in %s", entry->label);
    return length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
}

/* With a newline at its end. */
static size_t write_line(const struct entry *entry, char text[SG_LOG_ROOM]) {
    struct tm utc;
    gmtime_r(&entry->when.tv_sec, &utc);
    size_t length = strftime(text, SG_LOG_ROOM, "%Y-%m-%dT%H:%M:%S", &utc);
    int more = snprintf(text + length, SG_LOG_ROOM - length,
                        ".%03ldZ pid %ld thread %ld error: ", entry->when.tv_nsec / 1000000,
                        (long)entry->process, (long)entry->thread);
    length += (size_t)more;
    length += write_message(entry, text + length, SG_LOG_ROOM - 1 - length);
    text[length++] = '\n';
    return length;
}

/* ---- CUDA_LOG_FILE --------------------------------------------------------------------------- */

static struct gm_kept_file log_file = GM_NO_KEPT_FILE;
static int log_standard = -1; /* stdout or stderr, whatever it is */

/* Opened for appending, because children have the variable too. Opened once: the descriptor stays
 * open. */
static void open_log_file(void) {
    const char *name = secure_getenv("CUDA_LOG_FILE");
    if (!name || !name[0])
        return;
    if (strcmp(name, "stdout") == 0)
        log_standard = STDOUT_FILENO;
    else if (strcmp(name, "stderr") == 0)
        log_standard = STDERR_FILENO;
    else if (!gm_kept_file_set(gm_fd_open(name, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY, 0666),
                               &log_file))
        sg_log(SG_LOG_WARNING, "CUDA_LOG_FILE: %s cannot be written: %s", name, strerror(errno));
}

/* -1 if there is none, or if the program has closed it. */
static int log_descriptor(void) {
    if (log_standard >= 0)
        return log_standard;
    return log_file.fd >= 0 && gm_kept_file_is_open(&log_file) ? log_file.fd : -1;
}

/* Each line is a single write, so that lines of several threads do not mix. */
static void write_to_file(const struct entry *entry) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char line[SG_LOG_ROOM];
    int error = errno;
    pthread_once(&once, open_log_file);
    int fd = log_descriptor();
    if (fd >= 0)
        (void)gm_fd_write(fd, line, write_line(entry, line));
    errno = error;
}

/* ---- A refused call -------------------------------------------------------------------------- */

static void tell(const struct entry *entry) {
    char message[SG_LOG_ROOM];
    write_message(entry, message, sizeof message);
    sg_error_log_call(CU_LOG_LEVEL_ERROR, message);
}

/* The runtime's function below which a call of the driver was last refused in this thread: the
 * error that it then returns itself is no news. */
static _Thread_local const char *refused_below;

static struct entry entry_of(gpumem_driver_fn fn, CUresult result) {
    const struct sg_thread *self = sg_thread();
    struct entry entry = {.process = getpid(),
                          .thread = this_thread(),
                          .fn = fn,
                          .result = result,
                          .in_context = self->depth > 0,
                          .in_host_function = self->in_host_function};
    memcpy(entry.label, self->label, sizeof entry.label);
    clock_gettime(CLOCK_REALTIME, &entry.when);
    return entry;
}

static void put(struct entry *entry, enum detail detail) {
    entry->detail = detail;
    add(entry);
    write_to_file(entry);
    if (sg_error_log_listened())
        tell(entry);
}

/* In a child or at exit other threads may be gone with a lock, and nobody reads the log any more.
 */
static bool is_over(void) {
    return atomic_load(&sg_forked) || atomic_load(&sg_exiting);
}

void sg_error_log_refusal(gpumem_driver_fn fn, struct sg_arguments arguments, CUresult result,
                          bool inside) {
    if (is_over())
        return;
    struct entry entry = entry_of(fn, result);
    entry.arguments = arguments;
    entry.runtime = refused_below = sg_runtime_call();
    put(&entry, WHAT);
    if (inside)
        put(&entry, WITH);
}

void sg_error_log_runtime(const char *function, int error) {
    bool known = refused_below == function;
    refused_below = NULL;
    if (known || is_over())
        return;
    struct entry entry = entry_of(GPUMEM_FN_COUNT, (CUresult)error);
    entry.runtime = function;
    put(&entry, RUNTIME);
}

/* ---- Reading --------------------------------------------------------------------------------- */

struct range {
    uint64_t from, to;
    bool lost; /* lines before it have been overwritten */
};

static struct range range_from(const CUlogIterator *iterator) {
    uint64_t oldest = next > SG_LOG_ENTRIES ? next - SG_LOG_ENTRIES : 0;
    struct range range = {oldest, next, oldest > 0};
    if (!iterator)
        return range;
    uint32_t behind = (uint32_t)next - *iterator;
    if (behind > INT32_MAX || behind > next)
        range.from = next; /* not yet written: nothing to show */
    else if (next - behind > oldest)
        range.from = next - behind;
    range.lost = behind <= INT32_MAX && behind <= next && next - behind < oldest;
    return range;
}

static size_t length_of(const struct range *range) {
    char line[SG_LOG_ROOM];
    size_t length = range->lost ? strlen(left_out) : 0;
    for (uint64_t i = range->from; i < range->to; i++)
        length += write_line(&entries[i % SG_LOG_ENTRIES], line);
    return length;
}

/* The newest lines that fit, with the terminating zero. False when not even the head fits. */
static bool cut(struct range *range, size_t room) {
    char line[SG_LOG_ROOM];
    size_t length = length_of(range);
    while (length >= room) {
        if (range->from == range->to)
            return false;
        length -= write_line(&entries[range->from++ % SG_LOG_ENTRIES], line);
        if (!range->lost)
            length += strlen(left_out);
        range->lost = true;
    }
    return true;
}

static size_t copy_out(const struct range *range, char *out) {
    char line[SG_LOG_ROOM];
    size_t length = range->lost ? strlen(left_out) : 0;
    memcpy(out, left_out, length);
    for (uint64_t i = range->from; i < range->to; i++) {
        size_t one = write_line(&entries[i % SG_LOG_ENTRIES], line);
        memcpy(out + length, line, one);
        length += one;
    }
    out[length] = '\0';
    return length;
}

/* *size: the room, then the bytes written. Advances the iterator when it returns true. */
static bool dump(CUlogIterator *iterator, char *out, size_t *size) {
    sg_error_log_lock();
    struct range range = range_from(iterator);
    bool empty = range.from == range.to && !range.lost;
    bool fits = empty || cut(&range, *size);
    if (empty && *size > 0)
        out[0] = '\0';
    *size = fits && !empty ? copy_out(&range, out) : 0;
    if (fits && iterator)
        *iterator = (CUlogIterator)range.to;
    sg_error_log_unlock();
    return fits;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* An H200 accepts any flags. */
CUresult sg_cuLogsCurrent(CUlogIterator *iterator_out, unsigned int flags) {
    (void)flags;
    if (!iterator_out)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load(&sg_forked))
        return CUDA_ERROR_NOT_INITIALIZED;
    sg_error_log_lock();
    *iterator_out = (CUlogIterator)next;
    sg_error_log_unlock();
    return CUDA_SUCCESS;
}

CUresult sg_cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size,
                               unsigned int flags) {
    (void)flags;
    if (!buffer || !size)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load(&sg_forked))
        return CUDA_ERROR_NOT_INITIALIZED;
    return dump(iterator, buffer, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Appends to an existing file: an iterator yields what is new, and earlier dumps remain. */
CUresult sg_cuLogsDumpToFile(CUlogIterator *iterator, const char *pathToFile, unsigned int flags) {
    (void)flags;
    if (!pathToFile)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load(&sg_forked))
        return CUDA_ERROR_NOT_INITIALIZED;
    size_t size = (size_t)SG_LOG_ENTRIES * SG_LOG_ROOM + sizeof left_out;
    char *text = malloc(size);
    if (!text)
        return CUDA_ERROR_OUT_OF_MEMORY;
    int fd = gm_fd_open(pathToFile, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY, 0666);
    if (fd < 0) {
        free(text);
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUlogIterator moved = iterator ? *iterator : 0;
    dump(iterator ? &moved : NULL, text, &size);
    bool written = gm_fd_write(fd, text, size);
    if (written && iterator)
        *iterator = moved;
    free(text);
    close(fd);
    return written ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
