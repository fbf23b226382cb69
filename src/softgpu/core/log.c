#include "base/printable.h"
#include "softgpu/core/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* One write a line, so that lines of threads and of child processes do not mix. */
void sg_log(int level, const char *format, ...) {
    static const char *const names[] = {"error", "warning", "info", "debug"};
    if (level < 0 || level > 3 || level > sg_config()->log_level)
        return;
    char text[1024], line[2048];
    int used = snprintf(line, sizeof line, "softgpu: %s: ", names[level]);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t length = (size_t)used;
    length += gm_printable(text, line + length, sizeof line - length - 1);
    line[length++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, length);
    (void)written; /* nobody is left to tell */
}
