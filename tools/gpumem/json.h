/* Writes JSON with commas, quoting and indentation. The output is collected and printed at once, so
 * that a failure does not leave half of it. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out; /* NULL when out of memory: nothing is written then */
    char *text;
    size_t size;
    int depth;
    bool first; /* nothing written yet at this depth */
};

void json_begin(struct json *json);
/* Prints to standard output. Returns CLI_OK, or an exit status after reporting why. */
int json_print(struct json *json);
/* Whether json_print was called. */
bool json_was_printed(void);
/* Frees it without printing. */
void json_discard(struct json *json);

/* `key` is NULL inside arrays and at the top. */
void json_open(struct json *json, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *json, char bracket);                 /* '}' or ']' */
/* NULL writes null. Invalid UTF-8 becomes U+FFFD. */
void json_string(struct json *json, const char *key, const char *value);
/* The bytes of a text that json_string cannot represent, in hexadecimal; for any other text
 * null. */
void json_bytes(struct json *json, const char *key, const char *value);
void json_integer(struct json *json, const char *key, int64_t value);
void json_unsigned(struct json *json, const char *key, uint64_t value);
void json_number(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);

#endif
