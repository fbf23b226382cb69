/* CUDA_VISIBLE_DEVICES, by the rules that NVIDIA documents for it. */
#include "softgpu/device/profile.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void format_uuid(const CUuuid *uuid, char text[41]) {
    char *at = text + sprintf(text, "GPU-");
    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        at += sprintf(at, "%s%02x", dash ? "-" : "", (unsigned)(unsigned char)uuid->bytes[i]);
    }
}

/* A UUID may be shortened as long as it names one device. */
static int find_uuid(const char *entry, int count, const CUuuid *uuids) {
    int found = -1;
    for (int i = 0; i < count; i++) {
        char text[41];
        format_uuid(&uuids[i], text);
        if (strncasecmp(entry, text, strlen(entry)) != 0)
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

static int find_entry(const char *entry, int count, const CUuuid *uuids) {
    if (strncasecmp(entry, "GPU-", 4) == 0)
        return find_uuid(entry, count, uuids);
    if (!isdigit((unsigned char)entry[0]))
        return -1;
    char *end;
    errno = 0;
    unsigned long number = strtoul(entry, &end, 10);
    return *end || errno || number >= (unsigned long)count ? -1 : (int)number;
}

/* The next entry without the blanks around it; true when it fits and one was there. */
static bool next_entry(const char **list, char *entry, size_t size) {
    if (!*list)
        return false;
    const char *start = *list + strspn(*list, " \t");
    size_t length = strcspn(start, ",");
    *list = start[length] ? start + length + 1 : NULL;
    while (length && strchr(" \t", start[length - 1]))
        length--;
    if (length == 0 || length >= size)
        return false;
    memcpy(entry, start, length);
    entry[length] = 0;
    return true;
}

int sg_visible_devices(const char *list, int count, const CUuuid *uuids, int *order) {
    int visible = 0;
    if (!list) {
        for (; visible < count; visible++)
            order[visible] = visible;
        return visible;
    }
    char entry[64];
    while (next_entry(&list, entry, sizeof entry)) {
        int found = find_entry(entry, count, uuids);
        for (int i = 0; i < visible; i++)
            if (order[i] == found)
                found = -1;
        if (found < 0)
            break;
        order[visible++] = found;
    }
    return visible;
}
