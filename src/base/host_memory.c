#include "base/host_memory.h"

#include "base/descriptor.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE GM_HOST_MEMORY_UNKNOWN

static const char *root = "";

/* The two versions' names for the same things. */
struct version {
    const char *type; /* of the file system */
    const char *limit, *usage;
    const char *const *droppable; /* lines of memory.stat, for the group and all below */
    const char *const *places;    /* mount points to try if mountinfo has none; NULL ends */
};

static const char *const droppable_1[] = {"total_inactive_file", "total_active_file"};
static const char *const droppable_2[] = {"inactive_file", "active_file"};
static const char *const places_1[] = {"/sys/fs/cgroup/memory", NULL};
static const char *const places_2[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", NULL};

static const struct version versions[] = {
    {"cgroup", "memory.limit_in_bytes", "memory.usage_in_bytes", droppable_1, places_1},
    {"cgroup2", "memory.max", "memory.current", droppable_2, places_2},
};
#define VERSIONS (sizeof versions / sizeof versions[0])

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static FILE *open_below(const char *folder, const char *name) {
    char path[2 * PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return NULL;
    return gm_fd_stream(path, "r");
}

/* The number at the start of a file; NONE for "max", and when there is no such file. */
static uint64_t read_number(const char *folder, const char *name) {
    FILE *file = open_below(folder, name);
    if (!file)
        return NONE;
    unsigned long long value;
    int found = fscanf(file, "%llu", &value);
    fclose(file);
    return found == 1 ? value : NONE;
}

/* Finds "name value" or "name: value kB" in lines that each begin with a name. */
static int parse_line(const char *line, const char *name, uint64_t *value) {
    size_t length = strlen(name);
    unsigned long long number;
    if (strncmp(line, name, length) != 0 || (line[length] != ' ' && line[length] != ':'))
        return 0;
    if (sscanf(line + length + 1, "%llu", &number) != 1)
        return 0;
    *value = number;
    return 1;
}

/* ---- The machine ----------------------------------------------------------------------------- */

static void read_machine(struct gm_host_memory *memory) {
    FILE *file = open_below("/proc", "meminfo");
    if (!file)
        return;
    char line[256];
    uint64_t kib;
    while (fgets(line, sizeof line, file)) {
        if (parse_line(line, "MemTotal", &kib))
            memory->machine = kib << 10;
        else if (parse_line(line, "MemAvailable", &kib))
            memory->available = kib << 10;
    }
    fclose(file);
}

/* ---- One level of a hierarchy ---------------------------------------------------------------- */

struct level {
    uint64_t limit, usage, droppable;
};

static void read_stat(const char *folder, const struct version *version, struct level *level) {
    FILE *file = open_below(folder, "memory.stat");
    if (!file)
        return;
    char line[256];
    uint64_t value;
    while (fgets(line, sizeof line, file)) {
        if (parse_line(line, version->droppable[0], &value) ||
            parse_line(line, version->droppable[1], &value))
            level->droppable += value;
        /* For version 1, and for levels that a container does not show. */
        else if (parse_line(line, "hierarchical_memory_limit", &value))
            level->limit = least(level->limit, value);
    }
    fclose(file);
}

static void read_level(const char *folder, const struct version *version,
                       struct gm_host_memory *memory) {
    struct level level = {.limit = read_number(folder, version->limit)};
    read_stat(folder, version, &level);
    if (level.limit == NONE)
        return;
    uint64_t usage = read_number(folder, version->usage);
    if (usage == NONE)
        usage = 0;
    usage -= least(usage, level.droppable);
    uint64_t left = level.limit - least(level.limit, usage);
    memory->groups = least(memory->groups, level.limit);
    if (left < memory->groups_left) {
        memory->groups_left = left;
        memory->groups_level = level.limit;
    }
}

/* ---- All levels of a mount ------------------------------------------------------------------- */

static int is_outside(const char *group) {
    const char *at = strstr(group, "/..");
    return at && (at[3] == '/' || at[3] == 0);
}

/*
 * The group's path below the mount, which may show only a part of the hierarchy, from `top` on. A
 * container may see the host's path for its group, of which only the end is mounted, or only the
 * top: then missing levels are skipped, and the top is examined.
 */
static const char *below(const char *group, const char *top) {
    size_t length = strlen(top);
    if (strcmp(top, "/") != 0 && strncmp(group, top, length) == 0 &&
        (group[length] == '/' || group[length] == 0))
        group += length;
    return is_outside(group) ? "" : group;
}

static void read_mount(const char *place, const char *top, const char *group,
                       const struct version *version, struct gm_host_memory *memory) {
    char folder[2 * PATH_MAX];
    int length = snprintf(folder, sizeof folder, "%s%s", place, below(group, top));
    if (length < 0 || (size_t)length >= sizeof folder)
        return;
    size_t shortest = strlen(place);
    for (;;) {
        read_level(folder, version, memory);
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < shortest)
            return;
        *slash = 0;
    }
}

/* ---- Finding groups and mounts --------------------------------------------------------------- */

static int has_word(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == 0))
            return 1;
    return 0;
}

