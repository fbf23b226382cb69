#ifndef SG_ENGINE_STACK_H
#define SG_ENGINE_STACK_H

#include "softgpu/engine/inside.h"

/* At a kernel's beginning: nothing is allocated. */
sg_run sg_run_stack_begin;
/* stacksave to d, and stackrestore from a; `second`: their width. Restoring may have a guard. */
sg_run sg_run_stack_save, sg_run_stack_restore;
/* a: bytes; d: where they are in local memory; value: their alignment. */
sg_run sg_run_alloca;

/* Whether frames that end at `end` do not overlap what the lanes have allocated; if not, *lane is
 * one that they overlap. */
bool sg_stack_holds(const struct sg_warp *warp, uint32_t lanes, uint64_t end, unsigned *lane);

#endif
