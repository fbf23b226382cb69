/*
 * Writes JSON (RFC 8259) into memory, with commas and quoting. The output is always valid, whatever
 * the strings contain; when memory runs out nothing more is written, and `failed` is set.
 */
#ifndef GM_BASE_JSON_H
#define GM_BASE_JSON_H

#include <stddef.h>
#include <stdint.h>

struct gm_json {
    char *text; /* 0-terminated when closed; the user of the writer frees it */
    size_t used, room;
    int failed;
    int started; /* there is an earlier element at this depth */
};

void gm_json_begin(struct gm_json *json);
/* The text, which the caller frees; NULL without memory. */
char *gm_json_end(struct gm_json *json, size_t *bytes);

/* `key` is NULL inside arrays and at the top. */
void gm_json_open(struct gm_json *json, const char *key, char bracket); /* '{' or '[' */
void gm_json_close(struct gm_json *json, char bracket);                 /* '}' or ']' */
/* NULL writes null. Invalid UTF-8 becomes U+FFFD. */
void gm_json_string(struct gm_json *json, const char *key, const char *value);
void gm_json_number(struct gm_json *json, const char *key, uint64_t value);
void gm_json_integer(struct gm_json *json, const char *key, int64_t value);
void gm_json_bool(struct gm_json *json, const char *key, int value);
void gm_json_null(struct gm_json *json, const char *key);
/* Addresses and handles as "0x7f0012340000": numbers above 2^53 do not survive every reader. */
void gm_json_address(struct gm_json *json, const char *key, uint64_t value);

#endif
