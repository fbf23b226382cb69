/*
 * Reads JSON for tests: whether a text is valid by RFC 8259, and what is at a path. Header only,
 * because each folder of tests links other things.
 */
#ifndef TESTS_JSON_READER_H
#define TESTS_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Replaces strspn and strncmp, for which AddressSanitizer reads all of the text that follows. */
static inline const char *json_skip(const char *at, const char *characters) {
    while (*at && strchr(characters, *at))
        at++;
    return at;
}

static inline bool json_begins(const char *at, const char *word, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (at[i] != word[i])
            return false;
    return true;
}

static inline const char *json_space(const char *at) {
    return json_skip(at, " \t\r\n");
}

static inline size_t json_digits(const char *at) {
    return (size_t)(json_skip(at, "0123456789") - at);
}

/* Each returns what follows the value, or NULL if none begins at `at`. */
static inline const char *json_value(const char *at, unsigned depth);

static inline bool json_is_hex(char c) {
    return c && strchr("0123456789abcdefABCDEF", c);
}

static inline const char *json_escape(const char *at) {
    if (*at && strchr("\"\\/bfnrt", *at))
        return at + 1;
    if (*at != 'u')
        return NULL;
    for (unsigned i = 1; i <= 4; i++)
        if (!json_is_hex(at[i]))
            return NULL;
    return at + 5;
}

/* The length of a UTF-8 character; 0 for overlong forms and surrogates. */
static inline size_t json_utf8(const unsigned char *at) {
    size_t length = at[0] < 0x80   ? 1
                    : at[0] < 0xc2 ? 0
                    : at[0] < 0xe0 ? 2
                    : at[0] < 0xf0 ? 3
                    : at[0] < 0xf5 ? 4
                                   : 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] >= 0xa0) ||
        (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] >= 0x90))
        return 0;
    return length;
}

static inline const char *json_text(const char *at) {
    if (*at++ != '"')
        return NULL;
    while (at && *at != '"') {
        size_t length = json_utf8((const unsigned char *)at);
        if ((unsigned char)*at < 0x20 || !length)
            return NULL;
        at = *at == '\\' ? json_escape(at + 1) : at + length;
    }
    return at ? at + 1 : NULL;
}

static inline const char *json_number(const char *at) {
    at += *at == '-';
    size_t digits = json_digits(at);
    if (!digits || (*at == '0' && digits > 1))
        return NULL;
    at += digits;
    if (*at == '.') {
        digits = json_digits(++at);
        if (!digits)
            return NULL;
        at += digits;
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '+' || *at == '-';
        digits = json_digits(at);
        if (!digits)
            return NULL;
        at += digits;
    }
    return at;
}

static inline const char *json_list(const char *at, char end, unsigned depth) {
    at = json_space(at);
    if (*at == end)
        return at + 1;
    for (;;) {
        if (end == '}') {
            at = json_text(json_space(at));
            if (!at || *(at = json_space(at)) != ':')
                return NULL;
            at++;
        }
        at = json_value(at, depth);
        if (!at)
            return NULL;
        at = json_space(at);
        if (*at == end)
            return at + 1;
        if (*at++ != ',')
            return NULL;
    }
}

static inline const char *json_value(const char *at, unsigned depth) {
    at = json_space(at);
    if (*at == '{' || *at == '[')
        return depth ? json_list(at + 1, *at == '{' ? '}' : ']', depth - 1) : NULL;
    if (*at == '"')
        return json_text(at);
    static const char *const words[] = {"true", "false", "null"};
    for (unsigned i = 0; i < 3; i++)
        if (json_begins(at, words[i], strlen(words[i])))
            return at + strlen(words[i]);
    return json_number(at);
}

static inline bool json_is_valid(const char *text) {
    const char *end = json_value(text, 64);
    return end && !*json_space(end);
}

/* The value of a member, or an element by its number; NULL if there is none. The text must be
 * valid. */
static inline const char *json_get(const char *object, const char *name, size_t length) {
    const char *at = json_space(object);
    char bracket = *at;
    if (bracket != '{' && bracket != '[')
        return NULL;
    size_t wanted = bracket == '[' ? (size_t)strtoull(name, NULL, 10) : 0;
    at = json_space(at + 1);
    for (size_t i = 0; *at != '}' && *at != ']'; i++) {
        const char *key = at;
        if (bracket == '{')
            at = json_space(json_space(json_text(at)) + 1);
        if (bracket == '{' ? json_begins(key + 1, name, length) && key[length + 1] == '"'
                           : i == wanted)
            return at;
        at = json_space(json_value(at, 64));
        at = json_space(at + (*at == ','));
    }
    return NULL;
}

/* Looks up a path such as "devices.0.name". */
static inline const char *json_find(const char *text, const char *path) {
    while (text && *path) {
        size_t length = strcspn(path, ".");
        text = json_get(text, path, length);
        path += length + (path[length] == '.');
    }
    return text ? json_space(text) : NULL;
}

static inline size_t json_count(const char *list) {
    size_t count = 0;
    char index[24];
    if (!list)
        return 0;
    for (;; count++) {
        snprintf(index, sizeof index, "%zu", count);
        if (!json_get(list, index, strlen(index)))
            return count;
    }
}

/* Whether the value is this text (without escapes), or this number. */
static inline bool json_is(const char *value, const char *text) {
    if (!value)
        return false;
    value += *value == '"';
    size_t length = strlen(text);
    return json_begins(value, text, length) && strchr("\",]} \n", value[length]);
}

static inline unsigned long long json_unsigned(const char *value) {
    if (!value)
        return ~0ull;
    return *value == '"' ? strtoull(value + 1, NULL, 16) : strtoull(value, NULL, 10);
}

#endif
