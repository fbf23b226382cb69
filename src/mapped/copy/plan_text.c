/*
 * Plans as text, a line for each fact:
 *
 *   gpumem copy plan 1
 *   cpu AMD EPYC 9575F 64-Core Processor
 *   driver 580.159.04, API 13000
 *   gpu NVIDIA H200
 *   class 64 store plain load plain
 *   class last store avx512 load sse41
 *   cutover store pinned never pageable 67108864
 *   cutover load pinned 512 pageable 512
 *   check 0123456789abcdef
 *
 * `check` is XXH64 of all bytes before its line. Decoding reads the values and writes the text
 * again: a text that differs in any byte was not written here.
 */
#include "mapped/copy/copy.h"

#include "base/xxh.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_LINE "gpumem copy plan 1\n"
#define CHECK      "check "

/* ---- Writing --------------------------------------------------------------------------------- */

struct text {
    char *bytes;
    size_t length; /* GM_COPY_TEXT_ROOM if it did not fit */
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *format, ...) {
    size_t room = GM_COPY_TEXT_ROOM - text->length;
    va_list args;
    va_start(args, format);
    int written = vsnprintf(text->bytes + text->length, room, format, args);
    va_end(args);
    text->length =
        written >= 0 && (size_t)written < room ? text->length + (size_t)written : GM_COPY_TEXT_ROOM;
}

static bool key_is_good(const char value[GM_COPY_KEY_ROOM]) {
    size_t length = strnlen(value, GM_COPY_KEY_ROOM);
    if (length == 0 || length == GM_COPY_KEY_ROOM)
        return false;
    for (size_t i = 0; i < length; i++)
        if (iscntrl((unsigned char)value[i]))
            return false;
    return true;
}

static bool plan_is_good(const struct gm_copy_plan *plan) {
    if (plan->class_count == 0 || plan->class_count > GM_COPY_CLASS_LIMIT)
        return false;
    for (unsigned i = 0; i < plan->class_count; i++) {
        const struct gm_copy_class *class = &plan->classes[i];
        if (class->bytes == 0 || (i > 0 && class->bytes <= plan->classes[i - 1].bytes) ||
            !gm_copy_kernel_can(class->store, GM_COPY_STORE) ||
            !gm_copy_kernel_can(class->load, GM_COPY_LOAD))
            return false;
    }
    return true;
}

static const char *amount(uint64_t bytes, char text[24]) {
    if (bytes == UINT64_MAX)
        return "never";
    snprintf(text, 24, "%" PRIu64, bytes);
    return text;
}

static void add_cutover(struct text *text, const char *direction,
                        const struct gm_copy_cutover *cutover) {
    char pinned[24], pageable[24];
    add(text, "cutover %s pinned %s pageable %s\n", direction, amount(cutover->pinned, pinned),
        amount(cutover->pageable, pageable));
}

