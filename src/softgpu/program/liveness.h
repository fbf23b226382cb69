/*
 * Which registers of a function are live: a lane may still read their values. Lanes are taken one
 * by one, as each follows the control-flow graph by itself; so lanes that wait in another block
 * keep what they need. Found when asked for, from a program, and independent of it afterwards.
 */
#ifndef SG_PROGRAM_LIVENESS_H
#define SG_PROGRAM_LIVENESS_H

#include "softgpu/program/program.h"

/* Most registers are written and read within one block. Only the others have a bit in the sets. */
struct sg_liveness {
    uint32_t first_block, blocks;
    uint32_t *bit_of; /* by register: its bit + 1; 0: live within blocks only */
    uint32_t *registers, count;
    uint64_t *in; /* by block, `words` each: those live at its beginning; NULL: all of them are */
    size_t words;
    uint64_t *out, *writes;
};

/* False: out of memory, and nothing need be freed. Any number of threads may call it. */
bool sg_liveness_find(const struct sg_program *program, const struct sg_program_function *function,
                      struct sg_liveness *live);
void sg_liveness_free(struct sg_liveness *live);
/* Whether a register is live at the beginning, and at the end, of a block (an index in the
 * program's). At the end of one that returns, the function's results are. */
bool sg_live_in(const struct sg_liveness *live, uint32_t block, uint32_t reg);
bool sg_live_out(const struct sg_liveness *live, uint32_t block, uint32_t reg);
/* Whether a block writes a register, also under a guard. Only for those that are live across
 * blocks. */
bool sg_live_written(const struct sg_liveness *live, uint32_t block, uint32_t reg);

#endif
