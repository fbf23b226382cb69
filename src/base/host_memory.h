/*
 * How much memory the host can provide: the machine, and the memory control groups (cgroups of both
 * versions, at each level up) of this process. Memory beyond a group's limit is not refused: the
 * kernel kills instead, so check before allocating much.
 */
#ifndef GM_BASE_HOST_MEMORY_H
#define GM_BASE_HOST_MEMORY_H

#include <stdint.h>

#define GM_HOST_MEMORY_UNKNOWN UINT64_MAX

/* Bytes; UNKNOWN if not reported or not limited. */
struct gm_host_memory {
    uint64_t machine;      /* total */
    uint64_t available;    /* without swapping */
    uint64_t groups;       /* the smallest limit of any level */
    uint64_t groups_left;  /* the least left at any level: its limit minus its usage, not counting
                              page cache that can be dropped */
    uint64_t groups_level; /* the limit of the level that has the least left */
};

/* Reads some small files of /proc and /sys, which takes tens of microseconds. Never fails: a file
 * that is absent or unreadable is treated as unknown. Thread-safe. */
void gm_host_memory_read(struct gm_host_memory *memory);

/* What may be taken of `groups_left`: a sixteenth of the limit, at most 32 MiB, is kept for what
 * the process needs beside it. UNKNOWN without a limit. */
uint64_t gm_host_memory_groups_give(const struct gm_host_memory *memory);

/* The smaller of `available` and what the groups can give. */
uint64_t gm_host_memory_left(const struct gm_host_memory *memory);

/* Only for tests: the folder in which /proc and /sys are; "" is the machine itself. The text
 * belongs to the caller and must outlive its use. Not thread-safe. */
void gm_host_memory_set_root(const char *root);

#endif
