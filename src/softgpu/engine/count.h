/*
 * What kernels of counted code have done: how often each instruction ran, and what it moved.
 * Counting is done by steps of its own, which only SG_CODE_COUNTED has: other code pays
 * nothing. Each worker counts for itself.
 */
#ifndef SG_ENGINE_COUNT_H
#define SG_ENGINE_COUNT_H

#include "softgpu/engine/engine.h"

enum sg_count_space {
    SG_COUNT_GLOBAL,
    SG_COUNT_SHARED,
    SG_COUNT_LOCAL,
    SG_COUNT_CONSTANT,
    SG_COUNT_PARAMETERS, /* of the kernel, and of calls */
    SG_COUNT_TEXTURE,    /* of textures and surfaces: what registers receive or give */
    SG_COUNT_SPACES
};

/* ATOMIC: it reads and writes, as atom and red do. */
enum sg_count_direction { SG_COUNT_READ, SG_COUNT_WRITTEN, SG_COUNT_ATOMIC, SG_COUNT_DIRECTIONS };

/* How the addresses of a warp lie: all the same, one behind the other without a gap in the order of
 * the lanes, or neither. Of one lane: SAME. */
enum sg_count_pattern { SG_COUNT_SAME, SG_COUNT_CONTIGUOUS, SG_COUNT_SCATTERED, SG_COUNT_PATTERNS };

/* Of an instruction. A warp whose lanes have parted counts once for each part. */
struct sg_count {
    uint64_t warps;   /* how often a warp has come to it */
    uint64_t threads; /* their lanes that were there */
    uint64_t taken;   /* of them those whose guard was true; the same where it has none */
};

/* Of one side of an instruction that accesses memory: a copy has two. */
struct sg_access_count {
    uint32_t instruction;
    unsigned char direction; /* enum sg_count_direction */
    uint64_t bytes[SG_COUNT_SPACES];
    /* Accesses of warps. Only of loads, stores, atomics, and what cp.async reads; only in global,
     * shared and constant memory. */
    uint64_t warps[SG_COUNT_SPACES][SG_COUNT_PATTERNS];
};

struct sg_counts {
    size_t instruction_count, access_count;
    struct sg_count *instructions; /* by the program's */
    struct sg_access_count *accesses;
    uint64_t nanoseconds; /* of CPU time that threads have spent on it */
};

/* Zeros, for what counted code does; NULL without memory. Of other code there is nothing to count.
 */
struct sg_counts *sg_counts_new(const struct sg_code *code);
/* NULL is allowed. */
void sg_counts_free(struct sg_counts *counts);
/* Adds what the grid's threads have counted since it began. While no thread advances it. `to` is of
 * the same code, or of code of the same program. */
void sg_grid_counts(const struct sg_grid *grid, struct sg_counts *to);

#endif
