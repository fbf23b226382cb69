/* Writes JSON: commas, quoting and indentation, nothing else. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    int depth;
    bool first; /* nothing written yet at this depth */
};

struct json json_to(FILE *out);
/* `key` is NULL inside arrays and at the top. */
void json_open(struct json *json, const char *key, char bracket);        /* '{' or '[' */
void json_close(struct json *json, char bracket);                        /* '}' or ']' */
void json_string(struct json *json, const char *key, const char *value); /* NULL writes null */
void json_integer(struct json *json, const char *key, int64_t value);
void json_unsigned(struct json *json, const char *key, uint64_t value);
void json_number(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);

#endif
