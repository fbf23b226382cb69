#include "json.h"

#include <inttypes.h>
#include <math.h>

struct json json_to(FILE *out) {
    return (struct json){.out = out, .first = true};
}

static void put_string(FILE *out, const char *text) {
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(out, "\\u%04x", *c);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}

static void begin(struct json *json, const char *key) {
    if (!json->first)
        fputc(',', json->out);
    if (json->depth)
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    if (key) {
        put_string(json->out, key);
        fputs(": ", json->out);
    }
    json->first = false;
}

void json_open(struct json *json, const char *key, char bracket) {
    begin(json, key);
    fputc(bracket, json->out);
    json->depth++;
    json->first = true;
}

void json_close(struct json *json, char bracket) {
    json->depth--;
    if (!json->first)
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    fputc(bracket, json->out);
    json->first = false;
    if (json->depth == 0)
        fputc('\n', json->out);
}

void json_string(struct json *json, const char *key, const char *value) {
    begin(json, key);
    if (value)
        put_string(json->out, value);
    else
        fputs("null", json->out);
}

void json_integer(struct json *json, const char *key, int64_t value) {
    begin(json, key);
    fprintf(json->out, "%" PRId64, value);
}

void json_unsigned(struct json *json, const char *key, uint64_t value) {
    begin(json, key);
    fprintf(json->out, "%" PRIu64, value);
}

void json_number(struct json *json, const char *key, double value) {
    begin(json, key);
    if (isfinite(value))
        fprintf(json->out, "%.6g", value);
    else
        fputs("null", json->out);
}

void json_bool(struct json *json, const char *key, bool value) {
    begin(json, key);
    fputs(value ? "true" : "false", json->out);
}
