/* Messages for the buffers that a program supplied: truncated to fit, always zero-terminated. */
#include "softgpu/image/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void append(char *to, size_t room, size_t *used, const char *text) {
    if (!to || room == 0 || *used >= room)
        return;
    size_t left = room - 1 - *used, length = strnlen(text, left);
    bool cut = text[length] != '\0';
    memcpy(to + *used, text, length);
    *used += length;
    to[*used] = '\0';
    /* An H200 then reports everything as used; with room for the zero alone, it reports none. */
    if (cut && room > 1)
        *used = room;
}

void sg_image_log_error(struct sg_image_log *log, const char *name, size_t line, const char *format,
                        ...) {
    if (!log || !log->error)
        return;
    char text[400], place[200];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (line)
        snprintf(place, sizeof place, "%.150s, line %zu; error   : ", name ? name : "ptx", line);
    else
        snprintf(place, sizeof place, "%.150s%serror   : ", name ? name : "", name ? "; " : "");
    append(log->error, log->error_size, &log->error_used, place);
    append(log->error, log->error_size, &log->error_used, text);
    append(log->error, log->error_size, &log->error_used, "\n");
}

void sg_image_log_info(struct sg_image_log *log, const char *format, ...) {
    if (!log || !log->info)
        return;
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    append(log->info, log->info_size, &log->info_used, text);
    append(log->info, log->info_size, &log->info_used, "\n");
}
