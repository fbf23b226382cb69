#include "base/log.h"

#include "base/printable.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const level_names[] = {
    [GPUMEM_LOG_DEFAULT] = "default", [GPUMEM_LOG_ERROR] = "error",
    [GPUMEM_LOG_WARNING] = "warning", [GPUMEM_LOG_INFO] = "info",
    [GPUMEM_LOG_DEBUG] = "debug",
};

#define LEVELS ((int)(sizeof level_names / sizeof level_names[0]))
#define OFF    (-1)

static void to_stderr(void *user, gpumem_log_level level, const char *text) {
    char shown[2048];
    (void)user;
    gm_printable(text, shown, sizeof shown);
    fprintf(stderr, "gpumem: %s: %s\n", level_names[level], shown);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static gpumem_log_fn log_fn = to_stderr;
static void *log_user;
static int log_level; /* a gpumem_log_level, or OFF */

static int level_from_environment(void) {
    const char *wanted = secure_getenv("GPUMEM_LOG");
    if (!wanted)
        return GPUMEM_LOG_WARNING;
    for (int level = GPUMEM_LOG_ERROR; level < LEVELS; level++)
        if (strcmp(wanted, level_names[level]) == 0)
            return level;
    if (strcmp(wanted, "off") == 0)
        return OFF;
    char text[160];
    snprintf(text, sizeof text,
             "GPUMEM_LOG='%.64s' is ignored: it takes off, error, warning, info or debug", wanted);
    to_stderr(NULL, GPUMEM_LOG_WARNING, text);
    return GPUMEM_LOG_WARNING;
}

static void initialize(void) {
    log_level = level_from_environment();
}

void gm_log(gpumem_log_level level, const char *format, ...) {
    pthread_once(&once, initialize);
    pthread_mutex_lock(&lock);
    gpumem_log_fn fn = log_fn;
    void *user = log_user;
    int wanted = (int)level <= log_level;
    pthread_mutex_unlock(&lock);
    if (!wanted)
        return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fn(user, level, text);
}

void gpumem_set_log(gpumem_log_fn fn, void *user, gpumem_log_level max_level) {
    pthread_once(&once, initialize);
    pthread_mutex_lock(&lock);
    log_fn = fn ? fn : to_stderr;
    log_user = fn ? user : NULL;
    log_level = fn && max_level != GPUMEM_LOG_DEFAULT ? (int)max_level : level_from_environment();
    pthread_mutex_unlock(&lock);
}
