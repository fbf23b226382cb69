/*
 * How much memory the host can give: the machine, and the memory control groups (cgroups of both
 * versions, at each level up) that this process is in. Memory beyond a group's limit is not
 * refused: the kernel kills instead, so whoever is about to take much has to ask before.
 */
#ifndef GM_BASE_HOST_MEMORY_H
#define GM_BASE_HOST_MEMORY_H

#include <stdint.h>

#define GM_HOST_MEMORY_UNKNOWN UINT64_MAX

/* Bytes; UNKNOWN where nothing is said or nothing limits. */
struct gm_host_memory {
    uint64_t machine;      /* that there is */
    uint64_t available;    /* of it, without swapping */
    uint64_t groups;       /* the smallest limit of any level */
    uint64_t groups_left;  /* the smallest rest of any level: its limit less its usage, page cache
                              that can be dropped not counted as usage */
    uint64_t groups_level; /* the limit of the level that has this rest */
};

/* Reads some small files of /proc and /sys, which takes tens of microseconds. Never fails: a file
 * that is absent or cannot be read says nothing. Thread-safe. */
void gm_host_memory_read(struct gm_host_memory *memory);

/* The smaller of `available` and `groups_left`. */
uint64_t gm_host_memory_left(const struct gm_host_memory *memory);

/* For tests alone: the folder that /proc and /sys are looked for in; "" is the machine itself. The
 * text is the caller's and must stay. Not thread-safe. */
void gm_host_memory_set_root(const char *root);

#endif
