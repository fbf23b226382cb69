/* Growing text, and the reports that the chapters write into it. */
#include "softgpu/core/state.h"
#include "softgpu/device/device.h"
#include "softgpu/entry/entry.h"
#include "softgpu/memory/memory.h"
#include "softgpu/pool/pool.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct sg_text {
    char *bytes;
    size_t length, capacity;
    bool failed; /* out of memory: what is there is not whole */
};

static bool reserve(struct sg_text *text, size_t more) {
    if (text->length + more <= text->capacity)
        return true;
    size_t capacity = 2 * text->capacity + more + 256;
    char *bytes = realloc(text->bytes, capacity);
    if (!bytes) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

void sg_text_line(struct sg_text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (text->failed || length < 0 || !reserve(text, (size_t)length + 2))
        return;
    va_start(arguments, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
    text->bytes[text->length++] = '\n';
    text->bytes[text->length] = '\0';
}

/* First, because when it was noticed that a free is complete is no part of the state. */
static void dump_devices(struct sg_text *text) {
    sg_pools_collect();
    for (int i = 0; i < sg_device_count(); i++)
        sg_text_line(text, "device %d used %" PRIu64, i, sg_memory_used(i));
}

static char *report(void (*const *writers)(struct sg_text *), size_t count) {
    struct sg_text text = {0};
    if (!reserve(&text, 1))
        return NULL;
    text.bytes[0] = '\0';
    sg_lock();
    /* Before cuInit there is nothing, and the chapters are not ready to be asked. */
    for (size_t i = 0; i < count && atomic_load(&sg_initialized); i++)
        writers[i](&text);
    sg_unlock();
    if (!text.failed)
        return text.bytes;
    free(text.bytes);
    return NULL;
}

char *sg_state_text(void) {
    static void (*const writers[])(struct sg_text *) = {
        dump_devices,    sg_dump_contexts, sg_dump_memory,    sg_dump_pools,
        sg_dump_streams, sg_dump_modules,  sg_dump_graphs,    sg_dump_execs,
        sg_dump_arrays,  sg_dump_external, sg_dump_multicast, sg_dump_reports};
    return report(writers, sizeof writers / sizeof writers[0]);
}

char *sg_leak_text(void) {
    static void (*const writers[])(struct sg_text *) = {
        sg_leaks_contexts, sg_leaks_memory,   sg_leaks_pools,  sg_leaks_streams,
        sg_leaks_modules,  sg_leaks_graphs,   sg_leaks_execs,  sg_leaks_arrays,
        sg_leaks_external, sg_leaks_textures, sg_leaks_reports};
    return report(writers, sizeof writers / sizeof writers[0]);
}
