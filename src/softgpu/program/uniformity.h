/*
 * Which values are the same in all threads of a block, and which branches all of them take the same
 * way. A register is uniform if threads that execute the same instructions equally often have the
 * same value in it. What runs kernels must not rely on it, since lanes also join while they are in
 * different rounds of a loop: tags find out what is uniform at run time. It tells people where
 * threads part. Found when asked for, and independent of the program afterwards.
 */
#ifndef SG_PROGRAM_UNIFORMITY_H
#define SG_PROGRAM_UNIFORMITY_H

#include "softgpu/program/program.h"

struct sg_uniformity {
    bool *varies; /* by register of the function; the last one stands for the condition code */
    bool *parts;  /* by block of the function: threads may leave it in different ways */
};

/* False: out of memory, and nothing need be freed. Any number of threads may call it. */
bool sg_uniformity_find(const struct sg_program *program,
                        const struct sg_program_function *function,
                        struct sg_uniformity *uniformity);
void sg_uniformity_free(struct sg_uniformity *uniformity);

/*
 * The branch that parted the threads of which only some are at an instruction: of those that may
 * take different ways to it, the one whose ways are the shortest. Its index in the program, or
 * SG_NO_BRANCH: all threads that are in the function come there, or there is no memory to find out.
 */
#define SG_NO_BRANCH UINT32_MAX
uint32_t sg_parting_branch(const struct sg_program *program, uint32_t instruction);

#endif