size_t gm_copy_plan_encode(const struct gm_copy_plan *plan, const struct gm_copy_key *key,
                           char bytes[GM_COPY_TEXT_ROOM]) {
    struct text text = {.bytes = bytes};
    if (!key_is_good(key->cpu) || !key_is_good(key->driver) || !key_is_good(key->gpu) ||
        !plan_is_good(plan))
        return 0;
    add(&text, FIRST_LINE "cpu %s\ndriver %s\ngpu %s\n", key->cpu, key->driver, key->gpu);
    for (unsigned i = 0; i < plan->class_count; i++)
        add(&text, "class %" PRIu64 " store %s load %s\n", plan->classes[i].bytes,
            gm_copy_kernel_name(plan->classes[i].store),
            gm_copy_kernel_name(plan->classes[i].load));
    add_cutover(&text, "store", &plan->store);
    add_cutover(&text, "load", &plan->load);
    if (text.length == GM_COPY_TEXT_ROOM)
        return 0;
    uint64_t check = gm_xxh64(bytes, text.length);
    add(&text, CHECK "%016" PRIx64 "\n", check);
    return text.length == GM_COPY_TEXT_ROOM ? 0 : text.length;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* A copy of the text, which is read word by word. */
struct reader {
    char *at; /* NULL after a line without an end */
    char *why;
    size_t why_size;
};

static bool wrong(const struct reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool wrong(const struct reader *reader, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(reader->why, reader->why_size, format, args);
    va_end(args);
    return false;
}

/* The rest of the line, terminated there; NULL at the end of the text. */
static char *next_line(struct reader *reader) {
    return reader->at && *reader->at ? strsep(&reader->at, "\n") : NULL;
}

static bool read_key(struct reader *reader, const char *name, const char *wanted) {
    char *line = next_line(reader);
    size_t length = strlen(name);
    if (!line || strncmp(line, name, length) != 0 || line[length] != ' ')
        return wrong(reader, "the line '%s' is missing", name);
    if (strcmp(line + length + 1, wanted) != 0)
        return wrong(reader, "it is for the %s '%s', not for '%s'", name, line + length + 1,
                     wanted);
    return true;
}

static bool read_word(char **line, const char *wanted) {
    const char *word = strsep(line, " ");
    return word && strcmp(word, wanted) == 0;
}

static bool read_number(char **line, bool may_be_never, uint64_t *number) {
    const char *word = strsep(line, " ");
    if (word && may_be_never && strcmp(word, "never") == 0) {
        *number = GM_COPY_NEVER;
        return true;
    }
    if (!word || !isdigit((unsigned char)word[0]))
        return false;
    char *end;
    errno = 0;
    *number = strtoull(word, &end, 10);
    return !*end && errno == 0;
}

static bool read_kernel(struct reader *reader, char **line, unsigned direction,
                        enum gm_copy_kernel *kernel) {
    const char *word = strsep(line, " ");
    if (!word || !gm_copy_kernel_find(word, kernel))
        return wrong(reader, "'%s' is no kernel", word ? word : "");
    if (!gm_copy_kernel_can(*kernel, direction))
        return wrong(reader, "this CPU has no kernel %s for %s", word,
                     direction == GM_COPY_STORE ? "stores" : "loads");
    return true;
}

static bool read_class(struct reader *reader, char *line, struct gm_copy_class *class) {
    if (!read_word(&line, "class") || !read_number(&line, false, &class->bytes) ||
        !read_word(&line, "store"))
        return wrong(reader, "a class is not understood");
    if (!read_kernel(reader, &line, GM_COPY_STORE, &class->store))
        return false;
    if (!read_word(&line, "load"))
        return wrong(reader, "a class is not understood");
    return read_kernel(reader, &line, GM_COPY_LOAD, &class->load);
}

static bool read_cutover(struct reader *reader, char *line, const char *direction,
                         struct gm_copy_cutover *cutover) {
    if (line && read_word(&line, "cutover") && read_word(&line, direction) &&
        read_word(&line, "pinned") && read_number(&line, true, &cutover->pinned) &&
        read_word(&line, "pageable") && read_number(&line, true, &cutover->pageable))
        return true;
    return wrong(reader, "the cut-over of %ss is missing or not understood", direction);
}

static bool read_plan(struct reader *reader, const struct gm_copy_key *key,
                      struct gm_copy_plan *plan) {
    char *line = next_line(reader);
    if (!line || strlen(line) != strlen(FIRST_LINE) - 1 ||
        strncmp(line, FIRST_LINE, strlen(line)) != 0)
        return wrong(reader, "it does not begin with '%.*s'", (int)strlen(FIRST_LINE) - 1,
                     FIRST_LINE);
    if (!read_key(reader, "cpu", key->cpu) || !read_key(reader, "driver", key->driver) ||
        !read_key(reader, "gpu", key->gpu))
        return false;
    for (line = next_line(reader); line && strncmp(line, "class ", 6) == 0;
         line = next_line(reader)) {
        if (plan->class_count == GM_COPY_CLASS_LIMIT)
            return wrong(reader, "it has more than %d classes", GM_COPY_CLASS_LIMIT);
        if (!read_class(reader, line, &plan->classes[plan->class_count]))
            return false;
        plan->class_count++;
    }
    return read_cutover(reader, line, "store", &plan->store) &&
           read_cutover(reader, next_line(reader), "load", &plan->load);
}

bool gm_copy_plan_decode(const char *text, size_t length, const struct gm_copy_key *key,
                         struct gm_copy_plan *plan, char *why, size_t why_size) {
    char copy[GM_COPY_TEXT_ROOM], again[GM_COPY_TEXT_ROOM];
    struct reader reader = {.at = copy, .why = why, .why_size = why_size};
    struct gm_copy_plan got;
    memset(&got, 0, sizeof got);
    if (length >= sizeof copy)
        return wrong(&reader, "it has %zu bytes, more than any plan", length);
    memcpy(copy, text, length);
    copy[length] = 0;
    if (strlen(copy) != length)
        return wrong(&reader, "it has a byte 0");
    if (!read_plan(&reader, key, &got))
        return false;
    if (gm_copy_plan_encode(&got, key, again) != length || memcmp(again, text, length) != 0)
        return wrong(&reader, "it was changed or cut off: its checksum does not fit");
    *plan = got;
    return true;
}
