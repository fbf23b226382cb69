/* A hazard as lines for people, or as a line of JSON. */
#include "softgpu/check/report.h"

#include "base/printable.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char *bytes;
    size_t used, room;
    bool failed;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *text, const char *format, ...) {
    for (int i = 0; i < 2 && !text->failed; i++) {
        va_list list;
        va_start(list, format);
        int length = vsnprintf(text->bytes + text->used, text->room - text->used, format, list);
        va_end(list);
        if (length < 0)
            return;
        if ((size_t)length < text->room - text->used) {
            text->used += (size_t)length;
            return;
        }
        size_t room = 2 * text->room + (size_t)length + 1;
        char *more = realloc(text->bytes, room);
        text->failed = !more;
        text->bytes = more ? more : text->bytes;
        text->room = more ? room : text->room;
    }
}

static struct text begin(void) {
    struct text text = {.bytes = malloc(1024), .room = 1024};
    text.failed = !text.bytes;
    return text;
}

static char *end(struct text *text) {
    if (!text->failed)
        return text->bytes;
    free(text->bytes);
    return NULL;
}

const char *sg_hazard_level_name(enum sg_hazard_level level) {
    static const char *const names[] = {"info", "warning", "error"};
    return names[level];
}

/* ---- for people ------------------------------------------------------------------------------ */

static void add_place(struct text *text, const struct sg_hazard_place *place) {
    if (place->file)
        add(text, "    at %s:%" PRIu32 "\n", place->file, place->source_line);
    add(text, "    PTX line %" PRIu32 "%s%s\n", place->line, place->text[0] ? ": " : "",
        place->text);
    if (place->function)
        add(text, "    in function %s\n", place->function);
    add(text, "    block %u,%u,%u thread %u,%u,%u\n", place->block[0], place->block[1],
        place->block[2], place->thread[0], place->thread[1], place->thread[2]);
}

/* In clusters, shared memory of any block of the cluster; addresses below those of the block's own
 * memory are beyond all offsets. */
static void add_offset(struct text *text, const struct sg_hazard *hazard, const char *access) {
    bool shared = strcmp(hazard->space, "shared") == 0;
    uint64_t offset = hazard->address, rank = offset >> 24;
    add(text, ": %s of %" PRIu32 " bytes at ", access, hazard->size);
    if (shared && offset <= UINT32_MAX && offset > UINT32_MAX - SG_SHARED_BEGIN)
        add(text, "address 0x%x of shared memory, which begins at 0x%x",
            (unsigned)(offset + SG_SHARED_BEGIN), SG_SHARED_BEGIN);
    else if (shared && hazard->cluster && rank < 16)
        add(text, "offset %" PRIu64 " of the shared memory of block %" PRIu64 " of its cluster",
            offset & 0xffffff, rank);
    else
        add(text, "offset %" PRIu64 " of %s memory", offset, hazard->space);
}

static void add_access(struct text *text, const struct sg_hazard *hazard) {
    if (!hazard->has_address)
        return;
    const char *access = hazard->write ? "write" : "read";
    bool global = strcmp(hazard->space, "global") == 0;
    if (hazard->size && global)
        add(text, ": %s of %" PRIu32 " bytes at 0x%" PRIx64, access, hazard->size, hazard->address);
    else if (hazard->size)
        add_offset(text, hazard, access);
    else
        add(text, ": 0x%" PRIx64, hazard->address);
}

char *sg_hazard_text(const struct sg_hazard *hazard, uint64_t number) {
    struct text text = begin();
    add(&text, "softgpu: %s %" PRIu64 " (%s, %s): ", sg_hazard_level_name(hazard->level), number,
        hazard->check, hazard->kind);
    if (hazard->place.kernel)
        add(&text, "kernel %s: ", hazard->place.kernel);
    add(&text, "%s", hazard->what);
    add_access(&text, hazard);
    add(&text, "\n");
    if (hazard->place.kernel)
        add_place(&text, &hazard->place);
    if (hazard->other.kernel) {
        add(&text, "  %s kernel %s\n", hazard->other_says, hazard->other.kernel);
        add_place(&text, &hazard->other);
    }
    if (hazard->details)
        add(&text, "%s", hazard->details);
    return end(&text);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Bytes that are not UTF-8 are written as the text \x.., so that the line is valid JSON. */
static void add_string(struct text *text, const char *string) {
    add(text, "\"");
    while (*string) {
        unsigned value;
        size_t length = gm_utf8_decode(string, &value);
        if (length == 0)
            add(text, "\\\\x%02x", (unsigned char)*string);
        else if (value < 0x20 || value == 0x7f)
            add(text, "\\u%04x", value);
        else if (value == '"' || value == '\\')
            add(text, "\\%c", (char)value);
        else
            add(text, "%.*s", (int)length, string);
        string += length ? length : 1;
    }
    add(text, "\"");
}

static void add_member(struct text *text, const char *name, const char *value) {
    if (!value || !value[0])
        return;
    add(text, ",\"%s\":", name);
    add_string(text, value);
}

static void add_json_place(struct text *text, const char *name,
                           const struct sg_hazard_place *place) {
    if (!place->kernel)
        return;
    add(text, ",\"%s\":{\"kernel\":", name);
    add_string(text, place->kernel);
    add_member(text, "function", place->function);
    add(text, ",\"ptx_line\":%" PRIu32, place->line);
    add_member(text, "ptx", place->text);
    add_member(text, "file", place->file);
    if (place->file)
        add(text, ",\"line\":%" PRIu32, place->source_line);
    add(text, ",\"block\":[%u,%u,%u],\"thread\":[%u,%u,%u]}", place->block[0], place->block[1],
        place->block[2], place->thread[0], place->thread[1], place->thread[2]);
}

char *sg_hazard_json(const struct sg_hazard *hazard, uint64_t number) {
    struct text text = begin();
    add(&text, "{\"hazard\":%" PRIu64 ",\"check\":\"%s\",\"kind\":\"%s\",\"level\":\"%s\"", number,
        hazard->check, hazard->kind, sg_hazard_level_name(hazard->level));
    add_member(&text, "what", hazard->what);
    if (hazard->has_address)
        add(&text, ",\"address\":\"0x%" PRIx64 "\",\"space\":\"%s\"", hazard->address,
            hazard->space);
    if (hazard->has_address && hazard->size)
        add(&text, ",\"size\":%" PRIu32 ",\"write\":%s", hazard->size,
            hazard->write ? "true" : "false");
    add_json_place(&text, "place", &hazard->place);
    add_json_place(&text, "other", &hazard->other);
    if (hazard->other.kernel)
        add_member(&text, "other_says", hazard->other_says);
    add_member(&text, "details", hazard->details);
    add(&text, "}\n");
    return end(&text);
}
