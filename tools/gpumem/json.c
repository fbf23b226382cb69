#include "json.h"

#include "cli.h"
#include "terminal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static bool printed;

bool json_was_printed(void) {
    return printed;
}

void json_begin(struct json *json) {
    *json = (struct json){.first = true};
    json->out = open_memstream(&json->text, &json->size);
}

void json_discard(struct json *json) {
    if (json->out)
        fclose(json->out);
    free(json->text);
    *json = (struct json){0};
}

int json_print(struct json *json) {
    bool failed = !json->out || ferror(json->out) || fflush(json->out) != 0;
    printed = !failed;
    if (!failed)
        fwrite(json->text, 1, json->size, stdout);
    json_discard(json);
    return failed ? cli_error(CLI_FAILED, "out of memory for the JSON") : CLI_OK;
}

/* Quotes, and characters that a terminal would take for a command; RFC 8259 requires it only for
 * C0. */
static void put_character(FILE *out, const char *text, size_t length, unsigned value) {
    if (value == '"' || value == '\\')
        fprintf(out, "\\%c", (int)value);
    else if (value < 0x20 || (value >= 0x7f && value < 0xa0))
        fprintf(out, "\\u%04x", value);
    else
        fwrite(text, 1, length, out);
}

static void put_string(FILE *out, const char *text) {
    static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
    fputc('"', out);
    while (*text) {
        unsigned value = 0;
        size_t length = cli_utf8(text, &value);
        if (length > 0)
            put_character(out, text, length, value);
        else
            fputs(replacement, out);
        text += length ? length : 1;
    }
    fputc('"', out);
}

/* False: nothing can be written. */
static bool begin(struct json *json, const char *key) {
    if (!json->out)
        return false;
    if (!json->first)
        fputc(',', json->out);
    if (json->depth)
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    if (key) {
        put_string(json->out, key);
        fputs(": ", json->out);
    }
    json->first = false;
    return true;
}

void json_open(struct json *json, const char *key, char bracket) {
    if (!begin(json, key))
        return;
    fputc(bracket, json->out);
    json->depth++;
    json->first = true;
}

void json_close(struct json *json, char bracket) {
    if (!json->out)
        return;
    json->depth--;
    if (!json->first)
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    fputc(bracket, json->out);
    json->first = false;
    if (json->depth == 0)
        fputc('\n', json->out);
}

void json_string(struct json *json, const char *key, const char *value) {
    if (!begin(json, key))
        return;
    if (value)
        put_string(json->out, value);
    else
        fputs("null", json->out);
}

static bool is_utf8(const char *text) {
    unsigned value;
    size_t length;
    while (*text && (length = cli_utf8(text, &value)) > 0)
        text += length;
    return !*text;
}

void json_bytes(struct json *json, const char *key, const char *value) {
    if (is_utf8(value)) {
        json_string(json, key, NULL);
        return;
    }
    if (!begin(json, key))
        return;
    fputc('"', json->out);
    for (; *value; value++)
        fprintf(json->out, "%02x", (unsigned char)*value);
    fputc('"', json->out);
}

void json_integer(struct json *json, const char *key, int64_t value) {
    if (begin(json, key))
        fprintf(json->out, "%" PRId64, value);
}

void json_unsigned(struct json *json, const char *key, uint64_t value) {
    if (begin(json, key))
        fprintf(json->out, "%" PRIu64, value);
}

void json_number(struct json *json, const char *key, double value) {
    if (!begin(json, key))
        return;
    if (isfinite(value))
        fprintf(json->out, "%.6g", value);
    else
        fputs("null", json->out);
}

void json_bool(struct json *json, const char *key, bool value) {
    if (begin(json, key))
        fputs(value ? "true" : "false", json->out);
}
