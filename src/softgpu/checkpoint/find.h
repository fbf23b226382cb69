/* The control file of a process. */
#ifndef SG_CHECKPOINT_FIND_H
#define SG_CHECKPOINT_FIND_H

#include "softgpu/checkpoint/gate.h"

/* Of this process, or mapped from another one: then sg_control_close ends the mapping. Asks for no
 * cuInit of this process, and takes a forked child's call. As recorded of an H200:
 * OPERATING_SYSTEM when there is no such process, NOT_INITIALIZED when it has not called cuInit.
 * NOT_SUPPORTED when it is not ours to look at. */
CUresult sg_control_open(int pid, struct sg_control **control);
void sg_control_close(struct sg_control *control);
bool sg_control_is_own(const struct sg_control *control);

#endif
