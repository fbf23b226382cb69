/* One armed fault, as softgpu.h describes it. */
#ifndef SG_ENTRY_FAULT_H
#define SG_ENTRY_FAULT_H

#include "softgpu/entry/entry.h"

#include <gpumem/softgpu.h>
#include <stdint.h>

/* False when the name is unknown or the mode none. n 0 means every call. */
bool sg_fault_arm(const char *function, uint64_t n, int error, softgpu_fault_mode mode);
/* From "function:n:error:mode"; n may be "*". Says on the log what it does not understand. */
bool sg_fault_parse(const char *text);
/* Answers how often the fault fired. */
uint64_t sg_fault_disarm(void);

/* Counts a call. False when *result answers it; else call->fault_after may be set. */
bool sg_fault_enter(struct sg_call *call, bool counted, CUresult *result);

/* Around fork, so that a child never finds the fault's own lock held. */
void sg_fault_fork_prepare(void);
void sg_fault_fork_done(void);

#endif