/* "4:memory:/group" is version 1, "0::/group" version 2; both may occur. NULL: not in one. */
static void find_groups(char *groups[VERSIONS]) {
    FILE *file = open_below("/proc/self", "cgroup");
    if (!file)
        return;
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) > 0) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        controllers++;
        size_t which = controllers[0] ? 0 : 1;
        if ((which == 1 || has_word(controllers, "memory")) && !groups[which])
            groups[which] = strdup(group);
    }
    free(line);
    fclose(file);
}

/* In place: mountinfo writes a space as \040. */
static void unescape(char *text) {
    char *to = text;
    for (const char *at = text; *at; at++) {
        if (at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] && at[3]) {
            *to++ = (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + (at[3] - '0'));
            at += 3;
        } else {
            *to++ = *at;
        }
    }
    *to = 0;
}

struct mount {
    char *top, *place, *type, *options;
};

/* "31 23 0:28 /top /place rw,relatime shared:1 - type source options" */
static int parse_mount(char *line, struct mount *mount) {
    char *after = strstr(line, " - "), *rest = line, *word;
    if (!after)
        return 0;
    *after = 0;
    char **into[] = {NULL, NULL, NULL, &mount->top, &mount->place};
    for (size_t i = 0; i < sizeof into / sizeof into[0]; i++) {
        word = strsep(&rest, " ");
        if (!word)
            return 0;
        if (into[i])
            *into[i] = word;
    }
    rest = after + 3;
    mount->type = strsep(&rest, " ");
    word = strsep(&rest, " ");
    mount->options = strsep(&rest, " \n");
    if (!mount->type || !word || !mount->options)
        return 0;
    unescape(mount->top);
    unescape(mount->place);
    return 1;
}

static int find_version(const struct mount *mount) {
    if (strcmp(mount->type, "cgroup2") == 0)
        return 1;
    return strcmp(mount->type, "cgroup") == 0 && has_word(mount->options, "memory") ? 0 : -1;
}

/* Returns the versions found mounted, as bits. */
static unsigned read_mounts(char *const groups[VERSIONS], struct gm_host_memory *memory) {
    FILE *file = open_below("/proc/self", "mountinfo");
    if (!file)
        return 0;
    unsigned found = 0;
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) > 0) {
        struct mount mount = {0};
        int which = parse_mount(line, &mount) ? find_version(&mount) : -1;
        if (which < 0)
            continue;
        found |= 1u << which;
        if (groups[which])
            read_mount(mount.place, mount.top, groups[which], &versions[which], memory);
    }
    free(line);
    fclose(file);
    return found;
}

static void read_groups(struct gm_host_memory *memory) {
    char *groups[VERSIONS] = {NULL};
    find_groups(groups);
    unsigned found = read_mounts(groups, memory);
    for (size_t i = 0; i < VERSIONS; i++) {
        for (const char *const *place = versions[i].places; *place; place++)
            if (groups[i] && !(found & 1u << i))
                read_mount(*place, "/", groups[i], &versions[i], memory);
        free(groups[i]);
    }
}

void gm_host_memory_read(struct gm_host_memory *memory) {
    *memory = (struct gm_host_memory){NONE, NONE, NONE, NONE, NONE};
    read_machine(memory);
    read_groups(memory);
}

/* Page tables, stacks and what files are read ahead take memory, too, after a group has been asked;
 * and who goes beyond its limit is killed. */
uint64_t gm_host_memory_groups_give(const struct gm_host_memory *memory) {
    if (memory->groups_left == NONE)
        return NONE;
    uint64_t kept = least(memory->groups_level / 16, UINT64_C(32) << 20);
    return memory->groups_left - least(memory->groups_left, kept);
}

uint64_t gm_host_memory_left(const struct gm_host_memory *memory) {
    return least(memory->available, gm_host_memory_groups_give(memory));
}

void gm_host_memory_set_root(const char *folder) {
    root = folder;
}
