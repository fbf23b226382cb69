#include "wrap/trace_csv.h"

#include "base/descriptor.h"
#include "base/log.h"
#include "wrap/wrapper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_ROOM ((size_t)64 << 10)
#define LEAST_ROOM   ((size_t)4 << 10)
#define NOTE_MOST    1000

static const char header[] = "#gpumem-log,1\n"
                             "sequence,time_ns,thread,event,buffer,bytes,alignment,capacity,stream,"
                             "pointer,committed,took_ns,status,note\n";

/* ---- Text ------------------------------------------------------------------------------------ */

static char *put_number(char *at, uint64_t value) {
    char digits[20];
    unsigned count = 0;
    do
        digits[count++] = (char)('0' + value % 10);
    while (value /= 10);
    while (count)
        *at++ = digits[--count];
    *at++ = ',';
    return at;
}

static char *put_hex(char *at, uint64_t value) {
    unsigned shift = 0;
    while (shift < 60 && value >> shift >> 4)
        shift += 4;
    *at++ = '0';
    *at++ = 'x';
    for (;; shift -= 4) {
        *at++ = "0123456789abcdef"[value >> shift & 15];
        if (!shift)
            break;
    }
    *at++ = ',';
    return at;
}

/* Quoted if necessary, according to RFC 4180; quotes inside are doubled. */
static char *put_note(char *at, const char *note) {
    size_t length = strnlen(note, NOTE_MOST);
    if (!memchr(note, '"', length) && strcspn(note, ",\r\n") >= length) {
        memcpy(at, note, length);
        return at + length;
    }
    *at++ = '"';
    for (size_t i = 0; i < length; i++) {
        if (note[i] == '"')
            *at++ = '"';
        *at++ = note[i];
    }
    *at++ = '"';
    return at;
}

static char *put_line(char *at, const struct gm_trace_line *line) {
    at = put_number(at, line->thread);
    at = stpcpy(at, line->event);
    *at++ = ',';
    at = put_number(at, line->buffer);
    at = put_number(at, line->bytes);
    at = put_number(at, line->alignment);
    at = put_number(at, line->capacity);
    at = put_hex(at, (uint64_t)(uintptr_t)line->stream);
    at = put_hex(at, line->pointer);
    at = put_number(at, line->committed);
    at = put_number(at, line->took_ns);
    const char *status = gpumem_status_name(line->status);
    size_t prefix = strlen(line->status == GPUMEM_OK ? "GPUMEM_" : "GPUMEM_ERROR_");
    at = stpcpy(at, status + prefix);
    *at++ = ',';
    if (line->note)
        at = put_note(at, line->note);
    *at++ = '\n';
    return at;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* For a pipe without a reader: EPIPE, and no signal that would end the program. */
static ssize_t write_quietly(int fd, const char *text, size_t bytes) {
    sigset_t broken, before, pending;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    sigemptyset(&pending);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &broken, &before);
    ssize_t count = write(fd, text, bytes);
    int error = errno;
    if (count < 0 && error == EPIPE && !sigismember(&pending, SIGPIPE))
        (void)sigtimedwait(&broken, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return count;
}

/* Writes all of it or, if the file can be truncated, nothing: it then ends on a whole line. */
static int write_all(int fd, const char *text, size_t bytes) {
    size_t done = 0;
    while (done < bytes) {
        ssize_t count = write_quietly(fd, text + done, bytes - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) {
            int error = count < 0 ? errno : EIO;
            off_t end = lseek(fd, 0, SEEK_CUR);
            if (end >= 0 && ftruncate(fd, end - (off_t)done) != 0)
                return error; /* for example a device, which cannot be truncated */
            return error;
        }
        done += (size_t)count;
    }
    return 0;
}

/* The file's lock is held. */
static void write_gathered(struct gm_trace_file *file) {
    if (!file->used)
        return;
    int error = file->fd >= 0 ? write_all(file->fd, file->text, file->used)
                              : file->write(file->user, file->text, file->used);
    if (error) {
        file->error = error;
        file->missing += file->gathered;
    }
    file->used = 0;
    file->gathered = 0;
}

void gm_trace_add(struct gm_trace_file *file, const struct gm_trace_line *line) {
    char text[GM_TRACE_LINE_MOST], *start = text + 48; /* two numbers come before */
    size_t length = (size_t)(put_line(start, line) - start);
    pthread_mutex_lock(&file->lock);
    char first[48];
    char *end = put_number(first, ++file->sequence);
    end = put_number(end, gm_now_ns() - file->begin_ns);
    size_t begin = (size_t)(end - first);
    memcpy(start - begin, first, begin);
    if (file->used + begin + length > file->room)
        write_gathered(file);
    if (file->error) {
        file->missing++;
    } else {
        memcpy(file->text + file->used, start - begin, begin + length);
        file->used += begin + length;
        file->gathered++;
    }
    pthread_mutex_unlock(&file->lock);
}

int gm_trace_write(struct gm_trace_file *file) {
    pthread_mutex_lock(&file->lock);
    write_gathered(file);
    int error = file->error;
    pthread_mutex_unlock(&file->lock);
    return error;
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

gpumem_status gm_trace_open(struct gm_trace_file *file, const gpumem_trace_options *options,
                            const char *what) {
    size_t room = options->buffer_bytes ? options->buffer_bytes : DEFAULT_ROOM;
    *file = (struct gm_trace_file){.fd = -1,
                                   .write = options->write,
                                   .user = options->user,
                                   .room = room < LEAST_ROOM ? LEAST_ROOM : room};
    file->text = malloc(file->room);
    if (!file->text)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for the lines of a trace");
    if (options->path) {
        file->fd = gm_fd_open(options->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (file->fd < 0) {
            int error = errno;
            free(file->text);
            return gm_fail_system(GPUMEM_ERROR_SYSTEM, error, "open", "cannot make the trace %s",
                                  options->path);
        }
    }
    pthread_mutex_init(&file->lock, NULL);
    file->begin_ns = gm_now_ns();
    file->used = sizeof header - 1;
    memcpy(file->text, header, file->used);
    gm_trace_add(file,
                 &(struct gm_trace_line){.event = "note", .thread = gm_thread_id(), .note = what});
    return GPUMEM_OK;
}

void gm_trace_close(struct gm_trace_file *file) {
    int error = gm_trace_write(file);
    if (file->fd >= 0 && close(file->fd) != 0 && !error)
        error = errno;
    if (error)
        gm_log(GPUMEM_LOG_WARNING, "a trace is not whole, %llu lines are missing: %s",
               (unsigned long long)file->missing, strerror(error));
    pthread_mutex_destroy(&file->lock);
    free(file->text);
}
