#include "softgpu/core/uuid.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PREFIX      "GPU-"
#define DIGITS      32
#define WITH_DASHES 36

static bool same(const CUuuid *a, const CUuuid *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

static int digit_of(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = (char)tolower((unsigned char)c);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool is_dash_place(size_t at) {
    return at == 8 || at == 13 || at == 18 || at == 23;
}

/* Digits with all four dashes in place, or with none. */
static bool parse_one(const char *text, size_t length, CUuuid *uuid) {
    if (length > strlen(PREFIX) && strncasecmp(text, PREFIX, strlen(PREFIX)) == 0) {
        text += strlen(PREFIX);
        length -= strlen(PREFIX);
    }
    if (length != DIGITS && length != WITH_DASHES)
        return false;
    unsigned char bytes[sizeof uuid->bytes] = {0};
    size_t count = 0;
    for (size_t i = 0; i < length; i++) {
        if (length == WITH_DASHES && is_dash_place(i)) {
            if (text[i] != '-')
                return false;
            continue;
        }
        int digit = digit_of(text[i]);
        if (digit < 0)
            return false;
        bytes[count / 2] = (unsigned char)(bytes[count / 2] << 4 | digit);
        count++;
    }
    memcpy(uuid->bytes, bytes, sizeof bytes);
    return true;
}

/* What is wrong with entry `at` of the list, apart from its spelling, or NULL. */
static const char *objection(const struct sg_uuids *uuids, int at) {
    static const CUuuid zeros;
    if (same(&uuids->of[at], &zeros))
        return "is all zeros";
    for (int i = 0; i < at; i++)
        if (same(&uuids->of[at], &uuids->of[i]))
            return "was given before";
    return NULL;
}

static bool wrong(char *why, size_t size, int number, const char *what) {
    snprintf(why, size, "UUID %d of the list %s", number, what);
    return false;
}

bool sg_uuids_parse(const char *text, struct sg_uuids *uuids, char *why, size_t why_size) {
    uuids->count = 0;
    for (const char *at = text;; at++) {
        at += strspn(at, " \t");
        size_t length = strcspn(at, ","), digits = length;
        while (digits && strchr(" \t", at[digits - 1]))
            digits--;
        int number = uuids->count + 1;
        if (number > SG_MAX_DEVICES)
            return wrong(why, why_size, number, "is one more than there can be devices");
        if (!parse_one(at, digits, &uuids->of[uuids->count]))
            return wrong(why, why_size, number, digits ? "is no UUID" : "is empty");
        const char *what = objection(uuids, uuids->count);
        if (what)
            return wrong(why, why_size, number, what);
        uuids->count++;
        at += length;
        if (!*at)
            return true;
    }
}

CUuuid sg_uuid_made_up(int number) {
    static const unsigned char bytes[16] = {0x73, 0x6f, 0x66, 0x74, 0x67, 0x70, 0x80, 0x75, 0x80};
    CUuuid uuid;
    memcpy(uuid.bytes, bytes, sizeof bytes);
    uuid.bytes[15] = (char)number;
    return uuid;
}

bool sg_uuids_complete(const struct sg_uuids *set, int count, CUuuid *uuids, char *why,
                       size_t why_size) {
    for (int i = 0; i < count; i++)
        uuids[i] = i < set->count ? set->of[i] : sg_uuid_made_up(i);
    for (int i = set->count; i < count; i++)
        for (int j = 0; j < set->count; j++)
            if (same(&uuids[i], &uuids[j])) {
                snprintf(why, why_size,
                         "UUID %d of the list is the made-up one of device %d: set that too", j + 1,
                         i);
                return false;
            }
    return true;
}
