/* Legacy inter-process memory handles. */
#ifndef SG_IPC_IPC_MEMORY_H
#define SG_IPC_IPC_MEMORY_H

#include "softgpu/address/memory.h"

/* Closes an opened allocation with its context, whatever its count of opens. */
void sg_ipc_memory_end(struct sg_range *range);

#endif
