#include "softgpu/device/profile.h"

#include "softgpu/core/config.h"
#include "softgpu/device/device.h"
#include "softgpu/device/ini.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct sg_profile *profile;
    /* What this text itself sets: setting it twice is an error, overriding `like` is not. */
    bool any, name, memory, pci, uuid, pool_descriptors, api_version;
    bool links[5], multicast, fabric, ptx_registers, groups;
    bool pairs[SG_MAX_DEVICES][SG_MAX_DEVICES][5];
    bool attributes[SG_ATTRIBUTE_LIMIT];
    bool limits[CU_LIMIT_MAX];
    char what[256]; /* the first mistake; ini.c reports its line */
};

static int wrong(struct reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int wrong(struct reader *reader, const char *format, ...) {
    if (reader->what[0])
        return 0;
    va_list args;
    va_start(args, format);
    vsnprintf(reader->what, sizeof reader->what, format, args);
    va_end(args);
    return 0;
}

/* Up to `most` hexadecimal digits. sscanf would also accept blanks, a sign and 0x. */
static bool parse_hex(const char **text, unsigned most, unsigned *number) {
    unsigned count = 0;
    *number = 0;
    for (; count < most && isxdigit((unsigned char)**text); count++, (*text)++) {
        char digit[2] = {**text, 0};
        *number = *number * 16 + (unsigned)strtoul(digit, NULL, 16);
    }
    return count > 0;
}

static bool skip(const char **text, char expected) {
    if (**text != expected)
        return false;
    (*text)++;
    return true;
}

bool sg_pci_parse(const char *text, struct sg_pci *pci) {
    struct sg_pci got = {0};
    unsigned colons = 0;
    for (const char *at = text; *at; at++)
        colons += *at == ':';
    if (colons == 2 && (!parse_hex(&text, 4, &got.domain) || !skip(&text, ':')))
        return false;
    if (!parse_hex(&text, 2, &got.bus) || !skip(&text, ':') || !parse_hex(&text, 2, &got.device))
        return false;
    if (*text && (!skip(&text, '.') || !parse_hex(&text, 1, &got.function)))
        return false;
    if (*text)
        return false;
    *pci = got;
    return true;
}

static bool parse_int(const char *text, long least, long greatest, long *value) {
    char *end;
    errno = 0;
    long got = strtol(text, &end, 0);
    if (end == text || *end || errno || got < least || got > greatest)
        return false;
    *value = got;
    return true;
}

/* Remembers that `key` was given; false, recording the mistake, if it was given before. */
static bool first_time(struct reader *reader, bool *given, const char *key) {
    if (*given)
        return wrong(reader, "%s is given twice", key);
    *given = true;
    return true;
}

/* The profile that this one starts from. Only the built-in one, so that no chain can form. */
static int read_like(struct reader *reader, const char *value) {
    if (strcmp(value, "h200") != 0)
        return wrong(reader, "like = %s: wanted h200", value);
    if (reader->any)
        return wrong(reader, "like must come before everything else");
    char message[256];
    if (!sg_profile_parse(reader->profile, "profile h200", sg_profile_builtin(), message,
                          sizeof message))
        return wrong(reader, "%s", message);
    return 1;
}

/* 1, the default, or 0: the driver has none. */
static int read_lack(struct reader *reader, const char *key, const char *value, bool *given,
                     bool *lacks) {
    long number;
    if (!first_time(reader, given, key))
        return 0;
    if (!parse_int(value, 0, 1, &number))
        return wrong(reader, "%s = %s: wanted 0 or 1", key, value);
    *lacks = number == 0;
    return 1;
}

/* UUIDs, or 0: the driver has none. */
static int read_uuids(struct reader *reader, const char *value) {
    char why[96];
    if (!first_time(reader, &reader->uuid, "uuid"))
        return 0;
    if (strcmp(value, "0") == 0) {
        reader->profile->no_uuid = true;
        return 1;
    }
    if (!sg_uuids_parse(value, &reader->profile->uuids, why, sizeof why))
        return wrong(reader, "uuid = %.48s: %s", value, why);
    return 1;
}

/* Programs decide by it what to request; it does not change which functions exist. */
static int read_api_version(struct reader *reader, const char *value) {
    long number;
    if (!first_time(reader, &reader->api_version, "api_version"))
        return 0;
    if (!parse_int(value, SG_OLDEST_DRIVER_VERSION, 99990, &number) || number % 10 != 0)
        return wrong(reader, "api_version = %s: wanted %d or more, 13030 for 13.3", value,
                     SG_OLDEST_DRIVER_VERSION);
    reader->profile->api_version = (int)number;
    return 1;
}

static int read_device(struct reader *reader, const char *key, const char *value) {
    struct sg_profile *profile = reader->profile;
    if (strcmp(key, "like") == 0)
        return read_like(reader, value);
    if (strcmp(key, "name") == 0) {
        if (!first_time(reader, &reader->name, key))
            return 0;
        if (!value[0] || strlen(value) >= sizeof profile->name)
            return wrong(reader, "name must have 1 to %zu characters", sizeof profile->name - 1);
        strcpy(profile->name, value);
        return 1;
    }
    if (strcmp(key, "memory") == 0) {
        if (!first_time(reader, &reader->memory, key))
            return 0;
        if (!sg_config_size(value, &profile->memory) || profile->memory < SG_PAGE)
            return wrong(reader, "memory = %s: wanted bytes, at least 2M, suffixes K M G T", value);
        return 1;
    }
    if (strcmp(key, "pci") == 0) {
        if (!first_time(reader, &reader->pci, key))
            return 0;
        if (!sg_pci_parse(value, &profile->pci) || profile->pci.device > 0x1f ||
            profile->pci.function > 7)
            return wrong(reader, "pci = %s: wanted domain:bus:device.function", value);
        if (profile->pci.bus > 0xff - SG_MAX_DEVICES)
            return wrong(reader, "pci = %s: later devices need bus numbers after this one", value);
        profile->has_pci = true;
        return 1;
    }
    if (strcmp(key, "uuid") == 0)
        return read_uuids(reader, value);
    if (strcmp(key, "api_version") == 0)
        return read_api_version(reader, value);
    if (strcmp(key, "pool_descriptors") == 0)
        return read_lack(reader, key, value, &reader->pool_descriptors,
                         &profile->no_pool_descriptors);
    return wrong(reader,
                 "[device] has no key %s: it has like, name, memory, pci, uuid, api_version, "
                 "pool_descriptors",
                 key);
}

enum link_key { PEER_ACCESS, RANK, ATOMICS, PARTIAL, ARRAYS, LINK_KEYS };
static const char *const link_keys[LINK_KEYS] = {
    "peer_access", "performance_rank", "native_atomics", "partial_atomics", "array_access"};

static enum link_key find_link_key(const char *key) {
    int which = 0;
    while (which < LINK_KEYS && strcmp(key, link_keys[which]) != 0)
        which++;
    return (enum link_key)which;
}

static void set_link(struct sg_links *links, enum link_key key, int number) {
    switch (key) {
    case PEER_ACCESS:
        links->peer_access = number != 0;
        break;
    case RANK:
        links->performance_rank = number;
        break;
    case ATOMICS:
        links->native_atomics = number != 0;
        break;
    case PARTIAL:
        links->partial_atomics = number != 0;
        break;
    case ARRAYS:
        links->array_access = number != 0;
        break;
    case LINK_KEYS:
        break;
    }
}

static int link_number(struct reader *reader, enum link_key which, const char *value, int *number) {
    long parsed;
    if (!parse_int(value, 0, which == RANK ? INT_MAX : 1, &parsed))
        return wrong(reader, "%s = %s: wanted %s", link_keys[which], value,
                     which == RANK ? "a number" : "0 or 1");
    *number = (int)parsed;
    return 1;
}

static int read_machine(struct reader *reader, const char *key, const char *value) {
    bool multicast = strcmp(key, "multicast") == 0;
    long number;
    if (!multicast && strcmp(key, "fabric") != 0)
        return wrong(reader, "[links] has no key %s", key);
    if (!first_time(reader, multicast ? &reader->multicast : &reader->fabric, key))
        return 0;
    if (!parse_int(value, 0, 1, &number))
        return wrong(reader, "%s = %s: wanted 0 or 1", key, value);
    *(multicast ? &reader->profile->multicast : &reader->profile->fabric) = number != 0;
    return 1;
}

static int read_links(struct reader *reader, const char *key, const char *value) {
    enum link_key which = find_link_key(key);
    int number = 0;
    if (which == LINK_KEYS)
        return read_machine(reader, key, value);
    if (!first_time(reader, &reader->links[which], key) ||
        !link_number(reader, which, value, &number))
        return 0;
    set_link(&reader->profile->links, which, number);
    return 1;
}

/* "0 1" of [links 0 1]. */
static bool parse_pair(const char *text, int *a, int *b) {
    *a = text[0] - '0';
    *b = text[0] && text[1] == ' ' ? text[2] - '0' : -1;
    bool digits = *a >= 0 && *b >= 0 && *a < SG_MAX_DEVICES && *b < SG_MAX_DEVICES;
    return digits && text[3] == '\0' && *a < *b;
}

static bool *has_of(struct sg_pair_links *pair, enum link_key which) {
    bool *const has[LINK_KEYS] = {&pair->has_peer_access, &pair->has_performance_rank,
                                  &pair->has_native_atomics, &pair->has_partial_atomics,
                                  &pair->has_array_access};
    return has[which];
}

static int read_pair(struct reader *reader, const char *pair, const char *key, const char *value) {
    enum link_key which = find_link_key(key);
    int a, b, number = 0;
    if (!parse_pair(pair, &a, &b))
        return wrong(reader,
                     "[links %s]: wanted two device numbers from 0 to %d, the smaller first", pair,
                     SG_MAX_DEVICES - 1);
    if (which == LINK_KEYS)
        return wrong(reader, "[links %s] has no key %s", pair, key);
    if (!first_time(reader, &reader->pairs[a][b][which], key) ||
        !link_number(reader, which, value, &number))
        return 0;
    struct sg_pair_links *links = &reader->profile->pairs[a][b];
    set_link(&links->links, which, number);
    *has_of(links, which) = true;
    return 1;
}

struct sg_links sg_profile_links(const struct sg_profile *profile, int a, int b) {
    struct sg_links links = profile->links;
    const struct sg_pair_links *pair = a < b ? &profile->pairs[a][b] : &profile->pairs[b][a];
    if (pair->has_peer_access)
        links.peer_access = pair->links.peer_access;
    if (pair->has_performance_rank)
        links.performance_rank = pair->links.performance_rank;
    if (pair->has_native_atomics)
        links.native_atomics = pair->links.native_atomics;
    if (pair->has_partial_atomics)
        links.partial_atomics = pair->links.partial_atomics;
    if (pair->has_array_access)
        links.array_access = pair->links.array_access;
    return links;
}

/* "16 16 18" */
static int read_groups(struct reader *reader, const char *value) {
    struct sg_kernels *kernels = &reader->profile->kernels;
    const char *at = value;
    if (!first_time(reader, &reader->groups, "cluster_groups"))
        return 0;
    kernels->group_count = 0;
    while (*at) {
        char *end;
        unsigned long number = strtoul(at, &end, 10);
        bool good = end != at && (*end == ' ' || !*end) && number > 0 && number <= 1024;
        if (!good || kernels->group_count == sizeof kernels->groups / sizeof kernels->groups[0])
            return wrong(reader, "cluster_groups = %s: wanted at most 32 numbers from 1 to 1024",
                         value);
        kernels->groups[kernels->group_count++] = (unsigned)number;
        at = end + (*end == ' ');
    }
    return 1;
}

static int read_kernels(struct reader *reader, const char *key, const char *value) {
    long number;
    if (strcmp(key, "cluster_groups") == 0)
        return read_groups(reader, value);
    if (strcmp(key, "ptx_registers") != 0)
        return wrong(reader, "[kernels] has no key %s: it has ptx_registers, cluster_groups", key);
    if (!first_time(reader, &reader->ptx_registers, key))
        return 0;
    if (!parse_int(value, 1, 255, &number))
        return wrong(reader, "ptx_registers = %s: wanted 1 to 255", value);
    reader->profile->kernels.ptx_registers = (unsigned)number;
    return 1;
}

static int read_attribute(struct reader *reader, const char *key, const char *value) {
    struct sg_profile *profile = reader->profile;
    int attribute = sg_attribute_find(key);
    if (attribute < 0)
        return wrong(reader, "there is no CU_DEVICE_ATTRIBUTE_%s", key);
    if (!first_time(reader, &reader->attributes[attribute], key))
        return 0;
    long number;
    if (!parse_int(value, INT_MIN, INT_MAX, &number))
        return wrong(reader, "%s = %s: wanted a 32-bit number", key, value);
    profile->has_attribute[attribute] = true;
    profile->attributes[attribute] = (int)number;
    return 1;
}

static int limit_find(const char *key) {
    static const char *const names[CU_LIMIT_MAX] = {
        [CU_LIMIT_STACK_SIZE] = "STACK_SIZE",
        [CU_LIMIT_PRINTF_FIFO_SIZE] = "PRINTF_FIFO_SIZE",
        [CU_LIMIT_MALLOC_HEAP_SIZE] = "MALLOC_HEAP_SIZE",
        [CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = "DEV_RUNTIME_SYNC_DEPTH",
        [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = "DEV_RUNTIME_PENDING_LAUNCH_COUNT",
        [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = "MAX_L2_FETCH_GRANULARITY",
        [CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = "PERSISTING_L2_CACHE_SIZE",
        [CU_LIMIT_SHMEM_SIZE] = "SHMEM_SIZE",
        [CU_LIMIT_CIG_ENABLED] = "CIG_ENABLED",
        [CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED] = "CIG_SHMEM_FALLBACK_ENABLED",
    };
    for (int i = 0; i < CU_LIMIT_MAX; i++)
        if (strcmp(names[i], key) == 0)
            return i;
    return -1;
}

static int read_limit(struct reader *reader, const char *key, const char *value) {
    struct sg_context_defaults *context = &reader->profile->context;
    int limit = limit_find(key);
    if (limit < 0)
        return wrong(reader, "there is no CU_LIMIT_%s", key);
    if (!first_time(reader, &reader->limits[limit], key))
        return 0;
    uint64_t bytes;
    if (!sg_config_size(value, &bytes))
        return wrong(reader, "%s = %s: wanted a number, suffixes K M G T", key, value);
    context->has_limit[limit] = true;
    context->limits[limit] = bytes;
    return 1;
}

/* For each line with content; after the first 0 no more are read. */
static int read_line(void *user, const char *section, const char *key, const char *value) {
    struct reader *reader = user;
    static const struct {
        const char *section;
        int (*read)(struct reader *, const char *, const char *);
    } sections[] = {{"device", read_device},
                    {"links", read_links},
                    {"kernels", read_kernels},
                    {"attributes", read_attribute},
                    {"limits", read_limit}};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        if (strcmp(section, sections[i].section) == 0) {
            int read = sections[i].read(reader, key, value);
            reader->any = true;
            return read;
        }
    if (strncmp(section, "links ", 6) == 0) {
        reader->any = true;
        return read_pair(reader, section + 6, key, value);
    }
    if (!section[0])
        return wrong(reader, "%s comes before the first [section]", key);
    return wrong(reader, "there is no section [%s]", section);
}

/* What is missing from the profile as a whole. */
static const char *incomplete(const struct sg_profile *profile) {
    if (!profile->name[0])
        return "[device] name is missing";
    if (!profile->memory)
        return "[device] memory is missing";
    if (!profile->has_pci)
        return "[device] pci is missing";
    if (!profile->has_attribute[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR])
        return "[attributes] COMPUTE_CAPABILITY_MAJOR is missing";
    return NULL;
}

bool sg_profile_parse(struct sg_profile *profile, const char *where, const char *text,
                      char *message, size_t message_size) {
    memset(profile, 0, sizeof *profile);
    struct reader reader = {.profile = profile};
    int line = sg_ini_read(text, read_line, &reader);
    if (line < 0) {
        snprintf(message, message_size, "%s: out of memory", where);
        return false;
    }
    if (line > 0) {
        snprintf(message, message_size, "%s:%d: %s", where, line,
                 reader.what[0] ? reader.what : "wanted [section] or key = value");
        return false;
    }
    const char *lacks = incomplete(profile);
    if (lacks)
        snprintf(message, message_size, "%s: %s", where, lacks);
    return !lacks;
}
