/* Checks whether the settings are understood, before anything depends on them. */
#include "softgpu/entry/settings.h"
#include "softgpu/core/config.h"
#include "softgpu/device/profile.h"
#include "softgpu/entry/fault.h"
#include "softgpu/entry/trace.h"
#include "softgpu/launch/kernel_profile.h"

#include <pthread.h>
#include <stdio.h>

struct lines {
    char *text;
    size_t size, used;
    int count;
};

static void add(struct lines *lines, const char *line) {
    lines->count++;
    int length = snprintf(lines->text + lines->used, lines->size - lines->used, "%s\n", line);
    if (length > 0 && (size_t)length < lines->size - lines->used)
        lines->used += (size_t)length;
    else
        lines->text[lines->used] = '\0';
}

int sg_settings_check(char *text, size_t size) {
    static struct sg_profile profile;
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    struct lines lines = {.text = text, .size = size};
    struct sg_config config;
    struct sg_complaints complaints;
    char message[1024];
    text[0] = '\0';
    sg_config_examine(&config, &complaints);
    for (unsigned i = 0; i < complaints.count; i++)
        add(&lines, complaints.text[i]);
    if (config.fault && !sg_fault_understood(config.fault, message, sizeof message))
        add(&lines, message);
    if (config.trace && !sg_trace_possible(config.trace, message, sizeof message))
        add(&lines, message);
    if (config.profile_kernels &&
        !sg_profile_possible(config.profile_kernels, message, sizeof message))
        add(&lines, message);
    pthread_mutex_lock(&one_at_a_time);
    if (!sg_profile_load(&profile, config.profile, message, sizeof message))
        add(&lines, message);
    pthread_mutex_unlock(&one_at_a_time);
    return lines.count;
}
