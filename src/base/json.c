#include "base/json.h"

#include "base/growing_array.h"
#include "base/printable.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM ((size_t)4096)

static void append(struct gm_json *json, const char *text, size_t bytes) {
    if (json->failed)
        return;
    if (bytes >= json->room - json->used) {
        size_t wanted;
        if (__builtin_add_overflow(json->used + 1, bytes, &wanted) ||
            !GM_RESERVE(json->text, json->room, wanted)) {
            json->failed = 1;
            return;
        }
    }
    memcpy(json->text + json->used, text, bytes);
    json->used += bytes;
}

static void append_text(struct gm_json *json, const char *text) {
    append(json, text, strlen(text));
}

void gm_json_begin(struct gm_json *json) {
    *json = (struct gm_json){.text = malloc(FIRST_ROOM), .room = FIRST_ROOM};
    json->failed = !json->text;
}

char *gm_json_end(struct gm_json *json, size_t *bytes) {
    append(json, "\n", 2); /* with the end */
    char *text = json->text;
    if (json->failed) {
        free(text);
        text = NULL;
    } else if (bytes) {
        *bytes = json->used - 1;
    }
    *json = (struct gm_json){.failed = 1};
    return text;
}

/* Quotes, and characters that a terminal would take for a command; the RFC requires it only for
 * C0. */
static void append_character(struct gm_json *json, const char *text, size_t length,
                             unsigned value) {
    char escaped[8];
    if (value == '"' || value == '\\') {
        append(json, "\\", 1);
        append(json, text, 1);
    } else if (value < 0x20 || (value >= 0x7f && value < 0xa0)) {
        snprintf(escaped, sizeof escaped, "\\u%04x", value);
        append(json, escaped, 6);
    } else {
        append(json, text, length);
    }
}

static void append_string(struct gm_json *json, const char *text) {
    append(json, "\"", 1);
    while (*text) {
        unsigned value = 0;
        size_t length = gm_utf8_decode(text, &value);
        if (length > 0)
            append_character(json, text, length, value);
        else
            append_text(json, "\xef\xbf\xbd"); /* U+FFFD */
        text += length ? length : 1;
    }
    append(json, "\"", 1);
}

static void begin_value(struct gm_json *json, const char *key) {
    if (json->started)
        append(json, ",", 1);
    json->started = 1;
    if (!key)
        return;
    append_string(json, key);
    append(json, ":", 1);
}

void gm_json_open(struct gm_json *json, const char *key, char bracket) {
    begin_value(json, key);
    /* A line for each object of a list, for readers and for diff. */
    if (!key && bracket == '{' && json->used)
        append(json, "\n", 1);
    append(json, &bracket, 1);
    json->started = 0;
}

void gm_json_close(struct gm_json *json, char bracket) {
    append(json, &bracket, 1);
    json->started = 1;
}

void gm_json_string(struct gm_json *json, const char *key, const char *value) {
    begin_value(json, key);
    if (value)
        append_string(json, value);
    else
        append_text(json, "null");
}

void gm_json_number(struct gm_json *json, const char *key, uint64_t value) {
    char text[24];
    begin_value(json, key);
    snprintf(text, sizeof text, "%" PRIu64, value);
    append_text(json, text);
}

void gm_json_integer(struct gm_json *json, const char *key, int64_t value) {
    char text[24];
    begin_value(json, key);
    snprintf(text, sizeof text, "%" PRId64, value);
    append_text(json, text);
}

void gm_json_bool(struct gm_json *json, const char *key, int value) {
    begin_value(json, key);
    append_text(json, value ? "true" : "false");
}

void gm_json_null(struct gm_json *json, const char *key) {
    begin_value(json, key);
    append_text(json, "null");
}

void gm_json_address(struct gm_json *json, const char *key, uint64_t value) {
    char text[24];
    begin_value(json, key);
    snprintf(text, sizeof text, "\"0x%" PRIx64 "\"", value);
    append_text(json, text);
}
