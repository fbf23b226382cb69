/* External memory and semaphores: objects of another interface, identified by a file descriptor.
 * Everything here requires the lock. */
#ifndef SG_EXTERNAL_EXTERNAL_H
#define SG_EXTERNAL_EXTERNAL_H

#include "softgpu/address/memory.h"
#include "softgpu/core/chapter.h"
#include "softgpu/stream/stream.h"

/*
 * The operation that signals the semaphores of a list (which may be empty), or waits for them. It
 * references them and copies what it needs of the parameters. INVALID_HANDLE when one is not a live
 * semaphore; otherwise INVALID_VALUE as on hardware. Also for a graph's execution.
 */
CUresult sg_semaphore_signal_make(struct sg_context *context,
                                  const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2 *params,
                                  struct sg_op **op);
CUresult sg_semaphore_wait_make(struct sg_context *context,
                                const CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2 *params, struct sg_op **op);
/* Frees one that will not be submitted after all. */
void sg_semaphore_discard(struct sg_op *op);

extern const struct sg_chapter sg_external_chapter;

#endif
