/*
 * What kernels did, for SOFTGPU_PROFILE_KERNELS: counted by the engine (engine/count.h), added up
 * here by kernel, and reported at the end of the process or on request of the driver's control. A
 * kernel is identified by its name and text, so one that is loaded again is the same. Everything
 * here requires the lock, except where it says otherwise.
 */
#ifndef SG_LAUNCH_KERNEL_PROFILE_H
#define SG_LAUNCH_KERNEL_PROFILE_H

#include "softgpu/engine/count.h"
#include "softgpu/module/loading.h"

#include <stdio.h>

/* Whether kernels are counted. Without the lock. */
bool sg_profile_wanted(void);

/* The place of an instruction in the kernel's text and source. */
struct sg_profiled_place {
    uint32_t line;        /* of the PTX */
    uint32_t file;        /* index in `files` + 1; 0: the text names no source */
    uint32_t source_line; /* in that file */
};

struct sg_kernel_profile {
    struct sg_kernel_profile *next;
    char *name;
    struct sg_loaded *loaded; /* referenced: its text */
    struct sg_profiled_place *places;
    char **files;
    size_t file_count;
    struct sg_counts *counts;
    uint64_t launches, failed;
    uint64_t nanoseconds; /* elapsed, from each launch's first slice to its end */
};

/*
 * The profile of a program whose code is counted. It lives until the process ends. NULL: out of
 * memory.
 */
struct sg_kernel_profile *sg_profile_of(const struct sg_program *program,
                                        const struct sg_code *code, struct sg_loaded *loaded);

/* A launch; without a `profile` nothing is counted. All other members begin as 0. */
struct sg_profiled_launch {
    struct sg_kernel_profile *profile;
    uint64_t began; /* time of its first slice; 0: it has not begun, or has ended */
    uint64_t nanoseconds;
    uint64_t launches; /* how often it began: more than once in a loop of a graph */
};

/* Around each slice of a grid; `done`: it was the last. Without the lock. */
void sg_profile_slice_begins(struct sg_profiled_launch *launch);
void sg_profile_slice_ends(struct sg_profiled_launch *launch, bool done);
/* Adds what the launch has done; call it before sg_grid_end. */
void sg_profile_add(struct sg_profiled_launch *launch, const struct sg_grid *grid);

/* All that has been added so far, as a table or as one line of JSON, malloc'ed; NULL: out of
 * memory. "" if nothing was launched. */
char *sg_profile_text(void);
char *sg_profile_json(void);
/* At the end of the process: writes to the file that SOFTGPU_PROFILE_KERNELS names. Takes the
 * lock. */
void sg_profile_write(void);
/* Whether the file can be written; creates it. */
bool sg_profile_possible(const char *file, char *why, size_t size);

/* ---- kernel_profile_sums.c: what both texts show --------------------------------------------- */

#define SG_PROFILE_HOT 10 /* lines that are shown */

/* A line of PTX or of a source, with the instructions that come from it. */
struct sg_hot_line {
    uint32_t file, line; /* file: 0 of PTX, else index + 1 */
    uint64_t warps, threads;
};

struct sg_profile_sums {
    struct sg_count all;
    uint64_t bytes[SG_COUNT_SPACES][SG_COUNT_DIRECTIONS];
    uint64_t accesses[SG_COUNT_SPACES][SG_COUNT_PATTERNS];
    struct sg_hot_line ptx[SG_PROFILE_HOT], source[SG_PROFILE_HOT]; /* the hottest first */
    size_t ptx_count, source_count;
};

/* False: no memory. */
bool sg_profile_sum(const struct sg_kernel_profile *profile, struct sg_profile_sums *sums);
/* Those that have been launched, sorted by CPU time, the longest first; *count of them. From
 * malloc; NULL without memory. */
const struct sg_kernel_profile **sg_profile_sorted(size_t *count);
/* The line of the kernel's text without the blanks around it, and its length; "" for none. */
const char *sg_profile_line(const struct sg_kernel_profile *profile, uint32_t line, size_t *length);
const char *sg_profile_space_name(unsigned space);

#endif
