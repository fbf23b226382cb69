#include "base/descriptor.h"
#include "base/printable.h"
#include "softgpu/core/config.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One write per line, so that lines of threads and child processes do not mix. */
static void write_line(enum sg_log_level level, const char *text) {
    static const char *const names[] = {[SG_LOG_ERROR] = "error",
                                        [SG_LOG_WARNING] = "warning",
                                        [SG_LOG_INFO] = "info",
                                        [SG_LOG_DEBUG] = "debug"};
    char line[2048];
    int used = snprintf(line, sizeof line, "softgpu: %s: ", names[level]);
    size_t length = (size_t)used;
    length += gm_printable(text, line + length, sizeof line - length - 1);
    line[length++] = '\n';
    (void)gm_fd_write(STDERR_FILENO, line, length); /* there is nowhere left to report it */
}

static bool is_wanted(enum sg_log_level level) {
    return level >= SG_LOG_ERROR && level <= SG_LOG_DEBUG && (int)level <= sg_config()->log_level;
}

void sg_log(enum sg_log_level level, const char *format, ...) {
    if (!is_wanted(level))
        return;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    write_line(level, text);
}

/* ---- Repeated lines -------------------------------------------------------------------------- */

#define LASTING_LIMIT 1000 /* lines: a test run that leaks everywhere must not fill the memory */

struct said {
    struct said *next;
    enum sg_log_level level;
    struct stat where;
    char text[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct said *first, **last = &first;
static unsigned said_count;

static void remember(enum sg_log_level level, const char *text) {
    size_t size = strlen(text) + 1;
    struct said *said = malloc(sizeof *said + size);
    if (!said)
        return;
    *said = (struct said){.level = level};
    memcpy(said->text, text, size);
    (void)fstat(STDERR_FILENO, &said->where); /* all zero if it is closed */
    pthread_mutex_lock(&lock);
    bool room = said_count < LASTING_LIMIT;
    if (room) {
        said_count++;
        *last = said;
        last = &said->next;
    }
    pthread_mutex_unlock(&lock);
    if (!room)
        free(said);
}

void sg_log_lasting(enum sg_log_level level, const char *format, ...) {
    if (!is_wanted(level))
        return;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    write_line(level, text);
    remember(level, text);
}

void sg_log_repeat(void) {
    struct stat now;
    if (fstat(STDERR_FILENO, &now) != 0)
        return;
    pthread_mutex_lock(&lock);
    for (const struct said *said = first; said; said = said->next)
        if (said->where.st_dev != now.st_dev || said->where.st_ino != now.st_ino)
            write_line(said->level, said->text);
    pthread_mutex_unlock(&lock);
}
