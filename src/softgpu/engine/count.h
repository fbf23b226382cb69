/*
 * What counted code has done: how often each instruction ran, and how many bytes it moved. Separate
 * steps count, which only SG_CODE_COUNTED has: other code pays nothing. Each worker has its own
 * counts.
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
    SG_COUNT_TEXTURE,    /* textures and surfaces: bytes from and to registers */
    SG_COUNT_SPACES
};

/* ATOMIC: both, as by atom and red. */
enum sg_count_direction { SG_COUNT_READ, SG_COUNT_WRITTEN, SG_COUNT_ATOMIC, SG_COUNT_DIRECTIONS };

/* The pattern of a warp's addresses: all the same, contiguous in the order of the lanes, or
 * neither. A single lane counts as SAME. */
enum sg_count_pattern { SG_COUNT_SAME, SG_COUNT_CONTIGUOUS, SG_COUNT_SCATTERED, SG_COUNT_PATTERNS };

/* Of an instruction. A diverged warp counts once for each group of lanes. */
struct sg_count {
    uint64_t warps;   /* executions by warps */
    uint64_t threads; /* their active lanes */
    uint64_t taken;   /* those of them whose guard was true; all if it has none */
};

/* One operand of an instruction that accesses memory; a copy has two. */
struct sg_access_count {
    uint32_t instruction;
    unsigned char direction; /* enum sg_count_direction */
    uint64_t bytes[SG_COUNT_SPACES];
    /* Accesses by warps; only by loads, stores, atomics and the reads of cp.async, and only to
     * global, shared and constant memory. */
    uint64_t warps[SG_COUNT_SPACES][SG_COUNT_PATTERNS];
};

struct sg_counts {
    size_t instruction_count, access_count;
    struct sg_count *instructions; /* by the program's index */
    struct sg_access_count *accesses;
    uint64_t nanoseconds; /* of CPU time that threads have spent */
};

/* Zeros, for counted code. NULL: out of memory.
 */
struct sg_counts *sg_counts_new(const struct sg_code *code);
/* NULL is allowed. */
void sg_counts_free(struct sg_counts *counts);
/* Adds what the grid's workers have counted since it began. Only while no thread advances it. `to`
 * was made for the same code, or for code of the same program. */
void sg_grid_counts(const struct sg_grid *grid, struct sg_counts *to);

#endif
