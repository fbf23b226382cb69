/* Growing text, and the reports that the chapters write into it. */
#include "softgpu/address/memory.h"
#include "softgpu/context/context.h"
#include "softgpu/core/handle.h"
#include "softgpu/core/site.h"
#include "softgpu/core/state.h"
#include "softgpu/device/device.h"
#include "softgpu/entry/entry.h"
#include "softgpu/pool/pool.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sg_text {
    char *bytes;
    size_t length, capacity;
    bool failed; /* out of memory: what is there is not whole */

    bool leaks;                    /* the report is of leaks: lines tell what they are about */
    const struct sg_context *only; /* and are about this context; NULL for all */
    struct {
        bool known;
        uint64_t value; /* handle or address */
        uint32_t site;
        const struct sg_context *context;
    } about; /* the next line */
};

static void about(struct sg_text *text, uint64_t value, uint32_t site,
                  const struct sg_context *context) {
    text->about.known = true;
    text->about.value = value;
    text->about.site = site;
    text->about.context = context;
}

void sg_text_handle(struct sg_text *text, uint64_t handle, const struct sg_context *context) {
    about(text, handle, sg_handle_site(handle), context);
}

void sg_text_address(struct sg_text *text, uint64_t address, uint32_t site,
                     const struct sg_context *context) {
    about(text, address, site, context);
}

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

static bool is_wanted(const struct sg_text *text) {
    return !text->only ||
           (text->about.context && sg_context_includes(text->only, text->about.context));
}

/* ": 0x7f00, made by cuMemAlloc_v2 from ..." */
static void describe(const struct sg_text *text, char *to, size_t size) {
    char site[768];
    to[0] = '\0';
    if (!text->leaks || !text->about.known)
        return;
    sg_site_text(text->about.site, site, sizeof site);
    snprintf(to, size, ": 0x%llx%s%s", (unsigned long long)text->about.value,
             site[0] ? ", made by " : "", site);
}

static void append(struct sg_text *text, const char *bytes, size_t length) {
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void sg_text_line(struct sg_text *text, const char *format, ...) {
    char more[832];
    bool wanted = is_wanted(text);
    describe(text, more, sizeof more);
    text->about.known = false;
    text->about.context = NULL;
    if (!wanted)
        return;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (text->failed || length < 0 || !reserve(text, (size_t)length + strlen(more) + 2))
        return;
    va_start(arguments, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
    append(text, more, strlen(more));
    append(text, "\n", 1);
}

/* First, because when it was noticed that a free is complete is no part of the state. */
static void dump_devices(struct sg_text *text) {
    sg_pools_collect();
    for (int i = 0; i < sg_device_count(); i++)
        sg_text_line(text, "device %d used %" PRIu64, i, sg_memory_used(i));
}

/* With the lock. Before cuInit there is nothing, and the chapters are not ready to be asked. */
static char *write_all(struct sg_text *text, void (*const *writers)(struct sg_text *),
                       size_t count) {
    if (!reserve(text, 1))
        return NULL;
    text->bytes[0] = '\0';
    for (size_t i = 0; i < count && atomic_load(&sg_initialized); i++)
        writers[i](text);
    if (!text->failed)
        return text->bytes;
    free(text->bytes);
    return NULL;
}

char *sg_state_text(void) {
    static void (*const writers[])(struct sg_text *) = {
        dump_devices,    sg_dump_contexts, sg_dump_memory,    sg_dump_pools,
        sg_dump_streams, sg_dump_modules,  sg_dump_graphs,    sg_dump_execs,
        sg_dump_arrays,  sg_dump_external, sg_dump_multicast, sg_dump_reports};
    struct sg_text text = {.leaks = false};
    sg_lock();
    char *bytes = write_all(&text, writers, sizeof writers / sizeof writers[0]);
    sg_unlock();
    return bytes;
}

char *sg_leak_text_of(const struct sg_context *context) {
    static void (*const writers[])(struct sg_text *) = {
        sg_leaks_contexts, sg_leaks_memory,   sg_leaks_pools,  sg_leaks_streams,
        sg_leaks_modules,  sg_leaks_graphs,   sg_leaks_execs,  sg_leaks_arrays,
        sg_leaks_external, sg_leaks_textures, sg_leaks_reports};
    struct sg_text text = {.leaks = true, .only = context};
    return write_all(&text, writers, sizeof writers / sizeof writers[0]);
}

char *sg_leak_text(void) {
    sg_lock();
    char *bytes = sg_leak_text_of(NULL);
    sg_unlock();
    return bytes;
}
