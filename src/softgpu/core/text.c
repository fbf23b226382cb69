#include "softgpu/core/text.h"

#include "base/growing_array.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/config.h"
#include "softgpu/core/handle.h"
#include "softgpu/core/state.h"
#include "softgpu/core/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 256

struct sg_text {
    char *bytes;
    size_t length, capacity;
    bool failed; /* out of memory: the text is incomplete */

    bool leaks;                    /* a leak report: lines name what they are about */
    unsigned kind, kinds, found;   /* of the next line; wanted, and written: a bit for each */
    uint64_t since;                /* made after it */
    const struct sg_context *only; /* and are about this context; NULL for all */
    bool (*belongs)(const struct sg_context *only, const struct sg_context *other);
    struct {
        bool known;
        uint64_t value; /* handle or address */
        struct sg_origin origin;
        const struct sg_context *context;
    } about; /* the next line */
};

static void about(struct sg_text *text, uint64_t value, struct sg_origin origin,
                  const struct sg_context *context) {
    text->about.known = true;
    text->about.value = value;
    text->about.origin = origin;
    text->about.context = context;
}

void sg_text_handle(struct sg_text *text, uint64_t handle, const struct sg_context *context) {
    about(text, handle, sg_handle_origin(handle), context);
}

void sg_text_address(struct sg_text *text, uint64_t address, struct sg_origin origin,
                     const struct sg_context *context) {
    about(text, address, origin, context);
}

void sg_text_kind(struct sg_text *text, unsigned kind) {
    text->kind = kind;
}

static bool reserve(struct sg_text *text, size_t more) {
    size_t wanted;
    bool reserved =
        !__builtin_add_overflow(text->length, more, &wanted) &&
        GM_RESERVE(text->bytes, text->capacity, wanted > FIRST_CAPACITY ? wanted : FIRST_CAPACITY);
    text->failed |= !reserved;
    return reserved;
}

static bool is_wanted(const struct sg_text *text) {
    if (text->leaks && !(text->kinds >> text->kind & 1))
        return false;
    if (text->since && !(text->about.known && text->about.origin.number > text->since))
        return false;
    return !text->only || (text->about.context && text->belongs(text->only, text->about.context));
}

/* ": 0x7f00, made by cuMemAlloc_v2 from ..." */
static void describe(const struct sg_text *text, char *to, size_t size) {
    char site[768];
    to[0] = '\0';
    if (!text->leaks || !text->about.known)
        return;
    sg_site_text(text->about.origin.site, site, sizeof site);
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
    text->found |= 1u << text->kind;
}

/* Before cuInit there is nothing, and the chapters are not ready to be asked. */
static char *write_all(struct sg_text *text, void (*write)(struct sg_text *)) {
    if (!reserve(text, 1))
        return NULL;
    text->bytes[0] = '\0';
    if (atomic_load(&sg_initialized))
        write(text);
    if (!text->failed)
        return text->bytes;
    free(text->bytes);
    return NULL;
}

char *sg_text_of_state(void) {
    struct sg_text text = {.leaks = false};
    return write_all(&text, sg_chapters_dump);
}

char *sg_text_of_leaks(unsigned *kinds, uint64_t since, const struct sg_context *only,
                       bool (*belongs)(const struct sg_context *only,
                                       const struct sg_context *other)) {
    struct sg_text text = {
        .leaks = true, .kinds = *kinds, .since = since, .only = only, .belongs = belongs};
    char *written = write_all(&text, sg_chapters_leaks);
    *kinds = text.found;
    return written;
}

void sg_leaks_say(char *text, unsigned kinds, const char *when) {
    if (!text || !text[0]) {
        free(text);
        return;
    }
    if (kinds & sg_config()->fail_on_leaks)
        sg_verdict_leak();
    unsigned lines = 0;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    sg_log_lasting(SG_LOG_WARNING,
                   "%u object%s still live %s; SOFTGPU_TRACE=FILE records all calls:", lines,
                   lines == 1 ? "" : "s", when);
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        sg_log_lasting(SG_LOG_WARNING, "  %s", line);
    free(text);
}
