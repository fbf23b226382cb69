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
/* The variable in shared memory, or in the entry's frame, that contains [offset, offset + size), or
 * SG_SPAN_UNKNOWN. `shared`: bytes of a block's shared memory, to whose end a dynamic array
 * extends. */
uint32_t sg_span_at(const struct sg_program *program, bool in_shared, uint64_t shared,
                    uint64_t offset, uint64_t size);
/* Bytes of shared memory in a block's own arrays. The reserved part after them, used by multi-warp
 * tiles, is the compiler's. */
uint64_t sg_span_shared(const struct sg_program *program, unsigned dynamic);
uint64_t sg_span_size(const struct sg_program *program, uint32_t variable, uint64_t shared);

#endif
