#ifndef SG_ENGINE_STACK_H
#define SG_ENGINE_STACK_H

#include "softgpu/engine/inside.h"

/* At a kernel's beginning: nothing is taken. */
sg_run sg_run_stack_begin;
/* stacksave into d and stackrestore from a, `second`: their width. Restoring can be guarded. */
sg_run sg_run_stack_save, sg_run_stack_restore;
/* a: bytes; d: where they are in local memory; value: their alignment. */
sg_run sg_run_alloca;

/* Do frames that end there leave alone what the lanes have taken? Else one that they do not. */
bool sg_stack_holds(const struct sg_warp *warp, uint32_t lanes, uint64_t end, unsigned *lane);

#endif
