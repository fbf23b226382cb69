#include "softgpu/report/error_log.h"

#include "softgpu/core/calls.h"
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

/* A line for the head of a dump that is not whole. */
static const char left_out[] = "[older messages are left out]\n";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry {
    char text[SG_LOG_ROOM]; /* with its newline */
    size_t length;
} entries[SG_LOG_ENTRIES];
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

/* A child of a process that has not begun to use the driver may use it. */
__attribute__((constructor(101))) static void watch_forks(void) {
    pthread_atfork(sg_error_log_lock, sg_error_log_unlock, sg_error_log_unlock);
}

/* ---- Writing ----------------------------------------------------------------------------------
 */

static size_t write_prefix(char *text, CUlogLevel level) {
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t length = strftime(text, SG_LOG_ROOM, "%Y-%m-%dT%H:%M:%S", &utc);
    int more = snprintf(text + length, SG_LOG_ROOM - length,
                        ".%03ldZ pid %ld thread %ld %s: ", now.tv_nsec / 1000000, (long)getpid(),
                        syscall(SYS_gettid), level == CU_LOG_LEVEL_ERROR ? "error" : "warning");
    return length + (size_t)more;
}

void sg_error_log_add(CUlogLevel level, const char *message) {
    struct entry entry;
    entry.length = write_prefix(entry.text, level);
    size_t room = SG_LOG_ROOM - 1 - entry.length, wanted = strlen(message);
    size_t length = wanted < room ? wanted : room;
    memcpy(entry.text + entry.length, message, length);
    entry.length += length;
    entry.text[entry.length++] = '\n';
    sg_error_log_lock();
    entries[next++ % SG_LOG_ENTRIES] = entry;
    sg_error_log_unlock();
    sg_error_log_call(level, message);
}

void sg_error_log_refusal(gpumem_driver_fn fn, struct sg_arguments arguments, CUresult result,
                          bool inside) {
    if (atomic_load(&sg_forked) || atomic_load(&sg_exiting))
        return; /* other threads may be gone with a lock, and nobody asks any more */
    char message[192];
    const char *name = sg_result_name(result), *text = sg_result_string(result);
    snprintf(message, sizeof message, "%s answered %s (%d): %s", sg_rows[fn].symbol,
             name ? name : "an unknown result", (int)result, text ? text : "no description");
    sg_error_log_add(CU_LOG_LEVEL_ERROR, message);
    if (!inside)
        return;
    const struct sg_thread *thread = sg_thread();
    snprintf(message, sizeof message, "%s was called with 0x%" PRIxPTR ", 0x%" PRIxPTR ", %s%s%s",
             sg_rows[fn].symbol, arguments.first, arguments.second,
             thread->depth ? "with" : "without", " a current context",
             thread->in_host_function ? ", in a host function" : "");
    sg_error_log_add(CU_LOG_LEVEL_ERROR, message);
}

/* ---- Reading ----------------------------------------------------------------------------------
 */

struct range {
    uint64_t from, to;
    bool lost; /* lines before it are overwritten */
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
    size_t length = range->lost ? strlen(left_out) : 0;
    for (uint64_t i = range->from; i < range->to; i++)
        length += entries[i % SG_LOG_ENTRIES].length;
    return length;
}

/* The newest lines that fit, and the zero behind them. False when not even the head fits. */
static bool cut(struct range *range, size_t room) {
    while (length_of(range) >= room) {
        if (range->from == range->to)
            return false;
        range->from++;
        range->lost = true;
    }
    return true;
}

static size_t copy_out(const struct range *range, char *out) {
    size_t length = range->lost ? strlen(left_out) : 0;
    memcpy(out, left_out, length);
    for (uint64_t i = range->from; i < range->to; i++) {
        const struct entry *entry = &entries[i % SG_LOG_ENTRIES];
        memcpy(out + length, entry->text, entry->length);
        length += entry->length;
    }
    out[length] = '\0';
    return length;
}

/* *size: the room, then what was written. Moves the iterator when it answers true. */
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

/* ---- Calls ------------------------------------------------------------------------------------
 */

/* An H200 takes any flags. */
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

static bool write_all(int fd, const char *text, size_t length) {
    while (length > 0) {
        ssize_t written = write(fd, text, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        text += written;
        length -= (size_t)written;
    }
    return true;
}

/* Adds to a file that exists: an iterator gives what is new, and what was dumped before stays. */
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
    int fd = open(pathToFile, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0) {
        free(text);
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUlogIterator moved = iterator ? *iterator : 0;
    dump(iterator ? &moved : NULL, text, &size);
    bool written = write_all(fd, text, size);
    if (written && iterator)
        *iterator = moved;
    free(text);
    close(fd);
    return written ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
