/*
 * The array that an access intends, where PTX shows it: its address names a variable, or is
 * computed from registers that hold the address of only one variable.
 */
#ifndef SG_CHECK_SPANS_H
#define SG_CHECK_SPANS_H

#include "softgpu/program/program.h"

#define SG_SPAN_UNKNOWN UINT32_MAX

/* For each instruction the variable in shared or local memory, or SG_SPAN_UNKNOWN; malloc'ed. NULL:
 * out of memory. */
uint32_t *sg_spans_of(const struct sg_program *program);
/* The variable in shared memory in which all of [offset, offset + size) is, or SG_SPAN_UNKNOWN.
 * `shared`: bytes of shared memory of a block, which the last array has to its end where the launch
 * says how many. */
uint32_t sg_span_at(const struct sg_program *program, uint64_t shared, uint64_t offset,
                    uint64_t size);
/* The same of a function's frame, counted from its beginning. */
uint32_t sg_span_in_frame(const struct sg_program *program, uint32_t function, uint64_t offset,
                          uint64_t size);
/* Has the frame of a function any such variables? */
bool sg_span_has_frame(const struct sg_program *program, uint32_t function);
/* Bytes of shared memory that a block's own arrays have. After them is what the compiler reserves,
 * for multi-warp tiles. */
uint64_t sg_span_shared(const struct sg_program *program, unsigned dynamic);
uint64_t sg_span_size(const struct sg_program *program, uint32_t variable, uint64_t shared);

#endif
