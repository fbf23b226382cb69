/* The control file of a process. */
#ifndef SG_CHECKPOINT_FIND_H
#define SG_CHECKPOINT_FIND_H

#include "softgpu/checkpoint/gate.h"

/* This process's, or mapped from another one: then sg_control_close ends the mapping. Does not
 * require cuInit in this process, and accepts calls from a forked child. As recorded on an H200:
 * OPERATING_SYSTEM if there is no such process, NOT_INITIALIZED if it has not called cuInit.
 * NOT_SUPPORTED if we may not inspect it. */
CUresult sg_control_open(int pid, struct sg_control **control);
void sg_control_close(struct sg_control *control);
bool sg_control_is_own(const struct sg_control *control);

#endif
